package sig

import (
	"time"

	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Check is one question to a Verifier.
type Check struct {
	// Document is the signed document or, for a detached one, the signature.
	Document Document
	// Original is the document a detached signature was made over.
	Original Document
	// Hash stands for Original where the caller has only its hash value.
	Hash *suite.Digest
	// Certificate is the signer's, for formats that carry none (raw), and a
	// candidate for those that left it out.
	Certificate *x509gost.Certificate
	// Roots are the trust anchors; Intermediates and CRLs help to reach them.
	Roots, Intermediates []*x509gost.Certificate
	CRLs                 []*x509gost.RevocationList
	// OCSP are answers that speak of revocation, from wherever the caller has them.
	OCSP []*ocsp.Basic
	// At is the moment certificates are judged at; a signature with a time stamp is
	// judged at the time of that instead.
	At time.Time
	// Evidence is asked for what the document does not bring along; nil judges by
	// that alone.
	Evidence Evidence
}

// Report is the answer to a Check.
type Report struct {
	// Signatures in the order of the document's bytes.
	Signatures []Signature
	// Findings about the document as a whole, such as that nobody signed it.
	Findings []Finding
}

// Valid tells whether there is at least one signature and every one of them,
// and the document as a whole, is without a fatal finding.
func (r *Report) Valid() bool {
	if len(r.Signatures) == 0 || fatal(r.Findings) {
		return false
	}
	for i := range r.Signatures {
		if !r.Signatures[i].Valid() {
			return false
		}
	}
	return true
}

// Signature is what is known of one signature.
type Signature struct {
	// Index is its position in the document's bytes, from 0.
	Index int
	// Signer is the certificate whose key made it; nil when none was found.
	Signer *x509gost.Certificate
	// Suite is the algorithms it was made with; nil when they are not known.
	Suite *suite.Suite
	// Level is "raw", "CMS", "BES", "T", "C" (references alone), "X1" (a time stamp
	// over them, without values that prove the path), "X-L" (values without that time
	// stamp) or "XLT1": the highest one whose parts are there and hold. In PDF also
	// "DocTimeStamp": a time stamp of the document that stands among its signatures.
	Level string
	// Covers says in words which bytes the signature speaks for.
	Covers string
	// SigningTime is the time the signer claims, zero when it claims none.
	SigningTime time.Time
	// BestTime is the moment the signature was judged at: that of the earliest time
	// stamp that holds, by which it existed, else the moment of the check.
	BestTime time.Time
	// TimeStamps are the time stamps of the signature, in the order of its bytes.
	TimeStamps []TimeStamp
	// Chain leads from Signer to a trust anchor; empty when there is no path.
	Chain []*x509gost.Certificate
	// Findings are all rules it breaks and all that a reader should know.
	Findings []Finding
	// Countersigners are the signatures over this signature's value.
	Countersigners []Signature
}

// Valid tells whether no finding is fatal. Countersigners are judged apart: a
// bad one does not spoil the signature it was put on.
func (s *Signature) Valid() bool { return !fatal(s.Findings) }

// TimeStamp is what is known of one time stamp of a signature.
type TimeStamp struct {
	// Kind is "signature" (over the signature value), "CAdES-C" (over the value, its
	// time stamps and the references), "references" (over the references), "archive" or
	// "document".
	Kind string
	// Time is what the service says; Signer is its certificate, nil when not found.
	Time   time.Time
	Signer *x509gost.Certificate
	// Chain leads from Signer to a trust anchor; empty when there is no path.
	Chain []*x509gost.Certificate
	// Findings are all rules it breaks and all that a reader should know.
	Findings []Finding
}

// Valid tells whether no finding is fatal. A time stamp that does not hold proves
// no time; the findings of its signature say so.
func (t *TimeStamp) Valid() bool { return !fatal(t.Findings) }

// Finding is one thing a verifier noticed.
type Finding struct {
	// Code is stable and made for programs, such as "message-digest-mismatch".
	Code string
	// Text is made for people.
	Text string
	// Fatal means that the signature must not be relied on.
	Fatal bool
}

func fatal(fs []Finding) bool {
	for _, f := range fs {
		if f.Fatal {
			return true
		}
	}
	return false
}
