	// The body of addMixed, z = p + q, with the same operations as the Go code.
	// p is pu, pv, pz, pt and q is qu, qv, qdt. U, V, Z, T are the coordinates of z.
	// The numbers on the stack: uu 0, vv 1, tt 2, e 3, f 4, g 5, h 6. PICK and TURN, which
	// a look-up in vector registers may define, do not change what is needed. TURN may
	// change q, 0, 1, 2, 7 and 8.
	PICK0
	THERE(p+8(FP), 0, SI)
	THERE(q+16(FP), 0, BX)
	HERE(0, DI)
	CALL MUL // uu = pu*qu
	PICK1
	THERE(p+8(FP), 1, SI)
	THERE(q+16(FP), 1, BX)
	HERE(1, DI)
	CALL MUL // vv = pv*qv
	PICK2
	THERE(p+8(FP), 3, SI)
	THERE(q+16(FP), 2, BX)
	HERE(2, DI)
	CALL MUL // tt = pt*qdt
	THERE(p+8(FP), 0, SI)
	THERE(p+8(FP), 1, BX)
	HERE(3, DI)
	CALL ADD // e = pu + pv
	THERE(q+16(FP), 0, SI)
	THERE(q+16(FP), 1, BX)
	HERE(4, DI)
	CALL ADD // f = qu + qv
	PICK3
	HERE(3, SI)
	HERE(4, BX)
	HERE(3, DI)
	CALL MUL // e = e*f
	HERE(1, SI)
	HERE(0, BX)
	HERE(6, DI)
	CALL SUB // h = vv - uu
	THERE(p+8(FP), 2, SI)
	HERE(2, BX)
	HERE(4, DI)
	CALL SUB // f = pz - tt
	THERE(p+8(FP), 2, SI)
	HERE(2, BX)
	HERE(5, DI)
	CALL ADD // g = pz + tt
	HERE(3, SI)
	HERE(0, BX)
	HERE(3, DI)
	CALL SUB // e = e - uu
	HERE(3, SI)
	HERE(1, BX)
	HERE(3, DI)
	CALL SUB // e = e - vv
	PICK4
	HERE(3, SI)
	HERE(4, BX)
	THERE(z+0(FP), 0, DI)
	CALL MUL // U = e*f
	PICK5
	HERE(5, SI)
	HERE(6, BX)
	THERE(z+0(FP), 1, DI)
	CALL MUL // V = g*h
	TURN
	HERE(3, SI)
	HERE(6, BX)
	THERE(z+0(FP), 3, DI)
	CALL MUL // T = e*h
	HERE(4, SI)
	HERE(5, BX)
	THERE(z+0(FP), 2, DI)
	CALL MUL // Z = f*g
	DONE
