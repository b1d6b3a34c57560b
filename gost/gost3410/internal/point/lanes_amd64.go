//go:build !purego

package point

// lanes is how many numbers the vectors of AVX-512 hold.
const lanes = 8

// What 2 to the power of the size is modulo the prime.
const (
	aboveP256A = 617
	aboveP512A = 569
)

const mask52 = 1<<52 - 1

// split52 sets limbs of 52 bits to a number of limbs of 64 bits.
func split52(limbs, x []uint64) {
	for i := range limbs {
		word, shift := 52*i/64, uint(52*i%64)
		limbs[i] = x[word] >> shift
		if word+1 < len(x) {
			limbs[i] |= x[word+1] << (64 - shift) // nothing where shift is 0
		}
		limbs[i] &= mask52
	}
}

// join52 sets x to the number limbs, all of whose bits fit.
func join52(x, limbs []uint64) {
	clear(x)
	for i, limb := range limbs {
		word, shift := 52*i/64, uint(52*i%64)
		x[word] |= limb << shift
		if word+1 < len(x) {
			x[word+1] |= limb >> (64 - shift)
		}
	}
}
