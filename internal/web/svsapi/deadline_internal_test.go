// SPDX-License-Identifier: Apache-2.0

package svsapi

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestDeadline: Err and Done end at the time, with or without a timer, and with the parent.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, freeAsked := within(t.Context(), time.Minute)
		defer freeAsked()
		waited, freeWaited := within(t.Context(), time.Minute)
		defer freeWaited()
		child, cancel := context.WithCancel(waited)
		defer cancel()
		time.Sleep(time.Minute - 1)
		if asked.Err() != nil || waited.Err() != nil || child.Err() != nil {
			t.Errorf("ended before the time: %v, %v, %v", asked.Err(), waited.Err(), child.Err())
		}
		if asked.armed != nil {
			t.Error("Err armed a timer")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		for _, ctx := range []context.Context{asked, waited, child} {
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Errorf("after the time: %v", ctx.Err())
			}
			<-ctx.Done()
		}
	})
	parent, cancel := context.WithCancel(t.Context())
	asked, freeAsked := within(parent, time.Hour)
	defer freeAsked()
	waited, freeWaited := within(parent, time.Hour)
	defer freeWaited()
	done := waited.Done()
	cancel()
	<-done
	if asked.Err() != context.Canceled || waited.Err() != context.Canceled {
		t.Errorf("the parent is cancelled: %v, %v", asked.Err(), waited.Err())
	}
	if _, ok := asked.Deadline(); !ok {
		t.Error("no deadline")
	}
}
