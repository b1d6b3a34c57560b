// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/qr"
	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/budget"
	"tamga/sig/cades"
)

var moscow = time.FixedZone("MSK", 3*3600)

// detached returns a detached signature of a document.
func detached(t testing.TB, signer *sigtest.Party, data []byte) []byte {
	t.Helper()
	return sigtest.Make(t, cades.New(), signer, &sig.Job{Document: bytes.NewReader(data), Params: sig.Params{"CADESType": "BES", "IsDetached": "True"}})
}

// newCard returns a card of a document with detached signatures of signers.
func newCard(t testing.TB, name string, data []byte, signers ...*sigtest.Party) *sig.Card {
	t.Helper()
	c := &sig.Card{Document: sig.File{Name: name, Document: bytes.NewReader(data)}, Made: sigtest.Time, Zone: moscow, Language: "ru"}
	for i, s := range signers {
		file := sig.File{Name: fmt.Sprintf("%s.%d.sig", name, i+1), Document: bytes.NewReader(detached(t, s, data))}
		c.Signatures = append(c.Signatures, file)
		c.Signers = append(c.Signers, sig.CardSigner{Certificate: s.Certificate, Time: sigtest.Time, File: i})
	}
	return c
}

func written(t testing.TB, r sig.Result, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := r.WriteTo(&b); err != nil || int64(b.Len()) != r.Size() {
		t.Fatalf("%d of %d bytes: %v", b.Len(), r.Size(), err)
	}
	return b.Bytes()
}

func made1(t testing.TB, c *sig.Card) []byte {
	t.Helper()
	r, err := New().MakeCard(t.Context(), c)
	return written(t, r, err)
}

func openedCard(t testing.TB, card []byte) *sig.OpenedCard {
	t.Helper()
	o, err := New().OpenCard(t.Context(), bytes.NewReader(card))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func contentOf(t testing.TB, f *sig.CardFile) []byte {
	t.Helper()
	var b bytes.Buffer
	if f == nil {
		t.Fatal("the file is missing")
	}
	if err := f.WriteTo(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if int64(b.Len()) != f.Size {
		t.Errorf("%s: %d of %d bytes", f.Name, b.Len(), f.Size)
	}
	return b.Bytes()
}

func picture(t testing.TB) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 300, 200))
	for i := range 300 {
		m.Set(i, i*2/3, color.Black)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestCard makes cards of documents of every kind. qpdf, pdfdetach and MuPDF read them.
func TestCard(t *testing.T) {
	tools := judge.PDF(t)
	root := sigtest.Root(t, suite.GOST2012x256)
	signers := []*sigtest.Party{root.Signer(t, suite.GOST2012x256, "Иванова Мария Петровна"), root.Signer(t, suite.GOST2012x256, "Петров Пётр Петрович")}
	type test struct {
		name   string
		data   []byte
		before int // pages of the document that are shown
		cover  string
		text   string // of its first page
	}
	list := []test{
		{"текст.txt", []byte("Привет"), 0, coverOther, ""},
		{"отчёт.docx", []byte("PK\x03\x04 no archive"), 0, coverOther, ""},
		{"scan.png", picture(t), 1, "", ""},
		{"broken.png", picture(t)[:60], 0, coverOther, ""},
		{"broken.pdf", []byte("%PDF-1.4\nnothing"), 0, coverBroken, ""},
	}
	for name, s := range kinds(t, tools) {
		one := test{name: name + ".pdf", data: s.data, before: 1, text: "Page 1"}
		switch {
		case strings.Contains(name, "RC4") || strings.Contains(name, "AES"):
			one.before, one.cover, one.text = 0, coverEncrypted, ""
		case bytes.Contains(s.data, []byte("/Count 3")) || strings.Contains(name, "object streams") || strings.Contains(name, "linearised") || strings.Contains(name, "2.0"):
			one.before = 3
		}
		list = append(list, one)
	}
	for _, test := range list {
		t.Run(test.name, func(t *testing.T) {
			c := newCard(t, test.name, test.data, signers...)
			card := made1(t, c)
			if !strings.Contains(test.name, "bytes in front") {
				if err := tools.CheckQPDF(card, ""); err != nil {
					t.Error(err)
				}
				if err := tools.CheckMuPDF(card, ""); err != nil {
					t.Error(err)
				}
			}
			want := map[string][]byte{test.name: test.data}
			for _, s := range c.Signatures {
				b, _ := io.ReadAll(io.NewSectionReader(s.Document, 0, s.Document.Size()))
				want[s.Name] = b
			}
			for name, data := range want {
				if got, err := tools.Attached(card, name); err != nil || !bytes.Equal(got, data) {
					t.Errorf("qpdf: %s: %d of %d bytes: %v", name, len(got), len(data), err)
				}
			}
			if got := tools.Detached(card); len(got) != 3 {
				t.Errorf("pdfdetach: %d files", len(got))
			} else {
				for name, data := range want {
					if !bytes.Equal(got[name], data) {
						t.Errorf("pdfdetach: %s has %d of %d bytes", name, len(got[name]), len(data))
					}
				}
			}
			o := openedCard(t, card)
			if len(o.Changes) != 0 || len(o.Signatures) != 2 || !bytes.Equal(contentOf(t, o.Original), test.data) || o.Original.Name != test.name || !o.Made.Equal(sigtest.Time) {
				t.Errorf("opened: %+v", o)
			}
			said, err := tools.Text(card, "")
			if err != nil {
				t.Fatal(err)
			}
			pages := strings.Split(strings.TrimSuffix(said, "\f"), "\f")
			if len(pages) <= test.before {
				t.Fatalf("%d pages", len(pages))
			}
			if !strings.Contains(pages[0], test.text) {
				t.Errorf("the first page says %q", pages[0])
			}
			marks := strings.Join(pages[:test.before], "\n")
			sheet := strings.Join(pages[test.before:], "\n")
			if test.before == 0 {
				if w := cardLanguages["ru"].cover[test.cover]; !strings.Contains(flat(sheet), flat(w)) {
					t.Errorf("the sheet does not say %q: %s", w, sheet)
				}
				marks = sheet
			}
			for _, s := range signers {
				for _, word := range []string{"ДОКУМЕНТ ПОДПИСАН", "ЭЛЕКТРОННОЙ ПОДПИСЬЮ", commonName(s.Certificate.Subject), "14.03.2025 12:26 (МСК)"} {
					if !strings.Contains(flat(marks), flat(word)) {
						t.Errorf("the marks do not say %q: %s", word, marks)
					}
					if word != "ДОКУМЕНТ ПОДПИСАН" && word != "ЭЛЕКТРОННОЙ ПОДПИСЬЮ" && !strings.Contains(flat(sheet), flat(word)) {
						t.Errorf("the sheet does not say %q: %s", word, sheet)
					}
				}
				if !strings.Contains(flat(marks), strings.ToUpper(s.Certificate.SerialHex())) {
					t.Errorf("the marks do not say the number of the certificate: %s", marks)
				}
			}
			if strings.Count(marks, "ДОКУМЕНТ ПОДПИСАН") != 2 {
				t.Errorf("%d marks", strings.Count(marks, "ДОКУМЕНТ ПОДПИСАН"))
			}
		})
	}
}

// TestCardJudged: OpenSSL verifies the signature over what pdfdetach takes out of a card, and zbarimg reads the code on its
// last page as MuPDF draws it.
func TestCardJudged(t *testing.T) {
	tools, openssl, viewers, bars := judge.PDF(t), judge.OpenSSL(t), judge.PDFViewers(t), judge.ZBar(t)
	root := sigtest.Root(t, suite.GOST2012x256)
	signer := root.Signer(t, suite.GOST2012x256, "Иванова Мария Петровна")
	c := newCard(t, "договор.pdf", document{pages: 2}.build(), signer)
	const address = "https://sign.example.org/r/2611-7K3M-0QXZ?check=0123456789"
	code, err := qr.PNG(address)
	if err != nil {
		t.Fatal(err)
	}
	c.Report = sig.CardReport{Number: "2611-7K3M-0QXZ", Address: address, Code: code}
	card := made1(t, c)
	files := tools.Detached(card)
	openssl.Write("document", files["договор.pdf"])
	openssl.Write("signature", files["договор.pdf.1.sig"])
	openssl.Write("root.pem", root.PEM())
	if out, err := openssl.Run("cms", "-verify", "-binary", "-inform", "DER", "-in", "signature", "-content", "document", "-CAfile", "root.pem", "-purpose", "any", "-attime", fmt.Sprint(sigtest.Time.Unix()), "-out", "out"); err != nil {
		t.Errorf("openssl: %s %v", out, err)
	}
	openssl.Write("document", append(bytes.Clone(files["договор.pdf"]), ' '))
	if _, err := openssl.Run("cms", "-verify", "-binary", "-inform", "DER", "-in", "signature", "-content", "document", "-CAfile", "root.pem", "-purpose", "any", "-attime", fmt.Sprint(sigtest.Time.Unix()), "-out", "out"); err == nil {
		t.Error("openssl verifies the signature over another document")
	}
	var picture bytes.Buffer
	if err := png.Encode(&picture, viewers.PictureByMuPDF(card, 3, 150)); err != nil {
		t.Fatal(err)
	}
	if got := bars.Read(picture.Bytes(), "png"); got != address {
		t.Errorf("the code says %q", got)
	}
	if o := openedCard(t, card); o.Report.Number != c.Report.Number || o.Report.Address != address {
		t.Errorf("%+v", o.Report)
	}
	if said, err := tools.Text(card, ""); err != nil || !strings.Contains(flat(said), flat("Отчёт о проверке № 2611-7K3M-0QXZ")) {
		t.Errorf("%s %v", said, err)
	}
}

// flat returns a text without white space: lines wrap.
func flat(s string) string { return strings.Join(strings.Fields(s), "") }

// TestCardSignedInside: a PDF with its signature inside stays as it is in the attachment. On the pages of the card its
// fields are pictures, and programs find no broken signature.
func TestCardSignedInside(t *testing.T) {
	tools := judge.PDF(t)
	tools.Trust()
	_, signer := party(t)
	plain := document{pages: 2}.build()
	for name, signed := range map[string][]byte{
		"visible":   signedBy(t, signer, plain, anywhere("")),
		"invisible": signedBy(t, signer, plain, nil),
		"twice":     signedBy(t, signer, signedBy(t, signer, plain, anywhere("")), anywhere("")),
	} {
		t.Run(name, func(t *testing.T) {
			c := &sig.Card{Document: sig.File{Name: "signed.pdf", Document: bytes.NewReader(signed)}, Made: sigtest.Time, Language: "en"}
			report, err := New().Verify(t.Context(), &sig.Check{Document: bytes.NewReader(signed), At: sigtest.Time})
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range report.Signatures {
				c.Signers = append(c.Signers, sig.CardSigner{Certificate: s.Signer, Time: s.SigningTime, File: -1, Index: i, Verdict: sig.Indeterminate})
			}
			card := made1(t, c)
			if err := tools.CheckQPDF(card, ""); err != nil {
				t.Error(err)
			}
			if got, err := tools.Attached(card, "signed.pdf"); err != nil || !bytes.Equal(got, signed) {
				t.Errorf("qpdf: %d of %d bytes: %v", len(got), len(signed), err)
			}
			if list, err := tools.Signatures(card, ""); err == nil {
				t.Errorf("pdfsig finds %d signatures in the card", len(list))
			}
			again, err := New().Verify(t.Context(), &sig.Check{Document: bytes.NewReader(card), At: sigtest.Time})
			if err != nil || len(again.Signatures) != 0 {
				t.Errorf("the card has %d signatures: %v", len(again.Signatures), err)
			}
			said, err := tools.Text(card, "")
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(said, "ДОКУМЕНТ ПОДПИСАН"); got != len(report.Signatures) {
				t.Errorf("%d marks; want %d: %s", got, len(report.Signatures), said)
			}
			for _, want := range []string{"on page 2", "trust in the certificate is not established", "inside of the document"} {
				if !strings.Contains(said, want) {
					t.Errorf("the sheet does not say %q: %s", want, said)
				}
			}
		})
	}
}

// TestCardStill: nothing on a card runs. Links stay, and what plays is a picture.
func TestCardStill(t *testing.T) {
	tools := judge.PDF(t)
	_, signer := party(t)
	script := "<</S /JavaScript /JS (app.alert\\(1\\))>>"
	data := document{
		catalog: "/OpenAction " + script + " /AA <</WC " + script + ">> /Outlines 100 0 R /AcroForm <</Fields [105 0 R] /CO [106 0 R] /DA (/F1 0 Tf)>> /Names <</JavaScript <</Names [(a) " + script + "]>>>>",
		page: "/AA <</O " + script + ">> /Annots [102 0 R 103 0 R 104 0 R 106 0 R 107 0 R <</Type /Annot /Subtype /Link /Rect [1 1 9 9] /A <</S /Launch /F (evil.exe)>>>>" +
			" <</Type /Annot /Subtype /Link /Rect [1 20 9 29] /A <</S /URI /URI (https://example.org/)>>>>" +
			" <</Type /Annot /Subtype /Link /Rect [1 30 9 39] /A <</S /URI /URI (file://host/share)>>>>]",
		objects: map[int]string{
			100: "<</Type /Outlines /First 101 0 R /Last 108 0 R /Count 2>>",
			101: "<</Title (one) /Parent 100 0 R /Next 108 0 R /A " + script + ">>",
			102: "<</Type /Annot /Subtype /Link /Rect [10 10 20 20] /A <</S /GoTo /D [10 0 R /Fit] /Next " + script + ">>>>",
			103: "<</Type /Annot /Subtype /Link /Rect [30 10 40 20] /A <</S /GoTo /D [10 0 R /Fit]>> /AA <</U " + script + ">>>>",
			104: "<</Type /Annot /Subtype /Screen /Rect [50 10 60 20] /F 4 /AP <</N 109 0 R>> /A <</S /Rendition /JS (x)>>>>",
			105: "<</T (total) /FT /Tx /Kids [106 0 R] /AA <</C " + script + ">>>>",
			106: "<</Type /Annot /Subtype /Widget /Parent 105 0 R /Rect [70 10 80 20] /F 4 /AP <</N 109 0 R>> /A <</S /SubmitForm /F (https://example.org/)>> /AA <</K " + script + ">>>>",
			107: "<</Type /Annot /Subtype /FileAttachment /Rect [90 10 99 20] /F 4 /AP <</N 109 0 R>> /FS <</Type /Filespec /F (hidden.exe)>>>>",
			108: "<</Title (two) /Parent 100 0 R /Prev 101 0 R /Dest [10 0 R /Fit]>>",
			109: streamObject("/Type /XObject /Subtype /Form /BBox [0 0 9 9]", "0 0 9 9 re f"),
		},
	}.build()
	card := made1(t, newCard(t, "x.pdf", data, signer))
	if err := tools.CheckQPDF(card, ""); err != nil {
		t.Error(err)
	}
	shown, err := tools.QPDF(card, "--qdf", "--object-streams=disable", "--remove-attachment=x.pdf")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"JavaScript", "/Launch", "/SubmitForm", "/Rendition", "/AA", "/Screen", "/FileAttachment", "/OpenAction", "hidden.exe", "file://"} {
		if bytes.Contains(shown, []byte(word)) {
			t.Errorf("the pages of the card have %s", word)
		}
	}
	for word, want := range map[string]int{"/S /GoTo": 1, "/S /URI": 1, "/Subtype /Stamp": 2, "/Subtype /Widget": 1, "/Dest": 1} {
		if got := bytes.Count(shown, []byte(word)); got != want {
			t.Errorf("the pages of the card have %s %d times; want %d", word, got, want)
		}
	}
	// A page that is no object of its own cannot be written without what runs on it.
	direct := document{page: "/AA <</O " + script + ">>"}.build()
	direct = bytes.Replace(direct, []byte("/Kids [10 0 R]"), []byte("/Kids [<</Type /Page /AA <</O "+script+">>>>]"), 1)
	card = made1(t, newCard(t, "x.pdf", direct, signer))
	if said, err := tools.Text(card, ""); err != nil || !strings.Contains(flat(said), flat(cardLanguages["ru"].cover[coverBroken])) {
		t.Errorf("%s %v", said, err)
	}
}

// TestCardStillTwice: what runs does not hide behind a page that the document also lists as something else, and the mark is
// drawn there all the same.
func TestCardStillTwice(t *testing.T) {
	tools := judge.PDF(t)
	_, signer := party(t)
	const script, launch = "<</S /JavaScript /JS (app.alert\\(1\\))>>", "<</S /Launch /F (evil.exe)>>"
	page := "/AA <</O " + script + ">> /A " + launch + " /Annots [100 0 R <</Type /Annot /Subtype /Link /Rect [1 1 9 9] /A " + launch + ">>]"
	hot := "<</Type /Annot /Subtype /Link /Rect [10 10 20 20] /A " + script + " /AA <</U " + script + ">>>>"
	for name, d := range map[string]document{
		"bookmark":        {catalog: "/Outlines <</First 10 0 R>>"},
		"field":           {catalog: "/AcroForm <</Fields [10 0 R]>>"},
		"tree of fields":  {pages: 2, catalog: "/AcroForm <</Fields [2 0 R]>>"},
		"signature field": {catalog: "/AcroForm <</Fields [10 0 R]>>", page: "/FT /Sig /T (s) /V <</Type /Sig>> /Rect [1 1 9 9] "},
		"annotation":      {pages: 2, page: "/Annots [12 0 R 10 0 R] "},
		"player":          {pages: 2, catalog: "/Outlines <</First 10 0 R>>", page: "/Subtype /RichMedia /Annots [12 0 R] "},
	} {
		t.Run(name, func(t *testing.T) {
			d.objects = map[int]string{100: hot}
			d.page += page
			if strings.Contains(d.page, "R] ") { // an array of its own
				d.page = strings.Replace(strings.Replace(d.page, "R] ", "R 100 0 R] ", 1), page, "/AA <</O "+script+">> /A "+launch, 1)
			}
			c := newCard(t, "x.pdf", d.build(), signer)
			shown := stillCard(t, tools, made1(t, c))
			if !bytes.Contains(shown, []byte("/TMGA_Mark0 ")) {
				t.Error("no page has the mark")
			}
		})
	}
}

// TestCardStillDirect: what runs does not hide in a dictionary at a place of a reference, or in the steps of a presentation.
func TestCardStillDirect(t *testing.T) {
	tools := judge.PDF(t)
	_, signer := party(t)
	const script, launch = "<</S /JavaScript /JS (app.alert\\(1\\))>>", "<</S /Launch /F (evil.exe)>>"
	nested := document{
		catalog: "/Outlines 101 0 R /AcroForm <</Fields [104 0 R <</T (direct) /FT /Tx /AA <</C " + script + ">>>>]>>",
		page:    "/PresSteps <</Type /NavNode /NA " + script + " /PA " + launch + ">>",
		objects: map[int]string{
			101: "<</Type /Outlines /First 102 0 R>>",
			102: "<</Title (one) /Parent 101 0 R /First <</Title (below) /A " + script + ">> /Next 103 0 R>>",
			103: "<</Title (two) /Parent 101 0 R /Next <</Title (three) /A " + launch + ">>>>",
			// A bookmark and a field at once, whose list of kids leads back to itself.
			104: "<</T (f) /FT /Tx /Kids 105 0 R /Next 102 0 R>>",
			105: "[<</T (kid) /AA <</C " + script + ">> /Kids 105 0 R>> 106 0 R]",
			106: "<</T (other) /Kids [<</T (last) /A " + launch + ">>]>>",
		},
	}
	for _, first := range []string{"102 0 R", "104 0 R", "<</Title (direct) /A " + script + ">>"} {
		if first[0] == '<' { // 104 is no bookmark then
			nested.objects[104] = "<</T (f) /FT /Tx /Kids 105 0 R>>"
		}
		nested.objects[101] = "<</Type /Outlines /First " + first + ">>"
		shown := stillCard(t, tools, made1(t, newCard(t, "x.pdf", nested.build(), signer)))
		for _, want := range []string{"(kid)", "(last)", "(direct)"} {
			if !bytes.Contains(shown, []byte(want)) {
				t.Errorf("%s: the form has no field %s", first, want)
			}
		}
	}
}

// stillCard checks that the pages of a card have nothing that runs, and returns them as qpdf writes them.
func stillCard(t *testing.T, tools *judge.PDFTools, card []byte) []byte {
	t.Helper()
	if err := tools.CheckQPDF(card, ""); err != nil {
		t.Error(err)
	}
	shown, err := tools.QPDF(card, "--qdf", "--object-streams=disable", "--remove-attachment=x.pdf")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"JavaScript", "/Launch", "/AA", "/PresSteps", "/RichMedia"} {
		if bytes.Contains(shown, []byte(word)) {
			t.Errorf("the pages of the card have %s:\n%s", word, shown)
		}
	}
	return shown
}

// TestCardHiddenMark: a field that shows nothing is no mark, and the card does not show what the document hides.
func TestCardHiddenMark(t *testing.T) {
	tools := judge.PDF(t)
	_, signer := party(t)
	signed := signedBy(t, signer, document{pages: 2}.build(), anywhere(""))
	off := name("Off")
	for kind, change := range map[string]func(d dict) dict{
		"shown":              func(d dict) dict { return d },
		"without a page":     func(d dict) dict { return d.with("P", nil) },
		"hidden":             func(d dict) dict { return d.with("F", number("2")) },
		"not on the screen":  func(d dict) dict { return d.with("F", number("36")) },
		"without appearance": func(d dict) dict { return d.with("AP", nil) },
		"an empty one":       func(d dict) dict { return d.with("AP", dict{{"D", number("1")}}) },
		"of another state":   func(d dict) dict { return d.with("AP", dict{{"N", dict{{"On", d.get("AP")}}}}).with("AS", off) },
		"beside the page": func(d dict) dict {
			return d.with("Rect", array{number("900"), number("1"), number("990"), number("40")})
		},
	} {
		t.Run(kind, func(t *testing.T) {
			f := opened(t, signed)
			field := f.form().signatures[0]
			u, err := f.newUpdate()
			if err != nil {
				t.Fatal(err)
			}
			u.put(field.widget, change(field.onWidget))
			u.close()
			f.close()
			data := append(bytes.Clone(signed), u.buf...)
			c := &sig.Card{Document: sig.File{Name: "signed.pdf", Document: bytes.NewReader(data)}, Made: sigtest.Time, Language: "en"}
			c.Signers = []sig.CardSigner{{Certificate: signer.Certificate, Time: sigtest.Time, File: -1}}
			card := made1(t, c)
			if err := tools.CheckQPDF(card, ""); err != nil {
				t.Error(err)
			}
			said, err := tools.Text(card, "")
			if err != nil {
				t.Fatal(err)
			}
			f = opened(t, card)
			defer f.close()
			still := f.resolveDict(field.widget)
			own := kind != "shown" && kind != "without a page"
			if hidden := f.intOf(still.get("F"))&flagHidden != 0; hidden != (own && kind != "beside the page") {
				t.Errorf("the field is %s", appendObject(nil, still, nil))
			}
			p, err := f.page(1)
			if err != nil {
				t.Fatal(err)
			}
			if drawn := f.resolveDict(f.inheritedEntry(p, "Resources")).get("XObject") != nil; drawn != own || !strings.Contains(said, "on page 2") {
				t.Errorf("a mark of the card's own: %t; %s", drawn, said)
			}
		})
	}
}

// TestCardMarks makes cards of made pages: rotated, scaled, without resources, with states that nothing closes. The mark
// is on the page as it is in a signed document, and no ink is covered.
func TestCardMarks(t *testing.T) {
	tools := judge.PDF(t)
	viewers := judge.PDFViewers(t)
	_, signer := party(t)
	pages := paintedPages(40)
	if testsize.Of() < testsize.Whole {
		pages = pages[:20]
	}
	pages = append(pages,
		paintedPage{name: "open states", content: "q q 0.2 0 0 0.2 400 400 cm q 45 0 0 9 0 0 cm"},
		paintedPage{name: "closed states", content: "Q Q Q 0.5 0 0 0.5 9 9 cm Q"},
		paintedPage{name: "scaled", content: "3 0 0 3 0 0 cm 0 0 20 20 re f"},
		paintedPage{name: "turned", entries: "/Rotate 90", content: "0 0 40 40 re f"},
		paintedPage{name: "a unit", entries: "/UserUnit 2", content: "0 0 40 40 re f"},
		paintedPage{name: "cut", entries: "/CropBox [100 100 500 700] /Rotate 270", content: "0 0 140 140 re f"},
	)
	for _, p := range pages {
		t.Run(p.name, func(t *testing.T) {
			data := p.build()
			card := made1(t, newCard(t, "page.pdf", data, signer))
			if err := tools.CheckQPDF(card, ""); err != nil {
				t.Error(err)
			}
			said, err := tools.Text(card, "")
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(said, "\f")
			dpi, least, most := 36, 2.5, 3.1 // 70 by 25 mm
			if p.name == "large" {
				dpi, least, most = 6, 2, 4
			}
			before, after := viewers.PictureByMuPDF(data, 1, dpi), viewers.PictureByMuPDF(card, 1, dpi)
			if !before.Bounds().Eq(after.Bounds()) {
				t.Fatalf("the page was %v and is %v", before.Bounds(), after.Bounds())
			}
			area, covered := image.Rectangle{}, 0
			for y := before.Bounds().Min.Y; y < before.Bounds().Max.Y; y++ {
				for x := before.Bounds().Min.X; x < before.Bounds().Max.X; x++ {
					r0, g0, b0, _ := before.At(x, y).RGBA()
					r1, g1, b1, _ := after.At(x, y).RGBA()
					if r0 == r1 && g0 == g1 && b0 == b1 {
						continue
					}
					area = area.Union(image.Rect(x, y, x+1, y+1))
					if r0+g0+b0 < 3*0xf000 {
						covered++
					}
				}
			}
			if covered > 0 {
				t.Errorf("%d pixels of ink are covered", covered)
			}
			if !strings.Contains(flat(first), "ДОКУМЕНТПОДПИСАН") {
				if !area.Empty() {
					t.Errorf("the page changed at %v without a mark", area)
				}
				if !strings.Contains(flat(said), "ДОКУМЕНТПОДПИСАН") {
					t.Error("there is no mark")
				}
				return
			}
			if !strings.Contains(flat(first), strings.ToUpper(signer.Certificate.SerialHex())) {
				t.Errorf("the mark says %q", first)
			}
			if side := float64(area.Dx()) / float64(area.Dy()); side < least || side > most {
				t.Errorf("the mark is at %v", area)
			}
		})
	}
}

// TestCardNames: names that programs would take for paths, that hide something, or that two files have.
func TestCardNames(t *testing.T) {
	tools := judge.PDF(t)
	_, signer := party(t)
	long := strings.Repeat("Ё", 200) + ".txt"
	for given, want := range map[string]string{
		"../../etc/passwd":                 "passwd",
		`C:\Users\me\договор.docx`:         "договор.docx",
		"c:x.txt":                          "x.txt",
		"..":                               "document",
		"con":                              "_con",
		"Nul .tar.gz":                      "_Nul .tar.gz",
		"com\u00b9.txt":                    "_com\u00b9.txt",
		"com10.txt":                        "com10.txt",
		"a\x00b\r\n.txt":                   "ab.txt",
		"cod\u202egpj.exe":                 "codgpj.exe",
		"שלום עולם.txt":                    "שלום עולם.txt",
		"и\u0306 e\u0301.txt":              "й é.txt",
		"a\u0300\u0323\u0301.txt":          "ạ\u0300\u0301.txt",
		long:                               long,
		strings.Repeat("a", 400) + ".docx": strings.Repeat("a", 250) + ".docx",
	} {
		c := newCard(t, "x", []byte("text"), signer)
		c.Document.Name, c.Signatures[0].Name = given, given
		card := made1(t, c)
		o := openedCard(t, card)
		if o.Original.Name != want || len(o.Changes) != 0 {
			t.Errorf("%q became %q; want %q; %v", given, o.Original.Name, want, o.Changes)
		}
		if second := o.Signatures[0].Name; second == want || !strings.Contains(second, " (2)") {
			t.Errorf("the second file is %q", second)
		}
		if err := tools.CheckQPDF(card, ""); err != nil {
			t.Error(err)
		}
		if got, err := tools.Attached(card, want); err != nil || string(got) != "text" {
			t.Errorf("%q: %q %v", want, got, err)
		}
	}
	// The name of a signer of 200 letters, some from right to left, is on the sheet in full.
	person := strings.TrimSpace(strings.Repeat("Ñāñдър ", 28))
	one := sigtest.Root(t, suite.ECDSAP256).Signer(t, suite.ECDSAP256, person)
	said, err := tools.Text(made1(t, newCard(t, "x", []byte("text"), one)), "")
	if err != nil || !strings.Contains(flat(said), flat(person)) {
		t.Errorf("the sheet says %s", said)
	}
}

// TestChangedCard: what was changed after a card was made is said, and what cannot be opened safely is refused.
func TestChangedCard(t *testing.T) {
	tools := judge.PDF(t)
	_, signer := party(t)
	c := newCard(t, "note.txt", []byte("the agreed text"), signer)
	card := made1(t, c)
	changes := func(card []byte) (out []string) {
		for _, change := range openedCard(t, card).Changes {
			out = append(out, strings.TrimSuffix(string(change.Kind)+" "+change.Name, " "))
		}
		return out
	}
	same := func(what string, card []byte, want ...string) {
		t.Helper()
		if got := changes(card); !slices.Equal(got, want) {
			t.Errorf("%s: %q; want %q", what, got, want)
		}
	}
	replaced := func(old, new string) []byte {
		if len(old) != len(new) || !bytes.Contains(card, []byte(old)) {
			t.Fatalf("%q is not in the card", old)
		}
		return bytes.Replace(card, []byte(old), []byte(new), 1)
	}
	same("nothing", card)
	same("the document", replaced("the agreed text", "the greedy text"), "file-changed note.txt", "rewritten")
	same("something else", replaced("/Rotate 0", "/Rotate 1"), "rewritten")
	same("bytes behind", append(bytes.Clone(card), "\n% more\n"...), "extended")
	again, err := tools.QPDF(card, "--object-streams=generate", "--recompress-flate", "--compression-level=9")
	if err != nil {
		t.Fatal(err)
	}
	same("written by qpdf", again, "rewritten")
	if got := contentOf(t, openedCard(t, again).Original); string(got) != "the agreed text" {
		t.Errorf("after qpdf: %q", got)
	}
	more, err := tools.QPDF(card, "--add-attachment", tools.Write("more.txt", []byte("more")), "--")
	if err != nil {
		t.Fatal(err)
	}
	same("a file more", more, "file-added more.txt", "rewritten")
	less, err := tools.QPDF(card, "--remove-attachment=note.txt")
	if err != nil {
		t.Fatal(err)
	}
	same("a file less", less, "file-missing note.txt", "rewritten")
	if o := openedCard(t, less); o.Original != nil || len(o.Signatures) != 1 {
		t.Errorf("a file less: %+v", o)
	}
	for what, bad := range map[string][]byte{
		"a climbing name":  bytes.ReplaceAll(card, []byte("(note.txt)"), []byte("(../n.txt)")),
		"an absolute name": bytes.ReplaceAll(card, []byte("(note.txt)"), []byte("(/ote.txt)")),
		"a drive":          bytes.ReplaceAll(card, []byte("(note.txt)"), []byte("(c:te.txt)")),
		"a device":         bytes.ReplaceAll(card, []byte("(note.txt)"), []byte("(lpt1.txt)")),
		"a back slash":     bytes.ReplaceAll(card, []byte("(note.txt)"), []byte(`(n\\e.txt)`)),
		"two names":        bytes.ReplaceAll(card, []byte("(note.txt.1.sig)"), []byte("(NOTE.TXT)      ")),
		"a point":          bytes.ReplaceAll(card, []byte("(note.txt)"), []byte("(..)      ")),
		"no card":          document{}.build(),
		"no PDF":           []byte("text"),
		"a later version":  bytes.Replace(card, []byte("/Version 1/"), []byte("/Version 7/"), 1),
	} {
		if _, err := New().OpenCard(t.Context(), bytes.NewReader(bad)); !errors.As(err, new(*sig.ErrDocument)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// Every changed byte is noticed, and none brings the program down.
	step := 97
	if testsize.Of() < testsize.Whole {
		step = 997
	}
	for i := 0; i < len(card); i += step {
		bad := bytes.Clone(card)
		bad[i] ^= 0x21
		if o, err := New().OpenCard(t.Context(), bytes.NewReader(bad)); err == nil && len(o.Changes) == 0 {
			t.Errorf("the changed byte %d (%q) is not noticed", i, card[max(0, i-9):min(len(card), i+9)])
		}
	}
}

// TestPackedCard: an attachment that was compressed later comes back, and one that grows without end is refused before it is
// held. What other programs encode otherwise is refused, too.
func TestPackedCard(t *testing.T) {
	_, signer := party(t)
	card := made1(t, newCard(t, "note.txt", []byte("the agreed text"), signer))
	with := func(d dict, data []byte) []byte {
		f := opened(t, card)
		defer f.close()
		_, root := f.catalog()
		leaves := f.resolveArray(f.resolveDict(f.resolveDict(root.get("Names")).get("EmbeddedFiles")).get("Names"))
		content := f.resolveDict(f.resolveDict(leaves[1]).get("EF")).get("F").(ref)
		u, err := f.newUpdate()
		if err != nil {
			t.Fatal(err)
		}
		u.put(content, &stream{dict: d, fresh: data})
		u.close()
		return append(bytes.Clone(card), u.buf...)
	}
	flate := dict{{"Filter", name("FlateDecode")}}
	if got := contentOf(t, openedCard(t, with(flate, packed([]byte("the agreed text")))).Original); string(got) != "the agreed text" {
		t.Errorf("a compressed attachment is %q", got)
	}
	bomb := packed(make([]byte, 100<<20))
	for what, bad := range map[string][]byte{
		"without end": with(flate, bomb), "cut off": with(flate, bomb[:len(bomb)/2]), "no Deflate": with(flate, []byte("text")),
		"twice": with(dict{{"Filter", array{name("FlateDecode"), name("FlateDecode")}}}, bomb), "in digits": with(dict{{"Filter", name("ASCIIHexDecode")}}, []byte("41>")),
	} {
		var err error
		took := allocated(func() { _, err = New().OpenCard(t.Context(), bytes.NewReader(bad)) })
		if !errors.As(err, new(*sig.ErrDocument)) || took > 16<<20 {
			t.Errorf("%s: %v, %d KiB", what, err, took>>10)
		}
	}
}

// TestWrongCards: what no card can be made of.
func TestWrongCards(t *testing.T) {
	_, signer := party(t)
	none := newCard(t, "x.txt", []byte("x"))
	many := newCard(t, "x.txt", []byte("x"), signer)
	many.Signers = slices.Repeat(many.Signers, maxCardSigners+1)
	for name, c := range map[string]*sig.Card{"none": none, "many": many} {
		if _, err := New().MakeCard(t.Context(), c); !errors.As(err, new(*sig.ErrDocument)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	most := newCard(t, "x.pdf", document{}.build(), signer)
	most.Signers = slices.Repeat(most.Signers, maxCardSigners)
	if o := openedCard(t, made1(t, most)); len(o.Changes) != 0 {
		t.Errorf("%v", o.Changes)
	}
	// Pages that are one object, and an action that runs when the document opens.
	shared := bytes.Replace(document{pages: 2, catalog: "/OpenAction <</S /JavaScript /JS (app.alert)>>"}.build(), []byte("[10 0 R 12 0 R]"), []byte("[10 0 R 10 0 R]"), 1)
	card := made1(t, newCard(t, "x.pdf", shared, signer))
	f := opened(t, card)
	defer f.close()
	_, catalog := f.catalog()
	if catalog.has("OpenAction") {
		t.Error("the card runs the action of the document")
	}
	if n := f.pageCount(); n != 3 {
		t.Errorf("%d pages", n)
	}
	first, err := f.page(0)
	if err != nil || len(f.resolveArray(first.dict.get("Contents"))) != 0 {
		t.Errorf("a mark is on a page that is shown twice: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New().MakeCard(ctx, newCard(t, "x.pdf", shared, signer)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestCardMemory makes and opens a card of a document of 100 MB: the total of all allocations, freed or not, stays below
// 64 MiB.
func TestCardMemory(t *testing.T) {
	_, signer := party(t)
	d := sparseDocument(100_000_000)
	c := newCard(t, "large.pdf", []byte("another"), signer)
	c.Document.Document = d
	var result sig.Result
	var err error
	New().MakeCard(t.Context(), newCard(t, "small.pdf", document{}.build(), signer)) // fonts stay in memory
	runtime.GC()
	if took := allocated(func() { result, err = New().MakeCard(t.Context(), c) }); err != nil || took > 64<<20 {
		t.Fatalf("%d KiB were allocated: %v", took>>10, err)
	}
	if result.Size() < 2*d.Size() {
		t.Errorf("the card has %d bytes", result.Size())
	}
	card := result.(sig.Document)
	took := allocated(func() {
		var o *sig.OpenedCard
		if o, err = New().OpenCard(t.Context(), card); err == nil && (len(o.Changes) != 0 || o.Original.Size != d.Size()) {
			err = fmt.Errorf("%+v", o)
		}
		if err == nil {
			_, err = result.WriteTo(io.Discard)
		}
	})
	if err != nil || took > 64<<20 {
		t.Errorf("%d KiB were allocated: %v", took>>10, err)
	}
}

// TestCardPictureMemory: a picture is charged for all copies of it, before they are made.
func TestCardPictureMemory(t *testing.T) {
	_, signer := party(t)
	var small bytes.Buffer
	if err := jpeg.Encode(&small, image.NewGray(image.Rect(0, 0, 8, 8)), nil); err != nil {
		t.Fatal(err)
	}
	photo := bytes.Clone(small.Bytes()[:2])
	for range 128 { // comments of 64 KiB
		photo = append(append(photo, 0xff, 0xfe, 0xff, 0xff), make([]byte, 1<<16-3)...)
	}
	photo = append(photo, small.Bytes()[2:]...)
	c := newCard(t, "photo.jpg", photo, signer)
	made1(t, newCard(t, "x.txt", []byte("x"), signer)) // fonts stay in memory
	for limit, fits := range map[int64]bool{15 << 20: false, 24 << 20: true} {
		ctx := budget.With(t.Context(), budget.Limits{Steps: 1 << 40, Memory: limit})
		var err error
		took := allocated(func() { _, err = New().MakeCard(ctx, c) })
		if fits != (err == nil) || !fits && !errors.Is(err, budget.ErrMemory) || took > limit {
			t.Errorf("within %d MiB: %v, %d KiB were allocated", limit>>20, err, took>>10)
		}
	}
}

// FuzzCard opens any card.
func FuzzCard(f *testing.F) {
	_, signer := party(f)
	for _, data := range [][]byte{[]byte("x"), document{}.build()} {
		f.Add(made1(f, newCard(f, "x.pdf", data, signer)))
	}
	f.Fuzz(func(t *testing.T, card []byte) {
		o, err := New().OpenCard(t.Context(), bytes.NewReader(card))
		if err != nil {
			return
		}
		for _, file := range append(append([]*sig.CardFile{}, o.Signatures...), o.Others...) {
			if wrongCardName(file.Name) != "" {
				t.Errorf("the name %q", file.Name)
			}
		}
	})
}

// FuzzCardOf makes cards of anything that looks like a PDF. A card that was made opens, and gives the document back.
func FuzzCardOf(f *testing.F) {
	_, signer := party(f)
	script := "<</S /JavaScript /JS (x)>>"
	for _, d := range []document{
		{}, {page: "/AA <</O " + script + ">> /Annots [<</Subtype /Link /A " + script + ">> 5 0 R]", objects: map[int]string{5: "<</Subtype /Screen /AP <</N 5 0 R>> /A 5 0 R>>"}},
		{catalog: "/AcroForm <</Fields [5 0 R]>> /Outlines <</First 6 0 R>>", objects: map[int]string{5: "<</T (a) /Kids [5 0 R 6 0 R] /AA 6 0 R>>", 6: "<</Next 6 0 R /First 5 0 R /A " + script + ">>"}},
	} {
		f.Add(d.build())
	}
	f.Add(signedBy(f, signer, document{}.build(), anywhere("")))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &sig.Card{Document: sig.File{Name: "x.pdf", Document: bytes.NewReader(data)}, Made: sigtest.Time, Language: "en"}
		c.Signers = []sig.CardSigner{{Certificate: signer.Certificate, File: -1}}
		result, err := New().MakeCard(budget.With(t.Context(), budget.Anonymous()), c)
		if err != nil {
			return
		}
		if o := openedCard(t, written(t, result, nil)); len(o.Changes) != 0 || !bytes.Equal(contentOf(t, o.Original), data) {
			t.Errorf("%+v", o)
		}
	})
}
