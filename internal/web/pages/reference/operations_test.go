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
	"tamga/internal/testsize"
)

// TestReference checks the pages of the interface.
func TestReference(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	b := pagetest.New(t, w.Server)
	p := b.Shows(b.Get("/reference"), "User management", `href="/openapi.json"`)
	links := regexp.MustCompile(`href="(/reference/[^"]+)"`).FindAllStringSubmatch(p.Text, -1)
	if len(links) < 150 || len(p.Text) > 100_000 {
		t.Errorf("%d operations on %d bytes", len(links), len(p.Text))
	}
	step := 1
	if testsize.Of() < testsize.Whole {
		step = 12
	}
	for i := 0; i < len(links); i += step {
		l := links[i]
		p := b.Shows(b.Get(l[1]), "curl -X ")
		if strings.Contains(p.Text, ">reference.") {
			t.Errorf("%s lacks a word", l[1])
		}
	}
	b.Shows(b.Get("/reference/RegisterUser"), "with an access token", html.EscapeString(`--data-raw '{"Email":"petrov@example.org","Login":"petrov"`), "/STS/ums/user")
	b.Header.Set("Accept-Language", "ru")
	if p := b.Shows(b.Get("/reference"), "Управление пользователями", "Подписание документа", "Статус сертификатов (OCSP)"); strings.Contains(p.Text, `<span lang="en">`) || strings.Contains(p.Text, ">reference.") {
		t.Errorf("an operation has no name in Russian:\n%s", p.Text)
	}
	b.Shows(b.Get("/reference/RegisterUser"), "Регистрация пользователя", "Подробности по-английски: <span lang=\"en\">Register a user", "<dt>200</dt><dd>Выполнено.", "<dt>413</dt><dd>Запрос слишком большой.")
	b.Header.Set("Accept-Language", "en")
	b.Is(b.Get("/reference/Nothing"), 404)
	b.Is(b.Get("/reference/"+url.PathEscape(pagetest.HostileText)), 404)
}

// TestTry tries operations of the interface on the pages of the reference.
func TestTry(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartUMS(t)
	try := func(b *pagetest.Browser, operation string, form url.Values) pagetest.Page {
		return b.Post("/reference/"+operation+"/do/try", form)
	}
	anonymous := pagetest.New(t, w.Server)
	if p := anonymous.Shows(anonymous.Get("/reference/RegisterUser"), `href="/sign-in?to=/reference/RegisterUser"`); strings.Contains(p.Text, "/do/try") {
		t.Error("an anonymous visitor gets a form to try")
	}
	register := url.Values{"p0": {"Default"}, "body": {`{"Login":"tried"}`}}
	anonymous.Is(try(anonymous, "RegisterUser", register), 401)

	b := pagetest.Operator(w, w.Dev.Operator.Login)
	b.Shows(b.Get("/reference/RegisterUser"), `action="/reference/RegisterUser/do/try#answer"`, "petrov@example.org", "it changes this installation")
	p := b.Shows(try(b, "RegisterUser", register), "200 OK", "POST /STS/ums/user", "Content-Type: application/json", html.EscapeString(register.Get("body")))
	id := b.Find(p, regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`))[0]
	b.Shows(try(b, "GetUserById", url.Values{"p0": {id}}), "200 OK", html.EscapeString(`"Login": "tried"`))
	b.Shows(try(b, "GetUserById", url.Values{"p0": {"../" + id + "?a=b#c"}}), "GET /STS/ums/user/..%2F"+id+"%3Fa=b%23c", "404 Not Found")
	b.Is(try(b, "GetUserById", nil), 400, "a part of the address")
	p = b.Shows(try(b, "RegisterUser", url.Values{"body": {`{"Login":"` + pagetest.HostileText + `"}`}}), "400 Bad Request")
	if strings.Contains(p.Text, "<img src=x") {
		t.Error("an answer became a part of the page")
	}
	b.Shows(try(b, "RegisterUser", url.Values{"body": {"{"}}), "400 Bad Request")
	person := pagetest.New(t, w.Server)
	person.Shows(person.SignIn("/start", tamgatest.Plain, tamgatest.Password))
	person.Shows(try(person, "GetUserById", url.Values{"p0": {id}}), "403 Forbidden")
	person.Shows(try(person, "GetCertificates", nil), "200 OK", "[]")

	for _, operation := range []string{"Token", "Login", "Confirmation", "PollDevice", "TimeStamp", "UploadDocumentParts", "AuthorizeCertificate"} {
		if p := b.Shows(b.Get("/reference/" + operation)); strings.Contains(p.Text, "/do/try") {
			t.Errorf("%s can be tried", operation)
		}
		b.Is(try(b, operation, nil), 400, "cannot be tried")
	}
	b.Header.Set("Sec-Fetch-Site", "cross-site")
	b.Is(try(b, "RegisterUser", url.Values{"p0": {"Default"}, "body": {`{"Login":"forged"}`}}), 403, "sent by another site")
	b.Header.Del("Sec-Fetch-Site")
	b.Shows(b.Get("/operator/people?column0=Login&operation0=Equal&value0=forged"), "No people match")

	log := b.Shows(b.Get("/operator/audit?operation=TryOperation"), "operation RegisterUser", "operation GetUserById")
	if strings.Contains(log.Text, "tried") {
		t.Error("the audit log has the request of a trial")
	}
	b.Shows(b.Get("/operator/audit?operation=RegisterUser"), id)
}
