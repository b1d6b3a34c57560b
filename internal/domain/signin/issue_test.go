// SPDX-License-Identifier: Apache-2.0

package signin_test

import (
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/signin"
	tokens "tamga/internal/domain/token"
)

// A policy with Issue stops every way to a token, from the next request on, and nothing
// is lost: once it is lifted, codes and refresh tokens are good again.
func TestIssuePolicy(t *testing.T) {
	for kind, want := range map[policy.Kind]string{policy.Access: tokens.AccessDenied, policy.Operation: tokens.SecondStepNeeded} {
		f := newFamily(t)
		policies := store.Policies{DB: f.db}
		f.services = f.serviceWith(t, settings(), deps{Keys: f.keys, Providers: []signin.Provider{elsewhere{}}, Policies: &policy.Service{Store: policies}})
		set := func(id string, s *policy.Setting) {
			t.Helper()
			if err := policies.SetOwn(t.Context(), id, kind, s); err != nil {
				t.Fatal(err)
			}
		}
		var root tokens.Token
		var waiting, refresh string
		exchange := func() error {
			_, _, err := f.ExchangeGrant(t.Context(), able, signin.Exchange{Actor: root.AccessToken, Subject: f.subject("demo", time.Hour), SubjectType: signin.TypeJWT, Resource: resource})
			return err
		}
		derive := map[string]func() error{
			"AuthorizeBearer": func() error {
				_, _, err := f.AuthorizeBearer(t.Context(), root.AccessToken, f.ask("dss", false))
				return err
			},
			"AuthorizeBearer direct": func() error {
				_, _, err := f.AuthorizeBearer(t.Context(), root.AccessToken, f.ask("dss", true))
				return err
			},
			"CodeGrant": func() error { _, err := f.exchangeCode(t, waiting); return err },
			"RefreshGrant": func() error {
				_, err := f.RefreshGrant(t.Context(), able.ID, refresh, "", "")
				return err
			},
			"ExchangeGrant": exchange,
		}
		ask := func(name string) error {
			if way := ways[name]; way.root != nil {
				_, _, err := way.root(t, f, everything)
				return err
			}
			do, known := derive[name]
			if !known {
				t.Fatalf("%s is not tried", name)
			}
			return do()
		}
		for name := range ways {
			if name == "Redeem" || name == "CompleteStep" {
				continue // they confirm what the policy asks for: TestGrantsWithStep, TestFirstStepEnds
			}
			var err error
			if root, err = f.PasswordGrant(t.Context(), able, "op", secret, resource, everything); err != nil {
				t.Fatal(err)
			}
			refresh = root.RefreshToken
			issued, _, err := f.AuthorizeBearer(t.Context(), root.AccessToken, f.ask("dss", false))
			if err != nil {
				t.Fatal(err)
			}
			waiting = issued.Code
			set(f.op.ID, &policy.Setting{Actions: policy.Issue | policy.SignDocument})
			// Of an operator who acts for a user, the confirmation is the user's.
			if kind == policy.Access || name != "ExchangeGrant" {
				if err := ask(name); code(t, err) != want {
					t.Errorf("%s, %s: %v, want %s", kind, name, err, want)
				}
			}
			set(f.op.ID, &policy.Setting{Actions: policy.All &^ policy.Issue})
			if name == "ExchangeGrant" {
				set(f.demo.ID, &policy.Setting{Actions: policy.Issue})
				if err := ask(name); code(t, err) != want {
					t.Errorf("%s of the user, %s: %v, want %s", kind, name, err, want)
				}
				set(f.demo.ID, nil)
			}
			if err := ask(name); err != nil {
				t.Errorf("%s, %s after the policy was lifted: %v", kind, name, err)
			}
		}
		// A group's policy counts as well.
		if err := policies.SetGroup(t.Context(), "Default", kind, &policy.Setting{Actions: policy.Issue}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.grant(t.Context(), "demo", secret); code(t, err) != want {
			t.Errorf("%s of the group: %v", kind, err)
		}
		if _, err := f.grant(t.Context(), "demo", "wrong password"); code(t, err) != tokens.InvalidGrant {
			t.Errorf("%s: a wrong password tells of the policy: %v", kind, err)
		}
	}
}
