// SPDX-License-Identifier: Apache-2.0

package confirm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
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
	r, err := w.Create(ctx, ivan, o)
	w.must(err)
	begun, err := w.Challenge(ctx, ivan, confirm.Ask{ID: r.ID, Method: method, Address: address})
	if err != nil {
		return r, err
	}
	return begun.Record, nil
}

// TestPushesAreBounded has an attacker with the password ask the devices of a user again and
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

// TestNotMe has a user say on a device that another person asks. No device is asked after that,
// until the user signs in by another method.
func TestNotMe(t *testing.T) {
	onEngines(t, func(t *testing.T, w *world) {
		ctx := from(t.Context(), "192.0.2.1")
		w.assign("mydss", "otpviasms")
		notMe := func(r confirm.Record) error {
			_, err := w.Approve(ctx, decision(w.stored(r.ID), func(v *confirm.Decision) { v.Approved, v.NotMe = false, true }))
			return err
		}
		closed := func(name string, want bool) {
			t.Helper()
			for _, p := range []confirm.Purpose{confirm.ForSignIn, confirm.ForNamedSignIn, confirm.ForOperation, confirm.ForText} {
				_, err := w.begin(ctx, p, "mydss", "42")
				w.is(name+": "+string(p), err, map[bool]string{true: fault.MaxAttempts}[want])
			}
			w.must(w.CancelAll(ctx, ivan, ivanID, "test"))
		}
		reports := func() (list []audit.Entry) {
			t.Helper()
			entries, err := store.Audit{DB: w.db}.Last(ctx, 1000)
			w.must(err)
			return slices.DeleteFunc(entries, func(e audit.Entry) bool { return e.Operation != confirm.AuditReport })
		}
		forgive := func() { w.must(w.Forgive(ctx, ivanID)) }

		// A refusal alone closes nothing.
		r, err := w.begin(ctx, confirm.ForSignIn, "mydss", "41")
		w.must(err)
		_, err = w.Approve(ctx, decision(r, func(v *confirm.Decision) { v.Approved = false }))
		w.must(err)
		closed("after a refusal", false)

		forgive()
		r, err = w.begin(ctx, confirm.ForSignIn, "mydss", "41")
		w.must(err)
		other, err := w.begin(ctx, confirm.ForSignIn, "mydss", "42")
		w.must(err)
		operation, err := w.begin(ctx, confirm.ForOperation, "mydss", "41")
		w.must(err)
		bySMS, err := w.begin(ctx, confirm.ForSignIn, "otpviasms", "")
		w.must(err)
		code := w.messages.last(t).Data["Code"]
		w.must(notMe(r))
		w.must(notMe(r)) // the device did not get its answer
		for name, want := range map[*confirm.Record]confirm.State{&r: confirm.Declined, &other: confirm.Declined, &operation: confirm.Challenged, &bySMS: confirm.Challenged} {
			if got := w.stored(name.ID).State; got != want {
				t.Errorf("%s by %s is %s, want %s", name.Purpose, name.Method, got, want)
			}
		}
		if list := reports(); len(list) != 1 || list[0].Object != r.ID || !strings.Contains(list[0].Detail, "from 192.0.2.1") || !strings.Contains(list[0].Detail, "of client") {
			t.Errorf("the audit log has %+v", list)
		}
		if n := len(slices.DeleteFunc(slices.Clone(w.messages.events), func(e notify.EventType) bool { return e != notify.ConfirmationReported })); n != 1 {
			t.Errorf("%d events", n)
		}
		_, err = w.Challenge(ctx, ivan, confirm.Ask{ID: operation.ID, Method: "mydss", Address: "42"})
		w.is("another device", err, fault.MaxAttempts)

		// A code for an operation is no sign-in.
		signed, err := w.begin(ctx, confirm.ForOperation, "otpviasms", "")
		w.must(err)
		_, err = w.Answer(ctx, ivan, signed.RefID, w.messages.last(t).Data["Code"])
		w.must(err)
		_, err = w.begin(ctx, confirm.ForSignIn, "mydss", "42")
		w.is("after an operation by code", err, fault.MaxAttempts)
		_, err = w.Answer(ctx, ivan, bySMS.RefID, code)
		w.must(err)
		closed("after a sign-in by code", false)

		forgive()
		r, err = w.begin(ctx, confirm.ForOperation, "mydss", "41")
		w.must(err)
		w.must(notMe(r))
		closed("after a report of an operation", true)
		w.wait(24*time.Hour - time.Millisecond)
		w.must(w.Sweep(ctx))
		closed("before a day is over", true)
		w.wait(time.Millisecond)
		closed("after a day", false)

		// The attacker cannot take it back by ending the sign-in first.
		forgive()
		r, err = w.begin(ctx, confirm.ForSignIn, "mydss", "41")
		w.must(err)
		_, err = w.Cancel(ctx, ivan, r.ID)
		w.must(err)
		w.is("a report of what was cancelled", notMe(r), fault.InvalidTransaction)
		closed("after it", true)
		forgive()
		closed("after an operator has unlocked the user", false)
	})
}

// TestNumberOnPages asks on a page about what a client without titles began: the number is
// matched all the same.
func TestNumberOnPages(t *testing.T) {
	w := open(t, nil)
	w.assign("mydss")
	for _, p := range []confirm.Purpose{confirm.ForSignIn, confirm.ForOperation} {
		r, err := w.begin(t.Context(), p, "mydss", "41")
		w.must(err)
		if r.Number != "" {
			t.Errorf("%s: a client that shows no title got a number", p)
		}
		page, err := w.Challenge(t.Context(), ivan, confirm.Ask{ID: r.ID, Method: "mydss", Address: "41", Titles: true})
		w.must(err)
		if len(page.Record.Number) != 2 || page.Record.Round != 2 {
			t.Errorf("%s: on a page the number is %q in round %d", p, page.Record.Number, page.Record.Round)
		}
		again, err := w.Challenge(t.Context(), ivan, confirm.Ask{ID: r.ID, Method: "mydss", Address: "41", Titles: true})
		w.must(err)
		if again.Record.Number != page.Record.Number || again.Record.Round != 2 {
			t.Errorf("%s: the page again has the number %q in round %d", p, again.Record.Number, again.Record.Round)
		}
		_, err = w.Approve(t.Context(), decision(page.Record, func(v *confirm.Decision) { v.Number = "" }))
		w.is("an approval without the number", err, fault.AuthenticationDeclined)
	}
}
