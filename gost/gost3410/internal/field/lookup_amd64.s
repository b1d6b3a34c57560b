// SPDX-License-Identifier: Apache-2.0

//go:build !purego

#include "textflag.h"

// These routines read one entry of a table by loading all entries. Each entry is anded
// with a mask, which is all ones if the counter is the index, and ored to the result.
// No address depends on the index, and the only branch is that of the loop.

// func avxLookup4(z, table *[4]uint64, n int, index uint64)
TEXT ·avxLookup4(SB), NOSPLIT, $0-32
	MOVQ         z+0(FP), DI
	MOVQ         table+8(FP), SI
	MOVQ         n+16(FP), CX
	VPBROADCASTQ index+24(FP), Y0
	VPXOR        Y1, Y1, Y1           // the counter, in all four words
	VPCMPEQQ     Y2, Y2, Y2           // all ones, that is -1
	VPXOR        Y4, Y4, Y4           // the entry

loop:
	VPCMPEQQ Y0, Y1, Y3   // the mask
	VPAND    0(SI), Y3, Y3
	VPOR     Y3, Y4, Y4
	VPSUBQ   Y2, Y1, Y1   // counter + 1
	ADDQ     $32, SI
	DECQ     CX
	JNZ      loop
	VMOVDQU  Y4, 0(DI)
	VZEROUPPER
	RET

// func avxLookup8(z, table *[8]uint64, n int, index uint64)
TEXT ·avxLookup8(SB), NOSPLIT, $0-32
	MOVQ         z+0(FP), DI
	MOVQ         table+8(FP), SI
	MOVQ         n+16(FP), CX
	VPBROADCASTQ index+24(FP), Y0
	VPXOR        Y1, Y1, Y1
	VPCMPEQQ     Y2, Y2, Y2
	VPXOR        Y4, Y4, Y4           // lower half of the entry
	VPXOR        Y5, Y5, Y5           // upper half

loop:
	VPCMPEQQ Y0, Y1, Y3
	VPAND    0(SI), Y3, Y6
	VPOR     Y6, Y4, Y4
	VPAND    32(SI), Y3, Y7
	VPOR     Y7, Y5, Y5
	VPSUBQ   Y2, Y1, Y1
	ADDQ     $64, SI
	DECQ     CX
	JNZ      loop
	VMOVDQU  Y4, 0(DI)
	VMOVDQU  Y5, 32(DI)
	VZEROUPPER
	RET

// func avxLookupPair4(x, y, tx, ty *[4]uint64, n int, index uint64)
TEXT ·avxLookupPair4(SB), NOSPLIT, $0-48
	MOVQ         tx+16(FP), SI
	MOVQ         ty+24(FP), DI
	MOVQ         n+32(FP), CX
	VPBROADCASTQ index+40(FP), Y0
	VPXOR        Y1, Y1, Y1
	VPCMPEQQ     Y2, Y2, Y2
	VPXOR        Y4, Y4, Y4
	VPXOR        Y5, Y5, Y5
	XORL         AX, AX                // offset of the entry

loop:
	VPCMPEQQ Y0, Y1, Y3
	VPAND    0(SI)(AX*1), Y3, Y6
	VPOR     Y6, Y4, Y4
	VPAND    0(DI)(AX*1), Y3, Y7
	VPOR     Y7, Y5, Y5
	VPSUBQ   Y2, Y1, Y1
	ADDQ     $32, AX
	DECQ     CX
	JNZ      loop
	MOVQ     x+0(FP), SI
	MOVQ     y+8(FP), DI
	VMOVDQU  Y4, 0(SI)
	VMOVDQU  Y5, 0(DI)
	VZEROUPPER
	RET

// func avxLookupTriple4(x, y, z, tx, ty, tz *[4]uint64, n int, index uint64)
TEXT ·avxLookupTriple4(SB), NOSPLIT, $0-64
	MOVQ         tx+24(FP), SI
	MOVQ         ty+32(FP), DI
	MOVQ         tz+40(FP), BX
	MOVQ         n+48(FP), CX
	VPBROADCASTQ index+56(FP), Y0
	VPXOR        Y1, Y1, Y1
	VPCMPEQQ     Y2, Y2, Y2
	VPXOR        Y4, Y4, Y4
	VPXOR        Y5, Y5, Y5
	VPXOR        Y8, Y8, Y8
	XORL         AX, AX

loop:
	VPCMPEQQ Y0, Y1, Y3
	VPAND    0(SI)(AX*1), Y3, Y6
	VPOR     Y6, Y4, Y4
	VPAND    0(DI)(AX*1), Y3, Y7
	VPOR     Y7, Y5, Y5
	VPAND    0(BX)(AX*1), Y3, Y9
	VPOR     Y9, Y8, Y8
	VPSUBQ   Y2, Y1, Y1
	ADDQ     $32, AX
	DECQ     CX
	JNZ      loop
	MOVQ     x+0(FP), SI
	MOVQ     y+8(FP), DI
	MOVQ     z+16(FP), BX
	VMOVDQU  Y4, 0(SI)
	VMOVDQU  Y5, 0(DI)
	VMOVDQU  Y8, 0(BX)
	VZEROUPPER
	RET
