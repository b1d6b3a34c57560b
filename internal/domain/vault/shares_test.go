// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func split(t *testing.T, seed byte, id string, key []byte, shares, threshold int) []string {
	t.Helper()
	texts, err := Split(newReader(seed), id, key, shares, threshold)
	if err != nil || len(texts) != shares {
		t.Fatalf("%d shares, %v", len(texts), err)
	}
	return texts
}

func join(texts ...string) (string, []byte, error) {
	var list []*Share
	for _, text := range texts {
		s, err := ParseShare(text)
		if err != nil {
			return "", nil, err
		}
		list = append(list, s)
	}
	return Join(list)
}

// TestSharesJoin checks that every quorum recovers the key, and that no smaller set does.
func TestSharesJoin(t *testing.T) {
	for _, key := range [][]byte{testMaster["2025"], bytes.Repeat([]byte{0xff}, MasterKeySize), make([]byte, MasterKeySize)} {
		texts := split(t, 7, "2025", key, 5, 3)
		for set := range 1 << len(texts) {
			var some []string
			for i, text := range texts {
				if set>>i&1 == 1 {
					some = append(some, text)
				}
			}
			id, got, err := join(some...)
			if len(some) < 3 {
				if err == nil {
					t.Errorf("%d shares recover the key", len(some))
				}
				continue
			}
			if err != nil || id != "2025" || !bytes.Equal(got, key) {
				t.Errorf("shares %05b: %q %x, %v", set, id, got, err)
			}
		}
		// Two shares and one of them again are two shares.
		if _, _, err := join(texts[0], texts[1], texts[0]); err == nil {
			t.Error("a share counts twice")
		}
		// A recovered value from two shares of a threshold of three must not pass, even if the
		// shares say that two are enough.
		a, b := must(t, texts[0]), must(t, texts[1])
		a.Threshold, b.Threshold = 2, 2
		if _, _, err := Join([]*Share{a, b}); err == nil {
			t.Error("two shares make the key")
		}
	}
}

func must(t *testing.T, text string) *Share {
	t.Helper()
	s, err := ParseShare(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSharesTyped checks that a share can be typed carelessly, and that every wrong character is found.
func TestSharesTyped(t *testing.T) {
	texts := split(t, 8, "main.key", testMaster["2026"], 3, 2)
	careless := strings.ToLower(strings.ReplaceAll(texts[0], "-", " "))
	if _, key, err := join(careless, " "+texts[2]+"\t"); err != nil || !bytes.Equal(key, testMaster["2026"]) {
		t.Errorf("typed carelessly: %v", err)
	}
	for i, c := range texts[1] {
		other := 'A'
		if c == 'A' {
			other = 'C'
		}
		if c == '-' {
			continue
		}
		wrong := texts[1][:i] + string(other) + texts[1][i+1:]
		s, err := ParseShare(wrong)
		// The last character may have bits that mean nothing.
		if err == nil && !bytes.Equal(s.value, must(t, texts[1]).value) {
			t.Errorf("a wrong character at %d is not found", i)
		}
		if err != nil && strings.Contains(err.Error(), texts[1][7:12]) {
			t.Errorf("the error quotes the share: %v", err)
		}
	}
	for _, text := range []string{"", "TAMGA1", texts[0][:40], texts[0] + "AAAAA", "TAMGA2" + texts[0][6:], strings.Repeat("é", 100)} {
		if _, err := ParseShare(text); err == nil {
			t.Errorf("%.20q is a share", text)
		}
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		if got := fmt.Sprintf(verb, must(t, texts[0])); got != `share 1 of 3 of master key "main.key"` {
			t.Errorf("%s prints %s", verb, got)
		}
	}
}

// TestSharesMixed checks that shares of different sets do not make a key, even of the same key.
func TestSharesMixed(t *testing.T) {
	one, two := split(t, 1, "1", testMaster["2025"], 3, 2), split(t, 2, "1", testMaster["2025"], 3, 2)
	if _, _, err := join(one[0], two[1]); err == nil || !strings.Contains(err.Error(), "different sets") {
		t.Errorf("%v", err)
	}
	for _, c := range []struct{ shares, threshold int }{{1, 1}, {3, 1}, {2, 3}, {MaxShares + 1, 2}, {-1, -1}} {
		if _, err := Split(newReader(1), "1", testMaster["2025"], c.shares, c.threshold); err == nil {
			t.Errorf("%d shares with a threshold of %d", c.shares, c.threshold)
		}
	}
}
