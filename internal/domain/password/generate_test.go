package password

import (
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// chance is a source of randomness that can be repeated.
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
			t.Fatalf("%q: seen before, too short, or with characters that look alike", p)
		}
		seen[p], length = true, len(p)
		for _, c := range p {
			count[c]++
		}
	}
	if bits := float64(length) * math.Log2(float64(len(count))); bits < 64.4 {
		t.Errorf("%d characters of %d: %.1f bits, and 64.4 are stated", length, len(count), bits)
	}
	// Chi-squared over the characters: beyond 70 with 30 degrees of freedom is one
	// chance in twenty thousand, and the source is always the same.
	expected := float64(n*length) / float64(len(count))
	sum := 0.0
	for _, c := range count {
		sum += (float64(c) - expected) * (float64(c) - expected) / expected
	}
	if len(count) != 31 || sum > 70 {
		t.Errorf("%d characters, chi-squared %.1f", len(count), sum)
	}
	if _, err := Generate(strings.NewReader("short")); err == nil {
		t.Error("a password without enough randomness")
	}
	same := slices.Repeat([]byte{255}, 100) // all of them unfair: none is taken
	if p, err := Generate(strings.NewReader(string(same))); err == nil {
		t.Errorf("%q of octets that favour its characters", p)
	}
}
