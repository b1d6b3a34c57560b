// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/webauthn"

	"tamga/internal/tamgatest"
)

// authenticator gives the window an authenticator like that of a phone or a laptop.
func (b *tab) authenticator() webauthn.AuthenticatorID {
	b.Helper()
	call(b, webauthn.Enable, webauthn.EnableParams{})
	return call(b, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
		HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
	}}).AuthenticatorID
}

// TestPasskeys registers a passkey, signs in with it and approves a signature with it.
func TestPasskeys(t *testing.T) {
	s := start(t, tamgatest.WithPasskeys()...)
	b := s.tab(t, looks[0])
	device := b.authenticator()
	b.signIn("/devices", s.Dev.User.Login, s.Dev.User.Password)
	b.see("You have no passkey.")
	b.fill(`form[action$="/passkey"] input[name=name]`, `<b>Laptop</b>`)
	b.press(`form[action$="/passkey"] button`)
	b.wait(`[data-passkey-start]`)
	b.check("passkey-create")
	b.press(`[data-passkey-start]`)
	b.see("<b>Laptop</b>")
	b.see("An operator must still allow you")
	b.check("passkey-registered")

	ums := tamgatest.NewUMS(s.Server)
	of := "/ums/user/" + s.Dev.User.ID
	ums.OK(tamgatest.Ours, "POST", of+"/authmethod/passkey?level=2", "")
	ums.OK(tamgatest.Ours, "POST", of+"/operationpolicy", "[2]")

	// The second step of a sign-in. A person who is not verified does not pass it.
	b.open("/sign")
	b.fill(`input[name=login]`, s.Dev.User.Login)
	b.fill(`input[name=password]`, s.Dev.User.Password)
	b.press(`main form button`)
	b.wait(`[data-passkey-start]`)
	b.check("passkey-sign-in")
	call(b, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: device, IsUserVerified: false})
	b.press(`[data-passkey-start]`)
	b.wait(`[data-passkey-failed]:not([hidden])`)
	call(b, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: device, IsUserVerified: true})
	b.press(`[data-passkey-start]`)
	b.until(`document.readyState === "complete" && location.pathname === "/sign"`)

	// The approval of a signature, of two documents of three.
	folder := b.downloads()
	b.attach(`input[name=file]`, "a.txt", "text", "b.txt", "other", "c.txt", "third")
	b.press(`main form button:not([name]):not([type])`)
	b.wait(`main a[href^="/confirm/"]`)
	b.press(`main a[href^="/confirm/"]`)
	b.wait(`button[value=passkey]`)
	b.press(`button[value=passkey]`)
	b.wait(`[data-passkey-start]`)
	b.check("passkey-approve")
	b.press(`input[name=document][value="1"]`)
	b.press(`[data-passkey-start]`)
	b.wait(`main a[href^="/signed/document/"]`)
	b.check("passkey-approved")
	b.press(`main a[href^="/signed/document/"]`)
	signature := b.saved(folder, "a.txt.sig")
	b.open("/verify")
	b.verify("a.txt.sig", signature, "a.txt", "text")
	b.see("Signature valid")

	// Before anything is changed, the person confirms with the passkey. Removing the last one
	// ends the session.
	b.open("/devices")
	b.press(`form[action$="/prove"] button`)
	b.wait(`button[value=passkey]`)
	b.press(`button[value=passkey]`)
	b.wait(`[data-passkey-start]`)
	b.press(`[data-passkey-start]`)
	b.wait(`button[popovertarget="passkey-0"]`)
	b.check("passkeys")
	b.press(`button[popovertarget="passkey-0"]`)
	b.wait(`form[action$="/passkey-delete"] button`)
	b.check("passkey-delete")
	b.press(`form[action$="/passkey-delete"] button`)
	b.wait(`input[name=password]`)
	if audit := ums.Command("audit", "--operation", "DeletePasskeyByPage"); !strings.Contains(audit, "ok") {
		t.Errorf("the audit log has %s", audit)
	}
}

// TestPasskeyNumber approves on a phone what was begun on a desk: the page of the desk shows a number, the one of the phone
// asks for it, and the desk goes on by itself.
func TestPasskeyNumber(t *testing.T) {
	s := start(t, tamgatest.WithPasskeys()...)
	phone, desk := s.tab(t, looks[3]), s.tab(t, looks[0])
	phone.authenticator()
	phone.signIn("/devices", s.Dev.User.Login, s.Dev.User.Password)
	phone.fill(`form[action$="/passkey"] input[name=name]`, "Phone")
	phone.press(`form[action$="/passkey"] button`)
	phone.wait(`[data-passkey-start]`)
	phone.press(`[data-passkey-start]`)
	phone.see("Phone")
	ums := tamgatest.NewUMS(s.Server)
	of := "/ums/user/" + s.Dev.User.ID
	ums.OK(tamgatest.Ours, "POST", of+"/authmethod/passkey?level=1", "")
	ums.OK(tamgatest.Ours, "POST", of+"/operationpolicy", "[2]")

	desk.signIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	desk.attach(`input[name=file]`, "a.txt", "text")
	desk.press(`main form button:not([name]):not([type])`)
	desk.wait(`main a[href^="/confirm/"]`)
	desk.press(`main a[href^="/confirm/"]`)
	desk.wait(`button[value=passkey]`)
	at := value[string](desk, `location.pathname`)

	phone.open(at)
	phone.wait(`button[value=passkey]`)
	phone.press(`button[value=passkey]`)
	phone.wait(`input[name=number]`)
	phone.check("passkey-number")
	desk.wait(`.number`) // by itself
	desk.check("passkey-number-shown")
	number := value[string](desk, `document.querySelector(".number").textContent`)
	wrong := "00"
	if number == wrong {
		wrong = "01"
	}
	phone.statuses = false // a wrong number is refused
	phone.fill(`input[name=number]`, wrong)
	phone.press(`[data-passkey-start]`)
	phone.wait(`#wrong`)
	phone.check("passkey-number-wrong")
	phone.fill(`input[name=number]`, number+"\r") // the key of the keyboard that sends
	phone.wait(`main a[href^="/signed/document/"]`)
	desk.wait(`main a[href^="/signed"]`) // by itself
}

// TestPasskeysOfPeople has an operator see and remove the passkey of a person who lost it.
func TestPasskeysOfPeople(t *testing.T) {
	s := start(t, tamgatest.WithPasskeys()...)
	demo := s.tab(t, looks[3])
	demo.authenticator()
	demo.signIn("/devices", s.Dev.User.Login, s.Dev.User.Password)
	demo.fill(`form[action$="/passkey"] input[name=name]`, "Ноутбук")
	demo.press(`form[action$="/passkey"] button`)
	demo.wait(`[data-passkey-start]`)
	demo.check("passkey-create")
	demo.press(`[data-passkey-start]`)
	demo.see("Ноутбук")
	demo.check("passkey-registered")

	b := s.tab(t, looks[0])
	b.signIn("/operator/people/"+s.Dev.User.ID+"/sign-in", s.Dev.Operator.Login, s.Dev.Operator.Password)
	b.see("Ноутбук")
	b.press(`button[popovertarget^="passkey-remove"]`)
	b.see("The passkey cannot sign in or confirm any more.")
	b.fill(`[popover]:popover-open input[name=confirm_name]`, "Ноутбук")
	b.check("operator-passkey-remove")
	b.press(`[popover]:popover-open button.sure`)
	b.see("The passkey is removed.")
	demo.open("/devices")
	demo.see("Ключей доступа нет.")
}

// TestPasskeysOff looks for passkeys where the installation has none.
func TestPasskeysOff(t *testing.T) {
	s := start(t)
	b := s.tab(t, looks[0])
	b.signIn("/devices", s.Dev.User.Login, s.Dev.User.Password)
	b.see("You have no device.")
	if value[bool](b, `document.body.innerText.includes("asskey")`) {
		t.Error("the page speaks of passkeys")
	}
	for _, path := range []string{"passkey", "passkey-add", "passkey-rename", "passkey-delete"} {
		response, err := http.PostForm(s.URL+"/devices/do/"+path, url.Values{"name": {"key"}})
		if err != nil {
			t.Fatal(err)
		}
		if response.Body.Close(); response.StatusCode != 404 {
			t.Errorf("%s is answered with %d", path, response.StatusCode)
		}
	}
	ums := tamgatest.NewUMS(s.Server)
	if a := ums.Ask(tamgatest.Ours, "POST", "/ums/user/"+s.Dev.User.ID+"/authmethod/passkey", ""); a.Status != 400 || !strings.Contains(a.Body, "confirmation.methods") {
		t.Errorf("the method is answered with %v", a)
	}
}
