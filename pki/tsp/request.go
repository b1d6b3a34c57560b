// SPDX-License-Identifier: Apache-2.0

package tsp

import (
	"bytes"
	"errors"
	"fmt"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

var (
	tag0 = cbasn1.Tag(0).Constructed().ContextSpecific()
	tag1 = cbasn1.Tag(1).Constructed().ContextSpecific()
)

// Marshal encodes the request.
func (r *Request) Marshal() ([]byte, error) {
	if err := checkDigest(r.Digest); err != nil {
		return nil, fmt.Errorf("tsp: request: %w", err)
	}
	nonce, err := positive(r.Nonce)
	if err != nil {
		return nil, fmt.Errorf("tsp: request: nonce: %w", err)
	}
	var b cryptobyte.Builder
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1Int64(1)
		addImprint(b, r.Digest)
		if r.Policy != nil {
			b.AddASN1ObjectIdentifier(r.Policy)
		}
		if nonce != nil {
			addInteger(b, nonce)
		}
		if r.CertReq {
			b.AddASN1Boolean(true)
		}
	})
	der, err := b.Bytes()
	if err != nil {
		return nil, fmt.Errorf("tsp: request: %w", err)
	}
	return der, nil
}

// positive converts a number, leading zeros allowed, to the content of a positive INTEGER.
// nil stays nil.
func positive(number []byte) ([]byte, error) {
	if number == nil {
		return nil, nil
	}
	n := bytes.TrimLeft(number, "\x00")
	if len(n) == 0 || len(n) > MaxNonce {
		return nil, fmt.Errorf("it has %d bytes; it must be a positive number of 1 to %d bytes", len(n), MaxNonce)
	}
	if n[0]&0x80 != 0 {
		n = append([]byte{0}, n...)
	}
	return n, nil
}

func checkDigest(d suite.Digest) error {
	if d.Hash == nil || len(d.Sum) != d.Hash.Size {
		return errors.New("the digest to be stamped does not fit its algorithm")
	}
	return nil
}

// addImprint writes MessageImprint.
func addImprint(b *cryptobyte.Builder, d suite.Digest) {
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddASN1ObjectIdentifier(d.Hash.OID)
			if d.Hash.NullParams {
				b.AddASN1NULL()
			}
		})
		b.AddASN1OctetString(d.Sum)
	})
}

func addInteger(b *cryptobyte.Builder, content []byte) {
	b.AddASN1(cbasn1.INTEGER, func(b *cryptobyte.Builder) { b.AddBytes(content) })
}

// ParseRequest reads one DER TimeStampReq of at most MaxRequest bytes. Nothing may follow
// it. A digest algorithm that is not supported is not an error: Digest.Hash is then nil.
func ParseRequest(der []byte) (*Request, error) {
	r, err := parseRequest(der)
	if err != nil {
		return nil, fmt.Errorf("tsp: request: %w", err)
	}
	return r, nil
}

func parseRequest(der []byte) (*Request, error) {
	if len(der) > MaxRequest {
		return nil, fmt.Errorf("%d bytes are more than the %d allowed", len(der), MaxRequest)
	}
	in := cryptobyte.String(der)
	var seq cryptobyte.String
	var version int
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !in.Empty() {
		return nil, errors.New("not a TimeStampReq")
	}
	if !seq.ReadASN1Integer(&version) || version != 1 {
		return nil, errors.New("the version is not 1")
	}
	r := &Request{}
	var err error
	if r.Digest, _, err = readImprint(&seq); err != nil {
		return nil, err
	}
	if seq.PeekASN1Tag(cbasn1.OBJECT_IDENTIFIER) {
		if r.Policy, err = x509gost.ReadOID(&seq); err != nil {
			return nil, fmt.Errorf("reqPolicy: %w", err)
		}
	}
	if r.Nonce, err = readNonce(&seq); err != nil {
		return nil, err
	}
	if seq.PeekASN1Tag(cbasn1.BOOLEAN) && !seq.ReadASN1Boolean(&r.CertReq) {
		return nil, errors.New("certReq is not a BOOLEAN")
	}
	if r.Extensions, err = readExtensions(&seq, tag0); err != nil {
		return nil, err
	}
	if !seq.Empty() {
		return nil, errors.New("unknown data follows the extensions")
	}
	return r, nil
}

// readImprint reads MessageImprint. The length of a digest of a known algorithm is checked.
// For an unknown algorithm, Hash is nil and algorithm names it.
func readImprint(in *cryptobyte.String) (d suite.Digest, algorithm x509gost.OID, err error) {
	var seq, sum cryptobyte.String
	if !in.ReadASN1(&seq, cbasn1.SEQUENCE) {
		return d, nil, errors.New("messageImprint is not a SEQUENCE")
	}
	oid, parameters, err := x509gost.ReadAlgorithm(&seq)
	if err != nil {
		return d, nil, fmt.Errorf("hashAlgorithm: %w", err)
	}
	if !seq.ReadASN1(&sum, cbasn1.OCTET_STRING) || !seq.Empty() {
		return d, nil, errors.New("messageImprint is malformed")
	}
	d.Hash, _ = suite.HashByOID(oid)
	d.Sum = sum
	if d.Hash == nil {
		return d, oid, nil
	}
	if len(parameters) != 0 && !bytes.Equal(parameters, []byte{byte(cbasn1.NULL), 0}) {
		return d, nil, fmt.Errorf("hashAlgorithm %s has parameters", oid)
	}
	if len(sum) != d.Hash.Size {
		return d, nil, fmt.Errorf("a digest by %s must have %d bytes; this one has %d", d.Hash.Name, d.Hash.Size, len(sum))
	}
	return d, oid, nil
}

// readNonce reads an optional INTEGER.
func readNonce(in *cryptobyte.String) (nonce []byte, err error) {
	if !in.PeekASN1Tag(cbasn1.INTEGER) {
		return nil, nil
	}
	if !x509gost.ReadInteger(in, &nonce) || len(nonce) > MaxNonce+1 {
		return nil, fmt.Errorf("the nonce is not an INTEGER of at most %d bytes", MaxNonce)
	}
	return x509gost.TrimInteger(nonce), nil // a response has it in DER
}

// readExtensions reads optional Extensions with an implicit tag.
func readExtensions(in *cryptobyte.String, tag cbasn1.Tag) ([]x509gost.Extension, error) {
	var content cryptobyte.String
	var present bool
	if !in.ReadOptionalASN1(&content, &present, tag) {
		return nil, errors.New("the extensions are malformed")
	}
	if !present {
		return nil, nil
	}
	var b cryptobyte.Builder
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) { b.AddBytes(content) })
	list := cryptobyte.String(b.BytesOrPanic()) // cannot fail: the bytes were inside another element
	return x509gost.ReadExtensions(&list)
}
