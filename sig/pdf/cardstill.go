// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"slices"
	"strings"
)

// cardObject is the memory of an object that was looked at, in bytes.
const cardObject = 48

// Flags of annotations (ISO 32000-1, 12.5.3).
const (
	flagHidden   = 1 << 1
	flagPrint    = 1 << 2
	flagNoView   = 1 << 5
	flagReadOnly = 1 << 6
	flagLocked   = 1 << 7
)

// players are annotations that play or open something. On a card they are pictures.
var players = map[name]bool{"Movie": true, "Sound": true, "Screen": true, "RichMedia": true, "3D": true, "FileAttachment": true}

// shownInside returns the pages with the visible marks of the signatures inside of the document, in the order of their
// reports; -1 for one that is not visible.
func (m *cardMaker) shownInside() ([]int, error) {
	f := m.file
	type one struct {
		end    int64
		widget int
	}
	var list []one
	values := map[int]bool{}
	visible := map[int][4]float64{} // rectangles by the number of the widget
	for _, s := range f.form().signatures {
		if !s.signed() {
			continue
		}
		if id, _ := s.value.(ref); id.num != 0 {
			if values[id.num] {
				continue
			}
			values[id.num] = true
		}
		list = append(list, one{f.signature(s).end, s.widget.num})
		if r, ok := m.visible(s.onWidget); ok {
			visible[s.widget.num] = r
		}
	}
	if len(list) == 0 {
		return nil, f.failed()
	}
	// P of a widget is optional: the page whose annotations have it shows it.
	on := map[int]int{}
	err := f.pages(func(n int, p *page) {
		box := p.stamp.Shown()
		for _, o := range f.resolveArray(p.dict.get("Annots")) {
			id, _ := o.(ref)
			r, ok := visible[id.num]
			if _, known := on[id.num]; ok && !known && overlap(r, box) {
				on[id.num] = n
			}
		}
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b one) int { return int(min(1, max(-1, a.end-b.end))) })
	pages := make([]int, len(list))
	for i, s := range list {
		pages[i] = -1
		if n, ok := on[s.widget]; ok {
			pages[i] = n
		}
	}
	return pages, nil
}

func overlap(a, b [4]float64) bool {
	for i := range 2 {
		if max(a[i], a[i+2]) <= min(b[i], b[i+2]) || max(b[i], b[i+2]) <= min(a[i], a[i+2]) {
			return false
		}
	}
	return true
}

// visible returns the rectangle of an annotation, and whether programs show something there.
func (m *cardMaker) visible(a dict) (r [4]float64, ok bool) {
	f := m.file
	if r, ok = f.rectangle(a.get("Rect")); !ok || r[0] == r[2] || r[1] == r[3] || f.intOf(a.get("F"))&(flagHidden|flagNoView) != 0 || f.resolve(a.get("OC")) != nil {
		return r, false
	}
	n := f.resolve(f.resolveDict(a.get("AP")).get("N"))
	if states, several := n.(dict); several {
		state, _ := f.resolve(a.get("AS")).(name)
		n = f.resolve(states.get(state))
	}
	drawn, ok := n.(*stream)
	if !ok {
		return r, false
	}
	size, ok := f.lengthOf(drawn)
	return r, ok && size > 0
}

// picture returns an annotation as a picture: what it shows, and nothing else. One that does not show stays so.
func (m *cardMaker) picture(a dict) dict {
	flags := int64(flagReadOnly | flagLocked)
	if _, ok := m.visible(a); ok {
		flags |= flagPrint
	} else {
		flags |= flagHidden
	}
	still := dict{{"Type", name("Annot")}, {"Subtype", name("Stamp")}, {"F", intObject(flags)}}
	for _, key := range []name{"Rect", "AP", "AS", "P"} {
		if v := a.get(key); v != nil {
			still = append(still, entry{key, v})
		}
	}
	return still
}

// replace writes an object of the document anew.
func (m *cardMaker) replace(id ref, d dict) {
	if m.file.keep(m.file.objects[id.num].size) {
		m.update.put(id, d)
	}
}

// still returns the catalog without what runs or changes: a card is for reading. Signatures inside of the document do not
// cover the card, so their fields become pictures; the attached document has them as they are.
func (m *cardMaker) still(root dict) dict {
	f := m.file
	for _, key := range []name{"OpenAction", "AA", "Perms", "DSS", "Legal", "Collection", "Metadata", "Requirements", "AF"} {
		root = root.with(key, nil)
	}
	names := f.resolveDict(root.get("Names"))
	for _, key := range []name{"JavaScript", "EmbeddedFiles", "Renditions", "AlternatePresentations"} {
		names = names.with(key, nil)
	}
	root = root.with("Names", names)
	first := f.resolveDict(root.get("Outlines")).get("First")
	if _, ok := first.(ref); !ok { // there are none, or they are malformed
		root = root.with("Outlines", nil)
	}
	m.stillOutlines(first)
	root, _ = m.bare(root)
	fields := f.form()
	if fields.dict == nil {
		return root
	}
	gone := map[int]bool{}
	for _, s := range fields.signatures {
		if !s.signed() {
			continue
		}
		gone[s.id.num] = true
		if s.widget.num != 0 && s.onWidget != nil && !m.stilled[s.widget.num] {
			m.stilled[s.widget.num] = true
			m.replace(s.widget, m.picture(s.onWidget))
		}
		if s.widget != s.id && !m.stilled[s.id.num] {
			m.stilled[s.id.num] = true
			m.replace(s.id, s.dict.with("V", nil).with("A", nil).with("AA", nil))
		}
	}
	left, seen := array{}, map[int]bool{}
	for _, o := range fields.fields {
		if id, _ := o.(ref); id.num == 0 || !gone[id.num] {
			left = append(left, m.stillField(o, 0, seen))
		}
	}
	form, _ := m.bare(fields.dict)
	d := form.with("XFA", nil).with("SigFlags", nil).with("CO", nil).with("Fields", left)
	switch {
	case len(left) == 0:
		return root.with("AcroForm", nil)
	case fields.id.num != 0:
		m.replace(fields.id, d)
		return root
	}
	return root.with("AcroForm", d)
}

// stillField removes the actions of a field and of those below it. It returns what refers to it. seen has the numbers of
// the fields before: an object may be a bookmark, too, and have been looked at as such.
func (m *cardMaker) stillField(o object, depth int, seen map[int]bool) object {
	f := m.file
	if id, ok := o.(ref); ok {
		if seen[id.num] || depth > maxTreeDepth || !f.charge(priceObject) || !f.keep(cardObject) {
			return o
		}
		seen[id.num] = true
	}
	kids := f.resolveArray(f.resolveDict(o).get("Kids"))
	o = m.calm(o)
	for _, kid := range kids {
		if _, ok := kid.(ref); ok { // calm has looked at the others
			m.stillField(kid, depth+1, seen)
		}
	}
	return o
}

// stillOutlines removes the actions of bookmarks.
func (m *cardMaker) stillOutlines(first object) {
	f := m.file
	seen := map[int]bool{}
	for waiting := []object{first}; len(waiting) > 0; {
		o := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		id, ok := o.(ref)
		if !ok || seen[id.num] || !f.charge(priceObject) || !f.keep(cardObject) {
			continue
		}
		seen[id.num] = true
		d := f.resolveDict(o)
		m.calm(o)
		waiting = append(waiting, d.get("Next"), d.get("First"))
	}
}

// stillPage returns a page without its actions and without the actions of its annotations, and whether it changed.
func (m *cardMaker) stillPage(d dict) (dict, bool) {
	d, changed := m.bare(d)
	list := m.file.resolveArray(d.get("Annots"))
	for _, o := range list {
		if _, ok := o.(ref); ok {
			m.calm(o)
		}
	}
	if own := m.calmedList(list); own != nil {
		return d.with("Annots", own), true
	}
	return d, changed
}

// bare returns a page, a node of the tree, the catalog or the form without what runs, and whether it had any. It may be
// listed as an annotation, a field or a bookmark, too, and programs then take it for one.
func (m *cardMaker) bare(d dict) (dict, bool) {
	changed := false
	for _, key := range []name{"AA", "A", "PresSteps"} {
		if d.has(key) {
			d, changed = d.with(key, nil), true
		}
	}
	if kind, _ := m.file.resolve(d.get("Subtype")).(name); players[kind] {
		d, changed = d.with("Subtype", nil), true
	}
	return d, changed
}

// calm removes the actions of an annotation, a field or a bookmark. It returns what refers to it.
func (m *cardMaker) calm(o object) object {
	f := m.file
	id, ok := o.(ref)
	if !ok {
		if d, ok := o.(dict); ok {
			still, _ := m.calmed(d)
			return still
		}
		return o
	}
	if m.stilled[id.num] || !f.charge(priceObject) || !f.keep(cardObject) {
		return o
	}
	m.stilled[id.num] = true
	if m.pageNumbers[id.num] > 0 {
		return o // putPages writes it, with the marks
	}
	d, ok := f.resolve(id).(dict)
	if !ok {
		return o
	}
	if still, changed := m.calmed(d); changed {
		m.replace(f.current(id), still)
	}
	return o
}

// calmed returns an annotation, a field or a bookmark without actions, and whether it had any. Links stay: a reader presses
// them.
func (m *cardMaker) calmed(d dict) (dict, bool) {
	f := m.file
	if kind, _ := f.resolve(d.get("Subtype")).(name); players[kind] {
		return m.picture(d), true
	}
	changed := false
	remove := func(key name) { d, changed = d.with(key, nil), true }
	if d.has("AA") {
		remove("AA")
	}
	if d.has("A") && !m.link(d.get("A")) {
		remove("A")
	}
	for _, key := range []name{"First", "Last", "Next", "Prev"} { // of a bookmark, which is an indirect object
		if _, direct := d.get(key).(dict); direct {
			remove(key)
		}
	}
	if own := m.calmedList(f.resolveArray(d.get("Kids"))); own != nil {
		d, changed = d.with("Kids", own), true
	}
	return d, changed
}

// calmedList returns a list whose direct dictionaries have no actions, nil if nothing changes. They have no Kids: in a valid
// document a field with some is an indirect object, and these could lead back to the list.
func (m *cardMaker) calmedList(list array) array {
	var own array
	for i, o := range list {
		direct, ok := o.(dict)
		if !ok {
			continue
		}
		still, changed := m.calmed(direct.with("Kids", nil))
		if !changed && !direct.has("Kids") {
			continue
		}
		if own == nil {
			if !m.file.keep(cardObject * int64(len(list))) {
				return nil
			}
			own = slices.Clone(list)
		}
		own[i] = still
	}
	return own
}

// link reports whether an action leads to a page or to an address, and does nothing else.
func (m *cardMaker) link(action object) bool {
	f := m.file
	d := f.resolveDict(action)
	if f.resolve(d.get("Next")) != nil {
		return false
	}
	switch f.resolve(d.get("S")) {
	case name("GoTo"):
		return true
	case name("URI"): // others run scripts, or open files of the reader or of a machine nearby
		address := strings.ToLower(string(f.textOf(d.get("URI"))))
		return strings.HasPrefix(address, "https:") || strings.HasPrefix(address, "http:") || strings.HasPrefix(address, "mailto:")
	}
	return false
}
