// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"tamga/pki/cms"
)

// ErrAnswer reports an answer with status 200 that is not a JSON string of Base64.
var ErrAnswer = errors.New("the answer of the server is not a complete JSON string of Base64")

// CopyAnswer decodes a JSON string of Base64 from src into dst while it arrives.
// It returns the number of decoded bytes. It returns an error unless the string and its Base64 are
// complete and nothing follows: then the bytes written to dst are useless.
func CopyAnswer(dst io.Writer, src io.Reader) (int64, error) {
	n, err := cms.CopyBase64(dst, &jsonStringReader{src: bufio.NewReaderSize(src, 64<<10)})
	if errors.Is(err, cms.ErrText) {
		err = ErrAnswer
	}
	return n, err
}

// jsonStringReader reads the value of the one JSON string in src.
type jsonStringReader struct {
	src   *bufio.Reader
	begun bool
	done  bool
}

func (r *jsonStringReader) Read(b []byte) (int, error) {
	if r.done {
		return 0, io.EOF
	}
	if !r.begun {
		c, err := r.skipSpace()
		if err != nil || c != '"' {
			return 0, broken(err)
		}
		r.begun = true
	}
	n := 0
	for n < len(b) {
		if n > 0 && r.src.Buffered() == 0 {
			return n, nil // the caller can write these bytes while more arrive
		}
		if _, err := r.src.Peek(1); err != nil {
			return n, broken(err)
		}
		here, _ := r.src.Peek(min(r.src.Buffered(), len(b)-n))
		plain := 0
		for plain < len(here) && here[plain] >= 0x20 && here[plain] < utf8.RuneSelf && here[plain] != '"' && here[plain] != '\\' {
			plain++
		}
		n += copy(b[n:], here[:plain])
		r.src.Discard(plain) // cannot fail: these bytes are buffered
		if plain == len(here) {
			continue
		}
		switch c, _ := r.src.ReadByte(); c {
		case '"':
			if _, err := r.skipSpace(); err != io.EOF {
				return n, broken(err)
			}
			r.done = true
			return n, io.EOF
		case '\\':
			c, err := r.escape()
			if err != nil {
				return n, err
			}
			b[n] = c
			n++
		default: // a control character, or text that is not Base64
			return n, ErrAnswer
		}
	}
	return n, nil
}

// escape reads the escape after a backslash. Servers write "\/" and "\u002B" in Base64. Escapes of
// characters outside of ASCII are an error.
func (r *jsonStringReader) escape() (byte, error) {
	c, err := r.src.ReadByte()
	if err != nil {
		return 0, broken(err)
	}
	switch c {
	case '/':
		return '/', nil
	case 'u':
		var digits [4]byte
		if _, err := io.ReadFull(r.src, digits[:]); err != nil {
			return 0, broken(err)
		}
		if v, err := strconv.ParseUint(string(digits[:]), 16, 16); err == nil && v < utf8.RuneSelf {
			return byte(v), nil
		}
	}
	return 0, ErrAnswer
}

// skipSpace returns the next byte that is not white space.
func (r *jsonStringReader) skipSpace() (byte, error) {
	for {
		c, err := r.src.ReadByte()
		if err != nil || c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c, err
		}
	}
}

// broken returns the error for an incomplete string: the error of the connection if there is one,
// otherwise ErrAnswer.
func broken(err error) error {
	if err == nil || err == io.EOF || err == io.ErrUnexpectedEOF {
		return ErrAnswer
	}
	return fmt.Errorf("the answer of the server broke off: %w", err)
}
