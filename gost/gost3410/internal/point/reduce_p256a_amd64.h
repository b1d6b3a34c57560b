// Modulo 2^256 - 617. Between operations limb 4 is below 2^48 + 2^10, so a number is
// below 2^256 + 2^218.

#define EDWARDS

DATA ones52<>+0(SB)/8, $0xFFFFFFFFFFFFF    // 2^52 - 1
DATA lanes48<>+0(SB)/8, $0xFFFFFFFFFFFF     // 2^48 - 1
DATA lanes617<>+0(SB)/8, $617               // 2^256
DATA lanes9872<>+0(SB)/8, $9872             // 2^260 = 16*617
DATA multiple0<>+0(SB)/8, $0x7FFFFFFFFFECB8  // limbs of 8p, each at least 2^54: 8*2^52 - 8*617,
DATA multiple1<>+0(SB)/8, $0x7FFFFFFFFFFFF8  // 8*2^52 - 8, three times,
DATA multiple2<>+0(SB)/8, $0x7FFFFFFFFFFFF8
DATA multiple3<>+0(SB)/8, $0x7FFFFFFFFFFFF8
DATA multiple4<>+0(SB)/8, $0x7FFFFFFFFFFF8   // 8*2^48 - 8
GLOBL ones52<>(SB), RODATA, $8
GLOBL lanes48<>(SB), RODATA, $8
GLOBL lanes617<>(SB), RODATA, $8
GLOBL lanes9872<>(SB), RODATA, $8
GLOBL multiple0<>(SB), RODATA, $8
GLOBL multiple1<>(SB), RODATA, $8
GLOBL multiple2<>(SB), RODATA, $8
GLOBL multiple3<>(SB), RODATA, $8
GLOBL multiple4<>(SB), RODATA, $8

// TIDY brings limbs below 2^62 into the bounds and stores them. It adds 617 times the
// bits of limb 4 above 48 bits to limb 0 and then carries upwards.
#define TIDY(x0, x1, x2, x3, x4) \
	VPSRLQ      $48, x4, Z29                  \
	VPANDQ.BCST lanes48<>(SB), x4, x4         \
	VPBROADCASTQ lanes617<>(SB), Z30          \
	LO          Z30, Z29, x0                  \
	CARRY52(x0, x1)                           \
	CARRY52(x1, x2)                           \
	CARRY52(x2, x3)                           \
	CARRY52(x3, x4)                           \
	VMOVDQU64   x0, 0(DI)                     \
	VMOVDQU64   x1, 64(DI)                    \
	VMOVDQU64   x2, 128(DI)                   \
	VMOVDQU64   x3, 192(DI)                   \
	VMOVDQU64   x4, 256(DI)

// REDUCE reduces the product whose words, each below 2^57, are Z10 to Z18 and Z27, and
// stores it. First it carries within the upper five words. The last word does not
// carry, because the product is below 2^513. Then it adds 9872 times the upper words to
// the lower words. It does the same with the part of this sum above 2^260, which is in
// Z19.
#define REDUCE \
	VPBROADCASTQ ones52<>(SB), Z31   \
	VPBROADCASTQ lanes9872<>(SB), Z30 \
	CARRY52(Z15, Z16)                 \
	CARRY52(Z16, Z17)                 \
	CARRY52(Z17, Z18)                 \
	CARRY52(Z18, Z27)                 \
	VPXORQ Z19, Z19, Z19              \
	HI     Z30, Z27, Z19              \
	LO     Z30, Z15, Z10              \
	HI     Z30, Z15, Z11              \
	LO     Z30, Z16, Z11              \
	HI     Z30, Z16, Z12              \
	LO     Z30, Z17, Z12              \
	HI     Z30, Z17, Z13              \
	LO     Z30, Z18, Z13              \
	HI     Z30, Z18, Z14              \
	LO     Z30, Z27, Z14              \
	LO     Z30, Z19, Z10              \
	TIDY(Z10, Z11, Z12, Z13, Z14)

// TIDYSUM is TIDY for limbs of which the lowest may be 0.
#define TIDYSUM(x0, x1, x2, x3, x4) TIDY(x0, x1, x2, x3, x4)
