// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
)

// Tags as their identifier byte, constructed bit included.
const (
	tagBoolean     = 0x01
	tagInteger     = 0x02
	tagBitString   = 0x03
	tagOctetString = 0x04
	tagNull        = 0x05
	tagOID         = 0x06
	tagEnumerated  = 0x0a
	tagSequence    = 0x30
	tagSet         = 0x31
	tagContext0    = 0xa0
	tagContext1    = 0xa1
	tagContext2    = 0xa2
	bitConstructed = 0x20
)

// element is the header of one BER element in the message.
type element struct {
	tag        byte  // identifier byte; its low bits are 0x1f for a tag number above 30
	start      int64 // of the header
	body       int64 // of the contents
	length     int64 // of the contents; -1 when indefinite
	bodyLimit  int64 // contents end here at the latest
	indefinite bool
}

// scanner reads headers from a message of any size. It reads a small message into memory as
// a whole, and a large one through a small window, so that not every header needs a read of
// its own.
type scanner struct {
	source io.ReaderAt
	size   int64
	window []byte
	at     int64 // offset of window[0]
	have   int
	walked int // elements visited in search of an end mark
}

const (
	wholeSize  = 32 << 10 // bytes of the largest message that is read at once
	windowSize = 4 << 10
)

// whole reports whether the window has the whole message.
func (s *scanner) whole() bool { return s.size <= wholeSize }

// open makes the window and, if it has room for the whole message, reads the message.
func (s *scanner) open() error {
	if !s.whole() {
		s.window = make([]byte, windowSize)
		return nil
	}
	s.window = make([]byte, s.size)
	_, err := s.peek(0, int(s.size))
	return err
}

// peek returns up to n bytes at off. It returns fewer only at the end of the message.
func (s *scanner) peek(off int64, n int) ([]byte, error) {
	if end := min(off+int64(n), s.size); off >= s.at && off <= end && end <= s.at+int64(s.have) {
		return s.window[off-s.at : end-s.at], nil
	}
	want := min(int64(len(s.window)), s.size-off)
	if want <= 0 {
		return nil, nil
	}
	got, err := s.source.ReadAt(s.window[:want], off)
	if int64(got) < want {
		s.have = 0
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("cms: reading %d bytes at offset %d: %w", want, off, err)
	}
	s.at, s.have = off, got
	return s.window[:min(n, got)], nil
}

// header reads the header at off. The element must end before limit.
func (s *scanner) header(off, limit int64) (element, error) {
	const most = 6 + 9 // identifier with a long tag number, length of up to 8 bytes
	b, err := s.peek(off, int(min(most, limit-off)))
	if err != nil {
		return element{}, err
	}
	h, n, length, err := parseHeader(b)
	if err != nil {
		return element{}, fmt.Errorf("cms: at offset %d: %w", off, err)
	}
	e := element{tag: h, start: off, body: off + int64(n), length: length, bodyLimit: limit, indefinite: length < 0}
	if !e.indefinite {
		if length > limit-e.body {
			return element{}, fmt.Errorf("cms: at offset %d: the element is %d bytes long but only %d are left: the message is cut short or damaged", off, length, limit-e.body)
		}
		e.bodyLimit = e.body + length
	}
	return e, nil
}

// end returns the offset after the element. For an element of indefinite length it must
// walk over the contents to the end mark.
func (s *scanner) end(e element, depth int) (int64, error) {
	if !e.indefinite {
		return e.body + e.length, nil
	}
	if depth > maxDepth {
		return 0, fmt.Errorf("cms: at offset %d: elements are nested deeper than %d", e.start, maxDepth)
	}
	for off := e.body; ; {
		c, err := s.header(off, e.bodyLimit)
		if err != nil {
			return 0, err
		}
		if s.walked++; s.walked > maxWalked {
			return 0, fmt.Errorf("cms: at offset %d: more than %d elements of indefinite length", off, maxWalked)
		}
		if c.tag == 0 {
			if c.length != 0 {
				return 0, fmt.Errorf("cms: at offset %d: an end mark with contents", off)
			}
			return c.body, nil
		}
		if off, err = s.end(c, depth+1); err != nil {
			return 0, err
		}
	}
}

var errHeader = errors.New("not a BER element: the header is cut short or malformed")

// parseHeader reads identifier and length bytes. It returns the first identifier byte, the
// length of the header in bytes and the length of the contents, -1 when indefinite.
func parseHeader(b []byte) (tag byte, n int, length int64, err error) {
	if len(b) < 2 {
		return 0, 0, 0, errHeader
	}
	tag, n = b[0], 1
	if tag&0x1f == 0x1f { // the tag number follows; at most 4 bytes are supported
		for {
			if n >= len(b) || n > 4 {
				return 0, 0, 0, errHeader
			}
			n++
			if b[n-1]&0x80 == 0 {
				break
			}
		}
		if n >= len(b) {
			return 0, 0, 0, errHeader
		}
	}
	first := b[n]
	n++
	switch {
	case first < 0x80:
		return tag, n, int64(first), nil
	case first == 0x80:
		if tag&bitConstructed == 0 {
			return 0, 0, 0, errors.New("an indefinite length on a primitive element")
		}
		return tag, n, -1, nil
	}
	count := int(first & 0x7f)
	if count > len(b)-n {
		return 0, 0, 0, errHeader
	}
	for i := range count {
		if length >= 1<<55 {
			return 0, 0, 0, errors.New("a length above 2^63")
		}
		length = length<<8 | int64(b[n+i])
	}
	return tag, n + count, length, nil
}

// appendHeader appends identifier and DER length bytes.
func appendHeader(dst []byte, tag byte, length int64) []byte {
	dst = append(dst, tag)
	if length < 0x80 {
		return append(dst, byte(length))
	}
	n := lengthLen(length) - 1
	dst = append(dst, 0x80|byte(n))
	for n--; n >= 0; n-- {
		dst = append(dst, byte(length>>(8*n)))
	}
	return dst
}

// wrap returns one DER element around the concatenated contents.
func wrap(tag byte, contents ...[]byte) []byte {
	n := 0
	for _, c := range contents {
		n += len(c)
	}
	out := appendHeader(make([]byte, 0, n+10), tag, int64(n))
	for _, c := range contents {
		out = append(out, c...)
	}
	return out
}

// toDER returns the one element in b with definite minimal lengths and strings in one
// piece. It keeps the order inside sets, because what a signer encoded must not be sorted.
// If nothing changes, it returns b itself.
func toDER(b []byte) ([]byte, error) {
	if n, ok := sizeDER(b, 0); ok && n == len(b) {
		return b, nil
	}
	out, rest, err := appendDER(make([]byte, 0, len(b)), b, 0)
	if err != nil {
		return nil, err
	}
	if len(rest) != 0 {
		return nil, errors.New("cms: bytes follow the element")
	}
	return out, nil
}

// sizeDER returns the length of the first element of b. ok is false when appendDER would
// change the element or refuse it.
func sizeDER(b []byte, depth int) (size int, ok bool) {
	if depth > maxDepth {
		return 0, false
	}
	tag, n, length, err := parseHeader(b)
	if err != nil || tag == 0 || length < 0 || length > int64(len(b)-n) {
		return 0, false
	}
	if n-identifierLen(b) != lengthLen(length) || tag&bitConstructed != 0 && universalString(tag) {
		return 0, false
	}
	size = n + int(length)
	if tag&bitConstructed == 0 {
		return size, true
	}
	for n < size {
		k, ok := sizeDER(b[n:size], depth+1)
		if !ok {
			return 0, false
		}
		n += k
	}
	return size, true
}

// lengthLen returns the number of DER length bytes.
func lengthLen(length int64) int {
	if length < 0x80 {
		return 1
	}
	return 1 + (bits.Len64(uint64(length))+7)/8
}

// appendDER appends the first element of b to dst and returns the rest of b. A length is
// known only after the contents are written, so each constructed element moves its contents
// once. maxDepth limits this copying.
func appendDER(dst, b []byte, depth int) (out, rest []byte, err error) {
	if depth > maxDepth {
		return nil, nil, fmt.Errorf("cms: elements are nested deeper than %d", maxDepth)
	}
	tag, n, length, err := parseHeader(b)
	if err != nil {
		return nil, nil, fmt.Errorf("cms: %w", err)
	}
	if tag == 0 {
		return nil, nil, errors.New("cms: an end mark in place of an element")
	}
	identifier := b[:identifierLen(b)]
	body := b[n:]
	if length >= 0 {
		if length > int64(len(body)) {
			return nil, nil, fmt.Errorf("cms: an element of %d bytes, but only %d bytes are left", length, len(body))
		}
		body, rest = body[:length], body[length:]
	}
	if tag&bitConstructed == 0 {
		dst = appendLength(append(dst, identifier...), len(body))
		return append(dst, body...), rest, nil
	}
	start := len(dst)
	for {
		if length >= 0 && len(body) == 0 {
			break
		}
		if len(body) >= 2 && body[0] == 0 {
			if length >= 0 || body[1] != 0 {
				return nil, nil, errors.New("cms: an end mark in place of an element")
			}
			rest = body[2:]
			break
		}
		if dst, body, err = appendDER(dst, body, depth+1); err != nil {
			return nil, nil, err
		}
	}
	contents := dst[start:]
	if universalString(tag) {
		// The pieces are DER strings now. Keep only their contents.
		pieces := make([]byte, 0, len(contents))
		for rest := contents; len(rest) > 0; {
			t, n, l, err := parseHeader(rest)
			if err != nil || t != tag&^bitConstructed || tag == tagBitString|bitConstructed {
				return nil, nil, errors.New("cms: a string has pieces of another type")
			}
			pieces = append(pieces, rest[n:n+int(l)]...)
			rest = rest[n+int(l):]
		}
		dst = appendLength(append(dst[:start], tag&^bitConstructed), len(pieces))
		return append(dst, pieces...), rest, nil
	}
	var header [16]byte
	h := appendLength(append(header[:0], identifier...), len(contents))
	dst = append(dst, h...)
	copy(dst[start+len(h):], dst[start:len(dst)-len(h)])
	copy(dst[start:], h)
	return dst, rest, nil
}

// universalString reports whether a constructed tag is a string in pieces.
func universalString(tag byte) bool {
	switch tag &^ bitConstructed {
	case tagBitString, tagOctetString, 12, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 30:
		return tag&0xe0 == bitConstructed
	}
	return false
}

// identifierLen returns the number of identifier bytes of a valid header.
func identifierLen(b []byte) int {
	if b[0]&0x1f != 0x1f {
		return 1
	}
	n := 2
	for b[n-1]&0x80 != 0 {
		n++
	}
	return n
}

// appendLength appends DER length bytes.
func appendLength(dst []byte, length int) []byte {
	full := appendHeader(make([]byte, 0, 10), 0, int64(length))
	return append(dst, full[1:]...)
}
