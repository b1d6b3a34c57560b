// SPDX-License-Identifier: Apache-2.0

package app

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// TestGOGC checks that a small heap may grow to leastHeap and a large one to three times its size.
func TestGOGC(t *testing.T) {
	for _, c := range []struct {
		live, roots uint64
		want        int
	}{
		{0, 0, leastGOGC},
		{1 << 10, 0, 10_000},
		{8 << 20, 0, 1100},      // 8 MiB and 11 times as much
		{8 << 20, 3 << 20, 800}, // 8 MiB and 8 times 11 MiB
		{leastHeap / 3, 0, leastGOGC},
		{leastHeap - 1, 0, leastGOGC},
		{leastHeap, 0, leastGOGC},
		{leastHeap * 1000, 0, leastGOGC},
	} {
		if got := gogc(c.live, c.roots); got != c.want {
			t.Errorf("%d bytes live, %d of roots: GOGC is %d, want %d", c.live, c.roots, got, c.want)
		}
	}
}

// TestAfterCollections checks that collections are followed by calls that know the live memory
// and its roots.
func TestAfterCollections(t *testing.T) {
	var calls atomic.Int64
	var latest atomic.Uint64
	afterCollections(func(live, roots uint64) {
		if roots == 0 {
			t.Error("no roots: there are global variables and stacks")
		}
		latest.Store(live)
		calls.Add(1)
	})
	kept := make([]byte, 16<<20)
	for collections := 0; calls.Load() < 4 || latest.Load() < uint64(len(kept)); collections++ {
		if collections == 1000 {
			t.Fatalf("%d calls after %d collections, the latest with %d bytes; %d are in use", calls.Load(), collections, latest.Load(), len(kept))
		}
		runtime.GC()
	}
	runtime.KeepAlive(kept)
}
