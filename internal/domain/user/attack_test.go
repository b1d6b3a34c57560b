// SPDX-License-Identifier: Apache-2.0

package user_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/user"
)

// onUser has all operations that act on a user, with arguments that would succeed.
var onUser = map[string]func(ctx context.Context, w *town, who audit.Principal, id string) error{
	"Reach": func(ctx context.Context, w *town, who audit.Principal, id string) error { return w.Reach(ctx, who, id) },
	"ByID": func(ctx context.Context, w *town, who audit.Principal, id string) error {
		return second(w.ByID(ctx, who, id))
	},
	"Logins": func(ctx context.Context, w *town, who audit.Principal, id string) error {
		return second(w.Logins(ctx, who, id))
	},
	"DN": func(ctx context.Context, w *town, who audit.Principal, id string) error {
		return second(w.DN(ctx, who, id))
	},
	"GroupOf": func(ctx context.Context, w *town, who audit.Principal, id string) error {
		return second(w.GroupOf(ctx, who, id))
	},
	"SetProperty": func(ctx context.Context, w *town, who audit.Principal, id string) error {
		return w.SetProperty(ctx, who, id, user.DisplayName, "x")
	},
	"SetDN": func(ctx context.Context, w *town, who audit.Principal, id string) error {
		return w.SetDN(ctx, who, id, map[string]string{"11": "x"})
	},
	"SetGroup": func(ctx context.Context, w *town, who audit.Principal, id string) error {
		return w.SetGroup(ctx, who, id, "A", nil)
	},
	"SetLocalLogin": func(ctx context.Context, w *town, who audit.Principal, id string) error {
		return w.SetLocalLogin(ctx, who, id, "x")
	},
	"SetLogin": func(ctx context.Context, w *town, who audit.Principal, id string) error {
		return w.SetLogin(ctx, who, id, user.ExternalLogin{Login: "x", Issuer: "adfs"})
	},
	"DeleteLogin": func(ctx context.Context, w *town, who audit.Principal, id string) error {
		return w.DeleteLogin(ctx, who, id, "")
	},
	"DeleteLocalLogin": func(ctx context.Context, w *town, who audit.Principal, id string) error {
		return w.DeleteLocalLogin(ctx, who, id)
	},
	"Approve": func(ctx context.Context, w *town, who audit.Principal, id string) error {
		return w.Approve(ctx, who, id, false)
	},
	"SetLocked": func(ctx context.Context, w *town, who audit.Principal, id string) error {
		return w.SetLocked(ctx, who, id, true)
	},
	"SetLockedEx": func(ctx context.Context, w *town, who audit.Principal, id string) error {
		return w.SetLockedEx(ctx, who, id, user.LockOrder{Lock: true, UseDelay: true, Delay: 5})
	},
	"Delete": func(ctx context.Context, w *town, who audit.Principal, id string) error {
		return w.Delete(ctx, who, id, false)
	},
}

func second[T any](_ T, err error) error { return err }

// The table above must have all methods that take a caller and a user. Two have a text there that names no user.
func TestMissingAuthorizationOnASideEntrance(t *testing.T) {
	typ := reflect.TypeFor[*user.Service]()
	var want, got []string
	for m := range typ.Methods() {
		if m.Type.NumIn() >= 4 && m.Type.In(2) == reflect.TypeFor[audit.Principal]() && m.Type.In(3) == reflect.TypeFor[string]() && m.Name != "CheckUnique" && m.Name != "FindByWords" && m.Name != "ProposeLogin" {
			want = append(want, m.Name)
		}
	}
	for name := range onUser {
		got = append(got, name)
	}
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" || len(want) < 10 {
		t.Error(d)
	}
}

// Operations on users of other groups answer like those on missing users, word for word,
// and leave no trace.
func TestCrossGroupAccess(t *testing.T) {
	for name, do := range onUser {
		t.Run(name, func(t *testing.T) {
			w := newTown(t)
			mine := w.person(t, w.a, "ivanov")
			theirs := w.person(t, w.b, "petrov")
			before := w.info(t, w.b, theirs)
			w.notices.events, w.out.ended = nil, nil
			unknown := do(t.Context(), w, w.a, "11111111-1111-4111-8111-111111111111")
			if !fault.Is(unknown, fault.UserNotFound) {
				t.Fatalf("an unknown user: %v", unknown)
			}
			for whom, id := range map[string]string{
				"user of another group":             theirs,
				"operator of another group":         w.b.UserID,
				"operator of one's own and another": w.ac.UserID,
				"no identifier":                     "",
				"hostile":                           "' OR 1=1 --\x00",
			} {
				err := do(t.Context(), w, w.a, id)
				if d := cmp.Diff(told(unknown), told(err)); d != "" {
					t.Errorf("%s: %s", whom, d)
				}
			}
			for _, who := range []audit.Principal{{}, {UserID: "unknown", Operator: true}, {UserID: mine, Operator: true}} {
				if err := do(t.Context(), w, who, mine); !fault.Is(err, fault.UserNotFound) {
					t.Errorf("as %+v: %v", who, err)
				}
			}
			if d := cmp.Diff(before, w.info(t, w.b, theirs)); d != "" || len(w.notices.events)+len(w.out.ended) != 0 {
				t.Errorf("traces: %s, %v, %v", d, w.notices.events, w.out.ended)
			}
			if err := do(t.Context(), w, w.a, mine); err != nil {
				t.Errorf("on one's own: %v; the refusals show nothing", err)
			}
		})
	}
}

// told returns what a client sees of an error.
func told(err error) string {
	f, ok := fault.As(err)
	if !ok {
		return fmt.Sprintf("internal: %v", err)
	}
	return f.Code + ": " + f.Message
}

// A search by an identifier of a user out of reach reveals nothing either.
func TestEnumerationByIdentifier(t *testing.T) {
	w := newTown(t)
	ids := map[user.IdentifierType]string{user.Login: "petrov", user.PhoneNumber: "79261234567", user.Email: "p@example.ru"}
	if _, err := w.Register(t.Context(), w.b, user.Registration{Identifiers: ids}); err != nil {
		t.Fatal(err)
	}
	_, unknown := w.Find(t.Context(), w.a, user.Login, "unknown", "")
	for kind, value := range ids {
		_, err := w.Find(t.Context(), w.a, kind, value, "")
		if d := cmp.Diff(told(unknown), told(err)); d != "" {
			t.Errorf("%v: %s", kind, d)
		}
		if _, err := w.Find(t.Context(), w.b, kind, value, ""); err != nil {
			t.Errorf("%v, by their operator: %v", kind, err)
		}
	}
	for _, hostile := range []string{"", "\x00", "\xff", "' OR 1=1 --", "@", "+", "a@b\r\nBcc: c@d.ru"} {
		for _, kind := range user.IdentifierTypes() {
			_, err := w.Find(t.Context(), w.a, kind, hostile, "")
			if d := cmp.Diff(told(unknown), told(err)); d != "" {
				t.Errorf("%v %q: %s", kind, hostile, d)
			}
		}
	}
	before, err := w.List(t.Context(), w.a, user.Search{End: 100})
	if err != nil {
		t.Fatal(err)
	}
	w.person(t, w.b, "another")
	after, err := w.List(t.Context(), w.a, user.Search{End: 100})
	if d := cmp.Diff(before, after); d != "" || err != nil {
		t.Errorf("a list of A depends on B: %s, %v", d, err)
	}
}

// A right that was lost before the change does not allow the change.
func TestNameBasedRightUsedLater(t *testing.T) {
	w := newTown(t)
	for name, do := range onUser {
		id := w.person(t, w.a, "user of "+name)
		w.Store = meanwhile{store.Users{DB: w.db}, func() {
			if err := (store.Users{DB: w.db}).SetOperatorGroups(t.Context(), w.a.UserID, []string{"B"}); err != nil {
				t.Fatal(err)
			}
		}}
		err := do(t.Context(), w, w.a, id)
		switch name {
		case "Reach", "ByID", "Logins", "DN", "GroupOf", "DeleteLogin": // these read without a transaction
		default:
			if !fault.Is(err, fault.UserNotFound) {
				t.Errorf("%s: %v", name, err)
			}
		}
		w.Store = store.Users{DB: w.db}
		if err := w.GroupStore.SetOperatorGroups(t.Context(), w.a.UserID, []string{"A"}); err != nil {
			t.Fatal(err)
		}
		if err := w.Reach(t.Context(), w.a, id); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// meanwhile calls do before each transaction.
type meanwhile struct {
	user.Store
	do func()
}

func (m meanwhile) Atomic(ctx context.Context, locked lock.Set, fn func(ctx context.Context) error) error {
	m.do()
	return m.Store.Atomic(ctx, locked, fn)
}

// Of many concurrent registrations of one identifier one succeeds, on both engines, and
// the others leave nothing behind.
func TestRaceForOneIdentifier(t *testing.T) {
	for _, engine := range []struct {
		name string
		open func(t *testing.T) *store.DB
	}{
		{"SQLite", func(t *testing.T) *store.DB { return storetest.SQLite(t) }},
		{"PostgreSQL", func(t *testing.T) *store.DB {
			return storetest.Open(t, storetest.PostgreSQL(t).Migrated(t))
		}},
	} {
		t.Run(engine.name, func(t *testing.T) {
			w := newTownOn(t, engine.open(t), true)
			for round, kind := range user.IdentifierTypes() {
				value := map[user.IdentifierType]string{user.Login: "wanted", user.PhoneNumber: "79261234567", user.Email: "w@example.ru"}[kind]
				var done sync.WaitGroup
				var mu sync.Mutex
				won := 0
				for i := range 12 {
					done.Go(func() {
						ids := map[user.IdentifierType]string{user.Login: fmt.Sprint("own", round, i), kind: value}
						who := []audit.Principal{w.a, w.b}[i%2]
						_, err := w.Register(t.Context(), who, user.Registration{Identifiers: ids})
						mu.Lock()
						defer mu.Unlock()
						switch {
						case err == nil:
							won++
						case !slices.Contains([]string{fault.DuplicateLogin, fault.DuplicatePhone, fault.DuplicateEmail}, codeOf(err)):
							t.Error(err)
						}
					})
				}
				done.Wait()
				if won != 1 {
					t.Errorf("%v: %d of 12 won", kind, won)
				}
			}
			total := 0
			for _, who := range []audit.Principal{w.a, w.b} {
				found, err := w.List(t.Context(), who, user.Search{})
				if err != nil {
					t.Fatal(err)
				}
				total += found.Total
			}
			if total != 3+2 { // and the two operators themselves
				t.Errorf("%d users are there, want 5", total)
			}
		})
	}
}

// Contacts of a user out of reach are not accessible through the book either.
func TestCrossGroupContacts(t *testing.T) {
	w := newTown(t)
	theirs := w.person(t, w.b, "petrov")
	if _, err := w.book.Add(t.Context(), w.a, theirs, contact.Phone, "79261234567"); !fault.Is(err, fault.UserNotFound) {
		t.Errorf("%v", err)
	}
}

func FuzzSearch(f *testing.F) {
	w := newTown(f)
	w.person(f, w.a, "ivanov")
	w.person(f, w.b, "petrov")
	f.Add(0, 2, "%a_\\", 0, 10, 0)
	f.Add(9, 3, "2026-01-01", 1, 2, 10)
	f.Fuzz(func(t *testing.T, column, operation int, value string, start, end, order int) {
		found, err := w.List(t.Context(), w.a, user.Search{
			Start: start, End: end, Order: user.Column(order),
			Filters: []user.Filter{{Column: user.Column(column), Operation: user.Operation(operation), Value: value}},
		})
		if _, ok := fault.As(err); err != nil && !ok {
			t.Errorf("not a fault: %v", err)
		}
		for _, u := range found.Users {
			if u.Group != "A" {
				t.Errorf("found %+v", u)
			}
		}
	})
}
