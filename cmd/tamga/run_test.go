// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"

	"tamga/internal/cli/program"
)

// run runs a command line in this process.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	return program.Run(ctx, "test", args, stdin, stdout, stderr)
}
