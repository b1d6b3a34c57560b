// SPDX-License-Identifier: Apache-2.0

// Package testsize says how much the tests do. Begin with Of: a test that takes long compares the
// size with those below, and has fewer rounds, smaller documents or fewer combinations in a smaller
// run. Every test that runs tries each kind of case at least once in every size. Texts call the form of
// sizes below Whole the short form, and the form of Quick alone the quick form.
package testsize

import (
	"os"
	"testing"
)

// Size is how much the tests do. A larger size has all that a smaller one has.
type Size int

const (
	// Quick is -short of go test, as "./test.sh --quick" passes it: tests that compile programs, run
	// several processes, measure or wait for long are left out.
	Quick Size = iota
	// Plain has every test, the longest in a short form.
	Plain
	// Whole has the long forms. It is the size with CI=true.
	Whole
	// Full is the size of "./test.sh --full", which sets TAMGA_TEST_FULL_FAULTS. Many rounds take
	// hours.
	Full
)

// Of returns the size of this run. The flags must have been parsed.
func Of() Size {
	switch {
	case testing.Short():
		return Quick
	case os.Getenv("TAMGA_TEST_FULL_FAULTS") != "":
		return Full
	case os.Getenv("CI") == "true":
		return Whole
	}
	return Plain
}
