#include "textflag.h"

// Valgrind takes this sequence, which does nothing on a processor, for a request: AX
// points to its number and five arguments, DX is the answer.

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
