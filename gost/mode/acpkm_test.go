// SPDX-License-Identifier: Apache-2.0

package mode

import (
	"bytes"
	"crypto/cipher"
	"encoding/hex"
	"testing"

	"tamga/gost/kuznyechik"
	"tamga/gost/magma"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCTRACPKM checks R 1323565.1.017-2018, appendix A.4.1 (RFC 8645, appendix A.2):
// CTR-ACPKM of Kuznyechik with sections of 32 bytes.
func TestCTRACPKM(t *testing.T) {
	for _, c := range []struct {
		name            string
		new             func([]byte) (cipher.Block, error)
		key, iv         string
		section         int
		plain, ciphered string
	}{
		{"kuznyechik", kuznyechik.NewCipher, "8899aabbccddeeff0011223344556677fedcba98765432100123456789abcdef", "1234567890abcef0", 32,
			"1122334455667700ffeeddccbbaa998800112233445566778899aabbcceeff0a112233445566778899aabbcceeff0a002233445566778899aabbcceeff0a001133445566778899aabbcceeff0a001122445566778899aabbcceeff0a001122335566778899aabbcceeff0a0011223344",
			"f195d8bec10ed1dbd57b5fa240bda1b885eee733f6a13e5df33ce4b33c45dee44bceeb8f646f4c55001706275e85e800587c4df568d094393e4834afd0805046cf30f57686aeece11cfc6c316b8a896edffd07ec813636460c4f3b743423163e6409a9c282fac8d469d221e7fbd6de5d"},
	} {
		s, err := NewCTRACPKM(c.new, unhex(t, c.key), unhex(t, c.iv), c.section)
		if err != nil {
			t.Fatal(err)
		}
		plain, want := unhex(t, c.plain), unhex(t, c.ciphered)
		got := make([]byte, len(plain))
		s.XORKeyStream(got, plain)
		if !bytes.Equal(got, want) {
			t.Errorf("%s: %x, want %x", c.name, got, want)
		}
		for _, step := range []int{1, 7, 31, 33} {
			s, _ := NewCTRACPKM(c.new, unhex(t, c.key), unhex(t, c.iv), c.section)
			in := bytes.Clone(want)
			for rest := in; len(rest) > 0; {
				n := min(step, len(rest))
				s.XORKeyStream(rest[:n], rest[:n])
				rest = rest[n:]
			}
			if !bytes.Equal(in, plain) {
				t.Errorf("%s in pieces of %d bytes: deciphered %x", c.name, step, in)
			}
		}
	}
	for _, bad := range []struct{ key, iv, section int }{{31, 8, 32}, {32, 7, 32}, {32, 8, 0}, {32, 8, 17}} {
		if _, err := NewCTRACPKM(kuznyechik.NewCipher, make([]byte, bad.key), make([]byte, bad.iv), bad.section); err == nil {
			t.Errorf("NewCTRACPKM accepts the lengths %+v", bad)
		}
	}
}

// TestOMAC checks GOST R 34.13-2015, appendices A.1.6 and A.2.6, which print the first
// half of the code.
func TestOMAC(t *testing.T) {
	for _, c := range []struct {
		name               string
		new                func([]byte) (cipher.Block, error)
		key, message, want string
	}{
		{"kuznyechik", kuznyechik.NewCipher, "8899aabbccddeeff0011223344556677fedcba98765432100123456789abcdef",
			"1122334455667700ffeeddccbbaa998800112233445566778899aabbcceeff0a112233445566778899aabbcceeff0a002233445566778899aabbcceeff0a0011", "336f4d296059fbe3"},
		{"magma", magma.NewCipher, "ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
			"92def06b3c130a59db54c704f8189d204a98fb2e67a8024c8912409b17b57e41", "154e7210"},
	} {
		b, err := c.new(unhex(t, c.key))
		if err != nil {
			t.Fatal(err)
		}
		message := unhex(t, c.message)
		code := OMAC(b, message)
		if len(code) != b.BlockSize() || !bytes.HasPrefix(code, unhex(t, c.want)) {
			t.Errorf("%s: %x, want %s", c.name, code, c.want)
		}
		if bytes.Equal(OMAC(b, append(message, 0x80)), OMAC(b, message)) || bytes.Equal(OMAC(b, nil), OMAC(b, make([]byte, b.BlockSize()))) {
			t.Errorf("%s: a message and its padded form have the same code", c.name)
		}
	}
}
