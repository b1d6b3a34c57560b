// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// kind is a kind of later change. The kinds are ordered by severity.
type kind int

const (
	kindStore kind = iota
	kindStamp
	kindSignature
	kindMetadata
	kindForm
	kindAnnotations
	kindOther
)

var kindNames = []string{"validation data", "time stamps", "signatures", "metadata", "form filling", "annotations", "changes of what was signed"}

// comparison holds the differences between the revision that a signature covers and the
// present document.
type comparison struct {
	old, new  *file
	whole     *file // the present document as the tolerant reader sees it
	later     []*laterRevision
	signature *signature
	graph     *graph
	found     [kindOther + 1][]string
	filled    []string // names of the form fields that were filled
	partly    string   // why not all changes were checked, "" if they were
	// described reports that more of the metadata was changed than what a program writes of
	// itself.
	described bool

	differs map[int]bool // numbers of the objects that differ or are new
	added   map[int]bool // those of them that are new
	fields  map[int]*fieldRole
	names   map[string]bool // the fields that were filled
	values  map[int]bool    // signatures that fields of the form lead to now, filled on first use
	drawn   map[int]bool    // widgets that lists of annotations got
	bare    bool            // an appearance of a field has no resources of its own
	undrawn bool            // programs draw some fields by the resources of the form
	tagged  int             // 1 if the changes of the parent tree are allowed, -1 if not
}

// fieldRole is what the comparison knows of a field or widget of the signed document.
type fieldRole struct {
	path    string
	signing bool  // a signature field
	signed  bool  // it had a signature
	shown   []int // numbers of its appearances
}

// maxCompared is how many objects are compared.
const maxCompared = 1 << 20

// compare finds the changes by later revisions. now is the document that the strict reader
// found, whole the same document as the tolerant reader sees it.
func compare(old, now, whole *file, list []*laterRevision, s *signature, g *graph) *comparison {
	c := &comparison{
		old: old, new: now, whole: whole, later: list, signature: s, graph: g,
		differs: map[int]bool{}, added: map[int]bool{}, fields: map[int]*fieldRole{}, names: map[string]bool{},
	}
	changed := c.changed()
	c.knowFields()
	c.trailer()
	if len(c.differs) == 0 || now.failed() != nil {
		return c
	}
	c.fill()
	w := &walk{c: c, seen: map[int]*[rolesAtOnce]roles{}}
	complete := w.run()
	for _, num := range changed {
		if now.failed() != nil {
			break
		}
		c.object(num, w.of(num))
	}
	if !complete {
		c.partly = "the document has more objects than the limit"
	}
	now.spending.Release(w.held)
	return c
}

func (c *comparison) note(k kind, format string, args ...any) {
	c.found[k] = append(c.found[k], fmt.Sprintf(format, args...))
}

// changed returns the numbers of objects that differ.
func (c *comparison) changed() (changed []int) {
	numbers := map[int]bool{}
	for _, r := range c.later {
		for _, e := range r.list {
			if len(numbers) == maxCompared {
				c.partly = "the document has more objects than the limit"
				break
			}
			if !numbers[e.num] && (!c.new.charge(4*priceToken) || !c.new.keep(3*16)) {
				return nil
			}
			numbers[e.num] = true
		}
	}
	for _, n := range sortedKeys(numbers) {
		was, is := c.old.find(n), c.new.find(n)
		if c.whole.find(n) != is {
			c.note(kindOther, "object %d, which programs find at different places", n)
			continue
		}
		switch {
		case n == 0 || was.kind != inFile && was.kind != inStream:
			if is.kind == inFile || is.kind == inStream {
				c.differs[n], c.added[n] = true, true
			}
			continue
		}
		a, b := c.old.object(ref{num: n}), c.new.object(ref{num: n})
		if st, ok := a.(*stream); ok && c.holds(n, st) {
			c.note(kindOther, "object stream %d was replaced", n)
		}
		if !c.same(a, b, 0, false) {
			c.differs[n] = true
			changed = append(changed, n)
		}
	}
	return changed
}

// holds reports whether objects of the signed document are in a stream. No section lists them
// again if the stream is replaced.
func (c *comparison) holds(num int, st *stream) bool {
	if !st.dict.has("N") || !st.dict.has("First") {
		return false
	}
	for _, inner := range c.old.listOf(num) {
		if p := c.old.find(inner); p.kind == inStream && p.at == int64(num) {
			return true
		}
	}
	return false
}

func sortedKeys(m map[int]bool) []int {
	list := make([]int, 0, len(m))
	for n := range m {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// same compares two values. References are the same if they have the same number; their
// objects are compared separately. loose reports that an integer and a real number mean the
// same there.
func (c *comparison) same(a, b object, depth int, loose bool) bool {
	if depth > maxDepth || !c.new.charge(2) {
		return false
	}
	switch a := a.(type) {
	case array:
		b, ok := b.(array)
		return ok && slices.EqualFunc(a, b, func(x, y object) bool { return c.same(x, y, depth+1, loose) })
	case dict:
		b, ok := b.(dict)
		if !ok {
			return false
		}
		return len(c.keys(a, b)) == 0
	case text:
		b, ok := b.(text)
		return ok && bytes.Equal(a, b)
	case number:
		b, ok := b.(number)
		return ok && sameNumber(a, b, loose)
	case *stream:
		b, ok := b.(*stream)
		return ok && len(c.keys(a.dict.with("Length", nil), b.dict.with("Length", nil))) == 0 && c.sameData(a, b)
	}
	switch b.(type) {
	case array, dict, text, *stream:
		return false
	}
	return a == b
}

// sameNumber compares numbers by value. Some programs ignore a real number where they expect
// an integer, so the two differ unless loose is set.
func sameNumber(a, b number, loose bool) bool {
	if a == b {
		return true
	}
	if !loose && strings.Contains(string(a), ".") != strings.Contains(string(b), ".") {
		return false
	}
	return plainNumber(a) == plainNumber(b)
}

// plainNumber removes what does not change the value of a number: zeros at both ends, a plus
// sign, a point at the end.
func plainNumber(n number) string {
	s, negative := string(n), false
	switch {
	case strings.HasPrefix(s, "+"):
		s = s[1:]
	case strings.HasPrefix(s, "-"):
		s, negative = s[1:], true
	}
	if strings.Trim(s, "0123456789.") != "" || strings.Count(s, ".") > 1 {
		return string(n) // malformed
	}
	whole, part, _ := strings.Cut(s, ".")
	s = strings.TrimLeft(whole, "0")
	if part = strings.TrimRight(part, "0"); part != "" {
		s += "." + part
	}
	if negative && s != "" {
		s = "-" + s
	}
	return s
}

// measures are the keys of lengths and places, in which all programs expect any number.
var measures = map[name]bool{
	"MediaBox": true, "CropBox": true, "BleedBox": true, "TrimBox": true, "ArtBox": true,
	"Rect": true, "BBox": true, "Matrix": true, "QuadPoints": true, "FontBBox": true, "Widths": true,
}

func (c *comparison) sameData(a, b *stream) bool {
	if a.offset == b.offset {
		return true
	}
	x, err1 := c.old.rawData(a)
	y, err2 := c.new.rawData(b)
	defer c.new.spending.Release(int64(len(x) + len(y)))
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// keys returns the keys with different values.
func (c *comparison) keys(a, b dict) []name {
	var out []name
	for _, d := range []dict{a, b} {
		for _, e := range d {
			if !c.new.charge(int64(len(a)+len(b)+len(out)) / 2) {
				return out
			}
			if !slices.Contains(out, e.key) && !c.same(a.get(e.key), b.get(e.key), 1, measures[e.key]) {
				out = append(out, e.key)
			}
		}
	}
	return out
}

// knowFields collects the fields of the signed document.
func (c *comparison) knowFields() {
	form := c.old.resolveDict(c.old.resolveCatalog("AcroForm"))
	c.undrawn = c.old.resolve(form.get("NeedAppearances")) == true
	for _, o := range c.old.resolveArray(form.get("Fields")) {
		c.knowField(o, "", nil, false, 0)
	}
}

func (c *comparison) knowField(o object, path string, kind object, signed bool, depth int) {
	id, _ := o.(ref)
	d, ok := c.old.resolve(o).(dict)
	if !ok || depth > maxTreeDepth || id.num == 0 || c.fields[id.num] != nil || len(c.fields) > maxVisited {
		return
	}
	if t, ok := c.old.resolve(d.get("T")).(text); ok {
		if path != "" {
			path += "."
		}
		path += readTextString(t)
	}
	if k := c.old.resolve(d.get("FT")); k != nil {
		kind = k
	}
	if kind == name("Sig") {
		signed = signed || c.old.resolve(d.get("V")) != nil
	}
	f := &fieldRole{path: path, signing: kind == name("Sig"), signed: signed}
	c.fields[id.num] = f
	c.appearances(c.old, d, func(id ref, o object) {
		f.shown = append(f.shown, id.num)
		if s, ok := o.(*stream); ok && !s.dict.has("Resources") {
			n, ok := c.old.lengthOf(s)
			c.bare = c.bare || !ok || n > 0
		}
	})
	c.undrawn = c.undrawn || !f.signing && d.has("Rect") && !d.has("AP")
	for _, kid := range c.old.resolveArray(d.get("Kids")) {
		c.knowField(kid, path, kind, signed, depth+1)
	}
}

// redrawn reports that programs may draw fields that have no appearance in another way.
func (c *comparison) redrawn() {
	if c.undrawn {
		c.note(kindForm, "the defaults by which programs draw fields without an appearance")
	}
}

// appearances calls use for the appearances of a widget, and for the dictionaries of them that
// are objects of their own.
func (c *comparison) appearances(f *file, d dict, use func(id ref, o object)) {
	call := func(o object) object {
		id, _ := o.(ref)
		o = f.resolve(o)
		if _, ok := o.(*stream); ok || id.num != 0 {
			use(id, o)
		}
		return o
	}
	shown, _ := call(d.get("AP")).(dict)
	for _, e := range shown {
		states, _ := call(e.value).(dict)
		for _, state := range states {
			call(state.value)
		}
	}
}

// fill determines which fields were filled: those whose value or appearance differs. A
// signature field is filled when it is signed.
func (c *comparison) fill() {
	for num, f := range c.fields {
		changed := c.differs[num] || slices.ContainsFunc(f.shown, func(n int) bool { return c.differs[n] })
		if !changed || f.signed {
			continue
		}
		if d, _ := c.new.object(ref{num: num}).(dict); !f.signing || c.new.resolve(c.valueOf(d)) != nil {
			c.names[f.path] = true
		}
	}
}

// isFilled reports whether the appearance of a field may differ: it was filled, or the field is
// new.
func (c *comparison) isFilled(num int) bool {
	f := c.fields[num]
	return f == nil && c.added[num] || f != nil && c.names[f.path]
}

// signing reports whether a field is for a signature.
func (c *comparison) signing(num int) bool {
	if f := c.fields[num]; f != nil {
		return f.signing
	}
	d, _ := c.new.object(ref{num: num}).(dict)
	return c.kindOf(d) == name("Sig")
}

// kindOf returns the present kind of a field, its own or inherited.
func (c *comparison) kindOf(d dict) object {
	for range maxTreeDepth {
		if k := c.new.resolve(d.get("FT")); k != nil || d == nil {
			return k
		}
		d = c.new.resolveDict(d.get("Parent"))
	}
	return nil
}

// trailer compares the targets of the trailers.
func (c *comparison) trailer() {
	a, b := c.old.trailer, c.new.trailer
	for _, r := range c.later {
		if !c.same(a.get("Encrypt"), r.trailer.get("Encrypt"), 0, false) {
			c.note(kindOther, "the encryption")
			break
		}
		if was, is := c.old.resolveArray(a.get("ID")), c.old.resolveArray(r.trailer.get("ID")); a.has("Encrypt") && (len(was) == 0 || len(is) == 0 || !c.same(was[0], is[0], 0, false)) {
			c.note(kindOther, "the identifier of the file, on which its encryption depends")
			break
		}
	}
	for _, key := range []name{"Root", "Info", "Encrypt"} {
		if !c.same(c.whole.trailer.get(key), b.get(key), 0, false) {
			c.note(kindOther, "%s of the trailer, which programs read differently", printable(key))
		}
	}
	if !c.same(a.get("Info"), b.get("Info"), 0, false) {
		c.information(c.old.resolveDict(a.get("Info")), c.new.resolveDict(b.get("Info")))
	}
	if c.same(a.get("Root"), b.get("Root"), 0, false) {
		return
	}
	_, was := c.old.catalog()
	_, is := c.new.catalog()
	c.catalog(was, is)
}

// information classifies the changes of the document information. Its date and producer are
// those of the program that wrote the revision.
func (c *comparison) information(was, is dict) {
	c.note(kindMetadata, "the document information")
	for _, key := range c.keys(was, is) {
		if key != "ModDate" && key != "Producer" {
			c.described = true
		}
	}
}

// object classifies one object that differs, by all of its roles.
func (c *comparison) object(num int, has roles) {
	a, b := c.old.object(ref{num: num}), c.new.object(ref{num: num})
	was, wasDict := a.(dict)
	is, isDict := b.(dict)
	dicts := wasDict && isDict
	switch {
	case has&(roleDrawn|roleOther) != 0, has == 0 && !c.wasSection(num):
		c.replaced(num, a, b)
		return
	case b == nil && has&^roleAnnot != 0: // programs search the file for what the document still refers to
		c.replaced(num, a, b)
		return
	case has&(roleCatalog|rolePages|roleForm|roleKinds|roleKind|roleField) != 0 && !dicts:
		c.replaced(num, a, b)
		return
	}
	if has&roleCatalog != 0 {
		c.catalog(was, is)
	}
	if has&rolePages != 0 {
		c.page(num, was, is)
	}
	if has&roleForm != 0 {
		c.form(was, is)
	}
	if has&(roleKinds|roleKind) != 0 {
		c.redrawn()
	}
	if has&roleKinds != 0 && !c.grown(was, is) {
		c.note(kindOther, "the resources of the form")
	}
	if has&roleKind != 0 && !c.moreOf("", was, is) {
		c.note(kindOther, "resources of the form")
	}
	if has&roleField != 0 {
		c.field(c.fields[num], num, was, is)
	}
	if has&roleFields != 0 {
		c.list(num, a, b, c.newFields)
	}
	if has&roleList != 0 && has&(roleAnnot|roleField) == 0 {
		c.list(num, a, b, c.annotations)
	}
	if has&roleAnnot != 0 && has&roleField == 0 {
		c.note(kindAnnotations, "annotation %d was changed", num)
	}
	if has&(roleTags|roleNumbers) != 0 {
		c.tags(num, a, b, has)
	}
	if has&roleStore != 0 {
		c.note(kindStore, "object %d", num)
	}
	if has&roleMetadata != 0 {
		if id, ok := c.old.trailer.get("Info").(ref); ok && id.num == num && dicts {
			c.information(was, is)
		} else {
			c.described = true
			c.note(kindMetadata, "object %d", num)
		}
	}
	if has&roleFilled != 0 && has&roleField == 0 {
		c.appearance(num)
	}
}

// wasSection reports whether an object was a cross-reference stream, whose number may be used
// again.
func (c *comparison) wasSection(num int) bool {
	p := c.old.find(num)
	return p.kind == inFile && slices.ContainsFunc(c.old.sections, func(s *section) bool { return s.stream && s.at == p.at })
}

func (f *file) resolveCatalog(key name) object {
	_, root := f.catalog()
	return root.get(key)
}

// appearance names the field whose appearance was overwritten, not exchanged.
func (c *comparison) appearance(num int) {
	for _, n := range sortedFields(c.fields) {
		f := c.fields[n]
		if slices.Contains(f.shown, num) && !f.signing && !slices.Contains(c.filled, f.path) {
			c.note(kindForm, "the appearance of %s", quoted(f.path))
			c.filled = append(c.filled, f.path)
		}
		if slices.Contains(f.shown, num) {
			widget, shows := c.new.resolveDict(ref{num: n}), false
			c.appearances(c.new, widget, func(id ref, _ object) { shows = shows || id.num == num })
			if !shows { // programs that repair a file may take the earlier field, and draw it with the new object
				c.note(kindOther, "a former appearance of the field %s", quoted(f.path))
			}
			if why := c.unshowable(widget); why != "" {
				c.note(kindOther, "the appearance of the field %s, which %s", quoted(f.path), why)
			}
		}
	}
}

func sortedFields(m map[int]*fieldRole) []int {
	list := make([]int, 0, len(m))
	for n := range m {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// unshowable returns why programs draw the appearance of a field differently, "" if they do
// not: it must be a form XObject (8.10) with a box.
func (c *comparison) unshowable(d dict) (why string) {
	f := c.new
	c.appearances(f, d, func(_ ref, o object) {
		s, ok := o.(*stream)
		if !ok {
			if _, ok = o.(dict); !ok && o != nil {
				why = "is not a stream"
			}
			return
		}
		numbers := func(key name, count int) bool {
			list := f.resolveArray(s.dict.get(key))
			for _, x := range list {
				if _, ok := real(f.resolve(x)); !ok {
					return false
				}
			}
			return len(list) == count
		}
		_, resources := f.resolve(s.dict.get("Resources")).(dict)
		switch {
		case f.resolve(s.dict.get("Subtype")) != name("Form"):
			why = "is not a form XObject"
		case !numbers("BBox", 4):
			why = "has no box"
		case s.dict.has("Matrix") && !numbers("Matrix", 6):
			why = "has a malformed matrix"
		case s.dict.has("Resources") && !resources:
			why = "has malformed resources"
		case s.offset >= c.old.size && !f.decodes(s):
			why = "programs may decode in different ways"
		}
	})
	return why
}

// list classifies a change of the array of fields or of an array of annotations.
func (c *comparison) list(num int, a, b object, by func(was, is array)) {
	was, ok1 := a.(array)
	is, ok2 := b.(array)
	if !ok1 || !ok2 {
		c.replaced(num, a, b)
		return
	}
	by(was, is)
}

// replaced reports a change that nothing allows.
func (c *comparison) replaced(num int, a, b object) {
	what := "an object"
	if s, ok := a.(*stream); ok {
		a = s.dict
		what = "a stream"
	}
	if d, ok := a.(dict); ok {
		if t, ok := d.get("Type").(name); ok {
			what = "a " + printable(t)
		}
	}
	if b == nil {
		c.note(kindOther, "object %d (%s) was removed", num, what)
		return
	}
	c.note(kindOther, "object %d (%s) was replaced", num, what)
}

// catalog classifies the changes of the catalog by key.
func (c *comparison) catalog(was, is dict) {
	for _, key := range c.keys(was, is) {
		switch key {
		case "DSS":
			c.note(kindStore, "the document security store")
		case "Extensions", "Version":
			c.note(kindStore, "the version") // of the format, not of the content
		case "Metadata":
			c.note(kindMetadata, "the metadata")
		case "AcroForm":
			c.form(c.old.resolveDict(was.get(key)), c.new.resolveDict(is.get(key)))
		default:
			c.note(kindOther, "%s of the catalog", printable(key))
		}
	}
}

// form classifies the changes of the form dictionary.
func (c *comparison) form(was, is dict) {
	for _, key := range c.keys(was, is) {
		switch key {
		case "SigFlags":
		case "NeedAppearances":
			c.note(kindForm, "NeedAppearances, by which programs draw the fields anew")
		case "DA":
			if was.has(key) { // fields without their own would look different
				c.note(kindOther, "the default appearance of fields")
			}
			c.redrawn()
		case "DR":
			if !c.grown(c.old.resolveDict(was.get(key)), c.new.resolveDict(is.get(key))) {
				c.note(kindOther, "the resources of the form")
			}
			c.redrawn()
		case "Fields":
			c.newFields(c.old.resolveArray(was.get(key)), c.new.resolveArray(is.get(key)))
		default:
			c.note(kindOther, "%s of the form", printable(key))
		}
	}
}

// grown reports whether the resources of the form may change so.
func (c *comparison) grown(was, is dict) bool {
	for _, e := range was {
		a, b := c.old.resolve(e.value), c.new.resolve(is.get(e.key))
		d1, ok1 := a.(dict)
		d2, ok2 := b.(dict)
		switch {
		case c.equal(e.value, is.get(e.key), 0):
		case !ok1 || !ok2:
			if e.key == "Font" || e.key == "Encoding" || c.bare {
				return false
			}
		case !c.moreOf(e.key, d1, d2):
			return false
		}
	}
	return true
}

// moreOf reports whether resources of one kind only have additional entries: another font
// under a known name changes how fields look. Other kinds are only for appearances without
// resources of their own, "" is an unknown kind. A new font is a dictionary: programs complain of others.
func (c *comparison) moreOf(kind name, was, is dict) bool {
	fonts := kind == "Font" || kind == "Encoding"
	if kind != "" && !fonts && !c.bare {
		return true
	}
	dictionaries := fonts || len(was) > 0
	for _, e := range was {
		if !c.equal(e.value, is.get(e.key), 0) {
			return false
		}
		if _, ok := c.old.resolve(e.value).(dict); !ok {
			dictionaries = false
		}
	}
	for _, e := range is {
		if _, ok := c.new.resolve(e.value).(dict); dictionaries && !ok && !was.has(e.key) {
			return false
		}
	}
	return true
}

// equal compares two values through their references: programs write fonts again under other
// numbers.
func (c *comparison) equal(a, b object, depth int) bool {
	const most = 8 // an encoding of a font, or its file
	if depth > most || !c.new.charge(2) {
		return false
	}
	switch x := c.old.resolve(a).(type) {
	case array:
		y, ok := c.new.resolve(b).(array)
		return ok && slices.EqualFunc(x, y, func(a, b object) bool { return c.equal(a, b, depth+1) })
	case dict:
		y, ok := c.new.resolve(b).(dict)
		return ok && c.equalEntries(x, y, depth)
	case *stream:
		y, ok := c.new.resolve(b).(*stream)
		return ok && c.equalEntries(x.dict.with("Length", nil), y.dict.with("Length", nil), depth) && c.sameData(x, y)
	default:
		return c.same(x, c.new.resolve(b), depth, false)
	}
}

func (c *comparison) equalEntries(a, b dict, depth int) bool {
	for _, e := range slices.Concat(a, b) {
		if !c.equal(a.get(e.key), b.get(e.key), depth+1) {
			return false
		}
	}
	return true
}

// signatureAdded classifies the new value of a signature field. shown reports whether a
// page shows the field.
func (c *comparison) signatureAdded(value object, field string, shown bool) {
	if c.values == nil {
		c.values = map[int]bool{}
		for _, s := range c.new.form().signatures {
			if id, ok := s.value.(ref); ok {
				c.values[id.num] = true
			}
		}
	}
	id, _ := value.(ref)
	before := c.old.find(id.num).kind
	switch {
	case !c.values[id.num]:
		// Not signed, or not a field of the form: then it is not among the signatures
		// that are checked.
		k := kindOther
		if shown {
			k = kindAnnotations
		}
		c.note(k, "the signature field %s without a signature", quoted(field))
	case before == inFile || before == inStream:
		c.note(kindOther, "the field %s with a signature that was there before", quoted(field))
	case c.new.resolve(c.new.resolveDict(value).get("SubFilter")) == name("ETSI.RFC3161"):
		c.note(kindStamp, "%s", quoted(field))
	default:
		c.note(kindSignature, "%s", quoted(field))
	}
}

// valueOf returns the present value of a field or widget, its own or inherited.
func (c *comparison) valueOf(d dict) object {
	for range maxTreeDepth {
		if v := d.get("V"); v != nil || d == nil {
			return v
		}
		d = c.new.resolveDict(d.get("Parent"))
	}
	return nil
}

// newFields classifies the changes of the list of fields.
func (c *comparison) newFields(was, is array) {
	for _, o := range was {
		if !slices.ContainsFunc(is, func(x object) bool { return c.same(o, x, 0, false) }) {
			c.note(kindOther, "a field of the form was removed")
		}
	}
	for _, o := range is {
		if slices.ContainsFunc(was, func(x object) bool { return c.same(o, x, 0, false) }) {
			continue
		}
		d := c.new.resolveDict(o)
		if c.new.resolve(d.get("FT")) == name("Sig") && c.new.resolve(d.get("V")) != nil {
			c.signatureAdded(d.get("V"), readTextString(c.new.textOf(d.get("T"))), false)
		} else {
			c.note(kindOther, "the field %s was added to the form", quoted(readTextString(c.new.textOf(d.get("T")))))
		}
	}
}

// field classifies a change of a field or widget.
func (c *comparison) field(f *fieldRole, num int, was, is dict) {
	if f == nil {
		c.note(kindOther, "field object %d, which was not a field of the form", num)
		return
	}
	locks := false
	for _, key := range c.keys(was, is) {
		allowed := false
		if (key == "Ff" || key == "F" || key == "Q") && c.same(attribute(c.old, was, key, number("0")), attribute(c.new, is, key, number("0")), 0, false) {
			continue
		}
		switch key {
		case "V", "AP", "AS", "MK", "M", "RV", "I":
			allowed = true
		case "F", "DA", "Q", "Ff", "Type": // programs write their own when they sign
			allowed = f.signing
		case "P", "StructParent":
			allowed = f.signing && !was.has(key)
		case "Lock":
			locks = f.signing && !was.has(key)
			allowed = locks
		}
		switch {
		case !allowed:
			c.note(kindOther, "%s of the field %s", printable(key), quoted(f.path))
			return
		case f.signed:
			c.note(kindOther, "the signature field %s, which was signed already", quoted(f.path))
			return
		}
	}
	if why := c.unshowable(is); why != "" {
		c.note(kindOther, "the appearance of the field %s, which %s", quoted(f.path), why)
		return
	}
	if f.signing {
		c.signatureAdded(c.valueOf(is), f.path, true)
		if locks {
			c.note(kindSignature, "a lock in the field %s", quoted(f.path))
		}
		return
	}
	c.note(kindForm, "%s", quoted(f.path))
	c.filled = append(c.filled, f.path)
}

// page classifies a change of a page.
func (c *comparison) page(num int, was, is dict) {
	for _, key := range c.keys(was, is) {
		switch {
		case !was.has(key) && slices.Contains(inheritable, key) && c.same(c.ofParents(was, num, key), is.get(key), 0, key != "Rotate"):
			// iText writes what a page inherits into the page.
		case key == "Resources" && was.has(key) && c.equal(was.get(key), is.get(key), 0):
			// iText writes the resources of a page that gets a field again, under another number.
		case key == "Annots":
			c.annotations(c.old.resolveArray(was.get(key)), c.new.resolveArray(is.get(key)))
		case key == "LastModified", key == "PieceInfo":
			c.described = true
			c.note(kindMetadata, "%s of page object %d", printable(key), num)
		case key == "Tabs" && !was.has(key): // the order of the Tab key
			c.described = true
			c.note(kindMetadata, "%s of page object %d", printable(key), num)
		default:
			c.note(kindOther, "%s of page object %d", printable(key), num)
		}
	}
}

// inheritable are the attributes that a page inherits (7.7.3.4).
var inheritable = []name{"Resources", "MediaBox", "CropBox", "Rotate"}

// ofParents returns the value of an attribute that a page inherits, nil if there is none. Each
// parent must have the page or node among its kids, else programs differ about it.
func (c *comparison) ofParents(page dict, num int, key name) object {
	for range maxTreeDepth {
		id, _ := page.get("Parent").(ref)
		parent := c.old.resolveDict(id)
		kids := c.old.resolveArray(parent.get("Kids"))
		if !c.new.charge(int64(len(kids))) || !slices.ContainsFunc(kids, func(o object) bool { k, _ := o.(ref); return k.num == num }) {
			return nil
		}
		if v := parent.get(key); v != nil {
			return v
		}
		page, num = parent, id.num
	}
	return nil
}

// attribute returns the value of an attribute of a field, its own, inherited, or the default.
func attribute(f *file, d dict, key name, def object) object {
	for range maxTreeDepth {
		if v := f.resolve(d.get(key)); v != nil {
			return v
		}
		if d = f.resolveDict(d.get("Parent")); d == nil {
			break
		}
	}
	return def
}

// annotations classifies the changes of a page's annotations. Those that were there must stay
// in their order, because later ones are drawn over earlier ones.
func (c *comparison) annotations(was, is array) {
	rest := was
	for _, o := range is {
		if len(rest) > 0 && c.same(o, rest[0], 0, false) {
			rest = rest[1:]
			continue
		}
		id, _ := o.(ref)
		d := c.new.resolveDict(o)
		_, placed := c.new.rectangle(d.get("Rect"))
		placed = placed && len(c.new.resolveArray(d.get("Rect"))) == 4
		switch {
		case slices.ContainsFunc(was, func(x object) bool { return c.same(o, x, 0, false) }):
			c.note(kindAnnotations, "the order or the number of annotations")
		case d.get("Subtype") == name("Widget") && c.kindOf(d) == name("Sig") && placed:
			if why := c.unshowable(d); why != "" {
				c.note(kindOther, "the appearance of the signature field, which %s", why)
			}
			if c.widget(id.num) {
				c.note(kindAnnotations, "a signature field is drawn twice")
			}
			c.signatureAdded(c.valueOf(d), readTextString(c.new.textOf(d.get("T"))), true)
		default:
			c.note(kindAnnotations, "an annotation (%s) was added", printable(d.get("Subtype")))
		}
	}
	if len(rest) > 0 {
		c.note(kindAnnotations, "an annotation was removed or moved")
	}
}

// widget reports whether a list of annotations got a widget that another one got before.
func (c *comparison) widget(num int) bool {
	if c.drawn[num] {
		return true
	}
	if c.drawn == nil {
		c.drawn = map[int]bool{}
	}
	if num != 0 {
		c.drawn[num] = true
	}
	return false
}
