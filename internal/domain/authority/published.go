// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"context"
	"errors"
	"fmt"
	"math"

	"tamga/pki/x509gost"
)

// Published is a revocation list of an authority that was published before the database went
// back to an earlier time.
type Published struct {
	Authority string
	Number    int64
	// Missing are its revocations that the database does not have.
	Missing []x509gost.RevokedEntry
}

// Compare compares a published list with the database. The list must be one of our
// authorities.
func (s *Service) Compare(ctx context.Context, list *x509gost.RevocationList) (Published, error) {
	p := Published{}
	all, err := s.All(ctx)
	if err != nil {
		return p, err
	}
	for _, a := range all {
		if p.Authority == "" && list.CheckSignatureFrom(a.Certificate) == nil {
			p.Authority = a.Name
		}
	}
	if p.Authority == "" {
		return p, errors.New("authority: the revocation list is of none of the built-in authorities")
	}
	for _, b := range list.Number {
		if p.Number > math.MaxInt64>>9 {
			return p, errors.New("authority: the number of the revocation list is not one of this program")
		}
		p.Number = p.Number<<8 | int64(b)
	}
	for _, e := range list.Revoked {
		i, found, err := s.store.Issued(ctx, e.SerialNumber)
		if err != nil {
			return p, err
		}
		if !found || i.RevokedAt.IsZero() || i.Reason == holdReason && e.Reason != holdReason {
			p.Missing = append(p.Missing, e)
		}
	}
	return p, nil
}

// Adopt records the missing revocations and renews the list of the authority, with a greater
// number than the published one. raise stores the number for that. A certificate that the
// database does not have was issued after the snapshot; its revocation is kept all the same.
func (s *Service) Adopt(ctx context.Context, p Published, raise func(ctx context.Context, authority string, published int64) error) error {
	return s.store.Atomic(ctx, func(ctx context.Context) error {
		a, err := s.authority(ctx, p.Authority)
		if err != nil {
			return err
		}
		for _, e := range p.Missing {
			reason := e.Reason
			if !ValidReason(reason) {
				reason = 0
			}
			_, err := s.store.AddIssued(ctx, Issued{Serial: e.SerialNumber, Authority: p.Authority, NotAfter: a.certificate.NotAfter, IssuedAt: e.At})
			if err == nil {
				_, err = s.store.MarkRevoked(ctx, e.SerialNumber, reason, e.At)
			}
			if err != nil {
				return err
			}
		}
		if err := raise(ctx, p.Authority, p.Number); err != nil {
			return err
		}
		if _, err := s.renew(ctx, p.Authority); err != nil {
			return fmt.Errorf("authority: renewing the revocation list of %s: %w", p.Authority, err)
		}
		return nil
	})
}
