// SPDX-License-Identifier: Apache-2.0

package keys_test

import (
	"bytes"
	"context"
	"crypto"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/user"
	"tamga/internal/domain/vault"
	"tamga/pki/cms"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// clock is a clock that tests set.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

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

// holder is a Holder that tests can watch and disturb.
type holder struct {
	vault.Holder
	tries  atomic.Int64                                // calls of Sign, Agree and Decrypt with a PIN
	before func(ctx context.Context, pin []byte) error // when set, runs first in such a call
}

// try counts and disturbs a use of a key.
func (h *holder) try(ctx context.Context, k vault.Key, pin []byte) error {
	if !k.HasPIN {
		return nil
	}
	h.tries.Add(1)
	if h.before != nil {
		return h.before(ctx, pin)
	}
	return nil
}

func (h *holder) Sign(ctx context.Context, k vault.Key, pin []byte, digests []suite.Digest) ([][]byte, error) {
	if err := h.try(ctx, k, pin); err != nil {
		return nil, err
	}
	return h.Holder.Sign(ctx, k, pin, digests)
}

func (h *holder) Agree(ctx context.Context, k vault.Key, pin []byte, a cms.KeyAgreement) ([]byte, error) {
	if err := h.try(ctx, k, pin); err != nil {
		return nil, err
	}
	return h.Holder.(vault.Decrypter).Agree(ctx, k, pin, a)
}

func (h *holder) Decrypt(ctx context.Context, k vault.Key, pin []byte, t cms.KeyTransport) ([]byte, error) {
	if err := h.try(ctx, k, pin); err != nil {
		return nil, err
	}
	return h.Holder.(vault.Decrypter).Decrypt(ctx, k, pin, t)
}

// Knows and Export ask the SoftHolder, unless a test has put another holder in its place.
func (h *holder) Knows(k vault.Key, pin []byte) bool {
	soft, is := h.Holder.(*vault.SoftHolder)
	return is && soft.Knows(k, pin)
}

func (h *holder) Export(ctx context.Context, k vault.Key, pin []byte) (crypto.Signer, error) {
	return h.Holder.(vault.Exporter).Export(ctx, k, pin)
}

// process is one process of the service.
type process struct {
	*keys.Service
	authority *authority.Service
	holder    *holder
	db        *store.DB
	clock     *clock
	attempts  atomic.Int64 // PIN attempts that were taken
}

// attempts counts the attempts that are taken.
type attempts struct {
	keys.PINStore
	taken *atomic.Int64
}

func (a attempts) ReservePIN(ctx context.Context, keyID string, limit int) (bool, error) {
	a.taken.Add(1)
	return a.PINStore.ReservePIN(ctx, keyID, limit)
}

const (
	alice = "00000000-0000-4000-8000-00000000000a"
	bob   = "00000000-0000-4000-8000-00000000000b"
)

// start makes an installation with two users and its first process.
func start(t testing.TB) *process {
	t.Helper()
	return startWith(t, 1)
}

// startWith is start with another seed, for a second installation.
func startWith(t testing.TB, seed byte) *process {
	t.Helper()
	url := "sqlite:" + filepath.Join(t.TempDir(), "tamga.db")
	c := &clock{t: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	p := join(t, storetest.Open(t, url), c, seed)
	users := store.Users{DB: p.db}
	if err := users.AddGroup(t.Context(), user.Group{Name: "Default", CreatedAt: c.now()}); err != nil {
		t.Fatal(err)
	}
	for id, login := range map[string]string{alice: "alice", bob: "bob"} {
		u := user.User{ID: id, Login: login, Group: "Default", CreatedAt: c.now()}
		if err := users.AddUser(t.Context(), u, login); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.authority.Bootstrap(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// join makes another process on the same database, with its own memory.
func join(t testing.TB, db *store.DB, c *clock, seed byte) *process {
	t.Helper()
	ring, err := vault.NewRing("a", map[string][]byte{"a": bytes.Repeat([]byte{7}, vault.MasterKeySize)}, newReader(seed))
	if err != nil {
		t.Fatal(err)
	}
	soft, err := vault.NewSoftHolder(ring, newReader(seed+50), vault.SoftOptions{MemoryKiB: 64, Passes: 1, Remember: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { soft.Close() })
	p := &process{holder: &holder{Holder: soft}, db: db, clock: c}
	p.authority, err = authority.New(authority.Config{}, store.Authority{DB: db}, vault.OnlySoftware(soft), newReader(seed+100), c.now)
	if err != nil {
		t.Fatal(err)
	}
	stored := store.Keys{DB: db}
	p.Service, err = keys.New(keys.Options{
		Store: stored, RequestStore: stored, StatusStore: stored, PINStore: attempts{stored, &p.attempts},
		DeletionStore: stored, Holders: vault.OnlySoftware(p.holder), Authority: p.authority,
		Rand: newReader(seed + 150), Now: c.now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func name(t testing.TB) x509gost.Name {
	t.Helper()
	n, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: "Мария"}})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (p *process) issue(t testing.TB, o keys.IssueOrder) *keys.Certificate {
	t.Helper()
	if o.UserID == "" {
		o.UserID = alice
	}
	if o.Suite == nil {
		o.Suite = suite.GOST2012x256
	}
	o.Subject = name(t)
	c, err := p.Issue(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func digests(s *suite.Suite, texts ...string) []suite.Digest {
	var list []suite.Digest
	for _, text := range texts {
		h := s.Hash.New()
		io.WriteString(h, text)
		list = append(list, suite.Digest{Hash: s.Hash, Sum: h.Sum(nil)})
	}
	return list
}

// text is what a client sees of an error.
func text(t testing.TB, err error) string {
	t.Helper()
	f, ok := fault.As(err)
	if !ok {
		t.Fatalf("not a fault: %v", err)
	}
	return f.Code + ": " + f.Message
}

func TestIssueListSign(t *testing.T) {
	p := start(t)
	ctx := t.Context()
	if list, err := p.List(ctx, alice); err != nil || len(list) != 0 {
		t.Fatalf("%d certificates of a new user, %v", len(list), err)
	}
	type want struct {
		suite *suite.Suite
		pin   string
	}
	var wants []want
	for _, s := range suite.All() {
		wants = append(wants, want{s, ""})
	}
	wants = append(wants, want{suite.GOST2012x256, pin})
	for i, w := range wants {
		made := p.issue(t, keys.IssueOrder{Suite: w.suite, PIN: w.pin, Default: i == 1, FriendlyName: fmt.Sprint("№", i)})
		if made.ID != int64(i+1) {
			t.Errorf("certificate %d has number %d", i, made.ID)
		}
	}
	list, err := p.List(ctx, alice)
	if err != nil || len(list) != len(wants) {
		t.Fatalf("%d certificates, %v", len(list), err)
	}
	for i, w := range wants {
		c := list[i]
		if c.ID != int64(i+1) || c.UserID != alice || c.X509.Suite != w.suite || c.HasPIN != (w.pin != "") ||
			c.Default != (i == 1) || c.Status != keys.Active || c.FriendlyName != fmt.Sprint("№", i) ||
			!c.CreatedAt.Equal(p.clock.now()) || !c.RevokedAt.IsZero() {
			t.Errorf("certificate %d: %+v", i, c)
		}
		if _, err := p.Judge(ctx, c, p.clock.now()); err != nil {
			t.Errorf("certificate %d: %v", i, err)
		}
		ds := digests(w.suite, "a", "b", "c")
		values, err := p.Sign(ctx, c, w.pin, ds)
		if err != nil || len(values) != len(ds) {
			t.Fatalf("certificate %d: %d values, %v", i, len(values), err)
		}
		for j, v := range values {
			if err := c.X509.Verify(ds[j], v); err != nil {
				t.Errorf("certificate %d, value %d: %v", i, j, err)
			}
		}
	}
	if list, err := p.List(ctx, bob); err != nil || len(list) != 0 {
		t.Errorf("%d certificates of another user, %v", len(list), err)
	}
	// Another process reads the same.
	other := join(t, p.db, p.clock, 2)
	if again, err := other.List(ctx, alice); err != nil || len(again) != len(list) {
		t.Errorf("another process: %d certificates, %v", len(again), err)
	}
}

func TestIssueRefuses(t *testing.T) {
	p := start(t)
	good := keys.IssueOrder{UserID: alice, Suite: suite.GOST2012x256, Subject: name(t)}
	for what, c := range map[string]struct {
		change func(o *keys.IssueOrder)
		code   string // "": not a fault
	}{
		"no user":            {func(o *keys.IssueOrder) { o.UserID = "" }, ""},
		"an unknown user":    {func(o *keys.IssueOrder) { o.UserID = "unknown" }, ""},
		"no suite":           {func(o *keys.IssueOrder) { o.Suite = nil }, ""},
		"no subject":         {func(o *keys.IssueOrder) { o.Subject = x509gost.Name{} }, ""},
		"a PIN without end":  {func(o *keys.IssueOrder) { o.PIN = strings.Repeat("1", 257) }, fault.InvalidPIN},
		"a name without end": {func(o *keys.IssueOrder) { o.FriendlyName = strings.Repeat("я", 256) }, fault.InvalidParameters},
		"a negative life":    {func(o *keys.IssueOrder) { o.Life = -time.Hour }, ""},
	} {
		o := good
		c.change(&o)
		_, err := p.Issue(t.Context(), o)
		f, isFault := fault.As(err)
		if err == nil || isFault != (c.code != "") || isFault && f.Code != c.code {
			t.Errorf("%s: %v", what, err)
		}
	}
	good.FriendlyName = strings.Repeat("я", 255)
	c, err := p.Issue(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := p.List(t.Context(), alice); err != nil || len(list) != 1 || list[0].ID != c.ID {
		t.Errorf("what was refused left something behind: %d certificates, %v", len(list), err)
	}
}

func TestResolve(t *testing.T) {
	p := start(t)
	ctx := t.Context()
	mine := p.issue(t, keys.IssueOrder{})
	second := p.issue(t, keys.IssueOrder{})
	theirs := p.issue(t, keys.IssueOrder{UserID: bob, Default: true})

	_, err := p.Resolve(ctx, alice, "")
	if got := text(t, err); !strings.HasPrefix(got, fault.InvalidCertificate+": you have no default") {
		t.Errorf("without a default: %s", got)
	}
	if err := p.SetDefault(ctx, alice, second.ID); err != nil {
		t.Fatal(err)
	}
	for identifier, want := range map[string]int64{
		"": second.ID, "0": second.ID, " 0 ": second.ID, "0.0": second.ID,
		fmt.Sprint(mine.ID): mine.ID, fmt.Sprintf(" 0%d\n", second.ID): second.ID, fmt.Sprintf("%d.00", mine.ID): mine.ID,
	} {
		c, err := p.Resolve(ctx, alice, identifier)
		if err != nil || c.ID != want || c.UserID != alice || c.Default != (want == second.ID) {
			t.Errorf("%q: %+v, %v, want %d", identifier, c, err, want)
		}
	}
	_, unknown := p.Resolve(ctx, alice, "1000000")
	for _, identifier := range []string{
		fmt.Sprint(theirs.ID), "-1", "+1", "1.5", "1.", ".0", "1.0.0", "0x1", "1e0", "abc", "00", "1 2", "١", "\x00", "' OR 1=1",
		"9223372036854775807", "9223372036854775808", strings.Repeat("9", 10000), "00000000-0000-4000-8000-00000000000a",
	} {
		c, err := p.Resolve(ctx, alice, identifier)
		if c != nil || text(t, err) != text(t, unknown) {
			t.Errorf("%.40q: %v, %v, want the answer for an unknown one: %v", identifier, c, err, unknown)
		}
	}
	if !fault.Is(unknown, fault.InvalidCertificate) {
		t.Error(unknown)
	}
}

func TestSetDefault(t *testing.T) {
	p := start(t)
	ctx := t.Context()
	theirs := p.issue(t, keys.IssueOrder{UserID: bob})
	var mine []*keys.Certificate
	for range 4 {
		mine = append(mine, p.issue(t, keys.IssueOrder{Default: true}))
	}
	defaults := func() (ids []int64) {
		t.Helper()
		list, err := p.List(ctx, alice)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			if c.Default {
				ids = append(ids, c.ID)
			}
		}
		return ids
	}
	if got := defaults(); len(got) != 1 || got[0] != mine[3].ID {
		t.Fatalf("defaults %v, want the last issued", got)
	}
	_, unknown := p.Resolve(ctx, alice, "1000000")
	for _, id := range []int64{theirs.ID, 0, -1, 1000000} {
		if err := p.SetDefault(ctx, alice, id); text(t, err) != text(t, unknown) {
			t.Errorf("certificate %d: %v", id, err)
		}
	}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			if err := p.SetDefault(ctx, alice, mine[i%4].ID); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := defaults(); len(got) != 1 {
		t.Errorf("defaults %v after many at once", got)
	}
}

func TestJudge(t *testing.T) {
	p := start(t)
	ctx := t.Context()
	now := p.clock.now()
	good := p.issue(t, keys.IssueOrder{})
	short := p.issue(t, keys.IssueOrder{Life: time.Hour})
	revoked, held := p.issue(t, keys.IssueOrder{}), p.issue(t, keys.IssueOrder{})
	for _, err := range []error{p.Revoke(ctx, revoked.ID, 1), p.Revoke(ctx, held.ID, 6)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	other := startWith(t, 20).issue(t, keys.IssueOrder{})
	foreign := *good
	foreign.ID, foreign.X509 = 1000, other.X509

	reread := func(c *keys.Certificate) *keys.Certificate {
		t.Helper()
		c, err := p.Resolve(ctx, alice, fmt.Sprint(c.ID))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if got := []keys.Status{reread(good).Status, reread(revoked).Status, reread(held).Status}; got[0] != keys.Active || got[1] != keys.Revoked || got[2] != keys.Hold {
		t.Errorf("standings %v", got)
	}
	for _, c := range []struct {
		name string
		cert *keys.Certificate
		at   time.Time
		want string // a part of the message; "": no fault
	}{
		{"good", good, now, ""},
		{"last moment", short, short.X509.NotAfter.Add(time.Second - 1), ""},
		{"expired", short, short.X509.NotAfter.Add(time.Second), "expired on 2026-11-21 13:00:00 UTC"},
		{"not yet valid", good, good.X509.NotBefore.Add(-1), "not valid before 2026-11-21 11:55:00 UTC"},
		{"revoked, read again", reread(revoked), now, "was revoked on 2026-11-21 12:00:00 UTC"},
		{"revoked, read before", revoked, now, "revoked"},
		{"on hold, read again", reread(held), now, "on hold since 2026-11-21 12:00:00 UTC"},
		{"on hold, read before", held, now, "revoked"},
		{"of another authority", &foreign, now, "cannot be used"},
	} {
		for range 2 { // the second time from memory
			v, err := p.Judge(ctx, c.cert, c.at)
			switch {
			case c.want == "" && (err != nil || len(v.Chain) != 3):
				t.Errorf("%s: %v, %v", c.name, v, err)
			case c.want != "" && (err == nil || !strings.HasPrefix(text(t, err), fault.InvalidCertificate+": ") || !strings.Contains(text(t, err), c.want)):
				t.Errorf("%s: %v, want %q", c.name, err, c.want)
			}
		}
	}

	p.clock.advance(2 * time.Hour)
	if got := reread(short).Status; got != keys.NotValid {
		t.Errorf("status of the expired one: %v", got)
	}
}

// TestJudgeSeesOtherProcesses revokes in one process a certificate whose good result
// another process has cached.
func TestJudgeSeesOtherProcesses(t *testing.T) {
	p := start(t)
	ctx := t.Context()
	other := join(t, p.db, p.clock, 2)
	made := p.issue(t, keys.IssueOrder{})
	c, err := other.Resolve(ctx, alice, fmt.Sprint(made.ID))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		v, err := other.Judge(ctx, c, p.clock.now())
		if err != nil {
			t.Fatal(err)
		}
		clear(v.Chain) // the caller may change the result
		v.Findings = append(v.Findings, v.Findings...)
	}
	if err := p.Revoke(ctx, made.ID, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Judge(ctx, c, p.clock.now()); !fault.Is(err, fault.InvalidCertificate) {
		t.Errorf("judged before the revocation was read: %v", err)
	}

	// The revocation of the issuer has effect too, and the renewal of lists does not
	// affect good certificates.
	made = p.issue(t, keys.IssueOrder{})
	for range 5 {
		p.clock.advance(4 * 24 * time.Hour)
		if _, err := other.Judge(ctx, made, p.clock.now()); err != nil {
			t.Fatal(err)
		}
	}
	issuing, err := p.authority.Issuing(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.authority.Revoke(ctx, issuing[0].SerialNumber, 2, p.clock.now()); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Judge(ctx, made, p.clock.now()); err == nil || !strings.Contains(text(t, err), "issuer is revoked") {
		t.Errorf("under a revoked issuer: %v", err)
	}
}

func TestRevokeRefuses(t *testing.T) {
	p := start(t)
	ctx := t.Context()
	c := p.issue(t, keys.IssueOrder{})
	for reason, code := range map[int]string{-1: fault.InvalidParameters, 7: fault.InvalidParameters, 8: fault.InvalidParameters, 11: fault.InvalidParameters} {
		if err := p.Revoke(ctx, c.ID, reason); !fault.Is(err, code) {
			t.Errorf("reason %d: %v", reason, err)
		}
	}
	if err := p.Revoke(ctx, 1000, 0); !fault.Is(err, fault.NotFound) {
		t.Errorf("unknown: %v", err)
	}
	if err := p.Revoke(ctx, c.ID, 0); err != nil {
		t.Fatal(err)
	}
	if err := p.Revoke(ctx, c.ID, 0); !fault.Is(err, fault.InvalidObjectState) {
		t.Errorf("twice: %v", err)
	}
}

func TestSignNeedsItsOwnKey(t *testing.T) {
	p := start(t)
	c := p.issue(t, keys.IssueOrder{})
	other := p.issue(t, keys.IssueOrder{UserID: bob})
	mixed := *c
	mixed.KeyID = other.KeyID
	for what, c := range map[string]keys.Certificate{"another user's key": mixed, "no key": {ID: 1, UserID: alice}} {
		if _, err := p.Sign(t.Context(), &c, "", digests(suite.GOST2012x256, "x")); err == nil {
			t.Errorf("%s: signed", what)
		}
	}
	// A PIN for a key without one is ignored.
	if _, err := p.Sign(t.Context(), c, "1234", digests(suite.GOST2012x256, "x")); err != nil {
		t.Error(err)
	}
	// A digest that the key does not sign is the caller's mistake.
	_, err := p.Sign(t.Context(), c, "", digests(suite.ECDSAP256, "x"))
	if _, isFault := fault.As(err); err == nil || isFault {
		t.Errorf("a digest of SHA-256: %v", err)
	}
}

// BenchmarkJudge is the cost for a request: the state of the lists is read from the
// database each time; "first" also builds the path.
func BenchmarkJudge(b *testing.B) {
	p := start(b)
	c := p.issue(b, keys.IssueOrder{})
	b.Run("again", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := p.Judge(b.Context(), c, p.clock.now()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("first", func(b *testing.B) {
		unknown := *c
		unknown.ID = -1 // never remembered
		b.ReportAllocs()
		for b.Loop() {
			if _, err := p.Judge(b.Context(), &unknown, p.clock.now()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkResolveSign is finding the default certificate and signing with it.
func BenchmarkResolveSign(b *testing.B) {
	p := start(b)
	p.issue(b, keys.IssueOrder{Default: true})
	ds := digests(suite.GOST2012x256, "x")
	b.Run("resolve", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := p.Resolve(b.Context(), alice, "0"); err != nil {
				b.Fatal(err)
			}
		}
	})
	c, err := p.Resolve(b.Context(), alice, "0")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("sign", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := p.Sign(b.Context(), c, "", ds); err != nil {
				b.Fatal(err)
			}
		}
	})
}
