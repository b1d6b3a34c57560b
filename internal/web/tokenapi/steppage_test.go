// SPDX-License-Identifier: Apache-2.0

package tokenapi_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/judge"
	"tamga/internal/tamgatest"
)

// stepping are users who sign in with a second step, in pages and with the mfa_token.
type stepping struct {
	*confirming
	s *signIn
}

// TestSecondStep walks the second steps that begin in pages or at a grant.
func TestSecondStep(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		secondStep(t, startSignIn(t, "--set", "confirmation.codes.resend=1s"), func(string) bool { return true })
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		s := startSignIn(t, "--set", "confirmation.codes.resend=1s", "--set", "database="+storetest.PostgreSQL(t).Database(t))
		secondStep(t, s, func(part string) bool {
			return slices.Contains([]string{"Code", "Ends", "Token", "TokenEnds", "Exchange"}, part)
		})
	})
}

func secondStep(t *testing.T, s *signIn, wanted func(part string) bool) {
	w := &stepping{&confirming{UMS: s.UMS, t: t}, s}
	for _, part := range []struct {
		name string
		try  func(*testing.T, *stepping)
	}{
		{"Code", stepByCode},
		{"Applications", stepOfApplications},
		{"Choice", stepByChoice},
		{"Device", stepByDevice},
		{"Offline", stepOffline},
		{"Foreign", stepForeign},
		{"Guesses", stepGuesses},
		{"Ends", stepEnds},
		{"NoMethod", stepWithoutMethod},
		{"Token", stepToken},
		{"TokenEnds", stepTokenEnds},
		{"Exchange", stepOfExchange},
		{"Walk", stepWalk},
		{"ConfirmedEnds", stepConfirmedEnds},
	} {
		if !wanted(part.name) {
			continue
		}
		s.Walk(t, part.name, func(t *testing.T) { w.t = t; part.try(t, w) })
	}
	s.Scan()
}

// enter signs a user in at the page, as far as the second step.
func (w *stepping) enter(login string, change ...string) (*browser, string) {
	w.t.Helper()
	b := &browser{s: w.s}
	_, page := b.send("GET", w.s.asked(change...), "")
	response, page := b.logIn(page, "login", login, "password", tamgatest.Password)
	if response.StatusCode != 200 || response.Header.Get("Location") != "" {
		w.t.Fatalf("%d %s", response.StatusCode, page)
	}
	return b, page
}

// press sends the form of the page.
func (b *browser) press(page string, fields ...string) (*http.Response, string) {
	b.s.T.Helper()
	m := ticketField.FindStringSubmatch(page)
	if m == nil {
		b.s.T.Fatalf("no form: %s", page)
	}
	form := url.Values{"ticket": {m[1]}}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return b.send("POST", b.s.Dev.IDPURL+"/oauth/step", form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

// passed exchanges the code of an answer for tokens.
func (w *stepping) passed(response *http.Response, page string) tamgatest.TokenAnswer {
	w.t.Helper()
	to, err := url.Parse(response.Header.Get("Location"))
	if err != nil || !codeForm.MatchString(to.Query().Get("code")) || to.Query().Get("state") != "st&te" {
		w.t.Fatalf("%d %q %s", response.StatusCode, response.Header.Get("Location"), page)
	}
	got := w.s.Read(w.s.exchangeCode(to.Query().Get("code")))
	if !w.s.Works(got.AccessToken) {
		w.t.Fatalf("%+v", got)
	}
	return got
}

func stepByCode(t *testing.T, w *stepping) {
	w.add("paged", "otpviasms")
	b, page := w.enter("paged", "scope", "dss offline_access openid")
	if !strings.Contains(page, "Confirm your sign-in") || !strings.Contains(page, `autocomplete="one-time-code"`) || strings.Contains(page, w.phone) || strings.Contains(page, "<script") {
		t.Errorf("%s", page)
	}
	if strings.Contains(page, `name="choice"`) {
		t.Errorf("another way is offered, and there is none: %s", page)
	}
	code := w.Code(w.phone)
	for name, press := range map[string][]string{"a wrong code": {"code", wrong(code)}, "no number": {"code", `"><script>`}} {
		if response, again := b.press(page, press...); response.StatusCode != 401 || !strings.Contains(again, "The code is wrong. Attempts left: ") || strings.Contains(again, "<script") {
			t.Errorf("%s: %d %s", name, response.StatusCode, again)
		}
	}
	if response, again := b.press(page); response.StatusCode != 200 || !strings.Contains(again, `name="code"`) {
		t.Errorf("nothing entered: %d %s", response.StatusCode, again)
	}
	if response, again := b.send("GET", w.Dev.IDPURL+"/oauth/step?ticket="+ticketField.FindStringSubmatch(page)[1], "", "Accept-Language", "ru"); response.StatusCode != 200 || !strings.Contains(again, "Введите код из SMS") {
		t.Errorf("loaded again: %d %s", response.StatusCode, again)
	}
	response, text := b.press(page, "code", " "+code+" ")
	if response.StatusCode != 303 {
		t.Fatalf("%d %s", response.StatusCode, text)
	}
	got := w.passed(response, text)
	if w.s.Refresh("app", got.RefreshToken).Status != 200 {
		t.Error("refreshing does not inherit the step")
	}
	if response, text := b.press(page, "code", code); response.StatusCode != 403 || response.Header.Get("Location") != "" {
		t.Errorf("the form again: %d %s", response.StatusCode, text)
	}
	// Two wrong codes, the right one and the form again; reloads have no entry.
	entries := w.Command("audit", "--json", "--operation", "SecondStep", "--user", w.id)
	if strings.Count(entries, "\n") != 4 || strings.Count(entries, `"outcome":"authentication_failed"`) != 2 || strings.Count(entries, `"outcome":"ok"`) != 1 {
		t.Errorf("the audit log has\n%s", entries)
	}
}

// stepOfApplications passes the step for a confidential client, and for one that has the
// token sent to its address.
func stepOfApplications(t *testing.T, w *stepping) {
	w.add("applied", "otpviasms")
	b, page := w.enter("applied", "client_id", "portal", "code_challenge", "", "code_challenge_method", "")
	response, text := b.press(page, "code", w.Code(w.phone))
	to, _ := url.Parse(response.Header.Get("Location"))
	code := to.Query().Get("code")
	if a := w.s.exchangeCode(code, "client_id", "portal", "code_verifier", ""); a.Status == 200 {
		t.Errorf("without the secret: %v", a)
	}
	a := w.s.exchangeCode(code, "client_id", "portal", "client_secret", tamgatest.AppSecret, "code_verifier", "")
	if got := w.s.Read(a); !w.s.Works(got.AccessToken) {
		t.Errorf("%d %s: %v", response.StatusCode, text, a)
	}

	b, page = w.enter("applied", "client_id", "page", "response_type", "token", "code_challenge", "", "code_challenge_method", "")
	if response, text = b.press(page, "code", w.Code(w.phone)); response.StatusCode != 303 {
		t.Fatalf("%d %s", response.StatusCode, text)
	}
	_, fragment, _ := strings.Cut(response.Header.Get("Location"), tamgatest.AppAddress+"#")
	if values, err := url.ParseQuery(fragment); err != nil || !w.s.Works(values.Get("access_token")) || values.Get("state") != "st&te" {
		t.Errorf("%q", response.Header.Get("Location"))
	}
}

func stepByChoice(t *testing.T, w *stepping) {
	w.add("pagechooser", "otpviasms", "otpviaemail?level=3")
	b, page := w.enter("pagechooser")
	for _, value := range []string{"otpviasms", "otpviaemail"} {
		if !strings.Contains(page, `value="`+value+`"`) {
			t.Errorf("%s is not offered: %s", value, page)
		}
	}
	if response, text := b.press(page, "choice", "oath"); response.StatusCode != 403 || !strings.Contains(text, `value="otpviasms"`) {
		t.Errorf("what the user does not have: %d %s", response.StatusCode, text)
	}
	response, code := b.press(page, "choice", "otpviaemail")
	if response.StatusCode != 200 || !strings.Contains(code, `name="code"`) {
		t.Fatalf("%d %s", response.StatusCode, code)
	}
	first := w.Code(w.email)
	if !strings.Contains(code, `value="otpviasms"`) || strings.Contains(code, `value="otpviaemail"`) {
		t.Errorf("want the other way, and not this one: %s", code)
	}
	if response, text := b.press(page, "choice", "otpviasms"); response.StatusCode != 200 {
		t.Errorf("%d %s", response.StatusCode, text)
	}
	if response, _ := b.press(page, "code", first); response.StatusCode != 401 {
		t.Errorf("the code of the way before: %d", response.StatusCode)
	}
	w.passed(b.press(page, "code", w.Code(w.phone)))
}

var shownPicture = regexp.MustCompile(`<img class="qr" src="data:image/png;base64,([^"]+)"`)

var shownNumber = regexp.MustCompile(`class="number">.*</span>(\d\d)<`)

// device gives the user a device and returns its file.
func (w *stepping) device() string {
	w.t.Helper()
	file, _ := w.Device(w.id, "Phone")
	return file
}

// waiting returns the identifier of what waits for the device.
func (w *stepping) waiting(file string) string {
	w.t.Helper()
	out, err := tamgatest.Phone(w.t, file, "list", "--json")
	var listed []struct{ ID string }
	if err != nil || json.Unmarshal([]byte(out), &listed) != nil || len(listed) != 1 {
		w.t.Fatalf("%s, %v", out, err)
	}
	return listed[0].ID
}

func stepByDevice(t *testing.T, w *stepping) {
	w.add("pagedevice", "mydss")
	file := w.device()
	b, page := w.enter("pagedevice")
	m := shownNumber.FindStringSubmatch(page)
	again := w.Dev.IDPURL + "/oauth/step?ticket=" + ticketField.FindStringSubmatch(page)[1]
	if m == nil || !strings.Contains(html.UnescapeString(page), `<noscript><meta http-equiv="refresh" content="5;url=`+again+`&ui_locales=en"></noscript>`) || !strings.Contains(html.UnescapeString(page), `data-next="`+again+`&ui_locales=en"`) {
		t.Fatalf("%s", page)
	}
	if response, text := b.send("GET", again, ""); response.StatusCode != 200 || !strings.Contains(text, m[1]) {
		t.Errorf("while it waits: %d %s", response.StatusCode, text)
	}
	if response, text := b.press(page, "code", "123456"); response.StatusCode != 401 || response.Header.Get("Location") != "" {
		t.Errorf("a code that the device did not make: %d %s", response.StatusCode, text)
	}
	if out, err := tamgatest.Phone(t, file, "approve", w.waiting(file), "--number", m[1], "--yes"); err != nil {
		t.Fatal(out, err)
	}
	if response, text := (&browser{s: w.s}).send("GET", again, ""); response.StatusCode != 403 {
		t.Errorf("another browser: %d %s", response.StatusCode, text)
	}
	response, text := b.send("GET", again, "")
	if response.StatusCode != 302 {
		t.Errorf("%d %s", response.StatusCode, text)
	}
	w.passed(response, text)

	b, page = w.enter("pagedevice")
	if out, err := tamgatest.Phone(t, file, "decline", w.waiting(file), "--yes"); err != nil {
		t.Fatal(out, err)
	}
	if response, text := b.press(page); response.StatusCode != 403 || !strings.Contains(text, "declined") {
		t.Errorf("declined: %d %s", response.StatusCode, text)
	}

	// The same device at the confirmation, under the name that clients know there.
	me := basic("pagedevice", tamgatest.Password)
	first := w.ask("/confirmation", me, w.begin(""))
	ref := first.Challenge.ContextData.RefID
	if got := first.Challenge.TextChallenge[0].AuthnMethod; got != methodSpace+"mobile" {
		t.Errorf("offered as %s", got)
	}
	if p := w.ask("/confirmation", me, w.poll(ref)); *p.IsFinal {
		t.Errorf("%+v", p)
	}
	if out, err := tamgatest.Phone(t, file, "approve", w.waiting(file), "--yes"); err != nil {
		t.Fatal(out, err)
	}
	if p := w.ask("/confirmation", me, w.poll(ref)); p.AccessToken == "" {
		t.Errorf("%+v", p)
	}
}

// stepOffline passes the step on a device without a network: the page shows a QR code and
// takes the code of the device. It does not load itself again, since the typed code would be
// lost.
func stepOffline(t *testing.T, w *stepping) {
	w.add("pageoffline", "mydss")
	file := w.device()
	b, page := w.enter("pageoffline")
	if strings.Contains(page, "<img") || !strings.Contains(page, `name="offline"`) {
		t.Errorf("%s", page)
	}
	response, page := b.press(page, "offline", "1")
	picture := shownPicture.FindStringSubmatch(page)
	if response.StatusCode != 200 || picture == nil || strings.Contains(page, "http-equiv") || !strings.Contains(response.Header.Get("Content-Security-Policy"), "img-src data:") {
		t.Fatalf("offline: %d %s", response.StatusCode, page)
	}
	qr, err := base64.StdEncoding.DecodeString(html.UnescapeString(picture[1]))
	if err != nil {
		t.Fatal(err)
	}
	out, err := tamgatest.Phone(t, file, "code", "--qr-text", judge.ZBar(t).Read(qr, "png"), "--yes", "--json")
	var made struct{ Code string }
	if err != nil || json.Unmarshal([]byte(out), &made) != nil || len(made.Code) != 8 {
		t.Fatalf("%s, %v", out, err)
	}
	response, page = b.press(page, "offline", "1", "code", wrong(made.Code))
	if response.StatusCode != 401 || shownPicture.FindStringSubmatch(page) == nil {
		t.Errorf("a wrong code: %d %s", response.StatusCode, page)
	}
	w.passed(b.press(page, "offline", "1", "code", made.Code))

}

// stepForeign sends the form of the step from elsewhere.
func stepForeign(t *testing.T, w *stepping) {
	w.add("foreigner", "otpviasms")
	victim, page := w.enter("foreigner")
	code := w.Code(w.phone)
	attacker := &browser{s: w.s}
	_, login := attacker.send("GET", w.s.asked(), "")
	for name, try := range map[string]func() (*http.Response, string){
		"another browser": func() (*http.Response, string) { return attacker.press(page, "code", code) },
		"the ticket of the login page": func() (*http.Response, string) {
			return attacker.press(login, "code", code)
		},
		"no cookie": func() (*http.Response, string) { return (&browser{s: w.s}).press(page, "code", code) },
		"the ticket at sign-in": func() (*http.Response, string) {
			return victim.logIn(page, "login", "foreigner", "password", tamgatest.Password)
		},
		"another site": func() (*http.Response, string) {
			form := url.Values{"ticket": {ticketField.FindStringSubmatch(page)[1]}, "code": {code}}
			return victim.send("POST", w.Dev.IDPURL+"/oauth/step", form.Encode(), "Sec-Fetch-Site", "cross-site")
		},
		"no ticket": func() (*http.Response, string) { return victim.send("GET", w.Dev.IDPURL+"/oauth/step", "") },
	} {
		if response, text := try(); response.StatusCode != 403 || response.Header.Get("Location") != "" {
			t.Errorf("%s: %d %s", name, response.StatusCode, text)
		}
	}
	// The password alone cannot use the step of the page, nor the page that of the password.
	ref := w.ask("/confirmation", basic("foreigner", tamgatest.Password), w.begin("")).Challenge.ContextData.RefID
	if response, _ := victim.press(page, "code", w.Code(w.phone)); response.StatusCode != 401 {
		t.Errorf("the code of another sign-in: %d", response.StatusCode)
	}
	if got := w.ask("/confirmation", basic("foreigner", tamgatest.Password), w.answerTo(ref, code)); got.AccessToken != "" {
		t.Errorf("%+v", got)
	}
	w.passed(victim.press(page, "code", code))
}

func stepGuesses(t *testing.T, w *stepping) {
	w.add("guessed", "otpviasms")
	b, page := w.enter("guessed")
	code := w.Code(w.phone)
	for i := range 5 {
		response, text := b.press(page, "code", wrong(code))
		if want := map[bool]int{false: 401, true: 403}[i == 4]; response.StatusCode != want {
			t.Errorf("attempt %d: %d %s", i, response.StatusCode, text)
		}
	}
	if response, text := b.press(page, "code", code); response.StatusCode != 403 || !strings.Contains(text, "Too many wrong codes") || strings.Contains(text, "<form") {
		t.Errorf("%d %s", response.StatusCode, text)
	}
	// Another sign-in shares the count of the user.
	b, page = w.enter("guessed")
	code = w.Code(w.phone)
	for range 5 {
		b.press(page, "code", wrong(code))
	}
	b = &browser{s: w.s}
	_, login := b.send("GET", w.s.asked(), "")
	if response, text := b.logIn(login, "login", "guessed", "password", tamgatest.Password); response.StatusCode != 403 || !strings.Contains(text, "Too many wrong codes") {
		t.Errorf("the method is not closed: %d %s", response.StatusCode, text)
	}
}

// account are changes after which a sign-in that was begun cannot be completed.
func (w *stepping) changes() map[string]func() {
	user := "/ums/user/" + w.id
	return map[string]func(){
		"a lock":    func() { w.OK(tamgatest.Ours, "POST", user+"/lockout?lock=True", "") },
		"an unlock": func() { w.OK(tamgatest.Ours, "POST", user+"/lockout?lock=False", "") },
		"a method":  func() { w.OK(tamgatest.Ours, "POST", user+"/authmethod/otpviaemail?level=1", "") },
		"a policy":  func() { w.OK(tamgatest.Ours, "POST", user+"/operationpolicy", "[2]") },
		"a contact": func() { w.OK(tamgatest.Ours, "POST", user+"/phones/"+w.phone+"/secondaryauth", "") },
	}
}

func stepEnds(t *testing.T, w *stepping) {
	w.add("changing", "otpviasms")
	for _, name := range []string{"a method", "a policy", "a lock"} {
		b, page := w.enter("changing")
		code := w.Code(w.phone)
		w.changes()[name]()
		if response, text := b.press(page, "code", code); response.StatusCode != 403 || response.Header.Get("Location") != "" || strings.Contains(text, "<form") {
			t.Errorf("after %s: %d %s", name, response.StatusCode, text)
		}
	}
	w.add("going", "otpviasms")
	b, page := w.enter("going")
	code := w.Code(w.phone)
	w.OK(tamgatest.Ours, "DELETE", "/ums/user/"+w.id, "")
	if response, text := b.press(page, "code", code); response.StatusCode != 403 || response.Header.Get("Location") != "" {
		t.Errorf("after the user was deleted: %d %s", response.StatusCode, text)
	}
}

func stepWithoutMethod(t *testing.T, w *stepping) {
	w.add("methodless", "mydss")
	b := &browser{s: w.s}
	_, page := b.send("GET", w.s.asked(), "")
	if response, text := b.logIn(page, "login", "methodless", "password", tamgatest.Password); response.StatusCode != 401 || !strings.Contains(text, "no way to confirm") {
		t.Errorf("%d %s", response.StatusCode, text)
	}
}

// granted asks for a token by password and returns the mfa_token of the refusal.
func (w *stepping) granted(login string, client ...string) string {
	w.t.Helper()
	form := url.Values{
		"grant_type": {"password"}, "username": {login}, "password": {tamgatest.Password}, "resource": {w.Dev.Resource}, "scope": {"dss offline_access"},
		"client_id": {w.Dev.ClientID},
	}
	for i := 0; i+1 < len(client); i += 2 {
		form.Set(client[i], client[i+1])
	}
	return w.mfaToken(w.s.Form(form))
}

func (w *stepping) mfaToken(a tamgatest.Answer) string {
	w.t.Helper()
	var refused struct {
		Error string
		MFA   string `json:"mfa_token"`
	}
	a.Into(w.t, &refused)
	if a.Status != 400 || refused.Error != "authn_method_not_confirmed" || refused.MFA == "" {
		w.t.Fatalf("%v", a)
	}
	return refused.MFA
}

// stepToken signs in with the mfa_token of a grant, as a public and a confidential client.
func stepToken(t *testing.T, w *stepping) {
	w.add("mfa", "otpviasms")
	for _, client := range []struct {
		name  string
		form  []string
		begin string
	}{
		{"public", nil, w.begin("")},
		{"confidential", []string{"client_id", "portal", "client_secret", tamgatest.AppSecret}, fmt.Sprintf(`{"ClientId":"portal","ClientSecret":%q}`, tamgatest.AppSecret)},
	} {
		bearer := "Bearer " + w.granted("mfa", client.form...)
		answer := func(ref, code string) string {
			return strings.TrimSuffix(client.begin, "}") + fmt.Sprintf(`,"ChallengeResponse":{"TextChallengeResponse":[{"RefId":%q,"Value":%q}]}}`, ref, code)
		}
		first := w.ask("/confirmation", bearer, client.begin)
		ref, code := first.Challenge.ContextData.RefID, w.Code(w.phone)
		if again := w.ask("/v2.0/confirmation", bearer, client.begin); again.Challenge.ContextData.RefID != ref {
			t.Error("the repeated first call has another reference")
		}
		for name, body := range map[string]string{"another client": `{"ClientId":"app"}`, "no client": `{}`, "a wrong secret": `{"ClientId":"portal","ClientSecret":"x"}`} {
			if a := w.Ask(tamgatest.Anonymous, "POST", "/confirmation", body, "Authorization", bearer); strings.Contains(a.Body, "Challenge") || strings.Contains(a.Body, "AccessToken") {
				t.Errorf("%s: %v", name, a)
			}
		}
		for name, more := range map[string]string{"a text": `,"ConfirmationScope":"x"`, "an operation": `,"OperationId":"` + tamgatest.Missing + `"`} {
			if got := w.ask("/confirmation", bearer, strings.TrimSuffix(client.begin, "}")+more+"}"); !*got.IsError {
				t.Errorf("%s: %+v", name, got)
			}
		}
		other := "Bearer " + w.granted("mfa", client.form...)
		if got := w.ask("/confirmation", other, answer(ref, code)); got.Error != "invalid_transaction" {
			t.Errorf("the token of another sign-in: %+v", got)
		}
		if got := w.ask("/confirmation", bearer, answer(ref, wrong(code))); *got.IsFinal {
			t.Errorf("a wrong code: %+v", got)
		}
		got := w.ask("/confirmation", bearer, answer(ref, code))
		if !w.s.Works(got.AccessToken) || claims(t, got.AccessToken)["unique_name"] != "mfa" {
			t.Errorf("%s: %+v", client.name, got)
		}
		if again := w.ask("/confirmation", bearer, answer(ref, code)); again.AccessToken != got.AccessToken || *again.IsError {
			t.Errorf("replayed: %+v", again)
		}
		if again := w.ask("/confirmation", other, answer(ref, code)); again.Error != "invalid_transaction" || again.AccessToken != "" {
			t.Errorf("replayed with the token of another sign-in: %+v", again)
		}
		if again := w.ask("/confirmation", bearer, client.begin); again.AccessToken != "" || !*again.IsError {
			t.Errorf("used again: %+v", again)
		}
	}
}

func stepTokenEnds(t *testing.T, w *stepping) {
	w.add("mfachanging", "otpviasms")
	for _, name := range []string{"a method", "a policy", "a lock"} {
		bearer := "Bearer " + w.granted("mfachanging")
		ref := w.ask("/confirmation", bearer, w.begin("")).Challenge.ContextData.RefID
		code := w.Code(w.phone)
		w.changes()[name]()
		for what, body := range map[string]string{"the code": w.answerTo(ref, code), "a first call": w.begin("")} {
			if got := w.ask("/confirmation", bearer, body); got.Error != "invalid_transaction" || got.AccessToken != "" || got.Challenge != nil {
				t.Errorf("%s after %s: %+v", what, name, got)
			}
		}
	}
}

// stepOfExchange has an operator act for a user whose sign-ins are confirmed.
func stepOfExchange(t *testing.T, w *stepping) {
	w.add("acted", "otpviasms?level=1")
	w.OK(tamgatest.Ours, "POST", "/ums/user/"+w.id+"/operationpolicy", "[1]")
	actor := w.Tokens[tamgatest.Ours]
	bearer := "Bearer " + w.mfaToken(w.s.Exchange(actor, tamgatest.Naming("unique_name", "acted", 300e9)))
	ref := w.ask("/confirmation", bearer, w.begin("")).Challenge.ContextData.RefID
	got := w.ask("/confirmation", bearer, w.answerTo(ref, w.Code(w.phone)))
	act, _ := claims(t, got.AccessToken)["act"].(map[string]any)
	if act["unique_name"] == nil || claims(t, got.AccessToken)["unique_name"] != "acted" || !w.s.Works(got.AccessToken) {
		t.Errorf("%+v", got)
	}
	if status, body := w.Grant("acted", tamgatest.Password); status != 400 || !strings.Contains(string(body), "mfa_token") {
		t.Errorf("a sign-in of the user: %d %s", status, body)
	}
}
