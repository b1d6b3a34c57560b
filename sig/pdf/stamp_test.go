// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/sig"
)

// TestStamp adds visible stamps to documents of every kind.
func TestStamp(t *testing.T) {
	tools := judge.PDF(t)
	root := sigtest.Root(t, suite.RSASHA256)
	signer := root.Signer(t, suite.RSASHA256, "Иванов Иван")
	tools.Trust(root.PEM())
	appearance := base64.StdEncoding.EncodeToString([]byte(`{"Page": 2, "Rect": {"LowerLeftX": 100, "LowerLeftY": 100, "UpperRightX": 300, "UpperRightY": 200},
		"Content": [{"Text": "Подписано электронной подписью", "Font": {"FontSize": 9}}]}`))
	all := kinds(t, tools)
	for i, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		if testsize.Of() < testsize.Whole && i%3 != 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			params := sig.Params{"PDFFormat": "CMS", "PdfSignatureTemplateId": "1", "PDFPassword": s.password}
			if strings.Contains(string(s.data), "/Count 3") || s.password != "" || name == "AES 256" {
				params["PdfSignatureAppearance"] = appearance
			}
			signed := sigtest.Make(t, New(), signer, &sig.Job{Document: bytes.NewReader(s.data), Params: params})
			if err := tools.CheckQPDF(signed, s.password); err != nil {
				t.Error(err)
			}
			if err := tools.CheckMuPDF(signed, s.password); err != nil && !s.notMuPDF {
				t.Error(err)
			}
			list, err := tools.Signatures(signed, s.password)
			if (err != nil || len(list) != 1 || !list[0].Valid) && !s.notPoppler {
				t.Errorf("pdfsig: %v %v", err, list)
			}
			said, err := tools.Text(signed, s.password)
			want := "Иванов Иван"
			if params["PdfSignatureAppearance"] != "" {
				want = "Подписано"
			}
			if err != nil || !strings.Contains(said, want) {
				t.Errorf("the pages show %q: %v", said, err)
			}
			if s.password == "" {
				if r := verified(t, signed, root); !r.Passed() {
					t.Errorf("%s", say(r))
				}
			}
		})
	}
	data := document{}.build()
	for _, wrong := range []string{`{"Page": 9}`, `{`, `{"Rect": {"LowerLeftX": "a"}}`} {
		_, err := sigtest.Try(t, New(), signer, &sig.Job{Document: bytes.NewReader(data), Params: sig.Params{
			"PDFFormat": "CMS", "PdfSignatureTemplateId": "1", "PdfSignatureAppearance": base64.StdEncoding.EncodeToString([]byte(wrong)),
		}})
		if f := sigtest.Faults(err); len(f) != 1 || f[0] != "PdfSignatureAppearance" {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
