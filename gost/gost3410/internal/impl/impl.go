// SPDX-License-Identifier: Apache-2.0

// Package impl chooses between the implementations of the arithmetic. Every routine in
// assembly has an implementation in Go that computes the same numbers. The variables
// MULX and IFMA, set once from the features of the processor, say which one runs. Under
// the build tag purego only the Go code runs. Each is for tests. The package computes
// nothing itself.
package impl
