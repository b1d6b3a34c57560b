// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/confirm"
)

// ConfirmedOnce answers and spends the same records by many callers over several handles of
// a database: each is confirmed once and spent once.
func ConfirmedOnce(t *testing.T, handles ...*store.DB) {
	const callers = 64
	at := start.Add(time.Minute)
	for n := 1; n <= 3; n++ {
		r := confirmationOf(n, "user")
		s := store.Confirmations{DB: handles[0]}
		addConfirmation(t, s, r)
		if _, _, err := s.BeginChallenge(t.Context(), r.ID, challengeOf(at)); err != nil {
			t.Fatal(err)
		}
		won, spent := make([]bool, callers), make([]bool, callers)
		for _, err := range together(callers, func(i int) (err error) {
			s := store.Confirmations{DB: handles[i%len(handles)]}
			m := moveTo(confirm.Confirmed, at, confirm.Challenged)
			m.Round, m.CompleteBefore = 1, at.Add(time.Minute)
			if _, won[i], err = s.MoveConfirmation(t.Context(), r.ID, m); err != nil {
				return err
			}
			_, spent[i], err = s.MoveConfirmation(t.Context(), r.ID, moveTo(confirm.Completed, at, confirm.Confirmed))
			return err
		}) {
			must(t, err)
		}
		if count(won) != 1 || count(spent) != 1 {
			t.Errorf("record %d: %d confirmed, %d spent; want one each", n, count(won), count(spent))
		}
	}
}
