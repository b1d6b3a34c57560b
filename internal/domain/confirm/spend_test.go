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

// nothing is a change beside a record that changes nothing.
func nothing(context.Context, *confirm.Record) error { return nil }

// spend spends a record with nothing beside it. It fails if the record was spent before.
func (w *world) spend(r confirm.Record) error {
	spent, err := w.Spend(w.t.Context(), ivan, r.ID, r.What, lock.User(ivanID), nothing)
	if err == nil && !spent {
		err = errors.New("the record was spent before")
	}
	return err
}

// beside closes a method of Ivan, as a change beside a record, and returns fails.
func (w *world) beside(fails error) func(ctx context.Context, r *confirm.Record) error {
	return func(ctx context.Context, _ *confirm.Record) error {
		_, err := w.deps.Answers.CountWrong(ctx, ivanID, "beside", w.clock(), confirm.Limit{Wrong: 1, Window: time.Hour, Closed: time.Hour})
		if err != nil {
			return err
		}
		return fails
	}
}

// kept reports whether a change of beside is stored.
func (w *world) kept() bool {
	until, err := w.deps.Answers.ClosedUntil(w.t.Context(), ivanID, "beside")
	w.must(err)
	return !until.IsZero()
}

// TestSpend spends records.
func TestSpend(t *testing.T) {
	onEngines(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		created, r := w.create(), w.confirmed()
		elsewhere, noClient := ivan, ivan
		elsewhere.ClientID, noClient.ClientID = "another client", ""
		changed := r.What
		changed[31] ^= 1
		refused := func(name string, who audit.Principal, id string, sum what.Digest) {
			t.Helper()
			spent, err := w.Spend(ctx, who, id, sum, lock.User(ivanID), w.beside(nil))
			if w.is(name, err, fault.InvalidTransaction); spent || w.kept() {
				t.Errorf("%s: spent %v, the change is kept: %v", name, spent, w.kept())
			}
		}
		for name, call := range map[string]struct {
			who audit.Principal
			id  string
			sum what.Digest
		}{
			"another user":   {anna, r.ID, r.What},
			"another client": {elsewhere, r.ID, r.What},
			"no client":      {noClient, r.ID, r.What},
			"something else": {ivan, r.ID, changed},
			"by the ref":     {ivan, r.RefID, r.What},
		} {
			refused(name, call.who, call.id, call.sum)
		}
		refused("not confirmed", ivan, created.ID, created.What)

		// An error of the change takes all with it, a fault too.
		events := len(w.messages.events)
		for _, failure := range []error{errors.New("the disk is full"), fault.New(fault.InvalidPIN, "wrong")} {
			spent, err := w.Spend(ctx, ivan, r.ID, r.What, lock.User(ivanID), w.beside(failure))
			if got := w.stored(r.ID); spent || !errors.Is(err, failure) || got.State != confirm.Confirmed || w.kept() || len(w.messages.events) != events {
				t.Errorf("after %v: spent %v, %v, %s, the change is kept: %v, events %v", failure, spent, err, got.State, w.kept(), w.messages.events[events:])
			}
			w.noted(r.ID, confirm.Confirmed)
		}
		spent, err := w.Spend(ctx, ivan, r.ID, r.What, lock.User(ivanID), func(ctx context.Context, given *confirm.Record) error {
			if d := cmp.Diff(r, *given); d != "" {
				t.Errorf("the record of the change: %s", d)
			}
			return w.beside(nil)(ctx, given)
		})
		if got := w.stored(r.ID); err != nil || !spent || got.State != confirm.Completed || !got.EndedAt.Equal(w.clock()) || !w.kept() {
			t.Errorf("spent %v, %v, %+v, the change is kept: %v", spent, err, got, w.kept())
		}
		w.noted(r.ID, confirm.Completed)
		w.must(w.Forgive(ctx, ivanID))

		// The client did not get the answer.
		w.wait(time.Second)
		events = len(w.messages.events)
		if spent, err := w.Spend(ctx, ivan, r.ID, r.What, lock.User(ivanID), w.beside(nil)); spent || err != nil || w.kept() || len(w.messages.events) != events {
			t.Errorf("again: %v, %v, the change is kept: %v, events %v", spent, err, w.kept(), w.messages.events[events:])
		}
		refused("again about something else", ivan, r.ID, changed)
		refused("again by another client", elsewhere, r.ID, r.What)
		w.wait(5 * time.Minute)
		refused("after the time", ivan, r.ID, r.What)

		r = w.confirmed()
		w.wait(5*time.Minute - time.Millisecond)
		w.must(w.spend(r))
		r = w.confirmed()
		w.wait(5 * time.Minute)
		w.is("not in time", w.spend(r), fault.TransactionExpired)
		if got := w.stored(r.ID).State; got != confirm.Confirmed {
			t.Errorf("not in time: %s", got)
		}
		w.must(w.Forgive(ctx, ivanID))
		r = w.confirmed()
		w.must(w.fail(r))
		w.is("what has failed", w.spend(r), fault.InvalidContent)
	})
}

// interrupted is a store whose transactions begin after something else has happened.
type interrupted struct {
	confirm.Store
	atomic func(ctx context.Context, locked lock.Set, fn func(ctx context.Context) error) error
}

func (s *interrupted) Atomic(ctx context.Context, locked lock.Set, fn func(ctx context.Context) error) error {
	return s.atomic(ctx, locked, fn)
}

// TestSpendMeanwhile ends records between the moment when Spend has found them confirmed and its transaction.
func TestSpendMeanwhile(t *testing.T) {
	onEngines(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		store := &interrupted{Store: w.deps.Store}
		deps := w.deps
		deps.Store = store
		service, err := confirm.New(confirm.DefaultSettings(), deps)
		w.must(err)
		for name, end := range map[string]struct {
			end  func(r confirm.Record) error
			want confirm.State
			code string
		}{
			"spent":     {w.spend, confirm.Completed, ""},
			"cancelled": {func(r confirm.Record) error { _, err := w.Cancel(ctx, ivan, r.ID); return err }, confirm.Cancelled, fault.InvalidTransaction},
			"failed":    {w.fail, confirm.Error, fault.InvalidContent},
			"expired":   {func(confirm.Record) error { w.wait(5 * time.Minute); return nil }, confirm.Confirmed, fault.TransactionExpired},
			"swept":     {func(confirm.Record) error { w.wait(5 * time.Minute); return w.Sweep(ctx) }, confirm.Expired, fault.TransactionExpired},
			"spent, and over": {func(r confirm.Record) error {
				defer w.wait(5 * time.Minute)
				return w.spend(r)
			}, confirm.Completed, fault.InvalidTransaction},
		} {
			w.must(w.Forgive(ctx, ivanID))
			w.wait(time.Minute)
			r := w.confirmed()
			store.atomic = func(ctx context.Context, locked lock.Set, fn func(context.Context) error) error {
				w.must(end.end(r))
				return store.Store.Atomic(ctx, locked, fn)
			}
			spent, err := service.Spend(ctx, ivan, r.ID, r.What, lock.User(ivanID), w.beside(nil))
			w.is(name, err, end.code)
			if got := w.stored(r.ID).State; spent || got != end.want || w.kept() {
				t.Errorf("%s: spent %v, %s, the change is kept: %v", name, spent, got, w.kept())
			}
		}

		// Transactions that do not commit at once, not at all, or without an answer.
		conflict := errors.New("a conflict of transactions")
		rolledBack := func(ctx context.Context, locked lock.Set, fn func(context.Context) error) error {
			return store.Store.Atomic(ctx, locked, func(ctx context.Context) error { return errors.Join(fn(ctx), conflict) })
		}
		for name, c := range map[string]struct {
			atomic func(ctx context.Context, locked lock.Set, fn func(context.Context) error) error
			spent  bool
			err    error
			want   confirm.State
		}{
			"rolled back": {rolledBack, false, conflict, confirm.Confirmed},
			"run again": {func(ctx context.Context, locked lock.Set, fn func(context.Context) error) error {
				if err := rolledBack(ctx, locked, fn); !errors.Is(err, conflict) {
					t.Errorf("the first run: %v", err)
				}
				return store.Store.Atomic(ctx, locked, fn)
			}, true, nil, confirm.Completed},
			"committed without an answer": {func(ctx context.Context, locked lock.Set, fn func(context.Context) error) error {
				return errors.Join(store.Store.Atomic(ctx, locked, fn), conflict)
			}, false, nil, confirm.Completed},
		} {
			w.must(w.Forgive(ctx, ivanID))
			w.wait(time.Minute)
			r := w.confirmed()
			store.atomic = c.atomic
			spent, err := service.Spend(ctx, ivan, r.ID, r.What, lock.User(ivanID), w.beside(nil))
			if got := w.stored(r.ID).State; spent != c.spent || !errors.Is(err, c.err) || got != c.want || w.kept() != (c.want == confirm.Completed) {
				t.Errorf("%s: spent %v, %v, %s, the change is kept: %v", name, spent, err, got, w.kept())
			}
		}
	})
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
			result string // fault of Spend after the end; "" for none
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
			spent, err := w.Spend(ctx, ivan, r.ID, r.What, lock.User(ivanID), nothing)
			if w.is(string(end.to), err, end.result); spent {
				t.Errorf("%s: spent again", end.to)
			}

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
					w.must(w.deps.Store.Atomic(ctx, lock.User(ivanID), func(ctx context.Context) error {
						return w.Complete(ctx, ivan, &r, []byte("of another call"), func(context.Context) error { return nil })
					}))
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
	w.must(w.spend(r))
	_, err = w.Decline(ctx, ivan, w.create().ID)
	w.must(err)
	told("carried out, and declined", false)
	w.assign("mydss")
	byDevice := func(approved bool) {
		t.Helper()
		r := w.challenge(w.create(), confirm.Ask{Method: "mydss", Address: "41"}).Record
		_, err := w.Approve(ctx, decision(r, func(v *confirm.Decision) { v.Approved = approved }))
		w.must(err)
	}
	byDevice(false)
	told("a refusal of a device", false)
	for range 3 { // no call waits in between
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
		_, err = w.Spend(t.Context(), ivan, r.ID, sum, lock.Set{}, nothing)
		w.is(name, err, fault.InvalidTransaction)
	}
	sum, err := content.Fields.Sum()
	w.must(err)
	_, err = w.Spend(t.Context(), ivan, r.ID, sum, lock.Set{}, nothing)
	w.is("unchanged", err, "")
}

// TestCancel ends records early.
func TestCancel(t *testing.T) {
	ctx := t.Context()
	w := open(t, nil)
	r := w.confirmed()
	got, err := w.Cancel(ctx, ivan, r.ID)
	w.must(err)
	if got.State != confirm.Cancelled {
		t.Errorf("cancelled: %s", got.State)
	}
	w.is("spending what was cancelled", w.spend(r), fault.InvalidTransaction)
	_, err = w.Cancel(ctx, ivan, r.ID)
	w.is("again", err, "")

	// Rule 8: a change of the account ends all that is open, and nothing else.
	completed := w.confirmed()
	w.must(w.spend(completed))
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
		w.is(name, w.spend(r), fault.InvalidTransaction)
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
		for range 50 { // an attacker's
			last = signIn("198.51.100.7")
		}
		is("the user's", own, confirm.Created)
		is("the attacker's first", first, confirm.Cancelled)
		is("the attacker's last", last, confirm.Created)
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
		for own, attacker := range map[string]string{"2001:db8:1:1::/64": "2001:db8:2:%x::/64", "192.0.2.1": "198.51.100.%d"} {
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
				signIn(fmt.Sprintf(attacker, i))
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
		for i := range 60 { // attackers on sixty networks
			if i == 10 {
				named, err = signIn(confirm.ForNamedSignIn, "192.0.2.1")
				w.must(err)
			}
			_, err := signIn(confirm.ForNamedSignIn, fmt.Sprintf("203.0.%d.1", i))
			if i < 29 {
				w.must(err)
			} else {
				w.is(fmt.Sprint("the attacker on network ", i), err, fault.InvalidObjectState)
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
		w.must(w.spend(r))
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
