// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/keys"
	"tamga/internal/web/pages/view"
)

// TestSignatureKind checks what a signature that waits is called, and that nothing is lost: what has
// no words is shown as it is.
func TestSignatureKind(t *testing.T) {
	a := New(Deps{})
	for _, c := range []struct {
		kind           string
		params         map[string]string
		en, ru, values string
	}{
		{"CAdES", map[string]string{"CADESType": "T", "IsDetached": "True", "TSPAddress": "http://t"}, "CAdES-T, detached", "CAdES-T, в отдельном файле", "Time-stamp service=http://t"},
		{"CAdES", map[string]string{"CADESType": "xlt1", "IsDetached": "false", "CmsSignatureType": "Cosign"},
			"CAdES-X Long Type 1, one more signature of the same document, with the document in it", "CAdES-X Long Type 1, ещё одна подпись под тем же документом, вместе с документом", ""},
		{"CAdES", map[string]string{"CADESType": "7", "Hash": "True"}, "CAdES, over a hash that was sent", "CAdES, по присланному хэшу", "cadestype=7"},
		{"PDF", map[string]string{"PDFFormat": "CAdEST", "PdfSignatureAppearance": "e30="}, "PDF, CAdES-T", "PDF, CAdES-T", "Visible stamp=As in the exact details below"},
		{"XMLDSig", map[string]string{"XMLDsigType": "XMLEnveloped", "XAdESType": "None", "<b>": "<i>"}, "XML, signature in the document", "XML, подпись внутри документа", "<b>=<i>"},
		{"MSOffice", nil, "Office document", "Документ Office", ""},
		{"Other", map[string]string{"PDFReason": strings.Repeat("x", what.MaxValue+1)}, "Other", "Other", "Reason in the PDF=A long value with the digest "},
		{"", nil, "", "", ""},
	} {
		values, err := what.NewValues(c.params, what.IsSecretName)
		if err != nil {
			t.Fatal(err)
		}
		content := &confirm.Content{Fields: what.Fields{Action: "SignDocument", SignatureType: c.kind, Parameters: values}}
		for i, want := range []string{c.en, c.ru} {
			v := a.confirmView(view.Languages[i], &confirm.Record{}, content)
			if v.Type != want {
				t.Errorf("%s %v: %s: %q, want %q", c.kind, c.params, view.Languages[i].Language, v.Type, want)
			}
			if len(v.Exact) < len(c.params)+1 {
				t.Errorf("%s %v: only %d exact values", c.kind, c.params, len(v.Exact))
			}
			var shown []string
			for _, one := range v.Values {
				shown = append(shown, one.Name+"="+one.Value)
			}
			if text := strings.Join(shown, " "); i == 0 && (!strings.HasPrefix(text, c.values) || c.values == "" && text != "") {
				t.Errorf("%s %v: the values are %q, want %q", c.kind, c.params, text, c.values)
			}
		}
	}
}

// TestConfirmedWays checks that the page shows each way with its values, and the documents below it.
func TestConfirmedWays(t *testing.T) {
	a := New(Deps{})
	f := what.Fields{Action: "SignDocuments", Ways: []what.Way{{SignatureType: "PDF"}, {SignatureType: "CAdES"}}}
	for i, params := range []map[string]string{{"PDFFormat": "CMS", "PDFReason": "x"}, {"CADESType": "BES", "IsDetached": "True"}} {
		var err error
		if f.Ways[i].Parameters, err = what.NewValues(params, what.IsSecretName); err != nil {
			t.Fatal(err)
		}
	}
	for i := range shownDocuments + 5 {
		f.Documents = append(f.Documents, what.Document{Name: string(rune('a' + i%26)), Way: 1 - i%2})
	}
	v := a.confirmView(view.Languages[0], &confirm.Record{Documents: len(f.Documents)}, &confirm.Content{Fields: f})
	want := []confirmWay{{"PDF, CMS", 102, []confirmValue{{Name: "Reason in the PDF", Value: "x"}}}, {"CAdES-BES, detached", 103, nil}}
	if d := cmp.Diff(want, v.Ways); d != "" || v.Type != "" || v.Cut != 5 || len(v.Listed) != shownDocuments {
		t.Errorf("%s; type %q, %d documents, %d more", d, v.Type, len(v.Listed), v.Cut)
	}
	for i, d := range v.Listed {
		at, way := 2*i+1, ""
		if i >= 102 {
			at = 2 * (i - 102)
		}
		if i == 0 || i == 102 {
			way = v.Ways[i/102].Type
		}
		if d.Index != at || d.Way != way {
			t.Errorf("document %d is number %d below %q, want %d below %q", i, d.Index, d.Way, at, way)
		}
	}
	exact := []string{"action", "ways[0].signature_type", "ways[0].pdfformat", "ways[0].pdfreason", "ways[1].signature_type", "ways[1].cadestype", "ways[1].isdetached"}
	var names []string
	for _, one := range v.Exact {
		names = append(names, one.Name)
	}
	if d := cmp.Diff(exact, names); d != "" {
		t.Error(d)
	}
}

// TestConfirmedWords checks that all that a person confirms about certificates has a name.
func TestConfirmedWords(t *testing.T) {
	arguments := map[string]string{
		"authority": "1 Tamga <b>", "suite": "gost2012-256", "subject": "CN=a", "usages": "1.2", "life": "720h0m0s", "status": "HOLD", "reason": "1",
		"comment": "c", "certificate": "7", "request": "8", "protected": "true", "digest": "00",
	}
	want := map[string]string{"authority": "Tamga <b>", "suite": "ГОСТ Р 34.10-2012, 256 бит", "life": "30 дней", "status": "Действие приостановлено", "reason": "ключ мог стать известен другим", "protected": "задан"}
	for _, k := range keys.Names() {
		one := maps.Clone(arguments)
		one["operation"] = k
		list, err := what.Arguments(one)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range list.List() {
			got := confirmed(view.Languages[1], v)
			if got.Raw || v.Name == "operation" && got.Value == v.Value {
				t.Errorf("%s %q has no words", v.Name, v.Value)
			}
			if text, ok := want[v.Name]; ok && got.Value != text {
				t.Errorf("%s %q is %q, want %q", v.Name, v.Value, got.Value, text)
			}
		}
	}
	for value, want := range map[string]string{"1h0m0s": "1h0m0s", "x": "x", "-24h": "-24h", "24h": "1 day"} {
		if got := confirmedText(view.Languages[0], what.Value{Name: "life", Value: value}); got != want {
			t.Errorf("%q is %q, want %q", value, got, want)
		}
	}
}
