// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Signer is one signature to write.
type Signer struct {
	// Certificate names the signer, by issuer and serial number.
	Certificate *x509gost.Certificate
	Suite       *suite.Suite
	// SignedAttrs is the result of BuildSignedAttributes, nil for none.
	SignedAttrs []byte
	// Signature is the value in the form of suite.Sign.
	Signature     []byte
	UnsignedAttrs []Attribute
}

// Encode returns the parts of a SignedData message in DER before and after the content: the
// message is head, the content unchanged, and tail. contentSize is the number of content
// bytes, or -1 for a detached message, which is head and tail together. certs and crls are
// whole elements and are written in their order. Each must be a DER certificate or CRL, or
// another format of CertificateChoices or RevocationInfoChoices.
func Encode(contentType asn1.ObjectIdentifier, contentSize int64, certs, crls [][]byte, signers []Signer) (head, tail []byte, err error) {
	if contentSize < -1 {
		return nil, nil, fmt.Errorf("cms: invalid content size %d; it must be -1 (detached) or more", contentSize)
	}
	if contentSize > 1<<62 { // lengths in the headers around it must not overflow
		return nil, nil, errors.New("cms: the content has more than 2^62 bytes")
	}
	for _, list := range [][][]byte{certs, crls} {
		for _, e := range list {
			if len(e) == 0 {
				return nil, nil, errors.New("cms: an empty certificate or CRL")
			}
		}
	}
	n := headersRoom + size(certs) + size(crls)
	for i := range signers {
		n += signers[i].room()
	}
	w := newWriter(n)
	for i := len(signers) - 1; i >= 0; i-- {
		signers[i].write(&w)
	}
	after, err := w.closeSigners(certs, crls)
	if err != nil {
		return nil, nil, err
	}
	encap := w.len()
	if contentSize >= 0 {
		w.skip(contentSize)
		w.close(tagOctetString, encap)
		w.close(tagContext0, encap)
	}
	w.oid(contentType)
	w.close(tagSequence, encap)
	if err := w.digestAlgorithms(signers); err != nil {
		return nil, nil, err
	}
	w.closeMessage(OIDSignedData, version(contentType, certs, crls, false))
	head, tail = w.parts(after)
	return head, tail, nil
}

// headersRoom is more than Encode and Rewrite need besides certificates, CRLs, signers and
// further digest algorithms.
const headersRoom = 128

// size returns the total length of elements in bytes.
func size(elements [][]byte) (n int) {
	for _, e := range elements {
		n += len(e)
	}
	return n
}

// closeSigners writes the header around the SignerInfos, and before them the CRLs and the
// certificates. w must hold the SignerInfos and nothing else. It returns the number of bytes
// in w.
func (w *writer) closeSigners(certs, crls [][]byte) (int, error) {
	w.close(tagSet, 0)
	for _, field := range []struct {
		tag      byte
		elements [][]byte
	}{{tagContext1, crls}, {tagContext0, certs}} {
		if len(field.elements) > 0 {
			mark := w.len()
			w.addAll(field.elements)
			w.close(field.tag, mark)
		}
	}
	n := len(w.der())
	if n > maxHeld { // Parse would refuse it
		return 0, fmt.Errorf("cms: certificates, CRLs and signers would have %d bytes; Parse reads at most %d", n, maxHeld)
	}
	return n, nil
}

// parts returns what was written in two parts, the second of n bytes.
func (w *writer) parts(n int) (head, tail []byte) {
	all := w.der()
	cut := len(all) - n
	return all[:cut:cut], all[cut:]
}

// closeMessage writes the version of a content and the headers around it. w must hold the other
// fields and nothing else.
func (w *writer) closeMessage(contentType asn1.ObjectIdentifier, version byte) {
	w.number(version)
	w.close(tagSequence, 0)
	w.close(tagContext0, 0)
	w.oid(contentType)
	w.close(tagSequence, 0)
}

// version follows RFC 5652, 5.1. byKey reports whether a SignerInfo has version 3, which
// names its signer by key identifier.
func version(contentType asn1.ObjectIdentifier, certs, crls [][]byte, byKey bool) byte {
	v := byte(1)
	if byKey || !contentType.Equal(OIDData) {
		v = 3
	}
	for _, c := range certs {
		switch c[0] {
		case 0xa1: // v1AttrCert
			v = max(v, 3)
		case 0xa2: // v2AttrCert
			v = max(v, 4)
		case 0xa3: // other
			v = 5
		}
	}
	for _, c := range crls {
		if c[0] != tagSequence { // other
			v = 5
		}
	}
	return v
}

// digestAlgorithms writes the digest of every signer, and of every countersigner among the
// unsigned attributes, each once.
func (w *writer) digestAlgorithms(signers []Signer) error {
	list := make([]*suite.Hash, 0, 4) // rarely more
	var err error
	for i := range signers {
		list = withHash(list, signers[i].Suite.Hash)
		if list, err = withCountersigners(list, signers[i].UnsignedAttrs, 0); err != nil {
			return err
		}
	}
	mark := w.len()
	for i := len(list) - 1; i >= 0; i-- {
		w.digestAlgorithm(list[i])
	}
	w.close(tagSet, mark)
	return nil
}

// withHash returns the list with h in it once.
func withHash(list []*suite.Hash, h *suite.Hash) []*suite.Hash {
	if slices.Contains(list, h) {
		return list
	}
	return append(list, h)
}

// withCountersigners returns the list with the digests of all countersignatures among the
// attributes.
func withCountersigners(list []*suite.Hash, attrs []Attribute, depth int) ([]*suite.Hash, error) {
	inner, err := countersignatures(attrs)
	if err != nil {
		return nil, err
	}
	if depth == MaxCountersignatures && len(inner) > 0 {
		return nil, fmt.Errorf("cms: countersignatures are nested deeper than %d", depth)
	}
	for _, c := range inner {
		h, err := c.Hash()
		if err != nil {
			return nil, fmt.Errorf("cms: countersignature: %w", err)
		}
		if list, err = withCountersigners(withHash(list, h), c.UnsignedAttrs, depth+1); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// room is more than write needs for the algorithms of this program.
func (s *Signer) room() int {
	n := headersRoom + len(s.Certificate.RawIssuer) + len(s.Certificate.SerialNumber) + len(s.SignedAttrs) + len(s.Signature)
	for _, a := range s.UnsignedAttrs {
		n += len(a.Raw)
	}
	return n
}

// write writes the SignerInfo.
func (s *Signer) write(w *writer) {
	info := w.len()
	if len(s.UnsignedAttrs) > 0 {
		for _, a := range slices.Backward(s.UnsignedAttrs) {
			w.add(a.Raw)
		}
		w.close(tagContext1, info)
	}
	w.wrap(tagOctetString, s.Signature)
	w.algorithm(s.Suite.CMSSignatureOID, s.Suite.CMSSignatureNull)
	if s.SignedAttrs != nil {
		w.add(s.SignedAttrs)
		w.buf[w.at] = tagContext0 // [0] IMPLICIT replaces the SET's tag
	}
	w.digestAlgorithm(s.Suite.Hash)
	sid := w.len()
	w.wrap(tagInteger, s.Certificate.SerialNumber)
	w.add(s.Certificate.RawIssuer)
	w.close(tagSequence, sid)
	w.number(1) // the version of a signer named by issuer and serial number
	w.close(tagSequence, info)
}

// Marshal returns the SignerInfo as DER.
func (s *Signer) Marshal() []byte {
	w := newWriter(s.room())
	s.write(&w)
	return w.der()
}
