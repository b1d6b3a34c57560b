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
	// SignedAttrs is what BuildSignedAttributes returned, nil for none.
	SignedAttrs []byte
	// Signature is the value in the form of suite.Sign.
	Signature     []byte
	UnsignedAttrs []Attribute
}

// Encode returns what precedes and what follows the content of a SignedData
// message in DER: head, the content as it is, tail are the message. contentSize
// is the number of content octets, or -1 for a detached message, which is head
// and tail together. certs and crls are whole elements, written in their order;
// the first must be DER certificates, attribute certificates or other formats as
// CertificateChoices and RevocationInfoChoices say.
func Encode(contentType asn1.ObjectIdentifier, contentSize int64, certs, crls [][]byte, signers []Signer) (head, tail []byte, err error) {
	if contentSize < -1 {
		return nil, nil, fmt.Errorf("cms: a content of %d octets", contentSize)
	}
	if contentSize > 1<<62 { // the headers around it must not overflow
		return nil, nil, errors.New("cms: a content of more than 2^62 octets")
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
		w.close(tagOctets, encap)
		w.close(tagContext0, encap)
	}
	w.oid(contentType)
	w.close(tagSequence, encap)
	if err := w.digestAlgorithms(signers); err != nil {
		return nil, nil, err
	}
	w.closeMessage(version(contentType, certs, crls, false))
	head, tail = w.parts(after)
	return head, tail, nil
}

// headersRoom is more than what Encode and Rewrite write takes besides certificates,
// CRLs, signers and further digest algorithms.
const headersRoom = 128

// size is the number of octets of all elements.
func size(elements [][]byte) (n int) {
	for _, e := range elements {
		n += len(e)
	}
	return n
}

// closeSigners writes the header around the SignerInfos, which are written, and
// nothing else, and before them the CRLs and the certificates. It returns how many
// octets that makes.
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
	if n > maxHeld { // Parse would not read it again
		return 0, fmt.Errorf("cms: certificates, CRLs and signers would take %d octets; at most %d are read", n, maxHeld)
	}
	return n, nil
}

// parts are what was written, cut so that the second has n octets.
func (w *writer) parts(n int) (head, tail []byte) {
	all := w.der()
	cut := len(all) - n
	return all[:cut:cut], all[cut:]
}

// closeMessage writes the version of a SignedData whose other fields are written,
// and nothing else, and the headers around it.
func (w *writer) closeMessage(version byte) {
	w.number(version)
	w.close(tagSequence, 0)
	w.close(tagContext0, 0)
	w.oid(OIDSignedData)
	w.close(tagSequence, 0)
}

// version follows RFC 5652, 5.1. byKey tells that a SignerInfo is of version 3:
// its signer is named by key identifier.
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

// digestAlgorithms writes the digest of every signer, and of every countersigner
// among the unsigned attributes, once.
func (w *writer) digestAlgorithms(signers []Signer) error {
	list := make([]*suite.Hash, 0, 4) // seldom more
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

// withHash is the list with h in it, once.
func withHash(list []*suite.Hash, h *suite.Hash) []*suite.Hash {
	if slices.Contains(list, h) {
		return list
	}
	return append(list, h)
}

// withCountersigners is the list with the digests of all countersignatures among
// the attributes.
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

// room is more than write takes for the algorithms of this program.
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
	w.wrap(tagOctets, s.Signature)
	w.algorithm(s.Suite.CMSSignatureOID, s.Suite.CMSSignatureNull)
	if s.SignedAttrs != nil {
		w.add(s.SignedAttrs)
		w.buf[w.at] = tagContext0 // [0] IMPLICIT takes the place of the SET's tag
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
