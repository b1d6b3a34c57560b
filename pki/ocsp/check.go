// SPDX-License-Identifier: Apache-2.0

package ocsp

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// ErrResponder reports that no authorized responder of the issuer signed an answer.
var ErrResponder = errors.New("ocsp: no authorized responder of the issuer signed the answer")

// maxTried limits the certificates of an answer that are tried as its signer's, because
// the sender chooses them.
const maxTried = 4

// Responder returns the certificate whose key signed the answer: issuer itself, or a
// certificate inside the answer that issuer signed for the use OCSP signing (RFC 6960,
// 4.2.2.2). The error wraps ErrResponder. The caller must check that this certificate was
// valid at ProducedAt and, unless NoCheck is true, not revoked.
func (b *Basic) Responder(issuer *x509gost.Certificate) (*x509gost.Certificate, error) {
	scheme, err := b.Scheme()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrResponder, err)
	}
	reason := errors.New("it has no certificate of its responder")
	if b.identifies(issuer) {
		err := issuer.CheckSigned(scheme, b.RawTBS, b.Signature)
		if err == nil {
			return issuer, nil
		}
		// A responder may have the issuer's name, so continue.
		reason = fmt.Errorf("it names the issuer as its responder: %w", err)
	}
	tried := 0
	for _, c := range b.Certificates {
		if !b.identifies(c) {
			continue
		}
		if tried++; tried > maxTried {
			break
		}
		if reason = b.delegated(scheme, c, issuer); reason == nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf("%w: %w", ErrResponder, reason)
}

// Verified is an answer whose signature was checked for an issuer. Only Basic.Verify makes one.
type Verified struct {
	basic             *Basic
	issuer, responder *x509gost.Certificate
}

// Verify is Responder with a result that remembers what was checked.
func (b *Basic) Verify(issuer *x509gost.Certificate) (*Verified, error) {
	responder, err := b.Responder(issuer)
	if err != nil {
		return nil, err
	}
	return &Verified{b, issuer, responder}, nil
}

// Basic returns the answer, which must not be changed.
func (v *Verified) Basic() *Basic { return v.basic }

// Responder returns the certificate whose key signed the answer; see Basic.Responder.
func (v *Verified) Responder() *x509gost.Certificate { return v.responder }

// Of reports whether v is der, checked for issuer.
func (v *Verified) Of(der []byte, issuer *x509gost.Certificate) bool {
	return bytes.Equal(v.basic.Raw, der) && v.issuer.Equal(issuer)
}

// delegated returns an error unless c is an authorized responder of issuer that signed the
// answer.
func (b *Basic) delegated(scheme *suite.Scheme, c, issuer *x509gost.Certificate) error {
	switch {
	case !c.Issuer.Equal(issuer.Subject):
		return fmt.Errorf("its responder's certificate was issued by %q, not by the issuer %q", c.Issuer, issuer.Subject)
	case !slices.ContainsFunc(c.ExtKeyUsage, x509gost.UsageOCSPSigning.Equal):
		return errors.New("its responder's certificate is not for OCSP signing")
	case c.HasKeyUsage && c.KeyUsage&(x509.KeyUsageDigitalSignature|x509.KeyUsageContentCommitment) == 0:
		return errors.New("its responder's key is not for signing (keyUsage)")
	}
	if err := c.CheckSignatureFrom(issuer); err != nil {
		return fmt.Errorf("its responder's certificate: %w", err)
	}
	return c.CheckSigned(scheme, b.RawTBS, b.Signature)
}

// identifies reports whether ResponderID names a certificate.
func (b *Basic) identifies(c *x509gost.Certificate) bool {
	id := cryptobyte.String(b.RawResponderID)
	var inner, key cryptobyte.String
	switch {
	case id.PeekASN1Tag(tag1) && id.ReadASN1(&inner, tag1):
		return x509gost.SameName(inner, c.RawSubject)
	case id.ReadASN1(&inner, tag2) && inner.ReadASN1(&key, cbasn1.OCTET_STRING):
		return len(key) > 0 && bytes.Equal(key, c.KeyDigest(suite.SHA1))
	}
	return false
}
