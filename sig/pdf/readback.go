// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"tamga/sig"
)

// The output is read again before it leaves, as a viewer reads it: from the last
// startxref through the cross-references to the signature. Only the new sections and
// their targets are read, so the cost does not grow with the document.

// holes is the placeholder for the value of Contents: zeros in angle brackets.
type holes int64

var zeros = bytes.Repeat([]byte{'0'}, blockSize)

// ReadAt implements io.ReaderAt.
func (h holes) ReadAt(p []byte, off int64) (n int, err error) {
	if size := max(0, int64(h)-off); size < int64(len(p)) {
		p, err = p[:size], io.EOF
	}
	for n < len(p) {
		n += copy(p[n:], zeros)
	}
	if off == 0 && n > 0 {
		p[0] = '<'
	}
	if n > 0 && off+int64(n) == int64(h) {
		p[n-1] = '>'
	}
	return n, err
}

// whole returns the document with the new revision, its hole filled with zeros.
func (s *made) whole(d sig.Document) sig.Document {
	hole := holeOf(s.room)
	return sig.Parts(sig.Section(d, 0, d.Size()), sig.Bytes(s.head), sig.Section(holes(hole), 0, hole), sig.Bytes(s.tail))
}

// readBack reads the new revision and compares it with what was intended. If other
// programs could not read the result, the error is an ErrDocument.
func (m *maker) readBack(out *made) error {
	d := out.whole(m.job.Document)
	f := newFile(m.ctx, d, d.Size())
	defer f.close()
	f.bias, f.version, f.crypt = m.file.bias, m.file.version, m.file.crypt
	err := m.compare(f, out)
	switch {
	case f.failed() != nil:
		return f.failed()
	case m.file.failed() != nil:
		return m.file.failed()
	case err == nil:
		err = f.damaged
	}
	if err != nil {
		return &sig.ErrDocument{What: "Document", Text: "cannot be signed so that other programs can read it", Err: err}
	}
	return nil
}

func (m *maker) compare(f *file, out *made) error {
	old, u := m.file, m.update
	last, err := f.newest()
	if err != nil {
		return err
	}
	f.sections, f.trailer = []*section{last}, last.trailer
	prev, linked := integer(last.trailer.get("Prev"))
	switch {
	case last.at != u.start:
		return fmt.Errorf("the last startxref leads to %d instead of %d", last.at, u.start)
	case old.rebuilt == linked || linked && prev != old.sections[0].at:
		return errors.New("the new cross-reference section does not lead to the one before it")
	case linked:
		f.sections = append(f.sections, old.sections...)
	}
	if _, err := f.written(last, old.size, out.signature); err != nil {
		return err
	}
	field, err := f.reachable(m.target.field.id)
	if err != nil {
		return err
	}
	s := f.signature(field)
	hole := u.base + int64(u.holeAt)
	switch {
	case s.broken:
		return errors.New(s.findings[0].Text)
	case s.from != hole || s.to != hole+u.hole || s.end != f.size:
		return errors.New("ByteRange is not exact")
	case !f.samePages(old, m.added):
		return fmt.Errorf("%d pages became %d", old.pageCount(), f.pageCount())
	}
	if m.stamped.num != 0 {
		if err := f.stampedAlone(m.target.field.id, m.stamped); err != nil {
			return err
		}
	}
	if !old.rebuilt {
		return nil
	}
	pages, err := f.pageList()
	if m.added && len(pages) > 0 && pages[len(pages)-1] == m.stamped {
		pages = pages[:len(pages)-1]
	}
	if err == nil && !slices.Equal(pages, m.pages) {
		err = errors.New("its pages would change")
	}
	return err
}

// stampedAlone checks that the page with a number shows a widget, once, and no other page
// does.
func (f *file) stampedAlone(widget, on ref) error {
	var shown []int
	right := false
	err := f.pages(func(i int, p *page) {
		list := f.resolveArray(p.dict.get("Annots"))
		f.charge(int64(len(list))) // many pages may have one long array
		for _, o := range list {
			if id, _ := o.(ref); id.num == widget.num {
				shown = append(shown, i)
				right = p.id == on
			}
		}
	})
	switch {
	case err != nil:
		return err
	case len(shown) == 0:
		return errors.New("no page shows the stamp")
	case len(shown) > 1 || !right:
		return fmt.Errorf("the stamp shows on pages %s", pageNumbers(shown))
	}
	return nil
}

// samePages compares the number of pages. If the root of the tree did not change, it is
// the same. added reports that there must be one more.
func (f *file) samePages(old *file, added bool) bool {
	if added {
		return f.pageCount() == old.pageCount()+1
	}
	_, was := old.catalog()
	_, is := f.catalog()
	id, ok := is.get("Pages").(ref)
	if ok && was.get("Pages") == id && f.find(id.num) == old.find(id.num) {
		return true
	}
	return f.pageCount() == old.pageCount()
}

// newest reads the last section of a file.
func (f *file) newest() (*section, error) {
	at, err := f.lastSection()
	if err != nil {
		return nil, err
	}
	var data int64
	return f.section(at, &data)
}

// written reads every object after an offset that a section lists, except the one with
// the number but. It returns their references.
func (f *file) written(s *section, from int64, but int) (list []ref, err error) {
	for i := range s.subs {
		for n := s.subs[i].first; n < s.subs[i].first+s.subs[i].count; n++ {
			p := s.find(f, n)
			if p.kind != inFile || p.at+f.bias < from || n == but {
				continue
			}
			id := ref{n, p.gen}
			if f.object(id); f.damaged != nil {
				return nil, f.damaged
			}
			list = append(list, id)
		}
	}
	return list, nil
}

// reachable returns the signed field with a number, reached from the catalog.
func (f *file) reachable(id ref) (*field, error) {
	_, root := f.catalog()
	fields := f.resolveArray(f.resolveDict(root.get("AcroForm")).get("Fields"))
	if slices.ContainsFunc(fields, func(o object) bool { r, _ := o.(ref); return r.num == id.num }) {
		d := f.resolveDict(id)
		if v, ok := d.get("V").(ref); ok {
			return &field{id: id, dict: d, value: v}, nil
		}
	} else { // not a top-level field
		for _, s := range f.form().signatures {
			if s.id == id && s.signed() {
				return s, nil
			}
		}
	}
	return nil, errors.New("the catalog does not lead to the signature field")
}

// pageList lists the pages by walking the whole tree. A page whose object or content is
// missing is an error.
func (f *file) pageList() ([]ref, error) {
	w := &pageLister{file: f, seen: map[int]bool{}}
	_, root := f.catalog()
	w.node(root.get("Pages"), 0)
	return w.pages, w.err
}

type pageLister struct {
	file  *file
	pages []ref
	seen  map[int]bool
	err   error
}

func (w *pageLister) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

func (w *pageLister) node(o object, depth int) {
	f := w.file
	if w.err != nil || f.failed() != nil {
		return
	}
	id, _ := o.(ref)
	d, ok := f.resolve(o).(dict)
	switch {
	case !ok:
		w.fail("object %d of the page tree is lost", id.num)
		return
	case depth > maxTreeDepth || len(w.seen) > maxVisited:
		w.fail("the page tree is larger than the limit")
		return
	case w.seen[id.num]:
		return
	}
	if id.num != 0 {
		w.seen[id.num] = true
	}
	if kids, ok := f.resolve(d.get("Kids")).(array); ok {
		for _, kid := range kids {
			w.node(kid, depth+1)
		}
		return
	}
	w.pages = append(w.pages, id)
	contents := f.resolve(d.get("Contents"))
	list, ok := contents.(array)
	if !ok && d.has("Contents") {
		list = array{d.get("Contents")}
	}
	for _, c := range list {
		s, ok := f.resolve(c).(*stream)
		if !ok {
			w.fail("the content of page %d is lost", len(w.pages))
			return
		}
		if n, ok := f.lengthOf(s); !ok || !f.endsStream(s.offset, n) {
			if _, ok := f.searchEnd(s.offset); !ok {
				w.fail("the content of page %d is cut off", len(w.pages))
				return
			}
		}
	}
}

// readResult reads a result before it leaves: the sections after the document, the
// signature with its message, and the document security store with the added data.
func (st *state) readResult(ctx context.Context, d sig.Document, message []byte, added map[name][][]byte, locked *crypt) error {
	f := newFile(ctx, d, d.Size())
	defer f.close()
	f.crypt = locked
	head := make([]byte, min(st.Size, headerReach))
	f.readFull(head, 0)
	at, _, _ := findHeader(head)
	f.bias = int64(at)
	err := st.check(f, message, added)
	if err == nil {
		err = f.damaged
	}
	if f.failed() != nil {
		return f.failed()
	}
	if err != nil {
		return fmt.Errorf("pdf: the result cannot be read again: %w", err)
	}
	return nil
}

// readContents compares the value of Contents in a result with the message, and the length of the
// result with that of the revision that was read before.
func (st *state) readContents(d sig.Document, message []byte) error {
	hole := make([]byte, holeOf(st.Room))
	at := st.Size + int64(len(st.Head))
	if d.Size() != at+int64(len(hole))+int64(len(st.Tail)) {
		return errors.New("pdf: the result has another length than the revision that was prepared")
	}
	if _, err := d.ReadAt(hole, at); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("pdf: reading the result again: %w", err)
	}
	last := len(hole) - 1
	value := make([]byte, st.Room)
	_, err := hex.Decode(value, hole[1:last])
	rest, has := bytes.CutPrefix(value, message)
	if hole[0] != '<' || hole[last] != '>' || err != nil || !has || len(bytes.Trim(rest, "\x00")) > 0 {
		return errors.New("pdf: the value of Contents is not the message")
	}
	return nil
}

func (st *state) check(f *file, message []byte, added map[name][][]byte) error {
	last, err := f.newest()
	if err != nil {
		return err
	}
	f.sections, f.trailer = []*section{last}, last.trailer
	if r := st.Revision; r != nil {
		if prev, ok := integer(last.trailer.get("Prev")); !ok || prev != r.Prev {
			return errors.New("the security store does not lead to the signature")
		}
		var data int64
		s, err := f.section(r.Prev, &data)
		if err != nil {
			return err
		}
		f.sections = append(f.sections, s)
	}
	signature, err := st.find(f)
	if err != nil {
		return err
	}
	from := st.Size + int64(len(st.Head))
	switch s := signature; {
	case s == nil:
		return errors.New("there is no signature in it")
	case s.broken:
		return errors.New(s.findings[0].Text)
	case s.from != from || s.to != from+holeOf(st.Room) || s.end != s.to+int64(len(st.Tail)):
		return errors.New("ByteRange is not exact")
	case !bytes.Equal(s.message, message):
		return errors.New("the value of Contents is not the message")
	}
	if st.Revision == nil {
		return nil
	}
	// The signed revision must be readable by itself.
	covered := newFile(f.ctx, f.src, signature.end)
	defer covered.close()
	if at, err := covered.lastSection(); err != nil || at != st.Revision.Prev {
		return errors.New("the signed revision does not lead to its cross-references")
	}
	_, root := f.catalog()
	store := f.resolveDict(root.get("DSS"))
	for key, values := range added {
		if !f.holds(f.resolveArray(store.get(key)), values) {
			return fmt.Errorf("%s of the security store is not complete", key)
		}
	}
	return nil
}

// find returns the signature of the new section. Its objects were read again in Prepare.
func (st *state) find(f *file) (*signature, error) {
	if st.Signature != 0 {
		return f.signature(&field{value: ref{num: st.Signature}}), nil
	}
	// The state was prepared by a release that did not store the number.
	list, err := f.written(f.sections[len(f.sections)-1], st.Size, 0)
	for _, id := range list {
		if d, ok := f.object(id).(dict); ok && d.has("ByteRange") {
			return f.signature(&field{value: id}), nil
		}
	}
	return nil, err
}

// holds reports whether the last streams of a list contain the values in order.
func (f *file) holds(list array, values [][]byte) bool {
	if len(list) < len(values) {
		return false
	}
	for i, o := range list[len(list)-len(values):] {
		s, ok := f.resolve(o).(*stream)
		if !ok {
			return false
		}
		if data, err := f.data(s); err != nil || !bytes.Equal(data, values[i]) {
			return false
		}
	}
	return true
}
