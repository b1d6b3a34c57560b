// SPDX-License-Identifier: Apache-2.0

//go:build !purego

#include "textflag.h"
#include "mulx_amd64.h"

// Arithmetic modulo 2^256 - 617. Modulo the prime, 2^256 is 617. See minus4.go for the
// bounds.

// FOLD sets R11:...:R8 = R15:...:R8 modulo the prime. It sets BX to zero, which also
// clears the flags.
#define FOLD \
	MOVL  $617, DX      \
	XORL  BX, BX        \
	MULXQ R12, AX, CX   \
	ADCXQ AX, R8        \
	ADOXQ CX, R9        \
	MULXQ R13, AX, CX   \
	ADCXQ AX, R9        \
	ADOXQ CX, R10       \
	MULXQ R14, AX, CX   \
	ADCXQ AX, R10       \
	ADOXQ CX, R11       \
	MULXQ R15, AX, CX   \
	ADCXQ AX, R11       \
	ADOXQ BX, CX        \
	ADCXQ BX, CX        \
	IMULQ DX, CX        \
	UP4(CX)             \
	SBBQ  AX, AX        \
	ANDL  $617, AX      \
	ADDQ  AX, R8

// (DI) = (SI) * (BX)
TEXT ·inMulP256A(SB), NOSPLIT|NOFRAME, $0-0
	WIDE4
	FOLD
	STORE4
	RET

// (DI) = (SI)^2
TEXT ·inSqrP256A(SB), NOSPLIT|NOFRAME, $0-0
	SQUARE4
	FOLD
	STORE4
	RET

// (DI) = (SI) + (BX)
TEXT ·inAddP256A(SB), NOSPLIT|NOFRAME, $0-0
	LOAD4
	PLUS4
	SBBQ AX, AX   // all ones if there was a carry
	ANDL $617, AX // a carry is worth this
	UP4(AX)
	SBBQ AX, AX   // a second carry leaves less than 617 behind
	ANDL $617, AX
	ADDQ AX, R8   // so this does not carry
	STORE4
	RET

// (DI) = (SI) - (BX)
TEXT ·inSubP256A(SB), NOSPLIT|NOFRAME, $0-0
	LOAD4
	LESS4
	SBBQ AX, AX   // all ones if there was a borrow
	ANDL $617, AX
	DOWN4(AX)
	SBBQ AX, AX   // a second borrow leaves more than 2^256 - 617 behind
	ANDL $617, AX
	SUBQ AX, R8   // so this does not borrow
	STORE4
	RET

// func mulxMulP256A(z, x, y *P256A)
TEXT ·mulxMulP256A(SB), NOSPLIT, $0-24
	MOVQ z+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), BX
	CALL ·inMulP256A(SB)
	RET

// func mulxSqrP256A(z, x *P256A)
TEXT ·mulxSqrP256A(SB), NOSPLIT, $0-16
	MOVQ z+0(FP), DI
	MOVQ x+8(FP), SI
	CALL ·inSqrP256A(SB)
	RET
