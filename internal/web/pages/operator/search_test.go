// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"database/sql"
	"html"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

var nextPage = regexp.MustCompile(`href="([^"]*)" rel="next"`)

// next returns where a list goes on.
func next(b *pagetest.Browser, p pagetest.Page) string {
	b.Helper()
	return html.UnescapeString(b.Find(p, nextPage)[1])
}

// TestSearchFar searches for one of very many people.
func TestSearchFar(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	db, err := sql.Open("sqlite", "file:"+w.Path("tamga.db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	add := func(from, to int) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), `WITH RECURSIVE n(i) AS (SELECT $1 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $2)
			INSERT INTO users (id, login, login_folded, display_name, group_name, operator, locked, lock_at, unapproved, created_at)
			SELECT 'many-' || i, 'many-' || i, 'many-' || i, 'x', 'Default', FALSE, TRUE, 0, FALSE, 0 FROM n`, from, to); err != nil {
			t.Fatal(err)
		}
	}
	add(100_000, 103_100)
	if _, err := db.ExecContext(t.Context(), `INSERT INTO users (id, login, login_folded, display_name, group_name, operator, locked, lock_at, unapproved, created_at)
		VALUES ('zzz', 'zz-rare', 'zz-rare', 'x', 'Default', FALSE, FALSE, 0, FALSE, 0), ('zzy', 'zz-foreign', 'zz-foreign', 'x', 'Other', FALSE, FALSE, 0, FALSE, 0)`); err != nil {
		t.Fatal(err)
	}
	b := pagetest.Operator(w, w.Dev.Operator.Login)
	const (
		rare = "/operator/people?column0=Login&operation0=Like&value0=zz-"
		open = "/operator/people?after=many&column0=IsLocked&operation0=Equal&value0=no"
	)
	whole := func(p pagetest.Page) {
		t.Helper()
		if strings.Contains(p.Text, "looked at") || strings.Contains(p.Text, `rel="next"`) || strings.Contains(p.Text, "zz-foreign") {
			t.Errorf("the page is not what the search of all people within reach finds: %s", p.Text)
		}
	}
	// A small installation is searched at once.
	whole(b.Shows(b.Get(rare), "zz-rare"))
	whole(b.Shows(b.Get(open), "zz-rare"))

	add(103_100, 175_000)
	p := b.Shows(b.Get(rare), "No people yet", "looked at 3,000 people", "Go on searching</a>")
	whole(b.Shows(b.Get(next(b, p)), "zz-rare"))
	none := strings.Replace(rare, "zz-", "zz-for", 1)
	whole(b.Shows(b.Get(none+"&far=yes"), "No people match"))
	whole(b.Shows(b.Get(next(b, b.Shows(b.Get(none)))), "No other people match"))
	b.Header.Set("Accept-Language", "ru")
	p = b.Shows(b.Get(rare), "Пока никого", "Просмотрено 3000 человек", "Искать дальше</a>")
	b.Shows(b.Get(next(b, p)), "zz-rare")
	b.Header.Set("Accept-Language", "en")

	// All conditions are negated, and few are not locked.
	p = b.Shows(b.Get(open), "looked at 3,000 people")
	far := 0
	for ; strings.Contains(p.Text, `rel="next"`) && far < 20; far++ {
		if p = b.Shows(b.Get(next(b, p))); far == 0 {
			b.Shows(p, "looked at 50,000 more people")
		}
	}
	whole(b.Shows(p, "zz-rare"))
	if far < 2 {
		t.Errorf("%d pages look at 75,000 people", far)
	}
	// The pages after a full one go on as far.
	p = b.Shows(b.Get("/operator/people?far=yes&column0=Login&operation0=Like&value0=many"), "many-100000")
	if next := next(b, p); !strings.Contains(next, "far=yes") || strings.Contains(p.Text, "looked at") {
		t.Errorf("a full page leads to %s", next)
	}

	// An operator of many groups whom the first people are out of reach.
	for _, change := range []string{
		"INSERT INTO user_groups (name, title, created_at) SELECT DISTINCT 'more ' || substr(id, 6), '', 0 FROM users WHERE id LIKE 'many-1000%'",
		"INSERT INTO operator_groups (user_id, group_name) SELECT '" + w.Dev.Operator.ID + "', name FROM user_groups WHERE name LIKE 'more %'",
		"UPDATE users SET group_name = 'Other', login_folded = '!' || login_folded WHERE id LIKE 'many-10%' AND id < 'many-102'",
	} {
		if _, err := db.ExecContext(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	p = b.Shows(b.Get("/operator/people"), "Few of the first 1,500 people", "Go on searching</a>")
	b.Shows(b.Get(next(b, p)), w.Dev.Operator.Login)
}
