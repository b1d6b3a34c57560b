// SPDX-License-Identifier: Apache-2.0

package authority_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/vault"
	"tamga/pki/chain"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// clock is a clock that tests set.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// reader is a repeatable source, safe for concurrent use.
type reader struct {
	mu  sync.Mutex
	src *rand.ChaCha8
}

func (r *reader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.src.Read(p)
}

func newReader(seed byte) io.Reader { return &reader{src: rand.NewChaCha8([32]byte{seed})} }

// config is that of a service whose certificates name addresses.
var config = authority.Config{BaseURL: "http://127.0.0.1:8080", Name: "Test"}

// newService makes one process's service over a database.
func newService(t testing.TB, db *store.DB, c *clock, seed byte) *authority.Service {
	t.Helper()
	return newServiceWith(t, config, db, c, seed)
}

func newServiceWith(t testing.TB, config authority.Config, db *store.DB, c *clock, seed byte) *authority.Service {
	t.Helper()
	config.Generations = store.Authority{DB: db}
	return newServiceOver(t, config, store.Authority{DB: db}, newHolder(t, seed), c, seed)
}

func newServiceOver(t testing.TB, config authority.Config, s authority.Store, h vault.Holder, c *clock, seed byte) *authority.Service {
	t.Helper()
	service, err := authority.New(config, s, vault.OnlySoftware(h), newReader(seed+200), c.now)
	if err != nil {
		t.Fatal(err)
	}
	return service
}

func newHolder(t testing.TB, seed byte) vault.Holder {
	t.Helper()
	ring, err := vault.NewRing("a", map[string][]byte{"a": bytes.Repeat([]byte{7}, vault.MasterKeySize)}, newReader(seed))
	if err != nil {
		t.Fatal(err)
	}
	holder, err := vault.NewSoftHolder(ring, newReader(seed+100), vault.SoftOptions{MemoryKiB: 64, Passes: 1})
	if err != nil {
		t.Fatal(err)
	}
	return holder
}

func bootstrapped(t testing.TB) (*authority.Service, *store.DB, *clock) {
	t.Helper()
	db, c := storetest.SQLite(t), newClock()
	s := newService(t, db, c, 1)
	if err := s.Bootstrap(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, db, c
}

var keyCache sync.Map // by suite: a public key, since RSA keys take long to make

func publicKey(t testing.TB, s *suite.Suite) any {
	t.Helper()
	if pub, ok := keyCache.Load(s); ok {
		return pub
	}
	key, err := s.Generate(newReader(42))
	if err != nil {
		t.Fatal(err)
	}
	keyCache.Store(s, key.Public())
	return key.Public()
}

func subject(t testing.TB, cn string) x509gost.Name {
	t.Helper()
	n, err := x509gost.BuildName([]x509gost.Attribute{
		{OID: x509gost.OIDCountry, Value: "RU"},
		{OID: x509gost.OIDINN, Value: "123456789012"},
		{OID: x509gost.OIDCommonName, Value: cn},
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func issue(t testing.TB, s *authority.Service, su *suite.Suite) *x509gost.Certificate {
	t.Helper()
	c, err := s.Issue(t.Context(), authority.Request{Suite: su, PublicKey: publicKey(t, su), Subject: subject(t, "Пётр Иванов")})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestBootstrapMakesTwoHierarchies(t *testing.T) {
	s, _, c := bootstrapped(t)
	roots := must[[]*x509gost.Certificate](t)(s.Roots(t.Context()))
	issuing := must[[]*x509gost.Certificate](t)(s.Issuing(t.Context()))
	if len(roots) != 2 || len(issuing) != 2 {
		t.Fatalf("%d roots and %d issuing authorities, want 2 and 2", len(roots), len(issuing))
	}
	for i, su := range []*suite.Suite{suite.GOST2012x256, suite.ECDSAP256} {
		root, ca := roots[i], issuing[i]
		if root.Suite != su || ca.Suite != su {
			t.Errorf("suites %s and %s, want %s", root.Suite.Name, ca.Suite.Name, su.Name)
		}
		if err := root.CheckSignatureFrom(root); err != nil {
			t.Error(err)
		}
		if err := ca.CheckSignatureFrom(root); err != nil {
			t.Error(err)
		}
		for _, x := range []*x509gost.Certificate{root, ca} {
			if !x.IsCA || x.KeyUsage != x509.KeyUsageCertSign|x509.KeyUsageCRLSign || len(x.Deviations) > 0 {
				t.Errorf("%s: CA %t, usage %b, deviations %q", x.Subject, x.IsCA, x.KeyUsage, x.Deviations)
			}
			if !x.NotBefore.Before(c.now()) || c.now().Sub(x.NotBefore) > 10*time.Minute {
				t.Errorf("%s: valid from %v", x.Subject, x.NotBefore)
			}
		}
		if root.MaxPathLen != 1 || ca.MaxPathLen != 0 {
			t.Errorf("path lengths %d and %d", root.MaxPathLen, ca.MaxPathLen)
		}
		if y := root.NotAfter.Year(); y != 2046 {
			t.Errorf("the root ends in %d", y)
		}
		if y := ca.NotAfter.Year(); y != 2041 {
			t.Errorf("the issuing authority ends in %d", y)
		}
		if !bytes.Equal(ca.AuthorityKeyID, root.SubjectKeyID) || len(ca.SubjectKeyID) == 0 || bytes.Equal(ca.SubjectKeyID, root.SubjectKeyID) {
			t.Errorf("key ids: root %x, issuing %x by %x", root.SubjectKeyID, ca.SubjectKeyID, ca.AuthorityKeyID)
		}
	}
	if d := cmp.Diff([]string{"http://127.0.0.1:8080/pki/gost-root.crl"}, issuing[0].CRLDistributionPoints); d != "" {
		t.Error(d)
	}
	for _, name := range []string{"gost-root", "gost", "ecdsa-root", "ecdsa"} {
		der := must[[]byte](t)(s.Certificate(t.Context(), name))
		if _, err := x509gost.ParseCertificate(der); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBootstrapIsIdempotent(t *testing.T) {
	s, db, c := bootstrapped(t)
	before := must[[]*x509gost.Certificate](t)(s.Roots(t.Context()))
	for seed := range byte(3) {
		again := newService(t, db, c, seed)
		if err := again.Bootstrap(t.Context()); err != nil {
			t.Fatal(err)
		}
		after := must[[]*x509gost.Certificate](t)(again.Roots(t.Context()))
		for i := range before {
			if !before[i].Equal(after[i]) {
				t.Errorf("root %d was replaced", i)
			}
		}
	}
}

func TestNothingBeforeBootstrap(t *testing.T) {
	s := newService(t, storetest.SQLite(t), newClock(), 1)
	ctx := t.Context()
	if _, err := s.Roots(ctx); err == nil {
		t.Error("roots without authorities")
	}
	if _, err := s.CRL(ctx, "gost"); err == nil {
		t.Error("a revocation list without an authority")
	}
	_, err := s.Issue(ctx, authority.Request{Suite: suite.GOST2012x256, PublicKey: publicKey(t, suite.GOST2012x256), Subject: subject(t, "x")})
	if err == nil {
		t.Error("issued without an authority")
	}
	for _, name := range []string{"", "x", "GOST", "gost.crl", "../gost"} {
		if _, err := s.CRL(ctx, name); !fault.Is(err, fault.NotFound) {
			t.Errorf("list of %q: %v", name, err)
		}
		if _, err := s.Certificate(ctx, name); !fault.Is(err, fault.NotFound) {
			t.Errorf("certificate of %q: %v", name, err)
		}
	}
}

func TestIssue(t *testing.T) {
	s, _, c := bootstrapped(t)
	roots := must[[]*x509gost.Certificate](t)(s.Roots(t.Context()))
	issuing := must[[]*x509gost.Certificate](t)(s.Issuing(t.Context()))
	crls := must[[]*x509gost.RevocationList](t)(s.CRLs(t.Context()))
	serials := map[string]bool{}
	for _, su := range suite.All() {
		t.Run(su.Name, func(t *testing.T) {
			got := issue(t, s, su)
			if got.Suite != su || len(got.Deviations) > 0 {
				t.Errorf("suite %s, deviations %q", got.Suite.Name, got.Deviations)
			}
			if len(got.SerialNumber) != 17 || got.SerialNumber[0] < 0x40 || got.SerialNumber[0] > 0x7f || serials[string(got.SerialNumber)] {
				t.Errorf("serial number %x", got.SerialNumber)
			}
			serials[string(got.SerialNumber)] = true
			if got.IsCA || got.KeyUsage != x509.KeyUsageDigitalSignature|x509.KeyUsageContentCommitment {
				t.Errorf("CA %t, usage %b", got.IsCA, got.KeyUsage)
			}
			if life := got.NotAfter.Sub(c.now()); life != 456*24*time.Hour {
				t.Errorf("life %v", life)
			}
			name, hierarchy := "gost", 0
			if su == suite.RSASHA256 || su == suite.ECDSAP256 {
				name, hierarchy = "ecdsa", 1
			}
			if !bytes.Equal(got.RawIssuer, issuing[hierarchy].RawSubject) || !bytes.Equal(got.AuthorityKeyID, issuing[hierarchy].SubjectKeyID) {
				t.Errorf("issued by %s", got.Issuer)
			}
			if d := cmp.Diff([]string{"http://127.0.0.1:8080/pki/" + name + ".crl"}, got.CRLDistributionPoints); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff([]string{"http://127.0.0.1:8080/pki/" + name + ".crt"}, got.IssuingURLs); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff([]string{"http://127.0.0.1:8080/pki/ocsp"}, got.OCSPServers); d != "" {
				t.Error(d)
			}
			if cn, _ := got.Subject.Get(x509gost.OIDCommonName); cn != "Пётр Иванов" {
				t.Errorf("subject %s", got.Subject)
			}
			v, err := chain.Build(got, chain.Options{
				Roots: roots, Intermediates: issuing, CRLs: crls, At: c.now(), RequireRevocation: true,
				Usage: []x509gost.OID{{1, 3, 6, 1, 5, 5, 7, 3, 4}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(v.Chain) != 3 {
				t.Errorf("a path of %d", len(v.Chain))
			}
		})
	}
}

// TestConfigShowsInCertificates issues without addresses, with policies, and with
// lifetimes of the configuration and of the request.
func TestConfigShowsInCertificates(t *testing.T) {
	db, c := storetest.SQLite(t), newClock()
	policy := x509gost.OID{1, 2, 643, 100, 113, 1}
	s := newServiceWith(t, authority.Config{Life: 24 * time.Hour, Policies: []x509gost.OID{policy}}, db, c, 1)
	if err := s.Bootstrap(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := issue(t, s, suite.GOST2012x256)
	if len(got.CRLDistributionPoints)+len(got.IssuingURLs)+len(got.OCSPServers) != 0 {
		t.Errorf("addresses %q and %q", got.CRLDistributionPoints, got.IssuingURLs)
	}
	if len(got.Policies) != 1 || !got.Policies[0].Equal(policy) {
		t.Errorf("policies %v", got.Policies)
	}
	if life := got.NotAfter.Sub(c.now()); life != 24*time.Hour {
		t.Errorf("life %v", life)
	}
	got, err := s.Issue(t.Context(), authority.Request{
		Suite: suite.GOST2012x256, PublicKey: publicKey(t, suite.GOST2012x256), Subject: subject(t, "x"), Life: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	if life := got.NotAfter.Sub(c.now()); life != time.Hour {
		t.Errorf("life %v", life)
	}
	root := must[[]*x509gost.Certificate](t)(s.Roots(t.Context()))[0]
	if cn, _ := root.Subject.Get(x509gost.OIDCommonName); cn != "Tamga GOST Root CA" {
		t.Errorf("the root is %s", root.Subject)
	}
}

// TestConfigNamesAuthorities gives the authority an organisation, a common name and lifetimes of its own.
func TestConfigNamesAuthorities(t *testing.T) {
	t.Parallel()
	db, c := storetest.SQLite(t), newClock()
	s := newServiceWith(t, authority.Config{Organization: "ООО «Пример»", Name: "Example", RootYears: 3, IssuingYears: 10, CRLLife: 24 * time.Hour}, db, c, 1)
	if err := s.Bootstrap(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := must[[]authority.Described](t)(s.All(t.Context()))
	if len(all) != 4 {
		t.Fatalf("%d authorities", len(all))
	}
	for _, d := range all {
		title := map[string]string{"gost-root": "GOST Root CA", "gost": "GOST Issuing CA", "ecdsa-root": "ECDSA Root CA", "ecdsa": "ECDSA Issuing CA"}[d.Name]
		o, _ := d.Certificate.Subject.Get(x509gost.OIDOrganization)
		cn, _ := d.Certificate.Subject.Get(x509gost.OIDCommonName)
		if o != "ООО «Пример»" || cn != "Example "+title {
			t.Errorf("%s is %s", d.Name, d.Certificate.Subject)
		}
		if years := d.Certificate.NotAfter.Year() - c.now().Year(); years != 3 { // no issuing authority outlives its root
			t.Errorf("%s is valid for %d years", d.Name, years)
		}
	}
	for _, l := range must[[]*x509gost.RevocationList](t)(s.CRLs(t.Context())) {
		if life := l.NextUpdate.Sub(c.now()).Round(time.Hour); life != 24*time.Hour {
			t.Errorf("the list of %s is valid for %v", l.Issuer, life)
		}
	}
	// A new name counts for the next issuing authority; a root keeps its own.
	other := newServiceWith(t, authority.Config{Organization: "Other", Name: "Other"}, db, c, 2)
	if _, err := other.Rollover(t.Context(), "gost", true); err != nil {
		t.Fatal(err)
	}
	roots, issuing := must[[]*x509gost.Certificate](t)(other.Roots(t.Context())), must[[]*x509gost.Certificate](t)(other.Issuing(t.Context()))
	if !roots[0].Subject.Equal(roots[1].Subject) || issuing[0].Subject.String() == issuing[1].Subject.String() {
		t.Errorf("roots %s and %s, issuing %s", roots[0].Subject, roots[1].Subject, issuing[0].Subject)
	}
}

// Each kind of key gets the purposes of encryption that it has, if they are asked for.
func TestIssueForEncryption(t *testing.T) {
	s, _, _ := bootstrapped(t)
	const signature = x509.KeyUsageDigitalSignature | x509.KeyUsageContentCommitment
	want := map[*suite.Suite]x509.KeyUsage{
		suite.RSASHA256: x509.KeyUsageKeyEncipherment | x509.KeyUsageDataEncipherment,
		suite.ECDSAP256: x509.KeyUsageKeyAgreement,
	}
	for _, su := range suite.All() {
		more, ok := want[su]
		if !ok {
			more = authority.EncryptionUsage
		}
		got, err := s.Issue(t.Context(), authority.Request{Suite: su, PublicKey: publicKey(t, su), Subject: subject(t, "x"), Encryption: true})
		if err != nil {
			t.Fatal(err)
		}
		if got.KeyUsage != signature|more || len(got.Deviations) != 0 {
			t.Errorf("%s: usage %b, want %b; deviations %q", su.Name, got.KeyUsage, signature|more, got.Deviations)
		}
	}
}

func TestIssueEndsWithTheIssuer(t *testing.T) {
	s, _, c := bootstrapped(t)
	issuer := must[[]*x509gost.Certificate](t)(s.Issuing(t.Context()))[0]
	c.advance(issuer.NotAfter.Sub(c.now()) - 24*time.Hour)
	got := issue(t, s, suite.GOST2012x256)
	if !got.NotAfter.Equal(issuer.NotAfter) {
		t.Errorf("valid until %v, the issuer until %v", got.NotAfter, issuer.NotAfter)
	}
	c.advance(25 * time.Hour)
	_, err := s.Issue(t.Context(), authority.Request{Suite: suite.GOST2012x256, PublicKey: publicKey(t, suite.GOST2012x256), Subject: subject(t, "x")})
	if err == nil {
		t.Error("an expired authority issued")
	}
}

func TestIssueRefuses(t *testing.T) {
	s, db, c := bootstrapped(t)
	gost := publicKey(t, suite.GOST2012x256)
	for name, r := range map[string]authority.Request{
		"no suite":      {PublicKey: gost, Subject: subject(t, "x")},
		"no key":        {Suite: suite.GOST2012x256, Subject: subject(t, "x")},
		"another key":   {Suite: suite.GOST2012x512, PublicKey: gost, Subject: subject(t, "x")},
		"no subject":    {Suite: suite.GOST2012x256, PublicKey: gost},
		"negative life": {Suite: suite.GOST2012x256, PublicKey: gost, Subject: subject(t, "x"), Life: -1},
		// Names with invisible characters.
		"a NUL":             {Suite: suite.GOST2012x256, PublicKey: gost, Subject: subject(t, "x\x00y")},
		"a line break":      {Suite: suite.GOST2012x256, PublicKey: gost, Subject: subject(t, "x\r\ny")},
		"another direction": {Suite: suite.GOST2012x256, PublicKey: gost, Subject: subject(t, "x\u202ey")},
	} {
		if _, err := s.Issue(t.Context(), r); err == nil {
			t.Errorf("%s: issued", name)
		}
	}
	// Two services with the same randomness draw the same serial number.
	again := newService(t, db, c, 1)
	issue(t, again, suite.GOST2012x256) // repeats the first draw of the bootstrap
	r := authority.Request{Suite: suite.GOST2012x256, PublicKey: gost, Subject: subject(t, "x")}
	if _, err := newService(t, db, c, 1).Issue(t.Context(), r); err == nil {
		t.Error("one serial number was given twice")
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []authority.Config{
		{BaseURL: "example.org"}, {BaseURL: "ftp://example.org"}, {BaseURL: "http://"}, {BaseURL: "http://example.org/"},
		{Life: -1}, {CRLLife: time.Second}, {OCSPLife: time.Millisecond}, {ClockJump: -1},
	} {
		if _, err := authority.New(c, nil, nil, nil, nil); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

func TestRevoke(t *testing.T) {
	s, db, c := bootstrapped(t)
	other := newService(t, db, c, 2) // another process
	ctx := t.Context()
	a, b := issue(t, s, suite.GOST2012x256), issue(t, other, suite.GOST2001)
	find := func(s *authority.Service, x *x509gost.Certificate) (x509gost.RevokedEntry, bool) {
		t.Helper()
		l, err := x509gost.ParseRevocationList(must[[]byte](t)(s.CRL(ctx, "gost")))
		if err != nil {
			t.Fatal(err)
		}
		return l.Find(x.SerialNumber)
	}
	if _, found := find(other, a); found {
		t.Fatal("revoked before it was")
	}
	if err := s.Revoke(ctx, a.SerialNumber, 1, c.now()); err != nil {
		t.Fatal(err)
	}
	for _, service := range []*authority.Service{s, other} {
		e, found := find(service, a)
		if !found || e.Reason != 1 || !e.At.Equal(c.now()) {
			t.Errorf("entry %+v, %t", e, found)
		}
		if _, found := find(service, b); found {
			t.Error("the other certificate is on the list")
		}
	}
	if err := other.Revoke(ctx, a.SerialNumber, 1, c.now()); !errors.Is(err, authority.ErrAlreadyRevoked) {
		t.Errorf("twice: %v", err)
	}
	if err := s.Revoke(ctx, []byte{1}, 1, c.now()); !errors.Is(err, authority.ErrNotIssued) {
		t.Errorf("an unknown serial number: %v", err)
	}
	for _, reason := range []int{-1, 7, 8, 11, 1 << 20} {
		if err := s.Revoke(ctx, b.SerialNumber, reason, c.now()); err == nil {
			t.Errorf("revoked for reason %d", reason)
		}
	}
	// On hold, again on hold, and then for good.
	for _, step := range []struct {
		reason int
		ok     bool
	}{{6, true}, {6, false}, {4, true}, {6, false}, {1, false}} {
		err := other.Revoke(ctx, b.SerialNumber, step.reason, c.now())
		if step.ok != (err == nil) {
			t.Errorf("reason %d: %v", step.reason, err)
		}
	}
	if e, _ := find(s, b); e.Reason != 4 {
		t.Errorf("the reason on the list is %d", e.Reason)
	}
	// An issuing authority is revoked on the list of its root.
	ca := must[[]*x509gost.Certificate](t)(s.Issuing(ctx))[0]
	if err := s.Revoke(ctx, ca.SerialNumber, 2, c.now()); err != nil {
		t.Fatal(err)
	}
	l, err := x509gost.ParseRevocationList(must[[]byte](t)(other.CRL(ctx, "gost-root")))
	if err != nil {
		t.Fatal(err)
	}
	if e, found := l.Find(ca.SerialNumber); !found || e.Reason != 2 {
		t.Errorf("the authority's entry: %+v, %t", e, found)
	}
}

func TestRevokeTogether(t *testing.T) {
	s, db, c := bootstrapped(t)
	const n = 12
	certs := make([]*x509gost.Certificate, n)
	for i := range certs {
		certs[i] = issue(t, s, suite.GOST2012x256)
	}
	var all sync.WaitGroup
	for i, x := range certs {
		process := newService(t, db, c, byte(i))
		all.Go(func() {
			if err := process.Revoke(t.Context(), x.SerialNumber, 1, c.now()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	l, err := x509gost.ParseRevocationList(must[[]byte](t)(s.CRL(t.Context(), "gost")))
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range certs {
		if _, found := l.Find(x.SerialNumber); !found {
			t.Errorf("revocation %d is lost", i)
		}
	}
	if !bytes.Equal(l.Number, []byte{n + 1}) {
		t.Errorf("list number %x after %d revocations", l.Number, n)
	}
}

func TestRevocationListIsRenewed(t *testing.T) {
	s, db, c := bootstrapped(t)
	other := newService(t, db, c, 2)
	ctx := t.Context()
	number := func(s *authority.Service) string {
		t.Helper()
		l, err := x509gost.ParseRevocationList(must[[]byte](t)(s.CRL(ctx, "gost")))
		if err != nil {
			t.Fatal(err)
		}
		if !l.ThisUpdate.Before(c.now()) || !l.NextUpdate.After(c.now().Add(7*24*time.Hour/2-time.Second)) {
			t.Errorf("list %x from %v to %v, now %v", l.Number, l.ThisUpdate, l.NextUpdate, c.now())
		}
		issuer := must[[]*x509gost.Certificate](t)(s.Issuing(ctx))[0]
		if err := l.CheckSignatureFrom(issuer); err != nil {
			t.Error(err)
		}
		return hex.EncodeToString(l.Number)
	}
	check := func(want string) {
		t.Helper()
		for _, service := range []*authority.Service{s, other, s} {
			if got := number(service); got != want {
				t.Errorf("list %s, want %s", got, want)
			}
		}
	}
	check("01")
	c.advance(7*24*time.Hour/2 - time.Second)
	check("01")
	c.advance(time.Second)
	check("02")
	// Many processes at once renew once.
	c.advance(4 * 24 * time.Hour)
	var all sync.WaitGroup
	for i := range byte(8) {
		process := newService(t, db, c, i)
		all.Go(func() {
			if _, err := process.CRLs(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	check("03")
	for range 130 { // past the number that needs a second byte
		c.advance(4 * 24 * time.Hour)
		if _, err := s.CRL(ctx, "gost"); err != nil {
			t.Fatal(err)
		}
	}
	if got := number(other); got != "0085" {
		t.Errorf("list %s, want 133 as the content of a DER INTEGER", got)
	}
}

// TestBootstrapTogether lets many processes begin at once, over one handle and
// over several of the same file.
func TestBootstrapTogether(t *testing.T) {
	url := "sqlite:" + t.TempDir() + "/tamga.db"
	c := newClock()
	roots := make([]string, 8)
	var all sync.WaitGroup
	for i := range roots {
		s := newService(t, storetest.Open(t, url), c, byte(i))
		all.Go(func() {
			if err := s.Bootstrap(t.Context()); err != nil {
				t.Error(err)
				return
			}
			got, err := s.Roots(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			for _, r := range got {
				roots[i] += r.Thumbprint()
			}
			if _, err := s.CRLs(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i, r := range roots {
		if r != roots[0] {
			t.Errorf("process %d has other roots than process 0", i)
		}
	}
}

// TestIssueJoinsATransaction issues in a transaction that fails, which removes the serial
// number.
func TestIssueJoinsATransaction(t *testing.T) {
	s, db, _ := bootstrapped(t)
	boom := errors.New("boom")
	var serial []byte
	err := db.Atomic(t.Context(), func(ctx context.Context) error {
		x, err := s.Issue(ctx, authority.Request{Suite: suite.GOST2012x256, PublicKey: publicKey(t, suite.GOST2012x256), Subject: subject(t, "x")})
		if err != nil {
			return err
		}
		serial = x.SerialNumber
		return boom
	})
	if !errors.Is(err, boom) {
		t.Fatal(err)
	}
	if _, found, err := (store.Authority{DB: db}).Issued(t.Context(), serial); found || err != nil {
		t.Errorf("the serial number stayed: %t, %v", found, err)
	}
}
