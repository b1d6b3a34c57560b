// Package cli is what the sub-commands share: the console, exit codes, questions for secrets,
// output files, progress, and the flags that name an installation. A command that administers
// begins with Administer.
//
// The sub-commands themselves are in the packages below it, one for each kind.
package cli

import (
	"context"
	"fmt"
	"io"
)

// Console is what a sub-command speaks to: never the process's own streams, so
// that a test can run any command.
type Console struct {
	Context        context.Context
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Terminal       bool // Stderr is a terminal: progress is welcome
	Program        *Program
}

// ExitCode is an error whose text was already shown.
type ExitCode int

func (e ExitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// UsageError is a command line that cannot be understood: exit code 2.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() + "; see tamga --help" }

func (e UsageError) Unwrap() error { return e.Err }
