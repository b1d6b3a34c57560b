// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"errors"
	"image"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"tamga/sig/budget"
)

// TestImageChargedBeforeDecoded: a PNG of some KB can have millions of pixels. A large one is decoded
// while no other of the same kind of callers is, and a small one is charged to its document. What is
// refused takes no memory.
func TestImageChargedBeforeDecoded(t *testing.T) {
	pool := budget.NewPool(384<<20, 0)
	ctx := budget.Within(t.Context(), pool)
	draw := func(b *budget.Budget, width, height int) error {
		r := sample()
		r.TemplateID, r.Spending = 3, b
		_, err := tryRender(r.with(object{"Background": object{"Image": pngOf(image.NewGray(image.Rect(0, 0, width, height)))}}))
		return err
	}
	refused := func(name string, kind error, b *budget.Budget, width, height int) {
		t.Helper()
		text := pngOf(image.NewGray(image.Rect(0, 0, width, height)))
		if len(text) > 40_000 {
			t.Fatalf("%s: the image has %d characters", name, len(text))
		}
		r := sample()
		r.TemplateID, r.Spending = 3, b
		r.with(object{"Background": object{"Image": text}})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := tryRender(r)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, kind) {
			t.Errorf("%s: %v, want %v", name, err, kind)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%s took %d KiB", name, n>>10)
		}
	}
	limits := func(l budget.Limits) *budget.Budget { return budget.New(ctx, l) }
	end, err := limits(budget.Ordinary(0)).Alone()
	if err != nil {
		t.Fatal(err)
	}
	refused("a large one beside another", budget.ErrBusy, limits(budget.Ordinary(0)), 2900, 2800)
	if err := draw(limits(budget.Anonymous()), 1000, 1001); err != nil {
		t.Errorf("an anonymous caller's beside one of a caller with a token: %v", err)
	}
	if err := draw(limits(budget.Ordinary(0)), 300, 201); err != nil {
		t.Errorf("a small one beside a large one: %v", err)
	}
	end()
	if err := draw(limits(budget.Ordinary(0)), 1000, 1002); err != nil {
		t.Errorf("after the other: %v", err)
	}
	if err := draw(limits(budget.Ordinary(0)), 1000, 1003); err != nil {
		t.Errorf("one more: %v", err)
	}
	refused("a small one in a document at its limit", budget.ErrMemory, limits(budget.Limits{Steps: 1 << 20, Memory: 1 << 20}), 500, 501)
	b := limits(budget.Ordinary(0))
	if err := draw(b, 300, 202); err != nil || b.Held() != 0 {
		t.Errorf("%v, and %d bytes stay held", err, b.Held())
	}
}

// TestImageWaits: a large image waits for its turn.
func TestImageWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := budget.Within(t.Context(), budget.NewPool(1<<20, time.Second))
		end, err := budget.New(ctx, budget.Ordinary(0)).Alone()
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			r := sample()
			r.TemplateID, r.Spending = 3, budget.New(ctx, budget.Ordinary(0))
			_, err := tryRender(r.with(object{"Background": object{"Image": pngOf(image.NewGray(image.Rect(0, 0, 1000, 1004)))}}))
			done <- err
		}()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
