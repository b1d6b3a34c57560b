// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestRegistration registers people with all that the form asks for.
func TestRegistration(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	b := pagetest.Operator(w, w.Dev.Operator.Login)
	const at = "/operator/people/new"
	b.Shows(b.Get(at), "Surname", "First password", "Confirming signatures", "Code by SMS to this phone", "What happens")
	form := url.Values{
		"surname": {"Лебедева"}, "given": {"Ольга Николаевна"}, "position": {"Специалист по закупкам"}, "group": {"Default"}, "login": {"lebedeva"},
		"phone": {"8 (916) 555-01-02"}, "email": {"lebedeva@example.org"}, "sure": {"yes"}, "first_password": {"show"}, "methods": {"otpviasms", "mydss"},
	}
	p := b.Shows(b.Post(at, form), "The person is registered", "lebedeva – Лебедева Ольга Николаевна", "never shown again", "What was done")
	if strings.Contains(p.Text, `class="disc warn"`) {
		t.Errorf("a step was refused:\n%s", p.Text)
	}
	password := html.UnescapeString(b.Find(p, regexp.MustCompile(`<p><code>([^<]+)</code></p>`))[1])
	person := b.Find(p, regexp.MustCompile(`href="(/operator/people/[0-9a-f-]{36})"`))[1]
	b.Shows(b.Record(person), "Лебедева Ольга Николаевна", "T=Специалист по закупкам", "79165550102", "gets codes", "Code by SMS", "Mobile application")
	signs := pagetest.New(t, w.Server)
	signs.Shows(signs.SignIn("/start", "lebedeva", password), "button") // the second step

	// A certificate is requested at once. The key of such a request has no PIN.
	p = b.Shows(b.Post(at, url.Values{"surname": {"Котова"}, "given": {"Вера"}, "login": {"kotova"}, "group": {"Default"}, "certificate": {"yes"}}), "The person is registered", "Request a certificate</h3>")
	b.Shows(b.Get(b.Find(p, regexp.MustCompile(`href="(/operator/people/[0-9a-f-]{36})"`))[1]+"/certificates"), "Котова Вера", "/certificate-hold?of=")

	// A free login is proposed, and the form keeps the rest.
	const propose = at + "/do/login"
	p = b.Shows(b.Post(propose, url.Values{"surname": {"Лебедева"}, "given": {"Ольга"}, "position": {"Бухгалтер"}, "methods": {"mydss"}}), `value="o.lebedeva"`, "Made from the name and free", `value="Бухгалтер"`, `value="mydss" checked`, `action="`+at+`"`)
	b.Safe(p)
	b.Shows(b.Post(propose, url.Values{"surname": {"李"}}), "No login could be made")
	demo := pagetest.New(t, w.Server)
	demo.SignIn("/start", w.Dev.User.Login, w.Dev.User.Password)
	demo.Is(demo.Post(propose, url.Values{"surname": {"Лебедева"}}), 403)

	// What another person has is said at its field, with the person.
	form.Set("login", "other")
	form.Set("phone", "")
	b.Is(b.Post(at, form), 400, `id="email-problem"`, "It belongs to lebedeva – Лебедева Ольга Николаевна", `value="other"`, `value="show" checked`, `value="mydss" checked`)
	form.Set("email", "")
	form.Set("login", "Lebedeva")
	b.Is(b.Post(at, form), 400, `id="login-problem"`, "It belongs to lebedeva")
	form.Set("login", "")
	b.Is(b.Post(at, form), 400)

	// A contact that was not checked gets a code; a password cannot go there yet, and the page says so.
	p = b.Shows(b.Post(at, url.Values{"login": {"later"}, "group": {"Default"}, "email": {"later@example.org"}, "first_password": {"email"}}), "The person is registered", "Send a code", `class="disc warn"`, "no confirmed e-mail")
	if w.Code("later@example.org") == "" {
		t.Error("no code was sent")
	}
	p = b.Shows(b.Post(at, url.Values{"login": {"printed"}, "group": {"Default"}, "first_password": {"print"}}), "printed once")
	print := b.Find(p, regexp.MustCompile(`<form method="post" action="(/operator/people/[^"]+/password-print)"`))[1]
	if file := b.Shows(b.Post(print, url.Values{"format": {"Pdf"}})); !strings.HasPrefix(file.Text, "%PDF") {
		t.Errorf("the print form is %.20q", file.Text)
	}
}

// TestRegistrationWaits checks that each part of a registration waits for a second operator as it does alone.
func TestRegistrationWaits(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t, "--set", "users.second_operator=[gives_secret]")
	b := pagetest.Operator(w, w.Dev.Operator.Login)
	p := b.Shows(b.Post("/operator/people/new", url.Values{"login": {"waiting"}, "group": {"Default"}, "first_password": {"show"}}), "The person is registered", "another operator must approve this")
	if strings.Contains(p.Text, "never shown again") {
		t.Error("a password that waits is shown")
	}
	second := pagetest.Operator(w, tamgatest.TwoGroup)
	second.Shows(second.Get("/operator/approvals"), "ResetPassword")
}

// TestRegistrationRequests checks that the request for a certificate of a registration waits where an operator decides, and
// that the person is registered when it is refused.
func TestRegistrationRequests(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t, "--set", "certificates.approval=operator")
	b := pagetest.Operator(w, w.Dev.Operator.Login)
	form := url.Values{"surname": {"Котова"}, "given": {"Вера"}, "login": {"kotova"}, "group": {"Default"}, "certificate": {"yes"}}
	p := b.Shows(b.Post("/operator/people/new", form), "The person is registered", "Request a certificate</h3>")
	b.Shows(b.Get("/operator/requests"), "Котова Вера")
	// Another one is refused while it waits.
	person := b.Find(p, regexp.MustCompile(`href="(/operator/people/[0-9a-f-]{36})"`))[1]
	b.Is(b.SendCommand(person+"/request-new", nil), 400, "waits")
}

// TestRegistrationRequestFails checks that a person is registered whose certificate cannot be requested, and that the page
// says so.
func TestRegistrationRequestFails(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t, "--set", "pin.mode=Required")
	b := pagetest.Operator(w, w.Dev.Operator.Login)
	if p := b.Shows(b.Get("/operator/people/new")); strings.Contains(p.Text, `name="certificate"`) {
		t.Error("a certificate is offered although its key needs a PIN")
	}
	p := b.Shows(b.Post("/operator/people/new", url.Values{"surname": {"Котова"}, "given": {"Вера"}, "login": {"kotova"}, "group": {"Default"}, "certificate": {"yes"}}),
		"The person is registered", `class="disc warn"`, "PIN")
	b.Shows(b.Get(b.Find(p, regexp.MustCompile(`href="(/operator/people/[0-9a-f-]{36})"`))[1]), "kotova")
}
