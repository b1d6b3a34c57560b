// SPDX-License-Identifier: Apache-2.0

package gost3410

import (
	"bytes"
	"math/big"
	"slices"
	"testing"
)

func FuzzNewPublicKey(f *testing.F) {
	for i, s := range Sets() {
		k, err := GenerateKey(s, seeded(byte(i)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(i), k.PublicKey().Bytes())
		f.Add(byte(i), make([]byte, 2*s.Size()))
		f.Add(byte(i), bytes.Repeat([]byte{0xff}, 2*s.Size()))
	}
	f.Fuzz(func(t *testing.T, set byte, xy []byte) {
		s := Sets()[int(set)%len(Sets())]
		k, err := NewPublicKey(s, xy)
		if err != nil {
			if k != nil {
				t.Fatal("NewPublicKey returned both an error and a key")
			}
			return
		}
		if !bytes.Equal(k.Bytes(), xy) {
			t.Fatalf("%x came back as %x", xy, k.Bytes())
		}
	})
}

func FuzzVerify(f *testing.F) {
	var keys []*PrivateKey
	for i, s := range Sets() {
		k, err := GenerateKey(s, seeded(byte(i)))
		if err != nil {
			f.Fatal(err)
		}
		keys = append(keys, k)
		digest := make([]byte, s.Size())
		signature, err := k.Sign(constant(0), digest, nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(i), digest, signature)
		f.Add(byte(i), digest, make([]byte, 2*s.Size()))
		f.Add(byte(i), digest, append(bytes.Repeat([]byte{0}, s.Size()-1), signature[s.Size()-1:]...))
	}
	f.Fuzz(func(t *testing.T, set byte, digest, signature []byte) {
		k := keys[int(set)%len(keys)]
		good := k.PublicKey().Verify(digest, signature)
		item := VerifyItem{k.PublicKey(), digest, signature}
		for i, ok := range VerifyMany([]VerifyItem{item, item, item}) {
			if ok != good {
				t.Fatalf("item %d of three: VerifyMany reports %v, Verify %v", i, ok, good)
			}
		}
		if !good {
			return
		}
		// Only the seeds verify: their digest is 0 modulo q, which counts as 1. Any other
		// digest that verifies is a forgery.
		q := orderOf(k.Set())
		d := slices.Clone(digest)
		slices.Reverse(d)
		if e := new(big.Int).SetBytes(d); e.Mod(e, q).Cmp(big.NewInt(1)) > 0 {
			t.Fatalf("forged a signature of %x", digest)
		}
	})
}
