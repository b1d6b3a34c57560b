// Package chain judges a certificate at a given time: it looks for a path of
// signatures to a trust anchor and checks every certificate of the path (RFC
// 5280, 6) and whether it was revoked. Everything it knows is handed to it; it
// fetches nothing and asks no clock.
//
// # Revocation
//
// Revocation lists and OCSP answers count alike. One that names the certificate
// as revoked counts whenever it was made: what was revoked stays so, and only
// the date decides whether it was before the moment of the judgement. One that
// clears it counts when it is in force at that moment, or was made later, as long
// as the certificate had not expired by then (afterwards issuers may forget):
// who was not revoked later was not revoked before.
//
// A CRL counts when the key that issued the certificate signed it; lists signed
// by a separate key of the same name are not used. An OCSP answer counts when the
// issuer signed it or whom the issuer certified for it; a responder chosen by
// local configuration is not known here.
//
// # Algorithms
//
// A signature by an algorithm that can be forged at the moment of the judgement, and a
// key that is too short, refuse the path. A revocation list or an OCSP answer signed so
// may say that a certificate was revoked; it clears none.
//
// # Limits
//
// Not processed are name constraints, policy constraints and mappings, indirect
// and delta CRLs: where such an extension is critical, the certificate or the
// list is refused.
package chain

import (
	"errors"
	"slices"
	"strings"
	"time"

	"tamga/pki/ocsp"
	"tamga/pki/x509gost"
)

// Reasons a certificate is refused. errors.Is finds them in what Build returns.
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

// Options are the evidence and the rules of a judgement.
type Options struct {
	// Roots are trusted as they are; a leaf among them needs no issuer.
	Roots []*x509gost.Certificate
	// Intermediates may be used on the way and are not trusted, nor have they
	// to be related.
	Intermediates []*x509gost.Certificate
	// CRLs are lists of any issuers; those that do not apply are passed over.
	CRLs []*x509gost.RevocationList
	// OCSP are answers of any responders, passed over likewise.
	OCSP []*ocsp.Basic
	// At is the moment of the judgement.
	At time.Time
	// Usage are extended key usages of which the leaf must allow one; none: any.
	Usage []x509gost.OID
	// RequireRevocation refuses a path when neither a CRL nor an OCSP answer
	// clears a certificate below the anchor. Otherwise that is a finding that is
	// not fatal.
	RequireRevocation bool
	// Spend, when not nil, is called before signatures are checked and certificates or
	// lists are compared with what is looked for. Its error ends the search without a path.
	Spend func(signatures, comparisons int) error
}

// Verdict is the path that was found and what was noticed on it.
type Verdict struct {
	// Chain is leaf first, anchor last. In a refusal without a path it holds as
	// far as the search got.
	Chain    []*x509gost.Certificate
	Findings []Finding
	// Evidence says for each certificate of Chain, by the same index, what decided
	// whether it was revoked. It is empty in a refusal without a path.
	Evidence []Proof
}

// Proof is an OCSP answer or a revocation list. It is neither for an anchor, for
// a responder whose issuer wants it unchecked, and where nothing is known.
type Proof struct {
	OCSP       *ocsp.Basic
	CRL        *x509gost.RevocationList
	ThisUpdate time.Time             // when that was true; zero without either
	Responder  *x509gost.Certificate // who signed OCSP; nil without
}

// Finding is one thing noticed. Fatal ones are reasons of a refusal.
type Finding struct {
	Code        string // one of the codes below
	Certificate *x509gost.Certificate
	Text        string // for people
	Fatal       bool
}

// Codes of findings.
const (
	CodeExpired           = "expired"
	CodeNotYetValid       = "not-yet-valid"
	CodeRevoked           = "revoked"
	CodeRevokedLater      = "revoked-later" // after the moment of the judgement
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

// kinds says which error a fatal finding amounts to.
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

// Error is a refusal. errors.Is finds in it the Err value of every fatal
// finding.
type Error struct {
	Kind     error     // of the first fatal finding
	Findings []Finding // all, fatal or not
}

// Error names every fatal finding.
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

// Build looks for the best path from leaf to one of the roots and judges it.
// The verdict is never nil. The error is nil when a path without fatal findings
// was found, and an *Error otherwise.
func Build(leaf *x509gost.Certificate, o Options) (*Verdict, error) {
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
