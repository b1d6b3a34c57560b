// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"tamga/sig"
)

// The reader of later revisions. The bytes that follow a signature are read by one strict
// grammar (ISO 32000-1, 7.5.4 to 7.5.8). Programs read malformed or ambiguous bytes in
// different ways, so an attacker who appends them can choose what each program shows.
//
//	later    = revision+ space
//	revision = (space object)* space section space [comment EOL] tail
//	section  = table trailer | object that is a cross-reference stream
//	tail     = "startxref" EOL offset EOL "%%EOF" (EOL | end of the file)
//
// The section of a revision lists each of its objects exactly once, at its offset, with its
// number and generation, and each object of its object streams at its index. It lists nothing
// else. Prev leads to the section directly before it.

// later reads the revisions that follow the signatures of a document.
type later struct {
	file      *file // the whole document, for its bytes and its budget
	read      bool  // tail and end are known, or err
	tail      int64 // the offset after the last startxref
	end       int64 // the end of the last revision in the source
	err       error
	revisions map[int64]*laterRevision // by the offset of the section
	held      int64                    // bytes of the revisions
	searched  bool
	hidden    error // a search would find objects that no section lists
}

// keep charges memory that stays with the revisions.
func (l *later) keep(n int64) bool {
	l.held += n
	return l.file.keep(n)
}

func newLater(f *file) *later { return &later{file: f, revisions: map[int64]*laterRevision{}} }

// laterRevision is one later revision. Its start, first, place and end are offsets in the
// source; at, prev and hybrid are counted from the header.
type laterRevision struct {
	later   *later
	at      int64 // of the section
	prev    int64
	hybrid  int64 // of the stream that XRefStm names, 0 if there is none
	start   int64 // where its objects may begin
	first   int64 // where the first object begins
	place   int64 // where the section begins
	end     int64 // behind the end-of-file marker
	section *section
	list    []laterEntry // ordered by number
	trailer dict
	size    int64 // the entry Size
	own     ref   // the object that is the section, if it is a stream
	checked bool
}

// laterEntry is one entry of a section.
type laterEntry struct {
	num   int
	place place
}

// maxBlank is the number of bytes of white space that may follow the end of the file.
const maxBlank = 64

// after returns the revisions after the bytes that a signature covers, newest first. base is
// the document that these bytes are, end is its size. The error is a *strictError if the
// grammar refuses the bytes.
func (l *later) after(base *file, end int64) ([]*laterRevision, error) {
	f := l.file
	if !l.read {
		l.read = true
		l.tail, l.end, l.err = l.startxref()
		if l.err == nil {
			l.err = l.linearized()
		}
	}
	switch {
	case l.err != nil:
		return nil, l.err
	case base.rebuilt || f.rebuilt:
		return nil, &strictError{-1, "the cross-references are broken"}
	}
	signed := base.sections[0].at
	var list []*laterRevision
	for at := l.tail; at != signed; {
		if !f.charge(64) {
			return nil, f.failed()
		}
		r, known := l.revisions[at]
		switch {
		case at+f.bias < end:
			return nil, &strictError{at + f.bias, "a section leads to an older one than the one that was signed last"}
		case len(list) > 0 && at >= list[len(list)-1].at:
			return nil, &strictError{list[len(list)-1].place, "Prev does not lead back"}
		case len(list) >= maxSections:
			return nil, &strictError{-1, "there are too many revisions"}
		case !known:
			var err error
			if r, err = l.revision(at); err != nil {
				return nil, err
			}
			l.revisions[at] = r
		}
		list = append(list, r)
		at = r.prev
	}
	if len(list) == 0 {
		return nil, &strictError{end, "bytes follow that are not a revision"}
	}
	if list[0].end != l.end {
		return nil, &strictError{list[0].end, "the end of the file is expected"}
	}
	view := &laterView{base: base}
	start := end
	for _, r := range slices.Backward(list) {
		if err := l.check(r, start, view); err != nil {
			return nil, err
		}
		view.newer = append(view.newer, r)
		start = r.end
	}
	return list, nil
}

// startxref reads the end of the file strictly. It returns the offset that startxref names
// and the end of the last revision.
func (l *later) startxref() (at, end int64, err error) {
	f := l.file
	const reach = maxBlank + 48
	tail := make([]byte, min(f.size, reach))
	base := f.size - int64(len(tail))
	if !f.readFull(tail, base) {
		return 0, 0, f.failed()
	}
	rest := bytes.TrimRight(tail, " \t\r\n")
	i := bytes.LastIndex(rest, []byte("startxref"))
	if len(tail)-len(rest) > maxBlank || i <= 0 || !isBlank(int(rest[i-1])) {
		return 0, 0, &strictError{f.size, "the file does not end with startxref, an offset and %%EOF"}
	}
	p := f.strictAt(base+int64(i), f.size)
	at, end, err = p.tail()
	if err == nil && end != base+int64(len(rest)) {
		err = &strictError{end, "only white space may follow the end of the file"}
	}
	return at, end, err
}

// tail reads startxref, an offset, and the end-of-file marker.
func (p *strictReader) tail() (at, end int64, err error) {
	if !p.word("startxref") || !p.endOfLine() {
		return 0, 0, p.fault("the line startxref is expected")
	}
	at, ok := p.digits()
	if !ok || at <= 0 || !p.endOfLine() {
		return 0, 0, p.fault("an offset is expected after startxref")
	}
	for _, c := range []byte("%%EOF") {
		if p.next() != int(c) {
			return 0, 0, p.fault("the line %%%%EOF is expected")
		}
	}
	end = p.offset()
	if c := p.peek(); c >= 0 && c != '\r' && c != '\n' {
		return 0, 0, p.fault("an end of line is expected after %%%%EOF")
	}
	return at, end, nil
}

// linearized refuses a document that claims to be linearized with exactly its present length.
// Readers then begin with the first section of the file instead of the last one (annex F.3.3).
func (l *later) linearized() error {
	f := l.file
	head := make([]byte, min(f.size, 2*headerReach))
	if !f.readFull(head, 0) {
		return f.failed()
	}
	if !bytes.Contains(unescaped(head), []byte("Linearized")) {
		return nil
	}
	for _, word := range bytes.FieldsFunc(head, func(r rune) bool { return r != '.' && r != '+' && r != '-' && (r < '0' || r > '9') }) {
		if n, err := strconv.ParseFloat(string(word), 64); err == nil && (n == float64(f.size) || n == float64(f.size-f.bias)) {
			return &strictError{f.size, "the file has the length that its linearization dictionary names, so programs may show its first revision"}
		}
	}
	return nil
}

// unescaped resolves the escapes of names.
func unescaped(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] == '#' && i+2 < len(b) && hexDigit(int(b[i+1])) >= 0 && hexDigit(int(b[i+2])) >= 0 {
			out = append(out, byte(hexDigit(int(b[i+1]))<<4|hexDigit(int(b[i+2]))))
			i += 2
			continue
		}
		out = append(out, b[i])
	}
	return out
}

// revision reads the section at an offset with its trailer and its end, but not its objects.
func (l *later) revision(at int64) (*laterRevision, error) {
	f := l.file
	r := &laterRevision{later: l, at: at, place: at + f.bias, section: &section{at: at}}
	if r.place >= f.size || r.place < 0 {
		return nil, &strictError{r.place, "the section is outside of the file"}
	}
	p := f.strictAt(r.place, f.size)
	defer p.release()
	read := r.stream
	if p.word("xref") {
		read = r.table
	}
	if err := read(p); err != nil {
		return nil, err
	}
	if err := r.follow(p); err != nil {
		return nil, err
	}
	if !l.keep(p.kept + p.unpaid + 512) { // of the trailer, which stays
		return nil, f.failed()
	}
	return r, r.order(f)
}

// follow reads the tail of a revision after its section.
func (r *laterRevision) follow(p *strictReader) error {
	p.blanks()
	if p.peek() == '%' { // iText names itself here
		p.pos++
		var line []byte
		for !p.endOfLine() {
			c := p.next()
			if line = append(line, byte(c)); len(line) > 200 || c < ' ' || c > '~' || c != ' ' && c != '(' && c != ')' && !isRegular(c) {
				return p.fault("a comment that is not the name of a program")
			}
		}
		for _, word := range []string{"xref", "trailer", "obj", "stream", "EOF"} {
			if bytes.Contains(line, []byte(word)) {
				return p.fault("a comment with the word %s", word)
			}
		}
		p.blanks()
	}
	at, end, err := p.tail()
	if err == nil && at != r.at {
		err = p.fault("startxref leads to %d instead of the section at %d", at, r.at)
	}
	r.end = end
	return err
}

// entries takes the entries of a trailer.
func (r *laterRevision) entries(p *strictReader, d dict) error {
	var ok1, ok2 bool
	r.size, ok1 = plainInteger(d.get("Size"))
	r.prev, ok2 = plainInteger(d.get("Prev"))
	if !ok1 || !ok2 {
		return p.fault("the trailer must have Size and Prev")
	}
	if _, ok := d.get("Root").(ref); !ok {
		return p.fault("the trailer must lead to the catalog")
	}
	if ids, ok := d.get("ID").(array); d.has("ID") && (!ok || len(ids) != 2) {
		return p.fault("the identifier of the file is malformed")
	}
	r.trailer = d
	return nil
}

// add adds an entry.
func (r *laterRevision) add(f *file, num int64, at place) error {
	if num > maxWritten || num == 0 && at.kind != free {
		return &strictError{r.place, fmt.Sprintf("the section lists the number %d", num)}
	}
	if len(r.list) == cap(r.list) {
		more := max(16, cap(r.list))
		if !r.later.keep(48 * int64(more)) {
			return f.failed()
		}
		r.list = slices.Grow(r.list, more)
	}
	if !f.charge(priceToken) {
		return f.failed()
	}
	r.list = append(r.list, laterEntry{int(num), at})
	return nil
}

// table reads a table after its keyword, and its trailer (7.5.4, 7.5.5).
func (r *laterRevision) table(p *strictReader) error {
	f := p.file
	if !p.endOfLine() {
		return p.fault("an end of line is expected after xref")
	}
	subsections := 0
	for ; isDigit(p.peek()); subsections++ {
		first, ok1 := p.digits()
		blank := p.next()
		count, ok2 := p.digits()
		for p.peek() == ' ' {
			p.pos++
		}
		if !ok1 || !ok2 || blank != ' ' || !p.endOfLine() {
			return p.fault("a subsection of the table is malformed")
		}
		if count > (f.size-p.offset())/entrySize {
			return p.fault("a subsection of the table is longer than the file")
		}
		for i := range count {
			at := p.offset()
			var line [entrySize]byte
			for j := range line {
				line[j] = byte(p.next())
			}
			entry, ok := readLine(line[:])
			end := string(line[18:])
			if !ok || line[17] == 'n' && entry.kind != inFile || end != " \n" && end != " \r" && end != "\r\n" {
				return p.faultAt(at, "an entry of the table is malformed")
			}
			if err := r.add(f, first+i, entry); err != nil {
				return err
			}
		}
	}
	if subsections == 0 {
		return p.fault("the table has no subsection")
	}
	p.blanks() // MuPDF writes an empty line
	if !p.word("trailer") {
		return p.fault("the trailer is expected")
	}
	p.left = maxTokens
	p.blanks()
	o, err := p.value(0)
	if err != nil {
		return err
	}
	d, ok := o.(dict)
	if !ok {
		return p.fault("the trailer is not a dictionary")
	}
	if d.has("XRefStm") {
		if r.hybrid, ok = plainInteger(d.get("XRefStm")); !ok || r.hybrid == 0 {
			return p.fault("XRefStm is not an offset")
		}
	}
	return r.entries(p, d)
}

// stream reads a section that is a cross-reference stream (7.5.8).
func (r *laterRevision) stream(p *strictReader) error {
	id, d, list, err := p.crossReferences()
	if err != nil {
		return err
	}
	if d.has("XRefStm") {
		return p.fault("XRefStm in a cross-reference stream")
	}
	r.own, r.section.stream = id, true
	for _, e := range list {
		if err := r.add(p.file, int64(e.num), e.place); err != nil {
			return err
		}
	}
	return r.entries(p, d)
}

// crossReferences reads an object that is a cross-reference stream.
func (p *strictReader) crossReferences() (id ref, d dict, list []laterEntry, err error) {
	at := p.offset()
	fail := func(format string, args ...any) (ref, dict, []laterEntry, error) {
		return ref{}, nil, nil, p.faultAt(at, format, args...)
	}
	id, o, err := p.indirect(func(ref) (int64, error) { return 0, errors.New("it must be in the dictionary") })
	if err != nil {
		return ref{}, nil, nil, err
	}
	s, ok := o.(*stream)
	if !ok || s.dict.get("Type") != name("XRef") {
		return fail("a cross-reference table or stream is expected")
	}
	data, err := p.file.strictData(s, nil)
	if err != nil {
		return fail("the cross-reference stream: %v", err)
	}
	defer p.file.spending.Release(int64(cap(data)))
	size, ok := plainInteger(s.dict.get("Size"))
	w, _ := s.dict.get("W").(array)
	if !ok || len(w) != 3 {
		return fail("the cross-reference stream must have Size and W")
	}
	b := subsection{}
	width := 0
	for i := range w {
		n, ok := plainInteger(w[i])
		if !ok || n > []int64{2, 8, 4}[i] {
			return fail("W of the cross-reference stream is malformed")
		}
		b.widths[i] = int(n)
		width += int(n)
	}
	index := array{number("0"), intObject(size)}
	if s.dict.has("Index") {
		if index, ok = s.dict.get("Index").(array); !ok || len(index)%2 != 0 {
			return fail("Index of the cross-reference stream is malformed")
		}
	}
	for i := 0; i < len(index); i += 2 {
		first, ok1 := plainInteger(index[i])
		count, ok2 := plainInteger(index[i+1])
		if !ok1 || !ok2 || first+count > size || width == 0 || count > int64(len(data)/width) {
			return fail("Index of the cross-reference stream is malformed")
		}
		if !p.file.charge(priceToken*count) || !p.file.keep(48*count) { // until the caller has copied them
			return ref{}, nil, nil, p.file.failed()
		}
		defer p.file.spending.Release(48 * count)
		for j := range count {
			entry := b.fields(data)
			kind := 1
			if b.widths[0] > 0 {
				if bytes.Count(data[:b.widths[0]-1], []byte{0}) != b.widths[0]-1 {
					return fail("an entry of the cross-reference stream has an unknown type")
				}
				kind = int(data[b.widths[0]-1])
			}
			if kind > 2 || kind > 0 && entry.kind == free || kind == 1 && entry.at == 0 {
				return fail("an entry of the cross-reference stream is malformed")
			}
			list = append(list, laterEntry{int(first + j), entry})
			data = data[width:]
		}
	}
	if len(data) > 0 {
		return fail("the cross-reference stream has more entries than its Index")
	}
	return id, s.dict, list, nil
}

// order sorts the entries and makes the section of them.
func (r *laterRevision) order(f *file) error {
	if r.hybrid > 0 {
		if err := r.join(f); err != nil {
			return err
		}
	}
	slices.SortFunc(r.list, func(a, b laterEntry) int { return a.num - b.num })
	if !f.charge(int64(16*len(r.list))) || !r.later.keep(int64(32*len(r.list))) {
		return f.failed()
	}
	for i, e := range r.list {
		if i > 0 && e.num == r.list[i-1].num {
			return &strictError{r.place, fmt.Sprintf("the section lists object %d twice", e.num)}
		}
		if int64(e.num) >= r.size {
			return &strictError{r.place, fmt.Sprintf("the section lists object %d, but Size is %d", e.num, r.size)}
		}
		last := len(r.section.subs) - 1
		if last < 0 || r.section.subs[last].first+r.section.subs[last].count != e.num {
			if !r.later.keep(128) {
				return f.failed()
			}
			r.section.subs = append(r.section.subs, subsection{first: e.num})
			last++
		}
		b := &r.section.subs[last]
		b.list = append(b.list, e.place)
		b.count++
	}
	r.section.trailer = r.trailer
	r.section.sort()
	return nil
}

// join adds the stream of a hybrid section (7.5.8.4). It may only repeat entries of the table
// and list itself: programs that know such streams and others must find the same objects.
func (r *laterRevision) join(f *file) error {
	at := r.hybrid + f.bias
	if at >= r.place {
		return &strictError{r.place, "XRefStm does not lead back"}
	}
	p := f.strictAt(at, r.place)
	defer p.release()
	id, d, list, err := p.crossReferences()
	if err != nil {
		return err
	}
	if prev, ok := plainInteger(d.get("Prev")); d.has("Prev") && (!ok || prev != r.prev) {
		return &strictError{at, "the stream of XRefStm leads to another section than the table"}
	}
	table := map[int]place{}
	for _, e := range r.list {
		if !f.keep(48) {
			return f.failed()
		}
		table[e.num] = e.place
	}
	if list = append(list, laterEntry{id.num, place{inFile, r.hybrid, id.gen}}); !f.charge(8 * int64(len(list))) {
		return f.failed()
	}
	for _, e := range list {
		was, listed := table[e.num]
		if !listed && e.num == id.num {
			table[e.num] = e.place
			if err := r.add(f, int64(e.num), e.place); err != nil {
				return err
			}
			continue
		}
		if !listed || was != e.place {
			return &strictError{at, fmt.Sprintf("the stream of XRefStm has another place of object %d than the table", e.num)}
		}
	}
	return nil
}

// laterView finds objects in the signed document and in the revisions after it.
type laterView struct {
	base  *file
	newer []*laterRevision // oldest first
}

func (v *laterView) find(num int) place {
	v.base.charge(int64(1 + len(v.newer)/4))
	for _, r := range slices.Backward(v.newer) {
		if p := r.section.find(v.base, num); p.kind != absent {
			return p
		}
	}
	return v.base.find(num)
}

// size returns the largest Size of all sections.
func (v *laterView) size() int64 {
	n, _ := integer(v.base.trailer.get("Size"))
	for _, r := range v.newer {
		n = max(n, r.size)
	}
	return n
}

// check reads the objects of a revision, which begin at an offset of the source. view has the
// revisions before it.
func (l *later) check(r *laterRevision, start int64, view *laterView) error {
	f := l.file
	if r.checked {
		// The signed bytes may end before or after the end of line of the revision.
		if max(start, r.start) > r.first || !l.blank(min(start, r.start), max(start, r.start)) {
			return &strictError{start, "the signed bytes do not end at the end of a revision"}
		}
		return nil
	}
	if !l.atLine(start) {
		return &strictError{start, "an end of line is expected"}
	}
	c := &laterCheck{later: l, r: r, view: &laterView{view.base, append(slices.Clone(view.newer), r)}, refs: map[ref]bool{}}
	defer func() { f.spending.Release(c.held) }()
	if err := c.entries(view); err != nil {
		return err
	}
	if err := c.references(r.trailer); err != nil {
		return &strictError{r.place, fmt.Sprintf("the trailer: %v", err)}
	}
	r.start, r.first = start, r.place
	p := f.strictAt(start, r.place)
	for i, num := range c.order {
		p.blanks()
		e := r.section.find(f, num)
		if i == 0 {
			r.first = p.offset()
		}
		if p.offset() != e.at+f.bias {
			return &strictError{p.offset(), fmt.Sprintf("object %d is expected here, which the section lists at offset %d", num, e.at+f.bias)}
		}
		end, err := c.object(p.offset(), num, e.gen)
		if err != nil {
			return err
		}
		p = f.strictAt(end, r.place)
	}
	p.blanks()
	if p.offset() != r.place {
		return &strictError{p.offset(), "the cross-reference section is expected, or an object that it lists"}
	}
	r.checked = true
	return nil
}

// blank reports whether there is only white space between two offsets of the source.
func (l *later) blank(from, to int64) bool {
	if to-from > maxBlank {
		return false
	}
	b := make([]byte, to-from)
	return l.file.readFull(b, from) && len(bytes.TrimLeft(b, " \t\r\n")) == 0
}

// atLine reports whether a line begins at an offset, or an end of line.
func (l *later) atLine(off int64) bool {
	b := make([]byte, 2)
	return l.file.readFull(b, off-1) && (b[0] == '\n' || b[0] == '\r' || b[1] == '\n' || b[1] == '\r')
}

// laterCheck checks the objects of one revision.
type laterCheck struct {
	later *later
	r     *laterRevision
	view  *laterView  // with this revision
	order []int       // numbers of the objects outside of object streams, by their offsets
	lists map[int]int // numbers of object streams, with how many objects the section lists in each
	refs  map[ref]bool
	size  int64 // the largest Size up to this revision
	held  int64
}

func (c *laterCheck) keep(n int64) bool {
	c.held += n
	return c.later.file.keep(n)
}

// entries checks the entries of the section against those before it.
func (c *laterCheck) entries(before *laterView) error {
	r, f := c.r, c.later.file
	fault := func(format string, args ...any) error { return &strictError{r.place, fmt.Sprintf(format, args...)} }
	c.size = before.size()
	// PDFBox writes the highest number of the revision plus one. Some programs then search for
	// the objects, so they must find no others.
	if r.size < c.size {
		if r.size != int64(r.section.high) {
			return fault("Size is %d, but it was %d before", r.size, c.size)
		}
		if err := c.later.unhidden(); err != nil {
			return err
		}
	}
	c.size = max(c.size, r.size)
	c.lists = map[int]int{}
	for _, e := range r.list {
		if !c.keep(96) {
			return f.failed()
		}
		was := before.find(e.num)
		gen := 0
		switch e.place.kind {
		case free:
			continue
		case inFile:
			gen = e.place.gen
			if e.num == r.own.num {
				if e.place != (place{inFile, r.at, r.own.gen}) {
					return fault("the cross-reference stream lists another object under its own number")
				}
				break
			}
			c.order = append(c.order, e.num)
		case inStream:
			c.lists[int(e.place.at)]++
		}
		if was.kind == inFile && gen != was.gen || was.kind == inStream && gen != 0 {
			return fault("object %d has another generation than before", e.num)
		}
	}
	for num := range c.lists {
		if p := r.section.find(f, num); p.kind != inFile || p.gen != 0 {
			return fault("object stream %d is not in this revision", num)
		}
	}
	if own := r.own.num; own != 0 && r.section.find(f, own).kind == absent {
		if was := before.find(own); was.kind != absent && was.kind != free {
			return fault("the cross-reference stream has the number of another object")
		}
	}
	slices.SortFunc(c.order, func(a, b int) int {
		return int(min(1, max(-1, r.section.find(f, a).at-r.section.find(f, b).at)))
	})
	if !f.charge(int64(16 * len(c.order))) {
		return f.failed()
	}
	return nil
}

// object reads one object of the revision and returns where it ends.
func (c *laterCheck) object(off int64, num, gen int) (end int64, err error) {
	f := c.later.file
	if !f.charge(priceObject) {
		return 0, f.failed()
	}
	p := f.strictAt(off, c.r.place)
	defer p.release()
	p.refer = c.reference
	id, o, err := p.indirect(c.length)
	if err != nil {
		return 0, err
	}
	if id.num != num || id.gen != gen {
		return 0, p.faultAt(off, "the section lists object %d %d here", num, gen)
	}
	if p.offset() > c.r.place {
		return 0, p.fault("object %d overlaps the section", num)
	}
	s, isStream := o.(*stream)
	if want := c.lists[num]; want > 0 || isStream && s.dict.get("Type") == name("ObjStm") {
		if !isStream {
			return 0, p.faultAt(off, "object %d is not an object stream", num)
		}
		if err := c.list(s, num, want); err != nil {
			return 0, err
		}
	}
	return p.offset(), nil
}

// unhidden checks that a search for objects finds the ones that the sections list: of each
// number the last one in the file. Some programs make such a search when an object is missing.
func (l *later) unhidden() error {
	if l.searched {
		return l.hidden
	}
	l.searched = true
	f := l.file
	const chunk = 64 << 10
	if !f.keep(chunk + scanOverlap) {
		return f.failed()
	}
	defer f.spending.Release(chunk + scanOverlap)
	buf := make([]byte, chunk+scanOverlap)
	for at := int64(0); at < f.size && l.hidden == nil; at += chunk {
		b := buf[:min(int64(len(buf)), f.size-at)]
		if !f.charge(int64(len(b))) || !f.readFull(b, at) {
			return f.failed()
		}
		objects := words{word: "obj"}
		for i := objects.next(b, 0); i < len(b); i = objects.next(b, i+1) {
			from, id, ok := headerBefore(b, i)
			// One at the beginning of the chunk was in the overlap of the one before.
			if !ok || from >= chunk || from == 0 && at > 0 && isDigit(l.byteAt(at-1)) {
				continue
			}
			if p := f.find(id.num); p.kind != inFile || p.at+f.bias < at+int64(from) {
				l.hidden = &strictError{at + int64(from), fmt.Sprintf("programs that search for a missing object would find another object %d here", id.num)}
				break
			}
		}
	}
	return l.hidden
}

func (l *later) byteAt(off int64) int {
	var b [1]byte
	if !l.file.readFull(b[:], off) {
		return -1
	}
	return int(b[0])
}

// reference checks that a reference names the generation of its object.
func (c *laterCheck) reference(id ref) error {
	if c.refs[id] {
		return nil
	}
	if int64(id.num) >= c.size {
		return fmt.Errorf("the reference to object %d, but Size is %d", id.num, c.size)
	}
	p := c.view.find(id.num)
	if p.kind == inFile && p.gen != id.gen || p.kind == inStream && id.gen != 0 {
		return fmt.Errorf("the reference to object %d has another generation than the object", id.num)
	}
	if p.kind == absent { // Poppler searches for such an object
		if err := c.later.unhidden(); err != nil {
			return err
		}
	}
	if !c.keep(64) {
		return c.later.file.failed()
	}
	c.refs[id] = true
	return nil
}

// references checks all references in a value.
func (c *laterCheck) references(o object) error {
	switch o := o.(type) {
	case ref:
		return c.reference(o)
	case array:
		for _, x := range o {
			if err := c.references(x); err != nil {
				return err
			}
		}
	case dict:
		for _, e := range o {
			if err := c.references(e.value); err != nil {
				return err
			}
		}
	}
	return nil
}

// length returns the length of a stream that is an object of its own.
func (c *laterCheck) length(id ref) (int64, error) {
	if err := c.reference(id); err != nil {
		return 0, err
	}
	n, ok := int64(0), false
	switch p := c.view.find(id.num); {
	case p.kind == inFile && c.r.section.find(c.later.file, id.num) == p:
		l := c.later.file.strictAt(p.at+c.later.file.bias, c.r.place)
		defer l.release()
		_, o, err := l.indirect(func(ref) (int64, error) { return 0, errors.New("it is not a number") })
		if err != nil {
			return 0, err
		}
		n, ok = plainInteger(o)
	case p.kind == inFile && p == c.view.base.find(id.num):
		n, ok = plainInteger(c.view.base.object(id))
	}
	if !ok {
		return 0, fmt.Errorf("object %d is not a number of this revision or of the signed document", id.num)
	}
	return n, nil
}

// list checks an object stream (7.5.7). The section must list all of its objects.
func (c *laterCheck) list(s *stream, num, want int) error {
	f := c.later.file
	list, err := f.strictObjects(s, c.view.base.crypt)
	if err != nil {
		if f.failed() != nil {
			return f.failed()
		}
		return &strictError{s.offset, fmt.Sprintf("object stream %d: %v", num, err)}
	}
	defer f.spending.Release(list.size())
	if len(list.numbers) != want {
		return &strictError{s.offset, fmt.Sprintf("object stream %d has %d objects, but the section lists %d", num, len(list.numbers), want)}
	}
	for i, inner := range list.numbers {
		if c.r.section.find(f, inner) != (place{inStream, int64(num), i}) {
			return &strictError{s.offset, fmt.Sprintf("the section does not list object %d at index %d of object stream %d", inner, i, num)}
		}
		p := f.strictBytes(list.bytes(i))
		p.refer = c.reference
		if _, err := p.inner(); err != nil {
			return fmt.Errorf("object stream %d: %w", num, err)
		}
		p.release()
	}
	return nil
}

// inner reads an object of an object stream, which must have nothing behind it.
func (p *strictReader) inner() (object, error) {
	p.blanks()
	at := p.offset()
	o, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if _, ok := o.(ref); ok {
		return nil, p.faultAt(at, "an object that is only a reference")
	}
	if p.blanks(); p.peek() >= 0 {
		return nil, p.fault("a superfluous token")
	}
	return o, nil
}

// strictObjects decodes an object stream and reads the numbers and places of its objects. The
// result is charged as held.
func (f *file) strictObjects(s *stream, k *crypt) (*objectList, error) {
	n, ok1 := plainInteger(s.dict.get("N"))
	first, ok2 := plainInteger(s.dict.get("First"))
	if s.dict.get("Type") != name("ObjStm") || !ok1 || !ok2 || n == 0 || s.dict.has("Extends") {
		return nil, errors.New("its dictionary must have Type, N and First")
	}
	data, err := f.strictData(s, k)
	if err != nil {
		return nil, err
	}
	list := &objectList{num: s.id.num, data: data}
	if first > int64(len(data)) || n > first/2 {
		return nil, errors.New("the entry First is beyond its end")
	}
	if !f.charge(2*priceToken*n) || !f.keep(16*n) {
		return nil, f.failed()
	}
	p := f.strictBytes(data[:first])
	for range n {
		p.blanks()
		num, ok1 := p.digits()
		p.blanks()
		at, ok2 := p.digits()
		at += first
		last := len(list.offsets) - 1
		if !ok1 || !ok2 || num <= 0 || num > maxWritten || at >= int64(len(data)) || last >= 0 && at <= int64(list.offsets[last]) {
			return nil, errors.New("its list of objects is malformed")
		}
		list.numbers = append(list.numbers, int(num))
		list.offsets = append(list.offsets, int(at))
	}
	if p.blanks(); p.peek() >= 0 || len(bytes.Trim(data[first:list.offsets[0]], " \t\r\n")) > 0 {
		return nil, errors.New("it has bytes that belong to no object")
	}
	return list, nil
}

// size returns the bytes that a list holds.
func (s *objectList) size() int64 { return int64(cap(s.data)) + 16*int64(len(s.numbers)) }

// bytes returns the bytes of the object at an index, up to the next one.
func (s *objectList) bytes(i int) []byte {
	end := len(s.data)
	if i+1 < len(s.offsets) {
		end = s.offsets[i+1]
	}
	return s.data[s.offsets[i]:end]
}

// openUnlocked opens a document that cannot be opened with the encryption of its last section,
// if that of its first section is another one. It returns nil if that does not help. The
// signatures of such a document were changed later.
func openUnlocked(ctx context.Context, d sig.Document, password []byte) *file {
	f := newFile(ctx, d, d.Size())
	head := make([]byte, min(f.size, headerReach))
	if !f.readFull(head, 0) {
		return nil
	}
	at, version, ok := findHeader(head)
	f.bias, f.version = int64(at), version
	if !ok || f.crossReferences() != nil {
		return nil
	}
	first := f.sections[len(f.sections)-1].trailer.get("Encrypt")
	if bytes.Equal(appendObject(nil, first, nil), appendObject(nil, f.trailer.get("Encrypt"), nil)) {
		return nil
	}
	f.trailer = f.trailer.with("Encrypt", first)
	if f.usable(password) != nil {
		return nil
	}
	return f
}

// onto returns the document of later revisions on the signed one. Its objects in later bytes
// are read by the strict reader.
func (l *later) onto(base *file, list []*laterRevision, end int64) *file {
	f := newFile(base.ctx, l.file.src, l.file.size)
	f.bias, f.version, f.crypt = base.bias, base.version, base.crypt
	f.strictFrom = end
	for _, r := range list {
		f.sections = append(f.sections, r.section)
	}
	f.sections = append(f.sections, base.sections...)
	f.trailer = list[0].trailer
	return f
}

// loadStrict reads an object that is in later bytes. It returns false if the object is in the
// signed ones.
func (f *file) loadStrict(id ref, at place) (object, bool) {
	off := at.at + f.bias
	if at.kind == inStream {
		container := f.find(int(at.at))
		off = container.at + f.bias
		if container.kind != inFile {
			return nil, false
		}
	}
	if f.strictFrom == 0 || at.kind != inFile && at.kind != inStream || off < f.strictFrom {
		return nil, false
	}
	o, err := f.strictObject(id.num, at, off)
	if err != nil {
		if f.strictFault == nil {
			f.strictFault = err
		}
		return nil, true
	}
	return o, true
}

func (f *file) strictObject(num int, at place, off int64) (object, error) {
	if at.kind == inFile {
		p := f.strictAt(off, f.size)
		defer p.release() // the caller charges the object
		id, o, err := p.indirect(f.strictLength)
		if err != nil {
			return nil, err
		}
		f.last = p.kept + p.unpaid
		if id.num != num || id.gen != at.gen {
			return nil, fmt.Errorf("object %d is not at offset %d", num, off)
		}
		if f.crypt != nil && num != f.crypt.own {
			o = f.crypt.decryptStrings(o, id)
		}
		return o, nil
	}
	list, err := f.strictStream(int(at.at), off)
	if err != nil {
		return nil, err
	}
	if at.gen >= len(list.numbers) || list.numbers[at.gen] != num {
		return nil, fmt.Errorf("object %d is not at index %d of object stream %d", num, at.gen, at.at)
	}
	p := f.strictBytes(list.bytes(at.gen))
	defer p.release()
	o, err := p.inner()
	f.last = p.kept + p.unpaid
	return o, err
}

// strictStream reads the object stream at an offset of the source.
func (f *file) strictStream(num int, off int64) (*objectList, error) {
	if list, ok := f.streams[num]; ok {
		return list, nil
	}
	p := f.strictAt(off, f.size)
	defer p.release()
	_, o, err := p.indirect(f.strictLength)
	if err != nil {
		return nil, err
	}
	s, ok := o.(*stream)
	if !ok {
		return nil, fmt.Errorf("object %d is not an object stream", num)
	}
	list, err := f.strictObjects(s, f.crypt)
	if err != nil {
		return nil, err
	}
	if f.held+list.size() > maxHeld {
		clear(f.streams)
		f.spending.Release(f.held)
		f.held = 0
	}
	f.held += list.size()
	f.streams[num] = list
	return list, nil
}

// strictLength resolves the length of a stream in later bytes, which was checked before.
func (f *file) strictLength(id ref) (int64, error) {
	n, ok := plainInteger(f.object(id))
	if !ok {
		return 0, fmt.Errorf("object %d is not a number", id.num)
	}
	return n, nil
}
