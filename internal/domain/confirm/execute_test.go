// SPDX-License-Identifier: Apache-2.0

package confirm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/notify"
)

// TestTake carries operations out.
func TestTake(t *testing.T) {
	ctx := t.Context()
	w := open(t, nil)
	r := w.confirmed()
	elsewhere, noClient := ivan, ivan
	elsewhere.ClientID, noClient.ClientID = "another client", ""
	changed := r.What
	changed[31] ^= 1
	for name, call := range map[string]func() (*confirm.Execution, error){
		"another client": func() (*confirm.Execution, error) { return w.Take(ctx, elsewhere, r.ID, r.What) },
		"no client":      func() (*confirm.Execution, error) { return w.Take(ctx, noClient, r.ID, r.What) },
		"something else": func() (*confirm.Execution, error) { return w.Take(ctx, ivan, r.ID, changed) },
		"by the ref":     func() (*confirm.Execution, error) { return w.Take(ctx, ivan, r.RefID, r.What) },
	} {
		_, err := call()
		w.is(name, err, fault.InvalidTransaction)
	}
	e, err := w.Take(ctx, ivan, r.ID, r.What)
	w.must(err)
	if e.Done || string(e.Content.Outline) != "the outline" || len(e.Content.Fields.Documents) != 3 {
		t.Errorf("taken: %+v", e)
	}
	_, err = w.Take(ctx, ivan, r.ID, r.What)
	w.is("at the same time", err, fault.Unavailable)
	// A wrong PIN or an outage leaves it Confirmed.
	w.must(e.Release(ctx))
	e, err = w.Take(ctx, ivan, r.ID, r.What)
	w.must(err)
	failed := errors.New("the disk is full")
	if err := e.Spend(ctx, []byte("result"), func(context.Context) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("a failure beside: %v", err)
	}
	if got := w.stored(r.ID).State; got != confirm.Confirmed {
		t.Errorf("after a failure beside: %s", got)
	}
	beside := 0
	w.must(e.Spend(ctx, []byte("result"), func(context.Context) error { beside++; return nil }))
	if beside != 1 || e.Record.State != confirm.Completed || !e.Done {
		t.Errorf("spent: beside %d, %+v", beside, e.Record)
	}
	if d := cmp.Diff(w.stored(r.ID), e.Record); d != "" {
		t.Error(d)
	}
	w.is("twice", e.Spend(ctx, nil, nil), fault.InvalidTransaction)
	// The client did not get the answer.
	w.wait(time.Second)
	e, err = w.Take(ctx, ivan, r.ID, r.What)
	w.must(err)
	if !e.Done || string(e.Content.Result) != "result" || string(e.Content.Outline) != "the outline" {
		t.Errorf("again: %+v", e)
	}
	_, err = w.Take(ctx, ivan, r.ID, changed)
	w.is("again about something else", err, fault.InvalidTransaction)
	w.wait(5 * time.Minute)
	_, err = w.Take(ctx, ivan, r.ID, r.What)
	w.is("after the time", err, fault.InvalidTransaction)

	// A record that was not carried out in time.
	r = w.confirmed()
	w.wait(5 * time.Minute)
	_, err = w.Take(ctx, ivan, r.ID, r.What)
	w.is("not in time", err, fault.TransactionExpired)

	// A process that died loses its lease, and its result with it.
	w.assign("otpviasms")
	w.must(w.Forgive(ctx, ivanID))
	r = w.confirmed()
	dead, err := w.Take(ctx, ivan, r.ID, r.What)
	w.must(err)
	w.wait(15 * time.Second)
	e, err = w.Take(ctx, ivan, r.ID, r.What)
	w.must(err)
	w.is("the lost lease", dead.Spend(ctx, []byte("late"), nil), fault.InvalidTransaction)
	w.must(w.fail(r))
	w.is("a lease of what has failed", e.Spend(ctx, []byte("late"), nil), fault.InvalidContent)
	_, err = w.Take(ctx, ivan, r.ID, r.What)
	w.is("after an error", err, fault.InvalidContent)
}

// TestSpendWithRollsBack spends records in transactions of a caller that are rolled back and
// run again, or not committed.
func TestSpendWithRollsBack(t *testing.T) {
	ctx := t.Context()
	w := open(t, nil)
	r := w.confirmed()
	conflict := errors.New("a conflict of transactions")
	unit := func(ctx context.Context, fn func(context.Context) error, end error) error {
		return w.deps.Store.Atomic(ctx, lock.User(ivanID), func(ctx context.Context) error {
			if err := fn(ctx); err != nil {
				return err
			}
			return end
		})
	}
	e, err := w.Take(ctx, ivan, r.ID, r.What)
	w.must(err)
	ran := 0
	do := func(context.Context) ([]byte, error) {
		if ran++; e.Done {
			t.Errorf("run %d before the commit: %+v", ran, e)
		}
		return []byte("result"), nil
	}
	err = e.SpendWith(ctx, func(ctx context.Context, fn func(context.Context) error) error { return unit(ctx, fn, conflict) }, do)
	if got := w.stored(r.ID).State; !errors.Is(err, conflict) || e.Done || e.Record.State != confirm.Confirmed || got != confirm.Confirmed {
		t.Errorf("rolled back: %v, %+v, stored %s", err, e.Record, got)
	}
	again := func(ctx context.Context, fn func(context.Context) error) error {
		if err := unit(ctx, fn, conflict); !errors.Is(err, conflict) {
			t.Errorf("the first run: %v", err)
		}
		return unit(ctx, fn, nil)
	}
	w.must(e.SpendWith(ctx, again, do))
	if got := w.stored(r.ID); ran != 3 || !e.Done || got.State != confirm.Completed {
		t.Errorf("committed after %d runs: %+v, stored %s", ran, e, got.State)
	}

	// Inside a transaction nothing can be spent for good.
	r = w.confirmed()
	e, err = w.Take(ctx, ivan, r.ID, r.What)
	w.must(err)
	if err := unit(ctx, func(ctx context.Context) error { return e.Spend(ctx, nil, nil) }, nil); err == nil {
		t.Error("spent inside a transaction")
	}
	if got := w.stored(r.ID).State; e.Done || got != confirm.Confirmed {
		t.Errorf("inside a transaction: %+v, stored %s", e, got)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel() // the client is gone
	w.must(e.Release(gone))
	_, err = w.Take(ctx, ivan, r.ID, r.What)
	w.must(err)
}

// fail ends a confirmed record with a fault, as what can never be carried out.
func (w *world) fail(r confirm.Record) error {
	return w.deps.Store.Atomic(w.t.Context(), lock.User(ivanID), func(ctx context.Context) error {
		return w.Fail(ctx, ivan, &r, fault.New(fault.InvalidContent, "not a PDF"), func(context.Context) error { return nil })
	})
}

// TestComplete ends confirmed records in the transaction of a caller: as carried out, with the evidence
// of what was done, and as failed.
func TestComplete(t *testing.T) {
	onEngines(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		never := fault.New(fault.InvalidContent, "not a PDF")
		for _, end := range []struct {
			to     confirm.State
			proof  string
			call   func(ctx context.Context, r *confirm.Record, change func(context.Context) error) error
			result string // fault of Take after the end; "" for none
		}{
			{confirm.Completed, "the evidence", func(ctx context.Context, r *confirm.Record, change func(context.Context) error) error {
				return w.Complete(ctx, ivan, r, []byte("the evidence"), change)
			}, ""},
			{confirm.Completed, "", func(ctx context.Context, r *confirm.Record, change func(context.Context) error) error {
				return w.Complete(ctx, ivan, r, nil, change)
			}, ""},
			{confirm.Error, "", func(ctx context.Context, r *confirm.Record, change func(context.Context) error) error {
				return w.Fail(ctx, ivan, r, never, change)
			}, fault.InvalidContent},
		} {
			w.assign("otpviasms")
			w.must(w.Forgive(ctx, ivanID))
			closed := func() time.Time {
				until, err := w.deps.Answers.ClosedUntil(ctx, ivanID, "oath")
				w.must(err)
				return until
			}
			// ends makes a change of the caller, and ends a record beside it.
			ends := func(r *confirm.Record, change func(context.Context) error) error {
				return w.deps.Store.Atomic(ctx, lock.User(ivanID), func(ctx context.Context) error {
					if _, err := w.deps.Answers.CountWrong(ctx, ivanID, "oath", w.clock(), confirm.Limit{Wrong: 1, Window: time.Hour, Closed: time.Hour}); err != nil {
						return err
					}
					return end.call(ctx, r, change)
				})
			}
			r := w.confirmed()
			events := len(w.messages.events)
			// An error of the change takes all with it, a fault too.
			failed := errors.New("the disk is full")
			for _, failure := range []error{failed, fault.New(fault.InvalidPIN, "wrong")} {
				if err := ends(&r, func(context.Context) error { return failure }); !errors.Is(err, failure) {
					t.Errorf("%s: %v, want %v", end.to, err, failure)
				}
				if got := w.stored(r.ID); got.State != confirm.Confirmed || got.Code != "" || len(w.messages.events) != events || !closed().IsZero() {
					t.Errorf("%s: after %v the record is %s, %q, events %v", end.to, failure, got.State, got.Code, w.messages.events[events:])
				}
				w.noted(r.ID, confirm.Confirmed)
			}
			ran := 0
			w.must(ends(&r, func(context.Context) error {
				if ran++; len(w.messages.events) != events {
					t.Errorf("%s: the events %v before the change", end.to, w.messages.events[events:])
				}
				return nil
			}))
			got := w.stored(r.ID)
			if ran != 1 || len(w.messages.events) != events+1 || got.State != end.to || !got.EndedAt.Equal(w.clock()) || closed().IsZero() {
				t.Errorf("%s: %d changes, events %v, %+v", end.to, ran, w.messages.events[events:], got)
			}
			w.noted(r.ID, end.to)
			if failed := end.to == confirm.Error; failed != (got.Code == never.Code && got.Message == never.Message) || !failed && got.Code+got.Message != "" {
				t.Errorf("%s: %q, %q", end.to, got.Code, got.Message)
			}
			content, err := w.Content(ctx, ivan, r.ID)
			if w.must(err); string(content.Result) != end.proof || string(content.Outline) != "the outline" {
				t.Errorf("%s: the content %+v", end.to, content)
			}
			_, err = w.Take(ctx, ivan, r.ID, r.What)
			w.is(string(end.to), err, end.result)

			// A record that is not confirmed, or not any more, stays what it is, and so does all else.
			for state, bring := range map[confirm.State]struct {
				code string
				make func() confirm.Record
			}{
				confirm.Created:    {fault.InvalidTransaction, w.create},
				confirm.Challenged: {fault.InvalidTransaction, func() confirm.Record { r, _ := w.bySMS(); return r }},
				confirm.Declined: {fault.AuthenticationDeclined, func() confirm.Record {
					r, err := w.Decline(ctx, ivan, w.create().ID)
					w.must(err)
					return r
				}},
				confirm.Cancelled: {fault.InvalidTransaction, func() confirm.Record {
					r := w.confirmed()
					_, err := w.Cancel(ctx, ivan, r.ID)
					w.must(err)
					return r
				}},
				confirm.Expired: {fault.TransactionExpired, func() confirm.Record {
					r := w.confirmed()
					w.wait(1200 * time.Second)
					w.must(w.Sweep(ctx))
					return r
				}},
				confirm.Completed: {fault.InvalidTransaction, func() confirm.Record {
					r := w.confirmed()
					e, err := w.Take(ctx, ivan, r.ID, r.What)
					w.must(err)
					w.must(e.Spend(ctx, []byte("of another call"), nil))
					return r
				}},
				confirm.Error: {fault.InvalidContent, func() confirm.Record {
					r := w.confirmed()
					w.must(w.fail(r))
					return r
				}},
			} {
				w.must(w.Forgive(ctx, ivanID))
				w.wait(time.Minute) // until another code may be sent
				r := bring.make()
				before := w.stored(r.ID)
				if before.State != state {
					t.Fatalf("the record is %s, want %s", before.State, state)
				}
				stored, err := w.Content(ctx, ivan, r.ID)
				w.must(err)
				events := len(w.messages.events)
				err = ends(&r, func(context.Context) error {
					t.Errorf("%s from %s: the change is made", end.to, state)
					return nil
				})
				w.is(string(end.to+" from "+state), err, bring.code)
				content, err := w.Content(ctx, ivan, r.ID)
				w.must(err)
				if d := cmp.Diff(before, w.stored(r.ID)) + cmp.Diff(stored.Result, content.Result); d != "" || len(w.messages.events) != events || !closed().IsZero() {
					t.Errorf("%s from %s: events %v, %s", end.to, state, w.messages.events[events:], d)
				}
			}
		}
	})
}

// TestConfirmed tells the process that a record was confirmed, by an answer or by a device, and of nothing else.
func TestConfirmed(t *testing.T) {
	ctx := t.Context()
	w := open(t, nil)
	told := func(name string, want bool) {
		t.Helper()
		got := false
		select {
		case <-w.Confirmed():
			got = true
		default:
		}
		if got != want {
			t.Errorf("%s: told %v, want %v", name, got, want)
		}
	}
	r, code := w.bySMS()
	_, err := w.Answer(ctx, ivan, r.RefID, other(code))
	w.must(err)
	told("a wrong code", false)
	_, err = w.Answer(ctx, ivan, r.RefID, code)
	w.must(err)
	told("the right code", true)
	told("once", false)
	e, err := w.Take(ctx, ivan, r.ID, r.What)
	w.must(err)
	w.must(e.Spend(ctx, nil, nil))
	_, err = w.Decline(ctx, ivan, w.create().ID)
	w.must(err)
	told("carried out, and declined", false)
	w.assign("mydss")
	byDevice := func(approved bool) {
		t.Helper()
		r := w.challenge(w.create(), confirm.Ask{Method: "mydss", Address: "41"}).Record
		_, err := w.Approve(ctx, verdict(r, func(v *confirm.Verdict) { v.Approved = approved }))
		w.must(err)
	}
	byDevice(false)
	told("a refusal of a device", false)
	for range 3 { // nobody waits in between
		byDevice(true)
	}
	told("approvals of a device", true)
	told("approvals of a device, once", false)
}

// TestEachFieldChanged changes each kind of field between creation and execution.
func TestEachFieldChanged(t *testing.T) {
	w := open(t, nil)
	r := w.confirmed()
	content, err := w.Content(t.Context(), ivan, r.ID)
	w.must(err)
	for name, change := range map[string]func(f *what.Fields){
		"action":      func(f *what.Fields) { f.Action = "SignDocument" },
		"certificate": func(f *what.Fields) { f.Certificate = append(what.Hex{1}, f.Certificate[1:]...) },
		"key":         func(f *what.Fields) { f.PublicKey = append(what.Hex{1}, f.PublicKey[1:]...) },
		"type":        func(f *what.Fields) { f.SignatureType = "CMS" },
		"parameter":   func(f *what.Fields) { f.Parameters, _ = what.Arguments(map[string]string{"CADESType": "T"}) },
		"name":        func(f *what.Fields) { f.Documents[0].Name += "x" },
		"size":        func(f *what.Fields) { f.Documents[1].Size++ },
		"document":    func(f *what.Fields) { f.Documents[2].Digest = append(what.Hex{1}, f.Documents[2].Digest[1:]...) },
		"order":       func(f *what.Fields) { f.Documents[0], f.Documents[1] = f.Documents[1], f.Documents[0] },
		"number":      func(f *what.Fields) { f.Documents = f.Documents[:2] },
	} {
		f := content.Fields
		f.Documents = append([]what.Document(nil), f.Documents...)
		change(&f)
		sum, err := f.Sum()
		w.must(err)
		_, err = w.Take(t.Context(), ivan, r.ID, sum)
		w.is(name, err, fault.InvalidTransaction)
	}
	sum, err := content.Fields.Sum()
	w.must(err)
	_, err = w.Take(t.Context(), ivan, r.ID, sum)
	w.is("unchanged", err, "")
}

// TestCancel ends records early.
func TestCancel(t *testing.T) {
	ctx := t.Context()
	w := open(t, nil)
	r := w.confirmed()
	e, err := w.Take(ctx, ivan, r.ID, r.What)
	w.must(err)
	got, err := w.Cancel(ctx, ivan, r.ID)
	w.must(err)
	if got.State != confirm.Cancelled {
		t.Errorf("cancelled: %s", got.State)
	}
	w.is("an execution under way", e.Spend(ctx, []byte("late"), nil), fault.InvalidTransaction)
	_, err = w.Cancel(ctx, ivan, r.ID)
	w.is("again", err, "")

	// Rule 8: a change of the account ends all that is open, and nothing else.
	completed := w.confirmed()
	e, err = w.Take(ctx, ivan, completed.ID, completed.What)
	w.must(err)
	w.must(e.Spend(ctx, nil, nil))
	w.assign("otpviasms", "oath")
	challenged := w.challenge(w.create(), confirm.Ask{Method: "oath"}).Record
	open := map[string]confirm.Record{"created": w.create(), "challenged": challenged, "confirmed": w.confirmed()}
	w.messages.events = nil
	w.must(w.CancelAll(ctx, audit.Principal{UserID: "operator"}, ivanID, "the password was changed"))
	if len(w.messages.events) != 3 || w.messages.events[0] != notify.ConfirmationCancelled {
		t.Errorf("events %v", w.messages.events)
	}
	for name, r := range open {
		got := w.stored(r.ID)
		if got.State != confirm.Cancelled || got.Message != "the operation was cancelled: the password was changed" {
			t.Errorf("%s: %s, %q", name, got.State, got.Message)
		}
		_, err := w.Challenge(ctx, ivan, confirm.Ask{ID: r.ID})
		w.is(name, err, fault.InvalidTransaction)
		_, err = w.Take(ctx, ivan, r.ID, r.What)
		w.is(name, err, fault.InvalidTransaction)
	}
	if got := w.stored(completed.ID).State; got != confirm.Completed {
		t.Errorf("completed: %s", got)
	}
	// A change that fails takes the cancelling with it.
	r = w.create()
	failed := errors.New("no")
	err = w.deps.Store.Atomic(ctx, lock.User(ivanID), func(ctx context.Context) error {
		if err := w.CancelAll(ctx, ivan, ivanID, "a lock"); err != nil {
			return err
		}
		return failed
	})
	if !errors.Is(err, failed) || w.stored(r.ID).State != confirm.Created {
		t.Errorf("after a failed change: %v, %s", err, w.stored(r.ID).State)
	}
}

// TestCreateBeside creates a record in the transaction of a caller, under its identifier.
func TestCreateBeside(t *testing.T) {
	ctx := t.Context()
	w := open(t, func(s *confirm.Settings) { s.One = true })
	o := order()
	o.ID = "ABCDEF00-0000-4000-8000-000000000007"
	const stored = "abcdef00-0000-4000-8000-000000000007"
	failed := errors.New("no")
	for _, want := range []error{failed, nil} {
		err := w.deps.Store.Atomic(ctx, lock.User(ivan.UserID), func(ctx context.Context) error {
			r, err := w.Create(ctx, ivan, o)
			if err == nil && r.ID != stored {
				t.Errorf("the identifier is %s", r.ID)
			}
			return errors.Join(err, want)
		})
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
		if _, found, err := w.deps.Store.Confirmation(ctx, stored); found != (want == nil) || err != nil {
			t.Errorf("found %v, %v", found, err)
		}
	}
	// A refusal takes the changes of the caller with it.
	err := w.deps.Store.Atomic(ctx, lock.User(ivan.UserID), func(ctx context.Context) error {
		if _, err := w.deps.Answers.CountWrong(ctx, ivanID, "oath", start, confirm.Limit{Wrong: 1, Window: time.Hour, Closed: time.Hour}); err != nil {
			return err
		}
		_, err := w.Create(ctx, ivan, order())
		return err
	})
	w.is("a second operation", err, fault.TransactionPending)
	if closed, err := w.deps.Answers.ClosedUntil(ctx, ivanID, "oath"); !closed.IsZero() || err != nil {
		t.Errorf("the change of the caller was kept: %v, %v", closed, err)
	}
}

// TestQuota bounds the open records of a user.
func TestQuota(t *testing.T) {
	ctx := t.Context()
	t.Run("records", func(t *testing.T) {
		w := open(t, func(s *confirm.Settings) { s.Open = confirm.Quota{Records: 2, Bytes: 1000} })
		first := w.create()
		w.create()
		_, err := w.Create(ctx, ivan, order())
		w.is("the third", err, fault.InvalidObjectState)
		_, err = w.Cancel(ctx, ivan, first.ID)
		w.must(err)
		w.create()
		w.wait(1200 * time.Second) // expired records leave the quota before they are swept
		w.create()
	})
	t.Run("bytes", func(t *testing.T) {
		w := open(t, func(s *confirm.Settings) { s.Open = confirm.Quota{Records: 9, Bytes: 150} })
		w.create()
		_, err := w.Create(ctx, ivan, order())
		w.is("the second", err, fault.InvalidObjectState)
	})
	t.Run("sign-ins", func(t *testing.T) {
		w := open(t, func(s *confirm.Settings) { s.SignIns = 4 })
		signIn := func(network string) confirm.Record {
			t.Helper()
			step := order()
			step.Purpose = confirm.ForSignIn
			w.wait(time.Second)
			r, err := w.Create(audit.WithNote(ctx, &audit.Note{Network: network}), ivan, step)
			w.must(err)
			if r.Origin != network || w.stored(r.ID).Origin != network {
				t.Errorf("from %q, want %q", r.Origin, network)
			}
			return r
		}
		is := func(name string, r confirm.Record, want confirm.State) {
			t.Helper()
			if got := w.stored(r.ID).State; got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		own := signIn("192.0.2.1")
		first := signIn("198.51.100.7")
		var last confirm.Record
		for range 50 { // a stranger's
			last = signIn("198.51.100.7")
		}
		is("the user's", own, confirm.Created)
		is("the stranger's first", first, confirm.Cancelled)
		is("the stranger's last", last, confirm.Created)
		next := signIn("192.0.2.1") // not refused
		is("the user's first", own, confirm.Created)
		is("the user's second", next, confirm.Created)
		w.create() // operations have a quota of their own
		for i := range 4 {
			signIn(fmt.Sprint("203.0.113.", i)) // as many networks as there are places
		}
		list, err := w.Open(ctx, ivanID, "", 100)
		w.must(err)
		if len(list) != 5 {
			t.Errorf("%d open records, want 5", len(list))
		}
	})
	t.Run("sign-ins from neighbouring networks", func(t *testing.T) {
		for own, stranger := range map[string]string{"2001:db8:1:1::/64": "2001:db8:2:%x::/64", "192.0.2.1": "198.51.100.%d"} {
			w := open(t, func(s *confirm.Settings) { s.SignIns = 4 })
			signIn := func(network string) confirm.Record {
				t.Helper()
				step := order()
				step.Purpose = confirm.ForSignIn
				w.wait(time.Second)
				r, err := w.Create(audit.WithNote(ctx, &audit.Note{Network: network}), ivan, step)
				w.must(err)
				return r
			}
			r := signIn(own)
			for i := range 20 { // each on a network of its own
				signIn(fmt.Sprintf(stranger, i))
			}
			if got := w.stored(r.ID).State; got != confirm.Created {
				t.Errorf("the user's from %s: %s", own, got)
			}
		}
	})
	t.Run("sign-ins by name alone", func(t *testing.T) {
		w := open(t, func(s *confirm.Settings) { s.SignIns, s.NamedSignIns = 4, 30 })
		signIn := func(p confirm.Purpose, network string) (confirm.Record, error) {
			t.Helper()
			step := order()
			step.Purpose = p
			w.wait(time.Second)
			return w.Create(audit.WithNote(ctx, &audit.Note{Network: network}), ivan, step)
		}
		is := func(name string, r confirm.Record, want confirm.State) {
			t.Helper()
			if got := w.stored(r.ID).State; got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		proved, err := signIn(confirm.ForSignIn, "192.0.2.1")
		w.must(err)
		var named confirm.Record
		for i := range 60 { // strangers on sixty networks
			if i == 10 {
				named, err = signIn(confirm.ForNamedSignIn, "192.0.2.1")
				w.must(err)
			}
			_, err := signIn(confirm.ForNamedSignIn, fmt.Sprintf("203.0.%d.1", i))
			if i < 29 {
				w.must(err)
			} else {
				w.is(fmt.Sprint("the stranger on network ", i), err, fault.InvalidObjectState)
			}
		}
		is("the user's with a password", proved, confirm.Created)
		is("the user's by name", named, confirm.Created)
		// Who proved a first step is not refused, and takes no place of those by name.
		_, err = signIn(confirm.ForSignIn, "192.0.2.1")
		w.must(err)
		is("the user's by name", named, confirm.Created)
		// What has waited as long as a code is valid gives way, the oldest first.
		w.wait(260 * time.Second)
		_, err = signIn(confirm.ForNamedSignIn, "192.0.2.1")
		w.must(err)
		is("the user's by name", named, confirm.Created)
		for range 25 {
			_, err = signIn(confirm.ForNamedSignIn, "203.0.113.99")
			w.must(err)
		}
		is("the user's by name after a code has ended", named, confirm.Cancelled)
		is("the user's with a password", proved, confirm.Created)
	})
	t.Run("documents", func(t *testing.T) {
		w := open(t, func(s *confirm.Settings) { s.Documents.User = confirm.Quota{Records: 2, Bytes: 1000} })
		first := w.create()
		w.create()
		_, err := w.Create(ctx, ivan, order())
		w.is("the third document", err, fault.InvalidObjectState)
		step := order()
		step.Purpose = confirm.ForSignIn
		_, err = w.Create(ctx, ivan, step)
		w.is("the step of a sign-in", err, "")
		_, err = w.Cancel(ctx, ivan, first.ID)
		w.must(err)
		w.create()
		w.wait(1200 * time.Second)
		w.create()
	})
	t.Run("one", func(t *testing.T) {
		w := open(t, func(s *confirm.Settings) { s.One = true })
		r, code := w.bySMS()
		_, err := w.Create(ctx, ivan, order())
		w.is("another operation", err, fault.TransactionPending)
		step := order()
		step.Purpose = confirm.ForSignIn
		for range 2 {
			_, err = w.Create(ctx, ivan, step)
			w.is("the step of a sign-in", err, "")
		}
		_, err = w.Answer(ctx, ivan, r.RefID, code)
		w.must(err)
		_, err = w.Create(ctx, ivan, order())
		w.is("while it is confirmed", err, fault.TransactionPending)
		e, err := w.Take(ctx, ivan, r.ID, r.What)
		w.must(err)
		w.must(e.Spend(ctx, nil, nil))
		w.create()
	})
}

// TestSweep ends and deletes records.
func TestSweep(t *testing.T) {
	ctx := t.Context()
	w := open(t, func(s *confirm.Settings) { s.Keep = time.Hour })
	var records []confirm.Record
	for range 50 { // more than one portion
		records = append(records, w.create())
		w.wait(time.Millisecond)
	}
	list, err := w.Open(ctx, ivanID, records[9].ID, 1000)
	w.must(err)
	if len(list) != 40 {
		t.Errorf("%d open records after the tenth, want 40", len(list))
	}
	w.messages.events = nil
	w.wait(1200 * time.Second)
	w.must(w.Sweep(ctx))
	for _, r := range records {
		if got := w.stored(r.ID).State; got != confirm.Expired {
			t.Errorf("after the time: %s", got)
		}
		_, err := w.Poll(ctx, ivan, r.RefID)
		w.is("a poll", err, fault.TransactionExpired)
	}
	if len(w.messages.events) != 50 || w.messages.events[0] != notify.ConfirmationExpired {
		t.Errorf("%d events", len(w.messages.events))
	}
	w.must(w.Sweep(ctx)) // once
	if len(w.messages.events) != 50 {
		t.Errorf("%d events after another sweep", len(w.messages.events))
	}
	w.wait(time.Hour + time.Second)
	w.must(w.Sweep(ctx))
	if _, found, err := w.deps.Store.Confirmation(ctx, records[0].ID); found || err != nil {
		t.Errorf("after the time of keeping: %v, %v", found, err)
	}
}

// TestSettings refuses settings that cannot work.
func TestSettings(t *testing.T) {
	w := open(t, nil)
	for name, spoil := range map[string]func(s *confirm.Settings){
		"an unknown method": func(s *confirm.Settings) { s.Methods = []string{"airkey"} },
		"a method twice":    func(s *confirm.Settings) { s.Methods = []string{"oath", "oath"} },
		"life":              func(s *confirm.Settings) { s.Life = time.Second },
		"complete":          func(s *confirm.Settings) { s.Complete = 2 * time.Hour },
		"lease":             func(s *confirm.Settings) { s.Lease = 0 },
		"wrong":             func(s *confirm.Settings) { s.Wrong.Wrong = 0 },
		"window":            func(s *confirm.Settings) { s.Wrong.Window = 0 },
		"open":              func(s *confirm.Settings) { s.Open.Records = 0 },
		"keep":              func(s *confirm.Settings) { s.Keep = time.Second },
		"language":          func(s *confirm.Settings) { s.Language = "de" },
		"codes":             func(s *confirm.Settings) { s.Codes.Digits = 4 },
	} {
		s := confirm.DefaultSettings()
		spoil(&s)
		if _, err := confirm.New(s, w.deps); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
