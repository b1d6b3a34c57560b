// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"encoding/base32"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"tamga/internal/domain/oath/otp"
	"tamga/internal/judge"
	"tamga/internal/tamgatest"
)

// TestFromRegistrationToVerification is the whole story of a person: an administrator registers
// them, they sign in by the password of a message, change it, set a second step, get a
// certificate, sign a PDF whose stamp they drag, confirm it and verify it. The person has a phone
// and no mouse.
func TestFromRegistrationToVerification(t *testing.T) {
	s := start(t, "--set", "confirmation.codes.resend=1s")
	all := []look{looks[3]}
	if full() {
		all = []look{looks[2], looks[3], moreLooks[2]}
	}
	administrator := s.tab(t, looks[0])
	administrator.signIn("/operator/people/new", s.Dev.Operator.Login, s.Dev.Operator.Password)
	for _, l := range all {
		t.Run(l.name, func(t *testing.T) {
			administrator.T = t
			person := s.tab(t, l)
			if strings.HasPrefix(l.language, "ru") {
				wholeStory(administrator, person, "Анна О’Нил")
			} else {
				wholeStory(administrator, person, "Anna O’Neal")
			}
		})
	}
}

// passwordOf is the password in a message.
var passwordOf = regexp.MustCompile(`(?:Password|Пароль): (\S+)`)

func wholeStory(administrator, b *tab, name string) {
	login, email := "anna-"+b.look.name, b.look.name+"@example.org"
	const password = "An0ther good passphrase"

	// The administrator registers the person and sends a password.
	a := administrator
	a.open("/operator/people/new")
	a.fill(`input[name=login]`, login)
	a.fill(`input[name=email]`, email)
	a.press(`main form[method=post] button`)
	a.see("The person is registered")
	a.check("story-registered")
	a.press(`main a[href^="/operator/people/"].btn:not(.quiet)`)
	a.wait(`.tabs`)
	record := value[string](a, `location.pathname`)
	command := func(path, says string, fields ...string) {
		a.Helper()
		a.open(record + "/" + path)
		for i := 0; i+1 < len(fields); i += 2 {
			a.fill(fields[i], fields[i+1])
		}
		a.press(`main form[method=post] button`)
		a.see(says)
	}
	command("name", "The name is changed.", `input[name=name]`, name)
	command("email-confirm?of="+url.QueryEscape(email), "The contact is confirmed.")
	command("method-add-password", "The way to sign in is set.")
	a.open(record + "/password-email")
	a.choose(`select[name=destination]`, email)
	a.press(`main form[method=post] button`)
	a.see("The password is changed.")

	// The person signs in with the password of the message, on a phone, and changes it.
	sent := b.captured(email, passwordOf)
	b.open("/account")
	enter := func(password string) {
		b.Helper()
		b.wait(`input[name=password]`)
		b.fill(`input[name=login]`, login)
		b.fill(`input[name=password]`, password)
		b.tap(`main form button`)
	}
	at := func(path string) {
		b.Helper()
		b.until(`document.readyState === "complete" && location.pathname === ` + quote(path))
	}
	enter(sent)
	at("/account")
	b.fill(`input[name=present]`, sent)
	b.fill(`input[name=new]`, password)
	b.fill(`input[name=again]`, password)
	b.tap(`form[action="/account/do/password"] button`)
	b.until(`document.querySelector("input[name=present]") === null`) // all sessions end

	// The second step is an app, which the person adds and the administrator turns on.
	b.open("/devices")
	enter(password)
	at("/devices")
	b.tap(`form[action="/devices/do/app"] button`)
	b.wait(`main img`)
	b.check("story-app")
	text := value[string](b, `document.querySelector("main").innerText`)
	secret, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(regexp.MustCompile(`[A-Z2-7]{32,}`).FindString(text))
	if err != nil || len(secret) == 0 {
		b.Fatalf("no secret of the app, %v, in:\n%s", err, text)
	}
	app, err := otp.New(otp.SHA1, 6, secret)
	if err != nil {
		b.Fatal(err)
	}
	step := int64(0)
	code := func() string { // each of the two codes counts once, and clocks may differ by a step
		step = max(step+1, otp.Step(time.Now(), 30*time.Second))
		return app.Code(step)
	}
	command("method-add-oath", "The way to sign in is set.")
	a.open(record + "/policy-operation")
	a.press(`input[name=actions][value=SignDocument]`)
	a.press(`main form[method=post] button`)
	a.see("The policy is changed.")
	a.check("story-policy")

	// A new sign-in passes the second step.
	b.open("/certificates/request")
	enter(password)
	b.wait(`input[name=code]`)
	b.check("story-second-step")
	b.fill(`input[name=code]`, code())
	b.tap(`main form button`)
	at("/certificates/request")
	b.fill(`input[name="name.2.5.4.3"]`, name)
	b.tap(`form[action="/certificates/request"] button`)
	at("/certificates")
	b.check("story-certificate")

	// A PDF is signed where the finger drags the stamp, and confirmed by a code.
	folder := b.downloads()
	b.open("/sign")
	b.tap(`main details summary`)
	b.attach(`input[name=file]`, "contract.pdf", string(tamgatest.PDFOf(2000)))
	b.tap(`[data-place] button`)
	b.until(`document.querySelector("[data-box]").style.width !== ""`) // the page is drawn
	left, bottom := b.number("stamp_left"), b.number("stamp_bottom")
	b.drag(`[data-box]`, 60, -80)
	if x, y := b.number("stamp_left"), b.number("stamp_bottom"); x <= left || y <= bottom {
		b.Errorf("the finger dragged the stamp from %d, %d mm to %d, %d mm", left, bottom, x, y)
	}
	b.check("story-stamp")
	b.tap(`main form button:not([name]):not([type])`)
	b.tap(`main a[href^="/confirm/"]`)
	b.tap(`button[value=oath]`)
	b.wait(`input[name=code]`)
	b.check("story-confirm")
	b.fill(`input[name=code]`, code())
	b.tap(`#answer button`)
	b.tap(`main a[href^="/signed/document/"]`)
	signed := b.saved(folder, map[string]string{"en": "contract (signed).pdf", "ru": "contract (подписан).pdf"}[b.look.language[:2]])
	b.check("story-signed")
	if shown := judge.PDFViewers(b).Text([]byte(signed)); !strings.Contains(shown, name) {
		b.Errorf("the document has no stamp of %s:\n%s", name, shown)
	}

	// The person verifies it.
	b.open("/verify")
	b.verify("contract.pdf", signed)
	b.wait(`.verdict.valid`)
	if text := value[string](b, `document.querySelector("main").innerText`); !strings.Contains(text, name) {
		b.Errorf("the verdict does not name %s:\n%s", name, text)
	}
	b.check("story-verified")
}

// choose chooses an option.
func (b *tab) choose(selector, option string) {
	b.Helper()
	b.wait(selector)
	if got := value[string](b, `(e => { e.value = `+quote(option)+`; return e.value })(document.querySelector(`+quote(selector)+`))`); got != option {
		b.Fatalf("%s has no option %q", selector, option)
	}
}

// number returns the number in a field.
func (b *tab) number(field string) int {
	b.Helper()
	return value[int](b, `Number(document.querySelector('[name=`+field+`]').value)`)
}
