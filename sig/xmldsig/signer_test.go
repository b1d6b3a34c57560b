// SPDX-License-Identifier: Apache-2.0

package xmldsig_test

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/xmldsig"
)

func certificateElement(p *sigtest.Party) string {
	return "<ds:X509Certificate>" + base64.StdEncoding.EncodeToString(p.Certificate.Raw) + "</ds:X509Certificate>"
}

// A signature whose signer's certificate is not there is indeterminate, and the certificate is named,
// although others are there. With the certificate given, it holds.
func TestSignerAbsent(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	authority := root.Authority(t, "Authority")
	signer, other := authority.Signer(t, s, "Signer"), authority.Signer(t, s, "Other")
	named := `<ds:X509IssuerSerial><ds:X509IssuerName>` + signer.Certificate.Issuer.RFC4514() + `</ds:X509IssuerName><ds:X509SerialNumber>` +
		signer.Certificate.SerialDecimal() + `</ds:X509SerialNumber></ds:X509IssuerSerial>`
	template := func(keyInfo string) string {
		return withTemplate(strings.Replace(templateFor(s, s.Hash.XML[0]), "<ds:KeyInfo/>", "<ds:KeyInfo><ds:X509Data>"+keyInfo+"</ds:X509Data></ds:KeyInfo>", 1))
	}
	bes := string(sigtest.Make(t, xmldsig.New(), signer, jobOf("XMLEnveloped", s, "XAdESType", "BES", "IncludeCertChain", "1")))
	v1 := string(sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", withTemplate(xadesTemplates(s)["of TS 101 903"]), "IncludeCertChain", "1")))
	// The issuer named, too.
	cert := func(p *sigtest.Party) string {
		return `<x:Cert><x:CertDigest><ds:DigestMethod Algorithm="` + s.Hash.XML[0] + `"/><ds:DigestValue>` + base64.StdEncoding.EncodeToString(p.Certificate.Digest(s.Hash)) +
			`</ds:DigestValue></x:CertDigest></x:Cert>`
	}
	path := strings.Replace(xadesTemplates(s)["of TS 101 903"], "<x:SigningCertificate/>", "<x:SigningCertificateV2>"+cert(signer)+cert(authority)+"</x:SigningCertificateV2>", 1)
	both := string(sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", withTemplate(path), "IncludeCertChain", "1")))
	for name, c := range map[string]struct{ signed, names string }{
		"XAdES with its issuer":   {strings.Replace(both, certificateElement(signer), "", 1), "the signed properties name the one with the " + s.Hash.Name + " digest"},
		"XAdES, its issuer":       {strings.Replace(bes, certificateElement(signer), "", 1), "the signed properties name the one with the " + s.Hash.Name + " digest"},
		"XAdES, another one":      {strings.Replace(bes, certificateElement(signer), certificateElement(other), 1), "the signed properties name the one with the " + s.Hash.Name + " digest"},
		"TS 101 903, its issuer":  {strings.Replace(v1, certificateElement(signer), "", 1), `of the issuer "CN=Authority,C=RU" with the serial number "` + signer.Certificate.SerialDecimal() + `"`},
		"named in KeyInfo, alone": {string(sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", template(named)))), "KeyInfo names the one of the issuer"},
		"named in KeyInfo, issuer": {string(sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", template(named+certificateElement(authority))))),
			"KeyInfo names the one of the issuer"},
	} {
		check := checkOf(c.signed, root)
		r, err := xmldsig.New().Verify(t.Context(), check)
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict() != sig.Indeterminate || !slices.Equal(sigtest.Codes(r), []string{"certificate-missing"}) || !strings.Contains(texts(r), c.names) {
			t.Errorf("%s: %v\n%s", name, r.Verdict(), texts(r))
		}
		check = checkOf(c.signed, root)
		check.Certificate, check.Intermediates = signer.Certificate, signer.Chain
		if r, err = xmldsig.New().Verify(t.Context(), check); err != nil || !r.Passed() {
			t.Errorf("%s, given: %v\n%s", name, err, texts(r))
		}
		// With the certificate, a changed value fails, although nothing that is covered has changed.
		check = checkOf(flippedValue(t, c.signed), root)
		check.Certificate, check.Intermediates = signer.Certificate, signer.Chain
		if r, err = xmldsig.New().Verify(t.Context(), check); err != nil || !slices.Equal(sigtest.Codes(r), []string{"signature-mismatch"}) || !r.Signatures[0].Signer.Equal(signer.Certificate) {
			t.Errorf("%s, given, changed: %v\n%s", name, err, texts(r))
		}
	}
	// Where nothing names it, it is the one that issued no other, and the order does not matter.
	plain := template(certificateElement(authority) + certificateElement(signer) + certificateElement(root))
	changed := flippedValue(t, string(sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", plain))))
	if r := verify(t, []byte(changed), root); !slices.Equal(sigtest.Codes(r), []string{"signature-mismatch"}) || !r.Signatures[0].Signer.Equal(signer.Certificate) {
		t.Errorf("changed: %s", texts(r))
	}
}

// flippedValue changes the signature value.
func flippedValue(t *testing.T, signed string) string {
	t.Helper()
	text := textOf(t, []byte(signed), "SignatureValue")
	value, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		t.Fatal(err)
	}
	value[5] ^= 1
	return strings.Replace(signed, text, base64.StdEncoding.EncodeToString(value), 1)
}

// A signer's key of 512 bits is named as the weak one, wherever its certificate is among those of
// its issuers, and the verdict is indeterminate. xmlsec makes the signature.
func TestWeakSignersKey(t *testing.T) {
	o, x := judge.OpenSSL(t), judge.XMLSec(t)
	s := suite.RSASHA256
	root := sigtest.Root(t, s)
	key, err := x509gost.MarshalPrivateKey(root.Key, s)
	if err != nil {
		t.Fatal(err)
	}
	o.Write("root.der", key)
	o.Write("root.pem", root.PEM())
	o.Write("ext", []byte("keyUsage=digitalSignature\n"))
	for _, args := range [][]string{
		{"pkey", "-inform", "DER", "-in", "root.der", "-out", "root.key"},
		{"genrsa", "-out", "leaf.key", "512"},
		{"req", "-new", "-key", "leaf.key", "-subj", "/CN=Weak leaf", "-out", "leaf.req"},
		{"x509", "-req", "-in", "leaf.req", "-CA", "root.pem", "-CAkey", "root.key", "-set_serial", "5", "-days", "3000", "-extfile", "ext", "-out", "leaf.pem"},
	} {
		if _, err := o.Run(args...); err != nil {
			t.Fatal(err)
		}
	}
	template := strings.Replace(templateFor(s, s.Hash.XML[0]), "<ds:KeyInfo/>", "<ds:KeyInfo><ds:X509Data><ds:X509Certificate/></ds:X509Data></ds:KeyInfo>", 1)
	made, err := x.Sign([]byte(withTemplate(template)), o.Read("leaf.key"), o.Read("leaf.pem"), ids...)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(o.Read("leaf.pem"))
	leaf, err := x509gost.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	before := bytes.Replace(made, []byte("<ds:X509Data>"), []byte("<ds:X509Data>"+certificateElement(root)), 1)
	after := bytes.Replace(made, []byte("</ds:X509Data>"), []byte(certificateElement(root)+"</ds:X509Data>"), 1)
	for name, signed := range map[string][]byte{"alone": made, "after its issuer": before, "before its issuer": after} {
		for trusted, roots := range map[bool][]*x509gost.Certificate{true: {root.Certificate}, false: nil} {
			check := checkOf(string(signed), root)
			check.Roots, check.At = roots, leaf.NotBefore
			r, err := xmldsig.New().Verify(t.Context(), check)
			if err != nil {
				t.Fatal(err)
			}
			one := r.Signatures[0]
			i := slices.IndexFunc(one.Findings, func(f sig.Finding) bool { return f.Code == "certificate-algorithm-weak" })
			if r.Verdict() != sig.Indeterminate || !leaf.Equal(one.Signer) || i < 0 || !strings.Contains(one.Findings[i].Text, "512 bits") {
				t.Errorf("%s, trusted %t: %v\n%s", name, trusted, r.Verdict(), texts(r))
			}
			if !hasCode(one.Findings, "algorithm-unknown") {
				t.Errorf("%s, trusted %t: %s", name, trusted, texts(r))
			}
		}
	}
}
