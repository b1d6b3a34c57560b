// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"slices"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
)

// fillable returns a document with a text field, its font in the resources of the form, an
// empty signature field, and document information.
func fillable() []byte {
	return document{
		version: "1.7",
		catalog: "/AcroForm <</Fields [5 0 R 6 0 R] /DA (/Helv 12 Tf 0 g) /DR <</Font <</Helv 4 0 R>>>>>>", page: "/Annots [5 0 R 6 0 R]",
		objects: map[int]string{
			4: "<</Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding>>",
			5: "<</Type /Annot /Subtype /Widget /FT /Tx /T (Sum) /V (100) /DA (/Helv 12 Tf 0 g) /Rect [50 150 200 170] /F 4 /P 10 0 R /AP <</N 8 0 R>>>>",
			6: "<</Type /Annot /Subtype /Widget /FT /Sig /T (Second) /Rect [50 50 200 100] /F 4 /P 10 0 R>>",
			7: "<</Title (A title)>>",
			8: "<</Type /XObject /Subtype /Form /BBox [0 0 150 20] /Resources <</Font <</Helv 4 0 R>>>> /Length 49>>\nstream\n/Tx BMC q BT /Helv 12 Tf 2 6 Td (100) Tj ET Q EMC\nendstream",
		},
		trailer: "/Info 7 0 R /ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>]",
	}.build()
}

// TestLaterRevisionsOfOtherPrograms: what ordinary programs add to a signed document is judged
// by what it does: a filled form, another signature and other information pass and are named,
// other page contents fail.
func TestLaterRevisionsOfOtherPrograms(t *testing.T) {
	tools := judge.PDF(t)
	root := sigtest.Root(t, suite.RSASHA256)
	signer := root.Signer(t, suite.RSASHA256, "Signer")
	streams, err := tools.QPDF(fillable(), "--object-streams=generate")
	if err != nil {
		t.Fatal(err)
	}
	linear, err := tools.QPDF(fillable(), "--linearize")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	var edits []judge.PDFEdit
	codes := map[string]string{"fill": codeLaterForm, "sign": codeLaterSignature, "information": codeLaterMetadata, "content": codeLaterChange}
	for _, d := range []struct {
		name string
		data []byte
	}{{"table", fillable()}, {"object streams", streams}, {"linearized", linear}} {
		signed := signedBy(t, signer, d.data, sig.Params{"PDFSignatureField": "First"})
		if r := verified(t, signed, root); !r.Passed() || len(r.Signatures) != 1 {
			t.Fatalf("%s: %s", d.name, say(r))
		}
		for _, p := range []struct {
			program string
			edits   []string
		}{
			{"iText", []string{"fill", "sign", "content"}},
			{"PDFBox", []string{"fill", "sign", "information", "content"}},
			{"MuPDF", []string{"fill", "content"}},
			{"pdf-lib", []string{"fill", "information", "content"}},
		} {
			for _, edit := range p.edits {
				edits = append(edits, judge.PDFEdit{Program: p.program, Edit: edit, Document: signed})
				names = append(names, d.name+", "+p.program+" "+edit)
			}
		}
	}
	later := judge.EditPDF(t, judge.PDFEditOrder{
		Field: "Sum", Value: "200", Key: signer.Key, Chain: [][]byte{signer.Certificate.Raw, root.Certificate.Raw}, Time: sigtest.Time,
	}, edits)
	for i, data := range later {
		edit := edits[i].Edit
		if !bytes.HasPrefix(data, edits[i].Document) || len(data) == len(edits[i].Document) {
			t.Errorf("%s: it is no incremental update", names[i])
			continue
		}
		r := verified(t, data, root)
		count := 1
		if edit == "sign" {
			count = 2
		}
		if r.Passed() != (edit != "content") || len(r.Signatures) != count || !slices.Contains(allCodes(r), codes[edit]) {
			t.Errorf("%s: %s%q", names[i], say(r), data[len(edits[i].Document):min(len(data), len(edits[i].Document)+3000)])
		}
	}
}

// TestLaterRevisionsOfOurs: our own later signatures, stamps and stores leave earlier
// signatures good.
func TestLaterRevisionsOfOurs(t *testing.T) {
	tools := judge.PDF(t)
	root, signer := party(t)
	services := sigtest.NewServices(t, root)
	streams, err := tools.QPDF(fillable(), "--object-streams=generate")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"table": fillable(), "object streams": streams, "shared annotations": sharing()["one array"]} {
		data = signedBy(t, signer, data, sig.Params{"PDFSignatureField": "First"})
		for i, params := range []sig.Params{
			{"PDFFormat": "CMS"}, // into the empty field, if there is one
			stampOn(1),
			{"PDFFormat": "CAdES", "TSPAddress": ""},
			{"PDFFormat": "CAdEST", "TSPAddress": "", "PDFReason": "Согласовано"},
			{"PDFFormat": "CAdES", "TSPAddress": "", "PdfSignatureTemplateId": "1"},
		} {
			if params["PDFFormat"] == "" {
				params = withFormat(params)
			}
			data = sigtest.Make(t, New(), signer, &sig.Job{Document: bytes.NewReader(data), Evidence: services, Params: params})
			if r := verified(t, data, root); !r.Passed() || len(r.Signatures) != i+2 || !slices.Contains(allCodes(r), codeLaterSignature) {
				t.Errorf("%s, signature %d: %s", name, i+2, say(r))
			}
		}
	}
}
