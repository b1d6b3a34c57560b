// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"sync"
	"unicode/utf8"

	fast "github.com/segmentio/asm/base64"

	"tamga/internal/domain/fault"
)

// ShortBlob is the number of characters up to which a Blob is kept as text. A longer one is
// decoded while it is read.
const ShortBlob = 64 << 10

// documentCost is about the number of bytes that one document costs besides its content.
// Each document gives them back to the budget of the request, because the number of
// documents has a limit of its own.
const documentCost = 4 * entrySize

// Document is a Blob that is a document at any length: it is decoded into a [Sink] while it
// is read and never kept as text, so a request may hold thousands of them. It has no Text.
type Document struct{ blob Blob }

// Empty reports whether the value is absent, null or "".
func (d Document) Empty() bool { return d.blob.Empty() }

func (d Document) document() (int, error) { return d.blob.document() }

// Blob is a JSON string that may be a document. Up to ShortBlob characters it is kept as
// text. A longer one is decoded from Base64 (standard alphabet, padded, white space
// ignored) into a [Sink] while it is read, so its size costs no memory. A number, true or
// false is taken as its text. The zero value is a missing value or null. A Blob is valid
// until the answer of its request was sent, and one goroutine may use it at a time.
type Blob struct{ value *blobValue }

type blobValue struct {
	name     string // for messages
	docs     documents
	quoted   bool   // the value was a string
	text     []byte // a short one
	object   []byte // JSON text of an object
	sink     sink   // a long one, or a short one that was opened
	at       int    // index of sink in docs
	finished bool
	err      error // why the value cannot be opened
	plain    error // why the value cannot be read as text
	long     bool  // or that it is too long
}

// Absent reports whether the value is absent or null.
func (b Blob) Absent() bool { return b.value == nil }

// Empty reports whether the value is absent, null or "".
func (b Blob) Empty() bool {
	v := b.value
	return v == nil || v.quoted && v.sink == nil && v.err == nil && len(v.text) == 0
}

// Text returns a short value as the client wrote it. The fault is invalid_parameters. A
// missing value is "".
func (b Blob) Text() (string, error) {
	if b.value == nil {
		return "", nil
	}
	if b.value.long {
		return string(b.value.text), fault.Newf(fault.InvalidParameters, "%s must be a string of at most %d characters", b.value.name, ShortBlob)
	}
	return string(b.value.text), b.value.plain
}

// Object returns the JSON text of a value that was an object of at most ShortBlob bytes,
// without white space between its parts. It reports false for all other values.
func (b Blob) Object() (string, bool) {
	if b.value == nil || b.value.object == nil {
		return "", false
	}
	return string(b.value.object), true
}

// document implements Source. The fault is invalid_content and names the key and the
// character.
func (b Blob) document() (int, error) {
	v := b.value
	if v == nil {
		return 0, fault.New(fault.InvalidContent, "the document is missing: send it as Base64")
	}
	if v.err != nil {
		return 0, v.err
	}
	if v.sink == nil {
		if v.err = v.fromText(); v.err != nil {
			return 0, v.err
		}
	}
	if !v.finished {
		v.finished = true
		if v.err = v.sink.Finish(); v.err != nil {
			return 0, v.err
		}
	}
	return v.at, nil
}

func (v *blobValue) fromText() error {
	if !v.quoted {
		return fault.Newf(fault.InvalidContent, "%s must be a string with Base64", v.name)
	}
	// Invalid Base64 is refused before a sink is opened.
	whole := decoded.Get().(*[]byte)
	defer decoded.Put(whole)
	var d decoder
	n, _ := d.decode(*whole, v.text)
	d.finish()
	if d.failed() {
		return d.fault(v.name)
	}
	var err error
	if v.sink, v.at, err = v.docs.create(); err != nil {
		return err
	}
	_, err = v.sink.Write((*whole)[:n])
	return err
}

func bindBlob(r *reader, v reflect.Value) error {
	if err := r.keep(2 * entrySize); err != nil {
		return err
	}
	b := &blobValue{name: r.where(), docs: r.docs}
	v.Set(reflect.ValueOf(Blob{b}))
	return r.bindBlob(b, ShortBlob)
}

func bindDocument(r *reader, v reflect.Value) error {
	if err := r.keep(2 * entrySize); err != nil {
		return err
	}
	b := &blobValue{name: r.where(), docs: r.docs}
	v.Set(reflect.ValueOf(Document{Blob{b}}))
	return r.bindBlob(b, 0)
}

// bindBlob reads a value into b. A string of more than short characters becomes a document
// at once.
func (r *reader) bindBlob(b *blobValue, short int) error {
	c, err := r.token()
	switch {
	case err != nil:
		return err
	case c == '"':
		b.quoted = true
		r.r++
		return r.blob(b, short)
	case c == '{' || c == '[':
		// The handler that opens or reads the value reports the fault: it has the better
		// code.
		b.err = fault.Newf(fault.InvalidContent, "%s must be a string with Base64", b.name)
		b.plain = r.wrong("a string, a number, true or false")
		if c == '[' || short == 0 {
			return r.skip()
		}
		b.object, err = r.copyObject()
		return err
	}
	if err := r.scalar("a string, a number, true or false"); err != nil {
		return err
	}
	b.text = bytes.Clone(r.text)
	return nil
}

// blob reads a string into b. Its opening quote has been read.
func (r *reader) blob(b *blobValue, short int) error {
	r.text = r.text[:0]
	until := int64(0)
	if r.longer(short, &until) {
		return r.document(b, until)
	}
	for {
		c, err := r.peek()
		if err != nil {
			return err
		}
		if c == '"' {
			r.r++
			b.text = bytes.Clone(r.text)
			return r.keep(len(b.text))
		}
		if len(r.text) > short {
			return r.document(b, 0)
		}
		if c == '\\' {
			r.r++
			if err := r.escape(func(p []byte) error { r.text = append(r.text, p...); return nil }); err != nil {
				return err
			}
			continue
		}
		run := r.run(&until)
		// One character more than short shows that the string is long.
		run = run[:min(len(run), short+1-len(r.text))]
		if n := control(run); n >= 0 {
			r.r += n
			return r.broken("has a control character in a string")
		}
		r.text = append(r.text, run...)
		r.r += len(run)
	}
}

// longer reports whether more than short characters follow that need no unescaping. They stay in
// the buffer, which is enlarged for them, and there is no quote before until. If it reports
// false, errors of reading come again.
func (r *reader) longer(short int, until *int64) bool {
	for seen := r.r; ; {
		if n := bytes.IndexByte(r.buf[seen:r.w], '"'); n >= 0 {
			*until = r.off + int64(seen+n)
			break
		}
		*until = r.off + int64(r.w)
		if r.w-r.r > short {
			break
		}
		r.widen()
		if seen = r.w - r.r; !r.fillBehind() {
			return false
		}
	}
	run := r.buf[r.r : *until-r.off]
	return len(run) > short && bytes.IndexByte(run[:short+1], '\\') < 0
}

// run returns the longest run of characters in the buffer that need no unescaping. There is
// no quote before offset until of the text. until is kept from call to call: the quote is
// searched once per buffer, however many line breaks are escaped in between.
func (r *reader) run(until *int64) []byte {
	if at := r.off + int64(r.r); *until <= at {
		if n := bytes.IndexByte(r.buf[r.r:r.w], '"'); n >= 0 {
			*until = at + int64(n)
		} else {
			*until = r.off + int64(r.w)
		}
	}
	run := r.buf[r.r : *until-r.off]
	if n := bytes.IndexByte(run, '\\'); n >= 0 {
		run = run[:n]
	}
	return run
}

// document continues a string whose beginning is in r.text as a document. There is no quote
// before offset until of the text.
func (r *reader) document(b *blobValue, until int64) error {
	var err error
	if b.sink, b.at, err = b.docs.create(); err != nil {
		return err
	}
	r.held += documentCost
	r.widen()
	e := encoded{r: r, pending: r.text, until: until, tried: -1}
	buf := decoded.Get().(*[]byte)
	defer decoded.Put(buf)
	_, err = io.CopyBuffer(b.sink, &e, *buf) // a sink with ReadFrom reads into its own buffers
	if e.err != nil {
		return e.err
	}
	if err != nil {
		return err
	}
	b.long = true
	e.decoder.finish()
	if e.decoder.failed() {
		b.err = e.decoder.fault(b.name)
		return b.sink.Close() // frees its space early
	}
	return nil
}

// control returns the index of the first byte below space, or -1.
func control(p []byte) int {
	const each, top = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; len(p)-i >= 8; i += 8 {
		// Subtracting a space from each byte borrows only from one that is below it, and sets
		// the top bit of that one. Bytes that had a top bit do not count.
		if x := binary.LittleEndian.Uint64(p[i:]); (x-' '*each)&^x&top != 0 {
			break
		}
	}
	for ; i < len(p); i++ {
		if p[i] < ' ' {
			return i
		}
	}
	return -1
}

// encoded reads the bytes that the rest of a long JSON string encodes in Base64. They are
// decoded from the buffer of the connection to their destination without a copy in between.
// The decoder notes wrong characters, and the string is still read to its end.
type encoded struct {
	r       *reader
	decoder decoder
	pending []byte                // characters taken from the reader
	escaped [2 * utf8.UTFMax]byte // characters of an escape
	until   int64                 // there is no quote before this offset of the text
	tried   int64                 // the until with which decoding at once failed
	ended   bool                  // the closing quote has been read
	spare   [3]byte               // bytes of a group that did not fit
	left    []byte                // bytes of spare that were not read yet
	err     error                 // of the reader or of JSON, not of the sink
}

var decoded = sync.Pool{New: func() any { b := make([]byte, bufferSize/4*3+3); return &b }}

// Read implements io.Reader.
func (e *encoded) Read(p []byte) (int, error) {
	if len(e.left) > 0 || len(p) == 0 {
		n := copy(p, e.left)
		e.left = e.left[n:]
		return n, nil
	}
	if len(p) < len(e.spare) { // a group of four characters needs room for three bytes
		n, err := e.read(e.spare[:])
		e.left = e.spare[:n]
		n = copy(p, e.left)
		e.left = e.left[n:]
		return n, err
	}
	return e.read(p)
}

// read is Read with room for at least one group. It takes everything in the buffer of the
// reader, and waits for more only if it has nothing.
func (e *encoded) read(p []byte) (n int, err error) {
	for err == nil && len(p)-n >= len(e.spare) {
		m := 0
		switch {
		case len(e.pending) > 0:
			var used int
			m, used = e.decoder.decode(p[n:], e.pending)
			e.pending = e.pending[used:]
		case e.ended:
			return n, io.EOF
		case n > 0 && e.r.r == e.r.w:
			return n, nil
		default:
			m, err = e.more(p[n:])
		}
		n += m
	}
	e.err = err
	return n, err
}

// more decodes what is in the buffer of the reader, as far as p has room.
func (e *encoded) more(p []byte) (int, error) {
	r := e.r
	if r.r == r.w {
		r.widen()
	}
	c, err := r.peek()
	if err != nil {
		return 0, err
	}
	at := r.off + int64(r.r)
	// Most buffers of a document hold only whole groups. Decoding one at once takes less
	// time than searching it first. If it was searched, the group before the quote is left.
	end := r.w
	if e.until > at {
		end = int(e.until-r.off) - 1
	}
	if whole := min((end-r.r)&^3, len(p)/3*4); whole > 0 && e.until != e.tried && e.decoder.between() {
		if n, err := fast.StdEncoding.Decode(p, r.buf[r.r:r.r+whole]); err == nil && n == whole/4*3 && r.buf[r.r+whole-1] != '=' {
			e.decoder.pos += int64(whole)
			r.r += whole
			return n, nil
		}
		e.tried = e.until
	}
	switch {
	case c == '"':
		r.r++
		e.ended = true
		return 0, nil
	case c == '\\':
		if r.r+1 < r.w { // fast path: some clients escape two characters per line
			if c, ok := unescape(r.buf[r.r+1]); ok {
				r.r += 2
				return e.decoder.one(p, c), nil
			}
		}
		r.r++
		e.pending = e.escaped[:0]
		return 0, r.escape(func(p []byte) error { e.pending = append(e.pending, p...); return nil })
	case c > ' ' && e.decoder.quads > 0 && e.until <= at:
		// The end of a group that began in the previous buffer. The next groups are decoded
		// as above.
		r.r++
		return e.decoder.one(p, c), nil
	}
	run := r.run(&e.until)
	n, used := e.decoder.decode(p, run)
	run = run[:used]
	// The decoder refuses every control character except these two.
	if e.decoder.failed() || bytes.IndexByte(run, '\n') >= 0 || bytes.IndexByte(run, '\r') >= 0 {
		if n := control(run); n >= 0 {
			r.r += n
			return 0, r.broken("has a control character in a string")
		}
	}
	r.r += used
	return n, nil
}

// decoder decodes Base64 that arrives in pieces. encoding/base64 has no decoder for pieces:
// its Decode, and one in vector instructions, decode the whole groups. The zero value is
// ready.
type decoder struct {
	quad   [4]byte // an incomplete group
	quads  int
	pos    int64 // characters seen
	bad    int64 // position of the first wrong one, counted from 1; 0: none
	padded bool  // only white space may follow
}

func (d *decoder) failed() bool { return d.bad != 0 }

// between reports whether the next character begins a group.
func (d *decoder) between() bool { return d.quads == 0 && !d.padded && d.bad == 0 }

func (d *decoder) fault(name string) error {
	return fault.Newf(fault.InvalidContent, "%s is not Base64: look at character %d", name, d.bad)
}

// decode decodes characters of src into p, which has room for at least three bytes. It
// returns the number of bytes written and of characters used. A wrong character is noted,
// see failed, and the characters after it are used without a result.
func (d *decoder) decode(p, src []byte) (n, used int) {
	for used < len(src) && d.bad == 0 {
		if len(p)-n < 3 {
			return n, used
		}
		slowly := 1
		if whole := min((len(src)-used)&^3, (len(p)-n)/3*4); whole > 0 && d.between() {
			m, err := fast.StdEncoding.Decode(p[n:], src[used:used+whole])
			if err == nil {
				d.pos += int64(whole)
				d.padded = m < whole/4*3 && bytes.IndexByte(src[used:used+whole], '=') >= 0
				n, used = n+m, used+whole
				continue
			}
			// White space inside a group or an error: decode one character at a time to
			// find out.
			slowly = whole
		}
		for end := used + slowly; used < end && d.bad == 0 && len(p)-n >= 3; used++ {
			n += d.one(p[n:], src[used])
		}
	}
	if d.bad != 0 {
		used = len(src)
	}
	return n, used
}

// one decodes a character and returns how many bytes that completed.
func (d *decoder) one(p []byte, c byte) int {
	if d.failed() {
		return 0
	}
	d.pos++
	switch {
	case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		return 0
	case d.padded:
		d.bad = d.pos
		return 0
	}
	d.quad[d.quads] = c
	if d.quads++; d.quads < 4 {
		return 0
	}
	d.quads = 0
	n, err := base64.StdEncoding.Decode(p, d.quad[:])
	if err != nil {
		d.bad = d.pos
		if at := base64.CorruptInputError(0); errors.As(err, &at) {
			d.bad = max(1, d.pos-3+int64(at))
		}
		return 0
	}
	d.padded = n < 3
	return n
}

// finish ends the text. An incomplete group is an error.
func (d *decoder) finish() {
	if d.bad == 0 && d.quads != 0 {
		d.bad = d.pos + 1
	}
}
