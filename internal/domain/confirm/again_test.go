// SPDX-License-Identifier: Apache-2.0

package confirm_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
)

// from returns the context of a call that comes from a network.
func from(ctx context.Context, network string) context.Context {
	return audit.WithNote(ctx, &audit.Note{Network: network})
}

// spent carries a sign-in out, and keeps what it gave.
func (w *world) spent(ctx context.Context, r confirm.Record, given string) {
	w.t.Helper()
	done, err := w.Spend(ctx, ivan, r.ID, r.What, lock.User(ivanID), func(ctx context.Context, r *confirm.Record) error { return w.Keep(ctx, r, []byte(given)) })
	if w.must(err); !done {
		w.t.Fatal("the record was spent before")
	}
}

// TestRightAnswerAgain sends an answer once more whose final answer was lost.
func TestRightAnswerAgain(t *testing.T) {
	for engine, url := range map[string]string{
		"SQLite": storetest.SQLiteFile(t, t.TempDir()+"/tamga.db"), "PostgreSQL": storetest.PostgreSQL(t).Migrated(t),
	} {
		t.Run(engine, func(t *testing.T) {
			w := openOn(t, storetest.Open(t, url), nil)
			w.furnish()
			here, elsewhere := from(t.Context(), "192.0.2.1"), from(t.Context(), "192.0.2.2")
			begun := func(method string) (confirm.Record, string) {
				t.Helper()
				w.must(w.Forgive(here, ivanID))
				w.wait(time.Minute)
				w.assign(method)
				o := order()
				o.Purpose = confirm.ForSignIn
				r, err := w.Create(here, ivan, o)
				w.must(err)
				p, err := w.Challenge(here, ivan, confirm.Ask{ID: r.ID, Methods: []string{method}, Address: "41", Method: method})
				if method != "mydss" {
					p, err = w.Challenge(here, ivan, confirm.Ask{ID: r.ID, Methods: []string{method}})
				}
				w.must(err)
				if method == "mydss" {
					return p.Record, ""
				}
				return p.Record, w.messages.last(t).Data["Code"]
			}
			answered := func(method string) (confirm.Record, string) {
				t.Helper()
				r, code := begun(method)
				p, err := w.Answer(here, ivan, r.RefID, code)
				w.must(err)
				return p.Record, code
			}
			again := func(name string, ctx context.Context, r confirm.Record, code string, want confirm.State) {
				t.Helper()
				p, err := w.Answer(ctx, ivan, r.RefID, code)
				if want == "" {
					w.is(name, err, fault.InvalidTransaction)
				} else if err != nil || p.Record.State != want || p.Wrong != nil {
					t.Errorf("%s: %v, %s, want %s", name, err, p.Record.State, want)
				}
			}
			given := func(name string, ctx context.Context, r confirm.Record, want string) {
				t.Helper()
				if got, found, err := w.Given(ctx, ivan, r.ID); err != nil || string(got) != want || found != (want != "") {
					t.Errorf("%s: given %q, %t, %v, want %q", name, got, found, err, want)
				}
			}

			r, code := answered("otpviasms")
			again("before it is spent", here, r, code, confirm.Confirmed)
			again("before it is spent, elsewhere", elsewhere, r, code, "")
			w.spent(here, r, "token-5551")
			again("after it was spent", here, r, " "+code+" ", confirm.Completed)
			again("elsewhere", elsewhere, r, code, "")
			again("a wrong one elsewhere decides nothing", elsewhere, r, other(code), "")
			given("here", here, r, "token-5551")
			given("elsewhere", elsewhere, r, "")
			if _, err := w.AnswerOnPage(here, ivan, r.RefID, confirm.OnPage{Answer: code}); !fault.Is(err, fault.InvalidTransaction) {
				t.Errorf("on a page: %v", err)
			}
			if p, err := w.Poll(here, ivan, r.RefID); err != nil || p.Record.State != confirm.Completed {
				t.Errorf("a poll: %v", err)
			}
			_, err := w.Answer(here, anna, r.RefID, code)
			w.is("another user", err, fault.InvalidTransaction)
			if right, errs := atOnce(20, func(int) (bool, error) {
				p, err := w.Answer(here, ivan, r.RefID, code)
				return err == nil && p.Record.State == confirm.Completed, err
			}); right != 20 {
				t.Errorf("%d of 20 repetitions at once got the answer: %v", right, errs)
			}
			if engine == "SQLite" {
				for _, suffix := range []string{"", "-wal"} {
					data, err := os.ReadFile(strings.TrimPrefix(url, "sqlite:") + suffix)
					if err == nil && bytes.Contains(data, []byte("token-5551")) {
						t.Errorf("the token is in the file%s of the database", suffix)
					}
				}
			}
			w.wait(299 * time.Second)
			given("at the end of its life", here, r, "token-5551")
			w.wait(time.Second)
			again("after its life", here, r, code, "")
			given("after its life", here, r, "")
			if _, err := w.Poll(here, ivan, r.RefID); !fault.Is(err, fault.InvalidTransaction) {
				t.Errorf("a poll after its life: %v", err)
			}
			if _, found, err := w.deps.Answers.KeptAnswer(here, r.ID, start); err != nil || !found {
				t.Errorf("before a sweep: %t, %v", found, err)
			}
			w.must(w.Sweep(here))
			if _, found, err := w.deps.Answers.KeptAnswer(here, r.ID, start); err != nil || found {
				t.Errorf("after a sweep: %t, %v", found, err)
			}

			// A wrong repetition counts, and no answer is right after it.
			for i := range 2 {
				r, code = answered("otpviasms")
				if i == 1 {
					w.spent(here, r, "token")
				}
				again("a wrong one", here, r, other(code), "")
				again("the right one after it", here, r, code, "")
				given("after a wrong one", here, r, "")
			}
			limit := confirm.DefaultSettings().Wrong.Wrong
			w.must(w.Forgive(here, ivanID))
			for range limit {
				w.wait(time.Minute) // until another code may be sent
				o := order()
				o.Purpose = confirm.ForSignIn
				r, err := w.Create(here, ivan, o)
				w.must(err)
				p, err := w.Challenge(here, ivan, confirm.Ask{ID: r.ID, Methods: []string{"otpviasms"}})
				w.must(err)
				code := w.messages.last(t).Data["Code"]
				_, err = w.Answer(here, ivan, p.Record.RefID, code)
				w.must(err)
				again("a wrong one", here, p.Record, other(code), "")
			}
			if closed, err := w.deps.Answers.ClosedUntil(here, ivanID, "otpviasms"); err != nil || !closed.After(w.clock()) {
				t.Errorf("after %d wrong repetitions the method is closed until %v, %v", limit, closed, err)
			}

			// While the method is closed no answer is checked.
			r, code = answered("otpviasms")
			for range limit {
				_, err := w.deps.Answers.CountWrong(here, ivanID, "otpviasms", w.clock(), confirm.DefaultSettings().Wrong)
				w.must(err)
			}
			again("while the method is closed", here, r, code, "")

			// What ends the record ends its answer.
			r, code = answered("otpviasms")
			w.must(w.CancelAll(here, ivan, ivanID, "the password was changed"))
			again("cancelled", here, r, code, "")

			// A device gives no answer: the sign-in gets its token by polls.
			r, _ = begun("mydss")
			r, err = w.Approve(here, decision(r, nil))
			w.must(err)
			w.spent(here, r, "token of a poll")
			given("a poll", here, r, "token of a poll")
			given("a poll elsewhere", elsewhere, r, "")
			again("a text for what a device approved", here, r, "", "")
		})
	}
}
