// SPDX-License-Identifier: Apache-2.0

package gost3410

import (
	"bytes"
	crand "crypto/rand"
	"testing"

	"tamga/gost/streebog"
)

func benchSets(b *testing.B, f func(b *testing.B, k *PrivateKey, digest []byte)) {
	for i, s := range Sets() {
		b.Run(s.Name(), func(b *testing.B) {
			k, err := GenerateKey(s, seeded(byte(i)))
			if err != nil {
				b.Fatal(err)
			}
			k.PublicKey() // so that the table of the base point is built before the measurement
			b.ReportAllocs()
			f(b, k, bytes.Repeat([]byte{0xa5}, s.Size()))
		})
	}
}

func BenchmarkSign(b *testing.B) {
	benchSets(b, func(b *testing.B, k *PrivateKey, digest []byte) {
		for b.Loop() {
			if _, err := k.Sign(crand.Reader, digest, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	benchSets(b, func(b *testing.B, k *PrivateKey, digest []byte) {
		signature, err := k.Sign(nil, digest, nil)
		if err != nil {
			b.Fatal(err)
		}
		public := k.PublicKey()
		for b.Loop() {
			if !public.Verify(digest, signature) {
				b.Fatal("a valid signature does not verify")
			}
		}
	})
}

func BenchmarkKeyGeneration(b *testing.B) {
	benchSets(b, func(b *testing.B, k *PrivateKey, _ []byte) {
		for b.Loop() {
			n, err := GenerateKey(k.Set(), nil)
			if err != nil {
				b.Fatal(err)
			}
			n.PublicKey()
		}
	})
}

func BenchmarkVKO(b *testing.B) {
	benchSets(b, func(b *testing.B, k *PrivateKey, digest []byte) {
		peer := k.PublicKey()
		for b.Loop() {
			if _, err := k.VKO(peer, digest[:8], streebog.New256); err != nil {
				b.Fatal(err)
			}
		}
	})
}
