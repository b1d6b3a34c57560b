// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"errors"
	"slices"
	"time"

	"tamga/internal/domain/fault"
	"tamga/pki/chain"
	"tamga/pki/x509gost"
)

// cachedResult is a positive result with the evidence that it depends on. It contains the
// revocation lists that it was made from, the certificates of the authorities and its period
// of validity. Judge compares them with the current ones and the time, and the certificate
// never changes. The stored
// status of the certificate is checked before, by refuse.
type cachedResult struct {
	result      *chain.Result
	crls        []*x509gost.RevocationList
	authorities uint64    // authority.Service.Changes before it was made
	from, until time.Time // period of validity, without until itself
}

// holds reports whether the result is valid at a time with the current revocation lists and
// authorities. The authority returns the same list while it is the current one in the database.
func (v *cachedResult) holds(crls []*x509gost.RevocationList, authorities uint64, at time.Time) bool {
	return v != nil && v.authorities == authorities && !at.Before(v.from) && at.Before(v.until) && slices.Equal(v.crls, crls)
}

// Judge checks whether a certificate may be used at a time: it is valid then, not
// revoked, and has a path to a root of the built-in authority or, for a certificate of an
// outside authority, to a root of that authority. Otherwise it returns the fault
// invalid_certificate with a reason for the owner of the certificate only.
//
// The current revocation lists are read on each call, so a revocation by any process has
// effect at once. The caller may change the result.
func (s *Service) Judge(ctx context.Context, c *Certificate, at time.Time) (*chain.Result, error) {
	return s.JudgeIn(ctx, nil, c, at)
}

// JudgeIn is Judge by the revocation lists of a snapshot, the one that c was resolved
// with; nil means the current lists. An outside authority is always asked again.
func (s *Service) JudgeIn(ctx context.Context, snap *Snapshot, c *Certificate, at time.Time) (*chain.Result, error) {
	if err := refuse(c, at); err != nil {
		return nil, err
	}
	if c.Outside {
		return s.judgeOutside(ctx, c, at)
	}
	crls, err := s.lists(ctx, snap)
	if err != nil {
		return nil, err
	}
	e := s.cache.find(c.ID, c.X509)
	authorities := s.Authority.Changes()
	if e != nil {
		if kept := e.judged.Load(); kept.holds(crls, authorities, at) {
			return kept.copy(), nil
		}
	}
	anchors, issuing, err := s.Authority.Trusted(ctx)
	if err != nil {
		return nil, err
	}
	result, err := chain.Build(c.X509, chain.Options{
		Roots: anchors, Intermediates: issuing, CRLs: crls, At: at, RequireRevocation: true,
	})
	if err != nil {
		return nil, translate(c, err)
	}
	kept := newCachedResult(result, crls, authorities)
	if e != nil {
		e.judged.Store(kept)
	}
	return kept.copy(), nil
}

// refuse returns a fault for a certificate that is revoked, on hold or not valid at the
// time.
func refuse(c *Certificate, at time.Time) error {
	const day = "2006-01-02 15:04:05 UTC"
	switch {
	case c.Outside && !c.RevokedAt.IsZero():
		// The stored status is only for display. The authority is asked again below.
	case !c.RevokedAt.IsZero() && !c.RevokedAt.After(at) && c.Reason == ReasonHold:
		return fault.Newf(fault.InvalidCertificate, "certificate %d is on hold since %s", c.ID, c.RevokedAt.UTC().Format(day))
	case !c.RevokedAt.IsZero() && !c.RevokedAt.After(at):
		return fault.Newf(fault.InvalidCertificate, "certificate %d was revoked on %s", c.ID, c.RevokedAt.UTC().Format(day))
	case at.Before(c.X509.NotBefore):
		return fault.Newf(fault.InvalidCertificate, "certificate %d is not valid before %s", c.ID, c.X509.NotBefore.UTC().Format(day))
	case !at.Before(end(c.X509)):
		return fault.Newf(fault.InvalidCertificate, "certificate %d expired on %s", c.ID, c.X509.NotAfter.UTC().Format(day))
	}
	return nil
}

// translate turns errors of package chain into faults.
func translate(c *Certificate, err error) error {
	reasons := []struct {
		kind error
		text string
	}{
		{chain.ErrRevoked, "it or its issuer is revoked"},
		{chain.ErrExpired, "its issuer has expired"},
		{chain.ErrNotYetValid, "its issuer is not valid yet"},
		{chain.ErrUsage, "it is not for signing documents"},
		{chain.ErrRevocationUnknown, "its revocation status is unknown"},
		{chain.ErrSignature, "a signature on its path does not match"},
		{chain.ErrNoPath, "no path leads from it to a trusted root"},
	}
	for _, r := range reasons {
		if errors.Is(err, r.kind) {
			return fault.Newf(fault.InvalidCertificate, "certificate %d cannot be used: %s", c.ID, r.text).With(err)
		}
	}
	return err
}

// newCachedResult returns a result with the period in which it is valid.
func newCachedResult(v *chain.Result, crls []*x509gost.RevocationList, authorities uint64) *cachedResult {
	kept := &cachedResult{result: v, crls: slices.Clone(crls), authorities: authorities}
	narrow := func(from, until time.Time) {
		if kept.from.IsZero() || from.After(kept.from) {
			kept.from = from
		}
		if !until.IsZero() && (kept.until.IsZero() || until.Before(kept.until)) {
			kept.until = until
		}
	}
	for _, c := range v.Chain {
		narrow(c.NotBefore, end(c))
	}
	for _, l := range crls {
		narrow(l.ThisUpdate, l.NextUpdate)
	}
	return kept
}

// copy returns a result whose slices the caller may change.
func (v *cachedResult) copy() *chain.Result {
	return &chain.Result{Chain: slices.Clone(v.result.Chain), Findings: slices.Clone(v.result.Findings)}
}
