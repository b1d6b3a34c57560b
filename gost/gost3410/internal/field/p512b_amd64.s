// SPDX-License-Identifier: Apache-2.0

//go:build !purego

#include "textflag.h"
#include "mulx_amd64.h"

// Arithmetic modulo 2^511 + 111. Modulo the prime, 2^511 is -111 and 2^512 is -222. See
// plus8.go and plus8_product.go for the bounds.

// LESS_WORD sets a to the word at off(SP) minus a and the borrow.
#define LESS_WORD(off, a) \
	MOVQ off(SP), R15 \
	SBBQ a, R15       \
	MOVQ R15, a

// FOLD sets R14:...:R8:DI to the product of WIDE8 or SQUARE8 modulo the prime.
#define FOLD \
	MOVL  $222, DX     \
	MULXQ DI, DI, CX   \
	MULXQ R8, R8, AX   \
	ADDQ  CX, R8       \
	MULXQ R9, R9, CX   \
	ADCQ  AX, R9       \
	MULXQ R10, R10, AX \
	ADCQ  CX, R10      \
	MULXQ R11, R11, CX \
	ADCQ  AX, R11      \
	MULXQ R12, R12, AX \
	ADCQ  CX, R12      \
	MULXQ R13, R13, CX \
	ADCQ  AX, R13      \
	MULXQ R14, R14, AX \
	ADCQ  CX, R14      \
	ADCQ  $0, AX       \
	LESS_WORD(0, DI)   \
	LESS_WORD(8, R8)   \
	LESS_WORD(16, R9)  \
	LESS_WORD(24, R10) \
	LESS_WORD(32, R11) \
	LESS_WORD(40, R12) \
	LESS_WORD(48, R13) \
	LESS_WORD(56, R14) \
	ADCQ  $0, AX       \
	IMULQ DX, AX       \
	UP8(AX)            \
	SBBQ  AX, AX       \
	MOVQ  AX, CX       \
	SHLQ  $63, CX      \
	ORQ   CX, R14      \
	ANDL  $111, AX     \
	DOWN8(AX)

// (DI) = (SI) * (BX)
TEXT ·inMulP512B(SB), NOSPLIT|NOFRAME, $0-0
	ADJSP $72
	WIDE8
	FOLD
	STORE8
	ADJSP $-72
	RET

// (DI) = (SI)^2
TEXT ·inSqrP512B(SB), NOSPLIT|NOFRAME, $0-0
	ADJSP $72
	SQUARE8
	FOLD
	STORE8
	ADJSP $-72
	RET

// (DI) = (SI) + (BX)
TEXT ·inAddP512B(SB), NOSPLIT|NOFRAME, $0-0
	ADJSP $72
	LOAD8
	PLUS8
	SBBQ AX, AX    // all ones if there was a carry
	MOVQ R14, CX
	SARQ $63, CX   // all ones if the top bit is set
	ANDL $111, CX
	ADDQ $111, CX  // 111, once or twice,
	ANDQ AX, CX    // or 0 without a carry
	SHLQ $63, AX
	ORQ  AX, R14   // 2^511 remains
	DOWN8(CX)
	STORE8
	ADJSP $-72
	RET

// (DI) = (SI) - (BX)
TEXT ·inSubP512B(SB), NOSPLIT|NOFRAME, $0-0
	ADJSP $72
	LOAD8
	LESS8
	SBBQ AX, AX    // all ones if there was a borrow
	MOVQ R14, CX
	SARQ $63, CX   // all ones if the top bit is set
	ANDL $111, CX
	MOVL $222, DX
	SUBQ CX, DX    // 111, once or twice,
	ANDQ AX, DX    // or 0 without a borrow
	SHLQ $63, AX
	NOTQ AX
	ANDQ AX, R14   // clears the top bit
	UP8(DX)
	STORE8
	ADJSP $-72
	RET

// func mulxMulP512B(z, x, y *P512B)
TEXT ·mulxMulP512B(SB), NOSPLIT, $0-24
	MOVQ z+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), BX
	CALL ·inMulP512B(SB)
	RET

// func mulxSqrP512B(z, x *P512B)
TEXT ·mulxSqrP512B(SB), NOSPLIT, $0-16
	MOVQ z+0(FP), DI
	MOVQ x+8(FP), SI
	CALL ·inSqrP512B(SB)
	RET
