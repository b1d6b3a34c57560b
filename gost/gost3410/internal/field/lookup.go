// SPDX-License-Identifier: Apache-2.0

package field

// A table is read eight entries at a time, with a mask for each of them: all ones for
// the entry at the index, else 0. The masks stay in registers for all limbs and are
// computed once for all tables that are read with the same index.

// masks sets the masks of eight entries. x is the index xor the number of the first of
// these entries, which is a multiple of eight.
func masks(m *[8]uint64, x uint64) {
	m[0] = equal(x, 0)
	m[1] = equal(x, 1)
	m[2] = equal(x, 2)
	m[3] = equal(x, 3)
	m[4] = equal(x, 4)
	m[5] = equal(x, 5)
	m[6] = equal(x, 6)
	m[7] = equal(x, 7)
}

// last returns the entries of a table from first on, fewer than eight, padded with
// zeros.
func last[E ~[4]uint64 | ~[8]uint64](table []E, first int) (e [8]E) {
	copy(e[:], table[first:])
	return e
}

// pick4 ors the entry whose mask is all ones into z.
func pick4[E ~[4]uint64](z *[4]uint64, e *[8]E, m *[8]uint64) {
	m0, m1, m2, m3, m4, m5, m6, m7 := m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7]
	z[0] |= m0&e[0][0] | m1&e[1][0] | m2&e[2][0] | m3&e[3][0] | m4&e[4][0] | m5&e[5][0] | m6&e[6][0] | m7&e[7][0]
	z[1] |= m0&e[0][1] | m1&e[1][1] | m2&e[2][1] | m3&e[3][1] | m4&e[4][1] | m5&e[5][1] | m6&e[6][1] | m7&e[7][1]
	z[2] |= m0&e[0][2] | m1&e[1][2] | m2&e[2][2] | m3&e[3][2] | m4&e[4][2] | m5&e[5][2] | m6&e[6][2] | m7&e[7][2]
	z[3] |= m0&e[0][3] | m1&e[1][3] | m2&e[2][3] | m3&e[3][3] | m4&e[4][3] | m5&e[5][3] | m6&e[6][3] | m7&e[7][3]
}

// pick8 is pick4 for eight limbs.
func pick8[E ~[8]uint64](z *[8]uint64, e *[8]E, m *[8]uint64) {
	m0, m1, m2, m3, m4, m5, m6, m7 := m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7]
	z[0] |= m0&e[0][0] | m1&e[1][0] | m2&e[2][0] | m3&e[3][0] | m4&e[4][0] | m5&e[5][0] | m6&e[6][0] | m7&e[7][0]
	z[1] |= m0&e[0][1] | m1&e[1][1] | m2&e[2][1] | m3&e[3][1] | m4&e[4][1] | m5&e[5][1] | m6&e[6][1] | m7&e[7][1]
	z[2] |= m0&e[0][2] | m1&e[1][2] | m2&e[2][2] | m3&e[3][2] | m4&e[4][2] | m5&e[5][2] | m6&e[6][2] | m7&e[7][2]
	z[3] |= m0&e[0][3] | m1&e[1][3] | m2&e[2][3] | m3&e[3][3] | m4&e[4][3] | m5&e[5][3] | m6&e[6][3] | m7&e[7][3]
	z[4] |= m0&e[0][4] | m1&e[1][4] | m2&e[2][4] | m3&e[3][4] | m4&e[4][4] | m5&e[5][4] | m6&e[6][4] | m7&e[7][4]
	z[5] |= m0&e[0][5] | m1&e[1][5] | m2&e[2][5] | m3&e[3][5] | m4&e[4][5] | m5&e[5][5] | m6&e[6][5] | m7&e[7][5]
	z[6] |= m0&e[0][6] | m1&e[1][6] | m2&e[2][6] | m3&e[3][6] | m4&e[4][6] | m5&e[5][6] | m6&e[6][6] | m7&e[7][6]
	z[7] |= m0&e[0][7] | m1&e[1][7] | m2&e[2][7] | m3&e[3][7] | m4&e[4][7] | m5&e[5][7] | m6&e[6][7] | m7&e[7][7]
}

// lookup4 sets z = table[index], reading every entry.
func lookup4[E ~[4]uint64](z *E, table []E, index uint64) {
	var r [4]uint64
	var m [8]uint64
	j := 0
	for ; j+8 <= len(table); j += 8 {
		masks(&m, index^uint64(j))
		pick4(&r, (*[8]E)(table[j:]), &m)
	}
	if j < len(table) {
		masks(&m, index^uint64(j))
		e := last(table, j)
		pick4(&r, &e, &m)
	}
	*z = r
}

// lookupPair4 is lookup4 for two tables of the same length.
func lookupPair4[E ~[4]uint64](x, y *E, tx, ty []E, index uint64) {
	var rx, ry [4]uint64
	var m [8]uint64
	j := 0
	for ; j+8 <= len(tx); j += 8 {
		masks(&m, index^uint64(j))
		pick4(&rx, (*[8]E)(tx[j:]), &m)
		pick4(&ry, (*[8]E)(ty[j:]), &m)
	}
	if j < len(tx) {
		masks(&m, index^uint64(j))
		e := last(tx, j)
		pick4(&rx, &e, &m)
		e = last(ty, j)
		pick4(&ry, &e, &m)
	}
	*x, *y = rx, ry
}

// lookupTriple4 is lookup4 for three tables of the same length.
func lookupTriple4[E ~[4]uint64](x, y, z *E, tx, ty, tz []E, index uint64) {
	var rx, ry, rz [4]uint64
	var m [8]uint64
	j := 0
	for ; j+8 <= len(tx); j += 8 {
		masks(&m, index^uint64(j))
		pick4(&rx, (*[8]E)(tx[j:]), &m)
		pick4(&ry, (*[8]E)(ty[j:]), &m)
		pick4(&rz, (*[8]E)(tz[j:]), &m)
	}
	if j < len(tx) {
		masks(&m, index^uint64(j))
		e := last(tx, j)
		pick4(&rx, &e, &m)
		e = last(ty, j)
		pick4(&ry, &e, &m)
		e = last(tz, j)
		pick4(&rz, &e, &m)
	}
	*x, *y, *z = rx, ry, rz
}

// lookup8 sets z = table[index], reading every entry.
func lookup8[E ~[8]uint64](z *E, table []E, index uint64) {
	var r [8]uint64
	var m [8]uint64
	j := 0
	for ; j+8 <= len(table); j += 8 {
		masks(&m, index^uint64(j))
		pick8(&r, (*[8]E)(table[j:]), &m)
	}
	if j < len(table) {
		masks(&m, index^uint64(j))
		e := last(table, j)
		pick8(&r, &e, &m)
	}
	*z = r
}

// LookupPairP256A sets x = tx[index] and y = ty[index], reading every entry of both tables,
// which must have the same length.
func LookupPairP256A(x, y *P256A, tx, ty []P256A, index uint64) { lookupPairP256A(x, y, tx, ty, index) }

// LookupTripleP256A sets x = tx[index], y = ty[index] and z = tz[index], reading every entry
// of the tables, which must have the same length.
func LookupTripleP256A(x, y, z *P256A, tx, ty, tz []P256A, index uint64) {
	lookupTripleP256A(x, y, z, tx, ty, tz, index)
}

// LookupPairP256B sets x = tx[index] and y = ty[index], reading every entry of both tables,
// which must have the same length.
func LookupPairP256B(x, y *P256B, tx, ty []P256B, index uint64) { lookupPairP256B(x, y, tx, ty, index) }

// LookupPairP256C sets x = tx[index] and y = ty[index], reading every entry of both tables,
// which must have the same length.
func LookupPairP256C(x, y *P256C, tx, ty []P256C, index uint64) { lookupPairP256C(x, y, tx, ty, index) }

// LookupPairP256T sets x = tx[index] and y = ty[index], reading every entry of both tables,
// which must have the same length.
func LookupPairP256T(x, y *P256T, tx, ty []P256T, index uint64) { lookupPairP256T(x, y, tx, ty, index) }

// LookupPairP512A sets x = tx[index] and y = ty[index], reading every entry of both tables,
// which must have the same length.
func LookupPairP512A(x, y *P512A, tx, ty []P512A, index uint64) { lookupPairP512A(x, y, tx, ty, index) }

// LookupTripleP512A sets x = tx[index], y = ty[index] and z = tz[index], reading every entry
// of the tables, which must have the same length.
func LookupTripleP512A(x, y, z *P512A, tx, ty, tz []P512A, index uint64) {
	lookupTripleP512A(x, y, z, tx, ty, tz, index)
}

// LookupPairP512B sets x = tx[index] and y = ty[index], reading every entry of both tables,
// which must have the same length.
func LookupPairP512B(x, y *P512B, tx, ty []P512B, index uint64) { lookupPairP512B(x, y, tx, ty, index) }

// LookupPairP512T sets x = tx[index] and y = ty[index], reading every entry of both tables,
// which must have the same length.
func LookupPairP512T(x, y *P512T, tx, ty []P512T, index uint64) { lookupPairP512T(x, y, tx, ty, index) }
