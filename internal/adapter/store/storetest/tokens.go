// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/session"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/internal/domain/user"
)

func testTokens(t *testing.T, open func(t *testing.T) *store.DB) {
	by := func(encoded string) token.Proof { return token.Proof{Method: "password", Encoded: encoded, Now: start} }
	rule := signin.LockOut{Failures: 3, Window: 15 * time.Minute, LockOut: 20 * time.Minute}
	login := signin.LoginKey(sha256.Sum256([]byte("login")))
	cases{
		{"Passwords", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			u := person(t, db, 1)
			credential := func(login string) signin.Credential {
				t.Helper()
				c, err := s.CredentialOf(t.Context(), login, "", "")
				must(t, err)
				return c
			}
			if d := cmp.Diff(signin.Credential{User: u}, credential("user1")); d != "" {
				t.Errorf("without a password or a method: %s", d)
			}
			for _, encoded := range []string{"first", "second"} {
				must(t, s.SetPassword(t.Context(), u.ID, encoded))
				if d := cmp.Diff(signin.Credential{User: u, Encoded: encoded}, credential("user1")); d != "" {
					t.Error(d)
				}
			}
			if has, err := s.HasPassword(t.Context(), u.ID); !has || err != nil {
				t.Errorf("has a password: %v, %v", has, err)
			}
			for _, c := range []struct {
				method string
				scheme signin.Scheme
			}{
				{"password", signin.Scheme{Password: true}},
				{"none", signin.Scheme{Password: true, IDOnly: true}},
				{"saml", signin.Scheme{Password: true, IDOnly: true, External: true}},
				{"certificate", signin.Scheme{Password: true, IDOnly: true, External: true, Certificate: true}},
				{"otpviasms", signin.Scheme{Password: true, IDOnly: true, External: true, Certificate: true, SecondStep: true}},
			} {
				for level, second := range []bool{true, false, true, true} {
					must(t, s.SetMethod(t.Context(), u.ID, signin.StoredMethod{Name: c.method, Level: level}))
					if got, want := credential("user1").Scheme.SecondStep, second && c.scheme.SecondStep; got != want {
						t.Errorf("%s at level %d: a second step: %v, want %v", c.method, level, got, want)
					}
				}
				if got := credential("user1").Scheme; got != c.scheme {
					t.Errorf("with %s: %+v, want %+v", c.method, got, c.scheme)
				}
			}
			if err := s.SetPassword(t.Context(), "unknown", "x"); !errors.Is(err, session.ErrNotFound) {
				t.Errorf("unknown user: %v, want %v", err, session.ErrNotFound)
			}
			for _, hostile := range []string{"", "a\x00\xff", "' OR 1=1 --", "\x01" + u.ID} {
				if _, err := s.CredentialOf(t.Context(), hostile, hostile, hostile); !errors.Is(err, session.ErrNotFound) {
					t.Errorf("hostile login %q: %v, want %v", hostile, err, session.ErrNotFound)
				}
			}
		}},
		{"WhoIsIdentified", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			owner := map[string]user.User{}
			for i, kind := range []contact.Kind{contact.Phone, contact.Email} {
				u := person(t, db, i+1)
				value := map[contact.Type]string{contact.PhoneNumber: "79261234567", contact.EmailAddress: "a@example.ru"}[kind.Type]
				ok, err := store.Contacts{DB: db}.AddContact(t.Context(), contact.Contact{UserID: u.ID, Type: kind.Type, Value: value, Primary: true, CreatedAt: start}, value, false)
				if must(t, err); !ok {
					t.Fatal("not added")
				}
				owner[value] = u
			}
			other := person(t, db, 3)
			ok, err := store.Contacts{DB: db}.AddContact(t.Context(), contact.Contact{UserID: other.ID, Type: contact.PhoneNumber, Value: "79260000000", CreatedAt: start}, "79260000000", false)
			if must(t, err); !ok {
				t.Fatal("not added")
			}
			for _, c := range []struct {
				login, phone, email string
				want                string // login of the user, "" for no user
			}{
				{"79261234567", "79261234567", "", "User1"},
				{"a@example.ru", "", "a@example.ru", "User2"},
				{"user3", "", "", "User3"},
				{"user3", "79261234567", "a@example.ru", "User3"}, // a login has priority
				{"x", "79260000000", "", ""},                      // a contact that is not primary
				{"x", "a@example.ru", "79261234567", ""},          // of the other type
			} {
				got, err := s.CredentialOf(t.Context(), c.login, c.phone, c.email)
				if (err == nil) != (c.want != "") || got.User.Login != c.want {
					t.Errorf("%+v: %q, %v", c, got.User.Login, err)
				}
			}
			for value, u := range owner {
				must(t, store.Users{DB: db}.SetLogin(t.Context(), u.ID, "", ""))
				if name, _, err := s.SignInName(t.Context(), u.ID); name != value || err != nil {
					t.Errorf("the name of one without a login is %q, %v; want %q", name, err, value)
				}
			}
			if name, _, err := s.SignInName(t.Context(), other.ID); name != "User3" || err != nil {
				t.Errorf("name %q, %v", name, err)
			}
			if _, _, err := s.SignInName(t.Context(), "unknown"); !errors.Is(err, session.ErrNotFound) {
				t.Errorf("unknown user: %v, want %v", err, session.ErrNotFound)
			}
		}},
		{"Attempts", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			u, v := person(t, db, 1), person(t, db, 2)
			for i, c := range []struct {
				user    string
				minute  int
				correct bool
				want    bool
			}{
				{u.ID, 0, false, true},
				{u.ID, 1, false, true},
				{v.ID, 1, false, true},
				{u.ID, 2, false, true},   // the third locks out until minute 22
				{u.ID, 2, true, false},   // correct or not
				{u.ID, 21, false, false}, // nothing is counted meanwhile
				{v.ID, 21, false, true},  // another login has its own count
				{u.ID, 22, false, true},  // the end itself is free, and a new window begins
				{u.ID, 36, false, true},
				{u.ID, 37, false, true}, // minute 22 is outside of the window: this is the first
				{u.ID, 38, true, true},  // a correct one resets the count
				{u.ID, 38, false, true},
				{u.ID, 38, false, true},
				{u.ID, 38, false, true},
				{u.ID, 38, false, false},
			} {
				at := start.Add(time.Duration(c.minute) * time.Minute)
				got, err := s.BeginUserAttempt(t.Context(), c.user, at, rule)
				must(t, err)
				if got != c.want {
					t.Errorf("row %d, minute %d: %v, want %v", i, c.minute, got, c.want)
				}
				if got && c.correct {
					must(t, s.EndUserAttempt(t.Context(), c.user))
				}
			}
		}},
		{"AttemptsKeepTheirCountAfterAShortLockOut", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			short := signin.LockOut{Failures: 3, Window: time.Hour, LockOut: time.Minute}
			for i, c := range []struct {
				minute int
				want   bool
			}{
				{0, true}, {0, true}, {0, true}, {0, false},
				{1, true}, {1, false}, // one more, not three
				{2, true}, {2, false},
				{60, true}, {60, true}, {60, true}, {60, false}, // a new window
			} {
				got, err := s.BeginAttempt(t.Context(), login, start.Add(time.Duration(c.minute)*time.Minute), short)
				must(t, err)
				if got != c.want {
					t.Errorf("row %d, minute %d: %v, want %v", i, c.minute, got, c.want)
				}
			}
		}},
		{"ALimitOfOne", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			one := signin.LockOut{Failures: 1, Window: time.Minute, LockOut: time.Minute}
			for i, want := range []bool{true, false} {
				if got, err := s.BeginAttempt(t.Context(), login, start, one); err != nil || got != want {
					t.Errorf("attempt %d: %v, %v; want %v", i, got, err, want)
				}
			}
		}},
		{"AttemptsAtOnceShareTheBudget", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			ten := signin.LockOut{Failures: 10, Window: time.Minute, LockOut: time.Minute}
			admitted := make([]bool, 64)
			for _, err := range together(len(admitted), func(i int) (err error) {
				admitted[i], err = s.BeginAttempt(t.Context(), login, start, ten)
				return err
			}) {
				must(t, err)
			}
			n := 0
			for _, ok := range admitted {
				if ok {
					n++
				}
			}
			if n != 10 {
				t.Errorf("%d of 64 attempts were admitted, want 10", n)
			}
		}},
		{"AttemptsOfUsersAtOnceShareTheBudget", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			u := person(t, db, 1)
			admitted := make([]bool, 64)
			for _, err := range together(len(admitted), func(i int) (err error) {
				admitted[i], err = s.BeginUserAttempt(t.Context(), u.ID, start, rule)
				return err
			}) {
				must(t, err)
			}
			n := 0
			for _, ok := range admitted {
				if ok {
					n++
				}
			}
			if n != rule.Failures {
				t.Errorf("%d of 64 attempts were admitted, want %d", n, rule.Failures)
			}
			c, err := s.CredentialOf(t.Context(), "user1", "", "")
			must(t, err)
			if want := start.Add(rule.LockOut); !c.LockedUntil.Equal(want) {
				t.Errorf("locked until %v, want %v", c.LockedUntil, want)
			}
		}},
		{"AttemptsOfTrustedCallersAreCountedApart", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			u := person(t, db, 1)
			trusted := rule
			trusted.Trusted = true
			rules := map[bool]signin.LockOut{false: rule, true: trusted}
			for name, begin := range map[string]func(of signin.LockOut) (bool, error){
				"user":  func(of signin.LockOut) (bool, error) { return s.BeginUserAttempt(t.Context(), u.ID, start, of) },
				"login": func(of signin.LockOut) (bool, error) { return s.BeginAttempt(t.Context(), login, start, of) },
			} {
				admitted := make([]bool, 64)
				for _, err := range together(len(admitted), func(i int) (err error) {
					admitted[i], err = begin(rules[i%2 == 1])
					return err
				}) {
					must(t, err)
				}
				n := [2]int{}
				for i, ok := range admitted {
					if ok {
						n[i%2]++
					}
				}
				if n != [2]int{rule.Failures, rule.Failures} {
					t.Errorf("%s: %d attempts of untrusted and of trusted callers were admitted, want %d of each", name, n, rule.Failures)
				}
			}
			end := start.Add(rule.LockOut)
			locks := func(untrusted, trusted time.Time) {
				t.Helper()
				c, err := s.CredentialOf(t.Context(), "user1", "", "")
				must(t, err)
				if !c.LockedUntil.Equal(untrusted) || !c.TrustedLockedUntil.Equal(trusted) {
					t.Errorf("locked until %v and %v, want %v and %v", c.LockedUntil, c.TrustedLockedUntil, untrusted, trusted)
				}
			}
			locks(end, end)
			must(t, s.EndAttempt(t.Context(), u.ID, true))
			locks(end, time.Time{})
			for range rule.Failures {
				_, err := s.BeginUserAttempt(t.Context(), u.ID, start, trusted)
				must(t, err)
			}
			must(t, s.EndAttempt(t.Context(), u.ID, false))
			locks(time.Time{}, end)
			must(t, s.EndUserAttempt(t.Context(), u.ID))
			locks(time.Time{}, time.Time{})
			for _, of := range rules { // both are swept
				for range rule.Failures {
					_, err := s.BeginUserAttempt(t.Context(), u.ID, start, of)
					must(t, err)
				}
			}
			must(t, s.SweepSignIns(t.Context(), start.Add(time.Hour), rule.Window))
			locks(time.Time{}, time.Time{})
		}},
		{"Records", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			u := person(t, db, 1)
			must(t, s.SetPassword(t.Context(), u.ID, "encoded"))
			must(t, s.SetMethod(t.Context(), u.ID, signin.StoredMethod{Name: "password", Level: 1}))
			record := token.Record{ID: "jti", UserID: u.ID, ClientID: "client", Method: "password", SignedInAt: start.Add(-time.Second), CreatedAt: start, ExpiresAt: start.Add(time.Minute)}
			if ok, err := s.AddToken(t.Context(), record, by("encoded")); err != nil || !ok {
				t.Fatalf("adding: %v, %v", ok, err)
			}
			got, err := s.BearerByToken(t.Context(), "jti", start)
			must(t, err)
			if d := cmp.Diff(token.Bearer{Token: record, User: u}, got); d != "" {
				t.Error(d)
			}
			must(t, s.RevokeTokens(t.Context(), "unknown"))
			if got, err := s.BearerByToken(t.Context(), "jti", start); err != nil || got.Token.Revoked {
				t.Errorf("revoked with the tokens of another user: %v, %v", got.Token.Revoked, err)
			}
			must(t, s.RevokeTokens(t.Context(), u.ID))
			if got, err := s.BearerByToken(t.Context(), "jti", start); err != nil || !got.Token.Revoked {
				t.Errorf("not revoked: %v", err)
			}
			if _, err := s.BearerByToken(t.Context(), "unknown", start); !errors.Is(err, session.ErrNotFound) {
				t.Errorf("unknown token: %v, want %v", err, session.ErrNotFound)
			}

			record.ID = "jti-2"
			if ok, err := s.AddToken(t.Context(), record, by("an older password")); err != nil || ok {
				t.Errorf("after a change of password: %v, %v; want no token", ok, err)
			}
			must(t, store.Users{DB: db}.SetLock(t.Context(), u.ID, true, start))
			if ok, err := s.AddToken(t.Context(), record, by("encoded")); err != nil || ok {
				t.Errorf("of a locked user: %v, %v; want no token", ok, err)
			}
		}},
		{"OperatorsAreKnown", func(t *testing.T, db *store.DB) {
			s, users := store.Tokens{DB: db}, store.Users{DB: db}
			group(t, db, "A")
			group(t, db, "B")
			u := user.User{ID: "op", Login: "op", Group: "A", Operator: true}
			must(t, users.AddUser(t.Context(), u, "op"))
			must(t, users.SetOperatorGroups(t.Context(), "op", []string{"B", "A"}))
			must(t, s.SetPassword(t.Context(), "op", "encoded"))
			must(t, s.SetMethod(t.Context(), "op", signin.StoredMethod{Name: "password", Level: 1}))
			if ok, err := s.AddToken(t.Context(), token.Record{ID: "jti", UserID: "op", ExpiresAt: start}, by("encoded")); err != nil || !ok {
				t.Fatal(ok, err)
			}
			b, err := s.BearerByToken(t.Context(), "jti", start)
			must(t, err)
			groups, err := store.Approvals{DB: db}.ActingGroups(t.Context(), "op", 0, start)
			must(t, err)
			if d := cmp.Diff([]string{"A", "B"}, groups); d != "" || !b.User.Operator {
				t.Errorf("operator %v, groups %s", b.User.Operator, d)
			}
			if groups, err := (store.Approvals{DB: db}).ActingGroups(t.Context(), "op", 1, start); err != nil || !slices.Equal(groups, []string{"A"}) {
				t.Errorf("the first group is %v (%v)", groups, err)
			}
			must(t, users.SetLock(t.Context(), "op", true, start))
			if groups, err := (store.Approvals{DB: db}).ActingGroups(t.Context(), "op", 0, start); err != nil || len(groups) != 0 {
				t.Errorf("a locked operator acts for %v (%v)", groups, err)
			}
		}},
		{"Sweep", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			u := person(t, db, 1)
			must(t, s.SetPassword(t.Context(), u.ID, "encoded"))
			must(t, s.SetMethod(t.Context(), u.ID, signin.StoredMethod{Name: "password", Level: 1}))
			for id, life := range map[string]time.Duration{"past": -1, "now": 0, "next": 1} {
				if ok, err := s.AddToken(t.Context(), token.Record{ID: id, UserID: u.ID, ExpiresAt: start.Add(life * time.Minute)}, by("encoded")); err != nil || !ok {
					t.Fatal(ok, err)
				}
			}
			for range rule.Failures { // login is locked out until minute 20 with a window until 15
				_, err := s.BeginAttempt(t.Context(), login, start, rule)
				must(t, err)
			}
			must(t, s.SweepTokens(t.Context(), start.Add(time.Hour), start.Add(-2*time.Minute)))
			must(t, s.SweepSignIns(t.Context(), start.Add(time.Hour), rule.Window))
			for _, id := range []string{"past", "now", "next"} { // remembered
				if _, err := s.BearerByToken(t.Context(), id, start); err != nil {
					t.Errorf("token %s: %v", id, err)
				}
			}
			for range rule.Failures { // again, because the sweep deleted the lock-out of an hour ago
				_, err := s.BeginAttempt(t.Context(), login, start, rule)
				must(t, err)
			}
			must(t, s.SweepTokens(t.Context(), start, start))
			must(t, s.SweepSignIns(t.Context(), start, rule.Window))
			for id, want := range map[string]bool{"past": false, "now": false, "next": true} {
				_, err := s.BearerByToken(t.Context(), id, start)
				if (err == nil) != want {
					t.Errorf("token %s: %v, want found %v", id, err, want)
				}
			}
			must(t, s.SweepTokens(t.Context(), start.Add(16*time.Minute), start.Add(16*time.Minute)))
			must(t, s.SweepSignIns(t.Context(), start.Add(16*time.Minute), rule.Window))
			if ok, err := s.BeginAttempt(t.Context(), login, start.Add(16*time.Minute), rule); err != nil || ok {
				t.Errorf("a sweep lifted the lock-out: %v, %v", ok, err)
			}
			// An ended count has no effect, swept or not. What shows the sweep is a
			// window that would still contain it.
			must(t, s.SweepTokens(t.Context(), start.Add(20*time.Minute), start.Add(20*time.Minute)))
			must(t, s.SweepSignIns(t.Context(), start.Add(20*time.Minute), rule.Window))
			long := signin.LockOut{Failures: 3, Window: time.Hour, LockOut: time.Hour}
			for i := range 3 {
				if ok, err := s.BeginAttempt(t.Context(), login, start.Add(20*time.Minute), long); err != nil || !ok {
					t.Errorf("attempt %d after the sweep: %v, %v", i, ok, err)
				}
			}
		}},
		{"SweepInPortions", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			const n = 2100
			for _, err := range together(n, func(i int) error {
				_, err := s.BeginAttempt(t.Context(), signin.LoginKey(sha256.Sum256(fmt.Append(nil, i))), start, rule)
				return err
			}) {
				must(t, err)
			}
			later := start.Add(time.Hour)
			must(t, s.SweepTokens(t.Context(), later, later))
			must(t, s.SweepSignIns(t.Context(), later, rule.Window))
			long := signin.LockOut{Failures: 2, Window: 2 * time.Hour, LockOut: time.Hour}
			for i := range n {
				key := signin.LoginKey(sha256.Sum256(fmt.Append(nil, i)))
				if i%500 != 0 {
					continue
				}
				for range 2 { // the second would be refused if the old count were still there
					if ok, err := s.BeginAttempt(t.Context(), key, later, long); err != nil || !ok {
						t.Errorf("login %d after the sweep: %v, %v", i, ok, err)
					}
				}
			}
		}},
		{"SigningKeys", func(t *testing.T, db *store.DB) {
			s := store.TokenKeys{DB: db}
			first, err := s.SigningKeys(t.Context())
			if err != nil || len(first) != 0 {
				t.Fatalf("%d keys at first, %v", len(first), err)
			}
			// Processes that start together agree on one key.
			got := make([][]token.SealedKey, 8)
			for _, err := range together(len(got), func(i int) (err error) {
				got[i], err = token.EnsureSigningKey(t.Context(), s, func() (token.SealedKey, error) {
					return token.SealedKey{ID: fmt.Sprint("key", i), Sealed: []byte{0, 0xff, byte(i)}, CreatedAt: start}, nil
				})
				return err
			}) {
				must(t, err)
			}
			for _, keys := range got {
				if d := cmp.Diff(got[0], keys); d != "" || len(keys) != 1 {
					t.Errorf("%d keys: %s", len(keys), d)
				}
			}
			newer := token.SealedKey{ID: "newer", Sealed: []byte{1}, CreatedAt: start.Add(time.Second)}
			must(t, s.AddSigningKey(t.Context(), newer))
			keys, err := s.SigningKeys(t.Context())
			must(t, err)
			if d := cmp.Diff([]token.SealedKey{newer, got[0][0]}, keys); d != "" {
				t.Error(d)
			}
			if err := s.AddSigningKey(t.Context(), newer); err == nil {
				t.Error("the same identifier was added twice")
			}
		}},
	}.run(t, open)
}

func testAudit(t *testing.T, open func(t *testing.T) *store.DB) {
	cases{
		{"KeepsEveryField", func(t *testing.T, db *store.DB) {
			want := audit.Entry{
				At: start, RequestID: "r", Correlation: "given", Operation: "Sign", Phase: audit.Done, Outcome: audit.OK, Object: "1", Remote: "127.0.0.1:1", Detail: "d",
				Principal: audit.Principal{UserID: "u", Login: "l", Group: "g", Operator: true, TokenID: "t", ClientID: "c", Method: "m", Actor: "a"},
				Duration:  1500 * time.Microsecond,
			}
			s := store.Audit{DB: db}
			must(t, s.Record(t.Context(), want))
			empty := audit.Entry{At: start}
			must(t, s.Record(t.Context(), audit.Entry{})) // gets the time of the clock
			got, err := s.Last(t.Context(), 10)
			must(t, err)
			if d := cmp.Diff([]audit.Entry{want, empty}, got); d != "" {
				t.Error(d)
			}
		}},
		{"HostileText", func(t *testing.T, db *store.DB) {
			s := store.Audit{DB: db}
			for _, text := range []string{"a\x00b", "\xff\xfe", "');DROP TABLE audit;--", strings.Repeat("я", 100_000)} {
				must(t, s.Record(t.Context(), audit.Entry{Object: text, Principal: audit.Principal{Login: text}}))
			}
			got, err := s.Last(t.Context(), 10)
			must(t, err)
			var objects []string
			for _, e := range got {
				objects = append(objects, e.Object)
			}
			want := []string{"a\ufffdb", "\ufffd", "');DROP TABLE audit;--", strings.Repeat("я", 512)}
			if d := cmp.Diff(want, objects); d != "" {
				t.Error(d)
			}
		}},
		{"ReadsByUser", func(t *testing.T, db *store.DB) {
			s := store.Audit{DB: db}
			const user, other = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
			var want []string
			for i, e := range []audit.Entry{
				{Principal: audit.Principal{UserID: user}},
				{Principal: audit.Principal{UserID: other}},
				{Principal: audit.Principal{UserID: other}, Object: user},
				{Principal: audit.Principal{UserID: user}, Object: other},
				{Principal: audit.Principal{UserID: user}, Object: user}, // once
				{Object: "certificate 1"},
				{Principal: audit.Principal{UserID: user}, Phase: audit.Attempt},
				{Object: user},
				{Principal: audit.Principal{UserID: user}, Operation: "Sign", Outcome: audit.OK},
			} {
				e.RequestID, e.At = fmt.Sprint(i), start.Add(time.Duration(i)*time.Second)
				if e.Phase == "" {
					e.Phase = audit.Done
				}
				must(t, s.Record(t.Context(), e))
				if e.Principal.UserID == user || e.Object == user {
					want = append(want, e.RequestID)
				}
			}
			read := func(f store.AuditFilter, limit int) (ids []string, before int64) {
				list, before, err := s.Read(t.Context(), f, limit)
				must(t, err)
				for _, e := range list {
					ids = append(ids, e.RequestID)
				}
				return ids, before
			}
			var got []string
			for before := int64(0); len(got) < len(want); {
				page, next := read(store.AuditFilter{UserID: user, Before: before}, 2)
				if len(page) == 0 {
					break
				}
				got, before = append(page, got...), next
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			for _, c := range []struct {
				filter store.AuditFilter
				want   []string
			}{
				{store.AuditFilter{UserID: user, OutcomesOnly: true}, []string{"0", "2", "3", "4", "7", "8"}},
				{store.AuditFilter{UserID: user, Operation: "Sign", Outcome: audit.OK}, []string{"8"}},
				{store.AuditFilter{UserID: user, Since: start.Add(5 * time.Second)}, []string{"6", "7", "8"}},
				{store.AuditFilter{UserID: other}, []string{"1", "2", "3"}},
				{store.AuditFilter{UserID: "unknown"}, nil},
				{store.AuditFilter{Since: start.Add(7 * time.Second)}, []string{"7", "8"}},
				{store.AuditFilter{Since: start.Add(3 * time.Second), Until: start.Add(5 * time.Second)}, []string{"3", "4"}},
				{store.AuditFilter{UserID: user, Until: start.Add(4 * time.Second)}, []string{"0", "2", "3"}},
				{store.AuditFilter{Until: start}, nil},
				{store.AuditFilter{Until: start.Add(-time.Hour)}, nil},
				{store.AuditFilter{Until: start.Add(time.Hour)}, []string{"0", "1", "2", "3", "4", "5", "6", "7", "8"}},
				{store.AuditFilter{}, []string{"0", "1", "2", "3", "4", "5", "6", "7", "8"}},
			} {
				if got, _ := read(c.filter, 100); !cmp.Equal(c.want, got) {
					t.Errorf("%+v: %v, want %v", c.filter, got, c.want)
				}
			}
		}},
		{"BoundedWalk", func(t *testing.T, db *store.DB) {
			s := store.Audit{DB: db}
			const user, other = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
			for i := range 40 {
				e := audit.Entry{At: start.Add(time.Duration(i) * time.Minute), RequestID: fmt.Sprint(i), Operation: "Often", Outcome: audit.OK, Principal: audit.Principal{UserID: user, Login: "often"}}
				switch {
				case i == 3 || i == 17:
					e.Operation, e.Outcome, e.Principal.Login = "Rarely", "failed", "rarely"
				case i%2 == 0:
					e.Principal.UserID, e.Object = other, user
				}
				must(t, s.Record(t.Context(), e))
			}
			for _, c := range []struct {
				filter store.AuditFilter
				calls  int // of 40 entries a call looks at 8, and the last finds the end
				want   []string
			}{
				{store.AuditFilter{Operation: "Rarely"}, 6, []string{"3", "17"}},
				{store.AuditFilter{Outcome: "failed"}, 6, []string{"3", "17"}},
				{store.AuditFilter{Login: "rarely"}, 6, []string{"3", "17"}},
				{store.AuditFilter{Login: "RARELY"}, 6, []string{"3", "17"}},
				{store.AuditFilter{Login: "unknown"}, 6, nil},
				{store.AuditFilter{Login: "rarely", Since: start.Add(17 * time.Minute)}, 4, []string{"17"}},
				{store.AuditFilter{Login: "rarely", Since: start.Add(time.Hour)}, 1, nil},
				{store.AuditFilter{Operation: "Rarely", Until: start.Add(8 * time.Minute)}, 2, []string{"3"}}, // 9 entries
				{store.AuditFilter{Operation: "Rarely", Until: start.Add(3 * time.Minute)}, 1, nil},
				{store.AuditFilter{Operation: "Rarely", Since: start.Add(15 * time.Minute), Until: start.Add(20 * time.Minute)}, 1, []string{"17"}},
				{store.AuditFilter{Operation: "Rarely", Until: start.Add(time.Hour)}, 6, []string{"3", "17"}},
				{store.AuditFilter{Operation: "Rarely", Until: start.Add(-time.Hour)}, 1, nil},
				{store.AuditFilter{UserID: user, Operation: "Rarely", Until: start.Add(10 * time.Minute)}, 1, []string{"3"}},
				{store.AuditFilter{UserID: user, Operation: "Rarely"}, 3, []string{"3", "17"}},      // 20 or 21 of each index
				{store.AuditFilter{UserID: other, Operation: "Rarely"}, 3, nil},                     // 19 as the caller
				{store.AuditFilter{UserID: "unknown", Operation: "Rarely"}, 1, nil},                 // nothing to look at
				{store.AuditFilter{UserID: user, Operation: "Rarely", Before: 1}, 1, nil},           // nothing before
				{store.AuditFilter{Operation: "Rarely", Outcome: "failed"}, 6, []string{"3", "17"}}, // both
			} {
				var got []string
				calls, f := 0, c.filter
				f.Walk = 8
				for ; calls == 0 || f.Before > 0; calls++ {
					list, before, err := s.Read(t.Context(), f, 2)
					must(t, err)
					if f.Before > 0 && before >= f.Before {
						t.Fatalf("%+v: before %d", f, before)
					}
					var page []string
					for _, e := range list {
						page = append(page, e.RequestID)
					}
					got, f.Before = append(page, got...), before
				}
				if !cmp.Equal(c.want, got) || calls != c.calls {
					t.Errorf("%+v: %v in %d calls, want %v in %d", c.filter, got, calls, c.want, c.calls)
				}
			}
		}},
		{"OutOfOrder", func(t *testing.T, db *store.DB) {
			s := store.Audit{DB: db}
			for i, after := range []int{0, 200, 215, 190, 205} { // seconds
				if err := s.Record(t.Context(), audit.Entry{At: start.Add(time.Duration(after) * time.Second), RequestID: fmt.Sprint(i)}); err != nil {
					t.Fatal(err)
				}
			}
			list, _, err := s.Read(t.Context(), store.AuditFilter{Since: start.Add(202 * time.Second)}, 100)
			if err != nil || len(list) != 2 || list[0].RequestID != "2" || list[1].RequestID != "4" {
				t.Errorf("%+v, %v: want the entries 2 and 4", list, err)
			}
			list, _, err = s.Read(t.Context(), store.AuditFilter{Until: start.Add(202 * time.Second)}, 100)
			if err != nil || len(list) != 3 || list[2].RequestID != "3" {
				t.Errorf("%+v, %v: want the entries 0, 1 and 3", list, err)
			}
		}},
		{"ManyAtOnce", func(t *testing.T, db *store.DB) {
			s := store.Audit{DB: db}
			const n = 200
			for _, err := range together(n, func(i int) error {
				return s.Record(t.Context(), audit.Entry{At: start, RequestID: fmt.Sprint(i)})
			}) {
				must(t, err)
			}
			got, err := s.Last(t.Context(), 2*n)
			must(t, err)
			seen := map[string]bool{}
			for _, e := range got {
				seen[e.RequestID] = true
			}
			if len(got) != n || len(seen) != n {
				t.Errorf("%d entries of %d requests, want %d", len(got), len(seen), n)
			}
		}},
	}.run(t, open)
}
