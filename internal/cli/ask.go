// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

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
