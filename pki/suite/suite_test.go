// SPDX-License-Identifier: Apache-2.0

package suite_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/hex"
	"errors"
	"math/big"
	"strings"
	"testing"

	"tamga/gost/gost3410"
	"tamga/pki/suite"
)

func TestSignAndVerify(t *testing.T) {
	for _, s := range suite.All() {
		t.Run(s.Name, func(t *testing.T) {
			key, err := s.Generate(nil)
			if err != nil {
				t.Fatal(err)
			}
			d := s.Hash.Digest([]byte("document"))
			value, err := s.Sign(nil, key, d)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Verify(key.Public(), d, value); err != nil {
				t.Error(err)
			}
			for what, bad := range map[string][]byte{
				"empty": nil, "short": value[:len(value)-1], "long": append(bytes.Clone(value), 0),
				"zero": make([]byte, len(value)), "ones": bytes.Repeat([]byte{0xff}, len(value)), "changed": append(bytes.Clone(value[:len(value)-1]), value[len(value)-1]^1),
			} {
				if err := s.Verify(key.Public(), d, bad); !errors.Is(err, suite.ErrSignature) {
					t.Errorf("%s value: %v", what, err)
				}
			}
			if err := s.Verify(key.Public(), s.Hash.Digest([]byte("another")), value); !errors.Is(err, suite.ErrSignature) {
				t.Errorf("another document: %v", err)
			}
			checkForms(t, s, value)
			for _, h := range []*suite.Hash{suite.GOST94, suite.Streebog256, suite.Streebog512, suite.SHA1, suite.SHA256, suite.SHA512, nil} {
				wrong := suite.Digest{Hash: h, Sum: make([]byte, s.Hash.Size)}
				_, err := s.Sign(nil, key, wrong)
				if (err == nil) != (h == s.Hash) {
					t.Errorf("a digest of %v: %v", h, err)
				}
				if err := s.Verify(key.Public(), wrong, value); err == nil {
					t.Errorf("a digest of %v verifies", h)
				}
			}
			if _, err := s.Sign(nil, key, suite.Digest{Hash: s.Hash, Sum: d.Sum[1:]}); err == nil {
				t.Error("a digest that is a byte short is signed")
			}
			for _, other := range suite.All() {
				// A 256-bit GOST key fits both families that have such keys.
				fits := other == s || s.Hash.Size == 32 && s.IsGOST() && other.IsGOST() && other.Hash.Size == 32
				if err := other.Accepts(key.Public()); (err == nil) != fits {
					t.Errorf("%s takes the key: %v", other.Name, err)
				}
			}
		})
	}
}

func checkForms(t *testing.T, s *suite.Suite, value []byte) {
	t.Helper()
	x, err := s.XMLValue(value)
	if err != nil {
		t.Fatal(err)
	}
	if s == suite.ECDSAP256 && len(x) != 64 {
		t.Errorf("the XML value has %d bytes", len(x))
	}
	if back, err := s.FromXMLValue(x); err != nil || !bytes.Equal(back, value) {
		t.Errorf("the XML value does not come back: %v", err)
	}
	raw, err := s.RawValue(value)
	if err != nil || !bytes.Equal(raw, value) {
		t.Errorf("raw value: %v", err)
	}
	if back, err := s.FromRawValue(raw); err != nil || !bytes.Equal(back, value) {
		t.Errorf("the raw value does not come back: %v", err)
	}
	for _, f := range []func([]byte) ([]byte, error){s.XMLValue, s.FromXMLValue, s.RawValue, s.FromRawValue} {
		if _, err := f([]byte{1, 2, 3}); err == nil {
			t.Error("three bytes are accepted as a signature")
		}
	}
}

// TestECDSAForms checks numbers with leading zeros and values that cannot be a signature.
func TestECDSAForms(t *testing.T) {
	x := make([]byte, 64)
	x[31], x[32] = 1, 0x80
	der, err := suite.ECDSAP256.FromXMLValue(x)
	if err != nil || hex.EncodeToString(der) != "3026020101022100"+"80"+strings.Repeat("00", 31) {
		t.Errorf("%x, %v", der, err)
	}
	for _, bad := range []string{"3006020100020101", "30060201ff020101", "3006020101020101" + "00", "30270201010222" + "01" + strings.Repeat("00", 33)} {
		value, err := hex.DecodeString(bad)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := suite.ECDSAP256.XMLValue(value); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestTables(t *testing.T) {
	oids := map[string]bool{}
	for _, s := range suite.All() {
		if found, ok := suite.ByName(strings.ToUpper(s.Name)); !ok || found != s {
			t.Errorf("%s is not found by name", s.Name)
		}
		if found, ok := suite.ByKeyOID(s.KeyOID); !ok || found != s {
			t.Errorf("%s is not found by its key", s.Name)
		}
		if found, _, err := suite.SchemeByOID(s.SignatureOID, nil); err != nil || found != s.Scheme() {
			t.Errorf("%s is not found by its signature", s.Name)
		}
		for _, oid := range []suite.OID{s.KeyOID, s.SignatureOID} {
			if oids[oid.String()] {
				t.Errorf("%s is in the table twice", oid)
			}
			oids[oid.String()] = true
			if found, err := suite.SchemeBySigner(oid, nil, s.Hash.OID); err != nil || found != s.Scheme() {
				t.Errorf("%s with %s: %v", oid, s.Hash.Name, err)
			}
			if found, err := suite.SchemeBySigner(oid, nil, suite.SHA1.OID); err == nil && (s.IsGOST() || oid.Equal(s.SignatureOID) || found.Hash != suite.SHA1) {
				t.Errorf("%s with SHA-1 is %s", oid, found.Name)
			}
		}
		for _, uri := range s.XML {
			if found, ok := suite.SchemeByXML(uri); !ok || found != s.Scheme() {
				t.Errorf("%s is not found", uri)
			}
		}
	}
	if _, err := suite.SchemeBySigner(suite.OID{1, 2, 3}, nil, suite.SHA256.OID); !errors.Is(err, suite.ErrUnsupported) {
		t.Error("1.2.3 is accepted as a scheme")
	}
	all := suite.All()
	all[0] = nil
	if suite.All()[0] == nil {
		t.Error("the table can be changed from outside")
	}
}

func TestHashes(t *testing.T) {
	for text, want := range map[string]*suite.Hash{
		"GOST R 34.11-94": suite.GOST94, " gr  34.11-2012 256 ": suite.Streebog256, "GR 34.11-2012 512": suite.Streebog512,
		"sha-256": suite.SHA256, "SHA-384": suite.SHA384, "SHA-512": suite.SHA512, "SHA-1": suite.SHA1, "1.2.643.7.1.1.2.2": suite.Streebog256,
	} {
		if h, ok := suite.HashByName(text); !ok || h != want {
			t.Errorf("%q is %v", text, h)
		}
		if h, ok := suite.HashByOID(want.OID); !ok || h != want {
			t.Errorf("%s is %v", want.OID, h)
		}
		for _, uri := range want.XML {
			if h, ok := suite.HashByXML(uri); !ok || h != want {
				t.Errorf("%s is %v", uri, h)
			}
		}
		if d := want.Digest([]byte("x")); d.Hash != want || len(d.Sum) != want.Size || want.New().Size() != want.Size {
			t.Errorf("%s has %d bytes", want.Name, len(d.Sum))
		}
	}
	for _, text := range []string{"", "MD4", "MD5", "1.2.840.113549.2.5", "GR 34.11-2012", "1.2.3"} {
		if h, ok := suite.HashByName(text); ok {
			t.Errorf("%q is %s", text, h.Name)
		}
	}
	// The S-boxes of 34.11-94 are those of CryptoPro (RFC 4357, 11.2). This is the
	// digest of the empty message.
	if got := hex.EncodeToString(suite.GOST94.Digest(nil).Sum); got != "981e5f3ca30c841487830f84fb433e13ac1101569b9c13584ac483234cd656c0" {
		t.Errorf("34.11-94 of the empty message is %s", got)
	}
}

func TestFor(t *testing.T) {
	d := make([]byte, 64)
	d[0] = 1
	key256, err := gost3410.NewPrivateKey(gost3410.CryptoProA, d[:32])
	if err != nil {
		t.Fatal(err)
	}
	key512, err := gost3410.NewPrivateKey(gost3410.TC26512C, d)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key  crypto.PublicKey
		want *suite.Suite
	}{{key256.Public(), suite.GOST2012x256}, {key512.Public(), suite.GOST2012x512}} {
		if s, err := suite.For(c.key); err != nil || s != c.want {
			t.Errorf("%v, %v", s, err)
		}
	}
	weak := &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), 1023), E: 65537}
	p384 := &ecdsa.PublicKey{Curve: elliptic.P384()}
	for _, key := range []crypto.PublicKey{weak, p384, nil, "key", (*gost3410.PublicKey)(nil), &rsa.PublicKey{}} {
		if _, err := suite.For(key); err == nil {
			t.Errorf("%T has a suite", key)
		}
	}
}

func TestParameterSets(t *testing.T) {
	count := map[*suite.Suite]int{}
	for _, s := range suite.All() {
		for _, set := range gost3410.Sets() {
			p, err := s.ParametersOf(set)
			if err != nil {
				continue
			}
			count[s]++
			back, err := s.ParametersByOID(p.OID)
			if err != nil || back.Set != set {
				t.Errorf("%s: %s leads to another set: %v", s.Name, p.OID, err)
			}
			withDigest := s == suite.GOST2001 || len(p.OID) == 7 // arcs of the sets of RFC 4357
			if (p.Digest != nil) != withDigest {
				t.Errorf("%s: %s: digestParamSet %v", s.Name, set.Name(), p.Digest)
			}
		}
	}
	if count[suite.GOST2001] != 6 || count[suite.GOST2012x256] != 10 || count[suite.GOST2012x512] != 4 || len(count) != 3 {
		t.Errorf("sets per suite: %v", count)
	}
	if _, err := suite.GOST2012x256.ParametersByOID(suite.OID{1, 2, 643, 7, 1, 2, 1, 2, 1}); err == nil {
		t.Error("a parameter set of 512 bits is accepted for a suite of 256 bits")
	}
}
