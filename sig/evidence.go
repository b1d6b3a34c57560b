package sig

import (
	"context"
	"strings"
	"time"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Evidence fetches what proves a signature beyond the life of its certificate:
// time stamps, revocation data, issuers. DER in and DER out. Its methods may be
// called from several goroutines. An outage or a refusal of the service asked is
// an *ErrEvidence; ctx.Err() when the caller gave up.
type Evidence interface {
	// TimeStamp returns a token (RFC 3161, a ContentInfo as DER) over the digest,
	// checked by the implementation against its request, its signature and the
	// policy of the service. address is the service's URL; whether it is allowed was
	// decided before.
	TimeStamp(ctx context.Context, address string, d suite.Digest) (token []byte, err error)
	// Revocation returns what is known about cert of issuer, produced not before
	// notBefore; the zero time asks for whatever is valid now. A certificate that is
	// known to be revoked is an error.
	Revocation(ctx context.Context, cert, issuer *x509gost.Certificate, notBefore time.Time) (Proof, error)
	// Issuer returns the certificate whose key signed cert.
	Issuer(ctx context.Context, cert *x509gost.Certificate) (*x509gost.Certificate, error)
}

// Proof is what speaks of the revocation of one certificate: one of the two.
type Proof struct {
	OCSP []byte // BasicOCSPResponse as DER (RFC 6960, 4.2.1)
	CRL  []byte // CertificateList as DER (RFC 5280, 5)
}

// ErrEvidence is other people's outage or refusal: a time-stamp service that does
// not answer, a revocation list that is too old.
type ErrEvidence struct {
	// What names the kind of evidence: "time stamp", "revocation", "issuer".
	What string
	// Text says what is wrong with it and, where known, when it will be right: the
	// whole reason, for the client.
	Text string
	// Err is the cause, where there is one, for the log: it may name addresses.
	Err error
}

// Error is "WHAT: text: cause", for the log.
func (e *ErrEvidence) Error() string {
	s := e.What + ": " + e.Text
	if e.Err != nil && !strings.HasSuffix(s, e.Err.Error()) {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *ErrEvidence) Unwrap() error { return e.Err }

// Enhancer raises signatures that were made before to a higher level.
type Enhancer interface {
	// Enhance returns the job's Document with the signatures chosen by SignatureIndex
	// (all when it is absent) at the level the parameters name. A document whose
	// signatures are all there already comes back unchanged. Errors: *ErrParams,
	// *ErrDocument, *ErrEvidence, those of the Document, ctx.Err().
	Enhance(ctx context.Context, job *Job) (Result, error)
}
