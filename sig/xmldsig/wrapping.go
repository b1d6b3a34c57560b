package xmldsig

import (
	"tamga/sig/xmltree"
)

// misplaced returns the flaw of a reference to an element that stands where nobody
// signs it: in signature wrapping the element that was signed is put away somewhere,
// and another one takes its place. The digest fits. What was signed as a part of the
// document may be anywhere else in it, since templates sign parts: then the report
// says which part is covered.
//
// The places are
//
//   - an Object or Manifest that does not belong to the signature;
//   - an Object of the signature or its KeyInfo, if the document is not inside the
//     signature and the Object itself is not signed;
//   - outside the element that the signature stands in, if that element has the same
//     name and the reference says that the signature stands in what it signs
//     (enveloped-signature). The transform alone says little: messages of SMEV 2 have
//     it on the Body, which the signature does not stand in.
func (j *judgement) misplaced(r *reference, n xmltree.Node) *flaw {
	t, s := j.tree, j.sig
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
			return flawAt(t, r.node, codeMisplaced, "the reference URI=%s leads into %s, which does not belong to the signature; this is what signature wrapping looks like", quote(r.uri), j.resolve.path(a))
		}
	}
	// A part of the signature in its own Object or KeyInfo is at home there, and so is
	// a document in an enveloping signature.
	enveloping := s.node == t.Root() && j.objectAround(n) != xmltree.None
	if t.Contains(s.node, n) && !enveloping && !isOwn(t.Name(n).Space) && !j.signsObject(n) {
		return flawAt(t, r.node, codeMisplaced, "the reference URI=%s leads to %s, inside a signature that stands in the document; this is what signature wrapping looks like", quote(r.uri), j.resolve.path(n))
	}
	if r.hasEnveloped() && !t.Contains(n, s.node) {
		for a := t.Parent(s.node); a > xmltree.Document; a = t.Parent(a) {
			if t.Name(a).Local == t.Name(n).Local {
				return flawAt(t, r.node, codeMisplaced, "the reference URI=%s is to the element around the signature by its transforms, but leads to %s while the signature stands in %s; this is what signature wrapping looks like", quote(r.uri), j.resolve.path(n), j.resolve.path(a))
			}
		}
	}
	return nil
}

// signsObject reports whether the signature has a reference to the Object around an
// element.
func (j *judgement) signsObject(n xmltree.Node) bool {
	object := j.objectAround(n)
	for _, r := range j.sig.refs {
		if to, err := j.resolve.resolve(r); err == nil && to.node == object {
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
