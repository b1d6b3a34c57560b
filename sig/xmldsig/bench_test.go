// SPDX-License-Identifier: Apache-2.0

package xmldsig_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/xmldsig"
)

// invoice returns a document of about size bytes.
func invoice(size int) []byte {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<inv:Invoice xmlns:inv="urn:test:invoice" xmlns:cbc="urn:test:basic">`)
	for i := 0; b.Len() < size-60; i++ {
		fmt.Fprintf(&b, "\n  <inv:Line number=\"%d\" unit='шт'>\n    <cbc:Name>Болт М%d &amp; гайка</cbc:Name>\n    <cbc:Price currency=\"RUB\">%d.50</cbc:Price>\n  </inv:Line>", i, i%24, i)
	}
	b.WriteString("\n</inv:Invoice>\n")
	return []byte(b.String())
}

// BenchmarkEnveloped is Prepare and Finish without the key: reading, the canonical
// form, digests, and the result.
func BenchmarkEnveloped(b *testing.B) {
	for _, s := range []*suite.Suite{suite.GOST2012x256, suite.RSASHA256} {
		signer := sigtest.Root(b, s).Signer(b, s, "Signer")
		for _, size := range []int{4 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%s/%dKiB", s.Name, size>>10), func(b *testing.B) {
				text := invoice(size)
				j := &sig.Job{Document: sigtest.Document(text), Certificate: signer.Certificate, Time: sigtest.Time, Params: sig.Params{"XMLDsigType": "XMLEnveloped"}}
				prepared, err := xmldsig.New().Prepare(context.Background(), j)
				if err != nil {
					b.Fatal(err)
				}
				value := signer.Sign(b, prepared.Digest)
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					prepared, err := xmldsig.New().Prepare(context.Background(), j)
					if err != nil {
						b.Fatal(err)
					}
					result, err := xmldsig.New().Finish(context.Background(), j, prepared.State, value)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := result.WriteTo(io.Discard); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	s := suite.GOST2012x256
	root := sigtest.Root(b, s)
	signer := root.Signer(b, s, "Signer")
	for _, size := range []int{4 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			signed := sigtest.Make(b, xmldsig.New(), signer, job("XMLEnveloped", string(invoice(size))))
			b.SetBytes(int64(len(signed)))
			b.ReportAllocs()
			for b.Loop() {
				r, err := xmldsig.New().Verify(context.Background(), &sig.Check{Document: bytes.NewReader(signed), Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time})
				if err != nil || !r.Passed() {
					b.Fatal(err)
				}
			}
		})
	}
}

// FuzzVerify: every input gives a report or an error, and a document whose signature is
// valid was signed by this test.
func FuzzVerify(f *testing.F) {
	s := suite.GOST2012x256
	root := sigtest.Root(f, s)
	signer := root.Signer(f, s, "Signer")
	for _, kind := range kinds {
		f.Add(sigtest.Make(f, xmldsig.New(), signer, jobOf(kind, s)))
	}
	f.Add(sigtest.Make(f, xmldsig.New(), signer, jobOf("XMLEnveloped", s, "XAdESType", "BES")))
	f.Add([]byte(withTemplate(bare(s, "#xpointer(id('part'))", transformsOf(exclusive+outOfIt+`<Transform Algorithm="`+smevURN+`"/>`)))))
	f.Add([]byte(withTemplate(bare(s, "", transformsOf(`<Transform Algorithm="http://www.w3.org/2002/06/xmldsig-filter2"><XPath xmlns="http://www.w3.org/2002/06/xmldsig-filter2" Filter="subtract">//b</XPath></Transform>`)))))
	for _, template := range xadesTemplates(s) {
		f.Add([]byte(withTemplate(template)))
	}
	f.Add([]byte(withTemplate(strings.Replace(bare(s, "#list", ""), "</Signature>", `<Object><Manifest Id="list"><Reference URI="#part"><DigestMethod Algorithm="`+s.Hash.XML[0]+`"/><DigestValue/></Reference></Manifest></Object></Signature>`, 1))))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := xmldsig.New().Verify(context.Background(), &sig.Check{Document: bytes.NewReader(data), Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time})
		if err == nil && len(r.Signatures) == 0 && r.Passed() {
			t.Error("valid without a signature")
		}
		j := job("XMLTemplate", string(data))
		j.Certificate, j.Time = signer.Certificate, sigtest.Time
		prepared, err := xmldsig.New().Prepare(context.Background(), j)
		if err != nil {
			return
		}
		// What could be prepared verifies when it is finished.
		result, err := xmldsig.New().Finish(context.Background(), j, prepared.State, signer.Sign(t, prepared.Digest))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if _, err := result.WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		if r, err = xmldsig.New().Verify(context.Background(), &sig.Check{Document: bytes.NewReader(out.Bytes()), Certificate: signer.Certificate, Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time}); err != nil {
			t.Fatalf("%v\n%s", err, out.Bytes())
		}
		for _, signature := range r.Signatures {
			for _, finding := range signature.Findings {
				if finding.Code == "digest-mismatch" && len(r.Signatures) == 1 {
					t.Fatalf("%s\n%s", finding.Text, out.Bytes())
				}
			}
		}
	})
}
