// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"context"
	"io"
	"testing"

	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// benchmarked are the forms whose cost differs.
func benchmarked(b *testing.B) []struct {
	name string
	p    party
	o    Encryption
} {
	gost, long := newParty(b, suite.GOST2012x256, nil, 1), newParty(b, suite.GOST2012x512, nil, 1)
	rsa, ec := newParty(b, suite.RSASHA256, nil, 1), newParty(b, suite.ECDSAP256, nil, 1)
	return []struct {
		name string
		p    party
		o    Encryption
	}{
		{"256/28147", gost, Encryption{}},
		{"512/28147", long, Encryption{}},
		{"256/Magma", gost, Encryption{Cipher: Magma}},
		{"256/Kuznyechik", gost, Encryption{Cipher: Kuznyechik}},
		{"256/Kuznyechik without OMAC", gost, Encryption{Cipher: Kuznyechik, WithoutIntegrity: true}},
		{"RSA/AES256-CBC", rsa, Encryption{}},
		{"EC/AES256-GCM", ec, Encryption{Cipher: AES256GCM}},
	}
}

var benchmarkSizes = []struct {
	name string
	size int64
}{{"1KiB", 1 << 10}, {"16MiB", 16 << 20}}

func BenchmarkEncrypt(b *testing.B) {
	for _, f := range benchmarked(b) {
		for _, s := range benchmarkSizes {
			b.Run(f.name+"/"+s.name, func(b *testing.B) {
				b.SetBytes(s.size)
				b.ReportAllocs()
				for b.Loop() {
					if err := Encrypt(context.Background(), io.Discard, io.LimitReader(zeros{}, s.size), s.size, []*x509gost.Certificate{f.p.certificate}, f.o); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkDecrypt(b *testing.B) {
	for _, f := range benchmarked(b) {
		for _, s := range benchmarkSizes {
			b.Run(f.name+"/"+s.name, func(b *testing.B) {
				message := encrypt(b, make([]byte, s.size), s.size, f.o, f.p)
				b.SetBytes(s.size)
				b.ReportAllocs()
				for b.Loop() {
					e, err := ParseEnveloped(bytes.NewReader(message), int64(len(message)))
					if err != nil {
						b.Fatal(err)
					}
					var sink counted
					if _, err := e.Decrypt(context.Background(), f.p.opening(), &sink); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkRecipients reads a message with 10,000 recipients and looks for the last one.
func BenchmarkRecipients(b *testing.B) {
	message, last := manyRecipients(b, 10_000)
	b.SetBytes(int64(len(message)))
	b.ReportAllocs()
	for b.Loop() {
		e, err := ParseEnveloped(bytes.NewReader(message), int64(len(message)))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := e.Recipient(last.certificate); err != nil {
			b.Fatal(err)
		}
	}
}
