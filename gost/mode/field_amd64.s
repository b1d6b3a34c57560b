// SPDX-License-Identifier: Apache-2.0

//go:build !purego

#include "textflag.h"

// Sums of products of polynomials over the field of two elements. Each block is a
// polynomial of degree 127 or less, and a register holds four blocks. Loops run over
// counts. No branch and no address depends on other values.

// Indices that reverse the bytes of a block, because its first byte is the highest.
DATA backwards<>+0(SB)/8, $0x08090a0b0c0d0e0f
DATA backwards<>+8(SB)/8, $0x0001020304050607
GLOBL backwards<>(SB), RODATA, $16

// With a = a1*x^64 + a0 and b = b1*x^64 + b0, PRODUCTS adds a0*b0 to Z0, a1*b1 to Z1,
// and the mixed products a0*b1 and a1*b0 to Z2. 0x96 is the truth table of the sum of
// three bits.
#define PRODUCTS \
	VPSHUFB Z31, Z3, Z3            ; \
	VPSHUFB Z31, Z4, Z4            ; \
	VPCLMULQDQ $0x00, Z3, Z4, Z5   ; \
	VPCLMULQDQ $0x11, Z3, Z4, Z6   ; \
	VPCLMULQDQ $0x01, Z3, Z4, Z7   ; \
	VPCLMULQDQ $0x10, Z3, Z4, Z8   ; \
	VPXORQ Z5, Z0, Z0              ; \
	VPXORQ Z6, Z1, Z1              ; \
	VPTERNLOGQ $0x96, Z7, Z8, Z2

// FOLD adds up the four blocks of z in its lowest block. y and x are the lower parts
// of the register z.
#define FOLD(z, y, x) \
	VEXTRACTI64X4 $1, z, Y5        ; \
	VPXOR Y5, y, y                 ; \
	VEXTRACTI128 $1, y, X5         ; \
	VPXOR X5, x, x

// func sumProducts(sum *[4]uint64, a, b *byte, n int)
TEXT ·sumProducts(SB), NOSPLIT, $0-32
	MOVQ sum+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ n+24(FP), CX
	VBROADCASTI32X4 backwards<>(SB), Z31
	VPXORQ Z0, Z0, Z0
	VPXORQ Z1, Z1, Z1
	VPXORQ Z2, Z2, Z2

four:
	SUBQ $4, CX
	JLT  rest
	VMOVDQU64 (SI), Z3
	VMOVDQU64 (DX), Z4
	PRODUCTS
	ADDQ $64, SI
	ADDQ $64, DX
	JMP  four

rest: // up to three blocks: K1 selects their words, the others become 0
	ADDQ $4, CX
	JZ   done
	ADDQ CX, CX
	MOVL $1, AX
	SHLL CX, AX
	DECL AX
	KMOVW AX, K1
	VMOVDQU64.Z (SI), K1, Z3
	VMOVDQU64.Z (DX), K1, Z4
	PRODUCTS

done:
	FOLD(Z0, Y0, X0)
	FOLD(Z1, Y1, X1)
	FOLD(Z2, Y2, X2)
	VPSLLDQ $8, X2, X5             // Z2 times x^64: the half below x^128
	VPSRLDQ $8, X2, X6             // and the half above
	VPXOR X5, X0, X0
	VPXOR X6, X1, X1
	VMOVDQU X0, 0(DI)
	VMOVDQU X1, 16(DI)
	VZEROUPPER
	RET
