// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"testing"

	"tamga/internal/judge"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// textOf returns bytes that are the same for the same size.
func textOf(size int) []byte {
	b := make([]byte, size)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// OpenSSL with gost-engine reads what we encrypt, and we read what it encrypts.
func TestOpenSSLEncrypted(t *testing.T) {
	tool := judge.OpenSSL(t)
	for i, f := range forms() {
		if f.o.Agreement && f.suite.IsGOST() {
			continue // gost-engine has no key agreement for these forms
		}
		option := map[*ContentCipher]string{
			GOST28147: "-gost89", AES128CBC: "-aes-128-cbc", AES192CBC: "-aes-192-cbc", AES256CBC: "-aes-256-cbc",
			AES128GCM: "-aes-128-gcm", AES192GCM: "-aes-192-gcm", AES256GCM: "-aes-256-gcm",
			Magma: "-magma-ctr-acpkm", Kuznyechik: "-kuznyechik-ctr-acpkm",
		}[f.o.Cipher]
		// gost-engine 3.0.1 writes with the sections of CMS and reads with those of TLS, which are
		// shorter. The difference shows behind the first short section, code included.
		most := 100_000
		switch f.o.Cipher {
		case Magma:
			most = 1 << 10
		case Kuznyechik:
			most = 4 << 10
		}
		if f.integrity == Verified && f.suite.IsGOST() {
			option += "-omac"
			most -= 16
		}
		t.Run(f.name, func(t *testing.T) {
			p := newParty(t, f.suite, f.set, 1)
			certificate := tool.Write(fmt.Sprintf("%d.pem", i), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.certificate.Raw}))
			pkcs8, err := x509gost.MarshalPrivateKey(p.private, f.suite)
			if err != nil {
				t.Fatal(err)
			}
			key := tool.Write(fmt.Sprintf("%d.key", i), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
			for _, size := range []int{0, 1, 8, 1023, 1024, 1025, 100_000} {
				text := textOf(size)
				tool.Write("text", text)
				for _, announced := range []int64{int64(size), -1} {
					tool.Write("message", encrypt(t, text, announced, f.o, p))
					if size <= most {
						if out, err := tool.Run("cms", "-decrypt", "-binary", "-inform", "DER", "-in", "message", "-recip", certificate, "-inkey", key, "-out", "got"); err != nil || !bytes.Equal(tool.Read("got"), text) {
							t.Errorf("%d bytes, announced %d: OpenSSL does not read ours: %v %s", size, announced, err, out)
						}
					}
					if announced < 0 && size == 0 {
						continue // OpenSSL fails to write a stream of no bytes
					}
					args := []string{"cms", "-encrypt", "-binary", "-outform", "DER", "-in", "text", "-out", "theirs", option, "-recip", certificate}
					if f.o.OAEP {
						args = append(args, "-keyopt", "rsa_padding_mode:oaep", "-keyopt", "rsa_oaep_md:sha256")
					}
					if f.suite == suite.ECDSAP256 {
						args = append(args, "-keyopt", "ecdh_kdf_md:sha256")
					}
					if announced < 0 {
						args = append(args, "-stream")
					}
					if _, err := tool.Run(args...); err != nil {
						t.Fatal(err)
					}
					got, integrity, err := decrypt(t, tool.Read("theirs"), p.opening())
					if err != nil || !bytes.Equal(got, text) || integrity != f.integrity {
						t.Errorf("%d bytes, announced %d: we do not read OpenSSL's: %d bytes, %v, %v", size, announced, len(got), integrity, err)
					}
				}
			}
		})
	}
}

// One message for keys of every kind that GOST 28147-89 serves, in both directions.
func TestOpenSSLSeveralRecipients(t *testing.T) {
	tool := judge.OpenSSL(t)
	var all []party
	args := []string{"cms", "-encrypt", "-binary", "-outform", "DER", "-in", "text", "-out", "theirs", "-gost89"}
	for i, s := range []*suite.Suite{suite.GOST2001, suite.GOST2012x256, suite.GOST2012x512, suite.RSASHA256} {
		p := newParty(t, s, nil, byte(i+1))
		all = append(all, p)
		pkcs8, err := x509gost.MarshalPrivateKey(p.private, s)
		if err != nil {
			t.Fatal(err)
		}
		tool.Write(fmt.Sprintf("%d.key", i), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
		args = append(args, "-recip", tool.Write(fmt.Sprintf("%d.pem", i), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.certificate.Raw})))
	}
	text := textOf(5000)
	tool.Write("text", text)
	tool.Write("message", encrypt(t, text, -1, Encryption{}, all...))
	if _, err := tool.Run(args...); err != nil {
		t.Fatal(err)
	}
	for i, p := range all {
		if _, err := tool.Run("cms", "-decrypt", "-binary", "-inform", "DER", "-in", "message", "-recip", fmt.Sprintf("%d.pem", i), "-inkey", fmt.Sprintf("%d.key", i), "-out", "got"); err != nil || !bytes.Equal(tool.Read("got"), text) {
			t.Errorf("%s: OpenSSL does not read ours: %v", p.certificate.Subject, err)
		}
		if got, _, err := decrypt(t, tool.Read("theirs"), p.opening()); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: we do not read OpenSSL's: %v", p.certificate.Subject, err)
		}
	}
}
