// SPDX-License-Identifier: Apache-2.0

//go:build !purego

#include "go_asm.h"
#include "textflag.h"
#include "funcdata.h"

#define PICKS // the macros of edwards_pick_amd64.h
#include "formulas_amd64.h"

// An addition of points with the look-up of the next summand between its products,
// while the units for vectors have nothing else to do.

#define SIZE const_edSizeP256A
#define SIZE_P256A // says which size that is
#define OFFSET_V edWindowP256A_v
#define OFFSET_DUV edWindowP256A_duv
#define MUL tamga∕gost∕gost3410∕internal∕field·inMulP256A(SB)
#define ADD tamga∕gost∕gost3410∕internal∕field·inAddP256A(SB)
#define SUB tamga∕gost∕gost3410∕internal∕field·inSubP256A(SB)

#include "edwards_pick_amd64.h"

// func mulxEdMixedPickP256A(z, p *edExtendedP256A, q *edAffineP256A, next *edWindowP256A, index, negative uint64)
TEXT ·mulxEdMixedPickP256A(SB), 0, $576-48
	NO_LOCAL_POINTERS
	START
#include "edwards_mixed_amd64.h"
