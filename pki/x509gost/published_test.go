// SPDX-License-Identifier: Apache-2.0

package x509gost_test

import (
	"bytes"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"

	"tamga/gost/gost3410"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

func TestPublishedCertificates(t *testing.T) {
	p := loadPublished(t)
	wantSuite := map[string]*suite.Suite{
		"tk26-cert-256": suite.GOST2012x256, "tk26-cert-512": suite.GOST2012x512,
		"rfc9215-256test-cert": suite.GOST2012x256, "rfc9215-256a-cert": suite.GOST2012x256,
		"rfc9215-512test-cert": suite.GOST2012x512, "rfc4491-cert-2001": suite.GOST2001,
	}
	seen := 0
	for _, item := range p.Items {
		if item.Kind != "cert" {
			continue
		}
		seen++
		t.Run(item.Name, func(t *testing.T) {
			der := p.der(t, item.Name)
			c, err := x509gost.ParseCertificate(der)
			if err != nil {
				t.Fatal(err)
			}
			if c.Suite != wantSuite[item.Name] {
				t.Fatalf("suite %v (%v), want %s", c.Suite, c.KeyError, wantSuite[item.Name].Name)
			}
			if err := c.CheckSignatureFrom(c); err != nil {
				t.Fatal(err)
			}
			checkTampering(t, der, c)
			checkPublishedKey(t, p, item.Name, c)
		})
	}
	if seen != len(wantSuite) {
		t.Fatalf("%d certificates, want %d", seen, len(wantSuite))
	}
}

// checkTampering changes signed bytes one at a time. The result must not parse or must not
// verify.
func checkTampering(t *testing.T, der []byte, c *x509gost.Certificate) {
	t.Helper()
	first := bytes.Index(der, c.RawTBS)
	for i := 0; i < len(c.RawTBS); i += 7 {
		changed := bytes.Clone(der)
		changed[first+i] ^= 1
		x, err := x509gost.ParseCertificate(changed)
		if err != nil {
			continue
		}
		if err := x.CheckSignatureFrom(c); !errors.Is(err, suite.ErrSignature) {
			t.Fatalf("a change of signed byte %d is not detected: %v", i, err)
		}
	}
}

// checkPublishedKey compares the published private key with the certificate and reads it
// in every form of PKCS #8.
func checkPublishedKey(t *testing.T, p published, item string, c *x509gost.Certificate) {
	t.Helper()
	number := p.scalar(t, strings.TrimSuffix(item, "-cert"))
	if item == "rfc9215-256a-cert" {
		number = reduce(t, number)
	}
	little := slices.Clone(number)
	slices.Reverse(little)
	key, err := gost3410.NewPrivateKey(c.PublicKey.(*gost3410.PublicKey).Set(), little)
	if err != nil {
		t.Fatal(err)
	}
	if !key.PublicKey().Equal(c.PublicKey) {
		t.Fatal("the published key is not the certificate's")
	}
	raw, err := x509gost.MarshalPrivateKey(key, c.Suite)
	if err != nil {
		t.Fatal(err)
	}
	integer := append([]byte{0}, number...)
	if number[0] != 0 && number[0]&0x80 == 0 {
		integer = number
	}
	for form, content := range map[string][]byte{
		"raw":          little,
		"OCTET STRING": append([]byte{4, byte(len(little))}, little...),
		"INTEGER":      append([]byte{2, byte(len(integer))}, integer...),
	} {
		der := replaceKey(t, raw, little, content)
		got, s, err := x509gost.ParsePrivateKey(der)
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		if s != c.Suite || !got.(*gost3410.PrivateKey).Equal(key) {
			t.Fatalf("%s: another key or suite came out", form)
		}
	}
}

// reduce returns a number modulo the order of id-tc26-gost-3410-2012-256-paramSetA. The
// example prints a key above the order, which the standard does not allow. It has the
// same public key as its remainder.
func reduce(t *testing.T, d []byte) []byte {
	t.Helper()
	q, ok := new(big.Int).SetString("400000000000000000000000000000000fd8cddfc87b6635c115af556c360c67", 16)
	if !ok {
		t.Fatal("the order is not a number")
	}
	n := new(big.Int).SetBytes(d)
	if n.Cmp(q) < 0 {
		t.Fatal("the key needs no reduction")
	}
	return n.Mod(n, q).FillBytes(make([]byte, len(d)))
}

// replaceKey replaces the privateKey content of a PKCS #8 of at most 127 + n bytes.
func replaceKey(t *testing.T, pkcs8, old, content []byte) []byte {
	t.Helper()
	at := bytes.LastIndex(pkcs8, old)
	if at < 2 || pkcs8[1] >= 0x80 {
		t.Fatalf("unexpected PKCS #8 %x", pkcs8[:2])
	}
	body := append(bytes.Clone(pkcs8[2:at-2]), 4, byte(len(content)))
	body = append(body, content...)
	if len(body) > 127 {
		return append([]byte{0x30, 0x81, byte(len(body))}, body...)
	}
	return append([]byte{0x30, byte(len(body))}, body...)
}

func TestPublishedRequestsAndLists(t *testing.T) {
	p := loadPublished(t)
	for _, prefix := range []string{"rfc9215-256test", "rfc9215-256a", "rfc9215-512test"} {
		t.Run(prefix, func(t *testing.T) {
			c, err := x509gost.ParseCertificate(p.der(t, prefix+"-cert"))
			if err != nil {
				t.Fatal(err)
			}
			r, err := x509gost.ParseRequest(p.der(t, prefix+"-csr"))
			if err != nil {
				t.Fatal(err)
			}
			if err := r.CheckSignature(); err != nil {
				t.Error(err)
			}
			if !bytes.Equal(r.RawSPKI, c.RawSPKI) || !r.Subject.Equal(c.Subject) {
				t.Error("the request is not for the certificate's key and name")
			}
			l, err := x509gost.ParseRevocationList(p.der(t, prefix+"-crl"))
			if err != nil {
				t.Fatal(err)
			}
			if err := l.CheckSignatureFrom(c); err != nil {
				t.Error(err)
			}
			if len(l.Revoked) != 0 || l.NextUpdate.Sub(l.ThisUpdate).Hours() != 24 {
				t.Errorf("entries %v, period %s to %s", l.Revoked, l.ThisUpdate, l.NextUpdate)
			}
		})
	}
}

// TestParseShared checks that the same bytes are the same certificate, that other bytes are not,
// and that the bytes of the caller are not kept.
func TestParseShared(t *testing.T) {
	k := keyCases(t)[0]
	der := bytes.Clone(create(t, leafTemplate(t), nil, k, k).Raw)
	own := bytes.Clone(der)
	first, err := x509gost.ParseShared(der)
	if err != nil {
		t.Fatal(err)
	}
	clear(der)
	again, err := x509gost.ParseShared(own)
	if err != nil || again != first || !bytes.Equal(first.Raw, own) {
		t.Errorf("the same certificate again: %v", err)
	}
	other := bytes.Clone(own)
	other[len(other)-1] ^= 1
	if c, err := x509gost.ParseShared(other); err != nil || c == first || !bytes.Equal(c.Raw, other) {
		t.Errorf("another certificate: %v", err)
	}
	for _, bad := range [][]byte{nil, own[1:], append(bytes.Clone(own), 0)} {
		if _, err := x509gost.ParseShared(bad); err == nil {
			t.Errorf("%d bytes that are no certificate are accepted", len(bad))
		}
	}
}
