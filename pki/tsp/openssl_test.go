// SPDX-License-Identifier: Apache-2.0

package tsp_test

import (
	"bytes"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
)

// authorityConf is the configuration for "openssl ts -reply".
const authorityConf = `[tsa]
default_tsa = tsa_config
[tsa_config]
serial = serial.txt
crypto_device = builtin
default_policy = 1.2.643.7.99
digests = sha256, sha384, sha512%s
accuracy = secs:1, millisecs:500, microsecs:100
ordering = yes
tsa_name = yes
ess_cert_id_chain = no
ess_cert_id_alg = sha256
signer_digest = %s
`

// digestNames has OpenSSL's names of the suites' digests.
var digestNames = map[*suite.Hash]string{
	suite.GOST94: "md_gost94", suite.Streebog256: "md_gost12_256", suite.Streebog512: "md_gost12_512", suite.SHA256: "sha256",
}

func certificatePEM(list ...*holder) (out []byte) {
	for _, h := range list {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.cert.Raw})...)
	}
	return out
}

// TestOpenSSL checks that OpenSSL verifies our tokens for its requests, and that we read its
// tokens for our requests.
func TestOpenSSL(t *testing.T) {
	tool := judge.OpenSSL(t)
	for _, s := range suite.All() {
		t.Run(s.Name, func(t *testing.T) {
			ca, tsa := newAuthority(t, s)
			tool.Write("ca.pem", certificatePEM(ca))
			tool.Write("tsa.pem", certificatePEM(tsa))
			tool.Write("document", []byte("signature value"))

			t.Run("ours", func(t *testing.T) {
				if _, err := tool.Run("ts", "-query", "-data", "document", "-"+digestNames[s.Hash], "-cert", "-out", "req.tsq"); err != nil {
					t.Fatal(err)
				}
				r, err := tsp.ParseRequest(tool.Read("req.tsq"))
				if err != nil {
					t.Fatal(err)
				}
				if r.Digest.Hash != s.Hash || !r.CertReq || len(r.Nonce) == 0 {
					t.Fatalf("%+v", r)
				}
				i := info(s.Hash)
				i.Digest, i.Nonce = r.Digest, r.Nonce
				verify := func(der []byte) error {
					tool.Write("resp.tsr", tsp.CreateResponse(der))
					_, err := tool.Run("ts", "-verify", "-queryfile", "req.tsq", "-in", "resp.tsr", "-CAfile", "ca.pem", "-attime", fmt.Sprint(now.Unix()))
					return err
				}
				for _, authority := range [][]byte{nil, tsa.cert.RawSubject} {
					i.Authority = authority
					if err := verify(create(t, i, tsa, tsa, ca)); err != nil {
						t.Error(err)
					}
				}
				out, err := tool.Run("ts", "-reply", "-in", "resp.tsr", "-text")
				if err != nil || !strings.Contains(out, "Jul  1 00:00:00 2026 GMT") || !strings.Contains(out, "0x01 seconds, 0x01F4 millis, 0x64 micros") {
					t.Errorf("%q, %v", out, err)
				}
				bad := create(t, i, tsa, tsa, ca)
				bad[bytes.Index(bad, []byte("20260701000000Z"))+3] ^= 1
				if err := verify(bad); err == nil {
					t.Error("OpenSSL accepts a changed token")
				}
				i.Nonce = []byte{1}
				if err := verify(create(t, i, tsa, tsa, ca)); err == nil {
					t.Error("OpenSSL accepts another nonce")
				}
				tool.Write("resp.tsr", tsp.CreateRejection(tsp.Rejection, tsp.UnacceptedPolicy, "no such policy"))
				if out, err := tool.Run("ts", "-reply", "-in", "resp.tsr", "-text"); err != nil || !strings.Contains(out, "no such policy") || !strings.Contains(out, "requested TSA policy is not supported") {
					t.Errorf("%q, %v", out, err)
				}
			})

			t.Run("theirs", func(t *testing.T) {
				der, err := x509gost.MarshalPrivateKey(tsa.key, s)
				if err != nil {
					t.Fatal(err)
				}
				tool.Write("tsa.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
				own := digestNames[s.Hash]
				more := ""
				if s.IsGOST() {
					more = ", " + own
				}
				tool.Write("tsa.cnf", fmt.Appendf(nil, authorityConf, more, own))
				tool.Write("serial.txt", []byte("80\n"))
				r := tsp.Request{Digest: s.Hash.Digest([]byte("signature value")), Nonce: []byte{0x80, 1, 2, 3}, CertReq: true}
				reply := func() *tsp.Token {
					t.Helper()
					req, err := r.Marshal()
					if err != nil {
						t.Fatal(err)
					}
					tool.Write("req.tsq", req)
					if out, err := tool.Run("ts", "-reply", "-config", "tsa.cnf", "-section", "tsa_config", "-queryfile", "req.tsq",
						"-signer", "tsa.pem", "-inkey", "tsa.key", "-chain", "ca.pem", "-out", "resp.tsr"); err != nil {
						t.Fatalf("%s: %v", out, err)
					}
					token, err := tsp.ParseResponse(tool.Read("resp.tsr"))
					if err != nil {
						t.Fatal(err)
					}
					return token
				}
				token := reply()
				if err := token.Answers(&r); err != nil {
					t.Error(err)
				}
				if by, err := token.CheckSignature(nil); err != nil || !by.Equal(tsa.cert) {
					t.Errorf("signature: %v", err)
				}
				i := token.Info
				if !i.Policy.Equal(policy) || hex.EncodeToString(i.Serial) != "0081" || i.Accuracy != info(s.Hash).Accuracy || !i.Ordering || !bytes.Equal(i.Authority, tsa.cert.RawSubject) {
					t.Errorf("%+v", i)
				}
				r.CertReq = false
				if by, err := reply().CheckSignature(certs(tsa)); err != nil || !by.Equal(tsa.cert) {
					t.Errorf("without certificates: %v", err)
				}
				bad := bytes.Clone(token.Raw)
				bad[len(bad)-1] ^= 1
				if _, err := parse(t, bad).CheckSignature(nil); !errors.Is(err, tsp.ErrSignature) {
					t.Errorf("a changed token: %v", err)
				}
				r.Policy = x509gost.OID{1, 2, 3}
				req, err := r.Marshal()
				if err != nil {
					t.Fatal(err)
				}
				tool.Write("req.tsq", req)
				if _, err := tool.Run("ts", "-reply", "-config", "tsa.cnf", "-section", "tsa_config", "-queryfile", "req.tsq",
					"-signer", "tsa.pem", "-inkey", "tsa.key", "-out", "resp.tsr"); err != nil {
					t.Fatal(err)
				}
				var rejected *tsp.RejectedError
				if _, err := tsp.ParseResponse(tool.Read("resp.tsr")); !errors.As(err, &rejected) || rejected.FailInfo != tsp.UnacceptedPolicy {
					t.Errorf("another policy: %v", err)
				}
			})
		})
	}
}
