package mode

import (
	"slices"
	"unsafe"
)

// grow appends n octets to b, using its capacity where it can. It returns the whole
// and the new octets.
func grow(b []byte, n int) (whole, tail []byte) {
	whole = slices.Grow(b, n)[:len(b)+n]
	return whole, whole[len(b):]
}

// overlap tells whether two slices share memory. Only addresses tell that, as in the
// standard library, whose function is internal.
func overlap(x, y []byte) bool {
	return len(x) > 0 && len(y) > 0 &&
		uintptr(unsafe.Pointer(&x[0])) <= uintptr(unsafe.Pointer(&y[len(y)-1])) &&
		uintptr(unsafe.Pointer(&y[0])) <= uintptr(unsafe.Pointer(&x[len(x)-1]))
}

// overlapInexactly tells whether two slices share memory at different positions.
func overlapInexactly(x, y []byte) bool {
	return overlap(x, y) && &x[0] != &y[0]
}
