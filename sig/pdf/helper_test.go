// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"tamga/internal/judge"
)

// document writes a document of pages with the given objects in addition to catalog (1),
// page tree (2) and pages (from 10 on): a classic table, PDF 1.4.
type document struct {
	version string
	catalog string         // more entries
	page    string         // more entries of each page
	pages   int            // 1 when zero
	objects map[int]string // by number, up to 9 and from 100 on
	trailer string         // more entries
}

func (d document) build() []byte {
	if d.version == "" {
		d.version = "1.4"
	}
	d.pages = max(d.pages, 1)
	objects := map[int]string{}
	for n, o := range d.objects {
		objects[n] = o
	}
	objects[1] = "<</Type /Catalog /Pages 2 0 R " + d.catalog + ">>"
	var kids []string
	for i := range d.pages {
		n := 10 + 2*i
		kids = append(kids, fmt.Sprintf("%d 0 R", n))
		content := fmt.Sprintf("BT /F1 24 Tf 72 700 Td (Page %d) Tj ET", i+1)
		objects[n] = fmt.Sprintf("<</Type /Page /Parent 2 0 R /Contents %d 0 R %s>>", n+1, d.page)
		objects[n+1] = fmt.Sprintf("<</Length %d>>\nstream\n%s\nendstream", len(content), content)
	}
	objects[2] = fmt.Sprintf("<</Type /Pages /Kids [%s] /Count %d /MediaBox [0 0 595 842] /Resources <</Font <</F1 3 0 R>>>>>>", strings.Join(kids, " "), d.pages)
	objects[3] = "<</Type /Font /Subtype /Type1 /BaseFont /Helvetica>>"
	highest := 0
	for n := range objects {
		highest = max(highest, n)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%%PDF-%s\n%%\xe2\xe3\xcf\xd3\n", d.version)
	lines := []string{"0000000000 65535 f \n"}
	for n := 1; n <= highest; n++ {
		o, ok := objects[n]
		if !ok {
			lines = append(lines, "0000000000 00000 f \n")
			continue
		}
		lines = append(lines, fmt.Sprintf("%010d 00000 n \n", b.Len()))
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", n, o)
	}
	at := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n%strailer\n<</Size %d /Root 1 0 R %s>>\nstartxref\n%d\n%%%%EOF\n",
		len(lines), strings.Join(lines, ""), len(lines), d.trailer, at)
	return b.Bytes()
}

// kinds are documents of every kind, some of them made from the first with qpdf.
func kinds(t testing.TB, tools *judge.PDFTools) map[string]sample {
	t.Helper()
	plain := document{pages: 3, trailer: "/ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>]"}.build()
	out := map[string]sample{
		"table":            {data: plain},
		"no end of line":   {data: bytes.TrimSuffix(plain, []byte("\n"))},
		"PDF 1.0":          {data: document{version: "1.0"}.build()},
		"bytes in front":   {data: append([]byte("HTTP/1.1 200 OK\r\n\r\n"), plain...), notMuPDF: true},
		"wrong startxref":  {data: bytes.Replace(plain, []byte("startxref\n"), []byte("startxref\n9"), 1)},
		"no table":         {data: plain[:bytes.LastIndex(plain, []byte("xref\n0"))]},
		"inline annots":    {data: document{page: "/Annots [<</Type /Annot /Subtype /Text /Rect [10 10 20 20] /Contents (note)>>]"}.build()},
		"indirect annots":  {data: document{page: "/Annots 5 0 R", objects: map[int]string{5: "[6 0 R]", 6: "<</Type /Annot /Subtype /Text /Rect [10 10 20 20] /Contents (note)>>"}}.build()},
		"inline form":      {data: document{catalog: "/AcroForm <</Fields [5 0 R] /DA (/F1 0 Tf)>>", page: "/Annots [5 0 R]", objects: map[int]string{5: textField}}.build()},
		"indirect form":    {data: document{catalog: "/AcroForm 6 0 R", page: "/Annots [5 0 R]", objects: map[int]string{5: textField, 6: "<</Fields 7 0 R /DA (/F1 0 Tf)>>", 7: "[5 0 R]"}}.build()},
		"empty field":      {data: document{catalog: "/AcroForm <</Fields [5 0 R]>>", page: "/Annots [5 0 R]", objects: map[int]string{5: "<</Type /Annot /Subtype /Widget /FT /Sig /T (Approval) /Rect [50 50 200 100] /F 4 /P 10 0 R>>"}}.build()},
		"field and widget": {data: document{catalog: "/AcroForm <</Fields [5 0 R]>>", page: "/Annots [6 0 R]", objects: map[int]string{5: "<</FT /Sig /T (Approval) /Kids [6 0 R]>>", 6: "<</Type /Annot /Subtype /Widget /Parent 5 0 R /Rect [50 50 200 100] /F 4 /P 10 0 R>>"}}.build(), notPoppler: true},
	}
	out["hybrid"] = sample{data: hybrid()}
	made := func(name, password string, args ...string) {
		data, err := tools.QPDF(plain, args...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = sample{data: data, password: password}
	}
	made("object streams", "", "--object-streams=generate")
	made("linearised", "", "--linearize")
	made("linearised object streams", "", "--linearize", "--object-streams=generate")
	made("PDF 2.0", "", "--force-version=2.0", "--object-streams=generate")
	made("RC4 40", "", "--allow-weak-crypto", "--encrypt", "", "owner", "40", "--")
	made("RC4 128", "", "--allow-weak-crypto", "--encrypt", "", "owner", "128", "--use-aes=n", "--")
	made("AES 128", "", "--allow-weak-crypto", "--encrypt", "", "owner", "128", "--use-aes=y", "--")
	made("AES 128 clear metadata", "", "--allow-weak-crypto", "--encrypt", "", "owner", "128", "--use-aes=y", "--cleartext-metadata", "--")
	made("AES 256 R5", "", "--allow-weak-crypto", "--encrypt", "", "owner", "256", "--force-R5", "--")
	made("AES 256", "", "--encrypt", "", "owner", "256", "--")
	made("AES 256 object streams", "", "--object-streams=generate", "--encrypt", "", "owner", "256", "--")
	made("RC4 128 password", "secret", "--allow-weak-crypto", "--encrypt", "secret", "owner", "128", "--use-aes=n", "--")
	made("AES 128 password", "secret", "--allow-weak-crypto", "--encrypt", "secret", "owner", "128", "--use-aes=y", "--")
	made("AES 256 password", "секрет", "--encrypt", "секрет", "owner", "256", "--")
	// Its objects must be searched for, in object streams too.
	streams := out["object streams"].data
	out["object streams, wrong startxref"] = sample{data: bytes.Replace(streams, []byte("startxref\n"), []byte("startxref\n9"), 1)}
	return out
}

// hybrid returns a document with a table and a stream with the entry of the font, which
// the table hides: the font is in an object stream.
func hybrid() []byte {
	data := document{objects: map[int]string{100: "null", 101: "null"}}.build()
	at := bytes.LastIndex(data, []byte("xref\n0"))
	font := bytes.Index(data, []byte("3 0 obj"))
	table := bytes.Replace(data[at:], fmt.Appendf(nil, "%010d 00000 n ", font), []byte("0000000000 65535 f "), 1)
	var b bytes.Buffer
	b.Write(data[:font])
	b.Write(bytes.Repeat([]byte(" "), bytes.Index(data[font:], []byte("endobj"))+len("endobj")))
	b.Write(data[b.Len():at])
	list := b.Len()
	content := "3 0 <</Type /Font /Subtype /Type1 /BaseFont /Helvetica>>"
	fmt.Fprintf(&b, "102 0 obj\n<</Type /ObjStm /N 1 /First 4 /Length %d>>\nstream\n%s\nendstream\nendobj\n", len(content), content)
	stream := b.Len()
	entry := func(kind, at, index int) string {
		return string([]byte{byte(kind), byte(at >> 8), byte(at), byte(index)})
	}
	entries := entry(2, 102, 0) + entry(1, list, 0) + entry(1, stream, 0)
	fmt.Fprintf(&b, "103 0 obj\n<</Type /XRef /Size 104 /Root 1 0 R /W [1 2 1] /Index [3 1 102 2] /Length %d>>\nstream\n%s\nendstream\nendobj\n", len(entries), entries)
	start := b.Len()
	table = bytes.Replace(table, []byte("/Root 1 0 R"), fmt.Appendf(nil, "/Root 1 0 R /XRefStm %d", stream), 1)
	table = bytes.Replace(table, fmt.Appendf(nil, "startxref\n%d", at), fmt.Appendf(nil, "startxref\n%d", start), 1)
	b.Write(bytes.Replace(table, []byte("/Size 102"), []byte("/Size 104"), 1))
	return b.Bytes()
}

const textField = "<</Type /Annot /Subtype /Widget /FT /Tx /T (Sum) /V (100) /Rect [50 150 200 170] /F 4 /P 10 0 R>>"

type sample struct {
	data     []byte
	password string
	// MuPDF expects the header at the first byte.
	notMuPDF bool
	// Poppler reads a widget below a field as its own field, without a value.
	notPoppler bool
}
