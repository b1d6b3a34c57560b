// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"database/sql"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"tamga/internal/tamgatest"
	"tamga/internal/web/pages"
)

// operator signs an operator in.
func operator(w *tamgatest.UMS, login string) *browser {
	w.T.Helper()
	b := newBrowser(w.T, w.Server)
	password := tamgatest.Password
	if login == w.Dev.Operator.Login {
		password = w.Dev.Operator.Password
	}
	b.ok(b.signIn("/operator", login, password), "What waits")
	return b
}

var (
	localLink = regexp.MustCompile(`href="(/operator[^"]*)"`)
	formAt    = regexp.MustCompile(`<form method="post" action="(/operator[^"]+)"`)
	fromList  = regexp.MustCompile(`<input type="hidden" name="from" value="([^"]*)">`)
	typeName  = regexp.MustCompile(`To confirm, type <code>([^<]*)</code>`)
)

func personAt(id string) string { return "/operator/people/" + id }

// command sends the form of a command, with the name that it asks for.
func (b *browser) command(at string, form url.Values) shown {
	b.Helper()
	p := b.ok(b.get(at))
	if form == nil {
		form = url.Values{}
	}
	if m := typeName.FindStringSubmatch(p.text); m != nil {
		form.Set("confirm_name", html.UnescapeString(m[1]))
	}
	if m := fromList.FindStringSubmatch(p.text); m != nil {
		form.Set("from", m[1])
	}
	return b.post(b.find(p, formAt)[1], form)
}

// commandKey is the key of a word of a command, in a page without the word.
var commandKey = regexp.MustCompile(`[^/]command\.[a-z]`)

// hostileText is an untrusted text that must stay a text.
const hostileText = `<img src=x onerror=alert(1)>"'&{{.}}`

// TestOperator goes through the story of an operator who looks after a person.
func TestOperator(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	b := operator(w, w.Dev.Operator.Login)
	p := b.ok(b.command("/operator/people/new", url.Values{"login": {"anna"}, "phone": {"79160000001"}, "email": {"anna@example.org"}, "group": {"Default"}}), "The person is registered", "anna@example.org", "<dd>never</dd>")
	at := p.at.Path
	id := strings.TrimPrefix(at, "/operator/people/")
	b.ok(b.get("/operator/people?column0=Login&operation0=Like&value0=ann"), `href="`+at+`"`, "<td>never</td>")
	b.ok(b.get(at), "<title>anna – ")
	b.is(b.get("/operator/people?column0=Login&operation0=Greater&value0=ann"), 400, "for times: choose another comparison.<")
	b.is(b.get("/operator/people?column0=IsLocked&operation0=Equal&value0=perhaps"), 400, "This condition needs yes or no.<")

	// No other identity provider is configured: the login of this service must not be taken for one.
	if p := b.ok(b.get(at), "Login</dt><dd>anna</dd>"); strings.Contains(p.text, "login-external") {
		t.Error("the record leads to logins at identity providers, and there is none")
	}
	b.is(b.post(at+"/login-external", url.Values{"login": {"other"}, "issuer": {"realsts"}}), 400, "want an identity provider of the list")
	b.ok(b.get(at), "Login</dt><dd>anna</dd>")

	b.ok(b.command(at+"/name", url.Values{"name": {hostileText}}), "The name is changed", html.EscapeString(hostileText))
	if log := w.Command("audit", "--user", id, "--limit", "0", "--json"); strings.Contains(log, "OperatorForm") || !strings.Contains(log, `"operation":"GetUserById"`) {
		t.Errorf("the audit log has no entry of a form under the name of what it reads:\n%s", log)
	}
	b.ok(b.get(at+"/dn"), "Surname", "Position") // in the language of the reader
	b.ok(b.command(at+"/dn", url.Values{"dn-11": {hostileText}}), "The name is changed")
	b.ok(b.command(at+"/email-confirm?of=anna%40example.org", nil), "The contact is confirmed")
	b.ok(b.command(at+"/email-notification?of=anna%40example.org", url.Values{"has": {"true"}}), "gets notifications")
	b.ok(b.command(at+"/email-codes?of=anna%40example.org", nil), "gets codes")
	b.ok(b.command(at+"/phone-code?of=79160000001", nil), "The code is on its way")
	b.is(b.command(at+"/phone-submit?of=79160000001", url.Values{"code": {"000000x"}}), 400, "The code is wrong")
	b.ok(b.command(at+"/phone-submit?of=79160000001", url.Values{"code": {w.Code("79160000001")}}), "The contact is confirmed")
	b.ok(b.command(at+"/phone-add", url.Values{"phone": {"+7 916 000-00-02"}}), "79160000002")
	b.is(b.command(at+"/phone-add", url.Values{"phone": {hostileText}}), 400, "The phone number is not right")
	b.ok(b.command(at+"/phone-delete?of=79160000002", nil), "The contact is deleted")

	b.ok(b.command(at+"/method-add-password", nil), "The way to sign in is set")
	b.ok(b.command(at+"/method-add-otpviaemail", url.Values{"level": {"1"}}), "The way to sign in is set", "Code by e-mail")
	b.ok(b.command(at+"/method-delete-otpviaemail", nil), "The way to sign in is removed")
	b.ok(b.command(at+"/password-email", nil), "The password is changed")
	b.ok(b.get("/operator/messages"), "<td>New password</td>", "<td>The password is reset</td>") // not the names of templates and events
	printed := b.ok(b.command(at+"/password-print", url.Values{"format": {"Pdf"}}))
	if !strings.HasPrefix(printed.text, "%PDF") || !strings.HasPrefix(printed.header.Get("Content-Disposition"), "attachment") {
		t.Errorf("the print form is %v, %.20q", printed.header, printed.text)
	}
	for format, begin := range map[string]string{"Word": "PK", "Html": "<!DOCTYPE html>", "Xml": "<?xml"} {
		if p := b.ok(b.command(at+"/password-print", url.Values{"format": {format}})); !strings.HasPrefix(p.text, begin) || !strings.HasPrefix(p.header.Get("Content-Disposition"), "attachment") {
			t.Errorf("the print form %s is %v, %.20q", format, p.header, p.text)
		}
	}
	b.ok(b.command(at+"/token-app", nil), "data:image/gif;base64,", "otpauth://")
	b.ok(b.get("/operator/tokens"), `<td><a href="`+at+`">anna – `)
	app := b.find(b.get(at), regexp.MustCompile(`href="(`+at+`/token-sync\?of=APP-[A-Z0-9]+)"`))[1]
	b.is(b.command(app, url.Values{"first": {"12"}}), 400)
	b.ok(b.command(at+"/device-init", url.Values{"phone": {"79160000001"}}), "data:image/gif;base64,")
	b.ok(b.command(at+"/device-cancel", nil), "The connection is cancelled")

	b.ok(b.command(at+"/policy-operation", url.Values{"actions": {"SignDocument", "CreateRequest"}}), "after a confirmation")
	p = b.ok(b.get(at + "/policy-operation"))
	if n := strings.Count(p.text, " checked"); n != 2 {
		t.Errorf("the form has %d chosen actions, want 2", n)
	}
	b.ok(b.command(at+"/policy-access", url.Values{"actions": {"DeleteCertificate"}}), "denied")
	b.ok(b.command(at+"/policy-operation", nil), "The policy is changed")
	b.is(b.command(at+"/policy-access", url.Values{"actions": {hostileText}}), 400)
	b.ok(b.command(at+"/policy-notification", url.Values{"event-UserPasswordChanged": {"Email"}}), "The policy is changed")

	t.Run("names", func(t *testing.T) {
		for _, form := range []url.Values{{}, {"confirm_name": {"ann"}}, {"confirm_name": {"аnna"}}, {"confirm_name": {" "}}} { // one has a Cyrillic letter
			b.is(b.post(at+"/delete", form), 400, "nothing was done: type anna")
		}
		b.ok(b.get(at), "anna")
	})
	t.Run("certificates", func(t *testing.T) {
		demo := personAt(w.Dev.User.ID)
		p := b.ok(b.get(demo), "Demo User", "GOST R 34.10-2012, 256 bit")
		number := fmt.Sprint(w.Cert("gost2012-512", false).ID)
		if !strings.Contains(p.text, "certificate-revoke?of="+number) {
			t.Fatalf("the record has no link to revoke certificate %s", number)
		}
		b.ok(b.get(demo+"/certificate-revoke?of="+number), "№ "+number+" Demo User", "GOST R 34.10-2012, 512 bit") // and not its number alone
		serial := b.find(b.get(demo), regexp.MustCompile(`№ `+number+` Demo User</th><td><code>([0-9A-F]+)</code></td><td>[^<]+</td><td>[^<]*:[^<]*</td><td>[^<]*:`))[1]
		b.ok(b.get(demo+"/certificate-revoke?of="+number), serial)
		b.ok(b.command(demo+"/certificate-hold?of="+number, nil), "On hold")
		b.ok(b.command(demo+"/certificate-unhold?of="+number, nil), "The hold is lifted")
		b.ok(b.command(demo+"/certificate-revoke?of="+number, url.Values{"reason": {"1"}}), "Revoked")
		b.is(b.get(at+"/certificate-revoke?of="+number), 404) // of another user
		b.is(b.post(at+"/certificate-revoke?of="+number, url.Values{"reason": {"1"}, "confirm_name": {number}}), 404)
		b.is(b.command(demo+"/certificate-revoke?of=1", url.Values{"reason": {"77"}}), 400)
		b.is(b.get(demo+"/request-approve?of=1"), 404)
		b.is(b.post(demo+"/request-approve?of=1", nil), 404)
		b.is(b.post(demo+"/operation-cancel?of=1", nil), 404, "is not under way")
	})
	t.Run("every link of the record", func(t *testing.T) {
		seen := map[string]bool{}
		for _, page := range []string{at, personAt(w.Dev.User.ID), "/operator", "/operator/groups", "/operator/webhooks", "/operator/services", "/operator/tokens", "/operator/messages", "/operator/audit", "/operator/installation", "/operator/approvals", "/operator/requests"} {
			for _, m := range localLink.FindAllStringSubmatch(b.ok(b.get(page)).text, -1) {
				to := html.UnescapeString(m[1])
				if seen[to] {
					continue
				}
				seen[to] = true
				p := b.ok(b.get(to))
				if strings.HasPrefix(p.header.Get("Content-Disposition"), "attachment") {
					continue
				}
				if strings.Contains(p.text, "<img src=x") || commandKey.MatchString(p.text) {
					t.Errorf("%s has an untrusted text as its own, or a word is missing:\n%s", to, p.text)
				}
			}
		}
		if len(seen) < 60 {
			t.Errorf("only %d pages", len(seen))
		}
	})
	p = b.ok(b.command(at+"/lock", url.Values{"delay": {"8"}}), "Locked from", "will be locked at the time below", at+"/lock-cancel")
	if strings.Contains(p.text, at+"/unlock") {
		t.Error("who is not locked can be unlocked")
	}
	if p := b.ok(b.command(at+"/lock-cancel", nil), "The lock is cancelled", "may sign in"); strings.Contains(p.text, "Locked from") || strings.Contains(p.text, at+"/lock-cancel") {
		t.Errorf("the lock is still to come:\n%s", p.text)
	}
	b.ok(b.command(at+"/lock", url.Values{"delay": {"8"}}), "Locked from")
	b.ok(b.command(at+"/lock", url.Values{"delay": {"0"}}), "The account is locked.")
	b.ok(b.command(at+"/unlock", nil), "may sign in")
	b.is(b.post(at+"/lock", url.Values{"delay": {"x"}, "confirm_name": {"anna"}}), 400)
	b.ok(b.get(at+"/history"), "SetUserLockoutStateEx", "lock=true delay=true 28800")
	p = b.ok(b.command(at+"/delete", nil), "The person is deleted")
	if p.at.Path != "/operator/people" {
		t.Errorf("a deletion leads to %s", p.at)
	}
	b.is(b.get(at), 404, "not in your groups")
	if n := strings.Count(w.Command("audit", "--user", id, "--limit", "0", "--json"), `"operation":"DeleteUser"`); n != 5 { // four are refused
		t.Errorf("the audit log has %d entries of the deletion, want 5", n)
	}
}

// TestOperatorReach checks what an operator of another group, a user and an auditor see.
func TestOperatorReach(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	id, login, phone, _ := w.Register()
	ours := operator(w, w.Dev.Operator.Login)
	var commands []string
	for _, m := range localLink.FindAllStringSubmatch(ours.ok(ours.get(personAt(id))).text, -1) {
		if to := html.UnescapeString(m[1]); strings.HasPrefix(to, personAt(id)+"/") && !strings.HasSuffix(to, "/history") {
			commands = append(commands, to)
		}
	}
	if len(commands) < 30 {
		t.Fatalf("the record leads to %d commands", len(commands))
	}
	foreign := operator(w, tamgatest.Foreign)
	t.Run("another group", func(t *testing.T) {
		p := foreign.ok(foreign.get("/operator/people"))
		if strings.Contains(p.text, login) || strings.Contains(p.text, phone) {
			t.Error("the list has a user of another group")
		}
		foreign.is(foreign.get(personAt(id)), 404)
		foreign.is(foreign.get(personAt(strings.ToUpper(id))), 404)
		for _, to := range commands {
			foreign.is(foreign.get(to), 404)
			foreign.is(foreign.post(to, url.Values{"confirm_name": {login}, "has": {"true"}, "delay": {"0"}}), 404)
		}
		ours.ok(ours.get("/operator/people?column0=Login&operation0=Equal&value0="+login), login)
	})
	installation := []string{"/operator/groups", "/operator/messages", "/operator/messages/preview", "/operator/tokens", "/operator/webhooks", "/operator/services", "/operator/audit", "/operator/audit/export", "/operator/installation", "/operator/webhooks/webhook-add"}
	t.Run("no administrator", func(t *testing.T) {
		p := foreign.ok(foreign.get("/operator"))
		for _, at := range installation {
			foreign.is(foreign.get(at), 403)
			if strings.Contains(p.text, `href="`+at+`"`) {
				t.Errorf("%s is shown to an operator who must not see it", at)
			}
		}
		foreign.is(foreign.post("/operator/webhooks/webhook-add", url.Values{"address": {"https://example.org/"}}), 403)
		foreign.is(foreign.post("/operator/groups/group-add", url.Values{"group": {"Mine"}}), 403)
	})
	t.Run("no operator", func(t *testing.T) {
		b := newBrowser(t, w.Server)
		p := b.ok(b.signIn("/start", tamgatest.Plain, tamgatest.Password))
		if strings.Contains(p.text, `href="/operator"`) {
			t.Error("a user who is no operator sees the pages of operators")
		}
		for _, at := range append([]string{"/operator", "/operator/people", "/operator/requests", "/operator/approvals", personAt(id)}, installation...) {
			b.is(b.get(at), 403)
		}
		b.is(b.post(personAt(id)+"/lock", url.Values{"confirm_name": {login}}), 403)
	})
	t.Run("anonymous", func(t *testing.T) {
		b := newBrowser(t, w.Server)
		b.ok(b.get("/operator"), `name="ticket"`)
		b.is(b.post(personAt(id)+"/lock", nil), 401, "Nothing was done or changed")
		w.OK(tamgatest.Ours, "GET", "/ums/user/"+id, "")
	})
	t.Run("other sites", func(t *testing.T) {
		ours.header.Set("Sec-Fetch-Site", "cross-site")
		ours.is(ours.post(personAt(id)+"/lock", url.Values{"confirm_name": {login}, "delay": {"0"}}), 403, "sent by another site")
		ours.header.Del("Sec-Fetch-Site")
		if p := ours.ok(ours.get(personAt(id))); strings.Contains(p.text, "badge warn\">locked") {
			t.Error("another site has locked a user")
		}
	})
}

// TestCommandsReach sends every form of operators as those who may not: whatever leads to it, it is refused.
func TestCommandsReach(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	id, login, _, _ := w.Register()
	ours, foreign, plain, anonymous := operator(w, w.Dev.Operator.Login), operator(w, tamgatest.Foreign), newBrowser(t, w.Server), newBrowser(t, w.Server)
	plain.ok(plain.signIn("/start", tamgatest.Plain, tamgatest.Password))
	commands := pages.Commands(id)
	if len(commands[pages.Operator]) < 70 || len(commands[pages.Administrator]) < 13 {
		t.Fatalf("only %d and %d commands", len(commands[pages.Operator]), len(commands[pages.Administrator]))
	}
	form := url.Values{"confirm_name": {login}, "delay": {"0"}, "has": {"true"}, "group": {"Default"}, "login": {"forged"}}
	for right, list := range commands {
		for _, at := range list {
			at += "?of=1"
			plain.is(plain.get(at), 403)
			plain.is(plain.post(at, form), 403)
			anonymous.ok(anonymous.get(at), `name="ticket"`)
			anonymous.is(anonymous.post(at, form), 401)
			ours.header.Set("Sec-Fetch-Site", "cross-site")
			ours.is(ours.post(at, form), 403, "sent by another site")
			ours.header.Del("Sec-Fetch-Site")
			switch {
			case right == pages.Administrator:
				foreign.is(foreign.get(at), 403)
				foreign.is(foreign.post(at, form), 403)
			case strings.HasPrefix(at, "/operator/people/new"): // any operator registers, in groups of their own
				foreign.is(foreign.post(at, form), 400, "no such group among yours")
			default:
				foreign.is(foreign.get(at), 404)
				foreign.is(foreign.post(at, form), 404)
			}
		}
	}
	ours.ok(ours.get(personAt(id)), "may sign in", login)
	ours.ok(ours.get("/operator/people?column0=Login&operation0=Equal&value0=forged"), "No people match")
}

// TestOperatorPages checks that a list goes on where the page before it ended.
func TestOperatorPages(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	have := map[string]bool{}
	for range 120 {
		id, _, _, _ := w.Register()
		have[id] = true
	}
	b := operator(w, w.Dev.Operator.Login)
	next := regexp.MustCompile(`href="(/operator/people\?[^"]+)" rel="next"`)
	at, pages := "/operator/people?column0=Login&operation0=Like&value0=user", 0
	for ; at != ""; pages++ {
		p := b.ok(b.get(at))
		for id := range have {
			if strings.Contains(p.text, personAt(id)+`"`) {
				delete(have, id)
			}
		}
		at = ""
		if m := next.FindStringSubmatch(p.text); m != nil {
			at = html.UnescapeString(m[1])
		}
	}
	if len(have) != 0 || pages != 3 {
		t.Errorf("%d pages leave out %d people", pages, len(have))
	}
	b.is(b.get("/operator/people?after=%FF"), 400)
	b.is(b.get("/operator/people?after="+strings.Repeat("a", 2000)), 400)
}

// TestOperatorApprovals checks that the rules of requests that wait hold for pages, too.
func TestOperatorApprovals(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t, "--set", "users.second_operator=[gives_secret, ends_access]", "--set", "users.factor_delay=1h")
	id, login, _, email := w.Register()
	ours, second, foreign := operator(w, w.Dev.Operator.Login), operator(w, tamgatest.TwoGroup), operator(w, tamgatest.Foreign)
	at := personAt(id)
	// A change that waits has a page of its own, which leads to the request.
	p := ours.command(at+"/password-show", nil)
	ours.is(p, 400, "<h1>The change waits</h1>", "another operator must approve this")
	request := regexp.MustCompile(`href="(/operator/approvals/[0-9a-f-]{36})"`)
	ours.ok(ours.get(ours.find(p, request)[1]), "ResetPassword")
	p = second.ok(second.get("/operator/approvals"), "ResetPassword", w.Dev.Operator.Login)
	change := second.find(p, request)[1]
	second.ok(second.get(change), "ResetPassword", "POST "+at+"/password-show", "<dt>Action</dt><dd>New password: show it</dd>", "approval-approve", "approval-refuse")
	foreign.is(foreign.get(change), 404)
	if p := foreign.ok(foreign.get("/operator/approvals")); strings.Contains(p.text, "ResetPassword") {
		t.Error("an operator of another group sees the request")
	}
	of := "?of=" + strings.TrimPrefix(change, "/operator/approvals/")
	foreign.is(foreign.get("/operator/approvals/approval-approve"+of), 404)
	foreign.is(foreign.post("/operator/approvals/approval-approve"+of, nil), 404)
	second.ok(second.get("/operator/approvals"), ">"+login+"</a>")
	p = second.ok(second.get("/operator/approvals/approval-approve"+of), "Give a person a new password – "+login)
	if strings.Contains(p.text, "<code>"+strings.TrimPrefix(of, "?of=")) {
		t.Error("the form of an approval shows an identifier in place of what is approved")
	}
	ours.is(ours.command("/operator/approvals/approval-approve"+of, nil), 403)
	second.ok(second.command("/operator/approvals/approval-approve"+of, nil), "The change is approved")
	if p := second.ok(second.get(change), "approval-refuse"); strings.Contains(p.text, "approval-approve") {
		t.Error("a request that is approved can be approved again")
	}
	ours.ok(ours.get(change), "Open the form as it was sent")
	p = ours.ok(ours.get(at + "/password-show"))
	p = ours.ok(ours.post(ours.find(p, formAt)[1], nil), "never shown again") // carried out now, since the user has no factor yet
	if p := ours.ok(ours.get(change), "<dd>done</dd>"); strings.Contains(p.text, "approval-refuse") || strings.Contains(p.text, "Open the form as it was sent") {
		t.Error("a request that is carried out can be decided, or repeated")
	}
	password := html.UnescapeString(ours.find(p, regexp.MustCompile(`<p><code>([^<]+)</code></p>`))[1])
	ours.ok(ours.command(at+"/method-add-password", nil))
	if status, _ := w.Grant(login, password); status != 200 {
		t.Errorf("the new password does not work: %d", status)
	}
	// An approver reads in words what the form asks for.
	p = ours.command(at+"/lock", url.Values{"delay": {"8"}})
	second.ok(second.get(ours.find(p, request)[1]), "<dt>Action</dt><dd>Lock</dd>", "<dt>When</dt><dd>in 8 hours</dd>", html.EscapeString(`{"delay":["8"]}`))
	// From now on the user has a factor, and what weakens it waits.
	ours.ok(ours.command(at+"/email-confirm?of="+url.QueryEscape(email), nil))
	ours.is(ours.command(at+"/method-add-otpviaemail", url.Values{"level": {"1"}}), 400, "this takes effect only after a delay")
	ours.ok(ours.command(at+"/policy-operation", url.Values{"actions": {"SignDocument"}}), "after a confirmation") // asks for more
	ours.is(ours.command(at+"/policy-operation", nil), 400, "this takes effect only after a delay")
	ours.is(ours.command(at+"/policy-operation", url.Values{"actions": {"ChangePin"}}), 400, "this takes effect only after a delay")
	ours.ok(ours.command(at+"/policy-access", url.Values{"actions": {"ChangePin"}}), "denied")
	// A block of a device has no delay, and the form cannot make a block of what lifts one.
	ours.is(ours.post(at+"/device-block?of=1", url.Values{"confirm_name": {"1"}, "lock": {"false"}, "Lock": {"false"}}), 400, "another operator must approve this")
	ours.is(ours.post(at+"/device-unblock?of=1", url.Values{"lock": {"true"}, "Lock": {"true"}}), 400, "this takes effect only after a delay")
	if list := w.OK(tamgatest.TwoGroup, "GET", "/ums/approvals", "").Body; !strings.Contains(list, `"LockoutMyDssDevice"`) {
		t.Errorf("requests of pages are not those of the interface: %s", list)
	}
}

// TestOperatorLock locks a user who is signed in on pages and signs at that moment.
func TestOperatorLock(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	b := operator(w, w.Dev.Operator.Login)
	demo := newBrowser(t, w.Server)
	demo.ok(demo.signIn("/start", w.Dev.User.Login, w.Dev.User.Password), "Your certificates")
	at := personAt(w.Dev.User.ID)
	b.ok(b.command(at+"/policy-operation", url.Values{"actions": {"SignDocument"}}), "after a confirmation")
	b.ok(b.command(at+"/email-add", url.Values{"email": {"demo@example.org"}}))
	b.ok(b.command(at+"/email-confirm?of=demo%40example.org", nil))
	b.ok(b.command(at+"/email-codes?of=demo%40example.org", nil))
	b.ok(b.command(at+"/method-add-otpviaemail", url.Values{"level": {"1"}}))
	demo = newBrowser(t, w.Server)
	demo.ok(demo.signIn("/start", w.Dev.User.Login, w.Dev.User.Password), "Your certificates")
	file := file{"file", hostileText + ".txt", "text"}
	demo.ok(demo.upload("/sign", map[string]string{"certificate": "1"}, file))
	b.ok(b.get(at), "Waits for confirmation", html.EscapeString("onerror"))
	b.ok(b.get(at+"/lock"), "1 operation under way is cancelled")
	b.ok(b.command(at+"/lock", url.Values{"delay": {"0"}}), "locked")
	if p := b.ok(b.get(at)); strings.Contains(p.text, "Waits for confirmation") || strings.Contains(p.text, "<img src=x") {
		t.Errorf("the operation of a locked user still waits:\n%s", p.text)
	}
	demo.is(demo.upload("/sign", map[string]string{"certificate": "1"}, file), 401, "Nothing was done or changed")
	demo.ok(demo.get("/start"), `name="ticket"`)
	if status, _ := w.Grant(w.Dev.User.Login, w.Dev.User.Password); status == 200 {
		t.Error("a locked user gets a token")
	}
}

// TestInstallationPages goes through what administrators do, and what auditors see.
func TestInstallationPages(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	b := operator(w, w.Dev.Operator.Login)
	b.ok(b.command("/operator/groups/group-add", url.Values{"group": {"Sales"}, "about": {hostileText}}), "The group is added", "Sales", html.EscapeString(hostileText))
	b.ok(b.command("/operator/groups/group-access?of=Sales", url.Values{"actions": {"ChangePin"}, "fixed": {"true"}}), "The policy is changed")
	b.ok(b.get("/operator/groups/group-access?of=Sales"), `<option value="true" selected>`, `value="ChangePin" checked`) // as it was set
	sales := regexp.MustCompile(`(?s)<th scope="row">Sales</th>.*?</tr>`)
	if line := b.find(b.get("/operator/groups"), sales)[0]; !strings.Contains(line, `badge">Denied actions</span>`) || !strings.Contains(line, "group-clear") || strings.Contains(line, "general rules") {
		t.Errorf("the list does not say which policy the group has: %s", line)
	}
	b.is(b.get("/operator/groups/group-access?of=Nothing"), 404)
	b.is(b.post("/operator/groups/group-access?of=Nothing", url.Values{"actions": {"ChangePin"}}), 404)
	b.is(b.command("/operator/groups/group-clear?of=Sales", url.Values{"kind": {"x"}}), 400)
	b.ok(b.command("/operator/groups/group-clear?of=Sales", url.Values{"kind": {"access"}}), "The policy is removed")
	if line := b.find(b.get("/operator/groups"), sales)[0]; !strings.Contains(line, "general rules apply") || strings.Contains(line, "group-clear") {
		t.Errorf("the list does not say that the group has no policy: %s", line)
	}
	b.is(b.command("/operator/groups/group-add", url.Values{"group": {"Sales"}}), 400, "exists already")
	b.is(b.get("/operator/groups/group-clear?of=Sales"), 404, "The group has no policy of its own")
	b.ok(b.command("/operator/groups/group-rename?of=Sales", url.Values{"group": {"Trade"}}), "The group has another name", `<th scope="row">Trade</th>`)
	b.is(b.get("/operator/groups/group-rename?of=Sales"), 404)
	b.is(b.command("/operator/groups/group-rename?of=Trade", url.Values{"group": {"Default"}}), 400, "exists already")
	b.is(b.command("/operator/groups/group-delete?of=Default", nil), 400, "has users or operators")
	b.is(b.post("/operator/groups/group-delete?of=Trade", url.Values{"confirm_name": {"Sales"}}), 400, "type Trade to confirm")
	if p := b.ok(b.command("/operator/groups/group-delete?of=Trade", nil), "The group is deleted"); strings.Contains(p.text, "Trade") {
		t.Error("the list has a group that was deleted")
	}
	p := b.ok(b.upload("/operator/tokens/token-import", map[string]string{"tokens": "serial,type,secret_hex\nH-1,HOTP,3132333435363738393031323334353637383930\n"}), "new in the stock", "<code>1</code>")
	b.is(b.upload("/operator/tokens/token-import", map[string]string{"tokens": hostileText}), 400)
	b.is(b.upload("/operator/tokens/token-import", map[string]string{"tokens": "serial,type,secret_hex\nH-1,HOTP,secretzz\n"}), 400, "line 2 (H-1): the secret: want it in the form")
	b.is(b.upload("/operator/tokens/token-import", map[string]string{"tokens": "<KeyContainer/>", "key": "zz"}), 400)
	b.ok(b.get("/operator/tokens?free=yes"), "H-1", "in stock")
	b.ok(b.command("/operator/tokens/token-discard?of=H-1", nil), "The token is deleted")
	p = b.ok(b.command("/operator/webhooks/webhook-add", url.Values{"address": {"https://hooks.example.org/a"}, "events": {"UserPasswordChanged"}}), "whsec_")
	p = b.ok(b.get("/operator/webhooks"), "hooks.example.org", "The password is changed")
	if strings.Contains(p.text, "whsec_") {
		t.Error("the secret of a webhook is shown again")
	}
	remove := b.find(p, regexp.MustCompile(`href="(/operator/webhooks/webhook-remove[^"]+)"`))[1]
	b.ok(b.get(remove), "To confirm, type <code>https://hooks.example.org/a</code>")
	b.ok(b.command(remove, nil), "The system is removed")
	b.is(b.get(remove), 404, "no such subscription")
	b.is(b.command("/operator/webhooks/webhook-add", url.Values{"address": {"http://127.0.0.1/"}}), 400)
	b.ok(b.command("/operator/services/tsp-add", url.Values{"service": {"own"}, "address": {w.Dev.TSPURL + "2"}}), "The service is registered", "own")
	b.ok(b.command("/operator/services/tsp-check?of=own", nil), "look here", "The service gave no time stamp.")
	ru := operator(w, w.Dev.Operator.Login)
	ru.header.Set("Accept-Language", "ru")
	ru.is(ru.upload("/operator/tokens/token-import", map[string]string{"tokens": "serial,type,secret_hex\nH-2,HOTP,31\nH-3,x,31\n"}), 400, "Файл не читается: строка 2 (H-2): байтов в секрете – 1, нужно от", "строка 3 (H-3): нужен тип HOTP или TOTP")
	ru.ok(ru.command("/operator/services/tsp-check?of=own", nil), "Штамп времени от службы не получен.", "Служба ответила кодом HTTP 405.")
	tsp, err := url.Parse(w.Dev.TSPURL)
	if err != nil {
		t.Fatal(err)
	}
	b.ok(b.get("/operator/services"), ">time stamps</th><td>"+tsp.Host+"</td><td>2 failures in a row. <span class=\"detail\">")
	ru.ok(ru.get("/operator/services"), "2 ошибки подряд. <span class=\"detail\">Служба ответила кодом HTTP 405.")
	b.ok(b.command("/operator/services/tsp-remove?of=own", nil), "The service is removed")
	b.is(b.get("/operator/services/tsp-check?of=none"), 404, "There is no registered service of this name.<")
	for who, want := range map[*browser][]string{
		b:  {"Version", "SQLite", "a directory", "in step", "this one", "Request to sign</th><td>2\u00a0GiB</td><td><code>limits.signing_request</code>", "30\u00a0min"},
		ru: {"Версия", "SQLite", "каталог", "не расходятся", "этот", "Запрос на подпись</th><td>2\u00a0ГиБ</td>", "30\u00a0мин"},
	} {
		if p := who.ok(who.get("/operator/installation"), want...); strings.Contains(p.text, ">limit.") || strings.Contains(p.text, ">installation.") {
			t.Errorf("a text is missing:\n%s", p.text)
		}
	}
	b.is(b.get("/operator/messages/message-again?of="+tamgatest.Missing), 404)
	b.is(b.post("/operator/messages/message-again?of="+tamgatest.Missing, nil), 404)
	b.is(b.get("/operator/messages?state=other"), 400)
	p = b.ok(b.get("/operator/messages/preview"), "Code that confirms an operation</option>", "Signing documents.", "Подписание документов.", "<strong lang=\"ru\">", "confirmation-code.en.txt")
	b.ok(b.get("/operator/messages/preview?message=UserPasswordReset"), "The password is reset.", "Пароль сброшен.", `<option value="UserPasswordReset" selected>`)
	b.is(b.get("/operator/messages/preview?message=event"), 404)
	if p := b.ok(b.get("/operator/messages"), "Texts of messages", "There is no message."); strings.Contains(p.text, "Password") {
		t.Error("a preview was sent")
	}

	t.Run("audit", func(t *testing.T) {
		b.is(b.get("/operator/people?column0=Login&operation0=Equal&value0="+url.QueryEscape("=1+1")), 200)
		b.ok(b.command(personAt(w.Dev.User.ID)+"/phone-add", url.Values{"phone": {"79160000009"}}))
		b.is(b.command(personAt(w.Dev.User.ID)+"/phone-add", url.Values{"phone": {"=HYPERLINK(\"x\")"}}), 400)
		entry := regexp.MustCompile(`<th scope="row">\d+ \w+ \d{4} \d\d:\d\d:\d\d UTC</th><td><a href="/operator/people/([^"]+)">([^<]+)</a></td><td>[^<]*<code class="detail">SignedIn`)
		if m := b.find(b.ok(b.get("/operator/audit?operation=SignedIn")), entry); m[2] != w.Dev.Operator.Login {
			t.Errorf("the entry of a new session has the caller %s", m)
		}
		p := b.ok(b.get("/operator/audit?operation=AddUserPhone"), "<td>Add a phone to a person <code class=\"detail\">AddUserPhone</code></td>", "79160000009", html.EscapeString(`=HYPERLINK("x")`))
		if strings.Contains(p.text, "<code class=\"detail\">AddGroup") {
			t.Error("the search has other operations")
		}
		csv := b.ok(b.get("/operator/audit/export?format=csv&operation=AddUserPhone"))
		if !strings.HasPrefix(csv.text, "at,request_id,") || !strings.Contains(csv.text, `"'=HYPERLINK(""x"")"`) || strings.Count(csv.text, "\n") != 3 {
			t.Errorf("the file is %s", csv.text)
		}
		lines := b.ok(b.get("/operator/audit/export?format=json&operation=AddUserPhone"))
		if strings.Count(lines.text, "\n") != 2 || !strings.Contains(lines.text, `"operation":"AddUserPhone"`) {
			t.Errorf("the file is %s", lines.text)
		}
		b.ok(b.get("/operator/audit?outcome=invalid_phone&since=2026-01-01&login=operator&user="+strings.ToUpper(w.Dev.User.ID)), "AddUserPhone")
		b.is(b.get("/operator/audit?since=yesterday"), 400)
		b.is(b.get("/operator/audit?until=9999999"), 400)
		today := time.Now().UTC().Format(time.DateOnly)
		b.ok(b.get("/operator/audit?operation=AddUserPhone&since=2026-01-01&until="+today), "79160000009", `name="until" type="date" value="`+today+`"`, "until="+today) // the whole day
		b.ok(b.get("/operator/audit?operation=AddUserPhone&until=2026-01-01"), "No entry matches")
		b.is(b.get("/operator/audit?since="+today+"&until=2026-01-01"), 400, "not before since")
		if csv := b.ok(b.get("/operator/audit/export?format=csv&operation=AddUserPhone&until=2026-01-01")); strings.Count(csv.text, "\n") != 1 {
			t.Errorf("the file is %s", csv.text)
		}
		db, err := sql.Open("sqlite", "file:"+w.Path("tamga.db")+"?_pragma=busy_timeout(10000)")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(t.Context(), `UPDATE audit SET at = 1780000000000 + id`); err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 45000)
			INSERT INTO audit (at, request_id, operation, phase, outcome, object, remote, detail, user_id, login, group_name, operator, token_id, client_id, method, duration_us, actor, correlation_id)
			SELECT 1790000000000 + i, '', 'SignDocument', 'done', 'ok', '', '', '', '', '', '', FALSE, '', '', '', 0, '', '' FROM n`); err != nil {
			t.Fatal(err)
		}
		b.ok(b.get("/operator/audit?operation=AddUserPhone&until="+time.UnixMilli(1785000000000).UTC().Format(time.DateOnly)), "79160000009") // later entries are not looked at
		p = b.ok(b.get("/operator/audit?operation=AddUserPhone"), "No entry yet. Go on searching", "looked at 20,000 entries", "Go on searching</a>")
		if strings.Contains(p.text, "79160000009") {
			t.Error("one page of the search looks at more than 20,000 entries")
		}
		b.header.Set("Accept-Language", "ru")
		b.ok(b.get("/operator/audit?operation=AddUserPhone"), "Просмотрено 20 000 записей", "Искать дальше</a>")
		b.header.Set("Accept-Language", "en")
		if p = b.ok(b.get(b.next(p)), "79160000009"); strings.Contains(p.text, "looked at") {
			t.Error("going on looks at less than the log")
		}
		for _, format := range []string{"csv", "json"} {
			b.ok(b.get("/operator/audit/export?format="+format+"&operation=AddUserPhone"), "79160000009")
		}
		if !strings.Contains(w.Command("audit", "--operation", "AddUserPhone"), "79160000009") {
			t.Error("the command ends before the whole log is searched")
		}
	})
}

// TestAuditor checks that an auditor reads and changes nothing.
func TestAuditor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := tamgatest.StartProcess(t, dir)
	first.Command("group", "add", "Auditors")
	first.Command("operator", "add", "auditor", "--group", "Auditors", "--password-file", tamgatest.PasswordFile(t))
	id := regexp.MustCompile(`auditor\s+Auditors\s+(\S+)`).FindStringSubmatch(first.Command("operator", "list"))
	if id == nil {
		t.Fatal("no auditor")
	}
	first.Stop()
	s := tamgatest.StartProcess(t, dir, "--set", "pages.auditors=["+id[1]+"]")
	b := newBrowser(t, s)
	p := b.ok(b.signIn("/operator", "auditor", tamgatest.Password), `href="/operator/audit"`, `href="/operator/installation"`)
	if strings.Contains(p.text, `href="/operator/webhooks"`) {
		t.Error("an auditor sees what is for administrators")
	}
	b.ok(b.get("/operator/audit"), "AddGroup")
	b.ok(b.get("/operator/audit/export"))
	b.ok(b.get("/operator/installation"), "Version")
	if p := b.ok(b.get("/operator/services")); strings.Contains(p.text, "tsp-") {
		t.Error("an auditor sees what is for administrators")
	}
	b.is(b.get("/operator/webhooks"), 403)
	b.is(b.post("/operator/services/tsp-add", url.Values{"service": {"a"}, "address": {"https://example.org/"}}), 403)
	b.is(b.get(personAt(s.Dev.User.ID)), 404)
}

// TestReference checks the pages of the interface.
func TestReference(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	b := newBrowser(t, w.Server)
	p := b.ok(b.get("/reference"), "User management", `href="/openapi.json"`)
	links := regexp.MustCompile(`href="(/reference/[^"]+)"`).FindAllStringSubmatch(p.text, -1)
	if len(links) < 150 || len(p.text) > 100_000 {
		t.Errorf("%d operations on %d bytes", len(links), len(p.text))
	}
	step := 1
	if testing.Short() {
		step = 12
	}
	for i := 0; i < len(links); i += step {
		l := links[i]
		p := b.ok(b.get(l[1]), "curl -X ")
		if strings.Contains(p.text, ">reference.") {
			t.Errorf("%s lacks a word", l[1])
		}
	}
	b.ok(b.get("/reference/RegisterUser"), "with an access token", html.EscapeString(`--data-raw '{"Email":"petrov@example.org","Login":"petrov"`), "/STS/ums/user")
	b.header.Set("Accept-Language", "ru")
	if p := b.ok(b.get("/reference"), "Управление пользователями", "Подписание документа", "Статус сертификатов (OCSP)"); strings.Contains(p.text, `<span lang="en">`) || strings.Contains(p.text, ">reference.") {
		t.Errorf("an operation has no name in Russian:\n%s", p.text)
	}
	b.ok(b.get("/reference/RegisterUser"), "Регистрация пользователя", "Подробности по-английски: <span lang=\"en\">Register a user", "<dt>200</dt><dd>Выполнено.", "<dt>413</dt><dd>Запрос слишком большой.")
	b.header.Set("Accept-Language", "en")
	b.is(b.get("/reference/Nothing"), 404)
	b.is(b.get("/reference/"+url.PathEscape(hostileText)), 404)
}

// TestTry tries operations of the interface on the pages of the reference.
func TestTry(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	try := func(b *browser, operation string, form url.Values) shown {
		return b.post("/reference/"+operation+"/do/try", form)
	}
	anonymous := newBrowser(t, w.Server)
	if p := anonymous.ok(anonymous.get("/reference/RegisterUser"), `href="/sign-in?to=/reference/RegisterUser"`); strings.Contains(p.text, "/do/try") {
		t.Error("an anonymous visitor gets a form to try")
	}
	register := url.Values{"p0": {"Default"}, "body": {`{"Login":"tried"}`}}
	anonymous.is(try(anonymous, "RegisterUser", register), 401)

	b := operator(w, w.Dev.Operator.Login)
	b.ok(b.get("/reference/RegisterUser"), `action="/reference/RegisterUser/do/try#answer"`, "petrov@example.org", "it changes this installation")
	p := b.ok(try(b, "RegisterUser", register), "200 OK", "POST /STS/ums/user", "Content-Type: application/json", html.EscapeString(register.Get("body")))
	id := b.find(p, regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`))[0]
	b.ok(try(b, "GetUserById", url.Values{"p0": {id}}), "200 OK", html.EscapeString(`"Login": "tried"`))
	b.ok(try(b, "GetUserById", url.Values{"p0": {"../" + id + "?a=b#c"}}), "GET /STS/ums/user/..%2F"+id+"%3Fa=b%23c", "404 Not Found")
	b.is(try(b, "GetUserById", nil), 400, "a part of the address")
	p = b.ok(try(b, "RegisterUser", url.Values{"body": {`{"Login":"` + hostileText + `"}`}}), "400 Bad Request")
	if strings.Contains(p.text, "<img src=x") {
		t.Error("an answer became a part of the page")
	}
	b.ok(try(b, "RegisterUser", url.Values{"body": {"{"}}), "400 Bad Request")
	person := newBrowser(t, w.Server)
	person.ok(person.signIn("/start", tamgatest.Plain, tamgatest.Password))
	person.ok(try(person, "GetUserById", url.Values{"p0": {id}}), "403 Forbidden")
	person.ok(try(person, "GetCertificates", nil), "200 OK", "[]")

	for _, operation := range []string{"Token", "Login", "Confirmation", "PollDevice", "TimeStamp", "UploadDocumentParts", "AuthorizeCertificate"} {
		if p := b.ok(b.get("/reference/" + operation)); strings.Contains(p.text, "/do/try") {
			t.Errorf("%s can be tried", operation)
		}
		b.is(try(b, operation, nil), 400, "cannot be tried")
	}
	b.header.Set("Sec-Fetch-Site", "cross-site")
	b.is(try(b, "RegisterUser", url.Values{"p0": {"Default"}, "body": {`{"Login":"forged"}`}}), 403, "sent by another site")
	b.header.Del("Sec-Fetch-Site")
	b.ok(b.get("/operator/people?column0=Login&operation0=Equal&value0=forged"), "No people match")

	log := b.ok(b.get("/operator/audit?operation=TryOperation"), "operation RegisterUser", "operation GetUserById")
	if strings.Contains(log.text, "tried") {
		t.Error("the audit log has the request of a trial")
	}
	b.ok(b.get("/operator/audit?operation=RegisterUser"), id)
}

// TestOperatorRequests approves one request for a certificate and refuses another.
func TestOperatorRequests(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t, "--set", "certificates.approval=operator")
	b, foreign := operator(w, w.Dev.Operator.Login), operator(w, tamgatest.Foreign)
	list := regexp.MustCompile(`href="(/operator/people/[^"]+/request-(?:approve|reject)\?of=[0-9]+&amp;from=requests)"`)
	for _, c := range []struct{ command, done, state string }{{"request-approve", "The request is approved", "approved"}, {"request-reject", "The request is refused", "refused"}} {
		if status, body := w.Call("POST", "/api/requests", w.Token(), map[string]any{"AuthorityId": 1, "DistinguishedName": map[string]string{"2.5.4.3": hostileText, "2.5.4.12": "Head of sales"}}); status != 200 {
			t.Fatalf("%d %s", status, body)
		}
		p := b.ok(b.get("/operator/requests"), html.EscapeString("onerror"))
		if strings.Contains(p.text, "<img src=x") {
			t.Error("the name in a request became a part of the page")
		}
		links := list.FindAllStringSubmatch(p.text, -1)
		if len(links) != 2 {
			t.Fatalf("the list has %d links:\n%s", len(links), p.text)
		}
		if p := foreign.ok(foreign.get("/operator/requests"), "No request waits"); list.MatchString(p.text) {
			t.Error("an operator of another group sees the request")
		}
		for _, l := range links {
			if to := html.UnescapeString(l[1]); strings.Contains(to, c.command) {
				foreign.is(foreign.post(to, nil), 404)
				// The operator sees all that is certified, and what is not what the record says.
				p := b.ok(b.get(to), "T=Head of sales", "What differs from the record", `<th scope="row">CN</th><td><code>`+html.EscapeString(hostileText)+`</code></td><td><code>demo</code></td>`,
					`<th scope="row">T</th><td><code>Head of sales</code></td><td>nothing</td>`)
				if at := b.find(p, formAt)[1]; strings.Contains(at, "from") {
					t.Errorf("the list to go back to makes another request of the same: %s", at)
				}
				b.ok(b.command(to, nil), c.done, "No request waits") // back in the list
				b.ok(b.get(to), "· "+c.state)
				b.is(b.command(to, nil), 400, "decided already")
			}
		}
	}
	b.ok(b.get("/operator/requests"), "No request waits")
	b.ok(b.get("/operator/audit?operation=ApproveRequest"), ", differs: CN, T")
	// A request for the registered name differs in nothing.
	if status, body := w.Call("POST", "/api/requests", w.Token(), map[string]any{"AuthorityId": 1}); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	for _, l := range list.FindAllStringSubmatch(b.get("/operator/requests").text, -1) {
		if p := b.ok(b.get(html.UnescapeString(l[1]))); strings.Contains(p.text, "What differs") {
			t.Errorf("the registered name differs from the record:\n%s", p.text)
		}
	}
}
