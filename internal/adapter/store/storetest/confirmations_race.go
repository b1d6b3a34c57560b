// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"fmt"
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
		won, leased, spent := make([]bool, callers), make([]bool, callers), make([]bool, callers)
		for _, err := range together(callers, func(i int) (err error) {
			s := store.Confirmations{DB: handles[i%len(handles)]}
			m := moveTo(confirm.Confirmed, at, confirm.Challenged)
			m.Round, m.CompleteBefore = 1, at.Add(time.Minute)
			if _, won[i], err = s.MoveConfirmation(t.Context(), r.ID, m); err != nil {
				return err
			}
			lease := fmt.Sprint(i)
			if leased[i], err = s.LeaseConfirmation(t.Context(), r.ID, lease, at, at.Add(time.Minute)); err != nil || !leased[i] {
				return err
			}
			spent[i], err = s.SpendConfirmation(t.Context(), r.ID, lease, moveTo(confirm.Completed, at, confirm.Confirmed), func(context.Context) ([]byte, error) { return nil, nil })
			return err
		}) {
			must(t, err)
		}
		if count(won) != 1 || count(leased) != 1 || count(spent) != 1 {
			t.Errorf("record %d: %d confirmed, %d leased, %d spent; want one each", n, count(won), count(leased), count(spent))
		}
	}
}
