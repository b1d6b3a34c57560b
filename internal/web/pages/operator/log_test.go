// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"database/sql"
	"net/url"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestAuditLog reads the audit log as people do: outcomes in words, logins in place of identifiers,
// and searches in any spelling.
func TestAuditLog(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	en, ru := pagetest.Operator(w, w.Dev.Operator.Login), pagetest.Operator(w, w.Dev.Operator.Login)
	ru.Header.Set("Accept-Language", "ru")
	en.Is(en.Get(pagetest.PersonAt(tamgatest.Missing)), 404)
	const code = `<code class="hint">user_not_found</code>`
	en.Shows(en.Get("/operator/audit?what=all"), "no such user</span> "+code, "done</span></td>")
	ru.Shows(ru.Get("/operator/audit?what=views&failed=yes"), "нет такого пользователя</span> "+code, "действия скрыты")
	if p := en.Shows(en.Get("/operator/audit"), "views of pages are hidden", "SignedIn"); strings.Contains(p.Text, code) || strings.Contains(p.Text, ">GetUserById") {
		t.Errorf("the list of acts has views:\n%s", p.Text)
	}
	if p := ru.Shows(ru.Get("/operator/audit?what=views"), "выполнено"); strings.Contains(p.Text, `hint">SignedIn`) {
		t.Errorf("the list of views has acts:\n%s", p.Text)
	}
	if p := en.Shows(en.Get("/operator/audit?who=users&what=all")); strings.Contains(p.Text, `hint">GetUserById`) {
		t.Errorf("the list of users has an entry of an operator:\n%s", p.Text)
	}
	en.Shows(en.Get("/operator/audit?who=server"), "AddUser", "command on the server")
	if p := en.Shows(en.Get("/operator/audit?failed=yes&what=all"), code); strings.Contains(p.Text, "done</span></td>") {
		t.Errorf("the list of failures has a success:\n%s", p.Text)
	}
	en.Is(en.Get("/operator/audit?who=nobody"), 400)
	en.Is(en.Get("/operator/audit?what=nothing"), 400)

	find := func(b *pagetest.Browser, search url.Values) string {
		t.Helper()
		p := b.Shows(b.Get("/operator/audit?" + search.Encode()))
		_, rows, _ := strings.Cut(p.Text, "<tbody>")
		return rows
	}
	for _, search := range []url.Values{
		{"outcome": {" USER_not_found "}}, {"outcome": {"No such user"}}, {"operation": {"getuserbyid "}, "outcome": {"user_not_found"}},
		{"login": {" " + strings.ToUpper(w.Dev.Operator.Login) + "\t"}, "outcome": {"user_not_found"}},
	} {
		if rows := find(en, search); !strings.Contains(rows, code) {
			t.Errorf("%v finds %s", search, rows)
		}
	}
	if rows := find(ru, url.Values{"outcome": {"Нет такого пользователя"}}); !strings.Contains(rows, code) {
		t.Errorf("the outcome in Russian finds %s", rows)
	}
	export := en.Shows(en.Get("/operator/audit/export?format=json&outcome=no+such+user"))
	if !strings.Contains(export.Text, `"user_not_found"`) || strings.Contains(export.Text, `"ok"`) {
		t.Errorf("the file has %s", export.Text)
	}

	// Entries of a sign-in have the login. Those of an earlier release do not: the page finds it.
	signedIn := func() (rows string) {
		rows = find(en, url.Values{"operation": {"SignedIn"}})
		if !strings.Contains(rows, ">"+w.Dev.Operator.Login+"</a>") || strings.Count(rows, "<tr>") < 2 {
			t.Errorf("no login in %s", rows)
		}
		return rows
	}
	signedIn()
	if rows := find(en, url.Values{"operation": {"SignedIn"}, "login": {w.Dev.Operator.Login}}); !strings.Contains(rows, "SignedIn") {
		t.Error("a search by login does not find the sign-in")
	}
	db, err := sql.Open("sqlite", "file:"+w.Path("tamga.db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "UPDATE audit SET login = '' WHERE operation = 'SignedIn'"); err != nil {
		t.Fatal(err)
	}
	signedIn()

	// The history of a person has the same words, and the person by login.
	en.Shows(en.SendCommand(pagetest.PersonAt(w.Dev.User.ID)+"/lock", url.Values{"delay": {"0"}}))
	en.Shows(en.Get(pagetest.PersonAt(w.Dev.User.ID)+"/history"), `<a href="`+pagetest.PersonAt(w.Dev.User.ID)+`">`+w.Dev.User.Login+"</a>")
}

// TestFiltersOfLists: the parts of a list are above it, and the one that is shown is marked.
func TestFiltersOfLists(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	b := pagetest.Operator(w, w.Dev.Operator.Login)
	for at, marked := range map[string]string{
		"/operator/messages": `href="/operator/messages?state=" aria-current="page">All`, "/operator/messages?state=dead": `href="/operator/messages?state=dead" aria-current="page">Given up`,
		"/operator/tokens": `href="/operator/tokens" aria-current="page">All tokens`, "/operator/tokens?free=yes": `href="/operator/tokens?free=yes" aria-current="page">Only those in stock`,
	} {
		p := b.Shows(b.Record(at), marked)
		_, list, _ := strings.Cut(p.Text, "<main")
		if filter, end := strings.Index(list, marked), strings.Index(list, `class="empty"`); end >= 0 && filter > end {
			t.Errorf("%s: the filters are below the list", at)
		}
	}
}
