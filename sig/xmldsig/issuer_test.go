// SPDX-License-Identifier: Apache-2.0

package xmldsig_test

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"encoding/xml"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"tamga/internal/judge"
	"tamga/internal/sigtest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/xmldsig"
)

// oddAuthority makes an authority whose name has the characters that RFC 4514 escapes. xmlsec 1.2
// reads neither values in hex, nor letters beyond ASCII, nor a space at the end, and writes no name
// with an ampersand, so these are in more.
func oddAuthority(t *testing.T, root *sigtest.Party, more ...x509gost.Attribute) *sigtest.Party {
	t.Helper()
	subject, err := x509gost.BuildName(append([]x509gost.Attribute{
		{OID: x509gost.OIDCountry, Value: "RU"},
		{OID: x509gost.OIDProvince, Value: "77 Moscow"},
		{OID: x509gost.OIDOrganization, Value: `Horns, "Hooves" + Co; <x> \ 1=2`},
		{OID: x509gost.OIDOrganizationalUnit, Value: "#1 unit"},
		{OID: x509gost.OIDCommonName, Value: " Authority"},
	}, more...))
	if err != nil {
		t.Fatal(err)
	}
	return root.Issue(t, root.Suite, "Authority", func(template *x509gost.Template) {
		template.Subject, template.IsCA, template.MaxPathLen = subject, true, -1
		template.KeyUsage = x509.KeyUsageCertSign
	})
}

const emptyIssuerSerial = `<ds:X509Data><ds:X509IssuerSerial/></ds:X509Data>`

// xmlsec finds a certificate by the name and the number that we write, and we find ours in what it
// writes.
func TestXMLSecReadsIssuer(t *testing.T) {
	x := judge.XMLSec(t)
	s := suite.RSASHA256
	root := sigtest.Root(t, s)
	authority := oddAuthority(t, root)
	signer := authority.Signer(t, s, "Signer")
	template := func(keyInfo string) string {
		return withTemplate(strings.Replace(templateFor(s, s.Hash.XML[0]), "<ds:KeyInfo/>", "<ds:KeyInfo>"+keyInfo+"</ds:KeyInfo>", 1))
	}
	signed := func(name string) []byte {
		var b strings.Builder
		if err := xml.EscapeText(&b, []byte(name)); err != nil {
			t.Fatal(err)
		}
		return sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", template(`<ds:X509Data><ds:X509IssuerSerial><ds:X509IssuerName>`+b.String()+
			`</ds:X509IssuerName><ds:X509SerialNumber>`+signer.Certificate.SerialDecimal()+`</ds:X509SerialNumber></ds:X509IssuerSerial></ds:X509Data>`)))
	}
	others := [][]byte{authority.PEM(), signer.PEM()}
	name := signer.Certificate.Issuer.RFC4514()
	if err := x.VerifyAmong(signed(name), root.PEM(), others, sigtest.Time, ids...); err != nil {
		t.Errorf("xmlsec does not find the certificate of %s: %v", name, err)
	}
	for _, other := range []string{strings.Replace(name, `\#1`, "#1", 1), strings.Replace(name, "77", "78", 1)} {
		if x.VerifyAmong(signed(other), root.PEM(), others, sigtest.Time, ids...) == nil {
			t.Errorf("xmlsec finds the certificate of %s", other)
		}
	}

	key, err := x509gost.MarshalPrivateKey(signer.Key, s)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x.Sign([]byte(template(emptyIssuerSerial)), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), signer.PEM(), ids...)
	if err != nil {
		t.Fatal(err)
	}
	if differs := x509gost.TextIssuerSerial(textOf(t, made, "X509IssuerName"), textOf(t, made, "X509SerialNumber")).Differs(signer.Certificate); differs != "" {
		t.Errorf("%s differs in what xmlsec writes: %s", differs, made)
	}
}

// textOf returns the text of the first element with a local name.
func textOf(t *testing.T, document []byte, local string) string {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(document))
	for {
		token, err := d.Token()
		if err != nil {
			t.Fatalf("no %s in %s", local, document)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == local {
			var text string
			if err := d.DecodeElement(&text, &e); err != nil {
				t.Fatal(err)
			}
			return text
		}
	}
}

// negative returns the party with a negative serial number in its certificate, whose signature no
// longer holds.
func negative(t *testing.T, p *sigtest.Party) *sigtest.Party {
	t.Helper()
	serial := p.Certificate.SerialNumber
	der := bytes.Replace(p.Certificate.Raw, append([]byte{2, byte(len(serial))}, serial...), []byte{2, 2, 0xfe, 1}, 1)
	c, err := x509gost.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &sigtest.Party{Suite: p.Suite, Key: p.Key, Certificate: c, Chain: p.Chain}
}

// The issuer's name is that of RFC 4514, and the serial number has its sign. Both are found to be
// those of the certificate, as the texts of other programs are.
func TestIssuerText(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	authority := oddAuthority(t, root, x509gost.Attribute{OID: x509gost.OIDINNLE, Value: "7700000000"},
		x509gost.Attribute{OID: x509gost.OIDLocality, Value: "a & \uFFFE "}, x509gost.Attribute{OID: x509gost.OIDSurname, Value: "Имя\uFFFE"})
	signer := negative(t, authority.Signer(t, s, "Signer"))
	signed := sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", withTemplate(xadesTemplates(s)["of TS 101 903"])))
	want := `2.5.4.4=#0c09d098d0bcd18fefbfbe,L=a & \EF\BF\BE\ ,1.2.643.100.4=#120a37373030303030303030,CN=\ Authority,OU=\#1 unit,` +
		`O=Horns\, \"Hooves\" \+ Co\; \<x\> \\ 1=2,ST=77 Moscow,C=RU`
	if got := textOf(t, signed, "X509IssuerName"); got != want {
		t.Errorf("issuer %s, want %s", got, want)
	}
	if got := textOf(t, signed, "X509SerialNumber"); got != "-511" {
		t.Errorf("serial number %s, want -511", got)
	}
	if r := verify(t, signed, root); r.Signatures[0].Level != "BES" || hasCode(r.Signatures[0].Findings, "signing-certificate-issuer-serial") {
		t.Error(texts(r))
	}
}

// Another issuer or serial number beside the right digest is a warning, in both elements, and in
// what Office writes, which package xmldsig reads, too. What we wrote before is none.
func TestOtherIssuer(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	signer := oddAuthority(t, root, x509gost.Attribute{OID: x509gost.OIDINNLE, Value: "7700000000"}).Signer(t, s, "Signer")
	c := signer.Certificate
	digest := `<x:CertDigest><ds:DigestMethod Algorithm="` + s.Hash.XML[0] + `"/><ds:DigestValue>` + base64.StdEncoding.EncodeToString(c.Digest(s.Hash)) + `</ds:DigestValue></x:CertDigest>`
	text := func(name, number string) string {
		var b strings.Builder
		if err := xml.EscapeText(&b, []byte(name)); err != nil {
			t.Fatal(err)
		}
		return `<x:SigningCertificate><x:Cert>` + digest + `<x:IssuerSerial><ds:X509IssuerName>` + b.String() + `</ds:X509IssuerName><ds:X509SerialNumber>` +
			number + `</ds:X509SerialNumber></x:IssuerSerial></x:Cert></x:SigningCertificate>`
	}
	binary := func(content string) string {
		return `<x:SigningCertificateV2><x:Cert>` + digest + `<x:IssuerSerialV2>` + content + `</x:IssuerSerialV2></x:Cert></x:SigningCertificateV2>`
	}
	der := func(issuer, serial []byte) string {
		var b cryptobyte.Builder
		b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
				b.AddASN1(asn1.Tag(4).ContextSpecific().Constructed(), func(b *cryptobyte.Builder) { b.AddBytes(issuer) })
			})
			b.AddASN1(asn1.INTEGER, func(b *cryptobyte.Builder) { b.AddBytes(serial) })
		})
		return base64.StdEncoding.EncodeToString(b.BytesOrPanic())
	}
	name, number := c.Issuer.RFC4514(), c.SerialDecimal()
	for what, test := range map[string]struct{ content, warning string }{
		"right":                      {text(name, number), ""},
		"as we wrote it before":      {text(strings.Replace(c.Issuer.String(), `\#`, "#", 1), number), ""},
		"spaces":                     {text("\n "+name+" ", "\n"+number+" "), ""},
		"another issuer":             {text(root.Certificate.Issuer.RFC4514(), number), "names the issuer of another one"},
		"another serial number":      {text(name, "1"), "names the serial number of another one"},
		"another of both":            {text("CN=x", "1"), "names the issuer and the serial number of another one"},
		"no number":                  {text(name, "x"), "names the serial number of another one"},
		"no name":                    {strings.Replace(text(name, number), "X509IssuerName", "KeyName", 2), "IssuerSerial was ignored"},
		"nothing":                    {`<x:SigningCertificateV2><x:Cert>` + digest + `</x:Cert></x:SigningCertificateV2>`, ""},
		"right in DER":               {binary(der(c.RawIssuer, c.SerialNumber)), ""},
		"another issuer in DER":      {binary(der(root.Certificate.RawSubject, c.SerialNumber)), "names the issuer of another one"},
		"another number in DER":      {binary(der(c.RawIssuer, []byte{1})), "names the serial number of another one"},
		"not DER":                    {binary("AAAA"), "IssuerSerialV2 was ignored"},
		"not Base64":                 {binary("!"), "IssuerSerialV2 was ignored"},
		"of another certificate too": {strings.Replace(text(name, number), "<x:Cert>", `<x:Cert>`+strings.Replace(digest, "DigestValue>", "DigestValue>AAAA", 1)+`</x:Cert><x:Cert>`, 1), ""},
	} {
		template := strings.Replace(xadesTemplates(s)["of TS 101 903"], "<x:SigningCertificate/>", test.content, 1)
		signed := sigtest.Make(t, xmldsig.New(), signer, job("XMLTemplate", withTemplate(template), "IncludeCertChain", "1"))
		got := mustHold(t, signed, root).Signatures[0]
		var warnings []sig.Finding
		for _, f := range got.Findings {
			if f.Code == "signing-certificate-issuer-serial" {
				warnings = append(warnings, f)
			}
		}
		if got.Level != "BES" || len(warnings) > 1 || (len(warnings) == 1) != (test.warning != "") || len(warnings) == 1 && !strings.Contains(warnings[0].Text, test.warning) {
			t.Errorf("%s: level %s, %+v", what, got.Level, warnings)
		}
		if strings.Contains(test.warning, "another one") && !strings.Contains(strings.Join(got.Headlines(), ""), "another issuer or serial number is named") {
			t.Errorf("%s: the first line does not say so", what)
		}
	}
}

// A time stamp that names another serial number beside the digest of its certificate is a warning.
func TestStampOtherIssuer(t *testing.T) {
	s := suite.GOST2012x256
	root := sigtest.Root(t, s)
	services := sigtest.NewServices(t, root)
	j := jobOf("XMLEnveloped", s, "XAdESType", "T", "TSPAddress", "http://tsp.test/")
	j.Evidence = services
	signed := sigtest.Make(t, xmldsig.New(), root.Signer(t, s, "Signer"), j)
	encoded := textOf(t, signed, "EncapsulatedTimeStamp")
	token, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	r := mustHold(t, bytes.Replace(signed, []byte(encoded), []byte(base64.StdEncoding.EncodeToString(services.OtherSerial(token))), 1), root)
	if one := r.Signatures[0]; one.Level != "T" || !slices.Contains(one.Headlines(), "another issuer or serial number is named") || !hasCode(one.TimeStamps[0].Findings, "signing-certificate-issuer-serial") {
		t.Errorf("level %s, %s, %+v", one.Level, texts(r), one.TimeStamps[0].Findings)
	}
}
