// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"context"
	"crypto/sha1"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// opened opens a document that must be readable.
func opened(t testing.TB, data []byte) *file {
	t.Helper()
	f, err := open(context.Background(), bytes.NewReader(data), int64(len(data)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// revise adds a revision to a document.
func revise(t testing.TB, data []byte, change func(f *file, u *update)) []byte {
	t.Helper()
	f := opened(t, data)
	u, err := f.newUpdate()
	if err != nil {
		t.Fatal(err)
	}
	change(f, u)
	u.close()
	return append(bytes.Clone(data), u.buf...)
}

// party returns a root with a signer of one suite.
func party(t testing.TB) (root, signer *sigtest.Party) {
	root = sigtest.Root(t, suite.ECDSAP256)
	return root, root.Signer(t, suite.ECDSAP256, "Signer")
}

func signedBy(t testing.TB, signer *sigtest.Party, data []byte, params sig.Params) []byte {
	t.Helper()
	p := sig.Params{"PDFFormat": "CMS"}
	for k, v := range params {
		p[k] = v
	}
	return sigtest.Make(t, New(), signer, &sig.Job{Document: bytes.NewReader(data), Params: p})
}

// formDocument returns a document with a text field (5), a check box (6), an annotation
// (7) in its own list (8), and text in a font (3).
func formDocument() []byte {
	return document{
		catalog: "/AcroForm <</Fields [5 0 R 6 0 R] /DA (/F1 0 Tf)>>", page: "/Annots 8 0 R",
		objects: map[int]string{
			5: textField,
			6: "<</Type /Annot /Subtype /Widget /FT /Btn /T (Agreed) /Rect [50 180 60 190] /F 4 /P 10 0 R>>",
			7: "<</Type /Annot /Subtype /Text /Rect [10 10 20 20] /Contents (note)>>",
			8: "[5 0 R 6 0 R 7 0 R]",
		},
	}.build()
}

// TestLaterRevisions adds revisions to a signed document: allowed changes are reported,
// and those that change the meaning are fatal.
func TestLaterRevisions(t *testing.T) {
	root, signer := party(t)
	set := func(id int, key name, value object) func(*file, *update) {
		return func(f *file, u *update) {
			d, _ := f.object(ref{num: id}).(dict)
			u.put(ref{num: id}, d.with(key, value))
		}
	}
	content := func(s string) *stream { return &stream{dict: dict{}, fresh: []byte(s)} }
	const covering = "0 0 595 842 re f"
	for _, c := range []struct {
		name   string
		level  string // PDFCertificationLevel
		change func(f *file, u *update)
		code   string
		fatal  bool
	}{
		{"content replaced", "", func(_ *file, u *update) { u.put(ref{num: 11}, content("BT ET")) }, codeLaterChange, true},
		{"content added", "", set(10, "Contents", array{ref{num: 11}, ref{num: 12}}), codeLaterChange, true},
		{"font replaced", "", set(3, "BaseFont", name("Symbol")), codeLaterChange, true},
		{"pages replaced", "", func(f *file, u *update) {
			_, cat := f.catalog()
			id := u.add(dict{{"Type", name("Pages")}, {"Kids", array{}}, {"Count", number("0")}})
			u.put(ref{num: 1}, cat.with("Pages", id))
		}, codeLaterChange, true},
		{"catalog exchanged", "", func(f *file, u *update) {
			_, cat := f.catalog()
			u.trailer = u.trailer.with("Root", u.add(cat.with("OpenAction", array{ref{num: 10}, name("Fit")})))
		}, codeLaterChange, true},
		{"object removed", "", func(_ *file, u *update) { u.placed[11] = place{kind: free, gen: 1} }, codeLaterChange, true},
		{"page box", "", set(10, "CropBox", array{number("0"), number("0"), number("10"), number("10")}), codeLaterChange, true},
		{"overlay", "", func(f *file, u *update) {
			form := u.add(&stream{dict: dict{{"Subtype", name("Form")}, {"BBox", rectObject([4]float64{0, 0, 595, 842})}}, fresh: []byte(covering)})
			a := u.add(dict{{"Type", name("Annot")}, {"Subtype", name("Stamp")}, {"Rect", rectObject([4]float64{0, 0, 595, 842})}, {"AP", dict{{"N", form}}}})
			showAlso(f, u, a)
		}, codeLaterAnnotations, true},
		{"annotation changed", "", set(7, "Rect", array{number("0"), number("0"), number("595"), number("842")}), codeLaterAnnotations, true},
		{"annotation allowed", "CERTIFIED_FORM_FILLING_AND_ANNOTATIONS", set(7, "Contents", text("other")), codeLaterAnnotations, false},
		{"annotation not allowed", "CERTIFIED_FORM_FILLING", set(7, "Contents", text("other")), codeLaterAnnotations, true},
		{"form filled", "", set(5, "V", text("200")), codeLaterForm, false},
		{"form filled where allowed", "CERTIFIED_FORM_FILLING", set(5, "V", text("200")), codeLaterForm, false},
		{"form filled where forbidden", "CERTIFIED_NO_CHANGES_ALLOWED", set(5, "V", text("200")), codeLaterForm, true},
		{"field moved", "", set(5, "Rect", array{number("0"), number("0"), number("595"), number("842")}), codeLaterChange, true},
		{"field removed", "", func(f *file, u *update) {
			_, cat := f.catalog()
			u.put(ref{num: 1}, cat.with("AcroForm", f.resolveDict(cat.get("AcroForm")).with("Fields", array{ref{num: 5}, f.form().signatures[0].id})))
		}, codeLaterChange, true},
		{"script added", "", func(f *file, u *update) {
			_, cat := f.catalog()
			u.put(ref{num: 1}, cat.with("OpenAction", dict{{"S", name("JavaScript")}, {"JS", text("app.alert(1)")}}))
		}, codeLaterChange, true},
		{"the signature exchanged", "", func(f *file, u *update) {
			s := f.form().signatures[0]
			u.put(s.id, s.dict.with("AP", dict{{"N", u.add(content(covering))}}))
		}, codeLaterChange, true},
		{"information", "", func(_ *file, u *update) {
			u.trailer = u.trailer.with("Info", u.add(dict{{"Title", text("x")}}))
		}, codeLaterMetadata, false},
		{"validation data", "CERTIFIED_NO_CHANGES_ALLOWED", func(f *file, u *update) {
			_, cat := f.catalog()
			u.put(ref{num: 1}, cat.with("DSS", u.add(dict{{"Certs", array{}}})))
		}, codeLaterStore, false},
		{"nothing", "", func(f *file, u *update) { u.put(ref{num: 11}, mustStream(f, 11)) }, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			signed := signedBy(t, signer, formDocument(), sig.Params{"PDFCertificationLevel": c.level})
			if r := verified(t, signed, root); !r.Passed() {
				t.Fatalf("before: %s", say(r))
			}
			r := verified(t, revise(t, signed, c.change), root)
			if len(r.Signatures) != 1 {
				t.Fatalf("%s", say(r))
			}
			var codes []string
			for _, f := range r.Signatures[0].Findings {
				if strings.HasPrefix(f.Code, "later-") {
					codes = append(codes, f.Code)
					if (f.Indication != "") != c.fatal {
						t.Errorf("it means %q: %s", f.Indication, f.Text)
					}
				}
			}
			if c.code == "" && len(codes) > 0 || c.code != "" && !slices.Equal(codes, []string{c.code}) || r.Passed() == c.fatal {
				t.Errorf("want %s, fatal %v: %s", c.code, c.fatal, say(r))
			}
		})
	}
}

func mustStream(f *file, num int) *stream {
	s := f.object(ref{num: num}).(*stream)
	data, err := f.rawData(s)
	if err != nil {
		panic(err)
	}
	return &stream{dict: s.dict.with("Length", nil), fresh: data}
}

// showAlso adds an annotation to page 10, which has an array of its own once it is signed.
func showAlso(f *file, u *update, annotation ref) {
	page := f.object(ref{num: 10}).(dict)
	u.put(ref{num: 10}, page.with("Annots", append(slices.Clone(f.resolveArray(page.get("Annots"))), annotation)))
}

// TestShadow defines an object that the signed revision refers to but lacks.
func TestShadow(t *testing.T) {
	root, signer := party(t)
	data := document{page: "/Contents [11 0 R 99 0 R]", objects: map[int]string{100: "null"}}.build()
	data = bytes.Replace(data, []byte("/Contents 11 0 R /Contents"), []byte("                  /Contents"), 1)
	signed := signedBy(t, signer, data, nil)
	if r := verified(t, signed, root); !r.Passed() {
		t.Fatalf("before: %s", say(r))
	}
	r := verified(t, revise(t, signed, func(_ *file, u *update) {
		u.put(ref{num: 99}, &stream{dict: dict{}, fresh: []byte("0 0 595 842 re f")})
	}), root)
	if !slices.Contains(sigtest.Codes(r), codeLaterChange) {
		t.Errorf("the shadow is not seen: %s", say(r))
	}
}

// TestByteRange attacks the range that the signature covers.
func TestByteRange(t *testing.T) {
	root, signer := party(t)
	data := formDocument()
	signed := signedBy(t, signer, data, nil)
	s := opened(t, signed).signature(opened(t, signed).form().signatures[0])
	if s.broken {
		t.Fatal(s.findings)
	}
	hole := signed[s.from:s.to]
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	wrapped := func() []byte {
		// A second ByteRange in a wider hole leaves space for anything.
		more := []byte("/X (anything)")
		for range 3 { // until the numbers settle
			to := s.from + int64(len(hole)) + int64(len(more))
			more = fmt.Appendf(nil, "/ByteRange [0 %d %d %d]/X (anything)", s.from, to, int64(len(signed))-s.to)
		}
		return join(signed[:s.from], hole, more, signed[s.to:])
	}
	short := bytes.Replace(signed, fmt.Appendf(nil, "[0 %d %d %d]", s.from, s.to, s.end-s.to), fmt.Appendf(nil, "[0 %d %d %d]", s.from, s.to, s.end-s.to-9), 1)
	for _, c := range []struct {
		name string
		data []byte
		code string
	}{
		{"wrapped", wrapped(), codeMalformed},
		{"bytes follow", join(signed, []byte("\n99 0 obj\n<</Type /Catalog>>\nendobj\n")), codeTrailing},
		{"not to the end", short, codeRevision},
		{"value emptied", join(signed[:s.from], []byte("<>"), bytes.Repeat([]byte(" "), len(hole)-2), signed[s.to:]), codeByteRange},
		{"no ByteRange", bytes.Replace(signed, []byte("/ByteRange"), []byte("/ByteRangE"), 1), codeMalformed},
		{"negative", bytes.Replace(signed, []byte("[0 "), []byte("[-1 "), 1), ""},
		{"a changed byte", bytes.Replace(signed, []byte("(Page 1)"), []byte("(Page 7)"), 1), "message-digest-mismatch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := verified(t, c.data, root)
			if r.Passed() || c.code != "" && !slices.Contains(sigtest.Codes(r), c.code) {
				t.Errorf("%s", say(r))
			}
		})
	}
}

// TestEveryByte changes bytes all over a signed document: none of the results may pass.
func TestEveryByte(t *testing.T) {
	root, signer := party(t)
	signed := signedBy(t, signer, formDocument(), nil)
	f := opened(t, signed)
	s := f.signature(f.form().signatures[0])
	meant := int64(2*len(s.message)) + s.from
	for at := int64(9); at < int64(len(signed)); at += 13 {
		if at > meant && at < s.to-1 {
			continue // padding of Contents
		}
		changed := bytes.Clone(signed)
		changed[at] ^= 0x11
		r, err := New().Verify(context.Background(), &sig.Check{Document: bytes.NewReader(changed), Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time})
		if err == nil && r.Passed() {
			t.Errorf("a change at %d passes: %q", at, signed[max(0, at-20):at+20])
		}
	}
}

// signedByHand adds a revision with a signature dictionary and an invisible field.
// message gets the covered bytes.
func signedByHand(t testing.TB, data []byte, entries string, message func(covered sig.Document) []byte) []byte {
	t.Helper()
	const room = 4096
	f := opened(t, data)
	u, err := f.newUpdate()
	if err != nil {
		t.Fatal(err)
	}
	m := &maker{file: f, form: f.form(), update: u}
	id := u.reserve()
	u.begin(id)
	u.buf = append(u.buf, "<<"+entries+" /Filter /Adobe.PPKLite /ByteRange "...)
	byteRange := len(u.buf)
	u.buf = append(append(u.buf, strings.Repeat(" ", byteRangeWidth)...), "/Contents "...)
	u.holeAt, u.hole = len(u.buf), holeOf(room)
	u.buf = append(u.buf, ">>"...)
	u.end()
	widget := u.add(dict{{"FT", name("Sig")}, {"T", text(m.form.freeName())}, {"V", id}})
	rootID, _ := f.catalog()
	u.put(rootID, m.putForm(&target{field: &field{id: widget}}))
	u.close()
	out, err := m.cut(byteRange, room, nil)
	if err != nil {
		t.Fatal(err)
	}
	contents := make([]byte, room)
	copy(contents, message(joined{bytes.NewReader(data), out.head, out.tail}))
	return bytes.Join([][]byte{data, out.head, appendHex(nil, contents), out.tail}, nil)
}

// stampedByHand adds a document time stamp with an imprint by a hash function.
func stampedByHand(t testing.TB, data []byte, services *sigtest.Services, h *suite.Hash) []byte {
	return stampedByHandWith(t, data, services, h, bytes.Clone)
}

// stampedByHandWith is stampedByHand with a change of the token.
func stampedByHandWith(t testing.TB, data []byte, services *sigtest.Services, h *suite.Hash, change func([]byte) []byte) []byte {
	return signedByHand(t, data, "/Type /DocTimeStamp /SubFilter /ETSI.RFC3161", func(covered sig.Document) []byte {
		digest, err := sig.DigestOf(context.Background(), sig.File{Document: covered}, h)
		if err != nil {
			t.Fatal(err)
		}
		token, err := services.TimeStamp(context.Background(), "", digest)
		if err != nil {
			t.Fatal(err)
		}
		return change(token.Token().Raw)
	})
}

// TestDocumentTimeStamp checks a document time stamp, and the time that it proves for the
// signature before it.
func TestDocumentTimeStamp(t *testing.T) {
	root, signer := party(t)
	services := sigtest.NewServices(t, root)
	signed := signedBy(t, signer, formDocument(), nil)
	stamped := stampedByHand(t, signed, services, suite.SHA256)
	r := verified(t, stamped, root)
	if len(r.Signatures) != 2 || !r.Passed() || r.Signatures[1].Level != sig.LevelDocumentStamp || !r.Signatures[0].BestTime.Equal(r.Signatures[1].BestTime) {
		t.Errorf("%s", say(r))
	}
	changed := bytes.Clone(stamped)
	changed[50] ^= 1
	if r := verified(t, changed, root); r.Signatures[1].Verdict() != sig.Failed || !slices.Contains(sigtest.Codes(r), codeDigest) {
		t.Errorf("changed: %s", say(r))
	}
	// The last bytes of the token are those of its signature value.
	s := opened(t, stamped).signature(opened(t, stamped).form().signatures[1])
	forged := bytes.Clone(stamped)
	forged[s.from+int64(2*len(s.message))-4] ^= 1
	if r := verified(t, forged, root); r.Signatures[1].Verdict() != sig.Failed || r.Signatures[0].BestTime.Before(sigtest.Time) {
		t.Errorf("forged: %s", say(r))
	}
	without, err := New().Verify(context.Background(), &sig.Check{Document: bytes.NewReader(stamped), At: sigtest.Time})
	if err != nil || without.Signatures[1].Verdict() != sig.Indeterminate {
		t.Errorf("without a trusted root: %v %s", err, say(without))
	}
	// Another serial number beside the digest of the certificate is a warning.
	other := stampedByHandWith(t, signed, services, suite.SHA256, services.OtherSerial)
	if r := verified(t, other, root); !r.Passed() || !slices.Contains(r.Signatures[1].Headlines(), "another issuer or serial number is named") {
		t.Errorf("another serial number: %s", say(r))
	}
	// An imprint by SHA-1 proves nothing, and does not prove the time of the covered
	// bytes.
	weak := verified(t, stampedByHand(t, signed, services, suite.SHA1), root)
	if weak.Signatures[1].Verdict() != sig.Indeterminate || !slices.Contains(sigtest.Codes(weak), sig.CodeWeak) || !weak.Signatures[0].BestTime.Equal(sigtest.Time) {
		t.Errorf("stamped by SHA-1: %s", say(weak))
	}
}

// TestStore reads the document security store back.
func TestStore(t *testing.T) {
	root, signer := party(t)
	services := sigtest.NewServices(t, root)
	services.By[signer.Certificate] = sigtest.ByList
	signed := sigtest.Make(t, New(), signer, &sig.Job{Document: bytes.NewReader(formDocument()), Evidence: services, Params: sig.Params{"PDFFormat": "CAdES", "TSPAddress": ""}})
	v := &verifier{file: opened(t, signed)}
	found := v.store(v.file)
	if len(found.Certificates) < 3 || len(found.CRLs) == 0 || len(found.OCSP) == 0 {
		t.Errorf("%d certificates, %d lists, %d answers", len(found.Certificates), len(found.CRLs), len(found.OCSP))
	}
	f := v.file
	s := f.signature(f.form().signatures[0])
	digest := sha1.Sum(f.textOf(s.dict.get("Contents")))
	vri := f.resolveDict(f.resolveDict(f.resolveCatalog("DSS")).get("VRI"))
	if f.resolveDict(vri.get(name(fmt.Sprintf("%X", digest)))) == nil {
		t.Errorf("VRI does not name the signature: %v", vri)
	}
}
