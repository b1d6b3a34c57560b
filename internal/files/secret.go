// SPDX-License-Identifier: Apache-2.0

// Package files reads the files that a process is told of: secrets, certificates and revocation
// lists. It bounds what it reads, keeps secrets out of errors and core dumps, and replaces files
// whole. Begin with OwnSecret or Certificates.
package files

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// MaxSecret is the largest size of a file with a password, PIN or token, in bytes: enough
// for any bearer token, and small enough that reading a wrong file does no harm.
const MaxSecret = 16 << 10

// ReadSecret reads a password, PIN or token from a file. One line end at the end of the
// file does not belong to the secret. No error contains the text.
func ReadSecret(path, what string) (string, error) {
	b, err := ReadSecretBytes(path, what)
	defer clear(b)
	return string(b), err
}

// ReadSecretBytes is readSecret for callers who wipe the secret after use. It leaves no
// other copy.
func ReadSecretBytes(path, what string) ([]byte, error) {
	KeepMemoryPrivate() // serve warns where the system does not let it
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	defer f.Close()
	room := make([]byte, MaxSecret+3) // a line end, and one byte more than allowed
	defer clear(room)
	n, err := io.ReadFull(f, room)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	b := bytes.TrimSuffix(bytes.TrimSuffix(room[:n], []byte("\n")), []byte("\r"))
	switch {
	case len(b) > MaxSecret:
		return nil, fmt.Errorf("%s: %s has more than %d bytes: it must hold the secret and nothing else", what, path, MaxSecret)
	case bytes.ContainsAny(b, "\n\r\x00"):
		return nil, fmt.Errorf("%s: %s holds more than one line: it should hold the secret alone", what, path)
	}
	return bytes.Clone(b), nil
}

// OwnSecret reads a secret that only its owner may be able to read.
func OwnSecret(file, what string) (string, error) {
	b, err := OwnSecretBytes(file, what)
	defer clear(b)
	return string(b), err
}

// OwnSecretBytes is ownSecret for callers who wipe the secret after use.
func OwnSecretBytes(file, what string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if readableByOthers(file, info) {
		return nil, fmt.Errorf("%s: %s can be read by others: chmod 600 it", what, file)
	}
	return ReadSecretBytes(file, what)
}

// OwnFile reads a secret of several lines, such as a private key in PEM form, that only its owner may be
// able to read.
func OwnFile(file, what string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if readableByOthers(file, info) {
		return nil, fmt.Errorf("%s: %s can be read by other users; run: chmod 600 %[2]s", what, file)
	}
	if info.Size() > MaxSecret {
		return nil, fmt.Errorf("%s: %s is larger than %d bytes; the file must contain the secret and nothing else", what, file, MaxSecret)
	}
	return os.ReadFile(file)
}
