// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/policy"
)

func testTSPServices(t *testing.T, open func(t *testing.T) *store.DB) {
	service := func(n int) policy.TSPService {
		return policy.TSPService{
			Name: fmt.Sprintf("tsp-%d", n), Title: "Служба " + strings.Repeat("x", n), URL: fmt.Sprintf("http://TSP%d.example/tsp/", n),
			Class: "qualified", Policy: "1.2.643.2.2.38.4", PerMinute: 60 * n,
		}
	}
	normal := func(p policy.TSPService) string {
		n, _ := policy.NormalAddress(p.URL)
		return n
	}
	add := func(t *testing.T, s store.Policies, p policy.TSPService, want bool) {
		t.Helper()
		added, err := s.AddTSPService(t.Context(), p, normal(p))
		must(t, err)
		if added != want {
			t.Errorf("%s added: %t, want %t", p.Name, added, want)
		}
	}
	list := func(t *testing.T, s store.Policies, want ...policy.TSPService) {
		t.Helper()
		got, err := s.TSPServices(t.Context())
		must(t, err)
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
	cases{
		{"AddListRemove", func(t *testing.T, db *store.DB) {
			s := store.Policies{DB: db}
			list(t, s)
			// The order is the order of adding, not of names.
			add(t, s, service(2), true)
			add(t, s, service(1), true)
			add(t, s, service(3), true)
			list(t, s, service(2), service(1), service(3))
			sameName, sameAddress := service(4), service(5)
			sameName.Name = "tsp-1"
			sameAddress.URL = "http://tsp3.example:80/tsp"
			add(t, s, sameName, false)
			add(t, s, sameAddress, false)
			for i, want := range []bool{true, false} {
				removed, err := s.RemoveTSPService(t.Context(), "tsp-1")
				must(t, err)
				if removed != want {
					t.Errorf("removal %d: %t, want %t", i+1, removed, want)
				}
			}
			list(t, s, service(2), service(3))
			add(t, s, service(1), true)
			list(t, s, service(2), service(3), service(1))
		}},
		{"OneNameTogether", func(t *testing.T, db *store.DB) {
			s := store.Policies{DB: db}
			won := make([]bool, 16)
			for _, err := range together(len(won), func(i int) (err error) {
				p := service(i)
				p.Name = "tsp"
				won[i], err = s.AddTSPService(t.Context(), p, normal(p))
				return err
			}) {
				must(t, err)
			}
			got, err := s.TSPServices(t.Context())
			must(t, err)
			for i, w := range won {
				if w != (len(got) == 1 && got[0].URL == service(i).URL) {
					t.Errorf("%d was told %t, stored is %v", i, w, got)
				}
			}
		}},
	}.run(t, open)
}
