// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"fmt"
	"testing"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/policy"
	"tamga/pki/chain"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// world is a database with one user whose snapshot a test changes, and the services that
// decide on snapshots.
type world struct {
	*fakeKeys
	now      time.Time
	database Snapshot
	read     int
	log      []string // decisions, and the number of the snapshot of each
}

func (w *world) Snapshot(_ context.Context, userID string, now time.Time) (*Snapshot, error) {
	w.read++
	snap := w.database
	snap.UserID, snap.At = userID, now
	return &snap, nil
}

// number returns the number of a snapshot.
func number(set policy.Set) int { return int(set.Group.Actions) }

func (w *world) PermitBy(access policy.Set, a policy.Action) error {
	w.log = append(w.log, fmt.Sprint("permit ", number(access)))
	if access.Own != nil {
		return fault.New(fault.AccessDenied, "denied")
	}
	return nil
}

func (*world) PermitType(string, bool) error { return nil }

func (*world) TSPAddress(context.Context, string, bool) (string, error) { return "", nil }

func (w *world) ResolveIn(_ context.Context, snap *keys.Snapshot, userID, identifier string) (*keys.Certificate, error) {
	if snap.Default == nil || identifier != "" && identifier != "1" || userID != "u" {
		return nil, fault.New(fault.InvalidCertificate, "no such certificate")
	}
	w.log = append(w.log, "resolve "+snap.Default.Comment)
	return &keys.Certificate{ID: snap.Default.ID, X509: w.signer.Certificate, Outside: snap.Default.Outside}, nil
}

func (w *world) JudgeIn(_ context.Context, snap *keys.Snapshot, c *keys.Certificate, _ time.Time) (*chain.Result, error) {
	w.log = append(w.log, "judge "+snap.Default.Comment)
	if !snap.Default.RevokedAt.IsZero() {
		return nil, fault.New(fault.InvalidCertificate, "revoked")
	}
	return &chain.Result{Chain: []*x509gost.Certificate{c.X509}}, nil
}

func (w *world) SignIn(ctx context.Context, snap *keys.Snapshot, c *keys.Certificate, pin string, digests []suite.Digest) ([][]byte, error) {
	w.log = append(w.log, "sign "+snap.Default.Comment)
	return w.fakeKeys.SignIn(ctx, snap, c, pin, digests)
}

// change makes the next state of the database.
func (w *world) change(number int) {
	w.database.Access = policy.Set{Group: &policy.Setting{Actions: policy.Action(number)}}
	w.database.Keys = keys.Snapshot{Default: &keys.CertificateRecord{ID: 1, Comment: fmt.Sprint(number)}}
}

// slow is a format whose Prepare takes a while, during which the state changes.
type slow struct {
	sig.Described
	meanwhile func()
}

func (f slow) Prepare(ctx context.Context, job *sig.Job) (*sig.Prepared, error) {
	f.meanwhile()
	return f.Described.Prepare(ctx, job)
}

func newWorld(t *testing.T) (*Service, *world, *slow) {
	s, k := newService(t, suite.ECDSAP256)
	w := &world{fakeKeys: k, now: s.Now()}
	f := &slow{s.Formats[0], func() {}}
	s.Formats, s.Keys, s.Policy, s.Snapshots, s.Now = sig.Formats{f}, w, w, w, func() time.Time { return w.now }
	w.change(1)
	return s, w, f
}

// TestSnapshotAge checks that a request uses the snapshot of its beginning while that is
// young, and a new one otherwise. No key is used on an older one.
func TestSnapshotAge(t *testing.T) {
	const all = "[permit %d resolve %[1]d judge %[1]d"
	for _, c := range []struct {
		name          string
		coming, being time.Duration // how long the document is received, and prepared
		read          int
		log           string
	}{
		{"at once", 0, 0, 0, fmt.Sprintf(all, 1) + " sign 1]"},
		{"just in time", snapshotLife / 2, snapshotLife/2 - 1, 0, fmt.Sprintf(all, 1) + " sign 1]"},
		{"a document that comes in slowly", snapshotLife, 0, 1, fmt.Sprintf(all, 2) + " sign 2]"},
		{"a document that is prepared slowly", 0, snapshotLife, 1, fmt.Sprintf(all, 1) + " permit 3 resolve 3 judge 3 sign 3]"},
		{"both", snapshotLife, snapshotLife, 2, fmt.Sprintf(all, 2) + " permit 3 resolve 3 judge 3 sign 3]"},
	} {
		for _, batch := range []bool{false, true} {
			s, w, f := newWorld(t)
			snap, err := w.Snapshot(t.Context(), "u", w.now)
			if err != nil {
				t.Fatal(err)
			}
			w.read = 0
			w.now = w.now.Add(c.coming)
			w.change(2)
			f.meanwhile = func() { w.now = w.now.Add(c.being); w.change(3) }
			if batch {
				_, err = s.SignMany(t.Context(), audit.Principal{UserID: "u"}, &BatchOrder{Type: "GOST3410", Snapshot: snap, Items: []Item{{Content: content(t, s, "x")}}})
			} else {
				_, err = s.Sign(t.Context(), audit.Principal{UserID: "u"}, &SignOrder{Type: "GOST3410", Snapshot: snap, Content: content(t, s, "x")})
			}
			if err != nil || w.read != c.read || fmt.Sprint(w.log) != c.log {
				t.Errorf("%s, batch %v: %v, %d snapshots, %v; want %d and %s", c.name, batch, err, w.read, w.log, c.read, c.log)
			}
		}
	}
}

// TestSnapshotBeforeTheKey checks that a change while a document is prepared keeps the
// key from being used.
func TestSnapshotBeforeTheKey(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(w *world)
		code   string
	}{
		{"nothing", func(*world) {}, ""},
		{"a policy", func(w *world) { w.database.Access.Own = &policy.Setting{} }, fault.AccessDenied},
		{"a revocation", func(w *world) { w.database.Keys.Default.RevokedAt = w.now }, fault.InvalidCertificate},
		{"a deletion", func(w *world) { w.database.Keys.Default = nil }, fault.InvalidCertificate},
	} {
		s, w, f := newWorld(t)
		f.meanwhile = func() { w.now = w.now.Add(snapshotLife); c.change(w) }
		_, err := s.Sign(t.Context(), audit.Principal{UserID: "u"}, &SignOrder{Type: "GOST3410", Content: content(t, s, "x"), PIN: "wrong"})
		if c.code == "" {
			if w.asked != 1 {
				t.Errorf("%s: the key was asked %d times", c.name, w.asked)
			}
		} else if !fault.Is(err, c.code) || w.asked != 0 {
			t.Errorf("%s: %v, and the key was asked %d times; want %s and none", c.name, err, w.asked, c.code)
		}
	}
}

// TestOutsideAuthorityIsAskedOnce checks that a request asks the authority of an outside
// certificate only once.
func TestOutsideAuthorityIsAskedOnce(t *testing.T) {
	s, w, f := newWorld(t)
	w.database.Keys.Default.Outside = true
	f.meanwhile = func() { w.now = w.now.Add(snapshotLife) }
	if _, err := s.Sign(t.Context(), audit.Principal{UserID: "u"}, &SignOrder{Type: "GOST3410", Content: content(t, s, "x")}); err != nil {
		t.Fatal(err)
	}
	if want := "[permit 1 resolve 1 judge 1 permit 1 resolve 1 sign 1]"; fmt.Sprint(w.log) != want {
		t.Errorf("%v, want %s", w.log, want)
	}
}

// TestSnapshotOfAnother checks that everything is read if there is no snapshot, or one of
// another user.
func TestSnapshotOfAnother(t *testing.T) {
	for _, snap := range []*Snapshot{nil, {UserID: "other", Access: policy.Set{Group: &policy.Setting{Actions: 9}}}} {
		s, w, _ := newWorld(t)
		if snap != nil {
			snap.At = w.now
		}
		if _, err := s.Sign(t.Context(), audit.Principal{UserID: "u"}, &SignOrder{Type: "GOST3410", Snapshot: snap, Content: content(t, s, "x")}); err != nil || w.read != 1 || w.log[0] != "permit 1" {
			t.Errorf("%v: %v, %d snapshots, %v", snap, err, w.read, w.log)
		}
	}
}
