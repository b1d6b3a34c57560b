// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"testing"
	"time"

	"tamga/pki/suite"
	"tamga/sig/budget"
)

// A document that asks for evidence does not keep the place where other documents could be worked on.
func TestAskingLeavesThePlace(t *testing.T) {
	s := &Source{}
	for name, ask := range map[string]func(context.Context) error{
		"TimeStamp":  func(ctx context.Context) error { _, err := s.TimeStamp(ctx, "", suite.Digest{}); return err },
		"Revocation": func(ctx context.Context) error { _, err := s.Revocation(ctx, nil, nil, time.Time{}); return err },
		"Issuer":     func(ctx context.Context) error { _, err := s.Issuer(ctx, nil); return err },
	} {
		places := budget.NewPlaces(1)
		ctx, b := budget.Of(budget.With(t.Context(), budget.Limits{Steps: 1 << 40, Memory: 1, Places: places}), 0)
		b.Begin()
		if err := b.Spend(1 << 20); err != nil {
			t.Fatal(err)
		}
		if err := ask(ctx); err == nil {
			t.Errorf("%s answers a question about nothing", name)
		}
		// The place may rest before it is free again.
		if _, err := places.Enter(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		b.End()
	}
}
