	// The body of addThenPick, z = p + q, with the same operations as the Go code, and
	// between them the look-up of the next q. p is pu, pv, pz, pt and q is minus, plus,
	// dxy. U, V, Z, T are the coordinates of z. The numbers on the stack: a 0, b 1, c 2,
	// d 3, e 4, f 5, g 6, and h 3, when d is not needed any more. TURN changes 1, 2 and 8.
	THERE(p+8(FP), 1, SI)
	THERE(p+8(FP), 0, BX)
	HERE(0, DI)
	CALL SUB // a = pv - pu
	THERE(p+8(FP), 1, SI)
	THERE(p+8(FP), 0, BX)
	HERE(1, DI)
	CALL ADD // b = pv + pu
	PICK0
	THERE(p+8(FP), 3, SI)
	THERE(q+16(FP), 2, BX)
	HERE(2, DI)
	CALL MUL // c = pt*dxy
	PICK1
	HERE(0, SI)
	THERE(q+16(FP), 0, BX)
	HERE(0, DI)
	CALL MUL // a = a*minus
	PICK2
	HERE(1, SI)
	THERE(q+16(FP), 1, BX)
	HERE(1, DI)
	CALL MUL // b = b*plus
	THERE(p+8(FP), 2, SI)
	THERE(p+8(FP), 2, BX)
	HERE(3, DI)
	CALL ADD // d = pz + pz
	HERE(3, SI)
	HERE(2, BX)
	HERE(5, DI)
	CALL SUB // f = d - c
	HERE(3, SI)
	HERE(2, BX)
	HERE(6, DI)
	CALL ADD // g = d + c
	PICK3
	HERE(5, SI)
	HERE(6, BX)
	THERE(z+0(FP), 2, DI)
	CALL MUL // Z = f*g
	HERE(1, SI)
	HERE(0, BX)
	HERE(4, DI)
	CALL SUB // e = b - a
	HERE(1, SI)
	HERE(0, BX)
	HERE(3, DI)
	CALL ADD // h = b + a
	PICK4
	HERE(4, SI)
	HERE(5, BX)
	THERE(z+0(FP), 0, DI)
	CALL MUL // U = e*f
	TURN
	HERE(6, SI)
	HERE(3, BX)
	THERE(z+0(FP), 1, DI)
	CALL MUL // V = g*h
	HERE(4, SI)
	HERE(3, BX)
	THERE(z+0(FP), 3, DI)
	CALL MUL // T = e*h
	DONE
