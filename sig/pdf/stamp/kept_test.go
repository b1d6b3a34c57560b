// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"bytes"
	"fmt"
	"testing"
)

// TestKept: the cache stays within its limits, removes the oldest first, and returns what
// was put.
func TestKept(t *testing.T) {
	k := &keeper{most: 10000, images: map[imageKey]*graphic{}}
	key := func(n int) imageKey { return keyOf(fmt.Sprint(n), ground{}) }
	sized := func(n int) *graphic { return &graphic{objects: []Object{{Stream: make([]byte, n)}}} }
	for i := range 50 {
		k.put(key(i), sized(1500)) // 2000 with the rest
		k.put(key(i), sized(1500))
		if k.bytes > k.most || k.bytes != 2000*len(k.images) || len(k.order) != len(k.images) {
			t.Fatalf("%d bytes, %d images, %d in order", k.bytes, len(k.images), len(k.order))
		}
	}
	for i := range 50 {
		if got := k.get(key(i)) != nil; got != (i >= 45) {
			t.Errorf("image %d is there: %v", i, got)
		}
	}
	if k.put(key(99), sized(2500)); k.get(key(99)) != nil {
		t.Error("an image of more than a quarter was kept")
	}
	if keyOf("a", ground{}) == keyOf("a", ground{opaque: true}) || keyOf("a", ground{}) == keyOf("b", ground{}) {
		t.Error("different images have one key")
	}
}

// TestKeptApart: changes by a caller to the bytes of a stamp do not affect the next one.
func TestKeptApart(t *testing.T) {
	first := render(t, lined(), a4)
	last := len(first.Objects) - 1
	want := bytes.Clone(first.Objects[last].Stream)
	clear(first.Objects[last].Stream)
	if got := render(t, lined(), a4).Objects[last].Stream; !bytes.Equal(got, want) {
		t.Error("the image of the second stamp is that which was changed")
	}
}
