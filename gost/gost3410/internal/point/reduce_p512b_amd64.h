// Modulo 2^511 + 111. Between operations limb 9 is below 2^43 + 2^14, so a number is
// below 2^512. Modulo the prime, 2^511 is -111 and 2^520 is -56832.

DATA ones52<>+0(SB)/8, $0xFFFFFFFFFFFFF // 2^52 - 1
DATA onesTop<>+0(SB)/8, $0x7ffffffffff // 2^43 - 1
DATA foldTop<>+0(SB)/8, $111 // -2^511
DATA foldAll<>+0(SB)/8, $56832 // -2^520
DATA multiple0<>+0(SB)/8, $0x40000000001bc00 // limbs of 1024p: 64*2^52 + 1024*111,
DATA multiple1<>+0(SB)/8, $0x3ffffffffffffc0 // 64*2^52 - 64, eight times,
DATA multipleTop<>+0(SB)/8, $0x1fffffffffffc0 // 1024*2^43 - 64
GLOBL ones52<>(SB), RODATA, $8
GLOBL onesTop<>(SB), RODATA, $8
GLOBL foldTop<>(SB), RODATA, $8
GLOBL foldAll<>(SB), RODATA, $8
GLOBL multiple0<>(SB), RODATA, $8
GLOBL multiple1<>(SB), RODATA, $8
GLOBL multipleTop<>(SB), RODATA, $8

// TIDY brings limbs below 2^62, of which the lowest is at least 2^57, into the bounds and
// stores them. It subtracts 111 times the bits of the highest limb above 43 bits from the
// lowest limb and then carries upwards.
#define TIDY \
	VPSRLQ $43, Z9, Z29 \
	VPANDQ.BCST onesTop<>(SB), Z9, Z9 \
	VPBROADCASTQ foldTop<>(SB), Z30 \
	VPMULUDQ Z30, Z29, Z29 \
	VPSUBQ Z29, Z0, Z0 \
	CARRY52(Z0, Z1) \
	CARRY52(Z1, Z2) \
	CARRY52(Z2, Z3) \
	CARRY52(Z3, Z4) \
	CARRY52(Z4, Z5) \
	CARRY52(Z5, Z6) \
	CARRY52(Z6, Z7) \
	CARRY52(Z7, Z8) \
	CARRY52(Z8, Z9) \
	VMOVDQU64 Z0, 0(DI) \
	VMOVDQU64 Z1, 64(DI) \
	VMOVDQU64 Z2, 128(DI) \
	VMOVDQU64 Z3, 192(DI) \
	VMOVDQU64 Z4, 256(DI) \
	VMOVDQU64 Z5, 320(DI) \
	VMOVDQU64 Z6, 384(DI) \
	VMOVDQU64 Z7, 448(DI) \
	VMOVDQU64 Z8, 512(DI) \
	VMOVDQU64 Z9, 576(DI)

// TIDYSUM is TIDY for limbs of which the lowest may be 0. It adds 1024p.
#define TIDYSUM \
	VPBROADCASTQ multiple0<>(SB), Z28 \
	VPADDQ Z28, Z0, Z0 \
	VPBROADCASTQ multiple1<>(SB), Z28 \
	VPADDQ Z28, Z1, Z1 \
	VPADDQ Z28, Z2, Z2 \
	VPADDQ Z28, Z3, Z3 \
	VPADDQ Z28, Z4, Z4 \
	VPADDQ Z28, Z5, Z5 \
	VPADDQ Z28, Z6, Z6 \
	VPADDQ Z28, Z7, Z7 \
	VPADDQ Z28, Z8, Z8 \
	VPBROADCASTQ multipleTop<>(SB), Z28 \
	VPADDQ Z28, Z9, Z9 \
	TIDY

// REDUCE reduces the product whose words, each below 2^58, are Z0 to Z19, and stores
// it. First it carries within the upper words. The last word is below 2^36 and does not
// carry. Then it subtracts the lower words from 56832 times the upper words, and this
// difference from 1024p. The part of the product above 2^520, in Z20, has the opposite sign.
#define REDUCE \
	VPBROADCASTQ ones52<>(SB), Z31 \
	VPBROADCASTQ foldAll<>(SB), Z30 \
	CARRY52(Z10, Z11) \
	CARRY52(Z11, Z12) \
	CARRY52(Z12, Z13) \
	CARRY52(Z13, Z14) \
	CARRY52(Z14, Z15) \
	CARRY52(Z15, Z16) \
	CARRY52(Z16, Z17) \
	CARRY52(Z17, Z18) \
	CARRY52(Z18, Z19) \
	VPXORQ Z20, Z20, Z20 \
	VPSUBQ Z0, Z20, Z0 \
	VPSUBQ Z1, Z20, Z1 \
	VPSUBQ Z2, Z20, Z2 \
	VPSUBQ Z3, Z20, Z3 \
	VPSUBQ Z4, Z20, Z4 \
	VPSUBQ Z5, Z20, Z5 \
	VPSUBQ Z6, Z20, Z6 \
	VPSUBQ Z7, Z20, Z7 \
	VPSUBQ Z8, Z20, Z8 \
	VPSUBQ Z9, Z20, Z9 \
	HI Z30, Z19, Z20 \
	LO Z30, Z10, Z0 \
	HI Z30, Z10, Z1 \
	LO Z30, Z11, Z1 \
	HI Z30, Z11, Z2 \
	LO Z30, Z12, Z2 \
	HI Z30, Z12, Z3 \
	LO Z30, Z13, Z3 \
	HI Z30, Z13, Z4 \
	LO Z30, Z14, Z4 \
	HI Z30, Z14, Z5 \
	LO Z30, Z15, Z5 \
	HI Z30, Z15, Z6 \
	LO Z30, Z16, Z6 \
	HI Z30, Z16, Z7 \
	LO Z30, Z17, Z7 \
	HI Z30, Z17, Z8 \
	LO Z30, Z18, Z8 \
	HI Z30, Z18, Z9 \
	LO Z30, Z19, Z9 \
	VPBROADCASTQ multiple0<>(SB), Z28 \
	VPSUBQ Z0, Z28, Z0 \
	VPBROADCASTQ multiple1<>(SB), Z28 \
	VPSUBQ Z1, Z28, Z1 \
	VPSUBQ Z2, Z28, Z2 \
	VPSUBQ Z3, Z28, Z3 \
	VPSUBQ Z4, Z28, Z4 \
	VPSUBQ Z5, Z28, Z5 \
	VPSUBQ Z6, Z28, Z6 \
	VPSUBQ Z7, Z28, Z7 \
	VPSUBQ Z8, Z28, Z8 \
	VPBROADCASTQ multipleTop<>(SB), Z28 \
	VPSUBQ Z9, Z28, Z9 \
	LO Z30, Z20, Z0 \
	TIDY
