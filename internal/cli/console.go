// SPDX-License-Identifier: Apache-2.0

// Package cli has what the sub-commands share: the console, exit codes, prompts for secrets, output
// files, progress, and the flags that name an installation. A command gets a Console. An
// administrative command does its work inside Administer.
//
// The package has no sub-command but version: the others are in the packages below it.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"tamga/internal/config"
)

// Console has the streams of a sub-command. A command never uses those of the process, so that a test
// can run any command.
type Console struct {
	Context        context.Context
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Terminal       bool // Stderr is a terminal, so progress is shown
	// Secrets opens the terminal where a secret is asked for; nil means that there is none. It is not
	// standard input, which may carry a document.
	Secrets func() (*os.File, error)
	Program *Program
	// Language is the language of the process: "ru", or "" for English.
	Language string
	// Words has the texts of sentences in the language of the process, by their English formats; nil for
	// English.
	Words map[string]string
	// Faults returns the text of an error of a configuration, a file or the system in the language of the process; nil for
	// English.
	Faults func(text string) string
	// Args are the words of the command line, such as names of files. Texts for people have them as
	// Printable returns them.
	Args []string
	// Person is the person who runs the command, as far as the system knows: see PersonOf.
	Person string
	// Examine does the checks of tamga doctor; see setup.Examine. Sub-commands do not import each other.
	Examine func(c *Console, file string, conf *config.Config, faults []error, offline bool) []Finding
}

// Finding is the result of one check of tamga doctor.
type Finding struct {
	Check  Word     `json:"check"`
	State  Word     `json:"state"` // ok, warning or fault
	Text   Sentence `json:"text"`
	Remedy Sentence `json:"remedy,omitzero"` // empty if State is ok

	// Of a fault of the configuration, as far as they are known. Text does not have file and line.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	Key  string `json:"key,omitempty"` // name of the setting
}

// ExitCode is an error whose text has already been printed. It is the exit code of the program.
type ExitCode int

// Incomplete is the ExitCode of a command that did a part of what was ordered and has said what is left.
const Incomplete = ExitCode(1)

// Error implements error.
func (e ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// ConfigError is an invalid configuration of a server: exit code 78 (EX_CONFIG), after which a service manager does not
// start it again.
type ConfigError struct{ Err error }

// Error implements error.
func (e ConfigError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e ConfigError) Unwrap() error { return e.Err }

// UsageError is an invalid command line: exit code 2.
type UsageError struct {
	Err     error
	Command string // the command that was meant, such as "cert list"; "" for none
}

// Error implements error. It refers to the help of the command.
func (e UsageError) Error() string {
	return e.Err.Error() + "; see " + strings.Join(strings.Fields("tamga "+e.Command+" --help"), " ")
}

// Unwrap returns Err.
func (e UsageError) Unwrap() error { return e.Err }
