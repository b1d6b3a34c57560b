// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tamga/internal/domain/policy"
	"tamga/pki/x509gost"
)

func TestCache(t *testing.T) {
	c := newCache(3, 10_000)
	for i := range 3 {
		c.put(fmt.Sprint(i), i, 100)
	}
	if c.get("0") != 0 {
		t.Error("the first entry is gone")
	}
	c.put("3", 3, 100) // 1 was used the longest ago
	for key, want := range map[string]any{"0": 0, "1": nil, "2": 2, "3": 3} {
		if got := c.get(key); got != want {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
	c.put("big", "big", 9000)
	if c.get("big") != "big" || c.used > c.capacity {
		t.Errorf("%d bytes of %d", c.used, c.capacity)
	}
	c.put("big", "too big", 20_000) // replaces, and has no room itself
	if c.get("big") != nil {
		t.Error("the old value stayed behind the new one")
	}
	c.put("a", 1, 100)
	c.put("a", 2, 200)
	if c.get("a") != 2 {
		t.Error("the new value is not there")
	}
	var sum int64
	for e := c.order.Front(); e != nil; e = e.Next() {
		sum += e.Value.(*cached).size
	}
	if sum != c.used || len(c.entries) != c.order.Len() {
		t.Errorf("the books say %d bytes in %d entries, there are %d in %d", c.used, len(c.entries), sum, c.order.Len())
	}
}

// Only so many lists are downloaded at a time: each may be large.
func TestListsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := everybody()
		n := newInternet(t)
		var mu sync.Mutex
		now, most := 0, 0
		l := newPublisher(t)
		l.before = func(http.ResponseWriter, *http.Request) bool {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now--
			mu.Unlock()
			return false
		}
		n.serve("crl.example", l.ServeHTTP)
		s := n.source(nil)
		var done sync.WaitGroup
		for i := range 10 {
			cert := certify(t, &p.ca, "Many", func(t *x509gost.Template) {
				t.CRLDistributionPoints = []string{fmt.Sprint(crlURL, "?", i)}
			})
			done.Go(func() {
				if _, err := s.Revocation(t.Context(), cert.cert, p.ca.cert, time.Time{}); err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
		if most != listKind.atOnce || l.calls.Load() != 10 {
			t.Errorf("%d at once of %d", most, l.calls.Load())
		}
	})
}

func TestNew(t *testing.T) {
	services := func(context.Context) ([]policy.TSPService, error) { return nil, nil }
	anchors := func(context.Context) (a, b []*x509gost.Certificate, err error) { return nil, nil, nil }
	for name, c := range map[string]Config{
		"nothing":       {},
		"no anchors":    {Services: services},
		"no services":   {Anchors: anchors},
		"negative time": {Services: services, Anchors: anchors, StampTimeout: -1},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	s, err := New(Config{Services: services, Anchors: anchors, HedgeAfter: -1})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}
