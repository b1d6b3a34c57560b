// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"testing"

	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/view"
)

// TestAdviceOnChangedDocuments checks that what was added after signing is called a change of the document, in each
// language, and not a fault of the program that signed.
func TestAdviceOnChangedDocuments(t *testing.T) {
	for code := range changed {
		s := signature{SignatureReport: signing.SignatureReport{Findings: []signing.Finding{
			{Indication: "FORMAT_FAILURE", Verdict: "failed", Code: code}, {Code: code, Verdict: "passed"},
			{Indication: "FORMAT_FAILURE", Verdict: "failed", Code: "signature-malformed"},
		}}}
		list := s.Findings()
		if list[0].Key != "finding.changed" || list[0].Mend != "mend.changed" || list[1].Mend != "mend.note" || list[2].Mend != "mend.FORMAT_FAILURE" {
			t.Errorf("%s: %+v", code, list)
		}
		for _, l := range view.Languages {
			if l.TextOr("code."+code, "") == "" || l.TextOr(list[0].Key, "") == "" || l.TextOr(list[0].Mend, "") == "" {
				t.Errorf("%s: no words in %s", code, l.Language)
			}
		}
	}
}
