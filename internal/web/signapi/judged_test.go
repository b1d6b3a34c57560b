// SPDX-License-Identifier: Apache-2.0

package signapi_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"testing"

	"tamga/internal/app/dev"
	"tamga/internal/judge"
	"tamga/internal/tamgatest"
)

// suites are the certificates of demo, and how OpenSSL names their digests.
var suites = []struct{ name, digest string }{
	{"gost2001", "md_gost94"},
	{"gost2012-256", "md_gost12_256"},
	{"gost2012-512", "md_gost12_512"},
	{"ecdsa-p256", "sha256"},
	{"rsa-2048", "sha256"},
}

// TestOtherProgramsAcceptSignatures sends the requests of the signing
// specification for every suite and mode and lets programs we did not write
// judge the answers, and a changed copy of each.
func TestOtherProgramsAcceptSignatures(t *testing.T) {
	t.Parallel()
	openssl := judge.OpenSSL(t)
	bouncy := judge.BouncyCastle(t)
	server := tamgatest.Start(t)
	token := server.Token()
	ca := server.Path(server.Dev.CAPEM)
	caPEM, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	document := []byte("Договор поставки № 17\r\n" + string(bytes.Repeat([]byte{0, 0xff, 'x'}, 5000)))
	documentFile := openssl.Write("document", document)
	changed := bytes.Clone(document)
	changed[len(changed)/2] ^= 1
	changedFile := openssl.Write("changed", changed)

	sign := func(t *testing.T, content []byte, kind string, params map[string]string, cert dev.Certificate) []byte {
		t.Helper()
		body, err := json.Marshal(map[string]any{
			"Content": content,
			"Signature": map[string]any{
				"Type": kind, "Parameters": params, "CertificateId": cert.ID, "PinCode": cert.PIN,
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		status, answer := server.Post(token, bytes.NewReader(body))
		if status != 200 {
			t.Fatalf("%s %v: %d %s", kind, params, status, answer)
		}
		var encoded string
		if err := json.Unmarshal(answer, &encoded); err != nil {
			t.Fatalf("the answer is not a JSON string: %v", err)
		}
		signature, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			t.Fatal(err)
		}
		return signature
	}
	accepted := func(t *testing.T, who string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s refuses it: %v", who, err)
		}
	}
	refused := func(t *testing.T, who string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s accepts a changed copy", who)
		}
	}

	for _, su := range suites {
		t.Run(su.name, func(t *testing.T) {
			cert := server.Cert(su.name, false)
			certPEM, err := os.ReadFile(server.Path(cert.PEM))
			if err != nil {
				t.Fatal(err)
			}
			certFile := openssl.Write("cert.pem", certPEM)
			block, _ := pem.Decode(certPEM)
			if block == nil {
				t.Fatal("the certificate is no PEM")
			}
			_, err = openssl.Run("verify", "-CAfile", ca, certFile)
			accepted(t, "openssl verify", err)
			public, err := openssl.Run("x509", "-in", certFile, "-noout", "-pubkey")
			if err != nil {
				t.Fatal(err)
			}
			publicFile := openssl.Write("public.pem", []byte(public))
			hashOf := func(file string) []byte {
				if _, err := openssl.Run("dgst", "-"+su.digest, "-binary", "-out", "hash", file); err != nil {
					t.Fatal(err)
				}
				return openssl.Read("hash")
			}
			hash := hashOf(documentFile)

			for _, mode := range []struct {
				name    string
				content []byte
				params  map[string]string
			}{
				{"document", document, map[string]string{"Hash": "False"}},
				{"hash", hash, map[string]string{"Hash": "True"}},
			} {
				t.Run("raw "+mode.name, func(t *testing.T) {
					value := sign(t, mode.content, "GOST3410", mode.params, cert)
					file := openssl.Write("value", value)
					_, err := openssl.Run("dgst", "-"+su.digest, "-verify", publicFile, "-signature", file, documentFile)
					accepted(t, "openssl dgst", err)
					_, err = openssl.Run("dgst", "-"+su.digest, "-verify", publicFile, "-signature", file, changedFile)
					refused(t, "openssl dgst", err)
					accepted(t, "Bouncy Castle", bouncy.VerifyRaw(block.Bytes, document, value))
					refused(t, "Bouncy Castle", bouncy.VerifyRaw(block.Bytes, changed, value))
				})
			}

			for _, mode := range []struct {
				name     string
				content  []byte
				kind     string
				params   map[string]string
				detached bool
			}{
				{"detached", document, "CAdES", map[string]string{"Hash": "False", "CADESType": "BES", "IsDetached": "True"}, true},
				{"attached", document, "CAdES", map[string]string{"Hash": "False", "CADESType": "BES", "IsDetached": "False"}, false},
				{"over a hash", hash, "CAdES", map[string]string{"Hash": "True", "CADESType": "BES", "IsDetached": "True"}, true},
				{"CMS detached", document, "CMS", map[string]string{"IsDetached": "True"}, true},
				{"CMS attached", document, "CMS", map[string]string{}, false},
			} {
				t.Run(mode.name, func(t *testing.T) {
					message := sign(t, mode.content, mode.kind, mode.params, cert)
					verify := func(message []byte, content string) error {
						args := []string{"cms", "-verify", "-binary", "-cades", "-inform", "DER", "-in", openssl.Write("message", message), "-CAfile", ca, "-out", "out"}
						if content != "" {
							args = append(args, "-content", content)
						}
						_, err := openssl.Run(args...)
						return err
					}
					if !mode.detached {
						accepted(t, "openssl cms", verify(message, ""))
						if !bytes.Equal(openssl.Read("out"), document) {
							t.Error("the content that came out is not the document")
						}
						accepted(t, "Bouncy Castle", bouncy.VerifyCMS(message, nil, caPEM))
						broken := bytes.Replace(message, document[2000:2100], changed[len(changed)/2-50:len(changed)/2+50], 1)
						if bytes.Equal(broken, message) {
							t.Fatal("nothing was changed")
						}
						refused(t, "openssl cms", verify(broken, ""))
						refused(t, "Bouncy Castle", bouncy.VerifyCMS(broken, nil, caPEM))
						return
					}
					accepted(t, "openssl cms", verify(message, documentFile))
					accepted(t, "Bouncy Castle", bouncy.VerifyCMS(message, document, caPEM))
					refused(t, "openssl cms", verify(message, changedFile))
					refused(t, "Bouncy Castle", bouncy.VerifyCMS(message, changed, caPEM))
					broken := bytes.Clone(message)
					broken[len(broken)-10] ^= 1 // inside the signature value, which ends the message
					refused(t, "openssl cms", verify(broken, documentFile))
					refused(t, "Bouncy Castle", bouncy.VerifyCMS(broken, document, caPEM))
				})
			}
		})
	}
}
