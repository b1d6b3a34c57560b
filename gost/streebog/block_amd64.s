// SPDX-License-Identifier: Apache-2.0

//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// The compression function of RFC 6986, section 8, in vector registers of 64
// bytes. block_amd64.go explains the structure and vectors_amd64.go makes every
// constant. Byte 8i+j of a block is byte j of word i.
//
// A register holds a state in one of two forms. By rows, it is as in a block. By
// columns, byte 8j+i is byte j of word i. phi is applied to all bytes; it keeps sums.
// x_b means the register x with each word i (in ROWS), or each byte i of every word
// (in COLUMNS), taken from the place i^b.

// Registers that keep their purpose.
#define T1 Z10 // intermediate values
#define T2 Z11
#define T3 Z12
#define T4 Z13
#define T5 Z14
#define T6 Z15
#define Y Z16
#define ZERO Z17
#define SBOX0 Z18 // phi(S(byte)) of 0 to 63, 64 to 127, ...
#define SBOX1 Z19
#define SBOX2 Z20
#define SBOX3 Z21
#define ONES Z22  // all bits set
#define BESIDE1 Z23 // indices of bytes i^1, within each word
#define BESIDE3 Z24 // i^3
#define TURN Z25  // indices that turn rows into columns and back
#define CROSS Z26 // the same, then exchange the halves
#define PHI Z27   // the matrix of phi for every word
#define COUNT Z28 // 512, the number of bits in a block

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

// ROWS takes the state x by rows. It multiplies it by the matrix of L, adds c with its
// halves exchanged and leaves the result, by columns, as the sum x+T3+Y. The product
// is the sum over b = 0 to 7 of x_b times a vector of factors.
#define ROWS(x, c) \
	VPSHUFD $0x4e, x, T1           /* x_1: exchange the words of every pair */; \
	VPERMQ $0x4e, x, T2            /* x_2: exchange the pairs of every four words */; \
	VPERMQ $0x1b, x, T3            /* x_3: reverse every four words */; \
	VSHUFI64X2 $0x1b, x, x, T4     /* x_6: reverse the order of the pairs */; \
	VSHUFI64X2 $0x1b, T1, T1, T5   /* x_7: the same with x_1 */; \
	VGF2P8MULB (vectors_rows+6*64)(CX), x, Y   /* the terms of x_4 */; \
	VGF2P8MULB (vectors_rows+7*64)(CX), T1, T6 /* and x_5, four words */; \
	ADD3(c, T6, Y)                 /* from their place, plus c: */; \
	VSHUFI64X2 $0x4e, Y, Y, Y      /* exchange the halves */; \
	VGF2P8MULB (vectors_rows+0*64)(CX), x, x   /* the term of x_0 */; \
	VGF2P8MULB (vectors_rows+1*64)(CX), T1, T1 /* x_1 */; \
	VGF2P8MULB (vectors_rows+2*64)(CX), T2, T2 /* x_2 */; \
	VGF2P8MULB (vectors_rows+3*64)(CX), T3, T3 /* x_3 */; \
	VGF2P8MULB (vectors_rows+4*64)(CX), T4, T4 /* x_6 */; \
	VGF2P8MULB (vectors_rows+5*64)(CX), T5, T5 /* x_7 */; \
	ADD3(T1, T2, x)                /* x_0 + x_1 + x_2 */; \
	ADD3(T4, T5, T3)               /* x_3 + x_6 + x_7 */

// COLUMNS is ROWS in the other direction: x is by columns, and the result is by rows.
// It adds c without an exchange.
#define COLUMNS(x, c) \
	VPSHUFB BESIDE1, x, T1         /* x_1 */; \
	VPROLD $16, x, T2              /* x_2: exchange the halves of half words */; \
	VPSHUFB BESIDE3, x, T3         /* x_3 */; \
	VPROLQ $32, x, T4              /* x_4: exchange the halves of words */; \
	VGF2P8MULB (vectors_columns+5*64)(CX), T1, Y  /* the terms of x_5, */; \
	VGF2P8MULB (vectors_columns+6*64)(CX), T2, T5 /* x_6 */; \
	VGF2P8MULB (vectors_columns+7*64)(CX), T3, T6 /* and x_7, four bytes */; \
	ADD3(T5, T6, Y)                /* from their place: */; \
	VPROLQ $32, Y, Y               /* exchange the halves of words */; \
	VGF2P8MULB (vectors_columns+0*64)(CX), x, x   /* the term of x_0 */; \
	VGF2P8MULB (vectors_columns+1*64)(CX), T1, T1 /* x_1 */; \
	VGF2P8MULB (vectors_columns+2*64)(CX), T2, T2 /* x_2 */; \
	VGF2P8MULB (vectors_columns+3*64)(CX), T3, T3 /* x_3 */; \
	VGF2P8MULB (vectors_columns+4*64)(CX), T4, T4 /* x_4 */; \
	ADD3(T1, T2, x)                /* x_0 + x_1 + x_2 */; \
	ADD3(c, T4, T3)                /* x_3 + x_4 + c */

// ROUND applies S, P and L to the key k and the state s. It adds the next constant, kc,
// to the key. It adds this key to the state, and sc, the same constant, which cancels
// the constant in the key. L is ROWS or COLUMNS. The order of the sums adds the
// operands that are ready last, Y and the key, at the end.
#define ROUND(L, kc, sc, k, s) \
	SBOX(k)                        ; \
	SBOX(s)                        ; \
	L(k, kc)                       ; \
	ADD3(T3, Y, k)                 /* the new key and constant */; \
	L(s, sc)                       ; \
	VPXORQ T3, s, s                ; \
	ADD3(Y, k, s)                  /* the new state */

// BEGIN loads a block from p and does the first step of the key schedule. h is the
// chaining value by rows and n the bit count. It sets k and s to key and state by
// columns. It sets f to h + block, which goes into the new chaining value together
// with the state, in the form that ROWS takes for c.
#define BEGIN(p, h, n, k, s, f) \
	VMOVDQU64 (p), s               ; \
	VGF2P8AFFINEQB $0, PHI, s, s   /* phi(block) */; \
	VGF2P8AFFINEQB $0, PHI, n, k   /* phi(n) */; \
	VPADDQ COUNT, n, n             /* the count after this block */; \
	VPXORQ h, k, k                 /* h + n, from which the first key is made */; \
	VPXORQ h, s, f                 ; \
	VPERMB f, CROSS, f             /* h + block, by columns, halves exchanged */; \
	VPERMB s, TURN, s              /* block, by columns */; \
	VPXORQ vectors_first(CX), s, s /* cancels the C_1 in the key below */; \
	SBOX(k)                        ; \
	ROWS(k, vectors_keys(CX))      ; \
	ADD3(T3, Y, k)                 /* the first key and C_1 */; \
	VPXORQ k, s, s                 /* block and first key */

// SUM adds the block at p to the 512-bit sum in the state at s, the low word first.
#define SUM(p, s) \
	MOVQ 0(p), AX; ADDQ AX, (state_sigma+0)(s)   ; \
	MOVQ 8(p), AX; ADCQ AX, (state_sigma+8)(s)   ; \
	MOVQ 16(p), AX; ADCQ AX, (state_sigma+16)(s) ; \
	MOVQ 24(p), AX; ADCQ AX, (state_sigma+24)(s) ; \
	MOVQ 32(p), AX; ADCQ AX, (state_sigma+32)(s) ; \
	MOVQ 40(p), AX; ADCQ AX, (state_sigma+40)(s) ; \
	MOVQ 48(p), AX; ADCQ AX, (state_sigma+48)(s) ; \
	MOVQ 56(p), AX; ADCQ AX, (state_sigma+56)(s)

// CONSTANTS loads the registers that keep their purpose.
#define CONSTANTS \
	VMOVDQU64 (vectors_sbox+0*64)(CX), SBOX0   ; \
	VMOVDQU64 (vectors_sbox+1*64)(CX), SBOX1   ; \
	VMOVDQU64 (vectors_sbox+2*64)(CX), SBOX2   ; \
	VMOVDQU64 (vectors_sbox+3*64)(CX), SBOX3   ; \
	VMOVDQU64 (vectors_beside+0*64)(CX), BESIDE1 ; \
	VMOVDQU64 (vectors_beside+1*64)(CX), BESIDE3 ; \
	VMOVDQU64 vectors_turn(CX), TURN           ; \
	VMOVDQU64 vectors_cross(CX), CROSS         ; \
	VMOVDQU64 vectors_phi(CX), PHI             ; \
	VMOVDQU64 vectors_count(CX), COUNT         ; \
	VPTERNLOGQ $0xff, ONES, ONES, ONES         ; \
	VPXORQ ZERO, ZERO, ZERO

// func compress(s *state, p *byte, n int, v *vectors)
//
// Z0 key, Z1 state, Z2 chaining value, Z3 f of BEGIN, Z4 bit count.
TEXT ·compress(SB), NOSPLIT, $0-32
	MOVQ s+0(FP), DI
	MOVQ p+8(FP), SI
	MOVQ n+16(FP), BX
	MOVQ v+24(FP), CX
	CONSTANTS
	VMOVDQU64 state_h(DI), Z2
	VGF2P8AFFINEQB $0, PHI, Z2, Z2
	VMOVDQU64 state_n(DI), Z4

block:
	BEGIN(SI, Z2, Z4, Z0, Z1, Z3)
	SUM(SI, DI)
	LEAQ vectors_keys(CX), DX
	LEAQ (10*64)(DX), R8

rounds:
	ROUND(COLUMNS, 64(DX), 64(DX), Z0, Z1)
	ROUND(ROWS, 128(DX), 128(DX), Z0, Z1)
	ADDQ $128, DX
	CMPQ DX, R8
	JNE rounds

	ROUND(COLUMNS, 64(DX), 64(DX), Z0, Z1)
	ROUND(ROWS, Z3, ZERO, Z0, Z1)  // the last key brings h + block with it
	VPERMB Z1, TURN, Z2            // back to rows
	ADDQ $64, SI
	DECQ BX
	JNZ block

	VGF2P8AFFINEQB $0, vectors_inverse(CX), Z2, Z2
	VMOVDQU64 Z2, state_h(DI)
	VMOVDQU64 Z4, state_n(DI)
	VZEROUPPER
	RET

// func compressTwo(s, t *state, p, q *byte, n int, v *vectors)
//
// For s the registers are those of compress. For t: Z5 key, Z6 state, Z7 chaining
// value, Z8 f of BEGIN, Z9 bit count.
TEXT ·compressTwo(SB), NOSPLIT, $0-48
	MOVQ s+0(FP), DI
	MOVQ t+8(FP), R9
	MOVQ p+16(FP), SI
	MOVQ q+24(FP), R10
	MOVQ n+32(FP), BX
	MOVQ v+40(FP), CX
	CONSTANTS
	VMOVDQU64 state_h(DI), Z2
	VGF2P8AFFINEQB $0, PHI, Z2, Z2
	VMOVDQU64 state_n(DI), Z4
	VMOVDQU64 state_h(R9), Z7
	VGF2P8AFFINEQB $0, PHI, Z7, Z7
	VMOVDQU64 state_n(R9), Z9

block:
	BEGIN(SI, Z2, Z4, Z0, Z1, Z3)
	BEGIN(R10, Z7, Z9, Z5, Z6, Z8)
	SUM(SI, DI)
	SUM(R10, R9)
	LEAQ vectors_keys(CX), DX
	LEAQ (10*64)(DX), R8

rounds:
	ROUND(COLUMNS, 64(DX), 64(DX), Z0, Z1)
	ROUND(COLUMNS, 64(DX), 64(DX), Z5, Z6)
	ROUND(ROWS, 128(DX), 128(DX), Z0, Z1)
	ROUND(ROWS, 128(DX), 128(DX), Z5, Z6)
	ADDQ $128, DX
	CMPQ DX, R8
	JNE rounds

	ROUND(COLUMNS, 64(DX), 64(DX), Z0, Z1)
	ROUND(COLUMNS, 64(DX), 64(DX), Z5, Z6)
	ROUND(ROWS, Z3, ZERO, Z0, Z1)  // the last key brings h + block with it
	ROUND(ROWS, Z8, ZERO, Z5, Z6)
	VPERMB Z1, TURN, Z2            // back to rows
	VPERMB Z6, TURN, Z7
	ADDQ $64, SI
	ADDQ $64, R10
	DECQ BX
	JNZ block

	VGF2P8AFFINEQB $0, vectors_inverse(CX), Z2, Z2
	VMOVDQU64 Z2, state_h(DI)
	VMOVDQU64 Z4, state_n(DI)
	VGF2P8AFFINEQB $0, vectors_inverse(CX), Z7, Z7
	VMOVDQU64 Z7, state_h(R9)
	VMOVDQU64 Z9, state_n(R9)
	VZEROUPPER
	RET
