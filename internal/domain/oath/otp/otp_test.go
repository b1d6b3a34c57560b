// SPDX-License-Identifier: Apache-2.0

package otp

import (
	"bytes"
	"crypto/hmac"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tamga/gost/streebog"
)

func newKey(t testing.TB, a Algorithm, digits int, secret string) *Key {
	t.Helper()
	k, err := New(a, digits, []byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

const seed = "12345678901234567890" // of both RFCs

// RFC 4226, Appendix D.
func TestHOTPVectors(t *testing.T) {
	k := newKey(t, SHA1, 6, seed)
	for step, want := range strings.Fields("755224 287082 359152 969429 338314 254676 287922 162583 399871 520489") {
		if got := k.Code(int64(step)); got != want {
			t.Errorf("step %d: %s, want %s", step, got, want)
		}
	}
}

// RFC 6238, Appendix B, with the secrets of its erratum 2866: as long as the HMAC.
func TestTOTPVectors(t *testing.T) {
	secrets := map[Algorithm]string{SHA1: seed, SHA256: (seed + seed)[:32], SHA512: strings.Repeat(seed, 4)[:64]}
	for _, c := range []struct {
		at     int64
		values [3]string
	}{
		{59, [3]string{"94287082", "46119246", "90693936"}},
		{1111111109, [3]string{"07081804", "68084774", "25091201"}},
		{1111111111, [3]string{"14050471", "67062674", "99943326"}},
		{1234567890, [3]string{"89005924", "91819424", "93441116"}},
		{2000000000, [3]string{"69279037", "90698825", "38618901"}},
		{20000000000, [3]string{"65353130", "77737706", "47863826"}},
	} {
		for i, a := range []Algorithm{SHA1, SHA256, SHA512} {
			k := newKey(t, a, 8, secrets[a])
			step := Step(time.Unix(c.at, 0), 30*time.Second)
			if got := k.Code(step); got != c.values[i] {
				t.Errorf("%s at %d: %s, want %s", a, c.at, got, c.values[i])
			}
			if got, ok := k.Match(c.values[i], step-1, step+1); !ok || got != step {
				t.Errorf("%s at %d matches step %d, %t", a, c.at, got, ok)
			}
		}
	}
}

// RFC 7836, 4.1: the HMAC with Streebog that codes are cut from. Then the code by the
// rule of RFC 4226, 5.3, done the long way.
func TestStreebogVectors(t *testing.T) {
	key, _ := hex.DecodeString("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")
	data, _ := hex.DecodeString("0126bdb87800af214341456563780100")
	for _, c := range []struct {
		a    Algorithm
		want string
	}{
		{Streebog256, "a1aa5f7de402d7b3d323f2991c8d4534013137010a83754fd0af6d7cd4922ed9"},
		{Streebog512, "a59bab22ecae19c65fbde6e5f4e9f5d8549d31f037f9df9b905500e171923a773d5f1530f2ed7e964cb2eedc29e9ad2f3afe93b2814f79f5000ffc0366c251e6"},
	} {
		mac := hmac.New(hashes[c.a], key)
		mac.Write(data)
		if got := hex.EncodeToString(mac.Sum(nil)); got != c.want {
			t.Errorf("HMAC with %s is %s, want %s", c.a, got, c.want)
		}
	}
	for _, step := range []int64{0, 1, 59, 1 << 40} {
		mac := hmac.New(streebog.New256, key)
		mac.Write([]byte{byte(step >> 56), byte(step >> 48), byte(step >> 40), byte(step >> 32), byte(step >> 24), byte(step >> 16), byte(step >> 8), byte(step)})
		sum := mac.Sum(nil)
		at := int(sum[31] & 15)
		number := (int(sum[at]&0x7f)<<24 | int(sum[at+1])<<16 | int(sum[at+2])<<8 | int(sum[at+3])) % 10_000_000
		if got := newKey(t, Streebog256, 7, string(key)).Code(step); got != fmt.Sprintf("%07d", number) {
			t.Errorf("step %d: %s, want %07d", step, got, number)
		}
	}
}

// Match agrees with looking at each code, whatever the window, and finds the first.
func TestMatchIsTheFirstStep(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	k := newKey(t, SHA1, 6, seed)
	for range 300 {
		from := random.Int64N(1 << 40)
		to := from + random.Int64N(2000)
		right := from + random.Int64N(to-from+1)
		code := k.Code(right)
		want := from
		for k.Code(want) != code {
			want++
		}
		if got, ok := k.Match(" "+code[:3]+" "+code[3:], from, to); !ok || got != want {
			t.Fatalf("%s in %d..%d is step %d, %t, want %d", code, from, to, got, ok, want)
		}
		if got, ok := k.MatchPair(code, k.Code(right+1), from, to); !ok || got != right+1 {
			t.Fatalf("a pair in %d..%d ends at %d, %t, want %d", from, to, got, ok, right+1)
		}
		if _, ok := k.Match(code, right+1, right+1); ok && k.Code(right+1) != code {
			t.Fatal("a code matches the step after its own")
		}
		if _, ok := k.MatchPair(code, code, from, to); ok {
			t.Fatal("a code twice is a pair")
		}
		if _, ok := k.MatchPair(k.Code(right+1), code, from, to); ok {
			t.Fatal("a pair in the wrong order matches")
		}
	}
}

func TestHostileCodes(t *testing.T) {
	k := newKey(t, SHA256, 6, strings.Repeat("s", 32))
	code := k.Code(7)
	for _, wrong := range []string{"", " ", code[:5], code + "0", "0" + code, "+" + code[1:], "-12345", "１２３４５６", code + "\n", "\x00" + code, strings.Repeat("9", 1<<20), strings.Repeat(" ", 1<<20)} {
		if _, ok := k.Match(wrong, 0, 100); ok {
			t.Errorf("%.20q matches", wrong)
		}
		if _, ok := k.MatchPair(wrong, k.Code(8), 0, 100); ok {
			t.Errorf("%.20q matches as the first of two", wrong)
		}
		if _, ok := k.MatchPair(k.Code(6), wrong, 0, 100); ok {
			t.Errorf("%.20q matches as the second of two", wrong)
		}
	}
	for _, w := range [][2]int64{{-1, 10}, {10, 9}, {0, 1 << 40}, {MaxStep, MaxStep}, {-1 << 63, 1<<63 - 1}} {
		if _, ok := k.Match(code, w[0], w[1]); ok {
			t.Errorf("the window %v is looked at", w)
		}
	}
}

func TestKeysRefused(t *testing.T) {
	for _, c := range []struct {
		a      Algorithm
		digits int
		secret int
		want   string
	}{
		{"MD5", 6, 20, "unknown algorithm"},
		{"", 6, 20, "unknown algorithm"},
		{SHA1, 5, 20, "5 digits"},
		{SHA1, 9, 20, "9 digits"},
		{SHA1, 6, MinSecret - 1, "15 bytes"},
		{SHA1, 6, MaxSecret + 1, "257 bytes"},
	} {
		if _, err := New(c.a, c.digits, make([]byte, c.secret)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for text, want := range map[string]Algorithm{"sha1": SHA1, "HMAC-SHA-256": SHA256, "HmacSHA512": SHA512, "streebog-256": Streebog256, "Streebog512": Streebog512} {
		if got, ok := AlgorithmNamed(text); !ok || got != want {
			t.Errorf("%s is %s, %t", text, got, ok)
		}
	}
	if _, ok := AlgorithmNamed("SHA3-256"); ok {
		t.Error("SHA3-256 is known")
	}
}

// A key in a log line or an error is a name.
func TestKeysAreNotPrinted(t *testing.T) {
	k := newKey(t, SHA1, 6, seed)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		if got := fmt.Sprintf(verb, k); got != "otp.Key" {
			t.Errorf("%s prints %q", verb, got)
		}
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("755224", int64(0), int64(10), []byte(seed))
	f.Add("１２３", int64(-5), int64(1)<<62, bytes.Repeat([]byte{0}, 16))
	f.Fuzz(func(t *testing.T, code string, from, to int64, secret []byte) {
		k, err := New(SHA1, 6, secret)
		if err != nil {
			return
		}
		if to-from > 100 {
			to = from + 100
		}
		if step, ok := k.Match(code, from, to); ok && (step < from || step > to || k.Code(step) != strings.ReplaceAll(code, " ", "")) {
			t.Fatalf("%q matches step %d of %d..%d", code, step, from, to)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	for _, a := range []Algorithm{SHA1, Streebog256} {
		b.Run(string(a), func(b *testing.B) {
			k := newKey(b, a, 6, strings.Repeat("s", 32))
			for b.Loop() {
				k.Match("000000", 1000, 1002)
			}
		})
	}
}
