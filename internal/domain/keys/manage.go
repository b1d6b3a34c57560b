// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/vault"
	"tamga/pki/suite"
)

// Act is an act of a user on their own keys.
type Act struct {
	Who audit.Principal

	run *operation.Run // of an operation; nil: the method was called directly
}

// Permitter checks the user's access policy; [policy.Service] satisfies it.
type Permitter interface {
	Permit(ctx context.Context, userID string, a policy.Action) error
}

// Confirmation decides which acts of a user need a confirmation.
type Confirmation interface {
	NeedsConfirmation(ctx context.Context, userID string, a policy.Action) (bool, error)
}

// Events sends notices; [notify.Service] satisfies it.
type Events interface {
	Emit(ctx context.Context, e notify.Event) error
}

// guard checks the policies before an act. Of an operation, they were asked a moment ago.
func (s *Service) guard(ctx context.Context, a Act, action policy.Action) error {
	if a.run != nil {
		if asked := a.run.Asked(); asked != action {
			return fmt.Errorf("keys: the policies were asked about %s, and the act is %s", asked, action)
		}
		return nil
	}
	needed, err := s.needed(ctx, a.Who, action)
	if err == nil && needed {
		err = operation.Unconfirmed(action)
	}
	return err
}

// needed checks the access policy and reports whether an act needs a confirmation.
func (s *Service) needed(ctx context.Context, who audit.Principal, action policy.Action) (bool, error) {
	if who.UserID == "" || s.Policy == nil {
		return false, errors.New("keys: an act needs a user and an access policy")
	}
	if err := s.Policy.Permit(ctx, who.UserID, action); err != nil || s.Confirmation == nil {
		return false, err
	}
	return s.Confirmation.NeedsConfirmation(ctx, who.UserID, action)
}

// emit notifies the user of an event, in the transaction of ctx.
func (s *Service) emit(ctx context.Context, event notify.EventType, userID, actor, detail string) error {
	if s.Events == nil {
		return nil
	}
	return s.Events.Emit(ctx, notify.Event{Type: event, UserID: userID, Actor: actor, Detail: detail})
}

// Find is Resolve for the management of certificates: a missing certificate, one of
// another user and a text that is not a number are the fault certificate_not_found.
func (s *Service) Find(ctx context.Context, userID, identifier string) (*Certificate, error) {
	c, err := s.Resolve(ctx, userID, identifier)
	if f, ok := fault.As(err); ok && f.Code == fault.InvalidCertificate {
		return nil, fault.New(fault.CertificateNotFound, f.Message)
	}
	return c, err
}

// PINMode is the rule of the installation about new PINs.
type PINMode string

// The modes, by their names in the specification.
const (
	PINRequired PINMode = "Required"
	PINForbid   PINMode = "Forbid"
	PINAllow    PINMode = "Allow"
)

// PINRules are the rules of the installation about new PINs, for people who choose one.
type PINRules struct {
	Mode   PINMode
	Length int  // least number of characters
	Simple bool // PINs that SimplePIN reports are allowed
}

// PINRules returns the rules about new PINs of users.
func (s *Service) PINRules() PINRules {
	return PINRules{Mode: s.PINMode, Length: s.PINLength, Simple: s.SimplePINs}
}

// checkPIN checks the form of a new PIN; "" is a key without one. Existing PINs are not
// checked.
func (s *Service) checkPIN(pin string) error {
	switch n := utf8.RuneCountInString(pin); {
	case len(pin) > vault.MaxPIN:
		return fault.Newf(fault.InvalidPIN, "the new PIN is too long: want at most %d bytes", vault.MaxPIN)
	case pin == "":
		return nil
	case n < s.PINLength:
		return fault.Newf(fault.InvalidPIN, "the new PIN is too short: it has %d characters, want at least %d", n, s.PINLength)
	case !s.SimplePINs && SimplePIN(pin):
		return fault.New(fault.InvalidPIN, "the new PIN is too simple: it repeats one character or counts up or down; choose another")
	}
	return nil
}

// SimplePIN reports whether a PIN repeats one character or counts up or down by one, such
// as 111111, 123456 and 654321. 0 follows 9.
func SimplePIN(pin string) bool {
	runes := []rune(pin)
	for _, step := range []rune{0, 1, -1} {
		simple := true
		for i := 1; i < len(runes) && simple; i++ {
			last, next := runes[i-1], runes[i]
			simple = next == last+step || step == 1 && last == '9' && next == '0' || step == -1 && last == '0' && next == '9'
		}
		if simple {
			return true
		}
	}
	return false
}

// checkNewPIN is checkPIN for PINs of users, which PINMode also applies to.
func (s *Service) checkNewPIN(pin string) error {
	if err := s.checkPIN(pin); err != nil {
		return err
	}
	switch {
	case pin == "" && s.PINMode == PINRequired:
		return fault.New(fault.InvalidPIN, "keys must have a PIN: give one")
	case pin != "" && s.PINMode == PINForbid:
		return fault.New(fault.InvalidPIN, "keys must not have a PIN: leave it out")
	}
	return nil
}

// ChangePIN sets or changes the PIN of a certificate's key, or removes it with an empty
// newPIN. Wrong old PINs are counted as in Sign. Faults: certificate_not_found,
// invalid_pin, access_denied, wrong_operation.
func (s *Service) ChangePIN(ctx context.Context, a Act, id, oldPIN, newPIN string) error {
	_, err := s.changePIN(ctx, a, id, oldPIN, newPIN)
	return err
}

// changePIN is ChangePIN and returns the certificate.
func (s *Service) changePIN(ctx context.Context, a Act, id, oldPIN, newPIN string) (changed *Certificate, err error) {
	if err := s.guard(ctx, a, policy.ChangePin); err != nil {
		return nil, err
	}
	c, err := s.Find(ctx, a.Who.UserID, id)
	if err != nil {
		return nil, err
	}
	if err := s.checkNewPIN(newPIN); err != nil {
		return nil, err
	}
	var opened vault.Key
	replace := func(ctx context.Context, key vault.Key, secret []byte) error {
		opened = key
		fresh := []byte(newPIN)
		defer clear(fresh)
		made, err := s.Holders.Rewrap(ctx, key, secret, fresh)
		if err != nil {
			return err
		}
		return s.change(ctx, a, c.UserID, func(ctx context.Context) (any, error) {
			// Only the sealed record that was opened is replaced: another process may
			// have changed the PIN meanwhile.
			replaced, err := s.Store.ReplaceSealed(ctx, c.KeyID, key.Sealed, made.Sealed, made.HasPIN)
			if err != nil {
				return nil, err
			}
			if !replaced {
				return nil, fault.New(fault.InvalidObjectState, "another request changed the PIN at the same time: try again")
			}
			now := *c
			now.HasPIN, changed = made.HasPIN, &now
			return changed, s.emit(ctx, notify.CertificatePinChanged, c.UserID, a.Who.UserID, "certificate "+strconv.FormatInt(c.ID, 10))
		})
	}
	err = s.open(ctx, c, oldPIN, replace)
	if fault.Is(err, fault.InvalidObjectState) && s.moved(ctx, c, opened) {
		err = s.open(ctx, c, oldPIN, replace)
	}
	return changed, err
}

// moved reports whether a key was sealed under another master key since it was read.
func (s *Service) moved(ctx context.Context, c *Certificate, read vault.Key) bool {
	now, _, err := s.key(ctx, nil, c)
	if err != nil {
		return false
	}
	before, _ := vault.KeyID(read.Sealed)
	after, _ := vault.KeyID(now.Sealed)
	return before != after
}

// CheckPIN reports whether a PIN is that of a certificate's key. Attempts are counted as
// in Sign; otherwise it would bypass the limit. reason is the text for a wrong PIN. With
// attempts it includes the number of attempts left. A key without a PIN accepts any. The
// fault is certificate_not_found.
func (s *Service) CheckPIN(ctx context.Context, who audit.Principal, id, pin string, attempts bool) (valid bool, reason string, err error) {
	c, err := s.Find(ctx, who.UserID, id)
	if err != nil {
		return false, "", err
	}
	err = s.open(ctx, c, pin, s.opens)
	f, ok := fault.As(err)
	if err == nil || !ok || f.Code != fault.InvalidPIN {
		return err == nil, "", err
	}
	if reason = f.Message; !attempts {
		return false, reason, nil
	}
	failures, err := s.PINStore.PINFailures(ctx, c.KeyID)
	if err != nil {
		return false, "", err
	}
	return false, fmt.Sprintf("%s; attempts left: %d", reason, max(0, s.PINAttempts-failures)), nil
}

// AttemptsLeft returns how many wrong PINs in a row the key of a certificate still takes. The certificate is named as for
// Resolve, with its fault.
func (s *Service) AttemptsLeft(ctx context.Context, userID, certificate string) (int, error) {
	c, err := s.Resolve(ctx, userID, certificate)
	if err != nil {
		return 0, err
	}
	failures, err := s.PINStore.PINFailures(ctx, c.KeyID)
	return max(0, s.PINAttempts-failures), err
}

// opens checks a PIN without using the key.
func (s *Service) opens(ctx context.Context, key vault.Key, secret []byte) error {
	_, err := s.Holders.Sign(ctx, key, secret, []suite.Digest{})
	return err
}

// MakeDefault makes a certificate the default one of its user. The fault is
// certificate_not_found.
func (s *Service) MakeDefault(ctx context.Context, a Act, id string) (*Certificate, error) {
	c, err := s.Find(ctx, a.Who.UserID, id)
	if err != nil {
		return nil, err
	}
	if err := s.SetDefault(ctx, c.UserID, c.ID); err != nil {
		return nil, err
	}
	c.Default = true
	return c, nil
}

// SetFriendlyName sets the friendly name of a certificate; "" removes it. Names are
// unique among the certificates of a user. Faults: certificate_not_found,
// duplicate_friendly_name, invalid_frinendly_name_length.
func (s *Service) SetFriendlyName(ctx context.Context, a Act, id, name string) (*Certificate, error) {
	name = strings.TrimSpace(name)
	if n := utf8.RuneCountInString(name); n > maxFriendlyName {
		return nil, fault.Newf(fault.FriendlyNameLength, "the friendly name has %d characters: at most %d", n, maxFriendlyName)
	}
	var c *Certificate
	err := s.Store.Atomic(ctx, lock.User(a.Who.UserID), func(ctx context.Context) (err error) {
		if c, err = s.Find(ctx, a.Who.UserID, id); err != nil {
			return err
		}
		others, err := s.Store.Certificates(ctx, c.UserID)
		if err != nil {
			return err
		}
		for _, o := range others {
			if name != "" && o.ID != c.ID && strings.EqualFold(o.FriendlyName, name) {
				return fault.Newf(fault.DuplicateFriendlyName, "certificate %d has this name already", o.ID)
			}
		}
		c.FriendlyName = name
		return s.Store.SetFriendlyName(ctx, c.ID, name)
	})
	return c, err
}

// Delete removes a certificate and, if nothing else needs it, its key. Existing
// signatures stay valid: it does not revoke. What was encrypted for a certificate for encryption becomes
// unreadable, so that destroyKey must say that this is known. Faults: certificate_not_found,
// invalid_parameters without destroyKey, access_denied, wrong_operation.
func (s *Service) Delete(ctx context.Context, a Act, id string, destroyKey bool) (*Certificate, error) {
	if err := s.guard(ctx, a, policy.DeleteCertificate); err != nil {
		return nil, err
	}
	var c *Certificate
	var key KeyRecord
	err := s.change(ctx, a, a.Who.UserID, func(ctx context.Context) (_ any, err error) {
		if c, err = s.Find(ctx, a.Who.UserID, id); err != nil {
			return nil, err
		}
		if err := mayDelete(c, destroyKey); err != nil {
			return nil, err
		}
		if key, _, err = s.Store.Key(ctx, c.KeyID); err != nil {
			return nil, fault.Rollback(err)
		}
		if err := s.Store.DeleteCertificate(ctx, c.ID); err != nil {
			return nil, fault.Rollback(err)
		}
		if err := s.Store.DeleteUnusedKey(ctx, c.KeyID); err != nil {
			return nil, fault.Rollback(err)
		}
		return c, fault.Rollback(s.emit(ctx, notify.CertificateDeleted, c.UserID, a.Who.UserID, "certificate "+strconv.FormatInt(c.ID, 10)))
	})
	if err == nil {
		s.destroyUnused(ctx, key)
	}
	return c, err
}

// mayDelete refuses to delete a certificate for encryption if the order does not say that its key may be
// destroyed.
func mayDelete(c *Certificate, destroyKey bool) error {
	if destroyKey || !c.ForEncryption() {
		return nil
	}
	return fault.Newf(fault.InvalidParameters, "destroyKey: certificate %d (%s) is for encryption, and everything that was encrypted for it becomes unreadable: send true to delete it", c.ID, c.X509.Subject)
}
