// SPDX-License-Identifier: Apache-2.0

package gost3410

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"tamga/internal/testsize"
)

// TestSignManyCounts signs every number of items up to more than two groups, with
// repeated keys and digests. All signatures are valid, and no nonce is used twice,
// with good randomness and without any.
func TestSignManyCounts(t *testing.T) {
	for _, set := range []*Set{CryptoProA, TC26256A, TC26512A} {
		var keys []*PrivateKey
		for i := range 3 {
			k, err := GenerateKey(set, seeded(byte(i)))
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, k)
		}
		for name, rand := range map[string]io.Reader{"good randomness": seeded(9), "no randomness": constant(0)} {
			for n := range 19 {
				items := make([]SignItem, n)
				for i := range items {
					items[i] = SignItem{keys[i%3], bytes.Repeat([]byte{byte(i / 5)}, set.Size())}
				}
				signatures, err := SignMany(rand, items)
				if err != nil || len(signatures) != n {
					t.Fatalf("%s, %s, %d items: %d signatures, %v", set, name, n, len(signatures), err)
				}
				seen := map[string]int{}
				for i, s := range signatures {
					if !items[i].Key.PublicKey().Verify(items[i].Digest, s) {
						t.Fatalf("%s, %s, %d items: signature %d does not verify", set, name, n, i)
					}
					r := string(s[set.Size():])
					if j, again := seen[r]; again && !bytes.Equal(signatures[j], s) {
						t.Fatalf("%s, %s, %d items: signatures %d and %d have the same nonce", set, name, n, j, i)
					}
					seen[r] = i
				}
			}
		}
	}
}

// TestSignManyNonces checks that, without randomness, the nonces of a group depend on
// every digest in the group.
func TestSignManyNonces(t *testing.T) {
	k, err := GenerateKey(CryptoProA, seeded(1))
	if err != nil {
		t.Fatal(err)
	}
	nonces := func(digests ...byte) (all []string) {
		var items []SignItem
		for _, d := range digests {
			items = append(items, SignItem{k, bytes.Repeat([]byte{d}, 32)})
		}
		signatures, err := SignMany(constant(0), items)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range signatures {
			all = append(all, string(s[32:]))
		}
		return all
	}
	if a, b := nonces(1, 2), nonces(1, 2); a[0] != b[0] || a[1] != b[1] {
		t.Error("the same randomness, keys and digests give different nonces")
	}
	if a, b := nonces(1, 2), nonces(1, 3); a[0] == b[0] || a[1] == b[1] {
		t.Error("another digest in the group does not change every nonce")
	}
}

func TestSignManyErrors(t *testing.T) {
	var items []SignItem
	for i := range 10 {
		k, err := GenerateKey(CryptoProA, seeded(byte(i)))
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, SignItem{k, make([]byte, 32)})
	}
	if s, err := SignMany(&broken{}, items); s != nil || err == nil || !strings.Contains(err.Error(), "random source") {
		t.Errorf("a random source that fails: %v, %v", s, err)
	}
	items[9].Key.Wipe()
	if s, err := SignMany(nil, items); s != nil || !errors.Is(err, ErrWiped) || !strings.Contains(err.Error(), "item 9") {
		t.Errorf("a wiped key: %v, %v", s, err)
	}
}

// TestPrecompute checks that a key with a table accepts and refuses the same
// signatures as the key without.
func TestPrecompute(t *testing.T) {
	eachSet(t, func(t *testing.T, k *PrivateKey, digest []byte) {
		plain := k.PublicKey()
		fast := plain.Precompute()
		if fast.Precompute() != fast || !fast.Equal(plain) || !plain.Equal(fast) || fast.Set() != plain.Set() || !bytes.Equal(fast.Bytes(), plain.Bytes()) {
			t.Fatal("the key with a table differs from the key without")
		}
		size := k.Set().Size()
		good, err := k.Sign(seeded(1), digest, nil)
		if err != nil {
			t.Fatal(err)
		}
		q := make([]byte, size)
		orderOf(k.Set()).FillBytes(q)
		zero := make([]byte, size)
		other := bytes.Clone(digest)
		other[0] ^= 1
		none := make([]byte, size) // e = 0 counts as 1
		ofNone, err := k.Sign(seeded(2), none, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			digest, signature []byte
			want              bool
		}{
			"good":         {digest, good, true},
			"e = 0":        {none, ofNone, true},
			"other digest": {other, good, false},
			"s = 0":        {digest, append(bytes.Clone(zero), good[size:]...), false},
			"r = 0":        {digest, append(bytes.Clone(good[:size]), zero...), false},
			"s = q":        {digest, append(bytes.Clone(q), good[size:]...), false},
			"r = q":        {digest, append(bytes.Clone(good[:size]), q...), false},
			"s = r":        {digest, append(bytes.Clone(good[size:]), good[size:]...), false},
			"short":        {digest, good[1:], false},
		} {
			if a, b := plain.Verify(c.digest, c.signature), fast.Verify(c.digest, c.signature); a != c.want || b != c.want {
				t.Errorf("%s: Verify reports %v, with a table %v, want %v", name, a, b, c.want)
			}
			// At every index of a group whose other signatures are valid.
			for place := range together {
				if testsize.Of() < testsize.Whole && place%(together-1) != 0 {
					continue // the first and the last
				}
				for _, key := range []*PublicKey{plain, fast} {
					items := slices.Repeat([]VerifyItem{{key, digest, good}}, together)
					items[place] = VerifyItem{key, c.digest, c.signature}
					for i, got := range VerifyMany(items) {
						if want := i != place || c.want; got != want {
							t.Errorf("%s at index %d of eight, with a table %t: VerifyMany reports %v at index %d, want %v", name, place, key == fast, got, i, want)
						}
					}
				}
			}
		}
	})
}

// TestVerifyManyCounts compares VerifyMany with Verify for every number of items up to
// more than two groups, of several sets and curves, with valid and invalid signatures
// at any index.
func TestVerifyManyCounts(t *testing.T) {
	var all []VerifyItem
	for n := range 26 {
		set := []*Set{CryptoProA, TC26512A, CryptoProXchA, CryptoProA, TC26256A, TC26256B}[n%6]
		k, err := GenerateKey(set, seeded(byte(n%9)))
		if err != nil {
			t.Fatal(err)
		}
		size := set.Size()
		digest := bytes.Repeat([]byte{byte(n / 6)}, size) // the first six are 0, so e is 1
		signature, err := k.Sign(seeded(byte(n)), digest, nil)
		if err != nil {
			t.Fatal(err)
		}
		q := make([]byte, size)
		orderOf(set).FillBytes(q)
		key := k.PublicKey()
		if n%4 == 3 {
			key = key.Precompute()
		}
		for _, bad := range []func(s []byte) []byte{
			func(s []byte) []byte { return s },
			func(s []byte) []byte { s[n%len(s)] ^= 1; return s },
			func(s []byte) []byte { clear(s[:size]); return s },
			func(s []byte) []byte { clear(s[size:]); return s },
			func(s []byte) []byte { copy(s, q); return s },
			func(s []byte) []byte { copy(s[size:], q); return s },
			func(s []byte) []byte { return s[1:] },
		} {
			all = append(all, VerifyItem{key, digest, bad(bytes.Clone(signature))})
		}
	}
	good := 0
	want := make([]bool, len(all))
	for i, it := range all {
		if want[i] = it.Key.Verify(it.Digest, it.Signature); want[i] {
			good++
		}
	}
	if good != 26 {
		t.Fatalf("%d items verify, want 26", good)
	}
	for n := range 20 {
		for from := 0; from+n <= len(all); from += 17 {
			if got := VerifyMany(all[from : from+n]); !slices.Equal(got, want[from:from+n]) {
				t.Fatalf("%d items from index %d: got %v, want %v", n, from, got, want[from:from+n])
			}
		}
	}
	if got := VerifyMany(all); !slices.Equal(got, want) {
		t.Error("all items: VerifyMany and Verify differ")
	}
}
