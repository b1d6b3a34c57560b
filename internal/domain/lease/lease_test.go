// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"tamga/internal/domain/lease"
)

func rules(failed func(error)) lease.Rules {
	return lease.Rules{Life: 15 * time.Second, Now: time.Now, Rand: rand.Reader, Failed: failed}
}

func TestNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := rules(nil).New()
		if err != nil {
			t.Fatal(err)
		}
		b, err := rules(nil).New()
		if err != nil || a.Token == b.Token || a.Token == "" || !a.Until.Equal(time.Now().Add(15*time.Second)) {
			t.Errorf("%+v and %+v, %v", a, b, err)
		}
		r := rules(nil)
		r.Rand = iotest.ErrReader(errors.New("no more"))
		if l, err := r.New(); err == nil {
			t.Errorf("%+v without random bytes", l)
		}
	})
}

// TestHold checks that a lease is extended at every third of its life, with its token, and that nothing
// is extended after the end of the work.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rules(nil)
		l, err := r.New()
		if err != nil {
			t.Fatal(err)
		}
		var ends []time.Time
		var last context.Context
		extend := func(ctx context.Context, x lease.Lease) (bool, error) {
			if x.Token != l.Token {
				t.Errorf("token %s, want %s", x.Token, l.Token)
			}
			ends, last = append(ends, x.Until), ctx
			return true, nil
		}
		began, failure := time.Now(), errors.New("failed")
		err = r.Hold(t.Context(), l, extend, func(ctx context.Context) error {
			time.Sleep(11 * time.Second)
			return failure
		})
		time.Sleep(time.Minute)
		if err != failure || len(ends) != 2 || !ends[1].Equal(began.Add(25*time.Second)) || last.Err() == nil {
			t.Errorf("%v, extended to %v, the context of the last one: %v", err, ends, last.Err())
		}
	})
}

// TestHoldLost checks that a lost lease ends the work, that a failure is not a loss, and that work
// which ends well in spite of the loss has no error: the statement that stores its result decides.
func TestHoldLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outage := errors.New("outage")
		var told []error
		r := rules(func(err error) { told = append(told, err) })
		calls := 0
		extend := func(context.Context, lease.Lease) (bool, error) {
			if calls++; calls < 3 {
				return false, outage
			}
			return false, nil
		}
		err := r.Hold(t.Context(), lease.Lease{Token: "x"}, extend, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if err != lease.ErrLost || calls != 3 || len(told) != 2 || told[0] != outage {
			t.Errorf("%v after %d calls, told %v", err, calls, told)
		}
		if err := r.Hold(t.Context(), lease.Lease{Token: "x"}, extend, func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		}); err != nil {
			t.Errorf("work that ended well: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.Hold(ctx, lease.Lease{Token: "x"}, extend, func(ctx context.Context) error {
			time.Sleep(time.Minute)
			return ctx.Err()
		}); err != context.Canceled || calls != 4 {
			t.Errorf("the end of the caller: %v after %d calls", err, calls)
		}
	})
}
