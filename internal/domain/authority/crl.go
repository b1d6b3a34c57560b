// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"tamga/pki/x509gost"
)

// holdReason is certificateHold, the one revocation that another may replace.
const holdReason = 6

// ValidReason reports whether a revocation may have this CRLReason (RFC 5280, section
// 5.3.1): 0 to 6, 9 and 10. 7 is unused, 8 lifts a hold.
func ValidReason(reason int) bool {
	return reason >= 0 && reason <= holdReason || reason == 9 || reason == 10
}

// Revoke revokes a certificate by its serial number and renews the issuer's
// list, both or neither. A certificate on hold may be revoked for good. It fails
// with ErrNotIssued or ErrAlreadyRevoked.
func (s *Service) Revoke(ctx context.Context, serial []byte, reason int, at time.Time) error {
	if !ValidReason(reason) {
		return fmt.Errorf("authority: revocation reason %d: want 0 to 6, 9 or 10", reason)
	}
	return s.store.Atomic(ctx, func(ctx context.Context) error {
		issued, found, err := s.store.Issued(ctx, serial)
		if err != nil {
			return err
		}
		if !found {
			return ErrNotIssued
		}
		changed, err := s.store.MarkRevoked(ctx, serial, reason, at)
		if err != nil {
			return err
		}
		if !changed {
			return ErrAlreadyRevoked
		}
		_, err = s.renew(ctx, issued.Authority)
		return err
	})
}

// Unhold lifts the hold of a certificate and renews the issuer's list, both or
// neither. It fails with ErrNotIssued or ErrNotOnHold.
func (s *Service) Unhold(ctx context.Context, serial []byte) error {
	return s.store.Atomic(ctx, func(ctx context.Context) error {
		issued, found, err := s.store.Issued(ctx, serial)
		if err != nil {
			return err
		}
		if !found {
			return ErrNotIssued
		}
		changed, err := s.store.LiftHold(ctx, serial)
		if err != nil {
			return err
		}
		if !changed {
			return ErrNotOnHold
		}
		_, err = s.renew(ctx, issued.Authority)
		return err
	})
}

// CRL returns the current revocation list (DER) of the authority of this name, after
// renewing it if half of its life is over. An unknown name is the fault object_not_found.
func (s *Service) CRL(ctx context.Context, name string) ([]byte, error) {
	if !known(name) {
		return nil, unknownAuthority()
	}
	states, err := s.store.States(ctx)
	if err != nil {
		return nil, err
	}
	for _, st := range states {
		if st.Name == name {
			list, err := s.current(ctx, st)
			if err != nil {
				return nil, err
			}
			return list.Raw, nil
		}
	}
	if _, generation, _ := splitName(name); generation > 1 {
		return nil, unknownAuthority()
	}
	return nil, fmt.Errorf("%w: %s", errAbsent, name)
}

// CRLs returns the current revocation lists of all authorities. Their numbers are read
// from the database on each call, so the answer includes the revocations of all
// processes. Parsed lists are cached by number. The caller must not change them.
func (s *Service) CRLs(ctx context.Context) ([]*x509gost.RevocationList, error) {
	states, err := s.store.States(ctx)
	if err != nil {
		return nil, err
	}
	return s.CRLsAt(ctx, states)
}

// CRLsAt is CRLs for states that the caller has read. A list that was renewed since
// may be returned in its later form.
func (s *Service) CRLsAt(ctx context.Context, states []State) ([]*x509gost.RevocationList, error) {
	lists := make([]*x509gost.RevocationList, 0, len(states))
	for _, st := range states {
		list, err := s.current(ctx, st)
		if err != nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	return lists, nil
}

// patience is the back-off of readers after a failed renewal of a list.
const patience = time.Minute

// current returns the list of a state that was just read. It renews a list past half of
// its life. If that fails, the old list is used while it is valid: a failed write must
// not stop the checks of certificates.
func (s *Service) current(ctx context.Context, st State) (*x509gost.RevocationList, error) {
	now := s.now()
	old, readErr := s.stored(ctx, st)
	if readErr == nil {
		s.mu.Lock()
		tried := s.tried[st.Name]
		s.mu.Unlock()
		if !s.listDue(st, old) || now.Before(old.NextUpdate) && now.Sub(tried) < patience {
			return old, nil
		}
	}
	list, err := s.renewOld(ctx, st.Name)
	if err == nil || ctx.Err() != nil {
		return list, err
	}
	s.mu.Lock()
	s.tried[st.Name] = now
	s.mu.Unlock()
	if readErr != nil || !now.Before(old.NextUpdate) {
		return nil, err
	}
	return old, nil
}

// listDue reports whether the list of a state is past half of its life, or of the life that lists have now.
func (s *Service) listDue(st State, list *x509gost.RevocationList) bool {
	return s.now().Sub(st.CRLAt) >= min(s.config.CRLLife, list.NextUpdate.Sub(st.CRLAt))/2
}

// stored returns the list of a state without renewing it.
func (s *Service) stored(ctx context.Context, st State) (*x509gost.RevocationList, error) {
	if list := s.cached(st); list != nil {
		return list, nil
	}
	r, found, err := s.store.Authority(ctx, st.Name)
	if err == nil && !found {
		err = fmt.Errorf("authority: %s has disappeared", st.Name)
	}
	if err != nil {
		return nil, err
	}
	return s.keep(r)
}

// cached returns the list of a state if it is in memory, otherwise nil.
func (s *Service) cached(st State) *x509gost.RevocationList {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kept := s.crls[st.Name]; kept.list != nil && kept.of.equal(st) {
		return kept.list
	}
	return nil
}

// listOf returns the list of a record.
func (s *Service) listOf(r Record) (*x509gost.RevocationList, error) {
	if list := s.cached(r.State); list != nil {
		return list, nil
	}
	return s.keep(r)
}

// keep parses a stored list and caches it.
func (s *Service) keep(r Record) (*x509gost.RevocationList, error) {
	list, err := x509gost.ParseRevocationList(r.CRL)
	if err != nil {
		return nil, fmt.Errorf("authority: the revocation list of %s: %w", r.Name, err)
	}
	s.mu.Lock()
	s.crls[r.Name] = parsedCRL{of: r.State, list: list}
	s.mu.Unlock()
	return list, nil
}

// renewOld renews a list unless another process has done so.
func (s *Service) renewOld(ctx context.Context, name string) (*x509gost.RevocationList, error) {
	var current Record
	err := s.store.Atomic(ctx, func(ctx context.Context) error {
		r, found, err := s.store.Authority(ctx, name)
		if err == nil && !found {
			err = fmt.Errorf("authority: %s has disappeared", name)
		}
		if err != nil {
			return err
		}
		list, err := s.listOf(r)
		if err != nil || s.listDue(r.State, list) {
			if r, err = s.renew(ctx, name); err != nil {
				return err
			}
		}
		current = r
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.keep(current)
}

// renew makes and stores the next list of an authority, inside a transaction.
func (s *Service) renew(ctx context.Context, name string) (Record, error) {
	r, found, err := s.store.Authority(ctx, name)
	if err == nil && !found {
		err = fmt.Errorf("authority: %s has disappeared", name)
	}
	if err != nil {
		return r, err
	}
	a, err := load(r)
	if err != nil {
		return r, err
	}
	revoked, err := s.store.Revoked(ctx, name)
	if err != nil {
		return r, err
	}
	now := s.now()
	der, err := s.makeCRL(ctx, a, r.CRLNumber+1, now, revoked)
	if err != nil {
		return r, err
	}
	replaced, err := s.store.ReplaceCRL(ctx, name, r.CRLNumber, der, now)
	if err == nil && !replaced {
		err = fmt.Errorf("authority: the revocation list of %s changed inside a transaction", name)
	}
	r.CRL, r.CRLNumber, r.CRLAt = der, r.CRLNumber+1, now
	return r, err
}

// makeCRL signs a list. Entries of expired certificates stay, since signatures are
// verified long after they were made.
func (s *Service) makeCRL(ctx context.Context, a *authority, number int64, now time.Time, revoked []Issued) ([]byte, error) {
	thisUpdate := laterOf(now.Add(-skew).UTC().Truncate(time.Second), a.certificate.NotBefore)
	t := &x509gost.CRLTemplate{
		ThisUpdate: thisUpdate,
		NextUpdate: now.Add(s.config.CRLLife).UTC().Truncate(time.Second),
		Number:     numberBytes(number),
		Revoked:    make([]x509gost.RevokedEntry, 0, len(revoked)),
	}
	for _, i := range revoked {
		t.Revoked = append(t.Revoked, x509gost.RevokedEntry{
			SerialNumber: i.Serial,
			At:           i.RevokedAt.UTC().Truncate(time.Second),
			Reason:       i.Reason,
		})
	}
	der, err := x509gost.CreateRevocationList(t, a.certificate, a.key.Suite, s.sign(ctx, a.key))
	if err != nil {
		return nil, fmt.Errorf("authority: making revocation list %d of %s: %w", number, a.name, err)
	}
	return der, nil
}

// numberBytes is a cRLNumber, big-endian without needless zeros.
func numberBytes(n int64) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(n))
	for len(b) > 1 && b[0] == 0 {
		b = b[1:]
	}
	return b
}
