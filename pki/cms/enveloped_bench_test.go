// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
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

// BenchmarkRefusals times messages for an RSA key by why they do not decrypt: the padding of the encrypted key
// (PKCS #1 v1.5), a key of the right form that is another one, and the content. The times of one cipher must not differ,
// or they tell who sends such messages which it was.
func BenchmarkRefusals(b *testing.B) {
	p := newParty(b, suite.RSASHA256, nil, 1)
	public := p.private.Public().(*rsa.PublicKey)
	for _, cipher := range []*ContentCipher{AES256CBC, AES256GCM} {
		message, last := encrypt(b, make([]byte, 1<<10), 1<<10, Encryption{Cipher: cipher}, p), 1 // of the code
		if cipher == AES256CBC {
			last = 17 // of the block before the padding, which it changes
		}
		key := bytes.Index(message, []byte{tagOctetString, 0x82, 1, 0}) + 4 // of 2,048 bits
		changed := func(change func(m []byte)) []byte {
			m := bytes.Clone(message)
			change(m)
			return m
		}
		//lint:ignore SA1019 it is the form that is timed
		other, err := rsa.EncryptPKCS1v15(rand.Reader, public, make([]byte, 32))
		if err != nil {
			b.Fatal(err)
		}
		//lint:ignore SA1019 it is the form that is timed
		short, err := rsa.EncryptPKCS1v15(rand.Reader, public, make([]byte, 31))
		if err != nil {
			b.Fatal(err)
		}
		for _, row := range []struct {
			name    string
			message []byte
		}{
			{"padding of the key", changed(func(m []byte) { m[key+100] ^= 1 })},
			{"length of the key", changed(func(m []byte) { copy(m[key:], short) })},
			{"another key", changed(func(m []byte) { copy(m[key:], other) })},
			{"content", changed(func(m []byte) { m[len(m)-last] ^= 0x80 })},
		} {
			b.Run(cipher.Name+"/"+row.name, func(b *testing.B) {
				for b.Loop() {
					e, err := ParseEnveloped(bytes.NewReader(row.message), int64(len(row.message)))
					if err != nil {
						b.Fatal(err)
					}
					var sink counted
					if _, err := e.Decrypt(context.Background(), p.opening(), &sink); err == nil && cipher == AES256GCM {
						b.Fatal("it decrypts") // a random padding of CBC is right once in 256
					}
				}
			})
		}
	}
}
