// SPDX-License-Identifier: Apache-2.0

package pfx

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"tamga/gost/gost28147"
	"tamga/gost/kdf"
	"tamga/gost/kuznyechik"
	"tamga/gost/magma"
	"tamga/gost/mode"
	"tamga/gost/streebog"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

var (
	oidPBES2  = x509gost.OID{1, 2, 840, 113549, 1, 5, 13}
	oidPBKDF2 = x509gost.OID{1, 2, 840, 113549, 1, 5, 12}

	oidGOST28147  = x509gost.OID{1, 2, 643, 2, 2, 21}
	oidMagma      = x509gost.OID{1, 2, 643, 7, 1, 1, 5, 1, 1}
	oidMagmaMAC   = x509gost.OID{1, 2, 643, 7, 1, 1, 5, 1, 2}
	oidKuznyechik = x509gost.OID{1, 2, 643, 7, 1, 1, 5, 2, 1}
	oidKuznMAC    = x509gost.OID{1, 2, 643, 7, 1, 1, 5, 2, 2}
	oidAES256     = x509gost.OID{2, 16, 840, 1, 101, 3, 4, 1, 42}
)

// counterMode is a cipher of RFC 9337, section 5: CTR-ACPKM over a block cipher.
//
// Programs differ in the number of bytes that one key encrypts: gost-engine uses the
// sections of TLS (RFC 9189), others those of CMS (R 1323565.1.025). The difference shows
// only in contents of more than 1 KiB. Files are written with the sections of TLS. A reader
// tries both, because only the right one decrypts to DER.
type counterMode struct {
	oid      x509gost.OID
	new      func(key []byte) (cipher.Block, error)
	ukm      int    // bytes of UKM: half a block for the counter, 8 to derive the keys of OMAC
	sections [2]int // bytes under one key: of TLS, of CMS
	omac     bool
}

var (
	sectionsKuznyechik = [2]int{4 << 10, 256 << 10}
	sectionsMagma      = [2]int{1 << 10, 8 << 10}
)

var counterModes = []counterMode{
	{oidKuznyechik, kuznyechik.NewCipher, 16, sectionsKuznyechik, false},
	{oidKuznMAC, kuznyechik.NewCipher, 16, sectionsKuznyechik, true},
	{oidMagma, magma.NewCipher, 12, sectionsMagma, false},
	{oidMagmaMAC, magma.NewCipher, 12, sectionsMagma, true},
}

// aesKeys has the key lengths of AES in CBC.
var aesKeys = []struct {
	oid x509gost.OID
	key int
}{
	{x509gost.OID{2, 16, 840, 1, 101, 3, 4, 1, 2}, 16},
	{x509gost.OID{2, 16, 840, 1, 101, 3, 4, 1, 22}, 24},
	{oidAES256, 32},
}

// decipher decrypts data with a password. algorithm is an AlgorithmIdentifier, which must be
// PBES2 (RFC 8018, section 6.2). The caller must wipe the result.
func (b *budget) decipher(algorithm *cryptobyte.String, password string, data []byte) ([]byte, error) {
	oid, parameters, err := x509gost.ReadAlgorithm(algorithm)
	if err != nil {
		return nil, err
	}
	if !oid.Equal(oidPBES2) {
		return nil, fmt.Errorf("it is encrypted with %s, which is not supported; want PBES2", oid)
	}
	in, seq := cryptobyte.String(parameters), cryptobyte.String(nil)
	if !in.ReadASN1(&seq, asn1.SEQUENCE) {
		return nil, errors.New("the parameters of PBES2 are malformed")
	}
	kdf, kdfParameters, err := x509gost.ReadAlgorithm(&seq)
	if err != nil {
		return nil, err
	}
	scheme, schemeParameters, err := x509gost.ReadAlgorithm(&seq)
	if err != nil || !seq.Empty() {
		return nil, errors.New("the parameters of PBES2 are malformed")
	}
	if !kdf.Equal(oidPBKDF2) {
		return nil, fmt.Errorf("its key derivation %s is not supported; want PBKDF2", kdf)
	}
	length := 32
	for _, row := range aesKeys {
		if row.oid.Equal(scheme) {
			length = row.key
		}
	}
	key, err := b.key(kdfParameters, password, length)
	if err != nil {
		return nil, err
	}
	defer clear(key)
	return open(scheme, schemeParameters, key, data)
}

// key reads the parameters of PBKDF2 (RFC 8018, appendix A.2) and derives a key.
func (b *budget) key(parameters []byte, password string, length int) ([]byte, error) {
	malformed := errors.New("the parameters of PBKDF2 are malformed")
	in, seq, salt := cryptobyte.String(parameters), cryptobyte.String(nil), cryptobyte.String(nil)
	var iterations uint64
	if !in.ReadASN1(&seq, asn1.SEQUENCE) || !seq.ReadASN1(&salt, asn1.OCTET_STRING) || len(salt) > maxSalt ||
		!seq.ReadASN1Integer(&iterations) {
		return nil, malformed
	}
	if seq.PeekASN1Tag(asn1.INTEGER) {
		var said int
		if !seq.ReadASN1Integer(&said) || said != length {
			return nil, fmt.Errorf("the key length of PBKDF2 is not the %d bytes of its cipher", length)
		}
	}
	prf := x509gost.OID{1, 2, 840, 113549, 2, 7} // the default, HMAC with SHA-1
	if !seq.Empty() {
		var err error
		if prf, _, err = x509gost.ReadAlgorithm(&seq); err != nil || !seq.Empty() {
			return nil, malformed
		}
	}
	for _, row := range prfs {
		if !row.oid.Equal(prf) {
			continue
		}
		size := row.new().Size()
		n, err := b.spend(iterations, (length+size-1)/size)
		if err != nil {
			return nil, err
		}
		return stretch(row.new, password, salt, n, length)
	}
	return nil, fmt.Errorf("the pseudorandom function %s of PBKDF2 is not supported", prf)
}

// open decrypts data with a key by the named scheme.
func open(scheme x509gost.OID, parameters, key, data []byte) ([]byte, error) {
	malformed := errors.New("the parameters of its cipher are malformed")
	in, seq, iv := cryptobyte.String(parameters), cryptobyte.String(nil), cryptobyte.String(nil)
	out := make([]byte, len(data))
	for _, row := range aesKeys {
		if !row.oid.Equal(scheme) {
			continue
		}
		if !in.ReadASN1(&iv, asn1.OCTET_STRING) || len(iv) != aes.BlockSize {
			return nil, malformed
		}
		return openAES(key, iv, out, data)
	}
	if !in.ReadASN1(&seq, asn1.SEQUENCE) || !seq.ReadASN1(&iv, asn1.OCTET_STRING) {
		return nil, fmt.Errorf("its cipher %s is not supported, or its parameters are malformed", scheme)
	}
	if scheme.Equal(oidGOST28147) {
		set, err := x509gost.ReadOID(&seq)
		if err != nil || len(iv) != gost28147.BlockSize {
			return nil, malformed
		}
		box, known := suite.SBoxByOID(set)
		if !known {
			return nil, fmt.Errorf("the parameter set %s of GOST 28147-89 is not supported", set)
		}
		s, err := gost28147.NewCFBDecrypter(key, iv, box, gost28147.CryptoProMeshing)
		if err != nil {
			return nil, err
		}
		s.XORKeyStream(out, data)
		return out, nil
	}
	for _, row := range counterModes {
		if row.oid.Equal(scheme) {
			return row.open(key, iv, out, data)
		}
	}
	return nil, fmt.Errorf("its cipher %s is not supported", scheme)
}

func openAES(key, iv, out, data []byte) ([]byte, error) {
	b, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 || len(data)%aes.BlockSize != 0 {
		return nil, errors.New("the data encrypted with AES is not a whole number of blocks")
	}
	cipher.NewCBCDecrypter(b, iv).CryptBlocks(out, data)
	// The integrity of the whole file was verified before, so different errors for
	// the padding reveal nothing to an attacker.
	n := int(out[len(out)-1])
	if n == 0 || n > aes.BlockSize {
		return nil, errors.New("the padding of AES is wrong")
	}
	for _, c := range out[len(out)-n:] {
		if int(c) != n {
			return nil, errors.New("the padding of AES is wrong")
		}
	}
	return out[:len(out)-n], nil
}

// open decrypts. With OMAC, the encrypted code of the plain text follows the data.
func (m counterMode) open(key, ukm, out, data []byte) (plain []byte, err error) {
	if len(ukm) != m.ukm {
		return nil, errors.New("the parameters of its cipher are malformed")
	}
	macKey := []byte(nil)
	if m.omac {
		if key, macKey, err = split(key, ukm[m.ukm-8:]); err != nil {
			return nil, err
		}
		defer clear(key)
		defer clear(macKey)
	}
	for _, section := range m.sections {
		s, err := mode.NewCTRACPKM(m.new, key, ukm[:m.ukm-8], section)
		if err != nil {
			return nil, err
		}
		s.XORKeyStream(out, data)
		plain := out
		if m.omac {
			if plain, err = m.verify(macKey, out); err != nil {
				continue
			}
		}
		if _, err := x509gost.FromBER(plain, MaxSize); err == nil {
			return plain, nil
		}
	}
	return nil, errors.New("the decrypted data is malformed")
}

// verify checks the code at the end of the plain text and removes it.
func (m counterMode) verify(key, text []byte) ([]byte, error) {
	b, err := m.new(key)
	if err != nil {
		return nil, err
	}
	if len(text) < b.BlockSize() {
		return nil, errors.New("the authentication code of its cipher is missing")
	}
	plain := text[:len(text)-b.BlockSize()]
	if subtle.ConstantTimeCompare(mode.OMAC(b, plain), text[len(plain):]) != 1 {
		return nil, errors.New("the authentication code of its cipher does not match")
	}
	return plain, nil
}

// split derives the keys of the cipher and of the code from the key and the seed (RFC
// 9337, section 5).
func split(key, seed []byte) (first, second []byte, err error) {
	both, err := kdf.Tree(key, []byte("kdf tree"), seed, 1, 2*kdf.BlockSize)
	if err != nil {
		return nil, nil, err
	}
	return both[:kdf.BlockSize], both[kdf.BlockSize:], nil
}

// encipher encrypts data with a password and returns the AlgorithmIdentifier with it.
func encipher(rand io.Reader, o Options, password string, plain []byte) (algorithm, data []byte, err error) {
	salt := make([]byte, 16)
	vector := make([]byte, 16)
	if _, err := io.ReadFull(rand, salt); err != nil {
		return nil, nil, fmt.Errorf("drawing a salt: %w", err)
	}
	if _, err := io.ReadFull(rand, vector); err != nil {
		return nil, nil, fmt.Errorf("drawing an initialization vector: %w", err)
	}
	prf, newHash := oidHMACStreebog512, streebog.New512
	if o.Cipher == AES256 {
		prf, newHash = oidHMACSHA256, prfs[4].new
	}
	key, err := stretch(newHash, password, salt, o.Iterations, 32)
	if err != nil {
		return nil, nil, err
	}
	defer clear(key)
	var scheme, parameters cryptobyte.Builder
	data = make([]byte, len(plain), len(plain)+aes.BlockSize)
	switch o.Cipher {
	case AES256:
		n := aes.BlockSize - len(plain)%aes.BlockSize
		copy(data, plain)
		for range n {
			data = append(data, byte(n))
		}
		b, err := aes.NewCipher(key)
		if err != nil {
			return nil, nil, err
		}
		cipher.NewCBCEncrypter(b, vector).CryptBlocks(data, data)
		scheme.AddASN1ObjectIdentifier(oidAES256)
		parameters.AddASN1OctetString(vector)
	case GOST28147:
		vector = vector[:gost28147.BlockSize]
		s, err := gost28147.NewCFBEncrypter(key, vector, gost28147.SBoxZ, gost28147.CryptoProMeshing)
		if err != nil {
			return nil, nil, err
		}
		s.XORKeyStream(data, plain)
		scheme.AddASN1ObjectIdentifier(oidGOST28147)
		parameters.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddASN1OctetString(vector)
			b.AddASN1ObjectIdentifier(suite.SBoxOID(gost28147.SBoxZ))
		})
	default:
		m := counterModes[0]
		if o.Cipher == Magma {
			m = counterModes[2]
		}
		vector = vector[:m.ukm]
		s, err := mode.NewCTRACPKM(m.new, key, vector[:m.ukm-8], m.sections[0])
		if err != nil {
			return nil, nil, err
		}
		s.XORKeyStream(data, plain)
		scheme.AddASN1ObjectIdentifier(m.oid)
		parameters.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) { b.AddASN1OctetString(vector) })
	}
	var out cryptobyte.Builder
	out.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1ObjectIdentifier(oidPBES2)
		b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
				b.AddASN1ObjectIdentifier(oidPBKDF2)
				b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
					b.AddASN1OctetString(salt)
					b.AddASN1Uint64(uint64(o.Iterations))
					b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
						b.AddASN1ObjectIdentifier(prf)
						b.AddASN1NULL()
					})
				})
			})
			b.AddASN1(asn1.SEQUENCE, func(b *cryptobyte.Builder) {
				b.AddBytes(scheme.BytesOrPanic())
				b.AddBytes(parameters.BytesOrPanic())
			})
		})
	})
	algorithm, err = out.Bytes()
	return algorithm, data, err
}
