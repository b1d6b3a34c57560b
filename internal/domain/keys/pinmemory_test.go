// SPDX-License-Identifier: Apache-2.0

package keys_test

import (
	"fmt"
	"testing"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/pki/suite"
)

// A right PIN takes no attempt while nothing changed since it was tried. Every change makes the
// next use a try.
func TestPINIsRecognized(t *testing.T) {
	p, _ := manage(t)
	ctx := t.Context()
	c := p.issue(t, keys.IssueOrder{PIN: pin, Default: true})
	other := p.issue(t, keys.IssueOrder{PIN: pin})
	// use signs as a new request does: with a new snapshot.
	use := func(p *process, c *keys.Certificate, mark, pin string, attempts int64, right bool) {
		t.Helper()
		snap := p.snapshot(t, alice)
		snap.PINMark = mark
		before := p.attempts.Load()
		_, err := p.SignIn(ctx, snap, c, pin, digests(suite.GOST2012x256, "x"))
		if taken := p.attempts.Load() - before; taken != attempts || right != (err == nil) || !right && !fault.Is(err, fault.InvalidPIN) {
			t.Fatalf("%d attempts, %v; want %d, right %t", taken, err, attempts, right)
		}
	}
	use(p, c, "token", pin, 1, true)
	use(p, c, "token", pin, 0, true)
	use(p, c, "token", pin, 0, true)
	use(p, other, "token", pin, 1, true) // another key with the same PIN
	use(p, other, "token", pin, 0, true)
	use(p, c, "other token", pin, 1, true)
	use(p, c, "", pin, 1, true) // without a mark every use is a try
	use(p, c, "", pin, 1, true)
	use(p, c, "token", "135792", 1, false)
	use(p, c, "token", pin, 1, true) // an attempt was missing
	use(p, c, "token", pin, 0, true)

	second := join(t, p.db, p.clock, 2)
	use(second, c, "token", pin, 1, true) // the memory is of a process
	use(second, c, "token", pin, 0, true)
	const changed = "975313"
	if err := p.ChangePIN(ctx, as(alice), fmt.Sprint(c.ID), pin, changed); err != nil {
		t.Fatal(err)
	}
	use(second, c, "token", pin, 1, false)
	use(second, c, "token", changed, 1, true)
	use(second, c, "token", changed, 0, true)
	// The first process blocks the key: the second refuses the right PIN, too.
	for range keys.DefaultPINAttempts {
		use(p, c, "token", pin, 1, false)
	}
	use(second, c, "token", changed, 1, false)
}

// BenchmarkPIN signs with a key with a PIN: each time with a new token, and with the same one.
func BenchmarkPIN(b *testing.B) {
	p := start(b)
	c := p.issue(b, keys.IssueOrder{PIN: pin, Default: true})
	snap := p.snapshot(b, alice)
	for _, repeated := range []bool{false, true} {
		b.Run(fmt.Sprintf("repeated=%t", repeated), func(b *testing.B) {
			for i := range b.N {
				if snap.PINMark = "token"; !repeated {
					snap.PINMark = fmt.Sprint("token", i)
				}
				if _, err := p.SignIn(b.Context(), snap, c, pin, digests(suite.GOST2012x256, "x")); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
