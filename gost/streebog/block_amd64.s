//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// The compression function of RFC 6986, section 8, in vector registers of 64
// octets. block_amd64.go explains the shape and vectors_amd64.go makes every
// constant. Octet 8i+j of a block is the octet j of word i.
//
// A state lies in a register in one of two forms: by rows, as in a block, or by
// columns, octet 8j+i being the octet j of word i. All octets are images under phi,
// which leaves sums what they are. x_b stands for the register x where the word i
// (in ROWS) or the octet i of every word (in COLUMNS) is taken from the place i^b.

// What stays in registers.
#define T1 Z10 // intermediate values
#define T2 Z11
#define T3 Z12
#define T4 Z13
#define T5 Z14
#define T6 Z15
#define Y Z16
#define ZERO Z17
#define SBOX0 Z18 // phi(S(octet)) of 0 to 63, 64 to 127, ...
#define SBOX1 Z19
#define SBOX2 Z20
#define SBOX3 Z21
#define ONES Z22  // all bits set
#define BESIDE1 Z23 // indices of octets i^1, within each word
#define BESIDE3 Z24 // i^3
#define TURN Z25  // indices that turn rows into columns and back
#define CROSS Z26 // TURN, the halves exchanged after it
#define PHI Z27   // the matrix of phi for every word
#define COUNT Z28 // 512, the bits of a block

// ADD3 adds a and b to d: 0x96 is the truth table of the sum of three bits.
#define ADD3(a, b, d) VPTERNLOGQ $0x96, a, b, d

// SBOX replaces each octet of x by the value of the substitution. A table of 128
// octets is looked up by the low seven bits.
#define SBOX(x) \
	VMOVDQA64 x, T1                ; \
	VMOVDQA64 x, T2                ; \
	VPERMI2B SBOX1, SBOX0, x       /* the value, were the top bit 0 */; \
	VPERMI2B SBOX3, SBOX2, T2      /* the value, were the top bit 1 */; \
	VPSHUFB T1, ONES, T1           /* 0 where the top bit is 1, else 255 */; \
	VPTERNLOGQ $0xe2, T2, T1, x    /* T1 ? x : T2, bit by bit */

// ROWS leaves in x+T3+Y the product of the state x, by rows, and the matrix of L,
// by columns, plus c with its halves exchanged. The product is a sum over b of x_b
// times a vector of factors, b = 0 to 7.
#define ROWS(x, c) \
	VPSHUFD $0x4e, x, T1           /* x_1: words change places in pairs */; \
	VPERMQ $0x4e, x, T2            /* x_2: pairs change places in fours */; \
	VPERMQ $0x1b, x, T3            /* x_3: fours are turned round */; \
	VSHUFI64X2 $0x1b, x, x, T4     /* x_6: the order of pairs is turned round */; \
	VSHUFI64X2 $0x1b, T1, T1, T5   /* x_7: the same with x_1 */; \
	VGF2P8MULB (vectors_rows+6*64)(CX), x, Y   /* the terms of x_4 and x_5, */; \
	VGF2P8MULB (vectors_rows+7*64)(CX), T1, T6 /* four words away from */; \
	ADD3(c, T6, Y)                 /* where they belong, and c: */; \
	VSHUFI64X2 $0x4e, Y, Y, Y      /* the halves are exchanged */; \
	VGF2P8MULB (vectors_rows+0*64)(CX), x, x   /* the term of x_0 */; \
	VGF2P8MULB (vectors_rows+1*64)(CX), T1, T1 /* x_1 */; \
	VGF2P8MULB (vectors_rows+2*64)(CX), T2, T2 /* x_2 */; \
	VGF2P8MULB (vectors_rows+3*64)(CX), T3, T3 /* x_3 */; \
	VGF2P8MULB (vectors_rows+4*64)(CX), T4, T4 /* x_6 */; \
	VGF2P8MULB (vectors_rows+5*64)(CX), T5, T5 /* x_7 */; \
	ADD3(T1, T2, x)                /* x_0 + x_1 + x_2 */; \
	ADD3(T4, T5, T3)               /* x_3 + x_6 + x_7 */

// COLUMNS is ROWS the other way: x by columns, the product by rows, plus c as it is.
#define COLUMNS(x, c) \
	VPSHUFB BESIDE1, x, T1         /* x_1 */; \
	VPROLD $16, x, T2              /* x_2: halves of half words change places */; \
	VPSHUFB BESIDE3, x, T3         /* x_3 */; \
	VPROLQ $32, x, T4              /* x_4: halves of words change places */; \
	VGF2P8MULB (vectors_columns+5*64)(CX), T1, Y  /* the terms of x_5, */; \
	VGF2P8MULB (vectors_columns+6*64)(CX), T2, T5 /* x_6 */; \
	VGF2P8MULB (vectors_columns+7*64)(CX), T3, T6 /* and x_7, four octets */; \
	ADD3(T5, T6, Y)                /* away from where they belong: */; \
	VPROLQ $32, Y, Y               /* the halves of words are exchanged */; \
	VGF2P8MULB (vectors_columns+0*64)(CX), x, x   /* the term of x_0 */; \
	VGF2P8MULB (vectors_columns+1*64)(CX), T1, T1 /* x_1 */; \
	VGF2P8MULB (vectors_columns+2*64)(CX), T2, T2 /* x_2 */; \
	VGF2P8MULB (vectors_columns+3*64)(CX), T3, T3 /* x_3 */; \
	VGF2P8MULB (vectors_columns+4*64)(CX), T4, T4 /* x_4 */; \
	ADD3(T1, T2, x)                /* x_0 + x_1 + x_2 */; \
	ADD3(c, T4, T3)                /* x_3 + x_4 + c */

// ROUND takes the key k and the state s through S, P and L. The key gets the next
// constant, kc, added at once. The state gets the key added, and with sc the constant
// again, which takes it out. L is ROWS or COLUMNS. The sums are arranged so that what
// comes last, Y and the key, is added last.
#define ROUND(L, kc, sc, k, s) \
	SBOX(k)                        ; \
	SBOX(s)                        ; \
	L(k, kc)                       ; \
	ADD3(T3, Y, k)                 /* the new key and constant */; \
	L(s, sc)                       ; \
	VPXORQ T3, s, s                ; \
	ADD3(Y, k, s)                  /* the new state */

// BEGIN loads a block from p and does the first step of the key schedule. h is the
// chaining value by rows, n the bit count; k and s become key and state by columns,
// f what goes into the new chaining value beside the state, as ROWS wants it.
#define BEGIN(p, h, n, k, s, f) \
	VMOVDQU64 (p), s               ; \
	VGF2P8AFFINEQB $0, PHI, s, s   /* phi(block) */; \
	VGF2P8AFFINEQB $0, PHI, n, k   /* phi(n) */; \
	VPADDQ COUNT, n, n             /* the count after this block */; \
	VPXORQ h, k, k                 /* h + n is what the first key is made of */; \
	VPXORQ h, s, f                 ; \
	VPERMB f, CROSS, f             /* h + block, by columns, halves exchanged */; \
	VPERMB s, TURN, s              /* block, by columns */; \
	VPXORQ vectors_first(CX), s, s /* will take C_1 out of the key */; \
	SBOX(k)                        ; \
	ROWS(k, vectors_keys(CX))      ; \
	ADD3(T3, Y, k)                 /* the first key and C_1 */; \
	VPXORQ k, s, s                 /* block and first key */

// SUM adds the block at p to the 512-bit number at s, the low word first.
#define SUM(p, s) \
	MOVQ 0(p), AX; ADDQ AX, (state_sigma+0)(s)   ; \
	MOVQ 8(p), AX; ADCQ AX, (state_sigma+8)(s)   ; \
	MOVQ 16(p), AX; ADCQ AX, (state_sigma+16)(s) ; \
	MOVQ 24(p), AX; ADCQ AX, (state_sigma+24)(s) ; \
	MOVQ 32(p), AX; ADCQ AX, (state_sigma+32)(s) ; \
	MOVQ 40(p), AX; ADCQ AX, (state_sigma+40)(s) ; \
	MOVQ 48(p), AX; ADCQ AX, (state_sigma+48)(s) ; \
	MOVQ 56(p), AX; ADCQ AX, (state_sigma+56)(s)

// CONSTANTS loads what stays in registers.
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
// Z0 key, Z1 state, Z2 chaining value, Z3 what goes into the next, Z4 bit count.
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
// Registers of s as in compress; of t: Z5 key, Z6 state, Z7 chaining value, Z8 what
// goes into the next, Z9 bit count.
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
