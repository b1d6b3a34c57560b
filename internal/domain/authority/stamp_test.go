// SPDX-License-Identifier: Apache-2.0

package authority_test

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/vault"
	"tamga/pki/chain"
	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
)

// stamp asks for a time stamp.
func stamp(t testing.TB, s *authority.Service, r *tsp.Request) (*tsp.Token, error) {
	t.Helper()
	der := must[[]byte](t)(r.Marshal())
	return tsp.ParseResponse(must[[]byte](t)(s.TimeStamp(t.Context(), der)))
}

func stamped(t testing.TB, s *authority.Service, r *tsp.Request) *tsp.Token {
	t.Helper()
	token, err := stamp(t, s, r)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// judged builds the path of a certificate, with OCSP answers for each certificate.
func judged(t testing.TB, s *authority.Service, c *x509gost.Certificate, at time.Time, usage x509gost.OID) (*chain.Result, error) {
	t.Helper()
	ctx := t.Context()
	roots := must[[]*x509gost.Certificate](t)(s.Roots(ctx))
	issuing := must[[]*x509gost.Certificate](t)(s.Issuing(ctx))
	o := chain.Options{Roots: roots, Intermediates: issuing, At: at, RequireRevocation: true}
	if usage != nil {
		o.Usage = []x509gost.OID{usage}
	}
	for i := range issuing {
		if c.Issuer.Equal(issuing[i].Subject) {
			o.OCSP = append(o.OCSP, answered(t, s, c, issuing[i]).Basic, answered(t, s, issuing[i], roots[i]).Basic)
		}
	}
	return chain.Build(c, o)
}

func TestTimeStamp(t *testing.T) {
	s, _, c := bootstrapped(t)
	issuing := must[[]*x509gost.Certificate](t)(s.Issuing(t.Context()))
	serials := map[string]bool{}
	for _, x := range []struct {
		h *suite.Hash
		i int
	}{{suite.GOST94, 0}, {suite.Streebog256, 0}, {suite.Streebog512, 0}, {suite.SHA256, 1}, {suite.SHA384, 1}, {suite.SHA512, 1}} {
		r := &tsp.Request{Digest: x.h.Digest([]byte("document")), Nonce: []byte{0x80, 7}, CertReq: true}
		token := stamped(t, s, r)
		if err := token.Answers(r); err != nil {
			t.Errorf("%s: %v", x.h.Name, err)
		}
		signer, err := token.CheckSignature(nil)
		if err != nil {
			t.Fatalf("%s: %v", x.h.Name, err)
		}
		if signer.Suite != issuing[x.i].Suite || !bytes.Equal(token.Info.Authority, signer.RawSubject) {
			t.Errorf("%s is stamped by %s", x.h.Name, signer.Subject)
		}
		if in := must[[]*x509gost.Certificate](t)(token.Message.X509()); len(in) != 2 || !in[1].Equal(issuing[x.i]) {
			t.Errorf("%s: %d certificates inside", x.h.Name, len(in))
		}
		if !token.Info.Time.Equal(c.now()) || token.Info.Accuracy != time.Second || serials[string(token.Info.Serial)] {
			t.Errorf("%+v", token.Info)
		}
		serials[string(token.Info.Serial)] = true
		if v, err := judged(t, s, signer, c.now(), x509gost.UsageTimeStamping); err != nil || len(v.Chain) != 3 || len(v.Findings) != 0 {
			t.Errorf("%s: %v", x.h.Name, err)
		}
		// Without CertReq there is no certificate inside.
		r.CertReq, r.Nonce = false, nil
		token = stamped(t, s, r)
		if len(token.Message.Certificates) != 0 || token.Info.Nonce != nil {
			t.Errorf("%s: %d certificates that were not asked for", x.h.Name, len(token.Message.Certificates))
		}
		if _, err := token.CheckSignature([]*x509gost.Certificate{signer}); err != nil {
			t.Error(err)
		}
	}
}

func TestTimeStampRefusals(t *testing.T) {
	db, c := storetest.SQLite(t), newClock()
	policy := x509gost.OID{1, 2, 643, 99}
	s := newServiceWith(t, authority.Config{TSAPolicy: policy}, db, c, 1)
	if err := s.Bootstrap(t.Context()); err != nil {
		t.Fatal(err)
	}
	good := tsp.Request{Digest: suite.SHA256.Digest(nil), Policy: policy}
	if token := stamped(t, s, &good); !token.Info.Policy.Equal(policy) {
		t.Errorf("policy %s", token.Info.Policy)
	}
	der := must[[]byte](t)(good.Marshal())
	unknown := bytes.Replace(der, []byte{0x60, 0x86, 0x48, 0x01, 0x65, 3, 4, 2, 1}, []byte{0x60, 0x86, 0x48, 0x01, 0x65, 3, 4, 2, 99}, 1)
	// An extension [0] { 1.2.3 } at the end; the outer length grows by its 11 bytes.
	extended := append(bytes.Clone(der), 0xa0, 9, 0x30, 7, 6, 2, 0x2a, 3, 4, 1, 0)
	extended[1] += 11
	for name, x := range map[string]struct {
		der  []byte
		want tsp.FailInfo
	}{
		"garbage":           {[]byte("garbage"), tsp.BadDataFormat},
		"nothing":           {nil, tsp.BadDataFormat},
		"a broken digest":   {must[[]byte](t)((&tsp.Request{Digest: suite.SHA256.Digest(nil)}).Marshal())[:20], tsp.BadDataFormat},
		"SHA-1":             {must[[]byte](t)((&tsp.Request{Digest: suite.SHA1.Digest(nil)}).Marshal()), tsp.BadAlg},
		"unknown algorithm": {unknown, tsp.BadAlg},
		"another policy":    {must[[]byte](t)((&tsp.Request{Digest: suite.SHA256.Digest(nil), Policy: x509gost.OID{1, 2, 3}}).Marshal()), tsp.UnacceptedPolicy},
		"an extension":      {extended, tsp.UnacceptedExtension},
	} {
		_, err := tsp.ParseResponse(must[[]byte](t)(s.TimeStamp(t.Context(), x.der)))
		var rejected *tsp.RejectedError
		if !errors.As(err, &rejected) || rejected.Status != tsp.Rejection || rejected.FailInfo != x.want || rejected.Text == "" {
			t.Errorf("%s: %v, want %s", name, err, x.want)
		}
	}
}

// TestClockWatch moves the wall clock and the monotonic clock.
func TestClockWatch(t *testing.T) {
	var elapsed atomic.Int64
	c := newClock()
	config := authority.Config{Elapsed: func() time.Duration { return time.Duration(elapsed.Load()) }, ClockJump: 2 * time.Second}
	s := newServiceWith(t, config, storetest.SQLite(t), c, 1)
	if err := s.Bootstrap(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		wall, running time.Duration
		stops         bool
	}{
		{0, 0, false},
		{time.Hour, time.Hour, false},
		{2 * time.Second, 0, false},                // within the bound
		{time.Hour + time.Second, time.Hour, true}, // the sum is beyond the limit
		{-time.Second, 0, false},                   // back again
		{time.Hour, time.Hour, false},              // compared anew since
		{2 * time.Second, 0, false},                // so this is the first jump
		{-2 * time.Second, 0, false},               //
		{-3 * time.Second, 0, true},                // to the other side
		{time.Hour, time.Hour, true},               // a jump is not forgotten
		{3 * time.Second, 0, false},                // the clock is back
		{24 * time.Hour, 0, true},                  // the clock was set
		{0, 24*time.Hour - 2*time.Second, false},   // as after a pause of both
		{time.Minute, time.Minute, false},
	} {
		c.advance(step.wall)
		elapsed.Add(int64(step.running))
		_, err := stamp(t, s, &tsp.Request{Digest: suite.Streebog256.Digest(nil)})
		var rejected *tsp.RejectedError
		if stops := errors.As(err, &rejected) && rejected.FailInfo == tsp.TimeNotAvailable; stops != step.stops || !stops && err != nil {
			t.Errorf("step %d: %v, want a stop: %t", i, err, step.stops)
		}
		if err := s.Maintain(t.Context()); (err != nil) != step.stops {
			t.Errorf("step %d: maintaining says %v", i, err)
		}
	}
}

// TestOwnMonotonicReading uses times without a monotonic reading: then both clocks are
// the same, and a new process starts without an error.
func TestOwnMonotonicReading(t *testing.T) {
	s, _, c := bootstrapped(t)
	c.advance(30 * 24 * time.Hour)
	stamped(t, s, &tsp.Request{Digest: suite.SHA256.Digest(nil)})
}

// TestStampersCertificate: a revoked certificate is replaced at once, an old one before
// it expires.
func TestStampersCertificate(t *testing.T) {
	s, db, c := bootstrapped(t)
	other := newService(t, db, c, 2)
	r := &tsp.Request{Digest: suite.Streebog256.Digest(nil), CertReq: true}
	signer := func(s *authority.Service) *x509gost.Certificate {
		t.Helper()
		return must[*x509gost.Certificate](t)(stamped(t, s, r).CheckSignature(nil))
	}
	first := signer(s)
	if !signer(other).Equal(first) {
		t.Error("two processes stamp with two certificates")
	}
	if e, ok := first.Extension(x509gost.OIDExtKeyUsage); !ok || !e.Critical || len(first.ExtKeyUsage) != 1 || len(first.Deviations) != 0 {
		t.Errorf("uses %v, deviations %q", first.ExtKeyUsage, first.Deviations)
	}
	if y := first.NotAfter.Year(); y != 2036 || len(first.OCSPServers) != 1 || len(first.CRLDistributionPoints) != 1 {
		t.Errorf("until %d, addresses %q", y, first.OCSPServers)
	}
	if err := s.Revoke(t.Context(), first.SerialNumber, 1, c.now()); err != nil {
		t.Fatal(err)
	}
	second := signer(other)
	if second.Equal(first) || !signer(s).Equal(second) {
		t.Error("a revoked certificate stamps, or two processes replaced it by two")
	}
	c.advance(5*365*24*time.Hour + 3*24*time.Hour)
	if !signer(s).Equal(second) {
		t.Error("replaced on the way of a request")
	}
	for _, service := range []*authority.Service{s, other} {
		if err := service.Maintain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	third := signer(s)
	if third.Equal(second) || !signer(other).Equal(third) {
		t.Error("a certificate past half of its life was not replaced, or replaced by two")
	}
}

// faulty is a holder that can be kept from signing.
type faulty struct {
	vault.Holder
	broken atomic.Bool
}

var errBroken = errors.New("the holder is broken")

func (f *faulty) Sign(ctx context.Context, k vault.Key, pin []byte, ds []suite.Digest) ([][]byte, error) {
	if f.broken.Load() {
		return nil, errBroken
	}
	return f.Holder.Sign(ctx, k, pin, ds)
}

// TestWhatCannotBeRenewedServes as long as it is valid.
func TestWhatCannotBeRenewedServes(t *testing.T) {
	_, db, c := bootstrapped(t)
	h := &faulty{Holder: newHolder(t, 3)}
	s := newServiceOver(t, config, storeOf(db), h, c, 3)
	ctx := t.Context()
	before := must[[]*x509gost.RevocationList](t)(s.CRLs(ctx))
	h.broken.Store(true)
	c.advance(4 * 24 * time.Hour)
	for range 3 {
		lists, err := s.CRLs(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i := range lists {
			if lists[i] != before[i] {
				t.Error("another list than the old one")
			}
		}
		if err := s.Maintain(ctx); !errors.Is(err, errBroken) {
			t.Errorf("maintaining says %v", err)
		}
		c.advance(time.Second)
	}
	// A later try succeeds, though not before patience is over.
	h.broken.Store(false)
	if lists := must[[]*x509gost.RevocationList](t)(s.CRLs(ctx)); lists[0] != before[0] {
		t.Error("tried again within a minute")
	}
	c.advance(time.Minute)
	if lists := must[[]*x509gost.RevocationList](t)(s.CRLs(ctx)); lists[0] == before[0] {
		t.Error("not tried again")
	}
	h.broken.Store(true)
	c.advance(7*24*time.Hour + time.Second)
	if _, err := s.CRLs(ctx); !errors.Is(err, errBroken) {
		t.Errorf("a list that has ended serves: %v", err)
	}
}

// TestLongerLists are due when the old ones are: a list that was made with a shorter life ends before half of the new one.
func TestLongerLists(t *testing.T) {
	s, db, c := bootstrapped(t)
	before := must[[]*x509gost.RevocationList](t)(s.CRLs(t.Context()))
	longer := config
	const week = 7 * 24 * time.Hour // the life of the old lists
	longer.CRLLife = 4 * week
	s = newServiceOver(t, longer, storeOf(db), newHolder(t, 3), c, 3)
	c.advance(week/2 + time.Second)
	for i, list := range must[[]*x509gost.RevocationList](t)(s.CRLs(t.Context())) {
		if bytes.Equal(list.Raw, before[i].Raw) || list.NextUpdate.Sub(list.ThisUpdate) < longer.CRLLife {
			t.Errorf("a list to %s serves at %s", list.NextUpdate, c.now())
		}
	}
}

func BenchmarkTimeStamp(b *testing.B) {
	for _, h := range []*suite.Hash{suite.Streebog256, suite.SHA256} {
		b.Run(h.Name, func(b *testing.B) {
			s, _, _ := bootstrapped(b)
			der := must[[]byte](b)((&tsp.Request{Digest: h.Digest(nil), Nonce: []byte{1}, CertReq: true}).Marshal())
			for b.Loop() {
				if _, err := s.TimeStamp(b.Context(), der); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOCSP(b *testing.B) {
	for _, su := range []*suite.Suite{suite.GOST2012x256, suite.ECDSAP256} {
		b.Run(su.Name, func(b *testing.B) {
			s, _, _ := bootstrapped(b)
			x := issue(b, s, su)
			issuing := must[[]*x509gost.Certificate](b)(s.Issuing(b.Context()))
			issuer := issuing[0]
			if su == suite.ECDSAP256 {
				issuer = issuing[1]
			}
			der := must[[]byte](b)(ocsp.CreateRequest(x, issuer, suite.SHA1, []byte("nonce")))
			for b.Loop() {
				if _, err := s.OCSP(b.Context(), der); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
