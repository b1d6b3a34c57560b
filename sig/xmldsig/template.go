// SPDX-License-Identifier: Apache-2.0

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

// template fills a Signature that is already in the document: the digest of every
// reference, including those of its Manifests, the value, KeyInfo if it is empty, and the
// XAdES properties if they were requested. Nothing else changes, and certainly no
// identifier of an algorithm, because these are signed.
func (m *maker) template() (*made, error) {
	t, err := m.parse("a signature by template")
	if err != nil {
		return nil, err
	}
	s, err := m.findTemplate(t)
	if err != nil {
		return nil, err
	}
	f, err := m.fill(s)
	if err != nil {
		return nil, err
	}
	info, digests, err := m.templateDigests(s, f)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(f.before, info)
	if err := m.checkSelf(s, f, all, digests); err != nil {
		return nil, err
	}
	out := &made{encoding: t.Encoding()}
	if out.digest, err = m.infoDigest(s, editsOf(info)); err != nil {
		return nil, err
	}
	if m.params.level >= sig.LevelTime {
		if out.stamped, err = m.stamped(s); err != nil {
			return nil, err
		}
	}
	out.pieces, err = planOf(t, editsOf(append(all, contentOf(t, s.value, slot(slotValue)))))
	return out, err
}

// filling is the content that goes into a template.
type filling struct {
	before []change // applied before the references of SignedInfo are digested
	// reference is as in qualified.
	reference func(digest string) string
	// always reports that the digests certainly depend on before.
	always bool
	// manifests are the indexes of the manifest references that are filled.
	manifests []int
}

// fill returns what a template needs in addition to the digests of its references.
func (m *maker) fill(s *signature) (*filling, error) {
	if err := m.checkAlgorithms(s, s.refs); err != nil {
		return nil, unfit("the template cannot be signed", err)
	}
	q, err := m.qualify(s)
	if err != nil {
		return nil, unfit("the template cannot be signed", err)
	}
	key := fillKeyInfo(s, certificates(m.job, m.params.chain))
	f := &filling{before: slices.Concat(key, q.changes), reference: q.reference, always: len(q.changes) > 0}
	return f, m.fillManifests(s, f)
}

// stamped returns the text before and after the value in the exclusive canonical form of
// SignatureValue, which a time stamp covers.
func (m *maker) stamped(s *signature) ([]string, error) {
	const value = "VALUE"
	with, err := m.reread(s, []change{contentOf(s.tree, s.value, value)})
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	if err := with.tree.Subtree(with.value).Canonicalize(&b, xmltree.Method{Form: xmltree.Exclusive}); err != nil {
		return nil, unfit("has no canonical form", err)
	}
	end := strings.LastIndexByte(b.String(), '<')
	return []string{b.String()[:end-len(value)], b.String()[end:]}, nil
}

// findTemplate returns the Signature to fill: the one with the index SignatureIndex, or
// the first one whose value is empty.
func (m *maker) findTemplate(t *xmltree.Tree) (*signature, error) {
	all := signatures(t)
	isEmpty := func(n xmltree.Node) bool {
		value := t.Child(n, nsDS, "SignatureValue")
		return value == xmltree.None || isBlank(t, value)
	}
	i := m.params.index
	switch {
	case len(all) == 0:
		return nil, unfit("has no template: it has no element Signature of the namespace "+nsDS, nil)
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

// checkAlgorithms refuses algorithms that the certificate's key cannot sign with, and
// digest algorithms that are too weak for new signatures.
func (m *maker) checkAlgorithms(s *signature, refs []*reference) error {
	t := s.tree
	if s.scheme != m.suite.Scheme() {
		method := t.Child(s.info, nsDS, "SignatureMethod")
		if s.scheme == nil {
			return flawAt(t, method, codeAlgorithm, "SignatureMethod %s is unknown; the certificate's key signs %s", quote(s.algorithm), m.suite.XML[0])
		}
		return flawAt(t, method, codeKeyMismatch, "SignatureMethod %s is %s, but the certificate's key is of %s, which signs %s", s.algorithm, s.scheme.Name, m.suite.Title, m.suite.XML[0])
	}
	for _, r := range refs {
		switch {
		case r.hash == nil:
			return r.unknownHash(t)
		case r.hash.Weak():
			method := t.Child(r.node, nsDS, "DigestMethod")
			return flawAt(t, method, codeRefusedHash, "DigestMethod %s is refused: two documents with the same digest can be made", r.algorithm)
		}
	}
	return nil
}

// unknownHash returns the flaw of a reference with an unknown digest algorithm.
func (r *reference) unknownHash(t *xmltree.Tree) *flaw {
	return flawAt(t, t.Child(r.node, nsDS, "DigestMethod"), codeAlgorithm, "algorithm not supported: DigestMethod %s", quote(r.algorithm))
}

// templateDigests computes the digests of all references and returns the changes that put
// them into SignedInfo. If a reference covers content that is filled in before, the
// document is parsed again with that content.
func (m *maker) templateDigests(s *signature, f *filling) (info []change, digests []suite.Digest, err error) {
	find, with := newResolver(s.tree, []*signature{s}), s
	again := f.always
	for _, r := range s.refs {
		to, err := find.resolve(r)
		if err != nil && !f.always {
			return nil, nil, unfit("the template cannot be signed", err)
		}
		for _, c := range f.before {
			again = again || s.tree.Contains(to.node, c.node) && !(r.isEnveloped() && s.tree.Contains(s.node, c.node))
		}
	}
	if again {
		before := f.before
		if f.reference != nil {
			before = append(slices.Clone(before), m.lastReference(s, f.reference("")))
		}
		if with, err = m.reread(s, before); err != nil {
			return nil, nil, err
		}
	}
	if digests, err = m.digests(with, with.refs); err != nil {
		return nil, nil, err
	}
	for i, r := range s.refs {
		info = append(info, contentOf(s.tree, r.digest, base64.StdEncoding.EncodeToString(digests[i].Sum)))
	}
	if f.reference != nil {
		info = append(info, m.lastReference(s, f.reference(base64.StdEncoding.EncodeToString(digests[len(s.refs)].Sum))))
	}
	return info, digests, nil
}

// lastReference returns the change that adds a Reference after those of a SignedInfo.
func (m *maker) lastReference(s *signature, text string) change {
	end := s.tree.Span(s.refs[len(s.refs)-1].node).End
	return change{s.info, xmltree.Edit{Span: xmltree.Span{Start: end, End: end}, Text: text}}
}

// isEnveloped reports whether the first transform removes the Signature, so that the
// Signature certainly is not digested.
func (r *reference) isEnveloped() bool {
	return len(r.transforms) > 0 && r.transforms[0].algorithm == algEnveloped
}

// digests computes the digests of references of a signature.
func (m *maker) digests(s *signature, refs []*reference) ([]suite.Digest, error) {
	out := make([]suite.Digest, len(refs))
	find := newResolver(s.tree, []*signature{{refs: refs}})
	for i, r := range refs {
		to, err := find.resolve(r)
		if err == nil {
			d := digester{ctx: m.ctx, sig: s, ref: r, options: m.options}
			var size int64
			if out[i], size, err = d.digest(to); err == nil && size == 0 {
				err = flawAt(s.tree, r.node, codeNothing, "the result of the reference's transforms is empty, so there is nothing to sign")
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

// reread parses the document again with changes and returns the same Signature in the new
// tree.
func (m *maker) reread(s *signature, changes []change) (*signature, error) {
	edits := editsOf(changes)
	for i := range edits {
		edits[i].Text = withoutSlots(edits[i].Text)
	}
	spliced, err := s.tree.Splice(edits...)
	if err != nil {
		return nil, err
	}
	if err := m.options.Budget.Hold(spliced.Size()); err != nil {
		return nil, err
	}
	t, err := xmltree.Parse(spliced.Bytes(), m.options)
	if err != nil {
		return nil, unfit("the template cannot be signed", err)
	}
	again, err := readSignature(t, signatures(t)[s.ordinal], s.ordinal)
	if err != nil {
		return nil, unfit("the template cannot be signed", err)
	}
	return again, nil
}

// checkSelf refuses references that cover content that is filled in after their digest is
// made, such as their own digest or the value. Such a signature never verifies. Digests
// are computed again, with everything filled in, only if a reference could cover such
// content.
func (m *maker) checkSelf(s *signature, f *filling, changes []change, digests []suite.Digest) error {
	find := newResolver(s.tree, []*signature{s})
	suspicious := func(r *reference) bool {
		to, err := find.resolve(r)
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
	if !f.always && !slices.ContainsFunc(s.refs, suspicious) {
		return nil
	}
	// Any value and any time stamp will do: a digest that depends on them changes.
	changes = append(slices.Clone(changes), contentOf(s.tree, s.value, strings.Repeat("Tamga+", 8)))
	for i := range changes {
		changes[i].edit.Text = strings.ReplaceAll(changes[i].edit.Text, slot(slotStamp), "Tamga+")
	}
	full, err := m.reread(s, changes)
	if err != nil {
		return err
	}
	again, err := m.digests(full, full.refs)
	if err != nil {
		return err
	}
	listed, err := m.manifestDigests(full, f.manifests)
	if err != nil {
		return err
	}
	for _, l := range listed {
		if want, _ := base64Text(full.tree, l.ref.digest, maxValue); !bytes.Equal(l.digest.Sum, want) {
			return unfit("the template cannot be signed", flawAt(full.tree, l.ref.node, codeMalformed, "the reference URI=%s of a Manifest covers content that depends on its own digest", quote(l.ref.uri)))
		}
	}
	for i, r := range s.refs {
		if !bytes.Equal(again[i].Sum, digests[i].Sum) {
			return unfit("the template cannot be signed", flawAt(s.tree, r.node, codeMalformed, "the reference URI=%s covers the value or a time stamp of its own signature, which is not known yet; the transform enveloped-signature takes it out", quote(r.uri)))
		}
	}
	return nil
}

// infoDigest returns the digest of the canonical form of SignedInfo with changes, in its
// place in the document.
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
