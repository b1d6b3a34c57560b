// SPDX-License-Identifier: Apache-2.0

package umsapi_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/store/storetest"

	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
)

// bodies are requests that do something, by operation: the query and the body.
var bodies = map[string]struct{ query, body string }{
	"RegisterUser":                      {"", `{"Login":"LOGIN"}`},
	"RegisterUser2":                     {"", `{"Login":"LOGIN2"}`},
	"CheckIdentifiersUnique":            {"", `{"Login":"LOGIN"}`},
	"SetUserProperty":                   {"", `{"PropertyType":0,"Value":"Changed"}`},
	"SetUserApprovedStateAsync":         {"approved=false", "{}"},
	"SetUserDistinguishedName":          {"", `{"11":"Changed"}`},
	"CheckDistinguishedNameUnique":      {"", `{"11":"Changed"}`},
	"SetUserGroup":                      {"groupName=Default", `{"9":"Changed"}`},
	"SetUserLocalLogin":                 {"newLogin=changed-LOGIN", ""},
	"SetUserLogin":                      {"", `{"Login":"changed-LOGIN","IssuerName":"elsewhere"}`},
	"DeleteUserLogin":                   {"issuerName=realsts", ""},
	"ResetPasswordAndSend":              {"", `{"ReturnRawPassword":true}`},
	"ResetPasswordAndPrint":             {"format=Html", ""},
	"AddUserPhone":                      {"", `"79990000001"`},
	"SubmitUserPhoneConfirmation":       {"", `"123456"`},
	"SetUserPrimaryPhone":               {"", `false`},
	"SetUserNotificationPhone":          {"", `true`},
	"SetUserMainPhone":                  {"", `"79990000002"`},
	"AddUserEmail":                      {"", `"changed@example.ru"`},
	"SubmitUserEmailConfirmation":       {"", `"123456"`},
	"SetUserPrimaryEmail":               {"", `false`},
	"SetUserNotificationEmail":          {"", `true`},
	"SetUserMainEmail":                  {"", `"changed2@example.ru"`},
	"GetUserRawAuthenticationDataAsync": {"", `{"UserId":"ID"}`},
	"SetUserOtpToken":                   {"", `{"Serial":"NONE","FirstOtp":"123456"}`},
	"RestoreUserOtpTokenSync":           {"", `{"Serial":"NONE","FirstOtp":"123456","SecondOtp":"123457"}`},
	"SetUserLockoutState":               {"lock=true", "{}"},
	"SetUserLockoutStateEx":             {"", `{"LockUser":true}`},
	"Get":                               {"type=Login&value=LOGIN", ""},
	"GetUsers":                          {"", `{}`},
}

// target is the user a request of the matrix names.
type target struct{ id, login, phone, email string }

// address fills an operation's path, query and body with a target.
func address(o struct{ name, method, path string }, u target) (path, body string) {
	b := bodies[o.name]
	in := strings.NewReplacer("{id}", u.id, "{phone}", u.phone, "{email}", url.PathEscape(u.email), "LOGIN", u.login, "ID", u.id)
	path = in.Replace(o.path)
	if b.query != "" {
		path += "?" + in.Replace(b.query)
	}
	return path, in.Replace(b.body)
}

// shownBy is what a caller learns from an answer.
func shownBy(a tamgatest.Answer) string {
	header := a.Header.Clone()
	header.Del("Date")
	header.Del("X-Request-Id")
	return fmt.Sprint(a.Status, " ", a.Body, " ", header)
}

const userNotFound = `{"Message":"User not found","error":"user_not_found","error_description":"User not found"}`

// TestMatrixOfCallers calls every operation as every caller (classes 13, 15 and 17). The
// answer for a user of another group is that for a missing user, byte for byte.
func TestMatrixOfCallers(t *testing.T) { tamgatest.OnBothEngines(t, matrixOfCallers) }

func matrixOfCallers(t *testing.T, w *tamgatest.UMS) {
	id, login, phone, email := w.Register()
	there, absent := target{id, login, phone, email}, target{tamgatest.Missing, "unknown-name", phone, email}
	before := w.OK(tamgatest.Ours, "GET", "/ums/user/"+id, "").Body
	for _, o := range operations(t) {
		named := strings.Contains(o.path, "{id}")
		what := o.name + " " + o.method + " " + o.path
		call := func(who string, u target) tamgatest.Answer {
			t.Helper()
			path, body := address(o, u)
			return w.Ask(who, o.method, path, body)
		}
		for who, status := range map[string]int{tamgatest.Anonymous: 401, tamgatest.Plain: 403} {
			a, b := call(who, there), call(who, absent)
			if a.Status != status || shownBy(a) != shownBy(b) {
				t.Errorf("%s by %q: %v; for an unknown user: %v", what, who, a, b)
			}
		}
		switch {
		case named || o.name == "Get" || o.name == "GetUserRawAuthenticationDataAsync":
			a, b := call(tamgatest.Foreign, there), call(tamgatest.Foreign, absent)
			if a.Status != 404 || a.Body != userNotFound {
				t.Errorf("%s by an operator of another group: %v", what, a)
			}
			if d := cmp.Diff(shownBy(b), shownBy(a)); d != "" {
				t.Errorf("%s tells a user of another group from none: %s", what, d)
			}
		case o.name == "GetUsers":
			if a := call(tamgatest.Foreign, there); strings.Contains(a.Body, id) || !strings.Contains(a.Body, `"TotalCount":0`) && strings.Contains(a.Body, "Default") {
				t.Errorf("%s shows users of another group: %v", what, a)
			}
		case o.name == "GetPolicy":
			if a := call(tamgatest.Foreign, there); a.Status != 200 || strings.Contains(a.Body, `"Default"`) {
				t.Errorf("%s shows another group: %v", what, a)
			}
		}
		if !named {
			continue
		}
		// A body that is broken, and an operator as the target: not visible to the caller.
		path, _ := address(o, there)
		none, _ := address(o, absent)
		for _, broken := range []string{"{", strings.Repeat("x", 2<<20)} {
			if a, b := w.Ask(tamgatest.Foreign, o.method, path, broken), w.Ask(tamgatest.Foreign, o.method, none, broken); shownBy(a) != shownBy(b) {
				t.Errorf("%s with a broken body: %v; for an unknown user: %v", what, a, b)
			}
		}
		operator := target{w.Dev.Operator.ID, "operator", phone, email}
		path, body := address(o, operator)
		if a := w.Ask(tamgatest.Foreign, o.method, path, body); a.Status != 404 || a.Body != userNotFound {
			t.Errorf("%s on an operator of another group: %v", what, a)
		}
	}
	if after := w.OK(tamgatest.Ours, "GET", "/ums/user/"+id, "").Body; after != before {
		t.Errorf("a caller changed the user:\n%s", cmp.Diff(before, after))
	}
	// The operator of the group is let in everywhere, each time with a fresh user.
	for _, o := range operations(t) {
		var u target
		u.id, u.login, u.phone, u.email = w.Register()
		if strings.HasPrefix(o.name, "RegisterUser") {
			u.login = "new-" + u.login
		}
		path, body := address(o, u)
		if a := w.Ask(tamgatest.Ours, o.method, path, body); a.Status != 200 && a.Status != 400 {
			t.Errorf("%s by its operator: %v", o.name, a)
		}
	}
	w.Scan()
}

// TestRightsAreThoseOfNow checks that a former operator loses all rights at once (class 20).
func TestRightsAreThoseOfNow(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	id, _, _, _ := w.Register()
	w.OK(tamgatest.TwoGroup, "GET", "/ums/user/"+id, "")
	w.Command("user", "lock", tamgatest.TwoGroup)
	if a := w.Ask(tamgatest.TwoGroup, "GET", "/ums/user/"+id, ""); a.Status != 401 {
		t.Errorf("a locked operator: %v", a)
	}
}

// Classes 9 and 10: what a request says of its host and its way changes no message.
func TestHostHeadersLeaveMessagesEqual(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	hostile := []string{"Host", "evil.localhost", "X-Forwarded-Host", "evil.example", "X-Forwarded-For", "192.0.2.66", "X-Forwarded-Proto", "https",
		"Forwarded", "host=evil.example;for=192.0.2.66", "X-Original-URL", "/evil", "X-Rewrite-URL", "/evil", "X-Host", "evil.example", "Referer", "https://evil.example/"}
	messages := func(headers ...string) string {
		t.Helper()
		id, login, phone, email := w.Register()
		begin := len(w.Captured())
		for _, contact := range []string{"phones/" + phone, "emails/" + url.PathEscape(email)} {
			if a := w.Ask(tamgatest.Ours, "POST", "/ums/user/"+id+"/"+contact+"/requireconfirm", "", headers...); a.Status != 200 {
				t.Fatalf("%v", a)
			}
			w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/"+contact+"/confirm", "")
		}
		if a := w.Ask(tamgatest.Ours, "POST", "/ums/user/"+id+"/password/send", `{"NotificationDestinations":[{"Type":"PhoneNumber","Value":"`+phone+`"},{"Type":"EmailAddress","Value":"`+email+`"}]}`, headers...); a.Status != 200 {
			t.Fatalf("%v", a)
		}
		var lines []string
		for _, m := range w.Captured()[begin:] {
			lines = append(lines, m.Channel+"|"+m.Subject+"|"+m.Text)
		}
		slices.Sort(lines)
		text := strings.NewReplacer(login, "LOGIN", phone, "PHONE", email, "EMAIL").Replace(strings.Join(lines, "\n"))
		text = tamgatest.SixDigits.ReplaceAllString(text, "CODE")
		// The two runs may be on both sides of a full minute.
		text = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d UTC`).ReplaceAllString(text, "TIME")
		text = regexp.MustCompile(`\d\d\.\d\d\.\d{4} \d\d:\d\d UTC`).ReplaceAllString(text, "TIME")
		return regexp.MustCompile(`[a-z0-9]{12,}`).ReplaceAllString(text, "PASSWORD")
	}
	honest, forged := messages(), messages(hostile...)
	if d := cmp.Diff(honest, forged); d != "" || strings.Contains(forged, "evil") || strings.Contains(forged, "192.0.2.66") || !strings.Contains(honest, "CODE") {
		t.Errorf("messages differ: %s\n%s", d, honest)
	}
	if strings.Contains(w.Command("audit", "--limit", "0", "--json"), "192.0.2.66") {
		t.Error("the audit log believes X-Forwarded-For")
	}
	w.Scan()
}

// Class 1: one code sent many times at once is taken once.
func TestCodeIsSpentOnce(t *testing.T) { tamgatest.OnBothEngines(t, codeIsSpentOnce) }

func codeIsSpentOnce(t *testing.T, w *tamgatest.UMS) {
	id, _, phone, _ := w.Register()
	one := "/ums/user/" + id + "/phones/" + phone
	w.OK(tamgatest.Ours, "POST", one+"/requireconfirm", "")
	code := w.Code(phone)
	var mu sync.Mutex
	var senders sync.WaitGroup
	count := map[int]int{}
	for range 20 {
		senders.Go(func() {
			a := w.Ask(tamgatest.Ours, "POST", one+"/submitconfirm", `"`+code+`"`)
			mu.Lock()
			defer mu.Unlock()
			count[a.Status]++
		})
	}
	senders.Wait()
	if count[200] != 1 || count[400] != 19 {
		t.Errorf("answers by status: %v", count)
	}
	w.Scan()
}

// Class 2: guesses at a code share a budget, whatever way they come.
func TestCodeGuesses(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	id, _, phone, _ := w.Register()
	one := "/ums/user/" + id + "/phones/"
	w.OK(tamgatest.Ours, "POST", one+phone+"/requireconfirm", "")
	code := w.Code(phone)
	wrong := "000000"
	if code == wrong {
		wrong = "000001"
	}
	for i := range 5 {
		path := one + []string{phone, "+" + phone, "8" + phone[1:]}[i%3] + "/submitconfirm"
		if a := w.Ask(tamgatest.Ours, []string{"POST", "PATCH"}[i%2], path, `"`+wrong+`"`); a.Status != 400 {
			t.Errorf("%v", a)
		}
	}
	if a := w.Ask(tamgatest.Ours, "POST", one+phone+"/submitconfirm", `"`+code+`"`); a.Status != 400 || !strings.Contains(a.Body, "max_attempts_exceeded") {
		t.Errorf("the right code after five wrong ones: %v", a)
	}
	w.Scan()
}

// Classes 22, 25 and 32: hostile texts in every place a text goes, and bodies that
// are none. Nothing is ever an internal error, and what is stored comes back as it
// was.
func TestHostileInput(t *testing.T) { tamgatest.OnBothEngines(t, hostileInput) }

func hostileInput(t *testing.T, w *tamgatest.UMS) {
	id, _, _, _ := w.Register()
	texts := []string{
		"'; DROP TABLE users; --", `" OR 1=1 --`, "%' OR '%'='", "a\\'b", "{{.Text}}{{template \"x\"}}", "${jndi:ldap://x}", "<script>alert(1)</script>",
		"=cmd|' /C calc'!A0", "\u202egpj.exe", "a\x00b", "\xff\xfe\xfd", "\xc0\xae\xc0\xae/", strings.Repeat("я", 5000), "..", "../../etc/passwd", "a/b", "%2e%2e%2f", "%252e", " ", "", "\r\nX-Injected: 1",
		"１２３", "ſelect", "null", "-1", "1e309", "99999999999999999999",
	}
	// The short form takes a quarter of the combinations: each text and each call comes with others.
	skip := func(i, j int) bool { return testsize.Of() < testsize.Whole && (i+j)%4 != 0 }
	for i, text := range texts {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		q, p := url.QueryEscape(text), url.PathEscape(text)
		for j, call := range [][3]string{
			{"POST", "/ums/user", `{"Login":` + string(quoted) + `}`},
			{"POST", "/ums/user", `{"Email":` + string(quoted) + `}`},
			{"POST", "/ums/user", `{"PhoneNumber":` + string(quoted) + `}`},
			{"POST", "/ums/user", `{` + string(quoted) + `:"x"}`},
			{"POST", "/ums/user?groupName=" + q, `{"Login":"x"}`},
			{"POST", "/ums/user/isunique?issuerName=" + q, `{"Login":` + string(quoted) + `,"Email":` + string(quoted) + `}`},
			{"GET", "/ums/user?type=Login&value=" + q, ""},
			{"GET", "/ums/user?type=" + q + "&value=" + q + "&issuerName=" + q, ""},
			{"GET", "/ums/user/" + p, ""},
			{"POST", "/ums/user/" + id, `{"PropertyType":0,"Value":` + string(quoted) + `}`},
			{"POST", "/ums/user/" + id, `{"PropertyType":` + string(quoted) + `,"Value":` + string(quoted) + `}`},
			{"POST", "/ums/user/" + id + "/approve?approved=" + q, ""},
			{"POST", "/ums/user/" + id + "/dn", `{"11":` + string(quoted) + `,"9":` + string(quoted) + `}`},
			{"POST", "/ums/user/" + id + "/dn", `{` + string(quoted) + `:"x"}`},
			{"POST", "/ums/user/dn/isunique", `{"11":` + string(quoted) + `}`},
			{"POST", "/ums/user/" + id + "/group?groupName=" + q, ""},
			{"POST", "/ums/user/" + id + "/login", `{"Login":` + string(quoted) + `,"IssuerName":` + string(quoted) + `}`},
			{"POST", "/ums/user/" + id + "/login/local?newLogin=" + q, ""},
			{"DELETE", "/ums/user/" + id + "/login?issuerName=" + q, ""},
			{"POST", "/ums/user/" + id + "/password/send", `{"NotificationDestinations":[{"Type":` + string(quoted) + `,"Value":` + string(quoted) + `}],"ReturnPrintedPasswordFormat":` + string(quoted) + `}`},
			{"POST", "/ums/user/" + id + "/password/send/sms?destination=" + q, ""},
			{"POST", "/ums/user/" + id + "/password/print?format=" + q, ""},
			{"POST", "/ums/user/" + id + "/phones", string(quoted)},
			{"POST", "/ums/user/" + id + "/emails", string(quoted)},
			{"POST", "/ums/user/phones/" + p + "/isunique", ""},
			{"POST", "/ums/user/" + id + "/phones/" + p + "/confirm", ""},
			{"POST", "/ums/user/" + id + "/emails/" + p + "/submitconfirm", string(quoted)},
			{"PATCH", "/ums/user/" + id + "/emails/" + p + "/primary?primary=" + q, string(quoted)},
			{"DELETE", "/ums/user/" + id + "/emails/" + p + "/", ""},
			{"POST", "/ums/user/" + id + "/authmethod/oath?level=" + q, ""},
			{"POST", "/ums/user/rawauthdata", `{"UserId":` + string(quoted) + `,"AuthnMethods":[` + string(quoted) + `],"Format":` + string(quoted) + `}`},
			{"POST", "/ums/user/" + id + "/lockout?lock=" + q, ""},
			{"POST", "/ums/user/" + p + "/grants/revoke", ""},
			{"POST", "/ums/users", `{"Filters":[{"Column":"Login","Operation":"Like","Value":` + string(quoted) + `},{"Column":"Rdn","Operation":0,"Value":` + string(quoted) + `}]}`},
			{"POST", "/ums/users", `{"Filters":[{"Column":` + string(quoted) + `,"Operation":` + string(quoted) + `,"Value":1}],"OrderColumn":` + string(quoted) + `,"OrderDirection":` + string(quoted) + `}`},
		} {
			if skip(i, j) {
				continue
			}
			// "." and ".." cannot be a segment; the address is another one then.
			if a := w.Ask(tamgatest.Ours, call[0], call[1], call[2]); a.Status >= 500 || a.Header.Get("X-Injected") != "" {
				t.Errorf("%.300s", a.String())
			}
		}
	}
	w.Scan()
	w.Forget()

	// Bodies of every other form, at every operation that takes one.
	for i, o := range operations(t) {
		if o.method == "GET" || o.method == "DELETE" {
			continue
		}
		var u target
		u.id, u.login, u.phone, u.email = w.Register()
		path, _ := address(o, u)
		for j, body := range []string{
			"", " ", "{}", "[]", "null", "true", "1", `""`, `"x"`, "{", "[", `{"a":`, "\xef\xbb\xbf{}", "\xff", "{}{}", `{"a":{"a":{"a":1}}}`,
			strings.Repeat("[", 100_000), `{"` + strings.Repeat("k", 100_000) + `":1}`, `{"Login":"a","Login":"b"}`, `{"Filters":null,"StartPosition":-1}`,
			`{"StartPosition":9223372036854775807,"EndPosition":-9223372036854775808}`, `{"LockUser":true,"UseLockoutDelay":true,"LockoutDelay":9223372036854775807}`,
			`{"PropertyType":1e9}`, `{"UserId":null,"AuthnMethods":null}`, "a=b&c=d",
		} {
			if skip(i, j) {
				continue
			}
			if a := w.Ask(tamgatest.Ours, o.method, path, body); a.Status >= 500 {
				t.Errorf("%.300s", a.String())
			}
		}
	}
	// Too large a body is refused where a body is read at all.
	large := w.Ask(tamgatest.Ours, "POST", "/ums/user", `{"Login":"`+strings.Repeat("x", 1<<20)+`"}`)
	if large.Status != 413 || !strings.Contains(large.Body, "max_request_length_exceeded") {
		t.Errorf("a large body: %v", large)
	}
	w.Scan()
}

// TestRegistrationsAtOnce: administrators and operators who want one login at the same
// time. One gets it, the others are told that it is taken, by the command line as by
// the server.
func TestRegistrationsAtOnce(t *testing.T) { tamgatest.OnBothEngines(t, registrationsAtOnce) }

func registrationsAtOnce(t *testing.T, w *tamgatest.UMS) {
	file := tamgatest.PasswordFile(t)
	for round := range 3 {
		login := fmt.Sprintf("wanted-%d", round)
		const each = 4
		var done sync.WaitGroup
		results := make([]string, 2*each)
		for i := range each {
			done.Go(func() {
				out, err := tried(w, "user", "add", login, "--group", "Default", "--password-file", file)
				if results[i] = "registered"; err != nil {
					results[i] = out + err.Error()
				}
			})
			done.Go(func() {
				status, text, err := w.Try(tamgatest.Ours, "/ums/user", `{"Login":"`+strings.ToUpper(login)+`"}`)
				if results[each+i] = "registered"; err != nil || status != 200 {
					results[each+i] = fmt.Sprint(status, string(text), err)
				}
			})
		}
		done.Wait()
		won := 0
		for _, r := range results {
			switch {
			case r == "registered":
				won++
			case !strings.Contains(r, "is taken"):
				t.Errorf("refused otherwise: %s", r)
			}
		}
		if won != 1 {
			t.Errorf("%d got the login", won)
		}
	}
}

// TestCommandsLockTheUser checks that on PostgreSQL a command locks the user whom it
// changes, as operators do. A trigger of the database looks who has locked the row.
func TestCommandsLockTheUser(t *testing.T) {
	t.Parallel()
	address := storetest.PostgreSQL(t).Migrated(t)
	w := tamgatest.StartUMS(t, "--set", "database="+address)
	pool, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for table, column := range map[string]string{
		"operator_groups": "user_id", "passwords": "user_id", "user_methods": "user_id",
		"distinguished_names": "user_id", "access_policies": "user_id", "user_policies": "user_id",
	} {
		// A row that is locked or was made by this transaction has its number.
		for _, statement := range []string{
			`CREATE FUNCTION locked_` + table + `() RETURNS trigger LANGUAGE plpgsql AS $$
			DECLARE
				changed RECORD := COALESCE(NEW, OLD);
				me TEXT := (pg_current_xact_id()::text::numeric % 4294967296)::text;
			BEGIN
				IF EXISTS (SELECT 1 FROM users WHERE id = changed.` + column + ` AND xmin::text <> me AND xmax::text <> me) THEN
					RAISE EXCEPTION 'changed without a lock';
				END IF;
				RETURN changed;
			END $$`,
			"CREATE TRIGGER locked BEFORE INSERT OR UPDATE OR DELETE ON " + table + " FOR EACH ROW EXECUTE FUNCTION locked_" + table + "()",
		} {
			if _, err := pool.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := pool.ExecContext(t.Context(), "DELETE FROM passwords"); err == nil || !strings.Contains(err.Error(), "without a lock") {
		t.Fatalf("the database lets all be changed: %v", err)
	}
	file := tamgatest.PasswordFile(t)
	for _, command := range [][]string{
		{"user", "add", "waits", "--group", "Default", "--password-file", file},
		{"operator", "add", "waits-too", "--group", "Default", "--password-file", file},
		{"operator", "groups", "waits-too", "--group", "Other"},
		{"user", "password", "waits", "--password-file", file},
		{"user", "method", "add", "waits", "idonly"},
		{"user", "lock", "waits"},
		{"user", "unlock", "waits"},
		{"user", "deny", "waits", "ChangePin"},
		{"policy", "set", "operation", "--user", "waits", "--action", "Issue"},
		{"policy", "clear", "operation", "--user", "waits"},
		{"user", "delete", "waits", "--yes"},
	} {
		if out, err := tried(w, command...); err != nil {
			t.Errorf("tamga %s: %s, %v", strings.Join(command, " "), out, err)
		}
	}
}

// TestUniquenessQuestionsAreLimited: an operator may not try all numbers there are,
// and neither another operator nor other operations suffer from one who does.
func TestUniquenessQuestionsAreLimited(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t, "--set", "users.checks_per_second=0.0001", "--set", "users.checks_at_once=6")
	questions := []struct{ path, body string }{
		{"/ums/user/isunique", `{"Login":"a","Email":"a@example.ru","PhoneNumber":"79261234567"}`}, // worth three
		{"/ums/user/phones/79261234567/isunique", ""},
		{"/ums/user/emails/a%40example.ru/isunique", ""},
		{"/ums/user/dn/isunique", `{"11":"A"}`},
	}
	for _, q := range questions {
		w.OK(tamgatest.Ours, "POST", q.path, q.body)
	}
	for _, q := range questions {
		for _, path := range []string{q.path, q.path + "/"} {
			if a := w.Ask(tamgatest.Ours, "POST", path, q.body); a.Status != 429 || !strings.Contains(a.Body, `"error":"too_many_requests"`) || a.Header.Get("Retry-After") == "" {
				t.Errorf("beyond the limit: %v", a)
			}
		}
		if a := w.Ask(tamgatest.Plain, "POST", q.path, q.body); a.Status != 403 {
			t.Errorf("no operator: %v", a)
		}
		w.OK(tamgatest.Foreign, "POST", q.path, q.body)
	}
	w.Register()
	if out := w.Command("audit", "--operation", "CheckPhoneUnique", "--outcome", "too_many_requests"); strings.Count(out, "CheckPhoneUnique") != 2 {
		t.Errorf("the audit log: %s", out)
	}
}

// TestLenientRequests: what existing clients send.
func TestLenientRequests(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	id, _, phone, _ := w.Register()
	for _, kind := range []string{"", "application/json", "application/x-www-form-urlencoded", "text/plain"} {
		for _, call := range [][3]string{
			{"POST", "/ums/user/" + id + "/phones/" + phone + "/confirm", ""},
			{"PATCH", "/ums/user/" + id + "/phones/%2B" + phone + "/notification", "true"},
			{"POST", "/ums/user/" + id + "/dn", `{"11":"Иванов","INN":"500100732259","2.5.4.10":"ООО"}`},
			{"GET", "/ums/user/" + id, ""},
			{"POST", "/ums/user/" + id + "/authmethod/idonly", ""},
			{"POST", "/ums/user/" + id + "/lockoutex", `{"lockuser":false,"USELOCKOUTDELAY":null,"Unknown":[1,2]}`},
			{"POST", "/ums/users", `{"startPosition":0,"endPosition":1,"Filters":[],"Document":""}`},
			{"POST", "/ums/users", `{"StartPosition":"0","EndPosition":"1","Filters":null,"OrderColumn":"0","OrderDirection":1}`},
			{"POST", "/ums/user/" + id + "/lockoutex", `{"LockUser":"False","UseLockoutDelay":0,"LockoutDelay":"60"}`},
			{"POST", "/ums/user/" + id + "/phones/" + phone + "/primary?primary=True", "{}"},
			{"PATCH", "/ums/user/" + id + "/phones/" + phone + "/notification?notification=1", `{"Unknown":1}`},
			{"POST", "/ums/user/" + id + "/password/send", `{"ReturnRawPassword":"false","NotificationDestinations":null}`},
		} {
			headers := []string{}
			if kind != "" {
				headers = append(headers, "Content-Type", kind)
			}
			if a := w.Ask(tamgatest.Ours, call[0], call[1], call[2], headers...); a.Status != 200 || a.Body != "" && !strings.Contains(a.Header.Get("Content-Type"), "application/json") {
				t.Errorf("as %q: %v", kind, a)
			}
		}
	}
	w.Scan()
}

// TestUserAudit checks that the audit log has who did what to whom, and the outcome.
func TestUserAudit(t *testing.T) { tamgatest.OnBothEngines(t, userAudit) }

func userAudit(t *testing.T, w *tamgatest.UMS) {
	id, login, _, _ := w.Register()
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/emails", `"audited@example.ru"`)
	w.Ask(tamgatest.Ours, "POST", "/ums/user/"+id+"/emails/audited@example.ru/notification?notification=true", "")
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/lockout?lock=true", "")
	w.Ask(tamgatest.Foreign, "POST", "/ums/user/"+id+"/lockout?lock=false", "")
	w.OK(tamgatest.Ours, "GET", "/ums/user?type=Login&value="+login, "")
	out := w.Command("audit", "--user", id, "--json", "--limit", "0")
	var lines []string
	for line := range strings.Lines(out) {
		var e struct{ Login, Operation, Outcome, Object, Detail string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Object != id {
			t.Errorf("an entry of another: %s", line)
		}
		lines = append(lines, strings.TrimSpace(e.Login+" "+e.Operation+" "+e.Outcome+" "+e.Detail))
	}
	want := []string{
		"operator RegisterUser ok", "operator AddUserEmail ok audited@example.ru", "operator SetUserNotificationEmail contact_confirmation_required audited@example.ru notification=true",
		"operator SetUserLockoutState ok lock=true", "foreign SetUserLockoutState user_not_found", "operator Get ok",
	}
	if d := cmp.Diff(want, lines); d != "" {
		t.Error(d)
	}
	people := w.Command("audit", "--operation", "SetUserLockoutState", "--outcome", "ok", "--since", "1h", "--attempts")
	if strings.Count(people, "\n") != 2 || !strings.Contains(people, id) { // one entry below the names of the columns
		t.Errorf("for people:\n%s", people)
	}
	if both := w.Command("audit", "--operation", "SetUserLockoutState", "--attempts"); strings.Count(both, "(attempt)") != 1 {
		t.Errorf("with attempts:\n%s", both)
	}
}

// TestKillDuringRegistration kills the server under load: what was answered 200 is
// there after the restart, and its lock is in force.
func TestKillDuringRegistration(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMSProcess(t, t.TempDir())
	var mu sync.Mutex
	var senders sync.WaitGroup
	answered := make(chan struct{}, 10_000)
	registered := map[string]string{}
	for sender := range 8 {
		senders.Go(func() {
			for i := 0; ; i++ {
				login := fmt.Sprintf("load-%d-%d", sender, i)
				status, body, err := w.Try(tamgatest.Ours, "/ums/user", `{"Login":"`+login+`"}`)
				if err != nil {
					return // the server is gone
				}
				var id string
				if status != 200 || json.Unmarshal(body, &id) != nil {
					t.Errorf("%s: %d %s", login, status, body)
					return
				}
				if status, _, err := w.Try(tamgatest.Ours, "/ums/user/"+id+"/lockout?lock=true", ""); err != nil || status != 200 {
					continue
				}
				mu.Lock()
				registered[id] = login
				mu.Unlock()
				answered <- struct{}{}
			}
		})
	}
	for range 100 {
		<-answered
	}
	w.Kill()
	senders.Wait()
	w.Server = tamgatest.StartProcess(t, w.Dir, "--listen", strings.TrimPrefix(w.URL, "http://"))
	for id, login := range registered {
		var info map[string]any
		w.OK(tamgatest.Ours, "GET", "/ums/user/"+id, "").Into(t, &info)
		if info["Login"] != login || info["AccountLocked"] != true {
			t.Errorf("%s came back as %v", login, info)
		}
	}
}
