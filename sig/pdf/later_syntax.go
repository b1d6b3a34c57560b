// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"slices"
)

// strictReader reads the objects of later revisions by the letter of ISO 32000-1, 7.2 and
// 7.3: what other readers could understand in another way is an error. There are no
// comments, no superfluous and no missing tokens, and no key occurs twice.
//
// Whatever it accepts, lexer reads as the same value.
type strictReader struct {
	*lexer
	file *file
	// refer, if not nil, judges each reference that is read.
	refer func(ref) error

	kept   int64 // bytes charged as held for what was read
	unpaid int64 // bytes that are not charged yet
}

// maxStrictDepth is the nesting of arrays and dictionaries that every known reader accepts.
const maxStrictDepth = 64

// strictAt reads from an offset of the source up to limit.
func (f *file) strictAt(off, limit int64) *strictReader {
	return &strictReader{lexer: lexAt(f, off, min(f.size, limit, off+maxObject)), file: f}
}

// strictBytes reads bytes in memory.
func (f *file) strictBytes(b []byte) *strictReader {
	return &strictReader{lexer: lexBytes(b), file: f}
}

// strictError is a fault of later bytes.
type strictError struct {
	at   int64 // offset in the file, or in the object stream; -1 if there is none
	text string
}

// Error names the offset and the fault.
func (e *strictError) Error() string {
	if e.at < 0 {
		return e.text
	}
	return fmt.Sprintf("at offset %d: %s", e.at, e.text)
}

// fault returns an error at the present offset, or the error of reading.
func (p *strictReader) fault(format string, args ...any) error {
	return p.faultAt(p.offset(), format, args...)
}

func (p *strictReader) faultAt(at int64, format string, args ...any) error {
	if p.err != nil {
		return p.err
	}
	if err := p.file.failed(); err != nil {
		return err
	}
	return &strictError{at, fmt.Sprintf(format, args...)}
}

// paid charges one token and bytes of memory before they are used.
func (p *strictReader) paid(size int64) error {
	if p.left--; p.left < 0 {
		return p.fault("the object is larger than the limit")
	}
	p.unpaid += tokenSize + size
	if p.unpaid >= 4<<10 {
		if err := p.pay(); err != nil {
			return err
		}
	}
	if !p.file.charge(priceToken + size/8) {
		return p.file.failed()
	}
	return nil
}

func (p *strictReader) pay() error {
	n := p.unpaid
	p.unpaid = 0
	if !p.file.keep(n) {
		return p.file.failed()
	}
	p.kept += n
	return nil
}

// release gives back the memory of what was read.
func (p *strictReader) release() {
	p.file.spending.Release(p.kept)
	p.kept, p.unpaid = 0, 0
}

// isBlank reports whether a byte is white space between tokens. Zero bytes and form feeds are
// white space for the standard (7.2.2), but not for all readers.
func isBlank(c int) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// blanks skips white space and reports whether there was any.
func (p *strictReader) blanks() bool {
	any := false
	for isBlank(p.peek()) {
		p.pos++
		any = true
	}
	return any
}

// endOfLine skips one end of line.
func (p *strictReader) endOfLine() bool {
	switch p.peek() {
	case '\n':
		p.pos++
		return true
	case '\r':
		p.pos++
		if p.peek() == '\n' {
			p.pos++
		}
		return true
	}
	return false
}

// word skips a keyword, which must end there.
func (p *strictReader) word(w string) bool {
	from := p.offset()
	for i := range len(w) {
		if p.peek() != int(w[i]) {
			p.seek(from)
			return false
		}
		p.pos++
	}
	if isRegular(p.peek()) {
		p.seek(from)
		return false
	}
	return true
}

// digits reads an unsigned integer of at most 15 digits.
func (p *strictReader) digits() (n int64, ok bool) {
	count := 0
	for ; isDigit(p.peek()) && count < 16; count++ {
		n = n*10 + int64(p.peek()-'0')
		p.pos++
	}
	return n, count > 0 && count < 16 && !isRegular(p.peek())
}

// value reads one value.
func (p *strictReader) value(depth int) (object, error) {
	if depth > maxStrictDepth {
		return nil, p.fault("arrays and dictionaries are nested too deeply")
	}
	if err := p.paid(0); err != nil {
		return nil, err
	}
	at := p.offset()
	c := p.peek()
	switch {
	case c == '/':
		return p.name()
	case c == '(':
		p.pos++
		return p.literal()
	case c == '<':
		p.pos++
		if p.peek() != '<' {
			return p.hexadecimal()
		}
		p.pos++
		return p.dict(depth)
	case c == '[':
		p.pos++
		return p.array(depth)
	case isDigit(c):
		if id, ok := p.reference(); ok {
			if p.refer != nil {
				if err := p.refer(id); err != nil {
					return nil, p.faultAt(at, "%v", err)
				}
			}
			return id, nil
		}
		return p.number()
	case c == '+' || c == '-' || c == '.':
		return p.number()
	case p.word("true"):
		return true, nil
	case p.word("false"):
		return false, nil
	case p.word("null"):
		return nil, nil
	}
	return nil, p.faultAt(at, "a value is expected")
}

// reference reads "12 0 R". If something else follows, it reads nothing.
func (p *strictReader) reference() (ref, bool) {
	from := p.offset()
	num, ok := p.digits()
	if ok = ok && p.blanks(); ok {
		var gen int64
		gen, ok = p.digits()
		if ok = ok && p.blanks() && p.word("R"); ok && num > 0 && num <= maxNumber && gen <= 65535 {
			return ref{int(num), int(gen)}, true
		}
	}
	p.seek(from)
	return ref{}, false
}

// maxDigits is the length of a number that all readers read as the same value.
const maxDigits = 24

func (p *strictReader) number() (object, error) {
	at := p.offset()
	var b []byte
	digits, points := 0, 0
	for c := p.peek(); isRegular(c); c = p.peek() {
		switch {
		case isDigit(c):
			digits++
		case c == '.' && points == 0:
			points++
		case (c == '+' || c == '-') && len(b) == 0:
		default:
			return nil, p.faultAt(at, "a malformed number")
		}
		if b = append(b, byte(c)); len(b) > maxDigits {
			return nil, p.faultAt(at, "a number with more than %d characters", maxDigits)
		}
		p.pos++
	}
	if digits == 0 {
		return nil, p.faultAt(at, "a malformed number")
	}
	return number(b), nil
}

// name reads a name with its slash.
func (p *strictReader) name() (object, error) {
	at := p.offset()
	p.pos++
	var b []byte
	for c := p.peek(); isRegular(c); c = p.peek() {
		p.pos++
		if c == '#' {
			high := hexDigit(p.next())
			low := hexDigit(p.next())
			if high < 0 || low < 0 || high|low == 0 {
				return nil, p.faultAt(at, "a malformed name")
			}
			c = high<<4 | low
		}
		if b = append(b, byte(c)); len(b) > 127 { // annex C
			return nil, p.faultAt(at, "a name with more than 127 bytes")
		}
	}
	return name(b), nil
}

// grown appends a byte and charges memory before more is needed.
func (p *strictReader) grown(b []byte, c byte) ([]byte, error) {
	if len(b) == cap(b) {
		if err := p.paid(int64(max(16, 2*cap(b)))); err != nil {
			return nil, err
		}
	}
	return append(b, c), nil
}

// literal reads a string after its parenthesis.
func (p *strictReader) literal() (object, error) {
	at := p.offset()
	out := text{}
	for depth := 1; ; {
		c := p.next()
		switch c {
		case -1:
			return nil, p.faultAt(at, "a string has no end")
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return out, nil
			}
		case '\r':
			if p.peek() == '\n' {
				p.pos++
			}
			c = '\n'
		case '\\':
			if c = p.escape(); c < 0 {
				continue
			}
		}
		var err error
		if out, err = p.grown(out, byte(c)); err != nil {
			return nil, err
		}
	}
}

// hexadecimal reads a string after its angle bracket.
func (p *strictReader) hexadecimal() (object, error) {
	at := p.offset()
	out := text{}
	high := -1
	for {
		c := p.next()
		d := hexDigit(c)
		var err error
		switch {
		case c == '>':
			if high >= 0 {
				if out, err = p.grown(out, byte(high<<4)); err != nil {
					return nil, err
				}
			}
			return out, nil
		case isBlank(c):
		case d < 0:
			return nil, p.faultAt(at, "a malformed hexadecimal string")
		case high < 0:
			high = d
		default:
			if out, err = p.grown(out, byte(high<<4|d)); err != nil {
				return nil, err
			}
			high = -1
		}
	}
}

func (p *strictReader) array(depth int) (object, error) {
	var out array
	for {
		p.blanks()
		if p.peek() == ']' {
			p.pos++
			return out, nil
		}
		o, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
}

func (p *strictReader) dict(depth int) (object, error) {
	out := dict{}
	var seen map[name]bool // only for large dictionaries
	for {
		p.blanks()
		at := p.offset()
		switch p.peek() {
		case '>':
			if p.pos++; p.peek() != '>' {
				return nil, p.faultAt(at, "a dictionary ends with a single bracket")
			}
			p.pos++
			return out, nil
		case '/':
		default:
			return nil, p.faultAt(at, "a key of a dictionary is expected")
		}
		key, err := p.name()
		if err != nil {
			return nil, err
		}
		k := key.(name)
		if k == "" {
			return nil, p.faultAt(at, "an empty key of a dictionary")
		}
		twice := seen[k]
		if seen == nil {
			for _, e := range out {
				twice = twice || e.key == k
			}
		}
		if twice {
			return nil, p.faultAt(at, "the key %s occurs twice", printable(k))
		}
		p.blanks()
		o, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if out = append(out, entry{k, o}); len(out) == 16 {
			seen = map[name]bool{}
			for _, e := range out {
				seen[e.key] = true
			}
		} else if seen != nil {
			seen[k] = true
		}
	}
}

// header reads "12 0 obj".
func (p *strictReader) header() (ref, error) {
	at := p.offset()
	num, ok1 := p.digits()
	ok2 := p.blanks()
	gen, ok3 := p.digits()
	ok4 := p.blanks()
	if !ok1 || !ok2 || !ok3 || !ok4 || !p.word("obj") || num <= 0 || num > maxWritten || gen > 65535 {
		return ref{}, p.faultAt(at, "an object with its number and generation is expected")
	}
	return ref{int(num), int(gen)}, nil
}

// indirect reads a whole indirect object, from its number to endobj. length resolves the
// reference to the length of a stream.
func (p *strictReader) indirect(length func(ref) (int64, error)) (ref, object, error) {
	id, err := p.header()
	if err != nil {
		return id, nil, err
	}
	p.blanks()
	at := p.offset()
	o, err := p.value(0)
	if err != nil {
		return id, nil, err
	}
	if _, ok := o.(ref); ok {
		return id, nil, p.faultAt(at, "object %d is only a reference", id.num)
	}
	p.blanks()
	if p.word("stream") {
		if o, err = p.stream(id, o, length); err != nil {
			return id, nil, err
		}
		p.blanks()
	}
	if !p.word("endobj") {
		return id, nil, p.fault("the end of object %d is expected", id.num)
	}
	return id, o, nil
}

// standardFilters are the filters of streams (7.4, table 6), without Crypt, which needs handlers that
// readers have or lack. Their abbreviations are for inline images alone.
var standardFilters = []name{
	"ASCIIHexDecode", "ASCII85Decode", "LZWDecode", "FlateDecode", "RunLengthDecode",
	"CCITTFaxDecode", "JBIG2Decode", "DCTDecode", "JPXDecode",
}

// stream reads the bytes of a stream after its keyword (7.3.8).
func (p *strictReader) stream(id ref, o object, length func(ref) (int64, error)) (object, error) {
	d, ok := o.(dict)
	if !ok {
		return nil, p.fault("a stream without a dictionary")
	}
	if p.peek() == '\r' {
		p.pos++
	}
	if p.next() != '\n' {
		return nil, p.fault("the keyword stream must be followed by CR LF or LF")
	}
	for _, key := range []name{"F", "FFilter", "FDecodeParms", "DP", "Fl"} {
		if d.has(key) {
			return nil, p.fault("the stream has the entry %s, which not all readers understand alike", printable(key))
		}
	}
	filters, ok := d.get("Filter").(array)
	if !ok && slices.ContainsFunc(d, func(e entry) bool { return e.key == "Filter" }) { // null as well: with it Ghostscript draws nothing
		filters = array{d.get("Filter")}
	}
	for _, one := range filters {
		if filter, ok := one.(name); !ok || !slices.Contains(standardFilters, filter) {
			return nil, p.fault("the stream has a filter that not all readers know")
		}
	}
	var n int64
	switch l := d.get("Length").(type) {
	case number:
		if n, ok = plainInteger(l); !ok {
			return nil, p.fault("the stream has no valid length")
		}
	case ref:
		var err error
		if n, err = length(l); err != nil {
			return nil, p.fault("the length of the stream: %v", err)
		}
	default:
		return nil, p.fault("the stream has no valid length")
	}
	from := p.offset()
	// The limit of the lexer is about objects without their streams.
	if n > p.file.size-from {
		return nil, p.fault("the stream is longer than the file")
	}
	p.seek(from + n)
	p.end = min(p.file.size, max(p.end, from+n+64))
	p.endOfLine()
	if !p.word("endstream") {
		return nil, p.faultAt(from+n, "the end of the stream of object %d is expected", id.num)
	}
	return &stream{dict: d, offset: from, id: id}, nil
}

// plainInteger returns the value of an unsigned integer without a sign or a point.
func plainInteger(o object) (int64, bool) {
	s, ok := o.(number)
	if !ok || len(s) == 0 || len(s) > 15 {
		return 0, false
	}
	return digits([]byte(s))
}

// strictData decodes an object stream or a cross-reference stream. Its only filter may be
// FlateDecode. k decrypts it, if it is not nil. The result is charged as held.
func (f *file) strictData(s *stream, k *crypt) ([]byte, error) {
	raw, err := f.rawData(s)
	if err != nil {
		return nil, err
	}
	defer f.spending.Release(int64(len(raw)))
	filters, parms := s.dict.get("Filter"), s.dict.get("DecodeParms")
	if a, ok := filters.(array); ok && len(a) <= 1 {
		filters = nil
		if len(a) == 1 {
			filters = a[0]
		}
		if b, ok := parms.(array); ok && len(b) == len(a) {
			parms = nil
			if len(b) == 1 {
				parms = b[0]
			}
		}
	}
	if k != nil {
		if raw, err = k.decryptStream(raw, s, filterList(filters), filterList(parms)); err != nil {
			return nil, err
		}
	}
	switch filters {
	case nil:
		if !f.keep(int64(len(raw))) {
			return nil, f.failed()
		}
		return bytes.Clone(raw), nil
	case name("FlateDecode"):
	default:
		return nil, errors.New("the stream has another filter than FlateDecode")
	}
	out, err := f.strictInflate(raw)
	if err != nil || parms == nil {
		return out, err
	}
	p, ok := parms.(dict)
	get := func(key name, def int64) int64 {
		if !p.has(key) {
			return def
		}
		n, valid := plainInteger(p.get(key))
		ok = ok && valid
		return n
	}
	predictor, columns := get("Predictor", 1), get("Columns", 1)
	if get("Colors", 1) != 1 || get("BitsPerComponent", 8) != 8 || !ok || columns < 1 || columns > 1<<16 || predictor != 1 && (predictor < 10 || predictor > 15) {
		return nil, errors.New("the stream has unusual parameters of its filter")
	}
	if predictor == 1 {
		return out, nil
	}
	rows := int(columns) + 1
	if len(out)%rows != 0 {
		return nil, errors.New("the rows of the stream are not complete")
	}
	for i := 0; i < len(out); i += rows {
		if out[i] > 4 {
			return nil, errors.New("the stream has an unknown predictor")
		}
	}
	defer f.spending.Release(int64(cap(out)))
	c := &chain{file: f, limit: maxDecoded}
	defer c.close()
	r, err := c.unpredict(bytes.NewReader(out), p)
	if err != nil || !f.charge(int64(len(out))) {
		return nil, cmp.Or(f.failed(), err)
	}
	return f.gather(r)
}

// strictInflate decodes FlateDecode. Unlike inflate it demands a whole stream with a right
// checksum and nothing behind it. The result is charged as held before it grows.
func (f *file) strictInflate(raw []byte) ([]byte, error) {
	src := bytes.NewReader(raw)
	z, err := zlib.NewReader(src)
	if err != nil {
		return nil, fmt.Errorf("the compressed stream: %w", err)
	}
	limit := min(f.budget, maxDecoded)
	var out []byte
	for {
		if len(out) == cap(out) {
			more := max(4<<10, cap(out))
			if int64(len(out)+more) > limit+4<<10 {
				return nil, errors.New("compressed streams decode to more bytes than the limit")
			}
			if !f.keep(int64(more)) {
				return nil, f.failed()
			}
			bigger := make([]byte, len(out), cap(out)+more)
			copy(bigger, out)
			out = bigger
		}
		n, err := z.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		if f.budget -= int64(n); !f.charge(2 * int64(n)) {
			return nil, f.failed()
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("the compressed stream: %w", err)
		}
	}
	if rest := raw[len(raw)-src.Len():]; len(bytes.Trim(rest, "\r\n")) > 0 {
		return nil, errors.New("bytes follow the compressed stream")
	}
	return out, nil
}
