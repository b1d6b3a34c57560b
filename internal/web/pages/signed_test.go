// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"archive/zip"
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

// TestSignedInPart signs files of which some fail. The page counts both, and leads to a form that
// has the others without another upload.
func TestSignedInPart(t *testing.T) {
	s := tamgatest.Start(t)
	b := newBrowser(t, s)
	b.signIn("/sign", s.Dev.User.Login, s.Dev.User.Password)
	retry := regexp.MustCompile(`href="(/sign\?[^"]*stored=[^"]+)"`)
	stored := regexp.MustCompile(`name="stored" value="([0-9a-f-]{36})" checked> ([^<]+)<`)
	pdf := string(tamgatest.PDFOf(2000))

	p := b.ok(b.upload("/sign", map[string]string{"certificate": "1", "format": "automatic"},
		file{"file", "a.txt", "a"}, file{"file", "<b>.pdf", "no PDF"}, file{"file", "c.pdf", pdf}, file{"file", "d.docx", "no archive"}, file{"file", "e.docx", officeDocument(t)}),
		"3 documents are signed, <strong>2 documents are not signed</strong>",
		"<h2>Partly signed</h2>", `<th colspan="3">CAdES, a signature beside the file</th>`, `<th colspan="3">PDF with its signature inside</th>`, `<th colspan="3">Office document with its signature inside</th>`)
	if n := strings.Count(p.text, "<p class=\"hint\">Operation <code>"); n != 1 {
		t.Errorf("the page shows %d operations, want one:\n%s", n, p.text)
	}
	form := b.ok(b.get(b.find(p, retry)[1]), "Files that are here already", `<option value="1" selected>`)
	found := stored.FindAllStringSubmatch(form.text, -1)
	if len(found) != 2 || found[0][2] != "&lt;b&gt;.pdf" || found[1][2] != "d.docx" {
		t.Fatalf("the form has other files than those that failed: %q", found)
	}
	if strings.Contains(form.text, `name="file" multiple required`) {
		t.Error("the form wants files, and has some")
	}
	again := map[string]string{"certificate": "1", "format": "cades", "stored": found[0][1]}
	p = b.ok(b.upload("/sign", again, file{"file", "more.txt", "more"}), "2 documents are signed", "&lt;b&gt;.pdf.sig</a>", ">more.txt.sig</a>", "<h2>CAdES, a signature beside the file: Done</h2>")
	if strings.Contains(p.text, "not signed") || retry.MatchString(p.text) {
		t.Errorf("all is signed, and the page says that something is left:\n%s", p.text)
	}

	b.is(b.upload("/sign", map[string]string{"certificate": "1", "stored": tamgatest.Missing}), 404, `data-again=""`)
	b.ok(b.get("/sign?stored="+tamgatest.Missing+","+found[1][1]), "not stored any more", found[1][1])
	if p := b.ok(b.get("/sign?stored=" + tamgatest.Missing)); strings.Contains(p.text, `name="stored"`) || !strings.Contains(p.text, `multiple required`) {
		t.Errorf("the form has a file that is not stored:\n%s", p.text)
	}
	other := newBrowser(t, s)
	other.signIn("/start", s.Dev.Operator.Login, s.Dev.Operator.Password)
	other.is(other.upload("/sign", map[string]string{"certificate": "1", "stored": found[0][1]}), 404)
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
