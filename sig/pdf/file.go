// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"tamga/sig/budget"
)

// file is an open document. Its methods must be called from one goroutine.
type file struct {
	ctx  context.Context
	src  io.ReaderAt
	size int64
	bias int64 // bytes before the header; offsets in the file are counted from the header

	blocks   map[int64][]byte // the window of src
	recent   []int64          // offsets of the blocks, oldest first
	pooled   []*[blockSize]byte
	broken   error      // read error of src
	damaged  error      // first error of the structure
	sections []*section // newest first
	trailer  dict
	rebuilt  bool
	// Only after a rebuild: the highest number that anything refers to, and the last
	// object of the file if the file ends inside it.
	referred int
	cut      ref
	crypt    *crypt
	version  string

	objects map[int]cached      // cache of objects
	streams map[int]*objectList // cache of object streams
	held    int64               // bytes of cached object streams
	budget  int64               // bytes that may still be decoded
	loading map[int]bool        // objects whose length is being resolved

	// strictFrom is the offset in the source from which the strict reader of later revisions
	// reads the objects, 0 for none.
	strictFrom int64
	// strictFault is the first error of the strict reader.
	strictFault error

	spending *budget.Budget // of the document
	due      int64          // steps not charged yet
	cached   int64          // bytes of objects
	last     int64          // bytes of the object read last
}

// cached is an object in the cache.
type cached struct {
	object object
	size   int64 // bytes, charged as held
}

const (
	blockSize  = 16 << 10
	maxBlocks  = 64
	maxObjects = 1024     // cached objects
	maxHeld    = 16 << 20 // bytes of cached object streams
)

// errNotPDF means that a document is of another kind.
var errNotPDF = errors.New("there is no PDF header in its first kilobyte")

// open reads the cross-references of a document, or searches for its objects if they are
// broken. password opens an encrypted document; an empty one is tried first.
func open(ctx context.Context, src io.ReaderAt, size int64, password []byte) (*file, error) {
	f := newFile(ctx, src, size)
	head := make([]byte, min(size, headerReach))
	if !f.readFull(head, 0) {
		return nil, f.failed()
	}
	at, version, ok := findHeader(head)
	if !ok {
		return nil, errNotPDF
	}
	f.bias, f.version = int64(at), version
	err := f.crossReferences()
	if err == nil {
		err = f.usable(password)
	}
	if err == nil || f.failed() != nil || errors.As(err, new(*refusal)) {
		return f, errors.Join(err, f.failed())
	}
	return f.rebuild(password, err)
}

func newFile(ctx context.Context, src io.ReaderAt, size int64) *file {
	_, b := budget.Of(ctx, size)
	return &file{
		ctx: ctx, src: src, size: size, version: "1.4", spending: b,
		blocks: map[int64][]byte{}, objects: map[int]cached{}, streams: map[int]*objectList{}, loading: map[int]bool{},
		budget: inflateFloor + 2*min(size, 1<<40),
	}
}

// refusal is an error that searching for the objects cannot correct.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

func refuse(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// versionOf parses a version such as "1.7". The default is "1.4".
func versionOf(b []byte) string {
	if len(b) >= 3 && isDigit(int(b[0])) && b[1] == '.' && isDigit(int(b[2])) {
		return string(b[:3])
	}
	return "1.4"
}

// usable prepares decryption and checks that the document has a catalog and pages.
func (f *file) usable(password []byte) error {
	if e := f.trailer.get("Encrypt"); e != nil {
		if err := f.decryption(e, password); err != nil {
			return err
		}
	}
	root, ok := f.resolve(f.trailer.get("Root")).(dict)
	switch {
	case f.damaged != nil:
		return f.damaged
	case !ok:
		return errors.New("the trailer leads to no catalog")
	case f.resolveDict(root.get("Pages")) == nil:
		return errors.New("the catalog leads to no pages")
	}
	return f.damaged
}

// failed returns the error of the source, of the budget or of the context.
func (f *file) failed() error {
	if f.broken != nil {
		return f.broken
	}
	return f.spending.Err()
}

// damage records the first error of the structure.
func (f *file) damage(err error) {
	if f.damaged == nil {
		f.damaged = err
	}
}

// ReadAt implements io.ReaderAt with the window.
func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	if !f.charge(2 + int64(len(p))/32) {
		return 0, f.failed()
	}
	for n < len(p) {
		at := (off + int64(n)) / blockSize * blockSize
		b, err := f.block(at)
		if err != nil {
			return n, err
		}
		from := off + int64(n) - at
		if from >= int64(len(b)) {
			return n, io.EOF
		}
		n += copy(p[n:], b[from:])
	}
	return n, nil
}

func (f *file) block(at int64) ([]byte, error) {
	if b, ok := f.blocks[at]; ok {
		return b, nil
	}
	if err := f.failed(); err != nil {
		return nil, err
	}
	if at < 0 || at >= f.size {
		return nil, io.EOF
	}
	f.charge(blockSize / 16)
	pooled := blocks.Get().(*[blockSize]byte)
	f.pooled = append(f.pooled, pooled)
	b := pooled[:min(blockSize, f.size-at)]
	n, err := f.src.ReadAt(b, at)
	if n < len(b) {
		f.broken = readFailed(err, at)
		return nil, f.broken
	}
	if len(f.recent) == maxBlocks {
		// A lexer may still use this block, so it is not used again.
		delete(f.blocks, f.recent[0])
		f.recent = append(f.recent[:0], f.recent[1:]...)
		f.pooled = append(f.pooled[:0], f.pooled[1:]...)
	}
	f.blocks[at], f.recent = b, append(f.recent, at)
	return b, nil
}

// blocks is the memory of the windows of closed files.
var blocks = sync.Pool{New: func() any { return new([blockSize]byte) }}

// close gives the memory of the window to other files. Objects do not share memory with it, but
// lexers do: none may be in use.
func (f *file) close() {
	for _, b := range f.pooled {
		blocks.Put(b)
	}
	clear(f.blocks)
	f.pooled, f.recent = nil, f.recent[:0]
}

// readError is a failure of the source. It is not an error of the document.
type readError struct {
	at  int64
	err error
}

func readFailed(err error, at int64) error {
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return &readError{at, err}
}

// Error returns "document: reading at offset: cause".
func (e *readError) Error() string {
	return fmt.Sprintf("document: reading at offset %d: %v", e.at, e.err)
}

// Unwrap returns the cause.
func (e *readError) Unwrap() error { return e.err }

// readFull fills p from an offset of the source. It returns false if the source is too
// short or cannot be read.
func (f *file) readFull(p []byte, off int64) bool {
	if off < 0 || off > f.size-int64(len(p)) {
		return false
	}
	n, _ := f.ReadAt(p, off)
	return n == len(p)
}

// lexer reads from an offset of the file, counted from its header.
func (f *file) lexer(at int64) *lexer { return f.lexerFrom(at + f.bias) }

// lexerFrom reads from an offset of the source.
func (f *file) lexerFrom(off int64) *lexer {
	l := lexAt(f, off, min(f.size, off+maxObject))
	l.spending = f.spending
	// Most objects end in the block in which they begin, and the window has that block.
	at := off / blockSize * blockSize
	if b, err := f.block(at); err == nil && off-at < int64(len(b)) {
		b = b[off-at : min(int64(len(b)), l.end-at)]
		l.buf, l.borrowed = b[:len(b):len(b)], true
	}
	return l
}

// parseAt reads the indirect object at an offset. want is its number, or 0 for any.
func (f *file) parseAt(at int64, want int) (ref, object, error) {
	if at < 0 || at >= f.size-f.bias {
		return ref{}, nil, fmt.Errorf("object %d should be at offset %d, outside of the file", want, at)
	}
	l := f.lexer(at)
	id, err := l.header()
	if err != nil || want != 0 && id.num != want {
		return id, nil, fmt.Errorf("object %d is not at offset %d", want, at)
	}
	o, err := f.body(l, id)
	return id, o, err
}

// header reads "12 0 obj".
func (l *lexer) header() (ref, error) {
	num := numberOf(l.token())
	gen := numberOf(l.token())
	t := l.token()
	id, ok := reference(num, gen)
	if !ok || t.kind != tokenKeyword || string(t.bytes) != "obj" {
		return ref{}, errNoObject
	}
	return id, l.err
}

// body reads an object after its header.
func (f *file) body(l *lexer, id ref) (object, error) {
	l.left = maxTokens
	begin := l.offset()
	o, err := l.object()
	f.parsed(l, begin)
	if err == errNoObject { // 12 0 obj endobj
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("object %d: %w", id.num, err)
	}
	d, ok := o.(dict)
	if !ok {
		return o, nil
	}
	if t := l.token(); t.kind != tokenKeyword || string(t.bytes) != "stream" {
		return d, nil
	}
	switch l.peek() { // 7.3.8.1: CR LF or LF; files with CR alone exist
	case '\r':
		l.pos++
		if l.peek() == '\n' {
			l.pos++
		}
	case '\n':
		l.pos++
	}
	return &stream{dict: d, offset: l.offset(), id: id}, nil
}

// object returns the object with a number, nil if there is none.
func (f *file) object(id ref) object {
	if c, ok := f.objects[id.num]; ok {
		return c.object
	}
	f.last = 0
	o := f.load(id)
	size := f.last
	if len(f.objects) >= maxObjects || f.cached+size > maxHeld {
		f.forget()
	}
	if f.cached += size; !f.keep(size) {
		return nil
	}
	f.objects[id.num] = cached{o, size}
	return o
}

func (f *file) load(id ref) object {
	if !f.charge(priceObject) {
		return nil
	}
	p := f.find(id.num)
	if o, ok := f.loadStrict(id, p); ok {
		return o
	}
	switch p.kind {
	case inFile:
		found, o, err := f.parseAt(p.at, id.num)
		if err == nil && found.gen != p.gen {
			err = fmt.Errorf("object %d at offset %d has another generation than in the cross-references", id.num, p.at)
		}
		if err != nil {
			f.damage(err)
			return nil
		}
		if f.crypt != nil && id.num != f.crypt.own {
			size := f.last // the object is held twice for a moment
			if !f.keep(size) {
				return nil
			}
			o = f.crypt.decryptStrings(o, found)
			f.spending.Release(size)
			f.last = size
		}
		return o
	case inStream:
		list, err := f.objectStream(int(p.at))
		if err != nil {
			f.damage(err)
			return nil
		}
		o, err := list.find(f, id.num, p.gen)
		if err != nil {
			f.damage(err)
		}
		return o
	}
	return nil
}

// resolve follows references to their target.
func (f *file) resolve(o object) object {
	for range maxHops {
		r, ok := o.(ref)
		if !ok {
			return o
		}
		o = f.object(r)
	}
	return nil
}

// resolveDict follows references to a dictionary, or to that of a stream. It returns nil
// for anything else.
func (f *file) resolveDict(o object) dict {
	switch o := f.resolve(o).(type) {
	case dict:
		if o == nil {
			return dict{}
		}
		return o
	case *stream:
		return o.dict
	}
	return nil
}

func (f *file) resolveArray(o object) array {
	a, _ := f.resolve(o).(array)
	return a
}

// data returns the decrypted and decoded bytes of a stream. They are charged as held.
func (f *file) data(s *stream) ([]byte, error) { return f.beginning(s, math.MaxInt64) }

// beginning is like data, but returns at most so many bytes.
func (f *file) beginning(s *stream, want int64) ([]byte, error) {
	raw, err := f.rawData(s)
	if err != nil {
		return nil, err
	}
	size := int64(len(raw))
	defer func() { f.spending.Release(size) }()
	filters := f.resolve(s.dict.get("Filter"))
	parms := s.dict.get("DecodeParms")
	if parms == nil {
		parms = s.dict.get("DP")
	}
	parms = f.resolve(parms)
	if f.crypt != nil && s.id.num != 0 {
		if !f.keep(size) { // of the decrypted bytes
			return nil, f.failed()
		}
		size *= 2
		if raw, err = f.crypt.decryptStream(raw, s, filterList(filters), filterList(parms)); err != nil {
			return nil, err
		}
	}
	if a, ok := parms.(array); ok {
		resolved := make(array, min(len(a), len(filterList(filters))))
		for i := range resolved {
			resolved[i] = f.resolve(a[i])
		}
		parms = resolved
	}
	return f.decode(raw, filters, parms, want)
}

// rawData returns the bytes of a stream as they are in the file. They are charged as held
// until the caller releases them. If the length is wrong, the end is searched for.
func (f *file) rawData(s *stream) ([]byte, error) {
	if s.fresh != nil {
		if !f.keep(int64(len(s.fresh))) {
			return nil, f.failed()
		}
		return s.fresh, nil
	}
	n, ok := f.lengthOf(s)
	if !ok || !f.endsStream(s.offset, n) {
		if n, ok = f.searchEnd(s.offset); !ok {
			return nil, fmt.Errorf("the stream at offset %d has no end", s.offset)
		}
	}
	if n > maxDecoded {
		return nil, fmt.Errorf("the stream at offset %d has %d bytes, more than the limit", s.offset, n)
	}
	if !f.charge(n/8) || !f.keep(n) {
		return nil, f.failed()
	}
	raw := make([]byte, n)
	if !f.readFull(raw, s.offset) {
		f.spending.Release(n)
		return nil, errors.Join(fmt.Errorf("the stream at offset %d is cut off", s.offset), f.failed())
	}
	return raw, nil
}

// lengthOf returns Length, which may be in its own object.
func (f *file) lengthOf(s *stream) (int64, bool) {
	o := s.dict.get("Length")
	if r, ok := o.(ref); ok {
		if f.loading[r.num] {
			return 0, false
		}
		f.loading[r.num] = true
		defer delete(f.loading, r.num)
		o = f.resolve(o)
	}
	n, ok := integer(o)
	return n, ok && n >= 0 && n <= f.size-s.offset
}

// endsStream reports whether endstream follows after n bytes.
func (f *file) endsStream(offset, n int64) bool {
	l := lexAt(f, offset+n, min(f.size, offset+n+64))
	l.left = 1
	t := l.token()
	return t.kind == tokenKeyword && bytes.HasPrefix(t.bytes, []byte("endstream"))
}

// searchEnd searches for endstream, or for endobj if endstream is missing.
func (f *file) searchEnd(offset int64) (int64, bool) {
	f.charge(priceObject)
	const overlap = 16
	buf := make([]byte, blockSize+overlap)
	limit := min(f.size, offset+maxDecoded)
	for at := offset; at < limit; at += blockSize {
		b := buf[:min(int64(len(buf)), f.size-at)]
		if !f.readFull(b, at) {
			return 0, false
		}
		i := bytes.Index(b, []byte("endstream"))
		if i < 0 {
			i = bytes.Index(b, []byte("endobj"))
		}
		if i >= 0 {
			return at + int64(i) - offset, true
		}
	}
	return 0, false
}

// objectList is an object stream (7.5.7).
type objectList struct {
	num     int
	data    []byte
	numbers []int
	offsets []int
}

// objectStream reads the object stream with a number.
func (f *file) objectStream(num int) (*objectList, error) {
	if list, ok := f.streams[num]; ok {
		return list, nil
	}
	p := f.find(num)
	if p.kind != inFile { // an object stream cannot be inside another one
		return nil, fmt.Errorf("object stream %d is not in the file", num)
	}
	id, o, err := f.parseAt(p.at, num)
	if err != nil {
		return nil, err
	}
	s, ok := o.(*stream)
	if !ok || id.gen != p.gen {
		return nil, fmt.Errorf("object %d is not an object stream", num)
	}
	data, err := f.data(s)
	if err != nil {
		return nil, fmt.Errorf("object stream %d: %w", num, err)
	}
	list, err := f.listObjects(num, s.dict, data)
	if err != nil {
		f.spending.Release(int64(len(data)))
		return nil, err
	}
	size := int64(len(data)) + listedSize*int64(len(list.numbers))
	if f.held+size > maxHeld {
		f.forgetStreams()
	}
	f.held += size
	f.streams[num] = list
	return list, nil
}

func (f *file) listObjects(num int, d dict, data []byte) (*objectList, error) {
	first, ok1 := integer(f.resolve(d.get("First")))
	n, ok2 := integer(f.resolve(d.get("N")))
	if !ok1 || !ok2 || first < 0 || first > int64(len(data)) || n < 0 || n > first/2+1 {
		return nil, fmt.Errorf("object stream %d is malformed", num)
	}
	list := &objectList{num: num, data: data}
	l := lexBytes(data[:first])
	for range n {
		l.left = maxTokens
		id, ok1 := integer(numberOf(l.token()))
		at, ok2 := integer(numberOf(l.token()))
		if !ok1 || !ok2 {
			break // the entries so far are used
		}
		if id > maxNumber || at < 0 || at > int64(len(data))-first {
			id, at = 0, 0
		}
		if f.charge(2 * priceToken); !f.keep(listedSize) {
			return nil, f.failed()
		}
		list.numbers = append(list.numbers, int(id))
		list.offsets = append(list.offsets, int(first+at))
	}
	return list, nil
}

// find returns the object with a number, which should be at the index.
func (s *objectList) find(f *file, num, index int) (object, error) {
	if index >= len(s.numbers) || s.numbers[index] != num {
		index = -1
		f.charge(int64(len(s.numbers)) / 4)
		for i, n := range s.numbers {
			if n == num {
				index = i
			}
		}
	}
	if index < 0 {
		return nil, fmt.Errorf("object %d is not in object stream %d", num, s.num)
	}
	l := lexBytes(s.data[s.offsets[index]:])
	l.spending = f.spending
	o, err := l.object()
	f.parsed(l, 0)
	if err == errNoObject {
		return nil, nil
	}
	return o, err
}
