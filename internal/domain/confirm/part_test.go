// SPDX-License-Identifier: Apache-2.0

package confirm_test

import (
	"slices"
	"testing"

	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
)

// TestAnswerOnPage: a user who types a code may decline some of the documents, and not all.
func TestAnswerOnPage(t *testing.T) {
	w := open(t, nil)
	ctx := t.Context()
	r, code := w.bySMS()
	if r.Documents < 2 {
		t.Fatalf("the record has %d documents, want several", r.Documents)
	}
	every := make([]int, r.Documents)
	for i := range every {
		every[i] = i
	}
	for _, wrong := range [][]int{{-1}, {r.Documents}, every, append(slices.Clone(every), 0)} {
		_, err := w.AnswerOnPage(ctx, ivan, r.RefID, confirm.OnPage{Answer: code, Declined: wrong})
		w.is("declined", err, fault.InvalidParameters)
	}
	if got := w.stored(r.ID); got.State != confirm.Challenged || got.Attempts != 0 {
		t.Fatalf("a refused call has left %s with %d attempts", got.State, got.Attempts)
	}
	p, err := w.AnswerOnPage(ctx, ivan, r.RefID, confirm.OnPage{Answer: code, Declined: []int{1, 1}})
	w.must(err)
	if p.Record.State != confirm.Confirmed || !slices.Equal(w.stored(r.ID).Declined, []int{1}) {
		t.Errorf("the record is %s and has %v declined, want document 1", p.Record.State, w.stored(r.ID).Declined)
	}
	_, err = w.Decline(ctx, ivan, r.ID)
	w.is("declining what is confirmed", err, fault.InvalidTransaction)
	_, err = w.Decline(ctx, anna, r.ID)
	w.is("declining what another has", err, fault.InvalidTransaction)
}
