// SPDX-License-Identifier: Apache-2.0

//go:build !purego

#include "textflag.h"

// func mulxSteps31(a, b uint64) (p, q uint64)
//
// mulxSteps31 does the steps of portableSteps31 with conditional moves, which take the
// same time whether they move or not. The only branch counts the steps.
TEXT ·mulxSteps31(SB), NOSPLIT, $0-32
	MOVQ a+0(FP), AX
	MOVQ b+8(FP), BX
	MOVL $1, CX              // p
	MOVQ $0x100000000, DX    // q
	MOVL $31, DI

step:
	MOVQ    BX, R10          // if a < b:   b - a,
	SUBQ    AX, R10
	MOVQ    DX, R12          //             q - p
	SUBQ    CX, R12
	MOVQ    CX, R11          // else:       p - q,
	SUBQ    DX, R11
	MOVQ    BX, R13          //             b and q unchanged,
	MOVQ    DX, SI
	MOVQ    AX, R9           //             a - b
	SUBQ    BX, R9           // CF: a < b
	CMOVQCS R10, R9
	CMOVQCS R12, R11
	CMOVQCS AX, R13
	CMOVQCS CX, SI
	TESTQ   $1, AX           // use all this only if a is odd
	CMOVQNE R9, AX
	CMOVQNE R11, CX
	CMOVQNE R13, BX
	CMOVQNE SI, DX
	SHRQ    $1, AX
	ADDQ    DX, DX
	DECQ    DI
	JNZ     step
	MOVQ    CX, p+16(FP)
	MOVQ    DX, q+24(FP)
	RET
