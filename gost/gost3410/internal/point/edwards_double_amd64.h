	// The body of double, z = 2p, and, without T, of doubleWithoutT, with the same
	// operations as the Go code. p is pu, pv, pz. U, V, Z, T are the coordinates of z.
	// The numbers on the stack: uu 0, vv 1, zz 2, e 3, f 4, g 5, h 6.
	THERE(p+8(FP), 0, SI)
	HERE(0, DI)
	CALL SQR // uu = pu^2
	THERE(p+8(FP), 1, SI)
	HERE(1, DI)
	CALL SQR // vv = pv^2
	THERE(p+8(FP), 2, SI)
	HERE(2, DI)
	CALL SQR // zz = pz^2
	THERE(p+8(FP), 0, SI)
	THERE(p+8(FP), 1, BX)
	HERE(3, DI)
	CALL ADD // e = pu + pv
	HERE(2, SI)
	HERE(2, BX)
	HERE(2, DI)
	CALL ADD // zz = zz + zz
	HERE(3, SI)
	HERE(3, DI)
	CALL SQR // e = e^2
	HERE(0, SI)
	HERE(1, BX)
	HERE(5, DI)
	CALL ADD // g = uu + vv
	HERE(3, SI)
	HERE(5, BX)
	HERE(3, DI)
	CALL SUB // e = e - g
	HERE(5, SI)
	HERE(2, BX)
	HERE(4, DI)
	CALL SUB // f = g - zz
	HERE(0, SI)
	HERE(1, BX)
	HERE(6, DI)
	CALL SUB // h = uu - vv
	HERE(3, SI)
	HERE(4, BX)
	THERE(z+0(FP), 0, DI)
	CALL MUL // U = e*f
	HERE(5, SI)
	HERE(6, BX)
	THERE(z+0(FP), 1, DI)
	CALL MUL // V = g*h
#ifndef WITHOUT_T
	HERE(3, SI)
	HERE(6, BX)
	THERE(z+0(FP), 3, DI)
	CALL MUL // T = e*h
#endif
	HERE(4, SI)
	HERE(5, BX)
	THERE(z+0(FP), 2, DI)
	CALL MUL // Z = f*g
	DONE
