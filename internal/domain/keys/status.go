// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"errors"
	"strconv"
	"unicode/utf8"

	"tamga/internal/domain/authority"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/policy"
)

// maxComment limits the comment on a revocation, in characters.
const maxComment = 1000

// StatusOrder asks for another status of a certificate.
type StatusOrder struct {
	Status  Status // Active lifts a hold
	Reason  int    // CRLReason, for Revoked
	Comment string
	// PIN of the key. It is optional, since a user who has lost it must be able to
	// revoke. A wrong PIN is refused.
	PIN string `json:"-"`
}

// acts maps a status to the action of the access policy that sets it and to its event.
var acts = map[Status]struct {
	action policy.Action
	event  notify.EventType
}{
	Revoked: {policy.RevokeCertificate, notify.CertificateRevoked},
	Hold:    {policy.HoldCertificate, notify.CertificateHeld},
	Active:  {policy.UnholdCertificate, notify.CertificateUnheld},
}

// SetStatus revokes a certificate of the built-in authority, puts it on hold or lifts
// the hold, and has the revocation list renewed, at once. Faults:
// certificate_not_found, invalid_certificate_status, invalid_parameters, invalid_pin,
// access_denied, wrong_operation (also for a certificate of another authority).
func (s *Service) SetStatus(ctx context.Context, a Act, id string, o StatusOrder) (*Certificate, error) {
	act, ok := acts[o.Status]
	if !ok {
		return nil, unknownStatus()
	}
	if err := s.guard(ctx, a, act.action); err != nil {
		return nil, err
	}
	c, err := s.Find(ctx, a.Who.UserID, id)
	if err != nil {
		return nil, err
	}
	if o.PIN != "" {
		if err := s.open(ctx, c, o.PIN, s.opens); err != nil {
			return nil, err
		}
	}
	var changed *Certificate
	err = s.change(ctx, a, c.UserID, func(ctx context.Context) (_ any, err error) {
		if err := s.setStatus(ctx, c, o); err != nil {
			return nil, fault.Rollback(err)
		}
		if changed, err = s.Find(ctx, a.Who.UserID, strconv.FormatInt(c.ID, 10)); err != nil {
			return nil, fault.Rollback(err)
		}
		return changed, fault.Rollback(s.emit(ctx, act.event, c.UserID, a.Who.UserID, "certificate "+strconv.FormatInt(c.ID, 10)))
	})
	if err != nil {
		return nil, err
	}
	return changed, nil
}

func unknownStatus() error {
	return fault.New(fault.InvalidParameters, "Status: want REVOKED, HOLD or ACTIVE")
}

func revokedAlready(c *Certificate) *fault.Error {
	return fault.Newf(fault.CertificateStatus, "certificate %d is revoked or on hold already", c.ID)
}

func notOnHold(c *Certificate) *fault.Error {
	return fault.Newf(fault.CertificateStatus, "certificate %d is not on hold", c.ID)
}

// checkStatus checks an order without carrying it out.
func checkStatus(c *Certificate, o StatusOrder) error {
	switch {
	case c.Outside:
		return fault.Newf(fault.WrongOperation, "certificate %d was issued by another authority: have it revoked there", c.ID)
	case o.Status == Revoked && (!authority.ValidReason(o.Reason) || o.Reason == ReasonHold):
		return fault.Newf(fault.InvalidParameters, "revocation reason %d: want 0 to 5, 9 or 10", o.Reason)
	case utf8.RuneCountInString(o.Comment) > maxComment:
		return fault.Newf(fault.InvalidParameters, "the comment is too long: at most %d characters", maxComment)
	}
	return nil
}

// setStatus carries out an order, inside a transaction.
func (s *Service) setStatus(ctx context.Context, c *Certificate, o StatusOrder) error {
	if err := checkStatus(c, o); err != nil {
		return err
	}
	var err error
	switch o.Status {
	case Revoked:
		err = s.Authority.Revoke(ctx, c.X509.SerialNumber, o.Reason, s.Now())
	case Hold:
		err = s.Authority.Revoke(ctx, c.X509.SerialNumber, ReasonHold, s.Now())
	default:
		err = s.Authority.Unhold(ctx, c.X509.SerialNumber)
	}
	switch {
	case errors.Is(err, authority.ErrAlreadyRevoked):
		return revokedAlready(c).With(err)
	case errors.Is(err, authority.ErrNotOnHold):
		return notOnHold(c).With(err)
	case err != nil:
		return err
	}
	return s.StatusStore.NoteComment(ctx, c.ID, o.Comment)
}
