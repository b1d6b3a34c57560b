// SPDX-License-Identifier: Apache-2.0

package signin_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/password"
	tokens "tamga/internal/domain/token"
	"tamga/internal/domain/user"
)

// callerTrusted returns a context of a caller with a degree of trust.
func callerTrusted(t *testing.T, trust password.Trust) context.Context {
	return password.WithVisitor(t.Context(), password.Visitor{Key: fmt.Sprint("caller ", trust), Trust: trust})
}

// Lock-out of others: wrong passwords of untrusted callers do not keep a user out who comes from a known
// address, through a client that proved itself, or with a session. Trusted callers have a bound of
// their own, and one success forgives its own count alone.
func TestFailuresOfUntrustedAndTrustedCallersAreSeparate(t *testing.T) {
	b := newBench(t)
	op := b.operator(t, "op", "Default")
	id := b.register(t, op, map[user.IdentifierType]string{user.Login: "ivanov"})
	if err := b.SetPassword(t.Context(), id, secret); err != nil {
		t.Fatal(err)
	}
	untrusted, known, proved := callerTrusted(t, password.Untrusted), callerTrusted(t, password.Known), callerTrusted(t, password.Proved)
	admitted := func(name string, ctx context.Context, want bool) {
		t.Helper()
		if _, err := b.grant(ctx, "ivanov", secret); (err == nil) != want || err != nil && code(t, err) != tokens.InvalidGrant {
			t.Errorf("%s: %v, want admitted: %t", name, err, want)
		}
	}
	guess := func(n int, callers ...context.Context) {
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() { b.grant(callers[i%len(callers)], "ivanov", "wrong password") })
		}
		all.Wait()
	}
	looksLocked := func(want bool) {
		t.Helper()
		if info, err := b.users.ByID(t.Context(), op, id); err != nil || info.Locked != want {
			t.Errorf("the account looks locked: %t, %v; want %t", info.Locked, err, want)
		}
	}

	guess(12, untrusted)
	admitted("an untrusted caller after guesses of untrusted callers", untrusted, false)
	admitted("a known address after guesses of untrusted callers", known, true)
	admitted("a client that proved itself after guesses of untrusted callers", proved, true)
	admitted("an untrusted caller after a success of a trusted caller", untrusted, false)
	looksLocked(true)
	me := audit.Principal{UserID: id, Login: "ivanov"}
	if err := b.ChangePassword(t.Context(), me, secret, secret+"2"); err != nil {
		t.Errorf("a change of the password after guesses of untrusted callers: %v", err)
	}
	if err := b.SetPassword(t.Context(), id, secret); err != nil {
		t.Fatal(err)
	}
	b.clock.add(15 * time.Minute)
	looksLocked(false)

	// All trusted callers share one bound, the change of a password too.
	guess(12, known, proved)
	admitted("a known address after guesses of trusted callers", known, false)
	admitted("a client that proved itself after guesses of trusted callers", proved, false)
	if err := b.ChangePassword(t.Context(), me, secret, secret+"2"); !fault.Is(err, fault.AuthenticationFailed) {
		t.Errorf("a change of the password after guesses of trusted callers: %v", err)
	}
	looksLocked(true)
	admitted("an untrusted caller after guesses of trusted callers", untrusted, true)
	admitted("a known address after a success of an untrusted caller", known, false)
	b.clock.add(15 * time.Minute)
	admitted("a known address after the time", known, true)

	// An operator's unlock ends both locks.
	guess(24, untrusted, known)
	admitted("an untrusted caller after guesses of both", untrusted, false)
	admitted("a known address after guesses of both", known, false)
	if err := b.users.SetLocked(t.Context(), op, id, false); err != nil {
		t.Fatal(err)
	}
	looksLocked(false)
	admitted("an untrusted caller after the unlock", untrusted, true)
	admitted("a known address after the unlock", known, true)
}
