// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"fmt"
	"testing"
	"time"
)

func TestKnown(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	k := NewKnown(3, time.Hour, func() time.Time { return now })
	has := func(want bool, remotes ...string) {
		t.Helper()
		for _, remote := range remotes {
			if k.Has(remote) != want {
				t.Errorf("%s: known is %v, want %v", remote, !want, want)
			}
		}
	}
	has(false, "192.0.2.1", "")
	k.Add("192.0.2.1")
	k.Add("2001:db8::1")
	has(true, "192.0.2.1", "::ffff:192.0.2.1", "2001:db8::ffff")
	has(false, "192.0.2.2", "2001:db8:0:1::1")
	now = now.Add(time.Hour - 1)
	k.Add("2001:db8::2")
	has(true, "192.0.2.1")
	now = now.Add(1)
	has(false, "192.0.2.1")
	has(true, "2001:db8::1")
	for i := range 100 {
		k.Add(fmt.Sprintf("10.0.0.%d", i))
		if len(k.known) > 3 || k.recent.Len() != len(k.known) {
			t.Fatalf("%d and %d addresses are kept, want 3", len(k.known), k.recent.Len())
		}
	}
	has(false, "2001:db8::1", "10.0.0.96")
	has(true, "10.0.0.97", "10.0.0.99")
}
