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
#define OFFSET_PLUS edTurnedWindowP256A_plus
#define OFFSET_DXY edTurnedWindowP256A_dxy
#define MUL tamga∕gost∕gost3410∕internal∕field·inMulP256A(SB)
#define ADD tamga∕gost∕gost3410∕internal∕field·inAddP256A(SB)
#define SUB tamga∕gost∕gost3410∕internal∕field·inSubP256A(SB)

#include "edwards_pick_amd64.h"

// The frame holds nine numbers of eight limbs.

// func mulxEdTurnedPickP256A(z, p *edExtendedP256A, q *edTurnedP256A, next *edTurnedWindowP256A, index, negative uint64)
TEXT ·mulxEdTurnedPickP256A(SB), 0, $576-48
	NO_LOCAL_POINTERS
	START
#include "edwards_turned_amd64.h"
