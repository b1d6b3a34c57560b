// SPDX-License-Identifier: Apache-2.0

//go:build !purego

#include "textflag.h"
#include "mulx_amd64.h"

// Arithmetic modulo 2^255 + 3225. Modulo the prime, 2^255 is -3225 and 2^256 is -6450.
// See plus4.go and plus4_product.go for the bounds.

// FOLD sets R11:...:R8 = R15:...:R8 modulo the prime.
#define FOLD \
	MOVL  $6450, DX     \
	MULXQ R12, R12, CX  \
	MULXQ R13, R13, AX  \
	ADDQ  CX, R13       \
	MULXQ R14, R14, CX  \
	ADCQ  AX, R14       \
	MULXQ R15, R15, AX  \
	ADCQ  CX, R15       \
	ADCQ  $0, AX        \
	SUBQ  R12, R8       \
	SBBQ  R13, R9       \
	SBBQ  R14, R10      \
	SBBQ  R15, R11      \
	ADCQ  $0, AX        \
	IMULQ DX, AX        \
	UP4(AX)             \
	SBBQ  AX, AX        \
	MOVQ  AX, CX        \
	SHLQ  $63, CX       \
	ORQ   CX, R11       \
	ANDL  $3225, AX     \
	DOWN4(AX)

// (DI) = (SI) * (BX)
TEXT ·inMulP256B(SB), NOSPLIT|NOFRAME, $0-0
	WIDE4
	FOLD
	STORE4
	RET

// (DI) = (SI)^2
TEXT ·inSqrP256B(SB), NOSPLIT|NOFRAME, $0-0
	SQUARE4
	FOLD
	STORE4
	RET

// (DI) = (SI) + (BX)
TEXT ·inAddP256B(SB), NOSPLIT|NOFRAME, $0-0
	LOAD4
	PLUS4
	SBBQ AX, AX     // all ones if there was a carry
	MOVQ R11, CX
	SARQ $63, CX    // all ones if the top bit is set
	ANDL $3225, CX
	ADDQ $3225, CX  // 3225, once or twice,
	ANDQ AX, CX     // or 0 without a carry
	SHLQ $63, AX
	ORQ  AX, R11    // 2^255 remains
	DOWN4(CX)
	STORE4
	RET

// (DI) = (SI) - (BX)
TEXT ·inSubP256B(SB), NOSPLIT|NOFRAME, $0-0
	LOAD4
	LESS4
	SBBQ AX, AX     // all ones if there was a borrow
	MOVQ R11, CX
	SARQ $63, CX    // all ones if the top bit is set
	ANDL $3225, CX
	MOVL $6450, DX
	SUBQ CX, DX     // 3225, once or twice,
	ANDQ AX, DX     // or 0 without a borrow
	SHLQ $63, AX
	NOTQ AX
	ANDQ AX, R11    // clears the top bit
	UP4(DX)
	STORE4
	RET

// func mulxMulP256B(z, x, y *P256B)
TEXT ·mulxMulP256B(SB), NOSPLIT, $0-24
	MOVQ z+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), BX
	CALL ·inMulP256B(SB)
	RET

// func mulxSqrP256B(z, x *P256B)
TEXT ·mulxSqrP256B(SB), NOSPLIT, $0-16
	MOVQ z+0(FP), DI
	MOVQ x+8(FP), SI
	CALL ·inSqrP256B(SB)
	RET
