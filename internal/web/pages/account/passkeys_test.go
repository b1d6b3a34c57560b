// SPDX-License-Identifier: Apache-2.0

package account_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/adapter/webauthntest"
	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

var passkeyOptions = regexp.MustCompile(`data-passkey="create" data-options="([^"]+)"`)

// TestPasskeysByOperators registers passkeys in pages. Operators list and remove them over the
// interface.
func TestPasskeysByOperators(t *testing.T) {
	t.Parallel()
	tamgatest.OnBothEngines(t, func(t *testing.T, w *tamgatest.UMS) {
		const email, name = "demo@example.org", `Ноутбук <b>&"`
		user := "/ums/user/" + w.Dev.User.ID
		w.OK(tamgatest.Ours, "POST", user+"/emails", `"`+email+`"`)
		w.OK(tamgatest.Ours, "POST", user+"/emails/"+email+"/confirm", "")
		w.OK(tamgatest.Ours, "POST", user+"/emails/"+email+"/notification?notification=true", "")
		w.OK(tamgatest.Ours, "POST", user+"/notificationpolicy", `{"UserAccountChanged":["Email"]}`)
		if a := w.OK(tamgatest.Ours, "GET", user+"/passkeys", ""); a.Body != "[]" {
			t.Errorf("%v", a)
		}

		b := pagetest.New(t, w.Server)
		b.SignIn("/devices", w.Dev.User.Login, w.Dev.User.Password)
		register := func(name string) {
			t.Helper()
			key := webauthntest.New(t, w.URL, "localhost")
			page := b.Shows(b.Post("/devices/do/passkey", url.Values{"name": {name}}))
			b.Shows(b.Post("/devices/do/passkey-add", url.Values{"passkey": {string(key.Create([]byte(b.Find(page, passkeyOptions)[1])))}}), "Passkeys")
		}
		register(name)
		register("phone")
		var list []struct {
			Id, Name, CreatedAt string
			UsedAt              *string
		}
		w.OK(tamgatest.TwoGroup, "GET", user+"/passkeys", "").Into(t, &list)
		if len(list) != 2 || list[0].Name != name || list[0].Id == "" || list[0].CreatedAt == "" || list[0].UsedAt != nil {
			t.Fatalf("%+v", list)
		}
		at := user + "/passkeys/" + list[0].Id

		for who, status := range map[string]int{tamgatest.Anonymous: 401, tamgatest.Plain: 403, tamgatest.Foreign: 404} {
			for _, method := range []string{"GET", "DELETE"} {
				path := at
				if method == "GET" {
					path = user + "/passkeys"
				}
				if a := w.Ask(who, method, path, ""); a.Status != status || strings.Contains(a.Body, "Ноутбук") {
					t.Errorf("%q: %v, want %d", who, a, status)
				}
			}
		}
		other, _, _, _ := w.Register()
		for _, path := range []string{user + "/passkeys/AAAA", "/ums/user/" + other + "/passkeys/" + list[0].Id, user + "/passkeys/%00%FF"} {
			if a := w.Ask(tamgatest.Ours, "DELETE", path, ""); a.Status != 404 && a.Status != 400 || !strings.Contains(a.Body, "error") {
				t.Errorf("%v", a)
			}
		}
		told := len(w.Captured())
		w.OK(tamgatest.Ours, "DELETE", at, "")
		messages := w.Captured()
		if len(messages) != told+1 || messages[told].To != email {
			t.Errorf("the removal told %+v", messages[told:])
		}
		if a := w.Ask(tamgatest.Ours, "DELETE", at, ""); a.Status != 400 || !strings.Contains(a.Body, "key_not_found") {
			t.Errorf("a second removal: %v", a)
		}
		if page := b.Shows(b.Get("/devices"), "phone"); strings.Contains(page.Text, "Ноутбук") {
			t.Errorf("the person still has the passkey:\n%s", page.Text)
		}
		if log := w.Command("audit", "--operation", "RemoveUserPasskey", "--limit", "0", "--json"); strings.Count(log, `"outcome":"ok"`) != 1 || !strings.Contains(log, list[0].Id) {
			t.Errorf("the audit log has %s", log)
		}
		w.Scan()
	}, tamgatest.WithPasskeys()...)
}

// TestPasskeyApprovals: removing a passkey can need a second operator. An installation without
// passkeys says so.
func TestPasskeyApprovals(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t, "--set", "users.second_operator=[removes_factor]")
	path := "/ums/user/" + w.Dev.User.ID + "/passkeys"
	refused := func(method, path, text string) {
		t.Helper()
		if a := w.Ask(tamgatest.Ours, method, path, ""); a.Status != 400 || !strings.Contains(a.Body, "wrong_operation") || !strings.Contains(a.Body, text) {
			t.Errorf("%v, want %s", a, text)
		}
	}
	refused("GET", path, "has no passkeys")
	refused("DELETE", path+"/AAAA", "waits for the approval")
	var list []struct{ Id, Operation string }
	w.OK(tamgatest.TwoGroup, "GET", "/ums/approvals", "").Into(t, &list)
	if len(list) != 1 || list[0].Operation != "RemoveUserPasskey" {
		t.Fatalf("%+v", list)
	}
	w.OK(tamgatest.TwoGroup, "POST", "/ums/approvals/"+list[0].Id+"/approve", "")
	refused("DELETE", path+"/AAAA", "has no passkeys")
}

// TestProofOfAnotherSession: a person with the password alone begins the confirmation after which a session may change
// factors. The passkey of the user approves it in another session only with the number of the page that began it.
func TestProofOfAnotherSession(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t, tamgatest.WithPasskeys()...)
	phone, desk := pagetest.New(t, w.Server), pagetest.New(t, w.Server)
	phone.SignIn("/devices", w.Dev.User.Login, w.Dev.User.Password)
	key := webauthntest.New(t, w.URL, "localhost")
	page := phone.Shows(phone.Post("/devices/do/passkey", url.Values{"name": {"phone"}}))
	phone.Shows(phone.Post("/devices/do/passkey-add", url.Values{"passkey": {string(key.Create([]byte(phone.Find(page, passkeyOptions)[1])))}}), "Passkeys")
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+w.Dev.User.ID+"/authmethod/passkey?level=1", "")

	desk.SignIn("/devices", w.Dev.User.Login, w.Dev.User.Password)
	desk.Is(desk.Post("/devices/do/passkey", url.Values{"name": {"second"}}), 403)
	at := desk.Shows(desk.Post("/devices/do/prove", nil), `value="passkey"`).At.Path
	phone.Shows(phone.Get("/confirm"), at)
	page = phone.Shows(phone.Post(at, url.Values{"choice": {"passkey"}}), `name="number"`, "Its page there shows two digits")
	number := desk.Find(desk.Shows(desk.Get(at)), pagetest.ShownNumber)[1]
	if strings.Contains(page.Text, ">"+number+"<") {
		t.Errorf("the page that asks for the number shows it:\n%s", page.Text)
	}
	options := regexp.MustCompile(`data-passkey="get" data-options="([^"]+)"`)
	answer := func(number string) pagetest.Page {
		return phone.Post(at, url.Values{"passkey": {string(key.Get([]byte(phone.Find(page, options)[1])))}, "number": {number}})
	}
	phone.Is(answer(""), 400, "The number is wrong")
	desk.Post(at, url.Values{"finish": {"yes"}})
	desk.Is(desk.Post("/devices/do/passkey", url.Values{"name": {"second"}}), 403) // nothing is proved

	if done := phone.Shows(answer(number), "Go on in the browser or on the device where it was begun"); strings.Contains(done.Text, `name="finish"`) {
		t.Errorf("a session that did not begin it can spend it:\n%s", done.Text)
	}
	phone.Is(phone.Post(at, url.Values{"finish": {"yes"}}), 400)
	desk.Shows(desk.Get(at), "Continue in this session", `name="finish"`)
	desk.Shows(desk.Post(at, url.Values{"finish": {"yes"}}), "You have confirmed that it is you")
	desk.Shows(desk.Post("/devices/do/passkey", url.Values{"name": {"second"}}), `data-passkey="create"`)
}

// TestProofOfEndedSession: once the session that began a confirmation has ended, no page shows its number. The page says so
// instead of asking for the number, and the person begins it again after declining it.
func TestProofOfEndedSession(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t, tamgatest.WithPasskeys()...)
	desk := pagetest.New(t, w.Server)
	desk.SignIn("/devices", w.Dev.User.Login, w.Dev.User.Password)
	key := webauthntest.New(t, w.URL, "localhost")
	page := desk.Shows(desk.Post("/devices/do/passkey", url.Values{"name": {"phone"}}))
	desk.Shows(desk.Post("/devices/do/passkey-add", url.Values{"passkey": {string(key.Create([]byte(desk.Find(page, passkeyOptions)[1])))}}), "Passkeys")
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+w.Dev.User.ID+"/authmethod/passkey?level=1", "")
	const ended = "The session in which this was begun has ended"
	again := func() {
		t.Helper()
		desk.Shows(desk.Post("/sign-out", nil))
		desk.SignIn("/start", w.Dev.User.Login, w.Dev.User.Password)
	}
	lacks := func(page pagetest.Page, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if strings.Contains(page.Text, text) {
				t.Errorf("%s has %s:\n%s", page.At, text, page.Text)
			}
		}
	}

	// It ends before a passkey is asked for, or after that.
	first := desk.Shows(desk.Post("/devices/do/prove", nil), `value="passkey"`).At.Path
	again()
	lacks(desk.Shows(desk.Get(first), ended, "Decline"), `value="passkey"`, `name="number"`)
	second := desk.Shows(desk.Post("/devices/do/prove", nil), `value="passkey"`).At.Path
	lacks(desk.Shows(desk.Post(second, url.Values{"choice": {"passkey"}}), "data-passkey"), ended)
	again()
	lacks(desk.Shows(desk.Get(second), ended, "Decline"), "data-passkey", `name="number"`)
	// A page of before asks for the passkey, whose number is nowhere.
	lacks(desk.Shows(desk.Post(first, url.Values{"choice": {"passkey"}}), ended), "data-passkey", `name="number"`)
	desk.Header.Set("Accept-Language", "ru")
	desk.Shows(desk.Get(second), "Сеанс, в котором это начато, завершён")
	desk.Header.Set("Accept-Language", "en")

	desk.Shows(desk.Post(first, url.Values{"decline": {"yes"}}), "Declined")
	at := desk.Shows(desk.Post("/devices/do/prove", nil)).At.Path
	page = desk.Shows(desk.Post(at, url.Values{"choice": {"passkey"}}))
	lacks(page, ended)
	options := desk.Find(page, regexp.MustCompile(`data-passkey="get" data-options="([^"]+)"`))[1]
	desk.Shows(desk.Post(at, url.Values{"passkey": {string(key.Get([]byte(options)))}}), "You have confirmed that it is you")
}
