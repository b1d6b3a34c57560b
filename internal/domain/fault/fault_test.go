// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"tamga/internal/domain/fault"
)

func TestError(t *testing.T) {
	cause := errors.New("row 7 is gone")
	base := fault.Newf(fault.InvalidPIN, "%d attempts left", 3)
	e := base.With(cause)
	if base.Err != nil {
		t.Error("With changed the fault it was called on")
	}
	if got, want := e.Error(), "invalid_pin: 3 attempts left: row 7 is gone"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	if got, want := base.Error(), "invalid_pin: 3 attempts left"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	wrapped := fmt.Errorf("signing: %w", e)
	if got, ok := fault.As(wrapped); !ok || got != e {
		t.Errorf("As found %v", got)
	}
	if !fault.Is(wrapped, fault.InvalidPIN) || fault.Is(wrapped, fault.NotFound) || fault.Is(nil, fault.InvalidPIN) {
		t.Error("Is does not distinguish codes")
	}
	if !errors.Is(wrapped, cause) {
		t.Error("the cause is lost")
	}
}

func TestCommits(t *testing.T) {
	refusal := fault.New(fault.InvalidPIN, "wrong")
	for _, c := range []struct {
		name string
		err  error
		want bool
	}{
		{"success", nil, true},
		{"error", errors.New("plain"), false},
		{"fault", refusal, true},
		{"wrapped fault", fmt.Errorf("signing: %w", refusal), true},
		{"marked", fault.Rollback(refusal), false},
		{"marked and wrapped", fmt.Errorf("signing: %w", fault.Rollback(refusal)), false},
		{"marked cause", refusal.With(fault.Rollback(errors.New("plain"))), false},
		{"marked success", fault.Rollback(nil), true},
	} {
		if got := fault.Commits(c.err); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if !fault.Is(fault.Rollback(refusal), fault.InvalidPIN) {
		t.Error("the mark hides the fault")
	}
}
