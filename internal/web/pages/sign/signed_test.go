// SPDX-License-Identifier: Apache-2.0

package sign_test

import (
	"archive/zip"
	"bytes"
	"io"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// TestSignedInPart signs files of which some fail. The page counts both, and leads to a form that
// has the others without another upload.
func TestSignedInPart(t *testing.T) {
	s := tamgatest.Start(t)
	b := pagetest.New(t, s)
	b.SignIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	retry := regexp.MustCompile(`href="(/sign\?[^"]*stored=[^"]+)"`)
	stored := regexp.MustCompile(`name="stored" value="([0-9a-f-]{36})" checked> ([^<]+)<`)
	pdf := string(tamgatest.PDFOf(2000))

	p := b.Shows(b.Upload("/sign", map[string]string{"certificate": "1", "format": "automatic"},
		pagetest.File{Field: "file", Name: "a.txt", Content: "a"}, pagetest.File{Field: "file", Name: "<b>.pdf", Content: "no PDF"}, pagetest.File{Field: "file", Name: "c.pdf", Content: pdf}, pagetest.File{Field: "file", Name: "d.docx", Content: "no archive"}, pagetest.File{Field: "file", Name: "e.docx", Content: officeDocument(t)}),
		"<h1>3 documents are signed, 2 documents are not signed</h1>", "<dd>Partly signed</dd>", "CAdES, a signature beside the file; PDF with its signature inside; Office document with its signature inside",
		"c (signed).pdf</a>", "e (signed).docx</a>", "a.txt.sig</a>", "The files are stored until",
		"The certificate is of Demo User.", `<dt>Certificate</dt><dd><a href="/certificates/1">Demo User</a>, until `)
	if n := strings.Count(p.Text, `/do/verify"`); n != 3 {
		t.Errorf("%d of 3 results can be verified:\n%s", n, p.Text)
	}
	b.Shows(b.Post(b.Find(p, regexp.MustCompile(`action="(/signatures/[^"]+/do/verify)"`))[1], nil), "Signature valid", "Demo User")
	if n := strings.Count(p.Text, "<dt>Operation</dt>"); n != 1 {
		t.Errorf("the page shows %d operations, want one:\n%s", n, p.Text)
	}
	form := b.Shows(b.Get(b.Find(p, retry)[1]), "Files that are here already", `name="certificate" value="1" checked`)
	found := stored.FindAllStringSubmatch(form.Text, -1)
	if len(found) != 2 || found[0][2] != "&lt;b&gt;.pdf" || found[1][2] != "d.docx" {
		t.Fatalf("the form has other files than those that failed: %q", found)
	}
	if strings.Contains(form.Text, `name="file" multiple required`) {
		t.Error("the form wants files, and has some")
	}
	again := map[string]string{"certificate": "1", "format": "cades", "stored": found[0][1]}
	p = b.Shows(b.Upload("/sign", again, pagetest.File{Field: "file", Name: "more.txt", Content: "more"}), "2 documents are signed", "&lt;b&gt;.pdf.sig</a>", ">more.txt.sig</a>", "<dd>CAdES, a signature beside the file</dd>", "<dd>Done</dd>")
	if strings.Contains(p.Text, "not signed") || retry.MatchString(p.Text) {
		t.Errorf("all is signed, and the page says that something is left:\n%s", p.Text)
	}

	b.Is(b.Upload("/sign", map[string]string{"certificate": "1", "stored": tamgatest.Missing}), 404, `data-again=""`)
	b.Shows(b.Get("/sign?stored="+tamgatest.Missing+","+found[1][1]), "not stored any more", found[1][1])
	if p := b.Shows(b.Get("/sign?stored=" + tamgatest.Missing)); strings.Contains(p.Text, `name="stored"`) || !strings.Contains(p.Text, `multiple required`) {
		t.Errorf("the form has a file that is not stored:\n%s", p.Text)
	}
	other := pagetest.New(t, s)
	other.SignIn("/start", s.Dev.Operator.Login, s.Dev.Operator.Password)
	other.Is(other.Upload("/sign", map[string]string{"certificate": "1", "stored": found[0][1]}), 404)
}

// officeDocument returns a small document of an Office program.
func officeDocument(t *testing.T) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, part := range [][2]string{
		{"[Content_Types].xml", `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>`},
		{"_rels/.rels", `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>`},
		{"word/document.xml", `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body/></w:document>`},
	} {
		w, err := z.Create(part[0])
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, part[1])
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestKeepSigned checks that results are deleted after a day, unless the person says otherwise, and that their names
// differ from those of the originals.
func TestKeepSigned(t *testing.T) {
	t.Parallel()
	s := tamgatest.Start(t)
	b := pagetest.New(t, s)
	b.Header.Set("Accept-Language", "ru")
	b.SignIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	p := b.Shows(b.Upload("/sign", map[string]string{"certificate": "1"}, pagetest.File{Field: "file", Name: "договор.pdf", Content: string(tamgatest.PDFOf(2000))}),
		"<h1>Подписан 1 документ</h1>", "договор (подписан).pdf</a>", "Файлы хранятся до ", "подпись внутри документа")
	result := b.Find(p, pagetest.Result)[1]
	if d := b.Shows(b.Get(result)).Header.Get("Content-Disposition"); !strings.Contains(d, url.PathEscape("договор (подписан).pdf")) && !strings.Contains(d, "%28") {
		t.Errorf("the result is saved as %s", d)
	}
	id := b.Find(p, regexp.MustCompile(`name="operation" value="([^"]+)"`))[1]
	p = b.Shows(b.Post("/signed/do/keep", url.Values{"operation": {id}}), "Файлы хранятся, пока вы их не удалите.")
	if strings.Contains(p.Text, `action="/signed/do/keep"`) {
		t.Error("what is kept can be kept again")
	}
	other := pagetest.New(t, s)
	other.SignIn("/start", s.Dev.Operator.Login, s.Dev.Operator.Password)
	other.Is(other.Post("/signed/do/keep", url.Values{"operation": {id}}), 404)
}
