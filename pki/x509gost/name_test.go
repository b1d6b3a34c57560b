// SPDX-License-Identifier: Apache-2.0

package x509gost_test

import (
	"slices"
	"strings"
	"testing"

	"tamga/pki/x509gost"
)

func TestBuildName(t *testing.T) {
	n := name(t,
		x509gost.Attribute{OID: x509gost.OIDINN, Value: "123456789012"},
		x509gost.Attribute{OID: x509gost.OIDSNILS, Value: "12345678901"},
		x509gost.Attribute{OID: x509gost.OIDOGRN, Value: "1234567890123"},
		x509gost.Attribute{OID: x509gost.OIDOGRNIP, Value: "123456789012345"},
		x509gost.Attribute{OID: x509gost.OIDINNLE, Value: "1234567890"},
		x509gost.Attribute{OID: x509gost.OIDCountry, Value: "RU"},
		x509gost.Attribute{OID: x509gost.OIDEmail, Value: "a@b.ru"},
		x509gost.Attribute{OID: x509gost.OIDCommonName, Value: "Иванов"},
		x509gost.Attribute{OID: x509gost.OID{1, 2, 3, 4}, Value: "своё"},
	)
	// OID, string type and value in the encoding of RFC 5280 and the profile of
	// qualified certificates.
	for _, want := range []string{
		"\x06\x08\x2a\x85\x03\x03\x81\x03\x01\x01\x12\x0c123456789012",
		"\x06\x05\x2a\x85\x03\x64\x03\x12\x0b12345678901",
		"\x06\x05\x2a\x85\x03\x64\x01\x12\x0d1234567890123",
		"\x06\x05\x2a\x85\x03\x64\x05\x12\x0f123456789012345",
		"\x06\x05\x2a\x85\x03\x64\x04\x12\x0a1234567890",
		"\x06\x03\x55\x04\x06\x13\x02RU",
		"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x09\x01\x16\x06a@b.ru",
		"\x06\x03\x55\x04\x03\x0c\x0cИванов",
	} {
		if !strings.Contains(string(n.Raw), want) {
			t.Errorf("%x lacks %x", n.Raw, want)
		}
	}
	if want := "1.2.3.4=своё,CN=Иванов,E=a@b.ru,C=RU,INNLE=1234567890,OGRNIP=123456789012345,OGRN=1234567890123,SNILS=12345678901,INN=123456789012"; n.String() != want {
		t.Errorf("%s, want %s", n, want)
	}
	if v, ok := n.Get(x509gost.OIDSNILS); !ok || v != "12345678901" {
		t.Errorf("SNILS %q", v)
	}
	if _, ok := n.Get(x509gost.OIDTitle); ok {
		t.Error("there is no title")
	}
	for _, a := range []x509gost.Attribute{
		{OID: x509gost.OIDINN, Value: "12345678901"},  // one digit is missing
		{OID: x509gost.OIDINN, Value: "12345678901a"}, // a letter
		{OID: x509gost.OIDSNILS, Value: "123-456 789"},
		{OID: x509gost.OIDCountry, Value: "Россия"},
		{OID: x509gost.OIDEmail, Value: "почта@рф"},
		{OID: x509gost.OIDCommonName},
		{OID: x509gost.OIDCommonName, Value: "\xff"},
		{OID: x509gost.OIDCommonName, Value: strings.Repeat("x", 1025)},
		{OID: x509gost.OID{9}, Value: "x"},
	} {
		if _, err := x509gost.BuildName([]x509gost.Attribute{a}); err == nil {
			t.Errorf("%s %q is written", a.OID, a.Value)
		}
	}
}

func TestNameString(t *testing.T) {
	n := name(t,
		x509gost.Attribute{OID: x509gost.OIDOrganization, Value: ` ООО "Рога, копыта" `},
		x509gost.Attribute{OID: x509gost.OIDCommonName, Value: "#a+b\x00\n"})
	if want := `CN=\#a\+b\00\0A,O=\ ООО \"Рога\, копыта\"\ `; n.String() != want {
		t.Errorf("%s, want %s", n, want)
	}
	// Two attributes in one RDN.
	multi, err := x509gost.ParseName([]byte(tlv(0x30, tlv(0x31,
		tlv(0x30, oidText(x509gost.OIDCommonName), tlv(12, "a")), tlv(0x30, oidText(x509gost.OIDSurname), tlv(12, "b"))),
		tlv(0x31, tlv(0x30, oidText(x509gost.OIDCountry), tlv(0x13, "RU"))))))
	if err != nil || multi.String() != "C=RU,CN=a+SN=b" {
		t.Errorf("%s, %v", multi, err)
	}
}

func TestNameEqual(t *testing.T) {
	cn := func(tag byte, value string) string {
		return tlv(0x31, tlv(0x30, oidText(x509gost.OIDCommonName), tlv(tag, value)))
	}
	parse := func(der string) x509gost.Name {
		n, err := x509gost.ParseName([]byte(der))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	same := []string{
		tlv(0x30, cn(12, "Test CA")),
		tlv(0x30, cn(0x13, "test  ca")),
		tlv(0x30, cn(0x16, " TEST CA ")),
		tlv(0x30, cn(30, "\x00T\x00e\x00s\x00t\x00 \x00C\x00A")),
		tlv(0x30, cn(28, "\x00\x00\x00T\x00\x00\x00e\x00\x00\x00s\x00\x00\x00t\x00\x00\x00 \x00\x00\x00C\x00\x00\x00A")),
		tlv(0x30, cn(20, "Test CA")),
	}
	for _, a := range same {
		for _, b := range same {
			if !parse(a).Equal(parse(b)) {
				t.Errorf("%x and %x count as different", a, b)
			}
		}
	}
	if !parse(tlv(0x30, cn(12, "ИВАНОВ Ёж"))).Equal(parse(tlv(0x30, cn(30, "\x04\x38\x04\x32\x040\x04\x3d\x04\x3e\x04\x32\x00 \x04\x51\x04\x36")))) {
		t.Error("Cyrillic letters do not fold")
	}
	// RFC 4518: compatibility forms, full case folding, characters without a meaning.
	for a, b := range map[string]string{
		"ＴＥＳＴ ＣＡ": "test ca", "Straße": "STRASSE", "e\u0301cole": "\u00c9COLE", "Ⅳ": "iv", "re\u00adsume\u200b": "resume",
		"A\u00a0\u2003B": "a b", "ΟΔΟΣ": "οδος", "й": "\u0438\u0306", "\ufeffTest\tCA\n": "test ca",
	} {
		if !parse(tlv(0x30, cn(12, a))).Equal(parse(tlv(0x30, cn(12, b)))) {
			t.Errorf("%q and %q count as different", a, b)
		}
	}
	// The attributes of one RDN are a set, the RDNs a list.
	pair := func(a, b string) string { return tlv(0x30, tlv(0x31, a, b)) }
	x, y := tlv(0x30, oidText(x509gost.OIDCommonName), tlv(12, "x")), tlv(0x30, oidText(x509gost.OIDSurname), tlv(0x13, "Y"))
	upper := tlv(0x30, oidText(x509gost.OIDSurname), tlv(12, "y"))
	if !x509gost.SameName([]byte(pair(x, y)), []byte(pair(upper, x))) {
		t.Error("the order in one RDN matters")
	}
	if x509gost.SameName([]byte(tlv(0x30, tlv(0x31, x), tlv(0x31, y))), []byte(tlv(0x30, tlv(0x31, y), tlv(0x31, x)))) {
		t.Error("the order of RDNs does not matter")
	}
	if x509gost.SameName([]byte("a"), []byte("b")) || !x509gost.SameName([]byte("a"), []byte("a")) {
		t.Error("malformed names must equal only themselves")
	}
	different := []string{
		tlv(0x30, cn(12, "Test CA")),
		tlv(0x30, cn(12, "TestCA")),
		tlv(0x30, cn(12, "Test CB")),
		tlv(0x30),
		tlv(0x30, cn(12, "Test CA"), cn(12, "Test CA")),
		tlv(0x30, cn(12, "Test"), cn(12, "CA")),
		tlv(0x30, cn(12, "CA"), cn(12, "Test")),
		tlv(0x30, tlv(0x31, tlv(0x30, oidText(x509gost.OIDSurname), tlv(12, "Test CA")))),
		tlv(0x30, cn(2, "\x01")),
		tlv(0x30, cn(12, "#020101")),
	}
	for i, a := range different {
		for j, b := range different {
			if (i == j) != parse(a).Equal(parse(b)) {
				t.Errorf("%x and %x: same %v", a, b, i != j)
			}
		}
	}
}

func TestAttributeByName(t *testing.T) {
	for text, want := range map[string]x509gost.OID{
		"cn": x509gost.OIDCommonName, "INN": x509gost.OIDINN, "st": x509gost.OIDProvince, "S": x509gost.OIDProvince, "emailAddress": x509gost.OIDEmail,
	} {
		if oid, ok := x509gost.AttributeByName(text); !ok || !slices.Equal(oid, want) {
			t.Errorf("%s is %v", text, oid)
		}
	}
	if _, ok := x509gost.AttributeByName("XYZ"); ok {
		t.Error("XYZ has a type")
	}
}
