// SPDX-License-Identifier: Apache-2.0

package mode

import (
	"crypto/cipher"
	"crypto/subtle"
	"errors"
	"fmt"
)

// ErrImport means that the authentication code of an exported key is wrong: one of the two
// keys or the initialization vector is wrong, or the exported key was changed.
var ErrImport = errors.New("mode: exported key does not authenticate: wrong keys, wrong initialization vector or changed bytes")

// KExp15 exports a key under two others (R 1323565.1.017-2018; RFC 9189,
// section 8.2.1). macKey and cipherKey must have 32 bytes and must be different keys. iv
// must have half a block and must not repeat under the same keys. key must not be empty. The
// result is the key and the OMAC of iv and key under macKey, both enciphered in the counter mode
// under cipherKey: len(key) bytes and a block.
func KExp15(newCipher func(key []byte) (cipher.Block, error), macKey, cipherKey, iv, key []byte) ([]byte, error) {
	if len(key) == 0 {
		return nil, errors.New("mode: the key to export has no bytes")
	}
	mac, gamma, err := export15(newCipher, macKey, cipherKey, iv)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(key)+mac.Size())
	out = append(out, key...)
	mac.Write(key)
	out = mac.Sum(out)
	gamma.XORKeyStream(out, out)
	return out, nil
}

// KImp15 is the inverse of KExp15. It returns the key, which the caller wipes, or ErrImport
// if the authentication code is wrong. It compares the code in constant time. Wrong lengths
// of the keys and of iv are other errors, and so is an exported key without any byte beside
// the code.
func KImp15(newCipher func(key []byte) (cipher.Block, error), macKey, cipherKey, iv, exported []byte) ([]byte, error) {
	mac, gamma, err := export15(newCipher, macKey, cipherKey, iv)
	if err != nil {
		return nil, err
	}
	n := len(exported) - mac.Size()
	if n <= 0 {
		return nil, fmt.Errorf("mode: exported key of %d bytes, want more than the %d of its code", len(exported), mac.Size())
	}
	plain := make([]byte, len(exported))
	gamma.XORKeyStream(plain, exported)
	mac.Write(plain[:n])
	if subtle.ConstantTimeCompare(mac.Sum(nil), plain[n:]) != 1 {
		clear(plain)
		return nil, ErrImport
	}
	clear(plain[n:])
	return plain[:n:n], nil
}

// export15 returns the code, which has read iv, and the gamma of both functions.
func export15(newCipher func(key []byte) (cipher.Block, error), macKey, cipherKey, iv []byte) (*omac, cipher.Stream, error) {
	if len(macKey) != 32 || len(cipherKey) != 32 {
		return nil, nil, fmt.Errorf("mode: keys of %d and %d bytes, want 32", len(macKey), len(cipherKey))
	}
	b, err := newCipher(cipherKey)
	if err != nil {
		return nil, nil, err
	}
	gamma, err := NewCTR(b, iv)
	if err != nil {
		return nil, nil, err
	}
	if b, err = newCipher(macKey); err != nil {
		return nil, nil, err
	}
	mac := newOMAC(b)
	mac.Write(iv)
	return mac, gamma, nil
}
