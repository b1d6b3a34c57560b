// SPDX-License-Identifier: Apache-2.0

package x509gost_test

import (
	"encoding/pem"
	"os"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/pki/x509gost"
)

// negative reads a certificate with a negative serial number, whose issuer has attributes of all
// kinds: types with and without a name in RFC 4514, and every character that is escaped.
func negative(t *testing.T) *x509gost.Certificate {
	t.Helper()
	data, err := os.ReadFile("testdata/signer-negative-serial.pem")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		t.Fatal("no PEM")
	}
	c, err := x509gost.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRFC4514(t *testing.T) {
	c := negative(t)
	if want := `CN=УЦ,2.5.4.97=#0c094e545252552d313233,2.5.4.4=#0c0cd098d0b2d0b0d0bdd0bed0b2,2.5.4.42=#0c08d098d0b2d0b0d0bd,2.5.4.12=#0c0178,` +
		`OU=второй отдел\ ,OU=\#1 отдел,O=АО \"Проверка \+ Ко\"\; \<тест\>,1.2.840.113549.1.9.1=#160d6361406578616d706c652e7275,L=г. Москва,` +
		`ST=77 Москва,C=RU,STREET=улица Тестовая\, дом 1\, \"стр. 2\",1.2.643.100.4=#120a37373030303030303030,` +
		`1.2.643.3.131.1.1=#120c303037373030303030303030,1.2.643.100.1=#120d31303237373030303030303030`; c.Issuer.RFC4514() != want {
		t.Errorf("%s, want\n%s", c.Issuer.RFC4514(), want)
	}
	if got := c.SerialDecimal(); got != "-511" {
		t.Errorf("the serial number fe01 is %s", got)
	}
	for value, want := range map[string]string{
		"#": `\#`, " ": `\ `, " #": `\ #`, "a#": "a#", "\x00\n": `\00\0A`, "\uFFFE": `\EF\BF\BE`, `a\b`: `a\\b`, "a=b": "a=b",
	} {
		if got := commonName(t, value).RFC4514(); got != "CN="+want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
	// Values that are no strings are in hex in any type, and are not escaped. Two attributes in one
	// RDN are joined.
	odd, err := x509gost.ParseName([]byte(tlv(0x30, tlv(0x31,
		tlv(0x30, oidText(x509gost.OIDCommonName), tlv(2, "\x01")), tlv(0x30, oidText(x509gost.OIDSurname), tlv(12, "b"))))))
	if err != nil || odd.RFC4514() != "CN=#020101+2.5.4.4=#0c0162" || odd.String() != "CN=#020101+SN=b" {
		t.Errorf("%s, %s, %v", odd.RFC4514(), odd, err)
	}
}

// Java finds the issuer and the serial number in our texts, and not in others. We find them in the
// texts that Java writes.
func TestJavaReadsIssuer(t *testing.T) {
	certs := []*x509gost.Certificate{negative(t)}
	key := keyCases(t)[0]
	for _, issuer := range []x509gost.Name{
		commonName(t, "#0c01"), commonName(t, " #1, \"two\" + \\3; <4>=5 "), commonName(t, "\x00\x01\r\n\t\x7f"), commonName(t, "a\uFFFEb"),
		name(t,
			x509gost.Attribute{OID: x509gost.OIDDomainComponent, Value: "test"},
			x509gost.Attribute{OID: x509gost.OID{0, 9, 2342, 19200300, 100, 1, 1}, Value: "uid, 1"},
			x509gost.Attribute{OID: x509gost.OIDSNILS, Value: "12345678901"},
			x509gost.Attribute{OID: x509gost.OID{1, 2, 3, 4}, Value: "#своё"}),
	} {
		certs = append(certs, create(t, &x509gost.Template{Subject: issuer, SerialNumber: []byte{1}, NotBefore: start, NotAfter: end}, nil, key, key))
	}
	var texts []judge.IssuerText
	for _, c := range certs {
		texts = append(texts, judge.IssuerText{Certificate: c.Raw, Name: c.Issuer.RFC4514(), Number: c.SerialDecimal()})
	}
	texts = append(texts,
		judge.IssuerText{Certificate: certs[0].Raw, Name: certs[0].Issuer.RFC4514(), Number: "65025"},
		judge.IssuerText{Certificate: certs[0].Raw, Name: certs[0].Issuer.String(), Number: "-511"})
	errs, own := judge.JavaNames(t, texts...)
	for i, c := range certs {
		if errs[i] != nil {
			t.Errorf("%s: %v", texts[i].Name, errs[i])
		}
		if !c.Issuer.IsText(own[i]) {
			t.Errorf("%s of Java is not read as %s", own[i], c.Issuer)
		}
	}
	for i, text := range texts[len(certs):] {
		if errs[len(certs)+i] == nil {
			t.Errorf("Java takes %s, %s", text.Name, text.Number)
		}
	}
}

func TestIsText(t *testing.T) {
	c := negative(t)
	same := []string{
		c.Issuer.RFC4514(),
		c.Issuer.String(),
		// as we wrote it before number signs were escaped
		strings.Replace(c.Issuer.String(), `\#1`, `#1`, 1),
		// .NET and CryptoAPI: spaces, quotes, names of their own, either order
		`CN=УЦ, OID.2.5.4.97=NTRRU-123, SN=Иванов, G=Иван, T=x, OU="второй отдел ", OU=#1 отдел, O="АО ""Проверка + Ко""; <тест>", E=ca@example.ru, ` +
			`L=г. Москва, S=77 Москва, C=RU, STREET="улица Тестовая, дом 1, ""стр. 2""", ИНН ЮЛ=7700000000, ИНН=007700000000, ОГРН=1027700000000`,
		`ОГРН=1027700000000, ИНН=007700000000, INNLE=7700000000, STREET="улица Тестовая, дом 1, \"стр. 2\"", C=RU, S=77 Москва, L=г. Москва, E=ca@example.ru, ` +
			`O="АО \"Проверка + Ко\"; <тест>", OU=#1 отдел, OU=второй отдел, T=x, G=Иван, SN=Иванов, organizationIdentifier=NTRRU-123, CN=УЦ`,
		// without any escapes
		`CN=УЦ,organizationIdentifier=NTRRU-123,SN=Иванов,GN=Иван,title=x,OU=второй отдел,OU=#1 отдел,O=АО "Проверка + Ко"; <тест>,emailAddress=ca@example.ru,` +
			`L=г. Москва,ST=77 Москва,C=RU,street=улица Тестовая, дом 1, "стр. 2",INNLE=7700000000,INN=007700000000,OGRN=1027700000000`,
		// in another string type, in other letters
		strings.NewReplacer("2.5.4.97=#0c094e", "2.5.4.97=#13096e", "CN=УЦ", "cn = уц").Replace(c.Issuer.RFC4514()),
		// OpenSSL: every byte beyond ASCII escaped
		strings.Replace(c.Issuer.RFC4514(), "УЦ", `\D0\A3\D0\A6`, 1),
	}
	for _, text := range same {
		if !c.Issuer.IsText(text) {
			t.Errorf("not read: %s", text)
		}
	}
	full := c.Issuer.RFC4514()
	for _, text := range []string{
		"", "CN", "=", "CN=УЦ", "CN=УЦ," + full, strings.Replace(full, "CN=УЦ,", "", 1), strings.Replace(full, "ST=77", "ST=78", 1),
		strings.Replace(full, "CN=УЦ", "O=УЦ", 1), strings.Replace(full, "2.5.4.97", "2.5.4.98", 1), strings.Replace(full, "#0c09", "#0c08", 1),
		strings.Replace(full, ",OU=", "+OU=", 1), full + strings.Repeat(" ", 1<<16),
	} {
		if c.Issuer.IsText(text) {
			t.Errorf("counts as the name: %s", text)
		}
	}
	// The escaped and the bare number sign.
	hash := commonName(t, "#0c0161")
	for text, want := range map[string]bool{`CN=\#0c0161`: true, "CN=#0c0161": true, "CN=#0c0162": false, "CN=a": false} {
		if hash.IsText(text) != want {
			t.Errorf("%s is %s: %t", text, hash, !want)
		}
	}
	if n := commonName(t, "a"); !n.IsText("CN=#0c0161") || !n.IsText("2.5.4.3=#130161") || n.IsText("CN=#020161") || n.IsText(`CN=#0c016100`) || n.IsText("CN=#0c0161zz") {
		t.Error("a value in hex")
	}
	two, err := x509gost.ParseName([]byte(tlv(0x30, tlv(0x31,
		tlv(0x30, oidText(x509gost.OIDCommonName), tlv(12, "a")), tlv(0x30, oidText(x509gost.OIDSurname), tlv(12, "b"))))))
	if err != nil || !two.IsText("CN=a+SN=b") || !two.IsText("SN=b + CN=a") || two.IsText("CN=a,SN=b") || two.IsText("CN=a+CN=b") || two.IsText("CN=a") {
		t.Error("two attributes of one RDN")
	}
}

func FuzzIsText(f *testing.F) {
	for _, s := range []string{`CN=a`, `CN="a""b",O=#0c01`, `CN=\`, `CN="\`, `a=b+c=d;e=\4`, `CN=a,b,=`, `=`, `CN=#`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if n, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDOrganization, Value: value}}); err == nil {
			for _, text := range []string{n.RFC4514(), n.String(), "C=RU," + n.RFC4514()} {
				if n.IsText(text) == strings.HasPrefix(text, "C=RU") {
					t.Errorf("%q: %q", value, text)
				}
			}
		}
		commonName(t, "a").IsText(value)
	})
}

func TestIssuerSerial(t *testing.T) {
	c := negative(t)
	for text, want := range map[string]string{
		"-511": "", " -511\n": "", "65025": "", "-0511": "", "511": "the serial number", "": "the serial number", "fe01": "the serial number",
		"-" + strings.Repeat("0", 1000) + "511": "the serial number",
	} {
		if got := x509gost.TextIssuerSerial(c.Issuer.RFC4514(), text).Differs(c); got != want {
			t.Errorf("%q: %q differs", text, got)
		}
	}
	if got := x509gost.TextIssuerSerial("CN=x", "-511").Differs(c); got != "the issuer" {
		t.Errorf("%q differs", got)
	}
	if got := x509gost.TextIssuerSerial("CN=x", "1").Differs(c); got != "the issuer and the serial number" {
		t.Errorf("%q differs", got)
	}
	binary := func(name, serial string) string {
		t.Helper()
		s, err := x509gost.ParseIssuerSerial([]byte(tlv(0x30, tlv(0x30, tlv(0xa4, name)), tlv(2, serial))))
		if err != nil {
			t.Fatal(err)
		}
		return s.Differs(c)
	}
	other := string(commonName(t, "x").Raw)
	for _, x := range [][3]string{
		{string(c.RawIssuer), "\xfe\x01", ""}, {string(c.RawIssuer), "\x01", "the serial number"}, {other, "\xfe\x01", "the issuer"},
		{other, "\x01", "the issuer and the serial number"},
	} {
		if got := binary(x[0], x[1]); got != x[2] {
			t.Errorf("%q differs, want %q", got, x[2])
		}
	}
	for _, s := range []string{tlv(0x30, tlv(0x30, tlv(0xa4, other)), tlv(2, "\xfe\x01")), tlv(0x30, tlv(0x30, tlv(0xa4, "x")), tlv(2, "\xfe\x01"))} {
		id, err := x509gost.ParseIssuerSerial([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		if name, number := id.Texts(); number != "-511" || strings.Contains(s, other) != (name == "CN=x") {
			t.Errorf("%s, %s", name, number)
		}
	}
	for _, bad := range []string{
		"", tlv(0x30), tlv(0x30, tlv(0x30), tlv(2, "\x01")), tlv(0x30, tlv(0x30, tlv(0xa4, other), tlv(0xa4, other)), tlv(2, "\x01")),
		tlv(0x30, tlv(0x30, tlv(0xa4, other))), tlv(0x30, tlv(0x30, tlv(0xa4, other)), tlv(2, "\x01")) + "\x00",
	} {
		if _, err := x509gost.ParseIssuerSerial([]byte(bad)); err == nil {
			t.Errorf("%x is read", bad)
		}
	}
}
