// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"tamga/pki/suite"
)

// remembering returns a holder that remembers PINs for a minute of the clock that it returns.
func remembering(t *testing.T) (h *SoftHolder, now *time.Time) {
	t.Helper()
	o := testCost
	o.Remember = time.Minute
	h, err := NewSoftHolder(newTestRing(t, "2025"), newReader(2), o)
	if err != nil {
		t.Fatal(err)
	}
	if h.pins == nil {
		t.Fatal("no memory can be locked: raise ulimit -l")
	}
	t.Cleanup(func() { h.Close() })
	now = new(time.Now())
	h.pins.now = func() time.Time { return *now }
	return h, now
}

func TestHolderRemembersPINs(t *testing.T) {
	h, now := remembering(t)
	ctx := t.Context()
	su := suite.GOST2012x256
	k, _, err := h.Generate(ctx, "keys:a", su, nil, []byte("1234"))
	if err != nil {
		t.Fatal(err)
	}
	k.Mark = "token"
	sign := func(k Key, pin string) error {
		_, err := h.Sign(ctx, k, []byte(pin), nil)
		return err
	}
	knows := func(k Key, pin string, want bool) {
		t.Helper()
		if h.Knows(k, []byte(pin)) != want {
			t.Errorf("PIN %q with the mark %q is known: %t", pin, k.Mark, !want)
		}
	}
	knows(k, "1234", false)
	if err := sign(k, "1235"); err != ErrPIN {
		t.Fatal(err)
	}
	knows(k, "1235", false)
	if err := sign(k, "1234"); err != nil {
		t.Fatal(err)
	}
	knows(k, "1234", true)
	knows(k, "1235", false)
	knows(k, "", false)

	unmarked, marked, moved, same := k, k, k, k
	unmarked.Mark, marked.Mark, moved.ID = "", "another", "keys:b"
	same.Sealed = bytes.Clone(k.Sealed)
	knows(unmarked, "1234", false)
	knows(marked, "1234", false)
	knows(moved, "1234", false)
	knows(same, "1234", true)
	changed, err := h.Rewrap(ctx, k, []byte("1234"), []byte("1234"))
	if err != nil {
		t.Fatal(err)
	}
	knows(changed, "1234", false)

	// A use does not prolong what is remembered.
	*now = now.Add(59 * time.Second)
	if err := sign(k, "1234"); err != nil {
		t.Fatal(err)
	}
	knows(k, "1234", true)
	*now = now.Add(time.Second)
	knows(k, "1234", false)
	if !bytes.Equal(h.pins.locked[32:], make([]byte, len(h.pins.locked)-32)) {
		t.Error("a key is in memory after its end")
	}
	if err := sign(k, "1234"); err != nil {
		t.Fatal(err)
	}
	h.Close()
	knows(k, "1234", false)
	if err := sign(k, "1234"); err != nil {
		t.Errorf("a closed holder: %v", err)
	}
	knows(k, "1234", false)
}

// The memory is full: the oldest key is given up.
func TestPINMemoryIsBounded(t *testing.T) {
	h, now := remembering(t)
	m := h.pins
	name := func(i int) (d pinDigest) {
		copy(d[:], fmt.Sprint(i))
		return d
	}
	secret := func(i int) []byte { return bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 16) }
	for i := range 2*pinSlots + 7 {
		m.remember(name(i), secret(i))
	}
	for i := range 2*pinSlots + 7 {
		got := m.recall(name(i))
		if there := i >= pinSlots+7; there != (got != nil) || there && !bytes.Equal(got, secret(i)) {
			t.Fatalf("key %d: %x", i, got)
		}
	}
	*now = now.Add(time.Minute)
	m.remember(name(0), secret(1))
	if len(m.found) != 1 || m.used != 1 || !bytes.Equal(m.recall(name(0)), secret(1)) {
		t.Errorf("%d keys after the end of all but one", len(m.found))
	}
}

// A wrong PIN wipes all that is remembered of its key, whatever the mark, and nothing of others.
func TestWrongPINWipesMemory(t *testing.T) {
	h, _ := remembering(t)
	ctx := t.Context()
	su := suite.GOST2012x256
	var keys []Key
	for _, id := range []string{"keys:a", "keys:b"} {
		k, _, err := h.Generate(ctx, id, su, nil, []byte("1234"))
		if err != nil {
			t.Fatal(err)
		}
		for _, k.Mark = range []string{"one", "two"} {
			if _, err := h.Sign(ctx, k, []byte("1234"), nil); err != nil {
				t.Fatal(err)
			}
			keys = append(keys, k)
		}
	}
	if _, err := h.Sign(ctx, keys[0], []byte("4321"), nil); err != ErrPIN {
		t.Fatal(err)
	}
	for i, k := range keys {
		if want := i >= 2; h.Knows(k, []byte("1234")) != want {
			t.Errorf("the PIN of %s with the mark %s is known: %t", k.ID, k.Mark, !want)
		}
	}
	for i := range h.pins.used {
		if i < 2 && !bytes.Equal(h.pins.key(i), make([]byte, len(h.pins.key(i)))) {
			t.Errorf("slot %d still has its key", i)
		}
	}
	// The right PIN is remembered again, beside the wiped slots.
	if _, err := h.Sign(ctx, keys[0], []byte("1234"), nil); err != nil || !h.Knows(keys[0], []byte("1234")) {
		t.Errorf("the right PIN is not remembered again: %v", err)
	}
}
