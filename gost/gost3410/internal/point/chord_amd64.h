	// The body of addDistinct, z = p + q, with the same operations as the Go code.
	// p is px, py, pz, and q is qx, qy. The numbers on the stack: zz and then hh 0, h 1,
	// r 2, hhh 3, v 4, t 5. A coordinate of z is stored only after the last use of the
	// same coordinate of p, so z may be p.
	THERE(p+8(FP), 2, SI)
	HERE(0, DI)
	CALL SQR // zz = pz^2
	THERE(q+16(FP), 0, SI)
	HERE(0, BX)
	HERE(1, DI)
	CALL MUL // h = qx*zz
	THERE(p+8(FP), 2, SI)
	HERE(0, BX)
	HERE(5, DI)
	CALL MUL // t = pz*zz
	HERE(1, SI)
	THERE(p+8(FP), 0, BX)
	HERE(1, DI)
	CALL SUB // h = h - px
	THERE(q+16(FP), 1, SI)
	HERE(5, BX)
	HERE(2, DI)
	CALL MUL // r = qy*t
	HERE(1, SI)
	HERE(0, DI)
	CALL SQR // hh = h^2
	HERE(2, SI)
	THERE(p+8(FP), 1, BX)
	HERE(2, DI)
	CALL SUB // r = r - py
	HERE(0, SI)
	HERE(1, BX)
	HERE(3, DI)
	CALL MUL // hhh = hh*h
	THERE(p+8(FP), 0, SI)
	HERE(0, BX)
	HERE(4, DI)
	CALL MUL // v = px*hh
	HERE(2, SI)
	HERE(5, DI)
	CALL SQR // t = r^2
	HERE(5, SI)
	HERE(3, BX)
	HERE(5, DI)
	CALL SUB // t = t - hhh
	HERE(5, SI)
	HERE(4, BX)
	HERE(5, DI)
	CALL SUB // t = t - v
	THERE(p+8(FP), 1, SI)
	HERE(3, BX)
	HERE(3, DI)
	CALL MUL // hhh = py*hhh
	THERE(p+8(FP), 2, SI)
	HERE(1, BX)
	THERE(z+0(FP), 2, DI)
	CALL MUL // z of the sum = pz*h
	HERE(5, SI)
	HERE(4, BX)
	THERE(z+0(FP), 0, DI)
	CALL SUB // x of the sum = t - v
	HERE(4, SI)
	THERE(z+0(FP), 0, BX)
	HERE(4, DI)
	CALL SUB // v = v - x of the sum
	HERE(4, SI)
	HERE(2, BX)
	HERE(4, DI)
	CALL MUL // v = v*r
	HERE(4, SI)
	HERE(3, BX)
	THERE(z+0(FP), 1, DI)
	CALL SUB // y of the sum = v - hhh
	DONE
