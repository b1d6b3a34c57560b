// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tamga/internal/cli"
	"tamga/internal/files"
)

// What sign, encrypt and decrypt do first: they name the outputs of their files, and sign in.

// job is a file that a command reads, with the file that it writes; "-": standard input and output.
type job struct{ name, output string }

// outputs returns files with their outputs. of returns the output of a file without -o.
func outputs(c *cli.Console, names []string, output string, force, asJSON bool, of func(name string) (string, error)) ([]job, error) {
	if len(names) > 1 && output != "" {
		return nil, errors.New("-o names the output of one file; several files have outputs of their own")
	}
	jobs := make([]job, len(names))
	taken := map[string]string{}
	for i, name := range names {
		if name == "-" && len(names) > 1 {
			return nil, errors.New("standard input is read alone, not beside files")
		}
		to := output
		switch {
		case to == "" && name == "-" && cli.IsTerminal(c.Stdout):
			return nil, errors.New("not writing the result to a terminal; name a file with -o, or force it with -o -")
		case to == "" && name == "-":
			to = "-"
		case to == "":
			var err error
			if to, err = of(name); err != nil {
				return nil, err
			}
		}
		if to == "-" && asJSON {
			return nil, errors.New("--json and the result would be the same output; name a file with -o")
		}
		if to != "-" {
			if err := cli.CheckTarget(to, force); err != nil {
				return nil, err
			}
			clean := filepath.Clean(to)
			if other, twice := taken[clean]; twice {
				return nil, fmt.Errorf("%s and %s have the same output, %s; take one of them alone", other, name, to)
			}
			taken[clean] = name
		}
		jobs[i] = job{name, to}
	}
	return jobs, nil
}

// secretPIN says where the PIN of a certificate comes from; the zero value: none is needed.
type secretPIN struct {
	cert string // its number
	ask  bool
	file string
}

// connect reads the PIN and signs in. alone is advice for a machine without a server, nil for none. The caller clears the
// PIN.
func connect(c *cli.Console, f connectionFlags, from secretPIN, alone error) (cl *client, pin []byte, err error) {
	if cl, err = newClient(c, f); err != nil {
		if errors.Is(err, os.ErrNotExist) && f.Server == "" && alone != nil {
			err = fmt.Errorf("%w; %w", err, alone)
		}
		return nil, nil, err
	}
	switch {
	case from.file != "":
		pin, err = files.ReadSecretBytes(from.file, "--pin-file")
	case from.ask:
		pin, err = c.AskSecretBytes(c.Text("PIN of certificate %s: ", cli.Printable(strings.TrimSpace(from.cert))), "--pin-file")
	}
	if err == nil {
		err = cl.signIn(c.Context)
	}
	if err != nil {
		clear(pin)
		return nil, nil, err
	}
	return cl, pin, nil
}
