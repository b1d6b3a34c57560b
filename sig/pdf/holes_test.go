// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/sig"
)

// absentNumbers returns the object numbers below Size without an entry in any section of
// the first length bytes of a document.
func absentNumbers(t *testing.T, data []byte, length int64, password string) (list []int) {
	t.Helper()
	f, err := open(t.Context(), bytes.NewReader(data[:length]), length, []byte(password))
	if err != nil || f.rebuilt {
		t.Fatalf("the first %d bytes: %v", length, err)
	}
	defer f.close()
	size, ok := integer(f.trailer.get("Size"))
	if !ok || size <= int64(f.highest()) {
		t.Errorf("the Size is %v, the highest number %d", f.trailer.get("Size"), f.highest())
	}
	for n := range int(size) {
		if !slices.ContainsFunc(f.sections, func(s *section) bool { return s.find(f, n).kind != absent }) {
			list = append(list, n)
		}
	}
	return list
}

// TestNumbersListed: each number below Size has an entry in every revision of what we make,
// also the number that the security store will get. For other programs an object without one
// is a removed one.
func TestNumbersListed(t *testing.T) {
	tools := judge.PDF(t)
	root := sigtest.Root(t, suite.ECDSAP256)
	signer := root.Signer(t, suite.ECDSAP256, "Signer")
	services := sigtest.NewServices(t, root)
	all := kinds(t, tools)
	gap := document{objects: map[int]string{100: "null"}}.build()
	all["no table, numbers left out"] = sample{data: gap[:bytes.LastIndex(gap, []byte("xref\n0"))]}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		t.Run(name, func(t *testing.T) {
			data := s.data
			for i := range 2 { // the second store replaces the first
				before := int64(len(data))
				data = sigtest.Make(t, New(), signer, &sig.Job{Document: bytes.NewReader(data), Evidence: services, Params: sig.Params{
					"PDFFormat": "CAdES", "TSPAddress": "", "PDFPassword": s.password, "PdfSignatureTemplateId": "1",
				}})
				f, err := open(t.Context(), bytes.NewReader(data), int64(len(data)), []byte(s.password))
				if err != nil {
					t.Fatal(err)
				}
				signed := int64(0)
				for _, one := range f.form().signatures {
					signed = max(signed, f.signature(one).end)
				}
				f.close()
				if signed <= before || signed >= int64(len(data)) {
					t.Fatalf("the signature covers %d of %d bytes", signed, len(data))
				}
				for _, end := range []int64{signed, int64(len(data))} {
					if list := absentNumbers(t, data, end, s.password); len(list) > 0 {
						t.Errorf("the first %d bytes of %d have no entry for %v", end, len(data), list)
					}
				}
				if i > 0 {
					continue
				}
				if err := tools.CheckQPDF(data[:signed], s.password); err != nil {
					t.Errorf("the signed revision: %v", err)
				}
			}
		})
	}
}

// TestNumbersSparse: one large number in a small file without cross-references does not make
// the section with all objects large.
func TestNumbersSparse(t *testing.T) {
	_, signer := party(t)
	plain := document{}.build()
	data := append(plain[:bytes.LastIndex(plain, []byte("xref\n0"))], "8000000 0 obj\nnull\nendobj\ntrailer\n<</Root 1 0 R>>\n"...)
	if signed := signedBy(t, signer, data, nil); len(signed) > len(data)+50_000 {
		t.Errorf("%d bytes became %d", len(data), len(signed))
	}
}
