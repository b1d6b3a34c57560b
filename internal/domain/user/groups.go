// SPDX-License-Identifier: Apache-2.0

package user

import (
	"context"
	"errors"
	"slices"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
)

// Group is a set of users that operators are responsible for.
type Group struct {
	Name      string // unique, case-sensitive
	Title     string // for people
	CreatedAt time.Time
}

// GroupStore keeps groups and the operators who are responsible for them.
type GroupStore interface {
	AddGroup(ctx context.Context, g Group) error // or ErrDuplicate
	Groups(ctx context.Context) ([]Group, error) // sorted by name
	// GroupsAfter returns at most limit groups, sorted by name, after the one with a name.
	GroupsAfter(ctx context.Context, after string, limit int) ([]Group, error)
	Group(ctx context.Context, name string) (Group, error)                   // or ErrNoGroup
	RenameGroup(ctx context.Context, name, to string) error                  // with users, operators and policies; ErrNoGroup, ErrDuplicate
	DeleteGroup(ctx context.Context, name string) error                      // with its policies; ErrNoGroup, ErrGroupUsed
	SetOperatorGroups(ctx context.Context, id string, groups []string) error // or ErrNoGroup
	OperatorGroups(ctx context.Context, id string) ([]string, error)         // sorted
	Operators(ctx context.Context) ([]User, error)                           // in the order of their Keys
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
	err := s.GroupStore.AddGroup(ctx, g)
	if errors.Is(err, ErrDuplicate) {
		return Group{}, groupTaken(name).With(err)
	}
	if err != nil {
		return Group{}, err
	}
	return g, nil
}

// RenameGroup gives a group another name. Its users, operators and policies stay. Faults:
// invalid_parameters, also for an unknown group, and invalid_object_state for a name that is taken.
func (s *Service) RenameGroup(ctx context.Context, name, to string) error {
	if err := checkName("group", to, 1, MaxGroup); err != nil {
		return err
	}
	err := s.GroupStore.RenameGroup(ctx, name, to)
	if errors.Is(err, ErrDuplicate) {
		return groupTaken(to).With(err)
	}
	return noGroup(err)
}

// DeleteGroup deletes a group and its policies. Faults: invalid_parameters for an unknown group,
// invalid_object_state for a group that has users or operators.
func (s *Service) DeleteGroup(ctx context.Context, name string) error {
	err := s.GroupStore.DeleteGroup(ctx, name)
	if errors.Is(err, ErrGroupUsed) {
		return fault.Newf(fault.InvalidObjectState, "group: %q has users or operators, move or delete them first", name).With(err)
	}
	return noGroup(err)
}

func groupTaken(name string) *fault.Error {
	return fault.Newf(fault.InvalidObjectState, "group: %q exists already", name)
}

// Groups returns the groups, sorted by name.
func (s *Service) Groups(ctx context.Context) ([]Group, error) {
	return s.GroupStore.Groups(ctx)
}

// GroupsAfter returns at most limit groups, sorted by name, after the one with a name, "" for the
// first ones.
func (s *Service) GroupsAfter(ctx context.Context, after string, limit int) ([]Group, error) {
	return s.GroupStore.GroupsAfter(ctx, after, limit)
}

// Group finds a group. The fault is object_not_found.
func (s *Service) Group(ctx context.Context, name string) (Group, error) {
	g, err := s.GroupStore.Group(ctx, name)
	if errors.Is(err, ErrNoGroup) {
		err = fault.New(fault.NotFound, "there is no such group").With(err)
	}
	return g, err
}

func noGroup(err error) error {
	if errors.Is(err, ErrNoGroup) {
		return fault.Rollback(fault.New(fault.InvalidParameters, "group: unknown, want the name of an existing group").With(err))
	}
	return err
}

// Operators returns all operators to an administrator, in the order of their Keys.
func (s *Service) Operators(ctx context.Context) ([]User, error) {
	return s.GroupStore.Operators(ctx)
}

// OperatorGroups returns the groups an operator is responsible for.
func (s *Service) OperatorGroups(ctx context.Context, id string) ([]string, error) {
	return s.GroupStore.OperatorGroups(ctx, id)
}

// SetOperatorGroups replaces the groups an operator is responsible for. Faults:
// user_not_found, invalid_parameters, wrong_operation for a user who is not an operator.
func (s *Service) SetOperatorGroups(ctx context.Context, id string, groups []string) error {
	groups = slices.Compact(slices.Sorted(slices.Values(groups)))
	if len(groups) == 0 {
		return fault.New(fault.InvalidParameters, "groups: an operator is responsible for at least one group")
	}
	return s.Store.Atomic(ctx, lock.User(id), func(ctx context.Context) error {
		u, err := s.Store.UserByID(ctx, id)
		if err != nil {
			return notFound(err)
		}
		if !u.Operator {
			return fault.New(fault.WrongOperation, "the user is not an operator: register an operator instead")
		}
		return noGroup(s.GroupStore.SetOperatorGroups(ctx, id, groups))
	})
}
