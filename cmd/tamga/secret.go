package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// maxSecret is the most a file with a password, PIN or token may hold, in
// octets: enough for any bearer token, too little for a wrong file to hurt.
const maxSecret = 16 << 10

// readSecret reads a password, PIN or token from a file; one line end at its
// end belongs to the editor, not to the secret. The text appears in no error.
func readSecret(path, what string) (string, error) {
	b, err := readSecretBytes(path, what)
	defer clear(b)
	return string(b), err
}

// readSecretBytes is readSecret for callers who wipe the secret after use. It leaves no
// other copy.
func readSecretBytes(path, what string) ([]byte, error) {
	keepMemoryPrivate() // serve warns where the system does not let it
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	defer f.Close()
	room := make([]byte, maxSecret+3) // a line end, and one byte more than allowed
	defer clear(room)
	n, err := io.ReadFull(f, room)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	b := bytes.TrimSuffix(bytes.TrimSuffix(room[:n], []byte("\n")), []byte("\r"))
	switch {
	case len(b) > maxSecret:
		return nil, fmt.Errorf("%s: %s has more than %d bytes: it must hold the secret and nothing else", what, path, maxSecret)
	case bytes.ContainsAny(b, "\n\r\x00"):
		return nil, fmt.Errorf("%s: %s holds more than one line: it should hold the secret alone", what, path)
	}
	return bytes.Clone(b), nil
}

// ownSecret reads a secret that only its owner may be able to read.
func ownSecret(file, what string) (string, error) {
	b, err := ownSecretBytes(file, what)
	defer clear(b)
	return string(b), err
}

// ownSecretBytes is ownSecret for callers who wipe the secret after use.
func ownSecretBytes(file, what string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s: %s can be read by others: chmod 600 it", what, file)
	}
	return readSecretBytes(file, what)
}

// terminalForSecrets opens the terminal the person sits at. Standard input does
// not do: a document may come that way. Tests put another one in.
var terminalForSecrets = func() (*os.File, error) { return os.OpenFile("/dev/tty", os.O_RDWR, 0) }

// askSecret asks for a secret without showing what is typed. instead names the
// flags that give it without a terminal.
func askSecret(ctx context.Context, prompt, instead string) (string, error) {
	b, err := askSecretBytes(ctx, prompt, instead)
	defer clear(b)
	return string(b), err
}

// askSecretBytes is askSecret for callers who wipe the secret after use.
func askSecretBytes(ctx context.Context, prompt, instead string) ([]byte, error) {
	keepMemoryPrivate()
	tty, err := terminalForSecrets()
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
