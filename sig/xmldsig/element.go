// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"bytes"
	"context"
	"slices"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig/xmltree"
)

// elementHashes are the digest algorithms that VerifyElement accepts in a reference.
var elementHashes = []*suite.Hash{suite.SHA256, suite.SHA384, suite.SHA512, suite.Streebog256, suite.Streebog512}

// elementScheme reports whether VerifyElement accepts a signature algorithm. Algorithms
// with a shared secret (HMAC) are refused: a verifier that used the public key as the
// secret would accept signatures by anyone. SHA-1 and GOST R 34.10-2001 are refused too.
func elementScheme(s *suite.Scheme) bool {
	return s != nil && !s.Hash.Weak() && s != suite.GOST2001.Scheme()
}

// VerifyElement checks the Signature element n for protocols that sign their messages as
// elements with an attribute ID (SAML 2.0 core, 5.4). It returns nil only if all of this
// is true:
//
//   - The signature covers its parent element and nothing else: it has one reference,
//     to the ID of the parent, and no other element has that ID.
//   - The transforms are enveloped-signature and then the exclusive canonical form.
//     SignedInfo has the exclusive canonical form too. All are without comments.
//     So everything in the parent except the signature and comments is covered.
//   - The algorithms are on a short list without SHA-1 and without shared secrets.
//   - The value was made with the key of one of certs. KeyInfo is ignored, and so are
//     the validity periods of the certificates: the caller trusts their keys.
//
// After the check the caller must continue from the parent's node. It must not search the
// document for the element again, because another one may be found.
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

// ofParent returns the only reference of the signature. It must refer to the parent and
// have the form that VerifyElement requires.
func (s *signature) ofParent() (*reference, error) {
	t := s.tree
	parent := t.Parent(s.node)
	switch {
	case len(s.objects) > 0:
		// VerifyElement has no use for an Object. Attackers have: it is where they move
		// the signed element.
		return nil, flawAt(t, s.objects[0], codeMalformed, "an Object is not allowed in this signature")
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
	why, text := codeKeyMismatch, "no trusted key matches the algorithm of the signature"
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
