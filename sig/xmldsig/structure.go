// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"slices"
	"strings"

	"tamga/pki/suite"
	"tamga/sig/xmltree"
)

// signature is a parsed Signature element. Its nodes belong to tree.
type signature struct {
	tree    *xmltree.Tree
	node    xmltree.Node // Signature
	ordinal int          // its index among all Signature elements
	id      string       // its Id, "" if it has none

	info, value, keyInfo xmltree.Node // keyInfo is None if there is none
	objects              []xmltree.Node

	method    xmltree.Method // CanonicalizationMethod
	algorithm string         // SignatureMethod as written
	scheme    *suite.Scheme  // nil if the algorithm is not supported
	refs      []*reference
}

// reference is a parsed Reference element of a SignedInfo.
type reference struct {
	node       xmltree.Node
	uri        string
	id, kind   string // Id and Type, "" when absent
	transforms []transform
	algorithm  string      // DigestMethod as written
	hash       *suite.Hash // nil if the algorithm is unknown
	digest     xmltree.Node
}

// signatures returns all Signature elements in document order.
func signatures(t *xmltree.Tree) []xmltree.Node {
	return slices.Collect(t.Find(xmltree.Document, nsDS, "Signature"))
}

// readSignature parses a Signature element strictly. An element where the schema does not
// allow it is an error, because one program would read it and another would ignore it. An
// unknown algorithm leaves scheme or hash nil; the caller decides what that means.
func readSignature(t *xmltree.Tree, n xmltree.Node, ordinal int) (*signature, error) {
	s := &signature{tree: t, node: n, ordinal: ordinal, keyInfo: xmltree.None}
	s.id, _ = t.Get(n, "Id")
	children, err := elements(t, n)
	if err != nil {
		return nil, err
	}
	take := func(local string) xmltree.Node {
		if len(children) == 0 || !t.Is(children[0], nsDS, local) {
			return xmltree.None
		}
		c := children[0]
		children = children[1:]
		return c
	}
	if s.info = take("SignedInfo"); s.info == xmltree.None {
		return nil, flawAt(t, n, codeMalformed, "Signature has no SignedInfo as its first child")
	}
	if s.value = take("SignatureValue"); s.value == xmltree.None {
		return nil, flawAt(t, n, codeMalformed, "Signature has no SignatureValue after its SignedInfo")
	}
	s.keyInfo = take("KeyInfo")
	for c := take("Object"); c != xmltree.None; c = take("Object") {
		s.objects = append(s.objects, c)
	}
	if len(children) > 0 {
		return nil, flawAt(t, children[0], codeMalformed, "%s is out of place in a Signature; SignedInfo, SignatureValue, KeyInfo, Object expected in this order", t.Name(children[0]))
	}
	return s, s.readInfo()
}

// readInfo parses SignedInfo.
func (s *signature) readInfo() error {
	t := s.tree
	children, err := elements(t, s.info)
	if err != nil {
		return err
	}
	if len(children) == 0 || !t.Is(children[0], nsDS, "CanonicalizationMethod") {
		return flawAt(t, s.info, codeMalformed, "SignedInfo has no CanonicalizationMethod as its first child")
	}
	algorithm, _ := t.Get(children[0], "Algorithm")
	form, ok := canonicalForms[algorithm]
	if !ok {
		return flawAt(t, children[0], codeAlgorithm, "CanonicalizationMethod %s is not one of the canonical forms of XML", quote(algorithm))
	}
	if s.method, err = withPrefixes(t, children[0], form); err != nil {
		return err
	}
	if len(children) < 2 || !t.Is(children[1], nsDS, "SignatureMethod") {
		return flawAt(t, s.info, codeMalformed, "SignedInfo has no SignatureMethod after its CanonicalizationMethod")
	}
	s.algorithm, _ = t.Get(children[1], "Algorithm")
	s.scheme, _ = suite.SchemeByXML(s.algorithm)
	parameters, err := elements(t, children[1])
	if err != nil {
		return err
	}
	if s.algorithm == algPSS {
		if s.scheme, err = readPSS(t, children[1], parameters); err != nil {
			return err
		}
		parameters = nil
	}
	// HMACOutputLength belongs to an algorithm that is not supported. A verifier that
	// ignored a parameter would check something else.
	if len(parameters) > 0 {
		return flawAt(t, parameters[0], codeAlgorithm, "SignatureMethod has the unknown parameter %s", t.Name(parameters[0]))
	}
	children = children[2:]
	if len(children) == 0 {
		return flawAt(t, s.info, codeMalformed, "SignedInfo has no Reference")
	}
	inside := 0
	for _, c := range children {
		if uri, _ := t.Get(c, "URI"); !isBeside(uri) {
			inside++
		}
	}
	if inside > maxReferences || len(children) > maxReferences+maxFiles {
		return flawAt(t, s.info, codeWork, "SignedInfo has %d references, at most %d and %d to files expected", len(children), maxReferences, maxFiles)
	}
	for _, c := range children {
		if !t.Is(c, nsDS, "Reference") {
			return flawAt(t, c, codeMalformed, "%s is out of place in SignedInfo; Reference expected", t.Name(c))
		}
		r, err := readReference(t, c)
		if err != nil {
			return err
		}
		s.refs = append(s.refs, r)
	}
	return nil
}

func readReference(t *xmltree.Tree, n xmltree.Node) (*reference, error) {
	r := &reference{node: n}
	var ok bool
	if r.uri, ok = t.Get(n, "URI"); !ok {
		return nil, flawAt(t, n, codeRemote, `Reference has no URI, so its target is unknown; URI="" or URI="#id" expected`)
	}
	r.id, _ = t.Get(n, "Id")
	r.kind, _ = t.Get(n, "Type")
	children, err := elements(t, n)
	if err != nil {
		return nil, err
	}
	if len(children) > 0 && t.Is(children[0], nsDS, "Transforms") {
		if r.transforms, err = readTransforms(t, children[0]); err != nil {
			return nil, err
		}
		children = children[1:]
	}
	if len(children) != 2 || !t.Is(children[0], nsDS, "DigestMethod") || !t.Is(children[1], nsDS, "DigestValue") {
		return nil, flawAt(t, n, codeMalformed, "Reference must consist of Transforms (or none), one DigestMethod and one DigestValue")
	}
	r.algorithm, _ = t.Get(children[0], "Algorithm")
	r.hash, _ = suite.HashByXML(r.algorithm)
	r.digest = children[1]
	return r, nil
}

// elements returns the child elements of n. Between them n may have only white space and
// comments.
func elements(t *xmltree.Tree, n xmltree.Node) ([]xmltree.Node, error) {
	var out []xmltree.Node
	for c := range t.Children(n) {
		switch t.Kind(c) {
		case xmltree.KindElement:
			out = append(out, c)
		case xmltree.KindText:
			if strings.Trim(t.StringValue(c), " \t\r\n") != "" {
				return nil, flawAt(t, c, codeMalformed, "there is text between the elements of %s", t.Name(n))
			}
		}
	}
	return out, nil
}

// onlyText refuses an element that contains something else than text. A comment in the middle of a value is not covered
// by most signatures, and it splits the text for some programs.
func onlyText(t *xmltree.Tree, n xmltree.Node) error {
	for c := range t.Children(n) {
		if t.Kind(c) != xmltree.KindText {
			return flawAt(t, c, codeMalformed, "%s must contain only text, but has a %s", t.Name(n), t.Kind(c))
		}
	}
	return nil
}

// base64Text decodes the text of an element of at most most characters, which must not contain anything else.
func base64Text(t *xmltree.Tree, n xmltree.Node, most int) ([]byte, error) {
	if err := onlyText(t, n); err != nil {
		return nil, err
	}
	return t.Base64(n, most, func(format string, args ...any) error { return flawAt(t, n, codeMalformed, format, args...) })
}

// isBlank reports whether an element contains only white space and comments.
func isBlank(t *xmltree.Tree, n xmltree.Node) bool {
	inside, err := elements(t, n)
	return err == nil && len(inside) == 0
}
