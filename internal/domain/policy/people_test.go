// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/policy"
)

// people are a Reach and Events: the user "outsider" is out of reach.
type people struct {
	changed, cancelled []string
	err                error
}

func (p *people) Reach(_ context.Context, _ audit.Principal, userID string) error {
	if userID == "outsider" {
		return fault.New(fault.UserNotFound, "User not found")
	}
	return nil
}

func (p *people) PolicyChanged(_ context.Context, who audit.Principal, userID string) error {
	p.changed = append(p.changed, who.UserID+" "+userID)
	return p.err
}

func (p *people) CancelAll(_ context.Context, who audit.Principal, userID, _ string) error {
	p.cancelled = append(p.cancelled, who.UserID+" "+userID)
	return p.err
}

// TestEffective: the setting of the user applies, then that of the group, then that of
// the installation. The setting of the user does not decide whether it is fixed.
func TestEffective(t *testing.T) {
	installation := policy.Setting{Actions: policy.Issue, Notifiers: map[string][]string{"A": {"SMS"}}, Fixed: true}
	group := &policy.Setting{Actions: policy.ChangePin, Notifiers: map[string][]string{"B": {"Email"}}}
	own := &policy.Setting{Notifiers: map[string][]string{}, Fixed: true}
	for _, k := range policy.Kinds() {
		for _, c := range []struct {
			name       string
			own, group *policy.Setting
			want       policy.Setting
		}{
			{"installation", nil, nil, installation},
			{"group", nil, group, *group},
			{"own in a group", own, group, policy.Setting{Notifiers: own.Notifiers}},
			{"own", own, nil, policy.Setting{Notifiers: own.Notifiers, Fixed: true}},
		} {
			s := policy.Editor{Service: &policy.Service{Store: &denials{set: map[string]*policy.Setting{"user u" + string(k): c.own, "group" + string(k): c.group}},
				Defaults: map[policy.Kind]policy.Setting{k: installation}}, Users: &people{}}
			got, err := s.Get(t.Context(), audit.Principal{}, "u", k)
			if d := cmp.Diff(c.want, got); d != "" || err != nil {
				t.Errorf("%s %s: %v %s", c.name, k, err, d)
			}
		}
	}
}

func TestSetActions(t *testing.T) {
	who := audit.Principal{UserID: "operator"}
	for _, k := range []policy.Kind{policy.Access, policy.Operation} {
		store, p := &denials{}, &people{}
		s := policy.Editor{Service: &policy.Service{Store: store, Defaults: map[policy.Kind]policy.Setting{}}, Users: p, Events: p, Confirmations: p}
		set := func(userID string, a policy.Action, code string) {
			t.Helper()
			err := s.SetActions(t.Context(), who, userID, k, a)
			if (err == nil) != (code == "") || err != nil && !fault.Is(err, code) {
				t.Errorf("%s of %s to %v: %v, want %q", k, userID, a, err, code)
			}
		}
		set("u", policy.SignDocument, "")
		set("u", 0, "")
		set("outsider", policy.SignDocument, fault.UserNotFound)
		set("u", 1<<12, fault.InvalidParameters)
		s.Defaults[k] = policy.Setting{Fixed: true}
		set("u", policy.Issue, fault.WrongOperation)
		set("outsider", policy.Issue, fault.UserNotFound) // a user out of reach looks like a missing one
		if got := strings.Join(p.changed, ","); got != "operator u,operator u" {
			t.Errorf("told: %s", got)
		}
		if got := strings.Join(p.cancelled, ","); got != "operator u,operator u" {
			t.Errorf("confirmations were cancelled of: %s", got)
		}
		// An administrator may change a fixed policy.
		if err := s.SetUser(t.Context(), "u", k, &policy.Setting{Actions: policy.SignDocument}); err != nil {
			t.Error(err)
		}
		if err := s.SetGroup(t.Context(), "g", k, &policy.Setting{Actions: 1 << 20}); !fault.Is(err, fault.InvalidParameters) {
			t.Errorf("an unknown bit: %v", err)
		}
		if k == policy.Operation {
			for a, want := range map[policy.Action]bool{policy.SignDocument: true, policy.SignDocuments: true, policy.Issue: false} {
				if got, err := s.NeedsConfirmation(t.Context(), "u", a); err != nil || got != want {
					t.Errorf("%s needs a confirmation: %t, %v", a, got, err)
				}
			}
		}
		// A change whose event fails is not made.
		p.err = errors.New("the outbox is gone")
		if err := s.SetUser(t.Context(), "u", k, nil); err == nil || fault.Commits(err) {
			t.Errorf("without its event: %v", err)
		}
		store.err = errors.New("no connection")
		if _, err := s.NeedsConfirmation(t.Context(), "u", policy.Issue); err == nil {
			t.Error("a store that fails says that nothing needs a confirmation")
		}
	}
}

func TestSetNotifiers(t *testing.T) {
	p := &people{}
	s := policy.Editor{Service: &policy.Service{Store: &denials{}}, Users: p, Events: p, Confirmations: p}
	many := map[string][]string{}
	for i := range 257 {
		many[strings.Repeat("x", i%128+1)+strings.Repeat("y", i/128)] = nil
	}
	for _, wrong := range []map[string][]string{
		{"A": {"Pigeon"}}, {"A": {""}}, {"": nil}, {"a b": nil}, {"a\nb": nil}, {"\xff": nil}, {"a\u202eb": nil}, {strings.Repeat("я", 129): nil}, many,
	} {
		if err := s.SetNotifiers(t.Context(), audit.Principal{}, "u", wrong); !fault.Is(err, fault.InvalidParameters) {
			t.Errorf("%.60v: %v", wrong, err)
		}
	}
	if err := s.SetNotifiers(t.Context(), audit.Principal{}, "u", map[string][]string{"A": {"email", "SMS", "EMAIL"}, strings.Repeat("я", 128): nil, "Push": {"push"}}); err != nil {
		t.Fatal(err)
	}
	for event, want := range map[string]string{"A": "Email,SMS", "Push": "Push", "B": ""} {
		if got, err := s.NotifiersOf(t.Context(), "u", event); err != nil || strings.Join(got, ",") != want {
			t.Errorf("%s is told by %v, %v", event, got, err)
		}
	}
}
