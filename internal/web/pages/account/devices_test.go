// SPDX-License-Identifier: Apache-2.0

package account_test

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
	"tamga/internal/tamgatest/pagetest"
)

var (
	qrText = regexp.MustCompile(`(?s)src="data:image/gif;base64,[^"]+".*?<details>.*?<code>(.*?)</code>`)
	kidOf  = regexp.MustCompile(`name="device" value="([0-9]+)"`)
)

// TestDevices adds contacts, a device and an app in pages, first by the session alone and
// then after a confirmation.
func TestDevices(t *testing.T) {
	p := pagetest.NewPerson(t)
	b := p.Browser
	form := func(name, value string, more ...string) url.Values {
		f := url.Values{name: {value}}
		for i := 0; i < len(more); i += 2 {
			f.Set(more[i], more[i+1])
		}
		return f
	}
	const email = "demo@example.org"
	b.Is(b.Post("/devices/do/contact", form("contact", `<img src=x>@x`)), 400, "e-mail address is not right", `href="/devices"`)
	b.Shows(b.Post("/devices/do/contact", form("contact", email)), email, "not confirmed", `<p>The contact is added.`)
	asked := regexp.MustCompile(`popovertarget="(contact-[0-9]+)" aria-label="Delete: ` + email + `"`).FindStringSubmatch(b.Get("/devices").Text)
	if asked == nil {
		t.Fatal("a contact is deleted without a question")
	}
	b.Shows(b.Get("/devices"), `<div popover id="`+asked[1]+`"`, "Delete “"+email+"”?")
	b.Header.Set("Accept-Language", "ru")
	b.Shows(b.Get("/devices"), "Оператор ещё не разрешил вам входить и подтверждать кодами из SMS и писем.", "Оператор ещё не разрешил вам входить и подтверждать кодами приложения или токена.")
	b.Shows(b.Get("/devices"), "Удалить «"+email+"»?", "больше не будут приходить на этот контакт")
	b.Shows(b.Get("/devices?done=contact-delete"), `<p>Контакт удалён.`)
	b.Header.Set("Accept-Language", "en")
	b.Is(b.Post("/devices/do/contact", form("contact", email)), 400, "This contact is taken", `required value="`+email+`" autofocus aria-invalid="true" aria-describedby="wrong"`)
	// A wrong code is said at its field. The page is the same one, so that the next code can be typed.
	wrong := b.Post("/devices/do/contact-confirm", form("contact", email, "code", "000000"))
	b.Is(wrong, 400, "<h1>Ways to confirm</h1>", `required autofocus aria-invalid="true" aria-describedby="wrong"></label>
<p class="error" role="alert" id="wrong">`, "<span>The code is wrong")
	if strings.Contains(wrong.Text, "000000") || strings.Count(wrong.Text, `id="wrong"`) != 1 {
		t.Errorf("the code, or the reason at several fields:\n%s", wrong.Text)
	}
	b.Is(b.Post("/devices/do/contact-codes", form("contact", email)), 400, "Confirm the contact first, then give it a role.<")
	b.Shows(b.Post("/devices/do/contact-confirm", form("contact", email, "code", p.Code(email))))
	b.Shows(b.Post("/devices/do/contact-notify", form("contact", email, "on", "yes")), "Stop notifications")
	b.Shows(b.Post("/devices/do/contact-notify", form("contact", email)))
	b.Shows(b.Post("/devices/do/contact-codes", form("contact", email)))

	// A device, by the picture on the screen and the code that was sent.
	page := b.Shows(b.Post("/devices/do/activate", form("contact", p.Phone)), "type the activation code")
	if page.At.Path != "/devices/activation" || !strings.Contains(page.Header.Get("Content-Security-Policy"), "img-src data:") {
		t.Errorf("%s %v", page.At, page.Header)
	}
	b.Is(b.Post("/devices/do/activate", form("contact", p.Phone)), 400, "A device is being connected already")
	b.Shows(b.Get("/devices"), "Go on with the activation")
	b.Shows(b.Get("/start"), `href="/devices/activation"`)
	phone := filepath.Join(t.TempDir(), "phone.json")
	p.OnPhone(phone, "register", "--qr-text", b.Find(page, qrText)[1], "--code", p.ActivationCode(p.Phone), "--name", `<b>Phone</b>`)
	page = b.Shows(b.Get("/devices"), "&lt;b&gt;Phone&lt;/b&gt;", "<td>Not verified</td>")
	kid := b.Find(page, kidOf)[1]
	b.Shows(b.Get("/start"), "Verify &#34;&lt;b&gt;Phone&lt;/b&gt;&#34;")
	b.Is(b.Get("/devices/activation"), 400, "No device is being connected: begin to connect one.<")
	page = b.Shows(b.Post("/devices/do/verify", form("device", kid)), "the device that you verify")
	p.OnPhone(phone, "verify", "--qr-text", b.Find(page, qrText)[1])
	b.Shows(b.Get("/devices"), "<td>Works</td>")
	b.Is(b.Post("/devices/do/verify", form("device", kid)), 400)
	b.Shows(b.Post("/devices/do/block", form("device", kid)), "Lift the block")
	b.Is(b.Post("/devices/do/unblock", form("device", "1")), 400)
	b.Shows(b.Post("/devices/do/unblock", form("device", kid)))

	// With a method, each change needs a confirmation.
	for _, m := range []string{"otpviasms", "mydss"} {
		p.OK(tamgatest.Ours, "POST", "/ums/user/"+p.Id+"/authmethod/"+m+"?level=1", "")
	}
	page = b.Shows(b.Get("/devices"), "Confirm that it is you", "confirm with codes of an app or token")
	if strings.Contains(page.Text, "sent by SMS or e-mail.") {
		t.Errorf("the person has the method:\n%s", page.Text)
	}
	if strings.Contains(page.Text, "/devices/do/block") {
		t.Errorf("changes are offered without a confirmation:\n%s", page.Text)
	}
	changes := map[string]url.Values{
		"block": form("device", kid), "delete": form("device", kid), "unblock": form("device", kid), "verify": form("device", kid),
		"activate": form("contact", p.Phone), "code": form("contact", p.Phone), "cancel": nil, "app": nil, "app-delete": nil,
		"contact": form("contact", "x@example.org"), "contact-code": form("contact", email), "contact-confirm": form("contact", email, "code", "1"),
		"contact-notify": form("contact", email), "contact-codes": form("contact", email), "contact-delete": form("contact", email),
	}
	refused := func(b *pagetest.Browser) {
		t.Helper()
		for path, f := range changes {
			b.Is(b.Post("/devices/do/"+path, f), 403)
		}
		b.Is(b.Get("/devices/activation"), 403)
	}
	refused(b)
	page = b.Shows(b.Post("/devices/do/prove", nil), "Change of devices and contacts, session", "Code by SMS")
	at := page.At.Path
	other := pagetest.New(t, p.Server) // another session of the same user gains nothing by it
	other.SignIn("/devices", p.Dev.User.Login, p.Dev.User.Password)
	b.Shows(b.Post(at, form("choice", "otpviasms")))
	list := p.Captured()
	if text := list[len(list)-1].Text; !strings.Contains(text, ": Change of devices and contacts, session ") {
		t.Errorf("the message does not say what is confirmed: %s", text)
	}
	code := p.Code(p.Phone)
	other.Shows(other.Post(at, form("code", code)), "Go on in the browser or on the device where it was begun")
	refused(other)
	page = b.Shows(b.Post(at, form("finish", "yes")), "/devices/do/block") // what the other session confirmed belongs to this one
	if page.At.Path != "/devices" {
		t.Errorf("after the confirmation the browser is at %s", page.At)
	}
	b.Shows(b.Post(at, form("finish", "yes")), "Done")
	refused(other)
	b.Shows(b.Post("/devices/do/contact-delete", form("contact", email)))
	b.Shows(b.Get("/devices"), `<form method="post" action="/devices/do/app" class="stack near"><button class="btn">Add an app</button></form>`)
	page = b.Shows(b.Post("/devices/do/app", nil), "Or type this key")
	if !strings.Contains(page.Header.Get("Cache-Control"), "no-store") {
		t.Errorf("a secret may be kept: %v", page.Header)
	}
	// A new app ends the codes of this one, so the page asks first.
	if list := b.Shows(b.Get("/devices"), "An app makes codes for you", `popovertarget="app-new"`, "codes of the present one stop working"); strings.Contains(list.Text, "Add an app") || strings.Count(list.Text, `action="/devices/do/app"`) != 1 {
		t.Errorf("one press replaces an app:\n%s", list.Text)
	}
	shown := regexp.MustCompile(`key into the app: <code>([A-Z2-7]+)<`).FindStringSubmatch(page.Text)[1]
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
	b.Is(b.Post("/devices/do/app-check", form("code", "12345x")), 400, "<h1>Ways to confirm</h1>", `aria-describedby="wrong"></label>
<p class="error" role="alert" id="wrong">`, "<span>The code is wrong")
	b.Shows(b.Post("/devices/do/app-check", form("code", " "+code[:3]+" "+code[3:])), "The app works")
	b.Is(b.Post("/devices/do/app-check", form("code", code)), 400, "The code is wrong, was used before", "let the phone set its clock by itself") // it was used
	// Without a device that works, sign-ins by that method end, and a blocked device is no
	// reason to let the next session add another one.
	b.Shows(b.Post("/devices/do/block", form("device", kid)), `name="ticket"`)
	p.OK(tamgatest.Ours, "DELETE", "/ums/user/"+p.Id+"/authmethod/otpviasms", "")
	b.SignIn("/devices", p.Dev.User.Login, p.Dev.User.Password)
	refused(b)
	p.Scan()
}

// TestFactorWithoutMethod checks that a phone for codes confirms nothing while the person has only the method
// of devices: the session alone connects and verifies the first device.
func TestFactorWithoutMethod(t *testing.T) {
	t.Parallel()
	p := pagetest.NewPerson(t, "mydss")
	b := p.Browser
	if page := b.Shows(b.Get("/devices"), `action="/devices/do/activate"`); strings.Contains(page.Text, "/devices/do/prove") {
		t.Errorf("the person shall confirm first, and has nothing to confirm with:\n%s", page.Text)
	}
	b.Shows(b.Post("/devices/do/app", nil), `src="data:image/gif`)
	b.Shows(b.Post("/devices/do/app-delete", nil))

	// A device that is not verified confirms nothing either.
	page := b.Shows(b.Post("/devices/do/activate", url.Values{"contact": {p.Phone}}))
	phone := filepath.Join(t.TempDir(), "phone.json")
	p.OnPhone(phone, "register", "--qr-text", b.Find(page, qrText)[1], "--code", p.ActivationCode(p.Phone))
	page = b.Shows(b.Get("/devices"), "<td>Not verified</td>")
	if strings.Contains(page.Text, "/devices/do/prove") {
		t.Errorf("the person shall confirm by a device that is not verified:\n%s", page.Text)
	}
	page = b.Shows(b.Post("/devices/do/verify", url.Values{"device": {b.Find(page, kidOf)[1]}}))
	p.OnPhone(phone, "verify", "--qr-text", b.Find(page, qrText)[1])
	b.Shows(b.Get("/devices"), "<td>Works</td>", "/devices/do/prove")
	b.Is(b.Post("/devices/do/app", nil), 403, "onfirm first that it is you")
	p.OK(tamgatest.Ours, "DELETE", "/ums/user/"+p.Id+"/authmethod/mydss", "")

	p.OK(tamgatest.Ours, "POST", "/ums/user/"+p.Id+"/authmethod/otpviasms?level=1", "") // ends the session
	if page := b.Shows(b.SignIn("/devices", p.Dev.User.Login, p.Dev.User.Password), "/devices/do/prove"); strings.Contains(page.Text, "/devices/do/activate") {
		t.Errorf("the session alone connects a device of a person who can confirm by SMS:\n%s", page.Text)
	}
	b.Is(b.Post("/devices/do/app", nil), 403, "onfirm first that it is you")
}

// TestFirstFactor: where the first factor is the task of operators, the session alone adds
// none.
func TestFirstFactor(t *testing.T) {
	s := tamgatest.Start(t, "--set", "pages.first_factor=false", "--set", "pages.name=ООО <Ель>")
	b := pagetest.New(t, s)
	b.SignIn("/devices", s.Dev.User.Login, s.Dev.User.Password)
	page := b.Shows(b.Get("/devices"), "is added by an operator", " – ООО &lt;Ель&gt;</title>", `</svg>ООО &lt;Ель&gt;</a>`)
	other := pagetest.New(t, s)
	other.Shows(other.Get("/devices"), `</svg>ООО &lt;Ель&gt;</span>`)
	// Notifications of this browser are no factor.
	if strings.Contains(strings.ReplaceAll(page.Text, "/devices/do/browser-add", ""), "/devices/do/") {
		t.Errorf("changes are offered:\n%s", page.Text)
	}
	b.Is(b.Post("/devices/do/contact", url.Values{"contact": {"x@example.org"}}), 403)
	b.Is(b.Post("/devices/do/app", nil), 403)
	b.Is(b.Post("/devices/do/prove", nil), 400, "you have no method to confirm with")
}
