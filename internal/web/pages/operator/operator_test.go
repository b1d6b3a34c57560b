// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"database/sql"
	"fmt"
	"html"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
	"tamga/internal/web/pages/operator"
)

var localLink = regexp.MustCompile(`href="(/operator[^"]*)"`)

// commandKey is the key of a word of a command, in a page without the word.
var commandKey = regexp.MustCompile(`[^/]command\.[a-z]`)

// TestOperator goes through the story of an operator who looks after a person.
func TestOperator(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	b := pagetest.Operator(w, w.Dev.Operator.Login)
	p := b.Shows(b.SendCommand("/operator/people/new", url.Values{"login": {"anna"}, "phone": {"79160000001"}, "email": {"anna@example.org"}, "group": {"Default"}}), "The person is registered", "anna@example.org")
	at := b.Find(p, regexp.MustCompile(`href="(/operator/people/[0-9a-f-]{36})"`))[1]
	b.Shows(b.Get(at), "anna@example.org", "<dd>never</dd>")
	if p := b.Shows(b.SendCommand("/operator/people/new", url.Values{"login": {"alone"}, "group": {"Default"}}), "The person is registered"); !strings.HasPrefix(p.At.Path, "/operator/people/") || p.At.Path == "/operator/people/new" {
		t.Errorf("a registration with nothing to say leads to %s", p.At)
	}
	id := strings.TrimPrefix(at, "/operator/people/")
	b.Shows(b.Get("/operator/people?column0=Login&operation0=Like&value0=ann"), `href="`+at+`"`, "<td>never</td>")
	b.Shows(b.Record(at), "<title>anna – ")
	b.Is(b.Get("/operator/people?column0=Login&operation0=Greater&value0=ann"), 400, "for times: choose another comparison.<")
	b.Is(b.Get("/operator/people?column0=IsLocked&operation0=Equal&value0=perhaps"), 400, "This condition needs yes or no.<")

	// No other identity provider is configured: the login of this service must not be taken for one.
	if p := b.Shows(b.Record(at), "Login</dt><dd>anna</dd>"); strings.Contains(p.Text, "login-external") {
		t.Error("the record leads to logins at identity providers, and there is none")
	}
	b.Is(b.Post(at+"/login-external", url.Values{"login": {"other"}, "issuer": {"realsts"}}), 400, "want an identity provider of the list")
	b.Shows(b.Record(at), "Login</dt><dd>anna</dd>")

	b.Shows(b.SendCommand(at+"/name", url.Values{"name": {pagetest.HostileText}}), "The name is changed", html.EscapeString(pagetest.HostileText))
	if log := w.Command("audit", "--user", id, "--limit", "0", "--json"); strings.Contains(log, "OperatorForm") || !strings.Contains(log, `"operation":"GetUserById"`) {
		t.Errorf("the audit log has no entry of a form under the name of what it reads:\n%s", log)
	}
	b.Shows(b.Get(at+"/dn"), "Surname", "Position") // in the language of the reader
	b.Shows(b.SendCommand(at+"/dn", url.Values{"dn-11": {pagetest.HostileText}}), "The name is changed")
	b.Shows(b.SendCommand(at+"/email-confirm?of=anna%40example.org", nil), "The contact is confirmed")
	b.Shows(b.SendCommand(at+"/email-notification?of=anna%40example.org", url.Values{"has": {"true"}}), "gets notifications")
	b.Shows(b.SendCommand(at+"/email-codes?of=anna%40example.org", nil), "gets codes")
	b.Is(b.SendCommand(at+"/phone-code?of=79160000001", nil), 429) // the registration has sent one
	b.Is(b.SendCommand(at+"/phone-submit?of=79160000001", url.Values{"code": {"000000x"}}), 400, "The code is wrong")
	b.Shows(b.SendCommand(at+"/phone-submit?of=79160000001", url.Values{"code": {w.Code("79160000001")}}), "The contact is confirmed")
	b.Shows(b.SendCommand(at+"/phone-add", url.Values{"phone": {"+7 916 000-00-02"}}), "79160000002")
	b.Is(b.SendCommand(at+"/phone-add", url.Values{"phone": {pagetest.HostileText}}), 400, "The phone number is not right")
	b.Shows(b.SendCommand(at+"/phone-delete?of=79160000002", nil), "The contact is deleted")

	b.Shows(b.SendCommand(at+"/method-add-password", nil), "The way to sign in is set")
	b.Shows(b.SendCommand(at+"/method-add-otpviaemail", url.Values{"level": {"1"}}), "The way to sign in is set", "Code by e-mail")
	b.Shows(b.SendCommand(at+"/method-delete-otpviaemail", nil), "The way to sign in is removed")
	b.Shows(b.SendCommand(at+"/password-email", nil), "The password is changed")
	b.Shows(b.Get("/operator/messages"), "<td>New password</td>", "<td>The password is reset</td>") // not the names of templates and events
	printed := b.Shows(b.SendCommand(at+"/password-print", url.Values{"format": {"Pdf"}}))
	if !strings.HasPrefix(printed.Text, "%PDF") || !strings.HasPrefix(printed.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("the print form is %v, %.20q", printed.Header, printed.Text)
	}
	for format, begin := range map[string]string{"Word": "PK", "Html": "<!DOCTYPE html>", "Xml": "<?xml"} {
		if p := b.Shows(b.SendCommand(at+"/password-print", url.Values{"format": {format}})); !strings.HasPrefix(p.Text, begin) || !strings.HasPrefix(p.Header.Get("Content-Disposition"), "attachment") {
			t.Errorf("the print form %s is %v, %.20q", format, p.Header, p.Text)
		}
	}
	b.Shows(b.SendCommand(at+"/token-app", nil), "data:image/gif;base64,", "otpauth://")
	b.Shows(b.Get("/operator/tokens"), `<td><a href="`+at+`">anna – `)
	app := b.Find(b.Record(at), regexp.MustCompile(`href="(`+at+`/token-sync\?of=APP-[A-Z0-9]+)"`))[1]
	b.Is(b.SendCommand(app, url.Values{"first": {"12"}}), 400)
	b.Shows(b.SendCommand(at+"/device-init", url.Values{"phone": {"79160000001"}}), "data:image/gif;base64,")
	b.Shows(b.SendCommand(at+"/device-cancel", nil), "The connection is cancelled")

	b.Shows(b.SendCommand(at+"/policy-operation", url.Values{"actions": {"SignDocument", "CreateRequest"}}), "after a confirmation")
	p = b.Shows(b.Get(at + "/policy-operation"))
	if n := strings.Count(p.Text, " checked"); n != 2 {
		t.Errorf("the form has %d chosen actions, want 2", n)
	}
	b.Shows(b.SendCommand(at+"/policy-access", url.Values{"actions": {"DeleteCertificate"}}), "denied")
	b.Shows(b.SendCommand(at+"/policy-operation", nil), "The policy is changed")
	b.Is(b.SendCommand(at+"/policy-access", url.Values{"actions": {pagetest.HostileText}}), 400)
	b.Shows(b.SendCommand(at+"/policy-notification", url.Values{"event-UserPasswordChanged": {"Email"}}), "The policy is changed")

	t.Run("names", func(t *testing.T) {
		for _, form := range []url.Values{{}, {"confirm_name": {"ann"}}, {"confirm_name": {"аnna"}}, {"confirm_name": {" "}}} { // one has a Cyrillic letter
			b.Is(b.Post(at+"/delete", form), 400, "nothing was done: type anna")
		}
		b.Shows(b.Record(at), "anna")
	})
	t.Run("certificates", func(t *testing.T) {
		demo := pagetest.PersonAt(w.Dev.User.ID)
		p := b.Shows(b.Record(demo), "Demo User", "GOST R 34.10-2012, 256 bit")
		number := fmt.Sprint(w.Cert("gost2012-512", false).ID)
		if !strings.Contains(p.Text, "certificate-revoke?of="+number) {
			t.Fatalf("the record has no link to revoke certificate %s", number)
		}
		b.Shows(b.Get(demo+"/certificate-revoke?of="+number), "№ "+number+" Demo User", "GOST R 34.10-2012, 512 bit") // and not its number alone
		serial := b.Find(b.Record(demo), regexp.MustCompile(`№ `+number+` Demo User</th><td><code>([0-9A-F]+)</code></td><td>[^<]+</td><td>[^<]*:[^<]*</td><td>[^<]*:`))[1]
		b.Shows(b.Get(demo+"/certificate-revoke?of="+number), serial)
		b.Shows(b.SendCommand(demo+"/certificate-hold?of="+number, nil), "On hold")
		b.Shows(b.SendCommand(demo+"/certificate-unhold?of="+number, nil), "The hold is lifted")
		b.Shows(b.SendCommand(demo+"/certificate-revoke?of="+number, url.Values{"reason": {"1"}}), "Revoked")
		b.Is(b.Get(at+"/certificate-revoke?of="+number), 404) // of another user
		b.Is(b.Post(at+"/certificate-revoke?of="+number, url.Values{"reason": {"1"}, "confirm_name": {number}}), 404)
		b.Is(b.SendCommand(demo+"/certificate-revoke?of=1", url.Values{"reason": {"77"}}), 400)
		b.Is(b.Get(demo+"/request-approve?of=1"), 404)
		b.Is(b.Post(demo+"/request-approve?of=1", nil), 404)
		b.Is(b.Post(demo+"/operation-cancel?of=1", nil), 404, "is not under way")
	})
	t.Run("every link of the record", func(t *testing.T) {
		seen := map[string]bool{}
		demo := pagetest.PersonAt(w.Dev.User.ID)
		for _, page := range []string{at, at + "/sign-in", at + "/account", at + "/rules", demo, demo + "/certificates", demo + "/devices", "/operator", "/operator/groups", "/operator/webhooks", "/operator/services", "/operator/tokens", "/operator/messages", "/operator/audit", "/operator/installation", "/operator/approvals", "/operator/requests"} {
			for _, m := range localLink.FindAllStringSubmatch(b.Shows(b.Get(page)).Text, -1) {
				to := html.UnescapeString(m[1])
				if seen[to] {
					continue
				}
				seen[to] = true
				p := b.Shows(b.Get(to))
				if strings.HasPrefix(p.Header.Get("Content-Disposition"), "attachment") {
					continue
				}
				if strings.Contains(p.Text, "<img src=x") || commandKey.MatchString(p.Text) {
					t.Errorf("%s has an untrusted text as its own, or a word is missing:\n%s", to, p.Text)
				}
			}
		}
		if len(seen) < 60 {
			t.Errorf("only %d pages", len(seen))
		}
	})
	p = b.Shows(b.SendCommand(at+"/lock", url.Values{"delay": {"8"}}), "Locked from", "will be locked at the time below", at+"/lock-cancel")
	if strings.Contains(p.Text, at+"/unlock") {
		t.Error("who is not locked can be unlocked")
	}
	if p := b.Shows(b.SendCommand(at+"/lock-cancel", nil), "The lock is cancelled", "may sign in"); strings.Contains(p.Text, "Locked from") || strings.Contains(p.Text, at+"/lock-cancel") {
		t.Errorf("the lock is still to come:\n%s", p.Text)
	}
	b.Shows(b.SendCommand(at+"/lock", url.Values{"delay": {"8"}}), "Locked from")
	b.Shows(b.SendCommand(at+"/lock", url.Values{"delay": {"0"}}), "The account is locked.")
	b.Shows(b.SendCommand(at+"/unlock", nil), "may sign in")
	b.Is(b.Post(at+"/lock", url.Values{"delay": {"x"}, "confirm_name": {"anna"}}), 400)
	b.Shows(b.Get(at+"/history"), "SetUserLockoutStateEx", "lock=true delay=true 28800")
	p = b.Shows(b.SendCommand(at+"/delete", nil), "The person is deleted")
	if p.At.Path != "/operator/people" {
		t.Errorf("a deletion leads to %s", p.At)
	}
	b.Is(b.Get(at), 404, "not in your groups")
	if n := strings.Count(w.Command("audit", "--user", id, "--limit", "0", "--json"), `"operation":"DeleteUser"`); n != 5 { // four are refused
		t.Errorf("the audit log has %d entries of the deletion, want 5", n)
	}
}

// TestOperatorReach checks what an operator of another group, a user and an auditor see.
func TestOperatorReach(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	id, login, phone, _ := w.Register()
	ours := pagetest.Operator(w, w.Dev.Operator.Login)
	var commands []string
	pages := []string{pagetest.PersonAt(id)}
	for _, m := range regexp.MustCompile(`(href|action)="(/operator[^"]*)"`).FindAllStringSubmatch(ours.Shows(ours.Record(pagetest.PersonAt(id))).Text, -1) {
		switch to := html.UnescapeString(m[2]); {
		case !strings.HasPrefix(to, pagetest.PersonAt(id)+"/"):
		case m[1] == "href" && slices.Contains([]string{"sign-in", "certificates", "devices", "operations", "rules", "account", "history"}, path.Base(to)):
			pages = append(pages, to)
		default:
			commands = append(commands, to)
		}
	}
	if len(commands) < 30 || len(pages) < 8 {
		t.Fatalf("the record leads to %d commands", len(commands))
	}
	foreign := pagetest.Operator(w, tamgatest.Foreign)
	t.Run("another group", func(t *testing.T) {
		p := foreign.Shows(foreign.Get("/operator/people"))
		if strings.Contains(p.Text, login) || strings.Contains(p.Text, phone) {
			t.Error("the list has a user of another group")
		}
		for _, to := range pages {
			foreign.Is(foreign.Get(to), 404)
		}
		foreign.Is(foreign.Get(pagetest.PersonAt(strings.ToUpper(id))), 404)
		for _, to := range commands {
			foreign.Is(foreign.Get(to), 404)
			foreign.Is(foreign.Post(to, url.Values{"confirm_name": {login}, "has": {"true"}, "delay": {"0"}}), 404)
		}
		ours.Shows(ours.Get("/operator/people?column0=Login&operation0=Equal&value0="+login), login)
	})
	installation := []string{"/operator/groups", "/operator/messages", "/operator/messages/preview", "/operator/tokens", "/operator/webhooks", "/operator/services", "/operator/audit", "/operator/audit/export", "/operator/installation", "/operator/webhooks/webhook-add"}
	t.Run("no administrator", func(t *testing.T) {
		p := foreign.Shows(foreign.Get("/operator"))
		for _, at := range installation {
			foreign.Is(foreign.Get(at), 403)
			if strings.Contains(p.Text, `href="`+at+`"`) {
				t.Errorf("%s is shown to an operator who must not see it", at)
			}
		}
		foreign.Is(foreign.Post("/operator/webhooks/webhook-add", url.Values{"address": {"https://example.org/"}}), 403)
		foreign.Is(foreign.Post("/operator/groups/group-add", url.Values{"group": {"Mine"}}), 403)
	})
	t.Run("no operator", func(t *testing.T) {
		b := pagetest.New(t, w.Server)
		p := b.Shows(b.SignIn("/start", tamgatest.Plain, tamgatest.Password))
		if strings.Contains(p.Text, `href="/operator"`) {
			t.Error("a user who is no operator sees the pages of operators")
		}
		for _, at := range append([]string{"/operator", "/operator/people", "/operator/requests", "/operator/approvals", pagetest.PersonAt(id)}, installation...) {
			b.Is(b.Get(at), 403)
		}
		b.Is(b.Post(pagetest.PersonAt(id)+"/lock", url.Values{"confirm_name": {login}}), 403)
	})
	t.Run("anonymous", func(t *testing.T) {
		b := pagetest.New(t, w.Server)
		b.Shows(b.Get("/operator"), `name="ticket"`)
		b.Is(b.Post(pagetest.PersonAt(id)+"/lock", nil), 401, "Nothing was done or changed")
		w.OK(tamgatest.Ours, "GET", "/ums/user/"+id, "")
	})
	t.Run("other sites", func(t *testing.T) {
		ours.Header.Set("Sec-Fetch-Site", "cross-site")
		ours.Is(ours.Post(pagetest.PersonAt(id)+"/lock", url.Values{"confirm_name": {login}, "delay": {"0"}}), 403, "sent by another site")
		ours.Header.Del("Sec-Fetch-Site")
		if p := ours.Shows(ours.Record(pagetest.PersonAt(id))); strings.Contains(p.Text, "badge warn\">locked") {
			t.Error("another site has locked a user")
		}
	})
}

// TestCommandsReach sends every form of operators as those who may not: whatever leads to it, it is refused.
func TestCommandsReach(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	id, login, _, _ := w.Register()
	ours, foreign, plain, anonymous := pagetest.Operator(w, w.Dev.Operator.Login), pagetest.Operator(w, tamgatest.Foreign), pagetest.New(t, w.Server), pagetest.New(t, w.Server)
	plain.Shows(plain.SignIn("/start", tamgatest.Plain, tamgatest.Password))
	commands := operator.Commands(id)
	if len(commands[operator.Operator]) < 70 || len(commands[operator.Administrator]) < 13 {
		t.Fatalf("only %d and %d commands", len(commands[operator.Operator]), len(commands[operator.Administrator]))
	}
	form := url.Values{"confirm_name": {login}, "delay": {"0"}, "has": {"true"}, "group": {"Default"}, "login": {"forged"}}
	for right, list := range commands {
		for _, at := range list {
			at += "?of=1"
			plain.Is(plain.Get(at), 403)
			plain.Is(plain.Post(at, form), 403)
			anonymous.Shows(anonymous.Record(at), `name="ticket"`)
			anonymous.Is(anonymous.Post(at, form), 401)
			ours.Header.Set("Sec-Fetch-Site", "cross-site")
			ours.Is(ours.Post(at, form), 403, "sent by another site")
			ours.Header.Del("Sec-Fetch-Site")
			switch {
			case right == operator.Administrator:
				foreign.Is(foreign.Get(at), 403)
				foreign.Is(foreign.Post(at, form), 403)
			case strings.HasPrefix(at, "/operator/people/new"): // any operator registers, in groups of their own
				foreign.Is(foreign.Post(at, form), 400, "no such group among yours")
			default:
				foreign.Is(foreign.Get(at), 404)
				foreign.Is(foreign.Post(at, form), 404)
			}
		}
	}
	ours.Shows(ours.Record(pagetest.PersonAt(id)), "may sign in", login)
	ours.Shows(ours.Get("/operator/people?column0=Login&operation0=Equal&value0=forged"), "No people match")
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
	b := pagetest.Operator(w, w.Dev.Operator.Login)
	next := regexp.MustCompile(`href="(/operator/people\?[^"]+)" rel="next"`)
	at, pages := "/operator/people?column0=Login&operation0=Like&value0=user", 0
	for ; at != ""; pages++ {
		p := b.Shows(b.Record(at))
		for id := range have {
			if strings.Contains(p.Text, pagetest.PersonAt(id)+`"`) {
				delete(have, id)
			}
		}
		at = ""
		if m := next.FindStringSubmatch(p.Text); m != nil {
			at = html.UnescapeString(m[1])
		}
	}
	if len(have) != 0 || pages != 3 {
		t.Errorf("%d pages leave out %d people", pages, len(have))
	}
	b.Is(b.Get("/operator/people?after=%FF"), 400)
	b.Is(b.Get("/operator/people?after="+strings.Repeat("a", 2000)), 400)
}

// TestOperatorApprovals checks that the rules of requests that wait hold for pages, too.
func TestOperatorApprovals(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t, "--set", "users.second_operator=[gives_secret, ends_access]", "--set", "users.factor_delay=1h")
	id, login, _, email := w.Register()
	ours, second, foreign := pagetest.Operator(w, w.Dev.Operator.Login), pagetest.Operator(w, tamgatest.TwoGroup), pagetest.Operator(w, tamgatest.Foreign)
	at := pagetest.PersonAt(id)
	// A change that waits has a page of its own, which leads to the request.
	p := ours.SendCommand(at+"/password-show", nil)
	ours.Is(p, 400, "<h1>The change waits</h1>", "another operator must approve this")
	request := regexp.MustCompile(`href="(/operator/approvals/[0-9a-f-]{36})"`)
	ours.Shows(ours.Get(ours.Find(p, request)[1]), "ResetPassword")
	p = second.Shows(second.Get("/operator/approvals"), "ResetPassword", w.Dev.Operator.Login)
	change := second.Find(p, request)[1]
	second.Shows(second.Get(change), "ResetPassword", "POST "+at+"/password-show", "<dt>Action</dt><dd>New password: show it</dd>", "approval-approve", "approval-refuse")
	foreign.Is(foreign.Get(change), 404)
	if p := foreign.Shows(foreign.Get("/operator/approvals")); strings.Contains(p.Text, "ResetPassword") {
		t.Error("an operator of another group sees the request")
	}
	of := "?of=" + strings.TrimPrefix(change, "/operator/approvals/")
	foreign.Is(foreign.Get("/operator/approvals/approval-approve"+of), 404)
	foreign.Is(foreign.Post("/operator/approvals/approval-approve"+of, nil), 404)
	second.Shows(second.Get("/operator/approvals"), ">"+login+"</a>")
	p = second.Shows(second.Get("/operator/approvals/approval-approve"+of), "Give a person a new password – "+login)
	if strings.Contains(p.Text, "<code>"+strings.TrimPrefix(of, "?of=")) {
		t.Error("the form of an approval shows an identifier in place of what is approved")
	}
	ours.Is(ours.SendCommand("/operator/approvals/approval-approve"+of, nil), 403)
	second.Shows(second.SendCommand("/operator/approvals/approval-approve"+of, nil), "The change is approved")
	if p := second.Shows(second.Get(change), "approval-refuse"); strings.Contains(p.Text, "approval-approve") {
		t.Error("a request that is approved can be approved again")
	}
	ours.Shows(ours.Get(change), "Open the form as it was sent")
	p = ours.Shows(ours.Get(at + "/password-show"))
	p = ours.Shows(ours.Post(ours.Find(p, pagetest.FormAt)[1], nil), "never shown again") // carried out now, since the user has no factor yet
	if p := ours.Shows(ours.Get(change), "<dd>done</dd>"); strings.Contains(p.Text, "approval-refuse") || strings.Contains(p.Text, "Open the form as it was sent") {
		t.Error("a request that is carried out can be decided, or repeated")
	}
	password := html.UnescapeString(ours.Find(p, regexp.MustCompile(`<p><code>([^<]+)</code></p>`))[1])
	ours.Shows(ours.SendCommand(at+"/method-add-password", nil))
	if status, _ := w.Grant(login, password); status != 200 {
		t.Errorf("the new password does not work: %d", status)
	}
	// An approver reads in words what the form asks for.
	p = ours.SendCommand(at+"/lock", url.Values{"delay": {"8"}})
	second.Shows(second.Get(ours.Find(p, request)[1]), "<dt>Action</dt><dd>Lock</dd>", "<dt>When</dt><dd>in 8 hours</dd>", html.EscapeString(`{"delay":["8"]}`))
	// From now on the user has a factor, and what weakens it waits.
	ours.Shows(ours.SendCommand(at+"/email-confirm?of="+url.QueryEscape(email), nil))
	ours.Is(ours.SendCommand(at+"/method-add-otpviaemail", url.Values{"level": {"1"}}), 400, "this takes effect only after a delay")
	ours.Shows(ours.Get(at), "Needs attention", `href="/operator/approvals/`, "waits for its time")                       // the record says so
	ours.Shows(ours.SendCommand(at+"/policy-operation", url.Values{"actions": {"SignDocument"}}), "after a confirmation") // asks for more
	ours.Is(ours.SendCommand(at+"/policy-operation", nil), 400, "this takes effect only after a delay")
	ours.Is(ours.SendCommand(at+"/policy-operation", url.Values{"actions": {"ChangePin"}}), 400, "this takes effect only after a delay")
	ours.Shows(ours.SendCommand(at+"/policy-access", url.Values{"actions": {"ChangePin"}}), "denied")
	// A block of a device has no delay, and the form cannot make a block of what lifts one.
	ours.Is(ours.Post(at+"/device-block?of=1", url.Values{"confirm_name": {"1"}, "lock": {"false"}, "Lock": {"false"}}), 400, "another operator must approve this")
	ours.Is(ours.Post(at+"/device-unblock?of=1", url.Values{"lock": {"true"}, "Lock": {"true"}}), 400, "this takes effect only after a delay")
	if list := w.OK(tamgatest.TwoGroup, "GET", "/ums/approvals", "").Body; !strings.Contains(list, `"LockoutMyDssDevice"`) {
		t.Errorf("requests of pages are not those of the interface: %s", list)
	}
}

// TestOperatorLock locks a user who is signed in on pages and signs at that moment.
func TestOperatorLock(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	b := pagetest.Operator(w, w.Dev.Operator.Login)
	demo := pagetest.New(t, w.Server)
	demo.Shows(demo.SignIn("/start", w.Dev.User.Login, w.Dev.User.Password), "Nothing waits for your answer")
	at := pagetest.PersonAt(w.Dev.User.ID)
	b.Shows(b.SendCommand(at+"/policy-operation", url.Values{"actions": {"SignDocument"}}), "after a confirmation")
	b.Shows(b.SendCommand(at+"/email-add", url.Values{"email": {"demo@example.org"}}))
	b.Shows(b.SendCommand(at+"/email-confirm?of=demo%40example.org", nil))
	b.Shows(b.SendCommand(at+"/email-codes?of=demo%40example.org", nil))
	b.Shows(b.SendCommand(at+"/method-add-otpviaemail", url.Values{"level": {"1"}}))
	demo = pagetest.New(t, w.Server)
	demo.Shows(demo.SignIn("/start", w.Dev.User.Login, w.Dev.User.Password), "Nothing waits for your answer")
	file := pagetest.File{Field: "file", Name: pagetest.HostileText + ".txt", Content: "text"}
	demo.Shows(demo.Upload("/sign", map[string]string{"certificate": "1"}, file))
	b.Shows(b.Record(at), "Waits for confirmation", html.EscapeString("onerror"))
	b.Shows(b.Get(at+"/lock"), "1 operation under way is cancelled")
	b.Shows(b.SendCommand(at+"/lock", url.Values{"delay": {"0"}}), "locked")
	if p := b.Shows(b.Record(at)); strings.Contains(p.Text, "Waits for confirmation") || strings.Contains(p.Text, "<img src=x") {
		t.Errorf("the operation of a locked user still waits:\n%s", p.Text)
	}
	demo.Is(demo.Upload("/sign", map[string]string{"certificate": "1"}, file), 401, "Nothing was done or changed")
	demo.Shows(demo.Get("/start"), `name="ticket"`)
	if status, _ := w.Grant(w.Dev.User.Login, w.Dev.User.Password); status == 200 {
		t.Error("a locked user gets a token")
	}
}

// TestInstallationPages goes through what administrators do, and what auditors see.
func TestInstallationPages(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t, "--set", "messages.time_zone=UTC")
	b := pagetest.Operator(w, w.Dev.Operator.Login)
	b.Shows(b.SendCommand("/operator/groups/group-add", url.Values{"group": {"Sales"}, "about": {pagetest.HostileText}}), "The group is added", "Sales", html.EscapeString(pagetest.HostileText))
	b.Shows(b.SendCommand("/operator/groups/group-access?of=Sales", url.Values{"actions": {"ChangePin"}, "fixed": {"true"}}), "The policy is changed")
	b.Shows(b.Get("/operator/groups/group-access?of=Sales"), `<option value="true" selected>`, `value="ChangePin" checked`) // as it was set
	sales := regexp.MustCompile(`(?s)<th scope="row">Sales</th>.*?</tr>`)
	if line := b.Find(b.Get("/operator/groups"), sales)[0]; !strings.Contains(line, `tag">Denied actions</span>`) || !strings.Contains(line, "group-clear") || strings.Contains(line, "general rules") {
		t.Errorf("the list does not say which policy the group has: %s", line)
	}
	b.Is(b.Get("/operator/groups/group-access?of=Nothing"), 404)
	b.Is(b.Post("/operator/groups/group-access?of=Nothing", url.Values{"actions": {"ChangePin"}}), 404)
	b.Is(b.SendCommand("/operator/groups/group-clear?of=Sales", url.Values{"kind": {"x"}}), 400)
	b.Shows(b.SendCommand("/operator/groups/group-clear?of=Sales", url.Values{"kind": {"access"}}), "The policy is removed")
	if line := b.Find(b.Get("/operator/groups"), sales)[0]; !strings.Contains(line, "general rules apply") || strings.Contains(line, "group-clear") {
		t.Errorf("the list does not say that the group has no policy: %s", line)
	}
	b.Is(b.SendCommand("/operator/groups/group-add", url.Values{"group": {"Sales"}}), 400, "exists already")
	b.Is(b.Get("/operator/groups/group-clear?of=Sales"), 404, "The group has no policy of its own")
	b.Shows(b.SendCommand("/operator/groups/group-rename?of=Sales", url.Values{"group": {"Trade"}}), "The group has another name", `<th scope="row">Trade</th>`)
	b.Is(b.Get("/operator/groups/group-rename?of=Sales"), 404)
	b.Is(b.SendCommand("/operator/groups/group-rename?of=Trade", url.Values{"group": {"Default"}}), 400, "exists already")
	b.Is(b.SendCommand("/operator/groups/group-delete?of=Default", nil), 400, "has users or operators")
	b.Is(b.Post("/operator/groups/group-delete?of=Trade", url.Values{"confirm_name": {"Sales"}}), 400, "type Trade to confirm")
	if p := b.Shows(b.SendCommand("/operator/groups/group-delete?of=Trade", nil), "The group is deleted"); strings.Contains(p.Text, "Trade") {
		t.Error("the list has a group that was deleted")
	}
	p := b.Shows(b.Upload("/operator/tokens/token-import", map[string]string{"tokens": "serial,type,secret_hex\nH-1,HOTP,3132333435363738393031323334353637383930\n"}), "new in the stock", "<code>1</code>")
	b.Is(b.Upload("/operator/tokens/token-import", map[string]string{"tokens": pagetest.HostileText}), 400)
	b.Is(b.Upload("/operator/tokens/token-import", map[string]string{"tokens": "serial,type,secret_hex\nH-1,HOTP,secretzz\n"}), 400, "line 2 (H-1): the secret: want it in the form")
	b.Is(b.Upload("/operator/tokens/token-import", map[string]string{"tokens": "<KeyContainer/>", "key": "zz"}), 400)
	b.Shows(b.Get("/operator/tokens?free=yes"), "H-1", "in stock")
	b.Shows(b.SendCommand("/operator/tokens/token-discard?of=H-1", nil), "The token is deleted")
	p = b.Shows(b.SendCommand("/operator/webhooks/webhook-add", url.Values{"address": {"https://hooks.example.org/a"}, "events": {"UserPasswordChanged"}}), "whsec_")
	p = b.Shows(b.Get("/operator/webhooks"), "hooks.example.org", "The password is changed")
	if strings.Contains(p.Text, "whsec_") {
		t.Error("the secret of a webhook is shown again")
	}
	remove := b.Find(p, regexp.MustCompile(`href="(/operator/webhooks/webhook-remove[^"]+)"`))[1]
	b.Shows(b.Get(remove), "To confirm, type <code>https://hooks.example.org/a</code>")
	b.Shows(b.SendCommand(remove, nil), "The system is removed")
	b.Is(b.Get(remove), 404, "no such subscription")
	b.Is(b.SendCommand("/operator/webhooks/webhook-add", url.Values{"address": {"http://127.0.0.1/"}}), 400)
	b.Shows(b.SendCommand("/operator/services/tsp-add", url.Values{"service": {"own"}, "address": {w.Dev.TSPURL + "2"}}), "The service is registered", "own")
	b.Shows(b.SendCommand("/operator/services/tsp-check?of=own", nil), "look here", "The service gave no time stamp.")
	ru := pagetest.Operator(w, w.Dev.Operator.Login)
	ru.Header.Set("Accept-Language", "ru")
	ru.Is(ru.Upload("/operator/tokens/token-import", map[string]string{"tokens": "serial,type,secret_hex\nH-2,HOTP,31\nH-3,x,31\n"}), 400, "Файл не читается: строка 2 (H-2): байтов в секрете – 1, нужно от", "строка 3 (H-3): нужен тип HOTP или TOTP")
	ru.Shows(ru.SendCommand("/operator/services/tsp-check?of=own", nil), "Штамп времени от службы не получен.", "Служба ответила кодом HTTP 405.")
	tsp, err := url.Parse(w.Dev.TSPURL)
	if err != nil {
		t.Fatal(err)
	}
	b.Shows(b.Get("/operator/services"), ">time stamps</th><td>"+tsp.Host+"</td><td>2 failures in a row. <span class=\"soft\">")
	ru.Shows(ru.Get("/operator/services"), "2 ошибки подряд. <span class=\"soft\">Служба ответила кодом HTTP 405.")
	b.Shows(b.SendCommand("/operator/services/tsp-remove?of=own", nil), "The service is removed")
	b.Is(b.Get("/operator/services/tsp-check?of=none"), 404, "There is no registered service of this name.<")
	for who, want := range map[*pagetest.Browser][]string{
		b:  {"<h1 id=\"state\">The service works, 1 thing needs attention</h1>", "No answer from time stamps, " + tsp.Host, "Terms", "Version", "SQLite", "a directory", "in step", "this one", "Request to sign</th><td>2\u00a0GB</td><td><code>limits.signing_request</code>", "30\u00a0min"},
		ru: {"Сервис работает, внимания требует 1 вещь", "Не отвечает служба: штампы времени", "Сроки", "Версия", "SQLite", "каталог", "не расходятся", "этот", "Запрос на подпись</th><td>2\u00a0ГБ</td>", "30\u00a0мин"},
	} {
		if p := who.Shows(who.Get("/operator/installation"), want...); strings.Contains(p.Text, ">limit.") || strings.Contains(p.Text, ">installation.") {
			t.Errorf("a text is missing:\n%s", p.Text)
		}
	}
	b.Is(b.Get("/operator/messages/message-again?of="+tamgatest.Missing), 404)
	b.Is(b.Post("/operator/messages/message-again?of="+tamgatest.Missing, nil), 404)
	b.Is(b.Get("/operator/messages?state=other"), 400)
	p = b.Shows(b.Get("/operator/messages/preview"), "Code that confirms an operation</option>", "Signing documents.", "Подписание документов.", "<strong lang=\"ru\">", "confirmation-code.en.txt")
	b.Shows(b.Get("/operator/messages/preview?message=UserPasswordReset"), "The password is reset.", "Пароль сброшен.", `<option value="UserPasswordReset" selected>`)
	b.Is(b.Get("/operator/messages/preview?message=event"), 404)
	if p := b.Shows(b.Get("/operator/messages"), "Texts of messages", "There is no message."); strings.Contains(p.Text, "Password") {
		t.Error("a preview was sent")
	}

	t.Run("audit", func(t *testing.T) {
		b.Is(b.Get("/operator/people?column0=Login&operation0=Equal&value0="+url.QueryEscape("=1+1")), 200)
		b.Shows(b.SendCommand(pagetest.PersonAt(w.Dev.User.ID)+"/phone-add", url.Values{"phone": {"79160000009"}}))
		b.Is(b.SendCommand(pagetest.PersonAt(w.Dev.User.ID)+"/phone-add", url.Values{"phone": {"=HYPERLINK(\"x\")"}}), 400)
		entry := regexp.MustCompile(`<th scope="row">\d+ \w+ \d{4} \d\d:\d\d:\d\d [A-Z]+</th><td><a href="/operator/people/([^"]+)">([^<]+)</a></td><td>[^<]*<code class="hint">SignedIn`)
		if m := b.Find(b.Shows(b.Get("/operator/audit?operation=SignedIn")), entry); m[2] != w.Dev.Operator.Login {
			t.Errorf("the entry of a new session has the caller %s", m)
		}
		p := b.Shows(b.Get("/operator/audit?operation=AddUserPhone"), "<td>Add a phone to a person <code class=\"hint\">AddUserPhone</code></td>", "79160000009", html.EscapeString(`=HYPERLINK("x")`))
		if strings.Contains(p.Text, "<code class=\"hint\">AddGroup") {
			t.Error("the search has other operations")
		}
		csv := b.Shows(b.Get("/operator/audit/export?format=csv&operation=AddUserPhone"))
		if !strings.HasPrefix(csv.Text, "at,request_id,") || !strings.Contains(csv.Text, `"'=HYPERLINK(""x"")"`) || strings.Count(csv.Text, "\n") != 3 {
			t.Errorf("the file is %s", csv.Text)
		}
		lines := b.Shows(b.Get("/operator/audit/export?format=json&operation=AddUserPhone"))
		if strings.Count(lines.Text, "\n") != 2 || !strings.Contains(lines.Text, `"operation":"AddUserPhone"`) {
			t.Errorf("the file is %s", lines.Text)
		}
		b.Shows(b.Get("/operator/audit?outcome=invalid_phone&since=2026-01-01&login=operator&user="+strings.ToUpper(w.Dev.User.ID)), "AddUserPhone")
		b.Is(b.Get("/operator/audit?since=yesterday"), 400)
		b.Is(b.Get("/operator/audit?until=9999999"), 400)
		today := time.Now().UTC().Format(time.DateOnly)
		b.Shows(b.Get("/operator/audit?operation=AddUserPhone&since=2026-01-01&until="+today), "79160000009", `name="until" type="date" value="`+today+`"`, "until="+today) // the whole day
		b.Shows(b.Get("/operator/audit?operation=AddUserPhone&until=2026-01-01"), "No entry matches")
		b.Is(b.Get("/operator/audit?since="+today+"&until=2026-01-01"), 400, "not before since")
		if csv := b.Shows(b.Get("/operator/audit/export?format=csv&operation=AddUserPhone&until=2026-01-01")); strings.Count(csv.Text, "\n") != 1 {
			t.Errorf("the file is %s", csv.Text)
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
		b.Shows(b.Get("/operator/audit?operation=AddUserPhone&until="+time.UnixMilli(1785000000000).UTC().Format(time.DateOnly)), "79160000009") // later entries are not looked at
		p = b.Shows(b.Get("/operator/audit?operation=AddUserPhone"), "No entry yet. Go on searching", "looked at 20,000 entries", "Go on searching</a>")
		if strings.Contains(p.Text, "79160000009") {
			t.Error("one page of the search looks at more than 20,000 entries")
		}
		b.Header.Set("Accept-Language", "ru")
		b.Shows(b.Get("/operator/audit?operation=AddUserPhone"), "Просмотрено 20 000 записей", "Искать дальше</a>")
		b.Header.Set("Accept-Language", "en")
		if p = b.Shows(b.Get(next(b, p)), "79160000009"); strings.Contains(p.Text, "looked at") {
			t.Error("going on looks at less than the log")
		}
		for _, format := range []string{"csv", "json"} {
			b.Shows(b.Get("/operator/audit/export?format="+format+"&operation=AddUserPhone"), "79160000009")
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
	b := pagetest.New(t, s)
	p := b.Shows(b.SignIn("/operator", "auditor", tamgatest.Password), `href="/operator/audit"`, `href="/operator/installation"`)
	if strings.Contains(p.Text, `href="/operator/webhooks"`) {
		t.Error("an auditor sees what is for administrators")
	}
	b.Shows(b.Get("/operator/audit"), "AddGroup")
	b.Shows(b.Get("/operator/audit/export"))
	b.Shows(b.Get("/operator/installation"), "Version")
	if p := b.Shows(b.Get("/operator/services")); strings.Contains(p.Text, "tsp-") {
		t.Error("an auditor sees what is for administrators")
	}
	b.Is(b.Get("/operator/webhooks"), 403)
	b.Is(b.Post("/operator/services/tsp-add", url.Values{"service": {"a"}, "address": {"https://example.org/"}}), 403)
	b.Is(b.Get(pagetest.PersonAt(s.Dev.User.ID)), 404)
}

// TestOperatorRequests approves one request for a certificate and refuses another.
func TestOperatorRequests(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t, "--set", "certificates.approval=operator")
	b, foreign := pagetest.Operator(w, w.Dev.Operator.Login), pagetest.Operator(w, tamgatest.Foreign)
	list := regexp.MustCompile(`href="(/operator/people/[^"]+/request-approve\?of=[0-9]+&amp;from=requests)"`)
	for _, c := range []struct{ command, done, state string }{{"request-approve", "The request is approved", "approved"}, {"request-reject", "The request is refused", "refused"}} {
		if status, body := w.Call("POST", "/api/requests", w.Token(), map[string]any{"AuthorityId": 1, "DistinguishedName": map[string]string{"2.5.4.3": pagetest.HostileText, "2.5.4.12": "Head of sales"}}); status != 200 {
			t.Fatalf("%d %s", status, body)
		}
		p := b.Shows(b.Get("/operator/requests"), html.EscapeString("onerror"))
		if strings.Contains(p.Text, "<img src=x") {
			t.Error("the name in a request became a part of the page")
		}
		links := list.FindAllStringSubmatch(p.Text, -1)
		if len(links) != 1 {
			t.Fatalf("the list has %d links:\n%s", len(links), p.Text)
		}
		if p := foreign.Shows(foreign.Get("/operator/requests"), "No request waits"); list.MatchString(p.Text) || strings.Contains(p.Text, `class="count"`) {
			t.Error("an operator of another group sees the request, or its count")
		}
		// Every page of operators says how many wait.
		b.Shows(b.Get("/operator/people"), `Requests <span class="count">1<span class="vh">`)
		look := html.UnescapeString(links[0][1])
		foreign.Is(foreign.Post(look, nil), 404)
		// The operator sees all that is certified, and first what is not what the record says.
		p = b.Shows(b.Get(look), "The name in the request is not the one in the record", `differs</span></th><td><span class="differs">`+html.EscapeString(pagetest.HostileText)+`</span></td><td>demo</td>`,
			`<span class="differs">Head of sales</span></td><td><span class="soft">nothing</span>`, `name="seen" value="yes" required`, "request-reject", `<a href="/operator/requests" aria-current="page">`)
		if first := strings.Index(p.Text, `class="differs"`); first > strings.Index(p.Text, "Algorithm</th>") {
			t.Error("what differs is not first")
		}
		if at := b.Find(p, pagetest.FormAt)[1]; strings.Contains(at, "from") {
			t.Errorf("the list to go back to makes another request of the same: %s", at)
		}
		to := strings.Replace(look, "request-approve", c.command, 1)
		form := url.Values{"seen": {"yes"}, "document": {"Passport 1234"}}
		if c.command == "request-approve" {
			b.Is(b.SendCommand(to, url.Values{"document": {"Passport 1234"}}), 400, "tick that you have compared", `value="Passport 1234"`)
		}
		if c.command == "request-reject" {
			b.Is(b.SendCommand(to, form), 400, "say why the request is refused")
			form.Set("refusal", strings.Repeat("ж", 201))
			b.Is(b.SendCommand(to, form), 400, "has 201 characters")
			form.Set("refusal", "no copy of the <order>")
		}
		b.Shows(b.SendCommand(to, form), c.done, "No request waits") // back in the list
		b.Shows(b.Get(to), c.state)
		b.Is(b.SendCommand(to, form), 400, "decided already")
	}
	b.Shows(b.Get("/operator/requests"), "No request waits")
	b.Shows(b.Get("/operator/audit?operation=ApproveRequest"), ", differs: CN, T, compared with: Passport 1234")
	person := pagetest.New(t, w.Server)
	person.SignIn("/start", w.Dev.User.Login, w.Dev.User.Password)
	person.Shows(person.Get("/certificates"), "is refused</h2><p>Reason: no copy of the &lt;order&gt;</p>")
	// A request for the registered name differs in nothing.
	if status, body := w.Call("POST", "/api/requests", w.Token(), map[string]any{"AuthorityId": 1}); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	for _, l := range list.FindAllStringSubmatch(b.Get("/operator/requests").Text, -1) {
		if p := b.Shows(b.Get(html.UnescapeString(l[1]))); strings.Contains(p.Text, `class="differs"`) || strings.Contains(p.Text, `name="seen"`) {
			t.Errorf("the registered name differs from the record:\n%s", p.Text)
		}
	}
}
