// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// TextForm is a form in which programs store or send a message as text. Parse and ParseEnveloped want bytes:
// decode the text first, with TextFormOf and Decode.
type TextForm int

const (
	// NoText is a message in DER or BER, or no message.
	NoText TextForm = iota
	// PEM is Base64 between lines BEGIN and END, with any text before it. The first block is read.
	PEM
	// Base64 is nothing but Base64, in lines or not.
	Base64
	// QuotedBase64 is Base64 in a JSON string.
	QuotedBase64
	// SMIME is Base64 below a header with Content-Type application/pkcs7-mime.
	SMIME
	// UTF16 is text with two bytes for each character. Its decoded form is another one.
	UTF16
)

// TextHead is the number of bytes at the beginning of a message that TextFormOf needs.
const TextHead = 1024

// ErrText reports that the Base64 of a text is invalid or incomplete.
var ErrText = errors.New("cms: the Base64 of the message is invalid or incomplete")

var byteOrderMark = []byte("\xef\xbb\xbf")

// TextFormOf returns the text form of a message by its first bytes.
func TextFormOf(head []byte) TextForm {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, byteOrderMark), " \t\r\n")
	lower := bytes.ToLower(text)
	switch {
	case isUTF16(head):
		return UTF16
	case bytes.HasPrefix(text, []byte("-----BEGIN ")), isLines(text) && bytes.Contains(text, []byte("\n-----BEGIN ")):
		return PEM // programs write descriptions before it (RFC 7468, section 5.2)
	case len(text) >= 2 && text[0] == '"' && isBase64(text[1]):
		return QuotedBase64
	case len(text) >= 40 && bytes.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune("=\r\n\t ", r) && (r > 0x7f || !isBase64(byte(r))) }) < 0:
		return Base64 // the bytes of a bare signature are hardly ever all Base64 digits
	case isLines(text) && bytes.Contains(lower, []byte("content-type: application/")) && bytes.Contains(lower, []byte("pkcs7-mime")):
		return SMIME
	}
	return NoText
}

// isUTF16 reports whether a text begins with a byte order mark of UTF-16, or with two ASCII characters in it.
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

// Decode decodes a text of the form into dst, in constant memory, and returns the number of bytes written. UTF16
// becomes text with one byte for each character. The error is ErrText, or that of src or dst.
func (f TextForm) Decode(dst io.Writer, src io.Reader) (int64, error) {
	in := bufio.NewReaderSize(src, 64<<10)
	switch f {
	case NoText:
		return io.Copy(dst, in)
	case UTF16:
		return narrow(dst, in)
	}
	return CopyBase64(dst, &textReader{src: in, form: f})
}

// CopyBase64 decodes src, which is Base64 and nothing else, into dst and returns the number of bytes written. The
// error is ErrText if the text ends early or continues after its padding.
func CopyBase64(dst io.Writer, src io.Reader) (int64, error) {
	in, out := make([]byte, 64<<10), make([]byte, 48<<10)
	var total int64
	padded := false // no text may follow padding
	for {
		n, err := io.ReadFull(src, in)
		// The end of src, with the buffer not full.
		last := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !last {
			return total, err
		}
		m, decodeErr := base64.StdEncoding.Strict().Decode(out, in[:n])
		if decodeErr != nil || padded && n > 0 {
			return total, ErrText
		}
		padded = m != len(out)
		k, err := dst.Write(out[:m])
		total += int64(k)
		if err != nil {
			return total, err
		}
		if last {
			return total, nil
		}
	}
}

// narrow copies a text in UTF-16. Characters outside of ASCII are in comments only.
func narrow(dst io.Writer, src *bufio.Reader) (n int64, err error) {
	out := bufio.NewWriter(dst)
	var bigEndian bool
	if head, _ := src.Peek(2); len(head) == 2 {
		bigEndian = head[0] == 0 || head[0] == 0xfe
	}
	for {
		var pair [2]byte
		if _, err := io.ReadFull(src, pair[:]); err == io.EOF {
			return n, out.Flush()
		} else if err != nil && err != io.ErrUnexpectedEOF {
			return n, err
		}
		if bigEndian {
			pair[0], pair[1] = pair[1], pair[0]
		}
		switch {
		case n == 0 && pair == [2]byte{0xff, 0xfe}:
			continue // a byte order mark
		case pair[1] != 0 || pair[0] >= utf8.RuneSelf:
			pair[0] = '?'
		}
		if err := out.WriteByte(pair[0]); err != nil {
			return n, err
		}
		n++
	}
}

// textReader reads the Base64 of a text, without line ends and spaces.
type textReader struct {
	src   *bufio.Reader
	form  TextForm
	begun bool
	done  bool
}

// Read implements [io.Reader].
func (t *textReader) Read(b []byte) (int, error) {
	if !t.begun {
		if err := t.begin(); err != nil {
			return 0, err
		}
		t.begun = true
	}
	n := 0
	for n < len(b) && !t.done {
		c, err := t.src.ReadByte()
		switch {
		case err == io.EOF && (t.form == Base64 || t.form == SMIME):
			t.done = true
		case err == io.EOF:
			return n, ErrText // no line END, or no quote
		case err != nil:
			return n, err
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case t.form == PEM && c == '-':
			t.done = true
		case t.form == QuotedBase64 && c == '"':
			if t.done = true; t.skipSpace() {
				return n, ErrText
			}
		default:
			if t.form == QuotedBase64 && c == '\\' {
				if c, err = t.escape(); err != nil {
					return n, err
				}
			}
			b[n] = c // the decoder refuses what is not Base64
			n++
		}
	}
	if t.done {
		return n, io.EOF
	}
	return n, nil
}

// begin skips what is before the Base64: a byte order mark and white space, the quote, the lines up to BEGIN in PEM,
// and the header up to an empty line in S/MIME.
func (t *textReader) begin() error {
	if mark, _ := t.src.Peek(len(byteOrderMark)); bytes.Equal(mark, byteOrderMark) {
		t.src.Discard(len(byteOrderMark))
	}
	switch t.form {
	case Base64:
		return nil
	case QuotedBase64:
		if t.skipSpace() {
			t.src.Discard(1) // the quote
		}
		return nil
	}
	for header := false; ; {
		line, err := t.src.ReadSlice('\n') // a line longer than the buffer is neither
		switch line = bytes.TrimSpace(line); {
		case err == io.EOF || errors.Is(err, bufio.ErrBufferFull):
			return ErrText
		case err != nil:
			return err
		case t.form == PEM && bytes.HasPrefix(line, []byte("-----BEGIN ")):
			return nil
		case t.form == SMIME && len(line) == 0 && header:
			return nil
		}
		header = header || len(line) > 0
	}
}

// skipSpace skips white space, and reports whether something follows.
func (t *textReader) skipSpace() bool {
	for {
		c, err := t.src.Peek(1)
		if err != nil {
			return false
		}
		if strings.IndexByte(" \t\r\n", c[0]) < 0 {
			return true
		}
		t.src.Discard(1)
	}
}

// escape reads the escape after a backslash in JSON. Programs write "\/" and "\u002B".
func (t *textReader) escape() (byte, error) {
	c, err := t.src.ReadByte()
	switch {
	case err == io.EOF:
		return 0, ErrText
	case err != nil:
		return 0, err
	case c == '/':
		return c, nil
	case c != 'u':
		return 0, ErrText
	}
	var digits [4]byte
	if _, err := io.ReadFull(t.src, digits[:]); err == io.EOF || err == io.ErrUnexpectedEOF {
		return 0, ErrText
	} else if err != nil {
		return 0, err
	}
	v, err := strconv.ParseUint(string(digits[:]), 16, 16)
	if err != nil || v >= utf8.RuneSelf {
		return 0, ErrText
	}
	return byte(v), nil
}
