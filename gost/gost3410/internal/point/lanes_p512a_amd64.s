// SPDX-License-Identifier: Apache-2.0

//go:build !purego

#include "textflag.h"
#include "funcdata.h"

// Eight numbers modulo a prime of 512 bits at a time. This is lanes_p256a_amd64.s with ten
// limbs and reduce_p512a_amd64.h. A number has 640 bytes. Between operations limbs 0 to 8
// are below 2^52.

#define SIZE 640
#define HERE(i, r) \
	LEAQ (i*SIZE+63)(SP), r \
	ANDQ $~63, r
#define DONE VZEROUPPER; RET
#include "formulas_amd64.h"

#define LO VPMADD52LUQ
#define HI VPMADD52HUQ

// CARRY52 moves the bits of x above 52 bits, Z31, into y.
#define CARRY52(x, y) \
	VPSRLQ $52, x, Z28  \
	VPANDQ Z31, x, x    \
	VPADDQ Z28, y, y

#include "reduce_p512a_amd64.h"

// ZERO20 sets Z0 to Z19 to 0.
#define ZERO20 \
	VPXORQ Z0, Z0, Z0 \
	VPXORQ Z1, Z1, Z1 \
	VPXORQ Z2, Z2, Z2 \
	VPXORQ Z3, Z3, Z3 \
	VPXORQ Z4, Z4, Z4 \
	VPXORQ Z5, Z5, Z5 \
	VPXORQ Z6, Z6, Z6 \
	VPXORQ Z7, Z7, Z7 \
	VPXORQ Z8, Z8, Z8 \
	VPXORQ Z9, Z9, Z9 \
	VPXORQ Z10, Z10, Z10 \
	VPXORQ Z11, Z11, Z11 \
	VPXORQ Z12, Z12, Z12 \
	VPXORQ Z13, Z13, Z13 \
	VPXORQ Z14, Z14, Z14 \
	VPXORQ Z15, Z15, Z15 \
	VPXORQ Z16, Z16, Z16 \
	VPXORQ Z17, Z17, Z17 \
	VPXORQ Z18, Z18, Z18 \
	VPXORQ Z19, Z19, Z19

// ROW adds limb off(SI) times the limbs Z21 to Z30 to the words k:...:a. It adds all low
// halves before the high halves, which belong to the next higher word. So the sums do
// not wait for each other.
#define ROW(off, a, b, c, d, e, f, g, h, i, j, k) \
	VMOVDQU64 off(SI), Z20 \
	LO Z21, Z20, a \
	LO Z22, Z20, b \
	LO Z23, Z20, c \
	LO Z24, Z20, d \
	LO Z25, Z20, e \
	LO Z26, Z20, f \
	LO Z27, Z20, g \
	LO Z28, Z20, h \
	LO Z29, Z20, i \
	LO Z30, Z20, j \
	HI Z21, Z20, b \
	HI Z22, Z20, c \
	HI Z23, Z20, d \
	HI Z24, Z20, e \
	HI Z25, Z20, f \
	HI Z26, Z20, g \
	HI Z27, Z20, h \
	HI Z28, Z20, i \
	HI Z29, Z20, j \
	HI Z30, Z20, k

// (DI) = (SI) * (BX). The words of the product are Z0 to Z19.
TEXT mulWide<>(SB), NOSPLIT|NOFRAME, $0-0
	VMOVDQU64 0(BX), Z21
	VMOVDQU64 64(BX), Z22
	VMOVDQU64 128(BX), Z23
	VMOVDQU64 192(BX), Z24
	VMOVDQU64 256(BX), Z25
	VMOVDQU64 320(BX), Z26
	VMOVDQU64 384(BX), Z27
	VMOVDQU64 448(BX), Z28
	VMOVDQU64 512(BX), Z29
	VMOVDQU64 576(BX), Z30
	ZERO20
	ROW(0, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10)
	ROW(64, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11)
	ROW(128, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12)
	ROW(192, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13)
	ROW(256, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14)
	ROW(320, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)
	ROW(384, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15, Z16)
	ROW(448, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15, Z16, Z17)
	ROW(512, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15, Z16, Z17, Z18)
	ROW(576, Z9, Z10, Z11, Z12, Z13, Z14, Z15, Z16, Z17, Z18, Z19)
	REDUCE
	RET

// BOTH adds both halves of a product, the high half to the next higher word.
#define BOTH(x, y, l, h) \
	LO x, y, l \
	HI x, y, h

// (DI) = (SI)^2. It sums the products of two different limbs once, doubles the sum and
// adds the squares.
TEXT sqrWide<>(SB), NOSPLIT|NOFRAME, $0-0
	VMOVDQU64 0(SI), Z21
	VMOVDQU64 64(SI), Z22
	VMOVDQU64 128(SI), Z23
	VMOVDQU64 192(SI), Z24
	VMOVDQU64 256(SI), Z25
	VMOVDQU64 320(SI), Z26
	VMOVDQU64 384(SI), Z27
	VMOVDQU64 448(SI), Z28
	VMOVDQU64 512(SI), Z29
	VMOVDQU64 576(SI), Z30
	ZERO20

	// limb 0 times the higher ones
	BOTH(Z22, Z21, Z1, Z2)
	BOTH(Z23, Z21, Z2, Z3)
	BOTH(Z24, Z21, Z3, Z4)
	BOTH(Z25, Z21, Z4, Z5)
	BOTH(Z26, Z21, Z5, Z6)
	BOTH(Z27, Z21, Z6, Z7)
	BOTH(Z28, Z21, Z7, Z8)
	BOTH(Z29, Z21, Z8, Z9)
	BOTH(Z30, Z21, Z9, Z10)

	// limb 1 times the higher ones
	BOTH(Z23, Z22, Z3, Z4)
	BOTH(Z24, Z22, Z4, Z5)
	BOTH(Z25, Z22, Z5, Z6)
	BOTH(Z26, Z22, Z6, Z7)
	BOTH(Z27, Z22, Z7, Z8)
	BOTH(Z28, Z22, Z8, Z9)
	BOTH(Z29, Z22, Z9, Z10)
	BOTH(Z30, Z22, Z10, Z11)

	// limb 2 times the higher ones
	BOTH(Z24, Z23, Z5, Z6)
	BOTH(Z25, Z23, Z6, Z7)
	BOTH(Z26, Z23, Z7, Z8)
	BOTH(Z27, Z23, Z8, Z9)
	BOTH(Z28, Z23, Z9, Z10)
	BOTH(Z29, Z23, Z10, Z11)
	BOTH(Z30, Z23, Z11, Z12)

	// limb 3 times the higher ones
	BOTH(Z25, Z24, Z7, Z8)
	BOTH(Z26, Z24, Z8, Z9)
	BOTH(Z27, Z24, Z9, Z10)
	BOTH(Z28, Z24, Z10, Z11)
	BOTH(Z29, Z24, Z11, Z12)
	BOTH(Z30, Z24, Z12, Z13)

	// limb 4 times the higher ones
	BOTH(Z26, Z25, Z9, Z10)
	BOTH(Z27, Z25, Z10, Z11)
	BOTH(Z28, Z25, Z11, Z12)
	BOTH(Z29, Z25, Z12, Z13)
	BOTH(Z30, Z25, Z13, Z14)

	// limb 5 times the higher ones
	BOTH(Z27, Z26, Z11, Z12)
	BOTH(Z28, Z26, Z12, Z13)
	BOTH(Z29, Z26, Z13, Z14)
	BOTH(Z30, Z26, Z14, Z15)

	// limb 6 times the higher ones
	BOTH(Z28, Z27, Z13, Z14)
	BOTH(Z29, Z27, Z14, Z15)
	BOTH(Z30, Z27, Z15, Z16)

	// limb 7 times the higher ones
	BOTH(Z29, Z28, Z15, Z16)
	BOTH(Z30, Z28, Z16, Z17)

	// limb 8 times the higher ones
	BOTH(Z30, Z29, Z17, Z18)

	// twice
	VPADDQ Z1, Z1, Z1
	VPADDQ Z2, Z2, Z2
	VPADDQ Z3, Z3, Z3
	VPADDQ Z4, Z4, Z4
	VPADDQ Z5, Z5, Z5
	VPADDQ Z6, Z6, Z6
	VPADDQ Z7, Z7, Z7
	VPADDQ Z8, Z8, Z8
	VPADDQ Z9, Z9, Z9
	VPADDQ Z10, Z10, Z10
	VPADDQ Z11, Z11, Z11
	VPADDQ Z12, Z12, Z12
	VPADDQ Z13, Z13, Z13
	VPADDQ Z14, Z14, Z14
	VPADDQ Z15, Z15, Z15
	VPADDQ Z16, Z16, Z16
	VPADDQ Z17, Z17, Z17
	VPADDQ Z18, Z18, Z18
	VPADDQ Z19, Z19, Z19

	// the squares
	BOTH(Z21, Z21, Z0, Z1)
	BOTH(Z22, Z22, Z2, Z3)
	BOTH(Z23, Z23, Z4, Z5)
	BOTH(Z24, Z24, Z6, Z7)
	BOTH(Z25, Z25, Z8, Z9)
	BOTH(Z26, Z26, Z10, Z11)
	BOTH(Z27, Z27, Z12, Z13)
	BOTH(Z28, Z28, Z14, Z15)
	BOTH(Z29, Z29, Z16, Z17)
	BOTH(Z30, Z30, Z18, Z19)
	REDUCE
	RET

// (DI) = (SI) - (BX). It adds a multiple of the prime so
// that no limb is negative.
TEXT subWide<>(SB), NOSPLIT|NOFRAME, $0-0
	VPBROADCASTQ ones52<>(SB), Z31
	VPBROADCASTQ multiple0<>(SB), Z10
	VPBROADCASTQ multiple1<>(SB), Z11
	VPBROADCASTQ multipleTop<>(SB), Z12
	VPADDQ       0(SI), Z10, Z0
	VPADDQ       64(SI), Z11, Z1
	VPADDQ       128(SI), Z11, Z2
	VPADDQ       192(SI), Z11, Z3
	VPADDQ       256(SI), Z11, Z4
	VPADDQ       320(SI), Z11, Z5
	VPADDQ       384(SI), Z11, Z6
	VPADDQ       448(SI), Z11, Z7
	VPADDQ       512(SI), Z11, Z8
	VPADDQ       576(SI), Z12, Z9
	VPSUBQ       0(BX), Z0, Z0
	VPSUBQ       64(BX), Z1, Z1
	VPSUBQ       128(BX), Z2, Z2
	VPSUBQ       192(BX), Z3, Z3
	VPSUBQ       256(BX), Z4, Z4
	VPSUBQ       320(BX), Z5, Z5
	VPSUBQ       384(BX), Z6, Z6
	VPSUBQ       448(BX), Z7, Z7
	VPSUBQ       512(BX), Z8, Z8
	VPSUBQ       576(BX), Z9, Z9
	TIDY
	RET

// (DI) = (SI) + (BX)
TEXT addWide<>(SB), NOSPLIT|NOFRAME, $0-0
	VPBROADCASTQ ones52<>(SB), Z31
	VMOVDQU64    0(SI), Z0
	VMOVDQU64    64(SI), Z1
	VMOVDQU64    128(SI), Z2
	VMOVDQU64    192(SI), Z3
	VMOVDQU64    256(SI), Z4
	VMOVDQU64    320(SI), Z5
	VMOVDQU64    384(SI), Z6
	VMOVDQU64    448(SI), Z7
	VMOVDQU64    512(SI), Z8
	VMOVDQU64    576(SI), Z9
	VPADDQ       0(BX), Z0, Z0
	VPADDQ       64(BX), Z1, Z1
	VPADDQ       128(BX), Z2, Z2
	VPADDQ       192(BX), Z3, Z3
	VPADDQ       256(BX), Z4, Z4
	VPADDQ       320(BX), Z5, Z5
	VPADDQ       384(BX), Z6, Z6
	VPADDQ       448(BX), Z7, Z7
	VPADDQ       512(BX), Z8, Z8
	VPADDQ       576(BX), Z9, Z9
	TIDYSUM
	RET

#define MUL mulWide<>(SB)
#define SQR sqrWide<>(SB)
#define ADD addWide<>(SB)
#define SUB subWide<>(SB)

// func ifmaChordP512A(z, p *lanesP512APoint, q *[2]laneP512A)
TEXT ·ifmaChordP512A(SB), 0, $3968-24
	NO_LOCAL_POINTERS
#include "chord_amd64.h"

// func ifmaTangentP512A(z, p *lanesP512APoint)
TEXT ·ifmaTangentP512A(SB), 0, $3968-16
	NO_LOCAL_POINTERS
#include "tangent_amd64.h"

#ifdef EDWARDS
#include "edwards_lanes_p512a_amd64.h"
#endif

// PICK sets each lane of z to its entry of the 32 numbers at off(SI). Four bits of the
// index, Z30, select an entry from each half. The fifth bit, K1, selects the half.
#define PICK(off, z) \
	VMOVDQU64 (off)(SI), Z20        \
	VMOVDQA64 Z30, z                \
	VPERMI2Q  (off+64)(SI), Z20, z  \
	VMOVDQU64 (off+128)(SI), Z20    \
	VMOVDQA64 Z30, Z21              \
	VPERMI2Q  (off+192)(SI), Z20, Z21 \
	VMOVDQA64 Z21, K1, z

// func ifmaEntryP512A(z *laneP512A, table *rowP512A, index *[lanes]uint64)
TEXT ·ifmaEntryP512A(SB), NOSPLIT, $0-24
	MOVQ         z+0(FP), DI
	MOVQ         table+8(FP), SI
	MOVQ         index+16(FP), AX
	VMOVDQU64    0(AX), Z30
	MOVQ         $16, CX
	VPBROADCASTQ CX, Z0
	VPTESTMQ     Z0, Z30, K1         // lanes with an index above 15
	PICK(0, Z0)
	PICK(256, Z1)
	PICK(512, Z2)
	PICK(768, Z3)
	PICK(1024, Z4)
	PICK(1280, Z5)
	PICK(1536, Z6)
	PICK(1792, Z7)
	PICK(2048, Z8)
	PICK(2304, Z9)
	VMOVDQU64    Z0, 0(DI)
	VMOVDQU64    Z1, 64(DI)
	VMOVDQU64    Z2, 128(DI)
	VMOVDQU64    Z3, 192(DI)
	VMOVDQU64    Z4, 256(DI)
	VMOVDQU64    Z5, 320(DI)
	VMOVDQU64    Z6, 384(DI)
	VMOVDQU64    Z7, 448(DI)
	VMOVDQU64    Z8, 512(DI)
	VMOVDQU64    Z9, 576(DI)
	VZEROUPPER
	RET

// ONE sets lane K3 of z to entry Z30 of the 32 numbers at off(SI).
#define ONE(off, z) \
	PICK(off, Z22)                  \
	VMOVDQA64 Z22, K3, z

// func ifmaSpreadP512A(z *laneP512A, tables *rowP512A, step, n int, index *[lanes]uint64)
TEXT ·ifmaSpreadP512A(SB), NOSPLIT, $0-40
	MOVQ         z+0(FP), DI
	MOVQ         tables+8(FP), SI
	MOVQ         step+16(FP), R8
	MOVQ         n+24(FP), DX
	MOVQ         index+32(FP), AX
	VPXORQ       Z0, Z0, Z0
	VPXORQ       Z1, Z1, Z1
	VPXORQ       Z2, Z2, Z2
	VPXORQ       Z3, Z3, Z3
	VPXORQ       Z4, Z4, Z4
	VPXORQ       Z5, Z5, Z5
	VPXORQ       Z6, Z6, Z6
	VPXORQ       Z7, Z7, Z7
	VPXORQ       Z8, Z8, Z8
	VPXORQ       Z9, Z9, Z9
	MOVQ         $16, CX
	VPBROADCASTQ CX, Z23
	MOVQ         $1, CX
	KMOVW        CX, K3              // the lane

spread:
	VPBROADCASTQ (AX), Z30           // its index
	VPTESTMQ     Z23, Z30, K1        // all lanes if it is above 15, else none
	ONE(0, Z0)
	ONE(256, Z1)
	ONE(512, Z2)
	ONE(768, Z3)
	ONE(1024, Z4)
	ONE(1280, Z5)
	ONE(1536, Z6)
	ONE(1792, Z7)
	ONE(2048, Z8)
	ONE(2304, Z9)
	ADDQ         R8, SI
	ADDQ         $8, AX
	KSHIFTLB     $1, K3, K3
	DECQ         DX
	JNZ          spread

	VMOVDQU64    Z0, 0(DI)
	VMOVDQU64    Z1, 64(DI)
	VMOVDQU64    Z2, 128(DI)
	VMOVDQU64    Z3, 192(DI)
	VMOVDQU64    Z4, 256(DI)
	VMOVDQU64    Z5, 320(DI)
	VMOVDQU64    Z6, 384(DI)
	VMOVDQU64    Z7, 448(DI)
	VMOVDQU64    Z8, 512(DI)
	VMOVDQU64    Z9, 576(DI)
	VZEROUPPER
	RET

// func ifmaNegateP512A(z *laneP512A, negative *[lanes]uint64)
TEXT ·ifmaNegateP512A(SB), NOSPLIT, $0-16
	MOVQ         z+0(FP), DI
	MOVQ         negative+8(FP), BX
	VMOVDQU64    0(BX), Z10
	VPMOVQ2M     Z10, K2             // the lanes to negate
	VPBROADCASTQ ones52<>(SB), Z31
	VPBROADCASTQ multiple0<>(SB), Z10
	VPBROADCASTQ multiple1<>(SB), Z11
	VPBROADCASTQ multipleTop<>(SB), Z12
	VMOVDQU64    0(DI), Z0
	VMOVDQU64    64(DI), Z1
	VMOVDQU64    128(DI), Z2
	VMOVDQU64    192(DI), Z3
	VMOVDQU64    256(DI), Z4
	VMOVDQU64    320(DI), Z5
	VMOVDQU64    384(DI), Z6
	VMOVDQU64    448(DI), Z7
	VMOVDQU64    512(DI), Z8
	VMOVDQU64    576(DI), Z9
	VPSUBQ       Z0, Z10, K2, Z0     // the multiple - z in the lanes of K2
	VPSUBQ       Z1, Z11, K2, Z1
	VPSUBQ       Z2, Z11, K2, Z2
	VPSUBQ       Z3, Z11, K2, Z3
	VPSUBQ       Z4, Z11, K2, Z4
	VPSUBQ       Z5, Z11, K2, Z5
	VPSUBQ       Z6, Z11, K2, Z6
	VPSUBQ       Z7, Z11, K2, Z7
	VPSUBQ       Z8, Z11, K2, Z8
	VPSUBQ       Z9, Z12, K2, Z9
	TIDYSUM
	VZEROUPPER
	RET

// func ifmaMulP512A(z, x, y *laneP512A)
TEXT ·ifmaMulP512A(SB), NOSPLIT, $0-24
	MOVQ z+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), BX
	CALL mulWide<>(SB)
	VZEROUPPER
	RET

// func ifmaSqrP512A(z, x *laneP512A)
TEXT ·ifmaSqrP512A(SB), NOSPLIT, $0-16
	MOVQ z+0(FP), DI
	MOVQ x+8(FP), SI
	CALL sqrWide<>(SB)
	VZEROUPPER
	RET

// func ifmaSubP512A(z, x, y *laneP512A)
TEXT ·ifmaSubP512A(SB), NOSPLIT, $0-24
	MOVQ z+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), BX
	CALL subWide<>(SB)
	VZEROUPPER
	RET

// func ifmaAddP512A(z, x, y *laneP512A)
TEXT ·ifmaAddP512A(SB), NOSPLIT, $0-24
	MOVQ z+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), BX
	CALL addWide<>(SB)
	VZEROUPPER
	RET
