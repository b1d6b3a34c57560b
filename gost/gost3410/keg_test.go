// SPDX-License-Identifier: Apache-2.0

package gost3410

import (
	"bytes"
	"errors"
	"hash"
	"os"
	"testing"

	"tamga/gost/kuznyechik"
	"tamga/gost/magma"
	"tamga/gost/mode"
	"tamga/gost/streebog"
	"tamga/internal/gosttest"
)

// TestKEG agrees on the keys of published messages and imports the keys that they carry: KImp15
// returns a key only if all 64 bytes are right.
func TestKEG(t *testing.T) {
	for _, v := range gosttest.Vectors(t, os.DirFS("."), "testdata/keg.txt") {
		set := setNamed(t, v.Text(t, "Set"))
		private, err := NewPrivateKey(set, v.Bytes(t, "Private"))
		if err != nil {
			t.Fatal(err)
		}
		public, err := NewPublicKey(set, v.Bytes(t, "Public"))
		if err != nil {
			t.Fatal(err)
		}
		ukm := v.Bytes(t, "UKM")
		keys, err := private.KEG(public, ukm)
		if err != nil || len(keys) != KEGSize {
			t.Fatalf("line %d: %d bytes, %v", v.Line, len(keys), err)
		}
		newCipher, iv := kuznyechik.NewCipher, ukm[24:]
		if v.Text(t, "Wrap") == "Magma" {
			newCipher, iv = magma.NewCipher, ukm[24:28]
		}
		key, err := mode.KImp15(newCipher, keys[:32], keys[32:], iv, v.Bytes(t, "Exported"))
		if err != nil || len(key) != 32 {
			t.Errorf("line %d: %x, %v", v.Line, key, err)
		}
	}
}

// Both parties get the same keys on every curve, and each part of the UKM counts where it should.
func TestKEGAgrees(t *testing.T) {
	for _, set := range Sets() {
		a, b := newKey(t, set), newKey(t, set)
		ukm := bytes.Repeat([]byte{9}, KEGUKMSize)
		keys := func(k, peer *PrivateKey, ukm []byte) []byte {
			t.Helper()
			out, err := k.KEG(peer.PublicKey(), ukm)
			if err != nil || len(out) != KEGSize {
				t.Fatalf("%s: %d bytes, %v", set, len(out), err)
			}
			return out
		}
		one := keys(a, b, ukm)
		if !bytes.Equal(one, keys(b, a, ukm)) {
			t.Errorf("%s: the parties have different keys", set)
		}
		for _, c := range []struct {
			at     int
			counts bool
		}{{0, true}, {15, true}, {16, set.Size() == 32}, {23, set.Size() == 32}, {24, false}, {31, false}} {
			other := bytes.Clone(ukm)
			other[c.at] ^= 1
			if bytes.Equal(one, keys(a, b, other)) == c.counts {
				t.Errorf("%s: byte %d of the UKM: its effect is not %v", set, c.at, c.counts)
			}
		}
		zero, first := make([]byte, KEGUKMSize), make([]byte, KEGUKMSize)
		first[15] = 1
		if !bytes.Equal(keys(a, b, zero), keys(a, b, first)) {
			t.Errorf("%s: the number 0 is not taken as 1", set)
		}
	}
}

func TestKEGErrors(t *testing.T) {
	a, other := newKey(t, TC26256A), newKey(t, TC26512A)
	for _, n := range []int{0, 31, 33} {
		if _, err := a.KEG(a.PublicKey(), make([]byte, n)); err == nil {
			t.Errorf("KEG accepts a UKM of %d bytes", n)
		}
	}
	ukm := make([]byte, KEGUKMSize)
	if _, err := a.KEG(other.PublicKey(), ukm); err == nil {
		t.Error("KEG accepts a key on another curve")
	}
	if _, err := KEG(TC26256A, ukm, func([]byte, func() hash.Hash) ([]byte, error) { return make([]byte, streebog.Size512), nil }); err == nil {
		t.Error("KEG accepts a result of VKO with another length")
	}
	a.Wipe()
	if _, err := a.KEG(a.PublicKey(), ukm); !errors.Is(err, ErrWiped) {
		t.Errorf("a wiped key: %v", err)
	}
}

func newKey(t *testing.T, set *Set) *PrivateKey {
	t.Helper()
	key, err := GenerateKey(set, nil)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
