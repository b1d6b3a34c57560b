// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tamga/internal/domain/fault"
	"tamga/pki/chain"
	"tamga/pki/ocsp"
	"tamga/pki/x509gost"
)

// OutsideStatus is what an outside authority last said about the status of a certificate. It may be as
// old as StatusAge, because it is for lists and pages, and for refusing to revoke what is revoked
// already. A signature does not depend on it: Judge asks the authority anew.
type OutsideStatus struct {
	RevokedAt time.Time // zero: it is neither revoked nor on hold
	Reason    int       // CRLReason
	DueAt     time.Time // when to ask again
}

// DefaultStatusAge is the greatest age of the status that is shown for certificates of
// outside authorities.
const DefaultStatusAge = 15 * time.Minute

const (
	// statusPortion is the number of certificates read at a time.
	statusPortion = 100
	// hopeless is the interval of checks for certificates whose status will hardly
	// change: expired, revoked for good, or without a path.
	hopeless = 30 * 24 * time.Hour
)

// Refresh asks outside authorities about certificates whose status is older than
// StatusAge, so that showing a certificate does not wait for its authority. When an
// authority does not answer, the old statuses stay and its other certificates wait for
// the next call.
func (s *Service) Refresh(ctx context.Context) error {
	if s.Evidence == nil {
		return nil
	}
	silent := map[string]bool{} // names of issuers that did not answer
	var failed []error
	for after := int64(0); ; {
		due, err := s.StatusStore.DueStatuses(ctx, s.Now(), after, statusPortion)
		if err != nil {
			return err
		}
		for _, r := range due {
			after = r.ID
			c, err := s.certificate(r)
			if err != nil {
				failed = append(failed, err)
				continue
			}
			issuer := string(c.X509.RawIssuer)
			if silent[issuer] {
				continue
			}
			_, learnt, err := s.askOutside(ctx, c, s.Now())
			if ctx.Err() != nil {
				return ctx.Err()
			}
			st, again := OutsideStatus{RevokedAt: c.RevokedAt, Reason: c.Reason}, s.StatusAge
			switch {
			case learnt != nil:
				st = *learnt
			case fault.Is(err, fault.InvalidCertificate):
				again = hopeless
			case err != nil:
				silent[issuer] = true
				failed = append(failed, fmt.Errorf("keys: certificate %d: %w", c.ID, err))
			}
			if !st.RevokedAt.IsZero() && st.Reason != ReasonHold {
				again = hopeless
			}
			st.DueAt = s.Now().Add(again)
			if err := s.StatusStore.NoteStatus(ctx, c.ID, st); err != nil {
				return errors.Join(append(failed, err)...)
			}
		}
		if len(due) < statusPortion {
			return errors.Join(failed...)
		}
	}
}

// notice stores a status that Judge learned, if it is new.
func (s *Service) notice(ctx context.Context, c *Certificate, learnt *OutsideStatus) error {
	if learnt == nil || learnt.RevokedAt.Equal(c.RevokedAt) && learnt.Reason == c.Reason {
		return nil
	}
	learnt.DueAt = s.Now().Add(s.StatusAge)
	return s.StatusStore.NoteStatus(ctx, c.ID, *learnt)
}

// revokedBy reads the time and the reason of a revocation from its evidence. If the
// evidence has none, the time is now and the reason 0.
func revokedBy(cert, issuer *x509gost.Certificate, answer, list []byte, now time.Time) *OutsideStatus {
	if len(answer) > 0 {
		if basic, err := ocsp.ParseBasic(answer); err == nil {
			if single, ok := basic.Find(cert, issuer); ok && single.Status == ocsp.Revoked {
				return &OutsideStatus{RevokedAt: single.RevokedAt, Reason: max(single.Reason, 0)}
			}
		}
	}
	if len(list) > 0 {
		if crl, err := x509gost.ParseRevocationList(list); err == nil {
			if entry, ok := crl.Find(cert.SerialNumber); ok {
				return &OutsideStatus{RevokedAt: entry.At, Reason: max(entry.Reason, 0)}
			}
		}
	}
	return &OutsideStatus{RevokedAt: now}
}

// isRevoked reports whether err says that cert itself is revoked.
func isRevoked(cert *x509gost.Certificate, err error) bool {
	var refusal *chain.Error
	if !errors.As(err, &refusal) {
		return false
	}
	for _, f := range refusal.Findings {
		if f.Code == chain.CodeRevoked && f.Certificate == cert {
			return true
		}
	}
	return false
}
