// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"encoding/base32"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tamga/internal/domain/oath/otp"
	"tamga/internal/tamgatest"
)

var (
	qrText = regexp.MustCompile(`(?s)src="data:image/gif;base64,[^"]+".*?<details>.*?<code>(.*?)</code>`)
	kidOf  = regexp.MustCompile(`name="device" value="([0-9]+)"`)
)

// TestDevices adds contacts, a device and an app in pages, first by the session alone and
// then after a confirmation.
func TestDevices(t *testing.T) {
	p := newPerson(t)
	b := p.browser
	form := func(name, value string, more ...string) url.Values {
		f := url.Values{name: {value}}
		for i := 0; i < len(more); i += 2 {
			f.Set(more[i], more[i+1])
		}
		return f
	}
	const email = "demo@example.org"
	b.is(b.post("/devices/do/contact", form("contact", `<img src=x>@x`)), 400, "e-mail address is not right", `href="/devices"`)
	b.ok(b.post("/devices/do/contact", form("contact", email)), email, "not confirmed", `<p class="toast" role="status">The contact is added.`)
	asked := regexp.MustCompile(`popovertarget="(contact-[0-9]+)" aria-label="Delete: ` + email + `"`).FindStringSubmatch(b.get("/devices").text)
	if asked == nil {
		t.Fatal("a contact is deleted without a question")
	}
	b.ok(b.get("/devices"), `<div popover id="`+asked[1]+`"`, "Delete “"+email+"”?")
	b.header.Set("Accept-Language", "ru")
	b.ok(b.get("/devices"), "Оператор ещё не разрешил вам входить и подтверждать кодами из SMS и писем.", "Оператор ещё не разрешил вам входить и подтверждать кодами приложения или токена.")
	b.ok(b.get("/devices"), "Удалить «"+email+"»?", "больше не будут приходить на этот контакт")
	b.ok(b.get("/devices?done=contact-delete"), `<p class="toast" role="status">Контакт удалён.`)
	b.header.Set("Accept-Language", "en")
	b.is(b.post("/devices/do/contact", form("contact", email)), 400, "This contact is taken", `required value="`+email+`" autofocus aria-invalid="true" aria-describedby="wrong"`)
	// A wrong code is said at its field. The page is the same one, so that the next code can be typed.
	wrong := b.post("/devices/do/contact-confirm", form("contact", email, "code", "000000"))
	b.is(wrong, 400, "<h1>Devices and codes</h1>", `maxlength="16" required autofocus aria-invalid="true" aria-describedby="wrong"></label>
<p class="problem" role="alert" id="wrong">The code is wrong`)
	if strings.Contains(wrong.text, "000000") || strings.Count(wrong.text, `id="wrong"`) != 1 {
		t.Errorf("the code, or the reason at several fields:\n%s", wrong.text)
	}
	b.is(b.post("/devices/do/contact-codes", form("contact", email)), 400, "Confirm the contact first, then give it a role.<")
	b.ok(b.post("/devices/do/contact-confirm", form("contact", email, "code", p.Code(email))))
	b.ok(b.post("/devices/do/contact-notify", form("contact", email, "on", "yes")), "Stop notifications")
	b.ok(b.post("/devices/do/contact-notify", form("contact", email)))
	b.ok(b.post("/devices/do/contact-codes", form("contact", email)))

	// A device, by the picture on the screen and the code that was sent.
	page := b.ok(b.post("/devices/do/activate", form("contact", p.phone)), "type the activation code")
	if page.at.Path != "/devices/activation" || !strings.Contains(page.header.Get("Content-Security-Policy"), "img-src data:") {
		t.Errorf("%s %v", page.at, page.header)
	}
	b.is(b.post("/devices/do/activate", form("contact", p.phone)), 400, "A device is being connected already")
	b.ok(b.get("/devices"), "Go on with the activation")
	b.ok(b.get("/start"), `href="/devices/activation"`)
	phone := filepath.Join(t.TempDir(), "phone.json")
	p.onPhone(phone, "register", "--qr-text", b.find(page, qrText)[1], "--code", p.ActivationCode(p.phone), "--name", `<b>Phone</b>`)
	page = b.ok(b.get("/devices"), "&lt;b&gt;Phone&lt;/b&gt;", "<td>Not verified</td>")
	kid := b.find(page, kidOf)[1]
	b.ok(b.get("/start"), "Verify the device &lt;b&gt;Phone&lt;/b&gt;")
	b.is(b.get("/devices/activation"), 400, "No device is being connected: begin to connect one.<")
	page = b.ok(b.post("/devices/do/verify", form("device", kid)), "the device that you verify")
	p.onPhone(phone, "verify", "--qr-text", b.find(page, qrText)[1])
	b.ok(b.get("/devices"), "<td>Works</td>")
	b.is(b.post("/devices/do/verify", form("device", kid)), 400)
	b.ok(b.post("/devices/do/block", form("device", kid)), "Lift the block")
	b.is(b.post("/devices/do/unblock", form("device", "1")), 400)
	b.ok(b.post("/devices/do/unblock", form("device", kid)))

	// With a method, each change needs a confirmation.
	for _, m := range []string{"otpviasms", "mydss"} {
		p.OK(tamgatest.Ours, "POST", "/ums/user/"+p.id+"/authmethod/"+m+"?level=1", "")
	}
	page = b.ok(b.get("/devices"), "Confirm that it is you", "confirm with codes of an app or token")
	if strings.Contains(page.text, "sent by SMS or e-mail.") {
		t.Errorf("the person has the method:\n%s", page.text)
	}
	if strings.Contains(page.text, "/devices/do/block") {
		t.Errorf("changes are offered without a confirmation:\n%s", page.text)
	}
	changes := map[string]url.Values{
		"block": form("device", kid), "delete": form("device", kid), "unblock": form("device", kid), "verify": form("device", kid),
		"activate": form("contact", p.phone), "code": form("contact", p.phone), "cancel": nil, "app": nil, "app-delete": nil,
		"contact": form("contact", "x@example.org"), "contact-code": form("contact", email), "contact-confirm": form("contact", email, "code", "1"),
		"contact-notify": form("contact", email), "contact-codes": form("contact", email), "contact-delete": form("contact", email),
	}
	refused := func(b *browser) {
		t.Helper()
		for path, f := range changes {
			b.is(b.post("/devices/do/"+path, f), 403)
		}
		b.is(b.get("/devices/activation"), 403)
	}
	refused(b)
	page = b.ok(b.post("/devices/do/prove", nil), "Change of devices and contacts, session", "Code by SMS")
	at := page.at.Path
	other := newBrowser(t, p.Server) // another session of the same user gains nothing by it
	other.signIn("/devices", p.Dev.User.Login, p.Dev.User.Password)
	b.ok(b.post(at, form("choice", "otpviasms")))
	list := p.Captured()
	if text := list[len(list)-1].Text; !strings.Contains(text, ": Change of devices and contacts, session ") {
		t.Errorf("the message does not say what is confirmed: %s", text)
	}
	code := p.Code(p.phone)
	other.is(other.post(at, form("code", code)), 400, "another session")
	refused(other)
	page = b.ok(b.post(at, form("finish", "yes")), "/devices/do/block") // what the other session confirmed belongs to this one
	if page.at.Path != "/devices" {
		t.Errorf("after the confirmation the browser is at %s", page.at)
	}
	b.ok(b.post(at, form("finish", "yes")), "Done")
	refused(other)
	b.ok(b.post("/devices/do/contact-delete", form("contact", email)))
	b.ok(b.get("/devices"), `<form method="post" action="/devices/do/app"><button>Add an app</button></form>`)
	page = b.ok(b.post("/devices/do/app", nil), "Or type this key")
	if !strings.Contains(page.header.Get("Cache-Control"), "no-store") {
		t.Errorf("a secret may be kept: %v", page.header)
	}
	// A new app ends the codes of this one, so the page asks first.
	if list := b.ok(b.get("/devices"), "An app makes codes for you", `popovertarget="app-new"`, "codes of the present one are no longer accepted"); strings.Contains(list.text, "Add an app") || strings.Count(list.text, `action="/devices/do/app"`) != 1 {
		t.Errorf("one press replaces an app:\n%s", list.text)
	}
	shown := regexp.MustCompile(`key into the app: <code>([A-Z2-7]+)<`).FindStringSubmatch(page.text)[1]
	p.AddSecrets(shown)
	secret, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(shown)
	if err != nil {
		t.Fatal(err)
	}
	app, err := otp.New(otp.SHA1, 6, secret)
	if err != nil {
		t.Fatal(err)
	}
	code = app.Code(otp.Step(time.Now(), 30*time.Second)) // the service allows for clocks that differ
	b.is(b.post("/devices/do/app-check", form("code", "12345x")), 400, "<h1>Devices and codes</h1>", `aria-describedby="wrong"></label>
<p class="problem" role="alert" id="wrong">The code is wrong`)
	b.ok(b.post("/devices/do/app-check", form("code", " "+code[:3]+" "+code[3:])), "The app works")
	b.is(b.post("/devices/do/app-check", form("code", code)), 400, "The code is wrong, was used before", "let the phone set its clock by itself") // it was used
	// Without a device that works, sign-ins by that method end, and a blocked device is no
	// reason to let the next session add another one.
	b.ok(b.post("/devices/do/block", form("device", kid)), `name="ticket"`)
	p.OK(tamgatest.Ours, "DELETE", "/ums/user/"+p.id+"/authmethod/otpviasms", "")
	b.signIn("/devices", p.Dev.User.Login, p.Dev.User.Password)
	refused(b)
	p.Scan()
}

// TestFactorWithoutMethod checks that a phone for codes confirms nothing while the person has only the method
// of devices: the session alone connects and verifies the first device.
func TestFactorWithoutMethod(t *testing.T) {
	t.Parallel()
	p := newPerson(t, "mydss")
	b := p.browser
	if page := b.ok(b.get("/devices"), `action="/devices/do/activate"`); strings.Contains(page.text, "/devices/do/prove") {
		t.Errorf("the person shall confirm first, and has nothing to confirm with:\n%s", page.text)
	}
	b.ok(b.post("/devices/do/app", nil), `src="data:image/gif`)
	b.ok(b.post("/devices/do/app-delete", nil))

	// A device that is not verified confirms nothing either.
	page := b.ok(b.post("/devices/do/activate", url.Values{"contact": {p.phone}}))
	phone := filepath.Join(t.TempDir(), "phone.json")
	p.onPhone(phone, "register", "--qr-text", b.find(page, qrText)[1], "--code", p.ActivationCode(p.phone))
	page = b.ok(b.get("/devices"), "<td>Not verified</td>")
	if strings.Contains(page.text, "/devices/do/prove") {
		t.Errorf("the person shall confirm by a device that is not verified:\n%s", page.text)
	}
	page = b.ok(b.post("/devices/do/verify", url.Values{"device": {b.find(page, kidOf)[1]}}))
	p.onPhone(phone, "verify", "--qr-text", b.find(page, qrText)[1])
	b.ok(b.get("/devices"), "<td>Works</td>", "/devices/do/prove")
	b.is(b.post("/devices/do/app", nil), 403, "onfirm first that it is you")
	p.OK(tamgatest.Ours, "DELETE", "/ums/user/"+p.id+"/authmethod/mydss", "")

	p.OK(tamgatest.Ours, "POST", "/ums/user/"+p.id+"/authmethod/otpviasms?level=1", "") // ends the session
	if page := b.ok(b.signIn("/devices", p.Dev.User.Login, p.Dev.User.Password), "/devices/do/prove"); strings.Contains(page.text, "/devices/do/activate") {
		t.Errorf("the session alone connects a device of a person who can confirm by SMS:\n%s", page.text)
	}
	b.is(b.post("/devices/do/app", nil), 403, "onfirm first that it is you")
}

// TestFirstFactor: where the first factor is the task of operators, the session alone adds
// none.
func TestFirstFactor(t *testing.T) {
	s := tamgatest.Start(t, "--set", "pages.first_factor=false", "--set", "pages.name=ООО <Ель>")
	b := newBrowser(t, s)
	b.signIn("/devices", s.Dev.User.Login, s.Dev.User.Password)
	page := b.ok(b.get("/devices"), "is added by an operator", " – ООО &lt;Ель&gt;</title>", `href="/">ООО &lt;Ель&gt;</a>`)
	other := newBrowser(t, s)
	other.ok(other.get("/devices"), `<span class="brand">ООО &lt;Ель&gt;</span>`)
	if strings.Contains(page.text, "/devices/do/") {
		t.Errorf("changes are offered:\n%s", page.text)
	}
	b.is(b.post("/devices/do/contact", url.Values{"contact": {"x@example.org"}}), 403)
	b.is(b.post("/devices/do/app", nil), 403)
	b.is(b.post("/devices/do/prove", nil), 400, "you have no method to confirm with")
}
