// SPDX-License-Identifier: Apache-2.0

package sig

import "tamga/pki/x509gost"

// codes has a row for each code of a finding: the sub-indication of EN 319 102-1 that a finding with this code leads to
// if it decides. The empty one belongs to codes whose findings are notes alone. Whether a finding decides is the
// format's decision; what it means then is decided here, once for all formats.
//
// Where a row is stricter or milder than the standard, a comment says why (decision 0083).
var codes = map[string]Indication{
	// Format checking (5.2.2).
	"no-signature":                          FormatFailure,
	"signature-malformed":                   FormatFailure,
	"signature-empty":                       FormatFailure,
	"signature-in-fields":                   "",
	"signature-unreachable":                 FormatFailure,
	"message-malformed":                     FormatFailure,
	"message-padding":                       "",
	"message-digest-malformed":              FormatFailure,
	"structure-broken":                      "",
	"byte-range":                            FormatFailure,
	"contents-padding":                      SigConstraintsFailure, // only for a strict check
	"covers-no-revision":                    FormatFailure,
	"trailing-bytes":                        FormatFailure,
	"hidden-entry":                          FormatFailure,
	"mimetype":                              FormatFailure,
	"container-kind":                        FormatFailure,
	"manifest-malformed":                    FormatFailure,
	"archive-manifest":                      "",
	"signed-attributes-missing":             FormatFailure,
	"content-type-mismatch":                 FormatFailure,
	"algorithm-protection-mismatch":         FormatFailure,
	"digest-algorithm-not-listed":           "",
	"signing-time-malformed":                FormatFailure,
	"signing-time-twice":                    "",
	"signed-properties":                     FormatFailure,
	"data-object-format":                    FormatFailure,
	"office-details-missing":                FormatFailure,
	"unsigned-attribute-malformed":          FormatFailure,
	"transform-malformed":                   FormatFailure,
	"transform-unexpected":                  FormatFailure,
	"transform-order":                       FormatFailure,
	"reference-twice":                       FormatFailure,
	"reference-without-value":               FormatFailure,
	"references-out-of-step":                "",
	"reference-not-checked":                 "",
	"countersignature":                      FormatFailure,
	"countersignature-malformed":            FormatFailure,
	"signed-attributes-not-in-order":        Generic, // programs judge such a signature differently: it has no verdict
	"signed-attributes-stored-out-of-order": Generic,
	"signed-attributes-not-der":             Generic,
	"format-unknown":                        Generic,
	"too-many-signatures":                   Generic,
	"too-much-work":                         Generic,

	// Identification of the signing certificate (5.2.3).
	"certificate-missing":               NoSigningCertificateFound,
	"certificate-unreadable":            "",
	"signing-certificate":               NoSigningCertificateFound,
	"signing-certificate-mismatch":      NoSigningCertificateFound,
	"signing-certificate-missing":       FormatFailure,
	"signing-certificate-v1":            "",
	"signing-certificate-issuer-serial": "",

	// X.509 certificate validation (5.2.6), with the codes of package chain behind the prefix.
	"certificate-no-path":   NoCertificateChainFound,
	"certificate-signature": CertificateChainGeneralFailure,
	"certificate-expired":   OutOfBoundsNoPOE,
	// The standard fails these only if a time stamp of the content proves that the signature is later or earlier, and
	// says REVOKED_NO_POE otherwise. A revoked certificate fails here: the command and the service have always said so.
	"certificate-revoked":               Revoked,
	"certificate-not-yet-valid":         NotYetValid,
	"certificate-revoked-later":         "",
	"certificate-not-authority":         ChainConstraintsFailure,
	"certificate-path-length":           ChainConstraintsFailure,
	"certificate-key-usage":             ChainConstraintsFailure,
	"certificate-extended-key-usage":    ChainConstraintsFailure,
	"certificate-critical-extension":    ChainConstraintsFailure,
	"certificate-usage":                 ChainConstraintsFailure,
	"certificate-private-key-period":    "",
	"certificate-revocation-unknown":    TryLater,
	"certificate-evidence-unavailable":  "",
	"certificate-crl-unusable":          "",
	"certificate-crl-stale":             "",
	"certificate-ocsp-unusable":         "",
	"certificate-ocsp-stale":            "",
	"certificate-ocsp-unknown":          "",
	"certificate-algorithm-unsupported": CryptoConstraintsFailure,
	"certificate-algorithm-weak":        CryptoConstraintsFailureNoPOE,

	// Cryptographic verification (5.2.7).
	"message-digest-mismatch":  HashFailure,
	"original-mismatch":        HashFailure,
	"digest-mismatch":          HashFailure,
	"content-type-changed":     HashFailure, // the signed reference to a part includes its content type
	"signature-mismatch":       SigCryptoFailure,
	"algorithm-mismatch":       SigCryptoFailure, // the key of the certificate cannot have made the value
	"hash-algorithm-mismatch":  SignedDataNotFound,
	"document-missing":         SignedDataNotFound,
	"original-not-compared":    "",
	"reference-missing":        SignedDataNotFound,
	"reference-refused":        SignedDataNotFound,
	"reference-id-not-unique":  SignedDataNotFound,
	"reference-misplaced":      SignedDataNotFound,
	"reference-empty":          SignedDataNotFound,
	"reference-failed":         SignedDataNotFound,
	"transform-refused":        SignedDataNotFound, // what it returns is unknown: nothing shows that the data has changed, or not
	"signature-missing":        SignedDataNotFound,
	"manifest-missing":         SignedDataNotFound,
	"content-type-missing":     SignedDataNotFound, // programs that read the part show something that is not signed
	"relationship-unknown":     SignedDataNotFound, // its target may be visible in some programs
	"relationship-not-covered": FormatFailure,
	"part-not-covered":         FormatFailure,
	"file-not-covered":         "",
	"later-change":             FormatFailure,
	"later-annotations":        FormatFailure,
	"later-form-filling":       FormatFailure,
	"later-metadata":           FormatFailure,
	"later-signature":          FormatFailure,
	"later-time-stamp":         "",
	"later-validation-data":    "",
	"later-not-judged":         Generic,

	// Signature acceptance (5.2.8).
	CodePart:                   SigConstraintsFailure,
	"algorithm-unknown":        CryptoConstraintsFailure,
	"digest-algorithm-refused": CryptoConstraintsFailure,
	CodeWeak:                   CryptoConstraintsFailureNoPOE,
	CodeWeakScheme:             CryptoConstraintsFailureNoPOE,

	// Time stamps and what proves a signature for long (5.4 to 5.6). An invalid time stamp does not fail a signature: the
	// signature is judged without it, and this is the indication of the time stamp.
	"time-stamp":                     NoPOE,
	"time-stamp-invalid":             NoPOE,
	"time-stamp-not-checked":         NoPOE,
	"time-stamp-untrusted":           "",
	"time-stamp-added-later":         "",
	"time-stamps-out-of-order":       TimestampOrderFailure,
	"archive-time-stamp-lapsed":      "",
	"long-term-value-broken":         "",
	"long-term-value-unused":         "",
	"long-term-evidence-incomplete":  "",
	"evidence-older-than-time-stamp": "",
	"evidence-record":                Generic,

	// Powers of attorney, which the standard does not know: a constraint on the signer.
	"power-unsigned":       SigConstraintsFailure,
	"power-signature":      SigConstraintsFailure,
	"power-notary":         Generic,
	"power-remark":         "",
	"power-not-yet":        SigConstraintsFailure,
	"power-expired":        SigConstraintsFailure,
	"power-withdrawn":      SigConstraintsFailure,
	"power-no-proof":       OutOfBoundsNoPOE,
	"power-status-unknown": "",
	"power-status-later":   TryLater,
	"power-delegation":     SigConstraintsFailure,
	"power-parent":         Generic,
	"power-principal":      SigConstraintsFailure,
	"power-chain":          SigConstraintsFailure,
	"power-wider":          SigConstraintsFailure,
	"power-other":          SigConstraintsFailure,
	"power-differs":        SigConstraintsFailure,
	"power-unknown":        Generic,
	"power-joint":          SigConstraintsFailure,
	"power-not-needed":     "",
	"power-stray":          "",
	"power-rights":         SigConstraintsFailure,
	"power-words":          Generic,
	"power-limits":         "",
}

// IndicationOf returns the sub-indication of a finding that decides, by its code.
func IndicationOf(code string) Indication {
	if i := codes[code]; i != "" {
		return i
	}
	return FormatFailure // TestCodes finds a code without a row
}

// order is the order of the building blocks of a validation (EN 319 102-1, 5.3). Of several findings with the worst
// verdict, the first of this order is the reason.
var order = []Indication{
	FormatFailure, NoSigningCertificateFound,
	HashFailure, SigCryptoFailure, SignedDataNotFound,
	NoCertificateChainFound, CertificateChainGeneralFailure, ChainConstraintsFailure, Revoked, NotYetValid, OutOfBoundsNoPOE, TryLater,
	SigConstraintsFailure, CryptoConstraintsFailure, CryptoConstraintsFailureNoPOE, TimestampOrderFailure, NoPOE, Generic,
}

// Conclusion is the status of a validation in the words of EN 319 102-1.
type Conclusion struct {
	Verdict Verdict
	// Sub is the sub-indication, empty for Passed.
	Sub Indication
}

// Main returns the main status in the spelling of the standard.
func (c Conclusion) Main() string { return c.Verdict.Main() }

// Main returns the verdict in the spelling of EN 319 102-1: "TOTAL-PASSED", "INDETERMINATE" or "TOTAL-FAILED".
func (v Verdict) Main() string {
	return [...]string{"TOTAL-PASSED", "INDETERMINATE", "TOTAL-FAILED"}[v]
}

// worse returns the worse of two conclusions; of the same verdict, the one that comes first in a validation.
func (c Conclusion) worse(other Conclusion) Conclusion {
	place := func(i Indication) int {
		for n, one := range order {
			if one == i {
				return n
			}
		}
		return len(order)
	}
	if other.Verdict > c.Verdict || other.Verdict == c.Verdict && place(other.Sub) < place(c.Sub) {
		return other
	}
	return c
}

func concluded(findings []Finding) (c Conclusion) {
	for _, f := range findings {
		if f.Indication != "" {
			c = c.worse(Conclusion{f.Indication.Verdict(), f.Indication})
		}
	}
	return c
}

// Conclusion returns the status of the signature with its countersignatures. Its Verdict is that of
// [Signature.Verdict].
func (s *Signature) Conclusion() Conclusion {
	c := concluded(s.Findings)
	if c.Verdict == Passed && s.Own() != Passed {
		c = untrusted(s.Signer)
	}
	for i := range s.Countersigners {
		c = c.worse(s.Countersigners[i].Conclusion())
	}
	return c
}

// untrusted is the status of a signature that no finding refuses and whose signer leads to no anchor.
func untrusted(signer *x509gost.Certificate) Conclusion {
	if signer == nil {
		return Conclusion{Indeterminate, NoSigningCertificateFound}
	}
	return Conclusion{Indeterminate, NoCertificateChainFound}
}

// Conclusion returns the status of the time stamp.
func (t *TimeStamp) Conclusion() Conclusion {
	c := concluded(t.Findings)
	if c.Verdict == Passed && t.Verdict() != Passed {
		c = untrusted(t.Signer)
	}
	return c
}

// ConclusionOf returns the status of one of its signatures, for which findings about the whole file count as well.
func (r *Report) ConclusionOf(s *Signature) Conclusion {
	return concluded(r.Findings).worse(s.Conclusion())
}

// Conclusion returns the status of the whole file. Its Verdict is that of [Report.Verdict].
func (r *Report) Conclusion() Conclusion {
	c := concluded(r.Findings)
	for _, s := range r.deciding() {
		c = c.worse(s.Conclusion())
	}
	if len(r.Signatures) == 0 {
		c = c.worse(Conclusion{Failed, FormatFailure})
	}
	return c
}
