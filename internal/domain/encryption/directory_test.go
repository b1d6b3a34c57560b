// SPDX-License-Identifier: Apache-2.0

package encryption_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/encryption"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/user"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
)

// town has people and their certificates.
type town struct {
	users []user.User
	certs map[string][]*keys.Certificate
	acts  map[string][]string // groups of operators
}

func (w *town) Get(_ context.Context, id string) (user.User, error) {
	for _, u := range w.users {
		if u.ID == id {
			return u, nil
		}
	}
	return user.User{}, fault.New(fault.UserNotFound, "none")
}

func (w *town) Page(_ context.Context, q user.Query) (list []user.User, err error) {
	for _, u := range w.users {
		if slices.Contains(q.Groups, u.Group) && len(list) < q.Limit {
			list = append(list, u)
		}
	}
	return list, nil
}

func (w *town) Named(_ context.Context, groups []string, text string, limit int) (list []user.User, more bool, err error) {
	for _, u := range w.users {
		if (groups == nil || slices.Contains(groups, u.Group)) && strings.Contains(u.DisplayName, text) {
			list = append(list, u)
		}
	}
	return list[:min(limit, len(list))], len(list) > limit, nil
}

func (w *town) GroupsOf(_ context.Context, who audit.Principal, _ int) ([]string, error) {
	return w.acts[who.UserID], nil
}

func (w *town) GroupsAfter(context.Context, string, int) ([]user.Group, error) {
	return []user.Group{{Name: "a"}, {Name: "b"}, {Name: "c"}}, nil
}

func (w *town) List(_ context.Context, id string) ([]*keys.Certificate, error) {
	return w.certs[id], nil
}

// TestDirectory: who is found by whom, and with which certificate.
func TestDirectory(t *testing.T) {
	now := time.Now()
	root := sigtest.Root(t, suite.GOST2012x256)
	certificate := func(name string, usage x509.KeyUsage, status keys.Status, standard bool, age time.Duration) *keys.Certificate {
		one := root.Signer(t, suite.GOST2012x256, name).Certificate
		one.KeyUsage, one.NotBefore = usage, now.Add(-age)
		return &keys.Certificate{X509: one, Status: status, Default: standard}
	}
	const both = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	w := &town{certs: map[string][]*keys.Certificate{}, acts: map[string][]string{"operator": {"b"}}}
	add := func(id, group string, u user.User, certs ...*keys.Certificate) {
		u.ID, u.Login, u.Group, u.DisplayName = id, id, group, "Name "+id
		w.users, w.certs[id] = append(w.users, u), certs
	}
	older, newest := certificate("older", both, keys.Active, false, 2*time.Hour), certificate("newest", both, keys.Active, false, time.Hour)
	standard := certificate("standard", both, keys.Active, true, 3*time.Hour)
	add("me", "a", user.User{})
	add("two", "a", user.User{}, older, newest)
	add("three", "a", user.User{}, newest, standard, older)
	add("signer", "a", user.User{}, certificate("signer", x509.KeyUsageDigitalSignature, keys.Active, true, 0))
	add("revoked", "a", user.User{}, certificate("revoked", both, keys.Revoked, true, 0))
	add("locked", "a", user.User{Locked: true}, newest)
	add("operator", "a", user.User{Operator: true}, newest)
	add("far", "b", user.User{}, newest)
	add("last", "c", user.User{}, newest)

	ctx := t.Context()
	for _, c := range []struct {
		scope  encryption.Scope
		who    string
		finds  string
		groups string
	}{
		{encryption.ScopeNone, "me", "", ""},
		{encryption.ScopeGroup, "me", "two three operator", "a"},
		{encryption.ScopeGroup, "operator", "two three operator far", "b a"},
		{encryption.ScopeEveryone, "me", "two three operator far last", "a b c"},
	} {
		d := &encryption.Directory{People: w, Keys: w, Scope: c.scope, Now: func() time.Time { return now }}
		who := audit.Principal{UserID: c.who}
		list, more, err := d.Find(ctx, who, "Name")
		var found []string
		for _, r := range list {
			found = append(found, r.UserID)
		}
		if got := strings.Join(found, " "); err != nil || more || got != c.finds {
			t.Errorf("%s of %s finds %q, %v, %v, want %q", c.scope, c.who, got, more, err, c.finds)
		}
		groups, err := d.Groups(ctx, who)
		if got := strings.Join(groups, " "); err != nil || got != c.groups {
			t.Errorf("%s of %s has the groups %q, %v, want %q", c.scope, c.who, got, err, c.groups)
		}
		// What is not found cannot be named either, and the answer does not say why.
		for _, u := range w.users {
			chosen, err := d.Chosen(ctx, who, []string{u.ID})
			wants := slices.Contains(found, u.ID) || u.ID == c.who && len(w.certs[u.ID]) > 0
			if (err == nil) != wants || !wants && !fault.Is(err, fault.InvalidRecipients) || wants && chosen[0].UserID != u.ID {
				t.Errorf("%s of %s chooses %s: %v, %v", c.scope, c.who, u.ID, chosen, err)
			}
		}
		if _, err := d.Chosen(ctx, who, []string{"missing"}); !fault.Is(err, fault.InvalidRecipients) {
			t.Errorf("a missing user: %v", err)
		}
		for _, group := range []string{"a", "b", "c", "none"} {
			list, err := d.InGroup(ctx, who, group)
			if wants := slices.Contains(strings.Fields(c.groups), group); (err == nil) != wants || wants && len(list) == 0 {
				t.Errorf("%s of %s takes the group %s: %d, %v", c.scope, c.who, group, len(list), err)
			}
		}
		for _, r := range list {
			want := newest.X509
			if r.UserID == "three" {
				want = standard.X509
			}
			if r.Certificate != want {
				t.Errorf("%s: another certificate is taken", r.UserID)
			}
		}
	}
	d := &encryption.Directory{People: w, Keys: w, Scope: encryption.ScopeGroup, Now: func() time.Time { return now }}
	if own, err := d.Own(ctx, audit.Principal{UserID: "me"}); own != nil || err != nil {
		t.Errorf("without a certificate: %v, %v", own, err)
	}
	for i := range encryption.MostInGroup {
		add(fmt.Sprint("many", i), "a", user.User{}, newest)
	}
	if list, more, err := d.Find(ctx, audit.Principal{UserID: "me"}, "many"); len(list) != encryption.MostFound || !more || err != nil {
		t.Errorf("many: %d, %v, %v", len(list), more, err)
	}
	if _, err := d.InGroup(ctx, audit.Principal{UserID: "me"}, "a"); !fault.Is(err, fault.InvalidRecipients) {
		t.Errorf("a large group: %v", err)
	}
}

// TestReadRecipients reads files of certificates.
func TestReadRecipients(t *testing.T) {
	p := sigtest.Root(t, suite.GOST2012x256).Signer(t, suite.GOST2012x256, "Signer")
	list, err := encryption.ReadRecipients(p.Certificate.Raw)
	if err != nil || len(list) != 1 || !slices.Equal(list[0].Certificate.Raw, p.Certificate.Raw) {
		t.Errorf("%v, %v", list, err)
	}
	for _, wrong := range []string{"", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		if _, err := encryption.ReadRecipients([]byte(wrong)); !fault.Is(err, fault.InvalidRecipients) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
