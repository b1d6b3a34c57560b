// SPDX-License-Identifier: Apache-2.0

package sign_test

import (
	"html"
	"regexp"
	"strings"
	"testing"

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
