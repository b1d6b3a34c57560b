// SPDX-License-Identifier: Apache-2.0

//go:build !purego

#include "go_asm.h"
#include "textflag.h"
#include "funcdata.h"
#include "formulas_amd64.h"

#define SIZE const_edSizeP256A
#define MUL tamga∕gost∕gost3410∕internal∕field·inMulP256A(SB)
#define SQR tamga∕gost∕gost3410∕internal∕field·inSqrP256A(SB)
#define ADD tamga∕gost∕gost3410∕internal∕field·inAddP256A(SB)
#define SUB tamga∕gost∕gost3410∕internal∕field·inSubP256A(SB)

// The frames hold nine numbers of eight limbs.

// func mulxEdAddP256A(z, p *edExtendedP256A, q *edCachedP256A)
TEXT ·mulxEdAddP256A(SB), 0, $576-24
	NO_LOCAL_POINTERS
#include "edwards_add_amd64.h"

// func mulxEdMixedP256A(z, p *edExtendedP256A, q *edAffineP256A)
TEXT ·mulxEdMixedP256A(SB), 0, $576-24
	NO_LOCAL_POINTERS
#include "edwards_mixed_amd64.h"

// func mulxEdDoubleP256A(z, p *edExtendedP256A)
TEXT ·mulxEdDoubleP256A(SB), 0, $576-16
	NO_LOCAL_POINTERS
#include "edwards_double_amd64.h"

// func mulxEdDoubleWithoutTP256A(z, p *edExtendedP256A)
TEXT ·mulxEdDoubleWithoutTP256A(SB), 0, $576-16
	NO_LOCAL_POINTERS
#define WITHOUT_T
#include "edwards_double_amd64.h"
