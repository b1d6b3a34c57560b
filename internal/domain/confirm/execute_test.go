// SPDX-License-Identifier: Apache-2.0

package confirm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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
	if e.Done || string(e.Content.Secret) != "PIN-93817264" || string(e.Content.Plan) != "the plan" || len(e.Content.Fields.Documents) != 3 {
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
	if !e.Done || string(e.Content.Result) != "result" || len(e.Content.Secret)+len(e.Content.Plan) != 0 {
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
	w.must(e.Fail(ctx, fault.New(fault.InvalidContent, "not a PDF"), nil))
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
		if ran++; e.Done || string(e.Content.Secret) != "PIN-93817264" {
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

// renewals tells when a lease was extended.
type renewals struct {
	confirm.ExecutionStore
	held chan bool
}

func (r renewals) ExtendConfirmation(ctx context.Context, id, lease string, until time.Time) (bool, error) {
	held, err := r.ExecutionStore.ExtendConfirmation(ctx, id, lease, until)
	select {
	case r.held <- held:
	case <-ctx.Done():
	}
	return held, err
}

// TestLeaseIsRenewed carries an operation out for longer than its lease.
func TestLeaseIsRenewed(t *testing.T) {
	w := open(t, nil)
	r := w.confirmed()
	renewed := renewals{w.deps.Executions, make(chan bool)}
	w.deps.Executions = renewed
	settings := confirm.DefaultSettings()
	settings.Lease = 30 * time.Millisecond
	service, err := confirm.New(settings, w.deps)
	w.must(err)
	w.must(service.CarryOut(t.Context(), ivan, r.ID, confirm.Work{
		Mine: func(string) bool { return true },
		Describe: func(ctx context.Context, r *confirm.Record, _ []byte) (what.Fields, error) {
			c, err := w.Content(ctx, ivan, r.ID)
			return c.Fields, err
		},
		Do: func(ctx context.Context, e *confirm.Execution) error {
			w.wait(time.Minute)
			// The first renewal may have begun before the minute.
			for range 2 {
				if !<-renewed.held {
					t.Error("the lease is lost")
				}
			}
			_, err := w.Take(ctx, ivan, r.ID, r.What)
			w.is("after a minute", err, fault.Unavailable)
			return e.Spend(ctx, []byte("result"), nil)
		},
	}))
	if got := w.stored(r.ID).State; got != confirm.Completed {
		t.Errorf("carried out: %s", got)
	}
}

// TestEndedMeanwhile has another call end a record while it is carried out, at each step that
// may fail because of that. A failure beside a record that is still confirmed stays.
func TestEndedMeanwhile(t *testing.T) {
	lost := fault.New(fault.Lost, "the documents are gone")
	other := errors.New("a failure")
	for _, row := range []struct {
		name, step string
		end        string // how the record ends; "" if it does not
		failure    error  // nil: the step gives other fields
		want       string // code; "" for the result of the other call, "other" for the failure itself
	}{
		{"cancelled, then no documents", "describe", "cancel", lost, fault.InvalidTransaction},
		{"cancelled, then other fields", "describe", "cancel", nil, fault.InvalidTransaction},
		{"cancelled, then a failure", "describe", "cancel", other, fault.InvalidTransaction},
		{"carried out, then no documents", "describe", "complete", lost, ""},
		{"carried out, then other fields", "describe", "complete", nil, ""},
		{"cancelled while signing", "do", "cancel", lost, fault.InvalidTransaction},
		{"cancelled while signing, a failure", "do", "cancel", other, fault.InvalidTransaction},
		{"carried out while signing, then no documents", "do", "complete", lost, fault.InvalidTransaction},
		{"carried out while signing, then no answer", "do", "complete", &fault.Outage{Message: "unknown", Err: other}, "other"},
		{"no documents", "describe", "", lost, fault.Lost},
		{"other fields", "describe", "", nil, fault.InvalidTransaction},
		{"a failure", "describe", "", other, "other"},
		{"a failure while signing", "do", "", other, "other"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := open(t, nil)
			r := w.confirmed()
			end := func(ctx context.Context) {
				switch row.end {
				case "cancel":
					_, err := w.Cancel(ctx, ivan, r.ID)
					w.must(err)
				case "complete":
					w.wait(time.Minute) // a lease ends
					e, err := w.Take(ctx, ivan, r.ID, r.What)
					w.must(err)
					w.must(e.Spend(ctx, []byte("of the other call"), nil))
				}
			}
			result := ""
			err := w.CarryOut(t.Context(), ivan, r.ID, confirm.Work{
				Mine: func(string) bool { return true },
				Describe: func(ctx context.Context, r *confirm.Record, _ []byte) (what.Fields, error) {
					c, err := w.Content(ctx, ivan, r.ID)
					w.must(err)
					if row.step != "describe" {
						return c.Fields, nil
					}
					end(ctx)
					c.Fields.SignatureType += " changed"
					return c.Fields, row.failure
				},
				Do: func(ctx context.Context, e *confirm.Execution) error {
					if row.step != "do" {
						t.Error("it is carried out")
					}
					end(ctx)
					return row.failure
				},
				Again: func(_ context.Context, e *confirm.Execution) error {
					result = string(e.Content.Result)
					return nil
				},
			})
			if row.want == "other" {
				if !errors.Is(err, other) {
					t.Errorf("%v, want the failure", err)
				}
			} else {
				w.is(row.name, err, row.want)
			}
			if want := row.end == "complete" && row.step == "describe"; want != (result == "of the other call") {
				t.Errorf("the result %q", result)
			}
		})
	}
}

// TestSecretIsNotPrinted prints an execution in every form.
func TestSecretIsNotPrinted(t *testing.T) {
	w := open(t, nil)
	r := w.confirmed()
	e, err := w.Take(t.Context(), ivan, r.ID, r.What)
	w.must(err)
	secret := string(e.Content.Secret)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, value := range []any{e.Content, e.Content.Secret, order()} {
			text := fmt.Sprintf(verb, value)
			for _, form := range []string{secret, fmt.Sprintf("%x", secret), strings.Trim(fmt.Sprint([]byte(secret)), "[]")} {
				if strings.Contains(text, form) {
					t.Errorf("%s prints the secret: %s", verb, text)
				}
			}
		}
	}
	if text, err := json.Marshal(e.Content); err == nil {
		t.Errorf("JSON: %s", text)
	}
	inside := e.Content.Secret
	w.must(e.Release(t.Context()))
	if strings.Contains(string(inside), "PIN") {
		t.Error("the secret is in memory after the release")
	}
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
