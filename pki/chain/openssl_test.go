// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/pki/chain"
	"tamga/pki/x509gost"
)

// authorityConf is the configuration for "openssl ca", "openssl req" and "openssl x509". The
// engine is set in the configuration of the test tool.
const authorityConf = `[ca]
default_ca = authority
[authority]
database = index.txt
crlnumber = crlnumber
default_md = %s
default_crl_days = 7
crl_extensions = crl_ext
[crl_ext]
authorityKeyIdentifier = keyid
[req]
distinguished_name = dn
[dn]
[root_ext]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
[leaf_ext]
keyUsage = critical,digitalSignature
authorityKeyIdentifier = keyid
`

// TestOpenSSLAuthority checks certificates and lists of an authority run with OpenSSL: the
// certificate is good before its revocation and refused afterwards.
func TestOpenSSLAuthority(t *testing.T) {
	tool := judge.OpenSSL(t)
	for _, c := range []struct{ key, digest string }{
		{"gost2001 -pkeyopt paramset:A", "md_gost94"},
		{"gost2012_256 -pkeyopt paramset:TCA", "md_gost12_256"},
		{"gost2012_512 -pkeyopt paramset:C", "md_gost12_512"},
	} {
		t.Run(c.digest, func(t *testing.T) {
			tool.Write("ca.cnf", fmt.Appendf(nil, authorityConf, c.digest))
			tool.Write("index.txt", nil)
			tool.Write("crlnumber", []byte("01\n"))
			for _, args := range []string{
				"genpkey -algorithm " + c.key + " -out root.key",
				"genpkey -algorithm " + c.key + " -out leaf.key",
				"req -x509 -config ca.cnf -new -key root.key -" + c.digest + " -subj /CN=Root -extensions root_ext -days 30 -out root.pem",
				"req -config ca.cnf -new -key leaf.key -" + c.digest + " -subj /CN=Leaf -out leaf.req",
				"x509 -req -in leaf.req -CA root.pem -CAkey root.key -set_serial 77 -" + c.digest + " -extfile ca.cnf -extensions leaf_ext -days 20 -out leaf.pem",
				"ca -config ca.cnf -gencrl -cert root.pem -keyfile root.key -out empty.crl",
				"ca -config ca.cnf -revoke leaf.pem -crl_reason keyCompromise -cert root.pem -keyfile root.key",
				"ca -config ca.cnf -gencrl -cert root.pem -keyfile root.key -out revoked.crl",
			} {
				if _, err := tool.Run(strings.Fields(args)...); err != nil {
					t.Fatal(err)
				}
			}
			for file, want := range map[string]error{"empty.crl": nil, "revoked.crl": chain.ErrRevoked} {
				block, _ := pem.Decode(tool.Read(file))
				if block == nil {
					t.Fatalf("%s is not PEM", file)
				}
				list, err := x509gost.ParseRevocationList(block.Bytes)
				if err != nil {
					t.Fatal(err)
				}
				// Check at the time that OpenSSL wrote into the list.
				_, err = chain.Build(parseOne(t, tool.Read("leaf.pem")), chain.Options{
					Roots: []*x509gost.Certificate{parseOne(t, tool.Read("root.pem"))},
					CRLs:  []*x509gost.RevocationList{list}, At: list.ThisUpdate, RequireRevocation: true,
				})
				if !errors.Is(err, want) || (err == nil) != (want == nil) {
					t.Errorf("%s: %v, want %v", file, err, want)
				}
			}
		})
	}
}

func parseOne(t *testing.T, data []byte) *x509gost.Certificate {
	t.Helper()
	list, err := x509gost.ParseCertificates(data)
	if err != nil {
		t.Fatal(err)
	}
	return list[len(list)-1]
}
