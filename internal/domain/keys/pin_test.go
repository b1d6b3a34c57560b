// SPDX-License-Identifier: Apache-2.0

package keys_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/vault"
	"tamga/pki/suite"
)

const pin = "135791"

// try signs with a PIN and returns the result; see outcome.
func (p *process) try(ctx context.Context, c *keys.Certificate, pin string) string {
	values, err := p.Sign(ctx, c, pin, digests(suite.GOST2012x256, "x"))
	return outcome(err, len(values) == 1)
}

// outcome returns the result of the use of a key: "ok", "wrong", "blocked", "needed", or the text of an
// error that is not a fault.
func outcome(err error, made bool) string {
	f, isFault := fault.As(err)
	switch {
	case err == nil && made:
		return "ok"
	case err != nil && !isFault:
		return err.Error()
	case err == nil || f.Code != fault.InvalidPIN || made:
		return fmt.Sprintf("unexpected: %v, made %t", err, made)
	case strings.Contains(f.Message, "wrong attempts"):
		return "blocked"
	case strings.Contains(f.Message, "wrong"):
		return "wrong"
	}
	return "needed"
}

func TestPINAttempts(t *testing.T) {
	p := start(t)
	ctx := t.Context()
	c := p.issue(t, keys.IssueOrder{PIN: pin})
	expect := func(pin, want string) {
		t.Helper()
		if got := p.try(ctx, c, pin); got != want {
			t.Fatalf("PIN %q: %s, want %s", pin, got, want)
		}
	}
	expect(pin, "ok")
	for range 2 { // a right PIN returns all attempts
		for range keys.DefaultPINAttempts - 1 {
			expect("1235", "wrong")
		}
		expect(pin, "ok")
	}
	// A PIN that no key can have costs no attempt.
	for range 3 * keys.DefaultPINAttempts {
		expect("", "needed")
		expect(strings.Repeat("1", 1000), "wrong")
	}
	expect(pin, "ok")
	for range keys.DefaultPINAttempts {
		expect("1235", "wrong")
	}
	before := p.holder.tries.Load()
	expect("1235", "blocked")
	expect(pin, "blocked")
	if p.holder.tries.Load() != before {
		t.Error("a blocked key was tried")
	}
	// Another process sees it too. Another key is not affected.
	if got := join(t, p.db, p.clock, 2).try(ctx, c, pin); got != "blocked" {
		t.Errorf("another process: %s", got)
	}
	if got := p.try(ctx, p.issue(t, keys.IssueOrder{PIN: pin}), pin); got != "ok" {
		t.Errorf("another key: %s", got)
	}
}

func TestPINAttemptsAreConfigured(t *testing.T) {
	p := start(t)
	c := p.issue(t, keys.IssueOrder{PIN: pin})
	p.PINAttempts = 1
	for _, want := range []string{"wrong", "blocked", "blocked"} {
		if got := p.try(t.Context(), c, "0"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if _, err := keys.New(keys.Options{}); err == nil {
		t.Error("a service was made of nothing")
	}
	o := p.Options
	o.PINAttempts = -1
	if _, err := keys.New(o); err == nil {
		t.Error("a service was made with -1 attempts")
	}
}

// TestWrongPINsTogether sends fifty wrong PINs at once through three processes. Exactly
// ten must be tried.
func TestWrongPINsTogether(t *testing.T) {
	p := start(t)
	processes := []*process{p, join(t, p.db, p.clock, 2), join(t, p.db, p.clock, 3)}
	c := p.issue(t, keys.IssueOrder{PIN: pin})
	answers := make([]string, 50)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = processes[i%len(processes)].try(t.Context(), c, "1235") })
	}
	all.Wait()
	count := map[string]int{}
	for _, a := range answers {
		count[a]++
	}
	if count["wrong"] != keys.DefaultPINAttempts || count["blocked"] != 50-keys.DefaultPINAttempts {
		t.Errorf("answers %v", count)
	}
	var tries int64
	for _, process := range processes {
		tries += process.holder.tries.Load()
	}
	if tries != keys.DefaultPINAttempts {
		t.Errorf("the PIN was tried %d times", tries)
	}
	if got := p.try(t.Context(), c, pin); got != "blocked" {
		t.Errorf("the right PIN afterwards: %s", got)
	}
}

// TestRightPINsTogether: a user may send many documents at once.
func TestRightPINsTogether(t *testing.T) {
	p := start(t)
	c := p.issue(t, keys.IssueOrder{PIN: pin})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if got := p.try(t.Context(), c, pin); got != "ok" {
				t.Error(got)
			}
		})
	}
	all.Wait()
}

// TestPINAttemptOutlivesItsProcess: a process that dies while it tries a PIN
// has spent the attempt.
func TestPINAttemptOutlivesItsProcess(t *testing.T) {
	p := start(t)
	c := p.issue(t, keys.IssueOrder{PIN: pin})
	dying := join(t, p.db, p.clock, 2)
	dying.holder.before = func(context.Context, []byte) error { panic("killed") }
	for range keys.DefaultPINAttempts {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the process did not die")
				}
			}()
			dying.try(t.Context(), c, "1235")
		}()
	}
	if got := p.try(t.Context(), c, pin); got != "blocked" {
		t.Errorf("afterwards: %s", got)
	}
}

// TestPINAttemptComesBack: an error that reveals nothing about the PIN costs no attempt,
// also when the client has disconnected.
func TestPINAttemptComesBack(t *testing.T) {
	p := start(t)
	c := p.issue(t, keys.IssueOrder{PIN: pin})
	broken := errors.New("the device is not there")
	for range 2 * keys.DefaultPINAttempts {
		p.holder.before = func(context.Context, []byte) error { return broken }
		if got := p.try(t.Context(), c, pin); got != broken.Error() {
			t.Fatalf("with a broken holder: %s", got)
		}
		ctx, hangUp := context.WithCancel(t.Context())
		p.holder.before = func(context.Context, []byte) error {
			hangUp()
			return ctx.Err()
		}
		if got := p.try(ctx, c, pin); got != context.Canceled.Error() {
			t.Fatalf("hung up: %s", got)
		}
	}
	p.holder.before = nil
	// Wrong attempts in between stay counted: a failure returns only its own attempt.
	for range keys.DefaultPINAttempts {
		if got := p.try(t.Context(), c, "1235"); got != "wrong" {
			t.Fatal(got)
		}
	}
	p.holder.before = func(context.Context, []byte) error { return broken }
	if got := p.try(t.Context(), c, pin); got != "blocked" {
		t.Error(got)
	}
}

// TestRightPINIsSettledForAClientThatHungUp: the attempt is returned although the client
// has disconnected.
func TestRightPINIsSettledForAClientThatHungUp(t *testing.T) {
	p := start(t)
	c := p.issue(t, keys.IssueOrder{PIN: pin})
	soft := p.holder.Holder
	for range 2 * keys.DefaultPINAttempts {
		ctx, hangUp := context.WithCancel(t.Context())
		p.holder.Holder = hangingUp{soft, hangUp}
		p.try(ctx, c, pin)
	}
	p.holder.Holder = soft
	if got := p.try(t.Context(), c, pin); got != "ok" {
		t.Error(got)
	}
}

func TestPINWaitsItsTurn(t *testing.T) {
	p := start(t)
	c := p.issue(t, keys.IssueOrder{PIN: pin})
	entered, leave := make(chan struct{}), make(chan struct{})
	p.holder.before = func(context.Context, []byte) error {
		entered <- struct{}{}
		<-leave
		return nil
	}
	first := make(chan string)
	go func() { first <- p.try(t.Context(), c, pin) }()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := p.try(ctx, c, pin); !strings.Contains(got, context.Canceled.Error()) {
		t.Errorf("a second try that gave up: %s", got)
	}
	close(leave)
	if got := <-first; got != "ok" {
		t.Errorf("the first: %s", got)
	}
}

// TestPINOutsideOfTransactions: an attempt inside a transaction could be rolled
// back with it.
func TestPINOutsideOfTransactions(t *testing.T) {
	p := start(t)
	c := p.issue(t, keys.IssueOrder{PIN: pin})
	var got string
	err := (store.Keys{DB: p.db}).Atomic(t.Context(), lock.Set{}, func(ctx context.Context) error {
		got = p.try(ctx, c, pin)
		return nil
	})
	if err != nil || !strings.Contains(got, "inside a transaction") || p.holder.tries.Load() != 0 {
		t.Errorf("%s, %v", got, err)
	}
}

// hangingUp is a holder whose client disconnects while it signs.
type hangingUp struct {
	vault.Holder
	hangUp context.CancelFunc
}

func (h hangingUp) Sign(ctx context.Context, k vault.Key, pin []byte, digests []suite.Digest) ([][]byte, error) {
	values, err := h.Holder.Sign(ctx, k, pin, digests)
	h.hangUp()
	return values, err
}
