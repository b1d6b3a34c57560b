// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/web/pages"
)

// TestOperatorOwnAccount checks that operators see their own account and those of other operators
// marked, and read what a command on the own account means before they do it.
func TestOperatorOwnAccount(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	_, login, _, _ := w.Register()
	line := regexp.MustCompile(`<th scope="row"><a href="(/operator/people/[^"]+)">([^<]+)</a>([^\n]*?)</th>`)
	const you, operates = ` <span class="badge">you</span>`, ` <span class="badge">operator</span>`
	b, other := operator(w, w.Dev.Operator.Login), operator(w, tamgatest.TwoGroup)
	at := ""
	for who, marks := range map[*browser]string{b: you + operates, other: operates} {
		got := map[string]string{}
		for _, m := range line.FindAllStringSubmatch(who.ok(who.get("/operator/people")).text, -1) {
			if got[m[2]] = m[3]; m[2] == w.Dev.Operator.Login {
				at = m[1]
			}
		}
		if mark, there := got[login]; !there || mark != "" {
			t.Errorf("a person who is no operator has the marks %q, in the list: %t", mark, there)
		}
		if got[w.Dev.Operator.Login] != marks {
			t.Errorf("the operator has the marks %q, want %q", got[w.Dev.Operator.Login], marks)
		}
		who.ok(who.get(at), `<p class="lead">`+w.Dev.Operator.Login+marks+`</p>`)
	}
	for _, command := range []string{"lock", "delete", "disapprove", "sign-out", "login-delete", "password-show", "password-print", "method-delete-password"} {
		b.ok(b.get(at+"/"+command), `<p class="problem">This is your own account. You are signed out`)
		if p := other.ok(other.get(at + "/" + command)); strings.Contains(p.text, "own account") {
			t.Errorf("%s calls the account of another operator the reader's own", command)
		}
	}
	if p := b.ok(b.get(at+"/name"), `<p class="problem">This is your own account.</p>`); strings.Contains(p.text, "signed out") {
		t.Error("a command that ends no session says that it does")
	}
	b.header.Set("Accept-Language", "ru")
	b.ok(b.get(at+"/lock"), "Это ваша учётная запись. Ваш сеанс закончится")
	b.header.Set("Accept-Language", "en")
	b.ok(b.command(at+"/sign-out", nil), `name="ticket"`) // the sign-in: the command has ended the session of its operator
}

// TestCommandsOfMissing sends every form about something that is missing: a link that is old, or wrong. It
// is refused before and after the form, and nothing has changed.
func TestCommandsOfMissing(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t, tamgatest.WithPasskeys()...)
	id, login, _, _ := w.Register()
	other, _, phone, email := w.Register()
	b, at := operator(w, w.Dev.Operator.Login), personAt(id)
	b.ok(b.command(at+"/method-add-password", nil))
	record := func(id string) string {
		return requestNumber.ReplaceAllString(b.ok(b.get(personAt(id))).text, "")
	}
	before, theirs, demo := record(id), record(other), record(w.Dev.User.ID)
	form := url.Values{
		"has": {"true"}, "code": {"123456"}, "first": {"123456"}, "second": {"123457"}, "reason": {"0"}, "kind": {"access"}, "group": {"Named"}, "fixed": {"false"}, "level": {"2"},
	}
	things, alone := 0, 0
	operations := map[string]bool{}
	for _, d := range pages.AllCommands(id) {
		if d.Adds {
			continue
		}
		if !d.Thing { // what the address names is ignored: the command is about the user alone
			alone++
			if p := b.get(d.Path + "?of=zz"); strings.Contains(p.text, "<code>zz</code>") || strings.Contains(p.text, `action="`+d.Path+`?of=zz"`) {
				t.Errorf("%s is done to zz", d.Path)
			}
			continue
		}
		things++
		operations[d.Operation] = true
		// Those of other users are missing, too: a contact, and a certificate.
		for _, of := range []string{"", "zz", "0", "1", phone, email, tamgatest.Missing, "realsts", w.Dev.User.ID, hostileText, strings.Repeat("x", 1000)} {
			to := d.Path + "?of=" + url.QueryEscape(of)
			p := b.get(to)
			b.is(p, 404)
			b.safe(p)
			for _, name := range []string{of, login} {
				form.Set("confirm_name", name)
				b.is(b.post(to, form), 404)
			}
		}
	}
	if things < 35 || alone < 30 {
		t.Errorf("only %d commands on things and %d on users", things, alone)
	}
	for id, want := range map[string]string{id: before, other: theirs, w.Dev.User.ID: demo} {
		if record(id) != want {
			t.Errorf("a refused form has changed the record of %s", id)
		}
	}
	refused := map[string]bool{}
	for line := range strings.Lines(w.Command("audit", "--limit", "0", "--json")) {
		var e struct{ Phase, Operation, Outcome string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if operations[e.Operation] && e.Phase == "done" {
			if refused[e.Operation] = true; e.Outcome == "ok" {
				t.Errorf("the audit log has a success: %s", line)
			}
		}
	}
	if len(refused) != len(operations) {
		t.Errorf("the audit log has %d of %d operations", len(refused), len(operations))
	}
	// A form that was open while its contact was deleted, and what is there again.
	of := at + "/email-delete?of=" + url.QueryEscape("new@example.org")
	b.is(b.get(of), 404, "The record has no e-mail &#34;new@example.org&#34;: it was deleted, or the link is wrong.<", `href="`+at+`"`)
	b.ok(b.command(at+"/email-add", url.Values{"email": {"new@example.org"}}))
	b.ok(b.get(of), "<p>new@example.org · not confirmed</p>")
	b.ok(b.command(of, nil), "The contact is deleted")
	b.is(b.post(of, url.Values{"confirm_name": {"new@example.org"}}), 404, "The record has no e-mail")
	b.header.Set("Accept-Language", "ru")
	b.is(b.get(of), 404, "Почты «new@example.org» в карточке нет: она удалена, или ссылка неверна.<")
}

// TestRulesOfPerson checks that a record says where each rule is set: for the installation, the group or
// the person.
func TestRulesOfPerson(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	id, _, _, _ := w.Register()
	b, at := operator(w, w.Dev.Operator.Login), personAt(id)
	const denied, confirmed, notified = "<dt>Denied actions</dt><dd>", "<dt>Actions to confirm</dt><dd>", "<dt>Notifications</dt><dd>"
	all, fixed := "for the installation</dd>", ` <span class="badge">operators may not change it</span></dd>`
	b.ok(b.get(at), denied+all, confirmed+all, notified+all, "<dt>Ways to sign in and to confirm</dt><dd>for this person alone</dd>")
	b.ok(b.command("/operator/groups/group-operation?of=Default", url.Values{"fixed": {"false"}, "actions": {"SignDocument"}}))
	b.ok(b.command("/operator/groups/group-access?of=Default", url.Values{"fixed": {"true"}, "actions": {"ChangePin"}}))
	b.ok(b.get(at), denied+"for the group Default"+fixed, confirmed+"for the group Default</dd>", notified+all)
	b.ok(b.command(at+"/policy-operation", nil))
	b.ok(b.command(at+"/policy-notification", nil))
	b.ok(b.get(at), denied+"for the group Default"+fixed, confirmed+"for this person alone</dd>", notified+"for this person alone</dd>")
	b.header.Set("Accept-Language", "ru")
	b.ok(b.get(at), "для группы Default <span")
}

// TestOfferedContacts checks that a record offers only messages that can reach the person, says what
// lacks, and that forms offer the confirmed contacts.
func TestOfferedContacts(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	id, _, phone, email := w.Register()
	b, at := operator(w, w.Dev.Operator.Login), personAt(id)
	leads := func(p shown, commands ...string) {
		t.Helper()
		for _, command := range []string{"password-sms", "password-email", "device-init", "device-send", "device-code"} {
			if strings.Contains(p.text, `href="`+at+"/"+command+`"`) != slices.Contains(commands, command) {
				t.Errorf("the record does not lead to %v alone: %s", commands, command)
			}
		}
	}
	add := func(kind, label string) string { return `<a href="` + at + "/" + kind + `-add">` + label + "</a>" }
	leads(b.ok(b.get(at), "cannot be sent by SMS, since no phone is confirmed", "or add one: "+add("phone", "Add a phone")+"</p>", "or add one: "+add("email", "Add an e-mail")+"</p>",
		"A device cannot be connected", "or add one: "+add("phone", "Add a phone")+" · "+add("email", "Add an e-mail")+"</p>"))
	for command, want := range map[string]string{"password-sms": "The person has no confirmed phone", "password-email": "The person has no confirmed e-mail", "device-init": "The activation code needs a confirmed phone or e-mail"} {
		b.is(b.get(at+"/"+command), 400, want+"", "in the record, and confirm it.<", `href="`+at+`"`)
		b.is(b.post(at+"/"+command, url.Values{"phone": {phone}, "email": {email}, "destination": {email}}), 400, want)
	}

	b.ok(b.command(at+"/email-confirm?of="+url.QueryEscape(email), nil))
	p := b.ok(b.get(at), "since no phone is confirmed")
	leads(p, "password-email", "device-init")
	if strings.Contains(p.text, "since no e-mail") || strings.Contains(p.text, "cannot be connected") {
		t.Errorf("the record lacks what is there:\n%s", p.text)
	}
	offered := func(command string, want ...string) {
		t.Helper()
		var got []string
		for _, m := range regexp.MustCompile(`<option value="([^"]*)"`).FindAllStringSubmatch(b.ok(b.get(at+"/"+command)).text, -1) {
			got = append(got, m[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s offers %q, want %q", command, got, want)
		}
	}
	offered("password-email", email) // no contact gets codes yet
	offered("device-init", email)
	b.ok(b.command(at+"/email-codes?of="+url.QueryEscape(email), nil))
	b.ok(b.command(at+"/phone-confirm?of="+phone, nil))
	offered("password-email", "", email)
	offered("device-init", "", phone, "", email)
	b.ok(b.get(at+"/device-init"), `<option value="`+phone+`" selected>`)
	b.ok(b.command(at+"/device-init", url.Values{"phone": {phone}, "email": {""}}), "data:image/gif;base64,")
	leads(b.ok(b.get(at)), "password-sms", "password-email", "device-send", "device-code")
	b.is(b.get(at+"/device-init"), 400, "A device is being connected already")
	offered("device-send", email)
	b.ok(b.command(at+"/device-send", url.Values{"email": {email}}), "The QR code is on its way")
	b.is(b.command(at+"/device-send", url.Values{"email": {"other@example.org"}}), 400, "no such contact")
	b.ok(b.command(at+"/device-cancel", nil))
	b.is(b.get(at+"/device-send"), 404, "No device of the person is being connected")
}

// TestNumbersOfName checks that the form of a name refuses a number with a typing error, and takes it on
// the word of the operator: the interface takes any digits.
func TestNumbersOfName(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	id, login, _, _ := w.Register()
	b, at := operator(w, w.Dev.Operator.Login), personAt(id)
	const box = `<input type="checkbox" name="as_is" value="yes"`
	name := func(inn, snils string) url.Values {
		return url.Values{"dn-11": {login}, "dn-4": {inn}, "dn-3": {snils}}
	}
	if p := b.ok(b.get(at + "/dn")); strings.Contains(p.text, box) {
		t.Error("the form offers to save wrong numbers before any number is wrong")
	}
	b.is(b.command(at+"/dn", name("500100732258", "11223344595")), 400, "Taxpayer number: the check digits do not fit", `value="500100732258"`, box+">")
	b.is(b.command(at+"/dn", name("7707083893", "1")), 400, "Taxpayer number: want 12 digits, the number of an organisation with 00", "Insurance number: want 11 digits")
	b.header.Set("Accept-Language", "ru")
	b.is(b.command(at+"/dn", name("500100732258", "11223344596")), 400, "ИНН: контрольные цифры не сходятся, хотя бы одна цифра неверна. СНИЛС: контрольные цифры не сходятся", "Номера верны: сохранить их как есть")
	b.header.Set("Accept-Language", "en")
	if p := b.ok(b.get(at)); strings.Contains(p.text, "INN=") {
		t.Error("a refused name is saved")
	}
	b.ok(b.command(at+"/dn", name("007707083893", "11223344595")), "The name is changed", "SNILS=11223344595")
	as := name("500100732258", "11223344595")
	as.Set("as_is", "yes")
	as.Set("dn-6", "Russia")
	b.is(b.command(at+"/dn", as), 400, "Country: want 1 to 2 characters", box+" checked>")
	as.Set("dn-6", "RU")
	b.ok(b.command(at+"/dn", as), "The name is changed", "INN=500100732258")
	b.ok(b.command(at+"/dn", name("500100732258", "")), "The name is changed") // it was saved before: nothing new is wrong
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/dn", `{"11":"Ivanov","4":"1"}`)
}

// TestCancelledAgain checks that the form of an operation that was cancelled says the same again, and that
// one that ended otherwise has none.
func TestCancelledAgain(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	b, at := operator(w, w.Dev.Operator.Login), personAt(w.Dev.User.ID)
	demo := newBrowser(t, w.Server)
	demo.ok(demo.signIn("/start", w.Dev.User.Login, w.Dev.User.Password))
	signed := demo.ok(demo.upload("/sign", map[string]string{"certificate": "1"}, file{"file", "a.txt", "text"}), "<td>Signed")
	done := at + "/operation-cancel?of=" + url.QueryEscape(signed.at.Query().Get("operations"))
	b.is(b.get(done), 404, "is not under way: it has ended, or the link is wrong.<")
	b.is(b.post(done, nil), 404)

	b.ok(b.command(at+"/policy-operation", url.Values{"actions": {"SignDocument"}}))
	b.ok(b.command(at+"/email-add", url.Values{"email": {"demo@example.org"}}))
	b.ok(b.command(at+"/email-confirm?of=demo%40example.org", nil))
	b.ok(b.command(at+"/email-codes?of=demo%40example.org", nil))
	b.ok(b.command(at+"/method-add-otpviaemail", url.Values{"level": {"1"}}), "<td>confirming operations only</td>", "<td>first step of signing in</td>")
	b.ok(b.command(at+"/method-add-oath", url.Values{"level": {"2"}}), "<td>second step of signing in, and confirming</td>")
	b.ok(b.command(at+"/method-delete-oath", nil))
	demo = newBrowser(t, w.Server)
	demo.ok(demo.signIn("/start", w.Dev.User.Login, w.Dev.User.Password))
	demo.ok(demo.upload("/sign", map[string]string{"certificate": "1"}, file{"file", "a.txt", "text"}))
	cancel := b.find(b.get(at), regexp.MustCompile(`href="(`+at+`/operation-cancel\?of=[^"]+)"`))[1]
	b.ok(b.get(cancel), "Sign a document", "Waits for confirmation", "a.txt")
	b.ok(b.command(cancel, nil), "The operation is cancelled")
	b.ok(b.get(cancel), "Cancelled")
	b.ok(b.command(cancel, nil), "The operation is cancelled")
}
