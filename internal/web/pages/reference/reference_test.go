// SPDX-License-Identifier: Apache-2.0

package reference_test

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestReferenceSearch searches the list of operations by identifiers, addresses and words of both
// languages, without scripts.
func TestReferenceSearch(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	shownOf := func(language, query string) (list []string) {
		b := pagetest.New(t, w.Server)
		b.Header.Set("Accept-Language", language)
		p := b.Shows(b.Get("/reference?q="+url.QueryEscape(query)), `value="`+html.EscapeString(query)+`"`)
		for _, m := range regexp.MustCompile(`<li><a href="/reference/([^"]+)"`).FindAllStringSubmatch(p.Text, -1) {
			list = append(list, m[1])
		}
		if none := strings.Contains(p.Text, `data-none hidden`); none != (len(list) > 0) {
			t.Errorf("%q finds %v, and says so wrongly", query, list)
		}
		return list
	}
	for _, c := range [][3]string{
		{"en", "setuserLOCK", "SetUserLockoutState SetUserLockoutStateEx"}, {"en", "delete /oath", "RemoveUserOtpToken"}, {"ru", "Регистрация  пользователя", "RegisterUser RegisterUser2"},
		{"en", "no such operation", ""}, {"en", pagetest.HostileText, ""},
		// Words of people, in the forms that they have.
		{"ru", "подписать документ", "SignDocument"}, {"ru", "Подписью документа", "SignDocument"}, {"ru", "печать", "SignDocument"}, {"ru", "штамп", "SignDocument TimeStamp"}, {"ru", "заблокировать сотрудника", "SetUserLockoutState"},
		{"en", "visible seal", "SignDocument"}, {"en", "pincode", "SignDocument"},
	} {
		got := strings.Join(shownOf(c[0], c[1]), " ")
		for _, want := range strings.Fields(c[2]) {
			if !strings.Contains(got, want) {
				t.Errorf("%q finds %s, want %s", c[1], got, want)
			}
		}
		if c[2] == "" && got != "" || len(got) > 4000 {
			t.Errorf("%q finds %s", c[1], got)
		}
	}
	if all := shownOf("en", ""); len(all) < 150 {
		t.Errorf("only %d operations", len(all))
	}
}

// TestReferenceOutside checks that an operation with a result says how it is checked elsewhere, and one without none.
func TestReferenceOutside(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	b := pagetest.New(t, w.Server)
	b.Shows(b.Get("/reference/SignDocument"), "How to check the result outside", "openssl cms -verify", "pdfsig document.pdf")
	b.Shows(b.Get("/reference/TimeStamp"), "openssl ts -verify")
	for _, id := range []string{"GetUsers", "RegisterUser"} {
		if p := b.Shows(b.Get("/reference/" + id)); strings.Contains(p.Text, "outside") {
			t.Errorf("%s says how to check a result that it does not have", id)
		}
	}
}

// TestReferenceCommands: each operation with a body has an example that the command sends, and
// after a trial the command is that of what was sent.
func TestReferenceCommands(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	b := pagetest.Operator(w, w.Dev.Operator.Login)
	command := func(p pagetest.Page) string {
		return html.UnescapeString(b.Find(p, regexp.MustCompile(`(?s)<code data-curl>(.*?)</code>`))[1])
	}
	sent := regexp.MustCompile(`--(data-raw|data-binary|form-string) '`)
	bodies := 0
	list := b.Shows(b.Get("/reference"))
	for _, m := range regexp.MustCompile(`<li><a href="(/reference/[^"]+)"`).FindAllStringSubmatch(list.Text, -1) {
		p := b.Shows(b.Get(m[1]))
		if !strings.Contains(p.Text, "<h3>Body") {
			continue
		}
		if bodies++; !sent.MatchString(command(p)) {
			t.Errorf("%s has no example: %s", m[1], command(p))
		}
	}
	if bodies < 100 {
		t.Errorf("only %d operations with a body", bodies)
	}
	if p := b.Shows(b.Get("/reference/TimeStamp"), "openssl ts -query"); !strings.Contains(command(p), "--data-binary '@request.tsq'") {
		t.Errorf("a time stamp is requested by %s", command(p))
	}
	p := b.Shows(b.Post("/reference/RegisterUser/do/try", url.Values{"body": {"{\n  \"Login\": \"o'brien\"\n}"}}), "This is the request that was sent")
	if got := command(p); !strings.Contains(got, `--data-raw '{"Login":"o'\''brien"}'`) || strings.Contains(got, "petrov") {
		t.Errorf("the command is not that of what was sent: %s", got)
	}
	p = b.Shows(b.Post("/reference/GetUserById/do/try", url.Values{"p0": {w.Dev.User.ID}}))
	if got := command(p); !strings.Contains(got, "/ums/user/"+w.Dev.User.ID) {
		t.Errorf("the command is not that of what was sent: %s", got)
	}
}
