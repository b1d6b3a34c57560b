// SPDX-License-Identifier: Apache-2.0

package user

import (
	"context"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// SearchStore finds users for operators. The rights of the operator are read by the same
// query; see Store.
type SearchStore interface {
	// InfoByID reads a user the operator reaches, or returns ErrNotFound.
	InfoByID(ctx context.Context, operatorID, id string, now time.Time) (Info, error)
	// InfosByID reads those of the users that the operator reaches, in any order.
	InfosByID(ctx context.Context, operatorID string, ids []string, now time.Time) ([]Info, error)
	// SearchUsers finds a page of the users the operator reaches.
	SearchUsers(ctx context.Context, operatorID string, q Search, conditions []Condition, now time.Time) (Found, error)
	// UsersAfter finds at most limit users in the groups, in the order of their keys, after
	// the one with a key. groups are those of the operator, of more than MostWalks only the
	// first ones. It looks at about most users. If there are more, last is the key of the last
	// one that it looked at.
	UsersAfter(ctx context.Context, operatorID string, groups []string, conditions []Condition, after string, limit, most int, now time.Time) (users []Info, last string, err error)
	// UsersFound is UsersAfter for all users at once, to the end: it reads the column of one
	// condition as a whole. able is false where UsersAfter does better: no condition
	// selects few users, or the groups have no more than about more users after the key.
	UsersFound(ctx context.Context, operatorID string, groups []string, conditions []Condition, after string, limit, more int, now time.Time) (users []Info, able bool, err error)
	// FindUsers returns at most limit users the operator reaches who have all terms, in the
	// order of their keys. If there are more, it returns any of them.
	FindUsers(ctx context.Context, operatorID string, terms []Term, limit int, now time.Time) ([]Place, error)
	// NamedUsers returns at most limit users of some groups, nil for all, whose login or display name has all terms,
	// in the order of their keys. If there are more, it returns any of them.
	NamedUsers(ctx context.Context, groups []string, terms []Term, limit int) ([]User, error)
	// MoreUsers reports whether the installation has more than a number of users, or had more
	// since this process began. It does not count them all.
	MoreUsers(ctx context.Context, than int) (bool, error)
}

// How many users a page of Browse looks at.
const (
	listWalk = 1_500  // without conditions, for a page in less than 20 ms
	nearWalk = 3_000  // at first, for a page in less than 100 ms
	farWalk  = 50_000 // when it goes on and no condition selects few: about a second
	// fewUsers is the size in users of an installation that is always searched as a whole, in
	// a tenth of a second, or in a second if no condition selects few.
	fewUsers  = 50_000
	everybody = math.MaxInt32
)

// Turns bounds how many long searches run at once, so that a caller with many does not occupy all
// connections to the database. limit.Turns of the web satisfies it.
type Turns interface {
	// Take waits for the turn of a search of a caller, who must call done after it.
	Take(ctx context.Context, userID string) (done func(), err error)
}

// Browse returns at most limit users within the operator's reach that the filters select, in
// the order of their keys, after the user with the key after. next is the key to go on with,
// "" after the last user. A page with fewer than limit users may have a next key: the filters
// select few users, and the rest was not looked at. Then far searches as far as it must to fill
// the page, to the end if needed. It takes a turn. An installation of few users is always searched
// so. The faults are those of [Service.List] and of Turns.
func (s *Service) Browse(ctx context.Context, who audit.Principal, filters []Filter, after string, limit int, far bool) (users []Info, next string, err error) {
	if limit < 1 || limit > MaxPage || len(after) > maxFilterValue || !utf8.ValidString(after) {
		return nil, "", fault.Newf(fault.BadBounds, "want a page of 1 to %d users", MaxPage)
	}
	conditions, groups, err := s.conditions(ctx, who, filters)
	if err != nil {
		return nil, "", err
	}
	for _, c := range conditions {
		if c.Column == ColumnGroup && c.Operation != NotEqual {
			groups = common(groups, c.Groups) // where they are walked along, however many others there are
		}
	}
	if len(groups) == 0 {
		return nil, "", nil
	}
	walk := nearWalk
	if len(conditions) == 0 {
		walk = listWalk
	}
	users, next, err = s.SearchStore.UsersAfter(ctx, who.UserID, groups, conditions, after, limit+1, walk, s.now())
	if err == nil && next != "" && len(users) <= limit {
		more := farWalk
		walk = farWalk
		if !far {
			var large bool
			large, err = s.SearchStore.MoreUsers(ctx, fewUsers)
			far, walk, more = !large, everybody, 0
		}
		if far && err == nil {
			users, next, err = s.browseFar(ctx, who, groups, conditions, after, limit+1, walk, more)
		}
	}
	if len(users) > limit {
		users = users[:limit]
		last := users[limit-1]
		next = LoginKey(last.ID, FoldLogin(last.Login))
	}
	return users, next, err
}

// browseFar finds at most limit users, to the end if needed. It walks along the users, about walk of
// them, if no condition selects few users or no more than about more users are left.
func (s *Service) browseFar(ctx context.Context, who audit.Principal, groups []string, conditions []Condition, after string, limit, walk, more int) ([]Info, string, error) {
	if s.Turns != nil {
		done, err := s.Turns.Take(ctx, who.UserID)
		if err != nil {
			return nil, "", err
		}
		defer done()
	}
	users, able, err := s.SearchStore.UsersFound(ctx, who.UserID, groups, conditions, after, limit, more, s.now())
	if err != nil || able {
		return users, "", err
	}
	return s.SearchStore.UsersAfter(ctx, who.UserID, groups, conditions, after, limit, walk, s.now())
}

// common returns the groups of a that b has, too. Both are sorted.
func common(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(group string) bool {
		_, has := slices.BinarySearch(b, group)
		return !has
	})
}
