// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"slices"

	"tamga/sig/budget"
)

// lexer splits PDF syntax into tokens (ISO 32000-1, 7.2). It reads through a window, or
// has all of its bytes in buf.
type lexer struct {
	src  io.ReaderAt // nil: buf has all bytes
	end  int64       // offset after the last byte that may be read
	base int64       // offset of buf[0]
	buf  []byte
	pos  int
	// borrowed reports that buf belongs to someone else and must not be written.
	borrowed bool
	// left is how many more tokens may be read.
	left int
	err  error // read error of src, or errTooMuch

	spending  *budget.Budget // nil: what is read is not charged
	due, held int64          // bytes not charged yet, and charged

	// spans, if not nil, gets the places of the values of the outermost dictionary. A key
	// that occurs twice gets an empty span.
	spans map[name]span
	depth int
	items []object // read so far of each array and dictionary that is open
	// unclosed reports that the input ended inside an array, a dictionary or a string.
	unclosed bool
}

// span is a range of offsets in the file.
type span struct{ from, to int64 }

const windowSize = 4 << 10

var errTooMuch = errors.New("an object is larger than the limit")

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenNumber
	tokenText
	tokenName
	tokenKeyword
	tokenArray // [
	tokenArrayEnd
	tokenDict // <<
	tokenDictEnd
)

type token struct {
	kind  tokenKind
	bytes []byte // of a number, text, name or keyword; valid only until the next token
	at    int64
}

// hold charges memory before it is allocated. After it fails, nothing more is read.
func (l *lexer) hold(n int64) bool {
	if l.due += n; l.due < windowSize || l.spending == nil {
		return l.err == nil
	}
	n, l.due = l.due, 0
	if err := l.spending.Hold(n); err != nil {
		l.err = err
		return false
	}
	l.held += n
	return true
}

// grows charges a value of n bytes that is about to get one more, in steps of a window. Its memory
// grows by doubling.
func (l *lexer) grows(n int) bool {
	return n == 0 || n%windowSize != 0 || l.hold(2*windowSize)
}

// release gives back what hold charged.
func (l *lexer) release() {
	l.spending.Release(l.held)
	l.due, l.held = 0, 0
}

func lexBytes(b []byte) *lexer {
	return &lexer{buf: b, end: int64(len(b)), left: maxTokens}
}

// lexAt reads from an offset up to limit.
func lexAt(src io.ReaderAt, offset, limit int64) *lexer {
	return &lexer{src: src, base: offset, end: limit, left: maxTokens}
}

func (l *lexer) offset() int64 { return l.base + int64(l.pos) }

// seek moves to an offset.
func (l *lexer) seek(offset int64) {
	if d := offset - l.base; d >= 0 && d <= int64(len(l.buf)) {
		l.pos = int(d)
		return
	}
	if l.borrowed {
		l.buf, l.borrowed = nil, false
	}
	l.base, l.buf, l.pos = offset, l.buf[:0], 0
}

// fill reads the next window. It returns false at the end.
func (l *lexer) fill() bool {
	at := l.offset()
	if l.src == nil || at >= l.end || l.err != nil {
		return false
	}
	if l.borrowed || cap(l.buf) < windowSize {
		l.buf, l.borrowed = make([]byte, windowSize), false
	}
	b := l.buf[:min(windowSize, l.end-at)]
	n, err := l.src.ReadAt(b, at)
	if n == 0 {
		if err != nil && err != io.EOF {
			l.err = err
		}
		l.buf, l.base, l.pos = l.buf[:0], at, 0
		return false
	}
	l.base, l.buf, l.pos = at, b[:n], 0
	return true
}

// peek returns the next byte without consuming it, -1 at the end.
func (l *lexer) peek() int {
	if l.pos >= len(l.buf) && !l.fill() {
		return -1
	}
	return int(l.buf[l.pos])
}

func (l *lexer) next() int {
	c := l.peek()
	if c >= 0 {
		l.pos++
	}
	return c
}

const (
	classSpace = 1 + iota
	classDelimiter
)

var classes = func() (t [256]uint8) {
	for _, c := range []byte("\x00\t\n\f\r ") {
		t[c] = classSpace
	}
	for _, c := range []byte("()<>[]{}/%") {
		t[c] = classDelimiter
	}
	return t
}()

func isSpace(c int) bool   { return c >= 0 && classes[c] == classSpace }
func isRegular(c int) bool { return c >= 0 && classes[c] == 0 }
func isDigit(c int) bool   { return c >= '0' && c <= '9' }

// skipSpace skips white space and comments.
func (l *lexer) skipSpace() {
	for {
		c := l.peek()
		switch {
		case isSpace(c):
			l.pos++
		case c == '%':
			for c = l.peek(); c >= 0 && c != '\n' && c != '\r'; c = l.peek() {
				l.pos++
			}
		default:
			return
		}
	}
}

// token reads the next token. Malformed input is read as viewers do.
func (l *lexer) token() token {
	l.skipSpace()
	t := token{at: l.offset()}
	if l.left--; l.left < 0 {
		l.err = errTooMuch
		return t
	}
	c := l.next()
	switch c {
	case -1:
		return t
	case '[':
		t.kind = tokenArray
	case ']':
		t.kind = tokenArrayEnd
	case '(':
		t.kind, t.bytes = tokenText, l.literal()
	case '<':
		if l.peek() == '<' {
			l.pos++
			t.kind = tokenDict
		} else {
			t.kind, t.bytes = tokenText, l.hex()
		}
	case '>':
		if l.peek() == '>' {
			l.pos++
			t.kind = tokenDictEnd
		} else {
			t.kind = tokenKeyword // a single > has no meaning
		}
	case '/':
		t.kind, t.bytes = tokenName, l.name()
	case ')', '{', '}':
		t.kind, t.bytes = tokenKeyword, []byte{byte(c)}
	default:
		l.pos--
		t.bytes = l.regular()
		t.kind = tokenKeyword
		if isNumber(t.bytes) {
			t.kind = tokenNumber
		}
	}
	return t
}

// regular reads regular characters.
func (l *lexer) regular() []byte {
	if l.peek() < 0 {
		return nil
	}
	from := l.pos
	for l.pos < len(l.buf) && classes[l.buf[l.pos]] == 0 {
		l.pos++
	}
	if l.pos < len(l.buf) || l.src == nil {
		return l.buf[from:l.pos]
	}
	out := bytes.Clone(l.buf[from:l.pos]) // it may continue in the next window
	for c := l.peek(); isRegular(c) && len(out) < maxObject && l.grows(len(out)); c = l.peek() {
		out = append(out, byte(c))
		l.pos++
	}
	return out
}

func isNumber(b []byte) bool {
	digits := false
	for i, c := range b {
		switch {
		case c >= '0' && c <= '9':
			digits = true
		case c == '.' || (c == '-' || c == '+') && i < 2:
		case c == '-' && digits: // 12-3, which viewers read as 12
		default:
			return false
		}
	}
	return digits
}

// name reads a name after its slash.
func (l *lexer) name() []byte {
	raw := l.regular()
	if bytes.IndexByte(raw, '#') < 0 {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] == '#' && i+2 < len(raw) && hexDigit(int(raw[i+1])) >= 0 && hexDigit(int(raw[i+2])) >= 0 {
			out = append(out, byte(hexDigit(int(raw[i+1]))<<4|hexDigit(int(raw[i+2]))))
			i += 2
			continue
		}
		out = append(out, raw[i])
	}
	return out
}

func hexDigit(c int) int {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return -1
}

// hex reads a hexadecimal string up to its end.
func (l *lexer) hex() []byte {
	out := []byte{}
	high := -1
	for l.peek() >= 0 {
		b := l.buf[l.pos:]
		end := bytes.IndexByte(b, '>')
		if end >= 0 {
			b = b[:end]
		}
		l.pos += len(b)
		// Values of signatures are long and without white space.
		from := len(out)
		if !l.hold(int64(len(b))) { // twice the bytes that it means
			return out
		}
		if plain := len(b) &^ 1; high < 0 && plain > 0 {
			out = slices.Grow(out, plain/2)[:from+plain/2]
			digits := plain - len(trailingZeros(b[:plain])) // an even number
			if _, err := hex.Decode(out[from:], b[:digits]); err == nil {
				clear(out[from+digits/2:])
				b = b[plain:]
			} else {
				out = out[:from]
			}
		}
		for _, c := range b {
			d := hexDigit(int(c))
			switch {
			case d < 0: // white space or an invalid character
			case high < 0:
				high = d
			default:
				out, high = append(out, byte(high<<4|d)), -1
			}
		}
		if end >= 0 {
			l.pos++
			if high >= 0 {
				out = append(out, byte(high<<4))
			}
			return out
		}
	}
	l.unclosed = true
	if high >= 0 {
		out = append(out, byte(high<<4))
	}
	return out
}

// literal reads a string in parentheses up to its end (7.3.4.2).
func (l *lexer) literal() []byte {
	out := []byte{}
	for depth := 1; ; {
		c := l.next()
		switch c {
		case -1:
			l.unclosed = true
			return out
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return out
			}
		case '\r': // any end of line is a line feed
			if l.peek() == '\n' {
				l.pos++
			}
			c = '\n'
		case '\\':
			if c = l.escape(); c < 0 {
				continue
			}
		}
		if !l.grows(len(out)) {
			return out
		}
		out = append(out, byte(c))
	}
}

// escape reads the characters after a backslash. It returns -1 if they mean no character.
func (l *lexer) escape() int {
	c := l.next()
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case '\r':
		if l.peek() == '\n' {
			l.pos++
		}
		return -1
	case '\n':
		return -1
	}
	if c < '0' || c > '7' {
		return c
	}
	v := c - '0'
	for range 2 {
		if d := l.peek(); d >= '0' && d <= '7' {
			v = v<<3 | (d - '0')
			l.pos++
		}
	}
	return v & 0xff
}
