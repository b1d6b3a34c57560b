// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"strings"

	"tamga/sig"
	"tamga/sig/xmltree"
)

// qualified is the changes that make a template XAdES.
type qualified struct {
	changes []change
	// reference renders a Reference to add after those of the template, with its digest.
	// It is nil if the template has that reference.
	reference func(digest string) string
}

// qualify returns the changes that the template needs for the requested level.
//
// A template with QualifyingProperties decides itself where the properties go: those of
// its elements that are empty are filled at any level (QualifyingProperties,
// SignedProperties, SignedSignatureProperties, SigningTime, SigningCertificateV2,
// SigningCertificate), the rest stays. A template without them gets an Object at the end
// of its Signature.
//
// If the reference to the signed properties is missing, it is added after the others. A
// missing Id of the Signature is added too. DataObjectFormat is never added: only the
// author of the template knows the formats of the signed data.
func (m *maker) qualify(s *signature) (*qualified, error) {
	t := s.tree
	all := propertiesOf(s)
	if len(all) == 0 && m.params.xades == xadesNone {
		return &qualified{}, nil
	}
	if len(all) > 1 {
		return nil, flawAt(t, all[1], codeProperties, "the signature has QualifyingProperties twice")
	}
	ids := newIdentifiers(m.job, m.sum, t)
	q := &qualified{}
	for _, r := range s.refs {
		if r.kind != typeProperties {
			continue
		}
		id, _, ok := uriID(r.uri)
		if !ok || !isPlainID(id) {
			return nil, flawAt(t, r.node, codeProperties, `the reference to the signed properties must have URI="#id", not %s`, quote(r.uri))
		}
		ids.properties = id
		return q, m.fillProperties(s, all, ids, q)
	}
	if len(all) > 0 {
		if signed := t.Child(all[0], nsXAdES, "SignedProperties"); signed != xmltree.None {
			if ids.properties, _ = t.Get(signed, "Id"); !isPlainID(ids.properties) {
				return nil, flawAt(t, signed, codeProperties, "SignedProperties has no Id that a reference could name; an Id without markup, quotes, parentheses and white space expected")
			}
		}
	}
	if err := m.fillProperties(s, all, ids, q); err != nil || len(q.changes) == 0 {
		return q, err
	}
	p := prefixOf(t, s.node)
	element := func(local, attributes, content string) string {
		return "<" + p + local + attributes + ">" + content + "</" + p + local + ">"
	}
	q.reference = func(digest string) string {
		return element("Reference", attribute("Type", typeProperties)+attribute("URI", "#"+ids.properties),
			element("Transforms", "", element("Transform", attribute("Algorithm", algExcC14N), ""))+
				element("DigestMethod", attribute("Algorithm", m.suite.Hash.XML[0]), "")+element("DigestValue", "", digest))
	}
	return q, nil
}

// isPlainID reports whether an identifier can be used in a URI and in markup without
// escaping.
func isPlainID(id string) bool { return id != "" && !strings.ContainsAny(id, "<>&\"'()\t\r\n") }

// propertiesOf returns the QualifyingProperties of a signature.
func propertiesOf(s *signature) (found []xmltree.Node) {
	for _, o := range s.objects {
		for n := range s.tree.Elements(o) {
			if s.tree.Is(n, nsXAdES, "QualifyingProperties") {
				found = append(found, n)
			}
		}
	}
	return found
}

// fillProperties adds the changes that create or fill the properties.
func (m *maker) fillProperties(s *signature, all []xmltree.Node, ids identifiers, q *qualified) error {
	t, h := s.tree, m.suite.Hash
	add := func(n xmltree.Node, content string) { q.changes = append(q.changes, contentOf(t, n, content)) }
	target := s.id
	if target == "" {
		target = ids.signature
		at := t.Span(s.node).Start + len("<") + len(t.Name(s.node).String())
		q.changes = append(q.changes, change{s.node, xmltree.Edit{Span: xmltree.Span{Start: at, End: at}, Text: attribute("Id", target)}})
	}
	unsigned := ""
	if m.params.level >= sig.LevelTime {
		unsigned = unsignedElement(slot(slotStamp))
	}
	signed := func(w spelling) string {
		return "<" + w.xades + `SignedProperties Id="` + ids.properties + `">` +
			w.wrap("SignedSignatureProperties", w.signedSignatureProperties(m.job, h)) + "</" + w.xades + "SignedProperties>"
	}
	if len(all) == 0 {
		if !isPlainID(target) {
			return flawAt(t, s.node, codeProperties, "the Id of the Signature has markup, quotes, parentheses or white space; a plain name expected")
		}
		prefix := prefixOf(t, s.node)
		w := spelling{ds: "ds:", xades: "xades:", declare: dsDeclaration}
		q.changes = append(q.changes, change{s.node, t.Append(s.node, "<"+prefix+"Object><xades:QualifyingProperties"+xadesDeclaration+
			` Target="#`+target+`">`+signed(w)+unsigned+"</xades:QualifyingProperties></"+prefix+"Object>")})
		return nil
	}
	n := all[0]
	if of, _ := t.Get(n, "Target"); s.id == "" || of != "#"+s.id {
		return flawAt(t, n, codeProperties, "QualifyingProperties must have the Target of their Signature, which must have an Id; Target is %s, Id is %s", quote(of), quote(s.id))
	}
	w := spelling{ds: "ds:", xades: prefixOf(t, n), declare: dsDeclaration}
	if isBlank(t, n) {
		add(n, signed(w)+declared(unsigned))
		return nil
	}
	if m.params.level >= sig.LevelTime {
		q.changes = append(q.changes, change{n, stampEdit(t, n, slot(slotStamp))})
	}
	n = t.Child(n, nsXAdES, "SignedProperties")
	if n == xmltree.None {
		return flawAt(t, all[0], codeProperties, "QualifyingProperties have no SignedProperties; leave them empty or put SignedProperties in")
	}
	w.xades = prefixOf(t, n)
	if isBlank(t, n) {
		add(n, w.wrap("SignedSignatureProperties", w.signedSignatureProperties(m.job, h)))
		return nil
	}
	if n = t.Child(n, nsXAdES, "SignedSignatureProperties"); n == xmltree.None {
		return flawAt(t, all[0], codeProperties, "SignedProperties have no SignedSignatureProperties; leave them empty or put SignedSignatureProperties in")
	}
	w.xades = prefixOf(t, n)
	if isBlank(t, n) {
		add(n, w.signedSignatureProperties(m.job, h))
		return nil
	}
	named := false
	for c := range t.Elements(n) {
		w.xades = prefixOf(t, c)
		content := ""
		switch {
		case t.Is(c, nsXAdES, "SigningTime"):
			content = signingTime(m.job)
		case t.Is(c, nsXAdES, "SigningCertificateV2"):
			content, named = w.signingCertificate(m.job.Certificate, h), true
		case t.Is(c, nsXAdES, "SigningCertificate"):
			content, named = w.signingCertificateV1(m.job.Certificate, h), true
		}
		if content != "" && isBlank(t, c) {
			add(c, content)
		}
	}
	if !named && m.params.xades != xadesNone {
		return flawAt(t, n, codeNoSigning, "SignedSignatureProperties have neither SigningCertificateV2 nor SigningCertificate to name the signer's certificate in")
	}
	return nil
}

// declared returns an XAdES element with a declaration of its prefix.
func declared(text string) string { return strings.Replace(text, ">", xadesDeclaration+">", 1) }

// stampEdit returns the edit that adds a time stamp after the unsigned properties of a
// signature. It creates the missing elements around it.
func stampEdit(t *xmltree.Tree, qualifying xmltree.Node, stamp string) xmltree.Edit {
	unsigned := t.Child(qualifying, nsXAdES, "UnsignedProperties")
	if unsigned == xmltree.None {
		return t.Append(qualifying, declared(unsignedElement(stamp)))
	}
	list := t.Child(unsigned, nsXAdES, "UnsignedSignatureProperties")
	if list != xmltree.None {
		return t.Append(list, stamp)
	}
	text := declared("<xades:UnsignedSignatureProperties>" + stamp + "</xades:UnsignedSignatureProperties>")
	if t.IsEmptyTag(unsigned) {
		return t.SetContent(unsigned, text)
	}
	at := t.Content(unsigned).Start // before UnsignedDataObjectProperties
	return xmltree.Edit{Span: xmltree.Span{Start: at, End: at}, Text: text}
}
