// The formulas of Edwards points in lanes.

// func ifmaEdMixedP256A(z, p *lanesEdP256APoint, q *[3]laneP256A)
TEXT ·ifmaEdMixedP256A(SB), 0, $2304-24
	NO_LOCAL_POINTERS
#include "edwards_mixed_amd64.h"

// func ifmaEdDoubleP256A(z, p *lanesEdP256APoint)
TEXT ·ifmaEdDoubleP256A(SB), 0, $2304-16
	NO_LOCAL_POINTERS
#include "edwards_double_amd64.h"

// func ifmaEdDoubleWithoutTP256A(z, p *lanesEdP256APoint)
TEXT ·ifmaEdDoubleWithoutTP256A(SB), 0, $2304-16
	NO_LOCAL_POINTERS
#define WITHOUT_T
#include "edwards_double_amd64.h"
#undef WITHOUT_T

// func ifmaEdAddP256A(z, p, q *lanesEdP256APoint)
TEXT ·ifmaEdAddP256A(SB), 0, $2624-24
	NO_LOCAL_POINTERS
#include "edwards_add_amd64.h"
