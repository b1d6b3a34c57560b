// SPDX-License-Identifier: Apache-2.0

package renew_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"tamga/internal/domain/renew"
)

func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		var last context.Context
		stop := renew.Every(t.Context(), 5*time.Second, func(ctx context.Context) { calls, last = calls+1, ctx })
		for i, want := range []int{0, 1, 2} {
			synctest.Wait()
			if calls != want {
				t.Errorf("after %d intervals: %d calls, want %d", i, calls, want)
			}
			time.Sleep(5 * time.Second)
		}
		stop()
		before := calls
		time.Sleep(time.Minute)
		if calls != before || last.Err() == nil {
			t.Errorf("after the end: %d calls, %d before, the context of the last one: %v", calls, before, last.Err())
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
