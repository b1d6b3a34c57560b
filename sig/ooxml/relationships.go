// SPDX-License-Identifier: Apache-2.0

package ooxml

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"tamga/sig/budget"
	"tamga/sig/xmltree"
)

const nsRelationships = "http://schemas.openxmlformats.org/package/2006/relationships"

// relationship is one relationship of a package or a part.
type relationship struct {
	id, kind, target string
	mode             string // TargetMode, "Internal" if none is written
	part             string // key of the part it leads to, "" if it leads to none
}

func (r *relationship) external() bool { return r.mode == "External" }

// relationships are the relationships of one source.
type relationships struct {
	tree   *xmltree.Tree
	name   string // of the part that contains them
	source string // name of their source part, "" for the package
	list   []relationship
	sorted []*relationship // the same ordered by Id, as the transform needs them
	// untidy reports that programs digest the part differently because of how it is
	// written: with white space or comments between the elements, or with prefixes.
	untidy bool
}

// parseRelationships parses a relationships part.
func parseRelationships(b *budget.Budget, name, source string, data []byte) (*relationships, error) {
	t, err := parseXML(b, name, data)
	if err != nil {
		return nil, err
	}
	r := &relationships{tree: t, name: name, source: source, untidy: len(spaces(t)) > 0}
	_, prefixed := withoutPrefixes(t, "")
	r.untidy = r.untidy || prefixed
	if !t.Is(t.Root(), nsRelationships, "Relationships") {
		return nil, unfit(nil, "the part %s does not hold relationships", quote("/"+name))
	}
	seen := map[string]bool{}
	for n := range t.Elements(t.Root()) {
		if !t.Is(n, nsRelationships, "Relationship") {
			continue // markup compatibility, which the transform leaves out too
		}
		var x relationship
		var hasID, hasKind, hasTarget bool
		x.id, hasID = t.Get(n, "Id")
		x.kind, hasKind = t.Get(n, "Type")
		x.target, hasTarget = t.Get(n, "Target")
		if !hasID || !hasKind || !hasTarget || x.id == "" {
			return nil, unfit(nil, "the part %s has a relationship without Id, Type or Target", quote("/"+name))
		}
		if seen[x.id] {
			// A signature names relationships by Id.
			return nil, unfit(nil, "the part %s has two relationships with the Id %s", quote("/"+name), quote(x.id))
		}
		seen[x.id] = true
		x.mode = "Internal"
		if mode, ok := t.Get(n, "TargetMode"); ok {
			x.mode = mode
		}
		if x.mode != "Internal" && x.mode != "External" {
			return nil, unfit(nil, "the part %s has the TargetMode %s; Internal or External expected", quote("/"+name), quote(x.mode))
		}
		if !x.external() {
			if to, ok := resolve(source, x.target); ok {
				x.part = key(to)
			}
		}
		r.list = append(r.list, x)
	}
	for i := range r.list {
		r.sorted = append(r.sorted, &r.list[i])
	}
	slices.SortFunc(r.sorted, func(x, y *relationship) int { return cmp.Compare(x.id, y.id) })
	return r, nil
}

// transformed returns the bytes of the relationships that keep selects, after the
// relationship transform and a canonical form (ECMA-376 part 2, 13.2.4.24): sorted by Id
// as case-sensitive strings, without content between, in or around them, with the default
// for TargetMode, without prefixes and foreign attributes. The result is the same in all
// canonical forms of XML.
func (r *relationships) transformed(keep func(*relationship) bool) []byte {
	var b bytes.Buffer
	b.WriteString(`<Relationships xmlns="` + nsRelationships + `">`)
	for _, x := range r.sorted {
		if !keep(x) {
			continue
		}
		for _, a := range [][2]string{
			{`<Relationship Id="`, x.id}, {`" Target="`, x.target}, {`" TargetMode="`, x.mode}, {`" Type="`, x.kind},
		} {
			b.WriteString(a[0])
			xmltree.WriteValue(&b, a[1])
		}
		b.WriteString(`"></Relationship>`)
	}
	b.WriteString("</Relationships>")
	return b.Bytes()
}

// spaces returns the edits that remove white space and comments between relationships and
// in them. They have no meaning, and the relationship transform leaves them out. But
// xmlsec, which LibreOffice verifies with, digests them, so that LibreOffice calls every
// signature over such a part broken. LibreOffice itself writes a line end there.
func spaces(t *xmltree.Tree) (edits []xmltree.Edit) {
	take := func(parent xmltree.Node) {
		for n := range t.Children(parent) {
			if k := t.Kind(n); k == xmltree.KindText || k == xmltree.KindComment {
				edits = append(edits, xmltree.Edit{Span: t.Span(n)})
			}
		}
	}
	take(t.Root())
	for n := range t.Elements(t.Root()) {
		take(n)
	}
	return edits
}

// withoutPrefixes returns the Relationships element without prefixes and without anything
// between the elements, with more after the last one. It returns false if the part has no
// prefixes, or has something that would be lost.
//
// The relationship transform removes prefixes (ECMA-376 part 2, 13.2.4.24, step 2b). Some
// programs digest them nevertheless.
func withoutPrefixes(t *xmltree.Tree, more string) (string, bool) {
	root := t.Root()
	prefixed := t.Name(root).Prefix != ""
	for n := range t.Elements(root) {
		prefixed = prefixed || t.Name(n).Prefix != ""
	}
	if !prefixed {
		return "", false
	}
	for range t.Attributes(root) {
		return "", false
	}
	var b strings.Builder
	b.WriteString(`<Relationships xmlns="` + nsRelationships + `">`)
	for n := range t.Elements(root) {
		if !t.Is(n, nsRelationships, "Relationship") {
			return "", false
		}
		for range t.Elements(n) {
			return "", false
		}
		b.WriteString("<Relationship")
		for a := range t.Attributes(n) {
			name := t.AttrName(a)
			if name.Space != "" {
				return "", false
			}
			b.WriteString(" " + name.Local + `="` + escape(t.Value(a)) + `"`)
		}
		b.WriteString("/>")
	}
	return b.String() + more + "</Relationships>", true
}

// edited returns the part with changes: with tidy in the form that all programs digest
// equally, and with one more relationship if kind is not "".
func (r *relationships) edited(tidy bool, kind, target string) ([]byte, error) {
	t := r.tree
	var edits []xmltree.Edit
	if tidy {
		more := ""
		if kind != "" {
			more = `<Relationship Id="` + r.freeID() + `" Type="` + kind + `" Target="` + escape(target) + `"/>`
		}
		if plain, ok := withoutPrefixes(t, more); ok {
			edits, kind = []xmltree.Edit{{Span: t.Span(t.Root()), Text: plain}}, ""
		} else {
			edits = spaces(t)
		}
	}
	if kind != "" {
		edits = append(edits, t.Append(t.Root(), "<"+prefixOf(t, t.Root())+`Relationship Id="`+r.freeID()+`" Type="`+kind+`" Target="`+escape(target)+`"/>`))
	}
	s, err := t.Splice(edits...)
	if err != nil {
		return nil, err
	}
	return s.Bytes(), nil
}

// freeID returns the first of rId1, rId2... that is not taken, in any letter case.
func (r *relationships) freeID() string {
	taken := map[string]bool{}
	for _, x := range r.list {
		taken[strings.ToLower(x.id)] = true
	}
	for i := 1; ; i++ {
		if id := "rId" + strconv.Itoa(i); !taken[strings.ToLower(id)] {
			return id
		}
	}
}

// newRelationships returns a relationships part with one relationship.
func newRelationships(kind, target string) []byte {
	return []byte(`<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\r\n" +
		`<Relationships xmlns="` + nsRelationships + `"><Relationship Id="rId1" Type="` + kind + `" Target="` + escape(target) + `"/></Relationships>`)
}
