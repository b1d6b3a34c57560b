// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"

	"tamga/gost/gost3410"
)

// publicKeys makes n keys of the cheapest curve.
func publicKeys(t *testing.T, n int) []*gost3410.PublicKey {
	t.Helper()
	source := rand.NewChaCha8([32]byte{3})
	list := make([]*gost3410.PublicKey, n)
	for i := range list {
		k, err := gost3410.GenerateKey(gost3410.CryptoProA, source)
		if err != nil {
			t.Fatal(err)
		}
		list[i] = k.Public().(*gost3410.PublicKey)
	}
	return list
}

func (t *tables) has(k *gost3410.PublicKey) bool {
	id := publicID{set: k.Set()}
	copy(id.xy[:], k.Bytes())
	made := t.made.Load()
	return made != nil && (*made)[id] != nil
}

// use verifies so often with a key that it gets a table if it may.
func (t *tables) use(k *gost3410.PublicKey) {
	for range tableAfter {
		t.key(k, 1)
	}
}

func TestTables(t *testing.T) {
	var kept tables
	keys := publicKeys(t, tableMost+3)
	for range tableAfter - 1 {
		if got := kept.key(keys[0], 1); got != keys[0] {
			t.Fatal("a key in rare use has a table")
		}
	}
	if got := kept.key(keys[0], 1); got == keys[0] || !got.Equal(keys[0]) || !kept.has(keys[0]) {
		t.Fatal("a key in frequent use has no table, or became another key")
	}
	for _, k := range keys[:tableMost] {
		kept.use(k)
	}
	// All tables are in use: another key gets none.
	for _, k := range keys[:tableMost] {
		kept.key(k, 1)
	}
	if kept.use(keys[tableMost]); kept.has(keys[tableMost]) || len(*kept.made.Load()) != tableMost {
		t.Error("a table in use was given up, or there are too many")
	}
	// One is no longer used: it gives its place up after two attempts.
	for range 2 {
		for _, k := range keys[1:tableMost] {
			kept.key(k, 1)
		}
		kept.use(keys[tableMost])
	}
	if !kept.has(keys[tableMost]) || kept.has(keys[0]) || len(*kept.made.Load()) != tableMost {
		t.Error("a key in frequent use did not get the place of an unused one")
	}
}

// TestTablesCountFewKeys checks that a caller with many keys fills no memory.
func TestTablesCountFewKeys(t *testing.T) {
	var kept tables
	k := publicKeys(t, 1)[0]
	for i := range 10 * countMost {
		id := publicID{set: k.Set()}
		id.xy[0], id.xy[1] = byte(i), byte(i>>8)
		kept.due(id, 1)
	}
	if len(kept.counts) > countMost {
		t.Errorf("%d keys are counted", len(kept.counts))
	}
}

func TestTablesTogether(t *testing.T) {
	var kept tables
	keys := publicKeys(t, 4)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 3 * tableAfter {
				if k := keys[(i+j)%len(keys)]; !kept.key(k, 1).Equal(k) {
					t.Error("another key")
				}
			}
		})
	}
	all.Wait()
	for _, k := range keys {
		if !kept.has(k) {
			t.Error("a key in frequent use has no table")
		}
	}
}

// TestVerifyTogether: wrong values beside right ones under a key in frequent use, together and
// from many goroutines.
func TestVerifyTogether(t *testing.T) {
	var kept tables
	source := rand.NewChaCha8([32]byte{4})
	for _, set := range []*gost3410.Set{gost3410.CryptoProA, gost3410.TC26512A} {
		private, err := gost3410.GenerateKey(set, source)
		if err != nil {
			t.Fatal(err)
		}
		key := private.Public().(*gost3410.PublicKey)
		var checks []*check
		for i := range 2 * checksMost {
			digest := bytes.Repeat([]byte{byte(i + 1)}, set.Size())
			value, err := private.Sign(source, digest, nil)
			if err != nil {
				t.Fatal(err)
			}
			c := &check{digest: digest, value: value, right: true}
			switch i % 4 {
			case 1:
				value[i] ^= 1
				c.right = false
			case 3:
				c.digest = bytes.Repeat([]byte{0xfe}, set.Size())
				c.right = false
			}
			checks = append(checks, c)
		}
		for n := range checksMost {
			asked := make([]*check, n+1)
			for i := range asked {
				asked[i] = &check{digest: checks[i].digest, value: checks[i].value, right: !checks[i].right}
			}
			newTabled(key.Precompute()).verify(asked)
			for i, c := range asked {
				if c.right != checks[i].right {
					t.Errorf("%s, value %d of %d: right: %t, want %t", set.Name(), i, n+1, c.right, checks[i].right)
				}
			}
		}
		var all sync.WaitGroup
		for i, c := range checks {
			all.Go(func() {
				for range tableAfter {
					if right := kept.verify(key, c.digest, c.value); right != c.right {
						t.Errorf("%s, value %d: right: %t, want %t", set.Name(), i, right, c.right)
					}
				}
			})
		}
		all.Wait()
		if !kept.has(key) {
			t.Error("the key has no table")
		}
	}
}
