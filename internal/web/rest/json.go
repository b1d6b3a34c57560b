// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf16"
	"unicode/utf8"

	"tamga/internal/domain/fault"
)

// Limits of a reader. They do not bound documents, which are not kept in memory. The limit
// of the body does.
const (
	bufferSize = 64 << 10       // bytes read from the connection at a time
	wideSize   = 4 * bufferSize // the same while a document comes in
	hugeSize   = 4 << 20        // and after hugeFrom bytes of the text
	hugeFrom   = 2 * hugeSize
	hugeMost   = 16      // number of hugeSize buffers in the process; without a free one the reads stay at wideSize
	maxDepth   = 64      // nesting of arrays and objects
	maxHeld    = 1 << 20 // bytes of values kept in memory, structure included
	maxName    = 256     // bytes of an object key; the interface has no longer ones
)

// reader reads one JSON text (RFC 8259) from a stream and binds it to Go values on the way,
// so a body larger than memory costs one buffer. It is as strict about syntax as the RFC,
// but a byte order mark at the start is ignored. Invalid UTF-8 and lone surrogates become
// U+FFFD, as in encoding/json.
type reader struct {
	src   io.Reader
	buf   []byte
	r, w  int   // unread part of buf
	off   int64 // bytes of the text before buf[0]
	depth int
	held  int    // bytes that may still be kept
	path  []step // position in the value, for messages
	text  []byte // the string or number read last
	most  int    // bytes of a string that go into text
	long  bool   // the string was longer
	utf   [utf8.UTFMax]byte
	docs  documents
	wide  *[]byte // buf after widen
	huge  bool    // wide is one of hugeBuffers
}

// step is one step of the path to a value: an index, or a key if the index is negative.
type step struct {
	key   string
	index int
}

// readers are readers that have served a request: their path and text keep their room.
var readers = sync.Pool{New: func() any { return &reader{path: make([]step, 0, 8)} }}

// mostText is the room for text in bytes that a reader keeps for the next request.
const mostText = 2 * ShortBlob

var (
	buffers     = sync.Pool{New: func() any { b := make([]byte, bufferSize); return &b }}
	wideBuffers = sync.Pool{New: func() any { b := make([]byte, wideSize); return &b }}
	hugeBuffers = sync.Pool{New: func() any { b := make([]byte, hugeSize); return &b }}
	hugeInUse   atomic.Int32
)

// readJSON binds the one JSON value of src to the value that v points to. An empty text
// leaves v as it is and reports false: clients send no body instead of {}.
func readJSON(src io.Reader, v any, docs documents) (present bool, err error) {
	target := reflect.ValueOf(v).Elem()
	code := binderOf(target.Type())
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	r := readers.Get().(*reader)
	r.src, r.buf, r.held, r.docs = src, *buf, maxHeld, docs
	defer r.free()
	if err := r.byteOrderMark(); err != nil {
		return false, err
	}
	if _, err := r.token(); err != nil {
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		return false, err
	}
	if err := code.orNull(r, target); err != nil {
		if errors.Is(err, io.EOF) {
			err = r.broken("ends too early")
		}
		return true, err
	}
	switch _, err := r.token(); {
	case err == nil:
		return true, r.broken("goes on after its value")
	case !errors.Is(err, io.EOF):
		return true, err
	}
	return true, nil
}

// ReadJSON binds the JSON value in a text that a request holds to the value that v points to, as
// bodies are bound. The fault is invalid_parameters.
func ReadJSON(text string, v any) error {
	present, err := readJSON(strings.NewReader(text), v, nil)
	if err == nil && !present {
		err = fault.New(fault.InvalidParameters, "the request body is missing: send a JSON value")
	}
	return err
}

// fill reads more. The error is io.EOF at the end, otherwise the error of the stream.
func (r *reader) fill() error {
	r.off += int64(r.w)
	r.r, r.w = 0, 0
	return r.more()
}

// fillBehind moves what is unread to the beginning of the buffer and reads more behind it. It
// reports false if that fails: the next read returns the error again.
func (r *reader) fillBehind() bool {
	r.off += int64(r.r)
	r.r, r.w = 0, copy(r.buf, r.buf[r.r:r.w])
	return r.w < len(r.buf) && r.more() == nil
}

// more reads into the free end of the buffer.
func (r *reader) more() error {
	for range 100 {
		n, err := r.src.Read(r.buf[r.w:])
		if n > 0 {
			r.w += n // the next read returns the error again
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// widen enlarges the buffer while a document comes in, by its length so far. Each read
// wakes the sender, and its next packets wake threads of this process that wait for the
// network. With few large reads a gigabyte takes a fifth less processor time than with many
// small ones.
func (r *reader) widen() {
	switch {
	case r.wide == nil:
		r.use(wideBuffers.Get().(*[]byte))
	case !r.huge && r.off >= hugeFrom && r.r == r.w:
		if hugeInUse.Add(1) > hugeMost {
			hugeInUse.Add(-1)
			return
		}
		wideBuffers.Put(r.wide)
		r.use(hugeBuffers.Get().(*[]byte))
		r.huge = true
	}
}

// use moves unread bytes to a larger buffer.
func (r *reader) use(larger *[]byte) {
	r.off += int64(r.r)
	r.r, r.w = 0, copy(*larger, r.buf[r.r:r.w])
	r.wide, r.buf = larger, *larger
}

// narrow gives the buffer of widen back. The reader must not be used afterwards.
func (r *reader) narrow() {
	switch {
	case r.huge:
		hugeBuffers.Put(r.wide)
		hugeInUse.Add(-1)
	case r.wide != nil:
		wideBuffers.Put(r.wide)
	}
	r.buf, r.wide, r.huge = nil, nil, false
}

// free ends the use of the reader, which another request gets then.
func (r *reader) free() {
	r.narrow()
	path, text := r.path[:0], r.text[:0]
	clear(path[:cap(path)]) // refers to no keys of this request
	if cap(text) > mostText {
		text = nil
	}
	*r = reader{path: path, text: text}
	readers.Put(r)
}

func (r *reader) peek() (byte, error) {
	if r.r == r.w {
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
	return r.buf[r.r], nil
}

func (r *reader) next() (byte, error) {
	c, err := r.peek()
	if err == nil {
		r.r++
	}
	return c, err
}

// token skips white space and returns the next byte without reading it.
func (r *reader) token() (byte, error) {
	for {
		c, err := r.peek()
		if err != nil {
			return 0, err
		}
		if c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c, nil
		}
		r.r++
	}
}

func (r *reader) byteOrderMark() error {
	if c, err := r.peek(); err != nil || c != 0xEF {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	r.r++
	err := r.literal("\xBB\xBF")
	if errors.Is(err, io.EOF) {
		return r.broken("ends too early")
	}
	return err
}

// literal reads exactly s.
func (r *reader) literal(s string) error {
	for i := range len(s) {
		c, err := r.next()
		if err != nil {
			return err
		}
		if c != s[i] {
			r.r--
			return r.unexpected()
		}
	}
	return nil
}

// broken returns the fault of a text that is not JSON. It never quotes the text.
func (r *reader) broken(what string) error {
	return fault.Newf(fault.InvalidParameters, "the request body is not valid JSON: it %s (byte %d)", what, r.off+int64(r.r))
}

func (r *reader) unexpected() error { return r.broken("has an unexpected character") }

// wrong returns the fault of a JSON value of another type than the interface has there.
func (r *reader) wrong(must string) error {
	return fault.Newf(fault.InvalidParameters, "%s must be %s", r.where(), must)
}

// where returns the name of the value being read, such as Signature.Parameters.Hash.
func (r *reader) where() string {
	switch {
	case len(r.path) == 0:
		return "the request body"
	case len(r.path) == 1 && r.path[0].index < 0:
		return clip(r.path[0].key)
	}
	var room [128]byte // most names fit
	b := room[:0]
	for _, s := range r.path {
		switch {
		case s.index >= 0:
			b = append(strconv.AppendInt(append(b, '['), int64(s.index), 10), ']')
		case len(b) > 0:
			b = append(append(b, '.'), clip(s.key)...)
		default:
			b = append(b, clip(s.key)...)
		}
	}
	return string(b)
}

// clip returns a key of a client for a message, short and printable.
func clip(s string) string {
	const most = 64
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7F {
			return -1
		}
		return c
	}, s)
	if n := 0; len(s) > most {
		for i := range s {
			if i > most {
				break
			}
			n = i
		}
		return s[:n] + "..."
	}
	return s
}

// keep charges n bytes to the budget of values in memory.
func (r *reader) keep(n int) error {
	if r.held -= n; r.held < 0 {
		return fault.Newf(fault.TooLarge, "the request holds more than %d bytes besides its documents", maxHeld)
	}
	return nil
}

// object calls member for every key of an object, with the reader before its value. The
// name is valid until the reader moves on. It is cut at maxName, and long reports that it
// was.
func (r *reader) object(member func(name []byte, long bool) error) error {
	if err := r.enter('{'); err != nil {
		return err
	}
	for first := true; ; first = false {
		c, err := r.token()
		if err != nil {
			return err
		}
		if c == '}' && first {
			break
		}
		if !first {
			if c == '}' {
				break
			}
			if c != ',' {
				return r.unexpected()
			}
			r.r++
			if c, err = r.token(); err != nil {
				return err
			}
		}
		if c != '"' {
			return r.unexpected()
		}
		r.r++
		long, err := r.str(maxName)
		if err != nil {
			return err
		}
		if c, err = r.token(); err != nil {
			return err
		}
		if c != ':' {
			return r.unexpected()
		}
		r.r++
		if _, err := r.token(); err != nil {
			return err
		}
		if err := member(r.text, long); err != nil {
			return err
		}
	}
	r.r++
	r.depth--
	return nil
}

// array calls element for every element of an array, with the reader before it.
func (r *reader) array(element func(i int) error) error {
	if err := r.enter('['); err != nil {
		return err
	}
	for i := 0; ; i++ {
		c, err := r.token()
		if err != nil {
			return err
		}
		if c == ']' && i == 0 {
			break
		}
		if i > 0 {
			if c == ']' {
				break
			}
			if c != ',' {
				return r.unexpected()
			}
			r.r++
			if _, err = r.token(); err != nil {
				return err
			}
		}
		if err := element(i); err != nil {
			return err
		}
	}
	r.r++
	r.depth--
	return nil
}

func (r *reader) enter(open byte) error {
	if c, err := r.token(); err != nil {
		return err
	} else if c != open {
		return r.unexpected()
	}
	r.r++
	if r.depth++; r.depth > maxDepth {
		return fault.Newf(fault.InvalidParameters, "the request body nests deeper than %d levels", maxDepth)
	}
	return nil
}

// skip reads and drops one value of any kind.
func (r *reader) skip() error {
	c, err := r.token()
	if err != nil {
		return err
	}
	switch {
	case c == '"':
		r.r++
		_, err := r.str(0)
		return err
	case c == '{':
		return r.object(func([]byte, bool) error { return r.skip() })
	case c == '[':
		return r.array(func(int) error { return r.skip() })
	case c == 't':
		return r.literal("true")
	case c == 'f':
		return r.literal("false")
	case c == 'n':
		return r.literal("null")
	}
	return r.number(0)
}

// plain marks the bytes of a string that need no unescaping.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return t
}()

// str reads a string into r.text. Its opening quote has been read. Bytes beyond most are
// checked and dropped, and long reports that there were some.
func (r *reader) str(most int) (long bool, err error) {
	r.text, r.most, r.long = r.text[:0], most, false
	for {
		if r.r == r.w {
			if err := r.fill(); err != nil {
				return false, err
			}
		}
		run := r.buf[r.r:r.w]
		n := 0
		for n < len(run) && plain[run[n]] {
			n++
		}
		r.add(run[:n])
		r.r += n
		if n == len(run) {
			continue
		}
		switch run[n] {
		case '"':
			r.r++
			if !utf8.Valid(r.text) {
				r.text = []byte(string([]rune(string(r.text))))
			}
			return r.long, nil
		case '\\':
			r.r++
			if err := r.escape(r.add); err != nil {
				return false, err
			}
		default:
			return false, r.broken("has a control character in a string")
		}
	}
}

// add appends a piece of a string. It never fails.
func (r *reader) add(p []byte) error {
	if room := r.most - len(r.text); len(p) > room {
		p, r.long = p[:room], true
	}
	r.text = append(r.text, p...)
	return nil
}

// escape reads the rest of an escape, after its backslash, and puts its character as UTF-8.
// After a high surrogate it also reads the next escape.
func (r *reader) escape(put func([]byte) error) error {
	c, err := r.next()
	if err != nil {
		return err
	}
	if c != 'u' {
		c, ok := unescape(c)
		if !ok {
			r.r--
			return r.broken("has an unknown escape in a string")
		}
		r.utf[0] = c
		return put(r.utf[:1])
	}
	one, err := r.hex4()
	if err != nil {
		return err
	}
	for utf16.IsSurrogate(one) {
		// Only a high surrogate followed by a low one is a character. A lone one is
		// replaced, and the escape after it counts on its own.
		c, err := r.peek()
		if err != nil {
			return err
		}
		if c != '\\' {
			one = utf8.RuneError
			break
		}
		r.r++
		if c, err = r.peek(); err != nil {
			return err
		}
		if c != 'u' {
			if err := put(utf8.AppendRune(r.utf[:0], utf8.RuneError)); err != nil {
				return err
			}
			return r.escape(put) // reads this escape only
		}
		r.r++
		two, err := r.hex4()
		if err != nil {
			return err
		}
		if both := utf16.DecodeRune(one, two); both != utf8.RuneError {
			one = both
			break
		}
		if err := put(utf8.AppendRune(r.utf[:0], utf8.RuneError)); err != nil {
			return err
		}
		one = two
	}
	return put(utf8.AppendRune(r.utf[:0], one))
}

func unescape(c byte) (byte, bool) {
	switch c {
	case '"', '\\', '/':
		return c, true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	}
	return 0, false
}

func (r *reader) hex4() (rune, error) {
	var v rune
	for range 4 {
		c, err := r.next()
		if err != nil {
			return 0, err
		}
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			r.r--
			return 0, r.broken("has an unknown escape in a string")
		}
		v = v<<4 | rune(c)
	}
	return v, nil
}

// number reads a number of at most most bytes into r.text. With 0 it keeps nothing and
// allows any length.
func (r *reader) number(most int) error {
	r.text = r.text[:0]
	digits := func() error {
		n := 0
		for {
			c, err := r.peek()
			if err != nil && (n == 0 || !errors.Is(err, io.EOF)) {
				return err
			}
			if err != nil || c < '0' || c > '9' {
				break
			}
			if err := r.numeral(most); err != nil {
				return err
			}
			n++
		}
		if n == 0 {
			return r.unexpected()
		}
		return nil
	}
	optional := func(set string) (bool, error) {
		c, err := r.peek()
		if errors.Is(err, io.EOF) {
			return false, nil // a number may end the text
		}
		if err != nil || strings.IndexByte(set, c) < 0 {
			return false, err
		}
		return true, r.numeral(most)
	}

	if _, err := optional("-"); err != nil {
		return err
	}
	if zero, err := optional("0"); err != nil {
		return err
	} else if !zero {
		if err := digits(); err != nil {
			return err
		}
	}
	if point, err := optional("."); err != nil {
		return err
	} else if point {
		if err := digits(); err != nil {
			return err
		}
	}
	if e, err := optional("eE"); err != nil {
		return err
	} else if e {
		if _, err := optional("+-"); err != nil {
			return err
		}
		return digits()
	}
	return nil
}

// numeral consumes one character of a number.
func (r *reader) numeral(most int) error {
	if most > 0 {
		if len(r.text) == most {
			return r.wrong("a number of at most " + strconv.Itoa(most) + " characters")
		}
		r.text = append(r.text, r.buf[r.r])
	}
	r.r++
	return nil
}
