//go:build !purego

package twin

import "golang.org/x/sys/cpu"

var (
	// MULX says that products with MULX, ADCX and ADOX and look-ups with AVX2 run.
	MULX = cpu.X86.HasBMI2 && cpu.X86.HasADX && cpu.X86.HasAVX2

	// IFMA says that eight numbers are computed with at a time by AVX-512 IFMA, and
	// the four coordinates of a point in vectors of half the width.
	IFMA = MULX && cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512IFMA
)

// Each calls f once for every choice of twins this machine has, with the name of
// the best one in use. It is for tests: nothing else may compute meanwhile.
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
