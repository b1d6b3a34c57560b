// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"aead.dev/minisign"
	"golang.org/x/term"
)

// passwordVariable has the password of the key of releases, for a release without a terminal.
const passwordVariable = "TAMGA_RELEASE_PASSWORD"

// signatureOf returns the file with the signature over a file.
func signatureOf(file string) string { return file + ".minisig" }

// sign writes a signature over a file. comment is signed too, and a verifier prints it.
func sign(key, file, comment string) error {
	if strings.ContainsAny(comment, "\r\n") {
		return errors.New("sign: want a comment of one line")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	private, err := privateKey(key)
	if err != nil {
		return fmt.Errorf("sign: %s: %w", key, err)
	}
	return os.WriteFile(signatureOf(file), minisign.SignWithComments(private, text, comment, "signature of a release of Tamga"), 0o644)
}

// privateKey reads a key of minisign. It asks for the password of one that is encrypted.
func privateKey(file string) (private minisign.PrivateKey, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return private, err
	}
	defer clear(text)
	if !minisign.IsEncrypted(text) {
		err = private.UnmarshalText(text)
		return private, err
	}
	password, given := os.LookupEnv(passwordVariable)
	if !given {
		fmt.Fprintf(os.Stderr, "Password of %s: ", file)
		typed, err := term.ReadPassword(int(os.Stdin.Fd()))
		fmt.Fprintln(os.Stderr)
		if err != nil {
			return private, fmt.Errorf("no terminal to ask at: set %s: %w", passwordVariable, err)
		}
		password = string(typed)
	}
	return minisign.DecryptKey(password, text)
}

// verify checks the signature over a file.
func verify(key, file string) error {
	public, err := minisign.PublicKeyFromFile(key)
	if err != nil {
		return fmt.Errorf("verify: %s: %w", key, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	signature, err := os.ReadFile(signatureOf(file))
	if err != nil {
		return err
	}
	if !minisign.Verify(public, text, signature) {
		return fmt.Errorf("verify: %s is not a signature over %s by the key in %s", signatureOf(file), file, key)
	}
	return nil
}
