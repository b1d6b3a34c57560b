// SPDX-License-Identifier: Apache-2.0

package signin_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signin"
	tokens "tamga/internal/domain/token"
)

const confirmation = "6a1f1c6e-93a1-4a50-8d0f-3c9b6bd7a001"

// A confirmed token opens what names it, and nothing that takes an access token.
func TestConfirmedToken(t *testing.T) {
	b := newBench(t)
	bearer := b.token(t)
	who, err := b.Authenticate(t.Context(), bearer)
	if err != nil || who.Confirmation != "" {
		t.Fatal(who, err)
	}
	b.clock.add(299 * time.Second) // the access token is about to expire
	end := b.clock.Now().Add(5 * time.Minute)
	confirmed, err := b.IssueConfirmed(t.Context(), who, tokens.Confirmation{ID: confirmation, EndsAt: end})
	if err != nil {
		t.Fatal(err)
	}
	header, claims := parts(t, confirmed.AccessToken)
	if header["typ"] != "confirmed+jwt" || claims["confirmation"] != confirmation || claims["unique_name"] != "Demo" || claims["exp"] != float64(end.Unix()) {
		t.Error(header, claims)
	}
	if confirmed.RefreshToken != "" || confirmed.IDToken != "" {
		t.Error("a confirmed token comes with others")
	}

	want := who
	want.Confirmation, want.TokenID = confirmation, claims["jti"].(string)
	for name, open := range map[string]func() error{
		"AuthenticateConfirmed": func() error {
			got, err := b.AuthenticateConfirmed(t.Context(), confirmed.AccessToken)
			if d := cmp.Diff(want, got); err == nil && d != "" {
				t.Error(d)
			}
			return err
		},
		"AuthenticateConfirmed by access token": func() error {
			got, err := b.AuthenticateConfirmed(t.Context(), bearer)
			if d := cmp.Diff(who, got); err == nil && d != "" {
				t.Error(d)
			}
			return err
		},
	} {
		if err := open(); err != nil {
			t.Error(name, err)
		}
	}
	for name, open := range map[string]func() error{
		"Authenticate": func() error { _, err := b.Authenticate(t.Context(), confirmed.AccessToken); return err },
		"AuthenticateBy": func() error {
			_, err := b.AuthenticateBy(t.Context(), confirmed.AccessToken, store.Tokens{DB: b.db}.BearerByToken)
			return err
		},
		"Check":    func() error { _, err := b.Check(t.Context(), confirmed.AccessToken); return err },
		"UserInfo": func() error { _, err := b.UserInfo(t.Context(), confirmed.AccessToken); return err },
	} {
		if err := open(); !fault.Is(err, fault.Unauthorized) {
			t.Error(name, err)
		}
	}

	scope, err := b.IssueScope(t.Context(), who, "checkprofile", end)
	if err != nil {
		t.Fatal(err)
	}
	if header, claims := parts(t, scope.AccessToken); header["typ"] != "scope+jwt" || claims["confirmed_scope"] != "checkprofile" {
		t.Error(header, claims)
	}
	for _, open := range []func(context.Context, string) (audit.Principal, error){b.Authenticate, b.AuthenticateConfirmed} {
		if _, err := open(t.Context(), scope.AccessToken); !fault.Is(err, fault.Unauthorized) {
			t.Error("a token for a text:", err)
		}
	}

	b.clock.add(5 * time.Minute)
	if _, err := b.AuthenticateConfirmed(t.Context(), confirmed.AccessToken); !fault.Is(err, fault.Unauthorized) {
		t.Error("after its end:", err)
	}
}

// A confirmed token ends with the sign-in, and none is issued after that.
func TestConfirmedTokenEnds(t *testing.T) {
	b := newBench(t)
	who, err := b.Authenticate(t.Context(), b.token(t))
	if err != nil {
		t.Fatal(err)
	}
	c := tokens.Confirmation{ID: confirmation, EndsAt: b.clock.Now().Add(time.Minute)}
	confirmed, err := b.IssueConfirmed(t.Context(), who, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.sessions.EndAll(t.Context(), b.demo.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := b.AuthenticateConfirmed(t.Context(), confirmed.AccessToken); !fault.Is(err, fault.Unauthorized) {
		t.Error(err)
	}
	if _, err := b.IssueConfirmed(t.Context(), who, c); !fault.Is(err, fault.Unauthorized) {
		t.Error(err)
	}
	who.TokenID = "" // of a caller that proved the user by a password
	if _, err := b.IssueConfirmed(t.Context(), who, c); err != nil {
		t.Error(err)
	}
	who.UserID = "unknown"
	if _, err := b.IssueConfirmed(t.Context(), who, c); !fault.Is(err, fault.Unauthorized) {
		t.Error(err)
	}
}

// The type and the record must agree: neither alone makes a confirmed token.
func TestConfirmedTokenForged(t *testing.T) {
	b := newBench(t)
	bearer := b.token(t)
	who, err := b.Authenticate(t.Context(), bearer)
	if err != nil {
		t.Fatal(err)
	}
	b.clock.add(100 * time.Millisecond)
	confirmed, err := b.IssueConfirmed(t.Context(), who, tokens.Confirmation{ID: confirmation, EndsAt: b.clock.Now().Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	key := b.keys[0]
	header, claims := parts(t, bearer)
	confirmedHeader, confirmedClaims := parts(t, confirmed.AccessToken)
	for name, forged := range map[string]string{
		"access token by its record":        es256(t, key, confirmedHeader, with(claims, "confirmation", confirmation)),
		"access token without the claim":    es256(t, key, confirmedHeader, claims),
		"confirmed token as access token":   es256(t, key, header, confirmedClaims),
		"without the claim":                 es256(t, key, header, with(confirmedClaims, "confirmation", nil)),
		"for another confirmation":          es256(t, key, confirmedHeader, with(confirmedClaims, "confirmation", "another")),
		"access token with the other claim": es256(t, key, header, with(claims, "confirmation", confirmation)),
	} {
		for _, authenticate := range []func() error{
			func() error { _, err := b.Authenticate(t.Context(), forged); return err },
			func() error { _, err := b.AuthenticateConfirmed(t.Context(), forged); return err },
		} {
			if err := authenticate(); !fault.Is(err, fault.Unauthorized) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// What a token, a code and a grant derive from a sign-in with a second step passes it on. The
// same sign-in without it gives nothing.
func TestSecondStepIsInherited(t *testing.T) {
	for _, second := range []bool{true, false} {
		f := newFamily(t)
		policies := store.Policies{DB: f.db}
		f.services = f.serviceWith(t, settings(), deps{Keys: f.keys, Policies: &policy.Service{Store: policies}})
		issue := func() (tokens.Token, bool, error) {
			return f.Issue(t.Context(), tokens.Order{
				UserID: f.op.ID, Name: "op", ClientID: able.ID, Scope: everything,
				Proof: tokens.Proof{Method: "password", Granted: true, SecondStep: second},
			})
		}
		root, ok, err := issue()
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		// From now on the user needs a step, by a method and by a policy. The change of a method
		// would end the sign-in, so the test makes it in the store.
		if err := (store.Tokens{DB: f.db}).SetMethod(t.Context(), f.op.ID, signin.StoredMethod{Name: "otpviasms", Level: signin.LevelSecondary}); err != nil {
			t.Fatal(err)
		}
		var got []bool
		derive := func() {
			_, ok, err := issue()
			got = append(got, ok && err == nil)
			code, _, err := f.AuthorizeBearer(t.Context(), root.AccessToken, f.ask("dss", false))
			if err == nil {
				_, err = f.exchangeCode(t, code.Code)
			}
			got = append(got, err == nil)
			next, err := f.RefreshGrant(t.Context(), able.ID, root.RefreshToken, "", "")
			got = append(got, err == nil)
			root.RefreshToken = next.RefreshToken
		}
		derive()
		if err := policies.SetOwn(t.Context(), f.op.ID, policy.Operation, &policy.Setting{Actions: policy.Issue}); err != nil {
			t.Fatal(err)
		}
		derive()
		if d := cmp.Diff([]bool{second, second, second, second, second, second}, got); d != "" {
			t.Errorf("with a second step %v: %s", second, d)
		}
		if err := policies.SetOwn(t.Context(), f.op.ID, policy.Access, &policy.Setting{Actions: policy.Issue}); err != nil {
			t.Fatal(err)
		}
		got = nil
		derive()
		if d := cmp.Diff([]bool{false, false, false}, got); d != "" {
			t.Errorf("denied by the access policy: %s", d)
		}
	}
}
