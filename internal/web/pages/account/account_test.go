// SPDX-License-Identifier: Apache-2.0

package account_test

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestAccount changes the own account in pages and reads its history.
func TestAccount(t *testing.T) {
	p := pagetest.NewPerson(t)
	b := p.Browser
	b.Shows(b.Get("/account"), "<dd>Password</dd>", p.Dev.User.Login, "No application may sign you in again")
	b.Header.Set("Accept-Language", "ru")
	b.Shows(b.Get("/account"), "<dd>Пароль</dd>")
	b.Header.Del("Accept-Language") // the language of the installation
	b.Shows(b.Get("/account"), "<dd>Пароль</dd>")
	b.Header.Set("Accept-Language", "en")
	b.Shows(b.Post("/account/do/name", url.Values{"name": {`<i>Иван</i> "Demo"`}}), "&lt;i&gt;Иван&lt;/i&gt; &#34;Demo&#34;", `<p>The name is saved.</p>`)
	b.Header.Set("Accept-Language", "ru")
	b.Shows(b.Get("/account?done=name"), `<p>Имя сохранено.</p>`)
	b.Header.Set("Accept-Language", "en")
	if page := b.Shows(b.Get("/account?done=%3Cb%3E")); strings.Contains(page.Text, `class="note good"`) {
		t.Errorf("an address makes up what was done:\n%s", page.Text)
	}
	b.Is(b.Post("/account/do/name", url.Values{"name": {""}}), 400)
	b.Is(b.Post("/account/do/name", url.Values{"name": {strings.Repeat("x", 5000)}}), 400)

	// Notifications, of which the page keeps what it does not show.
	checked := func(what string) bool {
		return strings.Contains(b.Shows(b.Get("/account")).Text, `value="`+what+`" aria-label="`) &&
			regexp.MustCompile(`value="`+what+`"[^>]* checked>`).MatchString(b.Get("/account").Text)
	}
	b.Shows(b.Post("/account/do/notifications", url.Values{"event": {"CertificateRevoked:SMS", "UserPasswordChanged:Email"}}))
	if !checked("CertificateRevoked:SMS") || !checked("UserPasswordChanged:Email") || checked("UserPasswordChanged:SMS") {
		t.Errorf("the notifications are not those that were chosen:\n%s", b.Get("/account").Text)
	}
	b.Is(b.Post("/account/do/notifications", url.Values{"event": {"CertificateRevoked:Pigeon"}}), 400)
	b.Is(b.Post("/account/do/notifications", url.Values{"event": {"UserDeleteFail:SMS"}}), 400)
	b.Is(b.Post("/account/do/change", url.Values{"change": {tamgatest.Missing}}), 404)

	// History: forged addresses and pages.
	b.Header.Set("User-Agent", `<script>alert(1)</script>`)
	b.Get(`/certificates/<script>alert(1)</script>`)
	for range 60 {
		b.Get("/certificates/1/certificate.cer")
	}
	page := b.Shows(b.Get("/account/history"), `<span title="SetNameByPage">`, `<span title="invalid_parameters">`, `href="/account/history?all=yes"`)
	for _, looked := range []string{"DownloadCertificate", "AccountPage", "HistoryPage"} { // most of the newest entries
		if strings.Contains(page.Text, looked) {
			t.Errorf("the history has %s, which only looks at something", looked)
		}
	}
	page = b.Shows(b.Get("/account/history?all=yes"), `<span title="DownloadCertificate">Download a certificate</span>`, "certificate 1", "Pages of this service")
	if strings.Contains(page.Text, "<script>alert") {
		t.Errorf("a text became a part of the page")
	}
	older := b.Find(page, regexp.MustCompile(`href="(/account/history\?before=[0-9]+&amp;all=yes)"`))[1]
	page = b.Shows(b.Get(html.UnescapeString(older)), "SetNameByPage", "AccountPage")
	if n := strings.Count(page.Text, "<tr>"); n > 75 {
		t.Errorf("a page has %d entries", n)
	}
	for _, wrong := range []string{"0", "-1", "x", "99999999999999999999"} {
		b.Is(b.Get("/account/history?before="+wrong), 400)
	}

	// The password, and what ends with it.
	const fresh = "another long password 9!"
	other := pagetest.New(t, p.Server)
	other.Shows(other.SignIn("/start", p.Dev.User.Login, p.Dev.User.Password), "Nothing waits for your answer")
	b.Is(b.Post("/account/do/password", url.Values{"present": {"wrong"}, "new": {fresh}, "again": {fresh}}), 400, `href="/account"`)
	b.Is(b.Post("/account/do/password", url.Values{"present": {p.Dev.User.Password}, "new": {fresh}, "again": {"x"}}), 400, "differ")
	b.Is(b.Post("/account/do/password", url.Values{"present": {p.Dev.User.Password}, "new": {"x"}, "again": {"x"}}), 400)
	b.Shows(b.Post("/account/do/password", url.Values{"present": {p.Dev.User.Password}, "new": {fresh}, "again": {fresh}}), "The password is changed. Sign in with the new one.", `href="/sign-in"`)
	other.Shows(other.Get("/start"), `name="ticket"`)
	b.Shows(b.SignIn("/start", p.Dev.User.Login, fresh), "Nothing waits for your answer")
	if list := p.Captured(); !strings.Contains(list[len(list)-1].To, p.Phone) && !strings.Contains(list[len(list)-2].To, p.Phone) {
		t.Errorf("the phone of the user was not told of the new password: %v", list)
	}
	other.SignIn("/start", p.Dev.User.Login, fresh)
	b.Shows(b.Post("/account/do/sessions", nil), "All your sessions have ended.", `href="/sign-in"`)
	other.Shows(other.Get("/account"), `name="ticket"`)

	// Wrong passwords count as at a sign-in.
	b.SignIn("/start", p.Dev.User.Login, fresh)
	for range 10 {
		b.Is(b.Post("/account/do/password", url.Values{"present": {"wrong"}, "new": {fresh}, "again": {fresh}}), 400)
	}
	b.Is(b.Post("/account/do/password", url.Values{"present": {fresh}, "new": {fresh}, "again": {fresh}}), 400, "too many")
}

// TestTimeZone chooses a time zone, which pages have in a browser that does not say its own, also in the next session.
func TestTimeZone(t *testing.T) {
	t.Parallel()
	s := tamgatest.Start(t)
	b := pagetest.New(t, s)
	b.Header.Set("Accept-Language", "ru")
	b.SignIn("/start", s.Dev.User.Login, s.Dev.User.Password)
	b.Shows(b.Get("/account/history"), "(МСК)")
	b.Shows(b.Post("/account/do/zone", url.Values{"zone": {"Asia/Yekaterinburg"}}), "Часовой пояс сохранён.", `<option value="Asia/Yekaterinburg" selected>`)
	b.Shows(b.Get("/account/history"), "(UTC+5)")
	again := pagetest.New(t, s)
	again.Header.Set("Accept-Language", "ru")
	again.SignIn("/start", s.Dev.User.Login, s.Dev.User.Password)
	again.Shows(again.Get("/account/history"), "(UTC+5)")
	again.Header.Set("Cookie", "tamga-zone=Asia/Vladivostok")
	again.Shows(again.Get("/account/history"), "(UTC+10)")
	b.Is(b.Post("/account/do/zone", url.Values{"zone": {"../../etc/passwd"}}), 400, "Такого часового пояса нет")
	b.Shows(b.Post("/account/do/zone", url.Values{"zone": {""}}), "Часовой пояс сохранён.")
	b.Shows(b.Get("/account/history"), "(МСК)")
}
