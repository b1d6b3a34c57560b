// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"context"
	"slices"
	"strings"
	"time"

	"tamga/pki/cms"
	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
)

// Check is the input of a Verifier: a signed document and what to check it against.
type Check struct {
	// Document is the signed document or, for a detached one, the signature.
	Document Document
	// Original is the document that a detached signature covers.
	Original Document
	// Describe reports what a detached signature says of itself without its document. Its verdict
	// is at best Indeterminate. Without it, a missing Original is an ErrParams.
	Describe bool
	// Hash is used instead of Original if the caller has only the hash value.
	Hash *suite.Digest
	// Password opens an encrypted Document, as the user's or the owner's password. It is
	// empty for none. Formats without encryption ignore it.
	Password []byte
	// Certificate is the signer's. Formats without certificates (raw) need it. Others use
	// it as a candidate if the document omits it.
	Certificate *x509gost.Certificate
	// Roots are the trust anchors. Intermediates and CRLs help to build the path.
	Roots, Intermediates []*x509gost.Certificate
	CRLs                 []*x509gost.RevocationList
	// OCSP are answers about revocation from any source.
	OCSP []*ocsp.Basic
	// Container is what a container around the signature adds, nil without a container. Formats whose
	// signatures contain messages of another format set it for that format.
	Container *Container
	// At is the time for which certificates are checked. A signature with a valid time
	// stamp is checked for the time of that stamp instead.
	At time.Time
	// Evidence fetches what is missing in the document. If it is nil, the check uses only
	// what the document and this Check have.
	Evidence Evidence
	// RequireRevocation makes a signature indeterminate if the status of a certificate is
	// unknown. Without it the signature may pass, and a finding says that revocation was
	// not checked. A revoked certificate always fails.
	RequireRevocation bool
	// Ends are ends of algorithms by a setting of the caller, in addition to those that the algorithms have.
	Ends suite.Ends
	// LivingStamps judges each time stamp at the time that a later one proves, or at the time of the check, as EN 319 102-1
	// has it: it proves nothing any more when its certificate has ended and no archive time stamp covers it. Without
	// LivingStamps a time stamp that no archive time stamp covers is judged at its own time (decision 0063).
	LivingStamps bool
	// Strict fails a signature that covers only a part of the document. With Expect it is
	// enough to cover that part.
	Strict bool
	// Expect is the path of the element that every signature must cover, such as
	// "/Envelope/Body". It is empty for no such rule. See [Check.CoversPart].
	Expect string
}

// Container is what a document, such as a PDF, adds to the signatures inside it: time stamps over
// them, and evidence beside them.
type Container struct {
	// Found is evidence beside the signature. It counts as evidence of the signature itself.
	Found
	// Stamped reports that a time stamp of the container proves that the signature existed at At.
	Stamped bool
	// Chained reports that an archive time stamp of the container covers the signature and is valid, or
	// was when it was made. Then time stamps of the signature are judged at At, and not at their own
	// time (decision 0063).
	Chained bool
	// Archived is the part of Found that a valid archive time stamp covers together with the signature,
	// nil without such a time stamp.
	Archived *Found
}

// Report is the result of a Check.
type Report struct {
	// Signatures are in the order of the document's bytes.
	Signatures []Signature
	// Findings are about the whole document, for instance that it has no signature.
	Findings []Finding
	// Files are the files of a container, in its order; nil for other formats.
	Files []Contained
}

// Contained is a file of a container.
type Contained struct {
	Name string
	Size int64 // in bytes
	// Signatures are the indexes of the signatures that hold and cover the file unchanged.
	Signatures []int
}

// Opener is a Format whose files hold documents that can be taken out.
type Opener interface {
	// Open returns the documents in a file of the format, as Report.Files names them. They are read when they are
	// written, within the budget of ctx.
	Open(ctx context.Context, d Document) ([]Opened, error)
}

// Opened is a document in a container.
type Opened struct {
	Name string
	Result
}

// Signature is the result for one signature.
type Signature struct {
	// Index is its position among the signatures in the document, from 0.
	Index int
	// Signer is the certificate whose key made it, nil if none was found.
	Signer *x509gost.Certificate
	// Scheme is the signature algorithm, nil if it is not known.
	Scheme *suite.Scheme
	// Level is the highest level whose parts are present and valid: "raw", "CMS", "BES",
	// "T", "C" (references alone), "X1" (a time stamp over the references, without values
	// that prove the path), "X-L" (values without that time stamp), "XLT1", "LT" (values in the
	// fields of a message or beside it, without references), "A" (an archive time stamp over complete
	// evidence) or "LTA" (the same in PDF and XML). PDF also has LevelDocumentStamp.
	Level string
	// Covers describes which bytes the signature covers.
	Covers string
	// SigningTime is the time that the signer claims, zero if there is none.
	SigningTime time.Time
	// BestTime is the time for which the signature was checked: that of the earliest valid
	// time stamp, which proves that the signature existed, else the time of the check.
	BestTime time.Time
	// TimeStamps are the time stamps of the signature, in the order of its bytes.
	TimeStamps []TimeStamp
	// Proofs are valid time stamps elsewhere that prove that the signature existed: of the document, of a later signature
	// that covers this one, of a countersignature, or over the signature that this one countersigns.
	Proofs []TimeStamp
	// Revision is the length of the signed version of a document that has later changes, in
	// bytes; 0 for others.
	Revision int64
	// Signed is the digest that a detached signature without its document covers, nil for others.
	Signed *suite.Digest
	// Chain is the path from Signer to a trust anchor, empty if there is none.
	Chain []*x509gost.Certificate
	// Findings are the rules that the signature breaks, and notes for the reader.
	Findings []Finding
	// Quality says whether the signature is a qualified one. It is nil if no list of accredited authorities was asked.
	Quality *Quality
	// Mandate is the power of attorney by which the signer acts, nil if none was given or found.
	Mandate *Mandate
	// Countersigners are the signatures over this signature's value. They count in the
	// verdict of this signature.
	Countersigners []Signature
}

// Quality is what a list of accredited authorities says about a signature. It is about who issued the signer's certificate,
// not about whether the signature is valid.
type Quality struct {
	Qualified bool
	// Code names the reason, Text is a sentence with it.
	Code, Text string
	// Authority, INN and Number are name, INN and registry number of the authority, "" if the list does not have it.
	Authority, INN, Number string
	// At is when the signature was made, as far as it is known, and Basis how it is known.
	At    time.Time
	Basis TimeBasis
	// ListDate is the date of the list. Old reports that it was older than 30 days when the signature was made, or if that
	// is not proven, when it was checked.
	ListDate time.Time
	Old      bool
}

// TimeBasis says how it is known when a signature was made.
type TimeBasis int

// The ways in which it is known.
const (
	TimeOfCheck TimeBasis = iota // it is not known: it is the time of the check
	TimeClaimed                  // by the signer
	TimeProven                   // by a time stamp
)

// String returns the name of the basis for programs.
func (b TimeBasis) String() string { return [...]string{"check", "claim", "stamp"}[b] }

// MadeAt returns when a signature that was checked for a time was made: BestTime if a time stamp proves it, else the time
// that the signer claims, else the time of the check.
func (s *Signature) MadeAt(checked time.Time) (at time.Time, basis TimeBasis) {
	switch {
	case !s.BestTime.IsZero() && s.BestTime.Before(checked):
		return s.BestTime, TimeProven
	case !s.SigningTime.IsZero():
		return s.SigningTime, TimeClaimed
	}
	return checked, TimeOfCheck
}

// LevelDocumentStamp is the Level of a time stamp of the document among its signatures.
const LevelDocumentStamp = "DocTimeStamp"

// IsStamp reports whether this is a time stamp of the document, which no person made.
func (s *Signature) IsStamp() bool { return s.Level == LevelDocumentStamp }

// TimeStamp is the result for one time stamp of a signature.
type TimeStamp struct {
	// Kind is "signature" (over the signature value), "CAdES-C" (over the value, its
	// time stamps and the references), "references" (over the references), "archive" or
	// "document".
	Kind string
	// Digest is the SHA-256 digest of the token, nil if it cannot be read.
	Digest []byte
	// Time is the time in the stamp. Signer is the service's certificate, nil if not found.
	Time   time.Time
	Signer *x509gost.Certificate
	// Chain is the path from Signer to a trust anchor, empty if there is none.
	Chain []*x509gost.Certificate
	// Findings are the rules that the time stamp breaks, and notes for the reader.
	Findings []Finding
}

// Finding is something that a verifier noticed.
type Finding struct {
	// Code is stable and for programs, for instance "message-digest-mismatch".
	Code string
	// Text is for people.
	Text string
	// Indication is the meaning of the finding for the verdict, empty if it has none.
	Indication Indication
	// Certificate is what a finding about certificates is about, nil for others. When is the
	// time of its revocation.
	Certificate *x509gost.Certificate
	When        time.Time
	// Headline is a short form of the finding for the first line of a report. Most
	// findings have none. A reader must see it even if the verdict is Passed.
	Headline string
}

// StampLeftOut returns the finding that a time stamp of a signature is invalid. Such a time stamp
// is left out, and the signature is judged as without it (EN 319 102-1, 5.5.4). The reader must
// see it, because the time may have been relied on.
func StampLeftOut(code, text string) Finding {
	return Finding{Code: code, Text: text, Headline: "an invalid time stamp was left out"}
}

// OtherIssuer returns a finding of package cms that a signature names another issuer or serial
// number beside the digest of its certificate. The reader must see it, because programs that look
// for the certificate by them find another one, or none.
func OtherIssuer(f cms.Finding) Finding {
	return Finding{Code: f.Code, Text: f.Text, Headline: "another issuer or serial number is named"}
}

// StampOtherIssuer is OtherIssuer for the token of a time stamp, whose signature by a certificate
// holds.
func StampOtherIssuer(token *tsp.Token, signer *x509gost.Certificate) (list []Finding) {
	for _, s := range token.Message.Signers {
		for _, f := range s.OtherIssuer(signer) {
			f.Text = "the time stamp: " + f.Text
			list = append(list, OtherIssuer(f))
		}
	}
	return list
}

// certificateCode is the prefix of the code of every finding about certificates. It separates a
// bad signature on a certificate from one on the document.
const certificateCode = "certificate-"

func (f *Finding) aboutCertificate() bool { return strings.HasPrefix(f.Code, certificateCode) }

// Headlines returns what the first line of a report must say besides the verdict: the headlines
// of the file and of its signatures, each once.
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

// CodePart is the code of the finding that a signature covers only a part of the document.
const CodePart = "covers-part"

// CoversPart returns the finding that a signature covers only the parts with these paths. It
// decides the verdict if the caller requires more: see Strict and Expect.
func (c *Check) CoversPart(paths ...string) Finding {
	what := strings.Join(paths, ", ")
	f := Finding{Code: CodePart, Headline: "covers only " + what, Text: "the signature covers a part of the document only: " + what}
	switch {
	case c.Expect == "" && c.Strict:
		f.Indication = IndicationOf(CodePart)
	case c.Expect != "" && !slices.Contains(paths, c.Expect):
		f.Indication = IndicationOf(CodePart)
		f.Text += "; " + c.Expect + " was expected"
	}
	return f
}
