// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
	"tamga/internal/domain/audit"
	"tamga/internal/domain/user"
	"tamga/internal/testsize"
)

// Names of the people of BenchmarkFindByWords. Each has a surname, a given name and a patronymic, in shares that
// fall as those of real names do, so that searches for the first ones find very many people.
var (
	crowdSurnames = []string{"Иванов", "Смирнов", "Кузнецов", "Попов", "Васильев", "Петров", "Соколов", "Михайлов", "Новиков", "Фёдоров", "Морозов", "Волков", "Алексеев", "Лебедев", "Семёнов", "Егоров", "Павлов", "Козлов", "Степанов", "Николаев"}
	crowdGiven    = []string{"Александр", "Иван", "Сергей", "Анна", "Мария", "Пётр", "Елена", "Фёкла", "Артём", "Ольга", "Зинаида", "Тимур"}
	crowdFathers  = []string{"Иванович", "Александрович", "Сергеевич", "Петрович", "Фёдорович", "Ильич", "Тимурович", "Артёмович"}
)

// crowdPerson returns the name of person i.
func crowdPerson(i int) string {
	h := uint64(i)*0x9E3779B97F4A7C15 + 1
	pick := func(list []string) string { // the first is as frequent as the last half together
		h ^= h >> 29
		h *= 0xBF58476D1CE4E5B9
		n := int(h>>33) % (len(list) * len(list))
		return list[len(list)-1-isqrt(n)]
	}
	surname := pick(crowdSurnames)
	if h>>20%4 == 0 {
		surname = fmt.Sprintf("%sский-%d", surname[:len(surname)-2], i%5000) // many surnames are rare
	}
	return surname + " " + pick(crowdGiven) + " " + pick(crowdFathers)
}

func isqrt(n int) int {
	r := 0
	for (r+1)*(r+1) <= n {
		r++
	}
	return r
}

// BenchmarkFindByWords searches among a million people, or as many as TAMGA_PEOPLE says; with -short among
// ten thousand.
//
// \tgo test -run '^$' -bench FindByWords -benchtime 20x ./internal/adapter/store
func BenchmarkFindByWords(b *testing.B) {
	number := 1_000_000
	if testsize.Of() == testsize.Quick {
		number = 10_000
	} else if n, err := strconv.Atoi(os.Getenv("TAMGA_PEOPLE")); err == nil {
		number = n
	}
	for _, engine := range []struct {
		name, driver string
		url          func(b *testing.B) string
	}{
		{"SQLite", "sqlite", func(b *testing.B) string { return "sqlite:" + filepath.Join(b.TempDir(), "tamga.db") }},
		{"PostgreSQL", "pgx", func(b *testing.B) string {
			return storetest.OwnPostgreSQL(b, "fsync=off", "max_wal_size=8GB", "shared_buffers=512MB").Database(b, "TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'")
		}},
	} {
		b.Run(engine.name, func(b *testing.B) {
			url := engine.url(b)
			db := storetest.Open(b, url)
			addPeople(b, engine.driver, strings.TrimPrefix(url, "sqlite:"), number)
			users := store.Users{DB: db}
			service := &user.Service{Store: users, SearchStore: users, Now: time.Now}
			person := crowdPerson(number / 2)
			for _, text := range []string{
				"ив", "фе", "ив ал", "ал зи", "ива пет", "иванов иван", "тимур фекла", "зинаида тимурович кузнецов", person, "p" + strconv.Itoa(number/2), "+7 900 " + strconv.Itoa(1_000_000+number/2), "нетникого", "иванов нетникого",
			} {
				for _, who := range []string{"all", "few"} {
					b.Run(strings.ReplaceAll(text, " ", "_")+"/"+who, func(b *testing.B) {
						var all []time.Duration
						found := 0
						for b.Loop() {
							begun := time.Now()
							m, err := service.FindByWords(context.Background(), audit.Principal{UserID: who}, text, "", 50)
							if err != nil {
								b.Fatal(err)
							}
							all, found = append(all, time.Since(begun)), len(m.IDs)
						}
						slices.Sort(all)
						b.ReportMetric(all[len(all)/2].Seconds()*1e3, "p50-ms")
						b.ReportMetric(all[len(all)-1].Seconds()*1e3, "max-ms")
						b.ReportMetric(float64(found), "found")
					})
				}
			}
		})
	}
}

// addPeople fills a database past the store, with the words that the store would write.
func addPeople(b *testing.B, driver, source string, number int) {
	pool, err := sql.Open(driver, source)
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	do := func(query string, args ...any) {
		if _, err := pool.ExecContext(b.Context(), query, args...); err != nil {
			b.Fatalf("%.200s: %v", query, err)
		}
	}
	if driver == "sqlite" {
		do("PRAGMA synchronous = OFF")
		do("PRAGMA cache_size = -200000")
	}
	const groups = 1000
	do("INSERT INTO user_groups (name, title, created_at) VALUES ('Operators', '', 0)")
	for g := range groups {
		do("INSERT INTO user_groups (name, title, created_at) VALUES ($1, '', 0)", fmt.Sprint("group ", g))
	}
	rows := func(table string, columns int, list [][]any) {
		for part := range slices.Chunk(list, 1000/columns) {
			var query strings.Builder
			var args []any
			for i, r := range part {
				query.WriteString(map[bool]string{true: "(", false: ", ("}[i == 0])
				for j, v := range r {
					args = append(args, v)
					fmt.Fprintf(&query, "%s$%d", map[bool]string{true: "", false: ", "}[j == 0], len(args))
				}
				query.WriteString(")")
			}
			do("INSERT INTO "+table+" VALUES "+query.String(), args...)
		}
	}
	const userTable = "users (id, login, login_folded, display_name, group_name, operator, locked, lock_at, unapproved, created_at)"
	rows(userTable, 10, [][]any{{"all", "all", "all", "", "Operators", true, false, 0, false, 0}, {"few", "few", "few", "", "Operators", true, false, 0, false, 0}})
	do("INSERT INTO operator_groups (user_id, group_name) SELECT 'all', name FROM user_groups")
	do("INSERT INTO operator_groups (user_id, group_name) VALUES ('few', 'group 1'), ('few', 'group 2')")
	const portion = 50_000
	for from := 0; from < number; from += portion {
		do("BEGIN")
		var people, words, texts [][]any
		for i := from; i < min(from+portion, number); i++ {
			id, login, name := storetest.CrowdID(i), "p"+strconv.Itoa(i), crowdPerson(i)
			people = append(people, []any{id, login, login, name, fmt.Sprint("group ", i%groups), false, false, 0, false, 0})
			phone := fmt.Sprintf("7900%07d", 1_000_000+i)
			all := map[string]bool{}
			for source, of := range map[string][]string{
				"login": user.SearchWords(login), "shown": user.SearchWords(name), "name": user.SearchWords(name, "ООО «Рога и копыта»", "Специалист", fmt.Sprintf("%011d", 20_000_000_000+i*37), fmt.Sprintf("%012d", 770_000_000_000+i)),
				"contact PhoneNumber " + phone: user.PhoneWords(phone), "contact EmailAddress " + login: user.SearchWords(login + "@example.ru"),
			} {
				texts = append(texts, []any{id, source, " " + strings.Join(of, " ")})
				for _, w := range of {
					all[w] = true
				}
			}
			for w := range all {
				words = append(words, []any{w, id})
			}
		}
		for _, list := range [][][]any{words, texts, people} {
			slices.SortFunc(list, func(a, b []any) int {
				return strings.Compare(a[0].(string)+"\x00"+a[1].(string), b[0].(string)+"\x00"+b[1].(string))
			})
		}
		rows(userTable, 10, people)
		rows("user_words (word, user_id)", 2, words)
		rows("user_texts (user_id, source, words)", 3, texts)
		do("COMMIT")
	}
	do("ANALYZE")
}
