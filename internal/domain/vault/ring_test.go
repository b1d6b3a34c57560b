// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// reader is a repeatable source for tests, safe for concurrent use.
type reader struct {
	mu  sync.Mutex
	src *rand.ChaCha8
}

func (r *reader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.src.Read(p)
}

func newReader(seed byte) io.Reader { return &reader{src: rand.NewChaCha8([32]byte{seed})} }

var testMaster = map[string][]byte{
	"2025": bytes.Repeat([]byte{0x25}, MasterKeySize),
	"2026": bytes.Repeat([]byte{0x26}, MasterKeySize),
}

func newTestRing(t testing.TB, active string, ids ...string) *Ring {
	t.Helper()
	keys := map[string][]byte{}
	for _, id := range append(ids, active) {
		keys[id] = testMaster[id]
	}
	r, err := NewRing(active, keys, newReader(1))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var testPlace = Place{Purpose: "seed", Table: "tokens", Row: "17", Column: "sealed"}

func TestRingSealsAndOpens(t *testing.T) {
	r := newTestRing(t, "2025")
	for _, n := range []int{1, 15, 16, 17, 1000, maxPlaintext} {
		plain := bytes.Repeat([]byte{0x5a}, n)
		a, err := r.Seal(testPlace, plain)
		if err != nil {
			t.Fatal(err)
		}
		b, err := r.Seal(testPlace, plain)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(a, b) {
			t.Errorf("%d bytes: two seals of one record are equal: the nonce is not fresh", n)
		}
		if n >= 16 && bytes.Contains(a, plain) {
			t.Errorf("%d bytes: the sealed record shows its content", n)
		}
		for _, sealed := range [][]byte{a, b} {
			got, err := r.Open(testPlace, sealed)
			if err != nil || !bytes.Equal(got, plain) {
				t.Errorf("%d bytes: opened %d bytes, %v", n, len(got), err)
			}
		}
	}
	for _, n := range []int{0, maxPlaintext + 1} {
		if _, err := r.Seal(testPlace, make([]byte, n)); err == nil {
			t.Errorf("a record of %d bytes was sealed", n)
		}
	}
}

func TestRingRefusesChangedRecords(t *testing.T) {
	r := newTestRing(t, "2025", "2026")
	sealed, err := r.Seal(testPlace, []byte("a secret"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range sealed {
		for bit := range 8 {
			changed := bytes.Clone(sealed)
			changed[i] ^= 1 << bit
			if _, err := r.Open(testPlace, changed); err == nil {
				t.Fatalf("byte %d bit %d changed: the record opened", i, bit)
			}
		}
	}
	for n := range sealed {
		if _, err := r.Open(testPlace, sealed[:n]); !errors.Is(err, ErrSealed) {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
	if _, err := r.Open(testPlace, append(bytes.Clone(sealed), 0)); !errors.Is(err, ErrSealed) {
		t.Errorf("one byte more: %v", err)
	}
	// The claim to be under another key of the ring is refused too.
	other := append([]byte{sealVersion, 4, '2', '0', '2', '6'}, sealed[6:]...)
	if _, err := r.Open(testPlace, other); !errors.Is(err, ErrSealed) {
		t.Errorf("under another key id: %v", err)
	}
}

func TestRingBindsThePlace(t *testing.T) {
	r := newTestRing(t, "2025")
	places := []Place{
		{"ab", "c", "d", "e"},
		{"a", "bc", "d", "e"}, // the same letters, divided in another way
		{"ab", "cd", "e", "f"},
		{"ab", "c", "de", "f"},
		{"ab", "c", "d", "E"},
		{"ab", "c", "D", "e"},
		{"ab", "C", "d", "e"},
		{"AB", "c", "d", "e"},
	}
	for i, from := range places {
		sealed, err := r.Seal(from, []byte("a secret"))
		if err != nil {
			t.Fatal(err)
		}
		for j, to := range places {
			_, err := r.Open(to, sealed)
			if i == j && err != nil || i != j && !errors.Is(err, ErrSealed) {
				t.Errorf("from %v to %v: %v", from, to, err)
			}
		}
	}
	for _, p := range []Place{{}, {"", "b", "c", "d"}, {"a", "", "c", "d"}, {"a", "b", "", "d"}, {"a", "b", "c", ""}} {
		if _, err := r.Seal(p, []byte{1}); err == nil {
			t.Errorf("sealed for the incomplete place %v", p)
		}
		if _, err := r.Open(p, make([]byte, 100)); err == nil || errors.Is(err, ErrSealed) {
			t.Errorf("opening for the incomplete place %v: %v", p, err)
		}
	}
}

func TestRingChangesItsKey(t *testing.T) {
	old, both, later := newTestRing(t, "2025"), newTestRing(t, "2026", "2025"), newTestRing(t, "2026")
	sealed, err := old.Seal(testPlace, []byte("a secret"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := both.Open(testPlace, sealed); err != nil || string(got) != "a secret" {
		t.Fatalf("the old key no longer opens: %q, %v", got, err)
	}
	_, err = later.Open(testPlace, sealed)
	if err == nil || !strings.Contains(err.Error(), `"2025"`) || errors.Is(err, ErrSealed) {
		t.Errorf("a missing master key is not named: %v", err)
	}
	moved, err := both.Reseal(testPlace, sealed)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := later.Open(testPlace, moved); err != nil || string(got) != "a secret" {
		t.Errorf("resealed: %q, %v", got, err)
	}
	if id, err := KeyID(moved); id != "2026" || err != nil {
		t.Errorf("resealed under %q, %v", id, err)
	}
	again, err := both.Reseal(testPlace, moved)
	if err != nil || !bytes.Equal(again, moved) {
		t.Errorf("a record under the active key was changed: %v", err)
	}
	moved[len(moved)-1] ^= 1
	if _, err := both.Reseal(testPlace, moved); !errors.Is(err, ErrSealed) {
		t.Errorf("a damaged record was resealed: %v", err)
	}
}

func TestNewRingRefuses(t *testing.T) {
	key := testMaster["2025"]
	for name, test := range map[string]struct {
		active string
		keys   map[string][]byte
		rand   io.Reader
	}{
		"no keys":         {"a", nil, newReader(1)},
		"active missing":  {"b", map[string][]byte{"a": key}, newReader(1)},
		"no active":       {"", map[string][]byte{"a": key}, newReader(1)},
		"empty id":        {"", map[string][]byte{"": key}, newReader(1)},
		"id with a space": {"a b", map[string][]byte{"a b": key}, newReader(1)},
		"long id":         {strings.Repeat("a", 65), map[string][]byte{strings.Repeat("a", 65): key}, newReader(1)},
		"short key":       {"a", map[string][]byte{"a": key[:31]}, newReader(1)},
		"long key":        {"a", map[string][]byte{"a": append(bytes.Clone(key), 1)}, newReader(1)},
		"no randomness":   {"a", map[string][]byte{"a": key}, nil},
	} {
		if _, err := NewRing(test.active, test.keys, test.rand); err == nil {
			t.Errorf("%s: a ring was made", name)
		}
	}
}

// TestNothingPrintsKeys formats values that hold secrets with every verb a careless log
// call could use.
func TestNothingPrintsKeys(t *testing.T) {
	r := newTestRing(t, "2025")
	h := newTestHolder(t, r)
	for _, v := range []any{r, h, struct{ R *Ring }{r}, []*Ring{r}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			text := fmt.Sprintf(verb, v)
			if len(text) > 200 || strings.Contains(text, "37 37 37") || strings.Contains(text, "2525") || strings.Contains(text, "0x25, 0x25") {
				t.Errorf("%s of %T prints %d characters: %.80s", verb, v, len(text), text)
			}
		}
	}
}

func TestSealNeedsRandomness(t *testing.T) {
	r, err := NewRing("2025", testMaster, strings.NewReader("too short"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Seal(testPlace, []byte("a secret")); err == nil {
		t.Error("sealed without a nonce")
	}
}

func FuzzOpen(f *testing.F) {
	r := newTestRing(f, "2025", "2026")
	sealed, err := r.Seal(testPlace, []byte("a secret"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed)
	f.Add(sealed[:40])
	f.Add([]byte{1, 255})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		plain, err := r.Open(testPlace, data)
		if err == nil && !bytes.Equal(data, sealed) {
			t.Errorf("a forged record opened to %q", plain)
		}
		KeyID(data)
	})
}

func BenchmarkSeal(b *testing.B) {
	r, plain := newTestRing(b, "2025"), make([]byte, 100)
	b.SetBytes(int64(len(plain)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Seal(testPlace, plain); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	r := newTestRing(b, "2025")
	sealed, err := r.Seal(testPlace, make([]byte, 100))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(100)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Open(testPlace, sealed); err != nil {
			b.Fatal(err)
		}
	}
}
