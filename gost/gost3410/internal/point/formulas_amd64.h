// The macros of the formulas. Each puts the address of a number into the register r:
//
//	HERE(i, r)        number i on the stack
//	THERE(a, i, r)    number i at the pointer in the argument a
//
// An operation takes the address of its result in DI and the addresses of its operands
// in SI and BX. It calls a routine of package field, which destroys all other registers
// and is straight-line code for all values.

#ifndef HERE
#define HERE(i, r) \
	LEAQ (i*SIZE)(SP), r
#endif

#define THERE(a, i, r) \
	MOVQ a, r           \
	ADDQ $(i*SIZE), r

// DONE ends a formula.
#ifndef DONE
#define DONE RET
#endif

// Parts of a look-up between the products of an addition, if the file defines PICKS.
#ifndef PICKS
#define PICK0
#define PICK1
#define PICK2
#define PICK3
#define PICK4
#define PICK5
#define TURN
#endif
