package xmldsig

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/xmltree"
)

// template fills a Signature that came with the document: the digest of every
// reference, the value, and KeyInfo where it is empty. Nothing else changes, the
// identifiers of algorithms least of all: they are signed.
func (m *maker) template() (*made, error) {
	t, err := m.parse("a signature by template")
	if err != nil {
		return nil, err
	}
	s, err := m.findTemplate(t)
	if err != nil {
		return nil, err
	}
	if err := m.checkAlgorithms(s); err != nil {
		return nil, unfit("the template cannot be signed", err)
	}
	key := fillKeyInfo(s, certificates(m.job, m.params.chain))
	digests, err := m.templateDigests(s, key)
	if err != nil {
		return nil, err
	}
	info := make([]change, len(s.refs))
	for i, r := range s.refs {
		info[i] = change{r.digest, base64.StdEncoding.EncodeToString(digests[i].Sum)}
	}
	if err := m.checkSelf(s, slices.Concat(info, key), digests); err != nil {
		return nil, err
	}
	digest, err := m.infoDigest(s, editsOf(t, info))
	if err != nil {
		return nil, err
	}
	all := append(slices.Concat(info, key), change{s.value, slot(slotValue)})
	pieces, err := planOf(t, editsOf(t, all))
	return &made{digest, t.Encoding(), pieces}, err
}

// findTemplate returns the Signature to fill: the first whose value is empty, or
// the one that SignatureIndex says.
func (m *maker) findTemplate(t *xmltree.Tree) (*signature, error) {
	all := signatures(t)
	isEmpty := func(n xmltree.Node) bool {
		value := t.Child(n, nsDS, "SignatureValue")
		return value == xmltree.None || isBlank(t, value)
	}
	i := m.params.index
	switch {
	case len(all) == 0:
		return nil, unfit("has no template: there is no element Signature of the namespace "+nsDS, nil)
	case i >= len(all):
		return nil, &sig.ErrParams{Faults: []sig.Fault{{Key: "SignatureIndex", Text: fmt.Sprintf("is %d, but the document has %d Signature elements, the first with index 0", i, len(all))}}}
	case i < 0:
		if i = slices.IndexFunc(all, isEmpty); i < 0 {
			return nil, unfit(fmt.Sprintf("has no template: each of its %d signatures is filled", len(all)), nil)
		}
	case !isEmpty(all[i]):
		return nil, unfit("the template cannot be signed", flawAt(t, all[i], codeMalformed, "Signature %d is filled already", i))
	}
	s, err := readSignature(t, all[i], i)
	if err != nil {
		return nil, unfit("the template cannot be signed", err)
	}
	for _, r := range s.refs {
		if !isBlank(t, r.digest) {
			return nil, unfit("the template cannot be signed", flawAt(t, r.digest, codeMalformed, "DigestValue is not empty, though SignatureValue is"))
		}
	}
	return s, nil
}

// checkAlgorithms refuses what the certificate's key cannot sign, and digests that
// nobody should make any more.
func (m *maker) checkAlgorithms(s *signature) error {
	t := s.tree
	if s.suite != m.suite {
		method := t.Child(s.info, nsDS, "SignatureMethod")
		if s.suite == nil {
			return flawAt(t, method, codeAlgorithm, "SignatureMethod %s is not known; the certificate's key signs %s", quote(s.algorithm), m.suite.XML[0])
		}
		return flawAt(t, method, codeKeyMismatch, "SignatureMethod %s is for keys of %s, but the certificate's key is of %s, which signs %s", s.algorithm, s.suite.Name, m.suite.Name, m.suite.XML[0])
	}
	for _, r := range s.refs {
		if f := r.badHash(t); f != nil {
			return f
		}
	}
	return nil
}

// badHash is the flaw of a reference whose digest algorithm cannot be used.
func (r *reference) badHash(t *xmltree.Tree) *flaw {
	method := t.Child(r.node, nsDS, "DigestMethod")
	switch {
	case r.hash == nil:
		return flawAt(t, method, codeAlgorithm, "DigestMethod %s is not known", quote(r.algorithm))
	case slices.Contains(refusedHashes, r.hash):
		return flawAt(t, method, codeWeak, "DigestMethod %s is refused: two documents with the same digest can be made", r.algorithm)
	}
	return nil
}

// templateDigests computes the digests of all references. Where one of them covers
// what goes into KeyInfo, the document is read once more with that in place.
func (m *maker) templateDigests(s *signature, key []change) ([]suite.Digest, error) {
	resolver := newResolver(s.tree, []*signature{s})
	covered := false
	for _, r := range s.refs {
		to, err := resolver.resolve(r)
		if err != nil {
			return nil, unfit("the template cannot be signed", err)
		}
		for _, c := range key {
			covered = covered || s.tree.Contains(to.node, c.node) && !(r.isEnveloped() && s.tree.Contains(s.node, c.node))
		}
	}
	if covered {
		with, err := m.reread(s, key)
		if err != nil {
			return nil, err
		}
		s, resolver = with, newResolver(with.tree, []*signature{with})
	}
	return m.digests(s, resolver)
}

// isEnveloped tells whether the Signature certainly is not among what is digested:
// it is taken out first.
func (r *reference) isEnveloped() bool {
	return len(r.transforms) > 0 && r.transforms[0].algorithm == algEnveloped
}

// digests computes the digests of all references.
func (m *maker) digests(s *signature, resolver *resolver) ([]suite.Digest, error) {
	out := make([]suite.Digest, len(s.refs))
	budget := newWork(len(m.document))
	for i, r := range s.refs {
		to, err := resolver.resolve(r)
		if err == nil {
			d := digester{ctx: m.ctx, sig: s, ref: r, options: m.options, work: budget}
			var size int64
			if out[i], size, err = d.digest(to); err == nil && size == 0 {
				err = flawAt(s.tree, r.node, codeNothing, "the transforms of the reference leave nothing to sign")
			}
		}
		if m.ctx.Err() != nil {
			return nil, m.ctx.Err()
		}
		if err != nil {
			return nil, unfit("the template cannot be signed", err)
		}
	}
	return out, nil
}

// reread reads the document again with changes in it and returns the same
// Signature of the new tree.
func (m *maker) reread(s *signature, changes []change) (*signature, error) {
	spliced, err := s.tree.Splice(editsOf(s.tree, changes)...)
	if err != nil {
		return nil, err
	}
	t, err := xmltree.Parse(spliced.Bytes(), m.options)
	if err != nil {
		return nil, unfit("the template cannot be signed", err)
	}
	return readSignature(t, signatures(t)[s.ordinal], s.ordinal)
}

// checkSelf refuses references that cover what is filled in after their digest is
// made, their own digest or the value: such a signature never verifies. Only those
// that could are computed twice, the second time with everything filled in.
func (m *maker) checkSelf(s *signature, changes []change, digests []suite.Digest) error {
	suspects := 0
	resolver := newResolver(s.tree, []*signature{s})
	suspicious := func(r *reference) bool {
		to, err := resolver.resolve(r)
		if err != nil || r.isEnveloped() {
			return false
		}
		for _, n := range []xmltree.Node{s.info, s.value} {
			if s.tree.Contains(to.node, n) || s.tree.Contains(n, to.node) {
				return true
			}
		}
		return false
	}
	for _, r := range s.refs {
		if suspicious(r) {
			suspects++
		}
	}
	if suspects == 0 {
		return nil
	}
	// Any value does: what depends on it changes with it.
	full, err := m.reread(s, append(slices.Clone(changes), change{s.value, strings.Repeat("Tamga+", 8)}))
	if err != nil {
		return err
	}
	again, err := m.digests(full, newResolver(full.tree, []*signature{full}))
	if err != nil {
		return err
	}
	for i, r := range s.refs {
		if !bytes.Equal(again[i].Sum, digests[i].Sum) {
			return unfit("the template cannot be signed", flawAt(s.tree, r.node, codeMalformed, "the reference URI=%s covers the value of its own signature, which is not known yet; the transform enveloped-signature takes it out", quote(r.uri)))
		}
	}
	return nil
}

// infoDigest is the digest of the canonical SignedInfo with changes in it, where
// it stands.
func (m *maker) infoDigest(s *signature, edits []xmltree.Edit) (suite.Digest, error) {
	t := s.tree
	var fragment []byte
	span := t.Span(s.info)
	at := span.Start
	for _, e := range edits { // in document order, inside SignedInfo
		fragment = append(append(fragment, t.Slice(xmltree.Span{Start: at, End: e.Span.Start})...), e.Text...)
		at = e.Span.End
	}
	fragment = append(fragment, t.Slice(xmltree.Span{Start: at, End: span.End})...)
	small, info, err := t.Graft(s.node, fragment, m.options)
	if err != nil {
		return suite.Digest{}, unfit("the template cannot be signed", err)
	}
	return canonicalDigest(small.Subtree(info), s.method, m.suite.Hash)
}
