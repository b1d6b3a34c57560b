// SPDX-License-Identifier: Apache-2.0

package gost3410

import (
	"slices"

	"tamga/gost/gost3410/internal/point"
)

// A Set is a parameter set: a curve with a base point, under the name a standard
// gives it. Several sets can name one curve. A key remembers its set, because a
// certificate names the set. The sets are the variables of this package. Compare
// them by pointer.
type Set struct {
	name  string
	curve point.Curve
}

// The sets of RFC 4357, section 8.4, for GOST R 34.10-2001 and for the 256-bit keys of
// GOST R 34.10-2012. TestSet is for the examples of the standard. The Xch sets were
// meant for key agreement.
var (
	TestSet       = &Set{"id-GostR3410-2001-TestParamSet", point.Test256}
	CryptoProA    = &Set{"id-GostR3410-2001-CryptoPro-A-ParamSet", point.CryptoProA}
	CryptoProB    = &Set{"id-GostR3410-2001-CryptoPro-B-ParamSet", point.CryptoProB}
	CryptoProC    = &Set{"id-GostR3410-2001-CryptoPro-C-ParamSet", point.CryptoProC}
	CryptoProXchA = &Set{"id-GostR3410-2001-CryptoPro-XchA-ParamSet", point.CryptoProA}
	CryptoProXchB = &Set{"id-GostR3410-2001-CryptoPro-XchB-ParamSet", point.CryptoProC}
)

// The sets of RFC 7836, appendix A, and R 1323565.1.024-2019 under their names in
// RFC 9215. TC26256B, C and D are the curves CryptoPro A, B and C.
var (
	TC26256A    = &Set{"id-tc26-gost-3410-2012-256-paramSetA", point.TC26256A}
	TC26256B    = &Set{"id-tc26-gost-3410-2012-256-paramSetB", point.CryptoProA}
	TC26256C    = &Set{"id-tc26-gost-3410-2012-256-paramSetC", point.CryptoProB}
	TC26256D    = &Set{"id-tc26-gost-3410-2012-256-paramSetD", point.CryptoProC}
	TC26512Test = &Set{"id-tc26-gost-3410-2012-512-paramSetTest", point.Test512}
	TC26512A    = &Set{"id-tc26-gost-3410-2012-512-paramSetA", point.TC26512A}
	TC26512B    = &Set{"id-tc26-gost-3410-2012-512-paramSetB", point.TC26512B}
	TC26512C    = &Set{"id-tc26-gost-3410-2012-512-paramSetC", point.TC26512C}
)

var sets = []*Set{
	TestSet, CryptoProA, CryptoProB, CryptoProC, CryptoProXchA, CryptoProXchB,
	TC26256A, TC26256B, TC26256C, TC26256D,
	TC26512Test, TC26512A, TC26512B, TC26512C,
}

// Sets returns all parameter sets, in the order of the variables above.
func Sets() []*Set { return slices.Clone(sets) }

// Name returns the standard's identifier, such as
// "id-GostR3410-2001-CryptoPro-A-ParamSet".
func (s *Set) Name() string { return s.name }

// Size returns the length in bytes of a coordinate, of a private key, of a digest
// and of each half of a signature: 32 or 64.
func (s *Set) Size() int { return s.curve.Size() }

// SameCurve reports whether both sets name the same curve and base point. Keys of such
// sets can agree on a secret with VKO.
func (s *Set) SameCurve(t *Set) bool { return s.curve == t.curve }

// String returns the name.
func (s *Set) String() string { return s.name }
