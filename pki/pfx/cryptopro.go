// SPDX-License-Identifier: Apache-2.0

package pfx

import (
	"crypto/hmac"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"unicode/utf16"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"tamga/gost/gost28147"
	"tamga/gost/streebog"
	"tamga/pki/x509gost"
)

// oidCryptoPro is the encryption of keys that CryptoPro CSP exports (decision 0044). No standard
// defines it.
var oidCryptoPro = x509gost.OID{1, 2, 840, 113549, 1, 12, 1, 80}

// oidRC2 is pbeWithSHAAnd40BitRC2-CBC (RFC 7292, appendix C).
var oidRC2 = x509gost.OID{1, 2, 840, 113549, 1, 12, 1, 6}

// cryptoProLabel is the label of the derivation of the key that wraps the private key.
var cryptoProLabel = []byte{0x26, 0xbd, 0xb8, 0x78}

// maxCryptoPro is the greatest number of iterations, since each has a counter of 16 bits.
const maxCryptoPro = 1<<16 - 1

// cryptoPro decrypts a private key in the encryption of CryptoPro CSP. It returns the key as
// PKCS #8, which the caller must wipe. proven reports whether the authentication code of the key
// fits. Otherwise a certificate must prove the key.
func (b *budget) cryptoPro(parameters []byte, password string, data []byte) (pkcs8 []byte, proven bool, err error) {
	in, seq, salt := cryptobyte.String(parameters), cryptobyte.String(nil), cryptobyte.String(nil)
	var iterations uint64
	if !in.ReadASN1(&seq, asn1.SEQUENCE) || !in.Empty() || !seq.ReadASN1(&salt, asn1.OCTET_STRING) || !seq.ReadASN1Integer(&iterations) || !seq.Empty() ||
		len(salt) < gost28147.BlockSize || len(salt) > maxSalt || iterations > maxCryptoPro {
		return nil, false, errors.New("the parameters of CryptoPro's encryption are malformed")
	}
	n, err := b.spend(iterations, 1)
	if err != nil {
		return nil, false, err
	}
	key := cryptoProKey(password, salt, n)
	defer clear(key)
	s, err := gost28147.NewCFBDecrypter(key, salt[:gost28147.BlockSize], gost28147.SBoxA, gost28147.NoMeshing)
	if err != nil {
		return nil, false, err
	}
	blob := make([]byte, len(data))
	defer clear(blob)
	s.XORKeyStream(blob, data)
	return openCryptoPro(key, blob)
}

// cryptoProKey derives a key from a password: each iteration digests the key before it, the salt
// and its number.
func cryptoProKey(password string, salt []byte, iterations int) []byte {
	var key []byte
	for _, unit := range utf16.Encode([]rune(password)) {
		key = binary.LittleEndian.AppendUint16(key, unit)
	}
	h := newGOST94()
	for i := 1; i <= iterations; i++ {
		h.Reset()
		h.Write(key)
		h.Write(salt)
		h.Write([]byte{byte(i >> 8), byte(i)})
		clear(key)
		key = h.Sum(key[:0])
	}
	return key
}

// cryptoProHeader is the length of the header before the exported key.
const cryptoProHeader = 16

// openCryptoPro unwraps the private key in a decrypted blob.
func openCryptoPro(key []byte, blob cryptobyte.String) (pkcs8 []byte, proven bool, err error) {
	malformed := errors.New("the key in CryptoPro's encryption is malformed")
	var outer, value, export, body, ukm, wrapped, sealed, code, info cryptobyte.String
	if !blob.ReadASN1(&outer, asn1.SEQUENCE) || !outer.SkipASN1(asn1.INTEGER) {
		return nil, false, malformed
	}
	var tag asn1.Tag
	var unused cryptobyte.String
	if !outer.ReadAnyASN1(&unused, &tag) || !outer.ReadASN1(&value, asn1.OCTET_STRING) || len(value) < cryptoProHeader {
		return nil, false, malformed
	}
	value = value[cryptoProHeader:]
	if !value.ReadASN1(&export, asn1.SEQUENCE) || !export.ReadASN1(&body, asn1.SEQUENCE) ||
		!body.ReadASN1(&ukm, asn1.OCTET_STRING) || !body.ReadASN1(&wrapped, asn1.SEQUENCE) ||
		!wrapped.ReadASN1(&sealed, asn1.OCTET_STRING) || !wrapped.ReadASN1(&code, asn1.OCTET_STRING) ||
		!body.ReadASN1(&info, asn1.Tag(0).Constructed().ContextSpecific()) || !info.SkipASN1(asn1.BIT_STRING) {
		return nil, false, malformed
	}
	algorithm := info
	oid, _, err := x509gost.ReadAlgorithm(&info)
	if err != nil {
		return nil, false, malformed
	}
	size := cryptoProSizes[oid.String()]
	switch {
	case size == 0:
		return nil, false, fmt.Errorf("a key of algorithm %s in CryptoPro's encryption is not supported; want GOST R 34.10-2012", oid)
	case len(ukm) != gost28147.UKMSize || len(sealed) != size || len(code) != 4:
		return nil, false, malformed
	}
	h := hmac.New(func() hash.Hash { return streebog.New256() }, key)
	h.Write([]byte{1})
	h.Write(cryptoProLabel)
	h.Write([]byte{0})
	h.Write(ukm)
	h.Write([]byte{1, 0})
	kek := h.Sum(nil) // KDF_GOSTR3411_2012_256 (RFC 7836, 4.4)
	defer clear(kek)
	b, err := gost28147.NewCipher(kek, gost28147.SBoxA)
	if err != nil {
		return nil, false, err
	}
	private := make([]byte, size)
	defer clear(private)
	for i := 0; i < size; i += gost28147.BlockSize {
		b.Decrypt(private[i:], sealed[i:])
	}
	mac, err := gost28147.MAC(kek, ukm, private, gost28147.SBoxA) // RFC 4357, 6.1
	if err != nil {
		return nil, false, err
	}
	proven = subtle.ConstantTimeCompare(mac[:4], code) == 1
	algorithm = algorithm[:len(algorithm)-len(info)]
	// The capacity keeps the builder from growing, which would leave copies of the key.
	out := cryptobyte.NewBuilder(make([]byte, 0, 256+len(algorithm)))
	out.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1Uint64(0)
		b.AddBytes(algorithm)
		b.AddASN1OctetString(private)
	})
	pkcs8, err = out.Bytes()
	return pkcs8, proven, err
}

// cryptoProSizes has the length of a private key in bytes by its algorithm: signature keys and
// those of key agreement (R 1323565.1.023). Keys of 2001 are wrapped in another way.
var cryptoProSizes = map[string]int{
	"1.2.643.7.1.1.1.1": 32, "1.2.643.7.1.1.6.1": 32,
	"1.2.643.7.1.1.1.2": 64, "1.2.643.7.1.1.6.2": 64,
}
