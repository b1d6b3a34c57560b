// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// place is where an object is.
type place struct {
	kind placeKind
	at   int64 // inFile: offset; inStream: number of the object stream
	gen  int   // inFile: generation; inStream: index in the object stream
}

type placeKind uint8

const (
	absent placeKind = iota // no section has an entry for it
	free
	inFile
	inStream
)

// section is one cross-reference section (ISO 32000-1, 7.5.4 and 7.5.8).
type section struct {
	at      int64 // offset of the section; -1 for one made by a pass over the file
	stream  bool
	hybrid  bool // the stream that a table refers to with XRefStm
	trailer dict
	subs    []subsection // ordered by first number
	tangled bool         // subsections overlap
	// low and high bound the object numbers of the section, [low, high).
	low, high int
}

// subsection is the entries for count objects from first on, in one of three forms.
type subsection struct {
	first, count int
	table        int64   // offset of entries of 20 bytes, if list and data are nil
	list         []place // of a table with irregular entries
	data         []byte  // of a stream, with fields of these widths
	widths       [3]int
}

const entrySize = 20

// find returns the entry of a section for an object.
func (s *section) find(f *file, num int) place {
	if num < s.low || num >= s.high {
		return place{} // most later sections have few objects
	}
	f.charge(4)
	if s.tangled {
		f.charge(int64(len(s.subs)))
		for i := range s.subs {
			if p := s.subs[i].find(f, num); p.kind != absent {
				return p
			}
		}
		return place{}
	}
	i, found := slices.BinarySearchFunc(s.subs, num, func(b subsection, num int) int { return b.first - num })
	if !found {
		i--
	}
	if i < 0 {
		return place{}
	}
	return s.subs[i].find(f, num)
}

func (b *subsection) find(f *file, num int) place {
	i := num - b.first
	if i < 0 || i >= b.count {
		return place{}
	}
	if b.list != nil {
		return b.list[i]
	}
	if b.data != nil {
		return b.fields(b.data[i*(b.widths[0]+b.widths[1]+b.widths[2]):])
	}
	var line [entrySize]byte
	if !f.readFull(line[:18], b.table+int64(i)*entrySize) {
		return place{}
	}
	p, ok := readLine(line[:])
	if !ok {
		f.damage(fmt.Errorf("the cross-reference of object %d cannot be read", num))
	}
	return p
}

func (b *subsection) fields(data []byte) place {
	field := func(i int, def int64) int64 {
		w := b.widths[i]
		if w == 0 {
			return def
		}
		var v uint64
		for _, c := range data[:w] {
			v = v<<8 | uint64(c)
		}
		data = data[w:]
		return int64(v)
	}
	kind, at, gen := field(0, 1), field(1, 0), field(2, 0)
	switch {
	case kind == 1 && at >= 0 && gen >= 0 && gen <= 65535:
		return place{inFile, at, int(gen)}
	case kind == 2 && at > 0 && at <= maxNumber && gen >= 0 && gen <= maxNumber:
		return place{inStream, at, int(gen)}
	}
	return place{kind: free}
}

// readLine reads "nnnnnnnnnn ggggg n".
func readLine(b []byte) (place, bool) {
	at, ok1 := digits(b[:10])
	gen, ok2 := digits(b[11:16])
	if !ok1 || !ok2 || b[10] != ' ' || b[16] != ' ' || gen > 65535 {
		return place{}, false
	}
	switch {
	case b[17] == 'n' && at > 0:
		return place{inFile, at, int(gen)}, true
	case b[17] == 'n' || b[17] == 'f': // an object at offset 0 is a free one that some program wrote wrongly
		return place{kind: free}, true
	}
	return place{}, false
}

func digits(b []byte) (n int64, ok bool) {
	for _, c := range b {
		if !isDigit(int(c)) {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// crossReferences reads the sections beginning with the last one, newest first.
func (f *file) crossReferences() error {
	at, err := f.lastSection()
	if err != nil {
		return err
	}
	seen := map[int64]bool{}
	var data int64
	for {
		if seen[at] {
			return fmt.Errorf("the cross-reference sections form a loop at offset %d", at)
		}
		if len(f.sections) >= maxSections {
			return fmt.Errorf("there are more than %d cross-reference sections", maxSections)
		}
		seen[at] = true
		s, err := f.section(at, &data)
		if err != nil {
			return err
		}
		f.sections = append(f.sections, s)
		if x, ok := integer(s.trailer.get("XRefStm")); ok && !s.stream && !seen[x] {
			seen[x] = true
			h, err := f.section(x, &data)
			if err != nil {
				return err
			}
			h.hybrid = true
			f.sections = append(f.sections, h)
		}
		prev := s.trailer.get("Prev")
		if r, ok := prev.(ref); ok { // not in the standard, but such files exist and viewers read them
			prev = intObject(int64(r.num))
		}
		next, ok := integer(prev)
		if !ok {
			break
		}
		at = next
	}
	f.trailer = f.sections[0].trailer
	return nil
}

// lastSection returns the number after the last startxref.
func (f *file) lastSection() (int64, error) {
	// It is in the last few bytes of most files.
	const few = 256
	var tail []byte
	i := -1
	for _, n := range []int64{few, trailerReach} {
		tail = make([]byte, min(f.size, n))
		if !f.readFull(tail, f.size-int64(len(tail))) {
			return 0, f.failed()
		}
		if i = bytes.LastIndex(tail, []byte("startxref")); i >= 0 {
			break
		}
	}
	if i < 0 {
		return 0, errors.New("there is no startxref at the end")
	}
	l := lexBytes(tail[i+len("startxref"):])
	t := l.token()
	at, ok := integer(number(t.bytes))
	if t.kind != tokenNumber || !ok || at <= 0 {
		return 0, errors.New("startxref is not followed by an offset")
	}
	return at, nil
}

// section reads the section at an offset. data counts the bytes of all cross-reference
// streams.
func (f *file) section(at int64, data *int64) (*section, error) {
	if at < 0 || at >= f.size-f.bias {
		return nil, fmt.Errorf("the cross-reference section at offset %d is outside of the file", at)
	}
	l := f.lexer(at)
	t := l.token()
	s := &section{at: at}
	var err error
	switch {
	case t.kind == tokenKeyword && string(t.bytes) == "xref":
		err = f.table(s, l.offset())
	case t.kind == tokenNumber:
		s.stream = true
		err = f.crossStream(s, at, data)
	default:
		err = errors.New("neither a table nor a stream")
	}
	if f.failed() != nil {
		return nil, f.failed()
	}
	if err != nil {
		return nil, fmt.Errorf("the cross-reference section at offset %d: %w", at, err)
	}
	s.sort()
	return s, nil
}

func (s *section) sort() {
	slices.SortStableFunc(s.subs, func(a, b subsection) int { return a.first - b.first })
	if len(s.subs) > 0 {
		s.low = s.subs[0].first
	}
	for i := range s.subs {
		s.high = max(s.high, s.subs[i].first+s.subs[i].count)
	}
	for i := 1; i < len(s.subs); i++ {
		if s.subs[i].first < s.subs[i-1].first+s.subs[i-1].count {
			s.tangled = true
		}
	}
}

// table reads the subsections of a table and its trailer.
func (f *file) table(s *section, from int64) error {
	l := f.lexerFrom(from)
	total := 0
	for {
		t := l.token()
		if t.kind == tokenKeyword && string(t.bytes) == "trailer" {
			break
		}
		first, ok1 := integer(numberOf(t))
		count, ok2 := integer(numberOf(l.token()))
		if !ok1 || !ok2 || first < 0 || count < 0 || first > maxNumber || count > maxEntries || first+count > maxNumber {
			return errors.New("a subsection of the table is malformed")
		}
		if total += int(count); total > maxEntries {
			return errors.New("the table has more entries than the limit")
		}
		if !f.charge(10*priceToken) || !f.keep(128) {
			return f.failed()
		}
		b := subsection{first: int(first), count: int(count)}
		l = f.lexerFrom(l.offset())
		l.skipSpace()
		b.table = l.offset()
		if count > 0 {
			if end, ok := f.regular(&b); ok {
				l = f.lexerFrom(end)
			} else if err := f.irregular(&b, l); err != nil {
				return err
			}
			// The list of free objects begins with object 0. Some programs number it 1 by
			// mistake, and all other objects too. Viewers that believe the numbers fail,
			// so the table is refused here.
			if p, ok := f.lineAt(b.table); b.first == 1 && ok && p.kind == free && len(s.subs) == 0 {
				var line [18]byte
				if f.readFull(line[:], b.table) && string(line[11:16]) == "65535" {
					return errors.New("the table numbers object 0 as 1")
				}
			}
			s.subs = append(s.subs, b)
		}
		if len(s.subs) > maxEntries/8 {
			return errors.New("the table has more subsections than the limit")
		}
	}
	l = f.lexerFrom(l.offset())
	begin := l.offset()
	o, err := l.object()
	f.parsed(l, begin)
	if err != nil {
		return fmt.Errorf("the trailer: %w", err)
	}
	if !f.keep(f.last) {
		return f.failed()
	}
	var ok bool
	if s.trailer, ok = o.(dict); !ok {
		return errors.New("the trailer is not a dictionary")
	}
	return nil
}

func numberOf(t token) object {
	if t.kind != tokenNumber {
		return nil
	}
	return number(t.bytes)
}

func (f *file) lineAt(at int64) (place, bool) {
	var line [18]byte
	if !f.readFull(line[:], at) {
		return place{}, false
	}
	return readLine(line[:])
}

// regular reports whether a subsection has entries of 20 bytes, and returns where it
// ends.
func (f *file) regular(b *subsection) (end int64, ok bool) {
	_, ok1 := f.lineAt(b.table)
	end = b.table + int64(b.count)*entrySize
	if end > f.size {
		return 0, false
	}
	_, ok2 := f.lineAt(end - entrySize)
	if !ok1 || !ok2 {
		return 0, false
	}
	// The last entry may lack bytes of its end of line.
	var last [2]byte
	if !f.readFull(last[:], end-2) {
		return 0, false
	}
	switch {
	case !isSpace(int(last[0])):
		return end - 2, true
	case !isSpace(int(last[1])):
		return end - 1, true
	}
	return end, true
}

// irregular reads entries token by token.
func (f *file) irregular(b *subsection, l *lexer) error {
	if int64(b.count) > (f.size-b.table)/4 { // "0 0 n" at the least
		return errors.New("a subsection of the table is longer than the file")
	}
	if !f.charge(3*priceToken*int64(b.count)) || !f.keep(32*int64(b.count)) {
		return f.failed()
	}
	b.list = make([]place, 0, min(b.count, 1<<16))
	for range b.count {
		l.left = maxTokens
		at, ok1 := integer(numberOf(l.token()))
		gen, ok2 := integer(numberOf(l.token()))
		t := l.token()
		if !ok1 || !ok2 || t.kind != tokenKeyword || at < 0 || gen < 0 {
			return errors.New("an entry of the table is malformed")
		}
		p := place{kind: free}
		if string(t.bytes) == "n" && at > 0 {
			p = place{inFile, at, int(min(gen, 65535))}
		}
		b.list = append(b.list, p)
	}
	return nil
}

// crossStream reads a cross-reference stream.
func (f *file) crossStream(s *section, at int64, total *int64) error {
	_, o, err := f.parseAt(at, 0)
	if err != nil {
		return err
	}
	st, ok := o.(*stream)
	if !ok || st.dict.get("Type") != name("XRef") {
		return errors.New("neither a table nor a stream")
	}
	if !f.keep(f.last) { // the dictionary is the trailer
		return f.failed()
	}
	st.id = ref{} // never encrypted
	var widths [3]int
	w, _ := st.dict.get("W").(array)
	if len(w) < 3 {
		return errors.New("the entry W is malformed")
	}
	entrySize := 0
	for i := range widths {
		v, ok := integer(w[i])
		if !ok || v < 0 || v > 8 {
			return errors.New("the entry W is malformed")
		}
		widths[i] = int(v)
		entrySize += int(v)
	}
	if entrySize == 0 {
		return errors.New("the entry W is malformed")
	}
	size, _ := integer(st.dict.get("Size"))
	index, ok := st.dict.get("Index").(array)
	if !ok {
		index = array{number("0"), intObject(size)}
	}
	var counted int64 // entries that Index has: more data is not read
	for i := 1; i < len(index); i += 2 {
		count, _ := integer(index[i])
		counted = min(counted+max(count, 0), maxEntries)
	}
	data, err := f.beginning(st, int64(entrySize)*counted)
	if err != nil {
		return err
	}
	if *total += int64(len(data)); *total > maxCrossData {
		return errors.New("the cross-references are larger than the limit")
	}
	for i := 0; i+1 < len(index); i += 2 {
		if !f.charge(10*priceToken) || !f.keep(128) {
			return f.failed()
		}
		first, ok1 := integer(index[i])
		count, ok2 := integer(index[i+1])
		if !ok1 || !ok2 || first < 0 || count < 0 || first > maxNumber {
			return errors.New("the entry Index is malformed")
		}
		// Objects without data in the stream do not exist, whatever Index and Size say.
		count = min(count, int64(len(data)/entrySize), maxNumber-first)
		if count == 0 {
			continue
		}
		n := int(count) * entrySize
		s.subs = append(s.subs, subsection{first: int(first), count: int(count), data: data[:n:n], widths: widths})
		data = data[n:]
	}
	s.trailer = st.dict
	return nil
}

// find returns where an object is. An object that a table calls free may be in the stream
// of the same section: hybrid files hide objects from old viewers in this way.
func (f *file) find(num int) place {
	f.charge(int64(1 + len(f.sections)/4))
	for i, s := range f.sections {
		p := s.find(f, num)
		if p.kind == free && i+1 < len(f.sections) && f.sections[i+1].hybrid {
			if q := f.sections[i+1].find(f, num); q.kind != absent {
				return q
			}
		}
		if p.kind != absent {
			return p
		}
	}
	return place{}
}

// highest returns the largest object number of all sections.
func (f *file) highest() int {
	n := 0
	for _, s := range f.sections {
		for i := range s.subs {
			n = max(n, s.subs[i].first+s.subs[i].count-1)
		}
	}
	return n
}
