// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"fmt"
	"slices"
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
	signature *signature
	found     [kindOther + 1][]string
	filled    []string // names of the form fields that were filled
	partly    string   // why not all changes were checked, "" if they were

	fields      map[int]string // numbers of fields and their widgets, with their names
	signed      map[int]bool   // the fields that were signed
	signing     map[int]bool   // the fields that are signature fields
	appearances map[int]string // numbers of appearances of widgets, with the names of their fields
	store       map[int]bool   // of the old security store
	lists       map[int]bool   // arrays of annotations
	metadata    map[int]bool
	referrers   *referrers
	resources   map[int]int  // dictionaries of the form's resources: 0 for that of all kinds, 1 for that of one kind
	values      map[int]bool // signatures that fields of the form lead to now, filled on first use
}

// maxCompared is how many objects are compared.
const maxCompared = 1 << 20

// compare finds the changes by later revisions.
func compare(old, now *file, s *signature, r *referrers) *comparison {
	c := &comparison{
		old: old, new: now, signature: s, referrers: r,
		fields: map[int]string{}, signed: map[int]bool{}, signing: map[int]bool{}, appearances: map[int]string{},
		store: map[int]bool{}, lists: map[int]bool{}, metadata: map[int]bool{}, resources: map[int]int{},
	}
	c.roles()
	changed, added := c.changed()
	c.trailer()
	for _, num := range changed {
		if now.failed() != nil {
			return c
		}
		c.object(num)
	}
	if len(added) > 0 {
		c.dangling(added)
	}
	return c
}

func (c *comparison) note(k kind, format string, args ...any) {
	c.found[k] = append(c.found[k], fmt.Sprintf(format, args...))
}

// changed returns the numbers of objects that differ, and of those that are new.
func (c *comparison) changed() (changed []int, added map[int]bool) {
	numbers := map[int]bool{}
	whole := !slices.ContainsFunc(c.new.sections, func(s *section) bool { return s.at == c.old.sections[0].at })
	collect := func(f *file, all bool) {
		for _, s := range f.sections {
			if !all && s.at >= 0 && s.at+f.bias < c.signature.end {
				continue
			}
			for i := range s.subs {
				for n := s.subs[i].first; n < s.subs[i].first+s.subs[i].count; n++ {
					if len(numbers) == maxCompared {
						c.partly = "the document has more objects than the limit"
						return
					}
					if !numbers[n] && (!f.charge(4*priceToken) || !f.keep(3*16)) {
						return
					}
					numbers[n] = true
				}
			}
		}
	}
	collect(c.new, whole)
	if whole { // objects that the new sections leave out are removed
		collect(c.old, true)
	}
	added = map[int]bool{}
	for queue := sortedKeys(numbers); len(queue) > 0; {
		n := queue[0]
		queue = queue[1:]
		was, is := c.old.find(n), c.new.find(n)
		switch {
		case n == 0 || was.kind != inFile && was.kind != inStream:
			if is.kind == inFile || is.kind == inStream {
				added[n] = true
			}
			continue
		case was == is && was.kind == inFile:
			continue
		case was == is && c.old.find(int(was.at)) == c.new.find(int(is.at)):
			continue
		}
		a, b := c.old.object(ref{num: n}), c.new.object(ref{num: n})
		if st, ok := a.(*stream); ok {
			switch st.dict.get("Type") {
			case name("XRef"):
				continue // its number may be reused
			case name("ObjStm"):
				// The objects in it may differ now, although no section lists them.
				if list, err := c.old.objectStream(n); err == nil {
					for _, inner := range list.numbers {
						if !numbers[inner] && len(numbers) < maxCompared {
							numbers[inner] = true
							queue = append(queue, inner)
						}
					}
				}
				continue
			}
		}
		if !c.same(a, b, 0) {
			changed = append(changed, n)
		}
	}
	return changed, added
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
// objects are compared separately.
func (c *comparison) same(a, b object, depth int) bool {
	if depth > maxDepth || !c.new.charge(2) {
		return false
	}
	switch a := a.(type) {
	case array:
		b, ok := b.(array)
		return ok && slices.EqualFunc(a, b, func(x, y object) bool { return c.same(x, y, depth+1) })
	case dict:
		b, ok := b.(dict)
		if !ok {
			return false
		}
		return len(c.keys(a, b)) == 0
	case text:
		b, ok := b.(text)
		return ok && bytes.Equal(a, b)
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
			if !slices.Contains(out, e.key) && !c.same(a.get(e.key), b.get(e.key), 1) {
				out = append(out, e.key)
			}
		}
	}
	return out
}

// roles determines the purpose of the objects of the old revision.
func (c *comparison) roles() {
	f := c.old
	_, root := f.catalog()
	form := f.resolveDict(root.get("AcroForm"))
	seen := map[int]bool{}
	for _, o := range f.resolveArray(form.get("Fields")) {
		c.fieldRole(o, "", nil, false, 0, seen)
	}
	c.within(root.get("DSS"), c.store, 0)
	if id, ok := form.get("DR").(ref); ok {
		c.resources[id.num] = 0
	}
	for _, e := range f.resolveDict(form.get("DR")) {
		if id, ok := e.value.(ref); ok {
			c.resources[id.num] = 1
		}
	}
	if id, ok := root.get("Metadata").(ref); ok {
		c.metadata[id.num] = true
	}
	if id, ok := f.trailer.get("Info").(ref); ok {
		c.metadata[id.num] = true
	}
}

func (c *comparison) fieldRole(o object, path string, kind object, signed bool, depth int, seen map[int]bool) {
	id, _ := o.(ref)
	d, ok := c.old.resolve(o).(dict)
	if !ok || depth > maxTreeDepth || id.num == 0 || seen[id.num] || len(seen) > maxVisited {
		return
	}
	seen[id.num] = true
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
		c.signing[id.num] = true
		signed = signed || c.old.resolve(d.get("V")) != nil
	}
	c.signed[id.num] = signed
	c.fields[id.num] = path
	shown := map[int]bool{}
	c.within(d.get("AP"), shown, 0)
	for n := range shown {
		c.appearances[n] = path
	}
	for _, kid := range c.old.resolveArray(d.get("Kids")) {
		c.fieldRole(kid, path, kind, signed, depth+1, seen)
	}
}

// within collects the numbers of all objects that can be reached from an object.
func (c *comparison) within(o object, into map[int]bool, depth int) {
	if depth > maxTreeDepth || len(into) > 1<<14 {
		return
	}
	if id, ok := o.(ref); ok {
		if into[id.num] {
			return
		}
		into[id.num] = true
		o = c.old.object(id)
	}
	switch o := o.(type) {
	case array:
		for _, x := range o {
			c.within(x, into, depth+1)
		}
	case dict:
		for _, e := range o {
			if e.key != "Parent" && e.key != "P" {
				c.within(e.value, into, depth+1)
			}
		}
	case *stream:
		c.within(o.dict, into, depth+1)
	}
}

// trailer compares the targets of the trailers.
func (c *comparison) trailer() {
	a, b := c.old.trailer, c.new.trailer
	if !c.same(a.get("Encrypt"), b.get("Encrypt"), 0) {
		c.note(kindOther, "the encryption")
	}
	if !c.same(a.get("Info"), b.get("Info"), 0) {
		c.note(kindMetadata, "the document information")
	}
	if c.same(a.get("Root"), b.get("Root"), 0) {
		return
	}
	_, was := c.old.catalog()
	_, is := c.new.catalog()
	c.catalog(was, is)
}

// object classifies one object that differs.
func (c *comparison) object(num int) {
	a, b := c.old.object(ref{num: num}), c.new.object(ref{num: num})
	was, wasDict := a.(dict)
	is, isDict := b.(dict)
	root, _ := c.old.catalog()
	formID, _ := c.old.resolveCatalog("AcroForm").(ref)
	path, isField := c.fields[num]
	depth, isResource := c.resources[num]
	switch {
	case num == root.num:
		c.catalog(was, is)
	case c.metadata[num]:
		c.note(kindMetadata, "object %d", num)
	case c.store[num]:
		c.note(kindStore, "object %d", num)
	case num == formID.num:
		c.form(was, is)
	case isResource && wasDict && isDict && !isField && c.grown(was, is, depth) && !c.shared(num):
	case isField && wasDict && isDict:
		c.field(num, path, was, is)
	case c.shown(num) != "":
		c.appearance(num)
	case wasDict && isDict && was.get("Type") == name("Page"):
		c.page(num, was, is)
	case wasDict && was.has("Rect") && was.has("Subtype") && was.get("Subtype") != name("Widget"):
		c.note(kindAnnotations, "annotation %d was changed", num)
	default:
		c.array(num, a, b)
	}
}

func (f *file) resolveCatalog(key name) object {
	_, root := f.catalog()
	return root.get(key)
}

func (c *comparison) shown(num int) string {
	if path, ok := c.appearances[num]; ok {
		return "field " + path
	}
	return ""
}

// appearance classifies an overwritten appearance of a widget.
func (c *comparison) appearance(num int) {
	path := c.appearances[num]
	for n, p := range c.fields {
		if p == path && c.signing[n] {
			c.note(kindOther, "the appearance of the signature field %s", quoted(path))
			return
		}
	}
	c.note(kindForm, "the appearance of %s", quoted(path))
	c.filled = append(c.filled, path)
}

// array classifies a change of the array of fields or of an array of annotations.
func (c *comparison) array(num int, a, b object) {
	was, ok1 := a.(array)
	is, ok2 := b.(array)
	if ok1 && ok2 {
		form := c.old.resolveDict(c.old.resolveCatalog("AcroForm"))
		if id, ok := form.get("Fields").(ref); ok && id.num == num {
			c.newFields(was, is)
			return
		}
		if c.annotationLists()[num] {
			c.annotations(was, is)
			return
		}
	}
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

// annotationLists returns the arrays of annotations of all pages. They are searched for
// on first use.
func (c *comparison) annotationLists() map[int]bool {
	if c.lists == nil || len(c.lists) > 0 {
		return c.lists
	}
	c.lists[0] = true
	seen := map[int]bool{}
	var walk func(o object, depth int)
	walk = func(o object, depth int) {
		id, _ := o.(ref)
		d, ok := c.old.resolve(o).(dict)
		if !ok || depth > maxTreeDepth || seen[id.num] || len(seen) > maxVisited {
			return
		}
		seen[id.num] = true
		if list, ok := d.get("Annots").(ref); ok {
			c.lists[list.num] = true
		}
		for _, kid := range c.old.resolveArray(d.get("Kids")) {
			walk(kid, depth+1)
		}
	}
	walk(c.old.resolveCatalog("Pages"), 0)
	return c.lists
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
		case "SigFlags", "NeedAppearances":
		case "DA":
			if was.has(key) { // fields without their own would look different
				c.note(kindOther, "the default appearance of fields")
			}
		case "DR":
			if !c.grown(was.get(key), is.get(key), 0) {
				c.note(kindOther, "the resources of the form")
			}
		case "Fields":
			c.newFields(c.old.resolveArray(was.get(key)), c.new.resolveArray(is.get(key)))
		default:
			c.note(kindOther, "%s of the form", printable(key))
		}
	}
}

// grown reports whether resources only have additional entries. depth is 0 for all
// resources and 1 for those of one kind. A resource itself must not change: another font
// under a known name changes how fields look.
func (c *comparison) grown(a, b object, depth int) bool {
	if c.same(a, b, 0) || a == nil {
		return true
	}
	was, is := c.old.resolveDict(a), c.new.resolveDict(b)
	if was == nil || is == nil || depth > 1 {
		return false
	}
	for _, e := range was {
		if !c.grown(e.value, is.get(e.key), depth+1) {
			return false
		}
	}
	return true
}

// shared reports whether an object is referenced by anything except the form and its
// fields. Pages that share the form's resources may name some that were missing before.
func (c *comparison) shared(num int) bool {
	root, _ := c.old.catalog()
	formID, _ := c.old.resolveCatalog("AcroForm").(ref)
	looked := 0
	for _, s := range c.old.sections {
		for i := range s.subs {
			for n := s.subs[i].first; n < s.subs[i].first+s.subs[i].count; n++ {
				if looked++; looked > maxVisited || c.new.failed() != nil || c.old.failed() != nil {
					return true
				}
				_, isField := c.fields[n]
				_, isResource := c.resources[n]
				if n != root.num && n != formID.num && !isField && !isResource && slices.Contains(c.referrers.of(c.old, n), num) {
					return true
				}
			}
		}
	}
	return false
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
		if !slices.ContainsFunc(is, func(x object) bool { return c.same(o, x, 0) }) {
			c.note(kindOther, "a field of the form was removed")
		}
	}
	for _, o := range is {
		if slices.ContainsFunc(was, func(x object) bool { return c.same(o, x, 0) }) {
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
func (c *comparison) field(num int, path string, was, is dict) {
	keys := c.keys(was, is)
	signing := c.signing[num]
	for _, key := range keys {
		switch key {
		case "V", "AP", "AS", "MK", "M", "RV", "I":
			if c.signed[num] {
				c.note(kindOther, "the signature field %s, which was signed already", quoted(path))
				return
			}
		default:
			c.note(kindOther, "%s of the field %s", printable(key), quoted(path))
			return
		}
	}
	if signing {
		c.signatureAdded(c.valueOf(is), path, true)
		return
	}
	c.note(kindForm, "%s", quoted(path))
	c.filled = append(c.filled, path)
}

// page classifies a change of a page.
func (c *comparison) page(num int, was, is dict) {
	for _, key := range c.keys(was, is) {
		switch key {
		case "Annots":
			c.annotations(c.old.resolveArray(was.get(key)), c.new.resolveArray(is.get(key)))
		case "LastModified", "PieceInfo":
			c.note(kindMetadata, "%s of page object %d", printable(key), num)
		default:
			c.note(kindOther, "%s of page object %d", printable(key), num)
		}
	}
}

// annotations classifies the changes of a page's annotations.
func (c *comparison) annotations(was, is array) {
	for _, o := range was {
		if !slices.ContainsFunc(is, func(x object) bool { return c.same(o, x, 0) }) {
			c.note(kindAnnotations, "an annotation was removed")
		}
	}
	for _, o := range is {
		if slices.ContainsFunc(was, func(x object) bool { return c.same(o, x, 0) }) {
			continue
		}
		d := c.new.resolveDict(o)
		kind := c.new.resolve(d.get("FT"))
		if parent := c.new.resolveDict(d.get("Parent")); kind == nil {
			kind = c.new.resolve(parent.get("FT"))
		}
		switch {
		case d.get("Subtype") == name("Widget") && kind == name("Sig"):
			c.signatureAdded(c.valueOf(d), readTextString(c.new.textOf(d.get("T"))), true)
		default:
			c.note(kindAnnotations, "an annotation (%s) was added", printable(d.get("Subtype")))
		}
	}
}

// dangling looks for references in the old revision that led nowhere and lead to new
// objects now. They would change the signed content without a change of any of its
// objects.
func (c *comparison) dangling(added map[int]bool) {
	look := func(from int) bool {
		for _, num := range c.referrers.of(c.old, from) {
			if added[num] {
				c.note(kindOther, "object %d, which object %d refers to and which was missing", num, from)
				return true
			}
		}
		return false
	}
	looked, told := 0, 0
	for _, s := range c.old.sections {
		for i := range s.subs {
			for n := s.subs[i].first; n < s.subs[i].first+s.subs[i].count; n++ {
				if looked++; looked > maxVisited || told == 8 || c.old.failed() != nil {
					if looked > maxVisited {
						c.partly = "the document has more objects than the limit"
					}
					return
				}
				if look(n) {
					told++
				}
			}
		}
	}
}
