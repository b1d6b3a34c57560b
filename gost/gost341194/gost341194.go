// SPDX-License-Identifier: Apache-2.0

// Package gost341194 implements the hash function GOST R 34.11-94 (RFC 5831), which
// signatures of GOST R 34.10-2001 use.
//
// Begin with NewCryptoPro: RFC 4490 and all certificates use the CryptoPro parameter
// set. New takes another set. The package has no HMAC.
//
// A result is the byte string in the order of the stream, least significant byte
// first, as CMS carries it. RFC 5831 prints it in the opposite order.
//
// The implementation reads tables at indices that are bytes of the state, so an
// attacker who shares the processor's cache can learn these bytes. Use it for public
// data only: documents, attributes, certificates.
package gost341194

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"math/bits"

	"tamga/gost/gost28147"
)

const (
	// Size is the length of a result in bytes.
	Size = 32
	// BlockSize is the length of a block in bytes.
	BlockSize = 32
)

// state is the state of the step function: the chaining value h and the sum sigma of
// the blocks. Both are 256-bit numbers with the least significant word first.
type state struct {
	h, sigma [4]uint64
}

// digest is the hash.Hash. Its buffer holds less than a block, because each block is
// compressed as soon as it is complete.
type digest struct {
	state
	sbox   *gost28147.SBox
	length uint64 // bytes written
	buf    [BlockSize]byte
}

// New returns a hash with the given parameter set and a result of Size bytes. It also
// implements encoding.BinaryMarshaler, BinaryAppender, BinaryUnmarshaler and
// hash.Cloner. Messages may have up to 2^64 - 1 bytes.
//
// Implementations differ for the empty message. In the published values and in this
// package, it has no block. gost-engine hashes a block of zeros.
func New(s *gost28147.SBox) hash.Hash { return &digest{sbox: s} }

// NewCryptoPro returns a hash with id-GostR3411-94-CryptoProParamSet. Certificates and
// CMS use this set with the OID 1.2.643.2.2.9 (RFC 4357, RFC 4490).
func NewCryptoPro() hash.Hash { return New(gost28147.SBoxCryptoPro) }

// NewTest returns a hash with id-GostR3411-94-TestParamSet, the set of the examples of
// RFC 5831. Use it in tests only.
func NewTest() hash.Hash { return New(gost28147.SBoxTest) }

// Size returns Size.
func (d *digest) Size() int { return Size }

// BlockSize returns BlockSize.
func (d *digest) BlockSize() int { return BlockSize }

// Reset puts the hash into the state that New returned.
func (d *digest) Reset() { *d = digest{sbox: d.sbox} }

// used returns the number of bytes in the buffer, 0 to 31.
func (d *digest) used() int { return int(d.length % BlockSize) }

// Write hashes p. It never fails.
func (d *digest) Write(p []byte) (int, error) {
	n := len(p)
	used := d.used()
	d.length += uint64(n)
	t := d.sbox.PublicTable()
	if used > 0 {
		c := copy(d.buf[used:], p)
		p = p[c:]
		if used+c < BlockSize {
			return n, nil
		}
		blocks(&d.state, t, d.buf[:])
	}
	if whole := len(p) &^ (BlockSize - 1); whole > 0 {
		blocks(&d.state, t, p[:whole])
		p = p[whole:]
	}
	d.buf = [BlockSize]byte{}
	copy(d.buf[:], p)
	return n, nil
}

// Sum appends the hash of the data written so far to b. It does not change the hash.
func (d *digest) Sum(b []byte) []byte {
	s := d.state
	t := d.sbox.PublicTable()
	if d.used() > 0 {
		blocks(&s, t, d.buf[:])
	}
	hi, lo := bits.Mul64(d.length, 8)
	length, sigma := [4]uint64{lo, hi}, s.sigma
	step(&s.h, &length, t)
	step(&s.h, &sigma, t)
	for _, w := range s.h {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// Clone returns an independent copy of the hash. Its error is always nil.
func (d *digest) Clone() (hash.Cloner, error) {
	c := *d
	return &c, nil
}

// The marshaled form is: magic, the number of bytes written, the chaining value,
// the sum, the buffer padded with zeros, and the name of the parameter set. Numbers
// are little-endian. The last byte of magic is the version.
const (
	magic     = "g94\x01"
	fixedSize = len(magic) + 8 + 2*32 + BlockSize
)

// MarshalBinary returns the running state. It never fails.
func (d *digest) MarshalBinary() ([]byte, error) {
	return d.AppendBinary(make([]byte, 0, fixedSize+len(d.sbox.Name())))
}

// AppendBinary appends the running state to b. It never fails.
func (d *digest) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint64(b, d.length)
	for _, words := range []*[4]uint64{&d.h, &d.sigma} {
		for _, w := range words {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
	}
	b = append(b, d.buf[:]...)
	return append(b, d.sbox.Name()...), nil
}

// UnmarshalBinary puts the hash into a state that MarshalBinary returned. It returns
// an error, and does not change the hash, for a state of another version or parameter
// set and for a state that no message can have, as far as it can detect that.
func (d *digest) UnmarshalBinary(b []byte) error {
	if want := fixedSize + len(d.sbox.Name()); len(b) != want {
		return fmt.Errorf("gost341194: state of %d bytes, want %d", len(b), want)
	}
	if string(b[:len(magic)]) != magic {
		return errors.New("gost341194: state is of another hash or version")
	}
	if string(b[fixedSize:]) != d.sbox.Name() {
		return fmt.Errorf("gost341194: state is of another parameter set, want %s", d.sbox.Name())
	}
	b = b[len(magic):fixedSize]
	n := digest{sbox: d.sbox, length: binary.LittleEndian.Uint64(b)}
	b = b[8:]
	for _, words := range []*[4]uint64{&n.h, &n.sigma} {
		for i := range words {
			words[i] = binary.LittleEndian.Uint64(b)
			b = b[8:]
		}
	}
	copy(n.buf[:n.used()], b)
	if !bytes.Equal(n.buf[:], b) {
		return errors.New("gost341194: state with bytes after the buffered ones, want zeros")
	}
	if n.length < BlockSize && n.state != (state{}) {
		return errors.New("gost341194: state before the first block has a chaining value or sum, want zeros")
	}
	*d = n
	return nil
}
