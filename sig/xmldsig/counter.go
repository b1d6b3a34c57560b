// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"slices"

	"tamga/sig"
	"tamga/sig/xmltree"
)

// counterPath is the chain of elements from a countersignature up to the signature that
// contains it, innermost first (EN 319 132-1, 5.2.7.2).
var counterPath = []struct{ space, local string }{
	{nsXAdES, "CounterSignature"}, {nsXAdES, "UnsignedSignatureProperties"}, {nsXAdES, "UnsignedProperties"},
	{nsXAdES, "QualifyingProperties"}, {nsDS, "Object"}, {nsDS, "Signature"},
}

// counterOf returns the Signature whose unsigned properties contain the countersignature
// n. It returns None if n is not a countersignature.
func counterOf(t *xmltree.Tree, n xmltree.Node) xmltree.Node {
	for _, step := range counterPath {
		if n = t.Parent(n); n < 0 || !t.Is(n, step.space, step.local) {
			return xmltree.None
		}
	}
	return n
}

// countersigned returns, for each of the signatures in document order, the index of the
// signature that it countersigns, or -1.
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

// maxCountersigned is how deep countersignatures of countersignatures may nest.
const maxCountersigned = 8

// nested moves each countersignature under the signature that contains it. Together they
// count against maxSignatures, at any depth.
func nested(judged []*verification, over []int) []sig.Signature {
	depth := make([]int, len(judged))
	for i := range judged {
		if over[i] < 0 {
			continue
		}
		if depth[i] = depth[over[i]] + 1; depth[i] == maxCountersigned+1 {
			judged[i].add(codeMany, "countersignatures are nested more than 8 deep", true)
		}
	}
	// Inner signatures follow outer ones in document order. From the end, each is
	// complete before it is copied into another.
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

// countersigns checks that a countersignature covers the SignatureValue of the signature
// that contains it. One reference must cover that element with no other transform than
// canonical forms.
func (v *verification) countersigns() {
	t := v.tree
	for r, to := range v.intact {
		if v.over != nil && to == v.over.value && r.isCanonical() {
			v.out.Covers = "the value of the signature that contains it"
			return
		}
	}
	v.flaw(flawAt(t, v.sig.node, codeCounter, "the countersignature does not cover the SignatureValue of the signature that contains it"))
}

// isCanonical reports whether the reference has no transforms except canonical forms, so
// that it covers its whole target.
func (r *reference) isCanonical() bool {
	for _, tr := range r.transforms {
		if _, isForm := canonicalForms[tr.algorithm]; !isForm {
			return false
		}
	}
	return true
}
