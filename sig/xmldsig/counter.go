package xmldsig

import (
	"slices"

	"tamga/sig"
	"tamga/sig/xmltree"
)

// counterPath are the elements around a countersignature up to the signature it
// stands in, from the inside (EN 319 132-1, 5.2.7.2).
var counterPath = []struct{ space, local string }{
	{nsXAdES, "CounterSignature"}, {nsXAdES, "UnsignedSignatureProperties"}, {nsXAdES, "UnsignedProperties"},
	{nsXAdES, "QualifyingProperties"}, {nsDS, "Object"}, {nsDS, "Signature"},
}

// counterOf returns the Signature in whose unsigned properties a countersignature
// stands, None for signatures of the document.
func counterOf(t *xmltree.Tree, n xmltree.Node) xmltree.Node {
	for _, step := range counterPath {
		if n = t.Parent(n); n < 0 || !t.Is(n, step.space, step.local) {
			return xmltree.None
		}
	}
	return n
}

// countersigned returns for each of the signatures, which are in document order, the
// place of the one it countersigns, -1 for none.
func countersigned(t *xmltree.Tree, nodes []xmltree.Node) []int {
	over := make([]int, len(nodes))
	for i, n := range nodes {
		over[i] = -1
		if of := counterOf(t, n); of != xmltree.None {
			over[i] = slices.Index(nodes, of)
		}
	}
	return over
}

// maxCountersigned is how deep countersignatures over countersignatures may nest.
const maxCountersigned = 8

// nested puts countersignatures under the signatures they stand in. The document
// may have at most maxSignatures of them all, whatever their depth.
func nested(judged []*judgement, over []int) []sig.Signature {
	depth := make([]int, len(judged))
	for i := range judged {
		if over[i] < 0 {
			continue
		}
		if depth[i] = depth[over[i]] + 1; depth[i] == maxCountersigned+1 {
			judged[i].add(codeMany, "countersignatures stand in each other more than 8 deep", true)
		}
	}
	// What is inside stands behind, so each is complete before it goes into another.
	var tops []sig.Signature
	for i := len(judged) - 1; i >= 0; i-- {
		list := &tops
		if over[i] >= 0 {
			list = &judged[over[i]].out.Countersigners
		}
		slices.Reverse(judged[i].out.Countersigners)
		for k := range judged[i].out.Countersigners {
			judged[i].out.Countersigners[k].Index = k
		}
		*list = append(*list, judged[i].out)
	}
	slices.Reverse(tops)
	for k := range tops {
		tops[k].Index = k
	}
	return tops
}

// countersigns judges whether a countersignature is over the value of the signature
// it stands in: one reference must cover it as it stands.
func (j *judgement) countersigns() {
	t := j.tree
	for r, to := range j.intact {
		if j.over != nil && to == j.over.value && r.isCanonical() {
			j.out.Covers = "the value of the signature it stands in"
			return
		}
	}
	j.flaw(flawAt(t, j.sig.node, codeCounter, "the countersignature is not over the SignatureValue of the signature it stands in"))
}

// isCanonical reports whether the reference covers what it stands for with all that
// is in it.
func (r *reference) isCanonical() bool {
	for _, tr := range r.transforms {
		if _, isForm := canonicalForms[tr.algorithm]; !isForm {
			return false
		}
	}
	return true
}
