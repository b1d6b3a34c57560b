// The look-up of an entry of a window in constant time, in eight parts between the
// products of an addition. Arguments: q+16(FP) is where the entry goes, next+24(FP) the
// window, index+32(FP) the place of the entry, negative+40(FP) all ones for the opposite
// of the entry. The routines of package field do not change vector registers.
//
// Each of the 32 entries is anded with a mask, which is all ones if the counter in Y1 is
// the index in Y0, and ored to the result. u is in Y4, v in Y5, duv in Y6. If they have
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
	VPAND (OFFSET_V+n*SIZE+32)(SI), Y3, Y8 ; \
	VPOR Y8, Y11, Y11             ; \
	VPAND (OFFSET_DUV+n*SIZE+32)(SI), Y3, Y9 ; \
	VPOR Y9, Y12, Y12
#define CLEARUPPER \
	VPXOR Y10, Y10, Y10           ; \
	VPXOR Y11, Y11, Y11           ; \
	VPXOR Y12, Y12, Y12
#define STOREUPPER \
	VMOVDQU Y10, 32(SP)           ; \
	VMOVDQU Y12, (SIZE+32)(SP)    ; \
	VMOVDQU Y7, (2*SIZE+32)(SP)   ; \
	VMOVDQU Y11, (SIZE+32)(DI)
#define TURNUPPER \
	VPBLENDVB Y0, (7*SIZE+32)(SP), Y10, Y10 ; \
	VPBLENDVB Y0, (8*SIZE+32)(SP), Y12, Y12 ; \
	VMOVDQU Y10, 32(DI)           ; \
	VMOVDQU Y12, (2*SIZE+32)(DI)
#endif

// ENTRY reads entry n.
#define ENTRY(n) \
	VPCMPEQQ Y0, Y1, Y3           ; \
	VPSUBQ Y2, Y1, Y1             ; \
	VPAND (n*SIZE)(SI), Y3, Y7    ; \
	VPOR Y7, Y4, Y4               ; \
	VPAND (OFFSET_V+n*SIZE)(SI), Y3, Y8 ; \
	VPOR Y8, Y5, Y5               ; \
	VPAND (OFFSET_DUV+n*SIZE)(SI), Y3, Y9 ; \
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

#define PICK5OF(n) \
	MOVQ next+24(FP), SI          ; \
	ENTRY(n)                      ; \
	ENTRY((n+1))                  ; \
	ENTRY((n+2))                  ; \
	ENTRY((n+3))                  ; \
	ENTRY((n+4))

#define PICK0 PICK5OF(0); ENTRY(5)
#define PICK1 PICK5OF(6); ENTRY(11)
#define PICK2 PICK5OF(12)
#define PICK3 PICK5OF(17)
#define PICK4 PICK5OF(22)
#define PICK5 PICK5OF(27)

// TURN stores the entry or its opposite, of which u and duv have the other sign. The
// last two products do not read q.
#define TURN \
	MOVQ q+16(FP), DI             ; \
	VPXOR Y7, Y7, Y7              ; \
	VMOVDQU Y4, 0(SP)             ; \
	VMOVDQU Y6, SIZE(SP)          ; \
	VMOVDQU Y7, (2*SIZE)(SP)      ; \
	VMOVDQU Y5, SIZE(DI)          ; \
	STOREUPPER                    ; \
	HERE(2, SI)                   ; \
	HERE(0, BX)                   ; \
	HERE(7, DI)                   ; \
	CALL SUB                      ; \
	HERE(2, SI)                   ; \
	HERE(1, BX)                   ; \
	HERE(8, DI)                   ; \
	CALL SUB                      ; \
	MOVQ q+16(FP), DI             ; \
	VPBROADCASTQ negative+40(FP), Y0 ; \
	VPBLENDVB Y0, (7*SIZE)(SP), Y4, Y4 ; \
	VPBLENDVB Y0, (8*SIZE)(SP), Y6, Y6 ; \
	VMOVDQU Y4, 0(DI)             ; \
	VMOVDQU Y6, (2*SIZE)(DI)      ; \
	TURNUPPER                     ; \
	VZEROUPPER
