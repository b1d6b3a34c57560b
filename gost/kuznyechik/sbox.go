// SPDX-License-Identifier: Apache-2.0

package kuznyechik

// The substitution has a short description over the field of sixteen elements with
// the polynomial x^4+x^3+1 (Biryukov, Perrin, Udovenko: Reverse-engineering the
// S-box of Streebog, Kuznyechik and STRIBOBr1, Eurocrypt 2016): between two linear
// maps, alpha and omega, the halves l and r of a byte are replaced by
//
//	l = nu0(l) if r is zero, else nu1(l/r)
//	r = sigma(r * phi(l))
//
// with five maps of four bits: nu0, nu1, sigma, phi and the inversion 1/r. The
// functions here compute everything as bitwise logic on planes, each map by its
// algebraic normal form, so no value is used as an index. The tests compare both
// functions with the table of RFC 7801 for all bytes.

// substitute applies S of RFC 7801, section 4.1.1, to every byte.
func substitute(x *planes) {
	x0, x1, x2, x3, x4, x5, x6, x7 := x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]

	// alpha: r is the low half, l the high one.
	t0 := x1 ^ x3
	t1 := x0 ^ x6
	t2 := t0 ^ x7
	t3 := t0 ^ x4
	t4 := x2 ^ x6
	t5 := t1 ^ t2 ^ x2 ^ x5
	t6 := t1 ^ x1

	// 1/r, or 0 for r = 0
	t7 := x5 & t3
	t8 := x5 & t2
	t9 := t4 & t2
	t10 := x5 & t9
	t11 := t3 & t9
	t12 := t3 & t4
	t13 := x5 & t12
	t14 := t3 & t8
	t15 := t3 & t2
	t16 := x5 & t4
	t17 := t8 ^ t9
	t18 := t17 ^ t7
	t19 := t13 ^ t4
	t20 := t12 ^ t3
	t21 := t11 ^ t2
	t22 := t10 ^ t20
	t23 := t10 ^ t18 ^ t21 ^ x5
	t24 := t12 ^ t14 ^ t17 ^ t19 ^ t21
	t25 := t15 ^ t18 ^ t19 ^ t22
	t26 := t14 ^ t16 ^ t22 ^ t8

	// l/r
	t27 := t5 & t23
	t28 := t5 & t24
	t29 := t5 & t25
	t30 := t5 & t26
	t31 := t6 & t23
	t32 := t6 & t24
	t33 := t6 & t25
	t34 := t6 & t26
	t35 := t1 & t23
	t36 := t1 & t24
	t37 := t1 & t25
	t38 := t1 & t26
	t39 := x3 & t23
	t40 := x3 & t24
	t41 := x3 & t25
	t42 := x3 & t26
	t43 := t41 ^ t42
	t44 := t38 ^ t43
	t45 := t40 ^ t44
	t46 := t37 ^ t45
	t47 := t34 ^ t46
	t48 := t27 ^ t47
	t49 := t28 ^ t31 ^ t44
	t50 := t29 ^ t32 ^ t35 ^ t42
	t51 := t30 ^ t33 ^ t36 ^ t39 ^ t47

	// nu1(l/r)
	t52 := t49 & t50
	t53 := t48 & t50
	t54 := t50 & t51
	t55 := t48 & t52
	t56 := t49 & t54
	t57 := t48 & t49
	t58 := t49 & t51
	t59 := t53 ^ t54
	t60 := t51 ^ t52
	t61 := t50 ^ t60
	t62 := t49 ^ t61
	t63 := t48 ^ t62
	t64 := t55 ^ t56 ^ t59 ^ t62
	t65 := t50 ^ t57 ^ t58 ^ t59
	t66 := t49 ^ t59
	t67 := ^t63
	t68 := ^t64
	t69 := ^t65

	// nu0(l)
	t70 := t5 & t6
	t71 := t6 & t1
	t72 := t5 & x3
	t73 := t6 & t72
	t74 := t1 & t72
	t75 := t6 & x3
	t76 := t1 & t75
	t77 := t1 & x3
	t78 := t5 & t71
	t79 := t5 & t1
	t80 := t70 ^ t75
	t81 := t77 ^ t80
	t82 := t71 ^ t74
	t83 := t5 ^ t73
	t84 := t6 ^ t70 ^ t72 ^ t82 ^ t83
	t85 := t5 ^ t72 ^ t76 ^ t80 ^ x3
	t86 := t1 ^ t78 ^ t81 ^ t83
	t87 := t79 ^ t81 ^ t82
	t88 := ^t85

	// the new l: nu0(l) where r is zero, else nu1(l/r)
	t89 := x5 | t3 | t4 | t2
	t90 := (t67 ^ t84) & t89
	t91 := t90 ^ t84
	t92 := (t68 ^ t88) & t89
	t93 := t92 ^ t88
	t94 := (t69 ^ t86) & t89
	t95 := t94 ^ t86
	t96 := (t66 ^ t87) & t89
	t97 := t96 ^ t87

	// phi(l) of the new l
	t98 := t91 & t95
	t99 := t93 & t95
	t100 := t93 & t97
	t101 := t95 & t97
	t102 := t91 & t99
	t103 := t91 & t101
	t104 := t93 & t103
	t105 := t91 & t93
	t106 := t91 & t100
	t107 := t93 & t101
	t108 := t91 & t97
	t109 := t101 ^ t102
	t110 := t97 ^ t99
	t111 := t109 ^ t95
	t112 := t104 ^ t111
	t113 := t110 ^ t91
	t114 := t107 ^ t112
	t115 := t103 ^ t113
	t116 := t100 ^ t112 ^ t115 ^ t98
	t117 := t100 ^ t105 ^ t106 ^ t114
	t118 := t108 ^ t110 ^ t114
	t119 := t105 ^ t108 ^ t109 ^ t115
	t120 := ^t116
	t121 := ^t117
	t122 := ^t119

	// r * phi(l)
	t123 := x5 & t120
	t124 := x5 & t121
	t125 := x5 & t118
	t126 := x5 & t122
	t127 := t3 & t120
	t128 := t3 & t121
	t129 := t3 & t118
	t130 := t3 & t122
	t131 := t4 & t120
	t132 := t4 & t121
	t133 := t4 & t118
	t134 := t4 & t122
	t135 := t2 & t120
	t136 := t2 & t121
	t137 := t2 & t118
	t138 := t2 & t122
	t139 := t137 ^ t138
	t140 := t134 ^ t139
	t141 := t136 ^ t140
	t142 := t133 ^ t141
	t143 := t130 ^ t142
	t144 := t123 ^ t143
	t145 := t124 ^ t127 ^ t140
	t146 := t125 ^ t128 ^ t131 ^ t138
	t147 := t126 ^ t129 ^ t132 ^ t135 ^ t143

	// the new r: sigma of this product
	t148 := t144 & t145
	t149 := t144 & t147
	t150 := t146 & t147
	t151 := t145 & t150
	t152 := t144 & t146
	t153 := t145 & t146
	t154 := t145 & t147
	t155 := t144 & t153
	t156 := t144 & t150
	t157 := t144 & t154
	t158 := t147 ^ t153
	t159 := t156 ^ t158
	t160 := t149 ^ t154
	t161 := t144 ^ t147 ^ t148 ^ t149 ^ t151
	t162 := t152 ^ t155 ^ t159 ^ t160
	t163 := t145 ^ t146 ^ t148 ^ t159
	t164 := t145 ^ t150 ^ t157 ^ t158 ^ t160
	t165 := ^t163
	t166 := ^t164

	// omega
	t167 := t162 ^ t97
	t168 := t165 ^ t95
	t169 := t166 ^ t167 ^ t91
	t170 := t162 ^ t166

	x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7] = t161, t167, t168, t166, t169, t93, t165, t170
}

// unsubstitute is the inverse of substitute.
func unsubstitute(x *planes) {
	x0, x1, x2, x3, x4, x5, x6, x7 := x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]

	// the inverse of omega: r is the low half, l the high one.
	t0 := x3 ^ x7
	t1 := x1 ^ x3 ^ x4
	t2 := x2 ^ x6
	t3 := t0 ^ x1

	// the inverse of sigma, applied to r
	t4 := t0 & x3
	t5 := x6 & x3
	t6 := t0 & t5
	t7 := x0 & x6
	t8 := x0 & x3
	t9 := x0 & t4
	t10 := x0 & t5
	t11 := x0 & t0
	t12 := t0 & x6
	t13 := x0 & t12
	t14 := t4 ^ x0
	t15 := t7 ^ x3
	t16 := t10 ^ t14
	t17 := t0 ^ t14 ^ t5 ^ t6 ^ x6
	t18 := t15 ^ t16 ^ t8 ^ t9
	t19 := t11 ^ t12 ^ t13 ^ t15 ^ t5 ^ x0
	t20 := t0 ^ t11 ^ t16
	t21 := ^t18

	// 1/phi(l)
	t22 := t1 & x5
	t23 := x5 & t2
	t24 := x5 & t3
	t25 := t2 & t3
	t26 := t1 & t24
	t27 := t1 & t25
	t28 := x5 & t25
	t29 := t1 & t28
	t30 := t1 & t2
	t31 := t1 & t3
	t32 := t1 & t23
	t33 := t22 ^ t26
	t34 := t3 ^ t33
	t35 := t25 ^ t28
	t36 := t24 ^ t35
	t37 := t34 ^ t36
	t38 := t31 ^ t37
	t39 := t23 ^ t27 ^ t29 ^ t33 ^ t36
	t40 := t1 ^ t23 ^ t30 ^ t38
	t41 := t1 ^ t34
	t42 := t2 ^ t29 ^ t32 ^ t38
	t43 := ^t40
	t44 := ^t42

	// the old r: the product of the two
	t45 := t17 & t39
	t46 := t17 & t43
	t47 := t17 & t41
	t48 := t17 & t44
	t49 := t21 & t39
	t50 := t21 & t43
	t51 := t21 & t41
	t52 := t21 & t44
	t53 := t19 & t39
	t54 := t19 & t43
	t55 := t19 & t41
	t56 := t19 & t44
	t57 := t20 & t39
	t58 := t20 & t43
	t59 := t20 & t41
	t60 := t20 & t44
	t61 := t59 ^ t60
	t62 := t56 ^ t61
	t63 := t58 ^ t62
	t64 := t55 ^ t63
	t65 := t52 ^ t64
	t66 := t45 ^ t65
	t67 := t46 ^ t49 ^ t62
	t68 := t47 ^ t50 ^ t53 ^ t60
	t69 := t48 ^ t51 ^ t54 ^ t57 ^ t65

	// the inverse of nu1, applied to l
	t70 := t2 & t3
	t71 := t1 & t70
	t72 := t1 & t2
	t73 := t1 & t3
	t74 := t71 ^ x5
	t75 := t1 ^ t74
	t76 := t1 ^ t3 ^ t72 ^ t73
	t77 := t2 ^ t73
	t78 := t2 ^ t70 ^ t74
	t79 := ^t77

	// its product with the old r: zero where the old r is zero
	t80 := t75 & t66
	t81 := t75 & t67
	t82 := t75 & t68
	t83 := t75 & t69
	t84 := t76 & t66
	t85 := t76 & t67
	t86 := t76 & t68
	t87 := t76 & t69
	t88 := t79 & t66
	t89 := t79 & t67
	t90 := t79 & t68
	t91 := t79 & t69
	t92 := t78 & t66
	t93 := t78 & t67
	t94 := t78 & t68
	t95 := t78 & t69
	t96 := t94 ^ t95
	t97 := t91 ^ t96
	t98 := t93 ^ t97
	t99 := t90 ^ t98
	t100 := t87 ^ t99
	t101 := t100 ^ t80
	t102 := t81 ^ t84 ^ t97
	t103 := t82 ^ t85 ^ t88 ^ t95
	t104 := t100 ^ t83 ^ t86 ^ t89 ^ t92

	// the inverse of nu0, applied to l
	t105 := t1 & x5
	t106 := t1 & t2
	t107 := x5 & t2
	t108 := x5 & t3
	t109 := t2 & t3
	t110 := t1 & t109
	t111 := t1 & t3
	t112 := t1 & t107
	t113 := x5 & t109
	t114 := t1 & t108
	t115 := t108 ^ t109
	t116 := t106 ^ t115
	t117 := t1 ^ t116
	t118 := t105 ^ t107 ^ t110 ^ t117 ^ t2
	t119 := t111 ^ t112 ^ t113 ^ t117
	t120 := t107 ^ t113 ^ t114 ^ t3
	t121 := t106 ^ t111 ^ t114 ^ x5
	t122 := ^t121

	// the old l: this where the old r is zero, else the product
	t123 := t66 | t67 | t68 | t69
	t124 := t118&^t123 ^ t101
	t125 := t119&^t123 ^ t102
	t126 := t120&^t123 ^ t103
	t127 := t122&^t123 ^ t104

	// the inverse of alpha
	t128 := t66 ^ t69
	t129 := t125 ^ t126
	t130 := t124 ^ t128
	t131 := t130 ^ t68
	t132 := t127 ^ t129
	t133 := t126 ^ t130
	t134 := t132 ^ t67
	t135 := t126 ^ t131
	t136 := t132 ^ t69

	x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7] = t131, t129, t133, t127, t134, t66, t135, t136
}
