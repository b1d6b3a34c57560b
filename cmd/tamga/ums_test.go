package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// contactJSON is UserContactInfo as a client reads it.
type contactJSON struct {
	Type                             string
	Contact                          string
	Confirmed, Primary, Notification bool
	Usages                           []struct{ Type, Title, Description string }
}

// TestUserManagement walks through every row of the specification's tables.
func TestUserManagement(t *testing.T) { onBothEngines(t, userManagement) }

func userManagement(t *testing.T, w *umsWorld) {
	w.walk(t, "users", w.walkUsers)
	w.walk(t, "names", w.walkNames)
	w.walk(t, "logins", w.walkLogins)
	w.walk(t, "passwords", w.walkPasswords)
	w.walk(t, "phones", func(t *testing.T) {
		w.walkContacts(t, "phones", "PhoneNumber", "89161230001", "79161230001", "phonenumber")
	})
	w.walk(t, "emails", func(t *testing.T) {
		w.walkContacts(t, "emails", "EmailAddress", "Ivan.Petrov@Почта.рф", "Ivan.Petrov@почта.рф", "email")
	})
	w.walk(t, "methods", w.walkMethods)
	w.walk(t, "oath", w.walkOath)
	w.walk(t, "locks", w.walkLocks)
	w.scan()
	for _, o := range operations(t) {
		p, done := pattern(o.path), false
		for _, a := range w.asked {
			done = done || a.status == 200 && a.method == o.method && p.MatchString(a.path)
		}
		if !done {
			t.Errorf("%s was not answered with success: %s %s", o.name, o.method, o.path)
		}
	}
}

func (w *umsWorld) walkUsers(t *testing.T) {
	var id string
	w.ok(ours, "POST", "/ums/user", `{"Login":"Sidorov"}`).into(t, &id)
	var second struct{ ID string }
	w.ok(ours, "POST", "/ums/user/register", `{"login":"second","EMAIL":"second@example.ru"}`).into(t, &second)
	var third string
	w.ok(twoGroup, "POST", "/ums/user/?groupName=Other", `{"1":"+7 (916) 000-00-03"}`).into(t, &third)
	if a := w.ask(twoGroup, "POST", "/ums/user", `{"Login":"nowhere"}`); a.status != 400 || !strings.Contains(a.body, "wrong_operation") || !strings.Contains(a.body, "groupName") {
		t.Errorf("without a group by an operator of two: %v", a)
	}
	if a := w.ask(ours, "POST", "/ums/user?groupName=Other", `{"Login":"nowhere"}`); a.status != 400 {
		t.Errorf("into a group that is not the operator's: %v", a)
	}
	if a := w.ask(ours, "POST", "/ums/user", `{"Login":"SIDOROV"}`); a.status != 400 || !strings.Contains(a.body, "duplicate_login") {
		t.Errorf("a login that is taken: %v", a)
	}

	var unique struct {
		Result map[string]struct {
			Data                     string
			IsUnique, UniqueRequired bool
		}
	}
	w.ok(ours, "POST", "/ums/user/isunique?issuerName=realsts", `{"Login":"sidorov","Email":"new@example.ru","PhoneNumber":"79160000003"}`).into(t, &unique)
	for kind, free := range map[string]bool{"Login": false, "Email": true, "PhoneNumber": false} {
		if r := unique.Result[kind]; r.IsUnique != free || !r.UniqueRequired {
			t.Errorf("%s: %+v", kind, r)
		}
	}

	var info map[string]any
	w.ok(ours, "GET", "/ums/user/"+strings.ToUpper(id), "").into(t, &info)
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
		w.ok(ours, "GET", "/ums/user?"+query, "").into(t, &info)
		if info["UserId"] != id {
			t.Errorf("%s finds %v", query, info["UserId"])
		}
	}
	w.ok(ours, "GET", "/ums/user/?type=Email&value=SECOND%40example.ru", "").into(t, &info)
	if info["UserId"] != second.ID {
		t.Errorf("by e-mail: %v", info)
	}

	w.ok(ours, "PATCH", "/ums/user/"+id, `{"PropertyType":0,"Value":"Сидоров С. С."}`)
	w.ok(ours, "POST", "/ums/user/"+id+"/", `{"PropertyType":"AccountLockedState","Value":"True"}`)
	w.ok(ours, "GET", "/ums/user/"+id, "").into(t, &info)
	if info["DisplayName"] != "Сидоров С. С." || info["AccountLocked"] != true || info["LockoutDate"] == nil {
		t.Errorf("after the changes: %v", info)
	}
	w.ok(ours, "POST", "/ums/user/"+id, `{"PropertyType":1,"Value":false}`)

	w.ok(ours, "POST", "/ums/user/"+id+"/approve?approved=false", "")
	w.ok(ours, "POST", "/ums/user/"+id+"/approve?approved=True", "{}")

	var page struct {
		UserInfos                 []map[string]any
		TotalCount, AffectedCount int
	}
	w.ok(ours, "POST", "/ums/users", `{"StartPosition":0,"EndPosition":10,"Filters":[{"Column":"Login","Operation":"Like","Value":"sidor"}],"OrderColumn":0,"OrderDirection":"DESC"}`).into(t, &page)
	if page.TotalCount != 1 || page.AffectedCount != 1 || len(page.UserInfos) != 1 || page.UserInfos[0]["UserId"] != id {
		t.Errorf("found %+v", page)
	}
	w.ok(ours, "POST", "/ums/users", "").into(t, &page)
	for _, u := range page.UserInfos {
		if u["Group"] != "Default" {
			t.Errorf("the list shows a user of another group: %v", u)
		}
	}
	if a := w.ask(ours, "POST", "/ums/users", `{"StartPosition":10,"EndPosition":1}`); a.status != 400 || !strings.Contains(a.body, "error_bad_bounds") {
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
	w.ok(ours, "GET", "/ums/policy/", "").into(t, &policy)
	if len(policy.AvaliableIdentifierTypes) != 3 || len(policy.AuthMethods) < 8 || len(policy.Rdns) != 16 || len(policy.Groups) != 1 ||
		fmt.Sprint(policy.Groups[0]) != "{realsts [Default]}" {
		t.Errorf("policy: %+v", policy)
	}

	w.ok(ours, "DELETE", "/ums/user/"+id, "")
	if a := w.ask(ours, "GET", "/ums/user/"+id, ""); a.status != 404 || !strings.Contains(a.body, `"Message":"User not found"`) {
		t.Errorf("deleted: %v", a)
	}
	w.ok(ours, "POST", "/ums/user", `{"Login":"sidorov"}`) // the name is free again
}

func (w *umsWorld) walkNames(t *testing.T) {
	id, login, _, _ := w.register()
	base := "/ums/user/" + id
	var name map[string]string
	w.ok(ours, "GET", base+"/dn", "").into(t, &name)
	if d := cmp.Diff(map[string]string{"11": login}, name); d != "" {
		t.Error(d)
	}
	w.ok(ours, "POST", base+"/dn", `{"11":"Иванов, \"Иван\"","9":"ООО Ромашка","6":"RU"}`)
	w.ok(ours, "GET", base+"/dn/", "").into(t, &name)
	if d := cmp.Diff(map[string]string{"11": `Иванов, "Иван"`, "9": "ООО Ромашка", "6": "RU"}, name); d != "" {
		t.Error(d)
	}
	for _, wrong := range []string{`{"9":"no name"}`, `{"11":"x","6":"RUS"}`, `{"11":"x","77":"y"}`, `{"11":"x\u0000"}`, `["11"]`} {
		if a := w.ask(ours, "POST", base+"/dn", wrong); a.status != 400 {
			t.Errorf("a name %s: %v", wrong, a)
		}
	}
	var unique struct{ IsUnique, UniqueRequired bool }
	w.ok(ours, "POST", "/ums/user/dn/isunique", `{"11":"Иванов, \"Иван\"","9":"ООО Ромашка","6":"RU"}`).into(t, &unique)
	if unique.IsUnique {
		t.Error("a name that somebody has is unique")
	}

	var group string
	w.ok(ours, "GET", base+"/group", "").into(t, &group)
	if group != "Default" {
		t.Errorf("group %q", group)
	}
	if a := w.ask(ours, "POST", base+"/group?groupName=Other", `{}`); a.status != 400 {
		t.Errorf("into a group that is not the operator's: %v", a)
	}
	if a := w.ask(twoGroup, "POST", base+"/group?groupName=Other", `{"6":"RUS"}`); a.status != 400 {
		t.Errorf("with a wrong component: %v", a)
	}
	w.ok(ours, "GET", base, "") // the refusal moved nobody
	w.ok(twoGroup, "POST", base+"/group?groupName=Other", `{"9":"ООО Лютик"}`)
	w.ok(twoGroup, "GET", base+"/dn", "").into(t, &name)
	if name["9"] != "ООО Лютик" || name["6"] != "RU" {
		t.Errorf("after the move: %v", name)
	}
	if a := w.ask(ours, "GET", base, ""); a.status != 404 {
		t.Errorf("after the move: %v", a)
	}
	w.ok(foreign, "GET", base, "")
}

func (w *umsWorld) walkLogins(t *testing.T) {
	id, login, _, _ := w.register()
	base := "/ums/user/" + id + "/login"
	logins := func() string {
		t.Helper()
		return w.ok(ours, "GET", base, "").body
	}
	expect := func(want string) {
		t.Helper()
		if d := cmp.Diff(want, logins()); d != "" {
			t.Error(d)
		}
	}
	expect(`[{"Login":"` + login + `","IssuerName":"realsts"}]`)
	w.ok(ours, "POST", base+"/local?newLogin=renamed", "")
	w.ok(ours, "POST", base, `{"Login":"ivan@corp","IssuerName":"https://adfs.example.ru"}`)
	expect(`[{"Login":"renamed","IssuerName":"realsts"},{"Login":"ivan@corp","IssuerName":"https://adfs.example.ru"}]`)
	w.ok(ours, "POST", base, `{"Login":"again","IssuerName":"realsts"}`)
	w.ok(ours, "POST", base, `{"Login":"","IssuerName":"https://adfs.example.ru"}`)
	expect(`[{"Login":"again","IssuerName":"realsts"}]`)
	w.ok(ours, "POST", base, `{"Login":"ivan@corp","IssuerName":"https://adfs.example.ru"}`)
	w.ok(ours, "DELETE", base, "") // the operator came in by realsts: there is no external login of that
	w.ok(ours, "DELETE", base+"/?issuerName="+url.QueryEscape("https://adfs.example.ru"), "")
	expect(`[{"Login":"again","IssuerName":"realsts"}]`)
	w.ok(ours, "DELETE", base+"/local", "")
	expect(`[]`)
	w.ok(ours, "POST", base+"/local?newLogin=back", "")
	w.ok(ours, "DELETE", base+"?issuerName=realsts", "")
	expect(`[]`)
	if a := w.ask(ours, "POST", base+"/local", ""); a.status != 400 {
		t.Errorf("no login: %v", a)
	}
	if a := w.ask(ours, "POST", base+"/local?newLogin=operator", ""); a.status != 400 || !strings.Contains(a.body, "duplicate_login") {
		t.Errorf("the login of an operator: %v", a)
	}
}

func (w *umsWorld) walkPasswords(t *testing.T) {
	id, login, phone, email := w.register()
	base := "/ums/user/" + id + "/password"
	w.ok(ours, "POST", "/ums/user/"+id+"/authmethod/password", "")
	signIn := func(password string) {
		t.Helper()
		if status, body := w.grant(login, password); status != 200 {
			t.Errorf("the new password is answered %d %s", status, body)
		}
	}
	var password string
	w.ok(ours, "POST", base, "").into(t, &password)
	signIn(password)
	token := w.tokenOf(login, password)
	w.tokens["just signed in"] = token
	var next string
	w.ok(ours, "POST", base+"/", "{}").into(t, &next)
	if a := w.ask("just signed in", "GET", "/ums/policy", ""); a.status != 401 {
		t.Errorf("a token from before the reset: %v", a)
	}
	if status, _ := w.grant(login, password); status != 400 || next == password {
		t.Error("the old password is good still")
	}

	for _, path := range []string{base + "/send/sms", base + "/send/email", base + "/send/sms?destination=" + phone} {
		want := "invalid_phone"
		if strings.Contains(path, "email") {
			want = "invalid_email"
		}
		if a := w.ask(ours, "POST", path, ""); a.status != 400 || !strings.Contains(a.body, want) {
			t.Errorf("to a contact that is not confirmed: %v", a)
		}
	}
	signIn(next) // the refusals changed nothing
	for _, c := range []string{"/phones/" + phone, "/emails/" + url.PathEscape(email)} {
		w.ok(ours, "POST", "/ums/user/"+id+c+"/confirm", "{}")
		w.ok(ours, "POST", "/ums/user/"+id+c+"/secondaryauth", "{}")
	}
	sent := func(to string) string {
		t.Helper()
		list := w.captured()
		for i := len(list) - 1; i >= 0; i-- {
			for _, word := range strings.FieldsFunc(list[i].Text, func(r rune) bool { return strings.ContainsRune(" \n\t:,", r) }) {
				if list[i].To == to {
					if status, _ := w.grant(login, strings.TrimSuffix(word, ".")); status == 200 {
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
	w.ok(ours, "POST", base+"/send/sms", "")
	bySMS := sent(phone)
	w.ok(ours, "POST", base+"/send/email?destination="+url.QueryEscape(strings.ToUpper(email)), "")
	byMail := sent(email)
	w.secrets = append(w.secrets, bySMS, byMail)

	var response struct {
		Password, PrintFormName *string
		PrintForm               []byte
	}
	w.ok(ours, "POST", base+"/send", `{"NotificationDestinations":[{"Type":"PhoneNumber"},{"Type":"EmailAddress","Value":"`+email+`"}],"ReturnRawPassword":true,"ReturnPrintedPasswordFormat":"Html"}`).into(t, &response)
	if response.Password == nil || response.PrintFormName == nil || !strings.Contains(string(response.PrintForm), *response.Password) {
		t.Errorf("sent, shown and printed: %+v", response)
	} else {
		signIn(*response.Password)
	}
	if a := w.ok(ours, "POST", base+"/send", `{"NotificationDestinations":[{"Type":"PhoneNumber"}]}`); a.body != "{}" {
		t.Errorf("only sent: %v", a)
	}
	for format, kind := range map[string]string{"Html": "text/html", "Xml": "xml", "Pdf": "application/pdf", "Word": "application/msword"} {
		a := w.ok(ours, "POST", base+"/print?format="+format, "")
		if !strings.Contains(a.header.Get("Content-Type"), kind) || !strings.HasPrefix(a.header.Get("Content-Disposition"), "attachment") ||
			!strings.Contains(a.header.Get("Content-Disposition"), "filename") || len(a.body) < 100 {
			t.Errorf("%s: %v, %d octets", format, a.header, len(a.body))
		}
	}
	for _, wrong := range []string{"/print", "/print?format=Exe", "/send"} {
		a := w.ask(ours, "POST", base+wrong, "")
		if wrong == "/send" {
			continue // an order of nothing: whatever it is, it is no internal error (scan)
		}
		if a.status != 400 {
			t.Errorf("%v", a)
		}
	}
	var unnamed string
	w.ok(ours, "POST", "/ums/user", `{"Login":"nameless"}`).into(t, &unnamed)
	w.ok(ours, "DELETE", "/ums/user/"+unnamed+"/login/local", "")
	if a := w.ask(ours, "POST", "/ums/user/"+unnamed+"/password/send", `{"ReturnRawPassword":true}`); a.status != 400 || !strings.Contains(a.body, "invalid_login") {
		t.Errorf("a user with nothing to sign in with: %v", a)
	}
}

func (w *umsWorld) walkContacts(t *testing.T, plural, kind, given, shown, legacy string) {
	id, _, phone, email := w.register()
	primary := phone
	if kind == "EmailAddress" {
		primary = email
	}
	all := "/ums/user/" + id + "/" + plural
	one := all + "/" + url.PathEscape(given)
	describe := func(a umsAnswer) string {
		t.Helper()
		var c contactJSON
		a.into(t, &c)
		usages := []string{}
		for _, u := range c.Usages {
			usages = append(usages, u.Type)
		}
		return fmt.Sprintf("%s %s %t %t %t %v", c.Type, c.Contact, c.Confirmed, c.Primary, c.Notification, usages)
	}
	expect := func(want string, a umsAnswer) {
		t.Helper()
		if got := describe(a); got != kind+" "+shown+" "+want {
			t.Errorf("%s %s: got %s, want %s", a.method, a.path, got, want)
		}
	}
	quoted, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/ums/user/phones/", "/ums/user/" + plural + "/"} {
		var unique struct{ IsUnique bool }
		w.ok(ours, "POST", path+url.PathEscape(given)+"/isunique", "").into(t, &unique)
		if !unique.IsUnique {
			t.Errorf("%s is not unique under %s", given, path)
		}
		w.ok(ours, "POST", path+url.PathEscape(primary)+"/isunique/", "").into(t, &unique)
		if unique.IsUnique {
			t.Errorf("%s is unique under %s", primary, path)
		}
	}
	expect("false false false []", w.ok(ours, "POST", all, string(quoted)))
	for _, action := range []string{"primary", "notification"} {
		if a := w.ask(ours, "POST", one+"/"+action, "true"); a.status != 400 || !strings.Contains(a.body, "contact_confirmation_required") {
			t.Errorf("a role for a contact that is not confirmed: %v", a)
		}
	}
	if a := w.ask(ours, "POST", one+"/secondaryauth", "{}"); a.status != 400 || !strings.Contains(a.body, "contact_confirmation_required") {
		t.Errorf("a role for a contact that is not confirmed: %v", a)
	}
	w.ok(ours, "POST", one+"/requireconfirm", "")
	code := w.code(shown)
	if a := w.ask(ours, "POST", one+"/submitconfirm", `"000000"`); code != "000000" && (a.status != 400 || !strings.Contains(a.body, "invalid_confirmation_code")) {
		t.Errorf("a wrong code: %v", a)
	}
	if a := w.ask(ours, "PATCH", one+"/requireconfirm", "{}"); a.status != 429 {
		t.Errorf("another code at once: %v", a)
	}
	expect("true false false []", w.ok(ours, "PATCH", one+"/submitconfirm/", `"`+code+`"`))
	if a := w.ask(ours, "POST", one+"/submitconfirm", `"`+code+`"`); a.status != 400 {
		t.Errorf("the code a second time: %v", a)
	}
	expect("true true false []", w.ok(ours, "POST", one+"/primary", "true"))
	expect("true false false []", w.ok(ours, "PATCH", one+"/primary", `"False"`))
	expect("true true false []", w.ok(ours, "PATCH", one+"/primary/?primary=true", ""))
	expect("true true true []", w.ok(ours, "PATCH", one+"/notification", "true"))
	expect("true true true []", w.ok(ours, "POST", one+"/notification", "true"))
	w.ok(ours, "PATCH", one+"/secondaryauth", "")
	w.ok(ours, "POST", one+"/secondaryauth", "{}")
	var list []contactJSON
	w.ok(ours, "GET", all, "").into(t, &list)
	if len(list) != 2 || list[0].Contact != primary || list[0].Primary || len(list[1].Usages) != 1 || list[1].Usages[0].Type != "OTP" {
		t.Errorf("list: %+v", list)
	}
	if a := w.ask(ours, "POST", one+"/primary", ""); a.status != 400 {
		t.Errorf("neither true nor false: %v", a)
	}

	// A code by the other method, and confirmation on the operator's word.
	former := all + "/" + url.PathEscape(primary)
	w.ok(ours, "PATCH", former+"/requireconfirm", "{}")
	w.ok(ours, "POST", former+"/submitconfirm", `"`+w.code(primary)+`"`)
	w.ok(ours, "POST", former+"/confirm", "")
	w.ok(ours, "PATCH", former+"/confirm/", "{}")
	w.ok(ours, "DELETE", former+"/", "")
	if a := w.ask(ours, "DELETE", former, ""); a.status != 400 {
		t.Errorf("deleting what is gone: %v", a)
	}

	// The legacy view of one contact.
	info := w.ok(ours, "GET", "/ums/user/"+id+"/"+legacy, "")
	if !strings.Contains(info.body, shown) || !strings.Contains(info.body, `"Confirmed":true`) {
		t.Errorf("legacy: %v", info)
	}
	method := "otpviasms"
	if kind == "EmailAddress" {
		method = "otpviaemail"
	}
	w.ok(ours, "POST", "/ums/user/"+id+"/authmethod/"+method+"?level=2", "{}")
	if a := w.ask(ours, "DELETE", "/ums/user/"+id+"/"+legacy, ""); a.status != 400 || !strings.Contains(a.body, "wrong_operation") {
		t.Errorf("legacy delete while the method is on: %v", a)
	}
	w.ok(ours, "DELETE", "/ums/user/"+id+"/authmethod/"+method, "")
	w.ok(ours, "DELETE", "/ums/user/"+id+"/"+legacy, "")
	if a := w.ok(ours, "GET", "/ums/user/"+id+"/"+legacy+"/", ""); !strings.Contains(a.body, "null") {
		t.Errorf("legacy of none: %v", a)
	}
	w.ok(ours, "POST", "/ums/user/"+id+"/"+legacy, `"`+primary+`"`)
	if a := w.ok(ours, "GET", "/ums/user/"+id+"/"+legacy, ""); !strings.Contains(a.body, primary) || !strings.Contains(a.body, `"Confirmed":false`) {
		t.Errorf("legacy after setting: %v", a)
	}
}

func (w *umsWorld) walkMethods(t *testing.T) {
	id, login, _, _ := w.register()
	base := "/ums/user/" + id + "/authmethod"
	if a := w.ok(ours, "GET", base, ""); a.body != "[]" {
		t.Errorf("a new user has methods: %v", a)
	}
	var password string
	w.ok(ours, "POST", "/ums/user/"+id+"/password", "").into(t, &password)
	if status, body := w.grant(login, password); status != 400 || !strings.Contains(string(body), "invalid_grant") {
		t.Errorf("without a method: %d %s", status, body)
	}
	names := []string{"idonly", "password", "cert", "external", "otpviasms", "otpviaemail", "oath", "mydss"}
	for i, name := range names {
		path := base + "/" + name
		if i >= 4 {
			path += "?level=" + fmt.Sprint(i%4)
		}
		w.ok(ours, "POST", path, []string{"{}", "", `{"Kid":"1234"}`}[i%3])
	}
	var scheme []struct {
		MethodUri string
		Level     int
	}
	w.ok(ours, "GET", base+"/", "").into(t, &scheme)
	var got []string
	for _, m := range scheme {
		got = append(got, fmt.Sprint(m.MethodUri[strings.LastIndexByte(m.MethodUri, '/')+1:], m.Level))
	}
	if d := cmp.Diff("none1 password1 cert1 external1 otpviasms0 otpviaemail1 oath2 mydss3", strings.Join(got, " ")); d != "" {
		t.Error(d)
	}
	var raw string
	w.ok(ours, "POST", "/ums/user/rawauthdata", `{"UserId":"`+id+`","AuthnMethods":["http://dss.cryptopro.ru/identity/authenticationmethod/password","http://dss.cryptopro.ru/identity/authenticationmethod/cert"],"Format":0}`).into(t, &raw)
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
	if status, body := w.grant(login, password); status != 400 || !strings.Contains(string(body), "authn_method_not_confirmed") {
		t.Errorf("with a second step to do: %d %s", status, body)
	}
	for _, name := range names {
		if name != "password" {
			w.ok(ours, "DELETE", base+"/"+name, "")
		}
	}
	if status, body := w.grant(login, password); status != 200 {
		t.Errorf("with a password alone: %d %s", status, body)
	}
	w.ok(ours, "DELETE", base+"/password/", "")
	if status, _ := w.grant(login, password); status != 400 {
		t.Errorf("with no method any more: %d", status)
	}
	for _, wrong := range []string{"POST oath?level=4", "POST oath?level=x", "POST nothing"} {
		method, path, _ := strings.Cut(wrong, " ")
		if a := w.ask(ours, method, base+"/"+path, ""); a.status != 400 && a.status != 404 {
			t.Errorf("%v", a)
		}
	}
}

func (w *umsWorld) walkLocks(t *testing.T) {
	id, login, _, _ := w.register()
	base := "/ums/user/" + id
	w.ok(ours, "POST", base+"/authmethod/password", "")
	var password string
	w.ok(ours, "POST", base+"/password", "").into(t, &password)
	signedIn := func() {
		t.Helper()
		w.tokens["locked"] = w.tokenOf(login, password)
		// The token is good: it is refused for what it may not, not for what it is.
		if a := w.ask("locked", "GET", "/ums/policy", ""); a.status != 403 {
			t.Errorf("before: %v", a)
		}
	}
	ended := func(by string) {
		t.Helper()
		if a := w.ask("locked", "GET", "/ums/policy", ""); a.status != 401 {
			t.Errorf("%s: %v", by, a)
		}
	}
	locked := func() (is bool, since any) {
		t.Helper()
		var info map[string]any
		w.ok(ours, "GET", base, "").into(t, &info)
		return info["AccountLocked"] == true, info["LockoutDate"]
	}
	for _, path := range []string{"/user/" + id + "/grants/revoke", "/ums/user/" + id + "/grants/revoke/"} {
		signedIn()
		w.ok(ours, "POST", path, "")
		ended(path)
	}
	signedIn()
	w.ok(ours, "POST", base+"/lockout?lock=True", "{}")
	ended("lockout")
	if status, _ := w.grant(login, password); status != 400 {
		t.Errorf("a locked user signs in: %d", status)
	}
	if is, since := locked(); !is || since == nil {
		t.Error("not locked")
	}
	w.ok(ours, "POST", base+"/lockout/?lock=False", "")
	ended("lockout, after the unlocking")
	signedIn()
	w.ok(ours, "POST", base+"/lockoutex", `{"LockUser":true,"UseLockoutDelay":true,"LockoutDelay":3600}`)
	if is, since := locked(); is || since == nil {
		t.Error("a lock with a delay is in force, or not to be seen")
	}
	w.ok(ours, "POST", base+"/lockoutex", `{"LockUser":true,"UseLockoutDelay":false,"LockoutDelay":3600}`)
	ended("lockoutex")
	w.ok(ours, "POST", base+"/lockoutex", `{"LockUser":false}`)
	if is, since := locked(); is || since != nil {
		t.Error("locked still")
	}
	for _, wrong := range []string{`{}`, ``, `{"LockUser":true,"UseLockoutDelay":true,"LockoutDelay":-1}`, `{"LockUser":"perhaps"}`} {
		if a := w.ask(ours, "POST", base+"/lockoutex", wrong); a.status != 400 {
			t.Errorf("%s: %v", wrong, a)
		}
	}
	if a := w.ask(ours, "POST", base+"/lockout", ""); a.status != 400 {
		t.Errorf("neither locked nor unlocked: %v", a)
	}
	signedIn()
	w.ok(ours, "DELETE", base, "")
	ended("delete")
}

// TestDescription: the description for programs has every operation of the
// specification, with the right and the addresses of the running server.
func TestDescription(t *testing.T) {
	p := startDev(t, t.TempDir())
	status, body := p.do(t.Context(), "GET", p.url+"/openapi.json", "", nil)
	var document struct {
		OpenAPI string
		Servers []struct{ URL string }
		Paths   map[string]map[string]struct {
			OperationID string
			Security    []map[string][]string
		}
	}
	if err := json.Unmarshal(body, &document); err != nil || status != 200 || document.OpenAPI != "3.1.0" || document.Servers[0].URL != p.url {
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
