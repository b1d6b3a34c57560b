// SPDX-License-Identifier: Apache-2.0

package suite

import "tamga/gost/gost28147"

// sboxes has the parameter sets of GOST 28147-89 that encrypted data names (RFC 4357, section
// 11.1; RFC 7836, appendix C).
var sboxes = []struct {
	oid OID
	box *gost28147.SBox
}{
	{OID{1, 2, 643, 7, 1, 2, 5, 1, 1}, gost28147.SBoxZ},
	{OID{1, 2, 643, 2, 2, 31, 1}, gost28147.SBoxA},
	{OID{1, 2, 643, 2, 2, 31, 2}, gost28147.SBoxB},
	{OID{1, 2, 643, 2, 2, 31, 3}, gost28147.SBoxC},
	{OID{1, 2, 643, 2, 2, 31, 4}, gost28147.SBoxD},
}

// SBoxByOID returns the parameter set of GOST 28147-89 with an identifier: SBoxZ or SBoxA to SBoxD.
func SBoxByOID(oid OID) (*gost28147.SBox, bool) {
	for _, row := range sboxes {
		if row.oid.Equal(oid) {
			return row.box, true
		}
	}
	return nil, false
}

// SBoxOID returns the identifier of a parameter set that SBoxByOID returns, nil for another set.
func SBoxOID(box *gost28147.SBox) OID {
	for _, row := range sboxes {
		if row.box == box {
			return row.oid
		}
	}
	return nil
}
