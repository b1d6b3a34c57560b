// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// found is an object found by a pass over the file.
type found struct {
	num   int
	place place
	order int64 // of two definitions, the one with the higher order counts
}

// scan is a pass over a file with broken cross-references.
type scan struct {
	file     *file
	found    []found
	trailers []dict
	sizes    []int64 // of trailers, charged as held
	lists    []found // object streams
	catalog  ref     // the last one found
	lexing   int64   // bytes of objects that may still be parsed
	referred int     // the highest number that anything refers to, even if that object is missing
}

const (
	scanChunk   = 1 << 20
	scanOverlap = 64       // longer than "nnnnnnnnnn ggggg obj"
	scanLook    = 64 << 10 // bytes of one object that are parsed
	maxTrailers = 64
)

// rebuild finds the objects of a document by a pass over the whole file, as viewers do.
// cause is why the cross-references cannot be used.
func (f *file) rebuild(password []byte, cause error) (*file, error) {
	broken := func(why error) error {
		if err := f.failed(); err != nil {
			return err
		}
		return fmt.Errorf("%w; searching for the objects themselves: %w", cause, why)
	}
	s := &scan{file: f, lexing: 4*f.size + scanChunk}
	if err := s.run(); err != nil {
		return nil, broken(err)
	}
	if len(s.found) == 0 {
		return nil, broken(errors.New("there are none"))
	}
	if s.catalog.num != 0 { // if no trailer leads to a catalog
		s.trailers = append([]dict{{{"Root", s.catalog}}}, s.trailers...)
	}
	why := errors.New("no trailer leads to a catalog")
	for i := len(s.trailers) - 1; i >= 0; i-- {
		if s.trailers[i].get("Root") == nil {
			continue
		}
		g, err := s.attempt(s.completed(i), password)
		if err == nil {
			return g, nil
		}
		why = err
		if f.failed() != nil || errors.As(err, new(*refusal)) || errors.Is(err, errPassword) {
			return nil, err
		}
	}
	return nil, broken(why)
}

// completed returns a trailer, with missing entries taken from the others.
func (s *scan) completed(i int) dict {
	var t dict
	for _, key := range []name{"Root", "Info", "ID", "Encrypt", "Size"} {
		v := s.trailers[i].get(key)
		for j := len(s.trailers) - 1; j >= 0 && v == nil; j-- {
			v = s.trailers[j].get(key)
		}
		if v != nil {
			t = append(t, entry{key, v})
		}
	}
	return t
}

// attempt reads the document by the objects found and one trailer.
func (s *scan) attempt(trailer dict, password []byte) (*file, error) {
	f := newFile(s.file.ctx, s.file.src, s.file.size)
	f.bias, f.version, f.rebuilt, f.trailer = s.file.bias, s.file.version, true, trailer
	f.referred = s.referred
	all := slices.Clone(s.found)
	f.sections = []*section{sectionOf(all)}
	if e := trailer.get("Encrypt"); e != nil {
		if err := f.decryption(e, password); err != nil {
			return nil, err
		}
	}
	for _, list := range s.lists {
		if f.find(list.num) != list.place {
			continue // defined again later
		}
		objects, err := f.objectStream(list.num)
		if err != nil {
			continue // its objects are lost, as in a viewer
		}
		for i, num := range objects.numbers {
			if num > 0 && num != list.num && len(all) < maxFound && f.charge(20*priceToken) && f.keep(3*48) {
				all = append(all, found{num, place{inStream, int64(list.num), i}, list.order})
			}
		}
	}
	f.sections = []*section{sectionOf(all)}
	f.damaged = nil
	f.forget()
	if err := f.usable(password); err != nil {
		return nil, err
	}
	_, root := f.catalog()
	kids, _ := f.resolve(f.resolveDict(root.get("Pages")).get("Kids")).(array)
	if _, err := f.page(0); err != nil && len(kids) > 0 {
		return nil, errors.New("the pages are missing")
	}
	if last := s.found[len(s.found)-1]; !f.ends(last.place) {
		f.cut = ref{last.num, last.place.gen}
	}
	f.damaged = nil
	return f, nil
}

// ends reports whether the object at a place is complete. A value or a stream that the
// end of the file cuts off is not.
func (f *file) ends(p place) bool {
	l := f.lexer(p.at)
	id, err := l.header()
	if err != nil {
		return false
	}
	o, err := f.body(l, id)
	if err != nil || l.unclosed {
		return false
	}
	if s, ok := o.(*stream); ok {
		n, ok := f.lengthOf(s)
		if !ok || !f.endsStream(s.offset, n) {
			if n, ok = f.searchEnd(s.offset); !ok {
				return false
			}
		}
		l = f.lexerFrom(s.offset + n)
		t := l.token()
		if word := bytes.TrimPrefix(t.bytes, []byte("endstream")); len(word) > 0 {
			return endsObject(word) // endstreamendobj, or endstream is forgotten
		}
	} else { // go back to before the word at which body stopped
		l = f.lexer(p.at)
		l.header()
		from := l.offset()
		if t := l.token(); t.kind != tokenKeyword || !endsObject(t.bytes) { // 12 0 obj endobj has no value
			l.seek(from)
			l.object()
		} else {
			l.seek(from)
		}
	}
	t := l.token()
	return t.kind == tokenKeyword && endsObject(t.bytes)
}

// sectionOf makes a section of the objects found.
func sectionOf(all []found) *section {
	slices.SortStableFunc(all, func(a, b found) int {
		if a.num != b.num {
			return a.num - b.num
		}
		return int(min(1, max(-1, a.order-b.order)))
	})
	s := &section{at: -1}
	for i, x := range all {
		if i+1 < len(all) && all[i+1].num == x.num {
			continue
		}
		last := len(s.subs) - 1
		if last < 0 || s.subs[last].first+s.subs[last].count != x.num {
			s.subs = append(s.subs, subsection{first: x.num})
			last++
		}
		s.subs[last].list = append(s.subs[last].list, x.place)
		s.subs[last].count++
	}
	s.sort()
	return s
}

// run makes the pass over the file.
func (s *scan) run() error {
	f := s.file
	buf := make([]byte, scanChunk+scanOverlap)
	for at := int64(0); at < f.size; {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		b := buf[:min(int64(len(buf)), f.size-at)]
		if n, err := f.src.ReadAt(b, at); n < len(b) {
			f.broken = readFailed(err, at)
			return f.broken
		}
		if !f.charge(int64(len(b))) {
			return f.failed()
		}
		s.references(b)
		next, err := s.chunk(b, at)
		if err != nil {
			return err
		}
		at = next
	}
	return nil
}

// references records the highest number in anything that looks like a reference. A
// missing object may still be referred to, and a new object must not get its number: half
// a document would otherwise show a signature in the place of a page.
func (s *scan) references(b []byte) {
	for i := 0; ; i++ {
		n := bytes.IndexByte(b[i:], 'R')
		if n < 0 {
			return
		}
		i += n
		_, rest, ok := numberBefore(b, i)
		if !ok {
			continue
		}
		if num, _, ok := numberBefore(b, rest); ok && num <= maxEntries {
			s.referred = max(s.referred, num)
		}
	}
}

// numberBefore reads the digits before i, which one space follows.
func numberBefore(b []byte, i int) (n, start int, ok bool) {
	if i == 0 || b[i-1] != ' ' {
		return 0, 0, false
	}
	i--
	end := i
	for i > 0 && end-i < 8 && b[i-1] >= '0' && b[i-1] <= '9' {
		i--
	}
	for _, c := range b[i:end] {
		n = n*10 + int(c-'0')
	}
	return n, i, i < end
}

// chunk searches for objects and trailers in b, which begins at the offset at, and
// returns where to continue. Those that begin in the overlap at the end are left to the
// next chunk.
func (s *scan) chunk(b []byte, at int64) (int64, error) {
	limit := len(b)
	if limit > scanChunk {
		limit = scanChunk
	}
	i := 0
	objects, trailers := words{word: "obj"}, words{word: "trailer"}
	for i < limit {
		i = min(objects.next(b, i), trailers.next(b, i))
		if i == len(b) {
			break
		}
		if b[i] == 't' {
			if i >= limit {
				return at + int64(limit), nil
			}
			i += len("trailer")
			s.trailer(b[i:], at+int64(i))
			continue
		}
		from, id, ok := headerBefore(b, i)
		if ok && from >= limit {
			return at + int64(limit), nil
		}
		if i += len("obj"); !ok {
			continue
		}
		if len(s.found) >= maxFound {
			return 0, fmt.Errorf("there are more than %d objects", maxFound)
		}
		end := s.look(b[i:], at+int64(from), at+int64(i), id)
		if end >= at+int64(len(b)) {
			return end, nil
		}
		i = max(i, int(end-at))
	}
	return at + int64(max(i, limit)), nil
}

// words finds the next place of a word. It examines each byte once.
type words struct {
	word string
	at   int // offset of the word found last
	any  bool
}

// next returns the next place of the word from i on, or the end of b.
func (w *words) next(b []byte, i int) int {
	if !w.any || w.at < i {
		w.any, w.at = true, len(b)
		if j := bytes.Index(b[min(i, len(b)):], []byte(w.word)); j >= 0 {
			w.at = i + j
		}
	}
	return w.at
}

// headerBefore reads "12 0 " backwards from the "obj" at i.
func headerBefore(b []byte, i int) (from int, id ref, ok bool) {
	back := func(is func(int) bool, most int) (n int) {
		for n < most && i > 0 && is(int(b[i-1])) {
			i--
			n++
		}
		return n
	}
	var numbers [2]int64
	for k := 1; k >= 0; k-- {
		if n := back(isSpace, 16); n == 0 && k == 0 {
			return 0, id, false
		}
		end := i
		if back(isDigit, 10) == 0 {
			return 0, id, false
		}
		numbers[k], _ = digits(b[i:end])
	}
	if i > 0 && isDigit(int(b[i-1])) {
		return 0, id, false
	}
	id, ok = reference(intObject(numbers[0]), intObject(numbers[1]))
	return i, id, ok
}

// look records an object and returns the offset after it. Streams are skipped, so that a
// document inside a stream is not mistaken for this one. b is the available data from the
// offset behind on.
func (s *scan) look(b []byte, from, behind int64, id ref) int64 {
	f := s.file
	x := found{id.num, place{inFile, from - f.bias, id.gen}, from}
	if x.place.at <= 0 {
		return behind
	}
	// Memory and time to find it, to sort it, and to keep it in its section.
	if !f.charge(20*priceToken) || !f.keep(3*48) {
		return behind
	}
	s.found = append(s.found, x)
	if s.lexing <= 0 {
		return behind
	}
	l := s.lexer(b, behind)
	o, err := f.body(l, id)
	s.lexing -= l.offset() - behind + 256
	if err != nil {
		return behind
	}
	d, _ := o.(dict)
	st, isStream := o.(*stream)
	if isStream {
		d = st.dict
	}
	switch d.get("Type") {
	case name("Catalog"):
		s.catalog = id
	case name("XRef"):
		if isStream {
			s.addTrailer(d)
		}
	case name("ObjStm"):
		if isStream {
			s.lists = append(s.lists, x)
		}
	}
	if isStream {
		if n, ok := integer(st.dict.get("Length")); ok && n >= 0 && n < f.size-st.offset && f.endsStream(st.offset, n) {
			return st.offset + n
		}
	}
	return behind
}

// lexer reads a limited number of bytes from an offset, at which b begins.
func (s *scan) lexer(b []byte, off int64) *lexer {
	l := lexAt(s.file, off, min(s.file.size, off+scanLook))
	l.spending = s.file.spending
	b = b[:min(len(b), scanLook)]
	l.buf, l.borrowed = b[:len(b):len(b)], true
	return l
}

func (s *scan) trailer(b []byte, off int64) {
	l := s.lexer(b, off)
	o, err := l.object()
	s.file.parsed(l, off)
	if d, ok := o.(dict); ok && err == nil {
		s.addTrailer(d)
	}
}

func (s *scan) addTrailer(d dict) {
	size := s.file.last
	if !s.file.keep(size) {
		return
	}
	if len(s.trailers) == maxTrailers {
		s.file.spending.Release(s.sizes[0])
		s.trailers, s.sizes = append(s.trailers[:0], s.trailers[1:]...), append(s.sizes[:0], s.sizes[1:]...)
	}
	s.trailers, s.sizes = append(s.trailers, d), append(s.sizes, size)
}
