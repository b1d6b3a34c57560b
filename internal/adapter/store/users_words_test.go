// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/user"
)

// TestWordsInC searches in a database whose functions know no letters but those of ASCII.
func TestWordsInC(t *testing.T) {
	cluster := storetest.PostgreSQL(t)
	storetest.Words(t, func(t *testing.T) *store.DB {
		return storetest.Open(t, cluster.Database(t, "TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'"))
	})
}

// TestWordsOfSources changes sources that have a word in common: the word stays while one of them has it,
// and no word of a deleted user stays.
func TestWordsOfSources(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			url := engine.migrated(t)
			users := store.Users{DB: open(t, url)}
			pool, err := sql.Open(engine.driver, engine.source(url))
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			words := func(want string) {
				t.Helper()
				rows, err := pool.QueryContext(t.Context(), "SELECT word FROM user_words ORDER BY word")
				if err != nil {
					t.Fatal(err)
				}
				defer rows.Close()
				var list []string
				for rows.Next() {
					var w string
					if err := rows.Scan(&w); err != nil {
						t.Fatal(err)
					}
					list = append(list, w)
				}
				if got := strings.Join(list, " "); got != want || rows.Err() != nil {
					t.Errorf("words %q, want %q, %v", got, want, rows.Err())
				}
			}
			do := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			do(users.AddGroup(t.Context(), user.Group{Name: "Default"}))
			do(users.AddUser(t.Context(), user.User{ID: "u", Login: "anna", DisplayName: "Anna Ель", Group: "Default"}, "anna"))
			words("anna ель")
			do(users.SetDisplayName(t.Context(), "u", "Ива"))
			words("anna ива")
			do(users.SetLogin(t.Context(), "u", "ива", "ива"))
			words("ива")
			do(users.SetDisplayName(t.Context(), "u", ""))
			words("ива")
			if err := users.Atomic(t.Context(), lock.User("u"), func(ctx context.Context) error {
				do(users.SetDisplayName(ctx, "u", "gone"))
				return errors.New("undone")
			}); err == nil {
				t.Error("the change was kept")
			}
			words("ива")
			do(users.DeleteUser(t.Context(), "u"))
			words("")
		})
	}
}

// TestRarestTerm checks that a search of two frequent beginnings begins with the rarer one, however many words both have.
func TestRarestTerm(t *testing.T) {
	for _, engine := range engines(t) {
		t.Run(engine.name, func(t *testing.T) {
			users := store.Users{DB: open(t, engine.migrated(t))}
			if err := users.AddGroup(t.Context(), user.Group{Name: "Default"}); err != nil {
				t.Fatal(err)
			}
			for i := range 12 { // all have a word with "ал", a third one with "зи"
				name := "Алла"
				if i%3 == 0 {
					name += " Зина"
				}
				id := fmt.Sprint("u", i)
				if err := users.AddUser(t.Context(), user.User{ID: id, Login: id, DisplayName: name, Group: "Default"}, id); err != nil {
					t.Fatal(err)
				}
			}
			for _, c := range []struct {
				bounds []int
				terms  []user.Term
				want   int
			}{
				{[]int{3, 10}, []user.Term{{"ал"}, {"зи"}}, 1}, {[]int{3, 10}, []user.Term{{"зи"}, {"ал"}}, 0}, {[]int{3}, []user.Term{{"ал"}, {"зина"}}, 1}, {[]int{3}, []user.Term{{"ал"}, {"зи"}}, 0},
				{[]int{3, 10}, []user.Term{{"ал"}, {"зи"}, {"u5"}}, 2},
			} {
				if got, err := store.RarestTerm(t.Context(), users, c.bounds, c.terms); err != nil || got != c.want {
					t.Errorf("%v: of %v it is number %d, want %d, %v", c.bounds, c.terms, got, c.want, err)
				}
			}
		})
	}
}
