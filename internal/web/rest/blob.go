package rest

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"

	fast "github.com/segmentio/asm/base64"

	"tamga/internal/domain/fault"
)

// ShortBlob is how many characters a Blob keeps as text. A longer one is decoded
// while it is read.
const ShortBlob = 64 << 10

// documentCost is what one document may cost beside its octets, given back to
// the budget of a request by each: their number has a limit of its own.
const documentCost = 4 * entrySize

// Sink takes the octets of one document. It is written, finished, read by who
// asked for it, and closed by the request once the answer is out, whatever
// happened in between; Close may be called at any time.
type Sink interface {
	io.Writer
	Finish() error
	Close() error
}

// sibling is a Sink that opens room for further documents of the same request,
// which may then share what one has of it, such as a file. What it returns is a
// Sink; the type is one that rooms without a look at this package can name.
type sibling interface {
	Sibling() (io.WriteCloser, error)
}

// documents owns the sinks of one request.
type documents struct {
	open  func() (Sink, error) // nil on a surface that takes no documents
	most  int                  // how many
	sinks []Sink
}

func (d *documents) create() (Sink, error) {
	if d == nil || d.open == nil {
		return nil, errors.New("rest: this surface has no room for documents")
	}
	if len(d.sinks) >= d.most {
		return nil, fault.Newf(fault.InvalidParameters, "the request holds more than %d documents", d.most)
	}
	s, err := d.next()
	if err == nil {
		d.sinks = append(d.sinks, s)
	}
	return s, err
}

// next opens a sink, the first one of the surface and others beside it.
func (d *documents) next() (Sink, error) {
	if len(d.sinks) > 0 {
		if first, ok := d.sinks[0].(sibling); ok {
			w, err := first.Sibling()
			if err != nil {
				return nil, err
			}
			if s, ok := w.(Sink); ok {
				return s, nil
			}
			return nil, fmt.Errorf("rest: %T is no room for a document", w)
		}
	}
	return d.open()
}

// close frees every sink; the error is for the log.
func (d *documents) close() error {
	var errs []error
	for _, s := range d.sinks {
		errs = append(errs, s.Close())
	}
	d.sinks = nil
	return errors.Join(errs...)
}

// Document is a Blob that is a document whatever its length: it is decoded into a
// [Sink] while it is read and never kept as text, so that a request may hold
// thousands of them. It has no Text.
type Document struct{ blob Blob }

// Empty reports whether the value is absent, null or "".
func (d Document) Empty() bool { return d.blob.Empty() }

// Open is that of [Blob.Open].
func (d Document) Open() (Sink, error) { return d.blob.Open() }

// Blob is a string of JSON that may be a document: up to ShortBlob characters it
// is kept as text, beyond that it is decoded from Base64 (standard alphabet,
// padded; white space is passed over) into a [Sink] while it is read, so that its
// size costs no memory. A number, true or false is taken as its text. The zero
// value is an absent or null one. A Blob is valid until the answer of its request
// is out and is used by one goroutine at a time.
type Blob struct{ value *blobValue }

type blobValue struct {
	name     string // for messages
	docs     *documents
	quoted   bool   // it was a string
	text     []byte // a short one
	object   []byte // JSON text of an object
	sink     Sink   // a long one, or a short one that was opened
	finished bool
	err      error // why it cannot be opened
	plain    error // why it cannot be read as text
}

// Absent reports whether the value is absent or null.
func (b Blob) Absent() bool { return b.value == nil }

// Empty reports whether the value is absent, null or "".
func (b Blob) Empty() bool {
	v := b.value
	return v == nil || v.quoted && v.sink == nil && v.err == nil && len(v.text) == 0
}

// Text returns a short value as the client wrote it; the fault is
// invalid_parameters. An absent one is "".
func (b Blob) Text() (string, error) {
	if b.value == nil {
		return "", nil
	}
	return string(b.value.text), b.value.plain
}

// Object returns the JSON text of a value that was an object, of at most ShortBlob
// octets, without what white space was in it. It reports false for all others.
func (b Blob) Object() (string, bool) {
	if b.value == nil || b.value.object == nil {
		return "", false
	}
	return string(b.value.object), true
}

// Open returns the decoded value, finished, as the Sink that the surface was
// mounted with. The fault is invalid_content and names the key and the place.
func (b Blob) Open() (Sink, error) {
	v := b.value
	if v == nil {
		return nil, fault.New(fault.InvalidContent, "the document is missing: send it as Base64")
	}
	if v.err != nil {
		return nil, v.err
	}
	if v.sink == nil {
		if v.err = v.fromText(); v.err != nil {
			return nil, v.err
		}
	}
	if !v.finished {
		v.finished = true
		if v.err = v.sink.Finish(); v.err != nil {
			return nil, v.err
		}
	}
	return v.sink, nil
}

func (v *blobValue) fromText() error {
	if !v.quoted {
		return fault.Newf(fault.InvalidContent, "%s must be a string with Base64", v.name)
	}
	// Broken Base64 is found before room for the document is asked for.
	var whole bytes.Buffer
	d := newDecoder(&whole)
	defer d.release()
	if err := errors.Join(d.feed(v.text), d.finish()); err != nil {
		return err
	}
	if d.failed() {
		return d.fault(v.name)
	}
	s, err := v.docs.create()
	if err != nil {
		return err
	}
	v.sink = s
	_, err = s.Write(whole.Bytes())
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

// bindBlob reads a value into b; a string of more than short characters becomes a
// document at once.
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
		// Whoever asks for it says what is wrong; it has the better code.
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

// blob reads a string, whose opening quote has been read, into b.
func (r *reader) blob(b *blobValue, short int) error {
	var d *decoder // once the string is long
	defer func() {
		if d != nil {
			d.release()
		}
	}()
	r.text = r.text[:0]
	put := func(p []byte) error {
		if d == nil {
			if len(r.text)+len(p) <= short {
				r.text = append(r.text, p...)
				return nil
			}
			s, err := b.docs.create()
			if err != nil {
				return err
			}
			b.sink, d = s, newDecoder(s)
			r.held += documentCost
			if err := d.feed(r.text); err != nil {
				return err
			}
		}
		return d.feed(p)
	}

	until := int64(0) // there is no quote before this octet of the text
	for {
		if r.r == r.w {
			if err := r.fill(); err != nil {
				return err
			}
		}
		if c := r.buf[r.r]; c == '"' {
			r.r++
			break
		} else if c == '\\' {
			r.r++
			if err := r.escape(put); err != nil {
				return err
			}
			continue
		}
		// The longest run of characters that stand for themselves goes to the
		// decoder where it lies. The quote is looked for once a buffer, however
		// many line breaks are escaped in between.
		if at := r.off + int64(r.r); until <= at {
			if n := bytes.IndexByte(r.buf[r.r:r.w], '"'); n >= 0 {
				until = at + int64(n)
			} else {
				until = r.off + int64(r.w)
			}
		}
		run := r.buf[r.r : until-r.off]
		if n := bytes.IndexByte(run, '\\'); n >= 0 {
			run = run[:n]
		}
		if err := put(run); err != nil {
			return err
		}
		// The decoder itself refuses every control character but these two.
		if d == nil || d.failed() || bytes.IndexByte(run, '\n') >= 0 || bytes.IndexByte(run, '\r') >= 0 {
			if n := control(run); n >= 0 {
				r.r += n
				return r.broken("has a control character in a string")
			}
		}
		r.r += len(run)
	}

	if d == nil {
		b.text = bytes.Clone(r.text)
		return r.keep(len(b.text))
	}
	b.plain = r.wrong(fmt.Sprintf("a string of at most %d characters", ShortBlob))
	if err := d.finish(); err != nil {
		return err
	}
	if d.failed() {
		b.err = d.fault(b.name)
		return b.sink.Close() // its room is not needed any more
	}
	return nil
}

// control finds an octet below space; -1 is none.
func control(p []byte) int {
	for i, c := range p {
		if c < ' ' {
			return i
		}
	}
	return -1
}

// decoder turns Base64 that comes in pieces into octets. encoding/base64 has no
// decoder to write to; its Decode does the work on whole pieces.
type decoder struct {
	to     io.Writer
	out    *[]byte
	n      int     // octets in out
	quad   [4]byte // a group that is not complete
	quads  int
	pos    int64 // characters seen
	bad    int64 // the first wrong one, counted from 1; 0 is none
	padded bool  // nothing may follow but white space
}

var decoded = sync.Pool{New: func() any { b := make([]byte, bufferSize/4*3); return &b }}

func newDecoder(to io.Writer) *decoder {
	return &decoder{to: to, out: decoded.Get().(*[]byte)}
}

func (d *decoder) release() { decoded.Put(d.out); d.out = nil }

func (d *decoder) failed() bool { return d.bad != 0 }

func (d *decoder) fault(name string) error {
	return fault.Newf(fault.InvalidContent, "%s is not Base64: look at character %d", name, d.bad)
}

// feed takes more characters; the error is that of the writer behind. Wrong
// characters are remembered, see failed, and what follows them is ignored.
func (d *decoder) feed(p []byte) error {
	for len(p) > 0 && d.bad == 0 {
		if whole := min(len(p)&^3, bufferSize); d.quads == 0 && !d.padded && whole > 0 {
			if err := d.room(whole / 4 * 3); err != nil {
				return err
			}
			n, err := fast.StdEncoding.Decode((*d.out)[d.n:], p[:whole])
			if err == nil {
				d.n += n
				d.pos += int64(whole)
				d.padded = n < whole/4*3 && bytes.IndexByte(p[:whole], '=') >= 0
				p = p[whole:]
				continue
			}
			// White space across groups or a fault: one character at a time finds out.
			if err := d.slowly(p[:whole]); err != nil {
				return err
			}
			p = p[whole:]
			continue
		}
		if err := d.slowly(p[:1]); err != nil {
			return err
		}
		p = p[1:]
	}
	return nil
}

func (d *decoder) slowly(p []byte) error {
	for _, c := range p {
		d.pos++
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			continue
		case d.padded:
			d.bad = d.pos
			return nil
		}
		d.quad[d.quads] = c
		if d.quads++; d.quads < 4 {
			continue
		}
		d.quads = 0
		if err := d.room(3); err != nil {
			return err
		}
		n, err := base64.StdEncoding.Decode((*d.out)[d.n:], d.quad[:])
		if err != nil {
			d.bad = d.pos
			if at := base64.CorruptInputError(0); errors.As(err, &at) {
				d.bad = max(1, d.pos-3+int64(at))
			}
			return nil
		}
		d.n += n
		d.padded = n < 3
	}
	return nil
}

// room makes sure that n octets fit into out.
func (d *decoder) room(n int) error {
	if len(*d.out)-d.n >= n {
		return nil
	}
	return d.flush()
}

func (d *decoder) flush() error {
	_, err := d.to.Write((*d.out)[:d.n])
	d.n = 0
	return err
}

// finish ends the text; an incomplete group is a fault.
func (d *decoder) finish() error {
	if d.bad == 0 && d.quads != 0 {
		d.bad = d.pos + 1
	}
	if d.bad != 0 || d.n == 0 {
		return nil
	}
	return d.flush()
}
