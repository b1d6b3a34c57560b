// SPDX-License-Identifier: Apache-2.0

package ocsp

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

func newCertID(serial, name []byte, issuer *x509gost.Certificate, h *suite.Hash) (CertID, error) {
	id := CertID{Hash: h, IssuerName: h.Digest(name).Sum, IssuerKey: issuer.KeyDigest(h), Serial: serial}
	if id.IssuerKey == nil {
		return id, errors.New("ocsp: the issuer's public key is not a BIT STRING of whole bytes, so it has no key digest")
	}
	var b cryptobyte.Builder
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddASN1ObjectIdentifier(h.OID)
			if h.NullParams {
				b.AddASN1NULL()
			}
		})
		b.AddASN1OctetString(id.IssuerName)
		b.AddASN1OctetString(id.IssuerKey)
		b.AddASN1(cbasn1.INTEGER, func(b *cryptobyte.Builder) { b.AddBytes(serial) })
	})
	var err error
	id.Raw, err = b.Bytes()
	return id, err
}

// NonceExtension returns an extension with a nonce of 1 to MaxNonce bytes, as an OCTET STRING.
func NonceExtension(nonce []byte) (x509gost.Extension, error) {
	if len(nonce) == 0 || len(nonce) > MaxNonce {
		return x509gost.Extension{}, fmt.Errorf("ocsp: the nonce has %d bytes; it must have 1 to %d", len(nonce), MaxNonce)
	}
	var b cryptobyte.Builder
	b.AddASN1OctetString(nonce)
	value, err := b.Bytes()
	return x509gost.Extension{OID: OIDNonce, Value: value}, err
}

// CreateRequest asks about cert, which issuer issued. It names both by digests of h. Every
// responder supports SHA-1. A nil nonce sends none. RFC 9654 requires responders to accept
// nonces of 32 bytes.
func CreateRequest(cert, issuer *x509gost.Certificate, h *suite.Hash, nonce []byte) ([]byte, error) {
	id, err := NewCertID(cert, issuer, h)
	if err != nil {
		return nil, err
	}
	var extensions []x509gost.Extension
	if nonce != nil {
		e, err := NonceExtension(nonce)
		if err != nil {
			return nil, err
		}
		extensions = append(extensions, e)
	}
	var b cryptobyte.Builder
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
				b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) { b.AddBytes(id.Raw) })
			})
			addExtensions(b, tag2, extensions)
		})
	})
	return b.Bytes()
}

func addExtensions(b *cryptobyte.Builder, tag cbasn1.Tag, list []x509gost.Extension) {
	if len(list) > 0 {
		b.AddASN1(tag, func(b *cryptobyte.Builder) { x509gost.AddExtensions(b, list) })
	}
}

// CreateBasic builds and signs a BasicOCSPResponse. It names the responder by the digest of
// its key. The responder signs with s through sign. CreateBasic verifies the signature before
// it returns the answer.
func CreateBasic(t *Template, responder *x509gost.Certificate, s *suite.Suite, sign x509gost.SignFunc) ([]byte, error) {
	der, err := createBasic(t, responder, s, sign)
	if err != nil {
		return nil, fmt.Errorf("ocsp: creating an answer: %w", err)
	}
	return der, nil
}

// dataRoom is more than the headers and the other fields of most answers need.
const dataRoom = 256

func createBasic(t *Template, responder *x509gost.Certificate, s *suite.Suite, sign x509gost.SignFunc) ([]byte, error) {
	if responder.Suite == nil || responder.Suite != s {
		return nil, errors.New("the responder's key does not belong to the suite that signs")
	}
	key := responder.KeyDigest(suite.SHA1)
	if key == nil {
		return nil, errors.New("the responder's public key is not a BIT STRING of whole bytes, so it has no key digest")
	}
	singles, err := t.singles()
	if err != nil {
		return nil, err
	}
	if err := checkTime(t.ProducedAt); err != nil {
		return nil, fmt.Errorf("producedAt: %w", err)
	}
	tbs := cryptobyte.NewBuilder(make([]byte, 0, len(singles)+dataRoom))
	tbs.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1(tag2, func(b *cryptobyte.Builder) { b.AddASN1OctetString(key) })
		x509gost.AddGeneralizedTime(b, t.ProducedAt)
		b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) { b.AddBytes(singles) })
		addExtensions(b, tag1, t.Extensions)
	})
	rawTBS, err := tbs.Bytes()
	if err != nil {
		return nil, err
	}
	d := s.Hash.Digest(rawTBS)
	value, err := sign(d)
	if err != nil {
		return nil, err
	}
	// Never return a signature that does not verify: the key may belong to another
	// certificate, or a computation may have failed.
	if err := responder.Verify(d, value); err != nil {
		return nil, fmt.Errorf("the signature just made does not verify: %w", err)
	}
	n := len(rawTBS) + len(value) + dataRoom
	for _, c := range t.Certificates {
		n += len(c.Raw)
	}
	out := cryptobyte.NewBuilder(make([]byte, 0, n))
	out.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddBytes(rawTBS)
		b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddASN1ObjectIdentifier(s.SignatureOID)
			if s.SignatureNull {
				b.AddASN1NULL()
			}
		})
		b.AddASN1BitString(value)
		if len(t.Certificates) > 0 {
			b.AddASN1(tag0, func(b *cryptobyte.Builder) {
				b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
					for _, c := range t.Certificates {
						b.AddBytes(c.Raw)
					}
				})
			})
		}
	})
	return out.Bytes()
}

// singles encodes the single answers.
func (t *Template) singles() ([]byte, error) {
	if len(t.Singles) == 0 || len(t.Singles) > MaxSingles {
		return nil, fmt.Errorf("%d single answers; there must be 1 to %d", len(t.Singles), MaxSingles)
	}
	var b cryptobyte.Builder
	for i := range t.Singles {
		s := &t.Singles[i]
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("answer %d: %w", i+1, err)
		}
		b.AddASN1(cbasn1.SEQUENCE, s.add)
	}
	return b.Bytes()
}

func (s *Single) check() error {
	switch {
	case len(s.CertID.Raw) == 0:
		return errors.New("it names no certificate")
	case s.Status < Good || s.Status > Unknown:
		return fmt.Errorf("unknown status %d", int(s.Status))
	case !x509gost.ValidReason(s.Reason):
		return fmt.Errorf("%d is not a CRLReason", s.Reason)
	case !s.NextUpdate.IsZero() && !s.ThisUpdate.Before(s.NextUpdate):
		return errors.New("nextUpdate must be after thisUpdate")
	}
	times := []time.Time{s.ThisUpdate}
	if !s.NextUpdate.IsZero() {
		times = append(times, s.NextUpdate)
	}
	if s.Status == Revoked {
		times = append(times, s.RevokedAt)
	}
	for _, at := range times {
		if err := checkTime(at); err != nil {
			return err
		}
	}
	return nil
}

func (s *Single) add(b *cryptobyte.Builder) {
	b.AddBytes(s.CertID.Raw)
	switch s.Status {
	case Good:
		b.AddASN1(tagGood, func(*cryptobyte.Builder) {})
	case Unknown:
		b.AddASN1(tagUnknown, func(*cryptobyte.Builder) {})
	case Revoked:
		b.AddASN1(tag1, func(b *cryptobyte.Builder) {
			x509gost.AddGeneralizedTime(b, s.RevokedAt)
			if s.Reason != 0 { // unspecified is omitted
				b.AddASN1(tag0, func(b *cryptobyte.Builder) { b.AddASN1Enum(int64(s.Reason)) })
			}
		})
	}
	x509gost.AddGeneralizedTime(b, s.ThisUpdate)
	if !s.NextUpdate.IsZero() {
		b.AddASN1(tag0, func(b *cryptobyte.Builder) { x509gost.AddGeneralizedTime(b, s.NextUpdate) })
	}
}

// checkTime refuses times that a GeneralizedTime cannot hold.
func checkTime(t time.Time) error {
	if y := t.UTC().Year(); t.IsZero() || y < 1950 || y > 9999 {
		return fmt.Errorf("time %s is outside the years 1950 to 9999", t.UTC().Format(time.RFC3339))
	}
	return nil
}

// CreateResponse wraps a BasicOCSPResponse in an OCSPResponse with the status successful.
func CreateResponse(basic []byte) []byte {
	b := cryptobyte.NewBuilder(make([]byte, 0, len(basic)+64))
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1Enum(int64(Successful))
		b.AddASN1(tag0, func(b *cryptobyte.Builder) {
			b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) {
				b.AddASN1ObjectIdentifier(OIDBasic)
				b.AddASN1OctetString(basic)
			})
		})
	})
	return b.BytesOrPanic() // cannot fail: it only joins bytes
}

// CreateError returns an OCSPResponse with an error status and without an answer.
func CreateError(status ResponseStatus) []byte {
	var b cryptobyte.Builder
	b.AddASN1(cbasn1.SEQUENCE, func(b *cryptobyte.Builder) { b.AddASN1Enum(int64(status)) })
	return b.BytesOrPanic()
}
