// SPDX-License-Identifier: Apache-2.0

package xmldsig_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/xmldsig"
)

const (
	more2001 = "http://www.w3.org/2001/04/xmldsig-more#"
	more2007 = "http://www.w3.org/2007/05/xmldsig-more#"
	more2021 = "http://www.w3.org/2021/04/xmldsig-more#"
)

// foreignSigner is a signer whose key no suite has.
type foreignSigner struct {
	key  crypto.Signer
	cert []byte
}

func newForeignSigner(t *testing.T, key crypto.Signer) *foreignSigner {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "Foreign"},
		NotBefore: sigtest.Time.AddDate(-1, 0, 0), NotAfter: sigtest.Time.AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}, &x509.Certificate{Subject: pkix.Name{CommonName: "Foreign"}}, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &foreignSigner{key, der}
}

func (s *foreignSigner) report(t *testing.T, signed []byte) *sig.Report {
	t.Helper()
	c, err := x509gost.ParseCertificate(s.cert)
	if err != nil {
		t.Fatal(err)
	}
	r, err := xmldsig.New().Verify(context.Background(), &sig.Check{Document: sigtest.Document(signed), Roots: []*x509gost.Certificate{c}, At: sigtest.Time})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func keyOf(t *testing.T, kind string) crypto.Signer {
	t.Helper()
	var key crypto.Signer
	var err error
	switch kind {
	case "RSA":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case "P-256":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "P-384":
		key, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "P-521":
		key, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "Ed25519":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// signatureOf returns a document with an enveloped signature, without the values that are
// not known yet.
func signatureOf(method, digestMethod, digest, value, cert string) string {
	return `<doc>text<ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:SignedInfo><ds:CanonicalizationMethod Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"></ds:CanonicalizationMethod>` +
		method + `<ds:Reference URI=""><ds:Transforms><ds:Transform Algorithm="http://www.w3.org/2000/09/xmldsig#enveloped-signature"></ds:Transform>` +
		`<ds:Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"></ds:Transform></ds:Transforms><ds:DigestMethod Algorithm="` + digestMethod +
		`"></ds:DigestMethod><ds:DigestValue>` + digest + `</ds:DigestValue></ds:Reference></ds:SignedInfo><ds:SignatureValue>` + value +
		`</ds:SignatureValue><ds:KeyInfo><ds:X509Data>` + cert + `</ds:X509Data></ds:KeyInfo></ds:Signature></doc>`
}

func methodOf(uri, inside string) string {
	return `<ds:SignatureMethod Algorithm="` + uri + `">` + inside + `</ds:SignatureMethod>`
}

// TestXMLSecSigns: signatures that xmlsec makes by algorithms that no suite has are
// verified, and are refused with a changed digest or value.
func TestXMLSecSigns(t *testing.T) {
	x := judge.XMLSec(t)
	for _, c := range []struct{ key, method, digest string }{
		{"RSA", "rsa-sha224", "http://www.w3.org/2001/04/xmldsig-more#sha224"},
		{"RSA", "rsa-sha384", "http://www.w3.org/2001/04/xmldsig-more#sha384"},
		{"RSA", "rsa-sha512", "http://www.w3.org/2001/04/xmlenc#sha512"},
		{"P-256", "ecdsa-sha512", "http://www.w3.org/2001/04/xmlenc#sha512"},
		{"P-384", "ecdsa-sha384", "http://www.w3.org/2001/04/xmldsig-more#sha384"},
		{"P-521", "ecdsa-sha512", "http://www.w3.org/2001/04/xmlenc#sha512"},
	} {
		t.Run(c.key+" "+c.method, func(t *testing.T) {
			s := newForeignSigner(t, keyOf(t, c.key))
			pkcs8, err := x509.MarshalPKCS8PrivateKey(s.key)
			if err != nil {
				t.Fatal(err)
			}
			template := signatureOf(methodOf(more2001+c.method, ""), c.digest, "", "", "<ds:X509Certificate></ds:X509Certificate>")
			signed, err := x.Sign([]byte(template), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.cert}))
			if err != nil {
				t.Fatal(err)
			}
			s.judge(t, signed)
		})
	}
}

func (s *foreignSigner) judge(t *testing.T, signed []byte) {
	t.Helper()
	if r := s.report(t, signed); !r.Passed() {
		t.Errorf("%+v", r)
	}
	for _, tag := range []string{"<ds:DigestValue>", "<ds:SignatureValue>"} {
		if s.report(t, flip(t, signed, tag)).Passed() {
			t.Errorf("accepted with %s changed", tag)
		}
	}
	if s.report(t, bytes.Replace(signed, []byte("text"), []byte("test"), 1)).Passed() {
		t.Error("accepted with the text changed")
	}
}

// TestSchemesOfXML: RSA-PSS with and without parameters, SHA-3 and Ed25519, which xmlsec
// does not sign. SignedInfo is written in its canonical form.
func TestSchemesOfXML(t *testing.T) {
	params := func(digest, mgf, salt string) string {
		return `<pss:RSAPSSParams xmlns:pss="` + more2007 + `">` + digest + mgf + salt + `</pss:RSAPSSParams>`
	}
	digestMethod := func(uri string) string { return `<ds:DigestMethod Algorithm="` + uri + `"></ds:DigestMethod>` }
	mgf1 := func(uri string) string {
		return `<pss:MaskGenerationFunction Algorithm="` + more2007 + `MGF1">` + digestMethod(uri) + `</pss:MaskGenerationFunction>`
	}
	salt := func(n string) string { return `<pss:SaltLength>` + n + `</pss:SaltLength>` }
	keys := map[string]crypto.Signer{} // by kind
	pss := func(h crypto.Hash, salt int) crypto.SignerOpts { return &rsa.PSSOptions{Hash: h, SaltLength: salt} }
	for _, c := range []struct {
		name, key, method string
		hash              *suite.Hash // nil: the message is signed
		opts              crypto.SignerOpts
		passes            bool
	}{
		{"PSS SHA-256", "RSA", methodOf(more2007+"sha256-rsa-MGF1", ""), suite.SHA256, pss(crypto.SHA256, 32), true},
		{"PSS SHA3-512", "RSA", methodOf(more2007+"sha3-512-rsa-MGF1", ""), suite.SHA3x512, pss(crypto.SHA3_512, 64), true},
		{"PSS of another salt", "RSA", methodOf(more2007+"sha256-rsa-MGF1", ""), suite.SHA256, pss(crypto.SHA256, 20), false},
		{"PSS as PKCS #1", "RSA", methodOf(more2007+"sha256-rsa-MGF1", ""), suite.SHA256, crypto.SHA256, false},
		{"PKCS #1 as PSS", "RSA", methodOf(more2001+"rsa-sha256", ""), suite.SHA256, pss(crypto.SHA256, 32), false},
		{"PSS by default", "RSA", methodOf(more2007+"rsa-pss", params("", "", "")), suite.SHA256, pss(crypto.SHA256, 32), true},
		{"PSS without parameters", "RSA", methodOf(more2007+"rsa-pss", ""), suite.SHA256, pss(crypto.SHA256, 32), true},
		{"PSS with all", "RSA", methodOf(more2007+"rsa-pss", params(digestMethod(suite.SHA384.XML[0]), mgf1(suite.SHA384.XML[0]), salt("20"))), suite.SHA384, pss(crypto.SHA384, 20), true},
		{"PSS with another MGF1", "RSA", methodOf(more2007+"rsa-pss", params(digestMethod(suite.SHA384.XML[0]), mgf1(suite.SHA256.XML[0]), salt("20"))), suite.SHA384, pss(crypto.SHA384, 20), false},
		{"PSS with a trailer", "RSA", methodOf(more2007+"rsa-pss", params("", "", "<pss:TrailerField>2</pss:TrailerField>")), suite.SHA256, pss(crypto.SHA256, 32), false},
		{"PSS with something else", "RSA", methodOf(more2007+"rsa-pss", params("", "", salt("32")+salt("32"))), suite.SHA256, pss(crypto.SHA256, 32), false},
		{"P-384 SHA3-384", "P-384", methodOf(more2021+"ecdsa-sha3-384", ""), suite.SHA3x384, crypto.SHA3_384, true},
		{"Ed25519", "Ed25519", methodOf(more2021+"eddsa-ed25519", ""), nil, crypto.Hash(0), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if keys[c.key] == nil {
				keys[c.key] = keyOf(t, c.key)
			}
			s := newForeignSigner(t, keys[c.key])
			digest := base64.StdEncoding.EncodeToString(suite.SHA3x256.Digest([]byte("<doc>text</doc>")).Sum)
			document := signatureOf(c.method, suite.SHA3x256.XML[0], digest, "VALUE", "<ds:X509Certificate>"+base64.StdEncoding.EncodeToString(s.cert)+"</ds:X509Certificate>")
			_, info, _ := strings.Cut(document, "<ds:SignedInfo>")
			info, _, _ = strings.Cut(info, "</ds:SignedInfo>")
			signed := []byte(`<ds:SignedInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#">` + info + `</ds:SignedInfo>`)
			if c.hash != nil {
				signed = c.hash.Digest(signed).Sum
			}
			var value []byte
			var err error
			if key, ok := s.key.(*ecdsa.PrivateKey); ok {
				r, n, e := ecdsa.Sign(rand.Reader, key, signed)
				value, err = append(r.FillBytes(make([]byte, 48)), n.FillBytes(make([]byte, 48))...), e
			} else {
				value, err = s.key.Sign(rand.Reader, signed, c.opts)
			}
			if err != nil {
				t.Fatal(err)
			}
			document = strings.Replace(document, "VALUE", base64.StdEncoding.EncodeToString(value), 1)
			if c.passes {
				s.judge(t, []byte(document))
			} else if r := s.report(t, []byte(document)); r.Passed() {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestUnsupportedXML: the finding names an unsupported algorithm.
func TestUnsupportedXML(t *testing.T) {
	s := newForeignSigner(t, keyOf(t, "RSA"))
	for name, method := range map[string]string{
		"DSA": methodOf("http://www.w3.org/2009/xmldsig11#dsa-sha256", ""), "HMAC": methodOf(more2001+"hmac-sha256", ""),
	} {
		document := signatureOf(method, suite.SHA256.XML[0], "AAAA", "AAAA", "<ds:X509Certificate>"+base64.StdEncoding.EncodeToString(s.cert)+"</ds:X509Certificate>")
		r := s.report(t, []byte(document))
		named := false
		for _, f := range r.Signatures[0].Findings {
			named = named || f.Indication == sig.CryptoConstraintsFailure && strings.Contains(f.Text, "algorithm not supported: SignatureMethod")
		}
		if r.Passed() || !named {
			t.Errorf("%s: %+v", name, r.Signatures[0].Findings)
		}
	}
}
