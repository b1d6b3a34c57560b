// Modulo 2^512 - 569. Between operations limb 9, which has 44 bits, is below 2^44 + 2^14.

#define EDWARDS

DATA ones52<>+0(SB)/8, $0xFFFFFFFFFFFFF     // 2^52 - 1
DATA wide44<>+0(SB)/8, $0xFFFFFFFFFFF       // 2^44 - 1
DATA wide569<>+0(SB)/8, $569                // 2^512
DATA wide145664<>+0(SB)/8, $145664          // 2^520 = 256*569
DATA multiple0<>+0(SB)/8, $0x1FFFFFFFFFFB8E0  // limbs of 32p: 32*2^52 - 32*569,
DATA multiple1<>+0(SB)/8, $0x1FFFFFFFFFFFFE0  // 32*2^52 - 32, eight times,
DATA multipleTop<>+0(SB)/8, $0x1FFFFFFFFFFE0    // 32*2^44 - 32
GLOBL ones52<>(SB), RODATA, $8
GLOBL wide44<>(SB), RODATA, $8
GLOBL wide569<>(SB), RODATA, $8
GLOBL wide145664<>(SB), RODATA, $8
GLOBL multiple0<>(SB), RODATA, $8
GLOBL multiple1<>(SB), RODATA, $8
GLOBL multipleTop<>(SB), RODATA, $8

// TIDY brings limbs Z0 to Z9, below 2^62, into the bounds and stores them. It adds 569
// times the bits of limb 9 above 44 bits to limb 0 and then carries upwards.
#define TIDY \
	VPSRLQ       $44, Z9, Z29         \
	VPANDQ.BCST  wide44<>(SB), Z9, Z9 \
	VPBROADCASTQ wide569<>(SB), Z30   \
	LO           Z30, Z29, Z0         \
	CARRY52(Z0, Z1)                   \
	CARRY52(Z1, Z2)                   \
	CARRY52(Z2, Z3)                   \
	CARRY52(Z3, Z4)                   \
	CARRY52(Z4, Z5)                   \
	CARRY52(Z5, Z6)                   \
	CARRY52(Z6, Z7)                   \
	CARRY52(Z7, Z8)                   \
	CARRY52(Z8, Z9)                   \
	VMOVDQU64    Z0, 0(DI) \
	VMOVDQU64    Z1, 64(DI) \
	VMOVDQU64    Z2, 128(DI) \
	VMOVDQU64    Z3, 192(DI) \
	VMOVDQU64    Z4, 256(DI) \
	VMOVDQU64    Z5, 320(DI) \
	VMOVDQU64    Z6, 384(DI) \
	VMOVDQU64    Z7, 448(DI) \
	VMOVDQU64    Z8, 512(DI) \
	VMOVDQU64    Z9, 576(DI)

// REDUCE reduces the product whose words, each below 2^58, are Z0 to Z19, and stores it.
// First it carries within the upper ten words. The last word does not carry, because
// the product is below 2^1025. Then it adds 145664 times the upper words to the lower
// words. It does the same with the part of this sum above 2^520, which is in Z20.
#define REDUCE \
	VPBROADCASTQ ones52<>(SB), Z31     \
	VPBROADCASTQ wide145664<>(SB), Z30 \
	CARRY52(Z10, Z11)                \
	CARRY52(Z11, Z12)                \
	CARRY52(Z12, Z13)                \
	CARRY52(Z13, Z14)                \
	CARRY52(Z14, Z15)                \
	CARRY52(Z15, Z16)                \
	CARRY52(Z16, Z17)                \
	CARRY52(Z17, Z18)                \
	CARRY52(Z18, Z19)                \
	VPXORQ Z20, Z20, Z20 \
	HI Z30, Z19, Z20     \
	LO Z30, Z10, Z0      \
	HI Z30, Z10, Z1      \
	LO Z30, Z11, Z1      \
	HI Z30, Z11, Z2      \
	LO Z30, Z12, Z2      \
	HI Z30, Z12, Z3      \
	LO Z30, Z13, Z3      \
	HI Z30, Z13, Z4      \
	LO Z30, Z14, Z4      \
	HI Z30, Z14, Z5      \
	LO Z30, Z15, Z5      \
	HI Z30, Z15, Z6      \
	LO Z30, Z16, Z6      \
	HI Z30, Z16, Z7      \
	LO Z30, Z17, Z7      \
	HI Z30, Z17, Z8      \
	LO Z30, Z18, Z8      \
	HI Z30, Z18, Z9      \
	LO Z30, Z19, Z9      \
	LO Z30, Z20, Z0      \
	TIDY

// TIDYSUM is TIDY for limbs of which the lowest may be 0.
#define TIDYSUM TIDY
