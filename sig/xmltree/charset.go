// SPDX-License-Identifier: Apache-2.0

package xmltree

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// charset is an encoding of documents.
type charset struct {
	name string
	// unit is the number of bytes of a code unit: 1, or 2 for UTF-16.
	unit int
	// table has the character of each byte of a single-byte encoding. It is nil for UTF-8
	// and UTF-16.
	table *charmap.Charmap
	big   bool // UTF-16: big-endian
	ascii bool // only bytes below 0x80
}

var (
	utf8Set    = &charset{name: "utf-8", unit: 1}
	utf16LE    = &charset{name: "utf-16le", unit: 2}
	utf16BE    = &charset{name: "utf-16be", unit: 2, big: true}
	asciiSet   = &charset{name: "us-ascii", unit: 1, ascii: true}
	latin1     = &charset{name: "iso-8859-1", unit: 1, table: charmap.ISO8859_1}
	cyrillic   = &charset{name: "iso-8859-5", unit: 1, table: charmap.ISO8859_5}
	win1251    = &charset{name: "windows-1251", unit: 1, table: charmap.Windows1251}
	koi8r      = &charset{name: "koi8-r", unit: 1, table: charmap.KOI8R}
	singleByte = map[string]*charset{
		"utf-8": utf8Set, "utf8": utf8Set,
		"us-ascii": asciiSet, "ascii": asciiSet,
		"iso-8859-1": latin1, "iso_8859-1": latin1, "latin1": latin1,
		"iso-8859-5": cyrillic, "iso_8859-5": cyrillic, "cyrillic": cyrillic,
		"windows-1251": win1251, "cp1251": win1251,
		"koi8-r": koi8r,
	}
)

// signatures has the first bytes that identify an encoding. bom is the length of the byte order
// mark among them. Order matters: UTF-32 begins like UTF-16.
var signatures = []struct {
	prefix string
	bom    int
	set    *charset
	refuse string
}{
	{"\xFF\xFE\x00\x00", 0, nil, "UTF-32"},
	{"\x00\x00\xFE\xFF", 0, nil, "UTF-32"},
	{"<\x00\x00\x00", 0, nil, "UTF-32"},
	{"\x00\x00\x00<", 0, nil, "UTF-32"},
	{"\x4C\x6F\xA7\x94", 0, nil, "EBCDIC"},
	{"\xEF\xBB\xBF", 3, utf8Set, ""},
	{"\xFF\xFE", 2, utf16LE, ""},
	{"\xFE\xFF", 2, utf16BE, ""},
	{"<\x00?\x00", 0, utf16LE, ""},
	{"\x00<\x00?", 0, utf16BE, ""},
}

const knownEncodings = "UTF-8, UTF-16, windows-1251, koi8-r, iso-8859-5, iso-8859-1, us-ascii"

// decode finds the encoding of document and fills in text, charset and bom. It returns the offset
// of the text after the XML declaration.
func (t *Tree) decode(document []byte, o Options) (body int, err error) {
	t.original = document
	t.charset = utf8Set
	if int64(len(document)) > o.Size {
		return 0, failAt(nil, 0, ErrLimit, "the document has %d bytes; the limit is %d", len(document), o.Size)
	}
	if err := t.budget.Spend(int64(len(document))); err != nil {
		return 0, err
	}
	told := false // the first bytes identify the encoding
	for _, s := range signatures {
		if bytes.HasPrefix(document, []byte(s.prefix)) {
			if s.refuse != "" {
				return 0, failAt(nil, 0, ErrEncoding, "the document is in %s, which is not supported; supported are %s", s.refuse, knownEncodings)
			}
			t.charset, t.bom, told = s.set, s.bom, true
			break
		}
	}
	content := document[t.bom:]
	if t.charset.unit == 2 {
		if t.text, err = t.charset.decode(content, o); err != nil {
			return 0, err
		}
		d, err := readDeclaration(t.text)
		if err != nil {
			return 0, err
		}
		return d.end, t.checkUTF16(d)
	}
	d, err := readDeclaration(content)
	if err != nil {
		return 0, err
	}
	if d.encoding != "" {
		set := singleByte[strings.ToLower(d.encoding)]
		switch {
		case set == nil && strings.HasPrefix(strings.ToLower(d.encoding), "utf-16"):
			return 0, failAt(content, d.at, ErrEncoding, "the document declares %s but is not written in it", d.encoding)
		case set == nil:
			return 0, failAt(content, d.at, ErrEncoding, "the declared encoding %s is not supported; supported are %s", d.encoding, knownEncodings)
		case told && set != utf8Set:
			return 0, failAt(content, d.at, ErrEncoding, "the document declares %s but begins with the byte order mark of UTF-8", d.encoding)
		}
		t.charset = set
	}
	t.text, err = t.charset.decode(content, o)
	return d.end, err
}

// checkUTF16 compares the declaration of a UTF-16 document with its bytes.
func (t *Tree) checkUTF16(d declaration) error {
	name := strings.ToLower(d.encoding)
	switch {
	case name == "utf-16", name == t.charset.name, name == "" && t.bom > 0:
		return nil
	case name == "":
		return failAt(t.text, 0, ErrEncoding, "a document in UTF-16 needs a byte order mark or an encoding declaration")
	}
	return failAt(t.text, d.at, ErrEncoding, "the document declares %s but is written in %s", d.encoding, t.charset.name)
}

// decode returns the bytes as UTF-8. It does not copy bytes that are UTF-8 already.
func (c *charset) decode(b []byte, o Options) ([]byte, error) {
	switch {
	case c.unit == 2:
		return c.decodeUTF16(b, o)
	case c.table != nil:
		return c.decodeTable(b, o)
	case c.ascii:
		for i, code := range b {
			if code >= 0x80 {
				return nil, failAt(b, i, ErrEncoding, "byte %#x does not exist in the declared encoding us-ascii", code)
			}
		}
	default:
		if !utf8.Valid(b) {
			i := 0
			for {
				r, size := utf8.DecodeRune(b[i:])
				if r == utf8.RuneError && size <= 1 {
					break
				}
				i += size
			}
			return nil, failAt(b, i, ErrEncoding, "byte %#x is not valid UTF-8, and no other encoding is declared", b[i])
		}
	}
	return b, nil
}

func (c *charset) decodeTable(b []byte, o Options) ([]byte, error) {
	var chars [256][utf8.UTFMax]byte
	var widths [256]uint8 // 0: no such character
	for i := range chars {
		r := c.table.DecodeByte(byte(i))
		if r != utf8.RuneError {
			widths[i] = uint8(utf8.EncodeRune(chars[i][:], r))
		}
	}
	size := int64(0)
	for i, code := range b {
		if widths[code] == 0 {
			return nil, failAt(b, i, ErrEncoding, "byte %#x does not exist in the declared encoding %s", code, c.name)
		}
		size += int64(widths[code])
	}
	if size > o.Size {
		return nil, failAt(nil, 0, ErrLimit, "the text has %d bytes in UTF-8; the limit is %d", size, o.Size)
	}
	if err := o.Budget.Hold(size); err != nil {
		return nil, err
	}
	text := make([]byte, 0, size)
	for _, code := range b {
		text = append(text, chars[code][:widths[code]]...)
	}
	return text, nil
}

func (c *charset) decodeUTF16(b []byte, o Options) ([]byte, error) {
	if len(b)%2 != 0 {
		return nil, failAt(nil, len(b)-1, ErrEncoding, "a document in %s must have an even number of bytes", c.name)
	}
	size := int64(0)
	for i := 0; i < len(b); i += 2 {
		r, two := c.rune(b, i)
		if r < 0 {
			return nil, failAt(nil, i, ErrEncoding, "unpaired surrogate at byte %d of a document in %s", i, c.name)
		}
		size += int64(utf8.RuneLen(r))
		if two {
			i += 2
		}
	}
	if size > o.Size {
		return nil, failAt(nil, 0, ErrLimit, "the text has %d bytes in UTF-8; the limit is %d", size, o.Size)
	}
	if err := o.Budget.Hold(size); err != nil {
		return nil, err
	}
	text := make([]byte, 0, size)
	for i := 0; i < len(b); i += 2 {
		r, two := c.rune(b, i)
		text = utf8.AppendRune(text, r)
		if two {
			i += 2
		}
	}
	return text, nil
}

// rune reads the character at b[i:]. It is -1 for an unpaired surrogate. two reports whether it
// has two code units.
func (c *charset) rune(b []byte, i int) (r rune, two bool) {
	u := c.at(b, i)
	if !utf16.IsSurrogate(u) {
		return u, false
	}
	if i+3 < len(b) {
		if r := utf16.DecodeRune(u, c.at(b, i+2)); r != utf8.RuneError {
			return r, true
		}
	}
	return -1, false
}

func (c *charset) at(b []byte, i int) rune {
	if c.big {
		return rune(b[i])<<8 | rune(b[i+1])
	}
	return rune(b[i+1])<<8 | rune(b[i])
}

// width returns the number of bytes that a piece of the text has in the original document.
func (c *charset) width(text []byte) int {
	switch {
	case c.unit == 1 && c.table == nil:
		return len(text)
	case c.unit == 1:
		return utf8.RuneCount(text)
	}
	n := 2 * utf8.RuneCount(text)
	for _, b := range text {
		if b >= 0xF0 { // four bytes of UTF-8 are two units
			n += 2
		}
	}
	return n
}

// encode returns new text in the encoding. Characters that the encoding does not have become
// character references.
func (c *charset) encode(s string) []byte {
	if c.unit == 1 && c.table == nil && !c.ascii {
		return []byte(s)
	}
	out := make([]byte, 0, c.unit*len(s))
	for _, r := range s {
		switch {
		case c.unit == 2:
			for _, u := range utf16.AppendRune(nil, r) {
				if c.big {
					out = append(out, byte(u>>8), byte(u))
				} else {
					out = append(out, byte(u), byte(u>>8))
				}
			}
		case r < 0x80:
			out = append(out, byte(r))
		default:
			if c.table != nil {
				if b, ok := c.table.EncodeRune(r); ok {
					out = append(out, b)
					continue
				}
			}
			out = fmt.Appendf(out, "&#x%X;", r)
		}
	}
	return slices.Clip(out)
}

// failAt returns a SyntaxError at an offset of text. text is nil if there is no text to count
// lines in.
func failAt(text []byte, offset int, kind error, format string, args ...any) *SyntaxError {
	line, column := position(text, offset)
	return &SyntaxError{Line: line, Column: column, Offset: offset, Kind: kind, Text: fmt.Sprintf(format, args...)}
}
