// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"strings"
	"testing"

	"tamga/internal/domain/operation"
	"tamga/internal/domain/signing"
	"tamga/internal/sigtest"
	"tamga/internal/web/pages/view"
	"tamga/sig"
	"tamga/sig/asic"
	"tamga/sig/cades"
	"tamga/sig/ooxml"
	"tamga/sig/pdf"
	"tamga/sig/raw"
	"tamga/sig/xmldsig"
)

// The ways to sign come from the formats. Those of ours have words in every language, and another one is
// called what it calls itself.
func TestWaysToSign(t *testing.T) {
	forms := sig.Formats{cades.New(), xmldsig.New(), pdf.New(), asic.New(), ooxml.New(), raw.New(), sigtest.MadeUp{}}.Forms()
	names := map[string]bool{}
	for _, f := range forms {
		if names[f.Name] || f.Type == "" || f.Noun == "" || f.Params[signing.LevelBasic] == nil && f.Name != "madeup" {
			t.Errorf("%+v", f)
		}
		names[f.Name] = true
		for _, w := range view.Languages {
			_, known := w.Lookup("format." + f.Name)
			if got := wayToSign(w, f); known == (f.Name == "madeup") || got == "" || !known && got != "A made-up file" {
				t.Errorf("%s in %s: %q", f.Name, w.Language, got)
			}
		}
	}
	for name, want := range map[string]string{
		"a.PDF": "pdf", "a.docx": "office", "a.xml": "xml", "a.xml.sig": "cosign", "a.txt": "cades", "a": "cades", "a.made": "madeup",
	} {
		if f := signing.FormOf(forms, name); f == nil || f.Name != want {
			t.Errorf("%s is signed as %+v, want %s", name, f, want)
		}
	}
	if f := signing.FormOf(forms[:1], "a.txt"); f != nil {
		t.Errorf("without a form for all files: %+v", f)
	}
	for parameters, want := range map[string]string{
		`{"PDFFormat":"CAdEST","TSPAddress":"x"}`: "pdf", `{"CADESType":"T","CmsSignatureType":"Countersign"}`: "countersign", `{"CADESType":"BES"}`: "cades",
		`{}`: "office", `{"MadeUpLevel":"Sealed"}`: "madeup", `{"Other":"1"}`: "", `[`: "",
	} {
		got := formsIn(forms, &operation.Operation{Parameters: parameters, Documents: []operation.Document{{OriginalName: "a.docx"}}})
		if len(got) != 1 || (got[0] == nil) != (want == "") || got[0] != nil && got[0].Name != want {
			t.Errorf("%s: %+v, want %q", parameters, got, want)
		}
	}
	several := `{"Ways":[{"Type":"MadeUp","Parameters":{"MadeUpLevel":"Plain"}},{"Type":"CAdES","Parameters":{"CADESType":"T"}}]}`
	var list []string
	for _, f := range formsIn(forms, &operation.Operation{Parameters: several}) {
		if f != nil {
			list = append(list, f.Name)
		}
	}
	if got := strings.Join(list, " "); got != "madeup cades" {
		t.Errorf("several ways: %s", got)
	}
}
