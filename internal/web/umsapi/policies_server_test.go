// SPDX-License-Identifier: Apache-2.0

package umsapi_test

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/cli/admin"
	"tamga/internal/domain/notify"
	"tamga/internal/tamgatest"
)

// The policies as clients read them.
type (
	ruleJSON struct {
		Action               any
		ConfirmationRequired *bool
		AccessDenied         *bool
	}
	fullJSON struct {
		Policy         []ruleJSON
		ChangesAllowed bool
	}
	notificationJSON struct {
		Policy             map[string][]string
		ChangesAllowed     bool
		AvailableNotifiers []string
	}
)

// dssActions are the actions of the interface in the order of their bits.
var dssActions = strings.Fields("Issue SignDocument SignDocuments DecryptDocument CreateRequest ChangePin RenewCertificate RevokeCertificate HoldCertificate UnholdCertificate DeleteCertificate PrivateKeyAccess")

// marked reads both forms of a policy, which must agree, and returns the actions it
// marks and whether it may be changed.
func marked(w *tamgatest.UMS, id, kind string) (actions string, changes bool) {
	w.T.Helper()
	var full fullJSON
	var list, short []ruleJSON
	path := "/ums/user/" + id + "/" + kind + "policy"
	w.OK(tamgatest.Ours, "GET", path+"?full=True", "").Into(w.T, &full)
	w.OK(tamgatest.Ours, "GET", path, "").Into(w.T, &list)
	w.OK(tamgatest.Ours, "GET", path+"/?full=false", "").Into(w.T, &short)
	if d := cmp.Diff(list, short); d != "" {
		w.T.Error(d)
	}
	var names []string
	for i, r := range full.Policy {
		flag, other := r.ConfirmationRequired, r.AccessDenied
		if kind == "access" {
			flag, other = other, flag
		}
		if len(full.Policy) != len(dssActions) || len(list) != len(full.Policy) || r.Action != dssActions[i] || flag == nil || other != nil {
			w.T.Fatalf("%s: row %d of %d is %+v", path, i, len(full.Policy), r)
		}
		if numbered := list[i]; numbered.Action != float64(int(1)<<i) {
			w.T.Errorf("%s: row %d of the list is %+v", path, i, numbered)
		} else if d := cmp.Diff([]*bool{r.ConfirmationRequired, r.AccessDenied}, []*bool{numbered.ConfirmationRequired, numbered.AccessDenied}); d != "" {
			w.T.Errorf("the list differs: %s", d)
		}
		if *flag {
			names = append(names, dssActions[i])
		}
	}
	return strings.Join(names, " "), full.ChangesAllowed
}

// want checks a policy.
func want(w *tamgatest.UMS, id, kind, actions string, changes bool) {
	w.T.Helper()
	if got, may := marked(w, id, kind); got != actions || may != changes {
		w.T.Errorf("the %s policy has %q (changes %t), want %q (%t)", kind, got, may, actions, changes)
	}
}

// told checks the notification policy.
func told(w *tamgatest.UMS, id string, want map[string][]string) {
	w.T.Helper()
	var got notificationJSON
	w.OK(tamgatest.Ours, "GET", "/ums/user/"+id+"/notificationpolicy", "").Into(w.T, &got)
	if d := cmp.Diff(notificationJSON{want, true, []string{"Email", "SMS", "Push"}}, got); d != "" {
		w.T.Error(d)
	}
}

// standardPolicy is the notification policy of an installation that says nothing.
var standardPolicy = map[string][]string{"UserPasswordChanged": {"Email", "SMS"}, "UserPasswordReset": {"Email", "SMS"}, "UserDeleted": {"Email", "SMS"}}

// TestPolicies walks through the rows of the table Policies and locking.
func TestPolicies(t *testing.T) {
	t.Parallel()
	tamgatest.OnBothEngines(t, func(t *testing.T, w *tamgatest.UMS) {
		w.Walk(t, "actions", func(t *testing.T) { walkActionPolicies(w, t) })
		w.Walk(t, "notification", func(t *testing.T) { walkNotificationPolicy(w, t) })
		w.Walk(t, "farewell", func(t *testing.T) { walkFarewell(w, t) })
		w.Walk(t, "outsiders", func(t *testing.T) { walkOutsiders(w, t) })
		w.Walk(t, "groups", func(t *testing.T) { walkGroupPolicies(w, t) })
		w.Scan()
	})
}

func walkActionPolicies(w *tamgatest.UMS, t *testing.T) {
	if mode, confirmed := described(w); mode != "Off" || confirmed != "[]" {
		t.Errorf("described as %s, confirming %s", mode, confirmed)
	}
	id, _, _, _ := w.Register()
	for _, kind := range []string{"operation", "access"} {
		path := "/ums/user/" + id + "/" + kind + "policy"
		want(w, id, kind, "", true)
		for _, c := range []struct{ body, want string }{
			{`[2,8,16,1024,64,128,256,512,32]`, "SignDocument DecryptDocument CreateRequest ChangePin RenewCertificate RevokeCertificate HoldCertificate UnholdCertificate DeleteCertificate"},
			{`[1]`, "Issue"}, // what is not listed any more is not marked any more
			{`["issue","PrivateKeyAccess"]`, "Issue PrivateKeyAccess"},
			{`[6]`, "SignDocument SignDocuments"},
			{`["2"]`, "SignDocument"},
			{`["SignDocument, ChangePin"]`, "SignDocument ChangePin"},
			{`2080`, "ChangePin PrivateKeyAccess"},
			{`[4095]`, strings.Join(dssActions, " ")},
			{`[]`, ""},
			{`[2]`, "SignDocument"},
		} {
			if a := w.OK(tamgatest.Ours, "POST", path, c.body); a.Body != "" {
				t.Errorf("%v", a)
			}
			want(w, id, kind, c.want, true)
		}
		for _, body := range []string{``, `null`, `{}`, `[4096]`, `["Sign"]`, `[0]`, `[-2]`, `[2.5]`, `[true]`, `[[2]]`, `[null]`, `[2,"?"]`, `[`, `{"Policy":[{"Action":"SignDocument"}]}`} {
			if a := w.Ask(tamgatest.Ours, "POST", path, body); a.Status != 400 || !strings.Contains(a.Body, `"error":"invalid_parameters"`) {
				t.Errorf("%s: %v", body, a)
			}
		}
		want(w, id, kind, "SignDocument", true)
		if a := w.Ask(tamgatest.Ours, "GET", path+"?full=perhaps", ""); a.Status != 400 {
			t.Errorf("%v", a)
		}
	}
}

func walkNotificationPolicy(w *tamgatest.UMS, t *testing.T) {
	id, _, phone, email := w.Register()
	path := "/ums/user/" + id + "/notificationpolicy"
	var info struct {
		Events          []struct{ Type, Category, Description string }
		EventCategories []struct{ Category, Description string }
	}
	for lang, want := range map[string]string{"": "Данные учётной записи изменены", "ru-RU": "Данные учётной записи изменены", "en-US,ru;q=0.5": "The account is changed", "fr": "Данные учётной записи изменены"} {
		w.Ask(tamgatest.Ours, "GET", path+"/events", "", "Accept-Language", lang).Into(t, &info)
		described := map[string]string{}
		for _, e := range info.Events {
			described[e.Type] = e.Description
			if e.Type == "" || e.Category == "" || e.Description == "" || e.Type == "UserDeleteFail" {
				t.Errorf("in the list of events: %+v", e)
			}
		}
		var categories []string
		for _, c := range info.EventCategories {
			categories = append(categories, c.Category)
		}
		if described["UserAccountChanged"] != want || described["UserPasswordChanged"] == "" || described["CertificatesRequested"] == "" || described["RevokeRequestsRequested"] == "" || described["UserDeleted"] == "" ||
			strings.Join(categories, " ") != "UserAccount Authentication Certificates CertificatesV2" {
			t.Errorf("%s: %+v", lang, info)
		}
	}
	told(w, id, standardPolicy)
	w.OK(tamgatest.Ours, "POST", path, `{"UserAccountChanged":["email","SMS","Email"],"НовоеСобытие":["Push"],"usercreated":[]}`)
	told(w, id, map[string][]string{"UserAccountChanged": {"Email", "SMS"}, "НовоеСобытие": {"Push"}, "UserCreated": {}})
	for _, body := range []string{``, `null`, `[]`, `"Email"`, `{"UserCreated":["Pigeon"]}`, `{"UserCreated":"Email"}`, `{"a b":[]}`, `{"":["Email"]}`, `{"\u0000":["Email"]}`, `{"UserCreated":[],"USERCREATED":[]}`} {
		if a := w.Ask(tamgatest.Ours, "POST", path, body); a.Status != 400 || !strings.Contains(a.Body, `"error":"invalid_parameters"`) {
			t.Errorf("%s: %v", body, a)
		}
	}
	// An empty body is not taken for {}, which erases the policy.
	if a := w.Ask(tamgatest.Ours, "POST", path, ""); a.Status != 400 || !strings.Contains(a.Body, "{} to erase the policy") {
		t.Errorf("an empty body: %v", a)
	}
	told(w, id, map[string][]string{"UserAccountChanged": {"Email", "SMS"}, "НовоеСобытие": {"Push"}, "UserCreated": {}})
	w.OK(tamgatest.Ours, "POST", path, "{}")
	told(w, id, map[string][]string{})
	w.OK(tamgatest.Ours, "POST", path, `{"UserAccountChanged":["Email"]}`)
	// The answer of the getter may be sent back.
	a := w.OK(tamgatest.Ours, "GET", path, "")
	w.OK(tamgatest.Ours, "POST", path, a.Body)
	if b := w.OK(tamgatest.Ours, "GET", path, ""); b.Body != a.Body {
		t.Errorf("sent back: %v", b)
	}

	// What it says is done.
	for _, c := range []string{"/phones/" + phone, "/emails/" + email} {
		w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+c+"/confirm", "")
		w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+c+"/notification", "true")
	}
	count := func() (n int) {
		for _, m := range w.Captured() {
			if (m.To == phone || m.To == email) && strings.Contains(m.Subject+m.Text, "Данные учётной записи изменены") {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		policy string
		more   int
	}{{`{"UserAccountChanged":["Email","SMS"]}`, 2}, {`{"UserAccountChanged":["SMS"]}`, 1}, {`{"UserPasswordChanged":["SMS"]}`, 0}, {`{"UserAccountChanged":["Push"]}`, 0}, {`{}`, 0}} {
		w.OK(tamgatest.Ours, "POST", path, c.policy)
		before := count()
		w.OK(tamgatest.Ours, "POST", "/ums/user/"+id, `{"PropertyType":0,"Value":"Другое имя"}`)
		if got := count() - before; got != c.more {
			t.Errorf("%s: %d messages, want %d", c.policy, got, c.more)
		}
	}
	told(w, id, map[string][]string{})
}

// walkFarewell: who is deleted hears of it, at the contacts they had.
func walkFarewell(w *tamgatest.UMS, t *testing.T) {
	for _, c := range []struct {
		name, policy string
		prepare      []string // below the user; %s is the contact
		phone, email bool     // is told
	}{
		{"of the role", "", []string{"/phones/%s/confirm", "/emails/%s/confirm", "/emails/%s/notification?notification=true"}, false, true},
		{"confirmed, none of the role", "", []string{"/phones/%s/confirm", "/emails/%s/confirm"}, true, true},
		{"not confirmed", "", nil, false, false},
		{"by one channel", `{"UserDeleted":["SMS"]}`, []string{"/phones/%s/confirm", "/emails/%s/confirm"}, true, false},
		{"not wanted", `{}`, []string{"/phones/%s/confirm", "/emails/%s/confirm"}, false, false},
	} {
		id, _, phone, email := w.Register()
		path := "/ums/user/" + id
		for _, step := range c.prepare {
			contact := phone
			if strings.HasPrefix(step, "/emails") {
				contact = url.PathEscape(email)
			}
			w.OK(tamgatest.Ours, "POST", path+fmt.Sprintf(step, contact), "")
		}
		if c.policy != "" {
			w.OK(tamgatest.Ours, "POST", path+"/notificationpolicy", c.policy)
		}
		w.OK(tamgatest.Ours, "DELETE", path, "")
		told := map[string]int{}
		for _, m := range w.Captured() {
			if strings.Contains(m.Subject+m.Text, "Учётная запись удалена") {
				told[m.To]++
			}
		}
		if told[phone] != map[bool]int{true: 1}[c.phone] || told[email] != map[bool]int{true: 1}[c.email] {
			t.Errorf("%s: phone %d, e-mail %d", c.name, told[phone], told[email])
		}
	}
}

// walkOutsiders: the table is closed to everybody but operators of the user's group.
func walkOutsiders(w *tamgatest.UMS, t *testing.T) {
	id, _, _, _ := w.Register()
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/operationpolicy", ""}, {"GET", "/operationpolicy?full=true", ""}, {"POST", "/operationpolicy", `[2]`},
		{"GET", "/accesspolicy", ""}, {"GET", "/accesspolicy?full=true", ""}, {"POST", "/accesspolicy", `[2]`}, {"POST", "/accesspolicy", `[4096]`},
		{"GET", "/notificationpolicy/events", ""}, {"GET", "/notificationpolicy", ""}, {"POST", "/notificationpolicy", `{}`}, {"POST", "/notificationpolicy", `[`},
	} {
		unknown := w.Ask(tamgatest.Foreign, c.method, "/ums/user/"+tamgatest.Missing+c.path, c.body)
		if a := w.Ask(tamgatest.Foreign, c.method, "/ums/user/"+id+c.path, c.body); a.Status != 404 || a.Body != unknown.Body || !strings.Contains(a.Body, "User not found") {
			t.Errorf("of another group: %v, of an unknown user: %v", a, unknown)
		}
		if a := w.Ask(tamgatest.Plain, c.method, "/ums/user/"+id+c.path, c.body); a.Status != 403 {
			t.Errorf("no operator: %v", a)
		}
		if a := w.Ask(tamgatest.Anonymous, c.method, "/ums/user/"+id+c.path, c.body); a.Status != 401 {
			t.Errorf("anonymous: %v", a)
		}
		if a := w.Ask(tamgatest.TwoGroup, c.method, "/ums/user/"+id+c.path, ""); a.Status == 404 {
			t.Errorf("an operator of both groups: %v", a)
		}
	}
	want(w, id, "operation", "", true)
	want(w, id, "access", "", true)
	told(w, id, standardPolicy)
}

// walkGroupPolicies: the user's counts, else the group's, else the installation's.
func walkGroupPolicies(w *tamgatest.UMS, t *testing.T) {
	id, login, _, _ := w.Register()
	w.Command("policy", "set", "access", "--group", "Default", "--action", "ChangePin", "--action", "8")
	w.Command("policy", "set", "operation", "--group", "Default", "--action", "SignDocument", "--fixed")
	w.Command("policy", "set", "notification", "--group", "Default", "--event", "UserCreated=Email,sms", "--event", "usERDeleted=SMS")
	want(w, id, "access", "DecryptDocument ChangePin", true)
	want(w, id, "operation", "SignDocument", false)
	told(w, id, map[string][]string{"UserCreated": {"Email", "SMS"}, "UserDeleted": {"SMS"}})
	if a := w.Ask(tamgatest.Ours, "POST", "/ums/user/"+id+"/operationpolicy", `[]`); a.Status != 400 || !strings.Contains(a.Body, `"error":"wrong_operation"`) || !strings.Contains(a.Body, "is fixed") {
		t.Errorf("a policy that is fixed: %v", a)
	}
	want(w, id, "operation", "SignDocument", false)
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/accesspolicy", `[]`) // denies nothing, whatever the group does
	want(w, id, "access", "", true)
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/notificationpolicy", `{}`)
	told(w, id, map[string][]string{})

	// An administrator is not kept from anything.
	w.Command("policy", "set", "operation", "--user", login, "--action", "Issue")
	want(w, id, "operation", "Issue", false)
	var shown []admin.PolicyJSON
	if err := json.Unmarshal([]byte(w.Command("policy", "show", "--user", login, "--json")), &shown); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]admin.PolicyJSON{{Kind: "access", Set: true, ChangesAllowed: true}, {Kind: "operation", Set: true, Actions: []string{"Issue"}}, {Kind: "notification", Set: true, ChangesAllowed: true}}, shown); d != "" {
		t.Error(d)
	}
	if out := w.Command("policy", "show", "--group", "Default"); !strings.Contains(out, "need a confirmation: SignDocument (fixed)") || !strings.Contains(out, "UserCreated by Email, SMS; UserDeleted by SMS") {
		t.Errorf("shown: %s", out)
	}
	for _, kind := range []string{"access", "operation", "notification"} {
		w.Command("policy", "clear", kind, "--user", login)
	}
	want(w, id, "access", "DecryptDocument ChangePin", true)
	want(w, id, "operation", "SignDocument", false)

	// Another group is another matter.
	w.OK(tamgatest.TwoGroup, "POST", "/ums/user/"+id+"/group?groupName=Other", "{}")
	from := w.Tokens[tamgatest.Ours]
	w.Tokens[tamgatest.Ours] = w.Tokens[tamgatest.Foreign]
	want(w, id, "access", "", true)
	want(w, id, "operation", "", true)
	told(w, id, standardPolicy)
	w.Tokens[tamgatest.Ours] = from
	for _, kind := range []string{"access", "operation", "notification"} {
		w.Command("policy", "clear", kind, "--group", "Default")
	}
	// The older commands change what counts.
	_, login, _, _ = w.Register()
	w.Command("policy", "set", "access", "--group", "Default", "--action", "ChangePin")
	w.Command("user", "deny", login, "Issue")
	w.Command("user", "allow", login, "ChangePin")
	if out := w.Command("policy", "show", "--user", login); !strings.Contains(out, "denied: Issue\n") {
		t.Errorf("shown: %s", out)
	}
	w.Command("policy", "clear", "access", "--group", "Default")
	for _, wrong := range [][]string{
		{"set", "access", "--action", "Issue"}, {"set", "access", "--group", "Nowhere"}, {"set", "access", "--user", "unknown"}, {"set", "access", "--group", "Default", "--action", "Sign"},
		{"set", "access", "--group", "Default", "--event", "UserCreated=SMS"}, {"set", "notification", "--group", "Default", "--action", "Issue"}, {"set", "notification", "--group", "Default", "--event", "Nothing=SMS"},
		{"set", "notification", "--group", "Default", "--event", "UserCreated=Pigeon"}, {"set", "access", "--user", login, "--fixed"}, {"clear", "all", "--group", "Default"},
	} {
		if out, err := tried(w, append([]string{"policy"}, wrong...)...); err == nil {
			t.Errorf("tamga policy %v: %s", wrong, out)
		}
	}
}

// described is what GetPolicy says of confirmations: the mode, and the actions that need
// one of all twelve.
func described(w *tamgatest.UMS) (mode, confirmed string) {
	w.T.Helper()
	var p struct {
		AuthenticationPolicy struct {
			Mode            string
			EditableByUser  bool
			AuthMethods     []struct{ Identifier, Type string }
			OperationPolicy []struct {
				Action               int
				ConfirmationRequired bool
			}
		}
		CryptoProviders []struct{ ID, Name, Description, Type string }
	}
	w.OK(tamgatest.Ours, "GET", "/ums/policy", "").Into(w.T, &p)
	var actions []int
	for i, o := range p.AuthenticationPolicy.OperationPolicy {
		if o.Action != 1<<i {
			w.T.Errorf("action %d in place %d", o.Action, i)
		}
		if o.ConfirmationRequired {
			actions = append(actions, o.Action)
		}
	}
	if n := len(p.AuthenticationPolicy.OperationPolicy); n != len(dssActions) || len(p.AuthenticationPolicy.AuthMethods) < 8 {
		w.T.Errorf("%+v", p.AuthenticationPolicy)
	}
	types := map[string]int{}
	for _, c := range p.CryptoProviders {
		types[c.Type]++
		if len(c.ID) != 36 || c.Name == "" || c.Description == "" {
			w.T.Errorf("%+v", c)
		}
	}
	if types["GOST"] != 3 || types["RSA_AES"] != 1 || len(types) != 2 {
		w.T.Errorf("crypto providers: %v", types)
	}
	return p.AuthenticationPolicy.Mode, fmt.Sprint(actions)
}

// tried is tamga for a command that may fail.
func tried(w *tamgatest.UMS, args ...string) (string, error) {
	r := w.TryCommand(args...)
	return r.Out + r.Err, r.Failure
}

// TestIssueInPolicies checks that a user who may not be issued tokens gets none, from the
// next request on.
func TestIssueInPolicies(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	id := w.Dev.User.ID
	for kind, want := range map[string]string{"accesspolicy": "access_denied", "operationpolicy": "authn_method_not_confirmed"} {
		path := "/ums/user/" + id + "/" + kind
		w.OK(tamgatest.Ours, "POST", path, `[1]`)
		status, answer := w.Grant(w.Dev.User.Login, w.Dev.User.Password)
		if status != 400 || !strings.Contains(string(answer), `"error":"`+want+`"`) {
			t.Errorf("%s: %d %s, want %s", kind, status, answer, want)
		}
		w.OK(tamgatest.Ours, "POST", path, `[]`)
		if status, answer := w.Grant(w.Dev.User.Login, w.Dev.User.Password); status != 200 {
			t.Errorf("%s lifted: %d %s", kind, status, answer)
		}
	}
}

// TestPoliciesOfTheInstallation checks that the policies of the configuration apply to
// users without others.
func TestPoliciesOfTheInstallation(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t, "--set", "user_policies.access.denied=[DecryptDocument, 128]", "--set", "user_policies.access.changes_allowed=false",
		"--set", "user_policies.operation.confirm=[CreateRequest]", "--set", "user_policies.notification.events={UserCreated: [email]}")
	id, _, _, _ := w.Register()
	want(w, id, "access", "DecryptDocument RevokeCertificate", false)
	want(w, id, "operation", "CreateRequest", true)
	if mode, confirmed := described(w); mode != "On" || confirmed != "[16]" {
		t.Errorf("described as %s, confirming %s", mode, confirmed)
	}
	told(w, id, map[string][]string{"UserCreated": {"Email"}})
	if a := w.Ask(tamgatest.Ours, "POST", "/ums/user/"+id+"/accesspolicy", `[]`); a.Status != 400 || !strings.Contains(a.Body, "wrong_operation") {
		t.Errorf("%v", a)
	}
	w.Command("policy", "set", "access", "--group", "Default")
	want(w, id, "access", "", true)
	w.Command("policy", "clear", "access", "--group", "Default")
	want(w, id, "access", "DecryptDocument RevokeCertificate", false)
	w.Scan()
}

// TestPoliciesAreEnforced: what an operator sets counts for the very next request, by
// every way there is.
func TestPoliciesAreEnforced(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"SQLite", "PostgreSQL"} {
		settings := []string{"--set", "operations.async=true"}
		if engine == "PostgreSQL" {
			settings = append(settings, "--set", "database="+storetest.PostgreSQL(t).Migrated(t))
		}
		t.Run(engine, func(t *testing.T) { policiesAreEnforced(t, tamgatest.StartUMS(t, settings...)) })
	}
}

func policiesAreEnforced(t *testing.T, w *tamgatest.UMS) {
	id, token := w.Dev.User.ID, w.Token()
	content := []byte("text")
	signature := map[string]any{"Type": "CMS", "Parameters": tamgatest.Parameters{}, "CertificateId": 0}
	one := map[string]any{"Content": content, "Signature": signature}
	many := map[string]any{"Documents": []any{map[string]any{"Content": content, "Name": "a"}}, "Signature": signature}
	v2 := map[string]any{"BinaryData": []any{map[string]any{"Content": content, "ContentInfo": "a.txt"}}, "Signature": signature}
	twice := map[string]any{"BinaryData": []any{map[string]any{"Content": content, "ContentInfo": "a.txt"}, map[string]any{"Content": content, "ContentInfo": "b.txt"}}, "Signature": signature}
	later := map[string]any{"BinaryData": v2["BinaryData"], "Signature": signature, "IsAsync": true}
	pin := w.Cert("gost2012-256", true)
	certificate := fmt.Sprintf("/certificates/%d", w.Cert("ecdsa-p256", false).ID)
	changePIN := fmt.Sprintf("/certificates/%d/pin", pin.ID)
	for _, act := range []struct {
		name, method, path string
		body               any
		action             int
	}{
		{"document", "POST", "/api/documents", one, 2},
		{"document, the other address", "POST", "/rest/api/documents", one, 2},
		{"package", "POST", "/api/documents/packagesignature", many, 4},
		{"package for who may not sign one", "POST", "/api/documents/packagesignature", many, 2},
		{"v2", "POST", "/api/v2/signature", v2, 2},
		{"v2 of several", "POST", "/api/v2/signature", twice, 4},
		{"v2 of several for who may not sign one", "POST", "/rest/api/v2/signature", twice, 2},
		{"v2 later", "POST", "/api/v2/signature", later, 2},
		{"PIN", "POST", "/api" + changePIN, map[string]any{"OldPin": pin.PIN, "NewPin": pin.PIN}, 32},
		{"PIN v2", "POST", "/rest/api/v2" + changePIN, map[string]any{"OldPin": pin.PIN, "NewPin": pin.PIN}, 32},
		{"hold", "POST", "/api" + certificate + "/status", map[string]any{"Status": "HOLD"}, 256},
		{"end of hold", "POST", "/api" + certificate + "/status", map[string]any{"Status": "ACTIVE"}, 512},
		{"revocation", "POST", "/api" + certificate + "/status", map[string]any{"Status": "REVOKED", "RevocationReason": 0}, 128},
		{"deletion", "DELETE", "/api" + certificate, map[string]any{}, 1024},
	} {
		refused := func(kind string, status int, code string) {
			t.Helper()
			w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/"+kind+"policy", fmt.Sprintf("[%d]", act.action))
			if got, body := w.Call(act.method, act.path, token, act.body); got != status || !strings.Contains(string(body), `"error":"`+code+`"`) {
				t.Errorf("%s, %s policy: %d %.300s", act.name, kind, got, body)
			}
		}
		refused("access", 403, "access_denied")
		refused("operation", 403, "access_denied") // the one comes before the other
		w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/accesspolicy", `[]`)
		refused("operation", 400, "authn_method_not_confirmed")
		w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/operationpolicy", `[1]`)
		if got, body := w.Call(act.method, act.path, token, act.body); got != 200 {
			t.Errorf("%s when it is allowed again: %d %.300s", act.name, got, body)
		}
	}
	// The client's own wish for a confirmation is one.
	forced := map[string]any{"BinaryData": v2["BinaryData"], "Signature": signature, "ForceConfirmation": true}
	for path, body := range map[string]any{"/api/v2/signature": forced, "/api" + changePIN: map[string]any{"OldPin": pin.PIN, "NewPin": "", "ForceConfirmation": "True"}} {
		if got, answer := w.Call("POST", path, token, body); got != 400 || !strings.Contains(string(answer), `"error":"authn_method_not_confirmed"`) {
			t.Errorf("%s with ForceConfirmation: %d %.300s", path, got, answer)
		}
	}
	// Of what was refused nothing was done.
	status, body := w.Call("GET", "/api/certificates", token, nil)
	if gone := fmt.Sprintf(`"ID":%s,`, strings.TrimPrefix(certificate, "/certificates/")); status != 200 || strings.Contains(string(body), gone) {
		t.Errorf("the certificate is not deleted: %d %s", status, body)
	}
	w.Scan()
}

// TestWebhooks: systems that listen are told once, are told again when they did not
// take it, and no more when they are removed.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t, hooks...)
	all, some := newEar(t), newEar(t)
	allID := all.register(w)
	someID := some.register(w, "userCREATED", "UserDeleted", "UserCreated")
	if out := w.Command("webhook", "list"); strings.Contains(out, "whsec_") || !strings.Contains(out, "UserCreated, UserDeleted") || !strings.Contains(out, "all events") {
		t.Errorf("the list: %s", out)
	}
	types := func(e *ear) string {
		t.Helper()
		var list []string
		for _, x := range e.new(w) {
			list = append(list, x.Type)
		}
		return strings.Join(list, " ")
	}
	id, _, _, _ := w.Register()
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id, `{"PropertyType":0,"Value":"A"}`)
	if got := types(all); got != "UserCreated UserAccountChanged" {
		t.Errorf("all: %s", got)
	}
	if got := types(some); got != "UserCreated" {
		t.Errorf("some: %s", got)
	}

	// One that has a bad hour is told later, in order, by the same identifier.
	all.answer(503)
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id, `{"PropertyType":0,"Value":"B"}`)
	w.OK(tamgatest.Ours, "DELETE", "/ums/user/"+id, "")
	failed := all.new(w)
	if len(failed) != 1 || failed[0].Type != "UserAccountChanged" {
		t.Fatalf("while it fails: %+v", failed)
	}
	if got := types(some); got != "UserDeleted" {
		t.Errorf("the other one waited, or heard %s", got)
	}
	pending := messages(w, "pending")
	if len(pending) != 2 || pending[1].Error != "webhook: answered 503, want 2xx" || pending[1].Attempts != 1 || pending[0].Attempts != 0 || pending[1].To != allID {
		t.Errorf("pending: %+v", pending)
	}
	all.answer(200)
	due(w, t)
	if heard := all.new(w); len(heard) != 2 || heard[0] != failed[0] || heard[1].Type != "UserDeleted" || heard[1].Data.UserID != id {
		t.Errorf("after the bad hour: %+v, before it %+v", heard, failed)
	}

	// One that says it is gone is told nothing more of this.
	all.answer(410)
	w.Register()
	all.new(w)
	if dead := messages(w, "dead"); len(dead) != 1 || !strings.Contains(dead[0].Error, "410") {
		t.Errorf("dead: %+v", dead)
	}
	all.answer(200)
	types(some)
	w.Command("message", "resend", messages(w, "dead")[0].ID)
	if got := types(all); got != "UserCreated" {
		t.Errorf("sent again: %s", got)
	}

	// The administrator tries it, switches it off and on, and changes its events.
	w.Command("webhook", "test", allID)
	if got := types(all); got != string(notify.WebhookTest) {
		t.Errorf("the test: %s", got)
	}
	all.answer(500)
	if out, err := tried(w, "webhook", "test", allID); err == nil || !strings.Contains(err.Error(), "has not taken the message: webhook: answered 500") {
		t.Errorf("a test that fails: %s, %v", out, err)
	}
	all.answer(200)
	types(all)
	w.Command("webhook", "pause", allID)
	if out := w.Command("webhook", "list", "--json"); strings.Count(out, `"paused": true`) != 1 {
		t.Errorf("the list while one is off: %s", out)
	}
	if _, err := tried(w, "webhook", "test", allID); err == nil {
		t.Error("a webhook that is off was tried")
	}
	w.Register()
	types(some)
	w.Command("webhook", "resume", allID)
	w.Command("webhook", "change", allID, "--event", "UserDeleted")
	id, _, _, _ = w.Register()
	w.OK(tamgatest.Ours, "DELETE", "/ums/user/"+id, "")
	if got := types(all); got != "UserDeleted" {
		t.Errorf("after a pause and a change of events: %s", got)
	}
	w.Command("webhook", "change", allID, "--url", all.URL+"/other")
	if out := w.Command("webhook", "list"); !strings.Contains(out, all.URL+"/other") || strings.Contains(out, "all events") {
		t.Errorf("after the change of the address: %s", out)
	}
	w.Command("webhook", "change", allID, "--all")
	w.Register()
	if got := types(all); got != "UserCreated" {
		t.Errorf("of all events: %s", got)
	}
	types(some)
	for _, wrong := range [][]string{{allID}, {allID, "--all", "--event", "UserDeleted"}, {allID, "--event", "Nothing"}, {allID, "--url", "http://10.0.0.1/"}, {"nothing", "--all"}} {
		if out, err := tried(w, append([]string{"webhook", "change"}, wrong...)...); err == nil {
			t.Errorf("change %v: %s", wrong, out)
		}
	}

	w.Command("webhook", "remove", allID)
	if _, err := tried(w, "webhook", "remove", allID); err == nil {
		t.Error("removed twice")
	}
	w.Register()
	if got := types(all) + types(some); got != "UserCreated" {
		t.Errorf("after the removal: %s", got)
	}
	w.Command("webhook", "remove", someID)
	// The secrets are in no file (class 27).
	for _, name := range []string{"tamga.db", "tamga.db-wal"} {
		file, err := os.ReadFile(w.Path(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []*ear{all, some} {
			if bytes.Contains(file, e.secret) || bytes.Contains(file, []byte(base64.StdEncoding.EncodeToString(e.secret))) {
				t.Errorf("a secret of a webhook is in %s", name)
			}
		}
	}
	for _, wrong := range [][]string{{"ftp://example.org"}, {"http://10.0.0.1/"}, {"example.org"}, {"http://user@example.org/"}, {"https://example.org/", "--event", "Nothing"}} {
		if out, err := tried(w, append([]string{"webhook", "add"}, wrong...)...); err == nil {
			t.Errorf("%v: %s", wrong, out)
		}
	}
	w.Scan()
}

// TestWebhooksReachNoAddressInside: an address inside is refused when a webhook is added, in
// every spelling, and so is http where it is not allowed. Package guard tests the check of
// names when the connection is made.
func TestWebhooksReachNoAddressInside(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	e := newEar(t)
	for _, host := range []string{"127.0.0.1", "localhost", "localhost.", "127.1", "2130706433", "[::ffff:127.0.0.1]"} {
		address := strings.Replace(strings.Replace(e.URL, "127.0.0.1", host, 1), "http:", "https:", 1)
		if out, err := tried(w, "webhook", "add", address); err == nil || !strings.Contains(err.Error(), "not an address of the public internet") {
			t.Errorf("%s: %s, %v", address, out, err)
		}
	}
	if out, err := tried(w, "webhook", "add", "http://example.org/"); err == nil || !strings.Contains(err.Error(), "https") {
		t.Errorf("plain http: %s, %v", out, err)
	}
}

// answer changes what the ear answers.
func (e *ear) answer(status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status = status
}

// messages are those of a state, newest first.
func messages(w *tamgatest.UMS, state string) (list []admin.MessageJSON) {
	w.T.Helper()
	if err := json.Unmarshal([]byte(w.Command("message", "list", "--state", state, "--json")), &list); err != nil {
		w.T.Fatal(err)
	}
	return list
}

// due makes every pending message due at once, as time would.
func due(w *tamgatest.UMS, t *testing.T) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+w.Path("tamga.db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "UPDATE outbox SET due_at = created_at WHERE state = 'pending'"); err != nil {
		t.Fatal(err)
	}
}

// TestMethodURIs: GetPolicy and the scheme of a user spell methods as the specification
// does, or as the setting says; requests take both.
func TestMethodURIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		settings []string
		want     string
	}{
		{nil, "none password cert external otpviasms otpviaemail oath mydss"},
		{[]string{"--set", "users.method_uris=product"}, "none password certificate saml otpviasms otpviaemail oath mydss"},
	} {
		w := tamgatest.StartUMS(t, c.settings...)
		var p struct{ AuthMethods []struct{ Identifier string } }
		w.OK(tamgatest.Ours, "GET", "/ums/policy", "").Into(t, &p)
		var got []string
		for _, m := range p.AuthMethods {
			got = append(got, m.Identifier[strings.LastIndexByte(m.Identifier, '/')+1:])
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v: %v, want %s", c.settings, got, c.want)
		}
		id := w.Dev.User.ID
		w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/authmethod/cert", "")
		scheme := w.OK(tamgatest.Ours, "GET", "/ums/user/"+id+"/authmethod", "").Body
		if want := "/authenticationmethod/" + strings.Fields(c.want)[2] + `"`; !strings.Contains(scheme, want) {
			t.Errorf("%v: %s, want %s", c.settings, scheme, want)
		}
		for _, name := range []string{"cert", "certificate"} {
			uri := "http://dss.cryptopro.ru/identity/authenticationmethod/" + name
			found := w.OK(tamgatest.Ours, "POST", "/ums/users", `{"Filters":[{"Column":7,"Operation":0,"Value":"`+uri+`"}],"StartPosition":0,"EndPosition":10}`).Body
			if !strings.Contains(found, id) {
				t.Errorf("%v: a search for %s finds %s", c.settings, name, found)
			}
		}
	}
}
