// SPDX-License-Identifier: Apache-2.0

package keys_test

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"tamga/gost/gost3410"
	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/vault"
	"tamga/pki/suite"
)

// device is a holder whose keys never leave it: a row has nothing but a reference.
type device struct {
	soft *vault.SoftHolder
	mu   sync.Mutex
	kept map[string]vault.Key // by Key.ID
	down bool
}

func (d *device) Ready(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down {
		return fmt.Errorf("%w: the cable is out", vault.ErrNotReady)
	}
	return nil
}

func (d *device) keep(ctx context.Context, k vault.Key, public crypto.PublicKey, err error) (vault.Key, crypto.PublicKey, error) {
	if err = errors.Join(err, d.Ready(ctx)); err != nil {
		return vault.Key{}, nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept[k.ID] = k
	k.Sealed = []byte("object " + k.ID)
	return k, public, nil
}

func (d *device) find(ctx context.Context, k vault.Key) (vault.Key, error) {
	if err := d.Ready(ctx); err != nil {
		return k, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	kept, ok := d.kept[k.ID]
	if !ok || string(k.Sealed) != "object "+k.ID {
		return k, errors.New("no such object: " + k.ID)
	}
	return kept, nil
}

func (d *device) Generate(ctx context.Context, id string, s *suite.Suite, set *gost3410.Set, pin []byte) (vault.Key, crypto.PublicKey, error) {
	k, public, err := d.soft.Generate(ctx, id, s, set, pin)
	return d.keep(ctx, k, public, err)
}

func (d *device) Import(ctx context.Context, id string, s *suite.Suite, key crypto.Signer, pin []byte) (vault.Key, crypto.PublicKey, error) {
	k, public, err := d.soft.Import(ctx, id, s, key, pin)
	return d.keep(ctx, k, public, err)
}

func (d *device) Sign(ctx context.Context, k vault.Key, pin []byte, digests []suite.Digest) ([][]byte, error) {
	k, err := d.find(ctx, k)
	if err != nil {
		return nil, err
	}
	return d.soft.Sign(ctx, k, pin, digests)
}

func (d *device) Rewrap(ctx context.Context, k vault.Key, oldPIN, newPIN []byte) (vault.Key, error) {
	k, err := d.find(ctx, k)
	if err == nil {
		k, err = d.soft.Rewrap(ctx, k, oldPIN, newPIN)
	}
	k, _, err = d.keep(ctx, k, nil, err)
	return k, err
}

func (d *device) Delete(ctx context.Context, k vault.Key) error {
	if err := d.Ready(ctx); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.kept, k.ID)
	return nil
}

func (d *device) turn(down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = down
}

func (d *device) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.kept)
}

// groups are the groups of users, and how often they were read.
type groups struct {
	of   map[string]string
	read int
}

func (g *groups) GroupOf(_ context.Context, userID string) (string, error) {
	g.read++
	return g.of[userID], nil
}

// withDevice is a process with a second holder, named device. placed sends new keys to it.
func withDevice(t *testing.T, placed []keys.PlacementRule, g keys.Groups) (*process, *rules, *device) {
	t.Helper()
	d := &device{kept: map[string]vault.Key{}}
	p, r := manage(t, func(o *keys.Options) {
		ring, err := vault.NewRing("d", map[string][]byte{"d": make([]byte, vault.MasterKeySize)}, newReader(7))
		if err != nil {
			t.Fatal(err)
		}
		if d.soft, err = vault.NewSoftHolder(ring, newReader(8), vault.SoftOptions{MemoryKiB: 64, Passes: 1}); err != nil {
			t.Fatal(err)
		}
		soft := vault.NamedHolder{Name: vault.SoftwareName, Holder: &holder{Holder: d.soft}}
		if o.Holders, err = vault.NewHolders(soft, vault.NamedHolder{Name: "device", Holder: d}); err != nil {
			t.Fatal(err)
		}
		o.Placement = keys.Placement{Rules: placed, Groups: g}
		o.Exportable = true
	})
	return p, r, d
}

// TestPlacement checks which holder gets a new key.
func TestPlacement(t *testing.T) {
	g := &groups{of: map[string]string{alice: "bank"}}
	for what, c := range map[string]struct {
		rules []keys.PlacementRule
		suite *suite.Suite
		want  int // keys in the device
		read  int // groups that were read
	}{
		"no rule":             {nil, suite.GOST2012x256, 0, 0},
		"every key":           {[]keys.PlacementRule{{Holder: "device"}}, suite.GOST2012x256, 1, 0},
		"the suite":           {[]keys.PlacementRule{{Holder: "device", Suites: []string{"gost2012-512", "gost2012-256"}}}, suite.GOST2012x256, 1, 0},
		"another suite":       {[]keys.PlacementRule{{Holder: "device", Suites: []string{"gost2012-512"}, Groups: []string{"bank"}}}, suite.GOST2012x256, 0, 0},
		"the group":           {[]keys.PlacementRule{{Holder: "device", Groups: []string{"bank"}}}, suite.GOST2012x256, 1, 1},
		"another group":       {[]keys.PlacementRule{{Holder: "device", Groups: []string{"trust"}}, {Holder: "device", Groups: []string{"fund"}}}, suite.GOST2012x256, 0, 1},
		"the first rule fits": {[]keys.PlacementRule{{Holder: "software", Groups: []string{"bank"}}, {Holder: "device"}}, suite.GOST2012x256, 0, 1},
	} {
		g.read = 0
		p, _, d := withDevice(t, c.rules, g)
		made := p.issue(t, keys.IssueOrder{Suite: c.suite, PIN: pin})
		if d.count() != c.want || g.read != c.read {
			t.Errorf("%s: %d keys in the device, want %d; groups were read %d times, want %d", what, d.count(), c.want, g.read, c.read)
		}
		ds := digests(c.suite, "x")
		if values, err := p.Sign(t.Context(), made, pin, ds); err != nil || made.Verify(ds[0], values[0]) != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, wrong := range map[string]keys.Placement{
		"no such holder":       {Otherwise: "pkcs11"},
		"a rule without one":   {Rules: []keys.PlacementRule{{}}},
		"no such suite":        {Rules: []keys.PlacementRule{{Holder: "software", Suites: []string{"gost"}}}},
		"no groups to compare": {Rules: []keys.PlacementRule{{Holder: "software", Groups: []string{"bank"}}}},
	} {
		p, _ := manage(t)
		o := p.Options
		o.Placement = wrong
		if _, err := keys.New(o); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

// TestKeyOfADevice takes a key of a device through its life: use, PIN, renewal, refused export, deletion.
func TestKeyOfADevice(t *testing.T) {
	p, _, d := withDevice(t, []keys.PlacementRule{{Holder: "device"}}, nil)
	used := &audit.Holders{}
	ctx := audit.WithHolders(t.Context(), used)
	c := p.issue(t, keys.IssueOrder{PIN: pin})
	ds := digests(suite.GOST2012x256, "x")
	if _, err := p.Sign(ctx, c, pin, ds); err != nil || used.Detail("") != "holder device" {
		t.Errorf("signing: %v, %q", err, used.Detail(""))
	}
	if err := p.ChangePIN(ctx, as(alice), number(c), pin, "918273"); err != nil {
		t.Errorf("another PIN: %v", err)
	}
	if _, err := p.Sign(ctx, c, pin, ds); !fault.Is(err, fault.InvalidPIN) {
		t.Errorf("the old PIN: %v", err)
	}
	q, err := p.CreateRequest(ctx, as(alice), keys.CertificateOrder{Renew: number(c), RenewPIN: "918273", PIN: pin})
	if err != nil || q.CertificateID == 0 || d.count() != 2 {
		t.Fatalf("renewing: %+v, %v, %d keys", q, err, d.count())
	}
	if _, err := p.Export(ctx, keys.ExportOrder{ID: c.ID, PIN: "918273", Password: "password"}); !fault.Is(err, fault.WrongOperation) {
		t.Errorf("exporting what never leaves: %v", err)
	}
	// Deleting does not need the device, and the device forgets the key as soon as it can.
	d.turn(true)
	if _, err := p.Delete(ctx, as(alice), number(c), false); err != nil {
		t.Fatal(err)
	}
	if err := p.DestroyDeleted(ctx); !errors.Is(err, vault.ErrNotReady) || d.count() != 2 {
		t.Errorf("while the device is away: %v, %d keys", err, d.count())
	}
	d.turn(false)
	for range 2 {
		if err := p.DestroyDeleted(ctx); err != nil || d.count() != 1 {
			t.Errorf("when it is back: %v, %d keys", err, d.count())
		}
	}
	// A deleted user takes the keys along.
	if err := (store.Users{DB: p.db}).DeleteUser(ctx, alice); err != nil {
		t.Fatal(err)
	}
	if err := p.DestroyDeleted(ctx); err != nil || d.count() != 0 {
		t.Errorf("after the user: %v, %d keys", err, d.count())
	}
}

// TestHolderNotReady checks that a holder that is not ready makes only its keys unavailable, and leaves
// nothing half-done.
func TestHolderNotReady(t *testing.T) {
	p, r, d := withDevice(t, []keys.PlacementRule{{Holder: "device", Suites: []string{"gost2012-512"}}}, nil)
	ctx := t.Context()
	inDevice := p.issue(t, keys.IssueOrder{Suite: suite.GOST2012x512, PIN: pin})
	inSoftware := p.issue(t, keys.IssueOrder{})
	d.turn(true)
	if _, err := p.Sign(ctx, inDevice, pin, digests(suite.GOST2012x512, "x")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a key of the device: %v", err)
	}
	if n, err := p.PINStore.PINFailures(ctx, inDevice.KeyID); err != nil || n != 0 {
		t.Errorf("%d PIN attempts are taken, %v", n, err)
	}
	if _, err := p.Sign(ctx, inSoftware, "", digests(suite.GOST2012x256, "x")); err != nil {
		t.Errorf("a key of the software holder: %v", err)
	}
	if _, err := p.CreateRequest(ctx, as(alice), keys.CertificateOrder{Suite: "gost2012-512"}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a new key of the device: %v", err)
	}
	if err := p.Holders.Ready(ctx); err != nil {
		t.Errorf("one of two works: %v", err)
	}
	d.turn(false)
	// A key whose row is refused does not stay in the device, and one that may have been stored does.
	before := d.count()
	r.broken = errors.New("no events")
	if _, err := p.CreateRequest(ctx, as(alice), keys.CertificateOrder{Suite: "gost2012-512"}); err == nil || d.count() != before {
		t.Errorf("a request that fails: %v, %d keys, before %d", err, d.count(), before)
	}
	r.broken = &fault.Outage{Message: "the outcome is unknown", Err: errors.New("cut")}
	if _, err := p.CreateRequest(ctx, as(alice), keys.CertificateOrder{Suite: "gost2012-512"}); err == nil || d.count() != before+1 {
		t.Errorf("a commit of unknown outcome: %v, %d keys, before %d", err, d.count(), before)
	}
	r.broken = nil
	// A holder that is not configured any more.
	o := p.Options
	o.Holders, o.Placement = vault.OnlySoftware(d.soft), keys.Placement{}
	later, err := keys.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := later.Sign(ctx, inDevice, pin, digests(suite.GOST2012x512, "x")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a holder that is not configured: %v", err)
	}
	if names := o.Holders.Names(); !slices.Equal(names, []string{vault.SoftwareName}) {
		t.Error(names)
	}
}
