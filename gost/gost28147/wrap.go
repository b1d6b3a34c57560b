// SPDX-License-Identifier: Apache-2.0

package gost28147

import (
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	// UKMSize is the length in bytes of the user keying material of a key wrap.
	UKMSize = 8
	// wrapMACSize is the length in bytes of the authentication code in a wrapped key.
	wrapMACSize = 4
)

// ErrUnwrap means that the authentication code of a wrapped key is wrong: the key or
// the parameter set is wrong, or the wrapped key was changed.
var ErrUnwrap = errors.New("gost28147: wrapped key does not authenticate: wrong key, wrong parameter set or changed bytes")

// Wrap wraps the key cek under the key kek (RFC 4357, section 6.1). kek must have
// KeySize bytes. The user keying material ukm must have UKMSize bytes and must not
// repeat under the same kek. cek must have 32 bytes, or 64 if it is a private key of
// 512 bits (R 50.1.113-2016, KExp, with a kek from its KDF). Other lengths and a nil
// set are errors. The result is ukm, the enciphered key and an authentication code of
// 4 bytes, in this order.
func Wrap(kek, ukm, cek []byte, s *SBox) ([]byte, error) {
	b, err := newBlock(kek, s)
	if err != nil {
		return nil, err
	}
	if err := checkUKM(ukm); err != nil {
		return nil, err
	}
	if !isCEKSize(len(cek)) {
		return nil, fmt.Errorf("gost28147: key to wrap of %d bytes, want 32 or 64", len(cek))
	}
	mac, err := MAC(kek, ukm, cek, s)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, UKMSize+len(cek)+wrapMACSize)
	out = append(out, ukm...)
	for i := 0; i < len(cek); i += BlockSize {
		out = binary.LittleEndian.AppendUint64(out, b.encrypt(binary.LittleEndian.Uint64(cek[i:])))
	}
	return append(out, mac[:wrapMACSize]...), nil
}

// Unwrap is the inverse of Wrap (RFC 4357, section 6.2). It returns the unwrapped key,
// or ErrUnwrap if the authentication code is wrong.
func Unwrap(kek, wrapped []byte, s *SBox) ([]byte, error) {
	b, err := newBlock(kek, s)
	if err != nil {
		return nil, err
	}
	n := len(wrapped) - UKMSize - wrapMACSize
	if !isCEKSize(n) {
		return nil, fmt.Errorf("gost28147: wrapped key of %d bytes, want 44 or 76", len(wrapped))
	}
	ukm, sealed, code := wrapped[:UKMSize], wrapped[UKMSize:UKMSize+n], wrapped[UKMSize+n:]
	cek := make([]byte, 0, n)
	for i := 0; i < n; i += BlockSize {
		cek = binary.LittleEndian.AppendUint64(cek, b.decrypt(binary.LittleEndian.Uint64(sealed[i:])))
	}
	mac, err := MAC(kek, ukm, cek, s)
	if err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare(mac[:wrapMACSize], code) != 1 {
		clear(cek)
		return nil, ErrUnwrap
	}
	return cek, nil
}

// WrapCryptoPro wraps cek as Wrap does, but under a key derived from kek and ukm (RFC
// 4357, section 6.3).
func WrapCryptoPro(kek, ukm, cek []byte, s *SBox) ([]byte, error) {
	k, err := diversify(kek, ukm, s)
	if err != nil {
		return nil, err
	}
	defer clear(k)
	return Wrap(k, ukm, cek, s)
}

// UnwrapCryptoPro is the inverse of WrapCryptoPro (RFC 4357, section 6.4). It returns
// the unwrapped key, or ErrUnwrap if the authentication code is wrong.
func UnwrapCryptoPro(kek, wrapped []byte, s *SBox) ([]byte, error) {
	k, err := diversify(kek, wrapped[:min(UKMSize, len(wrapped))], s)
	if err != nil {
		return nil, err
	}
	defer clear(k)
	return Unwrap(k, wrapped, s)
}

// diversify is the key derivation of RFC 4357, section 6.5. For each byte of ukm, the
// key enciphers itself. The vector consists of two sums of the words of the key: of
// the words whose bit in the byte is 1, and of the others.
func diversify(kek, ukm []byte, s *SBox) ([]byte, error) {
	if err := checkUKM(ukm); err != nil {
		return nil, err
	}
	k := append([]byte{}, kek...)
	for _, number := range ukm {
		b, err := newBlock(k, s)
		if err != nil {
			return nil, err
		}
		var sums [2]uint32 // of the words whose bit is 1, and of the others
		for j, word := range b.k {
			sums[number>>j&1^1] += word // ukm is public
		}
		iv := binary.LittleEndian.AppendUint32(nil, sums[0])
		iv = binary.LittleEndian.AppendUint32(iv, sums[1])
		c, err := NewCFBEncrypter(k, iv, s, NoMeshing)
		if err != nil {
			return nil, err
		}
		c.XORKeyStream(k, k)
	}
	return k, nil
}

func checkUKM(ukm []byte) error {
	if len(ukm) != UKMSize {
		return fmt.Errorf("gost28147: user keying material of %d bytes, want %d", len(ukm), UKMSize)
	}
	return nil
}

// isCEKSize reports whether n is the length of a symmetric key or of a private key of
// 256 or 512 bits.
func isCEKSize(n int) bool { return n == 32 || n == 64 }
