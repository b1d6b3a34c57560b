package chain

import (
	"crypto/x509"
	"errors"
	"fmt"

	"tamga/pki/x509gost"
)

// revocation looks for c in the lists of its issuer. A list in force at the
// moment of the judgement that does not name c clears it. An entry counts in
// any list the issuer signed, in force or not: what was revoked stays so.
func (s *search) revocation(f *findings, c, issuer *x509gost.Certificate) {
	var known *x509gost.RevokedEntry
	cleared, seen := false, 0
	for _, l := range s.CRLs {
		if !l.Issuer.Equal(c.Issuer) {
			continue
		}
		seen++
		if err := s.usable(l, c, issuer); err != nil {
			f.add(CodeListUnusable, false, c, "has a revocation list of %s that cannot be used: %v", stamp(l.ThisUpdate), err)
			continue
		}
		if entry, ok := l.Find(c.SerialNumber); ok {
			if known == nil || entry.At.Before(known.At) {
				known = &entry
			}
			continue
		}
		if err := s.inForce(l); err != nil {
			f.add(CodeListStale, false, c, "has a revocation list that is not in force: %v", err)
			continue
		}
		cleared = true
	}
	switch {
	case known != nil && !known.At.After(s.At):
		f.add(CodeRevoked, true, c, "was revoked at %s (reason %d), judged at %s", stamp(known.At), known.Reason, stamp(s.At))
	case known != nil:
		f.add(CodeRevokedLater, false, c, "was revoked at %s (reason %d), after the moment of the judgement %s", stamp(known.At), known.Reason, stamp(s.At))
	case cleared:
	case seen == 0:
		f.add(CodeRevocationUnknown, s.RequireRevocation, c, "has no revocation list of its issuer among the %d at hand", len(s.CRLs))
	default:
		f.add(CodeRevocationUnknown, s.RequireRevocation, c, "has no revocation list in force among the %d of its issuer", seen)
	}
}

// usable says whether a list of the issuer's name proves anything about c.
func (s *search) usable(l *x509gost.RevocationList, c, issuer *x509gost.Certificate) error {
	switch {
	case len(l.UnknownCritical) > 0:
		return fmt.Errorf("it has critical extensions that are not understood here: %v", l.UnknownCritical)
	case !l.Scope.Understood():
		return errors.New("it is indirect, partial or of a form that is not understood here")
	case !l.Scope.Covers(c):
		return errors.New("it does not speak of this certificate")
	case issuer.HasKeyUsage && issuer.KeyUsage&x509.KeyUsageCRLSign == 0:
		return errors.New("the issuer's key is not for signing revocation lists (cRLSign)")
	}
	return s.checkSignature(l, issuer)
}

// inForce says whether At lies in the period of a list.
func (s *search) inForce(l *x509gost.RevocationList) error {
	switch {
	case s.At.Before(l.ThisUpdate):
		return fmt.Errorf("it was issued at %s, after %s", stamp(l.ThisUpdate), stamp(s.At))
	case l.NextUpdate.IsZero():
		return errors.New("it does not say when the next one is due")
	case !s.At.Before(l.NextUpdate):
		return fmt.Errorf("the next one was due at %s, before %s", stamp(l.NextUpdate), stamp(s.At))
	}
	return nil
}
