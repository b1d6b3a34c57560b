// SPDX-License-Identifier: Apache-2.0

//go:build !purego

package point

// The upper bounds of the highest limb of a number in lanes.
const (
	highP256A = 1<<48 + 1<<10
	highP256B = 1<<47 + 1<<11
	highP256C = 3 << 48
	highP512A = 1<<44 + 1<<14
	highP512B = 1<<43 + 1<<14
)
