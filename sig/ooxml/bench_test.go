// SPDX-License-Identifier: Apache-2.0

package ooxml_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/ooxml"
)

// ordinary returns a typical Word document of 50 KB: text that compresses, and a picture
// that does not.
func ordinary() []byte {
	random := rand.NewChaCha8([32]byte{1})
	picture := make([]byte, 42_000)
	random.Read(picture)
	words := strings.Fields("настоящий договор стороны заключили о нижеследующем исполнитель обязуется оказать услуги заказчик оплатить их в порядке и сроки")
	var text strings.Builder
	text.WriteString(xmlHead + `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>`)
	for range 4000 {
		text.WriteString("<w:p><w:r><w:t>" + words[random.Uint64()%uint64(len(words))] + "</w:t></w:r></w:p>")
	}
	text.WriteString("</w:body></w:document>")
	return sigtest.Zip(with(with(word(), "word/document.xml", text.String()), "word/media/image1.png", string(picture)), "")
}

func BenchmarkSign(b *testing.B) {
	document := ordinary()
	for _, s := range suite.All() {
		b.Run(s.Name, func(b *testing.B) {
			signer := sigtest.Root(b, s).Signer(b, s, "Signer")
			b.SetBytes(int64(len(document)))
			b.ReportAllocs()
			for b.Loop() {
				j := job(document)
				j.Certificate, j.Time = signer.Certificate, sigtest.Time
				p, err := ooxml.New().Prepare(context.Background(), j)
				if err != nil {
					b.Fatal(err)
				}
				value, err := s.Sign(nil, signer.Key, p.Digest)
				if err != nil {
					b.Fatal(err)
				}
				r, err := ooxml.New().Finish(context.Background(), j, p.State, value)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := r.WriteTo(io.Discard); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	root := sigtest.Root(b, suite.GOST2012x256)
	document := sign(b, root.Signer(b, suite.GOST2012x256, "Signer"), ordinary())
	check := &sig.Check{Document: bytes.NewReader(document), Roots: []*x509gost.Certificate{root.Certificate}, At: sigtest.Time}
	b.SetBytes(int64(len(document)))
	b.ReportAllocs()
	for b.Loop() {
		if r, err := ooxml.New().Verify(context.Background(), check); err != nil || !r.Passed() {
			b.Fatal(err, r)
		}
	}
}
