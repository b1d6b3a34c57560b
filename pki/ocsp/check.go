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

// ErrResponder says that nobody who may answer for the issuer signed an answer.
var ErrResponder = errors.New("ocsp: the answer is not signed by one who may answer for the issuer")

// maxTried bounds how many certificates of an answer are tried as its signer's:
// whoever sent it chose them.
const maxTried = 4

// Responder returns whose key signed the answer: issuer itself, or a certificate
// inside the answer that issuer signed and that names OCSP signing as its use
// (RFC 6960, 4.2.2.2). An error wraps ErrResponder. Whether that certificate was
// valid at ProducedAt, and, unless NoCheck says otherwise, not revoked, is left to
// the caller.
func (b *Basic) Responder(issuer *x509gost.Certificate) (*x509gost.Certificate, error) {
	scheme, err := b.Scheme()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrResponder, err)
	}
	reason := errors.New("it holds no certificate of its responder")
	if b.identifies(issuer) {
		err := issuer.CheckSigned(scheme, b.RawTBS, b.Signature)
		if err == nil {
			return issuer, nil
		}
		// A responder may bear the issuer's name, so this is not the end.
		reason = fmt.Errorf("signed in the issuer's name: %w", err)
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

// delegated says why c may not have signed the answer in issuer's place.
func (b *Basic) delegated(scheme *suite.Scheme, c, issuer *x509gost.Certificate) error {
	switch {
	case !c.Issuer.Equal(issuer.Subject):
		return fmt.Errorf("its responder was certified by %q, not by the issuer %q", c.Issuer, issuer.Subject)
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

// identifies tells whether ResponderID is that of a certificate.
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
