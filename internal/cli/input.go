// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

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

// headSize is the number of bytes at the beginning of a file that decide its format.
const headSize = 1024

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
	if isUTF16(head) {
		if err := in.narrow(ctx, head[0] == 0 || head[0] == 0xfe); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		in.Notes = append(in.Notes, Say("%s is %s: it was decoded first", path, formUTF16))
		if head, err = in.Head(); err != nil {
			return err
		}
	}
	if form := textForm(head); form != "" {
		if err := in.decode(ctx, form); err != nil {
			return fmt.Errorf("%s looks like %s, but cannot be decoded: %w", path, form, err)
		}
		in.Notes = append(in.Notes, Say("%s is %s: it was decoded first", path, form))
	}
	return nil
}

// Head returns the first headSize bytes.
func (in *Input) Head() ([]byte, error) {
	head := make([]byte, headSize)
	n, err := in.Document.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	return head[:n], nil
}

// The text forms of signatures.
const (
	formPEM    Word = "PEM text"
	formJSON   Word = "Base64 in quotes, as the signing interface answers"
	formBase64 Word = "Base64 text"
	formSMIME  Word = "S/MIME"
)

// formUTF16 is text whose form shows only when it is converted.
const formUTF16 Word = "text in UTF-16"

var byteOrderMark = []byte("\xef\xbb\xbf")

// textForm returns the text form of a file by its first bytes, "" if it is not text.
func textForm(head []byte) Word {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, byteOrderMark), " \t\r\n")
	switch {
	case isUTF16(head):
		return formUTF16
	case bytes.HasPrefix(text, []byte("-----BEGIN ")), isLines(text) && bytes.Contains(text, []byte("\n-----BEGIN ")):
		return formPEM
	case len(text) >= 2 && text[0] == '"' && isBase64(text[1]):
		return formJSON
	case len(text) >= 40 && bytes.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune("=\r\n\t ", r) && (r > 0x7f || !isBase64(byte(r))) }) < 0:
		return formBase64 // the bytes of a bare signature are hardly ever all Base64 digits
	case isLines(text) && bytes.Contains(bytes.ToLower(text), []byte("content-type: application/")) && bytes.Contains(bytes.ToLower(text), []byte("pkcs7-mime")):
		return formSMIME
	}
	return ""
}

// isUTF16 reports whether a file begins with a byte order mark of UTF-16, or with two ASCII
// characters in it.
func isUTF16(head []byte) bool {
	if len(head) < 4 {
		return false
	}
	mark := string(head[:2])
	return mark == "\xff\xfe" || mark == "\xfe\xff" ||
		head[0] == 0 && head[1] > ' ' && head[2] == 0 && head[3] > ' ' || head[0] > ' ' && head[1] == 0 && head[2] > ' ' && head[3] == 0
}

// isLines reports whether head is lines of text. DER has bytes below a tab.
func isLines(head []byte) bool {
	return bytes.IndexFunc(head, func(r rune) bool { return r < '\t' }) < 0
}

func isBase64(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '+' || c == '/'
}

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
func (in *Input) decode(ctx context.Context, form Word) error {
	text := in.Document
	f, err := in.temporary()
	if err != nil {
		return err
	}
	src := &contextReader{ctx, io.NewSectionReader(text, 0, text.Size())}
	var n int64
	if form == formJSON {
		n, err = CopyAnswer(f, src)
		if errors.Is(err, ErrAnswer) {
			err = ErrBase64
		}
	} else {
		n, err = CopyBase64(f, &base64Text{src: bufio.NewReaderSize(src, 64<<10), form: form})
	}
	if err != nil {
		return err
	}
	in.Document = &Document{f, n, text.bar}
	return nil
}

// narrow replaces a text in UTF-16 by one of a byte for each character. Characters outside of
// ASCII occur in comments only.
func (in *Input) narrow(ctx context.Context, bigEndian bool) error {
	text := in.Document
	f, err := in.temporary()
	if err != nil {
		return err
	}
	src := bufio.NewReaderSize(&contextReader{ctx, io.NewSectionReader(text, 0, text.Size())}, 64<<10)
	dst := bufio.NewWriter(f)
	var n int64
	for {
		var pair [2]byte
		if _, err := io.ReadFull(src, pair[:]); err == io.EOF {
			break
		} else if err != nil && err != io.ErrUnexpectedEOF {
			return err
		}
		if bigEndian {
			pair[0], pair[1] = pair[1], pair[0]
		}
		switch {
		case n == 0 && pair == [2]byte{0xff, 0xfe}:
			continue // the byte order mark
		case pair[1] != 0 || pair[0] > 0x7f:
			pair[0] = '?'
		}
		if err := dst.WriteByte(pair[0]); err != nil {
			return err
		}
		n++
	}
	if err := dst.Flush(); err != nil {
		return err
	}
	in.Document = &Document{f, n, text.bar}
	return nil
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

// base64Text reads the Base64 of the first PEM block, below a header of S/MIME, or of a text that is
// nothing but Base64. It skips line ends and spaces.
type base64Text struct {
	src   *bufio.Reader
	form  Word
	begun bool
	pem   bool
	done  bool

	header bool // a line of the header was read
}

func (t *base64Text) Read(b []byte) (int, error) {
	if !t.begun {
		if err := t.begin(); err != nil {
			return 0, err
		}
	}
	n := 0
	for n < len(b) && !t.done {
		c, err := t.src.ReadByte()
		switch {
		case err == io.EOF && !t.pem:
			t.done = true
		case err == io.EOF:
			return n, ErrBase64 // no line -----END
		case err != nil:
			return n, err
		case t.pem && c == '-':
			t.done = true
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		default:
			b[n] = c // the decoder rejects invalid bytes
			n++
		}
	}
	if t.done {
		return n, io.EOF
	}
	return n, nil
}

// begin skips what is before the Base64: a byte order mark and white space, the lines up to
// -----BEGIN in PEM, and the header up to an empty line in S/MIME.
func (t *base64Text) begin() error {
	t.begun = true
	if mark, _ := t.src.Peek(len(byteOrderMark)); bytes.Equal(mark, byteOrderMark) {
		t.src.Discard(len(byteOrderMark))
	}
	if t.form == formBase64 {
		return nil
	}
	for {
		line, err := t.src.ReadSlice('\n') // a line longer than the buffer is neither
		if err != nil {
			return err
		}
		line = bytes.TrimSpace(line)
		switch {
		case t.form == formPEM && bytes.HasPrefix(line, []byte("-----BEGIN ")):
			t.pem = true
			return nil
		case t.form == formSMIME && len(line) == 0 && t.header:
			return nil
		case t.form == formSMIME && len(line) > 0:
			t.header = true
		}
	}
}
