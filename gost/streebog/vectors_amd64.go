// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package streebog

import "encoding/binary"

// A vector is the content of one register: one byte for every byte of a block.
type vector [BlockSize]byte

// vectors holds the constants of block_amd64.s. makeVectors explains each of them. For
// speed, its address must be a multiple of 64. The language does not guarantee that,
// but the allocator does it for an object of this size.
//
// Streebog's L is a product with a matrix over the field of 256 elements with the
// polynomial x^8+x^6+x^5+x^4+1, in which the top bit of a byte is the constant term
// (Kazymyrov, Kazymyrova: Algebraic aspects of the Russian hash standard GOST R
// 34.11-2012, CTCrypt 2013). The processor multiplies in the field of AES. All fields
// of 256 elements are isomorphic. The isomorphism phi keeps sums, so the assembly
// computes the hash with phi applied to every byte. It only needs constants to which
// phi was applied too.
type vectors struct {
	sbox    [4]vector
	rows    [8]vector
	columns [8]vector
	keys    [12]vector
	first   vector
	beside  [2]vector
	turn    vector
	cross   vector
	phi     vector
	inverse vector
	count   vector
}

// The distances from which ROWS and COLUMNS of block_amd64.s take their terms. Direct
// terms are multiplied at their final place. Exchanged terms are moved by another 4
// places when the halves are exchanged at the end.
var (
	rowsDirect, rowsExchanged       = []int{0, 1, 2, 3, 6, 7}, []int{0, 1}
	columnsDirect, columnsExchanged = []int{0, 1, 2, 3, 4}, []int{1, 2, 3}
)

func makeVectors() *vectors {
	v := new(vectors)
	phi, inverse := isomorphism()
	factors := linearFactors(phi, inverse)

	// S on bytes under phi, a quarter of its values in each vector.
	for x, y := range pi {
		x := phi[x]
		v.sbox[x/64][x%64] = phi[y]
	}

	// Byte t is byte j of word i.
	for t := range BlockSize {
		i, j := t/8, t%8

		// Word i of x_b is word i^b of x. It contributes to word i of the result, or
		// to word i^4 if the halves are exchanged afterwards.
		for n, b := range rowsDirect {
			v.rows[n][t] = factors[i^b][i]
		}
		for n, b := range rowsExchanged {
			v.rows[len(rowsDirect)+n][t] = factors[i^b][i^4]
		}
		// The same for the bytes of a word.
		for n, b := range columnsDirect {
			v.columns[n][t] = factors[j^b][j]
		}
		for n, b := range columnsExchanged {
			v.columns[len(columnsDirect)+n][t] = factors[j^b][j^4]
		}

		// Indices for permutations: the place that byte t comes from.
		v.beside[0][t] = byte(t ^ 1) // VPSHUFB uses the low four bits and moves bytes
		v.beside[1][t] = byte(t ^ 3) // within sixteen bytes
		v.turn[t] = byte(8*j + i)
		v.cross[t] = byte(8*j + (i ^ 4))
	}

	// The constants C_1 to C_12 in the form in which they are added. ROWS takes them by
	// columns, before it exchanges the halves. COLUMNS takes them by rows.
	for n := range roundKeys {
		var key vector
		putWords((*[BlockSize]byte)(&key), &roundKeys[n])
		for t := range key {
			key[t] = phi[key[t]]
		}
		v.keys[n] = key
		if n%2 == 0 {
			v.keys[n] = key.permuted(&v.cross)
		}
		if n == 0 {
			v.first = key.permuted(&v.turn) // C_1 again, by columns
		}
	}

	for i := range 8 {
		binary.LittleEndian.PutUint64(v.phi[8*i:], affine(phi))
		binary.LittleEndian.PutUint64(v.inverse[8*i:], affine(inverse))
	}
	binary.LittleEndian.PutUint64(v.count[:], 8*BlockSize)
	return v
}

// permuted does what VPERMB does: byte t of the result is byte index[t] of v.
func (v *vector) permuted(index *vector) (r vector) {
	for t, from := range index {
		r[t] = v[from]
	}
	return r
}

// isomorphism returns phi, the map from Streebog's field to that of AES, and its
// inverse. phi maps the element x of Streebog's field to a root of Streebog's
// polynomial in the field of AES. This determines phi. Of the eight roots, it is the
// smallest.
func isomorphism() (phi, inverse *[256]byte) {
	polynomial := 1<<8 | 1<<6 | 1<<5 | 1<<4 | 1
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
		for k := range 8 { // bit 0 is the coefficient of x^7
			y = mulAES(y, root) ^ byte(x>>k&1)
		}
		phi[x] = y
		inverse[y] = byte(x)
	}
	return phi, inverse
}

// linearFactors returns the matrix of L in the field of AES: byte i of a word times
// factors[i][j] is its contribution to byte j of the result. A factor is the
// contribution of the element one.
func linearFactors(phi, inverse *[256]byte) (factors [8][8]byte) {
	one := inverse[1]
	for i := range factors {
		var word uint64
		for k := range 8 {
			if one>>k&1 == 1 {
				word ^= a[63-(8*i+k)]
			}
		}
		for j := range factors[i] {
			factors[i][j] = phi[byte(word>>(8*j))]
		}
	}
	return factors
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

// mulAES multiplies in the field of AES, modulo x^8+x^4+x^3+x+1. It takes variable
// time, so it is for constants only.
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
