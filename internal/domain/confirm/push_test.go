// SPDX-License-Identifier: Apache-2.0

package confirm_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
)

// onEngines runs a test with a world on each database.
func onEngines(t *testing.T, test func(t *testing.T, w *world)) {
	for engine, url := range map[string]string{
		"SQLite": storetest.SQLiteFile(t, t.TempDir()+"/tamga.db"), "PostgreSQL": storetest.PostgreSQL(t).Migrated(t),
	} {
		t.Run(engine, func(t *testing.T) {
			w := openOn(t, storetest.Open(t, url), nil)
			w.furnish()
			test(t, w)
		})
	}
}

// begin begins a record of a purpose by a method, in a call from a network.
func (w *world) begin(ctx context.Context, p confirm.Purpose, method, address string) (confirm.Record, error) {
	w.t.Helper()
	o := order()
	o.Purpose = p
	if p.SignIn() {
		o.Secret = nil
	}
	r, err := w.Create(ctx, ivan, o)
	w.must(err)
	begun, err := w.Challenge(ctx, ivan, confirm.Ask{ID: r.ID, Method: method, Address: address})
	if err != nil {
		return r, err
	}
	return begun.Record, nil
}

// TestPushesAreBounded has a stranger with the password ask the devices of a user again and
// again, from many networks and about several sign-ins.
func TestPushesAreBounded(t *testing.T) {
	onEngines(t, func(t *testing.T, w *world) {
		w.assign("mydss", "otpviasms")
		networks := 0
		next := func() context.Context {
			networks++
			return from(t.Context(), fmt.Sprint("192.0.2.", networks))
		}
		r, err := w.begin(next(), confirm.ForSignIn, "mydss", "41")
		w.must(err)
		_, err = w.begin(next(), confirm.ForNamedSignIn, "mydss", "42")
		w.must(err)
		// Repetitions count, and so do challenges on other devices and after other methods.
		w.wait(time.Minute)
		_, err = w.Challenge(next(), ivan, confirm.Ask{ID: r.ID})
		w.must(err)
		_, err = w.Challenge(next(), ivan, confirm.Ask{ID: r.ID, Method: "otpviasms"})
		w.must(err)
		_, err = w.Challenge(next(), ivan, confirm.Ask{ID: r.ID, Method: "mydss", Address: "42"})
		w.must(err)
		w.wait(time.Minute)
		_, errs := atOnce(10, func(int) (bool, error) {
			_, err := w.begin(from(t.Context(), "192.0.2.77"), confirm.ForSignIn, "mydss", "41")
			return err == nil, err
		})
		allowed := 0
		for _, err := range errs {
			if f, is := fault.As(err); err == nil {
				allowed++
			} else if !is || f.Code != fault.MaxAttempts || f.After != 13*time.Minute {
				t.Errorf("%v: want %s for 13 minutes", err, fault.MaxAttempts)
			}
		}
		if allowed != 1 || len(w.devices.woken) != 5 {
			t.Errorf("%d of 10 were allowed, and devices were woken %d times", allowed, len(w.devices.woken))
		}
		// The user goes another way, and confirms operations on the device.
		_, err = w.begin(next(), confirm.ForSignIn, "otpviasms", "")
		w.is("by SMS", err, "")
		for range 6 {
			_, err = w.begin(next(), confirm.ForOperation, "mydss", "41")
			w.is("an operation", err, "")
		}
		if waits, err := w.Poll(next(), ivan, r.RefID); err != nil || waits.Record.State != confirm.Challenged {
			t.Errorf("the sign-in that waits: %v", err)
		}
		// One that ends makes room for one.
		w.wait(13*time.Minute - time.Millisecond)
		_, err = w.begin(next(), confirm.ForSignIn, "mydss", "41")
		w.is("before the first ends", err, fault.MaxAttempts)
		w.wait(time.Millisecond)
		for range 2 { // two began at once
			_, err = w.begin(next(), confirm.ForSignIn, "mydss", "41")
			w.is("after the first two", err, "")
		}
		_, err = w.begin(next(), confirm.ForSignIn, "mydss", "41")
		w.is("then", err, fault.MaxAttempts)
		w.must(w.Forgive(t.Context(), ivanID))
		_, err = w.begin(next(), confirm.ForSignIn, "mydss", "41")
		w.is("after an operator has unlocked the user", err, "")
	})
}
