//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// GOST 28147-89 (RFC 5830) on sixteen blocks in a pair of registers, the lower halves
// of the blocks in one, the higher ones in the other; eight pairs at once where there
// are as many blocks. Straight lines of code and loops over counts: no address and no
// jump depends on key or data.

#define LOWER Z24  // values for the lower four bits of octets, see wide
#define UPPER Z25  // and for the upper four
#define NIBBLE Z26 // 15 in every octet
#define PLACE Z27  // 16p in octet p of every word

DATA nibble<>+0(SB)/4, $0x0f0f0f0f
DATA place<>+0(SB)/4, $0x30201000
GLOBL nibble<>(SB), RODATA, $4
GLOBL place<>(SB), RODATA, $4

// ROUND adds to y what the round makes of x and a key. 0xea is the truth table of
// (a & b) | c, 0x96 that of a + b + c. VPERMB looks each octet of an index, its low six
// bits, up in a register of 64 octets.
#define ROUND(x, y, key, t, u) \
	VPADDD.BCST key, x, t           /* x + key modulo 2^32 */; \
	VPSRLD $4, t, u                 /* the upper four bits of octets, moved down */; \
	VPTERNLOGD $0xea, PLACE, NIBBLE, t /* lower four bits and the octet's place */; \
	VPTERNLOGD $0xea, PLACE, NIBBLE, u ; \
	VPERMB LOWER, t, t              ; \
	VPERMB UPPER, u, u              ; \
	VPROLD $11, t, t                ; \
	VPROLD $11, u, u                ; \
	VPTERNLOGD $0x96, t, u, y

// LOAD takes sixteen blocks apart into lower halves, x, and higher ones, y. Within each
// 128 bits of both registers there are two words of two blocks from the first 64 octets
// and two from the next; STORE undoes this order.
#define LOAD(at, x, y, t, u) \
	VMOVDQU64 at(SI), t             ; \
	VMOVDQU64 (at+64)(SI), u        ; \
	VSHUFPS $0x88, u, t, x          /* words 0 and 2 of t, then of u */; \
	VSHUFPS $0xdd, u, t, y          /* words 1 and 3 */

// STORE: the last round does not exchange the halves, so y goes first.
#define STORE(at, x, y, t, u) \
	VPUNPCKLDQ x, y, t              /* y0 x0 y1 x1 */; \
	VPUNPCKHDQ x, y, u              /* y2 x2 y3 x3 */; \
	VMOVDQU64 t, at(DI)             ; \
	VMOVDQU64 u, (at+64)(DI)

// func encryptGroups(dst, src *byte, n int, keys *[32]uint32, s *wide)
TEXT ·encryptGroups(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), BX
	MOVQ keys+24(FP), R8
	MOVQ s+32(FP), CX
	VMOVDQU64 wide_lower(CX), LOWER
	VMOVDQU64 wide_upper(CX), UPPER
	VPBROADCASTD nibble<>(SB), NIBBLE
	VPBROADCASTD place<>(SB), PLACE

eight: // pairs at once: each waits for its own results most of the time
	CMPQ BX, $8
	JLT  one
	LOAD(0, Z0, Z1, Z16, Z17)
	LOAD(128, Z2, Z3, Z18, Z19)
	LOAD(256, Z4, Z5, Z20, Z21)
	LOAD(384, Z6, Z7, Z22, Z23)
	LOAD(512, Z8, Z9, Z16, Z17)
	LOAD(640, Z10, Z11, Z18, Z19)
	LOAD(768, Z12, Z13, Z20, Z21)
	LOAD(896, Z14, Z15, Z22, Z23)
	MOVQ R8, DX
	MOVQ $16, AX

eightRounds: // two of them
	ROUND(Z0, Z1, 0(DX), Z16, Z17)
	ROUND(Z2, Z3, 0(DX), Z18, Z19)
	ROUND(Z4, Z5, 0(DX), Z20, Z21)
	ROUND(Z6, Z7, 0(DX), Z22, Z23)
	ROUND(Z8, Z9, 0(DX), Z16, Z17)
	ROUND(Z10, Z11, 0(DX), Z18, Z19)
	ROUND(Z12, Z13, 0(DX), Z20, Z21)
	ROUND(Z14, Z15, 0(DX), Z22, Z23)
	ROUND(Z1, Z0, 4(DX), Z16, Z17)
	ROUND(Z3, Z2, 4(DX), Z18, Z19)
	ROUND(Z5, Z4, 4(DX), Z20, Z21)
	ROUND(Z7, Z6, 4(DX), Z22, Z23)
	ROUND(Z9, Z8, 4(DX), Z16, Z17)
	ROUND(Z11, Z10, 4(DX), Z18, Z19)
	ROUND(Z13, Z12, 4(DX), Z20, Z21)
	ROUND(Z15, Z14, 4(DX), Z22, Z23)
	ADDQ $8, DX
	DECQ AX
	JNZ  eightRounds

	STORE(0, Z0, Z1, Z16, Z17)
	STORE(128, Z2, Z3, Z18, Z19)
	STORE(256, Z4, Z5, Z20, Z21)
	STORE(384, Z6, Z7, Z22, Z23)
	STORE(512, Z8, Z9, Z16, Z17)
	STORE(640, Z10, Z11, Z18, Z19)
	STORE(768, Z12, Z13, Z20, Z21)
	STORE(896, Z14, Z15, Z22, Z23)
	ADDQ $1024, SI
	ADDQ $1024, DI
	SUBQ $8, BX
	JMP  eight

one: // pair after the other, the up to seven that remain
	TESTQ BX, BX
	JZ    done
	LOAD(0, Z0, Z1, Z8, Z9)
	MOVQ R8, DX
	MOVQ $16, AX

oneRounds:
	ROUND(Z0, Z1, 0(DX), Z8, Z9)
	ROUND(Z1, Z0, 4(DX), Z8, Z9)
	ADDQ $8, DX
	DECQ AX
	JNZ  oneRounds

	STORE(0, Z0, Z1, Z8, Z9)
	ADDQ $128, SI
	ADDQ $128, DI
	DECQ BX
	JMP  one

done:
	VZEROUPPER
	RET
