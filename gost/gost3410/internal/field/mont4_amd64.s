// SPDX-License-Identifier: Apache-2.0

//go:build !purego

#include "textflag.h"
#include "mulx_amd64.h"

// Montgomery arithmetic modulo any odd m of four limbs, and that of P256C. See
// mont4.go.

// STEP adds to e:d:c:b:a the multiple of m, at SI, that clears a. BX is -1/m modulo
// 2^64. k is the carry of the step before, which is added to e. Afterwards a is the
// carry out of e, 0 or 1.
#define STEP(a, b, c, d, e, k) \
	MOVQ  a, DX          \
	IMULQ BX, DX         \
	XORL  AX, AX         \
	MULXQ 0(SI), AX, CX  \
	ADCXQ AX, a          \
	ADOXQ CX, b          \
	MULXQ 8(SI), AX, CX  \
	ADCXQ AX, b          \
	ADOXQ CX, c          \
	MULXQ 16(SI), AX, CX \
	ADCXQ AX, c          \
	ADOXQ CX, d          \
	MULXQ 24(SI), AX, CX \
	ADCXQ AX, d          \
	ADOXQ CX, e          \
	ADCXQ k, e           \
	MOVQ  a, AX          \
	ADOXQ AX, a          \
	ADCXQ AX, a

// REDUCE sets R15:...:R12 = R15:...:R8 / 2^256 modulo m, reduced below m.
#define REDUCE \
	XORL DI, DI                        \
	STEP(R8, R9, R10, R11, R12, DI)    \
	STEP(R9, R10, R11, R12, R13, R8)   \
	STEP(R10, R11, R12, R13, R14, R9)  \
	STEP(R11, R12, R13, R14, R15, R10) \
	BELOW(R11)

// BELOW subtracts m, at SI, from k:R15:...:R12 unless this number is below m.
#define BELOW(k) \
	MOVQ    R12, AX     \
	MOVQ    R13, CX     \
	MOVQ    R14, DX     \
	MOVQ    R15, BX     \
	SUBQ    0(SI), R12  \
	SBBQ    8(SI), R13  \
	SBBQ    16(SI), R14 \
	SBBQ    24(SI), R15 \
	SBBQ    $0, k       \
	CMOVQCS AX, R12     \
	CMOVQCS CX, R13     \
	CMOVQCS DX, R14     \
	CMOVQCS BX, R15

#define STORE_UPPER \
	MOVQ R12, 0(DI)  \
	MOVQ R13, 8(DI)  \
	MOVQ R14, 16(DI) \
	MOVQ R15, 24(DI)

// func mulxMont4(z, x, y, m *[4]uint64, n uint64)
TEXT ·mulxMont4(SB), NOSPLIT, $0-40
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), BX
	WIDE4
	MOVQ m+24(FP), SI
	MOVQ n+32(FP), BX
	REDUCE
	MOVQ z+0(FP), DI
	STORE_UPPER
	RET

// (DI) = (SI) * (BX) / 2^256
TEXT ·inMulP256C(SB), NOSPLIT|NOFRAME, $0-0
	PUSHQ DI
	WIDE4
	LEAQ ·p256cPrime(SB), SI
	MOVQ $0xDF6E6C2C727C176D, BX // p256cN
	REDUCE
	POPQ DI
	STORE_UPPER
	RET

// (DI) = (SI)^2 / 2^256
TEXT ·inSqrP256C(SB), NOSPLIT|NOFRAME, $0-0
	PUSHQ DI
	SQUARE4
	LEAQ ·p256cPrime(SB), SI
	MOVQ $0xDF6E6C2C727C176D, BX // p256cN
	REDUCE
	POPQ DI
	STORE_UPPER
	RET

// (DI) = (SI) + (BX)
TEXT ·inAddP256C(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ 0(SI), R12
	MOVQ 8(SI), R13
	MOVQ 16(SI), R14
	MOVQ 24(SI), R15
	XORL R8, R8
	ADDQ 0(BX), R12
	ADCQ 8(BX), R13
	ADCQ 16(BX), R14
	ADCQ 24(BX), R15
	ADCQ $0, R8              // the carry
	LEAQ ·p256cPrime(SB), SI
	BELOW(R8)
	STORE_UPPER
	RET

// (DI) = (SI) - (BX)
TEXT ·inSubP256C(SB), NOSPLIT|NOFRAME, $0-0
	LOAD4
	LESS4
	SBBQ AX, AX              // all ones if there was a borrow
	LEAQ ·p256cPrime(SB), SI
	MOVQ 0(SI), R12          // then m is added
	MOVQ 8(SI), R13
	MOVQ 16(SI), R14
	MOVQ 24(SI), R15
	ANDQ AX, R12
	ANDQ AX, R13
	ANDQ AX, R14
	ANDQ AX, R15
	ADDQ R12, R8
	ADCQ R13, R9
	ADCQ R14, R10
	ADCQ R15, R11
	STORE4
	RET

// func mulxMulP256C(z, x, y *P256C)
TEXT ·mulxMulP256C(SB), NOSPLIT, $0-24
	MOVQ z+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), BX
	CALL ·inMulP256C(SB)
	RET

// func mulxSqrP256C(z, x *P256C)
TEXT ·mulxSqrP256C(SB), NOSPLIT, $0-16
	MOVQ z+0(FP), DI
	MOVQ x+8(FP), SI
	CALL ·inSqrP256C(SB)
	RET
