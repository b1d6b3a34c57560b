// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package kuznyechik

import "encoding/binary"

// A vector is the content of one register, four blocks.
type vector [groupSize]byte

// vectors holds the constants of block_amd64.s. makeVectors explains each of them.
//
// The processor multiplies in the field of AES, with the polynomial x^8+x^4+x^3+x+1.
// The cipher multiplies in the field with the polynomial x^8+x^7+x^6+x+1. All fields
// of 256 elements are isomorphic. The isomorphism phi keeps sums, so the assembly
// computes the cipher with phi applied to every byte. It only needs constants and keys
// to which phi was applied too.
type vectors struct {
	sbox     [4]vector
	factors  [16]vector
	beside   [2]vector
	phi      vector
	inverse  vector
	schedule [32]vector
}

func makeVectors() *vectors {
	v := new(vectors)
	phi, inverse := isomorphism()

	// S on bytes under phi, a quarter of its values in each vector.
	for quarter := range v.sbox {
		var group [groupSize]byte
		for t := range group {
			group[t] = inverse[groupSize*quarter+t]
		}
		var x planes
		x.pack(&group)
		substitute(&x)
		x.unpack(&group)
		v.sbox[quarter] = renamed(phi, &group)
	}

	// L: the factor of byte j for byte i is byte i of the image of the unit block of
	// byte j.
	var l matrix
	for j := range BlockSize {
		var unit [BlockSize]byte
		unit[j] = 1
		var x planes
		x.spread(&unit)
		x.multiply(forwards)
		var column [groupSize]byte
		x.unpack(&column)
		for i := range BlockSize {
			l[i][j] = phi[column[i]]
		}
	}
	for t := range groupSize {
		// factors[a+b] is for the byte that comes from place i^b to place i and then
		// goes on to place i^a. a is a multiple of 4 and b less than 4.
		i := t % BlockSize
		for n := range v.factors {
			a, b := n&^3, n&3
			v.factors[n][t] = l[i^a][i^b]
		}
		// Indices for VPSHUFB, which moves bytes within sixteen bytes.
		v.beside[0][t] = byte(i ^ 1)
		v.beside[1][t] = byte(i ^ 3)
	}

	for i := range v.schedule {
		x := scheduleConstants[i]
		var group [groupSize]byte
		x.unpack(&group)
		v.schedule[i] = renamed(phi, &group)
	}
	for i := 0; i < groupSize; i += 8 {
		binary.LittleEndian.PutUint64(v.phi[i:], affine(phi))
		binary.LittleEndian.PutUint64(v.inverse[i:], affine(inverse))
	}
	return v
}

// renamed returns the bytes with phi applied to each.
func renamed(phi *[256]byte, group *[groupSize]byte) (v vector) {
	for t, x := range group {
		v[t] = phi[x]
	}
	return v
}

// isomorphism returns phi, the map from the cipher's field to that of AES, and its
// inverse. phi maps the element x of the cipher's field to a root of the cipher's
// polynomial in the field of AES. This determines phi. Of the eight roots, it is the
// smallest.
func isomorphism() (phi, inverse *[256]byte) {
	polynomial := 1<<8 | 1<<7 | 1<<6 | 1<<1 | 1
	var root byte
	for value := byte(1); value != 0; {
		root++
		value = 0
		for k := 8; k >= 0; k-- { // Horner's rule
			value = mulAES(value, root) ^ byte(polynomial>>k&1)
		}
	}
	phi, inverse = new([256]byte), new([256]byte)
	for x := range 256 {
		var y byte
		for k := 7; k >= 0; k-- {
			y = mulAES(y, root) ^ byte(x>>k&1)
		}
		phi[x] = y
		inverse[y] = byte(x)
	}
	return phi, inverse
}

// affine returns a linear map of bytes as the matrix that VGF2P8AFFINEQB takes: byte
// 7-i is the row that gives bit i of the result.
func affine(f *[256]byte) (matrix uint64) {
	for i := range 8 {
		for k := range 8 {
			bit := f[1<<k] >> i & 1
			matrix |= uint64(bit) << (8*(7-i) + k)
		}
	}
	return matrix
}

// mulAES multiplies in the field of AES. It takes variable time, so it is for
// constants only.
func mulAES(a, b byte) (p byte) {
	for ; b > 0; b >>= 1 {
		if b&1 == 1 {
			p ^= a
		}
		high := a >> 7
		a = a<<1 ^ high*0x1b
	}
	return p
}
