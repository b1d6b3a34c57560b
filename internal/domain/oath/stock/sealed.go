// SPDX-License-Identifier: Apache-2.0

package stock

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"
)

// cryptKey opens the encrypted values of a container.
type cryptKey struct{ key []byte }

// macMethod verifies the MAC of encrypted values.
type macMethod struct {
	hash func() hash.Hash
	key  []byte
}

// ciphers maps the XML encryption identifier of a cipher to the length of its key in bytes.
var ciphers = map[string]int{
	"http://www.w3.org/2001/04/xmlenc#aes128-cbc": 16,
	"http://www.w3.org/2001/04/xmlenc#aes192-cbc": 24,
	"http://www.w3.org/2001/04/xmlenc#aes256-cbc": 32,
}

// macs by their XML signature identifiers.
var macs = map[string]func() hash.Hash{
	"http://www.w3.org/2000/09/xmldsig#hmac-sha1":        sha1.New,
	"http://www.w3.org/2001/04/xmldsig-more#hmac-sha224": sha256.New224,
	"http://www.w3.org/2001/04/xmldsig-more#hmac-sha256": sha256.New,
	"http://www.w3.org/2001/04/xmldsig-more#hmac-sha384": sha512.New384,
	"http://www.w3.org/2001/04/xmldsig-more#hmac-sha512": sha512.New,
}

// Derivations of PBKDF2 by the identifiers of the derivation and of its function.
var (
	derivations = []string{
		"http://www.rsasecurity.com/rsalabs/pkcs/schemas/pkcs-5v2-0#pbkdf2",
		"http://www.rsasecurity.com/rsalabs/pkcs/schemas/pkcs-5#pbkdf2",
		"http://www.w3.org/2009/xmlenc11#pbkdf2",
	}
	prfs = map[string]func() hash.Hash{
		"": sha1.New, // RFC 8018, A.2
		"http://www.w3.org/2000/09/xmldsig#hmac-sha1":        sha1.New,
		"http://www.w3.org/2001/04/xmldsig-more#hmac-sha256": sha256.New,
		"http://www.w3.org/2001/04/xmldsig-more#hmac-sha512": sha512.New,
	}
)

// maxIterations keeps a file from taking more than some seconds.
const maxIterations = 5_000_000

// keyOf finds the key that the container names. Without one to try the container is
// read as far as it is plain.
func keyOf(x encryptionKeyXML, with Opening) (*cryptKey, error) {
	switch {
	case x.DerivedKey != nil:
		if with.Password == "" {
			return nil, errors.New("stock: the container is encrypted with a password: give it")
		}
		return derive(*x.DerivedKey, with.Password)
	case x.X509 != nil:
		return nil, errors.New("stock: the container is encrypted for a certificate: ask for one with a key or a password")
	case len(with.Key) == 0:
		return nil, errors.New("stock: the container is encrypted with a key that was agreed on: give it")
	case !slices.Contains([]int{16, 24, 32}, len(with.Key)):
		return nil, errors.New("stock: the key of the container: want 16, 24 or 32 bytes")
	}
	return &cryptKey{with.Key}, nil
}

func derive(x derivedKeyXML, password string) (*cryptKey, error) {
	params := x.Method.Params
	if !slices.Contains(derivations, strings.TrimSpace(x.Method.Algorithm)) || params == nil {
		return nil, errors.New("stock: the key of the container is derived in another way than by PBKDF2 with its parameters")
	}
	prf, known := prfs[strings.TrimSpace(params.PRF.Algorithm)]
	salt, err := decodeBase64(params.Salt.Specified, "salt")
	iterations, err1 := strconv.Atoi(strings.TrimSpace(params.Iterations))
	length, err2 := strconv.Atoi(strings.TrimSpace(params.KeyLength))
	if params.KeyLength == "" {
		length, err2 = 16, nil // of the one algorithm that RFC 6030 demands
	}
	switch {
	case !known:
		return nil, errors.New("stock: PBKDF2: want HMAC with SHA-1, SHA-256 or SHA-512")
	case err != nil || len(salt) == 0:
		return nil, errors.New("stock: PBKDF2: want a salt in Base64")
	case err1 != nil || iterations < 1 || iterations > maxIterations:
		return nil, fmt.Errorf("stock: PBKDF2: want 1 to %d iterations", maxIterations)
	case err2 != nil || !slices.Contains([]int{16, 24, 32}, length):
		return nil, errors.New("stock: PBKDF2: want a key of 16, 24 or 32 bytes")
	}
	key, err := pbkdf2.Key(prf, password, salt, iterations, length)
	if err != nil {
		return nil, errors.New("stock: PBKDF2: its parameters are refused")
	}
	return &cryptKey{key}, nil
}

// macOf reads how values are authenticated. The key of the MAC is encrypted like they
// are; without one the key of the container takes its place (RFC 6030, 6.1.1).
func macOf(x macMethodXML, key *cryptKey) (*macMethod, error) {
	h := macs[strings.TrimSpace(x.Algorithm)]
	switch {
	case h == nil:
		return nil, errors.New("stock: MAC: want HMAC with SHA-1 or one of SHA-2")
	case key == nil:
		return nil, errors.New("stock: the container has a MAC method before, or without, its encryption key")
	case x.Key == nil:
		return &macMethod{h, key.key}, nil
	}
	opened, err := key.decrypt(*x.Key, "the MAC key")
	if err != nil {
		return nil, fmt.Errorf("stock: %w", err)
	}
	return &macMethod{h, opened}, nil
}

// open authenticates and decrypts a value. The MAC is over the initialization vector
// and the ciphertext, and nothing is decrypted that it does not vouch for.
func (h containerHead) open(x encryptedXML, mac, what string) ([]byte, error) {
	if h.key == nil || h.macMethod == nil {
		return nil, fmt.Errorf("%s is encrypted, and the container does not name the key and the MAC", what)
	}
	sealed, err := decodeBase64(x.CipherValue, what)
	if err != nil {
		return nil, err
	}
	want, err := decodeBase64(mac, "the MAC of "+what)
	if err != nil || len(want) == 0 {
		return nil, fmt.Errorf("%s is encrypted without a MAC", what)
	}
	sum := hmac.New(h.macMethod.hash, h.macMethod.key)
	sum.Write(sealed)
	if !hmac.Equal(sum.Sum(nil), want) {
		return nil, fmt.Errorf("%s: the MAC is wrong: another key or password, or the file was changed", what)
	}
	return h.key.decrypt(x, what)
}

// decrypt opens AES-CBC with the padding of XML encryption (5.2): the last byte is the
// number of padding bytes.
func (k *cryptKey) decrypt(x encryptedXML, what string) ([]byte, error) {
	size, known := ciphers[strings.TrimSpace(x.Method.Algorithm)]
	if !known {
		return nil, fmt.Errorf("%s: want AES in CBC mode", what)
	}
	if size != len(k.key) {
		return nil, fmt.Errorf("%s is encrypted with a key of %d bytes, and the one given has %d", what, size, len(k.key))
	}
	sealed, err := decodeBase64(x.CipherValue, what)
	if err != nil {
		return nil, err
	}
	if len(sealed) < 2*aes.BlockSize || len(sealed)%aes.BlockSize != 0 {
		return nil, fmt.Errorf("%s: want an initialization vector and whole blocks", what)
	}
	block, err := aes.NewCipher(k.key)
	if err != nil {
		return nil, fmt.Errorf("%s: the key is refused", what)
	}
	plain := make([]byte, len(sealed)-aes.BlockSize)
	cipher.NewCBCDecrypter(block, sealed[:aes.BlockSize]).CryptBlocks(plain, sealed[aes.BlockSize:])
	padding := int(plain[len(plain)-1])
	if padding < 1 || padding > aes.BlockSize || padding >= len(plain) {
		clear(plain)
		return nil, fmt.Errorf("%s does not open: another key or password, or the file was changed", what)
	}
	return plain[:len(plain)-padding], nil
}
