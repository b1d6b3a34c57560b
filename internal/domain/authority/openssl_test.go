// SPDX-License-Identifier: Apache-2.0

package authority_test

import (
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/tsp"
)

// TestOpenSSLVerifies has OpenSSL with gost-engine build and check the paths.
func TestOpenSSLVerifies(t *testing.T) {
	tool := judge.OpenSSL(t)
	s, _, c := bootstrapped(t)
	ctx := t.Context()
	bundle := func(kind string, ders ...[]byte) []byte {
		var out []byte
		for _, der := range ders {
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})...)
		}
		return out
	}
	crls := func(name string) []byte {
		return bundle("X509 CRL", must[[]byte](t)(s.CRL(ctx, name+"-root")), must[[]byte](t)(s.CRL(ctx, name)))
	}
	for _, su := range suite.All() {
		t.Run(su.Name, func(t *testing.T) {
			name := "gost"
			if su == suite.RSASHA256 || su == suite.ECDSAP256 {
				name = "ecdsa"
			}
			x := issue(t, s, su)
			root := tool.Write("root.pem", bundle("CERTIFICATE", must[[]byte](t)(s.Certificate(ctx, name+"-root"))))
			ca := tool.Write("ca.pem", bundle("CERTIFICATE", must[[]byte](t)(s.Certificate(ctx, name))))
			leaf := tool.Write("leaf.pem", bundle("CERTIFICATE", x.Raw))
			verify := func(purpose string) error {
				list := tool.Write("crl.pem", crls(name))
				_, err := tool.Run("verify", "-x509_strict", "-attime", fmt.Sprint(c.now().Unix()), "-purpose", purpose,
					"-CAfile", root, "-untrusted", ca, "-CRLfile", list, "-crl_check_all", leaf)
				return err
			}
			for _, purpose := range []string{"smimesign", "sslclient"} {
				if err := verify(purpose); err != nil {
					t.Errorf("%s: %v", purpose, err)
				}
			}
			if err := verify("sslserver"); err == nil {
				t.Error("OpenSSL takes it for a server's certificate")
			}
			if err := s.Revoke(ctx, x.SerialNumber, 1, c.now()); err != nil {
				t.Fatal(err)
			}
			if err := verify("smimesign"); err == nil || !strings.Contains(err.Error(), "revoked") {
				t.Errorf("after the revocation: %v", err)
			}
		})
	}
}

// TestOpenSSLStampsAndAnswers has OpenSSL ask for a time stamp and for the status of the
// stamper's certificate, and verify both answers up to the root.
func TestOpenSSLStampsAndAnswers(t *testing.T) {
	tool := judge.OpenSSL(t)
	s, _, c := bootstrapped(t)
	ctx := t.Context()
	write := func(file string, der []byte) {
		tool.Write(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	tool.Write("document", []byte("document"))
	at := fmt.Sprint(c.now().Unix())
	for _, x := range []struct{ name, digest string }{{"gost", "md_gost12_256"}, {"gost", "md_gost12_512"}, {"ecdsa", "sha256"}, {"ecdsa", "sha512"}} {
		t.Run(x.digest, func(t *testing.T) {
			write("root.pem", must[[]byte](t)(s.Certificate(ctx, x.name+"-root")))
			write("ca.pem", must[[]byte](t)(s.Certificate(ctx, x.name)))
			for _, args := range []string{"-cert", "-no_nonce -cert", "-cert -tspolicy 2.25.1846093372"} {
				query := append([]string{"ts", "-query", "-data", "document", "-" + x.digest, "-out", "req.tsq"}, strings.Fields(args)...)
				must[string](t)(tool.Run(query...))
				answer := must[[]byte](t)(s.TimeStamp(ctx, tool.Read("req.tsq")))
				tool.Write("resp.tsr", answer)
				if _, err := tool.Run("ts", "-verify", "-queryfile", "req.tsq", "-in", "resp.tsr", "-CAfile", "root.pem", "-untrusted", "ca.pem", "-attime", at); err != nil {
					t.Errorf("%s: %v", args, err)
				}
			}
			signer := must[*tsp.Token](t)(tsp.ParseResponse(tool.Read("resp.tsr"))).Message.Certificates[0]
			write("tsa.pem", signer)
			must[string](t)(tool.Run("ocsp", "-issuer", "ca.pem", "-cert", "tsa.pem", "-reqout", "req.der"))
			answer := must[[]byte](t)(s.OCSP(ctx, tool.Read("req.der")))
			tool.Write("resp.der", answer)
			// OpenSSL compares the period of the answer with the clock of the machine and
			// warns. Its verdict does not depend on that.
			out, err := tool.Run("ocsp", "-no_nonce", "-issuer", "ca.pem", "-cert", "tsa.pem", "-CAfile", "root.pem", "-verify_other", "ca.pem",
				"-reqin", "req.der", "-respin", "resp.der", "-attime", at)
			if err != nil || !strings.Contains(out, "good\n\tThis Update") {
				t.Errorf("%q, %v", out, err)
			}
			bad := must[*ocsp.Response](t)(ocsp.Parse(answer)).Basic.Raw
			answer[len(answer)-len(bad)+20] ^= 1
			tool.Write("resp.der", answer)
			if out, err := tool.Run("ocsp", "-no_nonce", "-issuer", "ca.pem", "-cert", "tsa.pem", "-CAfile", "root.pem", "-verify_other", "ca.pem",
				"-reqin", "req.der", "-respin", "resp.der", "-attime", at); err == nil {
				t.Errorf("a changed answer: %q", out)
			}
		})
	}
}
