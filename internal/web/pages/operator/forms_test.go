// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestRefusedForms checks that a form of operators that is refused is shown again with what was
// typed, without secrets and codes, and that other refusals lead to the page above.
func TestRefusedForms(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	id, login, _, _ := w.Register()
	b, at := pagetest.Operator(w, w.Dev.Operator.Login), pagetest.PersonAt(id)
	b.Is(b.SendCommand("/operator/people/new", url.Values{"login": {"kept<b>"}, "phone": {"12"}, "group": {"Default"}}), 400,
		`id="phone-problem"`, `The phone number is not right`, `value="kept&lt;b&gt;"`, `value="12"`, `action="/operator/people/new"`)
	p := b.SendCommand(at+"/token-set", url.Values{"serial": {"H-77"}, "first": {"123456"}})
	b.Is(p, 400, `value="H-77"`, "no such token")
	if strings.Contains(p.Text, "123456") {
		t.Error("a code is shown again")
	}
	p = b.Upload("/operator/tokens/token-import", map[string]string{"tokens": "<KeyContainer/>", "password": "secret of the file"})
	b.Is(p, 400, "&lt;KeyContainer/&gt;</textarea>")
	if strings.Contains(p.Text, "secret of the file") {
		t.Error("a password is shown again")
	}
	b.Is(b.Post(at+"/delete", url.Values{"confirm_name": {"unknown"}}), 400, `id="confirm_name-problem"`, "nothing was done", "To confirm, type <code>"+login)
	b.Is(b.Post(at+"/lock", url.Values{"delay": {"no"}}), 400, "want a number of hours", `<select id="delay"`)
	p = b.Post(at+"/policy-access", url.Values{"actions": {"ChangePin", "Nothing"}})
	b.Is(p, 400, `value="ChangePin" checked`)
	if strings.Count(p.Text, " checked") != 1 {
		t.Error("a choice that was not made is kept")
	}
	b.Is(b.Get("/operator/audit?operation=AddGroup&since=yesterday"), 400, `value="AddGroup"`, "want a date such as")
	for of, back := range map[string]string{
		pagetest.PersonAt(tamgatest.Missing): "/operator/people", pagetest.PersonAt(tamgatest.Missing) + "/lock?of=1": pagetest.PersonAt(tamgatest.Missing), "/operator/approvals/" + tamgatest.Missing: "/operator/approvals",
		"/operator/messages?state=x": "/operator/messages", "/operator/messages/preview?message=x": "/operator/messages",
	} {
		if p := b.Get(of); p.Status < 400 || !strings.Contains(p.Text, `<a class="btn" href="`+back+`"`) {
			t.Errorf("%s is answered %d and does not lead to %s:\n%s", of, p.Status, back, p.Text)
		}
	}
	foreign := pagetest.Operator(w, tamgatest.Foreign)
	foreign.Is(foreign.Get("/operator/audit"), 403, `<a class="btn" href="/operator"`)
	foreign.Is(foreign.Get("/operator/groups/group-add"), 403, `<a class="btn" href="/operator/groups"`)
	plain := pagetest.New(t, w.Server)
	plain.Shows(plain.SignIn("/start", tamgatest.Plain, tamgatest.Password))
	plain.Is(plain.Get("/operator"), 403, `<a class="btn" href="/start"`)
}

// TestSearchWords searches people with the words of the reader, in both languages.
func TestSearchWords(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t, "--set", "messages.time_zone=UTC") // days begin in the zone of the reader
	id, login, _, _ := w.Register()
	b := pagetest.Operator(w, w.Dev.Operator.Login)
	b.Shows(b.SendCommand(pagetest.PersonAt(id)+"/method-add-password", nil))
	b.Shows(b.SendCommand(pagetest.PersonAt(id)+"/lock", url.Values{"delay": {"0"}}))
	ru := pagetest.Operator(w, w.Dev.Operator.Login)
	ru.Header.Set("Accept-Language", "ru")
	created := w.OK(tamgatest.Ours, "GET", "/ums/user/"+id, "").Body
	_, day, _ := strings.Cut(created, `"CreationDate":"`)
	day = day[:len("2026-01-31")]
	dotted := day[8:] + "." + day[5:7] + "." + day[:4]
	for _, c := range []struct {
		who                      *pagetest.Browser
		column, operation, value string
		found                    bool
	}{
		{b, "IsLocked", "Equal", "yes", true}, {b, "IsLocked", "Like", "Yes", true}, {b, "IsLocked", "Equal", "no", false}, {b, "IsLocked", "Equal", "True", true},
		{ru, "IsLocked", "Like", "Да", true}, {ru, "IsLocked", "NotEqual", "да", false}, {ru, "PhoneNumberConfirmed", "Equal", "нет", true}, {ru, "EmailConfirmed", "Equal", "да", false},
		{b, "CreateDate", "Equal", day, true}, {b, "CreateDate", "Like", dotted, true}, {b, "CreateDate", "Equal", "2020-01-31", false}, {b, "CreateDate", "Greater", "31.01.2020", true},
		{b, "AuthMethod", "Equal", "Password", true}, {ru, "AuthMethod", "Like", "пароль", true}, {ru, "AuthMethod", "Equal", "Сертификат", false},
	} {
		at := "/operator/people?" + url.Values{"column0": {"Login"}, "operation0": {"Equal"}, "value0": {login}, "column1": {c.column}, "operation1": {c.operation}, "value1": {c.value}}.Encode()
		if p := c.who.Shows(c.who.Get(at)); strings.Contains(p.Text, pagetest.PersonAt(id)+`"`) != c.found {
			t.Errorf("%s %s %q: found %t", c.column, c.operation, c.value, !c.found)
		}
	}
	b.Is(b.Get("/operator/people?column0=IsLocked&operation0=Equal&value0=perhaps&value1=kept"), 400, "needs yes or no", `value="perhaps"`, `value="kept"`, `<option value="IsLocked" selected>`)
	ru.Is(ru.Get("/operator/people?column0=CreateDate&operation0=Equal&value0=31.02.2026"), 400, "нужна дата")
	b.Is(b.Get("/operator/people?column0=Login&operation0=Greater&value0=a"), 400, "choose another comparison")
	b.Is(b.Get("/operator/people?column0=Nothing&value0=a"), 400)
}

// TestApproval checks that a record says when a person waits for approval, and leads to what ends
// that. Unlocking does not.
func TestApproval(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	id, login, _, _ := w.Register()
	b, at := pagetest.Operator(w, w.Dev.Operator.Login), pagetest.PersonAt(id)
	leads := func(p pagetest.Page, commands ...string) {
		t.Helper()
		for _, command := range []string{"approve", "disapprove", "lock", "unlock"} {
			if strings.Contains(p.Text, `action="`+at+"/"+command+`"`) != slices.Contains(commands, command) {
				t.Errorf("%s does not lead to %v alone: %s", p.At, commands, command)
			}
		}
	}
	leads(b.Shows(b.Record(at), "may sign in"), "disapprove", "lock")
	leads(b.Shows(b.SendCommand(at+"/disapprove", nil), "waits for approval"), "approve", "lock")
	b.Shows(b.Get("/operator/people?value0="+login), "waits for approval</span>")
	leads(b.Shows(b.SendCommand(at+"/lock", url.Values{"delay": {"0"}}), "waits for approval"), "approve", "unlock")
	leads(b.Shows(b.SendCommand(at+"/approve", nil), "The account is locked"), "disapprove", "unlock")
	leads(b.Shows(b.SendCommand(at+"/unlock", nil), "may sign in"), "disapprove", "lock")
}
