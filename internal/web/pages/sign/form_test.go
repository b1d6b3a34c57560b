// SPDX-License-Identifier: Apache-2.0

package sign_test

import (
	"bytes"
	"html"
	"image"
	"image/png"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestForm checks what a person sees before signing: the certificate that was used last comes first, a PIN says how many
// attempts it has left, and the page says how long files are stored.
func TestForm(t *testing.T) {
	t.Parallel()
	s := tamgatest.Start(t, "--set", "documents.temporary_life=3h")
	b := pagetest.New(t, s)
	b.Header.Set("Accept-Language", "ru")
	p := b.SignIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	b.Shows(p, "Файлы хранятся 3\u00a0ч", "осталось 10 попыток, потом ключ заблокируется")
	file := pagetest.File{Field: "file", Name: "a.txt", Content: "a"}
	b.Is(b.Upload("/sign", map[string]string{"certificate": "6", "pin": "wrong"}, file), 400, "Осталось 9 попыток, потом ключ заблокируется.")
	b.Shows(b.Get("/sign"), "осталось 9 попыток")
	b.Shows(b.Upload("/sign", map[string]string{"certificate": "3"}, file), ">Подписан<")
	p = b.Shows(b.Get("/sign"), `name="certificate" value="3" checked`)
	if first, other := strings.Index(p.Text, `name="certificate" value="3"`), strings.Index(p.Text, `name="certificate" value="1"`); first > other {
		t.Error("the certificate that was used last is not the first")
	}
	p = b.Shows(b.Get("/sign?certificate=1"), `name="certificate" value="1" checked`)
	if strings.Contains(p.Text, "<details open><summary>Дополнительно") {
		t.Error("options are open that were not chosen")
	}
	b.Shows(b.Get("/sign?format=cades"), "<details open><summary>Дополнительно")
}

// TestZoneOfStamp checks that the mark in a PDF has its time in the zone of the installation, and names it.
func TestZoneOfStamp(t *testing.T) {
	t.Parallel()
	s := tamgatest.Start(t, "--set", "messages.time_zone=Europe/Moscow")
	b := pagetest.New(t, s)
	b.SignIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	fields := map[string]string{"certificate": "1", "stamp": "yes", "stamp_page": "1", "stamp_left": "20", "stamp_bottom": "30", "stamp_width": "120"}
	p := b.Shows(b.Upload("/sign", fields, pagetest.File{Field: "file", Name: "a.pdf", Content: string(tamgatest.PDFOf(2000))}))
	signed := b.Shows(b.Get(b.Find(p, pagetest.Result)[1])).Text
	if text := judge.PDFViewers(t).Text([]byte(signed)); !strings.Contains(text, "(МСК)") {
		t.Errorf("the mark names no zone:\n%s", text)
	}
}

// TestMarkOfForm checks that the form shows the mark of each certificate as the document will have it, and that the server
// finds its place.
func TestMarkOfForm(t *testing.T) {
	t.Parallel()
	logo := filepath.Join(t.TempDir(), "logo.png")
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 40, 40))); err != nil {
		t.Fatal(err)
	}
	tamgatest.WriteFile(t, logo, picture.String())
	s := tamgatest.Start(t, "--set", "messages.time_zone=Europe/Moscow", "--set", "pdf.logo="+logo)
	b := pagetest.New(t, s)
	p := b.SignIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	viewers := judge.PDFViewers(t)
	var pictures []string
	for _, form := range []string{"full", "compact"} {
		at := b.Find(p, regexp.MustCompile(`src="(/sign/marks/1/`+form+`)"`))[1]
		svg := b.Shows(b.Get(at))
		if svg.Header.Get("Content-Type") != "image/svg+xml" || !strings.Contains(p.Header.Get("Content-Security-Policy"), "/sign/marks/;") {
			t.Errorf("%s: %v, %v", at, svg.Header, p.Header)
		}
		if pictures = append(pictures, svg.Text); !strings.Contains(svg.Text, "<image ") {
			t.Errorf("the %s mark has no logo", form)
		}
	}
	b.Is(b.Get("/sign/marks/1/small"), 404, "this form of a mark")
	b.Is(b.Get("/sign/marks/99/full"), 400, "no certificate of this number")
	text := regexp.MustCompile(`<text [^>]*>([^<]*)</text>`)
	for i, fields := range []map[string]string{
		{"stamp_form": "full", "stamp_where": "auto"},
		{"stamp_form": "compact", "stamp_where": "word", "stamp_word": "Page"},
		{"stamp_form": "full", "stamp_where": "hand", "stamp_page": "1", "stamp_left": "20", "stamp_bottom": "30", "stamp_width": "70"},
	} {
		fields["certificate"], fields["stamp"] = "1", "yes"
		p := b.Shows(b.Upload("/sign", fields, pagetest.File{Field: "file", Name: "a.pdf", Content: string(tamgatest.PDFOf(2000))}))
		said := viewers.Text([]byte(b.Shows(b.Get(b.Find(p, pagetest.Result)[1])).Text))
		for _, m := range text.FindAllStringSubmatch(pictures[i%2], -1) {
			want := html.UnescapeString(m[1])
			if regexp.MustCompile(`^\d\d\.\d\d\.\d{4} \d\d:\d\d `).MatchString(want) {
				continue // the moment of the signature
			}
			if !strings.Contains(said, strings.TrimSpace(want)) {
				t.Errorf("%v: the document has no %q:\n%s", fields, want, said)
			}
		}
	}
	for want, fields := range map[string]map[string]string{
		"this form of a mark":           {"stamp_form": "small"},
		"this way to find a place":      {"stamp_where": "above"},
		"must have 1 to 100 characters": {"stamp_where": "word"},
		"must be a whole number":        {"stamp_where": "hand", "stamp_page": "0"},
	} {
		fields["certificate"], fields["stamp"] = "1", "yes"
		b.Is(b.Upload("/sign", fields, pagetest.File{Field: "file", Name: "a.pdf", Content: string(tamgatest.PDFOf(2000))}), 400, want)
	}
}
