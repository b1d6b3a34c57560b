// SPDX-License-Identifier: Apache-2.0

package mode

import (
	"slices"
	"unsafe"
)

// grow appends n bytes to b, within its capacity if possible. It returns the whole
// slice and the new bytes.
func grow(b []byte, n int) (whole, tail []byte) {
	whole = slices.Grow(b, n)[:len(b)+n]
	return whole, whole[len(b):]
}

// overlap reports whether two slices share memory. It compares addresses, as the
// standard library does in an internal function.
func overlap(x, y []byte) bool {
	return len(x) > 0 && len(y) > 0 &&
		uintptr(unsafe.Pointer(&x[0])) <= uintptr(unsafe.Pointer(&y[len(y)-1])) &&
		uintptr(unsafe.Pointer(&y[0])) <= uintptr(unsafe.Pointer(&x[len(x)-1]))
}

// overlapInexactly reports whether two slices share memory at different positions.
func overlapInexactly(x, y []byte) bool {
	return overlap(x, y) && &x[0] != &y[0]
}
