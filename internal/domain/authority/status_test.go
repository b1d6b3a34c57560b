// SPDX-License-Identifier: Apache-2.0

package authority_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"sync"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/authority"
	"tamga/pki/chain"
	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
)

func storeOf(db *store.DB) authority.Store { return store.Authority{DB: db} }

// asked sends a request and reads the answer.
func asked(t testing.TB, s *authority.Service, request []byte) *ocsp.Response {
	t.Helper()
	r, err := ocsp.Parse(must[[]byte](t)(s.OCSP(t.Context(), request)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func answered(t testing.TB, s *authority.Service, c, issuer *x509gost.Certificate) *ocsp.Response {
	t.Helper()
	return asked(t, s, must[[]byte](t)(ocsp.CreateRequest(c, issuer, suite.SHA1, []byte("a nonce"))))
}

func TestOCSP(t *testing.T) {
	s, db, c := bootstrapped(t)
	other := newService(t, db, c, 2)
	ctx := t.Context()
	roots := must[[]*x509gost.Certificate](t)(s.Roots(ctx))
	issuing := must[[]*x509gost.Certificate](t)(s.Issuing(ctx))
	for i, su := range []*suite.Suite{suite.GOST2012x256, suite.RSASHA256} {
		x := issue(t, s, su)
		for _, h := range []*suite.Hash{suite.SHA1, suite.SHA256, suite.Streebog256, suite.GOST94} {
			r := asked(t, other, must[[]byte](t)(ocsp.CreateRequest(x, issuing[i], h, []byte("a nonce"))))
			if r.Status != ocsp.Successful || string(r.Basic.Nonce) != "a nonce" {
				t.Fatalf("status %d", r.Status)
			}
			one, ok := r.Basic.Find(x, issuing[i])
			if !ok || one.Status != ocsp.Good || !one.ThisUpdate.Equal(c.now()) || !one.NextUpdate.Equal(c.now().Add(10*time.Minute)) || !r.Basic.ProducedAt.Equal(c.now()) {
				t.Errorf("%s: %+v", h.Name, one)
			}
			responder, err := r.Basic.Responder(issuing[i])
			if err != nil {
				t.Fatal(err)
			}
			if !ocsp.NoCheck(responder) || responder.KeyUsage != x509.KeyUsageDigitalSignature || len(responder.Deviations) != 0 || responder.NotAfter.Sub(responder.NotBefore) != 90*24*time.Hour {
				t.Errorf("the responder's certificate: %s to %s, %q", responder.NotBefore, responder.NotAfter, responder.Deviations)
			}
			if _, err := chain.Build(responder, chain.Options{Roots: roots, Intermediates: issuing, At: c.now(), Usage: []x509gost.OID{x509gost.UsageOCSPSigning}}); err != nil {
				t.Error(err)
			}
		}
		if v, err := judged(t, s, x, c.now(), nil); err != nil || v.Evidence[0].OCSP == nil || v.Evidence[1].OCSP == nil {
			t.Errorf("%v", err)
		}
		// A revocation by one process is in the next answer of another.
		at := c.now().Add(-time.Hour)
		if err := s.Revoke(ctx, x.SerialNumber, 1, at); err != nil {
			t.Fatal(err)
		}
		if one, _ := answered(t, other, x, issuing[i]).Basic.Find(x, issuing[i]); one.Status != ocsp.Revoked || !one.RevokedAt.Equal(at) || one.Reason != 1 {
			t.Errorf("after the revocation: %+v", one)
		}
		if _, err := judged(t, s, x, c.now(), nil); !errors.Is(err, chain.ErrRevoked) {
			t.Errorf("%v", err)
		}
		// The issuing authority itself, answered for by the root's responder.
		r := answered(t, s, issuing[i], roots[i])
		if one, ok := r.Basic.Find(issuing[i], roots[i]); !ok || one.Status != ocsp.Good {
			t.Errorf("the issuing authority: %+v", one)
		}
		if _, err := r.Basic.Responder(roots[i]); err != nil {
			t.Error(err)
		}
	}
	// Serial numbers that were not issued, or by the other authority, and the certificate
	// of a root, which has no issuer.
	a, b := issue(t, s, suite.GOST2012x256), issue(t, s, suite.ECDSAP256)
	for _, x := range []struct{ c, issuer *x509gost.Certificate }{{b, issuing[0]}, {roots[0], roots[0]}, {a, roots[0]}} {
		if one, ok := answered(t, s, x.c, x.issuer).Basic.Find(x.c, x.issuer); !ok || one.Status != ocsp.Unknown {
			t.Errorf("%s: %+v", x.c.SerialHex(), one)
		}
	}
}

func TestOCSPWithoutAnswer(t *testing.T) {
	s, _, _ := bootstrapped(t)
	issuing := must[[]*x509gost.Certificate](t)(s.Issuing(t.Context()))
	x := issue(t, s, suite.GOST2012x256)
	for name, c := range map[string]struct {
		der  []byte
		want ocsp.ResponseStatus
	}{
		"garbage":        {[]byte("garbage"), ocsp.MalformedRequest},
		"nothing":        {nil, ocsp.MalformedRequest},
		"another issuer": {must[[]byte](t)(ocsp.CreateRequest(x, x, suite.SHA1, nil)), ocsp.Unauthorized},
		"SHA-1 cut off":  {must[[]byte](t)(ocsp.CreateRequest(x, issuing[0], suite.SHA1, nil))[:50], ocsp.MalformedRequest},
	} {
		if r := asked(t, s, c.der); r.Status != c.want {
			t.Errorf("%s: status %d, want %d", name, r.Status, c.want)
		}
	}
}

// TestBootstrapAgain begins with a database whose first Bootstrap was stopped before it had delegates.
func TestBootstrapAgain(t *testing.T) {
	url := "sqlite:" + t.TempDir() + "/tamga.db"
	c := newClock()
	db := storetest.Open(t, url)
	stopped := newServiceOver(t, config, withoutDelegates{storeOf(db)}, newHolder(t, 1), c, 1)
	if err := stopped.Bootstrap(t.Context()); !errors.Is(err, errStopped) {
		t.Fatal(err)
	}
	roots := must[[]*x509gost.Certificate](t)(stopped.Roots(t.Context()))
	x := issue(t, stopped, suite.GOST2012x256)
	r := &tsp.Request{Digest: suite.Streebog256.Digest(nil), CertReq: true}
	signers := make([][]byte, 6)
	var all sync.WaitGroup
	for i := range signers {
		s := newService(t, storetest.Open(t, url), c, byte(10+i))
		all.Go(func() {
			if err := s.Bootstrap(t.Context()); err != nil {
				t.Error(err)
				return
			}
			der, err := r.Marshal()
			if err != nil {
				t.Error(err)
				return
			}
			answer, err := s.TimeStamp(t.Context(), der)
			if err != nil {
				t.Error(err)
				return
			}
			token, err := tsp.ParseResponse(answer)
			if err != nil {
				t.Error(err)
				return
			}
			c, err := token.CheckSignature(nil)
			if err != nil {
				t.Error(err)
				return
			}
			signers[i] = c.Raw
		})
	}
	all.Wait()
	for i := range signers {
		if !bytes.Equal(signers[i], signers[0]) {
			t.Errorf("process %d has a stamper of its own", i)
		}
	}
	s := newService(t, db, c, 50)
	for i, root := range must[[]*x509gost.Certificate](t)(s.Roots(t.Context())) {
		if !root.Equal(roots[i]) {
			t.Error("a root was replaced")
		}
	}
	if v, err := judged(t, s, x, c.now(), nil); err != nil || len(v.Findings) != 0 {
		t.Errorf("a certificate of before: %v", err)
	}
}

// withoutDelegates is a store that takes no delegates.
type withoutDelegates struct{ authority.Store }

var errStopped = errors.New("the process was stopped")

func (withoutDelegates) AddDelegate(context.Context, authority.DelegateRecord) (bool, error) {
	return false, errStopped
}

// TestRespondersAreReplaced before their certificates end, once by many processes.
func TestRespondersAreReplaced(t *testing.T) {
	s, db, c := bootstrapped(t)
	ctx := t.Context()
	issuing := must[[]*x509gost.Certificate](t)(s.Issuing(ctx))
	x := issue(t, s, suite.GOST2012x256)
	responder := func(s *authority.Service) *x509gost.Certificate {
		t.Helper()
		return must[*x509gost.Certificate](t)(answered(t, s, x, issuing[0]).Basic.Responder(issuing[0]))
	}
	first := responder(s)
	c.advance(44 * 24 * time.Hour)
	if err := s.Maintain(ctx); err != nil {
		t.Fatal(err)
	}
	if !responder(s).Equal(first) {
		t.Error("replaced before half of its life")
	}
	c.advance(2 * 24 * time.Hour)
	processes := make([]*authority.Service, 6)
	var all sync.WaitGroup
	for i := range processes {
		processes[i] = newService(t, db, c, byte(10+i))
		all.Go(func() {
			if err := processes[i].Maintain(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	second := responder(processes[0])
	if second.Equal(first) || !responder(s).Equal(first) {
		t.Error("not replaced, or a process that was not told gave up a valid one")
	}
	for i, p := range processes {
		if !responder(p).Equal(second) {
			t.Errorf("process %d made one of its own", i)
		}
	}
	// A process that was paused during the replacements uses the current one.
	c.advance(45 * 24 * time.Hour)
	if got := responder(s); got.Equal(first) {
		t.Error("an ended certificate answers")
	}
	// One that cannot be replaced is used as long as it is valid.
	h := &faulty{Holder: newHolder(t, 3)}
	sick := newServiceOver(t, config, storeOf(db), h, c, 3)
	current := responder(sick)
	c.advance(46 * 24 * time.Hour)
	h.broken.Store(true)
	if err := sick.Maintain(ctx); !errors.Is(err, errBroken) {
		t.Errorf("maintaining says %v", err)
	}
	h.broken.Store(false)
	if !responder(sick).Equal(current) {
		t.Error("the old one was given up")
	}
}
