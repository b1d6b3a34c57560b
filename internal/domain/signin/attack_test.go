// SPDX-License-Identifier: Apache-2.0

package signin_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/password"
	"tamga/internal/domain/signin"
	tokens "tamga/internal/domain/token"
	"tamga/internal/domain/user"
)

// watched notes the names of the calls it passes on.
type watched struct {
	store.Tokens
	calls []string
}

func (w *watched) CredentialOf(ctx context.Context, folded, phone, email string) (signin.Credential, error) {
	w.calls = append(w.calls, "look up")
	return w.Tokens.CredentialOf(ctx, folded, phone, email)
}

func (w *watched) BeginAttempt(ctx context.Context, login signin.LoginKey, now time.Time, rule signin.LockOut) (bool, error) {
	w.calls = append(w.calls, "count")
	return w.Tokens.BeginAttempt(ctx, login, now, rule)
}

func (w *watched) BeginUserAttempt(ctx context.Context, id string, now time.Time, rule signin.LockOut) (bool, error) {
	w.calls = append(w.calls, "count")
	return w.Tokens.BeginUserAttempt(ctx, id, now, rule)
}

func (w *watched) EndAttempt(ctx context.Context, id string, trusted bool) error {
	w.calls = append(w.calls, "forget")
	return w.Tokens.EndAttempt(ctx, id, trusted)
}

func (w *watched) EndUserAttempt(ctx context.Context, id string) error {
	w.calls = append(w.calls, "forget")
	return w.Tokens.EndUserAttempt(ctx, id)
}

func (w *watched) AddToken(ctx context.Context, t tokens.Record, p tokens.Proof) (bool, error) {
	w.calls = append(w.calls, "record")
	return w.Tokens.AddToken(ctx, t, p)
}

// User enumeration by time: every refusal of a password does the same work in the database.
// The derivation takes the same time because of the dummy hash. Ways without a password do
// no such work for any user.
func TestEnumerationByTime(t *testing.T) {
	b := newBench(t)
	op := b.operator(t, "op", "Default")
	b.register(t, op, map[user.IdentifierType]string{user.Login: "no method"})
	idonly := b.register(t, op, map[user.IdentifierType]string{user.Login: "idonly"})
	b.set(t, op, idonly, "idonly")
	locked := b.register(t, op, map[user.IdentifierType]string{user.Login: "locked"})
	b.set(t, op, locked, "password", "idonly")
	if err := b.SetPassword(t.Context(), locked, secret); err != nil {
		t.Fatal(err)
	}
	if err := b.users.SetLocked(t.Context(), op, locked, true); err != nil {
		t.Fatal(err)
	}
	w := &watched{Tokens: store.Tokens{DB: b.db}}
	passwords, err := password.New(password.Cost{MemoryKiB: 64, Passes: 1, Lanes: 1}, 1024, password.DefaultLimits(), zeros{})
	if err != nil {
		t.Fatal(err)
	}
	made, err := tokens.New(settings().tokenSettings, tokens.Deps{Store: w, Keys: b.keys, Now: b.clock.Now, Rand: zeros{}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := signin.New(settings().Settings, signin.Deps{Store: w, Methods: w, Codes: w, Visits: w, Tokens: made, Passwords: passwords, Now: b.clock.Now, Rand: zeros{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		sent string
		want []string
	}{
		{secret, []string{"look up", "count"}},
		{"", []string{"look up"}},
	} {
		for _, login := range []string{"unknown", "no method", "idonly", "locked", "+7 926 123-45-67", "n@example.ru"} {
			w.calls = nil
			if _, err := s.PasswordGrant(t.Context(), client, login, c.sent, resource, ""); code(t, err) != tokens.InvalidGrant {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, w.calls); d != "" {
				t.Errorf("%q with %q: %s", login, c.sent, d)
			}
		}
	}
	w.calls = nil
	if _, err := s.PasswordGrant(t.Context(), client, "demo", "wrong password", resource, ""); code(t, err) != tokens.InvalidGrant || !cmp.Equal(w.calls, []string{"look up", "count"}) {
		t.Errorf("a wrong password: %v, %v", err, w.calls)
	}
}

// zeros is a source of randomness that gives none.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// User enumeration by answer, through every state a user may be in.
func TestEnumerationByAnswer(t *testing.T) {
	b := newBench(t)
	op := b.operator(t, "op", "Default")
	_, want := b.grant(t.Context(), "unknown", "some password")
	for state, do := range map[string]func(id string) error{
		"no method":      func(id string) error { return nil },
		"method alone":   func(id string) error { return b.SetMethod(t.Context(), op, id, "password", nil) },
		"idonly":         func(id string) error { return b.SetMethod(t.Context(), op, id, "idonly", nil) },
		"certificate":    func(id string) error { return b.SetMethod(t.Context(), op, id, "cert", nil) },
		"wrong password": func(id string) error { return b.SetPassword(t.Context(), id, secret) },
		"locked":         func(id string) error { return b.users.SetLocked(t.Context(), op, id, true) },
		"not approved":   func(id string) error { return b.users.Approve(t.Context(), op, id, false) },
		"with two steps": func(id string) error {
			return errors.Join(b.SetPassword(t.Context(), id, secret), b.SetMethod(t.Context(), op, id, "oath", nil))
		},
		"deleted":         func(id string) error { return b.users.Delete(t.Context(), op, id, false) },
		"moved elsewhere": func(id string) error { return b.users.SetLocalLogin(t.Context(), op, id, "elsewhere") },
	} {
		id := b.register(t, op, map[user.IdentifierType]string{user.Login: state})
		if err := do(id); err != nil {
			t.Fatal(err)
		}
		for _, sent := range []string{"some password", ""} {
			_, err := b.grant(t.Context(), state, sent)
			if d := cmp.Diff(want, err); d != "" {
				t.Errorf("%s, %q: %s", state, sent, d)
			}
		}
	}
}

// Counter bypass by another flow: whatever name is typed, the budget is the user's.
func TestCounterBypassByAnotherName(t *testing.T) {
	b := newBench(t)
	op := b.operator(t, "op", "Default")
	id := b.register(t, op, map[user.IdentifierType]string{user.Login: "ivanov", user.PhoneNumber: "79261234567", user.Email: "i@example.ru"})
	if err := b.SetPassword(t.Context(), id, secret); err != nil {
		t.Fatal(err)
	}
	names := []string{"ivanov", "IVANOV", "+7 (926) 123-45-67", "89261234567", "I@Example.ru"}
	for i := range 10 {
		if _, err := b.grant(t.Context(), names[i%len(names)], fmt.Sprint("wrong password ", i)); code(t, err) != tokens.InvalidGrant {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		if _, err := b.grant(t.Context(), name, secret); code(t, err) != tokens.InvalidGrant {
			t.Errorf("%s: %v, want the lock-out", name, err)
		}
	}
	// A new name is no new budget.
	if err := b.users.SetLocalLogin(t.Context(), op, id, "petrov"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.grant(t.Context(), "petrov", secret); code(t, err) != tokens.InvalidGrant {
		t.Errorf("under a new login: %v", err)
	}
	if info, err := b.users.ByID(t.Context(), op, id); err != nil || !info.Locked {
		t.Errorf("the account does not look locked: %v", err)
	}
	b.clock.add(15 * time.Minute)
	if info, err := b.users.ByID(t.Context(), op, id); err != nil || info.Locked {
		t.Errorf("after the time the account looks locked: %v", err)
	}
	if _, err := b.grant(t.Context(), "petrov", secret); err != nil {
		t.Errorf("after the time: %v", err)
	}
}

// Counter reset by an attacker: only the same factor, proved, forgets.
func TestCounterResetByAttacker(t *testing.T) {
	b := newBench(t)
	op := b.operator(t, "op", "Default")
	b.set(t, op, b.demo.ID, "idonly")
	der := newCertificate(t, "demo")
	if _, err := b.AddCertificate(t.Context(), b.demo.ID, der); err != nil {
		t.Fatal(err)
	}
	confidential := signin.Client{ID: "portal", PasswordGrant: true}
	for range 9 {
		b.grant(t.Context(), "demo", "wrong password")
		if _, err := b.PasswordGrant(t.Context(), confidential, "demo", "", resource, ""); err != nil {
			t.Fatal(err)
		}
		made, _, err := b.AuthorizeCertificate(t.Context(), der, authorization())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.CodeGrant(t.Context(), portal, signin.CodeRequest{Code: made, RedirectURI: signin.RedirectOutOfBand}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.RevokeGrants(t.Context(), op, b.demo.ID); err != nil {
		t.Fatal(err)
	}
	b.grant(t.Context(), "demo", "wrong password")
	if _, err := b.grant(t.Context(), "demo", secret); code(t, err) != tokens.InvalidGrant {
		t.Errorf("after ten wrong ones among others: %v", err)
	}
	for range 10 { // of trusted callers, whom the lock of untrusted callers does not keep out
		b.grant(callerTrusted(t, password.Proved), "demo", "wrong password")
	}
	if _, err := b.PasswordGrant(t.Context(), confidential, "demo", "", resource, ""); code(t, err) != tokens.InvalidGrant {
		t.Errorf("identification only of who is locked out: %v", err)
	}
}

// Second factor skipped: with any second step no way in gives a token.
func TestSecondStepSkipped(t *testing.T) {
	b := newBench(t)
	op := b.operator(t, "op", "Default")
	der := newCertificate(t, "demo")
	if _, err := b.AddCertificate(t.Context(), b.demo.ID, der); err != nil {
		t.Fatal(err)
	}
	b.set(t, op, b.demo.ID, "idonly", "external")
	confidential := signin.Client{ID: "portal", PasswordGrant: true}
	made, _, err := b.AuthorizeCertificate(t.Context(), der, authorization())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range signin.Methods() {
		if m.Primary {
			continue
		}
		for level := range 4 {
			token := b.token(t)
			if err := b.SetMethod(t.Context(), op, b.demo.ID, m.Route, &level); err != nil {
				t.Fatal(err)
			}
			// At level 1 the method only confirms operations: sign-ins are as before.
			if _, err := b.Authenticate(t.Context(), token); (err == nil) != (level == signin.LevelPrimary) {
				t.Errorf("%s at level %d: a token from before goes on: %t", m.Route, level, err == nil)
			}
			_, byPassword := b.grant(t.Context(), "demo", secret)
			_, byName := b.PasswordGrant(t.Context(), confidential, "demo", "", resource, "")
			_, _, byCertificate := b.AuthorizeCertificate(t.Context(), der, authorization())
			_, byCode := b.CodeGrant(t.Context(), portal, signin.CodeRequest{Code: made, RedirectURI: signin.RedirectOutOfBand})
			_, atTheDoor := b.AuthenticateCertificate(t.Context(), der)
			got := []string{code(t, byPassword), code(t, byName), code(t, byCertificate), code(t, byCode), faultOf(atTheDoor)}
			want := []string{tokens.SecondStepNeeded, tokens.SecondStepNeeded, tokens.SecondStepNeeded, tokens.InvalidGrant, fault.Unauthorized}
			if level == signin.LevelPrimary { // only the code is refused: it ended with the change
				want = []string{"", "", "", tokens.InvalidGrant, ""}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s at level %d: %s", m.Route, level, d)
			}
			if err := b.DeleteMethod(t.Context(), op, b.demo.ID, m.Route); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Locked or deleted user keeps access, and expiry evaluated late: a delayed lock ends
// every way in at its millisecond, without any action, whatever process asks.
func TestLockedUserKeepsAccess(t *testing.T) {
	b := newBench(t)
	op := b.operator(t, "op", "Default")
	der := newCertificate(t, "demo")
	if _, err := b.AddCertificate(t.Context(), b.demo.ID, der); err != nil {
		t.Fatal(err)
	}
	b.set(t, op, b.demo.ID, "idonly")
	confidential := signin.Client{ID: "portal", PasswordGrant: true}
	token := b.token(t)
	ways := func(s services) []bool {
		_, bearer := s.Authenticate(t.Context(), token)
		_, byPassword := s.PasswordGrant(t.Context(), client, "demo", secret, resource, "")
		_, byName := s.PasswordGrant(t.Context(), confidential, "demo", "", resource, "")
		_, _, byCertificate := s.AuthorizeCertificate(t.Context(), der, authorization())
		_, atTheDoor := s.AuthenticateCertificate(t.Context(), der)
		return []bool{bearer == nil, byPassword == nil, byName == nil, byCertificate == nil, atTheDoor == nil}
	}
	open, shut := []bool{true, true, true, true, true}, []bool{false, false, false, false, false}
	if err := b.users.SetLockedEx(t.Context(), op, b.demo.ID, user.LockOrder{Lock: true, UseDelay: true, Delay: 30}); err != nil {
		t.Fatal(err)
	}
	due := b.clock.Now().Truncate(time.Millisecond).Add(30 * time.Second)
	b.clock.add(due.Sub(b.clock.Now()) - time.Millisecond)
	if d := cmp.Diff(open, ways(b.services)); d != "" {
		t.Errorf("before: %s", d)
	}
	b.clock.add(time.Millisecond)
	restarted := b.service(t, settings(), b.keys...)
	for name, s := range map[string]services{"this process": b.services, "another process": restarted} {
		if d := cmp.Diff(shut, ways(s)); d != "" {
			t.Errorf("due, in %s: %s", name, d)
		}
	}
	b.clock.add(-time.Second) // the clock is set back: the lock is not due yet
	if d := cmp.Diff(open, ways(b.services)); d != "" {
		t.Errorf("before it again: %s", d)
	}
	b.clock.add(time.Second)
	if err := b.users.SetLocked(t.Context(), op, b.demo.ID, false); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]bool{false, true, true, true, true}, ways(b.services)); d != "" {
		t.Errorf("unlocked, a token from before the lock is still ended: %s", d)
	}
	token = b.token(t)
	if err := b.users.Delete(t.Context(), op, b.demo.ID, false); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(shut, ways(b.services)); d != "" {
		t.Errorf("deleted: %s", d)
	}
}

// Single-use store without name spaces: what is good for one purpose is good for no
// other.
func TestTokenOfAnotherPurpose(t *testing.T) {
	b := newBench(t)
	der := newCertificate(t, "demo")
	if _, err := b.AddCertificate(t.Context(), b.demo.ID, der); err != nil {
		t.Fatal(err)
	}
	token := b.token(t)
	made, _, err := b.AuthorizeCertificate(t.Context(), der, authorization())
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"token": token, "password": secret, "client id": portal.ID, "user id": b.demo.ID} {
		if _, err := b.CodeGrant(t.Context(), portal, signin.CodeRequest{Code: value, RedirectURI: signin.RedirectOutOfBand}); code(t, err) != tokens.InvalidGrant {
			t.Errorf("%s as a code: %v", name, err)
		}
	}
	for name, value := range map[string]string{"code": made, "password": secret} {
		if _, err := b.Authenticate(t.Context(), value); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s as a token: %v", name, err)
		}
	}
	for name, value := range map[string]string{"code": made, "token": token} {
		if _, err := b.grant(t.Context(), "demo", value); code(t, err) != tokens.InvalidGrant {
			t.Errorf("%s as a password: %v", name, err)
		}
	}
	if _, err := b.CodeGrant(t.Context(), portal, signin.CodeRequest{Code: made, RedirectURI: signin.RedirectOutOfBand}); err != nil {
		t.Errorf("the code as a code: %v", err)
	}
}

// Cross-group access to methods and passwords: the answers are the ones for an unknown user.
func TestCrossGroupMethods(t *testing.T) {
	b := newBench(t)
	outsider := b.operator(t, "outsider", "Other")
	b.operator(t, "op", "Default")
	for name, do := range map[string]func(id string) error{
		"SetMethod":    func(id string) error { return b.SetMethod(t.Context(), outsider, id, "idonly", nil) },
		"DeleteMethod": func(id string) error { return b.DeleteMethod(t.Context(), outsider, id, "password") },
		"Scheme":       func(id string) error { _, err := b.Scheme(t.Context(), outsider, id); return err },
		"RawData":      func(id string) error { _, err := b.RawData(t.Context(), outsider, id, nil); return err },
		"RevokeGrants": func(id string) error { return b.RevokeGrants(t.Context(), outsider, id) },
		"ResetPassword": func(id string) error {
			_, err := b.ResetPassword(t.Context(), outsider, id, signin.Delivery{Show: true})
			return err
		},
	} {
		unknown, theirs := do("11111111-1111-4111-8111-111111111111"), do(b.demo.ID)
		if d := cmp.Diff(faultText(unknown), faultText(theirs)); d != "" || !fault.Is(theirs, fault.UserNotFound) {
			t.Errorf("%s: %s", name, d)
		}
	}
	b.token(t) // the password and the method are as they were
	if _, err := b.Scheme(t.Context(), audit.Principal{UserID: b.demo.ID}, b.demo.ID); !fault.Is(err, fault.UserNotFound) {
		t.Errorf("a user as an operator of oneself: %v", err)
	}
}

func faultText(err error) string {
	f, _ := fault.As(err)
	if f == nil {
		return fmt.Sprint(err)
	}
	return f.Code + f.Message
}

func FuzzPasswordGrant(f *testing.F) {
	b := newBench(f)
	f.Add("demo", "x", "")
	f.Add("+7 926 123-45-67", "\x00\xff", "dss")
	f.Add("a@b@c", "", "offline_access dss")
	f.Fuzz(func(t *testing.T, login, sent, scope string) {
		_, err := b.PasswordGrant(t.Context(), client, login, sent, resource, scope)
		var g *tokens.GrantError
		if err == nil && sent != secret || err != nil && !errors.As(err, &g) {
			t.Errorf("%q with %q: %v", login, sent, err)
		}
	})
}
