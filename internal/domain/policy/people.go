package policy

import (
	"context"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// Kind is one of the three policies that a user has.
type Kind string

// The kinds.
const (
	Access       Kind = "access"       // the actions the user may not perform
	Operation    Kind = "operation"    // the actions that need a confirmation
	Notification Kind = "notification" // what the user is told of, and how
)

// Kinds lists the kinds.
func Kinds() []Kind { return []Kind{Access, Operation, Notification} }

// Setting is a policy as one of three places sets it: a user, a group, the
// installation. What is set for a user counts before what is set for the group, and
// that before the installation's; they are not mixed.
type Setting struct {
	Actions   Action              // of Access and Operation
	Notifiers map[string][]string // of Notification: by type of event; types nobody knows are kept
	// Fixed keeps operators from changing the policies of users. A user's own setting
	// has no say in it.
	Fixed bool
}

// Reach decides whether an operator may act on a user. The room user satisfies it.
type Reach interface {
	// Reach returns nil or the fault user_not_found; see package user.
	Reach(ctx context.Context, who audit.Principal, userID string) error
}

// Events are told that who changed a policy of a user, in the transaction of ctx.
type Events interface {
	PolicyChanged(ctx context.Context, who audit.Principal, userID string) error
}

// Permit returns nil when the user may perform every action in a, otherwise the
// fault access_denied.
func (s *Service) Permit(ctx context.Context, userID string, a Action) error {
	p, err := s.Effective(ctx, userID, Access)
	if err != nil {
		return err
	}
	if denied := p.Actions & whole(a); denied != 0 {
		return fault.Newf(fault.AccessDenied, "the access policy of the user does not allow %s", denied)
	}
	return nil
}

// NeedsConfirmation reports whether one of the actions waits for a confirmation when
// the user performs it.
func (s *Service) NeedsConfirmation(ctx context.Context, userID string, a Action) (bool, error) {
	p, err := s.Effective(ctx, userID, Operation)
	return p.Actions&whole(a) != 0, err
}

// whole adds what an action is made of. Who may not sign a document may not sign
// several of them: a batch of one would be a way round.
func whole(a Action) Action {
	if a&SignDocuments != 0 {
		a |= SignDocument
	}
	return a
}

// Effective is what counts for a user.
func (s *Service) Effective(ctx context.Context, userID string, k Kind) (Setting, error) {
	own, group, err := s.Store.Settings(ctx, userID, k)
	if err != nil {
		return Setting{}, err
	}
	p := s.Defaults[k]
	if group != nil {
		p = *group
	}
	if own != nil {
		p.Actions, p.Notifiers = own.Actions, own.Notifiers
	}
	return p, nil
}

// Get reads what counts for a user, for an operator. The fault is user_not_found.
func (s *Service) Get(ctx context.Context, who audit.Principal, userID string, k Kind) (Setting, error) {
	if err := s.Users.Reach(ctx, who, userID); err != nil {
		return Setting{}, err
	}
	return s.Effective(ctx, userID, k)
}

// SetActions replaces the access or operation policy of a user; no action is an
// answer, too. Faults: user_not_found, invalid_parameters, wrong_operation where the
// policy is fixed.
func (s *Service) SetActions(ctx context.Context, who audit.Principal, userID string, k Kind, a Action) error {
	if err := checkActions(a); err != nil {
		return err
	}
	return s.set(ctx, who, userID, k, Setting{Actions: a})
}

// SetNotifiers replaces the notification policy of a user: events that are not in it
// are not told of. Faults as of SetActions.
func (s *Service) SetNotifiers(ctx context.Context, who audit.Principal, userID string, notifiers map[string][]string) error {
	notifiers, err := normalNotifiers(notifiers)
	if err != nil {
		return err
	}
	return s.set(ctx, who, userID, Notification, Setting{Notifiers: notifiers})
}

func (s *Service) set(ctx context.Context, who audit.Principal, userID string, k Kind, wanted Setting) error {
	return s.Store.Atomic(ctx, func(ctx context.Context) error {
		if err := s.Users.Reach(ctx, who, userID); err != nil {
			return err
		}
		have, err := s.Effective(ctx, userID, k)
		if err != nil {
			return err
		}
		if have.Fixed {
			return fault.Newf(fault.WrongOperation, "the %s policy may not be changed here: the administrator has fixed it", k)
		}
		if err := s.Store.SetOwn(ctx, userID, k, &wanted); err != nil {
			return fault.Rollback(err)
		}
		return fault.Rollback(s.Events.PolicyChanged(ctx, who, userID))
	})
}

// SetUser sets a policy of a user for an administrator, whom nothing keeps from it;
// nil has the group's count again. Faults: user_not_found, invalid_parameters.
func (s *Service) SetUser(ctx context.Context, userID string, k Kind, wanted *Setting) error {
	wanted, err := normal(wanted)
	if err != nil {
		return err
	}
	return s.Store.Atomic(ctx, func(ctx context.Context) error {
		if err := s.Store.SetOwn(ctx, userID, k, wanted); err != nil {
			return fault.Rollback(err)
		}
		return fault.Rollback(s.Events.PolicyChanged(ctx, audit.Principal{}, userID))
	})
}

// SetGroup sets a policy for the users of a group who have none of their own; nil has
// the installation's count again. Faults: object_not_found, invalid_parameters.
func (s *Service) SetGroup(ctx context.Context, group string, k Kind, wanted *Setting) error {
	wanted, err := normal(wanted)
	if err != nil {
		return err
	}
	return s.Store.SetGroup(ctx, group, k, wanted)
}

// Normal checks a setting and spells notifiers as the interface does. The fault is
// invalid_parameters.
func (s Setting) Normal() (Setting, error) {
	var err error
	if s.Notifiers, err = normalNotifiers(s.Notifiers); err == nil {
		err = checkActions(s.Actions)
	}
	return s, err
}

// normal is Normal for a setting that may be none.
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

// ParseActions reads a set as clients write one: names and numbers, each of one action
// or of several. The fault is invalid_parameters.
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

// NotifiersOf are the notifiers that tell a user of one type of event.
func (s *Service) NotifiersOf(ctx context.Context, userID, event string) ([]string, error) {
	p, err := s.Effective(ctx, userID, Notification)
	return p.Notifiers[event], err
}
