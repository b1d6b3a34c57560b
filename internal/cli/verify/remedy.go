// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"regexp"
	"strings"
	"time"

	"tamga/internal/cli"
	"tamga/sig"
)

// remedyReport says how to mend what a finding is about.
type remedyReport struct {
	Missing cli.Word `json:"missing"`           // the object that is missing
	Command cli.Word `json:"command,omitempty"` // that takes or makes it, absent if none does
}

// What is missing, and the command that supplies it. FILE is the file that was verified.
var (
	needsOriginal = remedyReport{cli.Word("the document that was signed, as it was then"), cli.Word("tamga verify FILE --original DOCUMENT")}
	needsRoot     = remedyReport{cli.Word("the certificate of a root that you trust, and those of the authorities below it"), cli.Word("tamga verify FILE --ca ROOT --intermediate AUTHORITY")}
	needsSigner   = remedyReport{cli.Word("the certificate of the signer"), cli.Word("tamga verify FILE --cert CERTIFICATE")}
	needsStatus   = remedyReport{cli.Word("a current revocation list of the authority"), cli.Word("tamga verify FILE --crl LIST")}
	needsEvidence = remedyReport{cli.Word("certificates and revocation data in the signature"), cli.Word("tamga enhance FILE --level LT")}
	needsStamp    = remedyReport{cli.Word("a valid time stamp"), cli.Word("tamga enhance FILE --level T")}
	needsProof    = remedyReport{cli.Word("a time stamp from before the end: a copy of the file that has one, or a new signature"), ""}
	needsRenewal  = remedyReport{cli.Word("a copy of the file whose archive time stamp was renewed in time"), ""}
	needsFile     = remedyReport{cli.Word("the file as it was signed: ask for it again, or for a new signature"), ""}
	needsNew      = remedyReport{cli.Word("a new signature, with another certificate"), ""}
)

// remedies are the ways to mend a finding, by its code. A code that is not here is mended as its indication is.
var remedies = map[string]*remedyReport{
	"document-missing": &needsOriginal, "hash-algorithm-mismatch": &needsOriginal, "original-mismatch": &needsOriginal,
	"certificate-no-path": &needsRoot, "time-stamp-untrusted": &needsRoot,
	"certificate-missing":            &needsSigner,
	"certificate-revocation-unknown": &needsStatus,
	"certificate-crl-stale":          &needsStatus, "certificate-crl-unusable": &needsStatus,
	"certificate-ocsp-stale": &needsStatus, "certificate-ocsp-unusable": &needsStatus, "certificate-ocsp-unknown": &needsStatus,
	"long-term-evidence-incomplete": &needsEvidence, "evidence-older-than-time-stamp": &needsEvidence,
	"time-stamp": &needsStamp, "time-stamp-invalid": &needsStamp,
	"archive-time-stamp-lapsed": &needsRenewal,
}

var remediesOf = map[sig.Indication]*remedyReport{
	sig.HashFailure: &needsFile, sig.FormatFailure: &needsFile, sig.SigCryptoFailure: &needsFile, sig.SignedDataNotFound: &needsFile,
	sig.NoSigningCertificateFound: &needsFile,
	sig.Revoked:                   &needsNew, sig.ChainConstraintsFailure: &needsNew, sig.CertificateChainGeneralFailure: &needsNew,
	sig.CryptoConstraintsFailure: &needsNew, sig.NotYetValid: &needsNew,
	sig.OutOfBoundsNoPOE: &needsProof, sig.CryptoConstraintsFailureNoPOE: &needsProof,
	sig.TryLater: &needsStatus, sig.NoCertificateChainFound: &needsRoot,
}

// ordinary is a name of a file that a shell reads as it is.
var ordinary = regexp.MustCompile(`^[A-Za-z0-9_./][A-Za-z0-9_./-]*$`)

// commandFor returns a command with the name of a file, if a shell reads the name as it is.
func commandFor(command cli.Word, file string) cli.Word {
	if ordinary.MatchString(file) {
		return cli.Word(strings.Replace(string(command), "FILE", file, 1))
	}
	return command
}

// remedyOf returns how to mend a finding, nil for one that needs nothing.
func (r *Report) remedyOf(f *sig.Finding) *remedyReport {
	found := remedies[f.Code]
	if found == nil {
		found = remediesOf[f.Indication]
	}
	if found == nil {
		return nil
	}
	one := *found
	if !r.raises && (found == &needsEvidence || found == &needsStamp) {
		one.Command = ""
	}
	one.Command = commandFor(one.Command, r.File)
	return &one
}

// untilReport says until when a signature can be verified with what it holds.
type untilReport struct {
	Time time.Time `json:"time"`
	// By is what ends then: signer (its certificate or one above it), evidence (the same, because the signature has a time
	// stamp and not the evidence), time-stamp (a certificate of the time-stamp service) or algorithm.
	By          string   `json:"by"`
	Certificate string   `json:"certificate,omitempty"` // subject of the certificate that ends
	Algorithm   string   `json:"algorithm,omitempty"`
	Command     cli.Word `json:"command,omitempty"` // that keeps the signature valid for longer, to be run before
}

// until returns the horizon of a signature, nil for one that did not pass.
func (r *Report) until(s *sig.Signature, c *sig.Check) *untilReport {
	h, ok := s.GoodUntil(c)
	if !ok {
		return nil
	}
	out := &untilReport{Time: h.Until.UTC(), By: string(h.By), Algorithm: h.Algorithm}
	if h.Certificate != nil {
		out.Certificate = h.Certificate.Subject.String()
	}
	if r.raises && c.At.Before(h.Until) {
		out.Command = commandFor(cli.Word("tamga enhance FILE --level A"), r.File)
	}
	return out
}

// endings say what ends, for people.
var endings = map[string]cli.Word{
	string(sig.EndOfSigner):    "then the certificate of its signer, or one above it, ends",
	string(sig.EndOfEvidence):  "then the certificate of its signer, or one above it, ends, and the signature has no evidence that it was not revoked",
	string(sig.EndOfStamp):     "then the certificate of its time stamp, or one above it, ends",
	string(sig.EndOfAlgorithm): "then the algorithm ends",
}
