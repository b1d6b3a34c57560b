// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// Valgrind recognizes this sequence of instructions as a request. A processor does
// nothing. AX points to the request number and five arguments. DX is the answer.

// func request(number, a, b, c, d, e uintptr) (answer uintptr)
TEXT ·request(SB), NOSPLIT, $0-56
	LEAQ number+0(FP), AX
	XORL DX, DX
	ROLQ $3, DI
	ROLQ $13, DI
	ROLQ $61, DI
	ROLQ $51, DI
	XCHGQ BX, BX
	MOVQ DX, answer+48(FP)
	RET
