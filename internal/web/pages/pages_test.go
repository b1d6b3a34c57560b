// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"html"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/tamgatest"
)

func TestMain(m *testing.M) { tamgatest.Main(m) }

// browser is a person with cookies and without scripts.
type browser struct {
	testing.TB
	server *tamgatest.Server
	client *http.Client
	header http.Header // of every request
}

func newBrowser(t testing.TB, s *tamgatest.Server) *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t, s, &http.Client{Jar: jar}, http.Header{"Accept-Language": {"en"}}}
}

// shown is a page as the browser has it after all redirects.
type shown struct {
	status int
	at     *url.URL
	header http.Header
	text   string
}

func (b *browser) do(method, address, kind string, body io.Reader) shown {
	b.Helper()
	if strings.HasPrefix(address, "/") {
		address = b.server.URL + address
	}
	r, err := http.NewRequest(method, address, body)
	if err != nil {
		b.Fatal(err)
	}
	for name, values := range b.header {
		r.Header[name] = values
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	resp, err := b.client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	return shown{resp.StatusCode, resp.Request.URL, resp.Header, cellHead.ReplaceAllString(string(text), "")}
}

func (b *browser) get(address string) shown { return b.do("GET", address, "", nil) }

func (b *browser) post(address string, form url.Values) shown {
	return b.do("POST", address, "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
}

type file struct{ field, name, content string }

// upload sends a form with files, its fields first as browsers do.
func (b *browser) upload(address string, fields map[string]string, files ...file) shown {
	b.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for name, value := range fields {
		if err := w.WriteField(name, value); err != nil {
			b.Fatal(err)
		}
	}
	for _, f := range files {
		part, err := w.CreateFormFile(f.field, f.name)
		if err != nil {
			b.Fatal(err)
		}
		io.WriteString(part, f.content)
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	return b.do("POST", address, w.FormDataContentType(), &body)
}

// ok fails the test unless the page is a success with these texts.
func (b *browser) ok(p shown, texts ...string) shown {
	b.Helper()
	b.is(p, 200, texts...)
	return p
}

func (b *browser) is(p shown, status int, texts ...string) {
	b.Helper()
	if p.status != status {
		b.Fatalf("%s is %d, want %d:\n%s", p.at, p.status, status, p.text)
	}
	if status >= 400 && strings.HasPrefix(p.header.Get("Content-Type"), "text/html") && !requestNumber.MatchString(p.text) {
		b.Errorf("%s is refused without the number of the request:\n%s", p.at, p.text)
	}
	for _, text := range texts {
		if !strings.Contains(p.text, text) {
			b.Errorf("%s has no %q:\n%s", p.at, text, p.text)
		}
	}
}

var (
	requestNumber = regexp.MustCompile(`<footer>[^<]+<code>[A-Z2-7]{26}</code>`)

	ticket = regexp.MustCompile(`name="ticket" value="([^"]+)"`)
	action = regexp.MustCompile(`<form method="post" action="([^"]+)"`)
	result = regexp.MustCompile(`href="(/signed/document/[^"]+)">([^<]+)<`)
	all    = regexp.MustCompile(`href="(/signed/all.zip[^"]+)"`)
)

// cellHead is what a phone shows before a cell of a table. Tests of what a cell has do not look at
// it; package browser does.
var cellHead = regexp.MustCompile(` data-head="[^"]*"`)

func (b *browser) find(p shown, what *regexp.Regexp) []string {
	b.Helper()
	m := what.FindStringSubmatch(p.text)
	if m == nil {
		b.Fatalf("%s has no %s:\n%s", p.at, what, p.text)
	}
	for i := range m {
		m[i] = html.UnescapeString(m[i])
	}
	return m
}

// signIn goes through the sign-in page, from a page that needs a session.
func (b *browser) signIn(page, login, password string) shown {
	b.Helper()
	p := b.ok(b.get(page), `name="ticket"`)
	return b.post(b.find(p, action)[1], url.Values{"ticket": {b.find(p, ticket)[1]}, "login": {login}, "password": {password}})
}

// TestStory goes through the pages as a person does: sign in, sign files of several kinds,
// download, verify, sign out.
func TestStory(t *testing.T) {
	s := tamgatest.Start(t)
	b := newBrowser(t, s)
	b.ok(b.get("/"), "Electronic signatures", `href="/sign-in"`)
	p := b.signIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	b.ok(p, `name="certificate"`, "Demo User · ", " · GOST R 34.10-2012, 512 bit · ")
	if p.at.Path != "/sign" {
		t.Errorf("after the sign-in the browser is at %s, want /sign, where it wanted to go", p.at)
	}
	b.ok(b.get("/start"), "Your certificates", "GOST R 34.10-2012, 256 bit")

	const hostile = `<img src=x onerror=alert(1)>&"'.txt`
	pdf := string(tamgatest.PDFOf(2000))
	for level, in := range map[string]int{"plain": 5, "stamped": 4} {
		files := []file{{"file", hostile, "text"}, {"file", "same.txt", "one"}, {"file", "same.txt", "two"}, {"file", "Договор.pdf", pdf}, {"file", "данные.xml", "<a>б</a>"}}
		p = b.ok(b.upload("/sign", map[string]string{"certificate": "1", "level": level}, files...))
		if n := strings.Count(p.text, "<td>Signed"); p.at.Path != "/signed" || n != 5 {
			t.Fatalf("%s: %d of 5 are signed at %s (want %d without their documents):\n%s", level, n, p.at, in, p.text)
		}
		if strings.Contains(p.text, "<img") {
			t.Errorf("the name of a file became a part of the page")
		}
	}
	archive := b.ok(b.get(b.find(p, all)[1]))
	z, err := zip.NewReader(strings.NewReader(archive.text), int64(len(archive.text)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	var signature []byte
	for _, f := range z.File {
		names = append(names, f.Name)
		if f.Modified.Year() < 2020 {
			t.Errorf("%s is from %s", f.Name, f.Modified)
		}
		if f.Name == "same.txt.sig" {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			if signature, err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := strings.Join(names, "|"); !strings.Contains(got, "same.txt.sig|same.txt (2).sig") && !strings.Contains(got, "same.txt.sig|same.txt.sig (2)") && !strings.Contains(got, "same (2)") {
		t.Errorf("the archive has %s", got)
	}
	openssl := judge.OpenSSL(t)
	if out, err := openssl.Run("cms", "-verify", "-cades", "-binary", "-inform", "DER", "-in", openssl.Write("signature", signature),
		"-content", openssl.Write("document", []byte("one")), "-CAfile", s.Path(s.Dev.CAPEM)); err != nil {
		t.Errorf("OpenSSL: %v\n%s", err, out)
	}

	b.ok(b.upload("/verify", nil, file{"file", "same.txt.sig", string(signature)}, file{"original", "same.txt", "one"}),
		"The signature is valid", "CN=Demo User", "as the time stamp proves")
	b.ok(b.upload("/verify", nil, file{"file", "same.txt", "one"}, file{"original", "same.txt.sig", string(signature)}), "The signature is valid")
	b.is(b.upload("/verify", nil, file{"file", "same.txt.sig", string(signature)}), 400, "the signature is in a file of its own: choose the document that was signed, too<")
	b.ok(b.upload("/verify", nil, file{"file", "same.txt.sig", string(signature)}, file{"original", "same.txt", "two"}), "The signature is not valid")
	b.ok(b.upload("/verify", nil, file{"file", "plain.pdf", string(tamgatest.PDFOf(2000))}), `<h2 class="verdict failed">The document has no signature</h2>`, "plain.pdf – 0 signatures", "Check that this is the right file")
	second := b.ok(b.upload("/sign", map[string]string{"certificate": "4", "format": "countersign", "level": "stamped"}, file{"file", "same.txt.sig", string(signature)}), "<td>Signed", `>same.txt.sig</a>`)
	countersigned := b.ok(b.get(b.find(second, result)[1]))
	b.ok(b.upload("/verify", nil, file{"file", "same.txt.sig", countersigned.text}, file{"original", "same.txt", "one"}), "The signature is valid", "2 signatures")
	t.Run("cosign", func(t *testing.T) {
		b := &browser{t, s, b.client, http.Header{"Accept-Language": {"en"}}}
		sign := func(fields map[string]string, files ...file) shown {
			fields["certificate"] = "3"
			return b.ok(b.upload("/sign", fields, files...))
		}
		verify := func(signature, document string) {
			t.Helper()
			b.ok(b.upload("/verify", nil, file{"file", "same.txt.sig", signature}, file{"original", "same.txt", document}), "The signature is valid", "2 signatures")
		}
		detached, one := file{"file", "same.txt.sig", string(signature)}, file{"file", "same.txt", "one"}
		for _, files := range [][]file{{detached, one}, {one, detached}, {detached, {"original", "same.txt", "one"}}, {detached, {"original", "other.txt", "one"}}} {
			for _, format := range []string{"automatic", "cosign"} {
				p := sign(map[string]string{"format": format}, files...)
				if n := strings.Count(p.text, "<td>Signed"); n != 1 || !strings.Contains(p.text, ">same.txt.sig</a>") {
					t.Fatalf("%d documents are signed, want the signature alone:\n%s", n, p.text)
				}
				verify(b.ok(b.get(b.find(p, result)[1])).text, "one")
			}
		}
		// Several signatures with their documents, and a file of its own.
		two := b.ok(b.upload("/sign", map[string]string{"certificate": "1", "level": "plain"}, file{"file", "two.txt", "two"}))
		second := b.ok(b.get(b.find(two, result)[1])).text
		p := sign(map[string]string{}, detached, one, file{"file", "two.txt.P7S", second}, file{"original", "two.txt", "two"}, file{"file", "own.txt", "own"})
		for _, want := range []string{">same.txt.sig</a>", ">two.txt.P7S</a>", ">own.txt.sig</a>"} {
			if !strings.Contains(p.text, want) {
				t.Errorf("no %s:\n%s", want, p.text)
			}
		}
		if n := strings.Count(p.text, "<td>Signed"); n != 3 {
			t.Errorf("%d documents are signed, want 3", n)
		}
		z := b.ok(b.get(b.find(p, all)[1])).text
		archive, err := zip.NewReader(strings.NewReader(z), int64(len(z)))
		if err != nil || len(archive.File) != 3 || archive.File[0].Name != "same.txt.sig" || archive.File[1].Name != "two.txt.P7S" {
			t.Errorf("the archive of %d bytes: %v", len(z), err)
		}
		verify(b.ok(b.get(regexp.MustCompile(`href="([^"]*)">two.txt.P7S`).FindStringSubmatch(p.text)[1])).text, "two")
		// The signatures of a format of its own have no documents.
		if p := sign(map[string]string{"format": "cades"}, detached, one); strings.Count(p.text, "<td>Signed") != 2 {
			t.Errorf("%s", p.text)
		}
		b.is(b.upload("/sign", map[string]string{"certificate": "3"}, one, file{"original", "a.txt", "a"}), 400, "choose the signature of this document too")
		b.is(b.upload("/sign", map[string]string{"certificate": "3"}, detached, one, file{"original", "a.txt", "a"}), 400, "several documents fit this signature")
		b.is(b.upload("/sign", map[string]string{"certificate": "3"}, file{"original", "a.txt", "a"}), 400, "choose at least one file")
		ru := &browser{t, s, b.client, http.Header{"Accept-Language": {"ru"}}}
		ru.ok(ru.get("/sign"), "Документ, к которому относится подпись")
		ru.is(ru.upload("/sign", map[string]string{"certificate": "3"}, detached), 400, "Подпись в отдельном файле: выберите вместе с ней подписанный документ.")
		ru.is(ru.upload("/sign", map[string]string{"certificate": "3"}, detached, file{"file", "same.txt", "two"}), 400, "Подпись относится к другому документу.")
	})
	t.Run("stamp", func(t *testing.T) {
		b := &browser{t, s, b.client, http.Header{"Accept-Language": {"en"}}}
		fields := map[string]string{
			"certificate": "1", "pin": "", "stamp": "yes", "stamp_page": "1", "stamp_left": "20", "stamp_bottom": "30", "stamp_width": "90", "stamp_height": "40",
		}
		p := b.ok(b.upload("/sign", fields, file{"file", "a.pdf", pdf}), "<td>Signed")
		signed := b.ok(b.get(b.find(p, result)[1]))
		if text := judge.PDFViewers(t).Text([]byte(signed.text)); !strings.Contains(text, "Demo User") {
			t.Errorf("the document has no visible stamp:\n%s", text)
		}
		again := b.ok(b.get(b.find(p, regexp.MustCompile(`href="(/sign\?[^"]+)"`))[1]), `value="90"`, `name="stamp" value="yes" checked`)
		if strings.Contains(again.at.String(), "pin") {
			t.Errorf("the address has the PIN: %s", again.at)
		}
		b.is(b.upload("/sign", fields, file{"file", "a.txt", "text"}), 400, "only PDF signatures have a visible stamp")
		fields["stamp_width"] = "0"
		b.is(b.upload("/sign", fields, file{"file", "a.pdf", pdf}), 400, "width must be a whole number from 5")
		fields["stamp_width"], fields["stamp_page"] = "90", "999"
		b.is(b.upload("/sign", fields, file{"file", "a.pdf", pdf}), 400)
	})
	t.Run("reports", func(t *testing.T) {
		files := []file{{"file", "same.txt.sig", string(signature)}, {"original", "same.txt", "two"}}
		b := &browser{t, s, b.client, http.Header{"Accept-Language": {"ru"}}}
		b.is(b.upload("/verify", nil, files[0]), 400, "Подпись находится в отдельном файле: выберите ещё и документ, который был подписан.")
		b.ok(b.upload("/verify", nil, files...), "Документ изменён после подписания", "Документ не тот, который подписан.", "запросите у подписавшего исходный документ")
		p := b.ok(b.upload("/verify", map[string]string{"answer": "json"}, files...))
		var report struct {
			File, Verdict string
			Signatures    []struct {
				Verdict  string
				Signer   struct{ Subject string }
				Findings []struct{ Indication, Text string }
			}
		}
		if err := json.Unmarshal([]byte(p.text), &report); err != nil || !strings.HasPrefix(p.header.Get("Content-Disposition"), "attachment") {
			t.Fatalf("%v, %v", err, p.header)
		}
		if n := report.Signatures; report.Verdict != "failed" || len(n) != 1 || n[0].Signer.Subject != "CN=Demo User,C=RU" || len(n[0].Findings) == 0 || n[0].Findings[0].Indication != "HASH_FAILURE" {
			t.Errorf("%s", p.text)
		}
		p = b.ok(b.upload("/verify", map[string]string{"answer": "pdf"}, files...))
		text := judge.PDFViewers(t).Text([]byte(p.text))
		for _, want := range []string{"Отчёт о проверке подписи", "Подпись недействительна", "CN=Demo User", "same.txt.sig"} {
			if !strings.Contains(text, want) {
				t.Errorf("the report has no %q:\n%s", want, text)
			}
		}
	})

	download := b.ok(b.get(b.find(p, result)[1]))
	if d := download.header.Get("Content-Disposition"); !strings.HasPrefix(d, "attachment") || download.header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("an untrusted document is shown in the browser: %v", download.header)
	}
	t.Run("another person", func(t *testing.T) {
		other := newBrowser(t, s)
		other.ok(other.signIn("/start", s.Dev.Operator.Login, s.Dev.Operator.Password), "no certificate")
		other.is(other.get(p.at.String()), 404, "You have no operation with this identifier.<")
		other.is(other.get(b.find(p, result)[1]), 404)
		other.is(other.get(b.find(p, all)[1]), 404)
	})
	t.Run("refusals", func(t *testing.T) {
		b := &browser{t, s, b.client, http.Header{"Accept-Language": {"ru"}}}
		b.is(b.upload("/sign", map[string]string{"certificate": "1"}), 400, "Файл не выбран")
		b.is(b.get("/reference/none"), 404, "Такой операции в интерфейсе нет")
		// The form may be sent again, and begins with the same choices, if nothing is signed.
		wrong := b.upload("/sign", map[string]string{"certificate": "6", "pin": "wrong", "format": "cades"}, file{"file", "a.txt", "a"})
		b.is(wrong, 400, "ПИН-код неверен", `<div data-again="pin">`, "уже загружены", `href="/sign?certificate=6&amp;format=cades&amp;stored=`)
		kept := b.ok(b.get(b.find(wrong, regexp.MustCompile(`href="(/sign\?[^"]*stored=[^"]+)"`))[1]), "> a.txt</label>")
		stored := b.find(kept, regexp.MustCompile(`name="stored" value="([0-9a-f-]{36})" checked>`))[1]
		b.ok(b.upload("/sign", map[string]string{"certificate": "1", "format": "cades", "stored": stored}), ">a.txt.sig</a>")
		b.is(b.upload("/sign", map[string]string{"certificate": "6", "format": "xades"}, file{"file", "a.txt", "a"}), 400, "Выберите файлы заново", `href="/sign?certificate=6&amp;format=xades"`)
		b.is(b.upload("/sign", map[string]string{"certificate": "6"}, file{"file", "a.pdf", pdf}, file{"file", "a.txt", "a"}), 400, `<div data-again="pin">`, "Ничего не подписано. Неподписанные файлы уже загружены")
		b.is(b.upload("/sign", map[string]string{"certificate": "1", "format": "office"}, file{"file", "a.txt", "a"}), 400, "Файл не является документом Office")
		// What is signed of several files, and what is not.
		one := map[string]string{"certificate": "1"}
		b.ok(b.upload("/sign", one, file{"file", "a.txt", "a"}, file{"file", "<b>.pdf", "no PDF"}, file{"file", "c.xml", "<a/>"}),
			"Подписано 2 документа", "не подписан 1 документ", "Файл не является документом PDF или повреждён.", ">a.txt.sig</a>", ">c.xml</a>")
		// A format that cannot be used signs nothing, and the refusal is about its files.
		stamped := map[string]string{"certificate": "1", "stamp": "yes", "stamp_page": "9", "stamp_left": "20", "stamp_bottom": "30", "stamp_width": "90", "stamp_height": "40"}
		b.is(b.upload("/sign", stamped, file{"file", "a.pdf", pdf}, file{"file", "b.txt", "b"}, file{"file", "c.pdf", pdf}), 400,
			"Ничего не подписано", `<div data-again="">`, "<p>Отказ касается этих файлов:</p>\n<ul>\n<li>a.pdf</li>\n<li>c.pdf</li>\n</ul>")
		b.is(b.upload("/sign", one, file{"file", "a.txt", "a"}, file{"file", "b.txt", ""}), 400, "Пустой файл", "<li>b.txt</li>\n</ul>")
		b.is(b.upload("/sign", one, file{"file", "a.txt", "a"}, file{"file", "b\u202etxt.exe", "b"}), 400, "Имя файла: символ U&#43;202E не допускается", "<li>b txt.exe</li>\n</ul>")
		b.is(b.upload("/sign", map[string]string{"certificate": "1", "format": "office", "level": "long"}, file{"file", "a.docx", "a"}), 400, "Так подписать этот файл нельзя")
		b.is(b.upload("/sign", map[string]string{"certificate": "1", "level": "long"}, file{"file", "a.txt", "a"}, file{"file", "b.docx", "b"}, file{"file", "c.docx", "c"}), 400, "<p>Отказ касается этих файлов:</p>\n<ul>\n<li>b.docx</li>\n<li>c.docx</li>\n</ul>")
		beside := b.ok(b.get(b.find(b.ok(b.upload("/sign", one, file{"file", "a.txt", "a"})), result)[1])).text
		b.is(b.upload("/sign", one, file{"file", "a.txt.sig", beside}, file{"file", "b.txt", "b"}), 400, "<p>Отказ касается этих файлов:</p>\n<ul>\n<li>a.txt.sig</li>\n</ul>")
		b.is(b.upload("/verify", nil, file{"file", "a.txt", "a"}), 400, "Файл не удалось прочитать")
		b.is(b.get("/signed?operation=1"), 404, "Такой операции у вас нет.<")
		many := make([]file, 201)
		for i := range many {
			many[i] = file{"file", "a.txt", "a"}
		}
		b.is(b.upload("/sign", nil, many...), 400, `<div data-again="">`)
	})
	t.Run("language", func(t *testing.T) {
		b := &browser{t, s, b.client, http.Header{"Accept-Language": {"en"}}}
		back := b.ok(b.post("/language", url.Values{"language": {"ru"}, "to": {"/start"}}), "Ваши сертификаты", `lang="ru"`)
		if back.at.Path != "/start" {
			t.Errorf("the switch leads to %s", back.at)
		}
		b.ok(b.post("/language", url.Values{"language": {"en"}, "to": {"https://evil.example/"}}), "Your certificates")
	})
	session := b.session()
	b.ok(b.post("/sign-out", nil), "You have signed out.", `href="/sign-in"`)
	b.client.Jar.SetCookies(b.address(), []*http.Cookie{session})
	b.ok(b.get("/start"), `name="ticket"`) // the old cookie opens nothing
}

func (b *browser) address() *url.URL {
	u, err := url.Parse(b.server.URL)
	if err != nil {
		b.Fatal(err)
	}
	return u
}

// session returns the cookie of the session.
func (b *browser) session() *http.Cookie {
	b.Helper()
	for _, c := range b.client.Jar.Cookies(b.address()) {
		if c.Name == "tamga-session" {
			return c
		}
	}
	b.Fatal("the browser has no session")
	return nil
}

// TestSessions checks what begins, keeps and ends a session.
func TestSessions(t *testing.T) {
	s := tamgatest.Start(t)
	t.Run("other sites", func(t *testing.T) {
		b := newBrowser(t, s)
		b.signIn("/start", s.Dev.User.Login, s.Dev.User.Password)
		b.header.Set("Sec-Fetch-Site", "cross-site")
		b.is(b.post("/sign-out", nil), 403, "sent by another site")
		b.is(b.upload("/sign", map[string]string{"certificate": "1"}, file{"file", "a.txt", "a"}), 403)
		b.header.Del("Sec-Fetch-Site")
		b.header.Set("Origin", "https://evil.example")
		b.is(b.post("/sign-out", nil), 403)
		b.header.Set("Origin", s.URL) // of a browser without Sec-Fetch-Site
		b.ok(b.post("/language", url.Values{"language": {"en"}, "to": {"/start"}}), "Your certificates")
		b.header.Del("Origin")
		if p := b.ok(b.get("/start"), "Your certificates"); p.header.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("browsers hide the origin of our own forms: %v", p.header)
		}
	})
	t.Run("frames and scripts", func(t *testing.T) {
		b := newBrowser(t, s)
		for _, page := range []string{"/", "/verify"} {
			p := b.ok(b.get(page))
			policy := p.header.Get("Content-Security-Policy")
			if !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") || p.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %v", page, p.header)
			}
		}
	})
	t.Run("pages for everybody", func(t *testing.T) {
		b := newBrowser(t, s)
		b.signIn("/start", s.Dev.Operator.Login, s.Dev.Operator.Password)
		for _, page := range []string{"/", "/verify", "/reference", "/reference/GetUsers"} {
			b.ok(b.get(page), `action="/sign-out"`, `href="/certificates"`, `href="/operator"`)
		}
	})
	t.Run("addresses without a page", func(t *testing.T) {
		b := newBrowser(t, s)
		b.signIn("/start", s.Dev.User.Login, s.Dev.User.Password)
		b.is(b.get("/Start"), 404, `{"Message":"object_not_found"`) // a program
		b.header.Set("Accept", "text/html,*/*;q=0.8")
		b.is(b.get("/Start"), 404, "There is no page at this address", `<footer>`, `action="/sign-out"`)
		b.is(b.get("/%2fevil.example/do/x"), 404)
		b.is(b.get("/sign-out"), 404, "There is no page at this address")
		b.is(b.get("/STS/oauth/login"), 404, "There is no page at this address")
		if p := b.ok(b.get("/devices/do/contact"), "Devices and codes"); p.at.Path != "/devices" { // the address of a form
			t.Errorf("the address of a form leads to %s", p.at)
		}
		b.is(b.post("/nothing", nil), 404, `{"Message":"object_not_found"`)
		b.header.Set("Accept-Language", "ru")
		b.is(b.get("/nothing/"), 404, "По этому адресу страницы нет")
		b.client.Jar = nil
		b.is(b.get("/nothing"), 404, "По этому адресу страницы нет", `href="/sign-in"`)
	})
	t.Run("cookie of another", func(t *testing.T) {
		b := newBrowser(t, s)
		b.signIn("/start", s.Dev.User.Login, s.Dev.User.Password)
		c := b.session()
		for _, value := range []string{c.Value[:len(c.Value)-2] + "AA", "", strings.Repeat("A", 5000), "{}"} {
			other := newBrowser(t, s)
			other.client.Jar.SetCookies(b.address(), []*http.Cookie{{Name: c.Name, Value: value, Path: "/"}})
			other.ok(other.get("/start"), `name="ticket"`)
		}
		// A page knows people by their sessions only, and the interface by their tokens only.
		other := newBrowser(t, s)
		other.header.Set("Authorization", "Bearer "+s.Token())
		other.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		if p := other.get("/start"); p.status != 303 || p.header.Get("Location") != "/sign-in?to=%2Fstart" {
			t.Errorf("with a token of the interface: %d, %v", p.status, p.header)
		}
		b.is(b.get(s.Dev.BaseURL+"/api/certificates"), 401)
	})
	t.Run("sign-in of another window", func(t *testing.T) {
		b := newBrowser(t, s)
		b.get("/sign-in")
		b.is(b.get("/signed-in?code=stolen&state=guessed"), 403, "This is not allowed", `<a class="button" href="/sign-in">Sign in</a>`)
		b.is(b.get("/signed-in"), 403)
	})
	t.Run("locked", func(t *testing.T) {
		b := newBrowser(t, s)
		b.signIn("/start", s.Dev.Operator.Login, s.Dev.Operator.Password)
		s.Command("user", "lock", s.Dev.Operator.Login)
		b.ok(b.get("/verify"), `href="/sign-in"`) // its frame knows that the session has ended
		b.ok(b.get("/start"), `name="ticket"`)
	})
	t.Run("buttons to try", func(t *testing.T) {
		b := newBrowser(t, s)
		b.is(b.post("/try", url.Values{"login": {"demo"}, "token": {"guessed"}}), 403, "serve --dev printed")
		_, token, _ := strings.Cut(s.Dev.StartURL, "?try=")
		b.ok(b.get(s.Dev.StartURL), "Sign in as demo")
		foreign, err := http.NewRequest("GET", s.Dev.StartURL, nil)
		if err != nil {
			t.Fatal(err)
		}
		foreign.Host = "evil.example" // a name of another site that leads to this machine
		answer, err := b.client.Do(foreign)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("under the name of another site the buttons are answered with %d", answer.StatusCode)
		}
		b.ok(b.post("/try", url.Values{"login": {"demo"}, "token": {token}}), "Your certificates")
		b.is(b.post("/try", url.Values{"login": {"unknown"}, "token": {token}}), 403)
	})
}
