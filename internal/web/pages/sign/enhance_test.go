// SPDX-License-Identifier: Apache-2.0

package sign_test

import (
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestEnhanceOnPages raises a PDF and a detached signature on a page, which the page of the verdict leads to, and verifies
// the results there.
func TestEnhanceOnPages(t *testing.T) {
	t.Parallel()
	b := pagetest.New(t, tamgatest.StartIn(t, t.TempDir()))
	b.Header.Set("Accept-Language", "ru")
	b.SignIn("/start", b.Site.Dev.User.Login, b.Site.Dev.User.Password)
	file := func(name, content string) pagetest.File {
		return pagetest.File{Field: "file", Name: name, Content: content}
	}
	sign := func(name, content string) string {
		p := b.Shows(b.Upload("/sign", map[string]string{"certificate": "1", "format": "automatic"}, file(name, content)))
		return b.Shows(b.Get(b.Find(p, pagetest.Result)[1])).Text
	}
	b.Shows(b.Get("/enhance"), "Сохранить подписи действительными", `value="archive"`, `value="stamped"`)
	raise := func(level string, files ...pagetest.File) pagetest.Page {
		return b.Upload("/enhance", map[string]string{"level": level}, files...)
	}
	pdf := file("договор.pdf", sign("договор.pdf", string(tamgatest.PDFOf(2000))))
	b.Shows(b.Upload("/verify", nil, pdf), "Подпись действительна", `href="/enhance"`, "без штампа времени")
	got := b.Shows(raise("archive", pdf))
	if !strings.HasPrefix(got.Text, pdf.Content) || !strings.Contains(got.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("%d bytes, %s", len(got.Text), got.Header.Get("Content-Disposition"))
	}
	b.Shows(b.Upload("/verify", nil, file("a.pdf", got.Text)), "Подпись действительна", "архивным штампом времени")
	again := b.Shows(raise("archive", file("a.pdf", got.Text)))
	if len(again.Text) <= len(got.Text) {
		t.Error("the archive time stamp was not renewed")
	}
	letter := file("письмо.txt", "Привет")
	signature := file("письмо.txt.sig", sign(letter.Name, letter.Content))
	for _, files := range [][]pagetest.File{{signature}, {letter, signature}} {
		p := b.Shows(raise("archive", files...))
		b.Shows(b.Upload("/verify", nil, letter, file("письмо.txt.sig", p.Text)), "Подпись действительна", "архивным штампом времени")
	}
	b.Is(raise("archive", letter), 400, "не подписан")
	b.Is(raise("archive"), 400)
	b.Is(raise("plain", pdf), 400)
	b.Is(raise("archive", pdf, letter, signature), 400)
	b.Is(raise("archive", file("другое.txt", "Другое"), signature), 400)
	// Visitors do not see it, nor does the verdict lead them there.
	visitor := pagetest.New(t, b.Site)
	if p := visitor.Shows(visitor.Upload("/verify", nil, pdf)); strings.Contains(p.Text, `href="/enhance"`) {
		t.Error("a visitor is led to the form")
	}
	if p := visitor.Get("/enhance"); strings.Contains(p.Text, `value="archive"`) {
		t.Error("a visitor sees the form")
	}
}
