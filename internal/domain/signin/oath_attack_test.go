// SPDX-License-Identifier: Apache-2.0

package signin_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/oath"
	"tamga/internal/domain/oath/otp"
	"tamga/internal/domain/oath/stock"
	"tamga/internal/testsize"
)

func (b *oathBench) tokens() store.Tokens { return store.Tokens{DB: b.db} }

// Class 1, replay: what was accepted on one path is refused on every path, and so is
// everything before it, also after the token was taken away and assigned again.
func TestReplay(t *testing.T) {
	b := newOathBench(t)
	for _, c := range []struct{ serial, other string }{{"H0", "H1"}, {"T0", "T1"}} {
		s := c.serial
		b.is("assign", b.assign(s, b.at(s, 5-5*int64(s[0]/'T'))), "")
		step := 5 - 5*int64(s[0]/'T') // 5 of HOTP, now of TOTP
		first, second := b.at(s, step-1), b.at(s, step)
		replay := func(when string) {
			t.Helper()
			b.is("check "+when, b.check(second), fault.InvalidCode)
			b.is("set "+when, b.assign(s, second), fault.InvalidCode)
			b.is("set with two codes "+when, b.assign(s, first, second), fault.InvalidCode)
			b.is("sync "+when, b.sync(s, first, second), fault.InvalidCode)
			if err := b.UnlockToken(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		replay("at once")
		b.is("another", b.assign(c.other, b.at(c.other, 100*int64(1-s[0]/'T'))), "")
		b.is("assign again", b.assign(s, second), fault.InvalidCode)
		b.is("assign again", b.assign(s, b.at(s, step+1)), "")
		replay("after another token")
		b.is("remove", b.RemoveToken(t.Context(), b.op, b.user), "")
		b.clock.add(period)
		step = b.later(s, step)
		b.is("assign again", b.assign(s, b.at(s, step+2)), "")
		// A second process over the same database knows too.
		b.oathService = b.oathWith(t, oath.DefaultSettings())
		second, first = b.at(s, step+2), b.at(s, step+1)
		replay("in another process")
	}
}

// later is a step after the clock moved on by a period.
func (b *oathBench) later(serial string, step int64) int64 {
	if serial[0] == 'T' {
		return step - 1
	}
	return step
}

// Class 1, concurrent: of a thousand submissions of one code at once, on every path
// there is, one is accepted.
func TestConcurrent(t *testing.T) {
	s := oath.DefaultSettings()
	s.Attempts, s.MaxAttempts = 1000, 1000 // the budget is not what is tested
	b := newOathBench(t)
	b.oathService = b.oathWith(t, s)
	b.is("assign", b.assign("H0", b.at("H0", 0)), "")
	const submissions, rounds = 1000, 3
	for round := range rounds {
		step := int64(2*round + 1)
		first, second := b.at("H0", step), b.at("H0", step+1)
		var accepted atomic.Int64
		var refused sync.Map
		var done sync.WaitGroup
		gate := make(chan struct{})
		for i := range submissions {
			done.Go(func() {
				<-gate
				var err error
				switch i % 3 {
				case 0: // the second code alone, or both: one of them
					err = b.check(second)
				case 1:
					err = b.assign("H0", first, second)
				default:
					err = b.sync("H0", first, second)
				}
				if err == nil {
					accepted.Add(1)
				} else {
					refused.Store(faultOf(err), err)
				}
			})
		}
		close(gate)
		done.Wait()
		if n := accepted.Load(); n != 1 {
			t.Errorf("round %d: accepted %d times", round, n)
		}
		refused.Range(func(code, err any) bool {
			if code != fault.InvalidCode && code != fault.MaxAttempts {
				t.Errorf("refused with %v", err)
			}
			return true
		})
		if err := b.UnlockToken(t.Context(), "H0"); err != nil {
			t.Fatal(err)
		}
	}
}

// Classes 2 and 3, brute force: guesses over every path at once never exceed the
// budget, neither waiting nor another factor gives it back, and the owner is helped.
func TestBruteForce(t *testing.T) {
	b := newOathBench(t)
	o := oath.DefaultSettings()
	b.is("assign", b.assign("H0", b.at("H0", 0)), "")
	if err := b.SetPassword(t.Context(), b.user, secret); err != nil {
		t.Fatal(err)
	}
	b.set(t, b.op, b.user, "password")
	var judged, locked atomic.Int64
	guess := func(i int) {
		wrong := fmt.Sprintf("%06d", rand.IntN(1_000_000))
		for at := range int64(30) {
			if wrong == b.keysCode("H0", at) {
				return
			}
		}
		var err error
		switch i % 4 {
		case 0:
			err = b.check(wrong)
		case 1:
			err = b.assign("H0", wrong)
		case 2:
			err = b.assign("H0", wrong, wrong)
		default:
			err = b.sync("", wrong, wrong)
		}
		switch faultOf(err) {
		case fault.InvalidCode:
			judged.Add(1)
		case fault.MaxAttempts:
			locked.Add(1)
		default:
			t.Errorf("a guess: %v", err)
		}
	}
	guesses := func(n int) {
		var done sync.WaitGroup
		for i := range n {
			done.Go(func() { guess(i) })
		}
		done.Wait()
	}
	for round := 1; round <= o.MaxAttempts/o.Attempts+5; round++ {
		guesses(60)
		if got, want := judged.Load(), int64(min(round*o.Attempts, o.MaxAttempts)); got != want {
			t.Fatalf("round %d: %d guesses were judged, the budget is %d", round, got, want)
		}
		// The right code is as good as a wrong one now, and a password does not help.
		b.is("the right code", b.check(b.at("H0", 1)), fault.MaxAttempts)
		if _, err := b.grant(t.Context(), "petrov", secret); err != nil {
			t.Fatal(err)
		}
		b.clock.add(o.LockOut)
	}
	b.clock.add(100 * 365 * 24 * time.Hour)
	guesses(20)
	if got := judged.Load(); got != int64(o.MaxAttempts) {
		t.Fatalf("after a hundred years %d guesses were judged", got)
	}
	if locked.Load() == 0 {
		t.Error("nothing was locked")
	}
	b.clock.add(-100 * 365 * 24 * time.Hour)

	// The owner is helped in each of the ways there are.
	for name, help := range map[string]func() error{
		"the operator unlocks the user": func() error {
			if err := b.users.SetLocked(t.Context(), b.op, b.user, false); err != nil {
				return err
			}
			return b.check(b.at("H0", 2))
		},
		"an administrator unlocks the token": func() error {
			if err := b.UnlockToken(t.Context(), "h0"); err != nil {
				return err
			}
			return b.check(b.at("H0", 3))
		},
		"another token": func() error { return b.assign("H1", b.at("H1", 100)) },
		"an app":        func() error { _, err := b.CreateAppToken(t.Context(), b.op, b.user); return err },
		"no token":      func() error { return b.RemoveToken(t.Context(), b.op, b.user) },
	} {
		bench := newOathBench(t)
		bench.is("assign", bench.assign("H0", bench.at("H0", 0)), "")
		saved := b
		b = bench
		for range o.MaxAttempts/o.Attempts + 1 {
			guesses(30)
			b.clock.add(o.LockOut)
		}
		b.is("blocked", b.check(b.at("H0", 1)), fault.MaxAttempts)
		b.is(name, help(), "")
		b = saved
	}
}

// keysCode is a code of a token for use from many goroutines.
func (b *oathBench) keysCode(serial string, step int64) string {
	keysMutex.Lock()
	defer keysMutex.Unlock()
	return b.at(serial, step)
}

var keysMutex sync.Mutex

// Class 4, reset by an attacker: a correct code begins anew; nothing else does.
func TestOnlyACorrectCodeForgets(t *testing.T) {
	b := newOathBench(t)
	b.is("assign", b.assign("H0", b.at("H0", 0)), "")
	for step := range int64(10) {
		for range oath.DefaultSettings().Attempts - 1 {
			b.is("wrong", b.check(b.wrong("H0")), fault.InvalidCode)
		}
		b.is("right", b.check(b.at("H0", step+1)), "")
	}
	for range oath.DefaultSettings().Attempts - 1 {
		b.is("wrong", b.check(b.wrong("H0")), fault.InvalidCode)
	}
	// Taking the token away and giving it back with a replay forgets nothing.
	b.is("remove", b.RemoveToken(t.Context(), b.op, b.user), "")
	b.is("a replay", b.assign("H0", b.at("H0", 5)), fault.InvalidCode)
	b.is("the right code", b.assign("H0", b.at("H0", 11)), fault.MaxAttempts)
}

// Class 34, clock jumps: whatever the clock does, no step is accepted twice, the window
// stays narrow, and a clock that was wrong when a token was synchronised costs two codes.
func TestClockJumps(t *testing.T) {
	b := newOathBench(t)
	unlock := func() {
		t.Helper()
		if err := b.UnlockToken(t.Context(), "T0"); err != nil {
			t.Fatal(err)
		}
	}
	b.is("assign", b.assign("T0", b.at("T0", 0)), "")
	for _, jump := range []time.Duration{time.Second, time.Hour, 24 * time.Hour, 400 * 24 * time.Hour} {
		before := b.at("T0", 0)
		b.clock.add(-jump)
		b.is("back: the last code again", b.check(before), fault.InvalidCode)
		if jump > time.Minute {
			b.is("back: the code of that time", b.check(b.at("T0", 0)), fault.InvalidCode)
		}
		b.clock.add(2 * jump)
		if jump > time.Minute {
			b.is("ahead: the code of the time before", b.check(before), fault.InvalidCode)
		}
		b.clock.add(period)
		b.is("ahead: the code of now", b.check(b.at("T0", 0)), "")
		unlock()
		b.clock.add(period)
	}

	// Our clock is an hour ahead when the token is synchronised: 120 steps.
	unlock()
	b.clock.add(10 * period)
	b.is("sync", b.sync("", b.at("T0", -120), b.at("T0", -119)), fault.InvalidCode) // before the watermark
	b.clock.add(2 * time.Hour)
	b.is("sync", b.sync("", b.at("T0", -120), b.at("T0", -119)), "")
	b.clock.add(period)
	b.is("what was learned", b.check(b.at("T0", -119)), "")
	b.is("the code of our time", b.check(b.at("T0", 0)), fault.InvalidCode)
	b.clock.add(-time.Hour) // it is put right
	b.clock.add(2 * period)
	b.is("one code", b.check(b.at("T0", 0)), fault.InvalidCode)
	b.is("two codes", b.sync("T0", b.at("T0", 0), b.at("T0", 1)), "")
	b.clock.add(2 * period)
	b.is("right again", b.check(b.at("T0", 0)), "")
	// Beyond the window of two codes there is no help but from the right clock.
	b.is("far away", b.sync("", b.at("T0", 300), b.at("T0", 301)), fault.InvalidCode)
}

// A token whose clock runs away is followed step by step, as long as it is used.
func TestDriftIsLearned(t *testing.T) {
	b := newOathBench(t)
	b.is("assign", b.assign("T1", b.at("T1", 0)), "")
	highest, lowest := int64(300), int64(-50)
	if testsize.Of() < testsize.Whole {
		highest, lowest = 60, -10
	}
	for drift := int64(1); drift <= highest; drift++ {
		b.clock.add(10 * period)
		if drift%7 == 0 {
			b.is("two steps at once", b.check(b.at("T1", drift+1)), fault.InvalidCode)
		}
		b.is(fmt.Sprint("drift ", drift), b.check(b.at("T1", drift)), "")
	}
	for drift := highest - 1; drift >= lowest; drift-- {
		b.clock.add(10 * period)
		b.is(fmt.Sprint("drift ", drift), b.check(b.at("T1", drift)), "")
	}
}

// The window is as narrow as it is said to be: every step near now is tried.
func TestWindow(t *testing.T) {
	accepted := func(serial string, steps []int64, want string) {
		t.Helper()
		var got []int64
		for _, step := range steps {
			b := newOathBench(t)
			start := int64(0)
			b.is("assign", b.assign(serial, b.at(serial, start)), "")
			b.clock.add(100 * period)
			if b.check(b.at(serial, step)) == nil {
				got = append(got, step)
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: the steps %v are accepted, want %s", serial, got, want)
		}
	}
	accepted("T0", []int64{-3, -2, -1, 0, 1, 2, 3}, "[-1 0 1]")
	accepted("H0", []int64{0, 1, 2, 9, 10, 11, 12}, "[1 2 9 10]")
}

func TestExpiredTokens(t *testing.T) {
	b := newOathBench(t)
	now := b.clock.Now()
	b.stock(stock.Token{Serial: "H8", Algorithm: otp.SHA1, Digits: 6, NotBefore: now.Add(time.Hour), NotAfter: now.Add(2 * time.Hour)})
	b.is("before", b.assign("H8", b.at("H8", 0)), fault.WrongOperation)
	b.is("before, wrong", b.assign("H8", b.wrong("H8")), fault.InvalidCode)
	b.clock.add(time.Hour)
	b.is("in time", b.assign("H8", b.at("H8", 0)), "")
	b.clock.add(time.Hour)
	b.is("after", b.check(b.at("H8", 1)), fault.WrongOperation)
}

// Class 28, swapped cells: whatever cells of two tokens change places in the database,
// neither token works any more, and both can be replaced.
func TestSwappedCells(t *testing.T) {
	swap := func(column string) string {
		return fmt.Sprintf("WITH x AS MATERIALIZED (SELECT serial_key, %[1]s FROM oath_tokens WHERE serial_key IN ('h0', 'h1')) UPDATE oath_tokens SET %[1]s = (SELECT x.%[1]s FROM x WHERE x.serial_key <> oath_tokens.serial_key) WHERE serial_key IN ('h0', 'h1')", column)
	}
	for name, statements := range map[string][]string{
		"the records":         {swap("sealed")},
		"the watermarks":      {swap("watermark")},
		"a watermark lowered": {"UPDATE oath_tokens SET watermark = watermark - 1"},
		"the types":           {"UPDATE oath_tokens SET type = 'TOtp'"},
		"the owners": {
			"UPDATE oath_tokens SET user_id = NULL WHERE serial_key = 'h1'",
			"UPDATE oath_tokens SET user_id = (SELECT id FROM users WHERE login = 'Demo') WHERE serial_key = 'h0'",
			"UPDATE oath_tokens SET user_id = (SELECT id FROM users WHERE login = 'petrov') WHERE serial_key = 'h1'",
		},
		"an owner of before": { // who holds the token now would like to be them
			"UPDATE oath_tokens SET user_id = (SELECT id FROM users WHERE login = 'petrov') WHERE serial_key = 'h0'",
			"UPDATE oath_tokens SET user_id = (SELECT id FROM users WHERE login = 'Demo') WHERE serial_key = 'h1'",
		},
		// Four bytes: one random byte could be 0 already.
		"bytes": {"UPDATE oath_tokens SET sealed = CAST(substr(sealed, 1, length(sealed) - 4) || x'00000000' AS BLOB)"},
	} {
		t.Run(name, func(t *testing.T) {
			file, on := newBenchWithFile(t)
			b := newOathBenchOn(t, on)
			demo := b.demo.ID
			b.is("assign", b.assign("H0", b.at("H0", 7)), "")
			b.is("assign", b.SetToken(t.Context(), b.op, demo, oath.Codes{Serial: "H1", FirstOTP: b.at("H1", 100)}), "")
			if name == "an owner of before" {
				b.is("give back", b.RemoveToken(t.Context(), b.op, demo), "")
				b.is("give back", b.RemoveToken(t.Context(), b.op, b.user), "")
			}
			for _, s := range statements {
				exec(t, file, s)
			}
			for serial, id := range map[string]string{"H0": b.user, "H1": demo} {
				for step := range int64(120) {
					if testsize.Of() < testsize.Whole && step > 14 && (step < 98 || step > 112) {
						continue // neither before a code of an assignment nor soon after it
					}
					for _, of := range []string{"H0", "H1"} {
						if err := b.CheckOneTimePassword(t.Context(), id, b.at(of, step)); err == nil {
							t.Fatalf("%s: a code of %s is taken for %s", serial, of, id)
						}
					}
					for _, locked := range []string{"H0", "H1"} {
						if err := b.UnlockToken(t.Context(), locked); err != nil {
							t.Fatal(err)
						}
					}
				}
				if _, err := b.Token(t.Context(), b.op, id); err == nil {
					t.Errorf("%s: the token is shown as if nothing had happened", serial)
				}
			}
			if _, err := b.CreateAppToken(t.Context(), b.op, b.user); err != nil {
				t.Errorf("another token: %v", err)
			}
			if _, found, _ := b.tokens().OathTokenOf(t.Context(), demo); found {
				b.is("no token", b.RemoveToken(t.Context(), b.op, demo), "")
			}
		})
	}
}

// A failing store or vault refuses: an attempt that cannot be counted is not judged.
func TestUncountedIsNotJudged(t *testing.T) {
	b := newOathBench(t)
	b.is("assign", b.assign("H0", b.at("H0", 0)), "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.CheckOneTimePassword(ctx, b.user, b.at("H0", 1)); err == nil {
		t.Error("a canceled call is accepted")
	}
	b.messages.err = fmt.Errorf("no outbox")
	b.is("the code is still good", b.check(b.at("H0", 1)), "")
}

// Imports are idempotent and change no token that is there.
func TestImportChangesNothingThatIsThere(t *testing.T) {
	b := newOathBench(t)
	b.is("assign", b.assign("H0", b.at("H0", 0)), "")
	other := bytes.Repeat([]byte("x"), 20)
	var list []stock.Token
	for i := range 2500 {
		list = append(list, stock.Token{Serial: fmt.Sprintf("N%d", i), Algorithm: otp.SHA1, Digits: 6, Secret: other})
	}
	list = append(list, stock.Token{Serial: "h0", Algorithm: otp.SHA1, Digits: 6, Secret: other})
	known, err := b.ImportTokens(t.Context(), list)
	if err != nil || strings.Join(known, " ") != "h0" {
		t.Errorf("known: %v, %v", known, err)
	}
	known, err = b.ImportTokens(t.Context(), list)
	if err != nil || len(known) != len(list) {
		t.Errorf("known the second time: %d, %v", len(known), err)
	}
	b.is("the token is the same", b.check(b.at("H0", 1)), "")
	count := 0
	for after := ""; ; {
		page, err := b.Tokens(t.Context(), oath.Query{After: after, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if count += len(page); len(page) < 1000 {
			break
		}
		after = page[len(page)-1].Serial
	}
	if count != 2510 {
		t.Errorf("%d tokens are listed", count)
	}
	b.is("discard", b.DiscardToken(t.Context(), "n7"), "")
	b.is("discard again", b.DiscardToken(t.Context(), "N7"), fault.KeyNotFound)
	b.is("discard a user's", b.DiscardToken(t.Context(), "H0"), fault.WrongOperation)
	b.is("unlock none", b.UnlockToken(t.Context(), "N7"), fault.KeyNotFound)
}

// newBenchWithFile is newBench over a database in a file that a test spoils.
func newBenchWithFile(t testing.TB) (file string, b *bench) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "tamga.db")
	return file, newBenchOn(t, storetest.Open(t, "sqlite:"+file))
}

// exec runs a statement behind the back of the store.
func exec(t testing.TB, file, statement string) {
	t.Helper()
	pool, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// TestOathCounterMovedBack: after a restore a counter may be behind codes that were used. One code is
// then not enough, two in a row are.
func TestOathCounterMovedBack(t *testing.T) {
	file, on := newBenchWithFile(t)
	b := newOathBenchOn(t, on)
	b.is("assign", b.assign("H0", b.at("H0", 0)), "")
	exec(t, file, "UPDATE oath_tokens SET behind = TRUE")
	b.is("a code that may have been used", b.check(b.at("H0", 3)), fault.WrongOperation)
	b.is("synchronize", b.sync("H0", b.at("H0", 7), b.at("H0", 8)), "")
	b.is("the next code", b.check(b.at("H0", 9)), "")
}
