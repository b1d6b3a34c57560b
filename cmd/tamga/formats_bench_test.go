// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"testing"
	"time"

	"tamga/internal/sigtest"
	"tamga/internal/tamgatest"
	"tamga/pki/suite"
	"tamga/sig"
	"tamga/sig/ooxml"
	"tamga/sig/pdf"
	"tamga/sig/xmldsig"
)

// BenchmarkFormats times what a format does for a document of BenchmarkHTTP: Prepare, Finish and
// writing the result, without the key. bare-signatures/op is the processor time as a multiple of
// one signature by gost2012-256, CryptoPro A.
func BenchmarkFormats(b *testing.B) {
	signer := sigtest.Root(b, suite.GOST2012x256).Signer(b, suite.GOST2012x256, "Signer")
	for _, row := range []struct {
		name     string
		format   sig.Format
		document []byte
		params   sig.Params
	}{
		{"XMLEnveloped-4KiB", xmldsig.New(), xmlOf(4 << 10), sig.Params{"XMLDsigType": "XMLEnveloped"}},
		{"PDF-100KB", pdf.New(), tamgatest.PDFOf(100_000), sig.Params{"PDFFormat": "CMS"}},
		{"DOCX-50KB", ooxml.New(), tamgatest.DOCXOf(b, 50_000), sig.Params{}},
	} {
		b.Run(row.name, func(b *testing.B) {
			job := &sig.Job{Document: bytes.NewReader(row.document), Certificate: signer.Certificate, Time: sigtest.Time, Params: row.params, Again: true}
			prepared, err := row.format.Prepare(b.Context(), job)
			if err != nil {
				b.Fatal(err)
			}
			value := signer.Sign(b, prepared.Digest)
			bare := newBareSignature(b)
			var took time.Duration
			b.ReportAllocs()
			for left := b.N; left > 0; {
				b.StopTimer()
				bare.time(b)
				b.StartTimer()
				before := ownProcessorTime(b)
				for range min(left, 500) {
					prepared, err := row.format.Prepare(b.Context(), job)
					if err != nil {
						b.Fatal(err)
					}
					result, err := row.format.Finish(b.Context(), job, prepared.State, value)
					if err == nil {
						_, err = result.WriteTo(io.Discard)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
				took += ownProcessorTime(b) - before
				left -= min(left, 500)
			}
			b.ReportMetric(took.Seconds()*1e6/float64(b.N)/bare.microseconds(), "bare-signatures/op")
		})
	}
}
