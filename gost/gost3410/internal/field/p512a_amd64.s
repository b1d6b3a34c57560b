// SPDX-License-Identifier: Apache-2.0

//go:build !purego

#include "textflag.h"
#include "mulx_amd64.h"

// Arithmetic modulo 2^512 - 569. Modulo the prime, 2^512 is 569. See minus8.go for the
// bounds.

// FOLD_WORD sets a = 569*a + l + the word at off(SP), in the two chains of carries. l
// is the high word of the previous product. h becomes the high word of this product.
#define FOLD_WORD(off, a, l, h) \
	MULXQ a, a, h      \
	ADOXQ l, a         \
	ADCXQ off(SP), a

// FOLD sets R14:...:R8:DI to the product of WIDE8 or SQUARE8 modulo the prime. It sets
// BX to zero, which also clears the flags.
#define FOLD \
	MOVL  $569, DX         \
	XORL  BX, BX           \
	FOLD_WORD(0, DI, BX, CX)   \
	FOLD_WORD(8, R8, CX, AX)   \
	FOLD_WORD(16, R9, AX, CX)  \
	FOLD_WORD(24, R10, CX, AX) \
	FOLD_WORD(32, R11, AX, CX) \
	FOLD_WORD(40, R12, CX, AX) \
	FOLD_WORD(48, R13, AX, CX) \
	FOLD_WORD(56, R14, CX, AX) \
	ADOXQ BX, AX           \
	ADCXQ BX, AX           \
	IMULQ DX, AX           \
	UP8(AX)                \
	SBBQ  AX, AX           \
	ANDL  $569, AX         \
	ADDQ  AX, DI

// (DI) = (SI) * (BX)
TEXT ·inMulP512A(SB), NOSPLIT|NOFRAME, $0-0
	ADJSP $72
	WIDE8
	FOLD
	STORE8
	ADJSP $-72
	RET

// (DI) = (SI)^2
TEXT ·inSqrP512A(SB), NOSPLIT|NOFRAME, $0-0
	ADJSP $72
	SQUARE8
	FOLD
	STORE8
	ADJSP $-72
	RET

// (DI) = (SI) + (BX)
TEXT ·inAddP512A(SB), NOSPLIT|NOFRAME, $0-0
	ADJSP $72
	LOAD8
	PLUS8
	SBBQ AX, AX   // all ones if there was a carry
	ANDL $569, AX // a carry is worth this
	UP8(AX)
	SBBQ AX, AX   // a second carry leaves less than 569 behind
	ANDL $569, AX
	ADDQ AX, DI   // so this does not carry
	STORE8
	ADJSP $-72
	RET

// (DI) = (SI) - (BX)
TEXT ·inSubP512A(SB), NOSPLIT|NOFRAME, $0-0
	ADJSP $72
	LOAD8
	LESS8
	SBBQ AX, AX   // all ones if there was a borrow
	ANDL $569, AX
	DOWN8(AX)
	SBBQ AX, AX   // a second borrow leaves more than 2^512 - 569 behind
	ANDL $569, AX
	SUBQ AX, DI   // so this does not borrow
	STORE8
	ADJSP $-72
	RET

// func mulxMulP512A(z, x, y *P512A)
TEXT ·mulxMulP512A(SB), NOSPLIT, $0-24
	MOVQ z+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), BX
	CALL ·inMulP512A(SB)
	RET

// func mulxSqrP512A(z, x *P512A)
TEXT ·mulxSqrP512A(SB), NOSPLIT, $0-16
	MOVQ z+0(FP), DI
	MOVQ x+8(FP), SI
	CALL ·inSqrP512A(SB)
	RET
