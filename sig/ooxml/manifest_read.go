// SPDX-License-Identifier: Apache-2.0

package ooxml

import (
	"maps"
	"slices"
	"strings"
	"time"

	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/xmltree"
)

// manifestReader reads the manifest of a signature that package xmldsig has checked. It
// uses only elements that SignedInfo refers to by an identifier that is unique.
type manifestReader struct {
	*verification
	tree *xmltree.Tree
	used []*suite.Hash // the algorithms to digest parts with, each once
}

// canonicalForms are the canonical forms in which a part or a relationships part may be
// signed.
var canonicalForms = map[string]xmltree.Method{
	algC14N:                                {Form: xmltree.C14N10},
	algC14N + "#WithComments":              {Form: xmltree.C14N10, Comments: true},
	"http://www.w3.org/2006/12/xml-c14n11": {Form: xmltree.C14N11},
	"http://www.w3.org/2006/12/xml-c14n11#WithComments":   {Form: xmltree.C14N11, Comments: true},
	"http://www.w3.org/2001/10/xml-exc-c14n#":             {Form: xmltree.Exclusive},
	"http://www.w3.org/2001/10/xml-exc-c14n#WithComments": {Form: xmltree.Exclusive, Comments: true},
}

func (m *manifestReader) read() {
	t := m.tree
	info := t.Child(t.Root(), nsDS, "SignedInfo")
	if info == xmltree.None {
		return // reported already
	}
	signed := map[string]bool{}
	for r := range t.Elements(info) {
		if !t.Is(r, nsDS, "Reference") || !onlyCanonical(t, r) {
			continue
		}
		if uri, _ := t.Get(r, "URI"); strings.HasPrefix(uri, "#") {
			signed[uri[1:]] = true
		}
	}
	owners := t.ByIDs(slices.Collect(maps.Keys(signed))...)
	manifest := xmltree.None
	office := false
	for o := range t.Elements(t.Root()) {
		id, ok := t.Get(o, "Id")
		if !t.Is(o, nsDS, "Object") || !ok || !signed[id] || len(owners[id]) != 1 {
			continue
		}
		for c := range t.Elements(o) {
			switch {
			case t.Is(c, nsDS, "Manifest") && manifest != xmltree.None:
				m.add(codeMalformed, true, "the signature has two manifests")
				return
			case t.Is(c, nsDS, "Manifest"):
				manifest = c
				m.time(o)
			case t.Is(c, nsDS, "SignatureProperties"):
				for range t.Find(c, nsOffice, "SignatureInfoV1") {
					office = true
				}
			}
		}
	}
	if manifest == xmltree.None {
		m.add(codeMalformed, true, "the signature covers no manifest, so it covers no part of the document")
		return
	}
	if !office {
		m.add(codeNotOffice, false, "the signature has no SignatureInfoV1: it was not made for Office, and Office will not recognise it")
	}
	seen := map[*entry]bool{}
	for r := range t.Elements(manifest) {
		if !t.Is(r, nsDS, "Reference") {
			m.add(codeMalformed, true, "%s is out of place in a Manifest; Reference expected", t.Name(r))
			continue
		}
		if len(m.refs) > 2*len(m.entries) || len(m.out.Findings) > maxFindings {
			m.add(codeWork, true, "the manifest has more references than the document has parts")
			break
		}
		c := m.claim(r)
		m.refs = append(m.refs, c)
		if c.entry != nil && seen[c.entry] {
			c.flawed = true
			m.add(codeTwice, true, "%s is in the manifest twice", quote("/"+c.entry.Name))
		}
		seen[c.entry] = true
		if !c.flawed && c.rels == nil && c.form == nil {
			m.want(c.entry, c.hash)
		}
	}
	for _, h := range m.used {
		f, weak := m.check.WeakHash(h, m.out.BestTime)
		if weak && !slices.ContainsFunc(m.out.Findings, func(other sig.Finding) bool { return other.Code == f.Code }) {
			m.out.Findings = append(m.out.Findings, f)
		}
	}
	if m.refs == nil {
		m.add(codeMalformed, true, "the manifest is empty, so the signature covers no part of the document")
	}
}

// onlyCanonical reports whether a Reference covers an element unchanged, with no
// transforms except canonical forms.
func onlyCanonical(t *xmltree.Tree, r xmltree.Node) bool {
	transforms := t.Child(r, nsDS, "Transforms")
	if transforms == xmltree.None {
		return true
	}
	for tr := range t.Elements(transforms) {
		algorithm, _ := t.Get(tr, "Algorithm")
		if _, ok := canonicalForms[algorithm]; !ok {
			return false
		}
	}
	return true
}

// time takes the time of a signature without XAdES from its SignatureTime.
func (m *manifestReader) time(object xmltree.Node) {
	if !m.out.SigningTime.IsZero() {
		return
	}
	for v := range m.tree.Find(object, nsMDSSI, "Value") {
		if at, err := time.Parse(time.RFC3339, strings.TrimSpace(m.tree.StringValue(v))); err == nil {
			m.out.SigningTime = at.UTC()
		}
	}
}

// want adds a digest of a part to the jobs.
func (v *verifier) want(e *entry, h *suite.Hash) {
	job := v.jobs[e]
	if job == nil {
		job = &digestJob{entry: e}
		v.jobs[e] = job
	}
	if !slices.Contains(job.hashes, h) {
		job.hashes = append(job.hashes, h)
	}
}

// claim reads a Reference of the manifest.
func (m *manifestReader) claim(r xmltree.Node) *claim {
	t := m.tree
	c := &claim{}
	flaw := func(code, format string, args ...any) *claim {
		c.flawed = true
		m.add(code, true, format, args...)
		return c
	}
	uri, _ := t.Get(r, "URI")
	name, kind, ok := splitReference(uri)
	if !ok {
		return flaw(codeMalformed, "the reference %s does not name a part and its content type", quote(uri))
	}
	if c.entry = m.byKey[key(name)]; c.entry == nil {
		return flaw(codeMissing, "the part %s was signed but is missing from the document", quote("/"+name))
	}
	if now := m.types.of(c.entry.key); now != kind {
		return flaw(codeContentType, "the part %s was signed as %s but is now declared as %s", quote("/"+c.entry.Name), quote(kind), quote(now))
	}
	method, value := t.Child(r, nsDS, "DigestMethod"), t.Child(r, nsDS, "DigestValue")
	if method == xmltree.None || value == xmltree.None {
		return flaw(codeMalformed, "the reference to %s has no digest", quote("/"+c.entry.Name))
	}
	algorithm, _ := t.Get(method, "Algorithm")
	if c.hash, ok = suite.HashByXML(algorithm); !ok {
		return flaw(codeAlgorithm, "algorithm not supported: the digest algorithm %s of %s", quote(algorithm), quote("/"+c.entry.Name))
	}
	var err error
	if c.digest, err = xmltree.DecodeBase64(t.StringValue(value)); err != nil {
		return flaw(codeMalformed, "the digest of %s is not Base64", quote("/"+c.entry.Name))
	}
	if !slices.Contains(m.used, c.hash) {
		m.used = append(m.used, c.hash)
	}
	transforms := t.Child(r, nsDS, "Transforms")
	if transforms == xmltree.None {
		return c
	}
	if !m.transforms(c, transforms) {
		return flaw(codeTransform, "the transforms of %s are not allowed; one canonical form, or a relationship transform followed by one canonical form, expected", quote("/"+c.entry.Name))
	}
	return c
}

// transforms reads the transforms of a reference. The relationship transform may occur
// once, before a canonical form (ECMA-376 part 2, 13.2.4.24).
func (m *manifestReader) transforms(c *claim, n xmltree.Node) bool {
	t := m.tree
	list := slices.Collect(t.Elements(n))
	if len(list) == 0 || len(list) > 2 {
		return false
	}
	last, _ := t.Get(list[len(list)-1], "Algorithm")
	form, ok := canonicalForms[last]
	if !ok {
		return false
	}
	if len(list) == 1 {
		c.form = &form
		return true
	}
	if first, _ := t.Get(list[0], "Algorithm"); first != algRelationships {
		return false
	}
	source, ok := sourceOf(c.entry.key)
	if c.rels = m.rels[source]; !ok || c.rels == nil {
		return false
	}
	c.ids, c.kinds = map[string]bool{}, map[string]bool{}
	for p := range t.Elements(list[0]) {
		id, hasID := t.Get(p, "SourceId")
		kind, hasKind := t.Get(p, "SourceType")
		switch {
		case t.Is(p, nsMDSSI, "RelationshipReference") && hasID:
			c.ids[id] = true
		case t.Is(p, nsMDSSI, "RelationshipsGroupReference") && hasKind:
			c.kinds[kind] = true
		default:
			return false
		}
	}
	return true
}
