// SPDX-License-Identifier: Apache-2.0

package vault

import (
	"bytes"
	"context"
	"crypto"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"tamga/gost/gost3410"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// Cheap derivations: these tests are about the code around them.
var testCost = SoftOptions{MemoryKiB: 64, Passes: 1, Parallel: 2}

func newTestHolder(t testing.TB, r *Ring) *SoftHolder {
	t.Helper()
	h, err := NewSoftHolder(r, newReader(2), testCost)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func digest(s *suite.Suite, text string) suite.Digest {
	h := s.Hash.New()
	h.Write([]byte(text))
	return suite.Digest{Hash: s.Hash, Sum: h.Sum(nil)}
}

func TestSoftHolderSigns(t *testing.T) {
	ctx := t.Context()
	h := newTestHolder(t, newTestRing(t, "2025"))
	for _, s := range suite.All() {
		for _, pin := range []string{"", "1234"} {
			t.Run(s.Name+"/"+pin, func(t *testing.T) {
				k, pub, err := h.Generate(ctx, "keys:a", s, nil, []byte(pin))
				if err != nil {
					t.Fatal(err)
				}
				if k.ID != "keys:a" || k.Suite != s || k.HasPIN != (pin != "") {
					t.Fatalf("made key %q of %s, PIN %t", k.ID, k.Suite.Name, k.HasPIN)
				}
				for n := range 4 {
					digests := make([]suite.Digest, n)
					for i := range digests {
						digests[i] = digest(s, strings.Repeat("x", i+1))
					}
					values, err := h.Sign(ctx, k, []byte(pin), digests)
					if err != nil || len(values) != n {
						t.Fatalf("%d digests: %d values, %v", n, len(values), err)
					}
					for i, v := range values {
						if err := s.Verify(pub, digests[i], v); err != nil {
							t.Errorf("value %d of %d: %v", i, n, err)
						}
					}
				}
			})
		}
	}
}

func TestSoftHolderWantsThePIN(t *testing.T) {
	ctx := t.Context()
	h := newTestHolder(t, newTestRing(t, "2025"))
	s := suite.GOST2012x256
	k, _, err := h.Generate(ctx, "keys:a", s, nil, []byte("1234"))
	if err != nil {
		t.Fatal(err)
	}
	d := []suite.Digest{digest(s, "x")}
	for _, pin := range []string{"", "1235", "12345", "123", "1234\x00", strings.Repeat("1", MaxPIN+1)} {
		if _, err := h.Sign(ctx, k, []byte(pin), d); !errors.Is(err, ErrPIN) {
			t.Errorf("PIN %q: %v", pin, err)
		}
	}
	if _, err := h.Sign(ctx, k, []byte("1234"), d); err != nil {
		t.Errorf("the right PIN: %v", err)
	}
	if _, _, err := h.Generate(ctx, "keys:a", s, nil, bytes.Repeat([]byte{'1'}, MaxPIN+1)); err == nil {
		t.Error("made a key with a PIN that is too long")
	}
	// A key without a PIN ignores a PIN.
	k, _, err = h.Generate(ctx, "keys:a", s, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Sign(ctx, k, []byte("1234"), d); err != nil {
		t.Errorf("a PIN for a key without one: %v", err)
	}
}

func TestSoftHolderRefusesWhatWasMovedOrChanged(t *testing.T) {
	ctx := t.Context()
	h := newTestHolder(t, newTestRing(t, "2025"))
	s := suite.GOST2012x256
	for _, pin := range []string{"", "1234"} {
		k, _, err := h.Generate(ctx, "keys:a", s, nil, []byte(pin))
		if err != nil {
			t.Fatal(err)
		}
		for name, change := range map[string]func(k *Key){
			"another row":        func(k *Key) { k.ID = "keys:b" },
			"another table":      func(k *Key) { k.ID = "authorities:a" },
			"no table":           func(k *Key) { k.ID = "a" },
			"a PIN pretended":    func(k *Key) { k.HasPIN = !k.HasPIN },
			"another suite":      func(k *Key) { k.Suite = suite.GOST2001 },
			"no suite":           func(k *Key) { k.Suite = nil },
			"a byte changed":     func(k *Key) { k.Sealed = bytes.Clone(k.Sealed); k.Sealed[len(k.Sealed)/2] ^= 1 },
			"cut":                func(k *Key) { k.Sealed = k.Sealed[:len(k.Sealed)-1] },
			"nothing left of it": func(k *Key) { k.Sealed = nil },
		} {
			changed := k
			change(&changed)
			hash := s
			if changed.Suite != nil {
				hash = changed.Suite
			}
			values, err := h.Sign(ctx, changed, []byte(pin), []suite.Digest{digest(hash, "x")})
			if err == nil || values != nil {
				t.Errorf("PIN %q, %s: signed", pin, name)
			}
		}
	}
}

func TestSoftHolderRefusesDigests(t *testing.T) {
	ctx := t.Context()
	h := newTestHolder(t, newTestRing(t, "2025"))
	s := suite.GOST2012x256
	k, _, err := h.Generate(ctx, "keys:a", s, nil, []byte("1234"))
	if err != nil {
		t.Fatal(err)
	}
	good := digest(s, "x")
	for name, d := range map[string]suite.Digest{
		"another hash": digest(suite.ECDSAP256, "x"),
		"no hash":      {Sum: good.Sum},
		"short":        {Hash: good.Hash, Sum: good.Sum[:31]},
		"empty":        {Hash: good.Hash},
	} {
		// With a wrong PIN, so that an answer about the PIN would show that it was
		// tried first.
		_, err := h.Sign(ctx, k, []byte("wrong"), []suite.Digest{good, d})
		if err == nil || errors.Is(err, ErrPIN) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSoftHolderRewraps(t *testing.T) {
	ctx := t.Context()
	old := newTestHolder(t, newTestRing(t, "2025"))
	both := newTestHolder(t, newTestRing(t, "2026", "2025"))
	later := newTestHolder(t, newTestRing(t, "2026"))
	s := suite.GOST2012x256
	d := []suite.Digest{digest(s, "x")}
	k, pub, err := old.Generate(ctx, "keys:a", s, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ from, to string }{{"", "1"}, {"1", "2"}, {"2", ""}, {"", "3"}} {
		if step.from != "" {
			if _, err := both.Rewrap(ctx, k, []byte("wrong"), []byte(step.to)); !errors.Is(err, ErrPIN) {
				t.Fatalf("from %q with a wrong PIN: %v", step.from, err)
			}
		}
		if k, err = both.Rewrap(ctx, k, []byte(step.from), []byte(step.to)); err != nil {
			t.Fatalf("from %q to %q: %v", step.from, step.to, err)
		}
		values, err := later.Sign(ctx, k, []byte(step.to), d)
		if err != nil {
			t.Fatalf("after %q: %v", step.to, err)
		}
		if err := s.Verify(pub, d[0], values[0]); err != nil {
			t.Fatalf("after %q: %v", step.to, err)
		}
	}

	// The master key changes without the PIN.
	k, pub, err = old.Generate(ctx, "keys:b", s, nil, []byte("1234"))
	if err != nil {
		t.Fatal(err)
	}
	if k, err = both.Reseal(k); err != nil {
		t.Fatal(err)
	}
	values, err := later.Sign(ctx, k, []byte("1234"), d)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(pub, d[0], values[0]); err != nil {
		t.Error(err)
	}
}

func TestSoftHolderImports(t *testing.T) {
	ctx := t.Context()
	h := newTestHolder(t, newTestRing(t, "2025"))
	// The older standard's keys have the shape of the newer one's: the suite that
	// was named stays with the key.
	for _, s := range []*suite.Suite{suite.GOST2001, suite.GOST2012x256, suite.ECDSAP256} {
		key, err := s.Generate(newReader(3))
		if err != nil {
			t.Fatal(err)
		}
		k, pub, err := h.Import(ctx, "keys:a", s, key, []byte("1"))
		if err != nil {
			t.Fatal(err)
		}
		d := digest(s, "x")
		values, err := h.Sign(ctx, k, []byte("1"), []suite.Digest{d})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Verify(key.Public(), d, values[0]); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if err := s.Verify(pub, d, values[0]); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		// The caller's key is still the caller's.
		if _, err := s.Sign(newReader(4), key, d); err != nil {
			t.Errorf("%s: the imported key was wiped: %v", s.Name, err)
		}
	}
	key, err := suite.ECDSAP256.Generate(newReader(3))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Import(ctx, "keys:a", suite.GOST2012x256, key, nil); err == nil {
		t.Error("took an ECDSA key for a GOST one")
	}
}

// inner seals what a holder finds inside the outer seal.
func inner(t testing.TB, r *Ring, id string, content []byte) []byte {
	t.Helper()
	place, err := placeOf(id)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := r.Seal(place, content)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func TestCostIsBoundedOnReading(t *testing.T) {
	r := newTestRing(t, "2025")
	h := newTestHolder(t, r)
	for _, c := range []pinCost{
		{maxMemoryKiB + 1, 1, 1}, {0xffffffff, 1, 1}, {minMemoryKiB - 1, 1, 1}, {0, 1, 1},
		{64, 0, 1}, {64, maxPasses + 1, 1}, {64, 0xffffffff, 1},
		{64, 1, 0}, {64, 1, maxLanes + 1},
	} {
		content := []byte{innerPIN}
		content = binary.BigEndian.AppendUint32(content, c.memoryKiB)
		content = binary.BigEndian.AppendUint32(content, c.passes)
		content = append(content, c.lanes)
		content = append(content, make([]byte, saltSize+nonceSize+tagSize+50)...)
		k := Key{ID: "keys:a", Suite: suite.GOST2012x256, HasPIN: true, Sealed: inner(t, r, "keys:a", content)}
		_, err := h.Sign(t.Context(), k, []byte("1"), nil)
		if err == nil || errors.Is(err, ErrPIN) {
			t.Errorf("cost %+v: %v", c, err)
		}
	}
	for _, o := range []SoftOptions{{MemoryKiB: maxMemoryKiB + 1}, {MemoryKiB: 1}, {Passes: maxPasses + 1}, {Parallel: -1}} {
		if _, err := NewSoftHolder(r, newReader(1), o); err == nil {
			t.Errorf("a holder was made with %+v", o)
		}
	}
}

// TestDerivationsWaitForMemory fills the memory and sees the next one give up
// with its context, without an answer about the PIN.
func TestDerivationsWaitForMemory(t *testing.T) {
	ctx := t.Context()
	h := newTestHolder(t, newTestRing(t, "2025"))
	s := suite.GOST2012x256
	k, _, err := h.Generate(ctx, "keys:a", s, nil, []byte("1234"))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.memory.Acquire(ctx, h.capacity); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	for _, pin := range []string{"1234", "wrong"} {
		_, err = h.Sign(gone, k, []byte(pin), []suite.Digest{digest(s, "x")})
		if !errors.Is(err, context.Canceled) || errors.Is(err, ErrPIN) {
			t.Errorf("PIN %q: %v", pin, err)
		}
	}
	h.memory.Release(h.capacity)

	// A record that costs more than all there is now takes all of it.
	costly, err := NewSoftHolder(h.ring, newReader(5), SoftOptions{MemoryKiB: 1024, Passes: 1, Parallel: 1})
	if err != nil {
		t.Fatal(err)
	}
	k, _, err = costly.Generate(ctx, "keys:a", s, nil, []byte("1234"))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := h.Sign(ctx, k, []byte("1234"), []suite.Digest{digest(s, "x")}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// FuzzSealedKey opens records that only a writer with the master key could have made. The
// PIN is empty so that no derivation runs.
func FuzzSealedKey(f *testing.F) {
	r := newTestRing(f, "2025")
	h := newTestHolder(f, r)
	s := suite.GOST2012x256
	key, err := s.Generate(newReader(3))
	if err != nil {
		f.Fatal(err)
	}
	pkcs8, err := x509gost.MarshalPrivateKey(key, s)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append([]byte{innerPlain}, pkcs8...), false)
	f.Add(append([]byte{innerPIN}, make([]byte, 120)...), true)
	f.Add([]byte{innerPIN}, true)
	f.Add([]byte{7}, false)
	d := []suite.Digest{digest(s, "x")}
	f.Fuzz(func(t *testing.T, content []byte, hasPIN bool) {
		if len(content) == 0 || len(content) > maxPlaintext {
			return
		}
		k := Key{ID: "keys:a", Suite: s, HasPIN: hasPIN, Sealed: inner(t, r, "keys:a", content)}
		values, err := h.Sign(t.Context(), k, nil, d)
		if (err == nil) != (len(values) == 1) {
			t.Errorf("%d values and %v", len(values), err)
		}
		if hasPIN && err == nil {
			t.Error("a key with a PIN signed without it")
		}
	})
}

// BenchmarkSign is the cost of a sealed key: "holder" opens it every time,
// "open key" has it in memory.
func BenchmarkSign(b *testing.B) {
	h := newTestHolder(b, newTestRing(b, "2025"))
	for _, s := range suite.All() {
		key, err := s.Generate(newReader(3))
		if err != nil {
			b.Fatal(err)
		}
		k, _, err := h.Import(b.Context(), "keys:a", s, key, nil)
		if err != nil {
			b.Fatal(err)
		}
		for _, n := range []int{1, 8} {
			digests := make([]suite.Digest, n)
			for i := range digests {
				digests[i] = digest(s, strings.Repeat("x", i+1))
			}
			name := s.Name + "/1"
			if n > 1 {
				name = s.Name + "/8 digests"
			}
			b.Run(name+"/holder", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := h.Sign(b.Context(), k, nil, digests); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(name+"/open key", func(b *testing.B) {
				rand := newReader(4)
				b.ReportAllocs()
				for b.Loop() {
					for _, d := range digests {
						if _, err := s.Sign(rand, key, d); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}

// BenchmarkPIN is one derivation at the default cost.
func BenchmarkPIN(b *testing.B) {
	h, err := NewSoftHolder(newTestRing(b, "2025"), newReader(2), SoftOptions{})
	if err != nil {
		b.Fatal(err)
	}
	s := suite.GOST2012x256
	k, _, err := h.Generate(b.Context(), "keys:a", s, nil, []byte("1234"))
	if err != nil {
		b.Fatal(err)
	}
	d := []suite.Digest{digest(s, "x")}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Sign(b.Context(), k, []byte("1234"), d); err != nil {
			b.Fatal(err)
		}
	}
}

// TestSignaturesTogether: callers who come at the same moment get signatures of their own keys. If
// the randomness fails, no caller gets one.
func TestSignaturesTogether(t *testing.T) {
	h := newTestHolder(t, newTestRing(t, "2025"))
	suites := []*suite.Suite{suite.GOST2012x256, suite.GOST2012x512, suite.GOST2001}
	type signer struct {
		key    *gost3410.PrivateKey
		public crypto.PublicKey
		suite  *suite.Suite
	}
	var signers []signer
	for i := range signsMost {
		s := suites[i%len(suites)]
		key, err := s.Generate(h.rand)
		if err != nil {
			t.Fatal(err)
		}
		signers = append(signers, signer{key.(*gost3410.PrivateKey), key.Public(), s})
	}
	asked := func(n int) (list []*signature) {
		for i, s := range signers[:n] {
			list = append(list, &signature{SignItem: gost3410.SignItem{Key: s.key, Digest: digest(s.suite, strings.Repeat("x", i+1)).Sum}})
		}
		return list
	}
	for n := 1; n <= signsMost; n++ {
		list := asked(n)
		h.sign(list)
		for i, s := range list {
			of := signers[i].suite
			if s.err != nil || of.Verify(signers[i].public, suite.Digest{Hash: of.Hash, Sum: s.Digest}, s.value) != nil {
				t.Errorf("signature %d of %d: %v", i, n, s.err)
			}
		}
	}
	// A digest that cannot be signed fails alone.
	list := asked(signsMost)
	list[3].Digest = list[3].Digest[1:]
	h.sign(list)
	for i, s := range list {
		if (s.err != nil) != (i == 3) || (s.value == nil) != (i == 3) {
			t.Errorf("signature %d beside one that fails: %d bytes, %v", i, len(s.value), s.err)
		}
	}
	h.rand = iotest.ErrReader(errors.New("no randomness"))
	for _, n := range []int{1, signsMost} {
		list := asked(n)
		h.sign(list)
		for i, s := range list {
			if s.err == nil || s.value != nil {
				t.Errorf("signature %d of %d without randomness: %d bytes, %v", i, n, len(s.value), s.err)
			}
		}
	}
}

// TestSignAtOnce: goroutines that sign at once with one holder get right values.
func TestSignAtOnce(t *testing.T) {
	h := newTestHolder(t, newTestRing(t, "2025"))
	var all sync.WaitGroup
	for i := range 2 * signsMost {
		s := []*suite.Suite{suite.GOST2012x256, suite.GOST2012x512}[i%2]
		k, public, err := h.Generate(t.Context(), "keys:a", s, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			for n := range 10 {
				d := digest(s, strings.Repeat("x", n+1))
				values, err := h.Sign(t.Context(), k, nil, []suite.Digest{d})
				if err != nil || len(values) != 1 || s.Verify(public, d, values[0]) != nil {
					t.Errorf("caller %d: %d values, %v", i, len(values), err)
				}
			}
		})
	}
	all.Wait()
}
