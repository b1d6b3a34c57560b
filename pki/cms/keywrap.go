// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"crypto/aes"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"hash"
)

// wrapIV is the initial value of RFC 3394, section 2.2.3.1.
const wrapIV = 0xa6a6a6a6a6a6a6a6

// wrapAES wraps a key of a multiple of 8 bytes (RFC 3394, section 2.2.1).
func wrapAES(kek, key []byte) ([]byte, error) {
	b, err := aes.NewCipher(kek)
	if err != nil {
		return nil, err
	}
	if len(key) < 16 || len(key)%8 != 0 {
		return nil, errors.New("cms: AES wraps keys of 16, 24, 32, ... bytes only")
	}
	n := len(key) / 8
	out := make([]byte, 8+len(key))
	copy(out[8:], key)
	var block [16]byte
	a := uint64(wrapIV)
	for t := 1; t <= 6*n; t++ {
		r := out[8*((t-1)%n+1):][:8]
		binary.BigEndian.PutUint64(block[:], a)
		copy(block[8:], r)
		b.Encrypt(block[:], block[:])
		a = binary.BigEndian.Uint64(block[:]) ^ uint64(t)
		copy(r, block[8:])
	}
	binary.BigEndian.PutUint64(out, a)
	return out, nil
}

// unwrapAES is the inverse of wrapAES (RFC 3394, section 2.2.2). It returns ErrDecrypt if the initial
// value is wrong or the key has not size bytes.
func unwrapAES(kek, wrapped []byte, size int) ([]byte, error) {
	b, err := aes.NewCipher(kek)
	if err != nil {
		return nil, err
	}
	if len(wrapped) != size+8 {
		return nil, ErrDecrypt
	}
	n := size / 8
	key := append([]byte{}, wrapped[8:]...)
	var block [16]byte
	a := binary.BigEndian.Uint64(wrapped)
	for t := 6 * n; t > 0; t-- {
		r := key[8*((t-1)%n):][:8]
		binary.BigEndian.PutUint64(block[:], a^uint64(t))
		copy(block[8:], r)
		b.Decrypt(block[:], block[:])
		a = binary.BigEndian.Uint64(block[:])
		copy(r, block[8:])
	}
	var got, want [8]byte
	binary.BigEndian.PutUint64(got[:], a)
	binary.BigEndian.PutUint64(want[:], wrapIV)
	if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
		clear(key)
		return nil, ErrDecrypt
	}
	return key, nil
}

// deriveX963 is the key derivation of ANSI X9.63 (SEC 1, section 3.6.1).
func deriveX963(new func() hash.Hash, secret, info []byte, length int) []byte {
	var out []byte
	for i := uint32(1); len(out) < length; i++ {
		h := new()
		h.Write(secret)
		h.Write(binary.BigEndian.AppendUint32(nil, i))
		h.Write(info)
		out = h.Sum(out)
	}
	clear(out[length:])
	return out[:length:length]
}
