package gost3410

import (
	"crypto/hmac"
	"crypto/sha512"
	"hash"
)

// drbg is HMAC_DRBG of NIST SP 800-90A, section 10.1.2, on SHA-512. It lives for one
// signature and serves one request, read in pieces: there is no reseeding and no
// update behind the output, and 256 draws of at most 64 octets stay below the 2^16
// octets a request may have.
type drbg struct {
	mac   hash.Hash // HMAC under the current K
	fresh bool      // mac has nothing to forget; resetting it would cost two blocks
	v     [sha512.Size]byte
	left  int // octets at the end of v that are output not read yet
}

// newDRBG instantiates the generator; the seed material is all arguments in a row.
func newDRBG(seed ...[]byte) *drbg {
	d := new(drbg)
	d.rekey(d.v[:])
	for i := range d.v {
		d.v[i] = 1
	}
	d.update(seed...)
	return d
}

// update is HMAC_DRBG_Update with data.
func (d *drbg) update(data ...[]byte) {
	var key [sha512.Size]byte
	for round := range byte(2) {
		d.begin()
		d.mac.Write([]byte{round})
		for _, b := range data {
			d.mac.Write(b)
		}
		d.mac.Sum(key[:0])
		d.rekey(key[:])
		d.next()
	}
	clear(key[:])
}

func (d *drbg) rekey(key []byte) {
	d.mac, d.fresh = hmac.New(sha512.New, key), true
}

// begin begins an HMAC with V.
func (d *drbg) begin() {
	if !d.fresh {
		d.mac.Reset()
	}
	d.fresh = false
	d.mac.Write(d.v[:])
}

// next sets V to its HMAC.
func (d *drbg) next() {
	d.begin()
	d.mac.Sum(d.v[:0])
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

// wipe overwrites V, which is the last output. The HMAC's key is out of reach.
func (d *drbg) wipe() { clear(d.v[:]) }
