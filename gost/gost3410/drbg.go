// SPDX-License-Identifier: Apache-2.0

package gost3410

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding"
	"encoding/binary"
	"hash"
	"sync"
)

// drbg is HMAC_DRBG of NIST SP 800-90A, section 10.1.2, with SHA-256. Each generator
// serves one signature or one group of signatures, as a single request whose output
// is read in pieces. So it has no reseeding and no update after the output. A request
// may have up to 2^16 bytes; 256 draws of at most 64 bytes do not exceed that.
//
// It computes HMAC itself and keeps the hash states after the two key blocks. That
// saves a quarter of the hashing, and wipe reaches every secret. It also pads what is
// one block with its padding, and reads the hash from the state, which takes less time
// than Sum.
type drbg struct {
	sha          hash.Hash
	inner, outer state // of the current K
	v            [sha256.Size]byte
	output       [2 * sha256.Size]byte // the result of the last read

	// The inputs of the hash. As local variables they would escape to the heap with
	// every signature, and wipe would not reach them.
	key   [sha256.Size]byte
	block [sha256.BlockSize]byte
	round [1]byte
	last  state // after the last block
}

// drbgs holds wiped generators for reuse.
var drbgs = sync.Pool{New: func() any { return &drbg{sha: sha256.New()} }}

// state is the state of SHA-256 after one whole block, in the standard library's
// marshaled form.
type state [108]byte

// The place of the hash in a state, behind the name of the form.
const hashFrom, hashTo = 4, 4 + sha256.Size

// shaState is what the standard library's SHA-256 implements besides hash.Hash.
type shaState interface {
	encoding.BinaryAppender
	encoding.BinaryUnmarshaler
}

// The states for the key of zeros, with which every generator begins.
var zeroInner, zeroOuter = func() (inner, outer state) {
	d := &drbg{sha: sha256.New()}
	d.rekey()
	return d.inner, d.outer
}()

// rekey sets the states of HMAC's two hashes after the blocks of the key K.
func (d *drbg) rekey() {
	for i := range d.block {
		d.block[i] = 0x36
	}
	subtle.XORBytes(d.block[:], d.block[:], d.key[:])
	d.stateOf(&d.inner)
	for i := range d.block {
		d.block[i] ^= 0x36 ^ 0x5c
	}
	d.stateOf(&d.outer)
}

// stateOf sets s to the state of the hash after d.block.
func (d *drbg) stateOf(s *state) {
	d.sha.Reset()
	d.take(s)
}

// take hashes d.block and sets s to the state after it.
func (d *drbg) take(s *state) {
	d.sha.Write(d.block[:])
	b, err := d.sha.(shaState).AppendBinary(s[:0])
	if err != nil || len(b) != len(s) {
		panic("gost3410: the standard library marshals SHA-256 in an unknown form")
	}
}

// newDRBG returns a generator instantiated with the seed. The caller wipes it and must
// not use it after that.
func newDRBG(seed []byte) *drbg {
	d := drbgs.Get().(*drbg)
	d.inner, d.outer = zeroInner, zeroOuter
	for i := range d.v {
		d.v[i] = 1
	}
	for round := range byte(2) { // HMAC_DRBG_Update
		d.resume(&d.inner)
		d.sha.Write(d.v[:])
		d.round[0] = round
		d.sha.Write(d.round[:])
		d.sha.Write(seed)
		d.finish(&d.key)
		d.rekey()
		d.next()
	}
	return d
}

// resume continues the hash from a state.
func (d *drbg) resume(s *state) {
	if err := d.sha.(shaState).UnmarshalBinary(s[:]); err != nil {
		panic("gost3410: the standard library does not accept its own SHA-256 state: " + err.Error())
	}
}

// finish completes the HMAC whose inner hash is in progress and sets mac to it.
func (d *drbg) finish(mac *[sha256.Size]byte) {
	d.sha.Sum(mac[:0])
	d.after(&d.outer, mac)
}

// after sets x to the hash of a block, after which the state is s, and x.
func (d *drbg) after(s *state, x *[sha256.Size]byte) {
	d.resume(s)
	n := copy(d.block[:], x[:])
	d.block[n] = 0x80
	clear(d.block[n+1:])
	binary.BigEndian.PutUint64(d.block[sha256.BlockSize-8:], 8*(sha256.BlockSize+sha256.Size))
	d.take(&d.last)
	copy(x[:], d.last[hashFrom:hashTo])
}

// next sets V to HMAC(K, V).
func (d *drbg) next() {
	d.after(&d.inner, &d.v)
	d.after(&d.outer, &d.v)
}

// read returns the next n bytes of output, n = 32 or 64. They are valid until the next
// call.
func (d *drbg) read(n int) []byte {
	for i := 0; i < n; i += len(d.v) {
		d.next()
		copy(d.output[i:], d.v[:])
	}
	return d.output[:n]
}

// wipe overwrites K, V and the state of the hash, and puts the generator back into
// the pool.
func (d *drbg) wipe() {
	d.resume(&zeroInner)
	*d = drbg{sha: d.sha}
	drbgs.Put(d)
}
