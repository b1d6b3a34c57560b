// SPDX-License-Identifier: Apache-2.0

package x509gost_test

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"tamga/gost/gost3410"
	"tamga/internal/judge"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func derOf(t *testing.T, data []byte) []byte {
	t.Helper()
	block, _ := pem.Decode(data)
	if block == nil {
		t.Fatalf("no PEM in %q", data)
	}
	return block.Bytes
}

// flip changes the last byte of the DER, which belongs to a signature.
func flip(der []byte) []byte {
	changed := bytes.Clone(der)
	changed[len(changed)-1] ^= 1
	return changed
}

// leftOut reports whether the short form leaves out the i-th key. Each suite is still tried, as used
// shows, and other curves of a suite in turn.
func leftOut(used map[*suite.Suite]bool, s *suite.Suite, i int) bool {
	first := !used[s]
	used[s] = true
	return testsize.Of() < testsize.Whole && !first && i%6 != 0
}

// judgedCases leaves out the test curves, for which gost-engine has no keys.
func judgedCases(t *testing.T) []keyCase {
	var list []keyCase
	used := map[*suite.Suite]bool{}
	for i, k := range keyCases(t) {
		if !strings.Contains(k.name, "TestParamSet") && !strings.Contains(k.name, "paramSetTest") && !leftOut(used, k.suite, i) {
			list = append(list, k)
		}
	}
	return list
}

// TestOpenSSLReadsOurs checks our output with OpenSSL on every curve; in the short form, on some
// curves of every suite.
func TestOpenSSLReadsOurs(t *testing.T) {
	tool := judge.OpenSSL(t)
	for _, k := range judgedCases(t) {
		t.Run(k.name, func(t *testing.T) {
			root := create(t, rootTemplate(t), nil, k, k)
			leaf := create(t, leafTemplate(t), root, k, k)
			list := func(revoked ...x509gost.RevokedEntry) []byte {
				der, err := x509gost.CreateRevocationList(&x509gost.CRLTemplate{
					ThisUpdate: start, NextUpdate: start.AddDate(0, 0, 7), Number: []byte{1}, Revoked: revoked,
				}, root, k.suite, k.sign())
				if err != nil {
					t.Fatal(err)
				}
				return der
			}
			good := list(x509gost.RevokedEntry{SerialNumber: []byte{9}, At: start})
			tool.Write("root.pem", pemOf("CERTIFICATE", root.Raw))
			tool.Write("leaf.pem", pemOf("CERTIFICATE", leaf.Raw))
			tool.Write("flipped.pem", pemOf("CERTIFICATE", flip(leaf.Raw)))
			tool.Write("good.pem", pemOf("X509 CRL", good))
			tool.Write("flippedcrl.pem", pemOf("X509 CRL", flip(good)))
			tool.Write("revoked.pem", pemOf("X509 CRL", list(x509gost.RevokedEntry{SerialNumber: leaf.SerialNumber, At: start, Reason: 1})))

			verify := func(crl, cert string) error {
				at := strconv.FormatInt(start.Add(time.Hour).Unix(), 10)
				_, err := tool.Run("verify", "-attime", at, "-CAfile", "root.pem", "-crl_check", "-CRLfile", crl, cert)
				return err
			}
			if err := verify("good.pem", "leaf.pem"); err != nil {
				t.Error(err)
			}
			for what, err := range map[string]error{
				"a changed certificate": verify("good.pem", "flipped.pem"),
				"a changed list":        verify("flippedcrl.pem", "leaf.pem"),
				"a revoked certificate": verify("revoked.pem", "leaf.pem"),
			} {
				if err == nil {
					t.Errorf("OpenSSL accepts %s", what)
				}
			}
			if _, err := tool.Run("crl", "-in", "good.pem", "-CAfile", "root.pem", "-noout"); err != nil {
				t.Error(err)
			}
			checkText(t, tool, leaf)
			checkKeyAndRequest(t, tool, k)
		})
	}
}

// checkText checks what OpenSSL prints of a certificate.
func checkText(t *testing.T, tool *judge.Tool, leaf *x509gost.Certificate) {
	t.Helper()
	text, err := tool.Run("x509", "-in", "leaf.pem", "-noout", "-text", "-nameopt", "utf8,sep_comma_plus")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"INN=007712345678", "SNILS=12345678901", "OGRN=1234567890123", "CN=Иванов Иван",
		"URI:http://ca.example/root.crl", "Digital Signature, Non Repudiation", "Not After : Jan  1 00:00:00 2056 GMT",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("OpenSSL does not print %q:\n%s", want, text)
		}
	}
}

func checkKeyAndRequest(t *testing.T, tool *judge.Tool, k keyCase) {
	t.Helper()
	pkcs8, err := x509gost.MarshalPrivateKey(k.key, k.suite)
	if err != nil {
		t.Fatal(err)
	}
	tool.Write("key.pem", pemOf("PRIVATE KEY", pkcs8))
	public, err := tool.Run("pkey", "-in", "key.pem", "-pubout")
	if err != nil {
		t.Fatal(err)
	}
	// Compare keys, not bytes: gost-engine repeats the digest in the parameters of
	// the 512-bit sets A and B, RFC 9215 omits it.
	found, s, err := x509gost.ParsePublicKey(derOf(t, []byte(public)))
	if err != nil {
		t.Fatal(err)
	}
	if s != k.suite || !found.(equaler).Equal(k.key.Public()) {
		t.Error("OpenSSL finds another public key")
	}
	req, err := x509gost.CreateRequest(commonName(t, "Заявка"), nil, k.key.Public(), k.suite, k.sign())
	if err != nil {
		t.Fatal(err)
	}
	tool.Write("req.pem", pemOf("CERTIFICATE REQUEST", req))
	tool.Write("flippedreq.pem", pemOf("CERTIFICATE REQUEST", flip(req)))
	// "openssl req -verify" exits with 0 for a bad signature, so issue a
	// certificate: that fails unless the request's signature is valid.
	issue := func(name string) error {
		_, err := tool.Run("x509", "-req", "-in", name, "-signkey", "key.pem", "-out", "fromreq.pem")
		return err
	}
	if err := issue("req.pem"); err != nil {
		t.Error(err)
	}
	if err := issue("flippedreq.pem"); err == nil {
		t.Error("OpenSSL accepts a changed request")
	}
	if _, err := tool.Run("req", "-verify", "-in", "req.pem", "-noout"); err != nil {
		t.Error(err)
	}
}

// opensslKeys has the genpkey arguments for the sets that gost-engine supports.
var opensslKeys = []struct {
	algorithm, option string
	suite             *suite.Suite
	set               *gost3410.Set
}{
	{"gost2001", "paramset:A", suite.GOST2001, gost3410.CryptoProA},
	{"gost2001", "paramset:B", suite.GOST2001, gost3410.CryptoProB},
	{"gost2001", "paramset:C", suite.GOST2001, gost3410.CryptoProC},
	{"gost2001", "paramset:XA", suite.GOST2001, gost3410.CryptoProXchA},
	{"gost2001", "paramset:XB", suite.GOST2001, gost3410.CryptoProXchB},
	{"gost2012_256", "paramset:A", suite.GOST2012x256, gost3410.CryptoProA},
	{"gost2012_256", "paramset:B", suite.GOST2012x256, gost3410.CryptoProB},
	{"gost2012_256", "paramset:C", suite.GOST2012x256, gost3410.CryptoProC},
	{"gost2012_256", "paramset:XA", suite.GOST2012x256, gost3410.CryptoProXchA},
	{"gost2012_256", "paramset:XB", suite.GOST2012x256, gost3410.CryptoProXchB},
	{"gost2012_256", "paramset:TCA", suite.GOST2012x256, gost3410.TC26256A},
	{"gost2012_256", "paramset:TCB", suite.GOST2012x256, gost3410.TC26256B},
	{"gost2012_256", "paramset:TCC", suite.GOST2012x256, gost3410.TC26256C},
	{"gost2012_256", "paramset:TCD", suite.GOST2012x256, gost3410.TC26256D},
	{"gost2012_512", "paramset:A", suite.GOST2012x512, gost3410.TC26512A},
	{"gost2012_512", "paramset:B", suite.GOST2012x512, gost3410.TC26512B},
	{"gost2012_512", "paramset:C", suite.GOST2012x512, gost3410.TC26512C},
	{"RSA", "rsa_keygen_bits:2048", suite.RSASHA256, nil},
	{"EC", "ec_paramgen_curve:P-256", suite.ECDSAP256, nil},
}

// authorityConf is a configuration for "openssl ca" and "openssl req". The engine is set
// in the configuration of the test tool.
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
crlDistributionPoints = URI:http://ca.example/root.crl
`

// opensslDigest has the name of a suite's digest on OpenSSL's command line.
var opensslDigest = map[*suite.Suite]string{
	suite.GOST2001: "md_gost94", suite.GOST2012x256: "md_gost12_256", suite.GOST2012x512: "md_gost12_512",
	suite.RSASHA256: "sha256", suite.ECDSAP256: "sha256",
}

// TestWeReadOpenSSL checks that we read keys, requests, certificates and lists of OpenSSL.
func TestWeReadOpenSSL(t *testing.T) {
	tool := judge.OpenSSL(t)
	used := map[*suite.Suite]bool{}
	for i, c := range opensslKeys {
		if leftOut(used, c.suite, i) {
			continue
		}
		t.Run(c.algorithm+"/"+c.option, func(t *testing.T) {
			digest := opensslDigest[c.suite]
			tool.Write("ca.cnf", fmt.Appendf(nil, authorityConf, digest))
			tool.Write("index.txt", nil)
			tool.Write("crlnumber", []byte("01\n"))
			for _, args := range []string{
				"genpkey -algorithm " + c.algorithm + " -pkeyopt " + c.option + " -out root.key",
				"genpkey -algorithm " + c.algorithm + " -pkeyopt " + c.option + " -out leaf.key",
				"req -x509 -config ca.cnf -new -key root.key -" + digest + " -subj /CN=Root -extensions root_ext -days 30 -set_serial 1 -out root.pem",
				"req -config ca.cnf -new -key leaf.key -" + digest + " -subj /CN=Leaf -out leaf.req",
				"x509 -req -in leaf.req -CA root.pem -CAkey root.key -set_serial 0xf00d -" + digest + " -extfile ca.cnf -extensions leaf_ext -days 20 -out leaf.pem",
				"ca -config ca.cnf -gencrl -cert root.pem -keyfile root.key -out empty.crl",
				"ca -config ca.cnf -revoke leaf.pem -crl_reason superseded -cert root.pem -keyfile root.key",
				"ca -config ca.cnf -gencrl -cert root.pem -keyfile root.key -out revoked.crl",
			} {
				if _, err := tool.Run(strings.Fields(args)...); err != nil {
					t.Fatal(err)
				}
			}
			root := readCertificate(t, tool.Read("root.pem"))
			leaf := readCertificate(t, tool.Read("leaf.pem"))
			if leaf.Suite != c.suite {
				t.Errorf("suite %v (%v)", leaf.Suite, leaf.KeyError)
			}
			// gost-engine writes NULL where RFC 4491 and RFC 9215 omit it.
			for _, d := range leaf.Deviations {
				if !c.suite.IsGOST() || !strings.Contains(d, "parameters NULL") && !strings.Contains(d, "digestParamSet") {
					t.Errorf("deviation: %s", d)
				}
			}
			if err := leaf.CheckSignatureFrom(root); err != nil {
				t.Error(err)
			}
			if !root.IsCA || leaf.SerialHex() != "00f00d" || !bytes.Equal(leaf.AuthorityKeyID, root.SubjectKeyID) {
				t.Errorf("CA %v, serial %s, key identifiers %x %x", root.IsCA, leaf.SerialHex(), leaf.AuthorityKeyID, root.SubjectKeyID)
			}
			changed, err := x509gost.ParseCertificate(flip(leaf.Raw))
			if err != nil {
				t.Fatal(err)
			}
			if err := changed.CheckSignatureFrom(root); !errors.Is(err, suite.ErrSignature) {
				t.Errorf("a changed certificate: %v", err)
			}
			checkOpenSSLKey(t, tool, c.suite, c.set, leaf)
			checkOpenSSLLists(t, tool, root, leaf)
		})
	}
}

func readCertificate(t *testing.T, data []byte) *x509gost.Certificate {
	t.Helper()
	list, err := x509gost.ParseCertificates(data)
	if err != nil {
		t.Fatal(err)
	}
	return list[len(list)-1]
}

func checkOpenSSLKey(t *testing.T, tool *judge.Tool, s *suite.Suite, set *gost3410.Set, leaf *x509gost.Certificate) {
	t.Helper()
	key, found, err := x509gost.ParsePrivateKey(derOf(t, tool.Read("leaf.key")))
	if err != nil {
		t.Fatal(err)
	}
	if found != s || !key.Public().(equaler).Equal(leaf.PublicKey) {
		t.Error("the private key is not the certificate's")
	}
	if public, ok := key.Public().(*gost3410.PublicKey); ok && public.Set() != set {
		t.Errorf("the key is on %s, not %s", public.Set().Name(), set.Name())
	}
	req, err := x509gost.ParseRequest(derOf(t, tool.Read("leaf.req")))
	if err != nil {
		t.Fatal(err)
	}
	if err := req.CheckSignature(); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(req.RawSPKI, leaf.RawSPKI) {
		t.Error("the request is for another key")
	}
}

func checkOpenSSLLists(t *testing.T, tool *judge.Tool, root, leaf *x509gost.Certificate) {
	t.Helper()
	for name, revoked := range map[string]bool{"empty.crl": false, "revoked.crl": true} {
		l, err := x509gost.ParseRevocationList(derOf(t, tool.Read(name)))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.CheckSignatureFrom(root); err != nil {
			t.Error(err)
		}
		if err := l.CheckSignatureFrom(leaf); err == nil {
			t.Error("the list verifies with the key of the leaf")
		}
		entry, found := l.Find(leaf.SerialNumber)
		if found != revoked || revoked && entry.Reason != 4 {
			t.Errorf("%s: found %v, reason %d", name, found, entry.Reason)
		}
		changed, err := x509gost.ParseRevocationList(flip(l.Raw))
		if err != nil {
			t.Fatal(err)
		}
		if err := changed.CheckSignatureFrom(root); !errors.Is(err, suite.ErrSignature) {
			t.Errorf("a changed list: %v", err)
		}
	}
}
