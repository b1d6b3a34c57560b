// SPDX-License-Identifier: Apache-2.0

package print

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/signin"
	"tamga/internal/judge"
)

var form = signin.PasswordForm{
	Login: "ivan.petrov", DisplayName: "Пётр Ильич «Ёж» O'Neil & Söhne № 1", Password: "Kx7m-Qr4t-Zw9p",
	At: time.Date(2026, 11, 21, 12, 34, 56, 0, time.UTC),
}

// hostile has a display name and a login as attackers choose them.
var hostile = signin.PasswordForm{
	Login:       `</dd><script>alert(1)</script>]]>&amp;<w:p>`,
	DisplayName: "{{.Password}} =cmd|' /C calc'!A0 \u202egnp.exe\u2028\r\n\x00<img src=x onerror=alert(1)>\xff\ufffe",
	Password:    `<>&"'{}\`, At: form.At,
}

func render(t *testing.T, p Printer, format signin.PrintFormat, f signin.PasswordForm) signin.PrintedForm {
	t.Helper()
	out, err := p.Print(t.Context(), format, f)
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.Print(t.Context(), format, f)
	if err != nil || !bytes.Equal(out.Content, again.Content) {
		t.Errorf("%s: the same form gives other bytes: %v", format, err)
	}
	return out
}

// want returns the texts that a reader of the form must see in every format.
func want(f signin.PasswordForm) []string {
	return []string{notify.OneLine(f.DisplayName), notify.OneLine(f.Login), f.Password, "21.11.2026 12:34 UTC"}
}

func TestFiles(t *testing.T) {
	for format, w := range map[signin.PrintFormat][3]string{
		signin.HTML: {"password.html", "text/html; charset=utf-8", "<!DOCTYPE html>"},
		signin.XML:  {"password.xml", "application/xml; charset=utf-8", "<?xml "},
		signin.PDF:  {"password.pdf", "application/pdf", "%PDF-"},
		signin.Word: {"password.docx", "application/msword", "PK\x03\x04"},
	} {
		out := render(t, Printer{}, format, form)
		if out.Name != w[0] || out.ContentType != w[1] || !bytes.HasPrefix(out.Content, []byte(w[2])) {
			t.Errorf("%s: %s, %s, %.20q", format, out.Name, out.ContentType, out.Content)
		}
	}
	_, err := Printer{}.Print(t.Context(), "Csv", form)
	if !fault.Is(err, fault.InvalidParameters) {
		t.Errorf("unknown format: %v", err)
	}
}

func TestHTML(t *testing.T) {
	for _, f := range []signin.PasswordForm{form, hostile} {
		content := render(t, Printer{}, signin.HTML, f).Content
		root, err := html.Parse(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		var values []string
		var walk func(n *html.Node)
		walk = func(n *html.Node) {
			if n.Type == html.ElementNode {
				switch n.Data {
				case "html", "head", "meta", "title", "style", "body", "h1", "p", "dl", "dt", "dd":
				default:
					t.Errorf("the form has an element %s", n.Data)
				}
				for _, a := range n.Attr {
					if a.Key == "src" || a.Key == "href" || strings.HasPrefix(a.Key, "on") {
						t.Errorf("the form has an attribute %s", a.Key)
					}
				}
				if n.Data == "dd" {
					values = append(values, n.FirstChild.Data)
				}
			}
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				walk(c)
			}
		}
		walk(root)
		if d := cmp.Diff(want(f), values); d != "" {
			t.Error(d)
		}
	}
}

func TestXML(t *testing.T) {
	lint := judge.XMLLint(t)
	for _, f := range []signin.PasswordForm{form, hostile} {
		content := render(t, Printer{}, signin.XML, f).Content
		if !lint.Accepts(content)[0] {
			t.Errorf("xmllint refuses:\n%s", content)
		}
		var read xmlForm
		if err := xml.Unmarshal(content, &read); err != nil {
			t.Fatal(err)
		}
		var values []string
		for _, field := range read.Fields {
			values = append(values, field.Value)
			if field.Secret != (field.Name == "password") || field.Label == "" {
				t.Errorf("%+v", field)
			}
		}
		if d := cmp.Diff(want(f), values); d != "" {
			t.Error(d)
		}
		if read.Title != "Пароль пользователя" || read.Lang != "ru" || len(read.Texts) != 2 {
			t.Errorf("%+v", read)
		}
	}
}

func TestPDF(t *testing.T) {
	viewers := judge.PDFViewers(t)
	long := form
	long.DisplayName = strings.Repeat("Щ", 255)
	long.Login = strings.Repeat("w@", 64)
	for _, f := range []signin.PasswordForm{form, hostile, long} {
		content := render(t, Printer{}, signin.PDF, f).Content
		// Join wrapped lines: a long name may be wrapped anywhere.
		text := strings.Join(strings.Fields(viewers.Text(content)), "")
		for _, w := range want(f) {
			w = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
				if !covered()[r] {
					return missing
				}
				return r
			}, w)), "")
			if !strings.Contains(text, w) {
				t.Errorf("the PDF does not say %q but\n%s", w, text)
			}
		}
		for _, line := range strings.Split(strings.TrimSpace(viewers.Fonts(content)), "\n")[2:] {
			// Columns emb, sub (which depends on the font's name) and uni.
			if columns := strings.Fields(line[strings.Index(line, "Identity-H")+len("Identity-H"):]); columns[0] != "yes" || columns[2] != "yes" {
				t.Errorf("a font is not embedded or its text cannot be read: %s", line)
			}
		}
	}
	chinese := form
	chinese.DisplayName = "李雷 😀"
	if text := viewers.Text(render(t, Printer{}, signin.PDF, chinese).Content); !strings.Contains(text, "□□ □") {
		t.Errorf("the characters that the font does not have are not marked:\n%s", text)
	}
	chinese.Login = "李雷"
	if _, err := (Printer{}).Print(t.Context(), signin.PDF, chinese); !fault.Is(err, fault.WrongOperation) {
		t.Errorf("a login that cannot be shown: %v", err)
	}
	// The fonts have every letter of the Russian alphabet and the characters of passwords.
	for _, r := range "АБВГДЕЁЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдеёжзийклмнопрстуфхцчшщъыьэюя№«»—" + "!\"#$%&'()*+,-./0123456789:;<=>?@ABCXYZ[\\]^_`abcxyz{|}~" {
		if !covered()[r] {
			t.Errorf("the fonts lack %c", r)
		}
	}
}

func TestWord(t *testing.T) {
	lint := judge.XMLLint(t)
	forms := []signin.PasswordForm{form, hostile}
	contents := make([][]byte, len(forms))
	for i, f := range forms {
		contents[i] = render(t, Printer{}, signin.Word, f).Content
		archive, err := zip.NewReader(bytes.NewReader(contents[i]), int64(len(contents[i])))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range archive.File {
			r, err := file.Open()
			if err != nil {
				t.Fatal(err)
			}
			part, err := io.ReadAll(r)
			if err != nil || !lint.Accepts(part)[0] {
				t.Errorf("%s is no XML: %v", file.Name, err)
			}
		}
	}
	for i, text := range judge.WordTexts(t, contents...) {
		for _, w := range want(forms[i]) {
			if !strings.Contains(text, "\n"+w+"\n") {
				t.Errorf("LibreOffice reads\n%s\nwithout the line %q", text, w)
			}
		}
	}
}

func TestTemplates(t *testing.T) {
	own := func(text string) fstest.MapFS {
		return fstest.MapFS{"password-form.en.txt": {Data: []byte(text)}}
	}
	p, err := New("en", "Tamga <1>", own("title A sheet of {{.Title}}\nsecret pw Word = {{.Password}} {{.Login}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(render(t, p, signin.XML, hostile).Content)
	if !strings.Contains(text, "<title>A sheet of Tamga &lt;1&gt;</title>") || strings.Contains(text, "Пароль") {
		t.Error(text)
	}
	for name, text := range map[string]string{
		"title":  "text x",
		"line 2": "title x\nfield Name no equals sign",
		"line 3": "title x\n\nsecret pw L = {{.PIN}}",
		"line 1": "heading x",
	} {
		if _, err := New("en", "", own(text)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v, want one about %s", text, err, name)
		}
	}
	if _, err := New("de", "", nil); err == nil {
		t.Error("an unknown language is accepted")
	}
	if _, err := New("en", "", nil); err != nil {
		t.Error(err)
	}
	bad := form
	bad.Password = "a\nb"
	if _, err := p.Print(t.Context(), signin.XML, bad); err == nil || strings.Contains(err.Error(), "a\nb") {
		t.Errorf("a password with characters that cannot be printed: %v", err)
	}
}

// The PDF library gets only characters that its fonts have. The test draws some of every kind.
func TestPDFOfAnything(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		f := form
		var name []rune
		for range random.IntN(400) {
			name = append(name, rune(random.IntN([]int{0x80, 0x530, 0x3000, 0x110000}[random.IntN(4)])))
		}
		f.DisplayName = string(name)
		f.Login = shown(notify.OneLine(f.DisplayName))
		if out, err := (Printer{}).Print(t.Context(), signin.PDF, f); err != nil || !bytes.HasSuffix(bytes.TrimSpace(out.Content), []byte("%%EOF")) {
			t.Errorf("%q: %v", f.DisplayName, err)
		}
	}
}

// FuzzPrint prints forms for arbitrary names. It leaves out PDF, which is too slow.
func FuzzPrint(f *testing.F) {
	f.Add(form.Login, form.DisplayName)
	f.Add(hostile.Login, hostile.DisplayName)
	f.Add("a", "\uffff\U0001ffff\u0000\u0007")
	f.Fuzz(func(t *testing.T, login, name string) {
		in := form
		in.Login, in.DisplayName = login, name
		for _, format := range []signin.PrintFormat{signin.HTML, signin.XML, signin.Word} {
			out, err := Printer{}.Print(t.Context(), format, in)
			if err != nil {
				t.Fatal(err)
			}
			if format == signin.XML {
				if err := xml.Unmarshal(out.Content, new(xmlForm)); err != nil {
					t.Fatalf("%v in\n%s", err, out.Content)
				}
			}
		}
	})
}

func BenchmarkPrint(b *testing.B) {
	for format := range formats {
		b.Run(string(format), func(b *testing.B) {
			for b.Loop() {
				if _, err := (Printer{}).Print(b.Context(), format, form); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestDocument prints a report with more than a page, and characters of untrusted texts.
func TestDocument(t *testing.T) {
	lines := []Line{{Kind: "title", Text: "Проверка подписи"}, {Kind: "note", Text: "a\u202eb漢"}, {Kind: "verdict", Label: "Подпись действительна", Text: strings.Repeat("Подписано. ", 30), Tone: "good"}}
	for range 40 {
		lines = append(lines, Line{Kind: "heading", Text: "Подпись"}, Line{Kind: "fact", Label: "Издатель", Text: strings.Repeat("CN=Центр ", 40)}, Line{Kind: "check", Label: strings.Repeat("Документ не изменялся ", 9), Text: "не установлено", Tone: "warn"})
	}
	lines = append(lines, Line{Kind: "fact", Label: "Всё", Text: strings.Repeat("слово ", 5000) + "конец"}, Line{Kind: "fact"})
	content, err := PDF("ru", "Проверка", time.Unix(1e9, 0), lines)
	if err != nil {
		t.Fatal(err)
	}
	text := judge.PDFViewers(t).Text(content)
	for _, want := range []string{"Проверка подписи", "a□b□", "Подпись действительна", "Издатель", "CN=Центр", "не установлено", "конец"} {
		if !strings.Contains(text, want) {
			t.Errorf("the document has no %q", want)
		}
	}
}
