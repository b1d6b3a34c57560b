// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"fmt"
	"io"

	"tamga/internal/cli"
	"tamga/internal/files"
	"tamga/sig"
)

// signedInput is FILE of verify with its format.
type signedInput struct {
	*cli.Input
	format   sig.Described
	contents sig.Contents
}

// openSigned opens FILE and finds its format among known. FILE may be "-" for stdin. The caller calls Close.
func openSigned(ctx context.Context, path string, stdin io.Reader, known sig.Formats, bar *cli.Progress) (*signedInput, error) {
	file, err := cli.OpenInput(ctx, path, stdin, bar)
	if err != nil {
		return nil, err
	}
	in := &signedInput{Input: file}
	if err := in.recognise(ctx, display(path), known); err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}

// recognise sets the format and the contents.
func (in *signedInput) recognise(ctx context.Context, path string, known sig.Formats) (err error) {
	if in.format, err = known.Recognise(ctx, in.Document); err != nil {
		return err
	}
	size := in.Document.Size()
	if in.format == nil {
		other := "of another kind (" + files.Size(size) + ")"
		if size == 0 {
			other = "empty"
		}
		return &unsigned{fmt.Sprintf("%s is %s: %s expected", path, other, known.Expected())}
	}
	if inspect := in.format.Describe().Inspect; inspect != nil {
		if in.contents, err = inspect(in.Document); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}
