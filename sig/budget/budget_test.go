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

// Work that a document can do without has a part of what is left. When it is used up, the document goes on.
func TestPart(t *testing.T) {
	b := budget.New(context.Background(), budget.Limits{Steps: 1100, Memory: 180})
	if err := errors.Join(b.Spend(100), b.Hold(100)); err != nil {
		t.Fatal(err)
	}
	part := b.Part(3, 4)
	if err := errors.Join(part.Spend(750), part.Hold(60), part.Err()); err != nil {
		t.Fatal(err)
	}
	if err := part.Hold(1); !errors.Is(err, budget.ErrMemory) {
		t.Errorf("more memory than the part has: %v", err)
	}
	if part.Spend(0) == nil || part.Err() == nil {
		t.Error("the part goes on")
	}
	if b.Spent() != 850 || b.Held() != 160 || b.Err() != nil {
		t.Errorf("spent %d, held %d, %v", b.Spent(), b.Held(), b.Err())
	}
	if err := b.Part(1, 2).Spend(126); !errors.Is(err, budget.ErrSteps) {
		t.Errorf("more steps than the part has: %v", err)
	}
	if err := errors.Join(b.Spend(250), b.Hold(20)); err != nil {
		t.Errorf("the document: %v", err)
	}
	whole := b.Part(1, 1)
	b.Spend(1)
	if whole.Err() == nil {
		t.Error("the part of a document that failed goes on")
	}
	if (*budget.Budget)(nil).Part(1, 2).Hold(1<<60) != nil {
		t.Error("a part of no limits has limits")
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
