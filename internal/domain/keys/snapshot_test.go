// SPDX-License-Identifier: Apache-2.0

package keys_test

import (
	"fmt"
	"strings"
	"testing"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/pki/suite"
)

// snapshot reads one of a user.
func (p *process) snapshot(t testing.TB, userID string) *keys.Snapshot {
	t.Helper()
	snap, err := store.Snapshots{DB: p.db}.Snapshot(t.Context(), userID, p.clock.now())
	if err != nil {
		t.Fatal(err)
	}
	return &snap.Keys
}

// A snapshot is what its moment was, another certificate than the default one is read, and
// another user's stays unknown.
func TestSnapshotServes(t *testing.T) {
	p := start(t)
	ctx := t.Context()
	none := p.snapshot(t, alice)
	first := p.issue(t, keys.IssueOrder{Default: true})
	snap := p.snapshot(t, alice)
	second := p.issue(t, keys.IssueOrder{Default: true})
	if _, err := p.ResolveIn(ctx, none, alice, ""); !fault.Is(err, fault.InvalidCertificate) || !strings.Contains(err.Error(), "default") {
		t.Errorf("a default certificate before there was one: %v", err)
	}
	for identifier, want := range map[string]int64{"": first.ID, "0": first.ID, fmt.Sprint(first.ID): first.ID, fmt.Sprint(second.ID): second.ID} {
		c, err := p.ResolveIn(ctx, snap, alice, identifier)
		if err != nil || c.ID != want {
			t.Fatalf("%q: %v, %v; want certificate %d", identifier, c, err, want)
		}
		if _, err := p.JudgeIn(ctx, snap, c, p.clock.now()); err != nil {
			t.Errorf("%q: %v", identifier, err)
		}
		if _, err := p.SignIn(ctx, snap, c, "", digests(suite.GOST2012x256, "x")); err != nil {
			t.Errorf("%q: %v", identifier, err)
		}
	}
	// Were it asked for with the snapshot of another user, the certificate still is not theirs.
	if _, err := p.ResolveIn(ctx, snap, "bob", fmt.Sprint(first.ID)); !fault.Is(err, fault.InvalidCertificate) {
		t.Errorf("a certificate of another user: %v", err)
	}

	if err := p.Revoke(ctx, first.ID, 1); err != nil {
		t.Fatal(err)
	}
	after := p.snapshot(t, alice)
	after.Default = snap.Default // so that the revocation list alone says so
	for _, c := range []struct {
		name    string
		snap    *keys.Snapshot
		revoked bool
	}{{"before the revocation", snap, false}, {"after it", after, true}} {
		cert, err := p.ResolveIn(ctx, c.snap, alice, fmt.Sprint(first.ID))
		if err != nil {
			t.Fatal(err)
		}
		// A list that is gone from memory is read in its later form, see authority.CRLsAt.
		other := join(t, p.db, p.clock, 2)
		for _, process := range []*process{p, other} {
			if _, err := process.JudgeIn(ctx, c.snap, cert, p.clock.now()); fault.Is(err, fault.InvalidCertificate) != (c.revoked || process == other) {
				t.Errorf("a snapshot of %s: %v", c.name, err)
			}
		}
	}
	// Without any list nothing tells that a certificate is not revoked.
	without := *after
	without.Authorities = []authority.State{}
	c, err := p.ResolveIn(ctx, &without, alice, fmt.Sprint(second.ID))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.JudgeIn(ctx, &without, c, p.clock.now()); !fault.Is(err, fault.InvalidCertificate) {
		t.Errorf("without a revocation list: %v", err)
	}
}

// A PIN that was changed after a snapshot counts: the key of an attempt is read after the attempt
// was taken.
func TestSnapshotHoldsNoPIN(t *testing.T) {
	p := start(t)
	ctx := t.Context()
	c := p.issue(t, keys.IssueOrder{PIN: pin, Default: true})
	snap := p.snapshot(t, alice)
	const another = "246802"
	p.Policy = &rules{}
	if err := p.ChangePIN(ctx, keys.Act{Who: audit.Principal{UserID: alice}}, fmt.Sprint(c.ID), pin, another); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{pin: false, another: true} {
		if _, err := p.SignIn(ctx, snap, c, text, digests(suite.GOST2012x256, "x")); (err == nil) != want || err != nil && !fault.Is(err, fault.InvalidPIN) {
			t.Errorf("PIN %s: %v", text, err)
		}
	}
}
