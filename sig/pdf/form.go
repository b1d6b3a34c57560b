// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"fmt"
	"strings"
)

// form is the signature fields of the interactive form of a document (ISO 32000-1, 12.7),
// with the data to add one.
type form struct {
	id         ref // of the form, zero if it is in the catalog or there is none
	dict       dict
	fields     array
	fieldsID   ref // of the array of fields, zero if it is in the form
	signatures []*field
	taken      map[string]bool // names of the top-level fields
}

// field is one signature field.
type field struct {
	id       ref
	dict     dict
	name     string // fully qualified
	value    object // V unresolved: nil for a field that is not signed
	widget   ref    // the same as id if field and widget are one object
	onWidget dict
}

func (d *field) signed() bool { return d.value != nil }

// form reads the form and finds its signature fields.
func (f *file) form() *form {
	_, root := f.catalog()
	out := &form{taken: map[string]bool{}}
	if id, ok := root.get("AcroForm").(ref); ok {
		out.id = f.current(id)
	}
	out.dict = f.resolveDict(root.get("AcroForm"))
	if out.dict == nil {
		out.id = ref{}
	}
	if id, ok := out.dict.get("Fields").(ref); ok {
		out.fieldsID = f.current(id)
	}
	out.fields = f.resolveArray(out.dict.get("Fields"))
	if out.fields == nil {
		out.fieldsID = ref{}
	}
	w := &fieldWalk{file: f, form: out, seen: map[int]bool{}}
	for _, o := range out.fields {
		w.node(o, fieldContext{}, 0)
	}
	return out
}

// fieldContext is what a field inherits.
type fieldContext struct {
	name  string
	kind  object
	value object
}

type fieldWalk struct {
	file *file
	form *form
	seen map[int]bool
}

func (w *fieldWalk) node(o object, in fieldContext, depth int) {
	f := w.file
	id, _ := o.(ref)
	d, ok := f.resolve(o).(dict)
	if !ok || depth > maxTreeDepth || id.num == 0 || w.seen[id.num] || len(w.seen) > maxVisited {
		return
	}
	w.seen[id.num] = true
	if !f.keep(fieldSize) {
		return
	}
	if t, ok := f.resolve(d.get("T")).(text); ok {
		if !f.keep(textGrowth*int64(len(t)) + int64(len(in.name))) {
			return
		}
		part := readTextString(t)
		if depth == 0 {
			w.form.taken[part] = true
			in.name = part
		} else {
			in.name += "." + part
		}
	}
	if kind := f.resolve(d.get("FT")); kind != nil {
		in.kind = kind
	}
	if v := d.get("V"); f.resolve(v) != nil {
		in.value = v
	}
	kids := f.resolveArray(d.get("Kids"))
	inner := false
	for _, kid := range kids {
		if k, ok := f.resolve(kid).(dict); ok && k.has("T") {
			inner = true
			w.node(kid, in, depth+1)
		}
	}
	if inner || in.kind != name("Sig") {
		return
	}
	// The dictionary stays in memory, even if the cache of objects forgets it.
	if !f.keep(f.objects[id.num].size) {
		return
	}
	out := &field{id: f.current(id), dict: d, name: in.name, value: in.value, widget: f.current(id), onWidget: d}
	if len(kids) > 0 && !d.has("Rect") {
		if k, ok := kids[0].(ref); ok {
			out.widget = f.current(k)
			out.onWidget, _ = f.resolve(k).(dict)
		}
	}
	w.form.signatures = append(w.form.signatures, out)
}

// freeName returns a name that no top-level field has.
func (m *form) freeName() string {
	for i := 1; ; i++ {
		if s := fmt.Sprintf("Signature%d", i); !m.taken[s] {
			return s
		}
	}
}

// restriction is what earlier signatures forbid.
type restriction struct {
	level int // of the certification (DocMDP), 0 if there is none
	locks []lock
}

// lock is the content of a signature field's Lock or of a FieldMDP transform: which
// fields must not change.
type lock struct {
	action string // All, Include, Exclude
	fields []string
	level  int // P, 0 if absent
}

// covers reports whether a lock forbids a change of a field.
func (k lock) covers(field string) bool {
	named := false
	for _, n := range k.fields {
		if field == n || strings.HasPrefix(field, n+".") {
			named = true
		}
	}
	switch k.action {
	case "All":
		return true
	case "Include":
		return named
	case "Exclude":
		return !named
	}
	return false
}

func (f *file) lock(d dict) lock {
	action, _ := f.resolve(d.get("Action")).(name)
	k := lock{action: string(action), level: int(f.intOf(d.get("P")))}
	for _, o := range f.resolveArray(d.get("Fields")) {
		k.fields = append(k.fields, readTextString(f.textOf(o)))
	}
	return k
}

// restrictions reads the transforms of all signatures (12.8.2).
func (f *file) restrictions(m *form) restriction {
	var r restriction
	_, root := f.catalog()
	certified := f.resolveDict(f.resolveDict(root.get("Perms")).get("DocMDP"))
	dicts := []dict{certified}
	for _, s := range m.signatures {
		if s.signed() {
			dicts = append(dicts, f.resolveDict(s.value))
		}
	}
	for _, d := range dicts {
		for _, o := range f.resolveArray(d.get("Reference")) {
			reference := f.resolveDict(o)
			params := f.resolveDict(reference.get("TransformParams"))
			switch f.resolve(reference.get("TransformMethod")) {
			case name("DocMDP"):
				r.restrict(f.certificationLevel(params))
			case name("FieldMDP"):
				k := f.lock(params)
				r.locks = append(r.locks, k)
				r.restrict(k.level)
			}
		}
	}
	if certified != nil && r.level == 0 {
		r.level = 2 // the default of P
	}
	return r
}

// restrict keeps the strictest level.
func (r *restriction) restrict(level int) {
	if level > 0 && (r.level == 0 || level < r.level) {
		r.level = level
	}
}

// certificationLevel returns P of DocMDP parameters, 2 by default.
func (f *file) certificationLevel(params dict) int {
	if n := f.intOf(params.get("P")); n >= 1 && n <= 3 {
		return int(n)
	}
	return 2
}

// locked reports whether an earlier signature forbids a change of a field.
func (r *restriction) locked(field string) bool {
	for _, k := range r.locks {
		if k.covers(field) {
			return true
		}
	}
	return false
}
