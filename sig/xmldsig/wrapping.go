// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"tamga/sig/xmltree"
)

// misplaced returns the flaw of a reference to an element in a place that signers do not
// sign. In signature wrapping, an attacker moves the signed element away and puts another
// one into its place; the digest still matches. An element that was signed as a part of
// the document may be anywhere else in it, because templates sign parts; the report then
// says which part is covered.
//
// The refused places are:
//
//   - an Object or Manifest that does not belong to the signature;
//   - an Object of the signature or its KeyInfo, if the document is not inside the
//     signature and the Object itself is not signed;
//   - outside the element that contains the signature, if that element has the same
//     name and the reference says that the signed element contains the signature
//     (enveloped-signature). The transform alone proves little: messages of SMEV 2
//     have it on the Body, which does not contain the signature.
func (v *verification) misplaced(r *reference, n xmltree.Node) *flaw {
	t, s := v.tree, v.sig
	if n == xmltree.Document {
		return nil
	}
	for a := n; a > xmltree.Document; a = t.Parent(a) {
		var fits bool
		switch {
		case t.Is(a, nsDS, "Object"):
			fits = t.Parent(a) == s.node || t.Contains(a, s.node) && t.Is(t.Parent(a), nsDS, "Signature")
		case t.Is(a, nsDS, "Manifest"):
			object := t.Parent(a)
			fits = t.Is(object, nsDS, "Object") && t.Parent(object) == s.node
		default:
			continue
		}
		if !fits {
			return flawAt(t, r.node, codeMisplaced, "the reference URI=%s leads into %s, which does not belong to the signature; this looks like signature wrapping", quote(r.uri), v.resolve.path(a))
		}
	}
	// The signature's own parts may be in its Object or KeyInfo, and so may the document
	// of an enveloping signature.
	// Beside files the root element is nothing but a list of signatures.
	alone := s.node == t.Root() || v.files != nil && t.Parent(s.node) == t.Root()
	enveloping := alone && v.objectAround(n) != xmltree.None
	if t.Contains(s.node, n) && !enveloping && !isOwn(t.Name(n).Space) && !v.signsObject(n) {
		return flawAt(t, r.node, codeMisplaced, "the reference URI=%s leads to %s, inside a signature within the document; this looks like signature wrapping", quote(r.uri), v.resolve.path(n))
	}
	if r.hasEnveloped() && !t.Contains(n, s.node) {
		for a := t.Parent(s.node); a > xmltree.Document; a = t.Parent(a) {
			if t.Name(a).Local == t.Name(n).Local {
				return flawAt(t, r.node, codeMisplaced, "the reference URI=%s has the transform of an element that contains the signature, but leads to %s while the signature is in %s; this looks like signature wrapping", quote(r.uri), v.resolve.path(n), v.resolve.path(a))
			}
		}
	}
	return nil
}

// signsObject reports whether the signature has a reference to the Object around an
// element.
func (v *verification) signsObject(n xmltree.Node) bool {
	object := v.objectAround(n)
	for _, r := range v.sig.refs {
		if to, err := v.resolve.resolve(r); err == nil && to.node == object {
			return true
		}
	}
	return false
}

func (r *reference) hasEnveloped() bool {
	for _, tr := range r.transforms {
		if tr.algorithm == algEnveloped {
			return true
		}
	}
	return false
}
