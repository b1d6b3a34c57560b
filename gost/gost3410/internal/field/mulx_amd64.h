// Products of four and eight limbs with MULX, ADCX and ADOX.
//
// MULX a, lo, hi multiplies DX by a and does not change flags. ADCX adds with the flag
// CF and does not change OF. ADOX adds with OF and does not change CF. So two chains of
// carries run side by side: one for the low words of a row of products, one for the
// high words.
//
// Every routine named in* has its arguments in registers: DI points to the result, SI
// and BX point to the operands. These pointers may be equal. The routines destroy all
// registers but SP and BP. They are straight-line code, so they take the same time for
// all values. No address depends on a value.

// ROW4 adds DX times the four limbs at BX to d:c:b:a and leaves the sum in e:d:c:b:a.
// The sum fits, so the last addition does not carry.
#define ROW4(a, b, c, d, e) \
	XORL  e, e            \
	MULXQ 0(BX), AX, CX   \
	ADCXQ AX, a           \
	ADOXQ CX, b           \
	MULXQ 8(BX), AX, CX   \
	ADCXQ AX, b           \
	ADOXQ CX, c           \
	MULXQ 16(BX), AX, CX  \
	ADCXQ AX, c           \
	ADOXQ CX, d           \
	MULXQ 24(BX), AX, CX  \
	ADCXQ AX, d           \
	ADOXQ CX, e           \
	ADCQ  $0, e

// WIDE4 sets R15:...:R8 = x*y for the four limbs x at SI and y at BX.
#define WIDE4 \
	MOVQ  0(SI), DX       \
	MULXQ 0(BX), R8, R9   \
	MULXQ 8(BX), AX, R10  \
	ADDQ  AX, R9          \
	MULXQ 16(BX), AX, R11 \
	ADCQ  AX, R10         \
	MULXQ 24(BX), AX, R12 \
	ADCQ  AX, R11         \
	ADCQ  $0, R12         \
	MOVQ  8(SI), DX       \
	ROW4(R9, R10, R11, R12, R13) \
	MOVQ  16(SI), DX      \
	ROW4(R10, R11, R12, R13, R14) \
	MOVQ  24(SI), DX      \
	ROW4(R11, R12, R13, R14, R15)

// SQUARE4 sets R15:...:R8 = x*x for the four limbs x at SI. It computes the products of
// two different limbs once. Then it doubles them in the chain of CF and adds the
// squares in the chain of OF.
#define SQUARE4 \
	MOVQ  0(SI), DX       \
	MULXQ 8(SI), R9, R10  \
	MULXQ 16(SI), AX, R11 \
	ADDQ  AX, R10         \
	MULXQ 24(SI), AX, R12 \
	ADCQ  AX, R11         \
	ADCQ  $0, R12         \
	MOVQ  8(SI), DX       \
	XORL  R13, R13        \
	MULXQ 16(SI), AX, CX  \
	ADCXQ AX, R11         \
	ADOXQ CX, R12         \
	MULXQ 24(SI), AX, CX  \
	ADCXQ AX, R12         \
	ADOXQ CX, R13         \
	ADCQ  $0, R13         \
	MOVQ  16(SI), DX      \
	MULXQ 24(SI), AX, R14 \
	ADDQ  AX, R13         \
	ADCQ  $0, R14         \
	MOVQ  0(SI), DX       \
	XORL  R15, R15        \
	MULXQ DX, R8, CX      \
	ADCXQ R9, R9          \
	ADOXQ CX, R9          \
	MOVQ  8(SI), DX       \
	MULXQ DX, AX, CX      \
	ADCXQ R10, R10        \
	ADOXQ AX, R10         \
	ADCXQ R11, R11        \
	ADOXQ CX, R11         \
	MOVQ  16(SI), DX      \
	MULXQ DX, AX, CX      \
	ADCXQ R12, R12        \
	ADOXQ AX, R12         \
	ADCXQ R13, R13        \
	ADOXQ CX, R13         \
	MOVQ  24(SI), DX      \
	MULXQ DX, AX, CX      \
	ADCXQ R14, R14        \
	ADOXQ AX, R14         \
	ADCXQ R15, R15        \
	ADOXQ CX, R15

// LOAD4 sets R11:...:R8 to the limbs at SI. STORE4 stores them at DI.
#define LOAD4 \
	MOVQ 0(SI), R8   \
	MOVQ 8(SI), R9   \
	MOVQ 16(SI), R10 \
	MOVQ 24(SI), R11

#define STORE4 \
	MOVQ R8, 0(DI)   \
	MOVQ R9, 8(DI)   \
	MOVQ R10, 16(DI) \
	MOVQ R11, 24(DI)

// PLUS4 adds the limbs at BX to R11:...:R8 and leaves the carry in CF. LESS4 subtracts
// them and leaves the borrow in CF.
#define PLUS4 \
	ADDQ 0(BX), R8   \
	ADCQ 8(BX), R9   \
	ADCQ 16(BX), R10 \
	ADCQ 24(BX), R11

#define LESS4 \
	SUBQ 0(BX), R8   \
	SBBQ 8(BX), R9   \
	SBBQ 16(BX), R10 \
	SBBQ 24(BX), R11

// UP4 adds the word a to R11:...:R8, DOWN4 subtracts it. The carry or borrow is in CF.
#define UP4(a) \
	ADDQ a, R8   \
	ADCQ $0, R9  \
	ADCQ $0, R10 \
	ADCQ $0, R11

#define DOWN4(a) \
	SUBQ a, R8   \
	SBBQ $0, R9  \
	SBBQ $0, R10 \
	SBBQ $0, R11

// The routines of eight limbs use 72 bytes of stack: words 0 to 7 of a product are at
// 0(SP) to 56(SP), the pointer DI is at 64(SP).

// ROW8 adds DX times the eight limbs at BX to h:...:a and leaves the sum in i:...:a.
#define ROW8(a, b, c, d, e, f, g, h, i) \
	XORL  i, i           \
	MULXQ 0(BX), AX, CX  \
	ADCXQ AX, a          \
	ADOXQ CX, b          \
	MULXQ 8(BX), AX, CX  \
	ADCXQ AX, b          \
	ADOXQ CX, c          \
	MULXQ 16(BX), AX, CX \
	ADCXQ AX, c          \
	ADOXQ CX, d          \
	MULXQ 24(BX), AX, CX \
	ADCXQ AX, d          \
	ADOXQ CX, e          \
	MULXQ 32(BX), AX, CX \
	ADCXQ AX, e          \
	ADOXQ CX, f          \
	MULXQ 40(BX), AX, CX \
	ADCXQ AX, f          \
	ADOXQ CX, g          \
	MULXQ 48(BX), AX, CX \
	ADCXQ AX, g          \
	ADOXQ CX, h          \
	MULXQ 56(BX), AX, CX \
	ADCXQ AX, h          \
	ADOXQ CX, i          \
	ADCQ  $0, i

// WIDE8 computes x*y for the limbs x at SI and y at BX. The lower eight words of the
// product are at SP, the upper eight words in R14:...:R8:DI. Each row stores its lowest
// word on the stack.
#define WIDE8 \
	MOVQ  DI, 64(SP)      \
	MOVQ  0(SI), DX       \
	MULXQ 0(BX), R8, R9   \
	MULXQ 8(BX), AX, R10  \
	ADDQ  AX, R9          \
	MULXQ 16(BX), AX, R11 \
	ADCQ  AX, R10         \
	MULXQ 24(BX), AX, R12 \
	ADCQ  AX, R11         \
	MULXQ 32(BX), AX, R13 \
	ADCQ  AX, R12         \
	MULXQ 40(BX), AX, R14 \
	ADCQ  AX, R13         \
	MULXQ 48(BX), AX, R15 \
	ADCQ  AX, R14         \
	MULXQ 56(BX), AX, DI  \
	ADCQ  AX, R15         \
	ADCQ  $0, DI          \
	MOVQ  R8, 0(SP)       \
	MOVQ  8(SI), DX       \
	ROW8(R9, R10, R11, R12, R13, R14, R15, DI, R8) \
	MOVQ  R9, 8(SP)       \
	MOVQ  16(SI), DX      \
	ROW8(R10, R11, R12, R13, R14, R15, DI, R8, R9) \
	MOVQ  R10, 16(SP)     \
	MOVQ  24(SI), DX      \
	ROW8(R11, R12, R13, R14, R15, DI, R8, R9, R10) \
	MOVQ  R11, 24(SP)     \
	MOVQ  32(SI), DX      \
	ROW8(R12, R13, R14, R15, DI, R8, R9, R10, R11) \
	MOVQ  R12, 32(SP)     \
	MOVQ  40(SI), DX      \
	ROW8(R13, R14, R15, DI, R8, R9, R10, R11, R12) \
	MOVQ  R13, 40(SP)     \
	MOVQ  48(SI), DX      \
	ROW8(R14, R15, DI, R8, R9, R10, R11, R12, R13) \
	MOVQ  R14, 48(SP)     \
	MOVQ  56(SI), DX      \
	ROW8(R15, DI, R8, R9, R10, R11, R12, R13, R14) \
	MOVQ  R15, 56(SP)

// CROSS adds DX times the limb at off(SI) to h:l, in the two chains of carries.
#define CROSS(off, l, h) \
	MULXQ off(SI), AX, CX \
	ADCXQ AX, l           \
	ADOXQ CX, h

// TWICE doubles the words l and h of cross products and adds the square of DX.
#define TWICE(l, h) \
	MULXQ DX, AX, CX \
	ADCXQ l, l       \
	ADOXQ AX, l      \
	ADCXQ h, h       \
	ADOXQ CX, h

// SQUARE8 is WIDE8 for y = x. It first sums the products of two different limbs, each
// once, in the words
//   1   2   3   4   5   6   7   8  9  10 11  12  13  14
//   R9  R10 R11 R12 R13 R14 R15 DI R8 R9 R10 R11 R12 R13
// Each row completes two of these words. Then it doubles all words and adds the squares.
#define SQUARE8 \
	MOVQ  DI, 64(SP)      \
	MOVQ  0(SI), DX       \
	MULXQ 8(SI), R9, R10  \
	MULXQ 16(SI), AX, R11 \
	ADDQ  AX, R10         \
	MULXQ 24(SI), AX, R12 \
	ADCQ  AX, R11         \
	MULXQ 32(SI), AX, R13 \
	ADCQ  AX, R12         \
	MULXQ 40(SI), AX, R14 \
	ADCQ  AX, R13         \
	MULXQ 48(SI), AX, R15 \
	ADCQ  AX, R14         \
	MULXQ 56(SI), AX, DI  \
	ADCQ  AX, R15         \
	ADCQ  $0, DI          \
	MOVQ  R9, 8(SP)       \
	MOVQ  R10, 16(SP)     \
	MOVQ  8(SI), DX       \
	XORL  R8, R8          \
	CROSS(16, R11, R12)   \
	CROSS(24, R12, R13)   \
	CROSS(32, R13, R14)   \
	CROSS(40, R14, R15)   \
	CROSS(48, R15, DI)    \
	CROSS(56, DI, R8)     \
	ADCQ  $0, R8          \
	MOVQ  R11, 24(SP)     \
	MOVQ  R12, 32(SP)     \
	MOVQ  16(SI), DX      \
	XORL  R9, R9          \
	CROSS(24, R13, R14)   \
	CROSS(32, R14, R15)   \
	CROSS(40, R15, DI)    \
	CROSS(48, DI, R8)     \
	CROSS(56, R8, R9)     \
	ADCQ  $0, R9          \
	MOVQ  R13, 40(SP)     \
	MOVQ  R14, 48(SP)     \
	MOVQ  24(SI), DX      \
	XORL  R10, R10        \
	CROSS(32, R15, DI)    \
	CROSS(40, DI, R8)     \
	CROSS(48, R8, R9)     \
	CROSS(56, R9, R10)    \
	ADCQ  $0, R10         \
	MOVQ  R15, 56(SP)     \
	MOVQ  32(SI), DX      \
	XORL  R11, R11        \
	CROSS(40, R8, R9)     \
	CROSS(48, R9, R10)    \
	CROSS(56, R10, R11)   \
	ADCQ  $0, R11         \
	MOVQ  40(SI), DX      \
	XORL  R12, R12        \
	CROSS(48, R10, R11)   \
	CROSS(56, R11, R12)   \
	ADCQ  $0, R12         \
	MOVQ  48(SI), DX      \
	MULXQ 56(SI), AX, R13 \
	ADDQ  AX, R12         \
	ADCQ  $0, R13         \
	XORL  R14, R14        \
	MOVQ  0(SI), DX       \
	MULXQ DX, AX, CX      \
	MOVQ  AX, 0(SP)       \
	MOVQ  8(SP), R15      \
	ADCXQ R15, R15        \
	ADOXQ CX, R15         \
	MOVQ  R15, 8(SP)      \
	MOVQ  8(SI), DX       \
	MOVQ  16(SP), R15     \
	MOVQ  24(SP), BX      \
	TWICE(R15, BX)        \
	MOVQ  R15, 16(SP)     \
	MOVQ  BX, 24(SP)      \
	MOVQ  16(SI), DX      \
	MOVQ  32(SP), R15     \
	MOVQ  40(SP), BX      \
	TWICE(R15, BX)        \
	MOVQ  R15, 32(SP)     \
	MOVQ  BX, 40(SP)      \
	MOVQ  24(SI), DX      \
	MOVQ  48(SP), R15     \
	MOVQ  56(SP), BX      \
	TWICE(R15, BX)        \
	MOVQ  R15, 48(SP)     \
	MOVQ  BX, 56(SP)      \
	MOVQ  32(SI), DX      \
	TWICE(DI, R8)         \
	MOVQ  40(SI), DX      \
	TWICE(R9, R10)        \
	MOVQ  48(SI), DX      \
	TWICE(R11, R12)       \
	MOVQ  56(SI), DX      \
	TWICE(R13, R14)

// STORE8 stores R14:...:R8:DI at the pointer in 64(SP).
#define STORE8 \
	MOVQ 64(SP), AX  \
	MOVQ DI, 0(AX)   \
	MOVQ R8, 8(AX)   \
	MOVQ R9, 16(AX)  \
	MOVQ R10, 24(AX) \
	MOVQ R11, 32(AX) \
	MOVQ R12, 40(AX) \
	MOVQ R13, 48(AX) \
	MOVQ R14, 56(AX)

// UP8 adds the word a to R14:...:R8:DI, DOWN8 subtracts it. The carry or borrow is in
// CF.
#define UP8(a) \
	ADDQ a, DI   \
	ADCQ $0, R8  \
	ADCQ $0, R9  \
	ADCQ $0, R10 \
	ADCQ $0, R11 \
	ADCQ $0, R12 \
	ADCQ $0, R13 \
	ADCQ $0, R14

#define DOWN8(a) \
	SUBQ a, DI   \
	SBBQ $0, R8  \
	SBBQ $0, R9  \
	SBBQ $0, R10 \
	SBBQ $0, R11 \
	SBBQ $0, R12 \
	SBBQ $0, R13 \
	SBBQ $0, R14

// LOAD8 saves DI at 64(SP) and sets R14:...:R8:DI to the limbs at SI. PLUS8 adds the
// limbs at BX, LESS8 subtracts them.
#define LOAD8 \
	MOVQ DI, 64(SP)  \
	MOVQ 0(SI), DI   \
	MOVQ 8(SI), R8   \
	MOVQ 16(SI), R9  \
	MOVQ 24(SI), R10 \
	MOVQ 32(SI), R11 \
	MOVQ 40(SI), R12 \
	MOVQ 48(SI), R13 \
	MOVQ 56(SI), R14

#define PLUS8 \
	ADDQ 0(BX), DI   \
	ADCQ 8(BX), R8   \
	ADCQ 16(BX), R9  \
	ADCQ 24(BX), R10 \
	ADCQ 32(BX), R11 \
	ADCQ 40(BX), R12 \
	ADCQ 48(BX), R13 \
	ADCQ 56(BX), R14

#define LESS8 \
	SUBQ 0(BX), DI   \
	SBBQ 8(BX), R8   \
	SBBQ 16(BX), R9  \
	SBBQ 24(BX), R10 \
	SBBQ 32(BX), R11 \
	SBBQ 40(BX), R12 \
	SBBQ 48(BX), R13 \
	SBBQ 56(BX), R14
