// SPDX-License-Identifier: Apache-2.0

package user_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/user"
	"tamga/internal/domain/vault"
)

// sessions records calls of EndAll and Forgive, and may fail.
type sessions struct {
	ended, forgiven []string
	err             error
}

func (s *sessions) EndAll(_ context.Context, id string) error {
	s.ended = append(s.ended, id)
	return s.err
}

func (s *sessions) Forgive(_ context.Context, id string) error {
	s.forgiven = append(s.forgiven, id)
	return nil
}

// notices records events in their order.
type notices struct {
	events []notify.Event
	err    error
}

func (n *notices) Emit(_ context.Context, e notify.Event) error {
	n.events = append(n.events, e)
	return n.err
}

func (n *notices) Order(context.Context, notify.Direct) error { return nil }

// noMethods has no methods that use contacts.
type noMethods struct{}

func (noMethods) MethodUsesContact(context.Context, string, string) (bool, error) { return false, nil }
func (noMethods) ContactGone(context.Context, string, string) error               { return nil }

// bench is a service on a real database with a clock to move.
type bench struct {
	*user.Service
	db      *store.DB
	out     *sessions
	notices *notices
	book    *contact.Book
	clock   time.Time
}

func newBench(t testing.TB, db *store.DB, unique bool) *bench {
	t.Helper()
	// The clock is more precise than a database.
	b := &bench{db: db, out: &sessions{}, notices: &notices{}, clock: time.Date(2026, 11, 21, 12, 0, 0, 123456789, time.Local)}
	naming, err := user.NewNaming(user.DefaultComponents(), unique)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := vault.NewRing("k", map[string][]byte{"k": make([]byte, 32)}, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return b.clock }
	users, contacts := store.Users{DB: db}, store.Contacts{DB: db}
	b.Service = &user.Service{
		Store: users, GroupStore: users, LoginStore: users, NameStore: users, SearchStore: users,
		Sessions: b.out, Confirmations: storetest.Unconfirmed{}, Events: b.notices, Naming: naming, LocalIssuer: "realsts",
		Now: now, Rand: rand.Reader,
	}
	b.book, err = contact.New(contact.DefaultSettings(), contact.Deps{
		Store: contacts, Codes: contacts, Reach: b.Service, Methods: noMethods{}, Confirmations: storetest.Unconfirmed{}, Notices: b.notices, Vault: ring, Now: now, Rand: rand.Reader,
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Contacts = b.book
	return b
}

// service is a bench with the group Default.
func service(t *testing.T) (*user.Service, *sessions) {
	t.Helper()
	b := newBench(t, storetest.SQLite(t), false)
	if _, err := b.AddGroup(t.Context(), "Default", ""); err != nil {
		t.Fatal(err)
	}
	return b.Service, b.out
}

func TestAdd(t *testing.T) {
	s, _ := service(t)
	if _, err := s.AddGroup(t.Context(), "Branch", "The branch"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		r      user.Account
		fault  string // "" for success
		groups []string
	}{
		{"plain", user.Account{Login: "demo", DisplayName: "Demo", Group: "Default"}, "", nil},
		{"cyrillic", user.Account{Login: "Иванов И.И.", Group: "Default"}, "", nil},
		{"one character", user.Account{Login: "x", Group: "Default"}, "", nil},
		{"longest", user.Account{Login: strings.Repeat("я", 128), Group: "Default"}, "", nil},
		{"operator", user.Account{Login: "op", Operator: true, Groups: []string{"Default", "Branch", "Default"}}, "", []string{"Branch", "Default"}},
		{"taken", user.Account{Login: "demo", Group: "Default"}, fault.DuplicateLogin, nil},
		{"taken in other case", user.Account{Login: "DEMO", Group: "Default"}, fault.DuplicateLogin, nil},
		{"taken in other case, cyrillic", user.Account{Login: "ИВАНОВ и.и.", Group: "Default"}, fault.DuplicateLogin, nil},
		{"taken in full width", user.Account{Login: "ｄｅｍｏ", Group: "Default"}, fault.DuplicateLogin, nil},
		{"empty", user.Account{Group: "Default"}, fault.InvalidParameters, nil},
		{"too long", user.Account{Login: strings.Repeat("x", 129), Group: "Default"}, fault.InvalidParameters, nil},
		{"control", user.Account{Login: "a\nb", Group: "Default"}, fault.InvalidParameters, nil},
		{"NUL", user.Account{Login: "a\x00", Group: "Default"}, fault.InvalidParameters, nil},
		{"another encoding", user.Account{Login: "\ufffd\ufffd", Group: "Default"}, fault.InvalidParameters, nil}, // as read from a body
		{"right-to-left mark", user.Account{Login: "a\u202eb", Group: "Default"}, fault.InvalidParameters, nil},
		{"zero width", user.Account{Login: "de\u200bmo", Group: "Default"}, fault.InvalidParameters, nil},
		{"space at the end", user.Account{Login: "demo ", Group: "Default"}, fault.InvalidParameters, nil},
		{"not UTF-8", user.Account{Login: "\xff", Group: "Default"}, fault.InvalidParameters, nil},
		{"bad display name", user.Account{Login: "y", DisplayName: "a\tb", Group: "Default"}, fault.InvalidParameters, nil},
		{"no group", user.Account{Login: "y"}, fault.InvalidParameters, nil},
		{"unknown group", user.Account{Login: "y", Group: "default"}, fault.InvalidParameters, nil},
		{"operator of nothing", user.Account{Login: "y", Group: "Default", Operator: true}, fault.InvalidParameters, nil},
		{"operator of an unknown group", user.Account{Login: "y", Group: "Default", Operator: true, Groups: []string{"no"}}, fault.InvalidParameters, nil},
		{"groups without being an operator", user.Account{Login: "y", Group: "Default", Groups: []string{"Branch"}}, fault.InvalidParameters, nil},
		{"free after all these refusals", user.Account{Login: "y", Group: "Default"}, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, err := s.Add(t.Context(), c.r)
			if c.fault != "" {
				if !fault.Is(err, c.fault) {
					t.Errorf("error %v, want %s", err, c.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if id, err := uuid.Parse(u.ID); err != nil || id.Version() != 4 || id.String() != u.ID {
				t.Errorf("id %q, want a random GUID in lower case", u.ID)
			}
			if u.Login != c.r.Login || u.DisplayName == "" || u.Group == "" || u.Locked {
				t.Errorf("registered %+v", u)
			}
			byID, err := s.Get(t.Context(), u.ID)
			if d := cmp.Diff(u, byID); d != "" || err != nil {
				t.Errorf("by id: %v %s", err, d)
			}
			byLogin, err := s.ByLogin(t.Context(), strings.ToUpper(u.Login))
			if d := cmp.Diff(u, byLogin); d != "" || err != nil {
				t.Errorf("by login: %v %s", err, d)
			}
			groups, err := s.OperatorGroups(t.Context(), u.ID)
			if d := cmp.Diff(c.groups, groups); d != "" || err != nil {
				t.Errorf("groups: %v %s", err, d)
			}
		})
	}
}

func TestLock(t *testing.T) {
	s, out := service(t)
	u, err := s.Add(t.Context(), user.Account{Login: "demo", Group: "Default"})
	if err != nil {
		t.Fatal(err)
	}
	locked := func() bool {
		t.Helper()
		u, err := s.Get(t.Context(), u.ID)
		if err != nil {
			t.Fatal(err)
		}
		return u.Locked
	}
	out.err = errors.New("cannot end")
	if err := s.Lock(t.Context(), u.ID); !errors.Is(err, out.err) || locked() {
		t.Errorf("tokens that could not be ended: %v, locked %v; want an error and no lock", err, locked())
	}
	out.err, out.ended = nil, nil
	if err := s.Lock(t.Context(), u.ID); err != nil || !locked() {
		t.Errorf("error %v, locked %v", err, locked())
	}
	if d := cmp.Diff([]string{u.ID}, out.ended); d != "" {
		t.Error(d)
	}
	if err := s.Unlock(t.Context(), u.ID); err != nil || locked() {
		t.Errorf("error %v, locked %v", err, locked())
	}
	for name, call := range map[string]error{
		"lock": s.Lock(t.Context(), "unknown"), "unlock": s.Unlock(t.Context(), "unknown"),
		"rename": s.Rename(t.Context(), "unknown", "x"),
	} {
		if !fault.Is(call, fault.UserNotFound) {
			t.Errorf("%s an unknown user: %v, want %s", name, call, fault.UserNotFound)
		}
	}
	if _, err := s.ByLogin(t.Context(), "unknown"); !fault.Is(err, fault.UserNotFound) {
		t.Errorf("unknown login: %v, want %s", err, fault.UserNotFound)
	}
}

func TestRenameAndList(t *testing.T) {
	s, _ := service(t)
	for _, login := range []string{"Bob", "alice", "Carol"} {
		if _, err := s.Add(t.Context(), user.Account{Login: login, Group: "Default"}); err != nil {
			t.Fatal(err)
		}
	}
	bob, err := s.ByLogin(t.Context(), "bob")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Rename(t.Context(), bob.ID, "Роберт"); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", " ", "a\x1bb", strings.Repeat("x", 256)} {
		if err := s.Rename(t.Context(), bob.ID, bad); !fault.Is(err, fault.InvalidParameters) {
			t.Errorf("display name %q: %v, want %s", bad, err, fault.InvalidParameters)
		}
	}
	nameless, err := s.Add(t.Context(), user.Account{Login: "x", DisplayName: "Роберт without a login", Group: "Default"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.LoginStore.SetLogin(t.Context(), nameless.ID, "", ""); err != nil {
		t.Fatal(err)
	}
	var names []string
	q := user.Query{Limit: 1} // so that every user is once the last of a page
	for {
		page, err := s.Page(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, u := range page {
			names = append(names, u.DisplayName)
		}
		q.After = page[len(page)-1].Key()
	}
	if d := cmp.Diff([]string{"Роберт without a login", "alice", "Роберт", "Carol"}, names); d != "" {
		t.Error(d)
	}
	for _, limit := range []int{-1, 0, 1001} {
		if _, err := s.Page(t.Context(), user.Query{Limit: limit}); !fault.Is(err, fault.InvalidParameters) {
			t.Errorf("limit %d: %v, want %s", limit, err, fault.InvalidParameters)
		}
	}
}

func TestGroups(t *testing.T) {
	s, _ := service(t)
	if _, err := s.AddGroup(t.Context(), "Default", ""); !fault.Is(err, fault.InvalidObjectState) {
		t.Errorf("a taken name: %v, want %s", err, fault.InvalidObjectState)
	}
	for _, bad := range []string{"", "a\n", strings.Repeat("x", 65)} {
		if _, err := s.AddGroup(t.Context(), bad, ""); !fault.Is(err, fault.InvalidParameters) {
			t.Errorf("name %q: %v, want %s", bad, err, fault.InvalidParameters)
		}
	}
	want, err := s.AddGroup(t.Context(), "Branch", "Филиал")
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Groups(t.Context())
	if err != nil || len(got) != 2 {
		t.Fatalf("%d groups, %v; want 2", len(got), err)
	}
	if d := cmp.Diff(want, got[0]); d != "" {
		t.Error(d)
	}
}

func TestFoldLogin(t *testing.T) {
	for _, same := range [][]string{
		{"demo", "DEMO", "Demo", "ｄｅｍｏ"},
		{"й", "Й", "и\u0306", "И\u0306"},
		{"σ", "ς", "Σ"},
		{"k", "K", "\u212a"}, // the sign of the kelvin
	} {
		for _, s := range same {
			if got := user.FoldLogin(s); got != same[0] {
				t.Errorf("%q folds to %q, want %q", s, got, same[0])
			}
		}
	}
	if user.FoldLogin("а") == user.FoldLogin("a") {
		t.Error("a Cyrillic letter folds to a Latin one")
	}
	for r := range rune(unicode.MaxRune + 1) { // a folded login is its own fold, or it could be registered twice
		folded := user.FoldLogin(string(r))
		if again := user.FoldLogin(folded); again != folded {
			t.Errorf("U+%04X folds to %q and that to %q", r, folded, again)
		}
		if upper := user.FoldLogin(string(unicode.ToUpper(r))); unicode.ToLower(unicode.ToUpper(r)) == r && upper != folded {
			t.Errorf("U+%04X folds to %q, its upper case to %q", r, folded, upper)
		}
	}
	long := strings.Repeat("A", 1000)
	if user.FoldLogin(long) != long {
		t.Error("a text too long for a login was worked on")
	}
}

func FuzzFoldLogin(f *testing.F) {
	f.Add("Demo")
	f.Add("\xff\u212a\u0130ß")
	f.Add("ﬁ\u0345Σ")
	f.Fuzz(func(t *testing.T, s string) {
		folded := user.FoldLogin(s)
		if len(folded) > 18*4*user.MaxLogin+len(s) {
			t.Errorf("%d bytes grew to %d", len(s), len(folded))
		}
		if len(s) <= user.MaxLogin && len(folded) <= user.MaxLogin {
			if again := user.FoldLogin(folded); again != folded {
				t.Errorf("%q folds to %q and that to %q", s, folded, again)
			}
			if utf8.ValidString(s) && !utf8.ValidString(folded) {
				t.Errorf("%q folds to what is not UTF-8", s)
			}
		}
	})
}
