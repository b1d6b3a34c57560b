// SPDX-License-Identifier: Apache-2.0

// Package ocsp reads and writes messages of the Online Certificate Status Protocol (RFC
// 6960): requests and answers. An answer is a BasicOCSPResponse. The same code serves GOST
// algorithms, RSA and ECDSA.
//
// A client begins with CreateRequest and Parse, then uses Basic.Responder and Basic.Find. A
// responder begins with ParseRequest and CreateBasic. Responder checks that the signer of an
// answer is the issuer, or that the issuer authorized it. The package does not check whether
// the responder's certificate was valid or the answer is fresh: package chain does. It does
// not send requests.
//
// Messages must be DER. MaxRequest and MaxResponse limit the bytes, MaxSingles and
// MaxCertificates the entries. No function recurses. Parsed messages share memory with their
// input, so the caller must not change the input.
package ocsp

import (
	"bytes"
	"time"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Limits on what is read: bytes of a message and entries in it.
const (
	MaxRequest      = 64 << 10
	MaxResponse     = 1 << 20
	MaxSingles      = 1024 // certificates in a request or an answer
	MaxCertificates = 32   // in an answer or a signed request
	MaxNonce        = 128  // bytes (RFC 9654, 2.1)
)

// Identifiers of the protocol.
var (
	OIDBasic = x509gost.OID{1, 3, 6, 1, 5, 5, 7, 48, 1, 1} // id-pkix-ocsp-basic
	OIDNonce = x509gost.OID{1, 3, 6, 1, 5, 5, 7, 48, 1, 2} // id-pkix-ocsp-nonce
)

// CertID names a certificate by its issuer and its serial number (RFC 6960, 4.1.1).
type CertID struct {
	// Raw is the whole element as received, so that an answer can repeat it.
	Raw []byte
	// Hash is the algorithm of the next two fields, nil when it is not supported.
	Hash *suite.Hash
	// IssuerName is the digest of the issuer's Name, IssuerKey that of its key.
	IssuerName, IssuerKey []byte
	// Serial is the content of the INTEGER.
	Serial []byte
}

// NewCertID returns the identifier of cert, which issuer issued. It uses the issuer's name in
// cert's encoding (RFC 6960, 4.1.1), or in issuer's encoding if cert names another issuer.
func NewCertID(cert, issuer *x509gost.Certificate, h *suite.Hash) (CertID, error) {
	name := cert.RawIssuer
	if !cert.Issuer.Equal(issuer.Subject) {
		name = issuer.RawSubject
	}
	return newCertID(cert.SerialNumber, name, issuer, h)
}

// IssuedBy reports whether the identifier names this issuer.
func (id *CertID) IssuedBy(issuer *x509gost.Certificate) bool {
	return id.byName(issuer.RawSubject) && id.byKey(issuer)
}

func (id *CertID) byName(name []byte) bool {
	return id.Hash != nil && bytes.Equal(id.IssuerName, id.Hash.Digest(name).Sum)
}

func (id *CertID) byKey(issuer *x509gost.Certificate) bool {
	return id.Hash != nil && len(id.IssuerKey) == id.Hash.Size && bytes.Equal(id.IssuerKey, issuer.KeyDigest(id.Hash))
}

// Names reports whether the identifier names cert, which issuer issued. The issuer's name may
// be in cert's encoding, which RFC 6960, 4.1.1 requires, or in issuer's encoding.
func (id *CertID) Names(cert, issuer *x509gost.Certificate) bool {
	return x509gost.SameInteger(id.Serial, cert.SerialNumber) && id.byKey(issuer) &&
		(id.byName(issuer.RawSubject) || id.byName(cert.RawIssuer) && cert.Issuer.Equal(issuer.Subject))
}

// Request is a parsed OCSPRequest. Its signature, if any, is not checked, because answers do
// not depend on the requester.
type Request struct {
	CertIDs []CertID
	// Nonce is the value that the answer must repeat, nil for none. It is the content of
	// the OCTET STRING that RFC 8954 requires or, from older programs without it, of the
	// extension.
	Nonce      []byte
	Extensions []x509gost.Extension // of the request
}

// ResponseStatus is OCSPResponseStatus (RFC 6960, 4.2.1).
type ResponseStatus int

// Values of ResponseStatus.
const (
	Successful       ResponseStatus = 0
	MalformedRequest ResponseStatus = 1
	InternalError    ResponseStatus = 2
	TryLater         ResponseStatus = 3
	SigRequired      ResponseStatus = 5
	Unauthorized     ResponseStatus = 6
)

// Response is a parsed OCSPResponse.
type Response struct {
	Raw    []byte
	Status ResponseStatus
	Basic  *Basic // nil unless Status is Successful
}

// Basic is a parsed BasicOCSPResponse. CAdES stores answers in this form.
type Basic struct {
	Raw, RawTBS []byte
	// RawResponderID is the whole ResponderID element with its tag [1] (name) or [2]
	// (digest of the key). RawProducedAt is the whole GeneralizedTime. OcspIdentifier of
	// CAdES repeats both.
	RawResponderID, RawProducedAt []byte

	ProducedAt   time.Time // UTC
	Singles      []Single
	Nonce        []byte // as in Request
	Extensions   []x509gost.Extension
	Certificates []*x509gost.Certificate // those that can be parsed, in order
	SignatureOID x509gost.OID
	Signature    []byte
	parameters   []byte // of SignatureOID

	// UnknownCritical holds critical extensions that this package does not understand. If
	// there are any, the answer proves nothing.
	UnknownCritical []x509gost.OID
}

// Scheme returns the algorithm of the signature. The error names an algorithm that is not
// supported.
func (b *Basic) Scheme() (*suite.Scheme, error) {
	s, _, err := suite.SchemeByOID(b.SignatureOID, b.parameters)
	return s, err
}

// Status is the certificate status in an answer.
type Status int

// Values of Status.
const (
	Good Status = iota
	Revoked
	Unknown
)

// String returns "good", "revoked" or "unknown".
func (s Status) String() string { return [...]string{"good", "revoked", "unknown"}[s] }

// Single is the answer for one certificate.
type Single struct {
	CertID    CertID
	Status    Status
	RevokedAt time.Time // zero unless revoked
	Reason    int       // CRLReason, 0 when absent or not one that RFC 5280 defines
	// NextUpdate is zero when the responder does not state it.
	ThisUpdate, NextUpdate time.Time
	// UnknownCritical is as in Basic, for this single answer.
	UnknownCritical []x509gost.OID
}

// Find returns the single answer for cert, which issuer issued. If there are several, it
// returns one with a revocation, else the one with the latest ThisUpdate.
func (b *Basic) Find(cert, issuer *x509gost.Certificate) (Single, bool) {
	var best Single
	found := false
	for i := range b.Singles {
		s := &b.Singles[i]
		if !s.CertID.Names(cert, issuer) {
			continue
		}
		better := s.ThisUpdate.After(best.ThisUpdate)
		if (s.Status == Revoked) != (best.Status == Revoked) {
			better = s.Status == Revoked
		}
		if !found || better {
			best, found = *s, true
		}
	}
	return best, found
}

// NoCheck reports whether a responder's certificate is exempt from revocation checks by its
// issuer (id-pkix-ocsp-nocheck, RFC 6960, 4.2.2.2.1).
func NoCheck(c *x509gost.Certificate) bool {
	_, ok := c.Extension(x509gost.OIDOCSPNoCheck)
	return ok
}

// Template holds what CreateBasic writes.
type Template struct {
	ProducedAt time.Time // written in whole seconds
	// Singles must have CertID, Status, ThisUpdate and the fields of the status. CertID
	// comes from NewCertID or from a request. Its Raw is written unchanged.
	Singles []Single
	// Extensions are those of the answer. A responder repeats the nonce extension of the
	// request unchanged.
	Extensions []x509gost.Extension
	// Certificates are put into the answer, the responder's first.
	Certificates []*x509gost.Certificate
}
