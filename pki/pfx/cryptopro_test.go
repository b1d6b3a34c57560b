// SPDX-License-Identifier: Apache-2.0

package pfx

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"tamga/gost/gost28147"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// The values of another implementation: the password 123456, 2000 iterations, a salt of 00 to 0f,
// key material of 01 to 08 and the private key 00 to 1f.
const (
	vectorSealed = "3eae7a87e68ab6f2b63571a15c31484690ef986879403c58a80bfb6d0ab917f5"
	vectorCode   = "cf2a3be2"
	vectorStream = "13864cc2c7bc694c9e5c2cfa1560a54db0987d9b65b4711856963f80c4ae2502" // the key alone
)

func counted(from, n int) (out []byte) {
	for i := range n {
		out = append(out, byte(from+i))
	}
	return out
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// cryptoProBag makes the value of a bag in CryptoPro's encryption.
func cryptoProBag(t testing.TB, algorithm x509gost.OID, sealed, code []byte, iterations int) []byte {
	t.Helper()
	salt := counted(0, 16)
	var blob cryptobyte.Builder
	blob.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1Int64(0)
		b.AddASN1(asn1.SEQUENCE, func(*cryptobyte.Builder) {})
		b.AddASN1(asn1.OCTET_STRING, func(b *cryptobyte.Builder) {
			b.AddBytes(make([]byte, cryptoProHeader))
			b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
				b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
					b.AddASN1OctetString(counted(1, 8))
					b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
						b.AddASN1OctetString(sealed)
						b.AddASN1OctetString(code)
					})
					b.AddASN1(asn1.Tag(0).Constructed().ContextSpecific(), func(b *cryptobyte.Builder) {
						b.AddASN1BitString([]byte{0x20})
						b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
							b.AddASN1ObjectIdentifier(algorithm)
							b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
								b.AddASN1ObjectIdentifier(x509gost.OID{1, 2, 643, 2, 2, 35, 1})
								b.AddASN1ObjectIdentifier(x509gost.OID{1, 2, 643, 7, 1, 1, 2, 2})
							})
						})
					})
				})
				b.AddASN1OctetString(counted(9, 4))
			})
		})
	})
	plain := blob.BytesOrPanic()
	s, err := gost28147.NewCFBEncrypter(cryptoProKey("123456", salt, 2000), salt[:8], gost28147.SBoxA, gost28147.NoMeshing)
	if err != nil {
		t.Fatal(err)
	}
	s.XORKeyStream(plain, plain)
	var bag cryptobyte.Builder
	bag.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddASN1ObjectIdentifier(oidCryptoPro)
			b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
				b.AddASN1OctetString(salt)
				b.AddASN1Int64(int64(iterations))
			})
		})
		b.AddASN1OctetString(plain)
	})
	return bag.BytesOrPanic()
}

// TestCryptoPro reads a key in the encryption of CryptoPro CSP, with the values of another
// implementation. A key whose code does not fit needs a certificate.
func TestCryptoPro(t *testing.T) {
	key := cryptoProKey("123456", counted(0, 16), 2000)
	stream := counted(0, 32)
	s, err := gost28147.NewCFBEncrypter(key, counted(0, 8), gost28147.SBoxA, gost28147.NoMeshing)
	if err != nil {
		t.Fatal(err)
	}
	if s.XORKeyStream(stream, stream); hex.EncodeToString(stream) != vectorStream {
		t.Errorf("the stream is %x", stream)
	}
	sealed, code := unhex(t, vectorSealed), unhex(t, vectorCode)
	changed := bytes.Clone(sealed)
	changed[0] ^= 1
	signs, agrees, old := suite.GOST2012x256.KeyOID, x509gost.OID{1, 2, 643, 7, 1, 1, 6, 1}, x509gost.OID{1, 2, 643, 2, 2, 19}
	for name, c := range map[string]struct {
		bag      []byte
		password string
		want     string // of the error
	}{
		"signature key":       {cryptoProBag(t, signs, sealed, code, 2000), "123456", ""},
		"agreement key":       {cryptoProBag(t, agrees, sealed, code, 2000), "123456", ""},
		"changed":             {cryptoProBag(t, signs, changed, code, 2000), "123456", "does not fit"},
		"changed code":        {cryptoProBag(t, signs, sealed, []byte{1, 2, 3, 4}, 2000), "123456", "does not fit"},
		"another password":    {cryptoProBag(t, signs, sealed, code, 2000), "1234567", "malformed"},
		"other iterations":    {cryptoProBag(t, signs, sealed, code, 1999), "123456", "malformed"},
		"too many iterations": {cryptoProBag(t, signs, sealed, code, maxCryptoPro+1), "123456", "malformed"},
		"key of 2001":         {cryptoProBag(t, old, sealed, code, 2000), "123456", "1.2.643.2.2.19"},
		"short":               {cryptoProBag(t, signs, sealed[:31], code, 2000), "123456", "malformed"},
	} {
		r := &reader{password: c.password, budget: MaxIterations}
		err := r.bag(oidShroudedBag, c.bag, "name", nil, 0)
		var b *Bundle
		if err == nil {
			b, err = r.bundle()
		}
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
			continue
		}
		if err != nil || b.Suite != suite.GOST2012x256 || b.Name != "name" {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, err := x509gost.MarshalPrivateKey(b.Key, b.Suite)
		if err != nil || !bytes.HasSuffix(again, counted(0, 32)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
