// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestImportedList checks a list, imports what can be imported, and exports it again.
func TestImportedList(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	b := pagetest.Operator(w, w.Dev.Operator.Login)
	const list = "login;group;name;phone\nlist-anna;;Анна;+7 926 000-11-22\nlist-boris;Nowhere;Борис;\nlist-vera;Default;Вера;+7 926 000-11-22\nlist-gleb;;<b>Глеб;\n"
	b.Shows(b.Get("/operator/people"), `href="/operator/people/import"`)
	check := func(content string) pagetest.Page {
		return b.Upload("/operator/people/import", map[string]string{"group": "Default"}, pagetest.File{Field: "list", Name: "people.csv", Content: content})
	}
	p := b.Shows(check(list), "Would be registered: 2, unchanged: 0, refused: 2", `<th scope="row">3</th><td>list-boris</td>`, "group: unknown", `<th scope="row">4</th><td>list-vera</td>`, "phone", "Register 2 people")
	if found := b.Shows(b.Get("/operator/people?q=list-anna")); !strings.Contains(found.Text, "0 people found") {
		t.Error("a check has registered people")
	}
	records := html.UnescapeString(b.Find(p, regexp.MustCompile(`name="records" value="([^"]*)"`))[1])
	if records != list {
		t.Errorf("the form has the list %q", records)
	}
	form := url.Values{"records": {strings.ReplaceAll(records, "\n", "\r\n")}, "group": {"Default"}} // as browsers send it
	b.Shows(b.Post("/operator/people/import-add", form), "Registered: 2, unchanged: 0, refused: 2")
	b.Shows(b.Post("/operator/people/import-add", form), "Registered: 0, unchanged: 2, refused: 2")
	b.Shows(b.Get("/operator/people?q=list"), "2 people found", "Анна", "&lt;b&gt;Глеб")
	file := b.Shows(b.Get("/operator/people/export?q=list"))
	if want := "login,group,name,phone,email,locked\nlist-anna,Default,Анна,79260001122,,false\nlist-gleb,Default,<b>Глеб,,,false\n"; file.Text != want {
		t.Errorf("the file is %q, want %q", file.Text, want)
	}
	if again := b.Shows(check(file.Text), "Would be registered: 0, unchanged: 2, refused: 0"); strings.Contains(again.Text, "import-add") {
		t.Error("a list that adds no user can be sent")
	}
	if all := b.Shows(b.Get("/operator/people/export?column0=Login&operation0=Like&value0=list-")); all.Text != file.Text {
		t.Errorf("the file by a condition is %q", all.Text)
	}
	b.Header.Set("Accept-Language", "ru")
	b.Shows(check(list), "Можно зарегистрировать: 0, без изменений: 2, отказано: 2", "Такой группы нет")
	b.Header.Set("Accept-Language", "en")
	for content, want := range map[string]string{"": "the file is empty", "name\nx\n": "the column login is missing", "login\n\xff\n": "not UTF-8", "login\n" + strings.Repeat("x", 1<<20): "larger than 1 MiB"} {
		if p := check(content); p.Status < 400 || !strings.Contains(p.Text, want) {
			t.Errorf("a list of %.20q is %d, want %s:\n%s", content, p.Status, want, p.Text)
		}
	}
	b.Shows(check(`[{"login":"json","group":"Default"},{"login":"key","group":"Default","keys":[{"file":"/etc/passwd","password_file":"/etc/passwd"}]}]`), "Would be registered: 1, unchanged: 0, refused: 1", "a key is imported by the command")

	foreign := pagetest.Operator(w, tamgatest.Foreign) // no administrator
	foreign.Is(foreign.Get("/operator/people/import"), 403)
	foreign.Is(foreign.Post("/operator/people/import-add", form), 403)
	if page := foreign.Shows(foreign.Get("/operator/people")); strings.Contains(page.Text, "/operator/people/import") {
		t.Error("an operator who may not import is led to it")
	}
	if file := foreign.Shows(foreign.Get("/operator/people/export")); strings.Contains(file.Text, "list-anna") {
		t.Error("an operator exports people of another group")
	}
}

// TestImportWaits checks that an import waits for a second operator.
func TestImportWaits(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t, "--set", "users.second_operator=[gives_access]")
	b := pagetest.Operator(w, w.Dev.Operator.Login)
	form := url.Values{"records": {"login\nwaits\n"}, "group": {"Default"}}
	b.Is(b.Post("/operator/people/import-add", form), 400, "another operator must approve this")
	b.Shows(b.Get("/operator/people?q=waits"), "0 people found")
}
