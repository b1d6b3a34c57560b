	// The body of doubleJacobian, z = 2p, with the same operations as the Go code.
	// p is px, py, pz. X, Y, Z are the coordinates of z. The numbers on the stack:
	// delta 0, gamma 1, beta 2, alpha 3, t 4, sum 5. A coordinate of z is stored only
	// after the last use of the same coordinate of p, so z may be p.
	THERE(p+8(FP), 2, SI)
	HERE(0, DI)
	CALL SQR // delta = pz^2
	THERE(p+8(FP), 1, SI)
	HERE(1, DI)
	CALL SQR // gamma = py^2
	THERE(p+8(FP), 0, SI)
	HERE(0, BX)
	HERE(4, DI)
	CALL SUB // t = px - delta
	THERE(p+8(FP), 0, SI)
	HERE(0, BX)
	HERE(3, DI)
	CALL ADD // alpha = px + delta
	THERE(p+8(FP), 0, SI)
	HERE(1, BX)
	HERE(2, DI)
	CALL MUL // beta = px*gamma
	HERE(3, SI)
	HERE(4, BX)
	HERE(3, DI)
	CALL MUL // alpha = alpha*t
	THERE(p+8(FP), 1, SI)
	THERE(p+8(FP), 2, BX)
	HERE(4, DI)
	CALL MUL // t = py*pz
	HERE(2, SI)
	HERE(2, BX)
	HERE(2, DI)
	CALL ADD // beta = beta + beta
	HERE(3, SI)
	HERE(3, BX)
	HERE(5, DI)
	CALL ADD // sum = alpha + alpha
	HERE(2, SI)
	HERE(2, BX)
	HERE(2, DI)
	CALL ADD // beta = beta + beta
	HERE(3, SI)
	HERE(5, BX)
	HERE(3, DI)
	CALL ADD // alpha = alpha + sum
	HERE(4, SI)
	HERE(4, BX)
	THERE(z+0(FP), 2, DI)
	CALL ADD // Z = t + t
	HERE(2, SI)
	HERE(2, BX)
	HERE(5, DI)
	CALL ADD // sum = beta + beta
	HERE(3, SI)
	HERE(4, DI)
	CALL SQR // t = alpha^2
	HERE(1, SI)
	HERE(1, BX)
	HERE(1, DI)
	CALL ADD // gamma = gamma + gamma
	HERE(4, SI)
	HERE(5, BX)
	THERE(z+0(FP), 0, DI)
	CALL SUB // X = t - sum
	HERE(1, SI)
	HERE(1, DI)
	CALL SQR // gamma = gamma^2
	HERE(2, SI)
	THERE(z+0(FP), 0, BX)
	HERE(2, DI)
	CALL SUB // beta = beta - X
	HERE(2, SI)
	HERE(3, BX)
	HERE(2, DI)
	CALL MUL // beta = beta*alpha
	HERE(1, SI)
	HERE(1, BX)
	HERE(1, DI)
	CALL ADD // gamma = gamma + gamma
	HERE(2, SI)
	HERE(1, BX)
	THERE(z+0(FP), 1, DI)
	CALL SUB // Y = beta - gamma
	DONE
