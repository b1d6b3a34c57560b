// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"context"
	"errors"
	"testing"

	"tamga/sig/budget"
)

// An exceeded limit stays exceeded, for every handle on the same budget.
func TestBounds(t *testing.T) {
	ctx := budget.With(context.Background(), budget.Limits{Steps: 10, Memory: 100})
	_, a := budget.Of(ctx, 1<<30)
	_, b := budget.Of(ctx, 0)
	if err := errors.Join(a.Spend(4), b.Spend(6), a.Hold(100)); err != nil {
		t.Fatal(err)
	}
	a.Release(60)
	if b.Spent() != 10 || b.Held() != 40 || b.Err() != nil {
		t.Errorf("spent %d, held %d, %v", b.Spent(), b.Held(), b.Err())
	}
	var e *budget.Exceeded
	if err := b.Hold(61); !errors.Is(err, budget.ErrMemory) || !errors.As(err, &e) || e.Limit != 100 {
		t.Errorf("%v", err)
	}
	b.Release(1000)
	for _, err := range []error{a.Err(), a.Spend(0), a.Hold(0), b.Spend(1000)} {
		if !errors.Is(err, budget.ErrMemory) {
			t.Errorf("%v", err)
		}
	}
	other := budget.New(context.Background(), budget.Limits{Steps: 10})
	if err := other.Spend(11); !errors.Is(err, budget.ErrSteps) {
		t.Errorf("%v", err)
	}
	if none := (*budget.Budget)(nil); none.Spend(1<<60) != nil || none.Hold(1<<60) != nil || none.Err() != nil {
		t.Error("a nil budget has limits")
	}
}

// When the context is canceled, the work ends within a limited number of steps.
func TestContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	_, b := budget.Of(ctx, 0)
	cancel()
	spent := 0
	for ; spent < 1<<20; spent++ {
		if err := b.Spend(1); err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			break
		}
	}
	if spent > 1<<16 {
		t.Errorf("the work continued for %d steps", spent)
	}
}
