// SPDX-License-Identifier: Apache-2.0

package user_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"tamga/internal/domain/user"
)

// walked is a store of many users that notes what a search calls, and answers with so many users.
type walked struct {
	user.SearchStore
	size        int // of the installation
	near, found int
	able        bool
	calls       []string
}

func (w *walked) UsersAfter(_ context.Context, _ string, groups []string, _ []user.Condition, after string, limit, most int, _ time.Time) ([]user.Info, string, error) {
	w.calls = append(w.calls, fmt.Sprint("walk ", most, " ", groups))
	last := "z"
	if most >= w.size {
		last = ""
	}
	return make([]user.Info, min(w.near, limit)), last, nil
}

func (w *walked) UsersFound(_ context.Context, _ string, _ []string, _ []user.Condition, _ string, limit, more int, _ time.Time) ([]user.Info, bool, error) {
	w.calls = append(w.calls, fmt.Sprint("found ", more))
	if !w.able {
		return nil, false, nil
	}
	return make([]user.Info, min(w.found, limit)), true, nil
}

func (w *walked) MoreUsers(_ context.Context, than int) (bool, error) {
	w.calls = append(w.calls, fmt.Sprint("more ", than))
	return w.size > than, nil
}

var errTurn = errors.New("no turn")

// oneTurn lets one search run at a time.
type oneTurn struct {
	t     *testing.T
	taken bool
	err   error
}

func (o *oneTurn) Take(_ context.Context, userID string) (func(), error) {
	if userID == "" || o.taken {
		o.t.Errorf("a turn of %q, taken %v", userID, o.taken)
	}
	o.taken = o.err == nil
	return func() { o.taken = false }, o.err
}

// TestBrowseFar checks how far a search looks.
func TestBrowseFar(t *testing.T) {
	w := newTown(t)
	login := user.Filter{Column: user.ColumnLogin, Operation: user.Like, Value: "x"}
	ofA := user.Filter{Column: user.ColumnGroup, Operation: user.Equal, Value: "A"}
	const near, everybody = "walk 1500 [A C]", "walk 2147483647 [A C]"
	for i, c := range []struct {
		store   walked
		filters []user.Filter
		far     bool
		turn    error
		want    int // users
		next    string
		calls   []string
		err     error
	}{
		{walked{size: 1_500, near: 2}, nil, false, errTurn, 2, "", []string{near}, nil},
		{walked{size: 1_000_000, near: 6}, nil, true, errTurn, 5, "00000000", []string{near}, nil}, // full
		{walked{size: 50_000, near: 2, found: 3, able: true}, nil, false, nil, 3, "", []string{near, "more 50000", "found 0"}, nil},
		{walked{size: 50_000, near: 2, found: 9, able: true}, nil, false, nil, 5, "00000000", []string{near, "more 50000", "found 0"}, nil},
		{walked{size: 50_000, near: 2}, nil, false, nil, 2, "", []string{near, "more 50000", "found 0", everybody}, nil},
		{walked{size: 50_000, near: 2}, nil, false, errTurn, 0, "", []string{near, "more 50000"}, errTurn},
		{walked{size: 50_001, near: 2, able: true}, nil, false, errTurn, 2, "z", []string{near, "more 50000"}, nil},
		{walked{size: 50_001, near: 2, found: 1, able: true}, nil, true, nil, 1, "", []string{near, "found 50000"}, nil},
		{walked{size: 50_001, near: 2}, nil, true, nil, 2, "z", []string{near, "found 50000", "walk 50000 [A C]"}, nil},
		{walked{size: 50_001, near: 2}, nil, true, errTurn, 0, "", []string{near}, errTurn},
		{walked{size: 9, near: 2}, []user.Filter{login, ofA}, false, nil, 2, "", []string{"walk 3000 [A]"}, nil},
		{walked{size: 9, near: 2}, []user.Filter{ofA, {Column: user.ColumnGroup, Operation: user.Equal, Value: "C"}}, false, nil, 0, "", nil, nil},
		{walked{size: 9, near: 2}, []user.Filter{{Column: user.ColumnGroup, Operation: user.NotEqual, Value: "A"}}, false, nil, 2, "", []string{"walk 3000 [A C]"}, nil},
		{walked{size: 9, near: 2}, []user.Filter{{Column: user.ColumnGroup, Operation: user.Equal, Value: "B"}}, true, nil, 0, "", nil, nil},
	} {
		store, turns := c.store, &oneTurn{t: t, err: c.turn}
		service := *w.Service
		service.SearchStore, service.Turns = &store, turns
		list, next, err := service.Browse(t.Context(), w.ac, c.filters, "", 5, c.far)
		if next != "" && next != "z" {
			next = "00000000" // the key of the last user of the page
		}
		if len(list) != c.want && c.err == nil || next != c.next && c.err == nil || !slices.Equal(store.calls, c.calls) || !errors.Is(err, c.err) {
			t.Errorf("row %d: %d users, next %q, %v, %v", i, len(list), next, store.calls, err)
		}
		if turns.taken {
			t.Errorf("row %d: the turn does not end", i)
		}
	}
}
