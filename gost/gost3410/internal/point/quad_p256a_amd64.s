// SPDX-License-Identifier: Apache-2.0

//go:build !purego

#include "textflag.h"

// One point at a time, modulo 2^256 - 617. Its four coordinates u, v, z, t are in the
// four 64-bit lanes of a vector of 256 bits. A number is five limbs of 52 bits, the
// lowest first, with the bounds of lanes_p256a_amd64.s:
//
//	x = x0 + 2^52*x1 + 2^104*x2 + 2^156*x3 + 2^208*x4
//
// Additions and doublings multiply all four lanes at once. First they multiply
// coordinates. The sums and differences of these products are the terms
//
//	lane        0  1  2  3
//	the terms   e  g  f  h
//
// Then they multiply terms: u = e*f, v = g*h, z = f*g and t = e*h. The formulas are
// those of edwards_p256a_formulas.go, except that e is computed directly as uv' + vu'.
//
// The code is straight-line code, the same for every value, except for loops over
// counts. No address depends on a value. It uses vectors of 256 bits, not half-empty
// vectors of 512 bits, because some processors multiply them twice as fast.

#define LO VPMADD52LUQ
#define HI VPMADD52HUQ

DATA quad52<>+0(SB)/8, $0xFFFFFFFFFFFFF    // 2^52 - 1
DATA quad48<>+0(SB)/8, $0xFFFFFFFFFFFF     // 2^48 - 1
DATA quad617<>+0(SB)/8, $617               // 2^256
DATA quad9872<>+0(SB)/8, $9872             // 2^260 = 16*617
DATA quadP<>+0(SB)/8, $0x80FFFFFFFECB597   // limbs of a multiple of p, each above 2^59
DATA quadP<>+8(SB)/8, $0x80FFFFFFFFFFF7F
DATA quadP<>+16(SB)/8, $0x80FFFFFFFFFFF7F
DATA quadP<>+24(SB)/8, $0x80FFFFFFFFFFF7F
DATA quadP<>+32(SB)/8, $0x800FFFFFFFFFF7F
GLOBL quad52<>(SB), RODATA, $8
GLOBL quad48<>(SB), RODATA, $8
GLOBL quad617<>(SB), RODATA, $8
GLOBL quad9872<>(SB), RODATA, $8
GLOBL quadP<>(SB), RODATA, $40

// CARRY52 moves the bits of x above 52 bits, Y31, into y. It destroys t.
#define CARRY52(x, y, t) \
	VPSRLQ $52, x, t \
	VPANDQ Y31, x, x \
	VPADDQ t, y, y

// TIDY brings limbs below 2^62 into the bounds. It adds 617 times the bits of the highest
// limb above 48 bits to the lowest limb and then carries upwards.
#define TIDY(x0, x1, x2, x3, x4) \
	VPSRLQ $48, x4, Y29 \
	VPANDQ.BCST quad48<>(SB), x4, x4 \
	VPMADD52LUQ.BCST quad617<>(SB), Y29, x0 \
	CARRY52(x0, x1, Y28) \
	CARRY52(x1, x2, Y28) \
	CARRY52(x2, x3, Y28) \
	CARRY52(x3, x4, Y28)

// PRODUCT sets Y10 to Y14 to the number in Y0 to Y4 times that in Y5 to Y9, lane by lane.
// The low halves of products of limbs are summed in Y10 to Y18. The high halves, which
// belong to the next higher word, are summed in Y19 to Y27. The words of the product,
// each below 2^57, are then Y10 to Y18 and Y27. PRODUCT adds 9872 times, Y30, the upper
// five words to the lower words: first the low 52 bits of each word, then its bits above
// these to the next higher word. The last word has no such bits, because the product is
// below 2^513. The same is done with the part of the sum above 2^260, which is in Y19.
// The resulting limbs are below 2^57 and need TIDY before they are multiplied again.
#define PRODUCT \
	VPXORQ Y10, Y10, Y10 \
	VPXORQ Y11, Y11, Y11 \
	VPXORQ Y12, Y12, Y12 \
	VPXORQ Y13, Y13, Y13 \
	VPXORQ Y14, Y14, Y14 \
	VPXORQ Y15, Y15, Y15 \
	VPXORQ Y16, Y16, Y16 \
	VPXORQ Y17, Y17, Y17 \
	VPXORQ Y18, Y18, Y18 \
	VPXORQ Y19, Y19, Y19 \
	VPXORQ Y20, Y20, Y20 \
	VPXORQ Y21, Y21, Y21 \
	VPXORQ Y22, Y22, Y22 \
	VPXORQ Y23, Y23, Y23 \
	VPXORQ Y24, Y24, Y24 \
	VPXORQ Y25, Y25, Y25 \
	VPXORQ Y26, Y26, Y26 \
	VPXORQ Y27, Y27, Y27 \
	HI Y4, Y9, Y27 \
	LO Y4, Y9, Y18 \
	HI Y3, Y9, Y26 \
	LO Y3, Y9, Y17 \
	HI Y2, Y9, Y25 \
	LO Y2, Y9, Y16 \
	HI Y1, Y9, Y24 \
	LO Y1, Y9, Y15 \
	HI Y0, Y9, Y23 \
	LO Y0, Y9, Y14 \
	HI Y4, Y8, Y26 \
	LO Y4, Y8, Y17 \
	HI Y3, Y8, Y25 \
	LO Y3, Y8, Y16 \
	HI Y2, Y8, Y24 \
	LO Y2, Y8, Y15 \
	HI Y1, Y8, Y23 \
	LO Y1, Y8, Y14 \
	HI Y0, Y8, Y22 \
	LO Y0, Y8, Y13 \
	HI Y4, Y7, Y25 \
	LO Y4, Y7, Y16 \
	HI Y3, Y7, Y24 \
	LO Y3, Y7, Y15 \
	HI Y2, Y7, Y23 \
	LO Y2, Y7, Y14 \
	HI Y1, Y7, Y22 \
	LO Y1, Y7, Y13 \
	HI Y0, Y7, Y21 \
	LO Y0, Y7, Y12 \
	HI Y4, Y6, Y24 \
	LO Y4, Y6, Y15 \
	HI Y3, Y6, Y23 \
	LO Y3, Y6, Y14 \
	HI Y2, Y6, Y22 \
	LO Y2, Y6, Y13 \
	HI Y1, Y6, Y21 \
	LO Y1, Y6, Y12 \
	HI Y0, Y6, Y20 \
	LO Y0, Y6, Y11 \
	HI Y4, Y5, Y23 \
	LO Y4, Y5, Y14 \
	HI Y3, Y5, Y22 \
	LO Y3, Y5, Y13 \
	HI Y2, Y5, Y21 \
	LO Y2, Y5, Y12 \
	HI Y1, Y5, Y20 \
	LO Y1, Y5, Y11 \
	HI Y0, Y5, Y19 \
	LO Y0, Y5, Y10 \
	VPADDQ Y26, Y18, Y18 \
	VPADDQ Y25, Y17, Y17 \
	VPADDQ Y24, Y16, Y16 \
	VPADDQ Y23, Y15, Y15 \
	VPADDQ Y22, Y14, Y14 \
	VPADDQ Y21, Y13, Y13 \
	VPADDQ Y20, Y12, Y12 \
	VPADDQ Y19, Y11, Y11 \
	VPXORQ Y19, Y19, Y19 \
	HI Y30, Y27, Y19 \
	LO Y30, Y15, Y10 \
	LO Y30, Y16, Y11 \
	LO Y30, Y17, Y12 \
	LO Y30, Y18, Y13 \
	LO Y30, Y27, Y14 \
	VPSRLQ $52, Y15, Y20 \
	VPSRLQ $52, Y16, Y21 \
	VPSRLQ $52, Y17, Y22 \
	VPSRLQ $52, Y18, Y23 \
	HI Y30, Y15, Y11 \
	HI Y30, Y16, Y12 \
	HI Y30, Y17, Y13 \
	HI Y30, Y18, Y14 \
	LO Y30, Y20, Y11 \
	LO Y30, Y21, Y12 \
	LO Y30, Y22, Y13 \
	LO Y30, Y23, Y14 \
	LO Y30, Y19, Y10

// SQUARES makes the factors u, v, z, u and u, v, z, v from the point in Y10 to Y14.
#define SQUARES \
	VPERMQ $0x64, Y10, Y5 \
	VPERMQ $0x24, Y10, Y0 \
	VPERMQ $0x64, Y11, Y6 \
	VPERMQ $0x24, Y11, Y1 \
	VPERMQ $0x64, Y12, Y7 \
	VPERMQ $0x24, Y12, Y2 \
	VPERMQ $0x64, Y13, Y8 \
	VPERMQ $0x24, Y13, Y3 \
	VPERMQ $0x64, Y14, Y9 \
	VPERMQ $0x24, Y14, Y4

// FACTORS makes the factors e, g, f, e and f, h, g, h of the coordinates from the terms
// e, g, f, h in Y0 to Y4.
#define FACTORS \
	VPERMQ $0xDE, Y0, Y5 \
	VPERMQ $0x24, Y0, Y0 \
	VPERMQ $0xDE, Y1, Y6 \
	VPERMQ $0x24, Y1, Y1 \
	VPERMQ $0xDE, Y2, Y7 \
	VPERMQ $0x24, Y2, Y2 \
	VPERMQ $0xDE, Y3, Y8 \
	VPERMQ $0x24, Y3, Y3 \
	VPERMQ $0xDE, Y4, Y9 \
	VPERMQ $0x24, Y4, Y4

// DOUBLED sets a limb z of the terms from the limb of u^2, v^2, z^2, uv: e = 2uv in lane
// 0, K1; g = u^2 + v^2 in lane 1; f = g - 2z^2 in lane 2, K2; h = u^2 - v^2 in lane 3, K3.
// In the lanes with a subtraction, K4, it adds a limb of a multiple of p, so that the
// limb stays above 0.
#define DOUBLED(m, z, p) \
	VPERMQ $0x00, m, Y20 \
	VPERMQ $0x55, m, Y21 \
	VPERMQ $0x23, m, Y22 \
	VPADDQ Y22, Y22, Y22 \
	VPADDQ Y21, Y20, z \
	VPSUBQ Y21, Y20, K3, z \
	VPSUBQ Y22, z, K2, z \
	VMOVDQA64 Y22, K1, z \
	VPADDQ.BCST p(SB), z, K4, z

// ADDED sets a limb z of the terms from the limb of uu', vv', zz', dtt' in m and that of
// uv', vu' at off(SP): e = uv' + vu' in lane 0; in the other lanes, K5, g = zz' + dtt' in
// lane 1, f = zz' - dtt' in lane 2, h = vv' - uu' in lane 3. It adds the multiple of p as
// DOUBLED does.
#define ADDED(off, m, z, p) \
	VMOVDQU64 off(SP), Y20 \
	VPERMQ $0x01, Y20, Y21 \
	VPERMQ $0x68, m, K5, Y20 \
	VPERMQ $0x3C, m, K5, Y21 \
	VPADDQ Y21, Y20, z \
	VPSUBQ Y21, Y20, K4, z \
	VPADDQ.BCST p(SB), z, K4, z

// CONSTANTS sets the masks of lanes and constant vectors.
#define CONSTANTS \
	MOVL $1, CX \
	KMOVW CX, K1 \
	MOVL $4, CX \
	KMOVW CX, K2 \
	MOVL $8, CX \
	KMOVW CX, K3 \
	MOVL $12, CX \
	KMOVW CX, K4 \
	MOVL $14, CX \
	KMOVW CX, K5 \
	VPBROADCASTQ quad52<>(SB), Y31 \
	VPBROADCASTQ quad9872<>(SB), Y30

// func ifmaQuadDoubleP256A(z, p *quadP256A, n int)
TEXT ·ifmaQuadDoubleP256A(SB), NOSPLIT, $0-24
	MOVQ p+8(FP), SI
	MOVQ n+16(FP), DX
	CONSTANTS
	VMOVDQU64 0(SI), Y10
	VMOVDQU64 32(SI), Y11
	VMOVDQU64 64(SI), Y12
	VMOVDQU64 96(SI), Y13
	VMOVDQU64 128(SI), Y14

doubling:
	SQUARES
	PRODUCT // u^2, v^2, z^2, uv
	DOUBLED(Y10, Y0, quadP<>+0)
	DOUBLED(Y11, Y1, quadP<>+8)
	DOUBLED(Y12, Y2, quadP<>+16)
	DOUBLED(Y13, Y3, quadP<>+24)
	DOUBLED(Y14, Y4, quadP<>+32)
	TIDY(Y0, Y1, Y2, Y3, Y4)
	FACTORS
	PRODUCT // the coordinates
	TIDY(Y10, Y11, Y12, Y13, Y14)
	DECQ DX
	JNZ doubling

	MOVQ z+0(FP), DI
	VMOVDQU64 Y10, 0(DI)
	VMOVDQU64 Y11, 32(DI)
	VMOVDQU64 Y12, 64(DI)
	VMOVDQU64 Y13, 96(DI)
	VMOVDQU64 Y14, 128(DI)
	VZEROUPPER
	RET

// func ifmaQuadAddP256A(z, p, q *quadP256A)
TEXT ·ifmaQuadAddP256A(SB), NOSPLIT, $160-24
	MOVQ p+8(FP), SI
	MOVQ q+16(FP), BX
	CONSTANTS
	VMOVDQU64 0(SI), Y0
	VMOVDQU64 32(SI), Y1
	VMOVDQU64 64(SI), Y2
	VMOVDQU64 96(SI), Y3
	VMOVDQU64 128(SI), Y4
	VPERMQ $0x01, 0(BX), Y5
	VPERMQ $0x01, 32(BX), Y6
	VPERMQ $0x01, 64(BX), Y7
	VPERMQ $0x01, 96(BX), Y8
	VPERMQ $0x01, 128(BX), Y9
	PRODUCT // uv', vu' in lanes 0 and 1
	VMOVDQU64 Y10, 0(SP)
	VMOVDQU64 Y11, 32(SP)
	VMOVDQU64 Y12, 64(SP)
	VMOVDQU64 Y13, 96(SP)
	VMOVDQU64 Y14, 128(SP)
	VMOVDQU64 0(BX), Y5
	VMOVDQU64 32(BX), Y6
	VMOVDQU64 64(BX), Y7
	VMOVDQU64 96(BX), Y8
	VMOVDQU64 128(BX), Y9
	PRODUCT // uu', vv', zz', dtt'
	ADDED(0, Y10, Y0, quadP<>+0)
	ADDED(32, Y11, Y1, quadP<>+8)
	ADDED(64, Y12, Y2, quadP<>+16)
	ADDED(96, Y13, Y3, quadP<>+24)
	ADDED(128, Y14, Y4, quadP<>+32)
	TIDY(Y0, Y1, Y2, Y3, Y4)
	FACTORS
	PRODUCT // the coordinates
	TIDY(Y10, Y11, Y12, Y13, Y14)
	MOVQ z+0(FP), DI
	VMOVDQU64 Y10, 0(DI)
	VMOVDQU64 Y11, 32(DI)
	VMOVDQU64 Y12, 64(DI)
	VMOVDQU64 Y13, 96(DI)
	VMOVDQU64 Y14, 128(DI)
	VZEROUPPER
	RET

// func ifmaQuadMulP256A(z, x, y *quadP256A)
TEXT ·ifmaQuadMulP256A(SB), NOSPLIT, $0-24
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), BX
	CONSTANTS
	VMOVDQU64 0(SI), Y0
	VMOVDQU64 32(SI), Y1
	VMOVDQU64 64(SI), Y2
	VMOVDQU64 96(SI), Y3
	VMOVDQU64 128(SI), Y4
	VMOVDQU64 0(BX), Y5
	VMOVDQU64 32(BX), Y6
	VMOVDQU64 64(BX), Y7
	VMOVDQU64 96(BX), Y8
	VMOVDQU64 128(BX), Y9
	PRODUCT
	TIDY(Y10, Y11, Y12, Y13, Y14)
	MOVQ z+0(FP), DI
	VMOVDQU64 Y10, 0(DI)
	VMOVDQU64 Y11, 32(DI)
	VMOVDQU64 Y12, 64(DI)
	VMOVDQU64 Y13, 96(DI)
	VMOVDQU64 Y14, 128(DI)
	VZEROUPPER
	RET

// func ifmaQuadPickP256A(z, table *quadP256A, n int, index, negative uint64)
TEXT ·ifmaQuadPickP256A(SB), NOSPLIT, $0-40
	MOVQ z+0(FP), DI
	MOVQ table+8(FP), SI
	MOVQ n+16(FP), DX
	VPBROADCASTQ index+24(FP), Y17
	VPBROADCASTQ negative+32(FP), Y18
	VPXORQ Y19, Y19, Y19     // the counter of entries
	MOVL $1, CX
	VPBROADCASTQ CX, Y20
	VPXORQ Y0, Y0, Y0
	VPXORQ Y1, Y1, Y1
	VPXORQ Y2, Y2, Y2
	VPXORQ Y3, Y3, Y3
	VPXORQ Y4, Y4, Y4

entry:
	VPCMPEQQ Y19, Y17, K1    // all lanes if the counter is the index, else none
	VMOVDQU64 0(SI), K1, Y0
	VMOVDQU64 32(SI), K1, Y1
	VMOVDQU64 64(SI), K1, Y2
	VMOVDQU64 96(SI), K1, Y3
	VMOVDQU64 128(SI), K1, Y4
	VPADDQ Y20, Y19, Y19
	ADDQ $160, SI
	DECQ DX
	JNZ entry

	MOVL $9, CX              // the opposite has -u and -t: lanes 0 and 3
	KMOVW CX, K3
	VPMOVQ2M Y18, K2
	KANDW K3, K2, K2
	VPBROADCASTQ quad52<>(SB), Y31
	VPBROADCASTQ quadP<>+0(SB), Y16
	VPSUBQ Y0, Y16, K2, Y0
	VPBROADCASTQ quadP<>+8(SB), Y16
	VPSUBQ Y1, Y16, K2, Y1
	VPBROADCASTQ quadP<>+16(SB), Y16
	VPSUBQ Y2, Y16, K2, Y2
	VPBROADCASTQ quadP<>+24(SB), Y16
	VPSUBQ Y3, Y16, K2, Y3
	VPBROADCASTQ quadP<>+32(SB), Y16
	VPSUBQ Y4, Y16, K2, Y4
	TIDY(Y0, Y1, Y2, Y3, Y4)
	VMOVDQU64 Y0, 0(DI)
	VMOVDQU64 Y1, 32(DI)
	VMOVDQU64 Y2, 64(DI)
	VMOVDQU64 Y3, 96(DI)
	VMOVDQU64 Y4, 128(DI)
	VZEROUPPER
	RET
