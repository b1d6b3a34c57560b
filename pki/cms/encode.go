package cms

import (
	"bytes"
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
	for _, e := range slices.Concat(certs, crls) {
		if len(e) == 0 {
			return nil, nil, errors.New("cms: an empty certificate or CRL")
		}
	}
	infos := make([][]byte, len(signers))
	for i := range signers {
		infos[i] = signers[i].marshal()
	}
	if len(certs) > 0 {
		tail = append(tail, wrap(tagContext0, certs...)...)
	}
	if len(crls) > 0 {
		tail = append(tail, wrap(tagContext1, crls...)...)
	}
	tail = append(tail, wrap(tagSet, infos...)...)
	if len(tail) > maxHeld { // Parse would not read it again
		return nil, nil, fmt.Errorf("cms: certificates, CRLs and signers would take %d octets; at most %d are read", len(tail), maxHeld)
	}

	version := wrap(tagInteger, []byte{version(contentType, certs, crls, false)})
	digests, err := digestAlgorithms(signers)
	if err != nil {
		return nil, nil, err
	}

	// From the inside out: each header needs the length of what it wraps.
	encap := marshalOID(contentType)
	encapLen := int64(len(encap))
	if contentSize >= 0 {
		octets := appendHeader(nil, tagOctets, contentSize)
		octetsLen := int64(len(octets)) + contentSize
		explicit := appendHeader(nil, tagContext0, octetsLen)
		encap = bytes.Join([][]byte{encap, explicit, octets}, nil)
		encapLen += int64(len(explicit)) + octetsLen
	}
	encap = append(appendHeader(nil, tagSequence, encapLen), encap...)
	dataLen := int64(len(version)+len(digests)+len(encap)+len(tail)) + max(contentSize, 0)
	return slices.Concat(messageHeaders(dataLen), version, digests, encap), tail, nil
}

// messageHeaders are the headers around the fields of a SignedData, which take
// dataLen octets.
func messageHeaders(dataLen int64) []byte {
	data := appendHeader(nil, tagSequence, dataLen)
	explicit := appendHeader(nil, tagContext0, int64(len(data))+dataLen)
	oid := marshalOID(OIDSignedData)
	outer := appendHeader(nil, tagSequence, int64(len(oid)+len(explicit)+len(data))+dataLen)
	return slices.Concat(outer, oid, explicit, data)
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

// digestAlgorithms lists the digest of every signer, and of every
// countersigner among the unsigned attributes, once.
func digestAlgorithms(signers []Signer) ([]byte, error) {
	var list [][]byte
	add := func(a []byte) {
		for _, have := range list {
			if bytes.Equal(have, a) {
				return
			}
		}
		list = append(list, a)
	}
	var countersigners func(s *SignerInfo, depth int) error
	countersigners = func(s *SignerInfo, depth int) error {
		inner, err := s.Countersignatures()
		if err != nil {
			return err
		}
		if depth == MaxCountersignatures {
			return fmt.Errorf("cms: countersignatures are nested deeper than %d", depth)
		}
		for _, c := range inner {
			h, err := c.Hash()
			if err != nil {
				return fmt.Errorf("cms: countersignature: %w", err)
			}
			add(digestAlgorithm(h))
			if err := countersigners(c, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range signers {
		add(digestAlgorithm(signers[i].Suite.Hash))
		if err := countersigners(&SignerInfo{UnsignedAttrs: signers[i].UnsignedAttrs}, 0); err != nil {
			return nil, err
		}
	}
	return wrap(tagSet, list...), nil
}

// digestAlgorithm is the AlgorithmIdentifier of a digest: with NULL for 34.11-94
// as RFC 4490 has it, without parameters for the others.
func digestAlgorithm(h *suite.Hash) []byte { return algorithm(h.OID, h.NullParams) }

func algorithm(oid asn1.ObjectIdentifier, null bool) []byte {
	if null {
		return wrap(tagSequence, marshalOID(oid), []byte{tagNull, 0})
	}
	return wrap(tagSequence, marshalOID(oid))
}

func (s *Signer) marshal() []byte {
	fields := [][]byte{
		wrap(tagInteger, []byte{1}),
		wrap(tagSequence, s.Certificate.RawIssuer, wrap(tagInteger, s.Certificate.SerialNumber)),
		digestAlgorithm(s.Suite.Hash),
	}
	if s.SignedAttrs != nil {
		attrs := bytes.Clone(s.SignedAttrs)
		attrs[0] = tagContext0 // [0] IMPLICIT takes the place of the SET's tag
		fields = append(fields, attrs)
	}
	fields = append(fields,
		algorithm(s.Suite.CMSSignatureOID, s.Suite.CMSSignatureNull),
		wrap(tagOctets, s.Signature))
	if len(s.UnsignedAttrs) > 0 {
		raws := make([][]byte, len(s.UnsignedAttrs))
		for i, a := range s.UnsignedAttrs {
			raws[i] = a.Raw
		}
		fields = append(fields, wrap(tagContext1, raws...))
	}
	return wrap(tagSequence, fields...)
}
