// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/authority"
)

// authorityRecord is an authority with contents that a store does not interpret.
func authorityRecord(name string) authority.Record {
	return authority.Record{
		State:       authority.State{Name: name, CRLNumber: 1, CRLAt: start},
		Suite:       "gost2012-256",
		Sealed:      []byte{0, 1, 0xff},
		Certificate: []byte("certificate of " + name),
		CRL:         []byte("first list"),
		CreatedAt:   start.Add(time.Second),
	}
}

// issued returns certificate number n of an authority.
func issued(authorityName string, n byte) authority.Issued {
	return authority.Issued{
		Serial: []byte{0x40, n}, Authority: authorityName,
		NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), IssuedAt: start,
	}
}

func testAuthority(t *testing.T, open func(t *testing.T) *store.DB) {
	cases{
		{"AddAndFind", func(t *testing.T, db *store.DB) {
			s := store.Authority{DB: db}
			_, found, err := s.Authority(t.Context(), "gost")
			must(t, err)
			if found {
				t.Error("an authority in an empty database")
			}
			want := authorityRecord("gost")
			added, err := s.AddAuthority(t.Context(), want)
			must(t, err)
			if !added {
				t.Error("a new authority was not added")
			}
			other := want
			other.Certificate = []byte("another")
			added, err = s.AddAuthority(t.Context(), other)
			must(t, err)
			if added {
				t.Error("the same name was added twice")
			}
			got, found, err := s.Authority(t.Context(), "gost")
			must(t, err)
			if d := cmp.Diff(want, got); d != "" || !found {
				t.Errorf("found %t: %s", found, d)
			}
		}},
		{"OneNameTogether", func(t *testing.T, db *store.DB) {
			s := store.Authority{DB: db}
			won := make([]bool, 16)
			for _, err := range together(len(won), func(i int) (err error) {
				a := authorityRecord("gost")
				a.Certificate = []byte{byte(i)}
				won[i], err = s.AddAuthority(t.Context(), a)
				return err
			}) {
				must(t, err)
			}
			got, _, err := s.Authority(t.Context(), "gost")
			must(t, err)
			for i, w := range won {
				if w != bytes.Equal(got.Certificate, []byte{byte(i)}) {
					t.Errorf("%d was told %t, stored is %v", i, w, got.Certificate)
				}
			}
		}},
		{"CRL", func(t *testing.T, db *store.DB) {
			s := store.Authority{DB: db}
			for _, name := range []string{"gost-root", "ecdsa", "gost"} {
				_, err := s.AddAuthority(t.Context(), authorityRecord(name))
				must(t, err)
			}
			later := start.Add(time.Hour)
			for _, c := range []struct {
				name string
				seen int64
				want bool
			}{{"gost", 0, false}, {"gost", 2, false}, {"gost", 1, true}, {"gost", 1, false}, {"gost", 2, true}, {"unknown", 1, false}} {
				replaced, err := s.ReplaceCRL(t.Context(), c.name, c.seen, fmt.Append(nil, "after ", c.seen), later)
				must(t, err)
				if replaced != c.want {
					t.Errorf("list %d of %s replaced: %t, want %t", c.seen, c.name, replaced, c.want)
				}
			}
			got, err := s.States(t.Context())
			must(t, err)
			if d := cmp.Diff([]authority.State{
				{Name: "ecdsa", CRLNumber: 1, CRLAt: start},
				{Name: "gost", CRLNumber: 3, CRLAt: later},
				{Name: "gost-root", CRLNumber: 1, CRLAt: start},
			}, got); d != "" {
				t.Error(d)
			}
			a, _, err := s.Authority(t.Context(), "gost")
			must(t, err)
			if string(a.CRL) != "after 2" {
				t.Errorf("the current list is %q", a.CRL)
			}
		}},
		{"Revocation", func(t *testing.T, db *store.DB) {
			s := store.Authority{DB: db}
			for _, name := range []string{"gost", "ecdsa"} {
				_, err := s.AddAuthority(t.Context(), authorityRecord(name))
				must(t, err)
			}
			for i, want := range []bool{true, true, true, false} {
				added, err := s.AddIssued(t.Context(), issued([]string{"gost", "gost", "ecdsa", "ecdsa"}[i], []byte{9, 2, 3, 9}[i]))
				must(t, err)
				if added != want {
					t.Errorf("serial number %d added: %t, want %t", i, added, want)
				}
			}
			if _, err := s.AddIssued(t.Context(), issued("unknown", 50)); err == nil {
				t.Error("a certificate of an authority that does not exist was added")
			}
			got, found, err := s.Issued(t.Context(), []byte{0x40, 9})
			must(t, err)
			if d := cmp.Diff(issued("gost", 9), got); d != "" || !found {
				t.Errorf("found %t: %s", found, d)
			}
			_, found, err = s.Issued(t.Context(), []byte{0x40, 10})
			must(t, err)
			if found {
				t.Error("found a serial number that was not issued")
			}
			later := start.Add(time.Minute)
			for i, c := range []struct {
				n      byte
				reason int
				want   bool
			}{{9, 6, true}, {9, 6, false}, {9, 1, true}, {9, 1, false}, {9, 6, false}, {2, 0, true}, {2, 0, false}, {77, 1, false}} {
				changed, err := s.MarkRevoked(t.Context(), []byte{0x40, c.n}, c.reason, later.Add(time.Duration(i)*time.Second))
				must(t, err)
				if changed != c.want {
					t.Errorf("step %d: revoked %t, want %t", i, changed, c.want)
				}
			}
			list, err := s.Revoked(t.Context(), "gost")
			must(t, err)
			two, nine := issued("gost", 2), issued("gost", 9)
			two.RevokedAt = later.Add(5 * time.Second)
			nine.RevokedAt, nine.Reason = later.Add(2*time.Second), 1
			if d := cmp.Diff([]authority.Issued{two, nine}, list); d != "" {
				t.Error(d)
			}
			list, err = s.Revoked(t.Context(), "ecdsa")
			must(t, err)
			if len(list) != 0 {
				t.Errorf("%d revocations of the other authority", len(list))
			}
		}},
		{"RevokedOnceTogether", func(t *testing.T, db *store.DB) {
			s := store.Authority{DB: db}
			_, err := s.AddAuthority(t.Context(), authorityRecord("gost"))
			must(t, err)
			_, err = s.AddIssued(t.Context(), issued("gost", 1))
			must(t, err)
			won := make([]bool, 16)
			for _, err := range together(len(won), func(i int) (err error) {
				won[i], err = s.MarkRevoked(t.Context(), []byte{0x40, 1}, 1, start)
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
			if count != 1 {
				t.Errorf("%d revocations of one certificate", count)
			}
		}},
		{"Delegates", func(t *testing.T, db *store.DB) {
			s := store.Authority{DB: db}
			_, err := s.AddAuthority(t.Context(), authorityRecord("gost"))
			must(t, err)
			_, found, err := s.Delegate(t.Context(), "gost-tsa")
			must(t, err)
			if found {
				t.Error("a delegate in an empty database")
			}
			delegate := func(name string, generation int64) authority.DelegateRecord {
				return authority.DelegateRecord{
					Name: name, Generation: generation, Authority: "gost", Suite: "gost2012-256",
					Sealed: []byte{0, 0xff}, Certificate: fmt.Append(nil, name, generation), CreatedAt: start,
				}
			}
			for _, c := range []struct {
				name       string
				generation int64
				want       bool
			}{{"gost-tsa", 1, true}, {"gost-tsa", 1, false}, {"gost-tsa", 10, true}, {"gost-tsa", 9, true}, {"gost-ocsp", 1, true}} {
				added, err := s.AddDelegate(t.Context(), delegate(c.name, c.generation))
				must(t, err)
				if added != c.want {
					t.Errorf("generation %d of %s added: %t, want %t", c.generation, c.name, added, c.want)
				}
			}
			for name, generation := range map[string]int64{"gost-tsa": 10, "gost-ocsp": 1} {
				got, found, err := s.Delegate(t.Context(), name)
				must(t, err)
				if d := cmp.Diff(delegate(name, generation), got); d != "" || !found {
					t.Errorf("found %t: %s", found, d)
				}
			}
			orphan := delegate("gost-tsa", 11)
			orphan.Authority = "unknown"
			if _, err := s.AddDelegate(t.Context(), orphan); err == nil {
				t.Error("a delegate of an authority that does not exist")
			}
		}},
	}.run(t, open)
}
