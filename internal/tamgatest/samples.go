// SPDX-License-Identifier: Apache-2.0

package tamgatest

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// PDFOf makes a document of one page and a stream, of about size bytes.
func PDFOf(size int) []byte { return PDFOfPages(1, size) }

// PDFOfPages makes a document of some pages, each of about size bytes.
func PDFOfPages(pages, size int) []byte {
	var b bytes.Buffer
	var at []int
	object := func(text string) {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", len(at), text)
	}
	var kids []string
	for i := range pages {
		kids = append(kids, fmt.Sprintf("%d 0 R", 3+2*i))
	}
	b.WriteString("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
	object("<</Type/Catalog/Pages 2 0 R>>")
	object(fmt.Sprintf("<</Type/Pages/Kids[%s]/Count %d>>", strings.Join(kids, " "), pages))
	for i := range pages {
		object(fmt.Sprintf("<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents %d 0 R/Resources<<>>>>", 4+2*i))
		object(fmt.Sprintf("<</Length %d>>stream\n%s\nendstream", size, bytes.Repeat([]byte(" "), size)))
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, n := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", n)
	}
	fmt.Fprintf(&b, "trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, start)
	return b.Bytes()
}

// DOCXOf makes a package of about size bytes with a document in it.
func DOCXOf(b testing.TB, size int) []byte {
	random := make([]byte, size)
	rand.NewChaCha8([32]byte{}).Read(random)
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, part := range []struct{ name, text string }{
		{"[Content_Types].xml", `<?xml version="1.0" encoding="UTF-8"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="png" ContentType="image/png"/><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>`},
		{"_rels/.rels", `<?xml version="1.0" encoding="UTF-8"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>`},
		{"word/document.xml", `<?xml version="1.0" encoding="UTF-8"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>Договор</w:t></w:r></w:p></w:body></w:document>`},
		{"word/_rels/document.xml.rels", `<?xml version="1.0" encoding="UTF-8"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/image" Target="media/image1.png"/></Relationships>`},
		{"word/media/image1.png", string(random)},
	} {
		f, err := w.Create(part.name)
		if err != nil {
			b.Fatal(err)
		}
		io.WriteString(f, part.text)
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	return out.Bytes()
}

// ChangedLater returns a signed PDF whose page another revision has changed.
func ChangedLater(t testing.TB, signed string) string {
	t.Helper()
	last := func(pattern string) string {
		all := regexp.MustCompile(pattern).FindAllStringSubmatch(signed, -1)
		if len(all) == 0 {
			t.Fatalf("the PDF has no %s", pattern)
		}
		return all[len(all)-1][1]
	}
	root, size, start := last(`/Root (\d+ 0 R)`), last(`/Size (\d+)`), last(`startxref\s+(\d+)`)
	object := "\n3 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Contents 4 0 R/Resources<<>>>>\nendobj\n"
	at := len(signed) + 1
	xref := len(signed) + len(object)
	return signed + object + fmt.Sprintf("xref\n3 1\n%010d 00000 n \ntrailer\n<</Size %s/Root %s/Prev %s>>\nstartxref\n%d\n%%%%EOF\n", at, size, root, start, xref)
}
