package xmldsig

import (
	"bytes"
	"context"
	"slices"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig/xmltree"
)

// elementHashes are the digests of references in VerifyElement.
var elementHashes = []*suite.Hash{suite.SHA256, suite.SHA384, suite.SHA512, suite.Streebog256, suite.Streebog512}

// elementScheme reports whether a signature algorithm is one of VerifyElement. None is
// made with a secret that both sides have: a verifier that took a public key for one
// would believe everybody. SHA-1 and the algorithms of 2001 are not among them.
func elementScheme(s *suite.Scheme) bool {
	return s != nil && s.Hash.WeakSince.IsZero() && s != suite.GOST2001.Scheme()
}

// VerifyElement judges the Signature element n for protocols that sign their messages as
// elements with an attribute ID (SAML 2.0 core, 5.4). It answers nil only when
//
//   - the signature speaks for the element it is a child of and for nothing else: one
//     reference, by the ID of that parent, which no other element has;
//   - the transforms are enveloped-signature and then exclusive canonical form, and
//     SignedInfo is in exclusive canonical form, all without comments: of the parent
//     everything but the signature and comments is covered;
//   - the algorithms are of a short list without SHA-1 and without shared secrets;
//   - the value was made by the key of one of certs. KeyInfo is not looked at, and
//     neither is the life of the certificates: the caller trusts their keys.
//
// Whoever uses the parent afterwards has to go on from its node, and not look for it
// again by anything.
func VerifyElement(ctx context.Context, t *xmltree.Tree, n xmltree.Node, certs []*x509gost.Certificate) error {
	all := signatures(t)
	ordinal := slices.Index(all, n)
	if ordinal < 0 || len(all) > maxSignatures {
		return flawAt(t, n, codeMany, "is not one of at most %d Signature elements", maxSignatures)
	}
	s, err := readSignature(t, n, ordinal)
	if err != nil {
		return err
	}
	ref, err := s.ofParent()
	if err != nil {
		return err
	}
	if err := s.madeBy(certs); err != nil {
		return err
	}
	d := digester{ctx: ctx, sig: s, ref: ref}
	got, _, err := d.digest(target{node: t.Parent(n)})
	if err != nil {
		return err
	}
	want, err := base64Text(t, ref.digest, maxValue)
	if err != nil {
		return err
	}
	if !bytes.Equal(got.Sum, want) {
		return flawAt(t, ref.node, codeDigest, "the element has changed since it was signed")
	}
	return nil
}

// ofParent is the one reference of a signature, which is to its parent and in the form
// VerifyElement wants.
func (s *signature) ofParent() (*reference, error) {
	t := s.tree
	parent := t.Parent(s.node)
	switch {
	case len(s.objects) > 0:
		// Nothing here has a use for one, but a forger has: it is where the element
		// that was signed is put away.
		return nil, flawAt(t, s.objects[0], codeMalformed, "an Object has no place in this signature")
	case s.method.Form != xmltree.Exclusive || s.method.Comments:
		return nil, flawAt(t, s.info, codeAlgorithm, "CanonicalizationMethod: exclusive canonical form without comments expected")
	case len(s.refs) != 1:
		return nil, flawAt(t, s.info, codeMalformed, "SignedInfo has %d references, one to the element around the signature expected", len(s.refs))
	}
	r := s.refs[0]
	id, _ := t.Get(parent, "ID")
	if t.Kind(parent) != xmltree.KindElement || id == "" || r.uri != "#"+id {
		return nil, flawAt(t, r.node, codeRemote, "the reference URI=%s is not to the element around the signature by its ID", quote(r.uri))
	}
	to, err := newResolver(t, []*signature{s}).resolve(r)
	if err != nil {
		return nil, err
	}
	if to.node != parent {
		return nil, flawAt(t, r.node, codeRemote, "the reference URI=%s is to another element than the one around the signature", quote(r.uri))
	}
	if len(r.transforms) != 2 || r.transforms[0].algorithm != algEnveloped || r.transforms[1].algorithm != algExcC14N {
		return nil, flawAt(t, r.node, codeTransform, "transforms: enveloped-signature and exclusive canonical form expected, these two in this order")
	}
	if !slices.Contains(elementHashes, r.hash) {
		return nil, flawAt(t, r.node, codeAlgorithm, "DigestMethod %s is not accepted; SHA-256, SHA-384, SHA-512 or Streebog expected", quote(r.algorithm))
	}
	return r, nil
}

// madeBy verifies the value over SignedInfo.
func (s *signature) madeBy(certs []*x509gost.Certificate) error {
	t := s.tree
	if !elementScheme(s.scheme) {
		return flawAt(t, s.info, codeAlgorithm, "SignatureMethod %s is not accepted; RSA, RSA-PSS or ECDSA with SHA-2 or SHA-3, Ed25519 or GOST R 34.10-2012 expected", quote(s.algorithm))
	}
	d, err := canonicalDigest(t.Subtree(s.info), s.method, s.scheme.Input())
	if err != nil {
		return flawAt(t, s.info, codeMalformed, "SignedInfo: %s", err)
	}
	value, err := base64Text(t, s.value, maxValue)
	if err != nil {
		return err
	}
	why, text := codeKeyMismatch, "none of the keys is of the algorithm of the signature"
	for _, c := range certs {
		if c.PublicKey == nil || s.scheme.Accepts(c.Key()) != nil {
			continue
		}
		if verifyXML(s.scheme, c, d, value) == nil {
			return nil
		}
		why, text = codeValue, "the signature was made by another key, or SignedInfo has changed"
	}
	return flawAt(t, s.value, why, "%s", text)
}
