// The words in which the formulas are written. A number is one of
//
//	HERE(i, r)        the i-th on the stack
//	THERE(a, i, r)    the i-th where the argument a points
//
// with its address put into the register r. DI gets the result of an operation, SI
// and BX have its operands; all other registers are lost in the routines of package
// field, which run in straight lines whatever the numbers are.

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
