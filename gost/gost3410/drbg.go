package gost3410

import (
	"crypto/sha512"
	"encoding"
	"hash"
)

// drbg is HMAC_DRBG of NIST SP 800-90A, section 10.1.2, on SHA-512. It lives for one
// signature, or one group of them, and serves one request, read in pieces: there
// is no reseeding and no update behind the output, and 256 draws of at most 64
// octets stay below the 2^16 octets a request may have.
//
// It does its own HMAC: with the states behind a key's two blocks at hand, a quarter
// of the hashing is spared, and everything secret is where wipe reaches it.
type drbg struct {
	sha          hash.Hash
	inner, outer state // of the current K
	v            [sha512.Size]byte
	left         int // octets at the end of v that are output not read yet

	// What update works on: here, because the hash is an interface, and what it is given
	// goes to the heap.
	key   [sha512.Size]byte
	block [sha512.BlockSize]byte
}

// state is that of SHA-512 after one whole block, as the standard library writes it.
type state [204]byte

// shaState is what the standard library's SHA-512 does besides hashing.
type shaState interface {
	encoding.BinaryAppender
	encoding.BinaryUnmarshaler
}

// The states of the key of zeros that every generator begins with.
var zeroInner, zeroOuter = func() (inner, outer state) {
	d := &drbg{sha: sha512.New()}
	d.setKey()
	return d.inner, d.outer
}()

// setKey sets the states to those of HMAC's two hashes behind the key, and clears it.
func (d *drbg) setKey() {
	d.padded(&d.inner, 0x36)
	d.padded(&d.outer, 0x5c)
	clear(d.key[:])
	clear(d.block[:])
}

// padded sets to to the state behind the key's block under one pad.
func (d *drbg) padded(to *state, pad byte) {
	for i := range d.block {
		d.block[i] = pad
	}
	for i, k := range d.key {
		d.block[i] ^= k
	}
	d.sha.Reset()
	d.sha.Write(d.block[:])
	b, err := d.sha.(shaState).AppendBinary(to[:0])
	if err != nil || len(b) != len(to) {
		panic("gost3410: the standard library writes a state of SHA-512 otherwise")
	}
}

// newDRBG instantiates the generator; the seed material is all arguments in a row.
func newDRBG(seed ...[]byte) *drbg {
	d := &drbg{sha: sha512.New(), inner: zeroInner, outer: zeroOuter}
	for i := range d.v {
		d.v[i] = 1
	}
	for round := range byte(2) { // HMAC_DRBG_Update
		d.resume(&d.inner)
		d.sha.Write(d.v[:])
		d.block[0] = round
		d.sha.Write(d.block[:1])
		for _, b := range seed {
			d.sha.Write(b)
		}
		d.finish(&d.key)
		d.setKey()
		d.next()
	}
	return d
}

// resume continues the hash from a state.
func (d *drbg) resume(s *state) {
	if err := d.sha.(shaState).UnmarshalBinary(s[:]); err != nil {
		panic("gost3410: the standard library refuses its own state of SHA-512: " + err.Error())
	}
}

// finish sets mac to the HMAC whose inner hash is in progress.
func (d *drbg) finish(mac *[sha512.Size]byte) {
	d.sha.Sum(mac[:0])
	d.resume(&d.outer)
	d.sha.Write(mac[:])
	d.sha.Sum(mac[:0])
}

// next sets V to its HMAC.
func (d *drbg) next() {
	d.resume(&d.inner)
	d.sha.Write(d.v[:])
	d.finish(&d.v)
}

// read fills b, 32 or 64 octets, with the next output.
func (d *drbg) read(b []byte) {
	if d.left < len(b) {
		d.next()
		d.left = len(d.v)
	}
	copy(b, d.v[len(d.v)-d.left:])
	d.left -= len(b)
}

// wipe overwrites K, V and what the hash remembers.
func (d *drbg) wipe() {
	d.resume(&zeroInner)
	clear(d.inner[:])
	clear(d.outer[:])
	clear(d.v[:])
}
