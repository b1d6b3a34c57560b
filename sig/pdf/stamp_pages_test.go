// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/sig"
)

// sharing are documents whose pages share what a stamp changes.
func sharing() map[string][]byte {
	three := document{pages: 3, page: "/Annots 5 0 R", objects: map[int]string{5: "[6 0 R]", 6: "<</Type /Annot /Subtype /Square /Rect [10 10 90 90] /C [1 0 0]>>"}}
	direct := three
	direct.page = "/Annots [6 0 R]"
	again := func(d document, kids string) []byte {
		return bytes.Replace(d.build(), []byte("/Kids [10 0 R 12 0 R 14 0 R]"), []byte("/Kids ["+kids+"]"), 1)
	}
	return map[string][]byte{
		"one array":          three.build(),
		"one array of none":  bytes.Replace(three.build(), []byte("[6 0 R]"), []byte("[     ]"), 1),
		"arrays of one each": direct.build(),
		// Pages 1 and 3, or 2 and 3, are one object.
		"one page, first and last": again(three, "10 0 R 12 0 R 10 0 R"),
		"one page, at the end":     again(direct, "10 0 R 12 0 R 12 0 R"),
	}
}

// stampOn asks for a stamp on the page with a number from 1.
func stampOn(page int) sig.Params {
	return sig.Params{"PdfSignatureTemplateId": "1", "PdfSignatureAppearance": base64.StdEncoding.EncodeToString(fmt.Appendf(nil,
		`{"Page": %d, "Rect": {"LowerLeftX": 100, "LowerLeftY": 100, "UpperRightX": 300, "UpperRightY": 200}, "Content": [{"Text": "Signed", "Font": {"FontSize": 20}}]}`, page))}
}

// TestStampOnOnePage: the stamp appears on the chosen page and no other, although pages share
// their array of annotations or are one object.
func TestStampOnOnePage(t *testing.T) {
	tools, renderers := judge.PDF(t), judge.Renderers(t)[:2] // MuPDF, Poppler
	root, signer := party(t)
	all := sharing()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var before []judge.Drawing
		for _, r := range renderers {
			before = append(before, r.Draw(t.Context(), t, tools.Dir, all[name], 20))
		}
		for page := range 3 {
			t.Run(fmt.Sprint(name, " page ", page+1), func(t *testing.T) {
				signed := signedBy(t, signer, all[name], stampOn(page+1))
				for i, r := range renderers {
					after := r.Draw(t.Context(), t, tools.Dir, signed, 20)
					if len(after.Pages) != 3 || after.Complaint != "" {
						t.Fatalf("%s: %d pages, %s", r.Name, len(after.Pages), after.Complaint)
					}
					for n := range 3 {
						if same := bytes.Equal(before[i].Pages[n].Pix, after.Pages[n].Pix); same != (n != page) {
							t.Errorf("%s: page %d is unchanged: %v", r.Name, n+1, same)
						}
					}
				}
				if err := tools.CheckMuPDF(signed, ""); err != nil {
					t.Error(err)
				}
				if r := verified(t, signed, root); !r.Passed() {
					t.Error(say(r))
				}
				// Another stamp on the next page leaves the first signature good.
				again, err := sigtest.Try(t, New(), signer, &sig.Job{Document: bytes.NewReader(signed), Params: withFormat(stampOn(page%3 + 1))})
				if err != nil {
					t.Fatal(err)
				}
				if r := verified(t, again, root); !r.Passed() || len(r.Signatures) != 2 {
					t.Error(say(r))
				}
			})
		}
	}
}

func withFormat(p sig.Params) sig.Params {
	p["PDFFormat"] = "CMS"
	return p
}

// TestStampPageTwiceSigned: a page that is two pages cannot get a stamp on one of them once the
// page tree is signed, and the document is refused. A signature without a stamp is made.
func TestStampPageTwiceSigned(t *testing.T) {
	root, signer := party(t)
	signed := signedBy(t, signer, sharing()["one page, at the end"], nil)
	_, err := sigtest.Try(t, New(), signer, &sig.Job{Document: bytes.NewReader(signed), Params: withFormat(stampOn(2))})
	var document *sig.ErrDocument
	if !errors.As(err, &document) || document.OtherKind || !strings.Contains(err.Error(), "pages 2, 3 are one object") {
		t.Errorf("%v", err)
	}
	if r := verified(t, signedBy(t, signer, signed, nil), root); !r.Passed() || len(r.Signatures) != 2 {
		t.Error(say(r))
	}
}

// TestStampReadBack: a stamp that another page or none shows is not returned.
func TestStampReadBack(t *testing.T) {
	_, signer := party(t)
	base := sharing()["one array"]
	for what, c := range map[string]struct {
		spoil func(m *maker, out *made)
		said  string
	}{
		"nothing":      {func(*maker, *made) {}, ""},
		"no page":      {func(_ *maker, out *made) { out.tail = bytes.Replace(out.tail, []byte("/Annots"), []byte("/Annotz"), 1) }, "no page"},
		"another page": {func(m *maker, _ *made) { m.stamped = ref{num: 14} }, "on pages 1"},
		"a page twice": {func(m *maker, out *made) { m.target.field.id = ref{num: 6} }, "on pages 1, 2, 3"},
	} {
		job := &sig.Job{Document: bytes.NewReader(base), Certificate: signer.Certificate, Chain: signer.Chain, Time: sigtest.Time, Params: withFormat(stampOn(1))}
		m := &maker{format: New(), ctx: t.Context(), suite: signer.Suite, job: job}
		_, m.params = sig.ReadFor[params](m.format, job)
		out, err := m.section()
		if err != nil {
			t.Fatal(err)
		}
		c.spoil(m, out)
		whole := out.whole(job.Document)
		f := newFile(t.Context(), whole, whole.Size())
		last, err := f.newest()
		if err != nil {
			t.Fatal(err)
		}
		f.sections, f.trailer = append([]*section{last}, m.file.sections...), last.trailer
		err = f.stampedAlone(m.target.field.id, m.stamped)
		if (err == nil) != (c.said == "") || err != nil && !strings.Contains(err.Error(), c.said) {
			t.Errorf("%s: %v", what, err)
		}
		f.close()
	}
}
