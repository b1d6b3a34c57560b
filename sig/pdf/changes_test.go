// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tamga/sig"
)

// later is one case of a later revision: what it changes, and the findings about it. An empty
// list means that nothing was changed.
type laterCase struct {
	data   []byte
	change func(f *file, u *update)
	codes  []string // of the findings about later changes
	passes bool
}

func setKey(num int, key name, value object) func(*file, *update) {
	return func(f *file, u *update) {
		d, _ := f.object(ref{num: num}).(dict)
		u.put(ref{num: num}, d.with(key, value))
	}
}

func parsed(t testing.TB, s string) object {
	o, err := lexBytes([]byte(s)).object()
	if err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return o
}

func judgeLater(t *testing.T, cases map[string]laterCase, params sig.Params) {
	root, signer := party(t)
	for what, c := range cases {
		t.Run(what, func(t *testing.T) {
			signed := signedBy(t, signer, c.data, params)
			if r := verified(t, signed, root); !r.Passed() {
				t.Fatalf("before: %s", say(r))
			}
			r := verified(t, revise(t, signed, c.change), root)
			var codes []string
			for _, f := range r.Signatures[0].Findings {
				if strings.HasPrefix(f.Code, "later-") {
					codes = append(codes, f.Code)
				}
			}
			if r.Passed() != c.passes || !slices.Equal(codes, c.codes) {
				t.Errorf("want %v %v: %s", c.codes, c.passes, say(r))
			}
		})
	}
}

// shared returns a document with two fields (5, 6), whose appearances (8, 9) and the page may share
// the form XObject 100. objects replace or add some.
func shared(catalog, page string, objects map[int]string) []byte {
	all := map[int]string{
		4:   "<</Fields [5 0 R 6 0 R] /DR 102 0 R>>",
		5:   "<</Type /Annot /Subtype /Widget /FT /Tx /T (one) /V (1) /Rect [50 150 200 170] /F 4 /P 10 0 R /AP <</N 8 0 R>>>>",
		6:   "<</Type /Annot /Subtype /Widget /FT /Tx /T (two) /V (2) /Rect [50 190 200 210] /F 4 /P 10 0 R /AP <</N 9 0 R>>>>",
		8:   "<</Subtype /Form /BBox [0 0 9 9] /Resources <</XObject <</X 100 0 R>>>> /Length 5>>\nstream\n/X Do\nendstream",
		9:   "<</Subtype /Form /BBox [0 0 9 9] /Resources <<>> /Length 0>>\nstream\n\nendstream",
		100: "<</Subtype /Form /BBox [0 0 9 9] /Length 10>>\nstream\n0 0 9 9 re\nendstream",
		101: "<</Subtype /Text /Rect [0 0 9 9] /Contents (a)>>",
		102: "<</Font 103 0 R>>",
		103: "<</F1 3 0 R>>",
	}
	for n, o := range objects {
		all[n] = o
	}
	return document{catalog: "/AcroForm 4 0 R " + catalog, page: "/Annots [5 0 R 6 0 R 101 0 R] " + page, objects: all}.build()
}

// TestRolesOfObjects changes objects that have several roles: a change is allowed only if all of
// them allow it.
func TestRolesOfObjects(t *testing.T) {
	form, change := slices.Clip([]string{codeLaterForm}), []string{codeLaterChange}
	drawing := func(f *file, u *update) {
		s := f.object(ref{num: 100}).(*stream)
		u.put(ref{num: 100}, &stream{dict: s.dict, fresh: []byte("0 0 8 8 re")})
	}
	both := func(changes ...func(*file, *update)) func(*file, *update) {
		return func(f *file, u *update) {
			for _, c := range changes {
				c(f, u)
			}
		}
	}
	content := func(u *update) ref {
		return u.add(&stream{dict: dict{{"Subtype", name("Form")}, {"BBox", rectObject([4]float64{0, 0, 9, 9})}}, fresh: []byte("1 1 1 1 re")})
	}
	fill := setKey(5, "V", text("3"))
	judgeLater(t, map[string]laterCase{
		"an object of a filled field":              {shared("", "", nil), both(fill, drawing), form, true},
		"an object of a field that was not filled": {shared("", "", nil), drawing, change, false},
		"an object of another field as well":       {shared("", "", map[int]string{9: "<</Subtype /Form /BBox [0 0 9 9] /Resources <</XObject <</X 100 0 R>>>> /Length 5>>\nstream\n/X Do\nendstream"}), both(fill, drawing), append(form, change...), false},
		"an object of the page as well":            {shared("", "/Resources <</XObject <</X 100 0 R>>>>", nil), both(fill, drawing), append(form, change...), false},
		"an object of an annotation as well":       {shared("", "", map[int]string{101: "<</Subtype /Text /Rect [0 0 9 9] /AP <</N 100 0 R>>>>"}), both(fill, drawing), append(form, change...), false},
		"an appearance overwritten": {shared("", "", nil), func(_ *file, u *update) {
			u.put(ref{num: 9}, &stream{dict: parsed(t, "<</Subtype /Form /BBox [0 0 9 9]>>").(dict), fresh: []byte("0 0 1 1 re")})
		}, form, true},
		"a former appearance overwritten": {shared("", "", nil), func(f *file, u *update) {
			setKey(5, "AP", dict{{"N", content(u)}})(f, u)
			u.put(ref{num: 8}, &stream{dict: parsed(t, "<</Subtype /Form /BBox [0 0 9 9]>>").(dict), fresh: []byte("0 0 1 1 re")})
		}, append(form, change...), false},
		"an appearance without a box": {shared("", "", nil), func(f *file, u *update) {
			fill(f, u)
			u.put(ref{num: 8}, &stream{dict: parsed(t, "<</Subtype /Form /BBox (x)>>").(dict), fresh: []byte("0 0 1 1 re")})
		}, append(form, change...), false},
		"contents among the certificates":        {shared("/DSS <</Certs [11 0 R]>>", "", nil), func(_ *file, u *update) { u.put(ref{num: 11}, &stream{fresh: []byte("BT ET")}) }, change, false},
		"contents as metadata":                   {shared("/Metadata 11 0 R", "", nil), func(_ *file, u *update) { u.put(ref{num: 11}, &stream{fresh: []byte("BT ET")}) }, change, false},
		"contents as a tag":                      {shared("/StructTreeRoot <</K 11 0 R>>", "", nil), func(_ *file, u *update) { u.put(ref{num: 11}, &stream{fresh: []byte("BT ET")}) }, change, false},
		"a certificate":                          {shared("/DSS <</Certs [104 0 R]>>", "", map[int]string{104: "<</Length 1>>\nstream\nx\nendstream"}), func(_ *file, u *update) { u.put(ref{num: 104}, &stream{fresh: []byte("y")}) }, []string{codeLaterStore}, true},
		"an object that calls itself XRef":       {shared("", "", map[int]string{100: "<</Type /XRef /Subtype /Form /BBox [0 0 9 9] /Length 10>>\nstream\n0 0 9 9 re\nendstream"}), drawing, change, false},
		"an object that calls itself ObjStm":     {shared("", "", map[int]string{100: "<</Type /ObjStm /N 0 /First 0 /Subtype /Form /BBox [0 0 9 9] /Length 10>>\nstream\n0 0 9 9 re\nendstream"}), drawing, change, false},
		"a field that is a resource of the page": {shared("", "/Resources <</ExtGState <</G 5 0 R>>>>", nil), fill, change, false},
		"a field that an action names":           {shared("/OpenAction <</S /ResetForm /Fields [5 0 R]>>", "/AA <</O <</S /Hide /T 5 0 R>>>>", nil), fill, form, true},
		"a page that a bookmark names":           {shared("/Outlines <</First 104 0 R>>", "", map[int]string{104: "<</Title (x) /Dest [10 0 R /Fit]>>"}), setKey(10, "LastModified", text("D:20270101")), []string{codeLaterMetadata}, true},
		"fonts of the form and the page":         {shared("", "/Resources <</Font 103 0 R>>", nil), setKey(103, "F2", parsed(t, "3 0 R")), change, false},
		"fonts of the form alone":                {shared("", "", nil), setKey(103, "F2", parsed(t, "3 0 R")), nil, true},
		"annotations in another order":           {shared("", "", nil), setKey(10, "Annots", parsed(t, "[6 0 R 5 0 R 101 0 R]")), []string{codeLaterAnnotations}, false},
		"an annotation twice":                    {shared("", "", nil), setKey(10, "Annots", parsed(t, "[5 0 R 6 0 R 101 0 R 101 0 R]")), []string{codeLaterAnnotations}, false},
		"NeedAppearances":                        {shared("", "", nil), setKey(4, "NeedAppearances", true), form, true},
		"an object that a missing one is":        {shared("", "/Resources <</XObject <</Y 400 0 R>>>>", map[int]string{401: "null"}), func(_ *file, u *update) { u.put(ref{num: 400}, &stream{fresh: []byte("0 0 1 1 re")}) }, change, false},
		"a parent that is no kid's":              {shared("", "/Parent 104 0 R", map[int]string{104: "<</Resources <<>>>>"}), setKey(104, "Resources", parsed(t, "<</Font <<>>>>")), change, false},
		"an appearance of a signature field alone": {shared("", "", map[int]string{5: "<</Subtype /Widget /FT /Sig /T (one) /Rect [50 150 200 170] /AP <</N 8 0 R>>>>"}), func(_ *file, u *update) {
			u.put(ref{num: 8}, &stream{dict: parsed(t, "<</Subtype /Form /BBox [0 0 9 9]>>").(dict), fresh: []byte("0 0 1 1 re")})
		}, change, false},
		"attributes that a page inherits":                    {shared("", "", nil), setKey(10, "MediaBox", parsed(t, "[0 0 595.0 842]")), nil, true},
		"other attributes than a page inherits":              {shared("", "", nil), setKey(10, "MediaBox", parsed(t, "[0 0 595 84]")), change, false},
		"a box with the same values":                         {shared("", "/CropBox [0 0 100 50.50]", nil), setKey(10, "CropBox", parsed(t, "[0.00 +0 100. 50.5]")), nil, true},
		"a real number in place of an integer":               {shared("", "/Rotate 90", nil), setKey(10, "Rotate", number("90.0")), change, false},
		"an integer with the same value":                     {shared("", "/Rotate 90", nil), setKey(10, "Rotate", number("090")), nil, true},
		"flags that are the default":                         {shared("", "", nil), setKey(5, "Ff", number("0")), form, true},
		"flags that are not":                                 {shared("", "", nil), setKey(5, "Ff", number("1")), change, false},
		"fonts of a form with a field that is not drawn":     {shared("", "", map[int]string{6: "<</Subtype /Widget /FT /Tx /T (two) /V (2) /Rect [50 190 200 210] /P 10 0 R>>"}), setKey(103, "F2", parsed(t, "3 0 R")), form, true},
		"a default appearance for a field that is not drawn": {shared("", "", map[int]string{6: "<</Subtype /Widget /FT /Tx /T (two) /V (2) /Rect [50 190 200 210] /P 10 0 R>>"}), setKey(4, "DA", text("/F1 9 Tf")), form, true},
		"resources of a page under another number": {shared("", "/Resources 105 0 R", map[int]string{105: "<</Font 103 0 R /XObject <</X 100 0 R>>>>"}), func(f *file, u *update) {
			setKey(10, "Resources", u.add(f.object(ref{num: 105})))(f, u)
		}, nil, true},
		"other resources of a page": {shared("", "/Resources 105 0 R", map[int]string{105: "<</Font 103 0 R /XObject <</X 100 0 R>>>>"}), func(f *file, u *update) {
			setKey(10, "Resources", u.add(parsed(t, "<</Font 103 0 R /XObject <</X 8 0 R>>>>")))(f, u)
		}, change, false},
		"fonts of the form under other numbers": {shared("", "", nil), func(f *file, u *update) { setKey(103, "F1", u.add(f.object(ref{num: 3})))(f, u) }, nil, true},
		"other fonts of the form": {shared("", "", nil), func(f *file, u *update) {
			setKey(103, "F1", u.add(f.object(ref{num: 3}).(dict).with("BaseFont", name("Symbol"))))(f, u)
		}, change, false},
		"drawings of the form's resources":          {shared("", "", map[int]string{102: "<</Font 103 0 R /XObject <</FRM 104 0 R>>>>", 104: "<</Subtype /Form /BBox [0 0 1 1] /Length 0>>\nstream\n\nendstream"}), func(f *file, u *update) { setKey(102, "XObject", dict{{"FRM", content(u)}})(f, u) }, nil, true},
		"a font that is a stream":                   {shared("", "", nil), func(f *file, u *update) { setKey(103, "F2", content(u))(f, u) }, change, false},
		"drawings of appearances without resources": {shared("", "", map[int]string{9: "<</Subtype /Form /BBox [0 0 9 9] /Length 7>>\nstream\n/FRM Do\nendstream", 102: "<</Font 103 0 R /XObject <</FRM 100 0 R>>>>"}), func(f *file, u *update) { setKey(102, "XObject", dict{{"FRM", content(u)}})(f, u) }, change, false},
		"a new object in an old place":              {shared("", "", map[int]string{104: "<</A 1>>"}), setKey(104, "A", number("2")), change, false},
	}, nil)
}

// TestSignedAgainByOthers fills an empty signature field as other programs do.
func TestSignedAgainByOthers(t *testing.T) {
	fields := func(more string) []byte {
		return document{catalog: "/AcroForm <</Fields [5 0 R 6 0 R]>>", page: "/Annots [5 0 R 6 0 R]", objects: map[int]string{
			5: "<</Type /Annot /Subtype /Widget /FT /Sig /T (A) /Rect [50 50 200 100] /F 4 /P 10 0 R>>",
			6: "<</Type /Annot /Subtype /Widget /FT /Sig /T (B) /Rect [50 150 200 200] /F 4 /P 10 0 R " + more + ">>",
		}}.build()
	}
	sign := func(more ...entry) func(f *file, u *update) {
		return func(f *file, u *update) {
			d := f.object(ref{num: 6}).(dict).with("V", u.add(dict{{"Type", name("Sig")}, {"SubFilter", name("adbe.pkcs7.detached")}}))
			for _, e := range more {
				d = d.with(e.key, e.value)
			}
			u.put(ref{num: 6}, d)
		}
	}
	again, change := []string{codeLaterSignature}, []string{codeLaterChange}
	root, signer := party(t)
	for what, c := range map[string]struct {
		data   []byte
		change func(f *file, u *update)
		codes  []string
	}{
		"flags":           {fields(""), sign(entry{"F", number("132")}), again},
		"no flags":        {fields(""), sign(entry{"F", nil}), again},
		"appearance text": {fields(""), sign(entry{"DA", text("/Helv 0 Tf")}, entry{"Q", number("1")}), again},
		"no Type":         {fields(""), sign(entry{"Type", nil}), again},
		"field flags":     {fields(""), sign(entry{"Ff", number("1")}), again},
		"a lock":          {fields(""), sign(entry{"Lock", dict{{"Action", name("All")}}}), again},
		"a moved field":   {fields(""), sign(entry{"Rect", rectObject([4]float64{0, 0, 500, 500})}), change},
		"another lock":    {fields("/Lock <</Action /All>>"), sign(entry{"Lock", dict{{"Action", name("Include")}}}), change},
		"another name":    {fields(""), sign(entry{"T", text("C")}), change},
		"another page":    {fields(""), sign(entry{"P", ref{num: 2}}), change},
		"flags alone":     {fields(""), setKey(6, "F", number("2")), change},
	} {
		t.Run(what, func(t *testing.T) {
			signed := signedBy(t, signer, c.data, sig.Params{"PDFSignatureField": "A"})
			r := verified(t, revise(t, signed, c.change), root)
			var codes []string
			ours := r.Signatures[len(r.Signatures)-1] // the other one covers nothing
			for _, f := range ours.Findings {
				if strings.HasPrefix(f.Code, "later-") && f.Code != codeLaterAnnotations {
					codes = append(codes, f.Code)
				}
			}
			failed := ours.Own() != sig.Passed
			if what == "flags alone" {
				if !failed {
					t.Errorf("%s", say(r))
				}
			} else if !slices.Equal(codes, c.codes) || failed != slices.Equal(c.codes, change) {
				t.Errorf("want %v: %s", c.codes, say(r))
			}
		})
	}
}

// TestTagsOfSignatures signs a tagged document again as other programs do: they add an element of
// the structure tree for the signature and write the parent tree again.
func TestTagsOfSignatures(t *testing.T) {
	data := document{
		catalog: "/MarkInfo <</Marked true>> /StructTreeRoot 4 0 R /Outlines <</First 9 0 R>>", page: "/StructParents 0 /Annots []",
		objects: map[int]string{
			4: "<</Type /StructTreeRoot /K [5 0 R] /ParentTree 6 0 R /ParentTreeNextKey 1>>",
			5: "<</Type /StructElem /S /Document /P 4 0 R /K [7 0 R 101 0 R]>>", 6: "<</Nums [0 8 0 R]>>",
			7: "<</Type /StructElem /S /P /P 5 0 R /Pg 10 0 R /K 0>>", 8: "[7 0 R]", 9: "<</Title (x) /SE 5 0 R>>",
			101: "<</Type /StructElem /S /P /P 5 0 R /Pg 10 0 R /K 1>>",
		},
	}.build()
	again := func(change func(f *file, u *update, tag ref)) func(f *file, u *update) {
		return func(f *file, u *update) {
			value := u.add(dict{{"Type", name("Sig")}, {"SubFilter", name("adbe.pkcs7.detached")}})
			widget := u.add(append(parsed(t, "<</Type /Annot /Subtype /Widget /FT /Sig /T (Next) /Rect [0 0 9 9] /P 10 0 R /StructParent 1>>").(dict), entry{"V", value}))
			_, cat := f.catalog()
			form := f.resolveDict(cat.get("AcroForm"))
			id := cat.get("AcroForm").(ref)
			u.put(id, form.with("Fields", append(slices.Clone(f.resolveArray(form.get("Fields"))), widget)))
			page := f.object(ref{num: 10}).(dict)
			u.put(ref{num: 10}, page.with("Annots", append(slices.Clone(f.resolveArray(page.get("Annots"))), widget)))
			tag := u.add(dict{{"Type", name("StructElem")}, {"S", name("Form")}, {"P", ref{num: 5}}, {"Pg", ref{num: 10}}, {"K", dict{{"Type", name("OBJR")}, {"Obj", widget}}}})
			u.put(ref{num: 4}, f.object(ref{num: 4}).(dict).with("ParentTreeNextKey", number("2")).with("ParentTree", u.add(dict{{"Nums", array{number("0"), u.add(array{ref{num: 7}}), number("1"), tag}}})))
			u.put(ref{num: 5}, f.object(ref{num: 5}).(dict).with("K", array{ref{num: 7}, ref{num: 101}, tag}))
			if change != nil {
				change(f, u, tag)
			}
		}
	}
	root, signer := party(t)
	signed := signedBy(t, signer, data, nil)
	for what, c := range map[string]struct {
		change func(f *file, u *update, tag ref)
		passes bool
	}{
		"as other programs do": {nil, true},
		"text in place of what is shown": {func(f *file, u *update, tag ref) {
			u.put(ref{num: 7}, f.object(ref{num: 7}).(dict).with("ActualText", text("No 99")))
		}, false},
		"another order": {func(f *file, u *update, tag ref) {
			u.put(ref{num: 5}, f.object(ref{num: 5}).(dict).with("K", array{ref{num: 101}, ref{num: 7}, tag}))
		}, false},
		"an element removed": {func(f *file, u *update, tag ref) {
			u.put(ref{num: 5}, f.object(ref{num: 5}).(dict).with("K", array{ref{num: 7}, tag}))
		}, false},
		"an element for other content": {func(f *file, u *update, tag ref) {
			u.put(ref{num: 5}, f.object(ref{num: 5}).(dict).with("K", array{ref{num: 7}, ref{num: 101}, u.add(dict{{"S", name("P")}, {"P", ref{num: 5}}, {"Pg", ref{num: 10}}, {"K", number("0")}})}))
		}, false},
		"another element of the page": {func(f *file, u *update, tag ref) {
			u.put(ref{num: 4}, f.object(ref{num: 4}).(dict).with("ParentTree", dict{{"Nums", array{number("0"), array{ref{num: 101}}}}}))
		}, false},
		"roles": {func(f *file, u *update, tag ref) {
			u.put(ref{num: 4}, f.object(ref{num: 4}).(dict).with("RoleMap", dict{{"P", name("Artifact")}}))
		}, false},
	} {
		t.Run(what, func(t *testing.T) {
			r := verified(t, revise(t, signed, again(c.change)), root)
			ours := r.Signatures[len(r.Signatures)-1] // the other one covers nothing
			if passed := ours.Own() == sig.Passed; passed != c.passes || passed && !slices.Contains(allCodes(r), codeLaterSignature) {
				t.Errorf("%s", say(r))
			}
		})
	}
}

// TestCertifiedAgainstChanges adds a security store to a document that forbids all changes.
// Programs write their date and name then.
func TestCertifiedAgainstChanges(t *testing.T) {
	root, signer := party(t)
	data := document{trailer: "/Info 4 0 R", objects: map[int]string{4: "<</Title (x) /ModDate (D:20200101000000Z)>>"}}.build()
	signed := signedBy(t, signer, data, sig.Params{"PDFCertificationLevel": "CERTIFIED_NO_CHANGES_ALLOWED"})
	for what, c := range map[string]struct {
		key    name
		passes bool
	}{"date": {"ModDate", true}, "program": {"Producer", true}, "title": {"Title", false}, "author": {"Author", false}} {
		r := verified(t, revise(t, signed, func(f *file, u *update) {
			_, cat := f.catalog()
			u.put(ref{num: 1}, cat.with("DSS", u.add(dict{{"Certs", array{}}})))
			setKey(4, c.key, text("D:20270101000000Z"))(f, u)
		}), root)
		if r.Passed() != c.passes || !slices.Contains(allCodes(r), codeLaterMetadata) {
			t.Errorf("%s: %s", what, say(r))
		}
	}
}

// deflate compresses rows of a width with predictor 12, as many programs do.
func deflate(data []byte, width int) []byte {
	var rows bytes.Buffer
	above := make([]byte, width)
	for len(data) > 0 {
		rows.WriteByte(2)
		for i := range width {
			rows.WriteByte(data[i] - above[i])
		}
		above, data = data[:width], data[width:]
	}
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	w.Write(rows.Bytes())
	w.Close()
	return out.Bytes()
}

// TestLaterStreams appends revisions with object streams and cross-reference streams.
func TestLaterStreams(t *testing.T) {
	root, signer := party(t)
	signed := signedBy(t, signer, formDocument(), nil)
	f := opened(t, signed)
	size, _ := integer(f.trailer.get("Size"))
	filled := strings.Replace(textField, "(100)", "(200)", 1)
	type revision struct {
		list    string // of the object stream, before First
		objects string
		more    string // of its dictionary
		n       int
		entries [][3]int // type, number, index; the offsets are filled in
		index   string
		data    func([]byte) []byte
	}
	good := func() revision {
		return revision{
			list: "5 0 ", objects: filled, n: 1, index: fmt.Sprintf("5 1 %d 2", size),
			entries: [][3]int{{2, int(size), 0}, {1, 0, 0}, {1, 1, 0}},
		}
	}
	build := func(r revision) []byte {
		var b bytes.Buffer
		b.Write(signed)
		places := []int{b.Len()}
		var packed bytes.Buffer
		w := zlib.NewWriter(&packed)
		w.Write([]byte(r.list + r.objects))
		w.Close()
		fmt.Fprintf(&b, "%d 0 obj\n<</Type /ObjStm /N %d /First %d /Filter /FlateDecode /Length %d%s>>stream\r\n%s\rendstream\rendobj\r", size, r.n, len(r.list), packed.Len(), r.more, packed.Bytes())
		places = append(places, b.Len())
		var rows []byte
		for _, e := range r.entries {
			at := e[1]
			if e[0] == 1 {
				at = places[e[1]]
			}
			rows = append(rows, byte(e[0]), byte(at>>16), byte(at>>8), byte(at), byte(e[2]))
		}
		data := deflate(rows, 5)
		if r.data != nil {
			data = r.data(data)
		}
		fmt.Fprintf(&b, "%d 0 obj\n<</Type /XRef /Size %d /Root 1 0 R /Prev %d /W [1 3 1] /Index [%s] /Filter [/FlateDecode] /DecodeParms [<</Predictor 12 /Columns 5>>] /Length %d>>stream\n%s\nendstream\nendobj\nstartxref\n%d\n%%%%EOF", size+1, size+2, f.sections[0].at, r.index, len(data), data, places[1])
		return b.Bytes()
	}
	for what, c := range map[string]struct {
		change func(r *revision)
		passes bool
	}{
		"as it is":   {func(*revision) {}, true},
		"not itself": {func(r *revision) { r.entries, r.index = r.entries[:2], fmt.Sprintf("5 1 %d 1", size) }, true},
		"two objects": {func(r *revision) {
			r.list, r.objects, r.n = fmt.Sprintf("5 0 12 %d ", len(filled)+1), filled+" null", 2
		}, false},
		"more than it has":   {func(r *revision) { r.n = 2 }, false},
		"extended":           {func(r *revision) { r.more = "/Extends 5 0 R" }, false},
		"another index":      {func(r *revision) { r.entries[0][2] = 1 }, false},
		"another stream":     {func(r *revision) { r.entries[0][1] = 11 }, false},
		"token behind":       {func(r *revision) { r.objects += " 7" }, false},
		"bytes in front":     {func(r *revision) { r.list, r.objects = "5 2 ", "x "+r.objects }, false},
		"an unknown type":    {func(r *revision) { r.entries[0][0] = 3 }, false},
		"a superfluous row":  {func(r *revision) { r.index = fmt.Sprintf("5 1 %d 1", size) }, false},
		"a wrong checksum":   {func(r *revision) { r.data = func(b []byte) []byte { b[len(b)-1] ^= 1; return b } }, false},
		"bytes behind":       {func(r *revision) { r.data = func(b []byte) []byte { return append(b, "xx"...) } }, false},
		"a stream of itself": {func(r *revision) { r.entries[0] = [3]int{1, 0, 0} }, false},
	} {
		r := good()
		c.change(&r)
		report := verified(t, build(r), root)
		if report.Passed() != c.passes || c.passes && !slices.Contains(allCodes(report), codeLaterForm) {
			t.Errorf("%s: %s", what, say(report))
		}
	}
}

// TestSearchForObjects writes a Size that covers only the objects of the revision, as PDFBox does.
// Some programs then search for the objects, so the document must have no others.
func TestSearchForObjects(t *testing.T) {
	root, signer := party(t)
	for what, hidden := range map[string]string{"": "", "unlisted body": "11 0 obj\n<</Length 5>>\nstream\nBT ET\nendstream\nendobj\n"} {
		plain := formDocument()
		at := bytes.LastIndex(plain, []byte("xref\n0"))
		plain = slices.Concat(plain[:at], []byte(hidden), bytes.Replace(plain[at:], fmt.Appendf(nil, "startxref\n%d", at), fmt.Appendf(nil, "startxref\n%d", at+len(hidden)), 1))
		l := goodTail()
		data := l.onto(t, signedBy(t, signer, plain, nil))
		// A reference to an object that no section lists makes them search, too.
		l.value = strings.Replace(l.value, "/P 10 0 R", "/P 10 0 R /RV 15 0 R", 1)
		missing := l.onto(t, signedBy(t, signer, bytes.Replace(plain, []byte("/Size 12"), []byte("/Size 20"), 1), nil))
		if r := verified(t, missing, root); r.Passed() != (hidden == "") {
			t.Errorf("%q: with a missing object: %s", what, say(r))
		}
		size, _ := integer(opened(t, data).trailer.get("Size"))
		i := bytes.LastIndex(data, fmt.Appendf(nil, "/Size %d", size))
		small := slices.Concat(data[:i], []byte("/Size 6"), data[i+len(fmt.Sprint("/Size ", size)):])
		if r := verified(t, data, root); !r.Passed() {
			t.Errorf("%s: with the right Size: %s", what, say(r))
		}
		if r := verified(t, small, root); r.Passed() != (hidden == "") {
			t.Errorf("%q: %s", what, say(r))
		}
	}
}
