// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"archive/zip"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

func TestMain(m *testing.M) { tamgatest.Main(m) }

// TestStory goes through the pages as a person does: sign in, sign files of several kinds,
// download, verify, sign out.
func TestStory(t *testing.T) {
	s := tamgatest.Start(t)
	b := pagetest.New(t, s)
	b.Shows(b.Get("/"), "Sign a document or verify a signature", `href="/sign-in"`)
	p := b.SignIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	b.Shows(p, `name="certificate"`, "<strong>Demo User</strong>", "GOST R 34.10-2012, 512 bit · ")
	if p.At.Path != "/sign" {
		t.Errorf("after the sign-in the browser is at %s, want /sign, where it wanted to go", p.At)
	}
	b.Shows(b.Get("/start"), "Nothing waits for your answer", "Sign documents", "No signed documents yet")

	const hostile = `<img src=x onerror=alert(1)>&"'.txt`
	pdf := string(tamgatest.PDFOf(2000))
	for level, in := range map[string]int{"plain": 5, "stamped": 4} {
		files := []pagetest.File{{Field: "file", Name: hostile, Content: "text"}, {Field: "file", Name: "same.txt", Content: "one"}, {Field: "file", Name: "same.txt", Content: "two"}, {Field: "file", Name: "Договор.pdf", Content: pdf}, {Field: "file", Name: "данные.xml", Content: "<a>б</a>"}}
		p = b.Shows(b.Upload("/sign", map[string]string{"certificate": "1", "level": level}, files...))
		if n := strings.Count(p.Text, ">Signed<"); p.At.Path != "/signed" || n != 5 {
			t.Fatalf("%s: %d of 5 are signed at %s (want %d without their documents):\n%s", level, n, p.At, in, p.Text)
		}
		if strings.Contains(p.Text, "<img") {
			t.Errorf("the name of a file became a part of the page")
		}
	}
	archive := b.Shows(b.Get(b.Find(p, pagetest.All)[1]))
	z, err := zip.NewReader(strings.NewReader(archive.Text), int64(len(archive.Text)))
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

	b.Shows(b.Upload("/verify", nil, pagetest.File{Field: "file", Name: "same.txt.sig", Content: string(signature)}, pagetest.File{Field: "original", Name: "same.txt", Content: "one"}),
		"Signature valid", "CN=Demo User", "stamp", "Trusted by this service")
	b.Shows(b.Upload("/verify", nil, pagetest.File{Field: "file", Name: "same.txt", Content: "one"}, pagetest.File{Field: "original", Name: "same.txt.sig", Content: string(signature)}), "Signature valid")
	// A missing document is asked for in place, and the page has the signature.
	alone := b.Shows(b.Upload("/verify", nil, pagetest.File{Field: "file", Name: "same.txt.sig", Content: string(signature)}), "Signature not confirmed: the document is needed", "By its name, it is &#34;same.txt&#34;", "Demo User")
	carried := map[string]string{"carried_name": "same.txt.sig", "carried": b.Find(alone, regexp.MustCompile(`name="carried" value="([^"]+)"`))[1]}
	carried["carried"] = html.UnescapeString(carried["carried"])
	b.Shows(b.Upload("/verify", carried, pagetest.File{Field: "file", Name: "other.txt", Content: "one"}), "Signature valid", "The document is &#34;other.txt&#34;")
	b.Is(b.Upload("/verify", map[string]string{"carried": "?"}, pagetest.File{Field: "file", Name: "other.txt", Content: "one"}), 400, "choose it again")
	b.Shows(b.Upload("/verify", nil, pagetest.File{Field: "file", Name: "same.txt.sig", Content: string(signature)}, pagetest.File{Field: "original", Name: "same.txt", Content: "two"}), "Signature invalid")
	b.Shows(b.Upload("/verify", nil, pagetest.File{Field: "file", Name: "plain.pdf", Content: string(tamgatest.PDFOf(2000))}), `<h1>No signature in the file</h1>`, "plain.pdf", "Is it in a file of its own (.sig)?")
	second := b.Shows(b.Upload("/sign", map[string]string{"certificate": "4", "format": "countersign", "level": "stamped"}, pagetest.File{Field: "file", Name: "same.txt.sig", Content: string(signature)}), ">Signed<", `>same.txt.sig</a>`)
	countersigned := b.Shows(b.Get(b.Find(second, pagetest.Result)[1]))
	b.Shows(b.Upload("/verify", nil, pagetest.File{Field: "file", Name: "same.txt.sig", Content: countersigned.Text}, pagetest.File{Field: "original", Name: "same.txt", Content: "one"}), "Signature valid", "Signature 1.1")
	t.Run("cosign", func(t *testing.T) {
		b := &pagetest.Browser{TB: t, Site: s, Client: b.Client, Header: http.Header{"Accept-Language": {"en"}}}
		sign := func(fields map[string]string, files ...pagetest.File) pagetest.Page {
			fields["certificate"] = "3"
			return b.Shows(b.Upload("/sign", fields, files...))
		}
		verify := func(signature, document string) {
			t.Helper()
			b.Shows(b.Upload("/verify", nil, pagetest.File{Field: "file", Name: "same.txt.sig", Content: signature}, pagetest.File{Field: "original", Name: "same.txt", Content: document}), "Signature valid", "2 of 2 valid")
		}
		detached, one := pagetest.File{Field: "file", Name: "same.txt.sig", Content: string(signature)}, pagetest.File{Field: "file", Name: "same.txt", Content: "one"}
		for _, files := range [][]pagetest.File{{detached, one}, {one, detached}, {detached, {Field: "original", Name: "same.txt", Content: "one"}}, {detached, {Field: "original", Name: "other.txt", Content: "one"}}} {
			for _, format := range []string{"automatic", "cosign"} {
				p := sign(map[string]string{"format": format}, files...)
				if n := strings.Count(p.Text, ">Signed<"); n != 1 || !strings.Contains(p.Text, ">same.txt.sig</a>") {
					t.Fatalf("%d documents are signed, want the signature alone:\n%s", n, p.Text)
				}
				verify(b.Shows(b.Get(b.Find(p, pagetest.Result)[1])).Text, "one")
			}
		}
		// Several signatures with their documents, and a file of its own.
		two := b.Shows(b.Upload("/sign", map[string]string{"certificate": "1", "level": "plain"}, pagetest.File{Field: "file", Name: "two.txt", Content: "two"}))
		second := b.Shows(b.Get(b.Find(two, pagetest.Result)[1])).Text
		p := sign(map[string]string{}, detached, one, pagetest.File{Field: "file", Name: "two.txt.P7S", Content: second}, pagetest.File{Field: "original", Name: "two.txt", Content: "two"}, pagetest.File{Field: "file", Name: "own.txt", Content: "own"})
		for _, want := range []string{">same.txt.sig</a>", ">two.txt.P7S</a>", ">own.txt.sig</a>"} {
			if !strings.Contains(p.Text, want) {
				t.Errorf("no %s:\n%s", want, p.Text)
			}
		}
		if n := strings.Count(p.Text, ">Signed<"); n != 3 {
			t.Errorf("%d documents are signed, want 3", n)
		}
		z := b.Shows(b.Get(b.Find(p, pagetest.All)[1])).Text
		archive, err := zip.NewReader(strings.NewReader(z), int64(len(z)))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range archive.File {
			names = append(names, f.Name)
		}
		// Each signature has its document beside it, and a file says how to verify them.
		if got := strings.Join(names, "|"); got != "same.txt.sig|same.txt|two.txt.P7S|two.txt|own.txt.sig|own.txt|README.txt" {
			t.Errorf("the archive has %s", got)
		}
		readme, err := archive.Open("README.txt")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(readme)
		for _, want := range []string{"- own.txt.sig – a detached signature of the file \"own.txt\"", "openssl cms -verify -cades -binary -inform DER -in \"own.txt.sig\" -content \"own.txt\"", "pdfsig", "CryptoARM", "Kontur.Crypto", "Gosuslugi", b.Site.URL + "/verify"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("no %q in the file that says how to verify:\n%s", want, text)
			}
		}
		verify(b.Shows(b.Get(regexp.MustCompile(`href="([^"]*)">two.txt.P7S`).FindStringSubmatch(p.Text)[1])).Text, "two")
		// The signatures of a format of its own have no documents.
		if p := sign(map[string]string{"format": "cades"}, detached, one); strings.Count(p.Text, ">Signed<") != 2 {
			t.Errorf("%s", p.Text)
		}
		b.Is(b.Upload("/sign", map[string]string{"certificate": "3"}, one, pagetest.File{Field: "original", Name: "a.txt", Content: "a"}), 400, "choose the signature of this document too")
		b.Is(b.Upload("/sign", map[string]string{"certificate": "3"}, detached, one, pagetest.File{Field: "original", Name: "a.txt", Content: "a"}), 400, "several documents fit this signature")
		b.Is(b.Upload("/sign", map[string]string{"certificate": "3"}, pagetest.File{Field: "original", Name: "a.txt", Content: "a"}), 400, "choose at least one file")
		ru := &pagetest.Browser{TB: t, Site: s, Client: b.Client, Header: http.Header{"Accept-Language": {"ru"}}}
		ru.Shows(ru.Get("/sign"), "Документ, к которому относится подпись")
		ru.Is(ru.Upload("/sign", map[string]string{"certificate": "3"}, detached), 400, "Подпись в отдельном файле: выберите вместе с ней подписанный документ.")
		ru.Is(ru.Upload("/sign", map[string]string{"certificate": "3"}, detached, pagetest.File{Field: "file", Name: "same.txt", Content: "two"}), 400, "Подпись относится к другому документу.")
	})
	t.Run("stamp", func(t *testing.T) {
		b := &pagetest.Browser{TB: t, Site: s, Client: b.Client, Header: http.Header{"Accept-Language": {"en"}}}
		fields := map[string]string{
			"certificate": "1", "pin": "", "stamp": "yes", "stamp_page": "1", "stamp_left": "20", "stamp_bottom": "30", "stamp_width": "90",
		}
		p := b.Shows(b.Upload("/sign", fields, pagetest.File{Field: "file", Name: "a.pdf", Content: pdf}), ">Signed<")
		signed := b.Shows(b.Get(b.Find(p, pagetest.Result)[1]))
		if text := judge.PDFViewers(t).Text([]byte(signed.Text)); !strings.Contains(text, "Demo User") {
			t.Errorf("the document has no visible stamp:\n%s", text)
		}
		again := b.Shows(b.Get(b.Find(p, regexp.MustCompile(`href="(/sign\?[^"]+)"`))[1]), `value="90"`, `name="stamp" value="yes" checked`)
		if strings.Contains(again.At.String(), "pin") {
			t.Errorf("the address has the PIN: %s", again.At)
		}
		b.Is(b.Upload("/sign", fields, pagetest.File{Field: "file", Name: "a.txt", Content: "text"}), 400, "only PDF signatures have a visible stamp")
		fields["stamp_width"] = "0"
		b.Is(b.Upload("/sign", fields, pagetest.File{Field: "file", Name: "a.pdf", Content: pdf}), 400, "width must be a whole number from 10")
		fields["stamp_width"], fields["stamp_page"] = "90", "999"
		b.Is(b.Upload("/sign", fields, pagetest.File{Field: "file", Name: "a.pdf", Content: pdf}), 400)
	})
	t.Run("reports", func(t *testing.T) {
		files := []pagetest.File{{Field: "file", Name: "same.txt.sig", Content: string(signature)}, {Field: "original", Name: "same.txt", Content: "two"}}
		b := &pagetest.Browser{TB: t, Site: s, Client: b.Client, Header: http.Header{"Accept-Language": {"ru"}}}
		b.Shows(b.Upload("/verify", nil, files[0]), "Подпись не подтверждена: нужен сам документ", "Судя по имени, это «same.txt»")
		found := b.Shows(b.Upload("/verify", nil, files...), "Подпись недействительна: это другой документ", "Это не тот документ, который подписан.", "запросите исходный документ")
		reports := url.Values{"reports": {html.UnescapeString(b.Find(found, regexp.MustCompile(`name="reports" value="([^"]+)"`))[1])}}
		reportAs := func(answer string) pagetest.Page {
			reports.Set("answer", answer)
			return b.Post("/verify/report", reports)
		}
		p := b.Shows(reportAs("json.0"))
		var report struct {
			File, Verdict string
			Signatures    []struct {
				Verdict  string
				Signer   struct{ Subject string }
				Findings []struct{ Indication, Text string }
			}
		}
		if err := json.Unmarshal([]byte(p.Text), &report); err != nil || !strings.HasPrefix(p.Header.Get("Content-Disposition"), "attachment") {
			t.Fatalf("%v, %v", err, p.Header)
		}
		if n := report.Signatures; report.Verdict != "failed" || len(n) != 1 || n[0].Signer.Subject != "CN=Demo User,C=RU" || len(n[0].Findings) == 0 || n[0].Findings[0].Indication != "HASH_FAILURE" {
			t.Errorf("%s", p.Text)
		}
		p = b.Shows(reportAs("pdf.0"))
		text := judge.PDFViewers(t).Text([]byte(p.Text))
		for _, want := range []string{"Отчёт о проверке электронной подписи", "Подпись недействительна: это другой документ", "CN=Demo User", "same.txt.sig"} {
			if !strings.Contains(text, want) {
				t.Errorf("the report has no %q:\n%s", want, text)
			}
		}
		b.Shows(reportAs("csv"), "same.txt.sig;Подпись недействительна;это другой документ;Demo User;")
		if p := b.Shows(reportAs("zip")); !strings.HasPrefix(p.Text, "PK") {
			t.Errorf("%.20q is no archive", p.Text)
		}
		for _, answer := range []string{"json.1", "json.-1", "pdf.x", "exe.0", ""} {
			b.Is(reportAs(answer), 400)
		}
		forged := []byte(reports.Get("reports"))
		forged[len(forged)/2] ^= 1
		b.Is(b.Post("/verify/report", url.Values{"reports": {string(forged)}, "answer": {"json.0"}}), 400, "повреждены")
	})

	download := b.Shows(b.Get(b.Find(p, pagetest.Result)[1]))
	if d := download.Header.Get("Content-Disposition"); !strings.HasPrefix(d, "attachment") || download.Header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("an untrusted document is shown in the browser: %v", download.Header)
	}
	t.Run("another person", func(t *testing.T) {
		other := pagetest.New(t, s)
		other.Shows(other.SignIn("/start", s.Dev.Operator.Login, s.Dev.Operator.Password), "You can soon sign for the first time", "Request a certificate")
		other.Is(other.Get(p.At.String()), 404, "You have no operation with this identifier.<")
		other.Is(other.Get(b.Find(p, pagetest.Result)[1]), 404)
		other.Is(other.Get(b.Find(p, pagetest.All)[1]), 404)
	})
	t.Run("refusals", func(t *testing.T) {
		b := &pagetest.Browser{TB: t, Site: s, Client: b.Client, Header: http.Header{"Accept-Language": {"ru"}}}
		b.Is(b.Upload("/sign", map[string]string{"certificate": "1"}), 400, "Файл не выбран")
		b.Is(b.Get("/reference/none"), 404, "Такой операции в интерфейсе нет")
		// The form may be sent again, and begins with the same choices, if nothing is signed.
		wrong := b.Upload("/sign", map[string]string{"certificate": "6", "pin": "wrong", "format": "cades"}, pagetest.File{Field: "file", Name: "a.txt", Content: "a"})
		b.Is(wrong, 400, "ПИН-код неверен. Осталось 9 попыток, потом ключ заблокируется.", `<div data-again="pin">`, "уже загружены", `href="/sign?certificate=6&amp;format=cades&amp;stored=`)
		kept := b.Shows(b.Get(b.Find(wrong, regexp.MustCompile(`href="(/sign\?[^"]*stored=[^"]+)"`))[1]), "> a.txt</label>")
		stored := b.Find(kept, regexp.MustCompile(`name="stored" value="([0-9a-f-]{36})" checked>`))[1]
		b.Shows(b.Upload("/sign", map[string]string{"certificate": "1", "format": "cades", "stored": stored}), ">a.txt.sig</a>")
		b.Is(b.Upload("/sign", map[string]string{"certificate": "6", "format": "xades"}, pagetest.File{Field: "file", Name: "a.txt", Content: "a"}), 400, "Выберите файлы заново", `href="/sign?certificate=6&amp;format=xades"`)
		b.Is(b.Upload("/sign", map[string]string{"certificate": "6"}, pagetest.File{Field: "file", Name: "a.pdf", Content: pdf}, pagetest.File{Field: "file", Name: "a.txt", Content: "a"}), 400, `<div data-again="pin">`, "Ничего не подписано. Неподписанные файлы уже загружены")
		b.Is(b.Upload("/sign", map[string]string{"certificate": "1", "format": "office"}, pagetest.File{Field: "file", Name: "a.txt", Content: "a"}), 400, "Файл не является документом Office")
		// What is signed of several files, and what is not.
		one := map[string]string{"certificate": "1"}
		b.Shows(b.Upload("/sign", one, pagetest.File{Field: "file", Name: "a.txt", Content: "a"}, pagetest.File{Field: "file", Name: "<b>.pdf", Content: "no PDF"}, pagetest.File{Field: "file", Name: "c.xml", Content: "<a/>"}),
			"<h1>Подписано 2 документа, не подписан 1 документ</h1>", "Файл не является документом PDF или повреждён.", ">a.txt.sig</a>", ">c (подписан).xml</a>")
		// A format that cannot be used signs nothing, and the refusal is about its files.
		stamped := map[string]string{"certificate": "1", "stamp": "yes", "stamp_page": "9", "stamp_left": "20", "stamp_bottom": "30", "stamp_width": "90"}
		b.Is(b.Upload("/sign", stamped, pagetest.File{Field: "file", Name: "a.pdf", Content: pdf}, pagetest.File{Field: "file", Name: "b.txt", Content: "b"}, pagetest.File{Field: "file", Name: "c.pdf", Content: pdf}), 400,
			"Ничего не подписано", `<div data-again="">`, "<p>Это касается файлов:</p>\n<ul class=\"dots\">\n<li>a.pdf</li>\n<li>c.pdf</li>\n</ul>")
		b.Is(b.Upload("/sign", one, pagetest.File{Field: "file", Name: "a.txt", Content: "a"}, pagetest.File{Field: "file", Name: "b.txt", Content: ""}), 400, "Пустой файл", "<li>b.txt</li>\n</ul>")
		b.Is(b.Upload("/sign", one, pagetest.File{Field: "file", Name: "a.txt", Content: "a"}, pagetest.File{Field: "file", Name: "b\u202etxt.exe", Content: "b"}), 400, "Имя файла: символ U&#43;202E не допускается", "<li>b txt.exe</li>\n</ul>")
		b.Is(b.Upload("/sign", map[string]string{"certificate": "1", "format": "office", "level": "long"}, pagetest.File{Field: "file", Name: "a.docx", Content: "a"}), 400, "Так подписать этот файл нельзя")
		b.Is(b.Upload("/sign", map[string]string{"certificate": "1", "level": "long"}, pagetest.File{Field: "file", Name: "a.txt", Content: "a"}, pagetest.File{Field: "file", Name: "b.docx", Content: "b"}, pagetest.File{Field: "file", Name: "c.docx", Content: "c"}), 400, "<p>Это касается файлов:</p>\n<ul class=\"dots\">\n<li>b.docx</li>\n<li>c.docx</li>\n</ul>")
		beside := b.Shows(b.Get(b.Find(b.Shows(b.Upload("/sign", one, pagetest.File{Field: "file", Name: "a.txt", Content: "a"})), pagetest.Result)[1])).Text
		b.Is(b.Upload("/sign", one, pagetest.File{Field: "file", Name: "a.txt.sig", Content: beside}, pagetest.File{Field: "file", Name: "b.txt", Content: "b"}), 400, "<p>Это касается файлов:</p>\n<ul class=\"dots\">\n<li>a.txt.sig</li>\n</ul>")
		b.Shows(b.Upload("/verify", nil, pagetest.File{Field: "file", Name: "a.txt", Content: "a"}), "<h1>В файле нет подписи</h1>", "отдельном файле")
		b.Shows(b.Upload("/verify", nil, pagetest.File{Field: "file", Name: "a.txt", Content: ""}), "<h1>Файл пуст</h1>")
		b.Is(b.Upload("/verify", nil), 400, "Файл не выбран")
		b.Is(b.Get("/signed?operation=1"), 404, "Такой операции у вас нет.<")
		many := make([]pagetest.File, 201)
		for i := range many {
			many[i] = pagetest.File{Field: "file", Name: "a.txt", Content: "a"}
		}
		b.Is(b.Upload("/sign", nil, many...), 400, `<div data-again="">`)
	})
	t.Run("language", func(t *testing.T) {
		b := &pagetest.Browser{TB: t, Site: s, Client: b.Client, Header: http.Header{"Accept-Language": {"en"}}}
		back := b.Shows(b.Post("/language", url.Values{"language": {"ru"}, "to": {"/start"}}), "Вашего ответа ничего не ждёт", `lang="ru"`)
		if back.At.Path != "/start" {
			t.Errorf("the switch leads to %s", back.At)
		}
		b.Shows(b.Post("/language", url.Values{"language": {"en"}, "to": {"https://evil.example/"}}), "Nothing waits for your answer")
	})
	session := b.Session()
	b.Shows(b.Post("/sign-out", nil), "You have signed out.", `href="/sign-in"`)
	b.Client.Jar.SetCookies(b.Address(), []*http.Cookie{session})
	b.Shows(b.Get("/start"), `name="ticket"`) // the old cookie opens nothing
}

// TestSessions checks what begins, keeps and ends a session.
func TestSessions(t *testing.T) {
	s := tamgatest.Start(t)
	t.Run("other sites", func(t *testing.T) {
		b := pagetest.New(t, s)
		b.SignIn("/start", s.Dev.User.Login, s.Dev.User.Password)
		b.Header.Set("Sec-Fetch-Site", "cross-site")
		b.Is(b.Post("/sign-out", nil), 403, "sent by another site")
		b.Is(b.Upload("/sign", map[string]string{"certificate": "1"}, pagetest.File{Field: "file", Name: "a.txt", Content: "a"}), 403)
		b.Header.Del("Sec-Fetch-Site")
		b.Header.Set("Origin", "https://evil.example")
		b.Is(b.Post("/sign-out", nil), 403)
		b.Header.Set("Origin", s.URL) // of a browser without Sec-Fetch-Site
		b.Shows(b.Post("/language", url.Values{"language": {"en"}, "to": {"/start"}}), "Nothing waits for your answer")
		b.Header.Del("Origin")
		if p := b.Shows(b.Get("/start"), "Nothing waits for your answer"); p.Header.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("browsers hide the origin of our own forms: %v", p.Header)
		}
	})
	t.Run("frames and scripts", func(t *testing.T) {
		b := pagetest.New(t, s)
		for _, page := range []string{"/", "/verify"} {
			p := b.Shows(b.Get(page))
			policy := p.Header.Get("Content-Security-Policy")
			if !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") || p.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %v", page, p.Header)
			}
		}
	})
	t.Run("pages for everybody", func(t *testing.T) {
		b := pagetest.New(t, s)
		b.SignIn("/start", s.Dev.Operator.Login, s.Dev.Operator.Password)
		for _, page := range []string{"/", "/verify", "/reference", "/reference/GetUsers"} {
			b.Shows(b.Get(page), `action="/sign-out"`, `href="/certificates"`, `href="/operator"`)
		}
	})
	t.Run("addresses without a page", func(t *testing.T) {
		b := pagetest.New(t, s)
		b.SignIn("/start", s.Dev.User.Login, s.Dev.User.Password)
		b.Is(b.Get("/Start"), 404, `{"Message":"object_not_found"`) // a program
		b.Header.Set("Accept", "text/html,*/*;q=0.8")
		b.Is(b.Get("/Start"), 404, "There is no page at this address", `<footer class="foot">`, `action="/sign-out"`)
		b.Is(b.Get("/%2fevil.example/do/x"), 404)
		b.Is(b.Get("/sign-out"), 404, "There is no page at this address")
		b.Is(b.Get("/STS/oauth/login"), 404, "There is no page at this address")
		if p := b.Shows(b.Get("/devices/do/contact"), "Ways to confirm"); p.At.Path != "/devices" { // the address of a form
			t.Errorf("the address of a form leads to %s", p.At)
		}
		b.Is(b.Post("/nothing", nil), 404, `{"Message":"object_not_found"`)
		b.Header.Set("Accept-Language", "ru")
		b.Is(b.Get("/nothing/"), 404, "По этому адресу страницы нет")
		b.Client.Jar = nil
		b.Is(b.Get("/nothing"), 404, "По этому адресу страницы нет", `href="/sign-in"`)
	})
	t.Run("cookie of another", func(t *testing.T) {
		b := pagetest.New(t, s)
		b.SignIn("/start", s.Dev.User.Login, s.Dev.User.Password)
		c := b.Session()
		for _, value := range []string{c.Value[:len(c.Value)-2] + "AA", "", strings.Repeat("A", 5000), "{}"} {
			other := pagetest.New(t, s)
			other.Client.Jar.SetCookies(b.Address(), []*http.Cookie{{Name: c.Name, Value: value, Path: "/"}})
			other.Shows(other.Get("/start"), `name="ticket"`)
		}
		// A page knows people by their sessions only, and the interface by their tokens only.
		other := pagetest.New(t, s)
		other.Header.Set("Authorization", "Bearer "+s.Token())
		other.Client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		if p := other.Get("/start"); p.Status != 303 || p.Header.Get("Location") != "/sign-in?to=%2Fstart" {
			t.Errorf("with a token of the interface: %d, %v", p.Status, p.Header)
		}
		b.Is(b.Get(s.Dev.BaseURL+"/api/certificates"), 401)
	})
	t.Run("sign-in of another window", func(t *testing.T) {
		b := pagetest.New(t, s)
		b.Get("/sign-in")
		b.Is(b.Get("/signed-in?code=stolen&state=guessed"), 403, "This is not allowed", `<a class="btn" href="/sign-in">Sign in</a>`)
		b.Is(b.Get("/signed-in"), 403)
	})
	t.Run("locked", func(t *testing.T) {
		b := pagetest.New(t, s)
		b.SignIn("/start", s.Dev.Operator.Login, s.Dev.Operator.Password)
		s.Command("user", "lock", s.Dev.Operator.Login)
		b.Shows(b.Get("/verify"), `href="/sign-in"`) // its frame knows that the session has ended
		b.Shows(b.Get("/start"), `name="ticket"`)
	})
	t.Run("buttons to try", func(t *testing.T) {
		b := pagetest.New(t, s)
		b.Is(b.Post("/try", url.Values{"login": {"demo"}, "token": {"guessed"}}), 403, "serve --dev printed")
		_, token, _ := strings.Cut(s.Dev.StartURL, "?try=")
		b.Shows(b.Get(s.Dev.StartURL), "Sign in as demo")
		foreign, err := http.NewRequest("GET", s.Dev.StartURL, nil)
		if err != nil {
			t.Fatal(err)
		}
		foreign.Host = "evil.example" // a name of another site that leads to this machine
		answer, err := b.Client.Do(foreign)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("under the name of another site the buttons are answered with %d", answer.StatusCode)
		}
		b.Shows(b.Post("/try", url.Values{"login": {"demo"}, "token": {token}}), "Nothing waits for your answer")
		b.Is(b.Post("/try", url.Values{"login": {"unknown"}, "token": {token}}), 403)
	})
}
