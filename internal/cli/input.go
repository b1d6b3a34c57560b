// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"tamga/pki/cms"
	"tamga/sig"
)

// Document is a file as sig.Document. The file may be larger than memory.
type Document struct {
	*os.File
	size int64
	bar  *Progress
}

var _ sig.Document = (*Document)(nil)

// Size implements sig.Document.
func (d *Document) Size() int64 { return d.size }

// ReadAt implements io.ReaderAt.
func (d *Document) ReadAt(b []byte, offset int64) (int, error) {
	n, err := d.File.ReadAt(b, offset)
	d.bar.Add(n)
	return n, err
}

// OpenDocument opens a regular file. bar counts the bytes read. A pipe is not opened: that would wait for a writer,
// and a device may do something. It may take the place of a file meanwhile, so the open file is looked at too.
func OpenDocument(path string, bar *Progress) (*Document, error) {
	regular := func(info os.FileInfo, err error) error {
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a file; a file is needed, since it is read more than once", path)
		}
		return err
	}
	if err := regular(os.Stat(path)); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err = regular(info, err); err != nil {
		f.Close()
		return nil, err
	}
	return &Document{f, info.Size(), bar}, nil
}

// Input is a file that a command reads more than once: a signed or encrypted message, which may be text.
type Input struct {
	Document *Document
	Notes    []Sentence // what was done to the file first
	close    func()
}

// Close closes the file and removes what was made of it.
func (in *Input) Close() { in.close() }

// OpenInput opens a file. It decodes PEM, Base64 and S/MIME into a temporary file, since the text may be larger than
// memory. The path may be "-" for stdin. The caller calls Close.
func OpenInput(ctx context.Context, path string, stdin io.Reader, bar *Progress) (*Input, error) {
	in := &Input{close: func() {}}
	if path == "-" {
		if err := in.keep(ctx, stdin, bar); err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		path = "standard input"
	} else {
		d, err := OpenDocument(path, bar)
		if err != nil {
			return nil, err
		}
		in.Document, in.close = d, func() { d.Close() }
	}
	if err := in.asBytes(ctx, path); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

// asBytes decodes text.
func (in *Input) asBytes(ctx context.Context, path string) error {
	head, err := in.Head()
	if err != nil {
		return err
	}
	for range 2 { // UTF-16 and the form of its text
		form := cms.TextFormOf(head)
		if form == cms.NoText {
			return nil
		}
		if err := in.decode(ctx, form); err != nil {
			return fmt.Errorf("%s looks like %s, but cannot be decoded: %w", path, textForms[form], err)
		}
		in.Notes = append(in.Notes, Say("%s is %s: it was decoded first", path, textForms[form]))
		if head, err = in.Head(); err != nil || form != cms.UTF16 {
			return err
		}
	}
	return nil
}

// Head returns the first bytes, as many as decide the format.
func (in *Input) Head() ([]byte, error) {
	head := make([]byte, cms.TextHead)
	n, err := in.Document.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	return head[:n], nil
}

// textForms are the words for text forms of messages.
var textForms = map[cms.TextForm]Word{
	cms.PEM: "PEM text", cms.QuotedBase64: "Base64 in quotes, as the signing interface answers", cms.Base64: "Base64 text", cms.SMIME: "S/MIME", cms.UTF16: "text in UTF-16",
}

// ErrBase64 reports a text whose Base64 is invalid or incomplete.
var ErrBase64 = errors.New("invalid or incomplete Base64")

// temporary makes a file that close removes.
func (in *Input) temporary() (*os.File, error) {
	f, err := os.CreateTemp("", "tamga-*.der")
	if err != nil {
		return nil, err
	}
	os.Remove(f.Name()) // if the system can remove an open file, none is left even after a crash
	closeEarlier := in.close
	in.close = func() {
		closeEarlier()
		f.Close()
		os.Remove(f.Name())
	}
	return f, nil
}

// keep copies a stream into a temporary file, because a document is read more than once.
func (in *Input) keep(ctx context.Context, r io.Reader, bar *Progress) error {
	f, err := in.temporary()
	if err != nil {
		return err
	}
	n, err := io.Copy(f, &contextReader{ctx, r})
	if err != nil {
		in.close()
		return err
	}
	in.Document = &Document{f, n, bar}
	return nil
}

// decode decodes the text into a temporary file, which replaces the document.
func (in *Input) decode(ctx context.Context, form cms.TextForm) error {
	text := in.Document
	f, err := in.temporary()
	if err != nil {
		return err
	}
	n, err := form.Decode(f, &contextReader{ctx, io.NewSectionReader(text, 0, text.Size())})
	if errors.Is(err, cms.ErrText) {
		return ErrBase64
	}
	in.Document = &Document{f, n, text.bar}
	return err
}

// contextReader is a reader whose Read fails after the context ends.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r *contextReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
}
