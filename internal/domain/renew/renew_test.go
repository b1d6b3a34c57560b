// SPDX-License-Identifier: Apache-2.0

package renew_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tamga/internal/domain/renew"
)

func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		var last context.Context
		stop := renew.Every(t.Context(), 5*time.Second, func(ctx context.Context) { calls.Add(1); last = ctx })
		for i, want := range []int64{0, 1, 2} {
			synctest.Wait()
			if n := calls.Load(); n != want {
				t.Errorf("after %d intervals: %d calls, want %d", i, n, want)
			}
			time.Sleep(5 * time.Second)
		}
		stop()
		before := calls.Load()
		time.Sleep(time.Minute)
		if n := calls.Load(); n != before || last.Err() == nil {
			t.Errorf("after the end: %d calls, %d before, the context of the last one: %v", n, before, last.Err())
		}
	})
}

func TestEveryEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		stop := renew.Every(ctx, time.Second, func(context.Context) { t.Error("called after the end") })
		cancel()
		time.Sleep(time.Minute)
		stop()
	})
}
