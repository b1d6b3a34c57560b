// Modulo p, the prime of CryptoPro C, which has no special form. A lane has the number x
// as 2^260*x modulo p, and a product is x*y / 2^260 (Montgomery). Between operations
// numbers are below 3*2^256, which bounds limb 4. p is 0.6078*2^256.
//
// A sum is below 6*2^256 and a difference below 6.04*2^256. TIDY leaves less than
// 2^256 plus 5 times 2^256 modulo p, which is 2.97*2^256, or with the factor 6
// less than 2.4*2^256. A product is below 9*2^512 / 2^260 + p = 1.18*2^256.

DATA ones52<>+0(SB)/8, $0xfffffffffffff // 2^52 - 1
DATA onesTop<>+0(SB)/8, $0xffffffffffff // 2^48 - 1
DATA inverse<>+0(SB)/8, $0xe6c2c727c176d // -1/p modulo 2^52
DATA prime0<>+0(SB)/8, $0x8f7b9022d759b // limbs of p
DATA prime1<>+0(SB)/8, $0x86789051d3799 // limb 1
DATA prime2<>+0(SB)/8, $0xb41c8aacf846e // limb 2
DATA prime3<>+0(SB)/8, $0x8107ab1ec85e6 // limb 3
DATA prime4<>+0(SB)/8, $0x9b9f605f5a85 // limb 4
DATA fold0<>+0(SB)/8, $0x70846fdd28a65 // limbs of 2^256 - p
DATA fold1<>+0(SB)/8, $0x79876fae2c866 // limb 1
DATA fold2<>+0(SB)/8, $0x4be3755307b91 // limb 2
DATA fold3<>+0(SB)/8, $0x7ef854e137a19 // limb 3
DATA fold4<>+0(SB)/8, $0x64609fa0a57a // limb 4
DATA multiple0<>+0(SB)/8, $0x1cd69d0ae34c07 // limbs of 5p, each at least what is subtracted
DATA multiple1<>+0(SB)/8, $0x1a05ad199215fe // limb 1
DATA multiple2<>+0(SB)/8, $0x1848eb560d9627 // limb 2
DATA multiple3<>+0(SB)/8, $0x185265799e9d80 // limb 3
DATA multiple4<>+0(SB)/8, $0x30a1ce1dcc49a // limb 4
GLOBL ones52<>(SB), RODATA, $8
GLOBL onesTop<>(SB), RODATA, $8
GLOBL inverse<>(SB), RODATA, $8
GLOBL prime0<>(SB), RODATA, $8
GLOBL prime1<>(SB), RODATA, $8
GLOBL prime2<>(SB), RODATA, $8
GLOBL prime3<>(SB), RODATA, $8
GLOBL prime4<>(SB), RODATA, $8
GLOBL fold0<>(SB), RODATA, $8
GLOBL fold1<>(SB), RODATA, $8
GLOBL fold2<>(SB), RODATA, $8
GLOBL fold3<>(SB), RODATA, $8
GLOBL fold4<>(SB), RODATA, $8
GLOBL multiple0<>(SB), RODATA, $8
GLOBL multiple1<>(SB), RODATA, $8
GLOBL multiple2<>(SB), RODATA, $8
GLOBL multiple3<>(SB), RODATA, $8
GLOBL multiple4<>(SB), RODATA, $8

// FINISH carries upwards and stores.
#define FINISH(x0, x1, x2, x3, x4) \
	CARRY52(x0, x1) \
	CARRY52(x1, x2) \
	CARRY52(x2, x3) \
	CARRY52(x3, x4) \
	VMOVDQU64 x0, 0(DI) \
	VMOVDQU64 x1, 64(DI) \
	VMOVDQU64 x2, 128(DI) \
	VMOVDQU64 x3, 192(DI) \
	VMOVDQU64 x4, 256(DI)

// TIDY brings limbs below 2^54 into the bounds and stores them. It adds 2^256 - p times
// the bits of limb 4 above 48 bits.
#define TIDY(x0, x1, x2, x3, x4) \
	VPSRLQ $48, x4, Z29 \
	VPANDQ.BCST onesTop<>(SB), x4, x4 \
	VPBROADCASTQ fold0<>(SB), Z30 \
	LO Z30, Z29, x0 \
	HI Z30, Z29, x1 \
	VPBROADCASTQ fold1<>(SB), Z30 \
	LO Z30, Z29, x1 \
	HI Z30, Z29, x2 \
	VPBROADCASTQ fold2<>(SB), Z30 \
	LO Z30, Z29, x2 \
	HI Z30, Z29, x3 \
	VPBROADCASTQ fold3<>(SB), Z30 \
	LO Z30, Z29, x3 \
	HI Z30, Z29, x4 \
	VPBROADCASTQ fold4<>(SB), Z30 \
	LO Z30, Z29, x4 \
	FINISH(x0, x1, x2, x3, x4)

// TIDYSUM is TIDY for limbs of which the lowest may be 0.
#define TIDYSUM(x0, x1, x2, x3, x4) \
	TIDY(x0, x1, x2, x3, x4)

// CANCEL adds the multiple of p to the words from w0 that makes w0 a multiple of 2^52, and
// carries it into w1.
#define CANCEL(w0, w1, w2, w3, w4, w5) \
	VPXORQ Z5, Z5, Z5 \
	LO Z30, w0, Z5 \
	LO Z0, Z5, w0 \
	HI Z0, Z5, w1 \
	LO Z1, Z5, w1 \
	HI Z1, Z5, w2 \
	LO Z2, Z5, w2 \
	HI Z2, Z5, w3 \
	LO Z3, Z5, w3 \
	HI Z3, Z5, w4 \
	LO Z4, Z5, w4 \
	HI Z4, Z5, w5 \
	VPSRLQ $52, w0, Z28 \
	VPADDQ Z28, w1, w1

// REDUCE reduces the product whose words, each below 2^57, are Z10 to Z18 and Z27, and
// stores it.
#define REDUCE \
	VPBROADCASTQ ones52<>(SB), Z31 \
	VPBROADCASTQ inverse<>(SB), Z30 \
	VPBROADCASTQ prime0<>(SB), Z0 \
	VPBROADCASTQ prime1<>(SB), Z1 \
	VPBROADCASTQ prime2<>(SB), Z2 \
	VPBROADCASTQ prime3<>(SB), Z3 \
	VPBROADCASTQ prime4<>(SB), Z4 \
	CANCEL(Z10, Z11, Z12, Z13, Z14, Z15) \
	CANCEL(Z11, Z12, Z13, Z14, Z15, Z16) \
	CANCEL(Z12, Z13, Z14, Z15, Z16, Z17) \
	CANCEL(Z13, Z14, Z15, Z16, Z17, Z18) \
	CANCEL(Z14, Z15, Z16, Z17, Z18, Z27) \
	FINISH(Z15, Z16, Z17, Z18, Z27)
