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

// LOOK sets r to the values of a table at the indices in x, for four registers.
#define LOOK(table, x0, x1, x2, x3, r0, r1, r2, r3) \
	VMOVDQU table(CX), U          ; \
	VPSHUFB x0, U, r0             ; \
	VPSHUFB x1, U, r1             ; \
	VPSHUFB x2, U, r2             ; \
	VPSHUFB x3, U, r3

// SPLIT sets l to the left nibbles of x and leaves the right ones in x.
#define SPLIT(x, l) \
	VPSRLW $4, x, l               ; \
	VPAND MASK, x, x              ; \
	VPAND MASK, l, l

// QUOTIENT sets l to the index of l'. It takes the logarithms of l in d and of r in x,
// and from l what it is if r is 0.
#define QUOTIENT(x, l, d) \
	VPSUBB x, d, d                ; \
	VPADDB x, l, l                ; \
	VPADDB nibbles_plus15(CX), d, T ; \
	VPMINUB T, d, d               ; \
	VPMINSB l, d, l

// PRODUCT sets x to the index of r'. It takes the logarithms of r in x and of phi(l')
// in f.
#define PRODUCT(x, f) \
	VPADDB f, x, x                ; \
	VPADDB nibbles_less15(CX), x, T ; \
	VPMINUB T, x, x

// SBOX applies S before omega to the bytes of Y0 to Y3. It leaves indices of the right
// nibbles there and of the left ones in Y4 to Y7.
#define SBOX \
	SPLIT(Y0, Y4)                 ; \
	SPLIT(Y1, Y5)                 ; \
	SPLIT(Y2, Y6)                 ; \
	SPLIT(Y3, Y7)                 ; \
	LOOK(nibbles_right, Y0, Y1, Y2, Y3, Y0, Y1, Y2, Y3)   ; \
	LOOK(nibbles_left, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11)  ; \
	LOOK(nibbles_alone, Y4, Y5, Y6, Y7, Y4, Y5, Y6, Y7)   ; \
	QUOTIENT(Y0, Y4, Y8)          ; \
	QUOTIENT(Y1, Y5, Y9)          ; \
	QUOTIENT(Y2, Y6, Y10)         ; \
	QUOTIENT(Y3, Y7, Y11)         ; \
	LOOK(nibbles_phi, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11)   ; \
	PRODUCT(Y0, Y8)               ; \
	PRODUCT(Y1, Y9)               ; \
	PRODUCT(Y2, Y10)              ; \
	PRODUCT(Y3, Y11)

// TERM adds to sum what table n of L has for the indices in x.
#define TERM(n, x, sum) \
	VMOVDQU (nibbles_linear+(n)*32)(CX), T ; \
	VPSHUFB x, T, T               ; \
	VPXOR T, sum, sum

// FIRST does what TERM does for a sum of 0.
#define FIRST(n, x, sum) \
	VMOVDQU (nibbles_linear+(n)*32)(CX), sum ; \
	VPSHUFB x, sum, sum

// TERMS adds to the four sums what tables n to n+3 have for the indices in x. The sums
// take turns, so that none waits for itself.
#define TERMS(n, x) \
	TERM(n, x, Y8)                ; \
	TERM(n+1, x, Y9)              ; \
	TERM(n+2, x, Y10)             ; \
	TERM(n+3, x, Y11)

// EXCHANGE exchanges the halves of sum and adds the constants at c.
#define EXCHANGE(c, sum) \
	VPERM2I128 $0x01, sum, sum, sum ; \
	VPXOR c, sum, sum

// ADDKEY adds the key to the state.
#define ADDKEY(sum) \
	VPSLLW $8, sum, T             ; \
	VPXOR T, sum, sum

// STEP applies S, P and L to the key and the state, adds the new key to the state and
// the constants at c to the key. The constants are added to the state, too, where the
// addition of the key cancels them.
//
// Sum i, in Y8 to Y11, becomes bytes i (lower half) and i+4 of all words of L. It starts
// with what comes from the other half of a register. Indices of left nibbles are ready
// first.
#define STEP(c) \
	SBOX                          ; \
	FIRST(0, Y4, Y8)              ; \
	FIRST(1, Y4, Y9)              ; \
	FIRST(2, Y4, Y10)             ; \
	FIRST(3, Y4, Y11)             ; \
	TERMS(4, Y5)                  ; \
	TERMS(8, Y6)                  ; \
	TERMS(12, Y7)                 ; \
	TERMS(16, Y0)                 ; \
	TERMS(20, Y1)                 ; \
	TERMS(24, Y2)                 ; \
	TERMS(28, Y3)                 ; \
	EXCHANGE(0(c), Y8)            ; \
	EXCHANGE(32(c), Y9)           ; \
	EXCHANGE(64(c), Y10)          ; \
	EXCHANGE(96(c), Y11)          ; \
	TERMS(32, Y4)                 ; \
	TERMS(36, Y5)                 ; \
	TERMS(40, Y6)                 ; \
	TERMS(44, Y7)                 ; \
	TERMS(48, Y0)                 ; \
	TERMS(52, Y1)                 ; \
	TERMS(56, Y2)                 ; \
	TERMS(60, Y3)                 ; \
	ADDKEY(Y8)                    ; \
	ADDKEY(Y9)                    ; \
	ADDKEY(Y10)                   ; \
	ADDKEY(Y11)                   ; \
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

// TWO sets x to alpha of the two words at p, in the form of a key.
#define TWO(p, x) \
	VPMOVZXBW p, x                ; \
	MAP(nibbles_alpha, nibbles_alpha+32, x)

// BLOCK stores alpha of two words of the block, in the form of a state.
#define BLOCK(p, stored) \
	TWO(p, Y4)                    ; \
	VPSLLW $8, Y4, Y4             ; \
	VMOVDQU Y4, stored

// CHAIN sets x, the key and the state, to a part of the new chaining value.
#define CHAIN(block, chaining, x) \
	VPXOR block, x, x             ; \
	VPSRLW $8, x, x               ; \
	VPXOR chaining, x, x          ; \
	VMOVDQU x, chaining

// WIPE clears 128 bytes.
#define WIPE(n) \
	VMOVDQU Y4, (n)(SP)           ; \
	VMOVDQU Y4, (n+32)(SP)        ; \
	VMOVDQU Y4, (n+64)(SP)        ; \
	VMOVDQU Y4, (n+96)(SP)

// func compressNibbles(s *state, p *byte, n int, v *nibbles)
//
// On the stack: the chaining value in the form of a key, the block in that of a state,
// the bit count, of which only the low word changes, plus start, in that of a key.
TEXT ·compressNibbles(SB), 0, $384-32
	MOVQ s+0(FP), DI
	MOVQ p+8(FP), SI
	MOVQ n+16(FP), BX
	MOVQ v+24(FP), CX
	VMOVDQU nibbles_mask(CX), MASK
	VMOVDQU nibbles_start(CX), Y12
	TWO((state_n+16)(DI), Y1)
	TWO((state_n+32)(DI), Y2)
	TWO((state_n+48)(DI), Y3)
	VPXOR Y12, Y1, Y1
	VPXOR Y12, Y2, Y2
	VPXOR Y12, Y3, Y3
	VMOVDQU Y1, 288(SP)
	VMOVDQU Y2, 320(SP)
	VMOVDQU Y3, 352(SP)
	TWO((state_h+0)(DI), Y0)
	TWO((state_h+16)(DI), Y1)
	TWO((state_h+32)(DI), Y2)
	TWO((state_h+48)(DI), Y3)
	VMOVDQU Y0, 0(SP)
	VMOVDQU Y1, 32(SP)
	VMOVDQU Y2, 64(SP)
	VMOVDQU Y3, 96(SP)

block:
	BLOCK(0(SI), 128(SP))
	BLOCK(16(SI), 160(SP))
	BLOCK(32(SI), 192(SP))
	BLOCK(48(SI), 224(SP))
	TWO(state_n(DI), Y4)
	VPXOR Y12, Y4, Y4
	VPXOR Y4, Y0, Y0
	VPXOR 288(SP), Y1, Y1
	VPXOR 320(SP), Y2, Y2
	VPXOR 352(SP), Y3, Y3
	LEAQ nibbles_keys(CX), DX
	STEP(DX)                      // the first key
	VPXOR 128(SP), Y0, Y0
	VPXOR 160(SP), Y1, Y1
	VPXOR 192(SP), Y2, Y2
	VPXOR 224(SP), Y3, Y3

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

	CHAIN(128(SP), 0(SP), Y0)
	CHAIN(160(SP), 32(SP), Y1)
	CHAIN(192(SP), 64(SP), Y2)
	CHAIN(224(SP), 96(SP), Y3)
	ADDQ $64, SI
	DECQ BX
	JNZ  block

	VPACKUSWB Y1, Y0, Y0
	VPACKUSWB Y3, Y2, Y2
	VPERMQ $0xd8, Y0, Y0
	VPERMQ $0xd8, Y2, Y2
	MAP(nibbles_inverse, nibbles_inverse+32, Y0)
	MAP(nibbles_inverse, nibbles_inverse+32, Y2)
	VMOVDQU Y0, state_h(DI)
	VMOVDQU Y2, (state_h+32)(DI)

	VPXOR Y4, Y4, Y4              // leaves nothing on the stack
	WIPE(0)
	WIPE(128)
	WIPE(256)
	VZEROUPPER
	RET
