// SPDX-License-Identifier: Apache-2.0

//go:build !purego

#include "go_asm.h"
#include "textflag.h"
#include "funcdata.h"
#include "formulas_amd64.h"

#define SIZE const_sizeP256A
#define MUL tamga∕gost∕gost3410∕internal∕field·inMulP256A(SB)
#define SQR tamga∕gost∕gost3410∕internal∕field·inSqrP256A(SB)
#define ADD tamga∕gost∕gost3410∕internal∕field·inAddP256A(SB)
#define SUB tamga∕gost∕gost3410∕internal∕field·inSubP256A(SB)

// The frames hold nine numbers of eight limbs.

// func mulxChordP256A(z, p *jacobianP256A, q *affineP256A)
TEXT ·mulxChordP256A(SB), 0, $576-24
	NO_LOCAL_POINTERS
#include "chord_amd64.h"

// func mulxTangentP256A(z, p *jacobianP256A)
TEXT ·mulxTangentP256A(SB), 0, $576-16
	NO_LOCAL_POINTERS
#include "tangent_amd64.h"
