package gost3410

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding"
	"hash"
	"sync"
)

// drbg is HMAC_DRBG of NIST SP 800-90A, section 10.1.2, on SHA-256. It lives for one
// signature, or one group of them, and serves one request, read in pieces: there
// is no reseeding and no update behind the output, and 256 draws of at most 64
// octets stay below the 2^16 octets a request may have.
//
// It does its own HMAC: with the states behind a key's two blocks at hand, a quarter
// of the hashing is spared, and everything secret is where wipe reaches it.
type drbg struct {
	sha          hash.Hash
	inner, outer state // of the current K
	v            [sha256.Size]byte
	output       [2 * sha256.Size]byte // what was read last

	// What the hash is handed lives here: elsewhere it would move to the heap with
	// every signature, where wipe does not reach it.
	key   [sha256.Size]byte
	block [sha256.BlockSize]byte
	round [1]byte
}

// drbgs are generators that were wiped.
var drbgs = sync.Pool{New: func() any { return &drbg{sha: sha256.New()} }}

// state is that of SHA-256 after one whole block, as the standard library writes it.
type state [108]byte

// shaState is what the standard library's SHA-256 does besides hashing.
type shaState interface {
	encoding.BinaryAppender
	encoding.BinaryUnmarshaler
}

// The states of the key of zeros that every generator begins with.
var zeroInner, zeroOuter = func() (inner, outer state) {
	d := &drbg{sha: sha256.New()}
	d.rekey()
	return d.inner, d.outer
}()

// rekey makes K the key: it sets the states of HMAC's two hashes behind it.
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

// stateOf sets s to the state of the hash behind the block.
func (d *drbg) stateOf(s *state) {
	d.sha.Reset()
	d.sha.Write(d.block[:])
	b, err := d.sha.(shaState).AppendBinary(s[:0])
	if err != nil || len(b) != len(s) {
		panic("gost3410: the standard library writes a state of SHA-256 otherwise")
	}
}

// newDRBG instantiates the generator. The caller wipes it, after which it belongs to
// others.
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
		panic("gost3410: the standard library refuses its own state of SHA-256: " + err.Error())
	}
}

// finish sets mac to the HMAC whose inner hash is in progress.
func (d *drbg) finish(mac *[sha256.Size]byte) {
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

// read returns the next n octets of output, 32 or 64, good until the next call.
func (d *drbg) read(n int) []byte {
	for i := 0; i < n; i += len(d.v) {
		d.next()
		copy(d.output[i:], d.v[:])
	}
	return d.output[:n]
}

// wipe overwrites K, V and what the hash remembers.
func (d *drbg) wipe() {
	d.resume(&zeroInner)
	*d = drbg{sha: d.sha}
	drbgs.Put(d)
}
