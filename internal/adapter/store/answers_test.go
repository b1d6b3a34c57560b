// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/signing"
)

// blinking is a store whose database is unavailable for some calls.
type blinking struct {
	store.Answers
	releases atomic.Int64 // how many releases still fail
	claims   atomic.Int64 // how many claims succeed but return an error
}

var errAway = errors.New("the database is away")

func (b *blinking) ReleaseAnswer(ctx context.Context, id signing.AnswerID, lease string) error {
	if b.releases.Add(-1) >= 0 {
		return errAway
	}
	return b.Answers.ReleaseAnswer(ctx, id, lease)
}

func (b *blinking) ClaimAnswer(ctx context.Context, id signing.AnswerID, request []byte, lease string, now, until, expires time.Time) (bool, error) {
	claimed, err := b.Answers.ClaimAnswer(ctx, id, request, lease, now, until, expires)
	if b.claims.Add(-1) >= 0 {
		return false, errAway
	}
	return claimed, err
}

// TestReleaseIsTriedAgain checks that after an outage of the database a key is free as
// soon as the database is back, not at the end of the lease, and that the lease of
// another request is left alone.
func TestReleaseIsTriedAgain(t *testing.T) {
	b := &blinking{Answers: store.Answers{DB: storetest.SQLite(t)}}
	a := &signing.Answers{
		Store: b, Now: time.Now, Rand: rand.Reader,
		Rules: signing.AnswerRules{Lease: time.Hour},
	}
	begin := func(key string) (*signing.KeyedRequest, error) {
		for deadline := time.Now().Add(time.Minute); ; {
			turn, wait, err := a.Begin(t.Context(), "caller", key, []byte("request"))
			if !wait {
				return turn, err
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s stays leased", key)
			}
			time.Sleep(time.Millisecond)
		}
	}
	b.releases.Store(2)
	turn, err := begin("released")
	if err != nil {
		t.Fatal(err)
	}
	if err := turn.Release(t.Context()); !errors.Is(err, errAway) {
		t.Fatalf("got %v", err)
	}
	if turn, err = begin("released"); err != nil {
		t.Fatal(err)
	}
	defer turn.Close()

	b.claims.Store(1)
	if _, err := begin("claimed"); !errors.Is(err, errAway) {
		t.Fatalf("got %v", err)
	}
	again, err := begin("claimed")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	// Both leases are still held.
	for _, key := range []string{"released", "claimed"} {
		if _, wait, err := a.Begin(t.Context(), "caller", key, []byte("request")); !wait || err != nil {
			t.Errorf("%s: wait %v, %v", key, wait, err)
		}
	}
}

// TestTurnLostIsNoAnswer checks that a process that was frozen until its lease went to
// another one cannot record its answer, so it must not send it. Its client is asked to
// try again.
func TestTurnLostIsNoAnswer(t *testing.T) {
	now := time.Now()
	answers := store.Answers{DB: storetest.SQLite(t)}
	frozen := &signing.Answers{Store: answers, Now: func() time.Time { return now }, Rand: rand.Reader, Rules: signing.AnswerRules{Lease: time.Hour}}
	other := &signing.Answers{Store: answers, Now: func() time.Time { return now.Add(2 * time.Hour) }, Rand: rand.Reader, Rules: signing.AnswerRules{Lease: time.Hour}}
	first, _, err := frozen.Begin(t.Context(), "caller", "key", []byte("request"))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, wait, err := other.Begin(t.Context(), "caller", "key", []byte("request"))
	if err != nil || wait {
		t.Fatal(wait, err)
	}
	defer second.Close()
	record, err := first.Keep(t.Context(), []byte("first"), nil)
	if err != nil {
		t.Fatal(err)
	}
	err = record(t.Context(), nil)
	if o, is := fault.AsOutage(err); !is || o.Fault().Code != fault.Unavailable {
		t.Errorf("got %v", err)
	}
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if record, err = second.Keep(t.Context(), []byte("second"), nil); err == nil {
		err = record(t.Context(), nil)
	}
	if err != nil {
		t.Errorf("the other process: %v", err)
	}
}
