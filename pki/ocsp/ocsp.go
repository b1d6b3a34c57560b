// Package ocsp owns the messages of the Online Certificate Status Protocol (RFC
// 6960): requests and answers, written and read, with GOST algorithms and in the
// same code with RSA and ECDSA.
//
// It judges who may answer for an issuer: the issuer itself, or whom the issuer
// certified for it. Whether that certificate was valid and an answer is fresh is
// for package chain.
//
// Messages must be DER. MaxRequest and MaxResponse bound the octets, MaxSingles
// and MaxCertificates what is in them; nothing here recurses. Parsed messages
// share the memory they were read from: the caller must not change it.
package ocsp

import (
	"bytes"
	"time"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Limits on what is read: octets of a message, entries in it.
const (
	MaxRequest      = 64 << 10
	MaxResponse     = 1 << 20
	MaxSingles      = 1024 // certificates asked or answered for
	MaxCertificates = 32   // in an answer or a signed request
	MaxNonce        = 128  // octets (RFC 9654, 2.1)
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
	// Hash is the algorithm of the next two; nil when it is not one of ours.
	Hash *suite.Hash
	// IssuerName is the digest of the issuer's Name, IssuerKey that of its key.
	IssuerName, IssuerKey []byte
	// Serial is the content of the INTEGER.
	Serial []byte
}

// NewCertID names cert, which issuer issued. The name of the issuer is encoded as cert
// has it (RFC 6960, 4.1.1), or as the issuer has it where cert names another one.
func NewCertID(cert, issuer *x509gost.Certificate, h *suite.Hash) (CertID, error) {
	name := cert.RawIssuer
	if !cert.Issuer.Equal(issuer.Subject) {
		name = issuer.RawSubject
	}
	return newCertID(cert.SerialNumber, name, issuer, h)
}

// IssuedBy tells whether the identifier's issuer is this one.
func (id *CertID) IssuedBy(issuer *x509gost.Certificate) bool {
	return id.byName(issuer.RawSubject) && id.byKey(issuer)
}

func (id *CertID) byName(name []byte) bool {
	return id.Hash != nil && bytes.Equal(id.IssuerName, id.Hash.Digest(name).Sum)
}

func (id *CertID) byKey(issuer *x509gost.Certificate) bool {
	return id.Hash != nil && len(id.IssuerKey) == id.Hash.Size && bytes.Equal(id.IssuerKey, issuer.KeyDigest(id.Hash))
}

// Names tells whether the identifier is that of cert, which issuer issued. The name of
// the issuer may be encoded as cert has it, which RFC 6960, 4.1.1 asks for, or as the
// issuer has it.
func (id *CertID) Names(cert, issuer *x509gost.Certificate) bool {
	return x509gost.SameInteger(id.Serial, cert.SerialNumber) && id.byKey(issuer) &&
		(id.byName(issuer.RawSubject) || id.byName(cert.RawIssuer) && cert.Issuer.Equal(issuer.Subject))
}

// Request is a parsed OCSPRequest. A signature on it is not looked at: nothing
// here is answered only to some.
type Request struct {
	CertIDs []CertID
	// Nonce is what the requester wants to see again; nil for none. It is the
	// content of the OCTET STRING RFC 8954 asks for, or of the extension where an
	// older program left that out.
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

// Basic is a parsed BasicOCSPResponse, which is also what CAdES stores.
type Basic struct {
	Raw, RawTBS []byte
	// RawResponderID is the whole ResponderID element with its tag [1] (name) or
	// [2] (digest of the key); RawProducedAt the whole GeneralizedTime. OcspIdentifier
	// of CAdES repeats both.
	RawResponderID, RawProducedAt []byte

	ProducedAt   time.Time // UTC
	Singles      []Single
	Nonce        []byte // as in Request
	Extensions   []x509gost.Extension
	Certificates []*x509gost.Certificate // those that can be parsed, in order
	SignatureOID x509gost.OID
	Signature    []byte
	parameters   []byte // of SignatureOID

	// UnknownCritical are critical extensions that are not understood here; an
	// answer that has some proves nothing.
	UnknownCritical []x509gost.OID
}

// Scheme is the algorithm of the signature. The error names one that is not supported.
func (b *Basic) Scheme() (*suite.Scheme, error) {
	s, _, err := suite.SchemeByOID(b.SignatureOID, b.parameters)
	return s, err
}

// Status is what an answer says about one certificate.
type Status int

// Values of Status.
const (
	Good Status = iota
	Revoked
	Unknown
)

// String is "good", "revoked" or "unknown".
func (s Status) String() string { return [...]string{"good", "revoked", "unknown"}[s] }

// Single is the answer for one certificate.
type Single struct {
	CertID    CertID
	Status    Status
	RevokedAt time.Time // zero unless revoked
	Reason    int       // CRLReason, 0 when absent
	// NextUpdate is zero when the responder does not say.
	ThisUpdate, NextUpdate time.Time
	// UnknownCritical as in Basic, for this answer alone.
	UnknownCritical []x509gost.OID
}

// Find returns the answer for cert, which issuer issued. Of several the one
// that speaks of a revocation, else the one with the latest ThisUpdate.
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

// NoCheck tells that the issuer of a responder's certificate asks for no check of
// its revocation (id-pkix-ocsp-nocheck, RFC 6960, 4.2.2.2.1).
func NoCheck(c *x509gost.Certificate) bool {
	_, ok := c.Extension(x509gost.OIDOCSPNoCheck)
	return ok
}

// Template is what CreateBasic is told.
type Template struct {
	ProducedAt time.Time // written in whole seconds
	// Singles need CertID (its Raw is written as it is, or made by NewCertID),
	// Status, ThisUpdate and what belongs to the status.
	Singles []Single
	// Extensions of the answer: what a responder echoes is the nonce extension
	// of the request as it came.
	Extensions []x509gost.Extension
	// Certificates are put into the answer, the responder's first.
	Certificates []*x509gost.Certificate
}
