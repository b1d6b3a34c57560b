// SPDX-License-Identifier: Apache-2.0

package umsapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/tamgatest"
)

// contactJSON is UserContactInfo as a client reads it.
type contactJSON struct {
	Type                             string
	Contact                          string
	Confirmed, Primary, Notification bool
	Usages                           []struct{ Type, Title, Description string }
}

// TestUserManagement walks through every row of the specification's tables.
func TestUserManagement(t *testing.T) {
	tamgatest.OnBothEngines(t, userManagement, tamgatest.WithPasskeys()...)
}

func userManagement(t *testing.T, w *tamgatest.UMS) {
	w.Walk(t, "users", func(t *testing.T) { walkUsers(w, t) })
	w.Walk(t, "names", func(t *testing.T) { walkNames(w, t) })
	w.Walk(t, "logins", func(t *testing.T) { walkLogins(w, t) })
	w.Walk(t, "passwords", func(t *testing.T) { walkPasswords(w, t) })
	w.Walk(t, "phones", func(t *testing.T) {
		walkContacts(w, t, "phones", "PhoneNumber", "89161230001", "79161230001", "phonenumber")
	})
	w.Walk(t, "emails", func(t *testing.T) {
		walkContacts(w, t, "emails", "EmailAddress", "Ivan.Petrov@Почта.рф", "Ivan.Petrov@почта.рф", "email")
	})
	w.Walk(t, "methods", func(t *testing.T) { walkMethods(w, t) })
	w.Walk(t, "oath", func(t *testing.T) { walkOath(w, t) })
	w.Walk(t, "locks", func(t *testing.T) { walkLocks(w, t) })
	w.Scan()
	for _, o := range operations(t) {
		p, done := pattern(o.path), false
		for _, a := range w.Asked() {
			done = done || a.Status == 200 && a.Method == o.method && p.MatchString(a.Path)
		}
		if !done {
			t.Errorf("%s was not answered with success: %s %s", o.name, o.method, o.path)
		}
	}
}

func walkUsers(w *tamgatest.UMS, t *testing.T) {
	var id string
	w.OK(tamgatest.Ours, "POST", "/ums/user", `{"Login":"Sidorov"}`).Into(t, &id)
	var second struct{ ID string }
	w.OK(tamgatest.Ours, "POST", "/ums/user/register", `{"login":"second","EMAIL":"second@example.ru"}`).Into(t, &second)
	var third string
	w.OK(tamgatest.TwoGroup, "POST", "/ums/user/?groupName=Other", `{"1":"+7 (916) 000-00-03"}`).Into(t, &third)
	if a := w.Ask(tamgatest.TwoGroup, "POST", "/ums/user", `{"Login":"nowhere"}`); a.Status != 400 || !strings.Contains(a.Body, "wrong_operation") || !strings.Contains(a.Body, "groupName") {
		t.Errorf("without a group by an operator of two: %v", a)
	}
	if a := w.Ask(tamgatest.Ours, "POST", "/ums/user?groupName=Other", `{"Login":"nowhere"}`); a.Status != 400 {
		t.Errorf("into a group that is not the operator's: %v", a)
	}
	if a := w.Ask(tamgatest.Ours, "POST", "/ums/user", `{"Login":"SIDOROV"}`); a.Status != 400 || !strings.Contains(a.Body, "duplicate_login") {
		t.Errorf("a login that is taken: %v", a)
	}

	var unique struct {
		Result map[string]struct {
			Data                     string
			IsUnique, UniqueRequired bool
		}
	}
	w.OK(tamgatest.Ours, "POST", "/ums/user/isunique?issuerName=realsts", `{"Login":"sidorov","Email":"new@example.ru","PhoneNumber":"79160000003"}`).Into(t, &unique)
	for kind, free := range map[string]bool{"Login": false, "Email": true, "PhoneNumber": false} {
		if r := unique.Result[kind]; r.IsUnique != free || !r.UniqueRequired {
			t.Errorf("%s: %+v", kind, r)
		}
	}

	var info map[string]any
	w.OK(tamgatest.Ours, "GET", "/ums/user/"+strings.ToUpper(id), "").Into(t, &info)
	created, _ := info["CreationDate"].(string)
	if created == "" {
		t.Errorf("no CreationDate in %v", info)
	}
	want := map[string]any{
		"UserId": id, "Login": "Sidorov", "PhoneNumber": nil, "Email": nil, "PhoneConfirmed": false, "EmailConfirmed": false,
		"DisplayName": "Sidorov", "DistinguishName": "CN=Sidorov", "AccountLocked": false, "Group": "Default",
		"CreationDate": created, "LockoutDate": nil, "LastLoginDate": "0001-01-01T00:00:00.000Z",
	}
	if d := cmp.Diff(want, info); d != "" {
		t.Error(d)
	}
	for _, query := range []string{"type=Login&value=sidorov", "type=0&value=SIDOROV", "Type=login&Value=Sidorov&issuerName=realsts"} {
		w.OK(tamgatest.Ours, "GET", "/ums/user?"+query, "").Into(t, &info)
		if info["UserId"] != id {
			t.Errorf("%s finds %v", query, info["UserId"])
		}
	}
	w.OK(tamgatest.Ours, "GET", "/ums/user/?type=Email&value=SECOND%40example.ru", "").Into(t, &info)
	if info["UserId"] != second.ID {
		t.Errorf("by e-mail: %v", info)
	}

	w.OK(tamgatest.Ours, "PATCH", "/ums/user/"+id, `{"PropertyType":0,"Value":"Сидоров С. С."}`)
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/", `{"PropertyType":"AccountLockedState","Value":"True"}`)
	w.OK(tamgatest.Ours, "GET", "/ums/user/"+id, "").Into(t, &info)
	if info["DisplayName"] != "Сидоров С. С." || info["AccountLocked"] != true || info["LockoutDate"] == nil {
		t.Errorf("after the changes: %v", info)
	}
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id, `{"PropertyType":1,"Value":false}`)

	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/approve?approved=false", "")
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/approve?approved=True", "{}")

	var page struct {
		UserInfos                 []map[string]any
		TotalCount, AffectedCount int
	}
	w.OK(tamgatest.Ours, "POST", "/ums/users", `{"StartPosition":0,"EndPosition":10,"Filters":[{"Column":"Login","Operation":"Like","Value":"sidor"}],"OrderColumn":0,"OrderDirection":"DESC"}`).Into(t, &page)
	if page.TotalCount != 1 || page.AffectedCount != 1 || len(page.UserInfos) != 1 || page.UserInfos[0]["UserId"] != id {
		t.Errorf("found %+v", page)
	}
	w.OK(tamgatest.Ours, "POST", "/ums/users", "").Into(t, &page)
	for _, u := range page.UserInfos {
		if u["Group"] != "Default" {
			t.Errorf("the list shows a user of another group: %v", u)
		}
	}
	if a := w.Ask(tamgatest.Ours, "POST", "/ums/users", `{"StartPosition":10,"EndPosition":1}`); a.Status != 400 || !strings.Contains(a.Body, "error_bad_bounds") {
		t.Errorf("bad bounds: %v", a)
	}
	var policy struct {
		AvaliableIdentifierTypes []string
		AuthMethods              []struct{ Identifier, Type string }
		Rdns                     []struct {
			ID               int `json:"Id"`
			StringIdentifier string
			Required         bool
		}
		Groups []struct {
			IdentityProviderName string
			GroupList            []string
		}
	}
	w.OK(tamgatest.Ours, "GET", "/ums/policy/", "").Into(t, &policy)
	if len(policy.AvaliableIdentifierTypes) != 3 || len(policy.AuthMethods) < 8 || len(policy.Rdns) != 16 || len(policy.Groups) != 1 ||
		fmt.Sprint(policy.Groups[0]) != "{realsts [Default]}" {
		t.Errorf("policy: %+v", policy)
	}

	w.OK(tamgatest.Ours, "DELETE", "/ums/user/"+id, "")
	if a := w.Ask(tamgatest.Ours, "GET", "/ums/user/"+id, ""); a.Status != 404 || !strings.Contains(a.Body, `"Message":"User not found"`) {
		t.Errorf("deleted: %v", a)
	}
	w.OK(tamgatest.Ours, "POST", "/ums/user", `{"Login":"sidorov"}`) // the name is free again
}

func walkNames(w *tamgatest.UMS, t *testing.T) {
	id, login, _, _ := w.Register()
	base := "/ums/user/" + id
	var name map[string]string
	w.OK(tamgatest.Ours, "GET", base+"/dn", "").Into(t, &name)
	if d := cmp.Diff(map[string]string{"11": login}, name); d != "" {
		t.Error(d)
	}
	w.OK(tamgatest.Ours, "POST", base+"/dn", `{"11":"Иванов, \"Иван\"","9":"ООО Ромашка","6":"RU"}`)
	w.OK(tamgatest.Ours, "GET", base+"/dn/", "").Into(t, &name)
	if d := cmp.Diff(map[string]string{"11": `Иванов, "Иван"`, "9": "ООО Ромашка", "6": "RU"}, name); d != "" {
		t.Error(d)
	}
	for _, wrong := range []string{`{"9":"no name"}`, `{"11":"x","6":"RUS"}`, `{"11":"x","77":"y"}`, `{"11":"x\u0000"}`, `["11"]`} {
		if a := w.Ask(tamgatest.Ours, "POST", base+"/dn", wrong); a.Status != 400 {
			t.Errorf("a name %s: %v", wrong, a)
		}
	}
	var unique struct{ IsUnique, UniqueRequired bool }
	w.OK(tamgatest.Ours, "POST", "/ums/user/dn/isunique", `{"11":"Иванов, \"Иван\"","9":"ООО Ромашка","6":"RU"}`).Into(t, &unique)
	if unique.IsUnique {
		t.Error("a name that a user has is unique")
	}

	var group string
	w.OK(tamgatest.Ours, "GET", base+"/group", "").Into(t, &group)
	if group != "Default" {
		t.Errorf("group %q", group)
	}
	if a := w.Ask(tamgatest.Ours, "POST", base+"/group?groupName=Other", `{}`); a.Status != 400 {
		t.Errorf("into a group that is not the operator's: %v", a)
	}
	if a := w.Ask(tamgatest.TwoGroup, "POST", base+"/group?groupName=Other", `{"6":"RUS"}`); a.Status != 400 {
		t.Errorf("with a wrong component: %v", a)
	}
	w.OK(tamgatest.Ours, "GET", base, "") // the refusal moved no user
	w.OK(tamgatest.TwoGroup, "POST", base+"/group?groupName=Other", `{"9":"ООО Лютик"}`)
	w.OK(tamgatest.TwoGroup, "GET", base+"/dn", "").Into(t, &name)
	if name["9"] != "ООО Лютик" || name["6"] != "RU" {
		t.Errorf("after the move: %v", name)
	}
	if a := w.Ask(tamgatest.Ours, "GET", base, ""); a.Status != 404 {
		t.Errorf("after the move: %v", a)
	}
	w.OK(tamgatest.Foreign, "GET", base, "")
}

func walkLogins(w *tamgatest.UMS, t *testing.T) {
	id, login, _, _ := w.Register()
	base := "/ums/user/" + id + "/login"
	logins := func() string {
		t.Helper()
		return w.OK(tamgatest.Ours, "GET", base, "").Body
	}
	expect := func(want string) {
		t.Helper()
		if d := cmp.Diff(want, logins()); d != "" {
			t.Error(d)
		}
	}
	expect(`[{"Login":"` + login + `","IssuerName":"realsts"}]`)
	w.OK(tamgatest.Ours, "POST", base+"/local?newLogin=renamed", "")
	w.OK(tamgatest.Ours, "POST", base, `{"Login":"ivan@corp","IssuerName":"https://adfs.example.ru"}`)
	expect(`[{"Login":"renamed","IssuerName":"realsts"},{"Login":"ivan@corp","IssuerName":"https://adfs.example.ru"}]`)
	w.OK(tamgatest.Ours, "POST", base, `{"Login":"again","IssuerName":"realsts"}`)
	w.OK(tamgatest.Ours, "POST", base, `{"Login":"","IssuerName":"https://adfs.example.ru"}`)
	expect(`[{"Login":"again","IssuerName":"realsts"}]`)
	w.OK(tamgatest.Ours, "POST", base, `{"Login":"ivan@corp","IssuerName":"https://adfs.example.ru"}`)
	w.OK(tamgatest.Ours, "DELETE", base, "") // the operator came in by realsts: there is no external login of that
	w.OK(tamgatest.Ours, "DELETE", base+"/?issuerName="+url.QueryEscape("https://adfs.example.ru"), "")
	expect(`[{"Login":"again","IssuerName":"realsts"}]`)
	w.OK(tamgatest.Ours, "DELETE", base+"/local", "")
	expect(`[]`)
	w.OK(tamgatest.Ours, "POST", base+"/local?newLogin=back", "")
	w.OK(tamgatest.Ours, "DELETE", base+"?issuerName=realsts", "")
	expect(`[]`)
	if a := w.Ask(tamgatest.Ours, "POST", base+"/local", ""); a.Status != 400 {
		t.Errorf("no login: %v", a)
	}
	if a := w.Ask(tamgatest.Ours, "POST", base+"/local?newLogin=operator", ""); a.Status != 400 || !strings.Contains(a.Body, "duplicate_login") {
		t.Errorf("the login of an operator: %v", a)
	}
}

func walkPasswords(w *tamgatest.UMS, t *testing.T) {
	id, login, phone, email := w.Register()
	base := "/ums/user/" + id + "/password"
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/authmethod/password", "")
	signIn := func(password string) {
		t.Helper()
		if status, body := w.Grant(login, password); status != 200 {
			t.Errorf("the new password is answered %d %s", status, body)
		}
	}
	var password string
	w.OK(tamgatest.Ours, "POST", base, "").Into(t, &password)
	signIn(password)
	token := w.TokenOf(login, password)
	w.Tokens["just signed in"] = token
	var next string
	w.OK(tamgatest.Ours, "POST", base+"/", "{}").Into(t, &next)
	if a := w.Ask("just signed in", "GET", "/ums/policy", ""); a.Status != 401 {
		t.Errorf("a token from before the reset: %v", a)
	}
	if status, _ := w.Grant(login, password); status != 400 || next == password {
		t.Error("the old password is good still")
	}

	for _, path := range []string{base + "/send/sms", base + "/send/email", base + "/send/sms?destination=" + phone} {
		want := "invalid_phone"
		if strings.Contains(path, "email") {
			want = "invalid_email"
		}
		if a := w.Ask(tamgatest.Ours, "POST", path, ""); a.Status != 400 || !strings.Contains(a.Body, want) {
			t.Errorf("to a contact that is not confirmed: %v", a)
		}
	}
	signIn(next) // the refusals changed nothing
	for _, c := range []string{"/phones/" + phone, "/emails/" + url.PathEscape(email)} {
		w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+c+"/confirm", "{}")
		w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+c+"/secondaryauth", "{}")
	}
	sent := func(to string) string {
		t.Helper()
		list := w.Captured()
		for i := len(list) - 1; i >= 0; i-- {
			if strings.Contains(list[i].Text, "Добавлено или заменено средство") {
				continue // the notice of the new password
			}
			for _, word := range strings.FieldsFunc(list[i].Text, func(r rune) bool { return strings.ContainsRune(" \n\t:,", r) }) {
				if list[i].To == to {
					if status, _ := w.Grant(login, strings.TrimSuffix(word, ".")); status == 200 {
						return strings.TrimSuffix(word, ".")
					}
				}
			}
			if list[i].To == to {
				break
			}
		}
		t.Errorf("no password for %s was sent", to)
		return "no password"
	}
	// One wrong word counts as a wrong password, so the lock-out must not come.
	w.OK(tamgatest.Ours, "POST", base+"/send/sms", "")
	bySMS := sent(phone)
	w.OK(tamgatest.Ours, "POST", base+"/send/email?destination="+url.QueryEscape(strings.ToUpper(email)), "")
	byMail := sent(email)
	w.AddSecrets(bySMS, byMail)

	var response struct {
		Password, PrintFormName *string
		PrintForm               []byte
	}
	w.OK(tamgatest.Ours, "POST", base+"/send", `{"NotificationDestinations":[{"Type":"PhoneNumber"},{"Type":"EmailAddress","Value":"`+email+`"}],"ReturnRawPassword":true,"ReturnPrintedPasswordFormat":"Html"}`).Into(t, &response)
	if response.Password == nil || response.PrintFormName == nil || !strings.Contains(string(response.PrintForm), *response.Password) {
		t.Errorf("sent, shown and printed: %+v", response)
	} else {
		signIn(*response.Password)
	}
	if a := w.OK(tamgatest.Ours, "POST", base+"/send", `{"NotificationDestinations":[{"Type":"PhoneNumber"}]}`); a.Body != "{}" {
		t.Errorf("only sent: %v", a)
	}
	for format, kind := range map[string]string{"Html": "text/html", "Xml": "xml", "Pdf": "application/pdf", "Word": "application/msword"} {
		a := w.OK(tamgatest.Ours, "POST", base+"/print?format="+format, "")
		if !strings.Contains(a.Header.Get("Content-Type"), kind) || !strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment") ||
			!strings.Contains(a.Header.Get("Content-Disposition"), "filename") || len(a.Body) < 100 {
			t.Errorf("%s: %v, %d bytes", format, a.Header, len(a.Body))
		}
	}
	for _, wrong := range []string{"/print", "/print?format=Exe", "/send"} {
		a := w.Ask(tamgatest.Ours, "POST", base+wrong, "")
		if wrong == "/send" {
			continue // an order of nothing: whatever it is, it is no internal error (scan)
		}
		if a.Status != 400 {
			t.Errorf("%v", a)
		}
	}
	var unnamed string
	w.OK(tamgatest.Ours, "POST", "/ums/user", `{"Login":"nameless"}`).Into(t, &unnamed)
	w.OK(tamgatest.Ours, "DELETE", "/ums/user/"+unnamed+"/login/local", "")
	if a := w.Ask(tamgatest.Ours, "POST", "/ums/user/"+unnamed+"/password/send", `{"ReturnRawPassword":true}`); a.Status != 400 || !strings.Contains(a.Body, "invalid_login") {
		t.Errorf("a user with nothing to sign in with: %v", a)
	}
}

func walkContacts(w *tamgatest.UMS, t *testing.T, plural, kind, given, shown, legacy string) {
	id, _, phone, email := w.Register()
	primary := phone
	if kind == "EmailAddress" {
		primary = email
	}
	all := "/ums/user/" + id + "/" + plural
	one := all + "/" + url.PathEscape(given)
	describe := func(a tamgatest.Answer) string {
		t.Helper()
		var c contactJSON
		a.Into(t, &c)
		usages := []string{}
		for _, u := range c.Usages {
			usages = append(usages, u.Type)
		}
		return fmt.Sprintf("%s %s %t %t %t %v", c.Type, c.Contact, c.Confirmed, c.Primary, c.Notification, usages)
	}
	expect := func(want string, a tamgatest.Answer) {
		t.Helper()
		if got := describe(a); got != kind+" "+shown+" "+want {
			t.Errorf("%s %s: got %s, want %s", a.Method, a.Path, got, want)
		}
	}
	quoted, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/ums/user/phones/", "/ums/user/" + plural + "/"} {
		var unique struct{ IsUnique bool }
		w.OK(tamgatest.Ours, "POST", path+url.PathEscape(given)+"/isunique", "").Into(t, &unique)
		if !unique.IsUnique {
			t.Errorf("%s is not unique under %s", given, path)
		}
		w.OK(tamgatest.Ours, "POST", path+url.PathEscape(primary)+"/isunique/", "").Into(t, &unique)
		if unique.IsUnique {
			t.Errorf("%s is unique under %s", primary, path)
		}
	}
	expect("false false false []", w.OK(tamgatest.Ours, "POST", all, string(quoted)))
	for _, action := range []string{"primary", "notification"} {
		if a := w.Ask(tamgatest.Ours, "POST", one+"/"+action, "true"); a.Status != 400 || !strings.Contains(a.Body, "contact_confirmation_required") {
			t.Errorf("a role for a contact that is not confirmed: %v", a)
		}
	}
	if a := w.Ask(tamgatest.Ours, "POST", one+"/secondaryauth", "{}"); a.Status != 400 || !strings.Contains(a.Body, "contact_confirmation_required") {
		t.Errorf("a role for a contact that is not confirmed: %v", a)
	}
	w.OK(tamgatest.Ours, "POST", one+"/requireconfirm", "")
	code := w.Code(shown)
	if a := w.Ask(tamgatest.Ours, "POST", one+"/submitconfirm", `"000000"`); code != "000000" && (a.Status != 400 || !strings.Contains(a.Body, "invalid_confirmation_code")) {
		t.Errorf("a wrong code: %v", a)
	}
	if a := w.Ask(tamgatest.Ours, "PATCH", one+"/requireconfirm", "{}"); a.Status != 429 {
		t.Errorf("another code at once: %v", a)
	}
	expect("true false false []", w.OK(tamgatest.Ours, "PATCH", one+"/submitconfirm/", `"`+code+`"`))
	if a := w.Ask(tamgatest.Ours, "POST", one+"/submitconfirm", `"`+code+`"`); a.Status != 400 {
		t.Errorf("the code a second time: %v", a)
	}
	expect("true true false []", w.OK(tamgatest.Ours, "POST", one+"/primary", "true"))
	expect("true false false []", w.OK(tamgatest.Ours, "PATCH", one+"/primary", `"False"`))
	expect("true true false []", w.OK(tamgatest.Ours, "PATCH", one+"/primary/?primary=true", ""))
	expect("true true true []", w.OK(tamgatest.Ours, "PATCH", one+"/notification", "true"))
	expect("true true true []", w.OK(tamgatest.Ours, "POST", one+"/notification", "true"))
	w.OK(tamgatest.Ours, "PATCH", one+"/secondaryauth", "")
	w.OK(tamgatest.Ours, "POST", one+"/secondaryauth", "{}")
	var list []contactJSON
	w.OK(tamgatest.Ours, "GET", all, "").Into(t, &list)
	if len(list) != 2 || list[0].Contact != primary || list[0].Primary || len(list[1].Usages) != 1 || list[1].Usages[0].Type != "OTP" {
		t.Errorf("list: %+v", list)
	}
	if a := w.Ask(tamgatest.Ours, "POST", one+"/primary", ""); a.Status != 400 {
		t.Errorf("neither true nor false: %v", a)
	}

	// A code by the other method, and confirmation on the operator's word.
	former := all + "/" + url.PathEscape(primary)
	w.OK(tamgatest.Ours, "PATCH", former+"/requireconfirm", "{}")
	w.OK(tamgatest.Ours, "POST", former+"/submitconfirm", `"`+w.Code(primary)+`"`)
	w.OK(tamgatest.Ours, "POST", former+"/confirm", "")
	w.OK(tamgatest.Ours, "PATCH", former+"/confirm/", "{}")
	w.OK(tamgatest.Ours, "DELETE", former+"/", "")
	if a := w.Ask(tamgatest.Ours, "DELETE", former, ""); a.Status != 400 {
		t.Errorf("deleting what is gone: %v", a)
	}

	// The legacy view of one contact.
	info := w.OK(tamgatest.Ours, "GET", "/ums/user/"+id+"/"+legacy, "")
	if !strings.Contains(info.Body, shown) || !strings.Contains(info.Body, `"Confirmed":true`) {
		t.Errorf("legacy: %v", info)
	}
	method := "otpviasms"
	if kind == "EmailAddress" {
		method = "otpviaemail"
	}
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/authmethod/"+method+"?level=2", "{}")
	if a := w.Ask(tamgatest.Ours, "DELETE", "/ums/user/"+id+"/"+legacy, ""); a.Status != 400 || !strings.Contains(a.Body, "wrong_operation") {
		t.Errorf("legacy delete while the method is on: %v", a)
	}
	w.OK(tamgatest.Ours, "DELETE", "/ums/user/"+id+"/authmethod/"+method, "")
	w.OK(tamgatest.Ours, "DELETE", "/ums/user/"+id+"/"+legacy, "")
	if a := w.OK(tamgatest.Ours, "GET", "/ums/user/"+id+"/"+legacy+"/", ""); !strings.Contains(a.Body, "null") {
		t.Errorf("legacy of none: %v", a)
	}
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/"+legacy, `"`+primary+`"`)
	if a := w.OK(tamgatest.Ours, "GET", "/ums/user/"+id+"/"+legacy, ""); !strings.Contains(a.Body, primary) || !strings.Contains(a.Body, `"Confirmed":false`) {
		t.Errorf("legacy after setting: %v", a)
	}
}

func walkMethods(w *tamgatest.UMS, t *testing.T) {
	id, login, _, _ := w.Register()
	base := "/ums/user/" + id + "/authmethod"
	if a := w.OK(tamgatest.Ours, "GET", base, ""); a.Body != "[]" {
		t.Errorf("a new user has methods: %v", a)
	}
	var password string
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/password", "").Into(t, &password)
	if status, body := w.Grant(login, password); status != 400 || !strings.Contains(string(body), "invalid_grant") {
		t.Errorf("without a method: %d %s", status, body)
	}
	names := []string{"idonly", "password", "cert", "external", "otpviasms", "otpviaemail", "oath", "mydss", "passkey"}
	for i, name := range names {
		path := base + "/" + name
		if i >= 4 {
			path += "?level=" + fmt.Sprint(i%4)
		}
		w.OK(tamgatest.Ours, "POST", path, []string{"{}", "", `{"Kid":"1234"}`}[i%3])
	}
	var scheme []struct {
		MethodUri string
		Level     int
	}
	w.OK(tamgatest.Ours, "GET", base+"/", "").Into(t, &scheme)
	var got []string
	for _, m := range scheme {
		got = append(got, fmt.Sprint(m.MethodUri[strings.LastIndexByte(m.MethodUri, '/')+1:], m.Level))
	}
	if d := cmp.Diff("none1 password1 cert1 external1 otpviasms0 otpviaemail1 oath2 mydss3 urn:tamga:authenticationmethod:passkey0", strings.Join(got, " ")); d != "" {
		t.Error(d)
	}
	var raw string
	w.OK(tamgatest.Ours, "POST", "/ums/user/rawauthdata", `{"UserId":"`+id+`","AuthnMethods":["http://dss.cryptopro.ru/identity/authenticationmethod/password","http://dss.cryptopro.ru/identity/authenticationmethod/cert"],"Format":0}`).Into(t, &raw)
	var data struct {
		UserID          string `json:"UserId"`
		AuthMethodInfos []struct {
			AuthnMethod string
			Confirmed   bool
			Parameters  []struct{ Key, Value string }
		}
	}
	if err := json.Unmarshal([]byte(raw), &data); err != nil || data.UserID != id || len(data.AuthMethodInfos) != 2 || !data.AuthMethodInfos[0].Confirmed || data.AuthMethodInfos[1].Confirmed {
		t.Errorf("raw data %s: %v", raw, err)
	}
	if status, body := w.Grant(login, password); status != 400 || !strings.Contains(string(body), "authn_method_not_confirmed") {
		t.Errorf("with a second step to do: %d %s", status, body)
	}
	for _, name := range names {
		if name != "password" {
			w.OK(tamgatest.Ours, "DELETE", base+"/"+name, "")
		}
	}
	if status, body := w.Grant(login, password); status != 200 {
		t.Errorf("with a password alone: %d %s", status, body)
	}
	w.OK(tamgatest.Ours, "DELETE", base+"/password/", "")
	if status, _ := w.Grant(login, password); status != 400 {
		t.Errorf("with no method any more: %d", status)
	}
	for _, wrong := range []string{"POST oath?level=4", "POST oath?level=x", "POST nothing"} {
		method, path, _ := strings.Cut(wrong, " ")
		if a := w.Ask(tamgatest.Ours, method, base+"/"+path, ""); a.Status != 400 && a.Status != 404 {
			t.Errorf("%v", a)
		}
	}
}

func walkLocks(w *tamgatest.UMS, t *testing.T) {
	id, login, _, _ := w.Register()
	base := "/ums/user/" + id
	w.OK(tamgatest.Ours, "POST", base+"/authmethod/password", "")
	var password string
	w.OK(tamgatest.Ours, "POST", base+"/password", "").Into(t, &password)
	signedIn := func() {
		t.Helper()
		w.Tokens["locked"] = w.TokenOf(login, password)
		// The token is good: it is refused for what it may not, not for what it is.
		if a := w.Ask("locked", "GET", "/ums/policy", ""); a.Status != 403 {
			t.Errorf("before: %v", a)
		}
	}
	ended := func(by string) {
		t.Helper()
		if a := w.Ask("locked", "GET", "/ums/policy", ""); a.Status != 401 {
			t.Errorf("%s: %v", by, a)
		}
	}
	locked := func() (is bool, since any) {
		t.Helper()
		var info map[string]any
		w.OK(tamgatest.Ours, "GET", base, "").Into(t, &info)
		return info["AccountLocked"] == true, info["LockoutDate"]
	}
	for _, path := range []string{"/user/" + id + "/grants/revoke", "/ums/user/" + id + "/grants/revoke/"} {
		signedIn()
		w.OK(tamgatest.Ours, "POST", path, "")
		ended(path)
	}
	signedIn()
	w.OK(tamgatest.Ours, "POST", base+"/lockout?lock=True", "{}")
	ended("lockout")
	if status, _ := w.Grant(login, password); status != 400 {
		t.Errorf("a locked user signs in: %d", status)
	}
	if is, since := locked(); !is || since == nil {
		t.Error("not locked")
	}
	w.OK(tamgatest.Ours, "POST", base+"/lockout/?lock=False", "")
	ended("lockout, after the unlocking")
	signedIn()
	w.OK(tamgatest.Ours, "POST", base+"/lockoutex", `{"LockUser":true,"UseLockoutDelay":true,"LockoutDelay":3600}`)
	if is, since := locked(); is || since == nil {
		t.Error("a lock with a delay is in force, or not to be seen")
	}
	w.OK(tamgatest.Ours, "POST", base+"/lockoutex", `{"LockUser":true,"UseLockoutDelay":false,"LockoutDelay":3600}`)
	ended("lockoutex")
	w.OK(tamgatest.Ours, "POST", base+"/lockoutex", `{"LockUser":false}`)
	if is, since := locked(); is || since != nil {
		t.Error("locked still")
	}
	for _, wrong := range []string{`{}`, ``, `{"LockUser":true,"UseLockoutDelay":true,"LockoutDelay":-1}`, `{"LockUser":"perhaps"}`} {
		if a := w.Ask(tamgatest.Ours, "POST", base+"/lockoutex", wrong); a.Status != 400 {
			t.Errorf("%s: %v", wrong, a)
		}
	}
	if a := w.Ask(tamgatest.Ours, "POST", base+"/lockout", ""); a.Status != 400 {
		t.Errorf("neither locked nor unlocked: %v", a)
	}
	signedIn()
	w.OK(tamgatest.Ours, "DELETE", base, "")
	ended("delete")
}

// TestDescription: the description for programs has every operation of the
// specification, with the right and the addresses of the running server.
func TestDescription(t *testing.T) {
	t.Parallel()
	p := tamgatest.Start(t)
	status, body := p.Do(t.Context(), "GET", p.URL+"/openapi.json", "", nil)
	var document struct {
		OpenAPI string
		Servers []struct{ URL string }
		Paths   map[string]map[string]struct {
			OperationID string
			Security    []map[string][]string
		}
	}
	if err := json.Unmarshal(body, &document); err != nil || status != 200 || document.OpenAPI != "3.1.0" || document.Servers[0].URL != p.URL {
		t.Fatalf("%d %.200s: %v", status, body, err)
	}
	for _, o := range operations(t) {
		found := false
		for path, methods := range document.Paths {
			described, ok := methods[strings.ToLower(o.method)]
			found = found || ok && placeholder.ReplaceAllString(path, "{}") == placeholder.ReplaceAllString("/STS"+strings.TrimSuffix(o.path, "/"), "{}") &&
				len(described.Security) == 2
		}
		if !found {
			t.Errorf("%s %s is not described, or not as an operator's", o.method, o.path)
		}
	}
	for _, path := range []string{"/SignServer/api/documents", "/STS/oauth/token", "/pki/tsp"} {
		if document.Paths[path]["post"].OperationID == "" {
			t.Errorf("POST %s is not described", path)
		}
	}
}

var placeholder = regexp.MustCompile(`\{[a-z]+\}`)

// operations are the specification's, as the surface's own test has them.
func operations(t testing.TB) (list []struct{ name, method, path string }) {
	t.Helper()
	f, err := os.Open("testdata/operations.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		words := strings.Fields(strings.TrimPrefix(lines.Text(), "+"))
		if len(words) != 3 || words[0] == "#" {
			continue
		}
		for method := range strings.SplitSeq(words[1], ",") {
			list = append(list, struct{ name, method, path string }{words[0], method, words[2]})
		}
	}
	return list
}

// pattern matches addresses of an operation, with any values of its parameters.
func pattern(path string) *regexp.Regexp {
	text := regexp.QuoteMeta(strings.TrimSuffix(path, "/"))
	for _, parameter := range []string{"id", "phone", "email"} {
		text = strings.ReplaceAll(text, `\{`+parameter+`\}`, `[^/?]+`)
	}
	return regexp.MustCompile(`^` + text + `/?(\?.*)?$`)
}
