// SPDX-License-Identifier: Apache-2.0

package asic

import (
	"context"
	"io"

	"tamga/sig"
	"tamga/sig/budget"
)

// Open implements sig.Opener. It says nothing of signatures: Verify does.
func (f *Format) Open(ctx context.Context, d sig.Document) ([]sig.Opened, error) {
	ctx, b := budget.Of(ctx, d.Size())
	c, err := openContainer(ctx, b, d)
	if err != nil {
		return nil, err
	}
	files := c.shown()
	out := make([]sig.Opened, len(files))
	for i, f := range files {
		out[i] = sig.Opened{Name: f.Name, Result: taken{ctx, f}}
	}
	return out, nil
}

// taken is a file that is read when it is written.
type taken struct {
	ctx  context.Context
	file *file
}

// Size implements sig.Result.
func (t taken) Size() int64 { return t.file.Size }

// WriteTo implements io.WriterTo. The error of a content that does not fit its checksum comes after it was written.
func (t taken) WriteTo(w io.Writer) (int64, error) {
	n := &written{w: w}
	err := ofArchive(t.file.of.zip.Copy(t.ctx, t.file.Entry, n))
	return n.n, err
}

// written counts bytes.
type written struct {
	w io.Writer
	n int64
}

func (c *written) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

var _ sig.Opener = (*Format)(nil)
