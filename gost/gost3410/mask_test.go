// SPDX-License-Identifier: Apache-2.0

package gost3410

import (
	"bytes"
	"math/big"
	"slices"
	"testing"
)

// littleEndian returns a number in the form of a private key.
func littleEndian(n *big.Int, size int) []byte {
	b := n.FillBytes(make([]byte, size))
	slices.Reverse(b)
	return b
}

func TestUnmask(t *testing.T) {
	eachSet(t, func(t *testing.T, k *PrivateKey, _ []byte) {
		s, q := k.Set(), orderOf(k.Set())
		size := s.Size()
		number := k.Bytes()
		slices.Reverse(number)
		// K_M = K * M^-1 mod Q for each mask (RFC 9548, section 5.1).
		masked, masks := new(big.Int).SetBytes(number), []byte(nil)
		for i := range MaxMasks {
			m, err := GenerateKey(s, seeded(byte(200+i)))
			if err != nil {
				t.Fatal(err)
			}
			masks = append(masks, m.Bytes()...)
			factor := m.Bytes()
			slices.Reverse(factor)
			masked.Mul(masked, new(big.Int).ModInverse(new(big.Int).SetBytes(factor), q)).Mod(masked, q)
			got, err := UnmaskPrivateKey(s, append(littleEndian(masked, size), masks...))
			if err != nil || !got.Equal(k) {
				t.Fatalf("%d masks: %v", i+1, err)
			}
		}
		one, good := littleEndian(big.NewInt(1), size), littleEndian(masked, size)
		zero, order, most := make([]byte, size), littleEndian(q, size), bytes.Repeat([]byte{0xff}, size)
		for name, sequence := range map[string][]byte{
			"nothing":           {},
			"no mask":           good,
			"too many":          append(append(slices.Clone(good), masks...), one...),
			"a part of a mask":  append(slices.Clone(good), masks[1:size]...),
			"key is zero":       append(slices.Clone(zero), one...),
			"key is q":          append(slices.Clone(order), one...),
			"mask is zero":      append(slices.Clone(good), zero...),
			"mask is q":         append(slices.Clone(good), order...),
			"all ones":          append(slices.Clone(most), most...),
			"last mask is zero": append(append(slices.Clone(good), one...), zero...),
		} {
			if k, err := UnmaskPrivateKey(s, sequence); err == nil || k != nil {
				t.Errorf("%s: accepted", name)
			}
		}
	})
}
