// SPDX-License-Identifier: Apache-2.0

package password

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"golang.org/x/crypto/argon2"
)

// cheap is a cost for tests.
var cheap = Cost{MemoryKiB: 64, Passes: 1, Lanes: 1}

func TestPasswordEncoding(t *testing.T) {
	p, err := New(cheap, 1024, DefaultLimits(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	first, err := p.Encode(t.Context(), "correct horse й")
	if err != nil {
		t.Fatal(err)
	}
	second, err := p.Encode(t.Context(), "correct horse й")
	if err != nil {
		t.Fatal(err)
	}
	if first == second {
		t.Error("two encodings of one password are equal, want different salts")
	}
	if !strings.HasPrefix(first, "$argon2id$v=19$m=64,t=1,p=1$") || strings.Contains(first, "horse") {
		t.Errorf("encoded as %q", first)
	}
	e, err := parseEncoded(first, 1024)
	if err != nil {
		t.Fatal(err)
	}
	if e.String() != first {
		t.Errorf("parseEncoded(%q) is written as %q", first, e)
	}
	for password, want := range map[string]bool{
		"correct horse й":       true,
		"correct horse и\u0306": true, // the same letter from another keyboard
		"correct horse и":       false,
		"Correct horse й":       false,
		"correct horse й ":      false,
		"":                      false,
	} {
		if got := e.matches(password); got != want {
			t.Errorf("%q matches: %v, want %v", password, got, want)
		}
	}
	want := argon2.IDKey([]byte("correct horse й"), e.salt, 1, 64, 1, 32)
	if !bytes.Equal(e.hash, want) {
		t.Errorf("hash %s, want Argon2id's %s", hex.EncodeToString(e.hash), hex.EncodeToString(want))
	}
}

// parseEncoded refuses malformed stored passwords and costs out of bounds.
func TestPasswordBounds(t *testing.T) {
	const salt, hash = "c29tZXNhbHQ", "RdescudvJCsgt3ub+b27dR2lV0y0BcKCH6gzqLmYhCQ"
	good := "$argon2id$v=19$m=64,t=1,p=1$" + salt + "$" + hash
	if _, err := parseEncoded(good, 1024); err != nil {
		t.Fatalf("%q: %v", good, err)
	}
	replace := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	for name, s := range map[string]string{
		"empty":                 "",
		"other function":        replace("argon2id", "argon2i"),
		"other version":         replace("v=19", "v=16"),
		"memory over budget":    replace("m=64", "m=1025"),
		"hostile memory":        replace("m=64", "m=4294967295"),
		"memory overflows":      replace("m=64", "m=4294967360"),
		"no memory":             replace("m=64", "m=0"),
		"memory below lanes":    replace("p=1", "p=9"),
		"no passes":             replace("t=1", "t=0"),
		"hostile passes":        replace("t=1", "t=4294967295"),
		"no lanes":              replace("p=1", "p=0"),
		"lanes overflow":        replace("p=1", "p=257"),
		"negative":              replace("t=1", "t=-1"),
		"order":                 replace("m=64,t=1", "t=1,m=64"),
		"extra parameter":       replace("p=1", "p=1,x=1"),
		"short salt":            replace(salt, "c29tZQ"),
		"long salt":             replace(salt, strings.Repeat("AAAA", 30)),
		"empty hash":            replace(hash, ""),
		"short hash":            replace(hash, "AAAA"),
		"long hash":             replace(hash, strings.Repeat("AAAA", 30)),
		"padding":               replace(salt, salt+"="),
		"not Base64":            replace(salt, "%%%%%%%%%%%%"),
		"trailing bits":         replace(salt, "c29tZXNhbHR"),
		"extra field":           good + "$",
		"missing field":         strings.TrimSuffix(good, "$"+hash),
		"too long":              good + strings.Repeat("A", 600),
		"text before the first": "x" + good,
	} {
		_, err := parseEncoded(s, 1024)
		if !errors.Is(err, ErrEncoding) {
			t.Errorf("%s: %v, want %v", name, err, ErrEncoding)
		}
	}
}

func TestCostIsChecked(t *testing.T) {
	for name, c := range map[string]Cost{
		"zero":     {},
		"memory":   {MemoryKiB: 2048, Passes: 1, Lanes: 1},
		"too few":  {MemoryKiB: 15, Passes: 1, Lanes: 2},
		"passes":   {MemoryKiB: 64, Passes: 65, Lanes: 1},
		"lanes":    {MemoryKiB: 1024, Passes: 1, Lanes: 33},
		"enormous": {MemoryKiB: 1<<20 + 1, Passes: 1, Lanes: 1},
	} {
		if _, err := New(c, 1024, DefaultLimits(), rand.Reader); err == nil {
			t.Errorf("%s: %+v was accepted", name, c)
		}
	}
	if _, err := New(DefaultCost, 1<<20, DefaultLimits(), rand.Reader); err != nil {
		t.Errorf("the default: %v", err)
	}
}

// Derivations wait for memory until their context ends.
func TestPasswordMemoryIsBounded(t *testing.T) {
	p, err := New(cheap, 100, DefaultLimits(), rand.Reader) // memory for one derivation
	if err != nil {
		t.Fatal(err)
	}
	release, err := p.admit(t.Context(), Visitor{}, p.dummy)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Encode(ctx, "password"); !errors.Is(err, context.Canceled) {
		t.Errorf("while the memory is taken: %v, want context.Canceled", err)
	}
	release()
	if _, err := p.Encode(t.Context(), "password"); err != nil {
		t.Errorf("after the memory was released: %v", err)
	}
	if _, err := p.Encode(t.Context(), "password"); err != nil {
		t.Errorf("Encode did not release its memory: %v", err)
	}
}

func FuzzParseEncoded(f *testing.F) {
	f.Add("$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$RdescudvJCsgt3ub+b27dR2lV0y0BcKCH6gzqLmYhCQ")
	f.Add("$argon2id$v=19$m=4294967295,t=4294967295,p=255$$")
	f.Fuzz(func(t *testing.T, s string) {
		e, err := parseEncoded(s, 1024)
		if err != nil {
			return
		}
		if e.cost.check(1024) != nil {
			t.Errorf("%q: cost %+v is out of bounds", s, e.cost)
		}
		again, err := parseEncoded(e.String(), 1024)
		if err != nil || again.String() != e.String() {
			t.Errorf("%q is written as %q, which reads as %q, %v", s, e, again, err)
		}
	})
}
