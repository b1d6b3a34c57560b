// SPDX-License-Identifier: Apache-2.0

package x509gost_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/gost/gost3410"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// tlv encodes one element.
func tlv(tag byte, content ...string) string {
	var b cryptobyte.Builder
	b.AddASN1(cbasn1.Tag(tag), func(b *cryptobyte.Builder) { b.AddBytes([]byte(strings.Join(content, ""))) })
	return string(b.BytesOrPanic())
}

// crafted is a certificate built from parts, each of which may be invalid.
type crafted struct {
	version, serial, algorithm, outer, issuer, from, to, subject, spki, ids, extensions string
}

// oidText is the DER of an object identifier.
func oidText(oid x509gost.OID) string {
	var b cryptobyte.Builder
	b.AddASN1ObjectIdentifier(oid)
	return string(b.BytesOrPanic())
}

// ordinary is a certificate without any deviation.
func ordinary(t testing.TB, key *gost3410.PrivateKey) crafted {
	spki, err := x509gost.MarshalPublicKey(key.Public(), suite.GOST2012x256)
	if err != nil {
		t.Fatal(err)
	}
	subject := string(commonName(t, "Test").Raw)
	algorithm := tlv(0x30, oidText(suite.GOST2012x256.SignatureOID))
	return crafted{
		version: tlv(0xa0, tlv(2, "\x02")), serial: tlv(2, "\x01"), algorithm: algorithm, outer: algorithm,
		issuer: subject, from: tlv(0x17, "260101000000Z"), to: tlv(0x17, "270101000000Z"),
		subject: subject, spki: string(spki),
	}
}

func (c crafted) der(t testing.TB, key *gost3410.PrivateKey) []byte {
	t.Helper()
	tbs := tlv(0x30, c.version, c.serial, c.algorithm, c.issuer, tlv(0x30, c.from, c.to), c.subject, c.spki, c.ids, c.extensions)
	value, err := suite.GOST2012x256.Sign(nil, key, suite.Streebog256.Digest([]byte(tbs)))
	if err != nil {
		t.Fatal(err)
	}
	return []byte(tlv(0x30, tbs, c.outer, tlv(3, "\x00"+string(value))))
}

func extensionDER(oid x509gost.OID, critical string, value string) string {
	return tlv(0x30, oidText(oid), critical, tlv(4, value))
}

func extensionsDER(list ...string) string { return tlv(0xa3, tlv(0x30, list...)) }

func attributeDER(oid x509gost.OID, value string) string {
	return tlv(0x30, tlv(0x31, tlv(0x30, oidText(oid), value)))
}

func TestToleratedFaults(t *testing.T) {
	key := gostKey(t, gost3410.TC26256A, 1)
	keyWithDigest := strings.Replace(ordinary(t, key).spki,
		tlv(0x30, oidText(suite.GOST2012x256.KeyOID), tlv(0x30, oidText(x509gost.OID{1, 2, 643, 7, 1, 2, 1, 1, 1}))),
		tlv(0x30, oidText(suite.GOST2012x256.KeyOID), tlv(0x30, oidText(x509gost.OID{1, 2, 643, 7, 1, 2, 1, 1, 1}), oidText(suite.Streebog256.OID))), 1)
	keyWithDigest = tlv(0x30, keyWithDigest[2:])
	null := tlv(0x30, oidText(suite.GOST2012x256.SignatureOID), tlv(5))
	for _, c := range []struct {
		name   string
		change func(*crafted)
		want   string // deviation; empty for no deviation
		check  func(*x509gost.Certificate) bool
	}{
		{"ordinary", func(*crafted) {}, "", nil},
		{"negative serial", func(c *crafted) { c.serial = tlv(2, "\xfe\x01") }, "negative",
			func(c *x509gost.Certificate) bool { return c.SerialHex() == "fe01" }},
		{"padded serial", func(c *crafted) { c.serial = tlv(2, "\x00\x00\x01") }, "needless", nil},
		{"zero serial", func(c *crafted) { c.serial = tlv(2, "\x00") }, "zero", nil},
		{"long serial", func(c *crafted) { c.serial = tlv(2, strings.Repeat("\x11", 40)) }, "20", nil},
		{"UTCTime without seconds", func(c *crafted) { c.from = tlv(0x17, "2601010000Z") }, "time",
			func(c *x509gost.Certificate) bool { return c.NotBefore.Equal(start) }},
		{"UTCTime with offset", func(c *crafted) { c.from = tlv(0x17, "260101030000+0300") }, "time",
			func(c *x509gost.Certificate) bool { return c.NotBefore.Equal(start) }},
		{"early GeneralizedTime", func(c *crafted) { c.from = tlv(0x18, "20260101000000Z") }, "time",
			func(c *x509gost.Certificate) bool { return c.NotBefore.Equal(start) }},
		{"fraction", func(c *crafted) { c.to = tlv(0x18, "20560101000000.5Z") }, "time",
			func(c *x509gost.Certificate) bool { return c.NotAfter.Equal(end.Add(time.Second / 2)) }},
		{"last century", func(c *crafted) { c.from = tlv(0x17, "500101000000Z") }, "",
			func(c *x509gost.Certificate) bool { return c.NotBefore.Year() == 1950 }},
		{"validity reversed", func(c *crafted) { c.from, c.to = c.to, c.from }, "ends before", nil},
		{"NULL parameters", func(c *crafted) { c.algorithm, c.outer = null, null }, "NULL", nil},
		{"digestParamSet", func(c *crafted) { c.spki = keyWithDigest }, "digestParamSet", nil},
		{"letters outside PrintableString", func(c *crafted) {
			c.subject = attributeDER(x509gost.OIDCommonName, tlv(0x13, "Иван_@"))
		}, "PrintableString", func(c *x509gost.Certificate) bool { return c.Subject.String() == "CN=Иван_@" }},
		{"e-mail not ASCII", func(c *crafted) { c.subject = attributeDER(x509gost.OIDEmail, tlv(0x16, "почта@рф")) }, "IA5String",
			func(c *x509gost.Certificate) bool { return c.Subject.String() == "E=почта@рф" }},
		{"Latin-1", func(c *crafted) { c.subject = attributeDER(x509gost.OIDEmail, tlv(0x16, "\xe9")) }, "IA5String",
			func(c *x509gost.Certificate) bool { return c.Subject.String() == "E=é" }},
		{"letters in INN", func(c *crafted) { c.subject = attributeDER(x509gost.OIDINN, tlv(18, "12a")) }, "NumericString", nil},
		{"broken UTF-8", func(c *crafted) { c.subject = attributeDER(x509gost.OIDCommonName, tlv(12, "\xff")) }, "UTF-8", nil},
		{"a value that is no string", func(c *crafted) { c.subject = attributeDER(x509gost.OIDCommonName, tlv(2, "\x05")) }, "",
			func(c *x509gost.Certificate) bool { return c.Subject.String() == "CN=#020105" }},
		{"version 1 with extensions", func(c *crafted) {
			c.version, c.extensions = "", extensionsDER(extensionDER(x509gost.OIDSubjectKeyID, "", tlv(4, "x")))
		}, "version 1", func(c *x509gost.Certificate) bool { return string(c.SubjectKeyID) == "x" }},
		{"version 1 written out", func(c *crafted) { c.version = tlv(0xa0, tlv(2, "\x00")) }, "version 1 is written", nil},
		{"critical FALSE", func(c *crafted) {
			c.extensions = extensionsDER(extensionDER(x509gost.OIDSubjectKeyID, tlv(1, "\x00"), tlv(4, "x")))
		}, "FALSE", nil},
		{"TRUE of BER", func(c *crafted) {
			c.extensions = extensionsDER(extensionDER(x509gost.OIDBasicConstraints, tlv(1, "\xff"), tlv(0x30, tlv(1, "\x01"))))
		}, "BER", func(c *x509gost.Certificate) bool { return c.IsCA }},
		{"malformed distribution points", func(c *crafted) {
			c.extensions = extensionsDER(extensionDER(x509gost.OIDCRLPoints, "", "\x30\x05"))
		}, "malformed", nil},
		{"unknown curve", func(c *crafted) {
			c.spki = strings.Replace(c.spki, oidText(x509gost.OID{1, 2, 643, 7, 1, 2, 1, 1, 1}), oidText(x509gost.OID{1, 2, 643, 7, 1, 2, 1, 1, 9}), 1)
		}, "", func(c *x509gost.Certificate) bool { return c.Suite == nil && c.PublicKey == nil && c.KeyError != nil }},
		{"unknown key algorithm", func(c *crafted) {
			c.spki = tlv(0x30, tlv(0x30, oidText(x509gost.OID{1, 3, 101, 112})), tlv(3, "\x00"+strings.Repeat("k", 32)))
		}, "", func(c *x509gost.Certificate) bool {
			return c.Suite == nil && c.Verify(suite.Streebog256.Digest(nil), nil) != nil && c.CheckSignatureFrom(c) != nil
		}},
		{"unique identifiers", func(c *crafted) { c.ids = tlv(0x81, "\x00a") + tlv(0x82, "\x00b") }, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			parts := ordinary(t, key)
			c.change(&parts)
			got, err := x509gost.ParseCertificate(parts.der(t, key))
			if err != nil {
				t.Fatal(err)
			}
			found := slices.ContainsFunc(got.Deviations, func(d string) bool { return strings.Contains(d, c.want) })
			if c.want == "" && len(got.Deviations) != 0 || c.want != "" && !found {
				t.Errorf("deviations %q, want %q", got.Deviations, c.want)
			}
			if c.check != nil && !c.check(got) {
				t.Errorf("read as %s, %s, %s to %s", got.Subject, got.SerialHex(), got.NotBefore, got.NotAfter)
			}
			if got.Suite != nil {
				if err := got.CheckSignatureFrom(got); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestRefusedCertificates(t *testing.T) {
	key := gostKey(t, gost3410.TC26256A, 1)
	twice := extensionDER(x509gost.OIDSubjectKeyID, "", tlv(4, "x"))
	for name, change := range map[string]func(*crafted){
		"algorithms differ": func(c *crafted) { c.outer = tlv(0x30, oidText(suite.GOST2001.SignatureOID)) },
		"parameters differ": func(c *crafted) { c.outer = tlv(0x30, oidText(suite.GOST2012x256.SignatureOID), tlv(5)) },
		"algorithm parameters": func(c *crafted) {
			c.outer = tlv(0x30, oidText(suite.GOST2012x256.SignatureOID), tlv(4))
			c.algorithm = c.outer
		},
		"extension twice":     func(c *crafted) { c.extensions = extensionsDER(twice, twice) },
		"too many extensions": func(c *crafted) { c.extensions = extensionsDER(manyExtensions(129)...) },
		"malformed constraints": func(c *crafted) {
			c.extensions = extensionsDER(extensionDER(x509gost.OIDBasicConstraints, "", "\x30\x01"))
		},
		"huge path length": func(c *crafted) {
			c.extensions = extensionsDER(extensionDER(x509gost.OIDBasicConstraints, "", tlv(0x30, tlv(1, "\xff"), tlv(2, "\x01\x00\x00"))))
		},
		"malformed usage": func(c *crafted) {
			c.extensions = extensionsDER(extensionDER(x509gost.OIDKeyUsage, "", tlv(3, "\x09\xff")))
		},
		"no extended usage": func(c *crafted) { c.extensions = extensionsDER(extensionDER(x509gost.OIDExtKeyUsage, "", tlv(0x30))) },
		"critical and malformed": func(c *crafted) {
			c.extensions = extensionsDER(extensionDER(x509gost.OIDCRLPoints, tlv(1, "\xff"), "\x30\x05"))
		},
		"version 4":           func(c *crafted) { c.version = tlv(0xa0, tlv(2, "\x03")) },
		"time without Z":      func(c *crafted) { c.from = tlv(0x17, "260101000000") },
		"month 13":            func(c *crafted) { c.from = tlv(0x17, "261301000000Z") },
		"no time":             func(c *crafted) { c.from = tlv(2, "\x01") },
		"empty serial":        func(c *crafted) { c.serial = tlv(2) },
		"point off the curve": func(c *crafted) { c.spki = c.spki[:len(c.spki)-1] + string(c.spki[len(c.spki)-1]^1) },
		"short key":           func(c *crafted) { c.spki = strings.Replace(c.spki, "\x04\x40", "\x04\x3f", 1) },
		"empty RDN":           func(c *crafted) { c.subject = tlv(0x30, tlv(0x31)) },
		"two values of one":   func(c *crafted) { c.subject = attributeDER(x509gost.OIDCommonName, tlv(12, "a")+tlv(12, "b")) },
		"padded OID":          func(c *crafted) { c.subject = tlv(0x30, tlv(0x31, tlv(0x30, "\x06\x03\x80\x01\x01", tlv(12, "a")))) },
		"endless OID": func(c *crafted) {
			c.subject = tlv(0x30, tlv(0x31, tlv(0x30, tlv(6, "\x2a"+strings.Repeat("\xff", 20)+"\x01"), tlv(12, "a"))))
		},
		"something at the end": func(c *crafted) { c.extensions = extensionsDER(twice) + tlv(4, "x") },
		"too many name parts": func(c *crafted) {
			c.subject = tlv(0x30, slices.Repeat([]string{tlv(0x31, tlv(0x30, oidText(x509gost.OIDCommonName), tlv(12, "a")))}, 129)...)
		},
		"larger than the maximum": func(c *crafted) {
			c.extensions = extensionsDER(extensionDER(x509gost.OID{1, 2, 3}, "", strings.Repeat("x", x509gost.MaxCertificate)))
		},
	} {
		parts := ordinary(t, key)
		change(&parts)
		if _, err := x509gost.ParseCertificate(parts.der(t, key)); err == nil {
			t.Errorf("%s: read", name)
		} else if !strings.HasPrefix(err.Error(), "x509gost: certificate: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := ordinary(t, key).der(t, key)
	for n := range good {
		if _, err := x509gost.ParseCertificate(good[:n]); err == nil {
			t.Errorf("%d of %d bytes are read", n, len(good))
		}
	}
	if _, err := x509gost.ParseCertificate(append(bytes.Clone(good), 0)); err == nil {
		t.Error("a byte after the end is ignored")
	}
}

func manyExtensions(n int) (list []string) {
	for i := range n {
		list = append(list, extensionDER(x509gost.OID{1, 2, i}, "", "x"))
	}
	return list
}

func TestPrivateKeyForms(t *testing.T) {
	secret := bytes.Repeat([]byte{0x5a}, 32)
	algorithm := tlv(0x30, oidText(suite.GOST2012x256.KeyOID), tlv(0x30, oidText(x509gost.OID{1, 2, 643, 2, 2, 35, 1}), oidText(suite.Streebog256.OID)))
	wrap := func(key string, more ...string) []byte {
		return []byte(tlv(0x30, append([]string{tlv(2, "\x00"), algorithm, tlv(4, key)}, more...)...))
	}
	masked := append(bytes.Clone(secret), secret...) // masked with itself
	unmasked, err := gost3410.UnmaskPrivateKey(gost3410.CryptoProA, masked)
	if err != nil {
		t.Fatal(err)
	}
	public := string(unmasked.PublicKey().Bytes())
	short := "\x05" // a scalar of one byte as an INTEGER
	for name, der := range map[string][]byte{
		"raw":           wrap(string(secret)),
		"byte string":   wrap(tlv(4, string(secret))),
		"integer":       wrap(tlv(2, string(secret))),
		"short integer": wrap(tlv(2, short)),
		"attributes":    wrap(string(secret), tlv(0xa0, tlv(0x30))),
		"public key":    wrap(string(secret), tlv(0x81, "\x00x")),
		"masked":        wrap(string(masked)),
		"wrapped mask":  wrap(tlv(4, string(masked))),
		"with public":   wrap(tlv(0x30, tlv(4, string(masked)), tlv(4, public))),
		"public beside": wrap(string(masked), tlv(0x81, "\x00"+public)),
		"RFC 9215":      wrap(string(masked), tlv(0x81, "\x00"+tlv(4, public))),
	} {
		if _, s, err := x509gost.ParsePrivateKey(der); err != nil || s != suite.GOST2012x256 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, der := range map[string][]byte{
		"mask of zeros": wrap(string(secret) + strings.Repeat("\x00", 32)),
		"many masks":    wrap(strings.Repeat(string(secret), 18)),
		"half a mask":   wrap(tlv(4, string(masked[:48]))),
		"other public":  wrap(tlv(0x30, tlv(4, string(secret)), tlv(4, public))),
		"other beside":  wrap(string(secret), tlv(0x81, "\x00"+public)),
		"no public":     wrap(tlv(0x30, tlv(4, string(masked)))),
		"zero":          wrap(strings.Repeat("\x00", 32)),
		"above q":       wrap(strings.Repeat("\xff", 32)),
		"31 bytes":      wrap(string(secret[1:])),
		"long integer":  wrap(tlv(2, "\x01"+string(secret))),
		"empty integer": wrap(tlv(2)),
		"nothing":       wrap(""),
		"trailing":      append(wrap(string(secret)), 0),
		"unknown field": wrap(string(secret), tlv(0x85, "x")),
		"not a key":     []byte("-----BEGIN"),
		"algorithm":     []byte(tlv(0x30, tlv(2, "\x00"), tlv(0x30, oidText(x509gost.OID{1, 2, 3})), tlv(4, string(secret)))),
		"RSA":           []byte(tlv(0x30, tlv(2, "\x00"), tlv(0x30, oidText(suite.RSASHA256.KeyOID), tlv(5)), tlv(4, string(secret)))),
	} {
		_, _, err := x509gost.ParsePrivateKey(der)
		if err == nil {
			t.Errorf("%s: read", name)
			continue
		}
		if strings.Contains(strings.ToLower(err.Error()), "5a5a") || strings.Contains(err.Error(), "ZZ") {
			t.Errorf("%s: the error shows the key: %v", name, err)
		}
	}
}
