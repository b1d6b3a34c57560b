// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
	"tamga/internal/web/pages/operator"
)

// TestOperatorOwnAccount checks that operators see their own account and those of other operators
// marked, and read what a command on the own account means before they do it.
func TestOperatorOwnAccount(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	_, login, _, _ := w.Register()
	line := regexp.MustCompile(`<th scope="row"><a href="(/operator/people/[^"]+)">([^<]+)</a>([^\n]*?)<p class="hint plain">([^<]+)</p></th>`)
	const you, operates = ` <span class="tag">you</span>`, ` <span class="tag">operator</span>`
	b, other := pagetest.Operator(w, w.Dev.Operator.Login), pagetest.Operator(w, tamgatest.TwoGroup)
	at := ""
	for who, marks := range map[*pagetest.Browser]string{b: you + operates, other: operates} {
		got := map[string]string{}
		for _, m := range line.FindAllStringSubmatch(who.Shows(who.Get("/operator/people")).Text, -1) {
			if got[m[4]] = m[3]; m[4] == w.Dev.Operator.Login {
				at = m[1]
			}
		}
		if mark, there := got[login]; !there || mark != "" {
			t.Errorf("a person who is no operator has the marks %q, in the list: %t", mark, there)
		}
		if got[w.Dev.Operator.Login] != marks {
			t.Errorf("the operator has the marks %q, want %q", got[w.Dev.Operator.Login], marks)
		}
		who.Shows(who.Record(at), marks+`<span class="hint">login `+w.Dev.Operator.Login)
	}
	for _, command := range []string{"lock", "delete", "disapprove", "sign-out", "login-delete", "password-show", "password-print", "method-delete-password"} {
		b.Shows(b.Get(at+"/"+command), `<p>This is your own account. You are signed out`)
		if p := other.Shows(other.Get(at + "/" + command)); strings.Contains(p.Text, "own account") {
			t.Errorf("%s calls the account of another operator the reader's own", command)
		}
	}
	if p := b.Shows(b.Get(at+"/name"), `<p>This is your own account.</p>`); strings.Contains(p.Text, "signed out") {
		t.Error("a command that ends no session says that it does")
	}
	b.Header.Set("Accept-Language", "ru")
	b.Shows(b.Get(at+"/lock"), "Это ваша учётная запись. Ваш сеанс закончится")
	b.Header.Set("Accept-Language", "en")
	b.Shows(b.SendCommand(at+"/sign-out", nil), `name="ticket"`) // the sign-in: the command has ended the session of its operator
}

// TestCommandsOfMissing sends every form about something that is missing: a link that is old, or wrong. It
// is refused before and after the form, and nothing has changed.
func TestCommandsOfMissing(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t, tamgatest.WithPasskeys()...)
	id, login, _, _ := w.Register()
	other, _, phone, email := w.Register()
	b, at := pagetest.Operator(w, w.Dev.Operator.Login), pagetest.PersonAt(id)
	b.Shows(b.SendCommand(at+"/method-add-password", nil))
	record := func(id string) string {
		return pagetest.RequestNumber.ReplaceAllString(b.Shows(b.Record(pagetest.PersonAt(id))).Text, "")
	}
	before, theirs, demo := record(id), record(other), record(w.Dev.User.ID)
	form := url.Values{
		"has": {"true"}, "code": {"123456"}, "first": {"123456"}, "second": {"123457"}, "reason": {"0"}, "kind": {"access"}, "group": {"Named"}, "fixed": {"false"}, "level": {"2"},
	}
	things, alone := 0, 0
	operations := map[string]bool{}
	for _, d := range operator.AllCommands(id) {
		if d.Adds {
			continue
		}
		if !d.Thing { // what the address names is ignored: the command is about the user alone
			alone++
			if p := b.Get(d.At + "?of=zz"); strings.Contains(p.Text, "<code>zz</code>") || strings.Contains(p.Text, `action="`+d.At+`?of=zz"`) {
				t.Errorf("%s is done to zz", d.At)
			}
			continue
		}
		things++
		operations[d.Operation] = true
		// Those of other users are missing, too: a contact, and a certificate.
		for _, of := range []string{"", "zz", "0", "1", phone, email, tamgatest.Missing, "realsts", w.Dev.User.ID, pagetest.HostileText, strings.Repeat("x", 1000)} {
			to := d.At + "?of=" + url.QueryEscape(of)
			p := b.Get(to)
			b.Is(p, 404)
			b.Safe(p)
			for _, name := range []string{of, login} {
				form.Set("confirm_name", name)
				b.Is(b.Post(to, form), 404)
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
	b.Is(b.Get(of), 404, "The record has no e-mail &#34;new@example.org&#34;: it was deleted, or the link is wrong.<", `href="`+at+`"`)
	b.Shows(b.SendCommand(at+"/email-add", url.Values{"email": {"new@example.org"}}))
	b.Shows(b.Get(of), "<p>new@example.org · not confirmed</p>")
	b.Shows(b.SendCommand(of, nil), "The contact is deleted")
	b.Is(b.Post(of, url.Values{"confirm_name": {"new@example.org"}}), 404, "The record has no e-mail")
	b.Header.Set("Accept-Language", "ru")
	b.Is(b.Get(of), 404, "Почты «new@example.org» в карточке нет: она удалена, или ссылка неверна.<")
}

// TestRulesOfPerson checks that a record says where each rule is set: for the installation, the group or
// the person.
func TestRulesOfPerson(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	id, _, _, _ := w.Register()
	b, at := pagetest.Operator(w, w.Dev.Operator.Login), pagetest.PersonAt(id)
	const denied, confirmed, notified = "<dt>Denied actions</dt><dd>", "<dt>Actions to confirm</dt><dd>", "<dt>Notifications</dt><dd>"
	all, fixed := "for the installation</dd>", ` <span class="tag">operators may not change it</span></dd>`
	b.Shows(b.Record(at), denied+all, confirmed+all, notified+all, "<dt>Sign-in and confirmation</dt><dd>for this person alone</dd>")
	b.Shows(b.SendCommand("/operator/groups/group-operation?of=Default", url.Values{"fixed": {"false"}, "actions": {"SignDocument"}}))
	b.Shows(b.SendCommand("/operator/groups/group-access?of=Default", url.Values{"fixed": {"true"}, "actions": {"ChangePin"}}))
	b.Shows(b.Record(at), denied+"for the group Default"+fixed, confirmed+"for the group Default</dd>", notified+all)
	b.Shows(b.SendCommand(at+"/policy-operation", nil))
	b.Shows(b.SendCommand(at+"/policy-notification", nil))
	b.Shows(b.Record(at), denied+"for the group Default"+fixed, confirmed+"for this person alone</dd>", notified+"for this person alone</dd>")
	b.Header.Set("Accept-Language", "ru")
	b.Shows(b.Record(at), "для группы Default <span")
}

// TestOfferedContacts checks that a record offers only messages that can reach the person, says what
// lacks, and that forms offer the confirmed contacts.
func TestOfferedContacts(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	id, _, phone, email := w.Register()
	b, at := pagetest.Operator(w, w.Dev.Operator.Login), pagetest.PersonAt(id)
	leads := func(p pagetest.Page, commands ...string) {
		t.Helper()
		for _, command := range []string{"password-sms", "password-email", "device-init", "device-send", "device-code"} {
			if strings.Contains(p.Text, `href="`+at+"/"+command+`"`) != slices.Contains(commands, command) {
				t.Errorf("the record does not lead to %v alone: %s", commands, command)
			}
		}
	}
	add := func(kind, label string) string {
		return `<a class="btn small" href="` + at + "/" + kind + `-add">` + label + "</a>"
	}
	leads(b.Shows(b.Record(at), "cannot be sent by SMS, since no phone is confirmed", "or add one:</p>"+add("phone", "Add a phone"), "or add one:</p>"+add("email", "Add an e-mail"),
		"A device cannot be connected", "or add one:</p>"+add("phone", "Add a phone")+"\n"+add("email", "Add an e-mail")))
	for command, want := range map[string]string{"password-sms": "The person has no confirmed phone", "password-email": "The person has no confirmed e-mail", "device-init": "The activation code needs a confirmed phone or e-mail"} {
		b.Is(b.Get(at+"/"+command), 400, want+"", "in the record, and confirm it.<", `href="`+at+`"`)
		b.Is(b.Post(at+"/"+command, url.Values{"phone": {phone}, "email": {email}, "destination": {email}}), 400, want)
	}

	b.Shows(b.SendCommand(at+"/email-confirm?of="+url.QueryEscape(email), nil))
	p := b.Shows(b.Record(at), "since no phone is confirmed")
	leads(p, "password-email", "device-init")
	if strings.Contains(p.Text, "since no e-mail") || strings.Contains(p.Text, "cannot be connected") {
		t.Errorf("the record lacks what is there:\n%s", p.Text)
	}
	offered := func(command string, want ...string) {
		t.Helper()
		var got []string
		for _, m := range regexp.MustCompile(`<option value="([^"]*)"`).FindAllStringSubmatch(b.Shows(b.Get(at+"/"+command)).Text, -1) {
			got = append(got, m[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s offers %q, want %q", command, got, want)
		}
	}
	offered("password-email", email) // no contact gets codes yet
	offered("device-init", email)
	b.Shows(b.SendCommand(at+"/email-codes?of="+url.QueryEscape(email), nil))
	b.Shows(b.SendCommand(at+"/phone-confirm?of="+phone, nil))
	offered("password-email", "", email)
	offered("device-init", "", phone, "", email)
	b.Shows(b.Get(at+"/device-init"), `<option value="`+phone+`" selected>`)
	b.Shows(b.SendCommand(at+"/device-init", url.Values{"phone": {phone}, "email": {""}}), "data:image/gif;base64,")
	leads(b.Shows(b.Record(at)), "password-sms", "password-email", "device-send", "device-code")
	b.Is(b.Get(at+"/device-init"), 400, "A device is being connected already")
	offered("device-send", email)
	b.Shows(b.SendCommand(at+"/device-send", url.Values{"email": {email}}), "The QR code is on its way")
	b.Is(b.SendCommand(at+"/device-send", url.Values{"email": {"other@example.org"}}), 400, "no such contact")
	b.Shows(b.SendCommand(at+"/device-cancel", nil))
	b.Is(b.Get(at+"/device-send"), 404, "No device of the person is being connected")
}

// TestNumbersOfName checks that the form of a name refuses a number with a typing error, and takes it on
// the word of the operator: the interface takes any digits.
func TestNumbersOfName(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	id, login, _, _ := w.Register()
	b, at := pagetest.Operator(w, w.Dev.Operator.Login), pagetest.PersonAt(id)
	const box = `<input type="checkbox" name="as_is" value="yes"`
	name := func(inn, snils string) url.Values {
		return url.Values{"dn-11": {login}, "dn-4": {inn}, "dn-3": {snils}}
	}
	if p := b.Shows(b.Get(at + "/dn")); strings.Contains(p.Text, box) {
		t.Error("the form offers to save wrong numbers before any number is wrong")
	}
	b.Is(b.SendCommand(at+"/dn", name("500100732258", "11223344595")), 400, "Taxpayer number: the check digits do not fit", `value="500100732258"`, box+">")
	b.Is(b.SendCommand(at+"/dn", name("7707083893", "1")), 400, "Taxpayer number: want 12 digits, the number of an organisation with 00", "Insurance number: want 11 digits")
	b.Header.Set("Accept-Language", "ru")
	b.Is(b.SendCommand(at+"/dn", name("500100732258", "11223344596")), 400, "ИНН: контрольные цифры не сходятся, хотя бы одна цифра неверна. СНИЛС: контрольные цифры не сходятся", "Номера верны: сохранить их как есть")
	b.Header.Set("Accept-Language", "en")
	if p := b.Shows(b.Record(at)); strings.Contains(p.Text, "INN=") {
		t.Error("a refused name is saved")
	}
	b.Shows(b.SendCommand(at+"/dn", name("007707083893", "11223344595")), "The name is changed", "SNILS=11223344595")
	as := name("500100732258", "11223344595")
	as.Set("as_is", "yes")
	as.Set("dn-6", "Russia")
	b.Is(b.SendCommand(at+"/dn", as), 400, "Country: want 1 to 2 characters", box+" checked>")
	as.Set("dn-6", "RU")
	b.Shows(b.SendCommand(at+"/dn", as), "The name is changed", "INN=500100732258")
	b.Shows(b.SendCommand(at+"/dn", name("500100732258", "")), "The name is changed") // it was saved before: nothing new is wrong
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+id+"/dn", `{"11":"Ivanov","4":"1"}`)
}

// TestCancelledAgain checks that the form of an operation that was cancelled says the same again, and that
// one that ended otherwise has none.
func TestCancelledAgain(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	b, at := pagetest.Operator(w, w.Dev.Operator.Login), pagetest.PersonAt(w.Dev.User.ID)
	demo := pagetest.New(t, w.Server)
	demo.Shows(demo.SignIn("/start", w.Dev.User.Login, w.Dev.User.Password))
	signed := demo.Shows(demo.Upload("/sign", map[string]string{"certificate": "1"}, pagetest.File{Field: "file", Name: "a.txt", Content: "text"}), ">Signed<")
	done := at + "/operation-cancel?of=" + url.QueryEscape(signed.At.Query().Get("operations"))
	b.Is(b.Get(done), 404, "is not under way: it has ended, or the link is wrong.<")
	b.Is(b.Post(done, nil), 404)

	b.Shows(b.SendCommand(at+"/policy-operation", url.Values{"actions": {"SignDocument"}}))
	b.Shows(b.SendCommand(at+"/email-add", url.Values{"email": {"demo@example.org"}}))
	b.Shows(b.SendCommand(at+"/email-confirm?of=demo%40example.org", nil))
	b.Shows(b.SendCommand(at+"/email-codes?of=demo%40example.org", nil))
	b.Shows(b.SendCommand(at+"/method-add-otpviaemail", url.Values{"level": {"1"}}), "<td>confirming operations only</td>", "<td>first step of signing in</td>")
	b.Shows(b.SendCommand(at+"/method-add-oath", url.Values{"level": {"2"}}), "<td>second step of signing in, and confirming</td>")
	b.Shows(b.SendCommand(at+"/method-delete-oath", nil))
	demo = pagetest.New(t, w.Server)
	demo.Shows(demo.SignIn("/start", w.Dev.User.Login, w.Dev.User.Password))
	demo.Shows(demo.Upload("/sign", map[string]string{"certificate": "1"}, pagetest.File{Field: "file", Name: "a.txt", Content: "text"}))
	cancel := b.Find(b.Record(at), regexp.MustCompile(`action="(`+at+`/operation-cancel\?of=[^"]+)"`))[1]
	b.Shows(b.Get(cancel), "Sign a document", "Waits for confirmation", "a.txt")
	b.Shows(b.SendCommand(cancel, nil), "The operation is cancelled")
	b.Shows(b.Get(cancel), "Cancelled")
	b.Shows(b.SendCommand(cancel, nil), "The operation is cancelled")
}
