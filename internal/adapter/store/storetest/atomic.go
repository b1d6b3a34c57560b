// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"testing"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/user"
)

// unit is Atomic or Committer.Do: both guarantee the same to a single caller.
type unit func(ctx context.Context, fn func(context.Context) error) error

func testAtomic(t *testing.T, open func(t *testing.T) *store.DB) {
	t.Run("Alone", func(t *testing.T) {
		testUnit(t, open, func(db *store.DB) unit { return db.Atomic })
	})
	cases{
		{"ReadThenWriteLosesNothing", func(t *testing.T, db *store.DB) {
			group(t, db, "Default")
			u := person(t, db, 1)
			policies := store.Policies{DB: db}
			must(t, policies.SetOwn(t.Context(), u.ID, policy.Access, &policy.Setting{}))
			const callers, rounds = 4, 5
			for _, err := range together(callers, func(int) error {
				for range rounds {
					if err := db.Atomic(t.Context(), func(ctx context.Context) error {
						have, _, err := policies.Settings(ctx, u.ID, policy.Access)
						if err != nil {
							return err
						}
						return policies.SetOwn(ctx, u.ID, policy.Access, &policy.Setting{Actions: have.Actions + 1})
					}); err != nil {
						return err
					}
				}
				return nil
			}) {
				must(t, err)
			}
			have, _, err := policies.Settings(t.Context(), u.ID, policy.Access)
			must(t, err)
			if have.Actions != callers*rounds {
				t.Errorf("%d increments arrived, want %d", have.Actions, callers*rounds)
			}
		}},
		{"OutsideSeesNothingBeforeTheEnd", func(t *testing.T, db *store.DB) {
			users := store.Users{DB: db}
			must(t, db.Atomic(t.Context(), func(ctx context.Context) error {
				if err := users.AddGroup(ctx, user.Group{Name: "a"}); err != nil {
					return err
				}
				if inside, err := users.Groups(ctx); err != nil || len(inside) != 1 {
					t.Errorf("inside: %d groups, %v; want 1", len(inside), err)
				}
				if outside, err := users.Groups(t.Context()); err != nil || len(outside) != 0 {
					t.Errorf("outside: %d groups, %v; want 0", len(outside), err)
				}
				return nil
			}))
		}},
	}.run(t, open)
}

// testUnit tests what a unit keeps and what it rolls back.
func testUnit(t *testing.T, open func(t *testing.T) *store.DB, of func(*store.DB) unit) {
	plain := errors.New("plain")
	refusal := fault.New(fault.InvalidPIN, "wrong")
	add := func(ctx context.Context, db *store.DB, name string) error {
		return store.Users{DB: db}.AddGroup(ctx, user.Group{Name: name})
	}
	for _, c := range []struct {
		name string
		fn   func(ctx context.Context, db *store.DB) error // runs after group "a" was added
		want error                                         // nil, or the error that errors.Is finds
		kept bool
	}{
		{"Success", func(context.Context, *store.DB) error { return nil }, nil, true},
		{"Error", func(context.Context, *store.DB) error { return plain }, plain, false},
		{"FaultCommits", func(context.Context, *store.DB) error { return refusal }, refusal, true},
		{"FaultRolledBackByChoice", func(context.Context, *store.DB) error { return fault.Rollback(refusal) }, refusal, false},
		{"NestedJoins", func(ctx context.Context, db *store.DB) error {
			return db.Atomic(ctx, func(ctx context.Context) error { return add(ctx, db, "b") })
		}, nil, true},
		{"NestedCommitterJoins", func(ctx context.Context, db *store.DB) error {
			return db.Unit(ctx, func(ctx context.Context) error { return add(ctx, db, "b") })
		}, nil, true},
		{"NestedErrorThatIsDropped", func(ctx context.Context, db *store.DB) error {
			_ = db.Atomic(ctx, func(context.Context) error { return plain })
			return nil
		}, plain, false},
		{"NestedErrorBecomesAFault", func(ctx context.Context, db *store.DB) error {
			_ = db.Atomic(ctx, func(context.Context) error { return plain })
			return refusal
		}, refusal, false},
		{"NestedFaultThatIsDropped", func(ctx context.Context, db *store.DB) error {
			_ = db.Atomic(ctx, func(context.Context) error { return refusal })
			return nil
		}, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := open(t)
			err := of(db)(t.Context(), func(ctx context.Context) error {
				if err := add(ctx, db, "a"); err != nil {
					return err
				}
				return c.fn(ctx, db)
			})
			if !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if kept := groupExists(t, db, "a"); kept != c.kept {
				t.Errorf("change kept: %v, want %v", kept, c.kept)
			}
		})
	}
	cases{
		{"DuplicateIsAnAnswer", func(t *testing.T, db *store.DB) {
			// A taken name is an expected result: the other changes of the unit are kept.
			group(t, db, "taken")
			err := of(db)(t.Context(), func(ctx context.Context) error {
				if err := add(ctx, db, "taken"); !errors.Is(err, user.ErrDuplicate) {
					t.Errorf("error %v, want %v", err, user.ErrDuplicate)
				}
				return add(ctx, db, "a")
			})
			if err != nil || !groupExists(t, db, "a") {
				t.Errorf("error %v, want the other change kept", err)
			}
		}},
		{"FailedStatementUndoesAll", func(t *testing.T, db *store.DB) {
			err := of(db)(t.Context(), func(ctx context.Context) error {
				if err := add(ctx, db, "a"); err != nil {
					return err
				}
				// A missing group breaks a reference, and the error is dropped.
				_ = store.Users{DB: db}.SetOperatorGroups(ctx, "unknown", []string{"a"})
				return nil
			})
			if err == nil || groupExists(t, db, "a") {
				t.Errorf("error %v, want one and nothing kept", err)
			}
		}},
		{"PanicUndoesAll", func(t *testing.T, db *store.DB) {
			func() {
				defer func() {
					if recover() == nil {
						t.Error("the panic did not reach the caller")
					}
				}()
				_ = of(db)(t.Context(), func(ctx context.Context) error {
					must(t, add(ctx, db, "a"))
					panic("on purpose")
				})
			}()
			if groupExists(t, db, "a") {
				t.Error("the change was kept")
			}
			group(t, db, "the database goes on")
		}},
		{"EndedContextDoesNothing", func(t *testing.T, db *store.DB) {
			err := of(db)(canceled(t), func(ctx context.Context) error { return add(ctx, db, "a") })
			if err == nil {
				// The unit may finish before the context ends, but then it must be kept.
				if !groupExists(t, db, "a") {
					t.Error("no error, but nothing was kept")
				}
				return
			}
			if !errors.Is(err, context.Canceled) || groupExists(t, db, "a") {
				t.Errorf("error %v, want context.Canceled and nothing kept", err)
			}
		}},
	}.run(t, open)
}

func groupExists(t testing.TB, db *store.DB, name string) bool {
	t.Helper()
	list, err := store.Users{DB: db}.Groups(t.Context())
	must(t, err)
	for _, g := range list {
		if g.Name == name {
			return true
		}
	}
	return false
}
