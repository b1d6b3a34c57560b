// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

// TestAccount changes the own account in pages and reads its history.
func TestAccount(t *testing.T) {
	p := newPerson(t)
	b := p.browser
	b.ok(b.get("/account"), "<dd>Password</dd>", p.Dev.User.Login, "No application may sign you in again")
	b.header.Set("Accept-Language", "ru")
	b.ok(b.get("/account"), "<dd>Пароль</dd>")
	b.header.Del("Accept-Language") // the language of the installation
	b.ok(b.get("/account"), "<dd>Пароль</dd>")
	b.header.Set("Accept-Language", "en")
	b.ok(b.post("/account/do/name", url.Values{"name": {`<i>Иван</i> "Demo"`}}), "&lt;i&gt;Иван&lt;/i&gt; &#34;Demo&#34;", `<p class="toast" role="status">The name is saved.</p>`)
	b.header.Set("Accept-Language", "ru")
	b.ok(b.get("/account?done=name"), `<p class="toast" role="status">Имя сохранено.</p>`)
	b.header.Set("Accept-Language", "en")
	if page := b.ok(b.get("/account?done=%3Cb%3E")); strings.Contains(page.text, `class="toast"`) {
		t.Errorf("an address makes up what was done:\n%s", page.text)
	}
	b.is(b.post("/account/do/name", url.Values{"name": {""}}), 400)
	b.is(b.post("/account/do/name", url.Values{"name": {strings.Repeat("x", 5000)}}), 400)

	// Notifications, of which the page keeps what it does not show.
	checked := func(what string) bool {
		return strings.Contains(b.ok(b.get("/account")).text, `value="`+what+`" aria-label="`) &&
			regexp.MustCompile(`value="`+what+`"[^>]* checked>`).MatchString(b.get("/account").text)
	}
	b.ok(b.post("/account/do/notifications", url.Values{"event": {"CertificateRevoked:SMS", "UserPasswordChanged:Email"}}))
	if !checked("CertificateRevoked:SMS") || !checked("UserPasswordChanged:Email") || checked("UserPasswordChanged:SMS") {
		t.Errorf("the notifications are not those that were chosen:\n%s", b.get("/account").text)
	}
	b.is(b.post("/account/do/notifications", url.Values{"event": {"CertificateRevoked:Pigeon"}}), 400)
	b.is(b.post("/account/do/notifications", url.Values{"event": {"UserDeleteFail:SMS"}}), 400)
	b.is(b.post("/account/do/change", url.Values{"change": {tamgatest.Missing}}), 404)

	// History: forged addresses and pages.
	b.header.Set("User-Agent", `<script>alert(1)</script>`)
	b.get(`/certificates/<script>alert(1)</script>`)
	for range 60 {
		b.get("/certificates/1/certificate.cer")
	}
	page := b.ok(b.get("/account/history"), `<span title="SetNameByPage">`, `<span title="invalid_parameters">`, `href="/account/history?all=yes"`)
	for _, looked := range []string{"DownloadCertificate", "AccountPage", "HistoryPage"} { // most of the newest entries
		if strings.Contains(page.text, looked) {
			t.Errorf("the history has %s, which only looks at something", looked)
		}
	}
	page = b.ok(b.get("/account/history?all=yes"), `<span title="DownloadCertificate">Download a certificate</span>`, "certificate 1", "Pages of this service")
	if strings.Contains(page.text, "<script>alert") {
		t.Errorf("a text became a part of the page")
	}
	older := b.find(page, regexp.MustCompile(`href="(/account/history\?before=[0-9]+&amp;all=yes)"`))[1]
	page = b.ok(b.get(html.UnescapeString(older)), "SetNameByPage", "AccountPage")
	if n := strings.Count(page.text, "<tr>"); n > 75 {
		t.Errorf("a page has %d entries", n)
	}
	for _, wrong := range []string{"0", "-1", "x", "99999999999999999999"} {
		b.is(b.get("/account/history?before="+wrong), 400)
	}

	// The password, and what ends with it.
	const fresh = "another long password 9!"
	other := newBrowser(t, p.Server)
	other.ok(other.signIn("/start", p.Dev.User.Login, p.Dev.User.Password), "Your certificates")
	b.is(b.post("/account/do/password", url.Values{"present": {"wrong"}, "new": {fresh}, "again": {fresh}}), 400, `href="/account"`)
	b.is(b.post("/account/do/password", url.Values{"present": {p.Dev.User.Password}, "new": {fresh}, "again": {"x"}}), 400, "differ")
	b.is(b.post("/account/do/password", url.Values{"present": {p.Dev.User.Password}, "new": {"x"}, "again": {"x"}}), 400)
	b.ok(b.post("/account/do/password", url.Values{"present": {p.Dev.User.Password}, "new": {fresh}, "again": {fresh}}), "The password is changed. Sign in with the new one.", `href="/sign-in"`)
	other.ok(other.get("/start"), `name="ticket"`)
	b.ok(b.signIn("/start", p.Dev.User.Login, fresh), "Your certificates")
	if list := p.Captured(); !strings.Contains(list[len(list)-1].To, p.phone) && !strings.Contains(list[len(list)-2].To, p.phone) {
		t.Errorf("the phone of the user was not told of the new password: %v", list)
	}
	other.signIn("/start", p.Dev.User.Login, fresh)
	b.ok(b.post("/account/do/sessions", nil), "All your sessions have ended.", `href="/sign-in"`)
	other.ok(other.get("/account"), `name="ticket"`)

	// Wrong passwords count as at a sign-in.
	b.signIn("/start", p.Dev.User.Login, fresh)
	for range 10 {
		b.is(b.post("/account/do/password", url.Values{"present": {"wrong"}, "new": {fresh}, "again": {fresh}}), 400)
	}
	b.is(b.post("/account/do/password", url.Values{"present": {fresh}, "new": {fresh}, "again": {fresh}}), 400, "too many")
}
