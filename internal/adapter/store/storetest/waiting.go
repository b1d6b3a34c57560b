// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/domain/approval"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/user"
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
			// What waits for operators, in their groups.
			users := store.Users{DB: db}
			group(t, db, "Other")
			var offices []waiting.Topic
			for id, groups := range map[string][]string{"ours": {"Default"}, "theirs": {"Other"}} {
				must(t, users.AddUser(t.Context(), user.User{ID: id, Login: id, Group: "Other", Operator: true, CreatedAt: start}, id))
				must(t, users.SetOperatorGroups(t.Context(), id, groups))
			}
			for _, id := range []string{"ours", "theirs", a.ID} {
				offices = append(offices, waiting.Topic{Kind: waiting.Office, ID: id, UserID: id})
			}
			office := func() (list []string) {
				t.Helper()
				found, err := s.States(t.Context(), start, offices)
				must(t, err)
				for _, o := range offices {
					list = append(list, found[o])
				}
				return list
			}
			before := office()
			id, err := store.Keys{DB: db}.AddRequest(t.Context(), keys.RequestRecord{UserID: a.ID, Status: keys.Pending, CreatedAt: start, DER: []byte{1}})
			must(t, err)
			asked := office()
			if before[0] == asked[0] || before[1] != asked[1] || before[2] != "" || asked[2] != "" {
				t.Errorf("before a request operators are told %q, with it %q", before, asked)
			}
			said(t, true)(store.Keys{DB: db}.Decide(t.Context(), id, keys.Rejected, 0, "", start))
			if after := office(); after[0] != before[0] {
				t.Errorf("after the decision the operator is told %q, want %q", after[0], before[0])
			}
			said(t, true)(store.Approvals{DB: db}.AddApproval(t.Context(), &approval.Request{ID: "1", Object: a.ID, State: approval.Waiting, CreatedAt: start, ExpiresAt: start.Add(time.Hour), Digest: []byte{1}, Sealed: []byte{1}}, 9))
			if changed := office(); changed[0] == before[0] || changed[1] != before[1] {
				t.Errorf("with a change that waits operators are told %q", changed)
			}
			none, err := s.States(t.Context(), start, nil)
			if must(t, err); len(none) != 0 {
				t.Errorf("without topics there are states: %v", none)
			}
		}},
	}.run(t, open)
}
