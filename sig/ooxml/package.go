// SPDX-License-Identifier: Apache-2.0

package ooxml

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tamga/sig"
	"tamga/sig/budget"
)

// document is an open Office document: an archive with the meaning of its entries.
type document struct {
	*archive
	types *contentTypes
	// typesName is the entry name of [Content_Types].xml as it is written.
	typesName string
	// byKey are the entries by the key of their names.
	byKey map[string]*entry
	// rels are the relationships by the key of their source, "" for the package. sources
	// are those keys in the order of the directory.
	rels    map[string]*relationships
	sources []string
	// undeclared are the relationships parts of existing sources that are not declared as
	// such.
	undeclared []*entry
	// origin is the name of the origin part of signatures, "" if there is none.
	// originKeys are its key and that of its relationships.
	origin     string
	originKeys [2]string
	// read is the number of XML bytes read, relations the number of relationships.
	read      int64
	relations int
}

// open reads a package up to its relationships.
func open(ctx context.Context, doc sig.Document) (*document, error) {
	if err := checkKind(doc); err != nil {
		return nil, err
	}
	d, err := index(ctx, doc)
	if err != nil {
		return nil, err
	}
	if err := d.readRelationships(ctx); err != nil {
		return nil, err
	}
	return d, d.findOrigin()
}

// index reads a package up to its content types.
func index(ctx context.Context, doc sig.Document) (*document, error) {
	_, b := budget.Of(ctx, doc.Size())
	a, err := openArchive(b, doc)
	if err != nil {
		return nil, err
	}
	d := &document{archive: a, byKey: make(map[string]*entry, len(a.entries)), rels: map[string]*relationships{}}
	for i := range a.entries {
		e := &a.entries[i]
		if e.IsDirectory() {
			continue
		}
		if old := d.byKey[e.key]; old != nil {
			return nil, damaged("the entries %s and %s have equivalent names", quote(old.Name), quote(e.Name))
		}
		d.byKey[e.key] = e
	}
	types := d.byKey[key(contentTypesName)]
	if types == nil {
		return nil, otherKind("an Office document (.docx, .xlsx, .pptx and their like) expected, but the archive has no %s", contentTypesName)
	}
	d.typesName = types.Name
	data, err := d.xml(ctx, types)
	if err != nil {
		return nil, err
	}
	d.types, err = parseContentTypes(d.budget, types.Name, data)
	return d, err
}

// xml returns the content of a part that must be parsed as XML.
func (d *document) xml(ctx context.Context, e *entry) ([]byte, error) {
	if d.read += e.Size; d.read > maxXMLTotal {
		return nil, unfit(nil, "has more than %d bytes of relationships and signatures", maxXMLTotal)
	}
	return d.content(ctx, e.Entry, maxXML)
}

// readRelationships reads all relationships parts whose source exists.
func (d *document) readRelationships(ctx context.Context) error {
	for i := range d.entries {
		e := &d.entries[i]
		source, ok := sourceOf(e.key)
		if !ok || e.IsDirectory() {
			continue
		}
		if kind := d.types.of(e.key); !strings.EqualFold(kind, typeRelationships) {
			if source == "" {
				return unfit(nil, "declares the relationships of the package as %s; %s expected", quote(kind), typeRelationships)
			}
			if d.byKey[source] != nil {
				d.undeclared = append(d.undeclared, e)
			}
			continue
		}
		name := ""
		if source != "" {
			of := d.byKey[source]
			if of == nil {
				continue // the source part is missing, so they lead nowhere
			}
			name = of.Name
		}
		data, err := d.xml(ctx, e)
		if err != nil {
			return err
		}
		if d.rels[source], err = parseRelationships(d.budget, e.Name, name, data); err != nil {
			return err
		}
		d.sources = append(d.sources, source)
		if d.relations += len(d.rels[source].list); d.relations > maxRelations {
			return unfit(nil, "has more than %d relationships", maxRelations)
		}
	}
	root := d.rels[""]
	if root == nil {
		return otherKind("an Office document (.docx, .xlsx, .pptx and their like) expected, but the package has no relationships (_rels/.rels)")
	}
	if !slices.ContainsFunc(root.list, func(r relationship) bool { return isMain(r.kind) && d.byKey[r.part] != nil }) {
		return otherKind("a document of Word, Excel or PowerPoint expected, but the package has no main part: no relationship of the type officeDocument leads to an existing part")
	}
	return nil
}

// findOrigin finds the origin part of signatures.
func (d *document) findOrigin() error {
	for _, r := range d.rels[""].list {
		if r.kind != relOrigin {
			continue
		}
		if r.part == "" || d.origin != "" {
			return unfit(nil, "has two origins of signatures, or one outside the package; one part expected")
		}
		d.origin, _ = resolve("", r.target)
		if e := d.byKey[r.part]; e != nil {
			d.origin = e.Name
		}
		d.originKeys = [2]string{key(d.origin), key(relationshipsOf(d.origin))}
	}
	return nil
}

// signatureParts returns the parts that the relationships of the origin lead to, in their
// order, each once. Missing parts are left out.
func (d *document) signatureParts() (parts []*entry) {
	rels := d.rels[d.originKeys[0]]
	if d.origin == "" || rels == nil {
		return nil
	}
	seen := map[*entry]bool{}
	for _, r := range rels.list {
		if e := d.byKey[r.part]; r.kind == relSignature && e != nil && !seen[e] {
			seen[e] = true
			parts = append(parts, e)
		}
	}
	return parts
}

// isOfSignatures reports whether a part belongs to the signatures themselves.
func (d *document) isOfSignatures(k string) bool {
	if d.origin != "" && (k == d.originKeys[0] || k == d.originKeys[1]) {
		return true
	}
	kind := d.types.of(k)
	return kind == typeSignature || kind == typeOrigin
}

// untyped returns a text about each entry that has not the content type that makes it a part, or a
// relationships part (ECMA-376 part 2, 9.1.2 and 9.3.1). A program that goes by the standard does
// not read it, LibreOffice does. It stops at maxFindings.
func (d *document) untyped() (list []string) {
	for _, e := range d.undeclared {
		what := "has no content type"
		if kind := d.types.of(e.key); kind != "" {
			what = "is declared as " + quote(kind)
		}
		list = append(list, fmt.Sprintf("the relationships part %s %s in %s; %s expected", quote("/"+e.Name), what, contentTypesName, typeRelationships))
	}
	seen := map[*entry]bool{}
	for _, source := range d.sources {
		rels := d.rels[source]
		for i := range rels.list {
			r := &rels.list[i]
			e := d.byKey[r.part]
			if duty := d.obligationOf(r).duty; e == nil || seen[e] || r.external() || duty == neverSigned || duty == relationshipOnly || d.types.of(r.part) != "" {
				continue
			}
			if _, isRels := sourceOf(e.key); isRels {
				continue // named above, if its source exists
			}
			if len(list) > maxFindings {
				return list
			}
			seen[e] = true
			list = append(list, fmt.Sprintf("the part %s, to which the relationship %s of %s leads, has no content type in %s", quote("/"+e.Name), quote(r.id), quote("/"+rels.source), contentTypesName))
		}
	}
	return list
}

// obligation is what a signature must sign of one relationship and of the part it leads to.
type obligation struct {
	duty duty
	part *entry // nil if no part must be signed
}

// obligationOf returns the duty for a relationship. One that leads to a relationships part or
// to the signatures themselves, whatever its type, must not be signed: every further
// signature would break this one.
func (d *document) obligationOf(r *relationship) obligation {
	o := obligation{duty: dutyOf(r.kind)}
	if r.external() || r.part == "" || o.duty == neverSigned {
		return o
	}
	if d.isOfSignatures(r.part) || r.part == key(contentTypesName) {
		return obligation{duty: neverSigned}
	}
	e := d.byKey[r.part]
	if e == nil || d.types.of(r.part) == "" {
		return o // no such part; only the relationship is signed
	}
	if _, isRels := sourceOf(r.part); isRels && strings.EqualFold(d.types.of(r.part), typeRelationships) {
		return o
	}
	if o.duty == relationshipOnly && !signsAnyway(d.types.of(r.part)) {
		return o
	}
	o.part = e
	return o
}
