// SPDX-License-Identifier: Apache-2.0

package x509gost_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"tamga/pki/x509gost"
)

// wide returns a text in UTF-16.
func wide(text string, order binary.AppendByteOrder) (out []byte) {
	for _, unit := range utf16.Encode([]rune(text)) {
		out = order.AppendUint16(out, unit)
	}
	return out
}

func TestParseCertificates(t *testing.T) {
	p := loadPublished(t)
	a, b := p.der(t, "tk26-cert-256"), p.der(t, "tk26-cert-512")
	text := base64.StdEncoding.EncodeToString(a)
	lines := text[:60] + "\r\n" + text[60:120] + "\n \t" + text[120:] + "\n"
	pkcs7 := []byte(tlv(0x30, oidText(x509gost.OID{1, 2, 840, 113549, 1, 7, 2}), tlv(0xa0, tlv(0x30,
		tlv(2, "\x01"), tlv(0x31), tlv(0x30, oidText(x509gost.OID{1, 2, 840, 113549, 1, 7, 1})),
		tlv(0xa0, string(a), tlv(0xa1, "attribute certificate"), string(b)), tlv(0x31)))))
	pems := bytes.Join([][]byte{[]byte("Bag Attributes\n"), pemOf("CERTIFICATE", a), pemOf("PRIVATE KEY", []byte("x")), pemOf("X509 CERTIFICATE", b)}, nil)
	for name, c := range map[string]struct {
		data []byte
		want [][]byte
	}{
		"DER":               {a, [][]byte{a}},
		"Base64":            {[]byte(text), [][]byte{a}},
		"Base64 with lines": {[]byte(lines), [][]byte{a}},
		"with a mark":       {[]byte("\xef\xbb\xbf" + text), [][]byte{a}},
		"PEM":               {pems, [][]byte{a, b}},
		"PEM below a 0":     {append([]byte("0. Сертификат\n"), pems...), [][]byte{a, b}},
		"PEM in UTF-16":     {wide("\ufeffСертификат\r\n"+string(pems), binary.LittleEndian), [][]byte{a, b}},
		"Base64 in UTF-16":  {wide(lines, binary.BigEndian), [][]byte{a}},
		"PEM in Base64":     {[]byte(base64.StdEncoding.EncodeToString(pems)), [][]byte{a, b}},
		"PKCS #7":           {pkcs7, [][]byte{a, b}},
		"PKCS #7 in Base64": {[]byte(base64.StdEncoding.EncodeToString(pkcs7)), [][]byte{a, b}},
		"PKCS #7 in PEM":    {pemOf("PKCS7", pkcs7), [][]byte{a, b}},
	} {
		list, err := x509gost.ParseCertificates(c.data)
		if err != nil || len(list) != len(c.want) {
			t.Errorf("%s: %d certificates, %v", name, len(list), err)
			continue
		}
		for i := range list {
			if !bytes.Equal(list[i].Raw, c.want[i]) {
				t.Errorf("%s: certificate %d is another", name, i)
			}
		}
	}
	for name, c := range map[string]struct{ data, want string }{
		"nothing":         {"", "no certificate"},
		"text":            {"hello, world", "neither"},
		"no certificates": {string(pemOf("PRIVATE KEY", []byte("x"))), "no certificate"},
		"one is broken":   {string(pems) + string(pemOf("CERTIFICATE", a[:50])), "DER"},
		"trailing bytes":  {string(a) + "\n", "DER"},
		"other PKCS #7":   {tlv(0x30, oidText(x509gost.OID{1, 2, 840, 113549, 1, 7, 1})), "type"},
		"BER PKCS #7":     {"\x30\x80\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02\x00\x00", "DER"},
		"too large":       {strings.Repeat("A", x509gost.MaxBundle+1), "more than"},
	} {
		if _, err := x509gost.ParseCertificates([]byte(c.data)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestThumbprint(t *testing.T) {
	c, err := x509gost.ParseCertificate(loadPublished(t).der(t, "rfc4491-cert-2001"))
	if err != nil {
		t.Fatal(err)
	}
	// openssl x509 -fingerprint -sha1
	if want := "C2E84DBCCC11C6F1DE7332FFF740C93ECDD37769"; c.Thumbprint() != want {
		t.Errorf("%s, want %s", c.Thumbprint(), want)
	}
	if want := "2bf5c61ec211bd17c7dcd46266b42e21"; c.SerialHex() != want {
		t.Errorf("%s, want %s", c.SerialHex(), want)
	}
}

func TestTexts(t *testing.T) {
	of, seen := loadPublished(t), 0
	for _, item := range of.Items {
		if item.Kind != "cert" {
			continue
		}
		seen++
		c, err := x509gost.ParseCertificate(of.der(t, item.Name))
		if err != nil {
			t.Fatal(err)
		}
		want := x509gost.Texts{
			Subject: c.Subject.String(), Issuer: c.Issuer.String(), Thumbprint: c.Thumbprint(),
			Serial: strings.ToUpper(c.SerialHex()), KeyID: fmt.Sprintf("%X", c.SubjectKeyID),
		}
		first := c.Texts()
		if *first != want || c.Texts() != first {
			t.Errorf("%s: %+v, want %+v, made once", item.Name, first, want)
		}
	}
	if seen == 0 {
		t.Error("there is no certificate among the examples")
	}
}
