// SPDX-License-Identifier: Apache-2.0

//go:build !purego

#include "textflag.h"

// One point at a time, its four coordinates in four lanes, modulo 2^512 - 569. This is
// quad_p256a_amd64.s with ten limbs, of which the highest has 44 bits.

#define LO VPMADD52LUQ
#define HI VPMADD52HUQ

DATA qwide52<>+0(SB)/8, $0xFFFFFFFFFFFFF    // 2^52 - 1
DATA qwide44<>+0(SB)/8, $0xFFFFFFFFFFF     // 2^44 - 1
DATA qwide569<>+0(SB)/8, $569               // 2^512
DATA qwide145664<>+0(SB)/8, $145664             // 2^520 = 256*569
DATA qwideP<>+0(SB)/8, $0x80FFFFFFEE37DC7   // limbs of a multiple of p, each above 2^59
DATA qwideP<>+8(SB)/8, $0x80FFFFFFFFFFF7F
DATA qwideP<>+16(SB)/8, $0x80FFFFFFFFFFF7F
DATA qwideP<>+24(SB)/8, $0x80FFFFFFFFFFF7F
DATA qwideP<>+32(SB)/8, $0x80FFFFFFFFFFF7F
DATA qwideP<>+40(SB)/8, $0x80FFFFFFFFFFF7F
DATA qwideP<>+48(SB)/8, $0x80FFFFFFFFFFF7F
DATA qwideP<>+56(SB)/8, $0x80FFFFFFFFFFF7F
DATA qwideP<>+64(SB)/8, $0x80FFFFFFFFFFF7F
DATA qwideP<>+72(SB)/8, $0x8000FFFFFFFFF7F
GLOBL qwide52<>(SB), RODATA, $8
GLOBL qwide44<>(SB), RODATA, $8
GLOBL qwide569<>(SB), RODATA, $8
GLOBL qwide145664<>(SB), RODATA, $8
GLOBL qwideP<>(SB), RODATA, $80

// CARRY52 moves the bits of x above 52 bits, Y31, into y. It destroys t.
#define CARRY52(x, y, t) \
	VPSRLQ $52, x, t \
	VPANDQ Y31, x, x \
	VPADDQ t, y, y

// TIDY brings limbs below 2^62 into the bounds. It adds 569 times the bits of the highest
// limb above 44 bits to the lowest limb and then carries upwards.
#define TIDY(x0, x1, x2, x3, x4, x5, x6, x7, x8, x9) \
	VPSRLQ $44, x9, Y11 \
	VPANDQ.BCST qwide44<>(SB), x9, x9 \
	VPMADD52LUQ.BCST qwide569<>(SB), Y11, x0 \
	CARRY52(x0, x1, Y10) \
	CARRY52(x1, x2, Y10) \
	CARRY52(x2, x3, Y10) \
	CARRY52(x3, x4, Y10) \
	CARRY52(x4, x5, Y10) \
	CARRY52(x5, x6, Y10) \
	CARRY52(x6, x7, Y10) \
	CARRY52(x7, x8, Y10) \
	CARRY52(x8, x9, Y10)

// ROW adds limb off(SI) times the limbs Y21 to Y30 to the words k:...:a. It adds all low
// halves before the high halves, which belong to the next higher word.
#define ROW(off, a, b, c, d, e, f, g, h, i, j, k) \
	VMOVDQU64 off(SI), Y20 \
	LO Y21, Y20, a \
	LO Y22, Y20, b \
	LO Y23, Y20, c \
	LO Y24, Y20, d \
	LO Y25, Y20, e \
	LO Y26, Y20, f \
	LO Y27, Y20, g \
	LO Y28, Y20, h \
	LO Y29, Y20, i \
	LO Y30, Y20, j \
	HI Y21, Y20, b \
	HI Y22, Y20, c \
	HI Y23, Y20, d \
	HI Y24, Y20, e \
	HI Y25, Y20, f \
	HI Y26, Y20, g \
	HI Y27, Y20, h \
	HI Y28, Y20, i \
	HI Y29, Y20, j \
	HI Y30, Y20, k

// PRODUCT sets Y0 to Y9 to the number in Y21 to Y30 times that at SI, lane by lane. The
// words of the product, each below 2^57, are first Y0 to Y19. PRODUCT adds 145664 times
// the upper ten words to the lower words: first the low 52 bits of each word, then its
// bits above these to the next higher word. The last word has no such bits, because the
// product is below 2^1025. The same is done with the part of the sum above 2^520, which
// is in Y20. The resulting limbs are below 2^58 and need TIDY before they are multiplied
// again.
#define PRODUCT \
	VPXORQ Y0, Y0, Y0 \
	VPXORQ Y1, Y1, Y1 \
	VPXORQ Y2, Y2, Y2 \
	VPXORQ Y3, Y3, Y3 \
	VPXORQ Y4, Y4, Y4 \
	VPXORQ Y5, Y5, Y5 \
	VPXORQ Y6, Y6, Y6 \
	VPXORQ Y7, Y7, Y7 \
	VPXORQ Y8, Y8, Y8 \
	VPXORQ Y9, Y9, Y9 \
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
	ROW(288, Y9, Y10, Y11, Y12, Y13, Y14, Y15, Y16, Y17, Y18, Y19) \
	ROW(256, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15, Y16, Y17, Y18) \
	ROW(224, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15, Y16, Y17) \
	ROW(192, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15, Y16) \
	ROW(160, Y5, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15) \
	ROW(128, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14) \
	ROW(96, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13) \
	ROW(64, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11, Y12) \
	ROW(32, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11) \
	ROW(0, Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10) \
	VPBROADCASTQ qwide145664<>(SB), Y30 \
	VPXORQ Y20, Y20, Y20 \
	HI Y30, Y19, Y20 \
	LO Y30, Y10, Y0 \
	LO Y30, Y11, Y1 \
	LO Y30, Y12, Y2 \
	LO Y30, Y13, Y3 \
	LO Y30, Y14, Y4 \
	LO Y30, Y15, Y5 \
	LO Y30, Y16, Y6 \
	LO Y30, Y17, Y7 \
	LO Y30, Y18, Y8 \
	LO Y30, Y19, Y9 \
	HI Y30, Y10, Y1 \
	HI Y30, Y11, Y2 \
	HI Y30, Y12, Y3 \
	HI Y30, Y13, Y4 \
	HI Y30, Y14, Y5 \
	HI Y30, Y15, Y6 \
	HI Y30, Y16, Y7 \
	HI Y30, Y17, Y8 \
	HI Y30, Y18, Y9 \
	VPSRLQ $52, Y10, Y10 \
	VPSRLQ $52, Y11, Y11 \
	VPSRLQ $52, Y12, Y12 \
	VPSRLQ $52, Y13, Y13 \
	VPSRLQ $52, Y14, Y14 \
	VPSRLQ $52, Y15, Y15 \
	VPSRLQ $52, Y16, Y16 \
	VPSRLQ $52, Y17, Y17 \
	VPSRLQ $52, Y18, Y18 \
	LO Y30, Y10, Y1 \
	LO Y30, Y11, Y2 \
	LO Y30, Y12, Y3 \
	LO Y30, Y13, Y4 \
	LO Y30, Y14, Y5 \
	LO Y30, Y15, Y6 \
	LO Y30, Y16, Y7 \
	LO Y30, Y17, Y8 \
	LO Y30, Y18, Y9 \
	LO Y30, Y20, Y0

// SQUARES makes the factors u, v, z, u and u, v, z, v from the point in Y0 to Y9.
#define SQUARES \
	VPERMQ $0x64, Y0, Y20 \
	VPERMQ $0x24, Y0, Y21 \
	VMOVDQU64 Y20, 0(SP) \
	VPERMQ $0x64, Y1, Y20 \
	VPERMQ $0x24, Y1, Y22 \
	VMOVDQU64 Y20, 32(SP) \
	VPERMQ $0x64, Y2, Y20 \
	VPERMQ $0x24, Y2, Y23 \
	VMOVDQU64 Y20, 64(SP) \
	VPERMQ $0x64, Y3, Y20 \
	VPERMQ $0x24, Y3, Y24 \
	VMOVDQU64 Y20, 96(SP) \
	VPERMQ $0x64, Y4, Y20 \
	VPERMQ $0x24, Y4, Y25 \
	VMOVDQU64 Y20, 128(SP) \
	VPERMQ $0x64, Y5, Y20 \
	VPERMQ $0x24, Y5, Y26 \
	VMOVDQU64 Y20, 160(SP) \
	VPERMQ $0x64, Y6, Y20 \
	VPERMQ $0x24, Y6, Y27 \
	VMOVDQU64 Y20, 192(SP) \
	VPERMQ $0x64, Y7, Y20 \
	VPERMQ $0x24, Y7, Y28 \
	VMOVDQU64 Y20, 224(SP) \
	VPERMQ $0x64, Y8, Y20 \
	VPERMQ $0x24, Y8, Y29 \
	VMOVDQU64 Y20, 256(SP) \
	VPERMQ $0x64, Y9, Y20 \
	VPERMQ $0x24, Y9, Y30 \
	VMOVDQU64 Y20, 288(SP)

// FACTORS makes the factors e, g, f, e and f, h, g, h of the coordinates from the terms
// e, g, f, h in Y0 to Y9.
#define FACTORS \
	VPERMQ $0xDE, Y0, Y20 \
	VPERMQ $0x24, Y0, Y21 \
	VMOVDQU64 Y20, 0(SP) \
	VPERMQ $0xDE, Y1, Y20 \
	VPERMQ $0x24, Y1, Y22 \
	VMOVDQU64 Y20, 32(SP) \
	VPERMQ $0xDE, Y2, Y20 \
	VPERMQ $0x24, Y2, Y23 \
	VMOVDQU64 Y20, 64(SP) \
	VPERMQ $0xDE, Y3, Y20 \
	VPERMQ $0x24, Y3, Y24 \
	VMOVDQU64 Y20, 96(SP) \
	VPERMQ $0xDE, Y4, Y20 \
	VPERMQ $0x24, Y4, Y25 \
	VMOVDQU64 Y20, 128(SP) \
	VPERMQ $0xDE, Y5, Y20 \
	VPERMQ $0x24, Y5, Y26 \
	VMOVDQU64 Y20, 160(SP) \
	VPERMQ $0xDE, Y6, Y20 \
	VPERMQ $0x24, Y6, Y27 \
	VMOVDQU64 Y20, 192(SP) \
	VPERMQ $0xDE, Y7, Y20 \
	VPERMQ $0x24, Y7, Y28 \
	VMOVDQU64 Y20, 224(SP) \
	VPERMQ $0xDE, Y8, Y20 \
	VPERMQ $0x24, Y8, Y29 \
	VMOVDQU64 Y20, 256(SP) \
	VPERMQ $0xDE, Y9, Y20 \
	VPERMQ $0x24, Y9, Y30 \
	VMOVDQU64 Y20, 288(SP)

// DOUBLED sets a limb z of the terms from the limb of u^2, v^2, z^2, uv: e = 2uv in lane
// 0, K1; g = u^2 + v^2 in lane 1; f = g - 2z^2 in lane 2, K2; h = u^2 - v^2 in lane 3, K3.
// In the lanes with a subtraction, K4, it adds a limb of a multiple of p, so that the
// limb stays above 0.
#define DOUBLED(m, z, p) \
	VPERMQ $0x00, m, Y10 \
	VPERMQ $0x55, m, Y11 \
	VPERMQ $0x23, m, Y12 \
	VPADDQ Y12, Y12, Y12 \
	VPADDQ Y11, Y10, z \
	VPSUBQ Y11, Y10, K3, z \
	VPSUBQ Y12, z, K2, z \
	VMOVDQA64 Y12, K1, z \
	VPADDQ.BCST p(SB), z, K4, z

// ADDED sets a limb z of the terms from the limb of uu', vv', zz', dtt' in m and that of
// uv', vu' at off(SP): e = uv' + vu' in lane 0; in the other lanes, K5, g = zz' + dtt' in
// lane 1, f = zz' - dtt' in lane 2, h = vv' - uu' in lane 3. It adds the multiple of p as
// DOUBLED does.
#define ADDED(off, m, z, p) \
	VMOVDQU64 off(SP), Y10 \
	VPERMQ $0x01, Y10, Y11 \
	VPERMQ $0x68, m, K5, Y10 \
	VPERMQ $0x3C, m, K5, Y11 \
	VPADDQ Y11, Y10, z \
	VPSUBQ Y11, Y10, K4, z \
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
	VPBROADCASTQ qwide52<>(SB), Y31

// func ifmaQuadDoubleP512A(z, p *quadP512A, n int)
TEXT ·ifmaQuadDoubleP512A(SB), NOSPLIT, $320-24
	MOVQ p+8(FP), SI
	MOVQ n+16(FP), DX
	CONSTANTS
	VMOVDQU64 0(SI), Y0
	VMOVDQU64 32(SI), Y1
	VMOVDQU64 64(SI), Y2
	VMOVDQU64 96(SI), Y3
	VMOVDQU64 128(SI), Y4
	VMOVDQU64 160(SI), Y5
	VMOVDQU64 192(SI), Y6
	VMOVDQU64 224(SI), Y7
	VMOVDQU64 256(SI), Y8
	VMOVDQU64 288(SI), Y9
	LEAQ 0(SP), SI

doubling:
	SQUARES
	PRODUCT // u^2, v^2, z^2, uv
	DOUBLED(Y0, Y0, qwideP<>+0)
	DOUBLED(Y1, Y1, qwideP<>+8)
	DOUBLED(Y2, Y2, qwideP<>+16)
	DOUBLED(Y3, Y3, qwideP<>+24)
	DOUBLED(Y4, Y4, qwideP<>+32)
	DOUBLED(Y5, Y5, qwideP<>+40)
	DOUBLED(Y6, Y6, qwideP<>+48)
	DOUBLED(Y7, Y7, qwideP<>+56)
	DOUBLED(Y8, Y8, qwideP<>+64)
	DOUBLED(Y9, Y9, qwideP<>+72)
	TIDY(Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9)
	FACTORS
	PRODUCT // the coordinates
	TIDY(Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9)
	DECQ DX
	JNZ doubling

	MOVQ z+0(FP), DI
	VMOVDQU64 Y0, 0(DI)
	VMOVDQU64 Y1, 32(DI)
	VMOVDQU64 Y2, 64(DI)
	VMOVDQU64 Y3, 96(DI)
	VMOVDQU64 Y4, 128(DI)
	VMOVDQU64 Y5, 160(DI)
	VMOVDQU64 Y6, 192(DI)
	VMOVDQU64 Y7, 224(DI)
	VMOVDQU64 Y8, 256(DI)
	VMOVDQU64 Y9, 288(DI)
	VZEROUPPER
	RET

// func ifmaQuadAddP512A(z, p, q *quadP512A)
TEXT ·ifmaQuadAddP512A(SB), NOSPLIT, $640-24
	MOVQ p+8(FP), BX
	MOVQ q+16(FP), SI
	CONSTANTS
	VMOVDQU64 0(BX), Y21
	VMOVDQU64 32(BX), Y22
	VMOVDQU64 64(BX), Y23
	VMOVDQU64 96(BX), Y24
	VMOVDQU64 128(BX), Y25
	VMOVDQU64 160(BX), Y26
	VMOVDQU64 192(BX), Y27
	VMOVDQU64 224(BX), Y28
	VMOVDQU64 256(BX), Y29
	VMOVDQU64 288(BX), Y30
	VPERMQ $0x01, 0(SI), Y20
	VMOVDQU64 Y20, 0(SP)
	VPERMQ $0x01, 32(SI), Y20
	VMOVDQU64 Y20, 32(SP)
	VPERMQ $0x01, 64(SI), Y20
	VMOVDQU64 Y20, 64(SP)
	VPERMQ $0x01, 96(SI), Y20
	VMOVDQU64 Y20, 96(SP)
	VPERMQ $0x01, 128(SI), Y20
	VMOVDQU64 Y20, 128(SP)
	VPERMQ $0x01, 160(SI), Y20
	VMOVDQU64 Y20, 160(SP)
	VPERMQ $0x01, 192(SI), Y20
	VMOVDQU64 Y20, 192(SP)
	VPERMQ $0x01, 224(SI), Y20
	VMOVDQU64 Y20, 224(SP)
	VPERMQ $0x01, 256(SI), Y20
	VMOVDQU64 Y20, 256(SP)
	VPERMQ $0x01, 288(SI), Y20
	VMOVDQU64 Y20, 288(SP)
	LEAQ 0(SP), SI
	PRODUCT // uv', vu' in lanes 0 and 1
	VMOVDQU64 Y0, 320(SP)
	VMOVDQU64 Y1, 352(SP)
	VMOVDQU64 Y2, 384(SP)
	VMOVDQU64 Y3, 416(SP)
	VMOVDQU64 Y4, 448(SP)
	VMOVDQU64 Y5, 480(SP)
	VMOVDQU64 Y6, 512(SP)
	VMOVDQU64 Y7, 544(SP)
	VMOVDQU64 Y8, 576(SP)
	VMOVDQU64 Y9, 608(SP)
	MOVQ q+16(FP), SI
	VMOVDQU64 0(BX), Y21
	VMOVDQU64 32(BX), Y22
	VMOVDQU64 64(BX), Y23
	VMOVDQU64 96(BX), Y24
	VMOVDQU64 128(BX), Y25
	VMOVDQU64 160(BX), Y26
	VMOVDQU64 192(BX), Y27
	VMOVDQU64 224(BX), Y28
	VMOVDQU64 256(BX), Y29
	VMOVDQU64 288(BX), Y30
	PRODUCT // uu', vv', zz', dtt'
	ADDED(320, Y0, Y0, qwideP<>+0)
	ADDED(352, Y1, Y1, qwideP<>+8)
	ADDED(384, Y2, Y2, qwideP<>+16)
	ADDED(416, Y3, Y3, qwideP<>+24)
	ADDED(448, Y4, Y4, qwideP<>+32)
	ADDED(480, Y5, Y5, qwideP<>+40)
	ADDED(512, Y6, Y6, qwideP<>+48)
	ADDED(544, Y7, Y7, qwideP<>+56)
	ADDED(576, Y8, Y8, qwideP<>+64)
	ADDED(608, Y9, Y9, qwideP<>+72)
	TIDY(Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9)
	FACTORS
	LEAQ 0(SP), SI
	PRODUCT // the coordinates
	TIDY(Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9)
	MOVQ z+0(FP), DI
	VMOVDQU64 Y0, 0(DI)
	VMOVDQU64 Y1, 32(DI)
	VMOVDQU64 Y2, 64(DI)
	VMOVDQU64 Y3, 96(DI)
	VMOVDQU64 Y4, 128(DI)
	VMOVDQU64 Y5, 160(DI)
	VMOVDQU64 Y6, 192(DI)
	VMOVDQU64 Y7, 224(DI)
	VMOVDQU64 Y8, 256(DI)
	VMOVDQU64 Y9, 288(DI)
	VZEROUPPER
	RET

// func ifmaQuadMulP512A(z, x, y *quadP512A)
TEXT ·ifmaQuadMulP512A(SB), NOSPLIT, $0-24
	MOVQ x+8(FP), BX
	MOVQ y+16(FP), SI
	CONSTANTS
	VMOVDQU64 0(BX), Y21
	VMOVDQU64 32(BX), Y22
	VMOVDQU64 64(BX), Y23
	VMOVDQU64 96(BX), Y24
	VMOVDQU64 128(BX), Y25
	VMOVDQU64 160(BX), Y26
	VMOVDQU64 192(BX), Y27
	VMOVDQU64 224(BX), Y28
	VMOVDQU64 256(BX), Y29
	VMOVDQU64 288(BX), Y30
	PRODUCT
	TIDY(Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9)
	MOVQ z+0(FP), DI
	VMOVDQU64 Y0, 0(DI)
	VMOVDQU64 Y1, 32(DI)
	VMOVDQU64 Y2, 64(DI)
	VMOVDQU64 Y3, 96(DI)
	VMOVDQU64 Y4, 128(DI)
	VMOVDQU64 Y5, 160(DI)
	VMOVDQU64 Y6, 192(DI)
	VMOVDQU64 Y7, 224(DI)
	VMOVDQU64 Y8, 256(DI)
	VMOVDQU64 Y9, 288(DI)
	VZEROUPPER
	RET

// func ifmaQuadPickP512A(z, table *quadP512A, n int, index, negative uint64)
TEXT ·ifmaQuadPickP512A(SB), NOSPLIT, $0-40
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
	VPXORQ Y5, Y5, Y5
	VPXORQ Y6, Y6, Y6
	VPXORQ Y7, Y7, Y7
	VPXORQ Y8, Y8, Y8
	VPXORQ Y9, Y9, Y9

entry:
	VPCMPEQQ Y19, Y17, K1    // all lanes if the counter is the index, else none
	VMOVDQU64 0(SI), K1, Y0
	VMOVDQU64 32(SI), K1, Y1
	VMOVDQU64 64(SI), K1, Y2
	VMOVDQU64 96(SI), K1, Y3
	VMOVDQU64 128(SI), K1, Y4
	VMOVDQU64 160(SI), K1, Y5
	VMOVDQU64 192(SI), K1, Y6
	VMOVDQU64 224(SI), K1, Y7
	VMOVDQU64 256(SI), K1, Y8
	VMOVDQU64 288(SI), K1, Y9
	VPADDQ Y20, Y19, Y19
	ADDQ $320, SI
	DECQ DX
	JNZ entry

	MOVL $9, CX              // the opposite has -u and -t: lanes 0 and 3
	KMOVW CX, K3
	VPMOVQ2M Y18, K2
	KANDW K3, K2, K2
	VPBROADCASTQ qwide52<>(SB), Y31
	VPBROADCASTQ qwideP<>+0(SB), Y16
	VPSUBQ Y0, Y16, K2, Y0
	VPBROADCASTQ qwideP<>+8(SB), Y16
	VPSUBQ Y1, Y16, K2, Y1
	VPBROADCASTQ qwideP<>+16(SB), Y16
	VPSUBQ Y2, Y16, K2, Y2
	VPBROADCASTQ qwideP<>+24(SB), Y16
	VPSUBQ Y3, Y16, K2, Y3
	VPBROADCASTQ qwideP<>+32(SB), Y16
	VPSUBQ Y4, Y16, K2, Y4
	VPBROADCASTQ qwideP<>+40(SB), Y16
	VPSUBQ Y5, Y16, K2, Y5
	VPBROADCASTQ qwideP<>+48(SB), Y16
	VPSUBQ Y6, Y16, K2, Y6
	VPBROADCASTQ qwideP<>+56(SB), Y16
	VPSUBQ Y7, Y16, K2, Y7
	VPBROADCASTQ qwideP<>+64(SB), Y16
	VPSUBQ Y8, Y16, K2, Y8
	VPBROADCASTQ qwideP<>+72(SB), Y16
	VPSUBQ Y9, Y16, K2, Y9
	TIDY(Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9)
	VMOVDQU64 Y0, 0(DI)
	VMOVDQU64 Y1, 32(DI)
	VMOVDQU64 Y2, 64(DI)
	VMOVDQU64 Y3, 96(DI)
	VMOVDQU64 Y4, 128(DI)
	VMOVDQU64 Y5, 160(DI)
	VMOVDQU64 Y6, 192(DI)
	VMOVDQU64 Y7, 224(DI)
	VMOVDQU64 Y8, 256(DI)
	VMOVDQU64 Y9, 288(DI)
	VZEROUPPER
	RET
