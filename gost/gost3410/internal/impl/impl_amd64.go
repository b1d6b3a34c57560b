// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package impl

import "golang.org/x/sys/cpu"

var (
	// MULX selects products with MULX, ADCX and ADOX and look-ups with AVX2.
	MULX = cpu.X86.HasBMI2 && cpu.X86.HasADX && cpu.X86.HasAVX2

	// IFMA selects AVX-512 IFMA: vectors of eight numbers, and vectors of half the
	// width for the four coordinates of one point.
	IFMA = MULX && cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512IFMA
)

// Each calls f once for every set of implementations that this machine supports, with
// the name of the best one in use. It is for tests. Nothing else may use the arithmetic
// meanwhile.
func Each(f func(name string)) {
	mulx, ifma := MULX, IFMA
	defer func() { MULX, IFMA = mulx, ifma }()
	MULX, IFMA = false, false
	f("portable")
	if MULX = mulx; MULX {
		f("MULX")
	}
	if IFMA = ifma; IFMA {
		f("IFMA")
	}
}
