// SPDX-License-Identifier: Apache-2.0

package confirm_test

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lock"
)

// off is by how much the clocks of these tests are wrong.
const off = 10 * time.Minute

// Steps of a client. Each returns the fault of the step.
func (w *world) ask(r confirm.Record, method string) error {
	a := confirm.Ask{ID: r.ID, Method: method}
	if method == "mydss" {
		a.Address = "41"
	}
	_, err := w.Challenge(w.t.Context(), ivan, a)
	return err
}

func (w *world) poll(r confirm.Record) error {
	_, err := w.Poll(w.t.Context(), ivan, r.RefID)
	return err
}

func (w *world) answer(r confirm.Record, code string) error {
	p, err := w.Answer(w.t.Context(), ivan, r.RefID, code)
	if err == nil && p.Wrong != nil {
		err = p.Wrong
	}
	return err
}

func (w *world) approve(r confirm.Record) error {
	_, err := w.Approve(w.t.Context(), decision(w.stored(r.ID), nil))
	return err
}

func (w *world) carryOut(r confirm.Record) error {
	_, err := w.Spend(w.t.Context(), ivan, r.ID, r.What, lock.Set{}, nothing)
	return err
}

// TestClockJumps moves the clock that all processes follow while records are in each state:
// that of the machine on SQLite, that of the server on PostgreSQL, also by a failover. It is
// wrong for some time and then right again. Each step works or has one fault, and a record
// and a code are spent once.
func TestClockJumps(t *testing.T) {
	const (
		works   = ""
		expired = fault.TransactionExpired
		wrong   = fault.AuthenticationFailed
		refused = fault.InvalidTransaction
	)
	for engine, url := range map[string]string{
		"SQLite": storetest.SQLiteFile(t, t.TempDir()+"/tamga.db"), "PostgreSQL": storetest.PostgreSQL(t).Migrated(t),
	} {
		w := openOn(t, storetest.Open(t, url), nil)
		w.furnish()
		for _, ahead := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/ahead=%v", engine, ahead), func(t *testing.T) {
				w.t = t
				is := func(step string, err error, whileAhead, whileBehind string) {
					t.Helper()
					if ahead {
						w.is(step, err, whileAhead)
					} else {
						w.is(step, err, whileBehind)
					}
				}
				wronged := func(do func()) {
					t.Helper()
					by := off
					if !ahead {
						by = -off
					}
					w.wait(by)
					do()
					w.wait(-by)
				}
				fresh := func(method string) {
					w.must(w.Forgive(t.Context(), ivanID))
					w.assign(method)
					w.wait(period)
				}

				fresh("otpviasms")
				r := w.create()
				wronged(func() { w.is("a challenge", w.ask(r, "otpviasms"), works) })
				is("its code, in time again", w.answer(r, w.messages.last(t).Data["Code"]), works, expired)
				w.is("another challenge, if need be", w.ask(r, "otpviasms"), works)
				w.is("the code of that, or the same again", w.answer(r, w.messages.last(t).Data["Code"]), works)
				w.is("carrying out", w.carryOut(r), works)

				r, code := w.bySMS()
				wronged(func() {
					is("a poll", w.poll(r), expired, works)
					is("an answer", w.answer(r, code), expired, works)
				})
				is("the answer in time again", w.answer(r, code), works, expired)
				is("carrying that out", w.carryOut(r), works, expired)
				is("the code once more", w.answer(r, code), works, expired)

				fresh("mydss")
				r = w.create()
				w.must(w.ask(r, "mydss"))
				wronged(func() { w.is("an approval", w.approve(r), works) })
				is("carrying out what a device approved", w.carryOut(r), works, expired)

				fresh("oath")
				r = w.create()
				w.must(w.ask(r, "oath"))
				code = w.oathCode(0)
				wronged(func() { is("a code of now", w.answer(r, code), expired, wrong) })
				w.is("the same when the clock is right", w.answer(r, code), works)
				r = w.create()
				w.must(w.ask(r, "oath"))
				wronged(func() { is("a code that was spent", w.answer(r, code), expired, wrong) })
				w.is("the same when the clock is right", w.answer(r, code), wrong)
				w.wait(period)
				w.is("the next one", w.answer(r, w.oathCode(0)), works)

				fresh("otpviasms")
				r = w.confirmed()
				wronged(func() {
					is("carrying out", w.carryOut(r), expired, works)
					is("fetching the result", w.carryOut(r), expired, works)
				})
				w.is("the result in time again", w.carryOut(r), works)
				wronged(func() { is("the result once more", w.carryOut(r), refused, works) })

				r = w.confirmed()
				wronged(func() { w.must(w.Sweep(t.Context())) })
				is("carrying out after a sweep", w.carryOut(r), expired, works)

				// Every open operation ends in its time.
				w.wait(1200 * time.Second)
				w.must(w.Sweep(t.Context()))
				if open, err := w.Open(t.Context(), ivanID, "", 100); err != nil || len(open) > 0 {
					t.Errorf("open: %v, %v", open, err)
				}
			})
		}
	}
}

// TestClockOfProcess lets processes with wrong clocks and one with a right one take turns
// over PostgreSQL. All go by the clock of the server.
func TestClockOfProcess(t *testing.T) {
	url := storetest.PostgreSQL(t).Migrated(t)
	pool, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	process := func(wrong time.Duration) *world {
		db, err := store.Open(t.Context(), store.Options{URL: url, Wall: func() time.Time { return time.Now().Add(wrong) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		w := openOn(t, db, nil)
		w.server = true
		return w
	}
	right := process(0)
	right.furnish()
	for _, wrong := range []*world{process(off), process(-off)} {
		for i, order := range [][]*world{{wrong, right}, {right, wrong}} {
			one, two := order[0], order[1]
			// age lets time pass by the clock of the server.
			age := func(r confirm.Record, by time.Duration) {
				t.Helper()
				_, err := pool.Exec(`UPDATE confirmations SET answer_before = answer_before - $2, confirm_before = confirm_before - $2, due_at = due_at - $2,
					complete_before = complete_before - $2 WHERE id = $1`, r.ID, by.Milliseconds())
				right.must(err)
			}
			right.must(right.Forgive(t.Context(), ivanID))
			begun := right.db.Now()
			r := one.create()
			two.must(two.ask(r, "otpviasms"))
			code := two.messages.last(t).Data["Code"]
			one.is("a poll", one.poll(r), "")
			one.is("an answer", one.answer(r, code), "")
			r = one.stored(r.ID)
			for name, got := range map[string]time.Duration{
				"created": r.CreatedAt.Sub(begun), "to confirm": r.ConfirmBefore.Sub(begun) - 1200*time.Second,
				"to answer": r.AnswerBefore.Sub(begun) - 300*time.Second, "to complete": r.CompleteBefore.Sub(begun) - 300*time.Second,
			} {
				if got.Abs() > 2*time.Minute { // a busy machine is not ten minutes late
					t.Errorf("%d: %s: %v from the clock of the server", i, name, got)
				}
			}
			two.must(two.Sweep(t.Context()))
			one.is("carrying out", one.carryOut(r), "")
			two.is("its result", two.carryOut(r), "")

			r = one.create()
			one.must(one.ask(r, "otpviasms"))
			code = one.messages.last(t).Data["Code"]
			age(r, 301*time.Second)
			two.is("a poll of a code that is over", two.poll(r), fault.TransactionExpired)
			two.is("a late answer", two.answer(r, code), fault.TransactionExpired)
			age(r, 900*time.Second)
			two.is("a challenge of a record that is over", two.ask(r, "otpviasms"), fault.TransactionExpired)

			r = one.confirmed()
			age(r, 301*time.Second)
			two.is("what was not carried out in time", two.carryOut(r), fault.TransactionExpired)
			two.must(two.Sweep(t.Context()))
			one.is("swept", one.carryOut(r), fault.TransactionExpired)
		}
	}
}
