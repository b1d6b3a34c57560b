// SPDX-License-Identifier: Apache-2.0

//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// GOST 28147-89 (RFC 5830) with sixteen blocks in a pair of registers. One register
// has the lower halves of the blocks, the other the higher halves. Eight pairs are
// processed at once while there are as many blocks. The code is straight-line code and
// loops over counts. No address and no jump depends on key or data.

#define LOWER Z24  // values for the lower four bits of bytes, see wide
#define UPPER Z25  // values for the upper four bits
#define NIBBLE Z26 // 15 in every byte
#define PLACE Z27  // 16p in byte p of every word

DATA nibble<>+0(SB)/4, $0x0f0f0f0f
DATA place<>+0(SB)/4, $0x30201000
GLOBL nibble<>(SB), RODATA, $4
GLOBL place<>(SB), RODATA, $4

// ROUND adds the round function of x and a key to y. 0xea is the truth table of
// (a & b) | c, 0x96 that of a + b + c. VPERMB looks up the low six bits of each byte of
// an index in a register of 64 bytes.
#define ROUND(x, y, key, t, u) \
	VPADDD.BCST key, x, t           /* x + key modulo 2^32 */; \
	VPSRLD $4, t, u                 /* the upper four bits of bytes, moved down */; \
	VPTERNLOGD $0xea, PLACE, NIBBLE, t /* lower four bits, and 16p */; \
	VPTERNLOGD $0xea, PLACE, NIBBLE, u ; \
	VPERMB LOWER, t, t              ; \
	VPERMB UPPER, u, u              ; \
	VPROLD $11, t, t                ; \
	VPROLD $11, u, u                ; \
	VPTERNLOGD $0x96, t, u, y

// ROUND1 is ROUND for one block. All but the look-ups are on the registers of 16 bytes, which is faster.
#define ROUND1(x, y, key, t, zt, u, zu) \
	VPADDD.BCST key, x, t           ; \
	VPSRLD $4, t, u                 ; \
	VPTERNLOGD $0xea, X27, X26, t   /* PLACE and NIBBLE */; \
	VPTERNLOGD $0xea, X27, X26, u   ; \
	VPERMB LOWER, zt, zt            ; \
	VPERMB UPPER, zu, zu            ; \
	VPROLD $11, t, t                ; \
	VPROLD $11, u, u                ; \
	VPTERNLOGD $0x96, t, u, y

// LOAD splits sixteen blocks into their lower halves, x, and higher halves, y. Each 128
// bits of x and y hold the words of two blocks from the first 64 bytes and of two
// blocks from the next. STORE restores the order.
#define LOAD(at, x, y, t, u) \
	VMOVDQU64 at(SI), t             ; \
	VMOVDQU64 (at+64)(SI), u        ; \
	VSHUFPS $0x88, u, t, x          /* words 0 and 2 of t, then of u */; \
	VSHUFPS $0xdd, u, t, y          /* words 1 and 3 */

// STORE is the inverse of LOAD, except that y goes first, because the last round does
// not exchange the halves.
#define STORE(at, x, y, t, u) \
	VPUNPCKLDQ x, y, t              /* y0 x0 y1 x1 */; \
	VPUNPCKHDQ x, y, u              /* y2 x2 y3 x3 */; \
	VMOVDQU64 t, at(DI)             ; \
	VMOVDQU64 u, (at+64)(DI)

// func encryptGroups(dst, src *byte, n int, keys *[32]uint32, s *wide)
TEXT ·encryptGroups(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), BX
	MOVQ keys+24(FP), R8
	MOVQ s+32(FP), CX
	VMOVDQU64 wide_lower(CX), LOWER
	VMOVDQU64 wide_upper(CX), UPPER
	VPBROADCASTD nibble<>(SB), NIBBLE
	VPBROADCASTD place<>(SB), PLACE

eight: // pairs at once, because one alone waits for its own results most of the time
	CMPQ BX, $8
	JLT  one
	LOAD(0, Z0, Z1, Z16, Z17)
	LOAD(128, Z2, Z3, Z18, Z19)
	LOAD(256, Z4, Z5, Z20, Z21)
	LOAD(384, Z6, Z7, Z22, Z23)
	LOAD(512, Z8, Z9, Z16, Z17)
	LOAD(640, Z10, Z11, Z18, Z19)
	LOAD(768, Z12, Z13, Z20, Z21)
	LOAD(896, Z14, Z15, Z22, Z23)
	MOVQ R8, DX
	MOVQ $16, AX

eightRounds: // two rounds of eight pairs
	ROUND(Z0, Z1, 0(DX), Z16, Z17)
	ROUND(Z2, Z3, 0(DX), Z18, Z19)
	ROUND(Z4, Z5, 0(DX), Z20, Z21)
	ROUND(Z6, Z7, 0(DX), Z22, Z23)
	ROUND(Z8, Z9, 0(DX), Z16, Z17)
	ROUND(Z10, Z11, 0(DX), Z18, Z19)
	ROUND(Z12, Z13, 0(DX), Z20, Z21)
	ROUND(Z14, Z15, 0(DX), Z22, Z23)
	ROUND(Z1, Z0, 4(DX), Z16, Z17)
	ROUND(Z3, Z2, 4(DX), Z18, Z19)
	ROUND(Z5, Z4, 4(DX), Z20, Z21)
	ROUND(Z7, Z6, 4(DX), Z22, Z23)
	ROUND(Z9, Z8, 4(DX), Z16, Z17)
	ROUND(Z11, Z10, 4(DX), Z18, Z19)
	ROUND(Z13, Z12, 4(DX), Z20, Z21)
	ROUND(Z15, Z14, 4(DX), Z22, Z23)
	ADDQ $8, DX
	DECQ AX
	JNZ  eightRounds

	STORE(0, Z0, Z1, Z16, Z17)
	STORE(128, Z2, Z3, Z18, Z19)
	STORE(256, Z4, Z5, Z20, Z21)
	STORE(384, Z6, Z7, Z22, Z23)
	STORE(512, Z8, Z9, Z16, Z17)
	STORE(640, Z10, Z11, Z18, Z19)
	STORE(768, Z12, Z13, Z20, Z21)
	STORE(896, Z14, Z15, Z22, Z23)
	ADDQ $1024, SI
	ADDQ $1024, DI
	SUBQ $8, BX
	JMP  eight

one: // pair at a time, for the last seven or fewer
	TESTQ BX, BX
	JZ    done
	LOAD(0, Z0, Z1, Z8, Z9)
	MOVQ R8, DX
	MOVQ $16, AX

oneRounds:
	ROUND(Z0, Z1, 0(DX), Z8, Z9)
	ROUND(Z1, Z0, 4(DX), Z8, Z9)
	ADDQ $8, DX
	DECQ AX
	JNZ  oneRounds

	STORE(0, Z0, Z1, Z8, Z9)
	ADDQ $128, SI
	ADDQ $128, DI
	DECQ BX
	JMP  one

done:
	VZEROUPPER
	RET

// func encryptChain(dst, src *byte, n int, keys *[32]uint32, s *wide, iv *uint64)
//
// One block waits for the one before it, so the registers have one block each. Its words are in the lowest lanes, and
// what is in the others does not matter.
TEXT ·encryptChain(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), BX
	MOVQ keys+24(FP), R8
	MOVQ s+32(FP), CX
	MOVQ iv+40(FP), R9
	VMOVDQU64 wide_lower(CX), LOWER
	VMOVDQU64 wide_upper(CX), UPPER
	VPBROADCASTD nibble<>(SB), NIBBLE
	VPBROADCASTD place<>(SB), PLACE
	VMOVQ (R9), X2

chain:
	TESTQ BX, BX
	JZ    chained
	VMOVDQA X2, X0
	VPSRLQ $32, X2, X1
	MOVQ R8, DX
	MOVQ $4, AX

chainRounds: // eight rounds
	ROUND1(X0, X1, 0(DX), X8, Z8, X9, Z9)
	ROUND1(X1, X0, 4(DX), X8, Z8, X9, Z9)
	ROUND1(X0, X1, 8(DX), X8, Z8, X9, Z9)
	ROUND1(X1, X0, 12(DX), X8, Z8, X9, Z9)
	ROUND1(X0, X1, 16(DX), X8, Z8, X9, Z9)
	ROUND1(X1, X0, 20(DX), X8, Z8, X9, Z9)
	ROUND1(X0, X1, 24(DX), X8, Z8, X9, Z9)
	ROUND1(X1, X0, 28(DX), X8, Z8, X9, Z9)
	ADDQ $32, DX
	DECQ AX
	JNZ  chainRounds

	VPUNPCKLDQ X0, X1, X2 // the last round does not exchange the halves
	VMOVQ (SI), X3
	VPXOR X3, X2, X2
	VMOVQ X2, (DI)
	ADDQ $8, SI
	ADDQ $8, DI
	DECQ BX
	JMP  chain

chained:
	VMOVQ X2, (R9)
	VZEROUPPER
	RET
