// SPDX-License-Identifier: Apache-2.0

package sign

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"tamga/internal/domain/signing"
	"tamga/internal/web/pages/view"
)

// BenchmarkReport makes the page of a file with many signatures out of what a verification found: the words, the reports
// that the page carries and the HTML. The goal is a second for 100 signatures.
//
//	go test -run '^$' -bench Report ./internal/web/pages/sign
func BenchmarkReport(b *testing.B) {
	day := func(d int) time.Time { return time.Date(2026, 11, d, 11, 5, 0, 0, time.UTC) }
	for _, signatures := range []int{1, 100} {
		b.Run(fmt.Sprint(signatures), func(b *testing.B) {
			a := New(Deps{Now: func() time.Time { return day(21) }, Seal: func(v any) (string, error) {
				text, err := json.Marshal(v)
				return string(text), err
			}})
			var found []signing.SignatureReport
			for i := range signatures {
				owner := &signing.CertificateInfo{
					Subject: fmt.Sprintf("CN=Подписавший № %d,O=ООО «Ромашка»", i), Issuer: "CN=Удостоверяющий центр", NotBefore: day(1), NotAfter: day(20), DER: make([]byte, 1200), Serial: "01D9A2C7F4B8E35000A1B2C3D4E5F601",
				}
				found = append(found, signing.SignatureReport{
					ID: fmt.Sprint(i), Verdict: indeterminate, Signer: owner, ClaimedTime: day(2), StampedTime: day(2), Level: "T", Algorithm: "GOST R 34.10-2012", Path: []*signing.CertificateInfo{owner, owner, owner},
					Findings: []signing.Finding{{Code: "certificate-revocation-unknown", Verdict: indeterminate, Text: "unknown", Of: owner}, {Code: "later-signature", Verdict: passed, Text: "a signature was added"}},
				})
			}
			f := &sent{name: "договор.pdf", content: &signing.Intake{}}
			size := int64(0)
			for b.Loop() {
				v, err := a.results(view.WordsIn("ru"), []*report{a.reportOf(f, found)}, true)
				if err != nil {
					b.Fatal(err)
				}
				page, err := a.verifyPage(v).Render(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				size = page.Size()
			}
			b.ReportMetric(float64(size)/1e3, "KB")
		})
	}
}
