// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"encoding/base64"

	"tamga/pki/suite"
	"tamga/sig/xmltree"
)

// listed is a reference of a Manifest with its digest.
type listed struct {
	ref    *reference
	digest suite.Digest
}

// manifests returns the Reference elements of the signature's Manifests.
func manifests(s *signature) (all []xmltree.Node) {
	t := s.tree
	for _, o := range s.objects {
		for n := range t.Elements(o) {
			if !t.Is(n, nsDS, "Manifest") {
				continue
			}
			for c := range t.Elements(n) {
				if t.Is(c, nsDS, "Reference") {
					all = append(all, c)
				}
			}
		}
	}
	return all
}

// fillManifests adds the empty digests of references in a Manifest to f.before. They come
// first, because a reference of SignedInfo covers the Manifest. A digest that is present
// already is not checked.
func (m *maker) fillManifests(s *signature, f *filling) error {
	t := s.tree
	var empty []xmltree.Node
	for i, n := range manifests(s) {
		if value := t.Child(n, nsDS, "DigestValue"); value != xmltree.None && isBlank(t, value) {
			f.manifests, empty = append(f.manifests, i), append(empty, value)
		}
	}
	if len(empty) == 0 {
		return nil
	}
	if len(empty) > maxReferences {
		return unfit("the template cannot be signed", flawAt(t, empty[0], codeWork, "the Manifests have %d references to fill, at most %d expected", len(empty), maxReferences))
	}
	f.always = true
	with, err := m.reread(s, f.before)
	if err != nil {
		return err
	}
	all, err := m.manifestDigests(with, f.manifests)
	if err != nil {
		return err
	}
	for i, l := range all {
		f.before = append(f.before, contentOf(t, empty[i], base64.StdEncoding.EncodeToString(l.digest.Sum)))
	}
	return nil
}

// manifestDigests computes the digests of the manifest references with these numbers.
func (m *maker) manifestDigests(s *signature, numbers []int) ([]listed, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	nodes := manifests(s)
	var refs []*reference
	for _, i := range numbers {
		r, err := readReference(s.tree, nodes[i])
		if err != nil {
			return nil, unfit("the template cannot be signed", err)
		}
		refs = append(refs, r)
	}
	if err := m.checkAlgorithms(s, refs); err != nil {
		return nil, unfit("the template cannot be signed", err)
	}
	digests, err := m.digests(s, refs)
	if err != nil {
		return nil, err
	}
	all := make([]listed, len(refs))
	for i, r := range refs {
		all[i] = listed{r, digests[i]}
	}
	return all, nil
}
