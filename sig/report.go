package sig

import (
	"slices"
	"strings"
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
	// Password opens an encrypted Document, as the user's or the owner's; empty for
	// none. Formats without encryption do not read it.
	Password []byte
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
	// RequireRevocation makes a certificate whose status nothing tells
	// indeterminate. Without it the signature may pass, and a finding says that
	// revocation was not checked. A revoked certificate fails either way.
	RequireRevocation bool
	// Strict fails a signature that covers a part of the document only. With Expect
	// it is enough to cover that part.
	Strict bool
	// Expect is the path of the element that every signature must cover, such as
	// "/Envelope/Body"; empty for none. See [Check.CoversPart].
	Expect string
}

// Report is the answer to a Check.
type Report struct {
	// Signatures in the order of the document's bytes.
	Signatures []Signature
	// Findings about the document as a whole, such as that nobody signed it.
	Findings []Finding
}

// Signature is what is known of one signature.
type Signature struct {
	// Index is its position in the document's bytes, from 0.
	Index int
	// Signer is the certificate whose key made it; nil when none was found.
	Signer *x509gost.Certificate
	// Scheme is the algorithms it was made with; nil when they are not known.
	Scheme *suite.Scheme
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
	// Countersigners are the signatures over this signature's value. They count in its
	// verdict.
	Countersigners []Signature
}

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

// Finding is one thing a verifier noticed.
type Finding struct {
	// Code is stable and made for programs, such as "message-digest-mismatch".
	Code string
	// Text is made for people.
	Text string
	// Indication is what the finding means for the verdict; empty: nothing.
	Indication Indication
	// Headline is the finding in a few words for the first line of a report; empty for
	// most. It is what a reader must not miss even if the verdict is Passed.
	Headline string
}

// certificateCode begins the code of every finding about certificates, so that a
// bad signature on a certificate is not taken for one on the document.
const certificateCode = "certificate-"

func (f *Finding) aboutCertificate() bool { return strings.HasPrefix(f.Code, certificateCode) }

// Headlines returns what the first line of a report must say beside the verdict:
// the headlines of the file and of its signatures, each once.
func (r *Report) Headlines() []string {
	list := headlines(nil, r.Findings)
	for i := range r.Signatures {
		for _, h := range r.Signatures[i].Headlines() {
			list = once(list, h)
		}
	}
	return list
}

// Headlines returns the headlines of the signature and its countersignatures.
func (s *Signature) Headlines() []string {
	list := headlines(nil, s.Findings)
	for i := range s.Countersigners {
		for _, h := range s.Countersigners[i].Headlines() {
			list = once(list, h)
		}
	}
	return list
}

func headlines(list []string, findings []Finding) []string {
	for _, f := range findings {
		if f.Headline != "" {
			list = once(list, f.Headline)
		}
	}
	return list
}

func once(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// CodePart is the code of the finding that a signature covers a part of the
// document only.
const CodePart = "covers-part"

// CoversPart returns the finding that a signature covers only the parts with these
// paths. It decides the verdict if the caller asked for more: see Strict and Expect.
func (c *Check) CoversPart(paths ...string) Finding {
	what := strings.Join(paths, ", ")
	f := Finding{Code: CodePart, Headline: "covers only " + what, Text: "the signature covers a part of the document only: " + what}
	switch {
	case c.Expect == "" && c.Strict:
		f.Indication = SigConstraintsFailure
	case c.Expect != "" && !slices.Contains(paths, c.Expect):
		f.Indication = SigConstraintsFailure
		f.Text += "; " + c.Expect + " was expected"
	}
	return f
}
