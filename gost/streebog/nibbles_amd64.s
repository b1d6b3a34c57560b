// SPDX-License-Identifier: Apache-2.0

//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// The compression function of RFC 6986, section 8, for processors without AVX-512, in
// vector registers of 32 bytes. Each look-up is a VPSHUFB, which takes 16 bytes from a
// table in a register, so no address depends on data. nibbles_amd64.go explains the
// decomposition of S and makes every constant.
//
// The key and the state are processed together, in four registers, Y0 to Y3. Register
// q has word 2q of both in its lower half and word 2q+1 in its upper half. Byte 2i of a
// half is byte i of the key's word, byte 2i+1 that of the state's word. alpha is applied
// to all bytes.

#define MASK Y13 // 15 in all bytes
#define T Y14    // intermediate values
#define U Y15

// LOOK replaces the indices in x and y by the values of a table. LOOKTO leaves the
// values in a and b.
#define LOOK(table, x, y) \
	VMOVDQU table(CX), U          ; \
	VPSHUFB x, U, x               ; \
	VPSHUFB y, U, y
#define LOOKTO(table, x, y, a, b) \
	VMOVDQU table(CX), U          ; \
	VPSHUFB x, U, a               ; \
	VPSHUFB y, U, b

// MOD15 reduces sums of two logarithms. A byte with the top bit set keeps it.
#define MOD15(x, y) \
	VPADDB nibbles_less15(CX), x, T ; \
	VPADDB nibbles_less15(CX), y, U ; \
	VPMINUB T, x, x                 ; \
	VPMINUB U, y, y

// SBOX applies S before omega to the bytes of x and y. It leaves the right nibbles there
// and the left ones in l and m. Y8 to Y11 are for intermediate values.
#define SBOX(x, y, l, m) \
	VPSRLW $4, x, l                ; \
	VPSRLW $4, y, m                ; \
	VPAND MASK, x, x               ; \
	VPAND MASK, y, y               ; \
	VPAND MASK, l, l               ; \
	VPAND MASK, m, m               ; \
	LOOKTO(nibbles_inverses, x, y, Y8, Y9) ; \
	LOOKTO(nibbles_left, l, m, Y10, Y11)   ; \
	VPADDB Y8, Y10, Y10            ; \
	VPADDB Y9, Y11, Y11            ; \
	VPADDB Y8, l, l                /* the top bit is set unless the right one is 0 */; \
	VPADDB Y9, m, m                ; \
	MOD15(Y10, Y11)                ; \
	LOOK(nibbles_nu0, l, m)        ; \
	LOOK(nibbles_nu1, Y10, Y11)    ; \
	VPXOR Y10, l, l                ; \
	VPXOR Y11, m, m                ; \
	LOOK(nibbles_right, x, y)      ; \
	LOOKTO(nibbles_phi, l, m, Y8, Y9) ; \
	VPADDB Y8, x, x                ; \
	VPADDB Y9, y, y                ; \
	MOD15(x, y)                    ; \
	LOOK(nibbles_sigma, x, y)

// TERM adds to sum what table n of L has for the nibbles in index.
#define TERM(n, index, sum) \
	VMOVDQU (nibbles_linear+(n)*32)(CX), T ; \
	VPSHUFB index, T, T            ; \
	VPXOR T, sum, sum

// TERMS sets sum to what the eight tables from n have for all nibbles.
#define TERMS(n, sum) \
	VMOVDQU (nibbles_linear+(n)*32)(CX), sum ; \
	VPSHUFB Y4, sum, sum           ; \
	TERM(n+1, Y0, sum)             ; \
	TERM(n+2, Y5, sum)             ; \
	TERM(n+3, Y1, sum)             ; \
	TERM(n+4, Y6, sum)             ; \
	TERM(n+5, Y2, sum)             ; \
	TERM(n+6, Y7, sum)             ; \
	TERM(n+7, Y3, sum)

// COLUMNS sets sum to bytes i (lower half) and i+4 of all words of L, adds the constants
// at c to both the key and the state and then the key to the state, where the constants
// cancel. What comes from the other half of a register is summed first, and its halves
// are exchanged.
#define COLUMNS(i, c, sum) \
	TERMS(16*i+8, Y12)             ; \
	VPERM2I128 $0x01, Y12, Y12, Y12; \
	TERMS(16*i, sum)               ; \
	VPXOR (32*i)(c), Y12, Y12      ; \
	VPXOR Y12, sum, sum            ; \
	VPSLLW $8, sum, T              ; \
	VPXOR T, sum, sum

// STEP applies S, P and L to the key and the state, adds the new key to the state and
// the constants at c to the key.
#define STEP(c) \
	SBOX(Y0, Y1, Y4, Y5)          ; \
	SBOX(Y2, Y3, Y6, Y7)          ; \
	COLUMNS(0, c, Y8)             ; \
	COLUMNS(2, c, Y10)            ; \
	COLUMNS(1, c, Y9)             ; \
	COLUMNS(3, c, Y11)            ; \
	/* transpose: bytes i of the words to words */ ; \
	VPUNPCKLWD Y10, Y8, Y0        ; \
	VPUNPCKHWD Y10, Y8, Y2        ; \
	VPUNPCKLWD Y11, Y9, Y1        ; \
	VPUNPCKHWD Y11, Y9, Y3        ; \
	VPUNPCKHWD Y1, Y0, Y4         ; \
	VPUNPCKLWD Y1, Y0, Y0         ; \
	VPUNPCKHWD Y3, Y2, Y5         ; \
	VPUNPCKLWD Y3, Y2, Y2         ; \
	VPERMQ $0xd8, Y0, Y0          ; \
	VPERMQ $0xd8, Y4, Y1          ; \
	VPERMQ $0xd8, Y2, Y2          ; \
	VPERMQ $0xd8, Y5, Y3

// MAP applies the linear map with the tables low and high to the bytes of x.
#define MAP(low, high, x) \
	VPSRLW $4, x, T               ; \
	VPAND MASK, x, x              ; \
	VPAND MASK, T, T              ; \
	VMOVDQU low(CX), U            ; \
	VPSHUFB x, U, x               ; \
	VMOVDQU high(CX), U           ; \
	VPSHUFB T, U, T               ; \
	VPXOR T, x, x

// BLOCK adds the words of the block at p to the state.
#define BLOCK(p, x) \
	VPMOVZXBW p, T                ; \
	VPSLLW $8, T, T               ; \
	VPXOR T, x, x

// func compressNibbles(s *state, p *byte, n int, v *nibbles)
//
// On the stack: alpha of the chaining value plus the bit count, alpha of the block.
TEXT ·compressNibbles(SB), 0, $128-32
	MOVQ s+0(FP), DI
	MOVQ p+8(FP), SI
	MOVQ n+16(FP), BX
	MOVQ v+24(FP), CX
	VMOVDQU nibbles_mask(CX), MASK

block:
	VMOVDQU state_h(DI), Y0
	VMOVDQU (state_h+32)(DI), Y1
	VMOVDQU 0(SI), Y2
	VMOVDQU 32(SI), Y3
	VPXOR state_n(DI), Y0, Y0
	VPXOR (state_n+32)(DI), Y1, Y1
	MAP(nibbles_alpha, nibbles_alpha+32, Y0)
	MAP(nibbles_alpha, nibbles_alpha+32, Y1)
	MAP(nibbles_alpha, nibbles_alpha+32, Y2)
	MAP(nibbles_alpha, nibbles_alpha+32, Y3)
	VMOVDQU Y0, 0(SP)
	VMOVDQU Y1, 32(SP)
	VMOVDQU Y2, 64(SP)
	VMOVDQU Y3, 96(SP)
	VPMOVZXBW 0(SP), Y0
	VPMOVZXBW 16(SP), Y1
	VPMOVZXBW 32(SP), Y2
	VPMOVZXBW 48(SP), Y3
	VMOVDQU nibbles_start(CX), T
	VPXOR T, Y0, Y0
	VPXOR T, Y1, Y1
	VPXOR T, Y2, Y2
	VPXOR T, Y3, Y3
	LEAQ nibbles_keys(CX), DX
	STEP(DX)                      // the first key
	BLOCK(64(SP), Y0)
	BLOCK(80(SP), Y1)
	BLOCK(96(SP), Y2)
	BLOCK(112(SP), Y3)

	ADDQ $512, state_n(DI)
	MOVQ 0(SI), AX; ADDQ AX, (state_sigma+0)(DI)
	MOVQ 8(SI), AX; ADCQ AX, (state_sigma+8)(DI)
	MOVQ 16(SI), AX; ADCQ AX, (state_sigma+16)(DI)
	MOVQ 24(SI), AX; ADCQ AX, (state_sigma+24)(DI)
	MOVQ 32(SI), AX; ADCQ AX, (state_sigma+32)(DI)
	MOVQ 40(SI), AX; ADCQ AX, (state_sigma+40)(DI)
	MOVQ 48(SI), AX; ADCQ AX, (state_sigma+48)(DI)
	MOVQ 56(SI), AX; ADCQ AX, (state_sigma+56)(DI)

	MOVQ $12, R8
round:
	ADDQ $128, DX
	STEP(DX)
	DECQ R8
	JNZ  round

	// The state alone, in order, becomes a part of the chaining value.
	VPSRLW $8, Y0, Y0
	VPSRLW $8, Y1, Y1
	VPSRLW $8, Y2, Y2
	VPSRLW $8, Y3, Y3
	VPACKUSWB Y1, Y0, Y0
	VPACKUSWB Y3, Y2, Y2
	VPERMQ $0xd8, Y0, Y0
	VPERMQ $0xd8, Y2, Y2
	MAP(nibbles_inverse, nibbles_inverse+32, Y0)
	MAP(nibbles_inverse, nibbles_inverse+32, Y2)
	VPXOR 0(SI), Y0, Y0
	VPXOR 32(SI), Y2, Y2
	VPXOR state_h(DI), Y0, Y0
	VPXOR (state_h+32)(DI), Y2, Y2
	VMOVDQU Y0, state_h(DI)
	VMOVDQU Y2, (state_h+32)(DI)
	ADDQ $64, SI
	DECQ BX
	JNZ  block

	VPXOR Y0, Y0, Y0              // leaves nothing on the stack
	VMOVDQU Y0, 0(SP)
	VMOVDQU Y0, 32(SP)
	VMOVDQU Y0, 64(SP)
	VMOVDQU Y0, 96(SP)
	VZEROUPPER
	RET
