// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"fmt"
	"testing"
	"time"

	"tamga/internal/domain/fault"
)

func TestAdmit(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	l := New(2, 3, 100, func() time.Time { return now })
	for i, c := range []struct {
		after  time.Duration
		remote string
		want   bool
	}{
		{0, "192.0.2.1", true},
		{0, "192.0.2.1", true},
		{0, "::ffff:192.0.2.1", true}, // the same in IPv6
		{0, "192.0.2.1", false},
		{0, "192.0.2.2", true}, // another has its own count
		{499 * time.Millisecond, "192.0.2.1", false},
		{time.Millisecond, "192.0.2.1", true},
		{0, "192.0.2.1", false},
		{time.Hour, "192.0.2.1", true}, // an hour saves up no more than a burst
		{0, "192.0.2.1", true},
		{0, "192.0.2.1", true},
		{0, "192.0.2.1", false},
		{0, "2001:db8::1", true},
		{0, "2001:db8::2", true},
		{0, "2001:db8:0:0:ffff::", true},
		{0, "2001:db8::3", false}, // one network
		{0, "2001:db8:0:1::3", true},
		{0, "@", true}, // a socket without an address is one caller
		{0, "@", true},
		{0, "@", true},
		{0, "@", false},
	} {
		now = now.Add(c.after)
		err := l.Admit(c.remote)
		if (err == nil) != c.want || err != nil && !fault.Is(err, fault.TooManyRequests) {
			t.Errorf("row %d, %s: %v, want admitted %v", i, c.remote, err, c.want)
		}
		// At two calls a second the next one is there within half a second.
		if f, ok := fault.As(err); ok && (f.After <= 0 || f.After > time.Second/2) {
			t.Errorf("row %d, %s: to be tried again after %v", i, c.remote, f.After)
		}
	}
}

// A call may be worth several, and never more than there can be.
func TestAdmitCaller(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	l := New(2, 5, 100, func() time.Time { return now })
	for i, c := range []struct {
		after time.Duration
		id    string
		n     int
		want  bool
	}{
		{0, "a", 3, true},
		{0, "a", 3, false}, // and takes nothing
		{0, "a", 2, true},
		{0, "a", 1, false},
		{0, "b", 1, true},
		{500 * time.Millisecond, "a", 1, true},
		{time.Hour, "a", 50, true},
		{0, "a", 1, false},
	} {
		now = now.Add(c.after)
		err := l.AdmitCaller(c.id, c.n)
		if (err == nil) != c.want || err != nil && !fault.Is(err, fault.TooManyRequests) {
			t.Errorf("row %d: %v, want admitted %v", i, err, c.want)
		}
	}
}

// The table does not grow, and the callers that called last are not forgotten.
func TestTableIsBounded(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	l := New(1, 1, 10, func() time.Time { return now })
	if err := l.Admit("192.0.2.1"); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		if err := l.Admit(fmt.Sprintf("198.51.100.%d", i%5)); i < 5 && err != nil {
			t.Error(err)
		}
		if err := l.Admit(fmt.Sprintf("10.0.%d.%d", i/256, i%256)); err != nil {
			t.Error(err)
		}
		if err := l.Admit("192.0.2.1"); err == nil {
			t.Fatalf("after %d others the address is forgotten", i)
		}
		if len(l.known) > 10 || l.recent.Len() != len(l.known) {
			t.Fatalf("%d and %d addresses are kept", len(l.known), l.recent.Len())
		}
	}
}

func TestNetwork(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "::ffff:c000:201": "192.0.2.1",
		"2001:db8::1": "2001:db8::/64", "2001:DB8:0:0:1::1%eth0": "2001:db8::/64",
		"192.0.02.1": "192.0.02.1", "192.0.2.1 ": "192.0.2.1 ", "0xc0.0.2.1": "0xc0.0.2.1", "@": "@", "": "", // no addresses
	} {
		if got := Network(remote); got != want {
			t.Errorf("%q is of %q, want %q", remote, got, want)
		}
	}
}
