// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"context"
	"errors"
	"strings"
	"time"

	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
)

// Evidence fetches what proves a signature after its certificate has expired: time stamps,
// revocation data, issuers. The methods may be called from several
// goroutines. If the service fails or refuses, the error is an *ErrEvidence. If the caller
// canceled, it is ctx.Err().
type Evidence interface {
	// TimeStamp returns a token (RFC 3161) over the digest. Its type shows that its signature
	// was checked, so formats check only that it is for their digest. The implementation also
	// checks the request's nonce, the path of the authority and the policy of the service.
	// address is the service's URL. The caller has checked that it is allowed.
	TimeStamp(ctx context.Context, address string, d suite.Digest) (*tsp.Verified, error)
	// Revocation returns what is known about cert of issuer, produced at notBefore or
	// later. The zero time means anything that is valid now. A certificate that is known
	// to be revoked is an error, and its Proof may come with the error.
	Revocation(ctx context.Context, cert, issuer *x509gost.Certificate, notBefore time.Time) (Proof, error)
	// Issuer returns the certificate whose key signed cert.
	Issuer(ctx context.Context, cert *x509gost.Certificate) (*x509gost.Certificate, error)
}

// Proof holds the evidence of the revocation status of one certificate. OCSP or CRL is set.
type Proof struct {
	OCSP []byte // BasicOCSPResponse as DER (RFC 6960, 4.2.1)
	CRL  []byte // CertificateList as DER (RFC 5280, 5)
	// Answer is OCSP, parsed and with its signature checked for the issuer of the certificate.
	// It is nil if the source did not do this. It spares formats the same work for each signature
	// that an answer serves.
	Answer *ocsp.Verified
}

// ErrEvidence reports that an external service failed or refused: a time-stamp service that does
// not respond, a revocation list that is too old.
type ErrEvidence struct {
	// What names the kind of evidence: "time stamp", "revocation", "issuer".
	What string
	// Text says what is wrong and, if known, when it will be right. It is the whole
	// reason for the client.
	Text string
	// Err is the cause, if any. It is for the log only, because it may name addresses.
	Err error
}

// Error returns "WHAT: text: cause", for the log.
func (e *ErrEvidence) Error() string {
	s := e.What + ": " + e.Text
	if e.Err != nil && !strings.HasSuffix(s, e.Err.Error()) {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *ErrEvidence) Unwrap() error { return e.Err }

// Stamp requests a time stamp over a digest and checks that the token is for this digest. An
// Evidence may return a token of another request by mistake, and it would stay in the signed
// document. e may be nil.
func Stamp(ctx context.Context, e Evidence, address string, d suite.Digest) (*tsp.Verified, error) {
	if e == nil {
		return nil, &ErrEvidence{What: "time stamp", Text: "no time-stamp service is configured"}
	}
	v, err := e.TimeStamp(ctx, address, d)
	if err != nil {
		return nil, err
	}
	if v == nil {
		err = errors.New("it is missing")
	} else {
		err = v.For(d)
	}
	if err != nil {
		return nil, &ErrEvidence{What: "time stamp", Text: "the answer of the service is not a usable token: " + err.Error(), Err: err}
	}
	return v, nil
}

// Enhancer raises existing signatures to a higher level.
type Enhancer interface {
	// Enhance returns the job's Document with signatures raised to the level that the
	// parameters name: those chosen by SignatureIndex, or all if it is absent. If all of
	// them have the level already, the document is returned unchanged, but for a level that is
	// renewed (CAdES-A): each call adds one more archive time stamp. Errors: *ErrParams, *ErrDocument, *ErrEvidence, those of the Document, ctx.Err().
	Enhance(ctx context.Context, job *Job) (Result, error)
}
