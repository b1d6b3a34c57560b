// SPDX-License-Identifier: Apache-2.0

package password

import (
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// chance returns a repeatable source of random bytes.
func chance() io.Reader { return rand.NewChaCha8([32]byte{1}) }

func TestGeneratedPasswords(t *testing.T) {
	const look, n = "0Oo1lIi|", 20_000
	source := chance()
	count := map[rune]int{}
	seen := map[string]bool{}
	length := 0
	for range n {
		p, err := Generate(source)
		if err != nil {
			t.Fatal(err)
		}
		if seen[p] || len(p) < MinLength || strings.ContainsAny(p, look) || p != strings.ToLower(p) {
			t.Fatalf("%q: repeated, too short, or has characters that look alike", p)
		}
		seen[p], length = true, len(p)
		for _, c := range p {
			count[c]++
		}
	}
	if bits := float64(length) * math.Log2(float64(len(count))); bits < 64.4 {
		t.Errorf("%d characters of an alphabet of %d have %.1f bits of entropy, want 64.4", length, len(count), bits)
	}
	// Chi-squared over the characters: a value above 70 with 30 degrees of freedom has a
	// probability of 1/20000. The source is always the same.
	expected := float64(n*length) / float64(len(count))
	sum := 0.0
	for _, c := range count {
		sum += (float64(c) - expected) * (float64(c) - expected) / expected
	}
	if len(count) != 31 || sum > 70 {
		t.Errorf("alphabet of %d characters, chi-squared %.1f; want 31 and at most 70", len(count), sum)
	}
	if _, err := Generate(strings.NewReader("short")); err == nil {
		t.Error("Generate returned no error for a source that is too short")
	}
	same := slices.Repeat([]byte{255}, 100) // 255 is above fair, so Generate draws again
	if p, err := Generate(strings.NewReader(string(same))); err == nil {
		t.Errorf("Generate returned %q from bytes that it must draw again", p)
	}
}
