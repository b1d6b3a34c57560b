// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"

	"tamga/gost/gost3410"
)

// ParameterSet names the GOST curve of a key, as the parameters of the key's
// AlgorithmIdentifier do (RFC 4491, 2.3; RFC 9215, 4.2).
type ParameterSet struct {
	OID OID           // publicKeyParamSet
	Set *gost3410.Set // the curve
	// Digest is digestParamSet as written, nil when it is omitted.
	Digest OID
}

// Parameters of the digest named in GOST keys.
var (
	digestParam94  = OID{1, 2, 643, 2, 2, 30, 1} // id-GostR3411-94-CryptoProParamSet
	digestParam256 = OID{1, 2, 643, 7, 1, 1, 2, 2}
)

// gostSets has one row for each set and identifier. digest256 reports whether a key of
// 34.10-2012 has digestParamSet: RFC 9215, 4.2 requires it with the sets of RFC 4357 and
// omits it with those of TC26.
var gostSets = []struct {
	oid       OID
	set       *gost3410.Set
	in2001    bool // allowed in the parameters of a 2001 key
	digest256 bool
}{
	{OID{1, 2, 643, 2, 2, 35, 0}, gost3410.TestSet, true, true},
	{OID{1, 2, 643, 2, 2, 35, 1}, gost3410.CryptoProA, true, true},
	{OID{1, 2, 643, 2, 2, 35, 2}, gost3410.CryptoProB, true, true},
	{OID{1, 2, 643, 2, 2, 35, 3}, gost3410.CryptoProC, true, true},
	{OID{1, 2, 643, 2, 2, 36, 0}, gost3410.CryptoProXchA, true, true},
	{OID{1, 2, 643, 2, 2, 36, 1}, gost3410.CryptoProXchB, true, true},
	{OID{1, 2, 643, 7, 1, 2, 1, 1, 1}, gost3410.TC26256A, false, false},
	{OID{1, 2, 643, 7, 1, 2, 1, 1, 2}, gost3410.TC26256B, false, false},
	{OID{1, 2, 643, 7, 1, 2, 1, 1, 3}, gost3410.TC26256C, false, false},
	{OID{1, 2, 643, 7, 1, 2, 1, 1, 4}, gost3410.TC26256D, false, false},
	{OID{1, 2, 643, 7, 1, 2, 1, 2, 0}, gost3410.TC26512Test, false, false},
	{OID{1, 2, 643, 7, 1, 2, 1, 2, 1}, gost3410.TC26512A, false, false},
	{OID{1, 2, 643, 7, 1, 2, 1, 2, 2}, gost3410.TC26512B, false, false},
	{OID{1, 2, 643, 7, 1, 2, 1, 2, 3}, gost3410.TC26512C, false, false},
}

// IsGOST reports whether the keys of the suite are GOST keys, whose algorithm
// parameters are a ParameterSet.
func (s *Suite) IsGOST() bool {
	_, ok := s.family.(gostFamily)
	return ok
}

// ParametersOf returns the parameters that a key of the suite on the given curve is
// written with. The suite must be a GOST suite that allows the set.
func (s *Suite) ParametersOf(set *gost3410.Set) (ParameterSet, error) {
	return s.parameters(set.Name(), func(_ OID, row *gost3410.Set) bool { return row == set })
}

// ParametersByOID returns the parameters that publicKeyParamSet of a key of the suite
// names.
func (s *Suite) ParametersByOID(oid OID) (ParameterSet, error) {
	return s.parameters(oid.String(), func(row OID, _ *gost3410.Set) bool { return row.Equal(oid) })
}

func (s *Suite) parameters(what string, is func(OID, *gost3410.Set) bool) (ParameterSet, error) {
	f, ok := s.family.(gostFamily)
	if !ok {
		return ParameterSet{}, fmt.Errorf("suite: %s has no GOST parameter sets", s.Name)
	}
	for _, row := range gostSets {
		if !is(row.oid, row.set) {
			continue
		}
		if row.set.Size() != f.size || s == GOST2001 && !row.in2001 {
			return ParameterSet{}, fmt.Errorf("suite: parameter set %s does not belong to %s", what, s.Name)
		}
		p := ParameterSet{OID: row.oid, Set: row.set}
		switch {
		case s == GOST2001:
			p.Digest = digestParam94
		case row.digest256:
			p.Digest = digestParam256
		}
		return p, nil
	}
	return ParameterSet{}, fmt.Errorf("suite: unknown parameter set %s", what)
}
