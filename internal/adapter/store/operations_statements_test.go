// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"slices"
	"strings"
	"testing"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/signing"
)

// TestConfirmedStatements counts the statements of carrying out a confirmed operation on a document that was sent with
// it, without those about the user and the key, and of a repeated call.
func TestConfirmedStatements(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			d := newDesk(t, engine.migrated(t))
			var seen []string
			store.Statements(d.world.operations.DB, func(query string, _ []any) { seen = append(seen, strings.Join(strings.Fields(query), " ")) })
			order := d.order(d.live())
			order.Inputs = slices.DeleteFunc(order.Inputs, func(in signing.Input) bool { return in.RefID != "" })
			op, err := propose(t.Context(), d.live(), d.who, order)
			d.must(err)
			d.approve(op.ID)
			for _, c := range []struct {
				name string
				most int
			}{{"carrying out", 9}, {"a repeated call", 1}} {
				seen = nil
				done, err := d.live().Confirmed(t.Context(), d.who, confirmedOrder(op.ID))
				d.must(err)
				if len(seen) > c.most || len(seen) == 0 {
					t.Errorf("%s takes %d statements, want at most %d:\n%s", c.name, len(seen), c.most, strings.Join(seen, "\n"))
				}
				d.must(done.Close())
			}
		})
	}
}
