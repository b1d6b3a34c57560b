// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/session"
	"tamga/internal/domain/signin"
	"tamga/internal/domain/token"
	"tamga/internal/domain/user"
)

func testGrants(t *testing.T, open func(t *testing.T) *store.DB) {
	grant := func(u user.User, n byte) token.Grant {
		return token.Grant{
			ID: fmt.Sprint("t", n), Handle: [32]byte{n}, Secret: [32]byte{n, 1}, UserID: u.ID, ClientID: "c", Scope: "dss offline_access",
			Method: "none", LoginOnly: n%2 == 1, SignedInAt: start, UsedAt: start, ExpiresAt: start.Add(time.Hour),
		}
	}
	// signedIn adds a user with a grant and its first token.
	signedIn := func(t *testing.T, db *store.DB, n int) (user.User, token.Grant) {
		s := store.Tokens{DB: db}
		u := person(t, db, n)
		must(t, s.SetMethod(t.Context(), u.ID, signin.StoredMethod{Name: "none", Level: 1}))
		g := grant(u, byte(n))
		ok, err := s.AddToken(t.Context(), token.Record{ID: g.ID, UserID: u.ID, GrantID: g.ID, Scope: "dss"}, token.Proof{Method: "none", Now: start})
		if must(t, err); !ok {
			t.Fatal("no token")
		}
		must(t, s.AddGrant(t.Context(), g))
		return u, g
	}
	revoked := func(t *testing.T, db *store.DB, id string) bool {
		b, err := store.Tokens{DB: db}.BearerByToken(t.Context(), id, start)
		must(t, err)
		return b.Token.Revoked
	}
	cases{
		{"Rotate", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			u, g := signedIn(t, db, 1)
			list, err := s.GrantsOf(t.Context(), u.ID, start)
			must(t, err)
			if d := cmp.Diff([]token.Grant{g}, list); d != "" {
				t.Error(d)
			}
			next := [32]byte{77}
			for name, c := range map[string]struct {
				handle, old [32]byte
				client      string
				now         time.Time
			}{
				"another handle": {[32]byte{9}, g.Secret, "c", start},
				"another secret": {g.Handle, [32]byte{9}, "c", start},
				"another client": {g.Handle, g.Secret, "x", start},
				"at its end":     {g.Handle, g.Secret, "c", g.ExpiresAt},
			} {
				if _, ok, err := s.Rotate(t.Context(), c.handle, c.old, next, c.client, c.now); ok || err != nil {
					t.Errorf("%s: %v, %v", name, ok, err)
				}
			}
			won := make([]bool, 16)
			for _, err := range together(len(won), func(i int) (err error) {
				var got token.Grant
				got, won[i], err = s.Rotate(t.Context(), g.Handle, g.Secret, [32]byte{77, byte(i)}, "c", g.ExpiresAt.Add(-time.Millisecond))
				if won[i] {
					want := g
					want.Secret, want.UsedAt = [32]byte{77, byte(i)}, g.ExpiresAt.Add(-time.Millisecond)
					if d := cmp.Diff(want, got); d != "" {
						t.Error(d)
					}
				}
				return err
			}) {
				must(t, err)
			}
			n := 0
			for _, ok := range won {
				if ok {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%d of 16 rotated one secret", n)
			}
		}},
		{"End", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			u, g := signedIn(t, db, 1)
			_, other := signedIn(t, db, 2)
			ok, err := s.AddToken(t.Context(), token.Record{ID: "later", UserID: u.ID, GrantID: g.ID}, token.Proof{Method: "none", Granted: true, Now: start})
			if must(t, err); !ok {
				t.Fatal("no token")
			}
			for i, want := range []bool{true, false} {
				if ok, err := s.EndGrant(t.Context(), g.Handle); ok != want || err != nil {
					t.Errorf("time %d: %v, %v", i, ok, err)
				}
			}
			if !revoked(t, db, g.ID) || !revoked(t, db, "later") || revoked(t, db, other.ID) {
				t.Error("want the tokens of the grant revoked and no others")
			}
			must(t, s.RevokeTokens(t.Context(), other.UserID))
			must(t, s.RevokeTokens(t.Context(), ""))
			if list, err := s.GrantsOf(t.Context(), other.UserID, start); err != nil || len(list) != 0 {
				t.Errorf("after tokens were revoked: %v, %v", list, err)
			}
		}},
		{"ReplayedCode", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			u, g := signedIn(t, db, 1)
			c := signin.Code{Hash: [32]byte{5}, UserID: u.ID, ClientID: "c", RedirectURI: "r", Method: "none", Granted: true, LoginOnly: true, Nonce: "n", Challenge: "h", SignedInAt: start, ExpiresAt: start.Add(time.Minute), Thumbprint: []byte{1}}
			must(t, s.AddCode(t.Context(), c))
			got, ok, err := s.SpendCode(t.Context(), c.Hash, "c", "r", g.ID, start)
			if d := cmp.Diff(c, got); d != "" || !ok || err != nil {
				t.Fatal(ok, err, d)
			}
			ok, err = s.AddToken(t.Context(), token.Record{ID: "later", UserID: u.ID, GrantID: g.ID}, token.Proof{Method: "none", Granted: true, Now: start})
			if must(t, err); !ok {
				t.Fatal("no token")
			}
			for _, want := range []bool{true, false} { // the second replay ends nothing
				if ended, err := s.EndReplayed(t.Context(), c.Hash, "c"); err != nil || ended != want {
					t.Errorf("a replay: %t %v, want %t", ended, err, want)
				}
			}
			if list, err := s.GrantsOf(t.Context(), u.ID, start); err != nil || len(list) != 0 || !revoked(t, db, "later") || !revoked(t, db, g.ID) {
				t.Errorf("a replay left %v, %v", list, err)
			}
		}},
		{"Derived", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			u, g := signedIn(t, db, 1)
			alone := token.Record{ID: "alone", UserID: u.ID, CreatedAt: start, ExpiresAt: start.Add(time.Minute)}
			ok, err := s.AddToken(t.Context(), alone, token.Proof{Method: "none", Now: start})
			if must(t, err); !ok {
				t.Fatal("no token")
			}
			b, err := s.BearerByToken(t.Context(), alone.ID, start)
			must(t, err)
			if !b.Token.SignedInAt.Equal(start) {
				t.Errorf("without a time of signing in: %v, want that of the token", b.Token.SignedInAt)
			}
			derived := func(id, parent, signIn string, now time.Time) bool {
				ok, err := s.AddToken(t.Context(), token.Record{ID: id, UserID: u.ID, GrantID: signIn, SignedInAt: start.Add(-time.Hour), CreatedAt: now, ExpiresAt: start.Add(time.Minute)},
					token.Proof{Method: "none", Granted: true, Parent: parent, Now: now})
				must(t, err)
				return ok
			}
			for _, c := range []struct {
				id, parent string
				now        time.Time
				want       bool
			}{
				{"of no user", "unknown", start, false},
				{"at its end", alone.ID, alone.ExpiresAt, false},
				{"child", alone.ID, alone.ExpiresAt.Add(-time.Millisecond), true},
				{"grandchild", "child", start, true},
			} {
				if got := derived(c.id, c.parent, alone.ID, c.now); got != c.want {
					t.Errorf("%s: %v, want %v", c.id, got, c.want)
				}
			}
			if b, err := s.BearerByToken(t.Context(), "child", start); err != nil || !b.Token.SignedInAt.Equal(start.Add(-time.Hour)) || b.Token.GrantID != alone.ID {
				t.Errorf("%+v, %v", b.Token, err)
			}
			code := func(n byte, signIn, parent string) signin.Code {
				c := signin.Code{Hash: [32]byte{n}, UserID: u.ID, ClientID: "c", RedirectURI: "r", Method: "none", Granted: true, SignedInAt: start, ExpiresAt: start.Add(time.Minute),
					GrantID: signIn, ParentID: parent, EndsAt: start.Add(2 * time.Minute), Thumbprint: []byte{}}
				must(t, s.AddCode(t.Context(), c))
				return c
			}
			spend := func(c signin.Code, token string) bool {
				got, ok, err := s.SpendCode(t.Context(), c.Hash, "c", "r", token, start)
				must(t, err)
				if d := cmp.Diff(c, got); ok && d != "" {
					t.Error(d)
				}
				return ok
			}
			// The replay of a derived code ends its sign-in.
			spent, waiting := code(1, alone.ID, alone.ID), code(2, alone.ID, "child")
			other := code(3, g.ID, g.ID)
			if !spend(spent, "grandchild") {
				t.Fatal("not spent")
			}
			if ended, err := s.EndReplayed(t.Context(), spent.Hash, "c"); err != nil || !ended {
				t.Errorf("a replay of a derived code: %t %v", ended, err)
			}
			for _, id := range []string{alone.ID, "child", "grandchild"} {
				if !revoked(t, db, id) {
					t.Errorf("%s outlives the replay", id)
				}
			}
			if spend(waiting, "x") || derived("late", "child", alone.ID, start) {
				t.Error("more can be derived after the replay")
			}
			// The end of a grant ends the codes of its sign-in.
			if revoked(t, db, g.ID) {
				t.Error("the replay ended another sign-in")
			}
			if ok, err := s.EndGrant(t.Context(), g.Handle); !ok || err != nil {
				t.Error(ok, err)
			}
			if spend(other, "x") {
				t.Error("a code outlives its grant")
			}
		}},
		{"SweepAndDelete", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			u, g := signedIn(t, db, 1)
			must(t, s.SweepTokens(t.Context(), g.ExpiresAt.Add(-1), g.ExpiresAt.Add(-1)))
			must(t, s.SweepSignIns(t.Context(), g.ExpiresAt.Add(-1), time.Minute))
			if ok, err := s.EndGrant(t.Context(), [32]byte{8}); ok || err != nil {
				t.Error(ok, err)
			}
			if list, err := s.GrantsOf(t.Context(), u.ID, start); err != nil || len(list) != 1 {
				t.Errorf("swept before its end: %v, %v", list, err)
			}
			must(t, s.SweepTokens(t.Context(), g.ExpiresAt, g.ExpiresAt))
			must(t, s.SweepSignIns(t.Context(), g.ExpiresAt, time.Minute))
			if list, err := s.GrantsOf(t.Context(), u.ID, start); err != nil || len(list) != 0 {
				t.Errorf("after its end: %v, %v", list, err)
			}
			v, _ := signedIn(t, db, 2)
			must(t, store.Users{DB: db}.DeleteUser(t.Context(), v.ID))
			if list, err := s.GrantsOf(t.Context(), v.ID, start); err != nil || len(list) != 0 {
				t.Errorf("of a deleted user: %v, %v", list, err)
			}
		}},
		{"Delegated", func(t *testing.T, db *store.DB) {
			s, users := store.Tokens{DB: db}, store.Users{DB: db}
			group(t, db, "Default")
			group(t, db, "Other")
			u := person(t, db, 1)
			op := user.User{ID: "op", Login: "Op", Group: "Other", Operator: true, CreatedAt: start}
			must(t, users.AddUser(t.Context(), op, "op"))
			must(t, users.SetOperatorGroups(t.Context(), "op", []string{"Default"}))
			if list, err := users.Operators(t.Context()); err != nil || len(list) != 1 || list[0].ID != "op" {
				t.Errorf("operators: %+v, %v", list, err)
			}
			ok, err := s.AddToken(t.Context(), token.Record{ID: "d", UserID: u.ID, ActorID: "op", Method: "delegated"}, token.Proof{Method: "delegated", Delegated: true, Now: start})
			if must(t, err); !ok {
				t.Fatal("no token")
			}
			for _, c := range []struct {
				name    string
				change  func() error
				now     time.Time
				severed bool
			}{
				{"at first", func() error { return nil }, start, false},
				{"a lock to come", func() error { return users.SetLock(t.Context(), "op", false, start.Add(time.Second)) }, start, false},
				{"come due", func() error { return nil }, start.Add(time.Second), true},
				{"lifted", func() error { return users.SetLock(t.Context(), "op", false, time.Time{}) }, start.Add(time.Second), false},
				{"other groups", func() error { return users.SetOperatorGroups(t.Context(), "op", []string{"Other"}) }, start, true},
				{"back", func() error { return users.SetOperatorGroups(t.Context(), "op", []string{"Default", "Other"}) }, start, false},
				{"the user moved", func() error { return users.SetGroup(t.Context(), u.ID, "Other") }, start, false},
				{"deleted", func() error { return users.DeleteUser(t.Context(), "op") }, start, true},
			} {
				must(t, c.change())
				b, err := s.BearerByToken(t.Context(), "d", c.now)
				must(t, err)
				if b.Severed != c.severed || b.Token.ActorID != "op" || b.User.ID != u.ID || b.Token.Revoked || b.Actor != "Op" && c.name != "deleted" {
					t.Errorf("%s: %+v", c.name, b)
				}
			}
			must(t, s.RevokeTokens(t.Context(), "op"))
			if !revoked(t, db, "d") {
				t.Error("the token is valid after the operator's own tokens were revoked")
			}
			must(t, users.SetLock(t.Context(), u.ID, true, start))
			if ok, err := s.AddToken(t.Context(), token.Record{ID: "e", UserID: u.ID, ActorID: "op"}, token.Proof{Delegated: true, Now: start}); ok || err != nil {
				t.Errorf("for a locked user: %v, %v", ok, err)
			}
		}},
		{"OfACertificate", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			u := person(t, db, 1)
			must(t, s.SetMethod(t.Context(), u.ID, signin.StoredMethod{Name: "certificate", Level: 1}))
			p := token.Proof{Method: "certificate", Granted: true, Now: start.Add(-1)}
			for i, want := range []bool{false, true, false} {
				switch i {
				case 1:
					_, err := s.AddCertificate(t.Context(), signin.SignInCertificate{Thumbprint: [32]byte{1}, UserID: u.ID, NotAfter: start})
					must(t, err)
				case 2:
					p.Now = start // it has expired
				}
				ok, err := s.AddToken(t.Context(), token.Record{ID: fmt.Sprint("c", i), UserID: u.ID}, p)
				if must(t, err); ok != want {
					t.Errorf("row %d: %v, want %v", i, ok, want)
				}
			}
		}},
		{"ExternalLogins", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			group(t, db, "Default")
			u, _ := signedIn(t, db, 1)
			must(t, store.Users{DB: db}.SetExternalLogin(t.Context(), u.ID, user.ExternalLogin{Login: "A", Issuer: "I"}, "i", "a"))
			must(t, s.SetMethod(t.Context(), u.ID, signin.StoredMethod{Name: "saml", Level: 1}))
			c, err := s.CredentialOfExternal(t.Context(), "i", "a")
			if err != nil || c.User.ID != u.ID || !c.Scheme.External || c.Scheme.SecondStep {
				t.Errorf("%+v, %v", c, err)
			}
			for _, pair := range [][2]string{{"i", "b"}, {"j", "a"}, {"", ""}, {"i", "\x00\xff"}} {
				if _, err := s.CredentialOfExternal(t.Context(), pair[0], pair[1]); !errors.Is(err, session.ErrNotFound) {
					t.Errorf("%q: %v", pair, err)
				}
			}
		}},
		{"ExternalVisits", func(t *testing.T, db *store.DB) {
			s := store.Tokens{DB: db}
			v := signin.ExternalVisit{Handle: [32]byte{1}, Ticket: "t", ReturnsTo: "https://app.example/cb", ExpiresAt: start.Add(time.Minute)}
			must(t, s.AddExternalVisit(t.Context(), v))
			if got, err := s.ExternalVisit(t.Context(), v.Handle, start); err != nil || !got.ExpiresAt.Equal(v.ExpiresAt) || got.Ticket != v.Ticket || got.ReturnsTo != v.ReturnsTo {
				t.Errorf("%+v, %v", got, err)
			}
			gone := func(what string, handle [32]byte, now time.Time) {
				t.Helper()
				if _, err := s.ExternalVisit(t.Context(), handle, now); !errors.Is(err, session.ErrNotFound) {
					t.Errorf("%s: %v", what, err)
				}
				if ended, err := s.EndExternalVisit(t.Context(), handle, now); err != nil || ended {
					t.Errorf("%s: ended %v, %v", what, ended, err)
				}
			}
			gone("another's", [32]byte{2}, start)
			gone("expired", v.Handle, v.ExpiresAt)
			must(t, s.SweepTokens(t.Context(), start, start))
			must(t, s.SweepSignIns(t.Context(), start, time.Hour))
			won := make(chan bool, 8)
			var wg sync.WaitGroup
			for range cap(won) {
				wg.Go(func() {
					ended, err := s.EndExternalVisit(t.Context(), v.Handle, start)
					if err != nil {
						t.Error(err)
					}
					won <- ended
				})
			}
			wg.Wait()
			close(won)
			times := 0
			for ended := range won {
				if ended {
					times++
				}
			}
			if times != 1 {
				t.Errorf("ended %d times", times)
			}
			gone("ended", v.Handle, start)
			must(t, s.SweepTokens(t.Context(), v.ExpiresAt, v.ExpiresAt))
			must(t, s.SweepSignIns(t.Context(), v.ExpiresAt, time.Hour))
			must(t, s.AddExternalVisit(t.Context(), v)) // no row is left in its place
		}},
		{"DeleteSigningKey", func(t *testing.T, db *store.DB) {
			s := store.TokenKeys{DB: db}
			for i := range 2 {
				must(t, s.AddSigningKey(t.Context(), token.SealedKey{ID: fmt.Sprint(i), Sealed: []byte{1}, CreatedAt: start}))
			}
			must(t, s.DeleteSigningKey(t.Context(), "0"))
			must(t, s.DeleteSigningKey(t.Context(), "none"))
			keys, err := s.SigningKeys(t.Context())
			if err != nil || len(keys) != 1 || keys[0].ID != "1" {
				t.Errorf("%v, %v", keys, err)
			}
		}},
	}.run(t, open)
}
