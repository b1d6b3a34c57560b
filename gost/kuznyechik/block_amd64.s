// SPDX-License-Identifier: Apache-2.0

//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// Kuznyechik (RFC 7801) with four blocks in a register. Sixteen blocks are processed
// at once while there are as many. vectors_amd64.go makes every constant and explains
// phi. Here phi is applied to all bytes.

// Registers that keep their purpose.
#define T1 Z4 // intermediate values
#define T2 Z5
#define T3 Z6
#define T4 Z7
#define T5 Z8
#define T6 Z9
#define Y1 Z10
#define Y2 Z11
#define Y3 Z12
#define KEY Z13
#define SBOX0 Z16 // phi(S(byte)) of 0 to 63, 64 to 127, ...
#define SBOX1 Z17
#define SBOX2 Z18
#define SBOX3 Z19
#define ONES Z20    // all bits set
#define BESIDE1 Z21 // indices of bytes i^1, within each block
#define BESIDE3 Z22 // i^3
#define PHI Z23     // the matrix of phi for every eight bytes
#define INVERSE Z24 // the matrix of its inverse

#define CONSTANTS \
	VMOVDQU64 (vectors_sbox+0*64)(CX), SBOX0     ; \
	VMOVDQU64 (vectors_sbox+1*64)(CX), SBOX1     ; \
	VMOVDQU64 (vectors_sbox+2*64)(CX), SBOX2     ; \
	VMOVDQU64 (vectors_sbox+3*64)(CX), SBOX3     ; \
	VMOVDQU64 (vectors_beside+0*64)(CX), BESIDE1 ; \
	VMOVDQU64 (vectors_beside+1*64)(CX), BESIDE3 ; \
	VMOVDQU64 vectors_phi(CX), PHI               ; \
	VMOVDQU64 vectors_inverse(CX), INVERSE       ; \
	VPTERNLOGQ $0xff, ONES, ONES, ONES

// ADD3 adds a and b to d: 0x96 is the truth table of the sum of three bits.
#define ADD3(a, b, d) VPTERNLOGQ $0x96, a, b, d

// SBOX replaces each byte of x by its value under the substitution. VPERMI2B looks up
// a table of 128 bytes by the low seven bits.
#define SBOX(x) \
	VMOVDQA64 x, T1                ; \
	VMOVDQA64 x, T2                ; \
	VPERMI2B SBOX1, SBOX0, x       /* the value if the top bit is 0 */; \
	VPERMI2B SBOX3, SBOX2, T2      /* the value if the top bit is 1 */; \
	VPSHUFB T1, ONES, T1           /* 0 where the top bit is 1, else 255 */; \
	VPTERNLOGQ $0xe2, T2, T1, x    /* T1 ? x : T2, bit by bit */

// SUM4 sets y to the sum of x, T1, T2 and T3, each multiplied by a vector of factors:
// numbers n to n+3.
#define SUM4(n, x, y) \
	VGF2P8MULB (vectors_factors+(n+0)*64)(CX), x, y   ; \
	VGF2P8MULB (vectors_factors+(n+1)*64)(CX), T1, T4 ; \
	VGF2P8MULB (vectors_factors+(n+2)*64)(CX), T2, T5 ; \
	VGF2P8MULB (vectors_factors+(n+3)*64)(CX), T3, T6 ; \
	ADD3(T4, T5, y)                ; \
	VPXORQ T6, y, y

// ROUND sets x to L(S(x)) + k. In L, every byte contributes to every byte of its
// block. It moves from place i^b to i with b < 4 and is multiplied. Then the sums move
// from place i to i^a, where a is a multiple of 4.
#define ROUND(x, k) \
	SBOX(x)                        ; \
	VPSHUFB BESIDE1, x, T1         /* x with the bytes from i^1 */; \
	VPROLD $16, x, T2              /* i^2 */; \
	VPSHUFB BESIDE3, x, T3         /* i^3 */; \
	SUM4(4, x, Y1)                 ; \
	VPSHUFD $0xb1, Y1, Y1          /* i^4 */; \
	SUM4(8, x, Y2)                 ; \
	VPSHUFD $0x4e, Y2, Y2          /* i^8 */; \
	SUM4(12, x, Y3)                ; \
	VPSHUFD $0x1b, Y3, Y3          /* i^12 */; \
	SUM4(0, x, x)                  ; \
	ADD3(Y1, Y2, x)                ; \
	ADD3(k, Y3, x)

// func encryptGroups(dst, src *byte, n int, keys *[10]vector, v *vectors)
TEXT ·encryptGroups(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), BX
	MOVQ keys+24(FP), R8
	MOVQ v+32(FP), CX
	CONSTANTS
	LEAQ (10*64)(R8), R9           // the end of the keys

four: // groups at once, because one alone waits for its own results most of the time
	CMPQ BX, $4
	JLT  one
	VMOVDQU64 0(SI), Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	VGF2P8AFFINEQB $0, PHI, Z0, Z0
	VGF2P8AFFINEQB $0, PHI, Z1, Z1
	VGF2P8AFFINEQB $0, PHI, Z2, Z2
	VGF2P8AFFINEQB $0, PHI, Z3, Z3
	VMOVDQU64 (R8), KEY
	VPXORQ KEY, Z0, Z0
	VPXORQ KEY, Z1, Z1
	VPXORQ KEY, Z2, Z2
	VPXORQ KEY, Z3, Z3
	LEAQ 64(R8), DX

fourRounds:
	VMOVDQU64 (DX), KEY
	ROUND(Z0, KEY)
	ROUND(Z1, KEY)
	ROUND(Z2, KEY)
	ROUND(Z3, KEY)
	ADDQ $64, DX
	CMPQ DX, R9
	JNE  fourRounds

	VGF2P8AFFINEQB $0, INVERSE, Z0, Z0
	VGF2P8AFFINEQB $0, INVERSE, Z1, Z1
	VGF2P8AFFINEQB $0, INVERSE, Z2, Z2
	VGF2P8AFFINEQB $0, INVERSE, Z3, Z3
	VMOVDQU64 Z0, 0(DI)
	VMOVDQU64 Z1, 64(DI)
	VMOVDQU64 Z2, 128(DI)
	VMOVDQU64 Z3, 192(DI)
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $4, BX
	JMP  four

one: // group at a time, for the last three or fewer
	TESTQ BX, BX
	JZ    done
	VMOVDQU64 (SI), Z0
	VGF2P8AFFINEQB $0, PHI, Z0, Z0
	VPXORQ (R8), Z0, Z0
	LEAQ 64(R8), DX

oneRounds:
	ROUND(Z0, (DX))
	ADDQ $64, DX
	CMPQ DX, R9
	JNE  oneRounds

	VGF2P8AFFINEQB $0, INVERSE, Z0, Z0
	VMOVDQU64 Z0, (DI)
	ADDQ $64, SI
	ADDQ $64, DI
	DECQ BX
	JMP  one

done:
	VZEROUPPER
	RET

// func expandKey(key *[32]byte, keys, plain *[10]vector, v *vectors)
TEXT ·expandKey(SB), NOSPLIT, $0-32
	MOVQ key+0(FP), SI
	MOVQ keys+8(FP), DI
	MOVQ plain+16(FP), R8
	MOVQ v+24(FP), CX
	CONSTANTS
	LEAQ vectors_schedule(CX), DX
	LEAQ (32*64)(DX), R9           // the end of the constants
	VBROADCASTI32X4 0(SI), Z0      // K_1 and K_2 are the key, in all four blocks
	VBROADCASTI32X4 16(SI), Z1
	VGF2P8AFFINEQB $0, PHI, Z0, Z0
	VGF2P8AFFINEQB $0, PHI, Z1, Z1

pair:
	VMOVDQU64 Z0, 0(DI)
	VMOVDQU64 Z1, 64(DI)
	VGF2P8AFFINEQB $0, INVERSE, Z0, Z2
	VGF2P8AFFINEQB $0, INVERSE, Z1, Z3
	VMOVDQU64 Z2, 0(R8)
	VMOVDQU64 Z3, 64(R8)
	CMPQ DX, R9
	JE   expanded
	ADDQ $128, DI
	ADDQ $128, R8
	MOVQ $8, BX

feistel: // (a1, a0) becomes (L(S(a1 + C)) + a0, a1)
	VMOVDQA64 Z0, Z2
	VPXORQ (DX), Z0, Z0
	ROUND(Z0, Z1)
	VMOVDQA64 Z2, Z1
	ADDQ $64, DX
	DECQ BX
	JNZ  feistel
	JMP  pair

expanded:
	VZEROUPPER
	RET
