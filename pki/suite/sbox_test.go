// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"testing"

	"tamga/gost/gost28147"
)

func TestSBoxes(t *testing.T) {
	for _, box := range []*gost28147.SBox{gost28147.SBoxZ, gost28147.SBoxA, gost28147.SBoxB, gost28147.SBoxC, gost28147.SBoxD} {
		if got, ok := SBoxByOID(SBoxOID(box)); !ok || got != box {
			t.Errorf("%v has the identifier %v, which names %v", box, SBoxOID(box), got)
		}
	}
	if SBoxOID(gost28147.SBoxTest) != nil {
		t.Error("a set that no encrypted data names has an identifier")
	}
	if _, ok := SBoxByOID(OID{1, 2}); ok {
		t.Error("an unknown identifier names a set")
	}
}
