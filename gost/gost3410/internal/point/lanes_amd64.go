// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package point

import "tamga/gost/gost3410/internal/field"

// lanes is the number of 64-bit lanes of an AVX-512 vector.
const lanes = 8

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

// The functions toLane return the number that represents x in a lane. The functions
// fromLane do the reverse for the number x + 2^256*top, or x + 2^512*top.

func toLaneP256A(x *field.P256A) [4]uint64 { return x.Limbs() }

func fromLaneP256A(x field.P256A, top uint64) field.P256A {
	var above field.P256A
	above.SetSmall(617 * top) // 2^256 is 617 modulo the prime
	x.Add(&x, &above)
	return x
}

func toLaneP256B(x *field.P256B) [4]uint64 { return x.Limbs() }

// fromLaneP256B is for a number below 2^256, so top is 0.
func fromLaneP256B(x field.P256B, _ uint64) field.P256B { return x }

// toLaneP256C returns 2^260*x. The limbs of a field.P256C are those of 2^256*x.
func toLaneP256C(x *field.P256C) [4]uint64 {
	z := *x
	for range 4 {
		z.Add(&z, &z)
	}
	return z
}

func fromLaneP256C(x field.P256C, top uint64) field.P256C {
	sixteenth := field.P256C{3: 1 << 60} // limbs of 2^252, so this is 1/16
	var above field.P256C
	above.SetSmall(top) // its limbs are those of 2^256*top
	above.Mul(&above, &sixteenth)
	x.Mul(&x, &sixteenth) // also reduces x below the prime
	x.Add(&x, &above)
	return x
}

func toLaneP512A(x *field.P512A) [8]uint64 { return x.Limbs() }

func fromLaneP512A(x field.P512A, top uint64) field.P512A {
	var above field.P512A
	above.SetSmall(569 * top) // 2^512 is 569 modulo the prime
	x.Add(&x, &above)
	return x
}

func toLaneP512B(x *field.P512B) [8]uint64 { return x.Limbs() }

// fromLaneP512B is for a number below 2^512, so top is 0.
func fromLaneP512B(x field.P512B, _ uint64) field.P512B { return x }
