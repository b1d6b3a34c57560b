// The formulas of Edwards points in lanes.

// func ifmaEdMixedP512A(z, p *lanesEdP512APoint, q *[3]laneP512A)
TEXT ·ifmaEdMixedP512A(SB), 0, $4544-24
	NO_LOCAL_POINTERS
#include "edwards_mixed_amd64.h"

// func ifmaEdDoubleP512A(z, p *lanesEdP512APoint)
TEXT ·ifmaEdDoubleP512A(SB), 0, $4544-16
	NO_LOCAL_POINTERS
#include "edwards_double_amd64.h"

// func ifmaEdDoubleWithoutTP512A(z, p *lanesEdP512APoint)
TEXT ·ifmaEdDoubleWithoutTP512A(SB), 0, $4544-16
	NO_LOCAL_POINTERS
#define WITHOUT_T
#include "edwards_double_amd64.h"
#undef WITHOUT_T

// func ifmaEdAddP512A(z, p, q *lanesEdP512APoint)
TEXT ·ifmaEdAddP512A(SB), 0, $5184-24
	NO_LOCAL_POINTERS
#include "edwards_add_amd64.h"
