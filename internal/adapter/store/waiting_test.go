// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"slices"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/approval"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/keys"
	"tamga/internal/domain/operation"
	"tamga/internal/domain/user"
)

// TestWaitingFor reads what waits for operators of few users, whose lists begin with the users, and
// of many.
func TestWaitingFor(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			url := engine.migrated(t)
			storetest.OpenCrowd(t, url).AddUsers(2 * store.MostFew)
			db := open(t, url)
			now := time.UnixMilli(1_800_000_000_000)
			const one, two, other = 1, 2, 4 // users of the groups with these numbers
			for i, n := range []int{one, other, two} {
				id, at := storetest.CrowdID(n), now.Add(time.Duration(i)*time.Second)
				if _, err := (store.Keys{DB: db}).AddRequest(t.Context(), keys.RequestRecord{UserID: id, Status: keys.Pending, CreatedAt: at}); err != nil {
					t.Fatal(err)
				}
				o := &operation.Stored{Purpose: confirm.ForOperation, Principal: []byte{}, Operation: operation.Operation{
					ID: id, Owner: audit.Principal{UserID: id}, Action: "SignDocument", State: operation.Confirmed, CreatedAt: at, CompleteBefore: now.Add(time.Hour),
				}}
				if added, err := (store.Operations{DB: db}).AddOperation(t.Context(), o, operation.Quota{Objects: 9, Bytes: 9}); err != nil || !added {
					t.Fatal(added, err)
				}
				r := &approval.Request{ID: id, Object: id, State: approval.Waiting, CreatedAt: at, ExpiresAt: now.Add(time.Hour), Digest: []byte{byte(i)}, Sealed: []byte{1}}
				if added, err := (store.Approvals{DB: db}).AddApproval(t.Context(), r, 9); err != nil || !added {
					t.Fatal(added, err)
				}
			}
			for _, c := range []struct {
				operator string
				want     []int
			}{
				{"operator-few", []int{one, two}}, {"operator-4", []int{other}}, {"operator-5", nil}, {"operator-all", []int{one, other, two}}, {storetest.CrowdID(one), nil},
			} {
				var requests, operations, changes, people, want []string
				for _, n := range c.want {
					want = append(want, storetest.CrowdID(n))
				}
				list, err := store.Keys{DB: db}.PendingRequestsFor(t.Context(), c.operator, 0, 9, now)
				for _, r := range list {
					requests = append(requests, r.UserID)
				}
				for _, most := range []int{1, 9} {
					if n, more, err := (store.Keys{DB: db}).CountPendingFor(t.Context(), c.operator, most, now); err != nil || n != min(len(c.want), most) || more != (len(c.want) > most) {
						t.Errorf("%s has %d requests to count, %t, want %d of %d (%v)", c.operator, n, more, most, len(c.want), err)
					}
				}
				active, err2 := store.Operations{DB: db}.UnderWay(t.Context(), c.operator, operation.UnderWay{}, 9, now)
				for _, o := range active {
					operations = append(operations, o.UserID)
				}
				open, err3 := store.Approvals{DB: db}.OpenApprovalsFor(t.Context(), c.operator, "", 9, now)
				for _, h := range open {
					changes = append(changes, h.Object)
				}
				infos, err4 := store.Users{DB: db}.InfosByID(t.Context(), c.operator, []string{storetest.CrowdID(one), storetest.CrowdID(other), storetest.CrowdID(two), "unknown"}, now)
				for _, i := range infos {
					people = append(people, i.ID)
					if i.PhoneNumber == "" {
						t.Errorf("%s sees no phone of %s", c.operator, i.Login)
					}
				}
				slices.Sort(people)
				for name, got := range map[string][]string{"requests": requests, "operations": operations, "changes": changes, "people": people} {
					expected := slices.Clone(want)
					if name == "people" {
						slices.Sort(expected)
					}
					if !slices.Equal(got, expected) || err != nil || err2 != nil || err3 != nil || err4 != nil {
						t.Errorf("%s sees the %s %v, want %v (%v, %v, %v, %v)", c.operator, name, got, expected, err, err2, err3, err4)
					}
				}
				if len(want) == 0 {
					continue
				}
				next, err := store.Keys{DB: db}.PendingRequestsFor(t.Context(), c.operator, list[0].ID, 9, now)
				if err != nil || len(next) != len(want)-1 {
					t.Errorf("%s: %d requests after the first, want %d (%v)", c.operator, len(next), len(want)-1, err)
				}
				if open, err = (store.Approvals{DB: db}).OpenApprovalsFor(t.Context(), c.operator, want[0], 9, now); err != nil || len(open) != len(want)-1 {
					t.Errorf("%s: %d changes after the first, want %d (%v)", c.operator, len(open), len(want)-1, err)
				}
				if active, err = (store.Operations{DB: db}).UnderWay(t.Context(), c.operator, active[0], 9, now); err != nil || len(active) != len(want)-1 {
					t.Errorf("%s: %d operations after the first, want %d (%v)", c.operator, len(active), len(want)-1, err)
				}
			}
			if q, err := db.Queues(t.Context(), 2); err != nil || q != (store.Queues{Requests: 2, Approvals: 2, Groups: 2}) {
				t.Errorf("the queues are %+v, want two requests, changes and groups (%v)", q, err)
			}
		})
	}
}

// TestUsersOfMethod finds the users of a method that few have at once, and those of a method that
// many have page by page.
func TestUsersOfMethod(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			url := engine.migrated(t)
			c := storetest.OpenCrowd(t, url)
			c.AddUsers(2 * store.MostFew)
			last := 2*store.MostFew - 1
			c.Do("INSERT INTO user_methods (user_id, method, level) VALUES ($1, 'certificate', 1)", storetest.CrowdID(last))
			users, now := store.Users{DB: open(t, url)}, time.UnixMilli(1_800_000_000_000)
			many, err := users.ActingGroups(t.Context(), "operator-all", 0, now)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				operator, method, after string
				groups                  []string
				want                    string // identifier of the first user
				partial                 bool
			}{
				{"operator-all", "certificate", "", many, storetest.CrowdID(last), false},
				{"operator-few", "certificate", "", []string{"group 1", "group 2", "group 3", "large"}, "", false},
				{"operator-all", "password", "user", many, storetest.CrowdID(0), true},
				{"operator-few", "password", "", []string{"group 1", "group 2", "group 3", "large"}, storetest.CrowdID(1), false},
			} {
				condition := user.Condition{Column: user.ColumnAuthMethod, Operation: user.Equal, Text: c.method}
				list, next, err := users.UsersAfter(t.Context(), c.operator, c.groups, []user.Condition{condition}, c.after, 2, 1000, now)
				first := ""
				if len(list) > 0 {
					first = list[0].ID
				}
				if err != nil || first != c.want || (next != "") != c.partial {
					t.Errorf("%s, %s: %q and then %q, want %q (%v)", c.operator, c.method, first, next, c.want, err)
				}
			}
		})
	}
}
