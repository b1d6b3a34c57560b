// The look-up of an entry of a window in constant time, in five parts between the
// products of an addition. Arguments: q+16(FP) is where the entry goes, next+24(FP) the
// window, index+32(FP) the place of the entry, negative+40(FP) all ones for the opposite
// of the entry. The routines of package field do not change vector registers.
//
// Each of the 32 entries is anded with a mask, which is all ones if the counter in Y1 is
// the index in Y0, and ored to the result. y-x is in Y4, y+x in Y5, dxy in Y6. If they have
// eight limbs, the upper halves are in Y10, Y11 and Y12.

#ifdef SIZE_P256A
#define UPPER(n)
#define CLEARUPPER
#define STOREUPPER
#define TURNUPPER
#else
#define UPPER(n) \
	VPAND (n*SIZE+32)(SI), Y3, Y7 ; \
	VPOR Y7, Y10, Y10             ; \
	VPAND (OFFSET_PLUS+n*SIZE+32)(SI), Y3, Y8 ; \
	VPOR Y8, Y11, Y11             ; \
	VPAND (OFFSET_DXY+n*SIZE+32)(SI), Y3, Y9 ; \
	VPOR Y9, Y12, Y12
#define CLEARUPPER \
	VPXOR Y10, Y10, Y10           ; \
	VPXOR Y11, Y11, Y11           ; \
	VPXOR Y12, Y12, Y12
#define STOREUPPER \
	VMOVDQU Y12, (SIZE+32)(SP)    ; \
	VMOVDQU Y7, (2*SIZE+32)(SP)
#define TURNUPPER \
	VPBLENDVB Y0, Y11, Y10, Y7    ; \
	VPBLENDVB Y0, Y10, Y11, Y8    ; \
	VPBLENDVB Y0, (8*SIZE+32)(SP), Y12, Y12 ; \
	VMOVDQU Y7, 32(DI)            ; \
	VMOVDQU Y8, (SIZE+32)(DI)     ; \
	VMOVDQU Y12, (2*SIZE+32)(DI)
#endif

// ENTRY reads entry n.
#define ENTRY(n) \
	VPCMPEQQ Y0, Y1, Y3           ; \
	VPSUBQ Y2, Y1, Y1             ; \
	VPAND (n*SIZE)(SI), Y3, Y7    ; \
	VPOR Y7, Y4, Y4               ; \
	VPAND (OFFSET_PLUS+n*SIZE)(SI), Y3, Y8 ; \
	VPOR Y8, Y5, Y5               ; \
	VPAND (OFFSET_DXY+n*SIZE)(SI), Y3, Y9 ; \
	VPOR Y9, Y6, Y6               ; \
	UPPER(n)

#define START \
	VPBROADCASTQ index+32(FP), Y0 ; \
	VPXOR Y1, Y1, Y1              ; \
	VPCMPEQQ Y2, Y2, Y2           /* all ones, that is -1 */; \
	VPXOR Y4, Y4, Y4              ; \
	VPXOR Y5, Y5, Y5              ; \
	VPXOR Y6, Y6, Y6              ; \
	CLEARUPPER

#define SIX(n) \
	MOVQ next+24(FP), SI          ; \
	ENTRY(n)                      ; \
	ENTRY((n+1))                  ; \
	ENTRY((n+2))                  ; \
	ENTRY((n+3))                  ; \
	ENTRY((n+4))                  ; \
	ENTRY((n+5))

#define PICK0 SIX(0); ENTRY(6)
#define PICK1 SIX(7); ENTRY(13)
#define PICK2 SIX(14)
#define PICK3 SIX(20)
#define PICK4 SIX(26)

// TURN stores the entry or its opposite, for which y-x and y+x change places and dxy
// has the other sign.
#define TURN \
	VPXOR Y7, Y7, Y7              ; \
	VMOVDQU Y6, SIZE(SP)          ; \
	VMOVDQU Y7, (2*SIZE)(SP)      ; \
	STOREUPPER                    ; \
	HERE(2, SI)                   ; \
	HERE(1, BX)                   ; \
	HERE(8, DI)                   ; \
	CALL SUB                      ; \
	MOVQ q+16(FP), DI             ; \
	VPBROADCASTQ negative+40(FP), Y0 ; \
	VPBLENDVB Y0, Y5, Y4, Y7      ; \
	VPBLENDVB Y0, Y4, Y5, Y8      ; \
	VPBLENDVB Y0, (8*SIZE)(SP), Y6, Y6 ; \
	VMOVDQU Y7, 0(DI)             ; \
	VMOVDQU Y8, SIZE(DI)          ; \
	VMOVDQU Y6, (2*SIZE)(DI)      ; \
	TURNUPPER                     ; \
	VZEROUPPER
