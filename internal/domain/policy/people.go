// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"slices"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
)

// Kind is one of the three policies that a user has.
type Kind string

// The kinds.
const (
	Access       Kind = "access"       // the actions the user may not perform
	Operation    Kind = "operation"    // the actions that need a confirmation
	Notification Kind = "notification" // which events the user is notified of, and how
)

// Kinds lists the kinds.
func Kinds() []Kind { return []Kind{Access, Operation, Notification} }

// Setting is a policy set for a user, for a group or for the installation. The setting of
// the user is used if there is one, then that of the group, then that of the
// installation. They are not merged.
type Setting struct {
	Actions   Action              // of Access and Operation
	Notifiers map[string][]string // of Notification: by type of event; unknown types are kept
	// Fixed keeps operators from changing the policies of users. In the setting of a user
	// it has no effect.
	Fixed bool
}

// Set holds what is set of one kind for a user and for the user's group. nil: nothing is set.
type Set struct{ Own, Group *Setting }

// Scope is where the setting is set that applies to a user.
type Scope string

// The scopes, the first that has a setting first; see Setting.
const (
	ForUser         Scope = "user"
	ForGroup        Scope = "group"
	ForInstallation Scope = "installation"
)

// Scope returns the scope whose setting applies.
func (s Set) Scope() Scope {
	switch {
	case s.Own != nil:
		return ForUser
	case s.Group != nil:
		return ForGroup
	}
	return ForInstallation
}

// Reach decides whether an operator may act on a user. Package reach satisfies it.
type Reach interface {
	// Reach returns nil or the fault user_not_found; see package reach.
	Reach(ctx context.Context, who audit.Principal, userID string) error
}

// Events is called when who changed a policy of a user, in the transaction of ctx.
type Events interface {
	PolicyChanged(ctx context.Context, who audit.Principal, userID string) error
}

// Confirmations cancels what a user has begun to confirm. [confirm.Canceller] satisfies it.
type Confirmations interface {
	// CancelAll cancels the open confirmations of a user, in the transaction of ctx. reason
	// is a short sentence for clients.
	CancelAll(ctx context.Context, who audit.Principal, userID, reason string) error
}

// Editor shows and changes the policies of users for operators and administrators. It needs
// users and messages, which need Service.
type Editor struct {
	*Service
	Users         Reach
	Events        Events
	Confirmations Confirmations
	Notifiers     []string // that users may choose from, in the order they are told of them
}

// Permit returns nil when the user may perform every action in a, otherwise the
// fault access_denied.
func (s *Service) Permit(ctx context.Context, userID string, a Action) error {
	set, err := s.set(ctx, userID, Access)
	if err != nil {
		return err
	}
	return s.PermitBy(set, a)
}

// PermitBy is Permit for an access policy that the caller has read.
func (s *Service) PermitBy(access Set, a Action) error {
	if denied := s.effective(Access, access).Actions & whole(a); denied != 0 {
		return fault.Newf(fault.AccessDenied, "the access policy of the user does not allow %s", denied)
	}
	return nil
}

// NeedsConfirmation reports whether one of the actions needs a confirmation by the user.
func (s *Service) NeedsConfirmation(ctx context.Context, userID string, a Action) (bool, error) {
	set, err := s.set(ctx, userID, Operation)
	return err == nil && s.NeedsConfirmationBy(set, a), err
}

// NeedsConfirmationBy is NeedsConfirmation for an operation policy that the caller has read.
func (s *Service) NeedsConfirmationBy(operation Set, a Action) bool {
	return s.effective(Operation, operation).Actions&whole(a) != 0
}

// whole adds the actions that an action contains. A user who may not sign one document
// may not sign several: otherwise a batch of one would bypass the policy.
func whole(a Action) Action {
	if a&SignDocuments != 0 {
		a |= SignDocument
	}
	return a
}

// Effective returns the setting that applies to a user.
func (s *Service) Effective(ctx context.Context, userID string, k Kind) (Setting, error) {
	set, err := s.set(ctx, userID, k)
	if err != nil {
		return Setting{}, err
	}
	return s.effective(k, set), nil
}

// set reads what is set for a user.
func (s *Service) set(ctx context.Context, userID string, k Kind) (set Set, err error) {
	set.Own, set.Group, err = s.Store.Settings(ctx, userID, k)
	return set, err
}

// effective applies the order of the three places; see Setting.
func (s *Service) effective(k Kind, set Set) Setting {
	p := s.Defaults[k]
	if set.Group != nil {
		p = *set.Group
	}
	if set.Own != nil {
		p.Actions, p.Notifiers = set.Own.Actions, set.Own.Notifiers
	}
	return p
}

// Weakens reports whether a new setting of a user asks for less, allows more or tells the user
// less than the one that applies now. The fault is invalid_parameters.
func (s *Service) Weakens(ctx context.Context, userID string, k Kind, wanted Setting) (bool, error) {
	wanted, err := wanted.Normal()
	if err != nil {
		return false, err
	}
	have, err := s.Effective(ctx, userID, k)
	wanted.Fixed = have.Fixed // not of a user
	return err == nil && wanted.Weaker(have), err
}

// Weaker reports whether a setting asks for less, allows more or tells less than another one, in
// any respect.
func (s Setting) Weaker(than Setting) bool {
	if than.Actions&^s.Actions != 0 || than.Fixed && !s.Fixed {
		return true
	}
	for event, notifiers := range than.Notifiers {
		for _, n := range notifiers {
			if !slices.Contains(s.Notifiers[event], n) {
				return true
			}
		}
	}
	return false
}

// Get returns the setting that applies to a user, for an operator. The fault is
// user_not_found.
func (s *Editor) Get(ctx context.Context, who audit.Principal, userID string, k Kind) (Setting, error) {
	p, _, err := s.Scoped(ctx, who, userID, k)
	return p, err
}

// Scoped is Get with the scope of the setting.
func (s *Editor) Scoped(ctx context.Context, who audit.Principal, userID string, k Kind) (Setting, Scope, error) {
	if err := s.Users.Reach(ctx, who, userID); err != nil {
		return Setting{}, "", err
	}
	set, err := s.set(ctx, userID, k)
	if err != nil {
		return Setting{}, "", err
	}
	return s.effective(k, set), set.Scope(), nil
}

// SetActions replaces the access or operation policy of a user; an empty set is valid.
// Faults: user_not_found, invalid_parameters, wrong_operation where the policy is fixed.
func (s *Editor) SetActions(ctx context.Context, who audit.Principal, userID string, k Kind, a Action) error {
	if err := checkActions(a); err != nil {
		return err
	}
	return s.change(ctx, who, userID, k, Setting{Actions: a})
}

// SetNotifiers replaces the notification policy of a user: the user is not notified of
// other events. The faults are those of SetActions.
func (s *Editor) SetNotifiers(ctx context.Context, who audit.Principal, userID string, notifiers map[string][]string) error {
	notifiers, err := normalNotifiers(notifiers)
	if err != nil {
		return err
	}
	return s.change(ctx, who, userID, Notification, Setting{Notifiers: notifiers})
}

func (s *Editor) change(ctx context.Context, who audit.Principal, userID string, k Kind, wanted Setting) error {
	return s.Store.Atomic(ctx, lock.User(userID), func(ctx context.Context) error {
		if err := s.Users.Reach(ctx, who, userID); err != nil {
			return err
		}
		have, err := s.Effective(ctx, userID, k)
		if err != nil {
			return err
		}
		if have.Fixed {
			return fault.Newf(fault.WrongOperation, "the %s policy is fixed: only an administrator may change it", k)
		}
		if err := s.Store.SetOwn(ctx, userID, k, &wanted); err != nil {
			return fault.Rollback(err)
		}
		return fault.Rollback(s.changed(ctx, who, userID, k))
	})
}

// changed does what follows a change of a policy of a user, in the transaction of ctx.
func (s *Editor) changed(ctx context.Context, who audit.Principal, userID string, k Kind) error {
	if k != Notification {
		if err := s.Confirmations.CancelAll(ctx, who, userID, "a policy of the user was changed"); err != nil {
			return err
		}
	}
	return s.Events.PolicyChanged(ctx, who, userID)
}

// SetUser sets a policy of a user for an administrator, even if it is fixed. With nil the
// setting of the group applies again. Faults: user_not_found, invalid_parameters.
func (s *Editor) SetUser(ctx context.Context, userID string, k Kind, wanted *Setting) error {
	wanted, err := normal(wanted)
	if err != nil {
		return err
	}
	return s.Store.Atomic(ctx, lock.User(userID), func(ctx context.Context) error {
		if err := s.Store.SetOwn(ctx, userID, k, wanted); err != nil {
			return fault.Rollback(err)
		}
		return fault.Rollback(s.changed(ctx, audit.Principal{}, userID, k))
	})
}

// SetGroup sets a policy for the users of a group who have no setting of their own. With
// nil the setting of the installation applies again. Faults: object_not_found,
// invalid_parameters.
func (s *Editor) SetGroup(ctx context.Context, group string, k Kind, wanted *Setting) error {
	wanted, err := normal(wanted)
	if err != nil {
		return err
	}
	return s.Store.SetGroup(ctx, group, k, wanted)
}

// Normal checks a setting and returns it with the names of notifiers as the specification
// spells them. The fault is invalid_parameters.
func (s Setting) Normal() (Setting, error) {
	var err error
	if s.Notifiers, err = normalNotifiers(s.Notifiers); err == nil {
		err = checkActions(s.Actions)
	}
	return s, err
}

// normal is Normal for a setting that may be nil.
func normal(s *Setting) (*Setting, error) {
	if s == nil {
		return nil, nil
	}
	n, err := s.Normal()
	return &n, err
}

func checkActions(a Action) error {
	if a&^All != 0 {
		return fault.Newf(fault.InvalidParameters, "action: unknown bits in %d, want at most %d", uint32(a), uint32(All))
	}
	return nil
}

// ParseActions reads a set of actions as clients write it: names and numbers, each of one
// action or of several. The fault is invalid_parameters.
func ParseActions(list []string) (Action, error) {
	var set Action
	for _, text := range list {
		a, err := ParseAction(text)
		if err != nil {
			return 0, err
		}
		set |= a
	}
	return set, nil
}

// NotifiersOf returns the notifiers that a user gets one type of event by.
func (s *Service) NotifiersOf(ctx context.Context, userID, event string) ([]string, error) {
	p, err := s.Effective(ctx, userID, Notification)
	return p.Notifiers[event], err
}
