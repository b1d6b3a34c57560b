// SPDX-License-Identifier: Apache-2.0

package gost3410

import (
	"bytes"
	"crypto"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tamga/gost/streebog"
	"tamga/internal/testsize"
)

var _ crypto.Signer = (*PrivateKey)(nil)

// seeded returns a random source that is the same on every run.
func seeded(n byte) io.Reader { return rand.NewChaCha8([32]byte{n}) }

// eachSet runs a test on every set with a key and a digest.
func eachSet(t *testing.T, f func(t *testing.T, k *PrivateKey, digest []byte)) {
	for i, s := range Sets() {
		t.Run(s.Name(), func(t *testing.T) {
			k, err := GenerateKey(s, seeded(byte(i)))
			if err != nil {
				t.Fatal(err)
			}
			digest := make([]byte, s.Size())
			io.ReadFull(seeded(100), digest)
			f(t, k, digest)
		})
	}
}

func orderOf(s *Set) *big.Int {
	q := s.curve.Order().Value()
	b := make([]byte, s.Size())
	putBigEndian(b, &q)
	return new(big.Int).SetBytes(b)
}

func TestSignAndVerify(t *testing.T) {
	eachSet(t, func(t *testing.T, k *PrivateKey, digest []byte) {
		size := k.Set().Size()
		sign := func(digest []byte) []byte {
			signature, err := k.Sign(nil, digest, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(signature) != 2*size {
				t.Fatalf("the signature has %d bytes", len(signature))
			}
			return signature
		}
		signature := sign(digest)
		public := k.PublicKey()
		if !public.Verify(digest, signature) {
			t.Fatal("a valid signature does not verify")
		}
		// A round trip through bytes.
		again, err := NewPublicKey(k.Set(), public.Bytes())
		if err != nil || !again.Verify(digest, signature) || !again.Equal(public) {
			t.Fatalf("the public key read back: %v", err)
		}
		d, err := NewPrivateKey(k.Set(), k.Bytes())
		if err != nil || !d.Equal(k) || !d.PublicKey().Equal(public) {
			t.Fatalf("the private key read back: %v", err)
		}

		// One flipped bit in every byte of the signature and of the digest.
		for i := range signature {
			if testsize.Of() < testsize.Whole && i%7 != 0 {
				continue
			}
			broken := slices.Clone(signature)
			broken[i] ^= 1 << (i % 8)
			if public.Verify(digest, broken) {
				t.Errorf("byte %d of the signature changed, and it verifies", i)
			}
		}
		for i := range digest {
			if testsize.Of() < testsize.Whole && i%7 != 0 {
				continue
			}
			broken := slices.Clone(digest)
			broken[i] ^= 1 << (i % 8)
			if public.Verify(broken, signature) {
				t.Errorf("byte %d of the digest changed, and the signature verifies", i)
			}
		}
		if public.Verify(digest, append(slices.Clone(signature[size:]), signature[:size]...)) {
			t.Error("the signature verifies with its halves exchanged, as r||s")
		}

		// r or s out of range, everything else right.
		q := orderOf(k.Set())
		for _, half := range []int{0, size} {
			for name, n := range map[string]*big.Int{"0": new(big.Int), "q": q, "q+1": new(big.Int).Add(q, big.NewInt(1))} {
				broken := slices.Clone(signature)
				n.FillBytes(broken[half : half+size])
				if public.Verify(digest, broken) {
					t.Errorf("the half at byte %d is %s, and the signature verifies", half, name)
				}
			}
			n := new(big.Int).SetBytes(signature[half : half+size])
			if n.Add(n, q); n.BitLen() <= 8*size {
				broken := slices.Clone(signature)
				n.FillBytes(broken[half : half+size])
				if public.Verify(digest, broken) {
					t.Errorf("the half at byte %d is increased by q, and the signature verifies", half)
				}
			}
		}

		// Wrong lengths.
		for _, d := range [][]byte{nil, {}, digest[1:], append(slices.Clone(digest), 0), make([]byte, 96-size)} {
			if public.Verify(d, signature) {
				t.Errorf("a digest of %d bytes verifies", len(d))
			}
			if _, err := k.Sign(nil, d, nil); err == nil {
				t.Errorf("a digest of %d bytes is signed", len(d))
			}
		}
		for _, s := range [][]byte{nil, {}, signature[1:], signature[:size], append(slices.Clone(signature), 0)} {
			if public.Verify(digest, s) {
				t.Errorf("a signature of %d bytes verifies", len(s))
			}
		}

		// Digests that are 0 modulo q count as 1.
		zero := make([]byte, size)
		one := append([]byte{1}, make([]byte, size-1)...)
		multiple := q.FillBytes(make([]byte, size))
		slices.Reverse(multiple)
		for _, d := range [][]byte{zero, one, multiple} {
			s := sign(d)
			for _, e := range [][]byte{zero, one, multiple} {
				if !public.Verify(e, s) {
					t.Errorf("the signature of %x does not verify for %x", d, e)
				}
			}
		}
	})
}

// TestSignatureEquation compares signatures with the equation of RFC 7091, section
// 6.1, computed with math/big.
func TestSignatureEquation(t *testing.T) {
	eachSet(t, func(t *testing.T, k *PrivateKey, digest []byte) {
		size, q := k.Set().Size(), orderOf(k.Set())
		little := func(b []byte) *big.Int {
			b = slices.Clone(b)
			slices.Reverse(b)
			return new(big.Int).SetBytes(b)
		}
		for _, n := range []*big.Int{big.NewInt(1), big.NewInt(2), new(big.Int).Sub(q, big.NewInt(1)), new(big.Int).Rsh(q, 1)} {
			nonce := n.FillBytes(make([]byte, size))
			slices.Reverse(nonce)
			got, err := k.signWithNonceForTesting(digest, nonce)
			if err != nil {
				t.Fatal(err)
			}
			// As a private key, the nonce has the nonce point for its public key.
			c, err := NewPrivateKey(k.Set(), nonce)
			if err != nil {
				t.Fatal(err)
			}
			r := little(c.PublicKey().Bytes()[:size])
			if r.Mod(r, q); r.Sign() == 0 {
				// G of CryptoPro C has x = 0, so nonces 1 and q-1 give no signature.
				if got != nil {
					t.Errorf("nonce %x: signed with r = 0", n)
				}
				continue
			}
			s := new(big.Int).Mul(r, little(k.Bytes()))
			s.Add(s, new(big.Int).Mul(n, little(digest))).Mod(s, q)
			want := append(s.FillBytes(make([]byte, size)), r.FillBytes(make([]byte, size))...)
			if !bytes.Equal(got, want) {
				t.Errorf("nonce %x: got %x, want %x", n, got, want)
			}
			if !k.PublicKey().Verify(digest, want) {
				t.Errorf("nonce %x: does not verify", n)
			}
		}
	})
}

// TestZeroS checks that a nonce for which s is 0 gives no signature.
func TestZeroS(t *testing.T) {
	// With nonce 1, s = r*d + e, so e = -r*d.
	s := TC26256B
	k, err := GenerateKey(s, seeded(1))
	if err != nil {
		t.Fatal(err)
	}
	one := append([]byte{1}, make([]byte, 31)...)
	signature, err := k.signWithNonceForTesting(one, one)
	if err != nil {
		t.Fatal(err)
	}
	e := new(big.Int).SetBytes(signature[:32]) // r*d + 1
	q := orderOf(s)
	e.Sub(q, e.Sub(e, big.NewInt(1)))
	digest := e.FillBytes(make([]byte, 32))
	slices.Reverse(digest)
	signature, err = k.signWithNonceForTesting(digest, one)
	if signature != nil || err != nil {
		t.Errorf("signed with s = 0: %x, %v", signature, err)
	}
	if _, err := k.signWithNonceForTesting(digest, make([]byte, 32)); err == nil {
		t.Error("a nonce of 0 is accepted")
	}
}

type constant byte

func (c constant) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(c)
	}
	return len(b), nil
}

type broken struct{ after int }

var errBroken = errors.New("no more randomness")

func (r *broken) Read(b []byte) (int, error) {
	if len(b) > r.after {
		return r.after, errBroken
	}
	r.after -= len(b)
	return len(b), nil
}

func TestRandomness(t *testing.T) {
	eachSet(t, func(t *testing.T, k *PrivateKey, digest []byte) {
		size := k.Set().Size()
		seen := map[string]string{}
		try := func(name string, k *PrivateKey, rand io.Reader, digest []byte) {
			signature, err := k.Sign(rand, digest, nil)
			if err != nil {
				t.Fatal(err)
			}
			r := string(signature[size:]) // the same for the same nonce
			if other, ok := seen[r]; ok {
				t.Errorf("%s and %s have the same nonce", name, other)
			}
			seen[r] = name
		}
		other := slices.Clone(digest)
		other[0] ^= 1
		neighbour, err := GenerateKey(k.Set(), seeded(200))
		if err != nil {
			t.Fatal(err)
		}
		try("zeros", k, constant(0), digest)
		try("zeros, other digest", k, constant(0), other)
		try("zeros, other key", neighbour, constant(0), digest)
		try("ones", k, constant(1), digest)
		try("random", k, nil, digest)
		try("random again", k, nil, digest)

		a, errA := k.Sign(constant(0), digest, nil)
		b, errB := k.Sign(constant(0), digest, crypto.Hash(0))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Error("the same randomness gives different signatures")
		}
		for _, after := range []int{0, 1, size - 1} {
			if _, err := k.Sign(&broken{after}, digest, nil); !errors.Is(err, errBroken) {
				t.Errorf("Sign with %d bytes of randomness: %v", after, err)
			}
			if _, err := GenerateKey(k.Set(), &broken{after}); !errors.Is(err, errBroken) {
				t.Errorf("GenerateKey with %d bytes of randomness: %v", after, err)
			}
		}
		if _, err := GenerateKey(k.Set(), constant(0)); err == nil {
			t.Error("a key of zeros is generated")
		}
	})
	// Two sets with the same curve get different nonces.
	digest := make([]byte, 32)
	one := append([]byte{1}, digest[1:]...)
	a, errA := NewPrivateKey(CryptoProA, one)
	b, errB := NewPrivateKey(TC26256B, one)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	x, errX := a.Sign(constant(0), digest, nil)
	y, errY := b.Sign(constant(0), digest, nil)
	if errX != nil || errY != nil || bytes.Equal(x[32:], y[32:]) {
		t.Error("two sets have the same nonce")
	}
}

func TestPrivateKeyRange(t *testing.T) {
	for _, s := range Sets() {
		q := orderOf(s)
		for _, c := range []struct {
			n  *big.Int
			ok bool
		}{
			{new(big.Int), false},
			{big.NewInt(1), true},
			{new(big.Int).Sub(q, big.NewInt(1)), true},
			{q, false},
			{new(big.Int).Add(q, big.NewInt(1)), false},
			{new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(8*s.Size())), big.NewInt(1)), false},
		} {
			if c.n.BitLen() > 8*s.Size() {
				continue
			}
			b := c.n.FillBytes(make([]byte, s.Size()))
			slices.Reverse(b)
			k, err := NewPrivateKey(s, b)
			if (err == nil) != c.ok {
				t.Errorf("%s: %x: %v", s, c.n, err)
			}
			if err == nil && !bytes.Equal(k.Bytes(), b) {
				t.Errorf("%s: %x came back as %x", s, b, k.Bytes())
			}
			if err != nil && strings.Contains(err.Error(), c.n.Text(16)) && c.n.Sign() != 0 {
				t.Errorf("the error shows the private number: %v", err)
			}
		}
		for _, n := range []int{0, 1, s.Size() - 1, s.Size() + 1, 2 * s.Size()} {
			if _, err := NewPrivateKey(s, bytes.Repeat([]byte{1}, n)); err == nil {
				t.Errorf("%s: a private key of %d bytes is accepted", s, n)
			}
			if _, err := NewPublicKey(s, bytes.Repeat([]byte{1}, n)); err == nil && n != 2*s.Size() {
				t.Errorf("%s: a public key of %d bytes is accepted", s, n)
			}
		}
	}
}

// TestPublicKeyRefused checks that NewPublicKey returns the errors of package point.
// The tests of package point cover the kinds of invalid points.
func TestPublicKeyRefused(t *testing.T) {
	eachSet(t, func(t *testing.T, k *PrivateKey, _ []byte) {
		for i := range 2 * k.Set().Size() {
			xy := k.PublicKey().Bytes()
			xy[i] ^= 1 << (i % 8)
			if p, err := NewPublicKey(k.Set(), xy); err == nil || p != nil {
				t.Errorf("byte %d changed, and the point is accepted", i)
			} else if !strings.HasPrefix(err.Error(), "gost3410: public key of "+k.Set().Name()) {
				t.Errorf("unclear error %q", err)
			}
		}
		if _, err := NewPublicKey(k.Set(), make([]byte, 2*k.Set().Size())); err == nil {
			t.Error("the coordinates 0, 0 are accepted")
		}
	})
}

func TestEqual(t *testing.T) {
	one := append([]byte{1}, make([]byte, 31)...)
	two := append([]byte{2}, make([]byte, 31)...)
	key := func(s *Set, d []byte) *PrivateKey {
		k, err := NewPrivateKey(s, d)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	a := key(CryptoProA, one)
	if !a.Equal(key(CryptoProA, one)) || !a.PublicKey().Equal(key(CryptoProA, one).Public()) {
		t.Error("equal keys differ")
	}
	for _, b := range []*PrivateKey{key(CryptoProA, two), key(TC26256B, one), key(CryptoProB, one), nil} {
		if a.Equal(b) {
			t.Errorf("the test key equals %v", b)
		}
		if b != nil && a.PublicKey().Equal(b.PublicKey()) {
			t.Errorf("the public test key equals that of %v", b)
		}
	}
	if a.Equal("key") || a.PublicKey().Equal("key") || a.PublicKey().Equal((*PublicKey)(nil)) {
		t.Error("a key equals a value of another type or nil")
	}
}

func TestWipe(t *testing.T) {
	eachSet(t, func(t *testing.T, k *PrivateKey, digest []byte) {
		k.Wipe()
		if *k.hidden.d != [8]uint64{} || !bytes.Equal(k.Bytes(), make([]byte, k.Set().Size())) {
			t.Error("Wipe did not clear the number")
		}
		if _, err := k.Sign(nil, digest, nil); !errors.Is(err, ErrWiped) {
			t.Errorf("Sign: %v", err)
		}
		if k.PublicKey() != nil || k.Public() != nil {
			t.Error("a wiped key has a public key")
		}
		used, err := GenerateKey(k.Set(), nil)
		if err != nil {
			t.Fatal(err)
		}
		public := used.PublicKey()
		used.Wipe()
		if used.PublicKey() != public {
			t.Error("Wipe changed the public key that was computed before")
		}
		if _, err := used.VKO(public, []byte{1}, streebog.New256); !errors.Is(err, ErrWiped) {
			t.Errorf("VKO: %v", err)
		}
	})
}

// TestPrintingShowsNoSecret checks that no verb, encoding or log handler prints the
// number of a key in any form.
func TestPrintingShowsNoSecret(t *testing.T) {
	eachSet(t, func(t *testing.T, k *PrivateKey, _ []byte) {
		k.PublicKey()
		d := k.Bytes()
		backwards := slices.Clone(d)
		slices.Reverse(backwards)
		secrets := []string{hex.EncodeToString(d[:8]), hex.EncodeToString(backwards[:8]), new(big.Int).SetBytes(backwards).String()}
		for _, limb := range k.hidden.d {
			if limb != 0 {
				secrets = append(secrets, fmt.Sprint(limb), fmt.Sprintf("%x", limb), fmt.Sprintf("%o", limb), fmt.Sprintf("%b", limb))
			}
		}
		for _, b := range [][]byte{d, backwards} {
			secrets = append(secrets, strings.Trim(fmt.Sprint(b), "[]")[:20], string(b[:8]))
		}
		check := func(how, text string) {
			t.Helper()
			for _, s := range secrets {
				if strings.Contains(strings.ToLower(text), strings.ToLower(s)) {
					t.Errorf("%s shows the number: %s", how, text)
				}
			}
		}
		forms := map[string]any{
			"pointer":            k,
			"struct":             reflect.ValueOf(k).Elem(),
			"field":              struct{ Key *PrivateKey }{k},
			"unexported field":   struct{ key *PrivateKey }{k},
			"pointer to pointer": &k,
			"slice":              []*PrivateKey{k},
			"signer":             crypto.Signer(k),
			"item":               SignItem{Key: k},
		}
		for name, form := range forms {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%b", "%o", "%T", "%p", "% x", "%#x"} {
				check(name+" "+verb, fmt.Sprintf(verb, form))
			}
			if j, err := json.Marshal(form); err == nil {
				check(name+" as JSON", string(j))
			}
			var b bytes.Buffer
			slog.New(slog.NewTextHandler(&b, nil)).Info("key", "key", form)
			slog.New(slog.NewJSONHandler(&b, nil)).Info("key", "key", form)
			check(name+" in a log", b.String())
		}
		if want := "private key of " + k.Set().Name(); fmt.Sprint(k) != want || fmt.Sprintf("%#v", k) != want {
			t.Errorf("a key prints as %v and %#v", k, k)
		}
	})
	if s := fmt.Sprintf("%v", (*PrivateKey)(nil)); s != "<nil>" {
		t.Errorf("a nil key prints as %s, want <nil>", s)
	}
}

func TestVKOAgrees(t *testing.T) {
	eachSet(t, func(t *testing.T, a *PrivateKey, _ []byte) {
		b, err := GenerateKey(a.Set(), seeded(77))
		if err != nil {
			t.Fatal(err)
		}
		size := a.Set().Size()
		seen := map[string]bool{}
		for _, ukm := range [][]byte{{1}, {2}, {1, 2, 3, 4, 5, 6, 7, 8}, bytes.Repeat([]byte{0xff}, size)} {
			x, errX := a.VKO(b.PublicKey(), ukm, streebog.New256)
			y, errY := b.VKO(a.PublicKey(), ukm, streebog.New256)
			if errX != nil || errY != nil || !bytes.Equal(x, y) || seen[string(x)] {
				t.Errorf("ukm %x: %x, %v and %x, %v", ukm, x, errX, y, errY)
			}
			seen[string(x)] = true
		}
		q := orderOf(a.Set()).FillBytes(make([]byte, size))
		slices.Reverse(q)
		for name, ukm := range map[string][]byte{"empty": {}, "zero": make([]byte, 8), "q": q, "too long": bytes.Repeat([]byte{1}, size+1)} {
			if _, err := a.VKO(b.PublicKey(), ukm, streebog.New256); err == nil {
				t.Errorf("%s ukm is accepted", name)
			}
		}
		for _, s := range Sets() {
			if s.SameCurve(a.Set()) {
				continue
			}
			c, err := GenerateKey(s, seeded(78))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := a.VKO(c.PublicKey(), []byte{1}, streebog.New256); err == nil {
				t.Errorf("VKO accepts a key of %s, which has another curve", s)
			}
		}
	})
}

// raw is a hash that returns the bytes written to it, so that a test sees the point
// of an agreement.
type raw struct{ bytes.Buffer }

func (r *raw) Sum(b []byte) []byte { return append(b, r.Bytes()...) }
func (r *raw) Size() int           { return r.Len() }
func (r *raw) BlockSize() int      { return 1 }

// TestVKOCofactor checks that VKO multiplies by the cofactor: d = 1 and UKM = 1 give
// cofactor times the peer's point.
func TestVKOCofactor(t *testing.T) {
	for _, s := range Sets() {
		one := append([]byte{1}, make([]byte, s.Size()-1)...)
		n := append([]byte{byte(s.curve.Cofactor())}, make([]byte, s.Size()-1)...)
		a, errA := NewPrivateKey(s, one)
		b, errB := NewPrivateKey(s, n)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		got, err := a.VKO(a.PublicKey(), []byte{1}, func() hash.Hash { return new(raw) })
		if err != nil || !bytes.Equal(got, b.PublicKey().Bytes()) {
			t.Errorf("%s: got %x, %v, want %x", s, got, err, b.PublicKey().Bytes())
		}
	}
	if TC26256A.curve.Cofactor() != 4 || TC26512C.curve.Cofactor() != 4 {
		t.Error("TC26256A and TC26512C must have cofactor 4")
	}
}

func TestMany(t *testing.T) {
	var signs []SignItem
	var verifies []VerifyItem
	var want []bool
	for i, s := range Sets() {
		k, err := GenerateKey(s, seeded(byte(i)))
		if err != nil {
			t.Fatal(err)
		}
		signs = append(signs, SignItem{k, bytes.Repeat([]byte{byte(i)}, s.Size())})
	}
	signatures, err := SignMany(nil, signs)
	if err != nil || len(signatures) != len(signs) {
		t.Fatal(len(signatures), err)
	}
	for i, s := range signatures {
		if i%3 == 1 {
			s[7] ^= 1
		}
		verifies = append(verifies, VerifyItem{signs[i].Key.PublicKey(), signs[i].Digest, s})
		want = append(want, i%3 != 1)
	}
	if got := VerifyMany(verifies); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if s, err := SignMany(nil, nil); len(s) != 0 || err != nil {
		t.Errorf("no items: %v, %v", s, err)
	}
	signs[3].Digest = nil
	if s, err := SignMany(nil, signs); s != nil || err == nil || !strings.Contains(err.Error(), "item 3") {
		t.Errorf("a bad item: %v, %v", s, err)
	}
}
