// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/authority"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/user"
	"tamga/internal/domain/vault"
	pkisuite "tamga/pki/suite"
	"tamga/pki/x509gost"
)

// keyOf adds key n of a user.
func keyOf(t testing.TB, db *store.DB, u user.User, n int) keys.KeyRecord {
	t.Helper()
	k := keys.KeyRecord{
		ID: fmt.Sprintf("key-%d", n), UserID: u.ID, Holder: vault.SoftwareName, Suite: "gost2001",
		Sealed: []byte{0, byte(n), 0xff}, HasPIN: n%2 == 1, CreatedAt: start,
	}
	must(t, store.Keys{DB: db}.AddKey(t.Context(), k))
	return k
}

// certificateOf adds a certificate of a key. n makes its serial number.
func certificateOf(t testing.TB, db *store.DB, k keys.KeyRecord, n byte) keys.CertificateRecord {
	t.Helper()
	_, err := store.Authority{DB: db}.AddAuthority(t.Context(), authorityRecord("gost"))
	must(t, err)
	_, err = store.Authority{DB: db}.AddIssued(t.Context(), issued("gost", n))
	must(t, err)
	c := keys.CertificateRecord{
		NewCertificate: keys.NewCertificate{
			UserID: k.UserID, KeyID: k.ID, DER: []byte{0x30, n}, Serial: []byte{0x40, n},
			FriendlyName: fmt.Sprint("№", n), CreatedAt: start.Add(time.Duration(n) * time.Second),
		},
		HasPIN: k.HasPIN,
	}
	c.ID, err = store.Keys{DB: db}.AddCertificate(t.Context(), c.NewCertificate)
	must(t, err)
	return c
}

func testKeys(t *testing.T, open func(t *testing.T) *store.DB) {
	cases{
		{"AddAndFind", func(t *testing.T, db *store.DB) {
			s := store.Keys{DB: db}
			group(t, db, "Default")
			u, other := person(t, db, 1), person(t, db, 2)
			want := keyOf(t, db, u, 1)
			got, found, err := s.Key(t.Context(), want.ID)
			must(t, err)
			if d := cmp.Diff(want, got); d != "" || !found {
				t.Errorf("found %t: %s", found, d)
			}
			if _, found, err := s.Key(t.Context(), "unknown"); found || err != nil {
				t.Errorf("an unknown key: %t, %v", found, err)
			}
			if err := s.AddKey(t.Context(), want); err == nil {
				t.Error("one key was added twice")
			}
			orphan := want
			orphan.ID, orphan.UserID = "another", "unknown"
			if err := s.AddKey(t.Context(), orphan); err == nil {
				t.Error("a key without a user was added")
			}

			first, second := certificateOf(t, db, want, 1), certificateOf(t, db, want, 2)
			theirs := certificateOf(t, db, keyOf(t, db, other, 2), 3)
			if first.ID != 1 || second.ID != 2 || theirs.ID != 3 {
				t.Errorf("numbers %d, %d, %d, want 1, 2, 3", first.ID, second.ID, theirs.ID)
			}
			list, err := s.Certificates(t.Context(), u.ID)
			must(t, err)
			if d := cmp.Diff([]keys.CertificateRecord{first, second}, list); d != "" {
				t.Error(d)
			}
			for _, want := range []keys.CertificateRecord{first, second, theirs} {
				got, key, found, err := s.Certificate(t.Context(), want.ID)
				must(t, err)
				if d := cmp.Diff(want, got); d != "" || !found {
					t.Errorf("found %t: %s", found, d)
				}
				alone, _, err := s.Key(t.Context(), want.KeyID)
				must(t, err)
				if d := cmp.Diff(alone, key); d != "" {
					t.Error(d)
				}
			}
			for _, id := range []int64{0, -1, 4, 1<<63 - 1} {
				if _, _, found, err := s.Certificate(t.Context(), id); found || err != nil {
					t.Errorf("certificate %d: %t, %v", id, found, err)
				}
			}
			_, err = store.Authority{DB: db}.MarkRevoked(t.Context(), second.Serial, 4, start)
			must(t, err)
			second.RevokedAt, second.Reason = start, 4
			got2, _, _, err := s.Certificate(t.Context(), second.ID)
			must(t, err)
			if d := cmp.Diff(second, got2); d != "" {
				t.Error(d)
			}
		}},
		{"Default", func(t *testing.T, db *store.DB) {
			s := store.Keys{DB: db}
			group(t, db, "Default")
			u, other := person(t, db, 1), person(t, db, 2)
			k := keyOf(t, db, u, 1)
			mine := []keys.CertificateRecord{certificateOf(t, db, k, 1), certificateOf(t, db, k, 2)}
			theirs := certificateOf(t, db, keyOf(t, db, other, 2), 3)
			expect := func(want int64) {
				t.Helper()
				got, found, err := s.DefaultCertificate(t.Context(), u.ID)
				must(t, err)
				if found != (want != 0) || got.ID != want || found && !got.Default {
					t.Errorf("default %d (%t, %t), want %d", got.ID, found, got.Default, want)
				}
			}
			expect(0)
			for _, c := range []struct {
				id, after int64
				want      bool
			}{{theirs.ID, 0, false}, {1000, 0, false}, {mine[0].ID, mine[0].ID, true}, {mine[0].ID, mine[0].ID, true},
				{mine[1].ID, mine[1].ID, true}, {theirs.ID, mine[1].ID, false}} {
				set, err := s.SetDefault(t.Context(), u.ID, c.id)
				must(t, err)
				if set != c.want {
					t.Errorf("set %d: %t, want %t", c.id, set, c.want)
				}
				expect(c.after)
			}
			for _, err := range together(16, func(i int) error {
				_, err := s.SetDefault(t.Context(), u.ID, mine[i%2].ID)
				return err
			}) {
				must(t, err)
			}
			list, err := s.Certificates(t.Context(), u.ID)
			must(t, err)
			if list[0].Default == list[1].Default {
				t.Errorf("defaults %t and %t", list[0].Default, list[1].Default)
			}
			if _, found, err := s.DefaultCertificate(t.Context(), other.ID); found || err != nil {
				t.Errorf("the other user's default: %t, %v", found, err)
			}
		}},
		{"PIN", func(t *testing.T, db *store.DB) {
			s := store.Keys{DB: db}
			group(t, db, "Default")
			k := keyOf(t, db, person(t, db, 1), 1)
			reserve := func(limit int, want bool) {
				t.Helper()
				got, err := s.ReservePIN(t.Context(), k.ID, limit)
				must(t, err)
				if got != want {
					t.Errorf("reserved %t, want %t", got, want)
				}
			}
			must(t, s.ReturnPIN(t.Context(), k.ID)) // never below zero
			won := make([]bool, 50)
			for _, err := range together(len(won), func(i int) (err error) {
				won[i], err = s.ReservePIN(t.Context(), k.ID, 10)
				return err
			}) {
				must(t, err)
			}
			count := 0
			for _, w := range won {
				if w {
					count++
				}
			}
			if count != 10 {
				t.Errorf("%d attempts of 10 were given out", count)
			}
			reserve(10, false)
			reserve(11, true)
			must(t, s.ReturnPIN(t.Context(), k.ID))
			must(t, s.ReturnPIN(t.Context(), k.ID))
			reserve(10, true)
			reserve(10, false)
			must(t, s.ResetPIN(t.Context(), k.ID))
			reserve(1, true)
			reserve(1, false)
			if got, err := s.ReservePIN(t.Context(), "unknown", 10); got || err != nil {
				t.Errorf("an unknown key: %t, %v", got, err)
			}
			must(t, s.ResetPIN(t.Context(), k.ID))
			err := s.Atomic(t.Context(), lock.Set{}, func(ctx context.Context) error {
				if got, err := s.ReservePIN(ctx, k.ID, 10); got || err == nil {
					t.Errorf("inside a transaction: %t, %v", got, err)
				}
				return nil
			})
			must(t, err)
			// A caller that has gone gets an attempt or an error. An error means that no
			// attempt was taken.
			for range 20 {
				must(t, s.ResetPIN(t.Context(), k.ID))
				got, err := s.ReservePIN(canceled(t), k.ID, 1)
				if got == (err != nil) {
					t.Errorf("a caller that has gone: %t, %v", got, err)
				}
				reserve(1, !got)
			}
		}},
		{"ManyProcesses", testManyProcesses},
	}.run(t, open)
}

// lockedSource is a repeatable source, safe for concurrent use.
type lockedSource struct {
	mu  sync.Mutex
	src *rand.ChaCha8
}

func (r *lockedSource) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.src.Read(p)
}

func source(seed byte) io.Reader { return &lockedSource{src: rand.NewChaCha8([32]byte{seed})} }

// testManyProcesses runs the domain packages of keys as several processes on one
// database: they create the authorities, issue and revoke concurrently, and every process
// sees the same.
func testManyProcesses(t *testing.T, db *store.DB) {
	const processes, each = 6, 3
	ctx := t.Context()
	group(t, db, "Default")
	u := person(t, db, 1)
	subject, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: "x"}})
	must(t, err)
	now := func() time.Time { return start }
	authorities := make([]*authority.Service, processes)
	services := make([]*keys.Service, processes)
	for i := range services {
		ring, err := vault.NewRing("a", map[string][]byte{"a": make([]byte, vault.MasterKeySize)}, source(byte(i)))
		must(t, err)
		holder, err := vault.NewSoftHolder(ring, source(byte(50+i)), vault.SoftOptions{})
		must(t, err)
		authorities[i], err = authority.New(authority.Config{}, store.Authority{DB: db}, vault.OnlySoftware(holder), source(byte(100+i)), now)
		must(t, err)
		stored := store.Keys{DB: db}
		services[i], err = keys.New(keys.Options{
			Store: stored, RequestStore: stored, StatusStore: stored, PINStore: stored,
			Holders: vault.OnlySoftware(holder), Authority: authorities[i], Rand: source(byte(150 + i)), Now: now,
		})
		must(t, err)
	}
	ids := make([][]int64, processes)
	for _, err := range together(processes, func(i int) error {
		if err := authorities[i].Bootstrap(ctx); err != nil {
			return err
		}
		for range each {
			c, err := services[i].Issue(ctx, keys.IssueOrder{UserID: u.ID, Suite: pkisuite.GOST2012x256, Subject: subject, Default: true})
			if err != nil {
				return err
			}
			ids[i] = append(ids[i], c.ID)
		}
		return nil
	}) {
		must(t, err)
	}
	roots, err := authorities[0].Roots(ctx)
	must(t, err)
	for i, a := range authorities {
		other, err := a.Roots(ctx)
		must(t, err)
		for j := range roots {
			if !bytes.Equal(roots[j].Raw, other[j].Raw) {
				t.Errorf("process %d has another root %d", i, j)
			}
		}
	}
	list, err := services[0].List(ctx, u.ID)
	must(t, err)
	defaults := 0
	for _, c := range list {
		if c.Default {
			defaults++
		}
		if _, err := services[0].Judge(ctx, c, start); err != nil {
			t.Error(err)
		}
	}
	if len(list) != processes*each || defaults != 1 {
		t.Errorf("%d certificates, %d of them default; want %d and 1", len(list), defaults, processes*each)
	}
	// Every process revokes its first certificate. None of the concurrent CRLs may lose
	// an entry of another.
	for _, err := range together(processes, func(i int) error {
		return services[i].Revoke(ctx, ids[i][0], 1)
	}) {
		must(t, err)
	}
	for _, c := range list { // read before the revocations
		revoked := false
		for _, own := range ids {
			revoked = revoked || own[0] == c.ID
		}
		for i, s := range services {
			if _, err := s.Judge(ctx, c, start); fault.Is(err, fault.InvalidCertificate) != revoked || err != nil && !revoked {
				t.Errorf("process %d on certificate %d: %v, revoked %t", i, c.ID, err, revoked)
			}
		}
	}
}
