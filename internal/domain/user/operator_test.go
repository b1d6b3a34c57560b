// SPDX-License-Identifier: Apache-2.0

package user_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/user"
)

// town is a bench with the groups A, B and C and operators of A, of B, and of A and C.
type town struct {
	*bench
	a, b, ac audit.Principal
}

func newTown(t testing.TB) *town { return newTownOn(t, storetest.SQLite(t), false) }

func newTownOn(t testing.TB, db *store.DB, unique bool) *town {
	t.Helper()
	w := &town{bench: newBench(t, db, unique)}
	for _, g := range []string{"A", "B", "C"} {
		if _, err := w.AddGroup(t.Context(), g, ""); err != nil {
			t.Fatal(err)
		}
	}
	w.a, w.b, w.ac = w.operator(t, "A"), w.operator(t, "B"), w.operator(t, "A", "C")
	return w
}

func (w *town) operator(t testing.TB, groups ...string) audit.Principal {
	t.Helper()
	u, err := w.Add(t.Context(), user.Account{Login: "operator of " + strings.Join(groups, " and "), Operator: true, Groups: groups})
	if err != nil {
		t.Fatal(err)
	}
	return audit.Principal{UserID: u.ID, Login: u.Login, Group: u.Group, Operator: true}
}

// person registers a user with a login in the group of an operator of one.
func (w *town) person(t testing.TB, who audit.Principal, login string) string {
	t.Helper()
	id, err := w.Register(t.Context(), who, user.Registration{Identifiers: map[user.IdentifierType]string{user.Login: login}})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (w *town) info(t testing.TB, who audit.Principal, id string) user.Info {
	t.Helper()
	i, err := w.ByID(t.Context(), who, id)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// codeOf is the code of a fault, "" for success and the text of any other error.
func codeOf(err error) string {
	if f, ok := fault.As(err); ok {
		return f.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func TestRegister(t *testing.T) {
	w := newTown(t)
	type ids = map[user.IdentifierType]string
	for _, c := range []struct {
		name  string
		who   audit.Principal
		ids   ids
		group string
		fault string
		want  user.Info // what is compared: identifiers, names, group
	}{
		{"login", w.a, ids{user.Login: "Ivanov"}, "", "", user.Info{Login: "Ivanov", DisplayName: "Ivanov", Name: "CN=Ivanov", Group: "A"}},
		{"phone", w.a, ids{user.PhoneNumber: "+7 (926) 123-45-67"}, "", "", user.Info{PhoneNumber: "79261234567", DisplayName: "+7 (926) 123-45-67", Name: `CN=\+7 (926) 123-45-67`, Group: "A"}},
		{"e-mail", w.a, ids{user.Email: "Ivanov@Example.ru"}, "", "", user.Info{Email: "Ivanov@example.ru", DisplayName: "Ivanov@Example.ru", Name: "CN=Ivanov@Example.ru", Group: "A"}},
		{"all", w.b, ids{user.Login: "Пётр", user.PhoneNumber: "89260000001", user.Email: "p@почта.рф"}, "", "", user.Info{Login: "Пётр", PhoneNumber: "79260000001", Email: "p@почта.рф", DisplayName: "Пётр", Name: "CN=Пётр", Group: "B"}},
		{"named group", w.ac, ids{user.Login: "in C"}, "C", "", user.Info{Login: "in C", DisplayName: "in C", Name: "CN=in C", Group: "C"}},
		{"operator of two groups names none", w.ac, ids{user.Login: "nowhere"}, "", fault.WrongOperation, user.Info{}},
		{"group of another operator", w.a, ids{user.Login: "nowhere"}, "B", fault.InvalidParameters, user.Info{}},
		{"group that is not there", w.a, ids{user.Login: "nowhere"}, "no", fault.InvalidParameters, user.Info{}},
		{"nothing", w.a, nil, "", fault.InvalidParameters, user.Info{}},
		{"empty login", w.a, ids{user.Login: ""}, "", fault.InvalidParameters, user.Info{}},
		{"login taken in another group", w.b, ids{user.Login: "IVANOV"}, "", fault.DuplicateLogin, user.Info{}},
		{"phone taken in another group", w.b, ids{user.Login: "new", user.PhoneNumber: "79261234567"}, "", fault.DuplicatePhone, user.Info{}},
		{"e-mail taken in another case", w.b, ids{user.Login: "new", user.Email: "IVANOV@EXAMPLE.RU"}, "", fault.DuplicateEmail, user.Info{}},
		{"no phone", w.b, ids{user.PhoneNumber: "call me"}, "", fault.InvalidPhone, user.Info{}},
		{"no e-mail", w.b, ids{user.Email: "example.ru"}, "", fault.InvalidEmail, user.Info{}},
		{"unknown type", w.b, ids{3: "x"}, "", fault.InvalidParameters, user.Info{}},
		{"free after all these refusals", w.b, ids{user.Login: "new"}, "", "", user.Info{Login: "new", DisplayName: "new", Name: "CN=new", Group: "B"}},
		{"no operator", audit.Principal{UserID: "unknown", Operator: true}, ids{user.Login: "y"}, "A", fault.AccessDenied, user.Info{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.notices.events = nil
			id, err := w.Register(t.Context(), c.who, user.Registration{Identifiers: c.ids, Group: c.group})
			if codeOf(err) != c.fault {
				t.Fatalf("error %v, want %q", err, c.fault)
			}
			if c.fault != "" {
				if len(w.notices.events) != 0 || id != "" {
					t.Errorf("a refusal told of %v and returned %q", w.notices.events, id)
				}
				return
			}
			if d := cmp.Diff([]notify.Event{{Type: notify.UserCreated, UserID: id, Actor: c.who.UserID}}, w.notices.events); d != "" {
				t.Error(d)
			}
			got := w.info(t, c.who, id)
			if got.CreatedAt.IsZero() || got.Locked || got.ID != id {
				t.Errorf("registered as %+v", got)
			}
			c.want.ID, c.want.CreatedAt = got.ID, got.CreatedAt
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			for kind, value := range c.ids {
				if found, err := w.Find(t.Context(), c.who, kind, value, ""); err != nil || found.ID != id {
					t.Errorf("by %v: %+v, %v", kind, found, err)
				}
			}
		})
	}
}

// CheckUnique predicts the result of a registration, and reveals nothing more about users
// of other groups.
func TestCheckUniqueKeepsItsWord(t *testing.T) {
	w := newTown(t)
	taken := map[user.IdentifierType]string{user.Login: "Taken", user.PhoneNumber: "79261234567", user.Email: "taken@example.ru"}
	if _, err := w.Register(t.Context(), w.b, user.Registration{Identifiers: taken}); err != nil {
		t.Fatal(err)
	}
	for kind, values := range map[user.IdentifierType][]string{
		user.Login:       {"taken", "TAKEN", "free", "ｔａｋｅｎ", "8 926 123-45-67", "Taken@example.ru", "Free@example.ru"},
		user.PhoneNumber: {"+7 926 123 45 67", "8(926)1234567", "79260000000"},
		user.Email:       {"Taken@Example.RU", "free@example.ru"},
	} {
		for _, value := range values {
			one := map[user.IdentifierType]string{kind: value}
			said, err := w.CheckUnique(t.Context(), w.a, "", one)
			if err != nil {
				t.Fatal(err)
			}
			_, err = w.Register(t.Context(), w.a, user.Registration{Identifiers: one})
			if got := said[kind]; got.IsUnique != (err == nil) || !got.Required || got.Data != value {
				t.Errorf("%v %q: said %+v, registration: %v", kind, value, got, err)
			}
		}
	}
	for _, bad := range []map[user.IdentifierType]string{nil, {user.Login: "a\n"}, {user.PhoneNumber: "x"}, {user.Email: "x"}, {9: "x"}} {
		if _, err := w.CheckUnique(t.Context(), w.a, "", bad); err == nil {
			t.Errorf("%v was judged", bad)
		}
	}
	if said, err := w.CheckUnique(t.Context(), w.a, "adfs", map[user.IdentifierType]string{user.Login: "Taken"}); err != nil || !said[user.Login].IsUnique {
		t.Errorf("a local login at another issuer: %v, %v; want free", said, err)
	}
}

func TestLogins(t *testing.T) {
	w := newTown(t)
	id, other := w.person(t, w.a, "ivanov"), w.person(t, w.b, "petrov")
	logins := func() (list []user.ExternalLogin) {
		t.Helper()
		list, err := w.Logins(t.Context(), w.a, id)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	type L = user.ExternalLogin
	set := func(login, issuer string) func() error {
		return func() error { return w.SetLogin(t.Context(), w.a, id, L{Login: login, Issuer: issuer}) }
	}
	remove := func(issuer string) func() error {
		return func() error { return w.DeleteLogin(t.Context(), w.a, id, issuer) }
	}
	from := func(method string) func() error {
		who := w.a
		who.Method = method
		return func() error { return w.DeleteLogin(t.Context(), who, id, "") }
	}
	if err := w.SetLogin(t.Context(), w.b, other, L{Login: "same", Issuer: "adfs"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		do    func() error
		fault string
		want  []L
	}{
		{"at first", func() error { return nil }, "", []L{{"ivanov", "realsts"}}},
		{"external", set("i@corp", "adfs"), "", []L{{"ivanov", "realsts"}, {"i@corp", "adfs"}}},
		{"another", set("i", "Esia"), "", []L{{"ivanov", "realsts"}, {"i@corp", "adfs"}, {"i", "Esia"}}},
		{"replaced", set("j@corp", "ADFS"), "", []L{{"ivanov", "realsts"}, {"j@corp", "ADFS"}, {"i", "Esia"}}},
		{"taken at that issuer", set("SAME", "adfs"), fault.DuplicateLogin, []L{{"ivanov", "realsts"}, {"j@corp", "ADFS"}, {"i", "Esia"}}},
		{"free at another", set("same", "esia"), "", []L{{"ivanov", "realsts"}, {"j@corp", "ADFS"}, {"same", "esia"}}},
		{"realsts makes it local", set("Ivan", "RealSTS"), "", []L{{"Ivan", "realsts"}, {"j@corp", "ADFS"}, {"same", "esia"}}},
		{"taken here", set("PETROV", "realsts"), fault.DuplicateLogin, []L{{"Ivan", "realsts"}, {"j@corp", "ADFS"}, {"same", "esia"}}},
		{"an empty one removes", set("", "esia"), "", []L{{"Ivan", "realsts"}, {"j@corp", "ADFS"}}},
		{"an empty one where there is none", set("", "esia"), "", []L{{"Ivan", "realsts"}, {"j@corp", "ADFS"}}},
		{"no issuer", set("x", ""), fault.InvalidParameters, []L{{"Ivan", "realsts"}, {"j@corp", "ADFS"}}},
		{"hostile issuer", set("x", "a\x00b"), fault.InvalidParameters, []L{{"Ivan", "realsts"}, {"j@corp", "ADFS"}}},
		{"hostile login", set("x\u202e", "adfs"), fault.InvalidParameters, []L{{"Ivan", "realsts"}, {"j@corp", "ADFS"}}},
		{"deleting without an issuer touches nothing local", remove(""), "", []L{{"Ivan", "realsts"}, {"j@corp", "ADFS"}}},
		{"deleting without an issuer by an operator from nowhere", from("saml"), fault.WrongOperation, []L{{"Ivan", "realsts"}, {"j@corp", "ADFS"}}},
		{"the operator gets a login", func() error { return w.SetLogin(t.Context(), w.a, w.a.UserID, L{Login: "op", Issuer: "Adfs"}) }, "", []L{{"Ivan", "realsts"}, {"j@corp", "ADFS"}}},
		{"deleting without an issuer by one who used the password", from("password"), "", []L{{"Ivan", "realsts"}, {"j@corp", "ADFS"}}},
		{"deleting without an issuer by one who came from adfs", from("saml"), "", []L{{"Ivan", "realsts"}}},
		{"once more", set("j@corp", "ADFS"), "", []L{{"Ivan", "realsts"}, {"j@corp", "ADFS"}}},
		{"the operator gets another", func() error { return w.SetLogin(t.Context(), w.a, w.a.UserID, L{Login: "op", Issuer: "esia"}) }, "", []L{{"Ivan", "realsts"}, {"j@corp", "ADFS"}}},
		{"deleting without an issuer where two are possible", from("saml"), fault.WrongOperation, []L{{"Ivan", "realsts"}, {"j@corp", "ADFS"}}},
		{"deleting at another issuer", remove("adfs"), "", []L{{"Ivan", "realsts"}}},
		{"deleting what is not there", remove("adfs"), "", []L{{"Ivan", "realsts"}}},
		{"local again", func() error { return w.SetLocalLogin(t.Context(), w.a, id, "ivanov") }, "", []L{{"ivanov", "realsts"}}},
		{"local, itself in another case", func() error { return w.SetLocalLogin(t.Context(), w.a, id, "IVANOV") }, "", []L{{"IVANOV", "realsts"}}},
		{"local, empty", func() error { return w.SetLocalLogin(t.Context(), w.a, id, "") }, fault.InvalidParameters, []L{{"IVANOV", "realsts"}}},
		{"deleting at realsts", remove("realsts"), "", nil},
		{"deleting the local one twice", func() error { return w.DeleteLocalLogin(t.Context(), w.a, id) }, "", nil},
	} {
		if got := codeOf(c.do()); got != c.fault {
			t.Errorf("%s: %q, want %q", c.name, got, c.fault)
		}
		if d := cmp.Diff(c.want, logins()); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
	// Two replaced at their issuers, five deletions there, whether or not there was a
	// login, and two of the local one.
	if d := cmp.Diff([]string{id, id, id, id, id, id, id, id, id}, w.out.ended); d != "" {
		t.Errorf("tokens ended with the logins they came from: %s", d)
	}
	// A login that is also the phone of another user would keep that user out.
	phone := map[user.IdentifierType]string{user.PhoneNumber: "79261234567"}
	mine, err := w.Register(t.Context(), w.a, user.Registration{Identifiers: phone})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.SetLocalLogin(t.Context(), w.b, other, "+7 (926) 123-45-67"); !fault.Is(err, fault.DuplicateLogin) {
		t.Errorf("the phone of another user as a login: %v", err)
	}
	if err := w.SetLocalLogin(t.Context(), w.a, mine, "79261234567"); err != nil {
		t.Errorf("one's own phone as a login: %v", err)
	}
	// The login is free for another user, and the user without a login is not found by
	// one.
	if err := w.SetLocalLogin(t.Context(), w.b, other, "ivanov"); err != nil {
		t.Error(err)
	}
	for _, value := range []string{"", "\x01" + id} {
		if i, err := w.Find(t.Context(), w.a, user.Login, value, ""); !fault.Is(err, fault.UserNotFound) {
			t.Errorf("%q finds %+v, %v", value, i, err)
		}
	}
	if i, err := w.Find(t.Context(), w.b, user.Login, "same", "ADFS"); err != nil || i.ID != other {
		t.Errorf("by an external login: %+v, %v", i, err)
	}
}

func TestSetPropertyAndDelete(t *testing.T) {
	w := newTown(t)
	id, other := w.person(t, w.a, "ivanov"), w.person(t, w.a, "petrov")
	for _, c := range []struct {
		property user.PropertyType
		value    string
		fault    string
	}{
		{user.DisplayName, "Иванов И. И.", ""},
		{user.DisplayName, "", fault.InvalidParameters},
		{user.DisplayName, "a\x1b[31m", fault.InvalidParameters},
		{user.LockedState, "True", ""},
		{user.LockedState, "maybe", fault.InvalidParameters},
		{2, "x", fault.InvalidParameters},
		{-1, "x", fault.InvalidParameters},
	} {
		if got := codeOf(w.SetProperty(t.Context(), w.a, id, c.property, c.value)); got != c.fault {
			t.Errorf("%d %q: %q, want %q", c.property, c.value, got, c.fault)
		}
	}
	if i := w.info(t, w.a, id); i.DisplayName != "Иванов И. И." || !i.Locked {
		t.Errorf("%+v", i)
	}
	if err := w.SetProperty(t.Context(), w.a, id, user.LockedState, "false"); err != nil || w.info(t, w.a, id).Locked {
		t.Errorf("unlocked by a property: %v", err)
	}

	if _, err := w.book.Add(t.Context(), w.a, id, contact.Phone, "79261234567"); err != nil {
		t.Fatal(err)
	}
	w.out.err = errors.New("cannot")
	if err := w.Delete(t.Context(), w.a, id, false); !errors.Is(err, w.out.err) {
		t.Errorf("tokens that cannot be ended: %v", err)
	}
	w.info(t, w.a, id)
	w.out.err, w.out.ended, w.notices.events = nil, nil, nil
	if err := w.Delete(t.Context(), w.a, id, false); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{id}, w.out.ended); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]notify.Event{{Type: notify.UserDeleted, UserID: id, Actor: w.a.UserID}}, w.notices.events); d != "" {
		t.Error(d)
	}
	if err := w.Delete(t.Context(), w.a, id, false); !fault.Is(err, fault.UserNotFound) {
		t.Errorf("twice: %v", err)
	}
	w.info(t, w.a, other)
	if again := w.person(t, w.a, "ivanov"); again == id {
		t.Error("an identifier came a second time")
	}
	if err := w.Remove(t.Context(), other, false); err != nil {
		t.Errorf("by an administrator: %v", err)
	}
}

func TestDelayedLock(t *testing.T) {
	w := newTown(t)
	id := w.person(t, w.a, "ivanov")
	start := w.clock
	state := func() string {
		t.Helper()
		i := w.info(t, w.a, id)
		if i.LockedAt.IsZero() {
			return fmt.Sprint(i.Locked)
		}
		return fmt.Sprint(i.Locked, " ", i.LockedAt.Sub(start.UTC().Truncate(time.Millisecond)))
	}
	for _, c := range []struct {
		name  string
		after time.Duration
		order *user.LockOrder
		fault string
		want  string
	}{
		{"at first", 0, nil, "", "false"},
		{"with a delay", 0, &user.LockOrder{Lock: true, UseDelay: true, Delay: 60}, "", "false 1m0s"},
		{"just before", 60*time.Second - time.Millisecond, nil, "", "false 1m0s"},
		{"due", time.Millisecond, nil, "", "true 1m0s"},
		{"a new delay for who is locked", 0, &user.LockOrder{Lock: true, UseDelay: true, Delay: 60}, "", "true 1m0s"},
		{"unlocked", 0, &user.LockOrder{}, "", "false"},
		{"delay, then canceled", 0, &user.LockOrder{Lock: true, UseDelay: true, Delay: 10}, "", "false 1m10s"},
		{"canceled", 5 * time.Second, &user.LockOrder{UseDelay: true, Delay: 99}, "", "false"},
		{"not locked later either", 10 * time.Second, nil, "", "false"},
		{"delay, then at once", 0, &user.LockOrder{Lock: true, UseDelay: true, Delay: 10}, "", "false 1m25s"},
		{"a longer one instead", 0, &user.LockOrder{Lock: true, UseDelay: true, Delay: 20}, "", "false 1m35s"},
		{"at once", time.Second, &user.LockOrder{Lock: true}, "", "true 1m16s"},
		{"again", time.Second, &user.LockOrder{Lock: true}, "", "true 1m16s"},
		{"unlocked again", 0, &user.LockOrder{}, "", "false"},
		{"delay of nothing", 0, &user.LockOrder{Lock: true, UseDelay: true}, "", "true 1m17s"},
		{"unlocked once more", 0, &user.LockOrder{}, "", "false"},
		{"below zero", 0, &user.LockOrder{Lock: true, UseDelay: true, Delay: -1}, fault.InvalidParameters, "false"},
		{"for ever", 0, &user.LockOrder{Lock: true, UseDelay: true, Delay: 1 << 62}, fault.InvalidParameters, "false"},
		{"a delay that is not used", 0, &user.LockOrder{Lock: true, Delay: -5}, "", "true 1m17s"},
	} {
		w.clock = w.clock.Add(c.after)
		if c.order != nil {
			if got := codeOf(w.SetLockedEx(t.Context(), w.a, id, *c.order)); got != c.fault {
				t.Errorf("%s: %q, want %q", c.name, got, c.fault)
			}
		}
		if got := state(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Tokens end with a lock, and with unlocking after a delayed lock. Unlocking resets wrong
// passwords.
func TestLocksEndTokens(t *testing.T) {
	w := newTown(t)
	id := w.person(t, w.a, "ivanov")
	step := func(name string, do func() error, ended, forgiven int) {
		t.Helper()
		w.out.ended, w.out.forgiven = nil, nil
		if err := do(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(w.out.ended) != ended || len(w.out.forgiven) != forgiven {
			t.Errorf("%s: ended %v, forgiven %v; want %d and %d", name, w.out.ended, w.out.forgiven, ended, forgiven)
		}
	}
	lock := func(o user.LockOrder) func() error {
		return func() error { return w.SetLockedEx(t.Context(), w.a, id, o) }
	}
	step("lock", lock(user.LockOrder{Lock: true}), 1, 0)
	step("unlock", lock(user.LockOrder{}), 1, 1)
	step("delayed lock", lock(user.LockOrder{Lock: true, UseDelay: true, Delay: 1}), 0, 0)
	step("canceled", lock(user.LockOrder{}), 0, 1)
	step("delayed lock", lock(user.LockOrder{Lock: true, UseDelay: true, Delay: 1}), 0, 0)
	w.clock = w.clock.Add(time.Second)
	step("unlock after it came due", lock(user.LockOrder{}), 1, 1)
	step("not approved", func() error { return w.Approve(t.Context(), w.a, id, false) }, 1, 0)
	if !w.info(t, w.a, id).Locked {
		t.Error("who is not approved does not look locked")
	}
	step("approved", func() error { return w.Approve(t.Context(), w.a, id, true) }, 1, 0)
	if w.info(t, w.a, id).Locked {
		t.Error("who is approved looks locked")
	}
}

func TestPolicy(t *testing.T) {
	w := newTown(t)
	w.Issuers = []user.Issuer{{Name: "adfs"}}
	d, err := w.Policy(t.Context(), w.ac)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(d.Groups, []string{"A", "C"}) || len(d.Components) != 16 || d.Components[0].Name != "CN" || len(d.Issuers) != 2 || d.Issuers[0].Name != "realsts" {
		t.Errorf("%+v", d)
	}
	if _, err := w.Policy(t.Context(), audit.Principal{UserID: "unknown"}); !fault.Is(err, fault.AccessDenied) {
		t.Errorf("unknown: %v", err)
	}
}

func TestSetOperatorGroups(t *testing.T) {
	w := newTown(t)
	id := w.person(t, w.b, "petrov")
	for name, c := range map[string]struct {
		id     string
		groups []string
		fault  string
	}{
		"no groups":     {w.a.UserID, nil, fault.InvalidParameters},
		"unknown group": {w.a.UserID, []string{"no"}, fault.InvalidParameters},
		"no operator":   {id, []string{"A"}, fault.WrongOperation},
		"unknown":       {"unknown", []string{"A"}, fault.UserNotFound},
		"good":          {w.a.UserID, []string{"B", "B"}, ""},
	} {
		if got := codeOf(w.SetOperatorGroups(t.Context(), c.id, c.groups)); got != c.fault {
			t.Errorf("%s: %q, want %q", name, got, c.fault)
		}
	}
	w.info(t, w.a, id) // the groups in the old token do not matter
	list, err := w.Operators(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, u := range list {
		count[u.ID]++
		if !u.Operator {
			t.Errorf("%s is no operator", u.Login)
		}
	}
	if count[w.a.UserID] != 1 || count[w.b.UserID] != 1 || count[id] != 0 {
		t.Errorf("operators: %v", count)
	}
}

// Two logins that look the same cannot both exist, whatever operator registers them and
// in which order; existing logins stay.
func TestLoginsThatLookAlike(t *testing.T) {
	w := newTown(t)
	ctx := t.Context()
	login := func(text string) map[user.IdentifierType]string {
		return map[user.IdentifierType]string{user.Login: text}
	}
	id, err := w.Register(ctx, w.b, user.Registration{Identifiers: login("Cop")}) // Latin
	if err != nil {
		t.Fatal(err)
	}
	other, err := w.Register(ctx, w.a, user.Registration{Identifiers: login("other")})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text, fault string
	}{
		{"сор", fault.DuplicateLogin}, {"СОР", fault.DuplicateLogin}, // Cyrillic
		{"ϲορ", fault.DuplicateLogin},    // Greek
		{"соp", fault.InvalidParameters}, // mixed
		{"сора", ""}, {"cop1", ""},
	} {
		said, err := w.CheckUnique(ctx, w.a, "", login(c.text))
		if f, _ := fault.As(err); c.fault == fault.InvalidParameters && (f == nil || f.Code != c.fault) || err == nil && said[user.Login].IsUnique != (c.fault == "") {
			t.Errorf("%q: said %+v, %v", c.text, said, err)
		}
		if err := w.SetLocalLogin(ctx, w.a, other, c.text); (err == nil) != (c.fault == "") || err != nil && !fault.Is(err, c.fault) {
			t.Errorf("%q as a login: %v, want %q", c.text, err, c.fault)
		}
		if err := w.SetLocalLogin(ctx, w.a, other, "other"); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Register(ctx, w.a, user.Registration{Identifiers: login(c.text)}); (err == nil) != (c.fault == "") || err != nil && !fault.Is(err, c.fault) {
			t.Errorf("%q registered: %v, want %q", c.text, err, c.fault)
		}
		if _, err := w.Add(ctx, user.Account{Login: c.text, Group: "A"}); c.fault != "" && !fault.Is(err, c.fault) {
			t.Errorf("%q added by an administrator: %v", c.text, err)
		}
	}
	// A user may change the script of their own login.
	if err := w.SetLocalLogin(ctx, w.b, id, "сор"); err != nil {
		t.Errorf("the user's own login in another script: %v", err)
	}
	// Logins at other providers are not checked.
	if err := w.SetLogin(ctx, w.a, other, user.ExternalLogin{Login: "оperator", Issuer: "elsewhere"}); err != nil {
		t.Error(err)
	}
	// Existing logins stay and can be managed.
	old := user.User{ID: "old", Login: "оld", DisplayName: "old", Group: "A"}
	if err := w.Store.AddUser(ctx, old, user.FoldLogin(old.Login)); err != nil {
		t.Fatal(err)
	}
	if err := w.SetProperty(ctx, w.a, old.ID, user.DisplayName, "new"); err != nil {
		t.Error(err)
	}
	if u, err := w.ByLogin(ctx, old.Login); err != nil || u.ID != old.ID {
		t.Errorf("%+v, %v", u, err)
	}
	// Concurrently.
	for range 5 {
		texts := []string{"хсо", "xco"}
		errs := make([]error, len(texts))
		ids := make([]string, len(texts))
		var wg sync.WaitGroup
		for i, text := range texts {
			wg.Go(func() { ids[i], errs[i] = w.Register(ctx, w.a, user.Registration{Identifiers: login(text)}) })
		}
		wg.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("registered at once: %v", errs)
		}
		if err := w.Delete(ctx, w.a, ids[0]+ids[1], false); err != nil {
			t.Fatal(err)
		}
	}
}
