// SPDX-License-Identifier: Apache-2.0

package cades

import (
	"bytes"
	"slices"
	"testing"

	"tamga/pki/suite"
)

// FuzzHashIndex reads indexes of archive time stamps. One that is read is written again with the same
// digests.
func FuzzHashIndex(f *testing.F) {
	h := suite.GOST2012x256.Hash
	one, two := h.Digest([]byte("one")).Sum, h.Digest([]byte("two")).Sum
	for _, x := range []*hashIndex{
		{hash: h}, {hash: h, certs: [][]byte{one, two}, crls: [][]byte{two}, attrs: [][]byte{one}},
		{hash: suite.GOST94, attrs: [][]byte{one}}, {hash: suite.SHA1, certs: [][]byte{one[:20]}},
	} {
		a := x.attribute()
		f.Add(a.Values[0], false)
	}
	f.Add([]byte{0x30, 6, 0x30, 0, 0x30, 0, 0x30, 0}, true) // without an algorithm
	f.Add([]byte{0x30, 4, 0x30, 0, 0x30, 0}, true)
	f.Fuzz(func(t *testing.T, raw []byte, first bool) {
		omitted := (*suite.Hash)(nil)
		if first {
			omitted = suite.SHA256
		}
		x, err := parseHashIndex(raw, first, omitted)
		if err != nil {
			return
		}
		again, err := parseHashIndex(x.attribute().Values[0], false, nil)
		if err != nil || again.hash != x.hash {
			t.Fatalf("written and read: %v", err)
		}
		for i, pair := range [][2][][]byte{{x.certs, again.certs}, {x.crls, again.crls}, {x.attrs, again.attrs}} {
			if !slices.EqualFunc(pair[0], pair[1], bytes.Equal) {
				t.Errorf("list %d: %x, %x", i, pair[0], pair[1])
			}
		}
	})
}

// An index may name each element as often as it is there.
func TestTally(t *testing.T) {
	h := suite.SHA256
	a, b := h.Digest([]byte("a")), h.Digest([]byte("b"))
	for _, c := range []struct {
		have  []suite.Digest
		named [][]byte
		want  bool
	}{
		{nil, nil, true},
		{[]suite.Digest{a, b}, [][]byte{b.Sum}, true},
		{[]suite.Digest{a}, [][]byte{a.Sum, b.Sum}, false},
		{[]suite.Digest{a, b}, [][]byte{a.Sum, a.Sum}, false},
		{[]suite.Digest{a, a}, [][]byte{a.Sum, a.Sum}, true},
	} {
		if got := tallyOf(c.have).holds(c.named); got != c.want {
			t.Errorf("%d of %d: %v", len(c.named), len(c.have), got)
		}
	}
}
