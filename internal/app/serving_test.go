// SPDX-License-Identifier: Apache-2.0

package app

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// TestGOGC checks that a small heap may grow to leastHeap and a large one to three times its size.
func TestGOGC(t *testing.T) {
	for live, want := range map[uint64]int{
		0:                leastGOGC,
		1 << 10:          10_000,
		8 << 20:          500, // to 48 MiB
		leastHeap / 3:    leastGOGC,
		leastHeap - 1:    leastGOGC,
		leastHeap:        leastGOGC,
		leastHeap * 1000: leastGOGC,
	} {
		if got := gogc(live); got != want {
			t.Errorf("live memory of %d bytes: GOGC is %d, want %d", live, got, want)
		}
	}
}

// TestAfterCollections checks that collections are followed by calls that know the live memory.
func TestAfterCollections(t *testing.T) {
	var calls atomic.Int64
	var latest atomic.Uint64
	afterCollections(func(live uint64) {
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
