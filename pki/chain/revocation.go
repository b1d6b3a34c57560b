// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"tamga/pki/ocsp"
	"tamga/pki/x509gost"
)

// openAnswer is how long an OCSP answer without nextUpdate is in force. Its absence means
// that the responder always has newer information (RFC 6960, 4.2.2.1).
const openAnswer = 10 * time.Minute

// status holds what is known about the revocation of one certificate.
type status struct {
	revoked bool // some list or answer says so, of any date
	at      time.Time
	reason  int
	by      Proof // proof of the earliest revocation, else of the clearance
	cleared bool
	seen    int // lists and answers about it, usable or not
}

// revoke records a revocation. The earliest one counts.
func (st *status) revoke(at time.Time, reason int, by Proof) {
	if !st.revoked || at.Before(st.at) {
		st.revoked, st.at, st.reason, st.by = true, at, reason, by
	}
}

// clear records evidence that the certificate is not revoked. An OCSP answer takes precedence
// over a list. Of the same kind, the latest counts.
func (st *status) clear(by Proof) {
	if st.revoked {
		return
	}
	if !st.cleared || st.by.OCSP == nil && by.OCSP != nil ||
		(st.by.OCSP == nil) == (by.OCSP == nil) && by.ThisUpdate.After(st.by.ThisUpdate) {
		st.cleared, st.by = true, by
	}
}

// revocation determines whether c, which issuer issued, was revoked at the time of the check.
// It returns the proof that decided.
func (s *search) revocation(f *findings, c, issuer *x509gost.Certificate) Proof {
	var st status
	s.answers(f, &st, c, issuer)
	s.lists(f, &st, c, issuer, s.At)
	switch {
	case st.revoked && !st.at.After(s.At):
		f.addRevoked(CodeRevoked, true, c, st.at, "was revoked at %s (reason %d), but is checked for %s", stamp(st.at), st.reason, stamp(s.At))
	case st.revoked:
		f.addRevoked(CodeRevokedLater, false, c, st.at, "was revoked at %s (reason %d), after the time of the check %s", stamp(st.at), st.reason, stamp(s.At))
	case st.cleared:
	case unchecked(c):
	case st.seen == 0:
		f.add(CodeRevocationUnknown, s.RequireRevocation, c, "has no revocation list of its issuer among the %d available and no OCSP answer among the %d available", len(s.CRLs), len(s.OCSP))
	default:
		f.add(CodeRevocationUnknown, s.RequireRevocation, c, "has neither a usable revocation list nor a usable OCSP answer among the %d considered", st.seen)
	}
	return st.by
}

// unchecked reports whether c is the certificate of an OCSP responder that its issuer exempts
// from revocation checks.
func unchecked(c *x509gost.Certificate) bool {
	return ocsp.NoCheck(c) && slices.ContainsFunc(c.ExtKeyUsage, x509gost.UsageOCSPSigning.Equal)
}

// lists searches for c in the lists of its issuer, for a check at a time.
func (s *search) lists(f *findings, st *status, c, issuer *x509gost.Certificate, at time.Time) {
	for _, l := range s.CRLs {
		if !l.Issuer.Equal(c.Issuer) {
			continue
		}
		st.seen++
		if err := s.usable(l, c, issuer); err != nil {
			f.add(CodeListUnusable, false, c, "has a revocation list of %s that cannot be used: %v", stamp(l.ThisUpdate), err)
			continue
		}
		by := Proof{CRL: l, ThisUpdate: l.ThisUpdate}
		if entry, ok := l.Find(c.SerialNumber); ok {
			st.revoke(entry.At, entry.Reason, by)
			continue
		}
		if w := s.weakness(l); w.At(at) {
			f.add(CodeListUnusable, false, c, "has a revocation list of %s that is signed over %s, which can be forged, so it cannot clear the certificate", stamp(l.ThisUpdate), w.What)
			continue
		}
		if err := inForce(c, at, l.ThisUpdate, l.NextUpdate); err != nil {
			f.add(CodeListStale, false, c, "has a revocation list that is not in force: %v", err)
			continue
		}
		st.clear(by)
	}
}

// usable returns an error if a list with the issuer's name proves nothing about c.
func (s *search) usable(l *x509gost.RevocationList, c, issuer *x509gost.Certificate) error {
	switch {
	case len(l.UnknownCritical) > 0:
		return fmt.Errorf("it has critical extensions that are not supported: %v", l.UnknownCritical)
	case !l.Scope.Understood():
		return errors.New("it is indirect, partial or of another unsupported form")
	case !l.Scope.Covers(c):
		return errors.New("it does not cover this certificate")
	case issuer.HasKeyUsage && issuer.KeyUsage&x509.KeyUsageCRLSign == 0:
		return errors.New("the issuer's key is not for signing revocation lists (cRLSign)")
	}
	return s.checkSignature(l, issuer)
}

// inForce returns an error if something issued at from cannot clear c at a time.
func inForce(c *x509gost.Certificate, at, from, until time.Time) error {
	switch {
	case from.After(at) && from.After(c.NotAfter):
		return fmt.Errorf("it was issued at %s, when the certificate had expired and may have been removed from it", stamp(from))
	case from.After(at):
		return nil // not revoked later, so not revoked before
	case until.IsZero():
		return errors.New("it has no date for the next one")
	case !at.Before(until):
		return fmt.Errorf("the next one was due at %s, not after %s", stamp(until), stamp(at))
	}
	return nil
}

// answers searches for OCSP answers about c.
func (s *search) answers(f *findings, st *status, c, issuer *x509gost.Certificate) {
	for _, b := range s.OCSP {
		single, ok := b.Find(c, issuer)
		if !ok {
			continue
		}
		st.seen++
		responder, err := s.usableAnswer(b, single, c, issuer)
		if err != nil {
			f.add(CodeAnswerUnusable, false, c, "has an OCSP answer of %s that cannot be used: %v", stamp(b.ProducedAt), err)
			continue
		}
		by := Proof{OCSP: b, ThisUpdate: single.ThisUpdate, Responder: responder}
		until := single.NextUpdate
		if until.IsZero() {
			until = single.ThisUpdate.Add(openAnswer)
		}
		w := s.weakness(b)
		switch err := inForce(c, s.At, single.ThisUpdate, until); {
		case single.Status == ocsp.Revoked:
			st.revoke(single.RevokedAt, single.Reason, by)
		case w.At(s.At):
			f.add(CodeAnswerUnusable, false, c, "has an OCSP answer of %s that is signed over %s, which can be forged, so it cannot clear the certificate", stamp(b.ProducedAt), w.What)
		case single.Status == ocsp.Unknown:
			f.add(CodeAnswerUnknown, false, c, "is unknown to its OCSP responder in an answer of %s", stamp(b.ProducedAt))
		case err != nil:
			f.add(CodeAnswerStale, false, c, "has an OCSP answer that is not in force: %v", err)
		default:
			st.clear(by)
		}
	}
}

// signedAnswer gives an answer the method CheckSignatureFrom, so that checkSignature counts
// its signature.
type signedAnswer struct{ *ocsp.Basic }

// CheckSignatureFrom checks that issuer, or a responder that issuer certified, signed the
// answer.
func (a signedAnswer) CheckSignatureFrom(issuer *x509gost.Certificate) error {
	_, err := a.Responder(issuer)
	return err
}

// usableAnswer returns the signer of an answer, or an error if the answer proves nothing.
func (s *search) usableAnswer(b *ocsp.Basic, single ocsp.Single, c, issuer *x509gost.Certificate) (*x509gost.Certificate, error) {
	if unknown := slices.Concat(b.UnknownCritical, single.UnknownCritical); len(unknown) > 0 {
		return nil, fmt.Errorf("it has critical extensions that are not supported: %v", unknown)
	}
	if err := s.checkSignature(signedAnswer{b}, issuer); err != nil {
		return nil, err
	}
	responder := s.responders[link{signedAnswer{b}, issuer}]
	if responder.Equal(issuer) {
		return responder, nil
	}
	if responder.Equal(c) {
		return nil, errors.New("the certificate signed the answer about itself")
	}
	// The responder's certificate must be valid when it answered, and when its answer
	// is used.
	relied := b.ProducedAt
	if s.At.After(relied) {
		relied = s.At
	}
	for _, at := range []time.Time{b.ProducedAt, relied} {
		var v findings
		v.validity(responder, at)
		v.extensions(responder)
		for _, x := range v {
			return nil, fmt.Errorf("its responder: %s", x.Text)
		}
	}
	return responder, s.responderStatus(responder, issuer, relied)
}

// responderStatus returns an error if a responder's certificate may have been revoked. Only lists
// count. An answer signed by the responder itself, or by another responder that needs a check
// as well, would prove nothing.
func (s *search) responderStatus(responder, issuer *x509gost.Certificate, at time.Time) error {
	var st status
	s.lists(new(findings), &st, responder, issuer, at)
	switch {
	case st.revoked && !st.at.After(at):
		return fmt.Errorf("its responder's certificate was revoked at %s", stamp(st.at))
	case st.revoked || st.cleared || unchecked(responder) || !s.RequireRevocation:
		return nil
	}
	return errors.New("no revocation list in force clears its responder's certificate, which is not exempt from such checks (ocsp-nocheck)")
}
