// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/policy"
)

func testPolicies(t *testing.T, open func(t *testing.T) *store.DB) {
	cases{
		{"OwnAndGroup", func(t *testing.T, db *store.DB) {
			group(t, db, "Default")
			group(t, db, "Other")
			a, b := person(t, db, 1), person(t, db, 2)
			s := store.Policies{DB: db}
			look := func(userID string, k policy.Kind, wantOwn, wantGroup *policy.Setting) {
				t.Helper()
				own, group, err := s.Settings(t.Context(), userID, k)
				must(t, err)
				if d := cmp.Diff([]*policy.Setting{wantOwn, wantGroup}, []*policy.Setting{own, group}); d != "" {
					t.Errorf("%s of %s: %s", k, userID, d)
				}
			}
			told := map[string][]string{"UserAccountChanged": {"Email", "SMS"}, "НетТакого": {}}
			for _, k := range policy.Kinds() {
				look(a.ID, k, nil, nil)
				look("unknown", k, nil, nil)
				groups := &policy.Setting{Actions: policy.SignDocument, Fixed: true}
				if k == policy.Notification {
					groups = &policy.Setting{Notifiers: told}
				}
				must(t, s.SetGroup(t.Context(), "Default", k, groups))
				look(a.ID, k, nil, groups)
				got, err := s.GroupSetting(t.Context(), "Default", k)
				must(t, err)
				if d := cmp.Diff(groups, got); d != "" {
					t.Error(d)
				}
				kinds, err := s.GroupKinds(t.Context(), []string{"none", "Default"})
				must(t, err)
				if !slices.Equal(kinds["Default"], []policy.Kind{k}) || len(kinds) != 1 {
					t.Errorf("after %s, the group has settings of the kinds %v", k, kinds)
				}
				// An empty policy is a setting too.
				for _, own := range []*policy.Setting{{Actions: policy.All}, {}, {Actions: policy.ChangePin | policy.Issue}} {
					must(t, s.SetOwn(t.Context(), a.ID, k, own))
					look(a.ID, k, own, groups)
				}
				if k == policy.Notification {
					for _, own := range []*policy.Setting{{Notifiers: map[string][]string{}}, {Notifiers: told}} {
						must(t, s.SetOwn(t.Context(), a.ID, k, own))
						look(a.ID, k, own, groups)
					}
				}
				look(b.ID, k, nil, groups)
				must(t, s.SetOwn(t.Context(), a.ID, k, nil))
				look(a.ID, k, nil, groups)
				must(t, s.SetGroup(t.Context(), "Default", k, &policy.Setting{Actions: policy.Issue}))
				look(a.ID, k, nil, &policy.Setting{Actions: policy.Issue})
				must(t, s.SetGroup(t.Context(), "Default", k, nil))
				look(a.ID, k, nil, nil)
				if err := s.SetOwn(t.Context(), "unknown", k, &policy.Setting{}); !fault.Is(err, fault.UserNotFound) {
					t.Errorf("%s of an unknown user: %v", k, err)
				}
				for _, p := range []*policy.Setting{nil, {}} {
					if err := s.SetGroup(t.Context(), "nowhere", k, p); !fault.Is(err, fault.NotFound) {
						t.Errorf("%s of an unknown group: %v", k, err)
					}
				}
			}
		}},
		{"FollowTheUser", func(t *testing.T, db *store.DB) {
			group(t, db, "Default")
			group(t, db, "Other")
			u := person(t, db, 1)
			s, users := store.Policies{DB: db}, store.Users{DB: db}
			must(t, s.SetGroup(t.Context(), "Other", policy.Operation, &policy.Setting{Actions: policy.SignDocument}))
			for _, k := range policy.Kinds() {
				must(t, s.SetOwn(t.Context(), u.ID, k, &policy.Setting{Actions: policy.Issue}))
			}
			must(t, users.SetGroup(t.Context(), u.ID, "Other"))
			_, of, err := s.Settings(t.Context(), u.ID, policy.Operation)
			must(t, err)
			if of == nil || of.Actions != policy.SignDocument {
				t.Errorf("in another group: %+v", of)
			}
			must(t, users.DeleteUser(t.Context(), u.ID))
			must(t, users.AddUser(t.Context(), u, "again"))
			for _, k := range policy.Kinds() {
				if own, _, err := s.Settings(t.Context(), u.ID, k); own != nil || err != nil {
					t.Errorf("%s outlived the user: %+v, %v", k, own, err)
				}
			}
		}},
	}.run(t, open)
}

func testWebhooks(t *testing.T, open func(t *testing.T) *store.DB) {
	db := open(t)
	s := store.Webhooks{DB: db}
	b := notify.Subscription{ID: "b", URL: "https://b.example/", Sealed: []byte{1}, CreatedAt: start}
	a := notify.Subscription{ID: "a", URL: "https://a.example/?x=1", Events: []notify.EventType{notify.UserCreated, notify.UserDeleted}, Sealed: []byte{2}, CreatedAt: start.Add(time.Second)}
	for _, w := range []notify.Subscription{a, b} {
		must(t, s.AddSubscription(t.Context(), w))
	}
	list, err := s.Subscriptions(t.Context())
	must(t, err)
	if d := cmp.Diff([]notify.Subscription{b, a}, list, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	got, err := s.Subscription(t.Context(), "a")
	must(t, err)
	if d := cmp.Diff(a, got); d != "" {
		t.Error(d)
	}
	a.URL, a.Events, a.Sealed = "https://new.example/", nil, []byte{3}
	said(t, true)(s.ChangeSubscription(t.Context(), a))
	a.PausedAt = start.Add(time.Minute)
	said(t, true)(s.PauseSubscription(t.Context(), "a", a.PausedAt))
	got, err = s.Subscription(t.Context(), "a")
	must(t, err)
	if d := cmp.Diff(a, got, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
	said(t, true)(s.PauseSubscription(t.Context(), "a", time.Time{}))
	if got, err = s.Subscription(t.Context(), "a"); err != nil || !got.PausedAt.IsZero() {
		t.Errorf("switched on again: %v, %v", got.PausedAt, err)
	}
	said(t, false)(s.ChangeSubscription(t.Context(), notify.Subscription{ID: "none"}))
	said(t, false)(s.PauseSubscription(t.Context(), "none", start))
	said(t, true)(s.RemoveSubscription(t.Context(), "a"))
	said(t, false)(s.RemoveSubscription(t.Context(), "a"))
	if _, err := s.Subscription(t.Context(), "a"); err != notify.ErrNotFound {
		t.Errorf("removed: %v", err)
	}
}
