// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"tamga/internal/files"
)

// OpenTerminal opens the controlling terminal of the process, for Console.Secrets.
func OpenTerminal() (*os.File, error) { return os.OpenFile("/dev/tty", os.O_RDWR, 0) }

// AskSecret asks for a secret at the terminal, without echo. instead is the flag that gives the
// secret without a terminal, for the error.
func (c *Console) AskSecret(prompt, instead string) (string, error) {
	b, err := c.AskSecretBytes(prompt, instead)
	defer clear(b)
	return string(b), err
}

// AskSecretBytes is AskSecret for callers that wipe the secret after use.
func (c *Console) AskSecretBytes(prompt, instead string) ([]byte, error) {
	files.KeepMemoryPrivate()
	missing := fmt.Errorf("no terminal to ask for a secret: give %s", instead)
	if c.Secrets == nil {
		return nil, missing
	}
	tty, err := c.Secrets()
	if err != nil {
		return nil, missing
	}
	fd := int(tty.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		tty.Close()
		return nil, missing
	}
	fmt.Fprint(tty, prompt)
	type answer struct {
		text []byte
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		text, err := term.ReadPassword(fd)
		answers <- answer{text, err}
	}()
	select {
	case a := <-answers:
		fmt.Fprintln(tty)
		tty.Close()
		if errors.Is(a.err, io.EOF) {
			return nil, errors.New("no input at the terminal")
		}
		return a.text, a.err
	case <-c.Context.Done():
		// The read continues until the program ends, so the terminal stays open. Its echo must be
		// restored.
		term.Restore(fd, before)
		fmt.Fprintln(tty)
		return nil, c.Context.Err()
	}
}

// Dialog asks questions at the terminal. Its answers are not secrets.
type Dialog struct {
	c     *Console
	tty   *os.File
	lines *bufio.Reader
}

// OpenDialog opens the terminal for questions. The error is that there is none.
func (c *Console) OpenDialog() (*Dialog, error) {
	if c.Secrets == nil {
		return nil, errors.New("no terminal to ask at")
	}
	tty, err := c.Secrets()
	if err != nil {
		return nil, err
	}
	return &Dialog{c, tty, bufio.NewReader(tty)}, nil
}

// Close closes the terminal.
func (d *Dialog) Close() { d.tty.Close() }

// Ask asks a question. An empty answer means the proposed one.
func (d *Dialog) Ask(question, proposed string) (string, error) {
	if proposed != "" {
		question += " [" + proposed + "]"
	}
	if _, err := fmt.Fprint(d.tty, question+": "); err != nil {
		return "", err
	}
	type answer struct {
		line string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		line, err := d.lines.ReadString('\n')
		answers <- answer{line, err}
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			return "", errors.New("no input at the terminal")
		}
		if line := strings.TrimSpace(a.line); line != "" {
			return line, nil
		}
		return proposed, nil
	case <-d.c.Context.Done():
		return "", d.c.Context.Err()
	}
}

// AskChecked asks until check takes the answer. check may be nil.
func (d *Dialog) AskChecked(question, proposed string, check func(answer string) error) (string, error) {
	for {
		answer, err := d.Ask(question, proposed)
		if err != nil || check == nil {
			return answer, err
		}
		if err = check(answer); err == nil {
			return answer, nil
		}
		d.Say(d.c.Fault(err.Error()))
	}
}

// Say shows a text at the terminal.
func (d *Dialog) Say(text string) { fmt.Fprintln(d.tty, Printable(text)) }

// Confirm asks a question that is answered with yes or no.
func (d *Dialog) Confirm(question string, proposed bool) (bool, error) {
	shown := d.c.Word(map[bool]Word{true: "yes", false: "no"}[proposed])
	for {
		a, err := d.Ask(question, shown)
		if err != nil {
			return false, err
		}
		if yes, understood := YesOrNo(a); understood {
			return yes, nil
		}
	}
}

// YesOrNo reads an answer to a question, in each language of the program.
func YesOrNo(answer string) (yes, understood bool) {
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes", "д", "да":
		return true, true
	case "n", "no", "н", "нет":
		return false, true
	}
	return false, false
}
