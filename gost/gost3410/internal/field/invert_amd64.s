// SPDX-License-Identifier: Apache-2.0

//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// NEGATIVE subtracts 2^64 times the limbs at x from R12:...:R8 if the factor in DX is
// negative: such a factor was used as a number that is 2^64 too large.
#define NEGATIVE(x) \
	SARQ $63, DX        \
	MOVQ 0(x), AX       \
	MOVQ 8(x), CX       \
	MOVQ 16(x), R13     \
	ANDQ DX, AX         \
	ANDQ DX, CX         \
	ANDQ DX, R13        \
	ANDQ 24(x), DX      \
	SUBQ AX, R9         \
	SBBQ CX, R10        \
	SBBQ R13, R11       \
	SBBQ DX, R12

// LINEAR sets R12:...:R8 = x*f + y*g for the limbs x at SI and y at BX and the factors
// f and g at offsets from DI, in two's complement.
#define LINEAR(f, g) \
	MOVQ  f(DI), DX       \
	MULXQ 0(SI), R8, R9   \
	MULXQ 8(SI), AX, R10  \
	ADDQ  AX, R9          \
	MULXQ 16(SI), AX, R11 \
	ADCQ  AX, R10         \
	MULXQ 24(SI), AX, R12 \
	ADCQ  AX, R11         \
	ADCQ  $0, R12         \
	NEGATIVE(SI)          \
	MOVQ  g(DI), DX       \
	XORL  R13, R13        \
	MULXQ 0(BX), AX, CX   \
	ADCXQ AX, R8          \
	ADOXQ CX, R9          \
	MULXQ 8(BX), AX, CX   \
	ADCXQ AX, R9          \
	ADOXQ CX, R10         \
	MULXQ 16(BX), AX, CX  \
	ADCXQ AX, R10         \
	ADOXQ CX, R11         \
	MULXQ 24(BX), AX, CX  \
	ADCXQ AX, R11         \
	ADOXQ CX, R12         \
	ADCXQ R13, R12        \
	NEGATIVE(BX)

// DOWN sets low to bits n to n+63 of high:low, where m is 64-n.
#define DOWN(n, m, low, high) \
	SHRQ $n, low   \
	MOVQ high, AX  \
	SHLQ $m, AX    \
	ORQ  AX, low

// ABSOLUTE sets R11:...:R8 = |R12:...:R8| / 2^31 and DX to all ones if the number was
// negative, else to 0.
#define ABSOLUTE \
	DOWN(31, 33, R8, R9)   \
	DOWN(31, 33, R9, R10)  \
	DOWN(31, 33, R10, R11) \
	DOWN(31, 33, R11, R12) \
	MOVQ R12, DX  \
	SARQ $63, DX  \
	XORQ DX, R8   \
	XORQ DX, R9   \
	XORQ DX, R10  \
	XORQ DX, R11  \
	SUBQ DX, R8   \
	SBBQ DX, R9   \
	SBBQ DX, R10  \
	SBBQ DX, R11

// STORE stores R11:...:R8 on the stack. LAST stores them at BX, moves what is on the
// stack to SI and clears the stack.
#define STORE \
	MOVQ R8, 0(SP)   \
	MOVQ R9, 8(SP)   \
	MOVQ R10, 16(SP) \
	MOVQ R11, 24(SP)

#define LAST \
	MOVQ R8, 0(BX)   \
	MOVQ R9, 8(BX)   \
	MOVQ R10, 16(BX) \
	MOVQ R11, 24(BX) \
	MOVQ 0(SP), R8   \
	MOVQ 8(SP), R9   \
	MOVQ 16(SP), R10 \
	MOVQ 24(SP), R11 \
	MOVQ R8, 0(SI)   \
	MOVQ R9, 8(SI)   \
	MOVQ R10, 16(SI) \
	MOVQ R11, 24(SI) \
	XORL AX, AX      \
	MOVQ AX, 0(SP)   \
	MOVQ AX, 8(SP)   \
	MOVQ AX, 16(SP)  \
	MOVQ AX, 24(SP)

// DIVIDE sets R11:...:R8 = R12:...:R8 / 2^62 modulo m, as divide4 does. R14 points to m.
#define DIVIDE \
	MOVQ  R8, DX          \
	IMULQ n+24(FP), DX    \
	SHLQ  $2, DX          \
	SHRQ  $2, DX          \
	XORL  R13, R13        \
	MULXQ 0(R14), AX, CX  \
	ADCXQ AX, R8          \
	ADOXQ CX, R9          \
	MULXQ 8(R14), AX, CX  \
	ADCXQ AX, R9          \
	ADOXQ CX, R10         \
	MULXQ 16(R14), AX, CX \
	ADCXQ AX, R10         \
	ADOXQ CX, R11         \
	MULXQ 24(R14), AX, CX \
	ADCXQ AX, R11         \
	ADOXQ CX, R12         \
	ADCXQ R13, R12        \
	DOWN(62, 2, R8, R9)   \
	DOWN(62, 2, R9, R10)  \
	DOWN(62, 2, R10, R11) \
	DOWN(62, 2, R11, R12) \
	SARQ  $62, R12        \
	MOVQ  R12, DX         /* adds m if the number is negative */ \
	SARQ  $63, DX         \
	MOVQ  0(R14), AX      \
	MOVQ  8(R14), CX      \
	MOVQ  16(R14), R13    \
	ANDQ  DX, AX          \
	ANDQ  DX, CX          \
	ANDQ  DX, R13         \
	ANDQ  24(R14), DX     \
	ADDQ  AX, R8          \
	ADCQ  CX, R9          \
	ADCQ  R13, R10        \
	ADCQ  DX, R11         \
	ADCQ  $0, R12         \
	MOVQ  R8, AX          /* subtracts m unless the number is below */ \
	MOVQ  R9, CX          \
	MOVQ  R10, DX         \
	MOVQ  R11, R13        \
	SUBQ  0(R14), R8      \
	SBBQ  8(R14), R9      \
	SBBQ  16(R14), R10    \
	SBBQ  24(R14), R11    \
	SBBQ  $0, R12         \
	CMOVQCS AX, R8        \
	CMOVQCS CX, R9        \
	CMOVQCS DX, R10       \
	CMOVQCS R13, R11

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

// func mulxCombine4(a, b *[4]uint64, f *factors) (na, nb uint64)
TEXT ·mulxCombine4(SB), NOSPLIT, $32-40
	MOVQ a+0(FP), SI
	MOVQ b+8(FP), BX
	MOVQ f+16(FP), DI
	LINEAR(factors_f0, factors_g0)
	ABSOLUTE
	MOVQ DX, na+24(FP)
	STORE
	LINEAR(factors_f1, factors_g1)
	ABSOLUTE
	MOVQ DX, nb+32(FP)
	LAST
	RET

// func mulxCombineMod4(u, v, m *[4]uint64, n uint64, f *factors)
TEXT ·mulxCombineMod4(SB), NOSPLIT, $32-40
	MOVQ u+0(FP), SI
	MOVQ v+8(FP), BX
	MOVQ m+16(FP), R14
	MOVQ f+32(FP), DI
	LINEAR(factors_f0, factors_g0)
	DIVIDE
	STORE
	LINEAR(factors_f1, factors_g1)
	DIVIDE
	LAST
	RET
