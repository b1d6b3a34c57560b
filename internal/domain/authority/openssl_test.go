package authority_test

import (
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/pki/suite"
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
