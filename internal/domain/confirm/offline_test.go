// SPDX-License-Identifier: Apache-2.0

package confirm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
)

// onDevice asks a device to confirm a new record.
func (w *world) onDevice(kid string, titles bool) confirm.Prompt {
	w.t.Helper()
	r, err := w.Create(w.t.Context(), ivan, order())
	w.must(err)
	p, err := w.Challenge(w.t.Context(), ivan, confirm.Ask{ID: r.ID, Method: "mydss", Address: kid, Titles: titles})
	w.must(err)
	return p
}

// TestOfflineCode confirms by the code that a device makes without a network.
func TestOfflineCode(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.assign("mydss")
	ctx := t.Context()
	p := w.onDevice("41", true)
	r := p.Record
	asked := w.devices.asked
	if p.QR != "QR 1 for 41 of "+ivanID || asked.ID != r.ID || !bytes.Equal(asked.What, r.What[:]) || !asked.Number || !asked.Before.Equal(r.ConfirmBefore) {
		t.Errorf("the QR code %q of %+v", p.QR, asked)
	}
	for _, part := range []string{"Signing documents", r.What.Group(), "Documents: 3, "} {
		if !strings.Contains(asked.Text, part) {
			t.Errorf("the text %q lacks %q", asked.Text, part)
		}
	}
	// Two digits of the check number may be the number by chance.
	if strings.Contains(strings.ReplaceAll(asked.Text, r.What.Group(), ""), r.Number) {
		t.Error("the number is in the text")
	}
	// The code is not in the database in the clear, and a poll has no QR code.
	content, _, err := w.deps.Store.ConfirmationContent(ctx, r.ID)
	w.must(err)
	if len(content.Offline) == 0 || bytes.Contains(content.Offline, []byte("41000001")) {
		t.Errorf("stored: %q", content.Offline)
	}
	if polled, err := w.Poll(ctx, ivan, r.RefID); err != nil || polled.QR != "" {
		t.Errorf("a poll: %v, %q", err, polled.QR)
	}
	// A repetition has the same QR code, at once and after a minute.
	for range 2 {
		again, err := w.Challenge(ctx, ivan, confirm.Ask{ID: r.ID})
		if err != nil || again.QR != p.QR {
			t.Errorf("repeated: %v, %q", err, again.QR)
		}
		w.wait(time.Minute)
	}
	wrong, err := w.Answer(ctx, ivan, r.RefID, "41000002")
	if err != nil || wrong.Wrong == nil || wrong.Record.Attempts != 1 {
		t.Errorf("a wrong code: %v, %+v", err, wrong.Wrong)
	}
	right, err := w.Answer(ctx, ivan, r.RefID, " 4100 0001\n")
	if err != nil || right.Record.State != confirm.Confirmed || len(right.Record.Declined) != 0 {
		t.Errorf("the right code: %v, %s", err, right.Record.State)
	}
	_, err = w.Answer(ctx, ivan, r.RefID, "41000001")
	w.is("the code again", err, "")
	w.must(w.CancelAll(ctx, ivan, ivanID, "the device was blocked"))
	if content, _, err = w.deps.Store.ConfirmationContent(ctx, r.ID); err != nil || len(content.Offline) != 0 {
		t.Errorf("after the end: %v, %d bytes", err, len(content.Offline))
	}
	entries, err := store.Audit{DB: w.db}.Last(ctx, 100)
	w.must(err)
	how := slices.ContainsFunc(entries, func(e audit.Entry) bool {
		return e.Object == r.ID && strings.Contains(e.Detail, "by the code of the device")
	})
	if !how {
		t.Error("the audit log does not say that the code of the device confirmed")
	}
}

// TestOfflineCodeOfOthers: a code is worth nothing for another challenge, after the device
// was changed, and without a key of the service.
func TestOfflineCodeOfOthers(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.assign("mydss")
	ctx := t.Context()
	first, second := w.onDevice("41", false), w.onDevice("41", false)
	p, err := w.Answer(ctx, ivan, second.Record.RefID, "41000001")
	if err != nil || p.Wrong == nil || first.QR == second.QR {
		t.Errorf("the code of another operation: %v, %+v", err, p.Wrong)
	}
	// Another device of the user is asked: the code of the first one is void.
	moved, err := w.Challenge(ctx, ivan, confirm.Ask{ID: first.Record.ID, Method: "mydss", Address: "42"})
	w.must(err)
	if p, err = w.Answer(ctx, ivan, first.Record.RefID, "41000001"); err != nil || p.Wrong == nil || moved.QR == first.QR {
		t.Errorf("the code of the challenge before: %v, %+v", err, p.Wrong)
	}
	_, err = w.Answer(ctx, anna, second.Record.RefID, "41000002")
	w.is("another user", err, fault.InvalidTransaction)
	w.devices.kids = []string{"42"}
	_, err = w.Answer(ctx, ivan, second.Record.RefID, "41000002")
	w.is("a device that was blocked", err, fault.AccessDenied)
	w.devices.kids, w.devices.old = []string{"41", "42"}, true
	old := w.onDevice("41", false)
	if old.QR != "" {
		t.Errorf("a device that must register again has the QR code %q", old.QR)
	}
	_, err = w.Answer(ctx, ivan, old.Record.RefID, "")
	w.is("no code", err, fault.InvalidParameters)
	w.devices.old = false
	w.wait(1200 * time.Second)
	_, err = w.Answer(ctx, ivan, second.Record.RefID, "41000002")
	w.is("too late", err, fault.TransactionExpired)
}

// TestOfflineGuesses: wrong codes count for the challenge, and for the user and the method
// over all operations.
func TestOfflineGuesses(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.assign("mydss")
	ctx := t.Context()
	for range 2 {
		p := w.onDevice("41", false)
		for i := range 5 {
			_, err := w.Answer(ctx, ivan, p.Record.RefID, "00000000")
			want := ""
			if i == 4 {
				want = fault.MaxAttempts
			}
			w.is("a guess", err, want)
		}
		if got := w.stored(p.Record.ID); got.State != confirm.Error {
			t.Errorf("after five guesses the operation is %s", got.State)
		}
	}
	r, err := w.Create(ctx, ivan, order())
	w.must(err)
	_, err = w.Challenge(ctx, ivan, confirm.Ask{ID: r.ID, Method: "mydss", Address: "41"})
	w.is("after ten guesses", err, fault.MaxAttempts)
}

// TestOfflineTwoAnswers: of codes and a refusal at once, one decides, and the others say the same
// or nothing.
func TestOfflineTwoAnswers(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	w.assign("mydss")
	p := w.onDevice("41", false)
	r := p.Record
	signed, err := json.Marshal(confirm.Decision{UserID: ivanID, Kid: "41", ID: r.ID, What: r.What[:], SignedAt: start})
	w.must(err)
	ctx := context.WithoutCancel(t.Context())
	var all sync.WaitGroup
	errs := make([]error, 4)
	states := make([]confirm.State, 4)
	for i := range errs {
		all.Go(func() {
			if i == 0 {
				after, err := w.Approve(ctx, signed) // declines
				states[i], errs[i] = after.State, err
				return
			}
			after, err := w.Answer(ctx, ivan, r.RefID, "41000001")
			states[i], errs[i] = after.Record.State, err
		})
	}
	all.Wait()
	won := slices.IndexFunc(errs, func(err error) bool { return err == nil })
	for i, err := range errs {
		if won < 0 || err == nil && states[i] != states[won] {
			t.Fatalf("%v, %v", states, errs)
		}
	}
	if got := w.stored(r.ID).State; got != states[won] {
		t.Errorf("the operation is %s, the winner says %s", got, states[won])
	}
}
