// SPDX-License-Identifier: Apache-2.0

// Package chain checks a certificate at a given time: it searches a path of signatures to a
// trust anchor and checks every certificate of the path (RFC 5280, 6) and whether the
// certificate was revoked.
//
// Begin with Build. The caller passes all certificates, revocation lists and OCSP answers, and
// the time. The package fetches nothing and does not read the clock.
//
// # Revocation
//
// Revocation lists and OCSP answers count alike. One that says that the certificate was
// revoked counts whenever it was made, because a revocation is final. The revocation date then
// decides whether the certificate was revoked at the time of the check. One that clears the
// certificate counts if it is in force at the time of the check. It also counts if it was made
// later, because a certificate that is not revoked later was not revoked before. This does not
// hold after the certificate has expired, because issuers may then remove it from their lists.
//
// A CRL counts if the key that issued the certificate signed it. Lists signed by a separate
// key of the same name are not used. An OCSP answer counts if the issuer signed it or a
// responder that the issuer certified. Responders trusted by local configuration are not
// supported.
//
// # Algorithms
//
// The path is refused if it has a signature by an algorithm that can be forged at the time of
// the check, or a key that is too short. A revocation list or OCSP answer with such a signature
// can revoke a certificate but not clear it.
//
// # Limits
//
// Name constraints, policy constraints, policy mappings, indirect CRLs and delta CRLs are not
// supported. If such an extension is critical, the certificate or the list is refused.
package chain

import (
	"errors"
	"slices"
	"strings"
	"time"

	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Reasons for refusing a certificate, for errors.Is with the error of Build.
var (
	ErrExpired           = errors.New("chain: certificate expired")
	ErrNotYetValid       = errors.New("chain: certificate not yet valid")
	ErrRevoked           = errors.New("chain: certificate revoked")
	ErrNoPath            = errors.New("chain: no path to a trust anchor")
	ErrUsage             = errors.New("chain: certificate is not for this use")
	ErrSignature         = errors.New("chain: signature does not match")
	ErrRevocationUnknown = errors.New("chain: revocation status unknown")
	ErrUnsupported       = errors.New("chain: algorithm not supported")
	ErrWeak              = errors.New("chain: algorithm can be forged")
)

// Options are the evidence and the rules of a check.
type Options struct {
	// Roots are the trust anchors. A leaf among them needs no issuer.
	Roots []*x509gost.Certificate
	// Intermediates may be part of the path. They are not trusted and may include
	// unrelated certificates.
	Intermediates []*x509gost.Certificate
	// CRLs are lists of any issuers. Those that do not apply are skipped.
	CRLs []*x509gost.RevocationList
	// OCSP are answers of any responders. Those that do not apply are skipped.
	OCSP []*ocsp.Basic
	// At is the time of the check.
	At time.Time
	// Ends are ends of algorithms by a setting, nil for none.
	Ends suite.Ends
	// Usage lists extended key usages. The leaf must allow one of them. If it is empty,
	// any usage will do.
	Usage []x509gost.OID
	// RequireRevocation refuses a path if neither a CRL nor an OCSP answer clears a
	// certificate below the anchor. Without it, this is a finding that is not fatal.
	RequireRevocation bool
	// Spend, if not nil, is called before signatures are checked and before certificates
	// or lists are compared. If it returns an error, the search ends without a path.
	Spend func(signatures, comparisons int) error
}

// Result is the path that was found, with the findings on it.
type Result struct {
	// Chain begins with the leaf and ends with the anchor. Without a path it holds the
	// longest part that the search reached.
	Chain    []*x509gost.Certificate
	Findings []Finding
	// Evidence has for each certificate of Chain, at the same index, the proof that
	// decided whether it was revoked. It is empty without a path.
	Evidence []Proof
}

// Proof is an OCSP answer or a revocation list. Both are nil for an anchor, for a responder
// that its issuer exempts from revocation checks, and if nothing is known.
type Proof struct {
	OCSP       *ocsp.Basic
	CRL        *x509gost.RevocationList
	ThisUpdate time.Time             // time of the statement; zero if both are nil
	Responder  *x509gost.Certificate // signer of OCSP; nil if OCSP is nil
}

// Finding is something that was noticed in a check. Fatal findings refuse the path.
type Finding struct {
	Code        string // one of the codes below
	Certificate *x509gost.Certificate
	When        time.Time // of the revocation; zero for other codes
	Text        string    // for people
	Fatal       bool
}

// Codes of findings.
const (
	CodeExpired           = "expired"
	CodeNotYetValid       = "not-yet-valid"
	CodeRevoked           = "revoked"
	CodeRevokedLater      = "revoked-later" // after the time of the check
	CodeNoPath            = "no-path"
	CodeSignature         = "signature"
	CodeNotAuthority      = "not-authority"
	CodePathLength        = "path-length"
	CodeKeyUsage          = "key-usage"
	CodeExtendedUsage     = "extended-key-usage"
	CodeCriticalExtension = "critical-extension"
	CodePrivateKeyPeriod  = "private-key-period"
	CodeRevocationUnknown = "revocation-unknown"
	CodeListUnusable      = "crl-unusable"
	CodeListStale         = "crl-stale"
	CodeAnswerUnusable    = "ocsp-unusable"
	CodeAnswerStale       = "ocsp-stale"
	CodeAnswerUnknown     = "ocsp-unknown"          // the responder does not know the certificate
	CodeUnsupported       = "algorithm-unsupported" // a signature cannot be checked
	CodeWeak              = "algorithm-weak"        // a signature or a key that can be forged
)

// kinds has the error for each fatal finding.
var kinds = map[string]error{
	CodeExpired:           ErrExpired,
	CodeNotYetValid:       ErrNotYetValid,
	CodeRevoked:           ErrRevoked,
	CodeNoPath:            ErrNoPath,
	CodeSignature:         ErrSignature,
	CodeNotAuthority:      ErrUsage,
	CodePathLength:        ErrUsage,
	CodeKeyUsage:          ErrUsage,
	CodeExtendedUsage:     ErrUsage,
	CodeCriticalExtension: ErrUsage,
	CodeRevocationUnknown: ErrRevocationUnknown,
	CodeUnsupported:       ErrUnsupported,
	CodeWeak:              ErrWeak,
}

// Error is the error of Build. errors.Is finds in it the Err value of every fatal finding.
type Error struct {
	Kind     error     // Err value of the first fatal finding
	Findings []Finding // all, fatal or not
}

// Error returns the texts of all fatal findings.
func (e *Error) Error() string {
	var texts []string
	for _, f := range e.Findings {
		if f.Fatal {
			texts = append(texts, f.Text)
		}
	}
	return e.Kind.Error() + ": " + strings.Join(texts, "; ")
}

// Unwrap returns the Err values of the fatal findings.
func (e *Error) Unwrap() []error {
	var list []error
	for _, f := range e.Findings {
		if f.Fatal && !slices.Contains(list, kinds[f.Code]) {
			list = append(list, kinds[f.Code])
		}
	}
	return list
}

// Build searches the best path from leaf to one of the roots and checks it. The result is
// never nil. The error is nil if there is a path without fatal findings, otherwise it is an
// *Error.
func Build(leaf *x509gost.Certificate, o Options) (*Result, error) {
	s := newSearch(o)
	s.extend([]*x509gost.Certificate{leaf})
	v := s.best
	if v == nil {
		v = s.noPath(leaf)
	}
	for _, f := range v.Findings {
		if f.Fatal {
			return v, &Error{Kind: kinds[f.Code], Findings: v.Findings}
		}
	}
	return v, nil
}
