// SPDX-License-Identifier: Apache-2.0

package authority_test

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/authority"
	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
)

// counted counts what is read of issued certificates.
type counted struct {
	authority.Store
	issued atomic.Int64
}

func (c *counted) Issued(ctx context.Context, serial []byte) (authority.Issued, bool, error) {
	c.issued.Add(1)
	return c.Store.Issued(ctx, serial)
}

// statusOf asks a service about a certificate.
func statusOf(t testing.TB, s *authority.Service, c, issuer *x509gost.Certificate) ocsp.Single {
	t.Helper()
	one, ok := answered(t, s, c, issuer).Basic.Find(c, issuer)
	if !ok {
		t.Fatalf("no answer about %s", c.SerialHex())
	}
	return one
}

// TestRecordsAreKept while the revocation list of their authority is the same one.
func TestRecordsAreKept(t *testing.T) {
	s, db, c := bootstrapped(t)
	counting := &counted{Store: storeOf(db)}
	server := newServiceOver(t, config, counting, newHolder(t, 2), c, 2)
	issuer := must[[]*x509gost.Certificate](t)(s.Issuing(t.Context()))[0]
	x := issue(t, s, suite.GOST2012x256)
	r := &tsp.Request{Digest: suite.Streebog256.Digest(nil)}
	reads := func(n int64, when string) {
		t.Helper()
		before := counting.issued.Load()
		for range 3 {
			stamped(t, server, r)
			statusOf(t, server, x, issuer)
		}
		if got := counting.issued.Load() - before; got != n {
			t.Errorf("%s: three stamps and answers read %d records, want %d", when, got, n)
		}
	}
	stamped(t, server, r) // finds the stamper
	statusOf(t, server, x, issuer)
	reads(2, "at first") // of the stamper and of the responder: those that were found first read theirs in a transaction
	reads(0, "later")
	c.advance(time.Hour)
	reads(0, "after an hour")
	if err := s.Revoke(t.Context(), issue(t, s, suite.GOST2012x256).SerialNumber, 1, c.now()); err != nil {
		t.Fatal(err)
	}
	reads(3, "after a revocation of another certificate")
	if err := s.Revoke(t.Context(), issue(t, s, suite.ECDSAP256).SerialNumber, 1, c.now()); err != nil {
		t.Fatal(err)
	}
	reads(0, "after a revocation by another authority")
}

// TestRecordsFollowRevocations: each change by one process is in the next answer of both.
func TestRecordsFollowRevocations(t *testing.T) {
	s, db, c := bootstrapped(t)
	other := newService(t, db, c, 2)
	ctx := t.Context()
	issuer := must[[]*x509gost.Certificate](t)(s.Issuing(ctx))[0]
	x := issue(t, s, suite.GOST2012x256)
	failed := errors.New("rolled back")
	for i, step := range []struct {
		change func() error
		want   ocsp.Status
		reason int
	}{
		{func() error { return nil }, ocsp.Good, 0},
		{func() error { return s.Revoke(ctx, x.SerialNumber, 6, c.now()) }, ocsp.Revoked, 6},
		{func() error { return other.Unhold(ctx, x.SerialNumber) }, ocsp.Good, 0},
		{func() error { // a change that is rolled back is in no answer
			err := db.Atomic(ctx, func(ctx context.Context) error {
				return errors.Join(other.Revoke(ctx, x.SerialNumber, 1, c.now()), failed)
			})
			if errors.Is(err, failed) {
				return nil
			}
			return err
		}, ocsp.Good, 0},
		{func() error { return other.Revoke(ctx, x.SerialNumber, 6, c.now()) }, ocsp.Revoked, 6},
		{func() error { return s.Revoke(ctx, x.SerialNumber, 1, c.now()) }, ocsp.Revoked, 1},
	} {
		if err := step.change(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		for n, service := range []*authority.Service{s, other} {
			if one := statusOf(t, service, x, issuer); one.Status != step.want || one.Reason != step.reason {
				t.Errorf("step %d, process %d: %s with reason %d, want %s with %d", i, n, one.Status, one.Reason, step.want, step.reason)
			}
		}
	}
}

// TestUnknownIsNotKept: a certificate is issued without a new revocation list.
func TestUnknownIsNotKept(t *testing.T) {
	s, db, c := bootstrapped(t)
	issuer := must[[]*x509gost.Certificate](t)(s.Issuing(t.Context()))[0]
	x := issue(t, s, suite.GOST2012x256)
	serial := bytes.Repeat([]byte{0x41}, len(x.SerialNumber))
	request := bytes.Replace(must[[]byte](t)(ocsp.CreateRequest(x, issuer, suite.SHA1, nil)), x.SerialNumber, serial, 1)
	if one := asked(t, s, request).Basic.Singles[0]; one.Status != ocsp.Unknown {
		t.Errorf("before: %s", one.Status)
	}
	added, err := store.Authority{DB: db}.AddIssued(t.Context(), authority.Issued{Serial: serial, Authority: "gost", NotAfter: x.NotAfter, IssuedAt: c.now()})
	if err != nil || !added {
		t.Fatal(added, err)
	}
	if one := asked(t, s, request).Basic.Singles[0]; one.Status != ocsp.Good {
		t.Errorf("after: %s", one.Status)
	}
}
