// Package twin owns the choice between the twins of the arithmetic: every routine
// in assembly has one in Go that computes the same numbers, and which of them runs
// is decided here, once, by what the processor can do. The build tag purego leaves
// no choice but Go.
package twin
