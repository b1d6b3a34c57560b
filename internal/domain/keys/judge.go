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

// judgement is a favourable verdict with all it rests on. A kept one is right because it names
// the revocation lists it was made from and the time it holds for: Judge compares both with what
// is in force now, and the certificate itself never changes. What the database knows of the
// certificate is looked at before, by refuse.
type judgement struct {
	verdict     *chain.Verdict
	crls        []*x509gost.RevocationList
	from, until time.Time // the time it holds for, without until itself
}

// holds reports whether nothing that the verdict rests on has changed. The
// authority hands out the same list while it is the current one in the database.
func (j *judgement) holds(crls []*x509gost.RevocationList, at time.Time) bool {
	return j != nil && !at.Before(j.from) && at.Before(j.until) && slices.Equal(j.crls, crls)
}

// Judge says whether a certificate may be used at a time: it is valid then, not
// revoked, and its path leads to a root of the built-in authority or, for one of
// another authority, to a root of that. A
// certificate that may not be used is the fault invalid_certificate, with the
// reason in words: show it to the certificate's owner only.
//
// The current revocation lists are asked for each time, so a revocation by any
// process counts at once. The verdict is the caller's.
func (s *Service) Judge(ctx context.Context, c *Certificate, at time.Time) (*chain.Verdict, error) {
	return s.JudgeIn(ctx, nil, c, at)
}

// JudgeIn is Judge by the revocation lists that were in force at the time of a snapshot, the one
// that c was resolved with. nil: by the current ones. An outside authority is asked anew in any
// case.
func (s *Service) JudgeIn(ctx context.Context, snap *Snapshot, c *Certificate, at time.Time) (*chain.Verdict, error) {
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
	if e != nil {
		if j := e.judged.Load(); j.holds(crls, at) {
			return j.copy(), nil
		}
	}
	roots, err := s.Authority.Roots(ctx)
	if err != nil {
		return nil, err
	}
	issuing, err := s.Authority.Issuing(ctx)
	if err != nil {
		return nil, err
	}
	verdict, err := chain.Build(c.X509, chain.Options{
		Roots: roots, Intermediates: issuing, CRLs: crls, At: at, RequireRevocation: true,
	})
	if err != nil {
		return nil, translate(c, err)
	}
	j := newJudgement(verdict, crls)
	if e != nil {
		e.judged.Store(j)
	}
	return j.copy(), nil
}

// refuse says what is wrong with the certificate itself.
func refuse(c *Certificate, at time.Time) error {
	const day = "2006-01-02 15:04:05 UTC"
	switch {
	case c.Outside && !c.RevokedAt.IsZero():
		// What its authority said last is shown; now it is asked again.
	case !c.RevokedAt.IsZero() && !c.RevokedAt.After(at) && c.Reason == reasonHold:
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

// translate turns the reasons of package chain into faults.
func translate(c *Certificate, err error) error {
	reasons := []struct {
		kind error
		text string
	}{
		{chain.ErrRevoked, "it or its issuer is revoked"},
		{chain.ErrExpired, "its issuer has expired"},
		{chain.ErrNotYetValid, "its issuer is not valid yet"},
		{chain.ErrUsage, "it is not for signing documents"},
		{chain.ErrRevocationUnknown, "nothing current tells whether it is revoked"},
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

// newJudgement finds the time in which a verdict holds.
func newJudgement(v *chain.Verdict, crls []*x509gost.RevocationList) *judgement {
	j := &judgement{verdict: v, crls: slices.Clone(crls)}
	narrow := func(from, until time.Time) {
		if j.from.IsZero() || from.After(j.from) {
			j.from = from
		}
		if !until.IsZero() && (j.until.IsZero() || until.Before(j.until)) {
			j.until = until
		}
	}
	for _, c := range v.Chain {
		narrow(c.NotBefore, end(c))
	}
	for _, l := range crls {
		narrow(l.ThisUpdate, l.NextUpdate)
	}
	return j
}

// copy gives a verdict whose slices the caller may change.
func (j *judgement) copy() *chain.Verdict {
	return &chain.Verdict{Chain: slices.Clone(j.verdict.Chain), Findings: slices.Clone(j.verdict.Findings)}
}
