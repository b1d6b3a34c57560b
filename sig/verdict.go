// SPDX-License-Identifier: Apache-2.0

package sig

import (
	"slices"

	"tamga/pki/x509gost"
)

// Verdict is the main status of a validation (EN 319 102-1, table 5). A greater verdict is
// worse.
type Verdict uint8

// The three verdicts. The zero value is Passed.
const (
	Passed        Verdict = iota // TOTAL-PASSED: every check passed
	Indeterminate                // INDETERMINATE: the available evidence is not enough
	Failed                       // TOTAL-FAILED: a check shows that the signature is invalid
)

// String returns the verdict in the spelling of EN 319 102-1, in lower case and without
// "TOTAL-": "passed", "indeterminate" or "failed".
func (v Verdict) String() string {
	switch v {
	case Passed:
		return "passed"
	case Indeterminate:
		return "indeterminate"
	}
	return "failed"
}

// Indication is a sub-indication of EN 319 102-1, table 6, in the spelling of the standard. The
// empty one belongs to a finding that does not affect the verdict.
type Indication string

// Sub-indications that formats report.
const (
	// FormatFailure: the signature or its container breaks the rules of its format.
	FormatFailure Indication = "FORMAT_FAILURE"
	// HashFailure: a signed digest differs from that of the data.
	HashFailure Indication = "HASH_FAILURE"
	// SigCryptoFailure: the signature value does not verify under the signer's key.
	SigCryptoFailure Indication = "SIG_CRYPTO_FAILURE"
	// Revoked: the certificate was revoked at the time of the check.
	Revoked Indication = "REVOKED"
	// NotYetValid: the certificate was not yet valid at the time of the check.
	NotYetValid Indication = "NOT_YET_VALID"

	// OutOfBoundsNoPOE: the certificate has expired, and nothing proves that the
	// signature existed before.
	OutOfBoundsNoPOE Indication = "OUT_OF_BOUNDS_NO_POE"
	// SigConstraintsFailure: the signature breaks a rule of the caller, for instance that
	// it must cover the whole document.
	SigConstraintsFailure Indication = "SIG_CONSTRAINTS_FAILURE"
	// ChainConstraintsFailure: a certificate of the path may not be used this way.
	ChainConstraintsFailure Indication = "CHAIN_CONSTRAINTS_FAILURE"
	// CertificateChainGeneralFailure: the path was found but is invalid.
	CertificateChainGeneralFailure Indication = "CERTIFICATE_CHAIN_GENERAL_FAILURE"
	// CryptoConstraintsFailure: an algorithm is not supported or not trusted.
	CryptoConstraintsFailure Indication = "CRYPTO_CONSTRAINTS_FAILURE"
	// CryptoConstraintsFailureNoPOE: an algorithm is no longer trusted, and nothing proves
	// that the signature existed while it was.
	CryptoConstraintsFailureNoPOE Indication = "CRYPTO_CONSTRAINTS_FAILURE_NO_POE"
	// TimestampOrderFailure: time stamps contradict each other or the signing time.
	TimestampOrderFailure Indication = "TIMESTAMP_ORDER_FAILURE"
	// NoSigningCertificateFound: the certificate of the signer is not available.
	NoSigningCertificateFound Indication = "NO_SIGNING_CERTIFICATE_FOUND"
	// NoCertificateChainFound: no path leads to a trust anchor.
	NoCertificateChainFound Indication = "NO_CERTIFICATE_CHAIN_FOUND"
	// NoPOE: a time stamp is invalid and proves no time.
	NoPOE Indication = "NO_POE"
	// SignedDataNotFound: what was signed is not available or ambiguous.
	SignedDataNotFound Indication = "SIGNED_DATA_NOT_FOUND"
	// TryLater: the status of a certificate is unknown and may be known later.
	TryLater Indication = "TRY_LATER"
	// Generic: another reason, which the finding names.
	Generic Indication = "GENERIC"
)

// failing has the sub-indications of TOTAL-FAILED in table 6. All others belong to
// INDETERMINATE.
var failing = map[Indication]bool{
	FormatFailure: true, HashFailure: true, SigCryptoFailure: true, Revoked: true, NotYetValid: true,
	// The standard leaves a broken constraint to the caller's policy. Callers that state
	// a constraint want the signature refused.
	SigConstraintsFailure: true,
}

// Verdict returns the verdict that the indication leads to.
func (i Indication) Verdict() Verdict {
	switch {
	case i == "":
		return Passed
	case failing[i]:
		return Failed
	}
	return Indeterminate
}

// worst returns the worst verdict of the findings, or Passed if there are none.
func worst(findings []Finding) Verdict {
	v := Passed
	for _, f := range findings {
		v = max(v, f.Indication.Verdict())
	}
	return v
}

// Verdict returns the verdict of the whole file: the worst of its findings and of its
// signatures with their countersignatures. A file without a signature has failed. Time stamps of the
// document count only if the file has nothing else: what they prove is in the verdicts of the
// signatures, which name each that was left out. The command, the service and library callers all use
// this verdict.
func (r *Report) Verdict() Verdict {
	if len(r.Signatures) == 0 {
		return Failed
	}
	v := r.Own()
	for _, s := range r.deciding() {
		v = max(v, s.Verdict())
	}
	return v
}

// deciding returns the signatures that count in the verdict of the file.
func (r *Report) deciding() (list []*Signature) {
	signed := slices.ContainsFunc(r.Signatures, func(s Signature) bool { return !s.IsStamp() })
	for i := range r.Signatures {
		if s := &r.Signatures[i]; !signed || !s.IsStamp() {
			list = append(list, s)
		}
	}
	return list
}

// Own returns the verdict of the file without its signatures.
func (r *Report) Own() Verdict { return worst(r.Findings) }

// OfCertificate returns the status of a certificate for what [Check.Trust] or [Check.TrustAny]
// returned.
func OfCertificate(path []*x509gost.Certificate, findings []Finding) Conclusion {
	c := concluded(findings)
	if len(path) == 0 {
		c = c.worse(Conclusion{Indeterminate, NoCertificateChainFound})
	}
	return c
}

// Verdict returns the verdict of the signature together with its countersignatures: the worst of
// them.
func (s *Signature) Verdict() Verdict {
	v := s.Own()
	for i := range s.Countersigners {
		v = max(v, s.Countersigners[i].Verdict())
	}
	return v
}

// Own returns the verdict of the signature without its countersignatures. It is at best
// Indeterminate if the signer is unknown or no path leads to a trust anchor.
func (s *Signature) Own() Verdict {
	v := worst(s.Findings)
	if !s.Trusted() {
		v = max(v, Indeterminate)
	}
	return v
}

// Trusted reports whether a path leads from the signer to a trust anchor and no
// finding refuses a certificate on it. It says nothing about the signature value.
func (s *Signature) Trusted() bool { return s.Signer != nil && trusted(s.Chain, s.Findings) }

// Holds reports whether the signature itself is valid under the signer's key. It does not
// consider the status of the certificate or a power of attorney.
func (s *Signature) Holds() bool { return s.Signer != nil && holds(s.Findings) }

// Verdict returns the verdict of the time stamp. It is at best Indeterminate if no path leads to a
// trust anchor.
func (t *TimeStamp) Verdict() Verdict {
	v := worst(t.Findings)
	if !t.Trusted() {
		v = max(v, Indeterminate)
	}
	return v
}

// Trusted reports whether a path leads from the service's certificate to a trust
// anchor and no finding refuses a certificate on it.
func (t *TimeStamp) Trusted() bool { return t.Signer != nil && trusted(t.Chain, t.Findings) }

// Holds reports whether the token itself is valid and belongs to what it stamps. It does not
// consider the status of its service's certificate.
func (t *TimeStamp) Holds() bool { return holds(t.Findings) }

// trusted reports whether a path to an anchor was found and no finding about certificates
// affects the verdict.
func trusted(path []*x509gost.Certificate, findings []Finding) bool {
	return len(path) > 0 && !slices.ContainsFunc(findings, func(f Finding) bool {
		return f.Indication != "" && f.aboutCertificate()
	})
}

// holds reports whether no finding, except those about certificates and powers, affects the verdict.
func holds(findings []Finding) bool {
	return !slices.ContainsFunc(findings, func(f Finding) bool {
		return f.Indication != "" && !f.aboutCertificate() && !f.AboutMandate()
	})
}

// Passed reports whether the verdict of the whole file is Passed.
func (r *Report) Passed() bool { return r.Verdict() == Passed }

// Passed reports whether the verdict of the signature with its countersignatures is
// Passed.
func (s *Signature) Passed() bool { return s.Verdict() == Passed }

// Passed reports whether the verdict of the time stamp is Passed. Only then does it prove a time.
func (t *TimeStamp) Passed() bool { return t.Verdict() == Passed }

// Proves reports whether the time stamp proves that the value of its signature existed: it passed, and covers the value. One over
// references covers only the evidence, which may be older than the value.
func (t *TimeStamp) Proves() bool { return t.Passed() && t.Kind != "references" }
