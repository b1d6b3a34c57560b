// SPDX-License-Identifier: Apache-2.0

//go:build !purego

#include "textflag.h"
#include "funcdata.h"

// Eight numbers modulo a prime of 256 bits at a time, one in each lane of 64 bits. A
// number is five limbs of 52 bits, each a vector of 64 bytes, the lowest first:
//
//	x = x0 + 2^52*x1 + 2^104*x2 + 2^156*x3 + 2^208*x4
//
// Between operations limbs 0 to 3 are below 2^52. The bound of limb 4 and what else
// depends on the prime are in reduce_p256a_amd64.h: the constants and the macros TIDY,
// TIDYSUM and REDUCE. EDWARDS is defined if the prime has a curve in Edwards form.
//
// VPMADD52LUQ c, b, a multiplies the low 52 bits of b and c and adds the low 52 bits of
// the product to a. VPMADD52HUQ adds the next 52 bits.
//
// The code is straight-line code, the same for every value in every lane. No address
// depends on a value, because the entries of a table are picked from registers.

// Numbers on the stack begin at multiples of 64, because a vector that spans two cache
// lines is read in two steps.
#define SIZE 320
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

#include "reduce_p256a_amd64.h"

// (DI) = (SI) * (BX). The limbs of one factor are in Z0 to Z4, those of the other in Z5
// to Z9. The low halves of products are summed in Z10 to Z18. The high halves, which
// belong to the next higher word, are summed in Z19 to Z27.
TEXT mulLanes<>(SB), NOSPLIT|NOFRAME, $0-0
	VMOVDQU64 0(BX), Z0
	VMOVDQU64 64(BX), Z1
	VMOVDQU64 128(BX), Z2
	VMOVDQU64 192(BX), Z3
	VMOVDQU64 256(BX), Z4
	VMOVDQU64 0(SI), Z5
	VMOVDQU64 64(SI), Z6
	VMOVDQU64 128(SI), Z7
	VMOVDQU64 192(SI), Z8
	VMOVDQU64 256(SI), Z9
	VPXORQ Z10, Z10, Z10
	VPXORQ Z11, Z11, Z11
	VPXORQ Z12, Z12, Z12
	VPXORQ Z13, Z13, Z13
	VPXORQ Z14, Z14, Z14
	VPXORQ Z15, Z15, Z15
	VPXORQ Z16, Z16, Z16
	VPXORQ Z17, Z17, Z17
	VPXORQ Z18, Z18, Z18
	VPXORQ Z19, Z19, Z19
	VPXORQ Z20, Z20, Z20
	VPXORQ Z21, Z21, Z21
	VPXORQ Z22, Z22, Z22
	VPXORQ Z23, Z23, Z23
	VPXORQ Z24, Z24, Z24
	VPXORQ Z25, Z25, Z25
	VPXORQ Z26, Z26, Z26
	VPXORQ Z27, Z27, Z27

	// limb 0 times all
	LO Z0, Z5, Z10
	HI Z0, Z5, Z19
	LO Z1, Z5, Z11
	HI Z1, Z5, Z20
	LO Z2, Z5, Z12
	HI Z2, Z5, Z21
	LO Z3, Z5, Z13
	HI Z3, Z5, Z22
	LO Z4, Z5, Z14
	HI Z4, Z5, Z23

	// limb 1 times all
	LO Z0, Z6, Z11
	HI Z0, Z6, Z20
	LO Z1, Z6, Z12
	HI Z1, Z6, Z21
	LO Z2, Z6, Z13
	HI Z2, Z6, Z22
	LO Z3, Z6, Z14
	HI Z3, Z6, Z23
	LO Z4, Z6, Z15
	HI Z4, Z6, Z24

	// limb 2 times all
	LO Z0, Z7, Z12
	HI Z0, Z7, Z21
	LO Z1, Z7, Z13
	HI Z1, Z7, Z22
	LO Z2, Z7, Z14
	HI Z2, Z7, Z23
	LO Z3, Z7, Z15
	HI Z3, Z7, Z24
	LO Z4, Z7, Z16
	HI Z4, Z7, Z25

	// limb 3 times all
	LO Z0, Z8, Z13
	HI Z0, Z8, Z22
	LO Z1, Z8, Z14
	HI Z1, Z8, Z23
	LO Z2, Z8, Z15
	HI Z2, Z8, Z24
	LO Z3, Z8, Z16
	HI Z3, Z8, Z25
	LO Z4, Z8, Z17
	HI Z4, Z8, Z26

	// limb 4 times all
	LO Z0, Z9, Z14
	HI Z0, Z9, Z23
	LO Z1, Z9, Z15
	HI Z1, Z9, Z24
	LO Z2, Z9, Z16
	HI Z2, Z9, Z25
	LO Z3, Z9, Z17
	HI Z3, Z9, Z26
	LO Z4, Z9, Z18
	HI Z4, Z9, Z27

	// words 1 to 8; word 9 is Z27 itself
	VPADDQ Z19, Z11, Z11
	VPADDQ Z20, Z12, Z12
	VPADDQ Z21, Z13, Z13
	VPADDQ Z22, Z14, Z14
	VPADDQ Z23, Z15, Z15
	VPADDQ Z24, Z16, Z16
	VPADDQ Z25, Z17, Z17
	VPADDQ Z26, Z18, Z18
	REDUCE
	RET

// (DI) = (SI)^2. It sums the products of two different limbs once, doubles the sum and
// adds the squares.
TEXT sqrLanes<>(SB), NOSPLIT|NOFRAME, $0-0
	VMOVDQU64 0(SI), Z5
	VMOVDQU64 64(SI), Z6
	VMOVDQU64 128(SI), Z7
	VMOVDQU64 192(SI), Z8
	VMOVDQU64 256(SI), Z9
	VPXORQ Z10, Z10, Z10
	VPXORQ Z11, Z11, Z11
	VPXORQ Z12, Z12, Z12
	VPXORQ Z13, Z13, Z13
	VPXORQ Z14, Z14, Z14
	VPXORQ Z15, Z15, Z15
	VPXORQ Z16, Z16, Z16
	VPXORQ Z17, Z17, Z17
	VPXORQ Z18, Z18, Z18
	VPXORQ Z19, Z19, Z19
	VPXORQ Z20, Z20, Z20
	VPXORQ Z21, Z21, Z21
	VPXORQ Z22, Z22, Z22
	VPXORQ Z23, Z23, Z23
	VPXORQ Z24, Z24, Z24
	VPXORQ Z25, Z25, Z25
	VPXORQ Z26, Z26, Z26
	VPXORQ Z27, Z27, Z27

	// limb 0 times the higher ones
	LO Z6, Z5, Z11
	HI Z6, Z5, Z20
	LO Z7, Z5, Z12
	HI Z7, Z5, Z21
	LO Z8, Z5, Z13
	HI Z8, Z5, Z22
	LO Z9, Z5, Z14
	HI Z9, Z5, Z23

	// limb 1 times the higher ones
	LO Z7, Z6, Z13
	HI Z7, Z6, Z22
	LO Z8, Z6, Z14
	HI Z8, Z6, Z23
	LO Z9, Z6, Z15
	HI Z9, Z6, Z24

	// limb 2 times the higher ones
	LO Z8, Z7, Z15
	HI Z8, Z7, Z24
	LO Z9, Z7, Z16
	HI Z9, Z7, Z25

	// limb 3 times the higher ones
	LO Z9, Z8, Z17
	HI Z9, Z8, Z26

	// words 1 to 9, twice
	VPADDQ Z19, Z11, Z11
	VPADDQ Z20, Z12, Z12
	VPADDQ Z21, Z13, Z13
	VPADDQ Z22, Z14, Z14
	VPADDQ Z23, Z15, Z15
	VPADDQ Z24, Z16, Z16
	VPADDQ Z25, Z17, Z17
	VPADDQ Z26, Z18, Z18
	VPADDQ Z11, Z11, Z11
	VPADDQ Z12, Z12, Z12
	VPADDQ Z13, Z13, Z13
	VPADDQ Z14, Z14, Z14
	VPADDQ Z15, Z15, Z15
	VPADDQ Z16, Z16, Z16
	VPADDQ Z17, Z17, Z17
	VPADDQ Z18, Z18, Z18
	VPADDQ Z27, Z27, Z27

	// the squares
	LO Z5, Z5, Z10
	HI Z5, Z5, Z11
	LO Z6, Z6, Z12
	HI Z6, Z6, Z13
	LO Z7, Z7, Z14
	HI Z7, Z7, Z15
	LO Z8, Z8, Z16
	HI Z8, Z8, Z17
	LO Z9, Z9, Z18
	HI Z9, Z9, Z27
	REDUCE
	RET

// (DI) = (SI) - (BX). It adds a multiple of the prime so
// that no limb is negative.
TEXT subLanes<>(SB), NOSPLIT|NOFRAME, $0-0
	VPBROADCASTQ ones52<>(SB), Z31
	VPBROADCASTQ multiple0<>(SB), Z0
	VPBROADCASTQ multiple1<>(SB), Z1
	VPBROADCASTQ multiple2<>(SB), Z2
	VPBROADCASTQ multiple3<>(SB), Z3
	VPBROADCASTQ multiple4<>(SB), Z4
	VPADDQ       0(SI), Z0, Z0
	VPADDQ       64(SI), Z1, Z1
	VPADDQ       128(SI), Z2, Z2
	VPADDQ       192(SI), Z3, Z3
	VPADDQ       256(SI), Z4, Z4
	VPSUBQ       0(BX), Z0, Z0
	VPSUBQ       64(BX), Z1, Z1
	VPSUBQ       128(BX), Z2, Z2
	VPSUBQ       192(BX), Z3, Z3
	VPSUBQ       256(BX), Z4, Z4
	TIDY(Z0, Z1, Z2, Z3, Z4)
	RET

// (DI) = (SI) + (BX)
TEXT addLanes<>(SB), NOSPLIT|NOFRAME, $0-0
	VPBROADCASTQ ones52<>(SB), Z31
	VMOVDQU64    0(SI), Z0
	VMOVDQU64    64(SI), Z1
	VMOVDQU64    128(SI), Z2
	VMOVDQU64    192(SI), Z3
	VMOVDQU64    256(SI), Z4
	VPADDQ       0(BX), Z0, Z0
	VPADDQ       64(BX), Z1, Z1
	VPADDQ       128(BX), Z2, Z2
	VPADDQ       192(BX), Z3, Z3
	VPADDQ       256(BX), Z4, Z4
	TIDYSUM(Z0, Z1, Z2, Z3, Z4)
	RET

#define MUL mulLanes<>(SB)
#define SQR sqrLanes<>(SB)
#define ADD addLanes<>(SB)
#define SUB subLanes<>(SB)

// func ifmaChordP256A(z, p *lanesP256APoint, q *[2]laneP256A)
TEXT ·ifmaChordP256A(SB), 0, $2048-24
	NO_LOCAL_POINTERS
#include "chord_amd64.h"

// func ifmaTangentP256A(z, p *lanesP256APoint)
TEXT ·ifmaTangentP256A(SB), 0, $2048-16
	NO_LOCAL_POINTERS
#include "tangent_amd64.h"

#ifdef EDWARDS
#include "edwards_lanes_p256a_amd64.h"
#endif

// PICK sets each lane of z to its entry of the 32 numbers at off(SI). Four bits of the
// index, Z30, select an entry from each half. The fifth bit, K1, selects the half.
#define PICK(off, z) \
	VMOVDQU64 (off)(SI), Z10        \
	VMOVDQA64 Z30, z                \
	VPERMI2Q  (off+64)(SI), Z10, z  \
	VMOVDQU64 (off+128)(SI), Z10    \
	VMOVDQA64 Z30, Z11              \
	VPERMI2Q  (off+192)(SI), Z10, Z11 \
	VMOVDQA64 Z11, K1, z

// func ifmaEntryP256A(z *laneP256A, table *rowP256A, index *[lanes]uint64)
TEXT ·ifmaEntryP256A(SB), NOSPLIT, $0-24
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
	VMOVDQU64    Z0, 0(DI)
	VMOVDQU64    Z1, 64(DI)
	VMOVDQU64    Z2, 128(DI)
	VMOVDQU64    Z3, 192(DI)
	VMOVDQU64    Z4, 256(DI)
	VZEROUPPER
	RET

// ONE sets lane K3 of z to entry Z30 of the 32 numbers at off(SI).
#define ONE(off, z) \
	PICK(off, Z12)                  \
	VMOVDQA64 Z12, K3, z

// func ifmaSpreadP256A(z *laneP256A, tables *rowP256A, step, n int, index *[lanes]uint64)
TEXT ·ifmaSpreadP256A(SB), NOSPLIT, $0-40
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
	MOVQ         $16, CX
	VPBROADCASTQ CX, Z13
	MOVQ         $1, CX
	KMOVW        CX, K3              // the lane

spread:
	VPBROADCASTQ (AX), Z30           // its index
	VPTESTMQ     Z13, Z30, K1        // all lanes if it is above 15, else none
	ONE(0, Z0)
	ONE(256, Z1)
	ONE(512, Z2)
	ONE(768, Z3)
	ONE(1024, Z4)
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
	VZEROUPPER
	RET

// func ifmaNegateP256A(z *laneP256A, negative *[lanes]uint64)
TEXT ·ifmaNegateP256A(SB), NOSPLIT, $0-16
	MOVQ         z+0(FP), DI
	MOVQ         negative+8(FP), BX
	VMOVDQU64    0(BX), Z10
	VPMOVQ2M     Z10, K2             // the lanes to negate
	VPBROADCASTQ ones52<>(SB), Z31
	VPBROADCASTQ multiple0<>(SB), Z10
	VPBROADCASTQ multiple1<>(SB), Z11
	VPBROADCASTQ multiple2<>(SB), Z12
	VPBROADCASTQ multiple3<>(SB), Z13
	VPBROADCASTQ multiple4<>(SB), Z14
	VMOVDQU64    0(DI), Z0
	VMOVDQU64    64(DI), Z1
	VMOVDQU64    128(DI), Z2
	VMOVDQU64    192(DI), Z3
	VMOVDQU64    256(DI), Z4
	VPSUBQ       Z0, Z10, K2, Z0     // the multiple - z in the lanes of K2
	VPSUBQ       Z1, Z11, K2, Z1
	VPSUBQ       Z2, Z12, K2, Z2
	VPSUBQ       Z3, Z13, K2, Z3
	VPSUBQ       Z4, Z14, K2, Z4
	TIDYSUM(Z0, Z1, Z2, Z3, Z4)
	VZEROUPPER
	RET

// func ifmaMulP256A(z, x, y *laneP256A)
TEXT ·ifmaMulP256A(SB), NOSPLIT, $0-24
	MOVQ z+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), BX
	CALL mulLanes<>(SB)
	VZEROUPPER
	RET

// func ifmaSqrP256A(z, x *laneP256A)
TEXT ·ifmaSqrP256A(SB), NOSPLIT, $0-16
	MOVQ z+0(FP), DI
	MOVQ x+8(FP), SI
	CALL sqrLanes<>(SB)
	VZEROUPPER
	RET

// func ifmaSubP256A(z, x, y *laneP256A)
TEXT ·ifmaSubP256A(SB), NOSPLIT, $0-24
	MOVQ z+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), BX
	CALL subLanes<>(SB)
	VZEROUPPER
	RET

// func ifmaAddP256A(z, x, y *laneP256A)
TEXT ·ifmaAddP256A(SB), NOSPLIT, $0-24
	MOVQ z+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), BX
	CALL addLanes<>(SB)
	VZEROUPPER
	RET
