// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestSearchBox finds people, what belongs to them, and entries of the audit log by one text.
func TestSearchBox(t *testing.T) {
	t.Parallel()
	p := pagetest.NewPerson(t, "otpviasms")
	p.Confirms(pagetest.BitSignDocument)
	p.OK(tamgatest.Ours, "POST", "/ums/user/"+p.Id+"/dn", `{"11":"Ёлкин Пётр Ильич","3":"11223344595"}`)
	p.Shows(p.Post("/certificates/request", url.Values{"suite": {"gost2001"}}), "accepted")
	signed := p.Upload("/sign", map[string]string{"certificate": "1"}, pagetest.File{Field: "file", Name: "Договор_поставки.txt", Content: "x"})
	operation := strings.TrimPrefix(p.Find(signed, pagetest.ConfirmLink)[1], "/confirm/")

	b := pagetest.Operator(p.UMS, p.Dev.Operator.Login)
	serial := p.Find(b.Get(pagetest.PersonAt(p.Id)+"/certificates"), regexp.MustCompile(`<code>([0-9A-Fa-f: ]{16,})</code>`))[1]
	at := func(text string) string { return "/operator/people?" + url.Values{"q": {text}}.Encode() }
	for _, text := range []string{"елкин петр", "ильич ё", "112-233-445 95", "+7 925 000-00-78", p.Dev.User.Login[:3]} {
		b.Shows(b.Get(at(text)), "1 person found", pagetest.PersonAt(p.Id), "Requests for certificates", "Certificates</h2>", "Operations under way", operation, `<details class="inline"><summary>`)
	}
	b.Shows(b.Get(at(serial)), "0 people found", "1 found", serial, pagetest.PersonAt(p.Id))
	b.Shows(b.Get(at(serial[:8])), "0 people found", serial)
	b.Shows(b.Get(at("поставки договор")), "0 people found", "1 found", operation)
	b.Shows(b.Get(at(strings.ToUpper(operation))), "0 people found", "1 found", operation)
	b.Is(b.Get(at("x")), 400, "Search", `value="x"`)
	b.Shows(b.Get(at("nosuchword")), "0 people found", "No person within your groups")
	for _, text := range []string{serial, operation, "поставки", "елкин"} {
		foreign := pagetest.Operator(p.UMS, tamgatest.Foreign)
		if page := foreign.Shows(foreign.Get(at(text)), "0 people found"); strings.Contains(page.Text, p.Id) || strings.Contains(page.Text, ">"+operation) {
			t.Errorf("an operator of another group finds by %q: %s", text, page.Text)
		}
	}
	// The conditions are folded unless they are used.
	b.Shows(b.Get("/operator/people?column0=Login&operation0=Like&value0=demo"), `<details class="inline" open><summary>`)

	// The audit log: the name of an action as the page shows it, a person, a result, a detail.
	log := func(b *pagetest.Browser, text, more string) string {
		t.Helper()
		page := b.Shows(b.Get("/operator/audit?" + url.Values{"q": {text}}.Encode() + more))
		_, rows, _ := strings.Cut(page.Text, "<tbody>")
		return rows
	}
	ru := pagetest.Operator(p.UMS, p.Dev.Operator.Login)
	ru.Header.Set("Accept-Language", "ru")
	p.OK(tamgatest.Ours, "POST", "/ums/user/"+p.Id+"/phones", `"79160000009"`)
	for _, c := range []struct {
		b    *pagetest.Browser
		text string
		want string
	}{
		{b, "phone add", "AddUserPhone"}, {b, "ADDUSERPHONE", "AddUserPhone"}, {b, "79160000009", "AddUserPhone"}, {b, "петр елкин", p.Dev.User.Login}, {ru, "телефон добав", "AddUserPhone"},
	} {
		if rows := log(c.b, c.text, ""); !strings.Contains(rows, c.want) {
			t.Errorf("%q finds %s", c.text, rows)
		}
	}
	if rows := log(b, "phone add", "&until=2026-01-01"); strings.Contains(rows, "AddUserPhone") {
		t.Errorf("before any entry: %s", rows)
	}
	if rows := log(b, "phone nosuchword", ""); strings.Contains(rows, "AddUserPhone") {
		t.Errorf("other words find %s", rows)
	}
	if csv := b.Shows(b.Get("/operator/audit/export?format=csv&q=79160000009")); !strings.Contains(csv.Text, "AddUserPhone") || strings.Contains(csv.Text, "OperatorPage") {
		t.Errorf("the file has %s", csv.Text)
	}
	b.Is(b.Get("/operator/audit?q=x"), 400)
}
