// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// TestVerifyPassword checks a signed document that needs a password, also with later
// revisions.
func TestVerifyPassword(t *testing.T) {
	tools := judge.PDF(t)
	root, signer := party(t)
	services := sigtest.NewServices(t, root)
	for _, how := range [][]string{{"256", "--"}, {"128", "--use-aes=y", "--"}} {
		args := append([]string{"--allow-weak-crypto", "--encrypt", "слово", "owner-word"}, how...)
		data, err := tools.QPDF(formDocument(), args...)
		if err != nil {
			t.Fatal(err)
		}
		for _, format := range []string{formatCMS, formatCAdES} {
			data = sigtest.Make(t, New(), signer, &sig.Job{Document: bytes.NewReader(data), Evidence: services, Params: sig.Params{
				"PDFFormat": format, "TSPAddress": "", "PDFPassword": "слово",
			}})
		}
		check := &sig.Check{Document: bytes.NewReader(data), Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time}
		for _, wrong := range []string{"", "другое"} {
			check.Password = []byte(wrong)
			_, err := New().Verify(t.Context(), check)
			if !slices.Equal(sigtest.Faults(err), []string{ParamPassword}) || wrong != "" && strings.Contains(err.Error(), wrong) {
				t.Errorf("%q: %v", wrong, err)
			}
		}
		for _, word := range []string{"слово", "owner-word"} {
			check.Password = []byte(word)
			r, err := New().Verify(t.Context(), check)
			if err != nil || !r.Passed() || len(r.Signatures) != 2 || r.Signatures[1].Level != "XLT1" {
				t.Errorf("%s: %v %s", word, err, say(r))
			}
		}
		data[bytes.Index(data, []byte("endstream"))-8] ^= 1
		if r, err := New().Verify(t.Context(), check); err == nil && r.Passed() {
			t.Errorf("changed: %s", say(r))
		}
	}
}

// allCodes returns the codes of all findings of the signatures, fatal or not.
func allCodes(r *sig.Report) (codes []string) {
	for _, s := range r.Signatures {
		for _, f := range s.Findings {
			codes = append(codes, f.Code)
		}
	}
	return codes
}

// TestPadding fills the rest of Contents with other bytes, which is reported, and with
// characters that are not hexadecimal digits, which does not pass.
func TestPadding(t *testing.T) {
	root, signer := party(t)
	signed := signedBy(t, signer, formDocument(), nil)
	s := opened(t, signed).signature(opened(t, signed).form().signatures[0])
	behind := s.from + 1 + int64(2*len(s.message))
	for with, c := range map[string]struct {
		code   string
		passed bool
	}{
		"00": {"", true}, "  ": {"", true}, "\r\n": {"", true},
		"41": {codePadding, true}, "0f": {codePadding, true},
		"zz": {codeMalformed, false}, "<<": {codeMalformed, false}, "0/": {codeMalformed, false},
	} {
		for _, at := range []int64{behind, behind + 10, s.to - 3} {
			data := bytes.Clone(signed)
			copy(data[at:], with)
			r := verified(t, data, root)
			codes := allCodes(r)
			has := func(code string) bool { return slices.Contains(codes, code) }
			if r.Passed() != c.passed || c.code != "" && !has(c.code) || c.code == "" && (has(codePadding) || has(codeMalformed)) {
				t.Errorf("%q at %d: %s", with, at, say(r))
			}
			strict, err := New().Verify(t.Context(), &sig.Check{Document: bytes.NewReader(data), Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time, Strict: true})
			if err != nil || strict.Passed() != (c.code == "") {
				t.Errorf("%q at %d, strict: %v %s", with, at, err, say(strict))
			}
			if c.code == codePadding && !slices.Contains(r.Headlines(), "unsigned bytes after the signature") {
				t.Errorf("%q at %d: the headlines are %q", with, at, r.Headlines())
			}
		}
	}
}

// addField adds a signature field to the form, shown by page 10.
func addField(f *file, u *update, d dict) {
	id := u.add(append(dict{{"Type", name("Annot")}, {"Subtype", name("Widget")}, {"FT", name("Sig")}, {"T", text("More")},
		{"Rect", rectObject([4]float64{0, 0, 595, 842})}, {"P", ref{num: 10}}}, d...))
	_, cat := f.catalog()
	form := f.resolveDict(cat.get("AcroForm"))
	u.put(ref{num: 1}, cat.with("AcroForm", form.with("Fields", append(slices.Clone(f.resolveArray(form.get("Fields"))), id))))
	showAlso(f, u, id)
}

// TestOneSignatureTwoFields reports a signature once although two fields lead to it, and
// finds such a field that was added later.
func TestOneSignatureTwoFields(t *testing.T) {
	root, signer := party(t)
	// Both fields exist before signing. Signing writes one value, and an edit of the same
	// length makes the other field lead to it.
	data := document{
		catalog: "/AcroForm <</Fields [5 0 R 6 0 R]>>", page: "/Annots [5 0 R 6 0 R]",
		objects: map[int]string{
			5: "<</Type /Annot /Subtype /Widget /FT /Sig /T (One) /Rect [50 50 200 100] /F 4 /P 10 0 R>>",
			6: "<</Type /Annot /Subtype /Widget /FT /Sig /T (Two) /V 12 0 R /Rect [50 150 200 200] /F 4 /P 10 0 R>>",
		},
	}.build()
	signed := signedBy(t, signer, data, sig.Params{"PDFSignatureField": "One"})
	r := verified(t, signed, root)
	if !r.Passed() || len(r.Signatures) != 1 || !slices.Contains(allCodes(r), codeTwoFields) {
		t.Errorf("two fields: %s", say(r))
	}
	once := signedBy(t, signer, formDocument(), nil)
	again := revise(t, once, func(f *file, u *update) { addField(f, u, dict{{"V", f.form().signatures[0].value}}) })
	if r := verified(t, again, root); r.Passed() || len(r.Signatures) != 1 || !slices.Contains(sigtest.Codes(r), codeLaterChange) {
		t.Errorf("a field for an old signature: %s", say(r))
	}
}

// TestLaterWidgets adds signature fields that have no signature but are visible.
func TestLaterWidgets(t *testing.T) {
	root, signer := party(t)
	cover := func(u *update) entry {
		return entry{"AP", dict{{"N", u.add(&stream{dict: dict{{"Subtype", name("Form")}, {"BBox", rectObject([4]float64{0, 0, 595, 842})}}, fresh: []byte("0 0 595 842 re f")})}}}
	}
	empty := signatureField("")
	for what, c := range map[string]struct {
		data   []byte
		params sig.Params
		change func(f *file, u *update)
	}{
		"a field without a value": {formDocument(), nil, func(f *file, u *update) { addField(f, u, dict{cover(u)}) }},
		"a widget outside of the form": {formDocument(), nil, func(f *file, u *update) {
			id := u.add(dict{{"Subtype", name("Widget")}, {"FT", name("Sig")}, {"T", text("X")}, {"Rect", rectObject([4]float64{0, 0, 595, 842})}, cover(u),
				{"V", u.add(dict{{"Type", name("Sig")}, {"Contents", text("x")}})}})
			showAlso(f, u, id)
		}},
		"an empty field with an appearance": {empty, sig.Params{"PDFSignatureField": "New"}, func(f *file, u *update) {
			u.put(ref{num: 5}, append(slices.Clone(f.object(ref{num: 5}).(dict)), cover(u)))
		}},
	} {
		signed := signedBy(t, signer, c.data, c.params)
		if r := verified(t, signed, root); !r.Passed() {
			t.Fatalf("%s: before: %s", what, say(r))
		}
		if r := verified(t, revise(t, signed, c.change), root); r.Passed() {
			t.Errorf("%s: %s", what, say(r))
		}
	}
}

// TestFormResources changes the resources of the form later: additions pass.
func TestFormResources(t *testing.T) {
	root, signer := party(t)
	// Form 6, its resources 7, their fonts 8, which the page shares in one case.
	form := func(more, page string) []byte {
		return document{catalog: "/AcroForm 6 0 R", page: "/Annots [5 0 R] " + page, objects: map[int]string{
			5: textField, 6: "<</Fields [5 0 R] /DR 7 0 R " + more + ">>", 7: "<</Font 8 0 R /Encoding <</E 9 0 R>>>>", 8: "<</Helv 3 0 R>>", 9: "<</Type /Encoding>>",
		}}.build()
	}
	set := func(num int, key name, value object) func(*file, *update) {
		return func(f *file, u *update) { u.put(ref{num: num}, f.object(ref{num: num}).(dict).with(key, value)) }
	}
	font := dict{{"Type", name("Font")}, {"Subtype", name("Type1")}, {"BaseFont", name("Courier")}}
	for what, c := range map[string]struct {
		data   []byte
		change func(*file, *update)
		passed bool
	}{
		"a font is added":          {form("", ""), func(f *file, u *update) { set(8, "ZaDb", u.add(font))(f, u) }, true},
		"a kind is added":          {form("", ""), set(7, "XObject", dict{}), true},
		"an encoding is added":     {form("", ""), set(7, "Encoding", dict{{"E", ref{num: 9}}, {"F", ref{num: 9}}}), true},
		"SigFlags":                 {form("", ""), set(6, "SigFlags", number("3")), true},
		"NeedAppearances":          {form("", ""), set(6, "NeedAppearances", true), true},
		"an appearance is added":   {form("", ""), set(6, "DA", text("/Helv 0 Tf")), true},
		"an appearance is changed": {form("/DA (/Helv 0 Tf)", ""), set(6, "DA", text("/ZaDb 0 Tf")), false},
		"a font is exchanged":      {form("", ""), func(f *file, u *update) { set(8, "Helv", u.add(font))(f, u) }, false},
		"a font is changed":        {form("", ""), set(3, "BaseFont", name("Symbol")), false},
		"a font is removed":        {form("", ""), set(8, "Helv", nil), false},
		"fonts are exchanged":      {form("", ""), func(f *file, u *update) { set(7, "Font", u.add(dict{{"Helv", u.add(font)}}))(f, u) }, false},
		"resources are exchanged":  {form("", ""), set(6, "DR", dict{}), false},
		"a shared font is added":   {form("", "/Resources <</Font 8 0 R>>"), func(f *file, u *update) { set(8, "F9", u.add(font))(f, u) }, false},
	} {
		signed := signedBy(t, signer, c.data, nil)
		if r := verified(t, signed, root); !r.Passed() {
			t.Fatalf("%s: before: %s", what, say(r))
		}
		if r := verified(t, revise(t, signed, c.change), root); r.Passed() != c.passed {
			t.Errorf("%s: %s", what, say(r))
		}
	}
}

// TestStrict fails a signature that does not cover what the document shows now.
func TestStrict(t *testing.T) {
	root, signer := party(t)
	services := sigtest.NewServices(t, root)
	signed := signedBy(t, signer, formDocument(), nil)
	filled := revise(t, signed, func(f *file, u *update) {
		u.put(ref{num: 5}, f.object(ref{num: 5}).(dict).with("V", text("200")))
	})
	for what, c := range map[string]struct {
		data     []byte
		strict   sig.Verdict
		headline string
	}{
		"covered whole":   {signed, sig.Passed, ""},
		"time stamp":      {stampedByHand(t, signed, services, suite.SHA256), sig.Passed, ""},
		"validation data": {sigtest.Make(t, New(), signer, &sig.Job{Document: bytes.NewReader(formDocument()), Evidence: services, Params: sig.Params{"PDFFormat": "CAdES", "TSPAddress": ""}}), sig.Passed, ""},
		"signed again":    {signedBy(t, signer, signed, nil), sig.Failed, ""},
		"filled":          {filled, sig.Failed, "later changes: form filling"},
	} {
		check := &sig.Check{Document: bytes.NewReader(c.data), Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time}
		r, err := New().Verify(t.Context(), check)
		if err != nil || !r.Passed() {
			t.Errorf("%s: %v %s", what, err, say(r))
			continue
		}
		var headlines []string
		if c.headline != "" {
			headlines = []string{c.headline}
		}
		if got := slices.DeleteFunc(r.Headlines(), func(h string) bool { return h == "revocation not checked" }); !slices.Equal(got, headlines) {
			t.Errorf("%s: the headlines are %q", what, got)
		}
		for _, stricter := range []*sig.Check{{Strict: true}, {Expect: "/Envelope"}} {
			stricter.Document, stricter.Roots, stricter.At = check.Document, check.Roots, check.At
			if r, err = New().Verify(t.Context(), stricter); err != nil || r.Verdict() != c.strict {
				t.Errorf("%s, strict: %v %v %s", what, err, r.Verdict(), say(r))
			}
		}
	}
}

// unreadable fails from an offset on, once it is armed.
type unreadable struct {
	*bytes.Reader
	from  int64
	count int
}

func (u *unreadable) ReadAt(p []byte, off int64) (int, error) {
	if off <= u.from && off+int64(len(p)) > u.from {
		if u.count--; u.count < 0 {
			return 0, io.ErrClosedPipe
		}
	}
	return u.Reader.ReadAt(p, off)
}

// TestReadFails: a document that cannot be read causes an error, not a verdict.
func TestReadFails(t *testing.T) {
	_, signer := party(t)
	signed := signedBy(t, signer, formDocument(), nil)
	for count := range 3 {
		// The first read is for the structure, the others are for digests.
		r, err := New().Verify(context.Background(), &sig.Check{Document: &unreadable{bytes.NewReader(signed), 5, count}, At: sigtest.Time})
		if !errors.Is(err, io.ErrClosedPipe) && count < 2 {
			t.Errorf("%d reads: %v %v", count, err, r)
		}
	}
}
