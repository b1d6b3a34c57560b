// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package point

// lanes is the number of 64-bit lanes of an AVX-512 vector.
const lanes = 8

// 2^256 or 2^512 modulo a prime. Numbers in lanes modulo P256B and P512B are below 2^256
// and 2^512.
const (
	aboveP256A = 617
	aboveP256B = 0
	aboveP512A = 569
	aboveP512B = 0
)

const mask52 = 1<<52 - 1

// split52 sets limbs of 52 bits to the number in x, which has limbs of 64 bits.
func split52(limbs, x []uint64) {
	for i := range limbs {
		word, shift := 52*i/64, uint(52*i%64)
		limbs[i] = x[word] >> shift
		if word+1 < len(x) {
			limbs[i] |= x[word+1] << (64 - shift) // adds nothing if shift is 0
		}
		limbs[i] &= mask52
	}
}

// join52 sets x to the number in limbs of 52 bits, which must fit into x.
func join52(x, limbs []uint64) {
	clear(x)
	for i, limb := range limbs {
		word, shift := 52*i/64, uint(52*i%64)
		x[word] |= limb << shift
		if word+1 < len(x) {
			x[word+1] |= limb >> (64 - shift)
		}
	}
}
