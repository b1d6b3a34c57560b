// SPDX-License-Identifier: Apache-2.0

package sign_test

import (
	"bytes"
	"html"
	"image/png"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// reportsField is the field with the reports of a page.
var reportsField = regexp.MustCompile(`name="reports" value="([^"]+)"`)

// TestVerifyMany verifies several files at once: pairs by name and by digest, a signature whose document is missing, a
// document without a signature, an empty file, and a PDF that was changed later, whose signed version is downloaded.
func TestVerifyMany(t *testing.T) {
	t.Parallel()
	b := pagetest.New(t, tamgatest.Start(t))
	b.Header.Set("Accept-Language", "ru")
	b.SignIn("/start", b.Site.Dev.User.Login, b.Site.Dev.User.Password)
	sign := func(name, content string) string {
		p := b.Shows(b.Upload("/sign", map[string]string{"certificate": "1"}, pagetest.File{Field: "file", Name: name, Content: content}))
		return b.Shows(b.Get(b.Find(p, pagetest.Result)[1])).Text
	}
	pdf := sign("a.pdf", string(tamgatest.PDFOf(2000)))
	file := func(name, content string) pagetest.File {
		return pagetest.File{Field: "file", Name: name, Content: content}
	}
	files := []pagetest.File{
		file("one.txt.sig", sign("one.txt", "one")), file("two.txt.sig", sign("two.txt", "two")), file("three.txt.sig", sign("three.txt", "three")),
		file("one.txt", "one"), file("another name.txt", "two"), file("plain.txt", "plain"), file("empty.txt", ""), file("good.pdf", pdf), file("changed.pdf", tamgatest.ChangedLater(t, pdf)),
	}
	p := b.Shows(b.Upload("/verify", nil, files...), "<h1>Проверено 7 файлов: с 4 есть трудности</h1>", "Недействительны 1", "Не подтверждены 3", "Действительны 3",
		`one.txt.sig + one.txt</a>`, `two.txt.sig + another name.txt</a>`, "Судя по имени, это «three.txt»", "В файле нет подписи", "Файл пуст", "Подпись недействительна: документ изменён")
	if first, last := strings.Index(p.Text, "changed.pdf</a>"), strings.Index(p.Text, "good.pdf</a>"); first > last {
		t.Error("what needs attention is not first")
	}
	table := b.Shows(b.Post("/verify/report", map[string][]string{"reports": {html.UnescapeString(b.Find(p, reportsField)[1])}, "answer": {"csv"}}))
	if n := strings.Count(table.Text, "\n"); n != 8 {
		t.Errorf("the table has %d lines:\n%s", n, table.Text)
	}

	p = b.Shows(b.Upload("/verify", nil, files[8]), "<h1>Подпись недействительна: документ изменён</h1>", "Скачать подписанную версию", `name="answer" value="signed.0"`)
	if version := b.Shows(b.Upload("/verify", map[string]string{"answer": "signed.0"}, files[8])); version.Text != pdf {
		t.Errorf("the signed version has %d bytes, want %d", len(version.Text), len(pdf))
	} else if d := version.Header.Get("Content-Disposition"); !strings.HasPrefix(d, "attachment") {
		t.Errorf("the signed version is shown in the browser: %s", d)
	}
	b.Is(b.Upload("/verify", map[string]string{"answer": "signed.0"}, files[7]), 400, "нет другой подписанной версии")
	b.Is(b.Upload("/verify", map[string]string{"answer": "signed.7"}, files[8]), 400)
	b.Shows(b.Upload("/verify", nil, files[7]), "<h1>Подпись действительна</h1>", "После подписания документ не изменялся.", "Как это было", "Штампа времени нет")
}

// lastPage returns the picture of the last page of a PDF as PNG.
func lastPage(t *testing.T, pdf string) []byte {
	var picture bytes.Buffer
	if err := png.Encode(&picture, judge.PDFViewers(t).Picture([]byte(pdf), max(1, strings.Count(pdf, "/Type /Page\n")), 150)); err != nil {
		t.Fatal(err)
	}
	return picture.Bytes()
}

// keepField is the button that stores a report.
var keepField = regexp.MustCompile(`formaction="/verify/keep" name="answer" value="0"`)

// TestStoredReport stores a report under a number and reads its QR code, which leads to what was verified. A number
// alone does not, visitors store nothing, and only the person who stored a report deletes it.
func TestStoredReport(t *testing.T) {
	t.Parallel()
	b := pagetest.New(t, tamgatest.Start(t))
	b.Header.Set("Accept-Language", "ru")
	files := []pagetest.File{{Field: "file", Name: "Договор №1.txt", Content: "no signature"}}
	if p := b.Shows(b.Upload("/verify", nil, files...), "В файле нет подписи"); keepField.MatchString(p.Text) {
		t.Error("a visitor may store a report")
	}
	b.SignIn("/start", b.Site.Dev.User.Login, b.Site.Dev.User.Password)
	p := b.Shows(b.Upload("/sign", map[string]string{"certificate": "1"}, pagetest.File{Field: "file", Name: "Договор №1.pdf", Content: string(tamgatest.PDFOf(2000))}))
	signed := b.Shows(b.Get(b.Find(p, pagetest.Result)[1])).Text
	p = b.Shows(b.Upload("/verify", nil, pagetest.File{Field: "file", Name: "Договор №1.pdf", Content: signed}), "Сохранить под номером")
	reports := html.UnescapeString(b.Find(p, reportsField)[1])
	p = b.Shows(b.Post("/verify/keep", map[string][]string{"reports": {reports}, "answer": {"0"}}), "Отчёт сохранён.", "Подпись действительна", "Договор №1.pdf", "Хранится до", "Удалить отчёт")
	number := b.Find(p, regexp.MustCompile(`<h1>Отчёт о проверке № ([0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{4})</h1>`))[1]
	address := html.UnescapeString(b.Find(p, regexp.MustCompile(`<code>(http[^<]*/r/[^<]*)</code>`))[1])
	again := html.UnescapeString(b.Find(p, reportsField)[1])

	pdf := b.Shows(b.Post("/verify/report", map[string][]string{"reports": {again}, "answer": {"pdf.0"}})).Text
	viewers := judge.PDFViewers(t)
	for _, want := range []string{"№ " + number, "Подпись действительна", "Документ не изменялся", "Demo User", "Самого документа на сервисе нет"} {
		if text := strings.Join(strings.Fields(viewers.Text([]byte(pdf))), " "); !strings.Contains(text, want) {
			t.Errorf("the report has no %q:\n%s", want, text)
		}
	}
	if code := judge.ZBar(t).Read(lastPage(t, pdf), "png"); code != address {
		t.Errorf("the code of the report is %q, want %q", code, address)
	}
	json := b.Shows(b.Post("/verify/report", map[string][]string{"reports": {again}, "answer": {"json.0"}}))
	if !strings.Contains(json.Text, `"number": "`+number+`"`) {
		t.Errorf("the JSON report has no number:\n%s", json.Text)
	}
	b.Shows(b.Get("/verify/reports"), number, "Договор №1.pdf", "действительна")

	visitor := pagetest.New(t, b.Site)
	visitor.Header.Set("Accept-Language", "ru")
	at := strings.TrimPrefix(address, b.Site.URL)
	found := visitor.Shows(visitor.Get(at), number, "Подпись действительна", "Договор №1.pdf", "С тех пор проверка не повторялась")
	if strings.Contains(found.Text, "Удалить отчёт") {
		t.Error("a visitor may delete a report")
	}
	check := at[strings.Index(at, "=")+1:]
	visitor.Shows(visitor.Get("/r?number="+strings.ToLower(strings.ReplaceAll(number, "-", "+"))+"&check="+check), "Подпись действительна")
	visitor.Shows(visitor.Get("/r?number=12&check="+check), "Номер отчёта состоит из 12 букв")
	for _, address := range []string{"/r/" + number, "/r/" + number + "?check=0123456789", "/r/2611-0000-0000?check=" + check} {
		if p := visitor.Shows(visitor.Get(address), "Сверить отчёт"); strings.Contains(p.Text, "Договор") {
			t.Errorf("%s shows the report", address)
		}
	}
	visitor.Is(visitor.Post("/verify/keep", map[string][]string{"reports": {reports}, "answer": {"0"}}), 401, "Войдите")
	other := pagetest.New(t, b.Site)
	other.SignIn("/start", b.Site.Dev.Operator.Login, b.Site.Dev.Operator.Password)
	other.Is(other.Post("/verify/reports/"+number+"/do/delete", nil), 404)
	b.Is(b.Post("/verify/keep", map[string][]string{"reports": {reports}, "answer": {"1"}}), 400)
	b.Is(b.Post("/verify/keep", map[string][]string{"reports": {reports[1:]}, "answer": {"0"}}), 400)

	p = b.Shows(b.Upload("/verify", nil, files[0], pagetest.File{Field: "file", Name: "b.txt", Content: "b"}, pagetest.File{Field: "file", Name: "empty.txt", Content: ""}), "Сохранить все отчёты")
	b.Shows(b.Post("/verify/keep", map[string][]string{"reports": {html.UnescapeString(b.Find(p, reportsField)[1])}, "answer": {"all"}}), "Отчёт сохранён.", "Договор №1.txt", "b.txt", number)
	b.Shows(b.Post("/verify/reports/"+number+"/do/delete", nil), "Отчёт удалён.")
	visitor.Shows(visitor.Get(at), "Отчёта с таким номером и хэшем нет")
}
