// Package user owns the people the service knows: their registration, names and
// groups, operators, and locking.
package user

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/google/uuid"

	"tamga/internal/domain/fault"
)

// User is a registered person.
type User struct {
	ID          string // GUID, lower case
	Login       string // as registered; compared by FoldLogin
	DisplayName string
	Group       string
	Operator    bool // manages the users of the groups that OperatorGroups names
	Locked      bool
	CreatedAt   time.Time
}

// Group is a set of users that operators are responsible for.
type Group struct {
	Name      string // unique, letter case counts
	Title     string // for people
	CreatedAt time.Time
}

// What a Store answers besides its own failures.
var (
	ErrNotFound  = errors.New("user: not found")
	ErrDuplicate = errors.New("user: already exists")
	ErrNoGroup   = errors.New("user: no such group")
)

// Query selects a page of users in the order of their folded logins.
type Query struct {
	Groups []string // only users of these groups; nil means all groups, empty means none
	After  string   // only logins after this one; "" begins at the first
	Limit  int      // 1 to MaxPage
}

// MaxPage is the most a list returns at once.
const MaxPage = 1000

// Store keeps users and groups.
type Store interface {
	Atomic(ctx context.Context, fn func(ctx context.Context) error) error

	// AddUser returns ErrDuplicate for a login (compared by folded) or id that
	// is taken and ErrNoGroup for an unknown group.
	AddUser(ctx context.Context, u User, folded string) error
	UserByID(ctx context.Context, id string) (User, error)                   // or ErrNotFound
	UserByLogin(ctx context.Context, folded string) (User, error)            // or ErrNotFound
	ListUsers(ctx context.Context, q Query) ([]User, error)                  // After is folded
	SetLocked(ctx context.Context, id string, locked bool) error             // or ErrNotFound
	SetDisplayName(ctx context.Context, id, name string) error               // or ErrNotFound
	SetOperatorGroups(ctx context.Context, id string, groups []string) error // or ErrNoGroup
	OperatorGroups(ctx context.Context, id string) ([]string, error)         // sorted

	AddGroup(ctx context.Context, g Group) error // or ErrDuplicate
	Groups(ctx context.Context) ([]Group, error) // sorted by name
}

// Sessions ends what a user has signed in to. The room auth satisfies it.
type Sessions interface {
	// EndAll ends every token of the user, in the transaction of ctx.
	EndAll(ctx context.Context, userID string) error
}

// Service registers and changes users.
type Service struct {
	Store    Store
	Sessions Sessions
	Now      func() time.Time
	Rand     io.Reader // of identifiers
}

// Registration describes a new user.
type Registration struct {
	Login       string // 1 to MaxLogin characters
	DisplayName string // up to MaxDisplayName characters; "" stands for the login
	Group       string
	Operator    bool
	Groups      []string // of an operator: what they are responsible for, at least one
}

// Register adds a user. Faults: invalid_parameters for names and groups,
// duplicate_login.
func (s *Service) Register(ctx context.Context, r Registration) (User, error) {
	if err := checkName("login", r.Login, 1, MaxLogin); err != nil {
		return User{}, err
	}
	if err := checkName("display name", r.DisplayName, 0, MaxDisplayName); err != nil {
		return User{}, err
	}
	folded := FoldLogin(r.Login)
	if folded == "" {
		return User{}, fault.New(fault.InvalidParameters, "login: want at least one visible character")
	}
	switch {
	case r.Operator && len(r.Groups) == 0:
		return User{}, fault.New(fault.InvalidParameters, "groups: an operator is responsible for at least one group")
	case !r.Operator && len(r.Groups) != 0:
		return User{}, fault.New(fault.InvalidParameters, "groups: only an operator is responsible for groups")
	case r.Operator && r.Group == "":
		r.Group = r.Groups[0]
	}
	id, err := uuid.NewRandomFromReader(s.Rand)
	if err != nil {
		return User{}, fmt.Errorf("user: making an identifier: %w", err)
	}
	u := User{
		ID: id.String(), Login: r.Login, DisplayName: r.DisplayName, Group: r.Group,
		Operator: r.Operator, CreatedAt: s.now(),
	}
	if u.DisplayName == "" {
		u.DisplayName = u.Login
	}
	groups := slices.Compact(slices.Sorted(slices.Values(r.Groups)))
	err = s.Store.Atomic(ctx, func(ctx context.Context) error {
		if err := s.Store.AddUser(ctx, u, folded); err != nil || !u.Operator {
			return err
		}
		return s.Store.SetOperatorGroups(ctx, u.ID, groups)
	})
	switch {
	case errors.Is(err, ErrDuplicate):
		return User{}, fault.Newf(fault.DuplicateLogin, "login: %q is taken", r.Login).With(err)
	case errors.Is(err, ErrNoGroup):
		return User{}, fault.New(fault.InvalidParameters, "group: unknown, want the name of an existing group").With(err)
	case err != nil:
		return User{}, err
	}
	return u, nil
}

// ByID finds a user. The fault is user_not_found.
func (s *Service) ByID(ctx context.Context, id string) (User, error) {
	u, err := s.Store.UserByID(ctx, id)
	return u, notFound(err)
}

// ByLogin finds a user without regard to letter case. The fault is user_not_found.
func (s *Service) ByLogin(ctx context.Context, login string) (User, error) {
	u, err := s.Store.UserByLogin(ctx, FoldLogin(login))
	return u, notFound(err)
}

// List returns a page of users; pass the login of its last one as the next After.
func (s *Service) List(ctx context.Context, q Query) ([]User, error) {
	if q.Limit < 1 || q.Limit > MaxPage {
		return nil, fault.Newf(fault.InvalidParameters, "limit: want 1 to %d", MaxPage)
	}
	q.After = FoldLogin(q.After)
	return s.Store.ListUsers(ctx, q)
}

// OperatorGroups names the groups an operator is responsible for.
func (s *Service) OperatorGroups(ctx context.Context, id string) ([]string, error) {
	return s.Store.OperatorGroups(ctx, id)
}

// Rename changes the display name. Faults: invalid_parameters, user_not_found.
func (s *Service) Rename(ctx context.Context, id, displayName string) error {
	if err := checkName("display name", displayName, 1, MaxDisplayName); err != nil {
		return err
	}
	return notFound(s.Store.SetDisplayName(ctx, id, displayName))
}

// Lock shuts a user out: from the moment it returns no token of theirs is
// accepted and none is issued. Locking a locked user changes nothing. The fault
// is user_not_found.
func (s *Service) Lock(ctx context.Context, id string) error {
	return s.Store.Atomic(ctx, func(ctx context.Context) error {
		if err := notFound(s.Store.SetLocked(ctx, id, true)); err != nil {
			return err
		}
		return s.Sessions.EndAll(ctx, id)
	})
}

// Unlock lets a user in again; tokens from before the lock stay ended. The
// fault is user_not_found.
func (s *Service) Unlock(ctx context.Context, id string) error {
	return notFound(s.Store.SetLocked(ctx, id, false))
}

// AddGroup makes a group. Faults: invalid_parameters, invalid_object_state for
// a name that is taken.
func (s *Service) AddGroup(ctx context.Context, name, title string) (Group, error) {
	if err := checkName("group", name, 1, MaxGroup); err != nil {
		return Group{}, err
	}
	if err := checkName("title", title, 0, MaxDisplayName); err != nil {
		return Group{}, err
	}
	g := Group{Name: name, Title: title, CreatedAt: s.now()}
	err := s.Store.AddGroup(ctx, g)
	if errors.Is(err, ErrDuplicate) {
		return Group{}, fault.Newf(fault.InvalidObjectState, "group: %q exists already", name).With(err)
	}
	if err != nil {
		return Group{}, err
	}
	return g, nil
}

// Groups lists the groups by name.
func (s *Service) Groups(ctx context.Context) ([]Group, error) {
	return s.Store.Groups(ctx)
}

// now is the time as stores keep it, so that a record compares equal to its
// stored form.
func (s *Service) now() time.Time { return s.Now().UTC().Truncate(time.Millisecond) }

func notFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return fault.New(fault.UserNotFound, "user not found").With(err)
	}
	return err
}
