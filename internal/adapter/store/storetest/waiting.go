// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/waiting"
)

func testWaiting(t *testing.T, open func(t *testing.T) *store.DB) {
	cases{
		{"Waiting", func(t *testing.T, db *store.DB) {
			s, confirmations := store.Waiting{DB: db}, store.Confirmations{DB: db}
			group(t, db, "Default")
			a, b := person(t, db, 1), person(t, db, 2)
			r := confirmationOf(1, a.ID)
			addConfirmation(t, confirmations, r)
			mine := waiting.Topic{Kind: waiting.Confirmation, ID: r.ID, UserID: a.ID}
			theirs := mine
			theirs.UserID = b.ID
			topics := []waiting.Topic{
				mine, theirs, {Kind: waiting.Operation, ID: r.ID, UserID: a.ID}, {Kind: waiting.Devices, ID: a.ID, UserID: a.ID},
				{Kind: waiting.Requests, ID: a.ID, UserID: a.ID}, {Kind: waiting.Requests, ID: b.ID, UserID: b.ID},
			}
			states := func(now time.Time) map[waiting.Topic]string {
				t.Helper()
				found, err := s.States(t.Context(), now, topics)
				must(t, err)
				return found
			}
			found := states(start)
			if !strings.HasPrefix(found[mine], "Created 0 ") {
				t.Errorf("the confirmation is %q", found[mine])
			}
			if state, is := found[theirs]; is {
				t.Errorf("another user is told %q", state)
			}
			if state, is := found[topics[2]]; is {
				t.Errorf("an operation that is not there is %q", state)
			}
			if devices, requests := found[topics[3]], found[topics[4]]; devices != "0 0 0" || requests != "0 0 0" || found[topics[5]] != requests {
				t.Errorf("devices %q, requests %q", devices, requests)
			}
			if late := states(start.Add(1000 * time.Hour))[mine]; !strings.HasPrefix(late, "Expired ") {
				t.Errorf("after its time the confirmation is %q", late)
			}
			none, err := s.States(t.Context(), start, nil)
			if must(t, err); len(none) != 0 {
				t.Errorf("without topics there are states: %v", none)
			}
		}},
	}.run(t, open)
}
