// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"tamga/internal/files"
)

// TerminalForSecrets opens the controlling terminal. It is not standard input, which may carry a
// document. Tests replace it.
var TerminalForSecrets = func() (*os.File, error) { return os.OpenFile("/dev/tty", os.O_RDWR, 0) }

// AskSecret asks for a secret at the terminal, without echo. instead is the flag that gives the
// secret without a terminal, for the error.
func AskSecret(ctx context.Context, prompt, instead string) (string, error) {
	b, err := AskSecretBytes(ctx, prompt, instead)
	defer clear(b)
	return string(b), err
}

// AskSecretBytes is AskSecret for callers that wipe the secret after use.
func AskSecretBytes(ctx context.Context, prompt, instead string) ([]byte, error) {
	files.KeepMemoryPrivate()
	tty, err := TerminalForSecrets()
	if err != nil {
		return nil, fmt.Errorf("no terminal to ask for a secret: give %s", instead)
	}
	fd := int(tty.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		tty.Close()
		return nil, fmt.Errorf("no terminal to ask for a secret: give %s", instead)
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
	case <-ctx.Done():
		// The read continues until the program ends, so the terminal stays open. Its echo must be
		// restored.
		term.Restore(fd, before)
		fmt.Fprintln(tty)
		return nil, ctx.Err()
	}
}
