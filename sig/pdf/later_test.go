// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/budget"
)

// kept returns the files of testdata/later.tar.gz: signed documents with later revisions, and the
// roots of their signers. Those in refused are shown differently by different programs, or show
// something else than what was signed.
func kept(t testing.TB) (files map[string][]byte, roots []*x509gost.Certificate) {
	t.Helper()
	f, err := os.Open("testdata/later.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files = map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	roots, err = x509gost.ParseCertificates(files["roots.pem"])
	if err != nil {
		t.Fatal(err)
	}
	return files, roots
}

// laterNotes are the findings about later changes of a document that passes.
var laterNotes = map[string]struct {
	code, text string
}{
	"page-rewritten-same-values":  {},
	"later-base":                  {},
	"own-dss-hole":                {codeLaterStore, "the document security store"},
	"second-signer-field-F":       {codeLaterSignature, `"B"`},
	"second-signer-field-DA":      {codeLaterSignature, `"B"`},
	"second-signer-field-no-Type": {codeLaterSignature, `"B"`},
	"second-signer-field-Lock":    {codeLaterSignature, `a lock in the field "B"`},
	"need-appearances":            {codeLaterForm, "NeedAppearances"},
}

// TestLaterRevisionsThatProgramsReadDifferently checks that a revision fails if programs show
// something else than what was signed, or not all the same, and that others pass.
func TestLaterRevisionsThatProgramsReadDifferently(t *testing.T) {
	files, roots := kept(t)
	refused := 0
	for name, data := range files {
		if !strings.HasSuffix(name, ".pdf") {
			continue
		}
		t.Run(strings.TrimSuffix(name, ".pdf"), func(t *testing.T) {
			r, err := New().Verify(t.Context(), &sig.Check{Document: bytes.NewReader(data), Roots: roots, At: time.Date(2026, 12, 15, 0, 0, 0, 0, time.UTC)})
			if err != nil {
				t.Fatal(err)
			}
			var later []sig.Finding
			for _, f := range r.Signatures[0].Findings {
				if strings.HasPrefix(f.Code, "later-") {
					later = append(later, f)
				}
			}
			if strings.HasPrefix(name, "refused/") {
				refused++
				if r.Signatures[0].Verdict() != sig.Failed || !slices.ContainsFunc(later, func(f sig.Finding) bool {
					return f.Code == codeLaterChange || f.Code == codeLaterAnnotations
				}) {
					t.Errorf("%s", say(r))
				}
				return
			}
			want, ok := laterNotes[strings.TrimSuffix(path.Base(name), ".pdf")]
			if !ok || !r.Passed() || want.code == "" && len(later) > 0 ||
				want.code != "" && (len(later) != 1 || later[0].Code != want.code || !strings.Contains(later[0].Text, want.text)) {
				t.Errorf("want %+v: %s", want, say(r))
			}
		})
	}
	if refused < 47 {
		t.Errorf("only %d documents to refuse", refused)
	}
}

// tail is a later revision of one object under construction: text parts of the file.
type tail struct {
	before  string // between the end of the signed bytes and the object
	header  string // 5 0 obj
	value   string // of object 5
	end     string // endobj and what follows
	xref    string // the first line of the section
	entry   string // of the table, with verbs for the offset
	trailer string // more entries
	close   string // of the trailer, up to startxref
	behind  string // after startxref and its offset
}

func goodTail() tail {
	return tail{
		before: "\n", header: "5 0 obj\n", value: strings.Replace(textField, "(100)", "(200)", 1), end: "\nendobj\n",
		xref: "xref\n5 1\n", entry: "%010d 00000 n \n", close: "startxref\n", behind: "\n%%EOF\n",
	}
}

// onto appends the revision to a document.
func (l tail) onto(t testing.TB, data []byte) []byte {
	f := opened(t, data)
	size, _ := integer(f.trailer.get("Size"))
	var b bytes.Buffer
	b.Write(data)
	b.WriteString(l.before)
	at := b.Len()
	b.WriteString(l.header + l.value + l.end)
	section := b.Len()
	b.WriteString(l.xref)
	if strings.Contains(l.entry, "%") {
		fmt.Fprintf(&b, l.entry, at)
	} else {
		b.WriteString(l.entry)
	}
	fmt.Fprintf(&b, "trailer\n<</Size %d/Root 1 0 R/Prev %d%s>>\n%s%d%s", size, f.sections[0].at, l.trailer, l.close, section, l.behind)
	return b.Bytes()
}

// TestLaterFilters: a later stream has filters that all readers know, by their full names.
func TestLaterFilters(t *testing.T) {
	for filters, want := range map[string]bool{
		"": true, "/Filter/ASCIIHexDecode": true, "/Filter[]": true, "/Filter[/ASCII85Decode/FlateDecode]": true, "/Filter[/DCTDecode]": true,
		"/Filter/Unknown": false, "/Filter/Fl": false, "/Filter/AHx": false, "/Filter/Crypt": false, "/Filter/flatedecode": false,
		"/Filter[/FlateDecode/Unknown]": false, "/Filter[[/FlateDecode]]": false, "/Filter 7 0 R": false, "/Filter(FlateDecode)": false, "/Filter 1": false, "/Filter null": false,
	} {
		text := "1 0 obj<</Length 2" + filters + ">>stream\nxx\nendstream endobj"
		f := newFile(t.Context(), strings.NewReader(text), int64(len(text)))
		_, _, err := f.strictAt(0, int64(len(text))).indirect(nil)
		if (err == nil) != want {
			t.Errorf("%s: %v", filters, err)
		}
	}
}

// TestContentOfAppearance: operands and operators of content, without a filter or in Deflate.
func TestContentOfAppearance(t *testing.T) {
	for content, want := range map[string]bool{
		"": true, "BT /F1 18 Tf 2 3 Td (17) Tj ET": true, "/Tx BMC q 0 0 60 20 re W n [(a) -3 <41>] TJ T* (b) ' Q EMC": true, "% DSBlank\n": true,
		"/P <</MCID 0>> BDC EMC": true, "q 1 0 0 -1 .5 0 cm /Fm0 Do Q": true, "0 0 1 RG": true, "BI /W 1 /H 1 ID \x00\xff EI": true,
		"BT (17) T ET": false, "(a": false, "q 1 0 0 1 x 0 cm": false, "abc": false, "Tjx": false, "<</A": false, "[1 2": false, "1 2 >>": false,
	} {
		text := fmt.Sprintf("1 0 obj<</Length %d>>stream\n%s\nendstream endobj", len(content), content)
		f := newFile(t.Context(), strings.NewReader(text), int64(len(text)))
		_, o, err := f.strictAt(0, int64(len(text))).indirect(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.decodes(o.(*stream)); got != want {
			t.Errorf("%q: %t, want %t", content, got, want)
		}
	}
	text := "1 0 obj<</Length 2/Filter/FlateDecode>>stream\nxx\nendstream endobj"
	f := newFile(t.Context(), strings.NewReader(text), int64(len(text)))
	if _, o, err := f.strictAt(0, int64(len(text))).indirect(nil); err != nil || f.decodes(o.(*stream)) {
		t.Errorf("broken Deflate: %v", err)
	}
}

// TestLaterGrammar changes single tokens of a later revision that fills a field. What the
// grammar allows passes, with the note about the field.
func TestLaterGrammar(t *testing.T) {
	root, signer := party(t)
	signed := signedBy(t, signer, formDocument(), nil)
	crlf := func(l *tail) {
		for _, s := range []*string{&l.before, &l.header, &l.end, &l.xref, &l.close, &l.behind} {
			*s = strings.ReplaceAll(*s, "\n", "\r\n")
		}
		l.entry = "%010d 00000 n\r\n"
	}
	for what, c := range map[string]struct {
		change func(l *tail)
		passes bool
	}{
		"as it is":              {func(*tail) {}, true},
		"CR LF":                 {crlf, true},
		"CR":                    {func(l *tail) { l.header, l.end, l.behind = "5 0 obj\r", "\rendobj\r", "\r%%EOF\r" }, true},
		"no end of line":        {func(l *tail) { l.behind = "\n%%EOF" }, true},
		"white space behind":    {func(l *tail) { l.behind += "\n \r\n" }, true},
		"white space":           {func(l *tail) { l.header, l.end = "5  0\nobj ", " \n\tendobj\n\n" }, true},
		"name of a program":     {func(l *tail) { l.close = "%iText-5.5.13.3\n" + l.close }, true},
		"entry of object 0":     {func(l *tail) { l.xref = "xref\n0 1\n0000000000 65535 f \n5 1\n" }, true},
		"free entries":          {func(l *tail) { l.entry += "20 1\n0000000000 00001 f \n"; l.trailer = ""; l.xref = "xref\n5 1\n" }, false}, // beyond Size
		"the same numbers":      {func(l *tail) { l.value = strings.Replace(l.value, "[50 150 200 170]", "[50.0 150. +200 170.00]", 1) }, true},
		"hexadecimal":           {func(l *tail) { l.value = strings.Replace(l.value, "(200)", "<32 3030>", 1) }, true},
		"escapes":               {func(l *tail) { l.value = strings.Replace(l.value, "/Subtype", "/#53ubtype", 1) }, true},
		"identifiers":           {func(l *tail) { l.trailer = "/ID[<00><01>]" }, true},
		"comment in an object":  {func(l *tail) { l.header = "5 0 obj % x\n" }, false},
		"comment before":        {func(l *tail) { l.before = "\n% x\n" }, false},
		"comment behind":        {func(l *tail) { l.behind += "% x\n" }, false},
		"comment with a word":   {func(l *tail) { l.close = "%startxref 15\n" + l.close }, false},
		"no subsection":         {func(l *tail) { l.header, l.value, l.end, l.xref, l.entry = "", "", "", "xref\n", "" }, false},
		"empty subsection":      {func(l *tail) { l.header, l.value, l.end, l.xref, l.entry = "", "", "", "xref\n0 0\n", "" }, true},
		"generation of Info":    {func(l *tail) { l.trailer = "/Info 3 1 R" }, false},
		"second comment":        {func(l *tail) { l.close = "%a\n%b\n" + l.close }, false},
		"comment with syntax":   {func(l *tail) { l.close = "%<</A 1>>\n" + l.close }, false},
		"zero bytes":            {func(l *tail) { l.header = "5 0 obj\x00\n" }, false},
		"bytes behind":          {func(l *tail) { l.behind += "x" }, false},
		"much space behind":     {func(l *tail) { l.behind += strings.Repeat("\n", 100) }, false},
		"key twice":             {func(l *tail) { l.value = strings.Replace(l.value, "/F 4", "/F 4/#46 4", 1) }, false},
		"key without a value":   {func(l *tail) { l.value = strings.Replace(l.value, ">>", "/X>>", 1) }, false},
		"token behind":          {func(l *tail) { l.end = " 7" + l.end }, false},
		"second value":          {func(l *tail) { l.end = "<<>>" + l.end }, false},
		"keyword":               {func(l *tail) { l.value = strings.Replace(l.value, "/F 4", "/F nil", 1) }, false},
		"two signs":             {func(l *tail) { l.value = strings.Replace(l.value, "/F 4", "/F --4", 1) }, false},
		"two points":            {func(l *tail) { l.value = strings.Replace(l.value, "/F 4", "/F 4..", 1) }, false},
		"hexadecimal of what":   {func(l *tail) { l.value = strings.Replace(l.value, "(200)", "<3z>", 1) }, false},
		"escape of a name":      {func(l *tail) { l.value = strings.Replace(l.value, "/F 4", "/F#4 4", 1) }, false},
		"only a reference":      {func(l *tail) { l.value = "6 0 R" }, false},
		"no endobj":             {func(l *tail) { l.end = "\n" }, false},
		"number of the object":  {func(l *tail) { l.header = "6 0 obj\n" }, false},
		"generation":            {func(l *tail) { l.header = "5 1 obj\n" }, false},
		"generation listed":     {func(l *tail) { l.header, l.entry = "5 1 obj\n", "%010d 00001 n \n" }, false},
		"sign of the number":    {func(l *tail) { l.header = "+5 0 obj\n" }, false},
		"reference to another":  {func(l *tail) { l.value = strings.Replace(l.value, "10 0 R", "10 1 R", 1) }, false},
		"reference beyond":      {func(l *tail) { l.value = strings.Replace(l.value, "10 0 R", "900 0 R", 1) }, false},
		"entry of 19 bytes":     {func(l *tail) { l.entry = "%010d 00000 n\n" }, false},
		"unused entry":          {func(l *tail) { l.xref, l.entry = "xref\n5 2\n", l.entry+"0000000015 00000 n \n" }, false},
		"entry twice":           {func(l *tail) { l.entry = l.entry + "5 1\n%010[1]d 00000 n \n" }, false},
		"offset":                {func(l *tail) { l.header = " " + l.header }, false},
		"offset zero":           {func(l *tail) { l.xref, l.entry = "xref\n5 2\n", l.entry+"0000000000 00000 n \n" }, false},
		"count":                 {func(l *tail) { l.xref = "xref\n5 2\n" }, false},
		"space before the line": {func(l *tail) { l.xref = "xref\n 5 1\n" }, false},
		"unlisted object":       {func(l *tail) { l.end += "7 0 obj\nnull\nendobj\n" }, false},
		"listed as free":        {func(l *tail) { l.entry = "%010d 00000 f \n" }, false},
		"XRefStm":               {func(l *tail) { l.trailer = "/XRefStm 15" }, false},
		"Prev twice":            {func(l *tail) { l.trailer = "/Prev 15" }, false},
		"Encrypt added":         {func(l *tail) { l.trailer = "/Encrypt<</Filter/Other>>" }, false},
		"password added": {func(l *tail) {
			l.trailer = "/ID[<00><01>]/Encrypt<</Filter/Standard/V 2/R 3/P -4/Length 128/O(0123456789abcdef0123456789abcdef)/U(0123456789abcdef0123456789abcdef)>>"
		}, false},
		"bytes after startxref": {func(l *tail) { l.behind = " 0\n%%EOF\n" }, false},
		"no end":                {func(l *tail) { l.behind = "\n" }, false},
		"end twice":             {func(l *tail) { l.behind += "%%EOF\n" }, false},
		"no space in front":     {func(l *tail) { l.before = "x" }, false},
	} {
		t.Run(what, func(t *testing.T) {
			l := goodTail()
			c.change(&l)
			data := l.onto(t, signed)
			r := verified(t, data, root)
			if r.Passed() != c.passes {
				t.Errorf("%q: %s", data[len(signed):], say(r))
			}
			if codes := allCodes(r); c.passes && what != "empty subsection" && !slices.Contains(codes, codeLaterForm) {
				t.Errorf("the filled field is not named: %s", say(r))
			}
		})
	}
}

// FuzzLaterObject compares the strict reader with the tolerant one: it may only accept
// what both understand alike.
func FuzzLaterObject(f *testing.F) {
	for _, s := range []string{
		"<</A [1 -2.5 (x\\)\\101) <4 1> /N#20a true null 12 0 R]>>", "[1 2 R 3 0 R]", "(\r\n\\\r)", "<</A/B/C null>>", "-.5", "[/]", "<</A<</B<414>>>>>",
	} {
		f.Add([]byte(s))
	}
	doc := opened(f, formDocument())
	f.Fuzz(func(t *testing.T, data []byte) {
		strict, err := doc.strictBytes(data).inner()
		if err != nil {
			return
		}
		l := lexBytes(data)
		tolerant, err := l.object()
		if err != nil || !bytes.Equal(appendObject(nil, strict, nil), appendObject(nil, tolerant, nil)) {
			t.Fatalf("%q: %v and %v, %v", data, strict, tolerant, err)
		}
		if l.skipSpace(); l.peek() >= 0 {
			t.Fatalf("%q: the tolerant reader stops at %d", data, l.offset())
		}
	})
}

// TestLaterCost reads many later revisions and large ones in time that grows with them alone.
func TestLaterCost(t *testing.T) {
	_, signer := party(t)
	signed := signedBy(t, signer, formDocument(), nil)
	spent := func(count int) int64 {
		data := signed
		for range count {
			l := goodTail()
			l.value = strings.Replace(l.value, "(200)", "("+strings.Repeat("x", 1000)+")", 1)
			data = l.onto(t, data)
		}
		r, b, err := judged(data, budget.Anonymous())
		if err != nil || len(r.Signatures) != 1 || b.Held() > 8<<20 {
			t.Fatalf("%v, %d bytes held: %s", err, b.Held(), say(r))
		}
		return b.Spent()
	}

	few, many := spent(20), spent(80)
	if many > 6*few {
		t.Errorf("20 revisions cost %d steps, 80 cost %d", few, many)
	}
}
