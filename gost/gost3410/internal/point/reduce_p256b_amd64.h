// Modulo 2^255 + 3225. Between operations limb 4 is below 2^47 + 2^11, so a number is
// below 2^256. Modulo the prime, 2^255 is -3225 and 2^260 is -103200.

DATA ones52<>+0(SB)/8, $0xFFFFFFFFFFFFF // 2^52 - 1
DATA onesTop<>+0(SB)/8, $0x7fffffffffff // 2^47 - 1
DATA foldTop<>+0(SB)/8, $3225 // -2^255
DATA foldAll<>+0(SB)/8, $103200 // -2^260
DATA multiple0<>+0(SB)/8, $0x400000000032640 // limbs of 64p: 64*2^52 + 64*3225,
DATA multiple1<>+0(SB)/8, $0x3ffffffffffffc0 // 64*2^52 - 64, three times,
DATA multiple2<>+0(SB)/8, $0x3ffffffffffffc0
DATA multiple3<>+0(SB)/8, $0x3ffffffffffffc0
DATA multiple4<>+0(SB)/8, $0x1fffffffffffc0 // 64*2^47 - 64
GLOBL ones52<>(SB), RODATA, $8
GLOBL onesTop<>(SB), RODATA, $8
GLOBL foldTop<>(SB), RODATA, $8
GLOBL foldAll<>(SB), RODATA, $8
GLOBL multiple0<>(SB), RODATA, $8
GLOBL multiple1<>(SB), RODATA, $8
GLOBL multiple2<>(SB), RODATA, $8
GLOBL multiple3<>(SB), RODATA, $8
GLOBL multiple4<>(SB), RODATA, $8

// TIDY brings limbs below 2^62, of which the lowest is at least 2^57, into the bounds and
// stores them. It subtracts 3225 times the bits of the highest limb above 47 bits from the
// lowest limb and then carries upwards.
#define TIDY(x0, x1, x2, x3, x4) \
	VPSRLQ $47, x4, Z29 \
	VPANDQ.BCST onesTop<>(SB), x4, x4 \
	VPBROADCASTQ foldTop<>(SB), Z30 \
	VPMULUDQ Z30, Z29, Z29 \
	VPSUBQ Z29, x0, x0 \
	CARRY52(x0, x1) \
	CARRY52(x1, x2) \
	CARRY52(x2, x3) \
	CARRY52(x3, x4) \
	VMOVDQU64 x0, 0(DI) \
	VMOVDQU64 x1, 64(DI) \
	VMOVDQU64 x2, 128(DI) \
	VMOVDQU64 x3, 192(DI) \
	VMOVDQU64 x4, 256(DI)

// TIDYSUM is TIDY for limbs of which the lowest may be 0. It adds 64p.
#define TIDYSUM(x0, x1, x2, x3, x4) \
	VPBROADCASTQ multiple0<>(SB), Z28 \
	VPADDQ Z28, x0, x0 \
	VPBROADCASTQ multiple1<>(SB), Z28 \
	VPADDQ Z28, x1, x1 \
	VPADDQ Z28, x2, x2 \
	VPADDQ Z28, x3, x3 \
	VPBROADCASTQ multiple4<>(SB), Z28 \
	VPADDQ Z28, x4, x4 \
	TIDY(x0, x1, x2, x3, x4)

// REDUCE reduces the product whose words, each below 2^57, are Z10 to Z18 and Z27, and stores
// it. First it carries within the upper words. The last word is below 2^46 and does not
// carry. Then it subtracts the lower words from 103200 times the upper words, and this
// difference from 64p. The part of the product above 2^260, in Z19, has the opposite sign.
#define REDUCE \
	VPBROADCASTQ ones52<>(SB), Z31 \
	VPBROADCASTQ foldAll<>(SB), Z30 \
	CARRY52(Z15, Z16) \
	CARRY52(Z16, Z17) \
	CARRY52(Z17, Z18) \
	CARRY52(Z18, Z27) \
	VPXORQ Z19, Z19, Z19 \
	VPSUBQ Z10, Z19, Z10 \
	VPSUBQ Z11, Z19, Z11 \
	VPSUBQ Z12, Z19, Z12 \
	VPSUBQ Z13, Z19, Z13 \
	VPSUBQ Z14, Z19, Z14 \
	HI Z30, Z27, Z19 \
	LO Z30, Z15, Z10 \
	HI Z30, Z15, Z11 \
	LO Z30, Z16, Z11 \
	HI Z30, Z16, Z12 \
	LO Z30, Z17, Z12 \
	HI Z30, Z17, Z13 \
	LO Z30, Z18, Z13 \
	HI Z30, Z18, Z14 \
	LO Z30, Z27, Z14 \
	VPBROADCASTQ multiple0<>(SB), Z28 \
	VPSUBQ Z10, Z28, Z10 \
	VPBROADCASTQ multiple1<>(SB), Z28 \
	VPSUBQ Z11, Z28, Z11 \
	VPSUBQ Z12, Z28, Z12 \
	VPSUBQ Z13, Z28, Z13 \
	VPBROADCASTQ multiple4<>(SB), Z28 \
	VPSUBQ Z14, Z28, Z14 \
	LO Z30, Z19, Z10 \
	TIDY(Z10, Z11, Z12, Z13, Z14)
