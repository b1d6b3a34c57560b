// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/user"
)

// TestUsersFound searches a column of many users at once.
func TestUsersFound(t *testing.T) {
	const number = 6_000 // with two phones each, so a part of a phone selects more than 10,000 rows
	like := func(column user.Column, text string) user.Condition {
		return user.Condition{Column: column, Operation: user.Like, Text: text}
	}
	few := []string{"user1", "user2", "user3", "user5001", "user5002", "user5003"} // of groups 1 to 3
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			url := engine.migrated(t)
			storetest.OpenCrowd(t, url).AddUsers(number)
			users := store.Users{DB: open(t, url)}
			now := time.UnixMilli(1_800_000_000_000)
			for than, want := range map[int]bool{0: true, number: true, number + storetest.CrowdGroups + 1: true, number + storetest.CrowdGroups + 2: false, 1 << 30: false} {
				if more, err := users.MoreUsers(t.Context(), than); more != want || err != nil {
					t.Errorf("more than %d users: %v, %v", than, more, err)
				}
			}
			// How many there were is remembered: the next search need not look again.
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if more, err := users.MoreUsers(ended, number); !more || err != nil {
				t.Errorf("there were more users: %v, %v", more, err)
			}
			for i, c := range []struct {
				operator    string
				conditions  []user.Condition
				after       string
				limit, more int
				able        bool
				want        []string // logins
			}{
				{"operator-all", []user.Condition{like(user.ColumnRdn, "ser 5999")}, "", 51, 0, true, []string{"user5999"}},
				{"operator-all", []user.Condition{like(user.ColumnRdn, "ser 5999")}, "", 51, 100, true, []string{"user5999"}},
				{"operator-all", []user.Condition{like(user.ColumnRdn, "ser 5999")}, "", 51, 1 << 20, false, nil}, // a walk ends as soon
				{"operator-all", []user.Condition{like(user.ColumnRdn, "ser 5999")}, "user5999", 51, 0, true, nil},
				{"operator-all", []user.Condition{like(user.ColumnLogin, "r599")}, "user5996", 2, 0, true, []string{"user5997", "user5998"}},
				{"operator-all", []user.Condition{like(user.ColumnPhoneNumber, "7"), like(user.ColumnEmail, "user5999@")}, "", 51, 0, true, []string{"user5999"}},
				{"operator-all", []user.Condition{like(user.ColumnPhoneNumber, "7")}, "", 51, 0, false, nil}, // more than 10,000 rows
				{"operator-few", []user.Condition{like(user.ColumnPhoneNumber, "7")}, "", 51, 0, true, few},  // which says nothing about the others
				{"operator-few", []user.Condition{like(user.ColumnPhoneNumber, "7")}, "user2", 3, 0, true, few[2:5]},
				{"operator-few", []user.Condition{like(user.ColumnPhoneNumber, "7")}, "", 51, 20, false, nil}, // a walk along the groups ends as soon
				{"operator-few", []user.Condition{like(user.ColumnEmail, "user5999@")}, "", 51, 0, true, nil},
				{"operator-few", []user.Condition{like(user.ColumnEmail, "user5003@"), {Column: user.ColumnIsLocked, Operation: user.Equal}}, "", 51, 0, true, []string{"user5003"}},
				{"operator-few", []user.Condition{{Column: user.ColumnIsLocked, Operation: user.Equal, Truth: true}}, "", 51, 0, true, nil},
				{"operator-few", []user.Condition{{Column: user.ColumnCreated, Operation: user.Greater, Time: time.UnixMilli(1_700_000_000_000 + 5001)}}, "", 51, 0, true, few[4:]},
				{"operator-few", []user.Condition{{Column: user.ColumnLogin, Operation: user.NotEqual, Text: "user1"}}, "", 51, 0, false, nil},
				{"operator-few", []user.Condition{{Column: user.ColumnPhoneConfirmed, Operation: user.Equal, Truth: true}}, "", 51, 0, false, nil},
				{"operator-few", []user.Condition{{Column: user.ColumnGroup, Operation: user.Equal, Text: "group 1", Groups: []string{"group 1"}}}, "", 51, 0, false, nil},
				{"operator-few", nil, "", 51, 0, false, nil},
				{storetest.CrowdID(1), []user.Condition{like(user.ColumnLogin, "user")}, "", 51, 0, true, nil}, // no operator
			} {
				groups, err := users.ActingGroups(t.Context(), c.operator, 0, now)
				if err != nil {
					t.Fatal(err)
				}
				list, able, err := users.UsersFound(t.Context(), c.operator, groups, c.conditions, c.after, c.limit, c.more, now)
				var logins []string
				for _, u := range list {
					logins = append(logins, u.Login)
				}
				if able != c.able || !slices.Equal(logins, c.want) || err != nil {
					t.Errorf("row %d, %s %+v: %v, %v, %v", i, c.operator, c.conditions, logins, able, err)
				}
				if !c.able {
					continue
				}
				// The client has gone.
				gone, leave := context.WithCancel(t.Context())
				leave()
				if _, _, err := users.UsersFound(gone, c.operator, groups, c.conditions, c.after, c.limit, c.more, now); !errors.Is(err, context.Canceled) {
					t.Errorf("row %d, after its caller has gone: %v", i, err)
				}
			}
		})
	}
}
