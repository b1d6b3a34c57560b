// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/contact"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/session"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/internal/domain/user"
)

// testPeople tests what operators do to users: reach, logins, names, locks and deletion.
func testPeople(t *testing.T, open func(t *testing.T) *store.DB) {
	cases{
		{"Reach", func(t *testing.T, db *store.DB) {
			s := store.Users{DB: db}
			for _, g := range []string{"Default", "A", "B"} {
				group(t, db, g)
			}
			u := person(t, db, 1)
			operator := func(id, home string, groups ...string) string {
				must(t, s.AddUser(t.Context(), user.User{ID: id, Login: id, Group: home, Operator: true}, id))
				must(t, s.SetOperatorGroups(t.Context(), id, groups))
				return id
			}
			d, a, both := operator("d", "Default", "Default"), operator("a", "A", "A"), operator("both", "Default", "A", "Default")
			reach := func(who, whom string) bool {
				t.Helper()
				ok, err := s.Reachable(t.Context(), who, whom, start)
				must(t, err)
				return ok
			}
			for _, c := range []struct {
				who, whom string
				want      bool
			}{
				{d, u.ID, true}, {both, u.ID, true}, {a, u.ID, false},
				{d, "unknown", false}, {"unknown", u.ID, false}, {u.ID, u.ID, false}, {"", "", false}, {"' OR 1=1 --", u.ID, false}, {d, "a\x00b", false},
				{d, both, false}, // an operator with a group that the first operator does not have
				{both, d, true}, {d, d, true}, {a, d, false},
			} {
				if got := reach(c.who, c.whom); got != c.want {
					t.Errorf("%q reaches %q: %v, want %v", c.who, c.whom, got, c.want)
				}
			}
			barred := []struct {
				name     string
				bar, lif func() error
			}{
				{"locked", func() error { return s.SetLock(t.Context(), d, true, start) }, func() error { return s.SetLock(t.Context(), d, false, time.Time{}) }},
				{"lock come due", func() error { return s.SetLock(t.Context(), d, false, start) }, func() error { return s.SetLock(t.Context(), d, false, start.Add(time.Millisecond)) }},
				{"not approved", func() error { return s.SetUnapproved(t.Context(), d, true) }, func() error { return s.SetUnapproved(t.Context(), d, false) }},
			}
			for _, c := range barred {
				must(t, c.bar())
				if groups, err := s.ActingGroups(t.Context(), d, 0, start); err != nil || len(groups) != 0 || reach(d, u.ID) {
					t.Errorf("an operator who is barred (%s) acts for %v, %v", c.name, groups, err)
				}
				must(t, c.lif())
				if groups, err := s.ActingGroups(t.Context(), d, 0, start); err != nil || !slices.Equal(groups, []string{"Default"}) || !reach(d, u.ID) {
					t.Errorf("after %s: %v, %v", c.name, groups, err)
				}
			}
			must(t, s.SetGroup(t.Context(), u.ID, "B"))
			if reach(d, u.ID) || reach(both, u.ID) {
				t.Error("a user in another group is reached")
			}
			if err := s.SetGroup(t.Context(), u.ID, "no"); !errors.Is(err, user.ErrNoGroup) {
				t.Errorf("unknown group: %v", err)
			}
			if err := s.SetGroup(t.Context(), "unknown", "A"); !errors.Is(err, user.ErrNotFound) {
				t.Errorf("unknown user: %v", err)
			}
			if _, err := s.InfoByID(t.Context(), d, u.ID, start); !errors.Is(err, user.ErrNotFound) {
				t.Errorf("the record of the user in another group: %v", err)
			}
		}},
		{"Groups", func(t *testing.T, db *store.DB) {
			s, policies := store.Users{DB: db}, store.Policies{DB: db}
			group(t, db, "Default")
			group(t, db, "Empty")
			u := person(t, db, 1)
			must(t, s.AddUser(t.Context(), user.User{ID: "olga", Login: "olga", Group: "Default", Operator: true}, "olga"))
			must(t, s.SetOperatorGroups(t.Context(), "olga", []string{"Default", "Empty"}))
			must(t, policies.SetGroup(t.Context(), "Default", policy.Access, &policy.Setting{Actions: policy.ChangePin}))
			for _, c := range []struct {
				what string
				err  error
				want error
			}{
				{"an unknown group renamed", s.RenameGroup(t.Context(), "default", "New"), user.ErrNoGroup},
				{"a name that is taken", s.RenameGroup(t.Context(), "Default", "Empty"), user.ErrDuplicate},
				{"the same name", s.RenameGroup(t.Context(), "Default", "Default"), user.ErrDuplicate},
				{"an unknown group deleted", s.DeleteGroup(t.Context(), "default"), user.ErrNoGroup},
				{"a group with users deleted", s.DeleteGroup(t.Context(), "Default"), user.ErrGroupUsed},
				{"a group with an operator deleted", s.DeleteGroup(t.Context(), "Empty"), user.ErrGroupUsed},
			} {
				if !errors.Is(c.err, c.want) {
					t.Errorf("%s: %v, want %v", c.what, c.err, c.want)
				}
			}
			must(t, s.RenameGroup(t.Context(), "Default", "Staff"))
			if x, err := s.UserByID(t.Context(), u.ID); err != nil || x.Group != "Staff" {
				t.Errorf("the user is in %q, %v", x.Group, err)
			}
			if groups, err := s.OperatorGroups(t.Context(), "olga"); err != nil || !slices.Equal(groups, []string{"Empty", "Staff"}) {
				t.Errorf("the operator has %q, %v", groups, err)
			}
			if p, err := policies.GroupSetting(t.Context(), "Staff", policy.Access); err != nil || p == nil || p.Actions != policy.ChangePin {
				t.Errorf("the policy is %+v, %v", p, err)
			}
			must(t, s.SetOperatorGroups(t.Context(), "olga", []string{"Staff"}))
			must(t, s.DeleteGroup(t.Context(), "Empty"))
			if groups, err := s.Groups(t.Context()); err != nil || len(groups) != 1 || groups[0].Name != "Staff" || !groups[0].CreatedAt.Equal(start) {
				t.Errorf("groups are %+v, %v", groups, err)
			}
		}},
		{"Logins", func(t *testing.T, db *store.DB) {
			s := store.Users{DB: db}
			group(t, db, "Default")
			u, v := person(t, db, 1), person(t, db, 2)
			if err := s.SetLogin(t.Context(), u.ID, "USER2", "user2"); !errors.Is(err, user.ErrDuplicate) {
				t.Errorf("taken: %v", err)
			}
			must(t, s.SetLogin(t.Context(), u.ID, "New", "new"))
			must(t, s.SetLogin(t.Context(), u.ID, "NEW", "new"))
			if _, err := s.UserByLogin(t.Context(), "user1"); !errors.Is(err, user.ErrNotFound) {
				t.Errorf("the old login: %v", err)
			}
			must(t, s.SetLogin(t.Context(), u.ID, "", ""))
			must(t, s.SetLogin(t.Context(), v.ID, "", "")) // two users may have no login
			must(t, s.SetLogin(t.Context(), v.ID, "", ""))
			if got, err := s.UserByID(t.Context(), u.ID); err != nil || got.Login != "" {
				t.Errorf("%+v, %v", got, err)
			}
			for _, find := range []string{"", "\x01" + u.ID} {
				if _, err := s.UserByLogin(t.Context(), find); !errors.Is(err, user.ErrNotFound) {
					t.Errorf("%q: %v", find, err)
				}
				if _, err := s.OwnerOfLogin(t.Context(), find); !errors.Is(err, user.ErrNotFound) {
					t.Errorf("%q: %v", find, err)
				}
			}
			if err := s.SetLogin(t.Context(), "unknown", "x", "x"); !errors.Is(err, user.ErrNotFound) {
				t.Errorf("no user: %v", err)
			}

			ids := make([]user.User, 8)
			for i := range ids {
				ids[i] = person(t, db, 10+i)
			}
			for _, set := range []func(i int) error{
				func(i int) error { return s.SetLogin(t.Context(), ids[i].ID, "wanted", "wanted") },
				func(i int) error {
					return s.SetExternalLogin(t.Context(), ids[i].ID, user.ExternalLogin{Login: "w", Issuer: "x"}, "x", "w")
				},
			} {
				won := 0
				for _, err := range together(len(ids), set) {
					if err == nil {
						won++
					} else if !errors.Is(err, user.ErrDuplicate) {
						t.Error(err)
					}
				}
				if won != 1 {
					t.Errorf("%d of %d got one login", won, len(ids))
				}
			}
		}},
		{"NamesAtOnce", func(t *testing.T, db *store.DB) {
			s := store.Users{DB: db}
			group(t, db, "Default")
			name := user.Name{Values: map[string]string{"2.5.4.3": "x"}, Text: "CN=x", Folded: "cn=x", Key: [32]byte{1}, Unique: true}
			ids := make([]user.User, 8)
			for i := range ids {
				ids[i] = person(t, db, i)
			}
			won := 0
			for _, err := range together(len(ids), func(i int) error { return s.SetName(t.Context(), ids[i].ID, name) }) {
				if err == nil {
					won++
				} else if !errors.Is(err, user.ErrDuplicate) {
					t.Error(err)
				}
			}
			if won != 1 {
				t.Errorf("%d of %d got one name", won, len(ids))
			}
			if taken, err := s.NameTaken(t.Context(), name.Key, "", start); !taken || err != nil {
				t.Errorf("taken: %v, %v", taken, err)
			}
			if taken, err := s.NameTaken(t.Context(), name.Key, ids[0].ID, start); taken || err != nil {
				t.Errorf("taken, for an operator without groups: %v, %v", taken, err)
			}
			// A name from before names were unique counts too.
			older := name
			older.Key, older.Unique = [32]byte{2}, false
			must(t, s.SetName(t.Context(), ids[0].ID, older))
			must(t, s.SetName(t.Context(), ids[1].ID, older))
			older.Unique = true
			if err := s.SetName(t.Context(), ids[2].ID, older); !errors.Is(err, user.ErrDuplicate) {
				t.Errorf("a name of two others: %v", err)
			}
		}},
		{"DeleteTakesEverything", func(t *testing.T, db *store.DB) {
			s, tokens, contacts := store.Users{DB: db}, store.Tokens{DB: db}, store.Contacts{DB: db}
			group(t, db, "Default")
			u, other := person(t, db, 1), person(t, db, 2)
			for _, x := range []user.User{u, other} {
				n := byte(len(x.ID)) + x.ID[35]
				must(t, s.SetName(t.Context(), x.ID, user.Name{Values: map[string]string{"2.5.4.3": "x"}, Text: "CN=x", Key: [32]byte{n}, Unique: true}))
				must(t, s.SetExternalLogin(t.Context(), x.ID, user.ExternalLogin{Login: x.Login, Issuer: "i"}, "i", x.Login))
				must(t, tokens.SetPassword(t.Context(), x.ID, "p"))
				must(t, tokens.SetMethod(t.Context(), x.ID, signin.StoredMethod{Name: "password", Level: 1}))
				_, err := tokens.BeginUserAttempt(t.Context(), x.ID, start, signin.LockOut{Failures: 1, Window: time.Hour, LockOut: time.Hour})
				must(t, err)
				_, err = tokens.AddCertificate(t.Context(), signin.SignInCertificate{Thumbprint: [32]byte{n}, UserID: x.ID})
				must(t, err)
				must(t, tokens.AddCode(t.Context(), signin.Code{Hash: [32]byte{n}, UserID: x.ID, ExpiresAt: start}))
				_, err = tokens.AddToken(t.Context(), token.Record{ID: x.ID, UserID: x.ID}, token.Proof{Method: "password", Encoded: "p", Now: start})
				must(t, err)
				_, err = contacts.AddContact(t.Context(), contact.Contact{UserID: x.ID, Type: contact.PhoneNumber, Value: x.ID}, x.ID, false)
				must(t, err)
			}
			must(t, s.DeleteUser(t.Context(), u.ID))
			if err := s.DeleteUser(t.Context(), u.ID); !errors.Is(err, user.ErrNotFound) {
				t.Errorf("twice: %v", err)
			}
			left := func(id string) string {
				_, byToken := tokens.BearerByToken(t.Context(), id, start)
				methods, err := tokens.MethodsOf(t.Context(), id)
				must(t, err)
				certificates, err := tokens.CertificatesOf(t.Context(), id)
				must(t, err)
				name, err := s.NameOf(t.Context(), id)
				must(t, err)
				logins, err := s.ExternalLogins(t.Context(), id)
				must(t, err)
				password, err := tokens.HasPassword(t.Context(), id)
				must(t, err)
				phones, err := contacts.Contacts(t.Context(), id, contact.PhoneNumber)
				must(t, err)
				return fmt.Sprint(byToken == nil, len(methods), len(certificates), len(name), len(logins), password, len(phones))
			}
			if got, want := left(u.ID), "false 0 0 0 0 false 0"; got != want {
				t.Errorf("of the deleted user there is %s, want %s", got, want)
			}
			if got, want := left(other.ID), "true 1 1 1 1 true 1"; got != want {
				t.Errorf("of another there is %s, want %s", got, want)
			}
		}},
	}.run(t, open)
}

// testMethods tests methods, certificates and codes.
func testMethods(t *testing.T, open func(t *testing.T) *store.DB) {
	cases{
		{"ProofOfTokens", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			u := person(t, db, 1)
			must(t, s.SetPassword(t.Context(), u.ID, "p"))
			print := [32]byte{1}
			ok, err := s.AddCertificate(t.Context(), signin.SignInCertificate{Thumbprint: print, UserID: u.ID})
			if must(t, err); !ok {
				t.Fatal("not added")
			}
			has := func(names ...string) {
				for _, m := range signin.Methods() {
					_, err := s.DeleteMethod(t.Context(), u.ID, m.Name)
					must(t, err)
				}
				for _, name := range names {
					must(t, s.SetMethod(t.Context(), u.ID, signin.StoredMethod{Name: name, Level: 2}))
				}
			}
			password := token.Proof{Method: "password", Encoded: "p", Now: start}
			certificate := token.Proof{Method: "certificate", Thumbprint: print[:], Now: start}
			for i, c := range []struct {
				methods []string
				proof   token.Proof
				want    bool
			}{
				{nil, password, false},
				{nil, certificate, false},
				{nil, token.Proof{Method: "none", Now: start}, false},
				{[]string{"password"}, password, true},
				{[]string{"password"}, token.Proof{Method: "password", Encoded: "other", Now: start}, false},
				{[]string{"password"}, token.Proof{Method: "password", Now: start}, false},
				{[]string{"password"}, certificate, false},
				{[]string{"password", "none"}, token.Proof{Method: "none", Now: start}, true},
				{[]string{"certificate"}, certificate, true},
				{[]string{"certificate"}, token.Proof{Method: "certificate", Thumbprint: []byte{2}, Now: start}, false},
				{[]string{"certificate"}, token.Proof{Method: "certificate", Now: start}, false},
				{[]string{"saml"}, token.Proof{Method: "saml", Now: start}, false},
				{[]string{"otpviasms"}, token.Proof{Method: "otpviasms", Now: start}, false},
				{[]string{"password", "oath"}, password, false},
				{[]string{"certificate", "mydss"}, certificate, false},
				{[]string{"password", "oath"}, token.Proof{Method: "password", Encoded: "p", SecondStep: true, Now: start}, true},
				{[]string{"password", "oath"}, token.Proof{Method: "password", Encoded: "other", SecondStep: true, Now: start}, false},
				{[]string{"oath"}, token.Proof{Method: "password", Encoded: "p", SecondStep: true, Now: start}, false},
				{nil, token.Proof{Confirmed: true, Now: start}, true},
			} {
				has(c.methods...)
				ok, err := s.AddToken(t.Context(), token.Record{ID: fmt.Sprint(i), UserID: u.ID, Method: c.proof.Method}, c.proof)
				if must(t, err); ok != c.want {
					t.Errorf("row %d, %v with %+v: %v, want %v", i, c.methods, c.proof, ok, c.want)
				}
			}
			has("password")
			users := store.Users{DB: db}
			for i, c := range []struct {
				name string
				bar  func() error
				now  time.Time
				want bool
			}{
				{"a lock to come", func() error { return users.SetLock(t.Context(), u.ID, false, start.Add(time.Second)) }, start, true},
				{"a moment before", func() error { return nil }, start.Add(time.Second - time.Millisecond), true},
				{"come due", func() error { return nil }, start.Add(time.Second), false},
				{"locked", func() error { return users.SetLock(t.Context(), u.ID, true, start) }, start, false},
				{"unlocked", func() error { return users.SetLock(t.Context(), u.ID, false, time.Time{}) }, start, true},
				{"not approved", func() error { return users.SetUnapproved(t.Context(), u.ID, true) }, start, false},
			} {
				must(t, c.bar())
				p := password
				p.Now = c.now
				ok, err := s.AddToken(t.Context(), token.Record{ID: fmt.Sprint("bar", i), UserID: u.ID, Method: "password"}, p)
				if must(t, err); ok != c.want {
					t.Errorf("%s: %v, want %v", c.name, ok, c.want)
				}
			}
		}},
		{"Certificates", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			u, v := person(t, db, 1), person(t, db, 2)
			c := signin.SignInCertificate{Thumbprint: [32]byte{7}, UserID: u.ID, Subject: "CN=Имя", Issuer: "CN=CA", Serial: "0a", NotAfter: start.Add(time.Hour), CreatedAt: start}
			for i, want := range []bool{true, false} {
				if ok, err := s.AddCertificate(t.Context(), c); ok != want || err != nil {
					t.Errorf("time %d: %v, %v; want %v", i, ok, err, want)
				}
			}
			theirs := c
			theirs.UserID = v.ID
			if ok, err := s.AddCertificate(t.Context(), theirs); ok || err != nil {
				t.Errorf("for another user: %v, %v", ok, err)
			}
			list, err := s.CertificatesOf(t.Context(), u.ID)
			must(t, err)
			if d := cmp.Diff([]signin.SignInCertificate{c}, list); d != "" {
				t.Error(d)
			}
			b, scheme, err := s.BearerByCertificate(t.Context(), c.Thumbprint)
			if d := cmp.Diff(token.Bearer{User: u}, b); d != "" || err != nil || scheme != (signin.Scheme{}) {
				t.Error(d, err, scheme)
			}
			if ok, err := s.RemoveCertificate(t.Context(), v.ID, c.Thumbprint); ok || err != nil {
				t.Errorf("by another user: %v, %v", ok, err)
			}
			if ok, err := s.RemoveCertificate(t.Context(), u.ID, c.Thumbprint); !ok || err != nil {
				t.Errorf("%v, %v", ok, err)
			}
			if _, _, err := s.BearerByCertificate(t.Context(), c.Thumbprint); !errors.Is(err, session.ErrNotFound) {
				t.Errorf("after that: %v", err)
			}
		}},
		{"Codes", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			u := person(t, db, 1)
			code := signin.Code{Hash: [32]byte{9}, UserID: u.ID, ClientID: "c", RedirectURI: "r", Scope: "dss", Method: "certificate", Thumbprint: []byte{1, 2}, ExpiresAt: start.Add(time.Minute)}
			must(t, s.AddCode(t.Context(), code))
			for name, spend := range map[string]func() (signin.Code, bool, error){
				"another client":  func() (signin.Code, bool, error) { return s.SpendCode(t.Context(), code.Hash, "x", "r", "t", start) },
				"another address": func() (signin.Code, bool, error) { return s.SpendCode(t.Context(), code.Hash, "c", "x", "t", start) },
				"another code":    func() (signin.Code, bool, error) { return s.SpendCode(t.Context(), [32]byte{8}, "c", "r", "t", start) },
				"at its end": func() (signin.Code, bool, error) {
					return s.SpendCode(t.Context(), code.Hash, "c", "r", "t", code.ExpiresAt)
				},
			} {
				if _, ok, err := spend(); ok || err != nil {
					t.Errorf("%s: %v, %v", name, ok, err)
				}
			}
			won := make([]bool, 16)
			for _, err := range together(len(won), func(i int) (err error) {
				var got signin.Code
				got, won[i], err = s.SpendCode(t.Context(), code.Hash, "c", "r", fmt.Sprint("t", i), code.ExpiresAt.Add(-time.Millisecond))
				if won[i] {
					if d := cmp.Diff(code, got); d != "" {
						t.Error(d)
					}
				}
				return err
			}) {
				must(t, err)
			}
			n, winner := 0, ""
			for i, ok := range won {
				if ok {
					n++
					winner = fmt.Sprint("t", i)
				}
			}
			if n != 1 {
				t.Fatalf("%d of 16 spent one code", n)
			}
			must(t, s.SetMethod(t.Context(), u.ID, signin.StoredMethod{Name: "none", Level: 1}))
			for _, id := range []string{winner, "other"} {
				ok, err := s.AddToken(t.Context(), token.Record{ID: id, UserID: u.ID}, token.Proof{Method: "none", Now: start})
				if must(t, err); !ok {
					t.Fatal("no token")
				}
			}
			if ended, err := s.EndReplayed(t.Context(), code.Hash, "x"); err != nil || ended {
				t.Errorf("a replay by x: %t %v", ended, err)
			}
			if b, err := s.BearerByToken(t.Context(), winner, start); err != nil || b.Token.Revoked {
				t.Errorf("a replay by another client ended the token: %v", err)
			}
			if ended, err := s.EndReplayed(t.Context(), code.Hash, "c"); err != nil || !ended {
				t.Errorf("a replay by c: %t %v", ended, err)
			}
			if b, err := s.BearerByToken(t.Context(), winner, start); err != nil || !b.Token.Revoked {
				t.Errorf("the token is valid after a replay: %v", err)
			}
			if b, err := s.BearerByToken(t.Context(), "other", start); err != nil || b.Token.Revoked {
				t.Errorf("a replay ended another token: %v", err)
			}
			must(t, errors.Join(s.SweepTokens(t.Context(), code.ExpiresAt, code.ExpiresAt), s.SweepSignIns(t.Context(), code.ExpiresAt, time.Minute)))
			must(t, s.RevokeTokens(t.Context(), u.ID))
			fresh := code
			fresh.Hash = [32]byte{10}
			must(t, s.AddCode(t.Context(), fresh))
			must(t, s.RevokeTokens(t.Context(), u.ID))
			if _, ok, err := s.SpendCode(t.Context(), fresh.Hash, "c", "r", "t", start); ok || err != nil {
				t.Errorf("a code from before grants were revoked: %v, %v", ok, err)
			}
		}},
	}.run(t, open)
}
