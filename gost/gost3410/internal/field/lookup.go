package field

// lookup4 sets z = table[index], reading every entry.
func lookup4[E ~[4]uint64](z *E, table []E, index uint64) {
	var r0, r1, r2, r3 uint64
	for j := range table {
		mask := equal(uint64(j), index)
		r0 |= mask & table[j][0]
		r1 |= mask & table[j][1]
		r2 |= mask & table[j][2]
		r3 |= mask & table[j][3]
	}
	*z = E{r0, r1, r2, r3}
}

// lookup8 sets z = table[index], reading every entry.
func lookup8[E ~[8]uint64](z *E, table []E, index uint64) {
	var r0, r1, r2, r3, r4, r5, r6, r7 uint64
	for j := range table {
		mask := equal(uint64(j), index)
		r0 |= mask & table[j][0]
		r1 |= mask & table[j][1]
		r2 |= mask & table[j][2]
		r3 |= mask & table[j][3]
		r4 |= mask & table[j][4]
		r5 |= mask & table[j][5]
		r6 |= mask & table[j][6]
		r7 |= mask & table[j][7]
	}
	*z = E{r0, r1, r2, r3, r4, r5, r6, r7}
}

// LookupPairP256A does Lookup in two tables of one length: x = tx[index], y = ty[index].
func LookupPairP256A(x, y *P256A, tx, ty []P256A, index uint64) { lookupPairP256A(x, y, tx, ty, index) }

// LookupTripleP256A does Lookup in three tables of one length.
func LookupTripleP256A(x, y, z *P256A, tx, ty, tz []P256A, index uint64) {
	lookupTripleP256A(x, y, z, tx, ty, tz, index)
}

// LookupPairP256B does Lookup in two tables of one length: x = tx[index], y = ty[index].
func LookupPairP256B(x, y *P256B, tx, ty []P256B, index uint64) { lookupPairP256B(x, y, tx, ty, index) }

// LookupPairP256C does Lookup in two tables of one length: x = tx[index], y = ty[index].
func LookupPairP256C(x, y *P256C, tx, ty []P256C, index uint64) { lookupPairP256C(x, y, tx, ty, index) }

// LookupPairP256T does Lookup in two tables of one length: x = tx[index], y = ty[index].
func LookupPairP256T(x, y *P256T, tx, ty []P256T, index uint64) { lookupPairP256T(x, y, tx, ty, index) }

// LookupPairP512A does Lookup in two tables of one length: x = tx[index], y = ty[index].
func LookupPairP512A(x, y *P512A, tx, ty []P512A, index uint64) { lookupPairP512A(x, y, tx, ty, index) }

// LookupTripleP512A does Lookup in three tables of one length.
func LookupTripleP512A(x, y, z *P512A, tx, ty, tz []P512A, index uint64) {
	lookupTripleP512A(x, y, z, tx, ty, tz, index)
}

// LookupPairP512B does Lookup in two tables of one length: x = tx[index], y = ty[index].
func LookupPairP512B(x, y *P512B, tx, ty []P512B, index uint64) { lookupPairP512B(x, y, tx, ty, index) }

// LookupPairP512T does Lookup in two tables of one length: x = tx[index], y = ty[index].
func LookupPairP512T(x, y *P512T, tx, ty []P512T, index uint64) { lookupPairP512T(x, y, tx, ty, index) }
