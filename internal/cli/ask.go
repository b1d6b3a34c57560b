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

// TerminalForSecrets opens the terminal the person sits at. Standard input does
// not do: a document may come that way. Tests put another one in.
var TerminalForSecrets = func() (*os.File, error) { return os.OpenFile("/dev/tty", os.O_RDWR, 0) }

// AskSecret asks for a secret without showing what is typed. instead names the
// flags that give it without a terminal.
func AskSecret(ctx context.Context, prompt, instead string) (string, error) {
	b, err := AskSecretBytes(ctx, prompt, instead)
	defer clear(b)
	return string(b), err
}

// AskSecretBytes is askSecret for callers who wipe the secret after use.
func AskSecretBytes(ctx context.Context, prompt, instead string) ([]byte, error) {
	files.KeepMemoryPrivate()
	tty, err := TerminalForSecrets()
	if err != nil {
		return nil, fmt.Errorf("there is no terminal to ask on: give %s", instead)
	}
	fd := int(tty.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		tty.Close()
		return nil, fmt.Errorf("there is no terminal to ask on: give %s", instead)
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
			return nil, errors.New("nothing was typed")
		}
		return a.text, a.err
	case <-ctx.Done():
		// The read goes on until the program ends, so the terminal stays open, but
		// it must not stay blind.
		term.Restore(fd, before)
		fmt.Fprintln(tty)
		return nil, ctx.Err()
	}
}
