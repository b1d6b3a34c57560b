// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/user"
)

func testCommitter(t *testing.T, open func(t *testing.T) *store.DB) {
	t.Run("Alone", func(t *testing.T) {
		testUnit(t, open, func(db *store.DB) unit { return db.Unit })
	})
	cases{
		{"NestedUnitsNameWhatIsLocked", func(t *testing.T, db *store.DB) {
			users := store.Users{DB: db}
			nothing := func(context.Context) error { return nil }
			nested := func(set lock.Set) func(ctx context.Context) error {
				return func(ctx context.Context) error { return users.Atomic(ctx, set, nothing) }
			}
			outer := lock.User("a", "b").Logins("x")
			for _, c := range []struct {
				name string
				unit func() error
				ok   bool
			}{
				{"a part", func() error { return users.Atomic(t.Context(), outer, nested(lock.User("b").Logins("x"))) }, true},
				{"nothing", func() error { return users.Atomic(t.Context(), lock.Set{}, nested(lock.Set{})) }, true},
				{"another user", func() error { return users.Atomic(t.Context(), outer, nested(lock.User("c"))) }, false},
				{"another login", func() error { return users.Atomic(t.Context(), outer, nested(lock.User("a").Logins("y"))) }, false},
				{"in a plain unit", func() error { return db.Unit(t.Context(), nested(lock.User("a"))) }, false},
				{"in a transaction", func() error { return db.Atomic(t.Context(), nested(lock.User("a"))) }, false},
				{"dropped", func() error {
					return users.Atomic(t.Context(), outer, func(ctx context.Context) error {
						_ = nested(lock.User("c"))(ctx)
						return nil
					})
				}, false},
			} {
				if err := c.unit(); (err == nil) != c.ok {
					t.Errorf("%s: %v", c.name, err)
				}
			}
		}},
		{"FailedUnitsDoNotSpoilOthers", func(t *testing.T, db *store.DB) {
			users := store.Users{DB: db}
			plain := errors.New("plain")
			refusal := fault.New(fault.InvalidPIN, "wrong")
			const n = 120
			errs := together(n, func(i int) (err error) {
				defer func() {
					if p := recover(); p != nil {
						err = errors.New("panic")
					}
				}()
				return db.Unit(t.Context(), func(ctx context.Context) error {
					if err := users.AddGroup(ctx, user.Group{Name: fmt.Sprintf("g%03d", i)}); err != nil {
						return err
					}
					switch i % 6 {
					case 1:
						return plain
					case 2:
						return refusal
					case 3:
						return fault.Rollback(refusal)
					case 4: // a statement that the database refuses
						return users.SetOperatorGroups(ctx, "unknown", []string{fmt.Sprintf("g%03d", i)})
					case 5:
						panic("on purpose")
					}
					return nil
				})
			})
			kept := map[string]bool{}
			list, err := users.Groups(t.Context())
			must(t, err)
			for _, g := range list {
				kept[g.Name] = true
			}
			for i, err := range errs {
				name := fmt.Sprintf("g%03d", i)
				wantKept := i%6 == 0 || i%6 == 2
				if kept[name] != wantKept || (err == nil) != (i%6 == 0) {
					t.Errorf("%s: kept %v, error %v; want kept %v", name, kept[name], err, wantKept)
				}
			}
		}},
		{"FailedUnitsDoNotSpoilStatements", func(t *testing.T, db *store.DB) {
			// Units that roll back run before, between and after single statements.
			users := store.Users{DB: db}
			plain := errors.New("plain")
			const n = 120
			errs := together(n, func(i int) error {
				g := user.Group{Name: fmt.Sprintf("g%03d", i)}
				if i%3 == 0 {
					return users.AddGroup(t.Context(), g)
				}
				locked := lock.Set{}
				if i%2 == 0 {
					locked = lock.User("a", fmt.Sprint(i)) // units that wait for each other
				}
				return users.Atomic(t.Context(), locked, func(ctx context.Context) error {
					if err := users.AddGroup(ctx, g); err != nil || i%3 == 1 {
						return err
					}
					return plain
				})
			})
			list, err := users.Groups(t.Context())
			must(t, err)
			kept := map[string]bool{}
			for _, g := range list {
				kept[g.Name] = true
			}
			for i, err := range errs {
				if name := fmt.Sprintf("g%03d", i); kept[name] != (i%3 != 2) || (err == nil) != (i%3 != 2) {
					t.Errorf("%s: kept %v, error %v", name, kept[name], err)
				}
			}
		}},
		{"AConditionalChangeWinsOnce", func(t *testing.T, db *store.DB) {
			users := store.Users{DB: db}
			won := 0
			for _, err := range together(64, func(int) error {
				return users.AddGroup(t.Context(), user.Group{Name: "one"})
			}) {
				if err == nil {
					won++
				} else if !errors.Is(err, user.ErrDuplicate) {
					t.Error(err)
				}
			}
			if won != 1 {
				t.Errorf("%d callers won, want 1", won)
			}
		}},
		{"BesideAtomic", func(t *testing.T, db *store.DB) {
			group(t, db, "Default")
			const n = 40
			for _, err := range together(n, func(i int) error {
				g := user.Group{Name: fmt.Sprint(i)}
				add := func(ctx context.Context) error { return store.Users{DB: db}.AddGroup(ctx, g) }
				if i%2 == 0 {
					return db.Atomic(t.Context(), add)
				}
				return db.Unit(t.Context(), add)
			}) {
				must(t, err)
			}
			list, err := store.Users{DB: db}.Groups(t.Context())
			must(t, err)
			if len(list) != n+1 {
				t.Errorf("%d groups, want %d", len(list), n+1)
			}
		}},
	}.run(t, open)
}
