// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

// TestVerifyMany checks values of one key together: all right, one wrong at any place, a digest
// of another algorithm, and a missing value.
func TestVerifyMany(t *testing.T) {
	for _, s := range []*Suite{GOST2012x256, ECDSAP256} {
		key, err := s.Generate(nil)
		if err != nil {
			t.Fatal(err)
		}
		var digests []Digest
		var values [][]byte
		for i := range 19 {
			d := s.Hash.Digest([]byte{byte(i)})
			v, err := s.Sign(nil, key, d)
			if err != nil {
				t.Fatal(err)
			}
			digests, values = append(digests, d), append(values, v)
		}
		for range 3 { // the key gets a table
			if err := s.VerifyMany(key.Public(), digests, values); err != nil {
				t.Fatalf("%s: right values: %v", s.Name, err)
			}
			for i := range values {
				wrong := slices.Clone(values)
				wrong[i] = bytes.Clone(values[(i+1)%len(values)])
				if err := s.VerifyMany(key.Public(), digests, wrong); !errors.Is(err, ErrSignature) {
					t.Fatalf("%s: a wrong value at %d: %v", s.Name, i, err)
				}
			}
		}
		if err := s.VerifyMany(key.Public(), digests, values[1:]); err == nil {
			t.Errorf("%s: a missing value is accepted", s.Name)
		}
		other := slices.Clone(digests)
		other[7] = GOST2012x512.Hash.Digest(nil)
		if err := s.VerifyMany(key.Public(), other, values); err == nil || errors.Is(err, ErrSignature) {
			t.Errorf("%s: a digest of another algorithm: %v", s.Name, err)
		}
		if err := s.VerifyMany(nil, digests, values); err == nil {
			t.Errorf("%s: no key: accepted", s.Name)
		}
	}
}
