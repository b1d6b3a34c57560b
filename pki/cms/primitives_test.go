// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"context"
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"testing"

	"tamga/pki/suite"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// RFC 3394, sections 4.1 to 4.6.
func TestWrapAES(t *testing.T) {
	kek, key := "000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F", "00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F"
	for _, c := range []struct {
		kek, key int
		want     string
	}{
		{16, 16, "1FA68B0A8112B447AEF34BD8FB5A7B829D3E862371D2CFE5"},
		{24, 16, "96778B25AE6CA435F92B5B97C050AED2468AB8A17AD84E5D"},
		{32, 16, "64E8C3F9CE0F5BA263E9777905818A2A93C8191E7D6E8AE7"},
		{24, 24, "031D33264E15D33268F24EC260743EDCE1C6C7DDEE725A936BA814915C6762D2"},
		{32, 24, "A8F9BC1612C68B3FF6E6F4FBE30E71E4769C8B80A32CB8958CD5D17D6B254DA1"},
		{32, 32, "28C9F404C4B810F4CBCCB35CFB87F8263F5786E2D80ED326CBC7F0E71A99F43BFB988B9B7A02DD21"},
	} {
		wrapping, text, want := unhex(t, kek)[:c.kek], unhex(t, key)[:c.key], unhex(t, c.want)
		if c.key == 24 {
			text = append(text[:16:16], unhex(t, "0001020304050607")...)
		}
		got, err := wrapAES(wrapping, text)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d under %d bytes: %X, %v", c.key, c.kek, got, err)
		}
		if back, err := unwrapAES(wrapping, want, c.key); err != nil || !bytes.Equal(back, text) {
			t.Errorf("%d under %d bytes: unwrapped %X, %v", c.key, c.kek, back, err)
		}
		for i := range want {
			want[i] ^= 1
			if _, err := unwrapAES(wrapping, want, c.key); !errors.Is(err, ErrDecrypt) {
				t.Errorf("byte %d is changed: %v", i, err)
			}
			want[i] ^= 1
		}
		if _, err := unwrapAES(wrapping, want, c.key+8); !errors.Is(err, ErrDecrypt) {
			t.Errorf("another length: %v", err)
		}
	}
	if _, err := wrapAES(make([]byte, 16), make([]byte, 15)); err == nil {
		t.Error("15 bytes are wrapped")
	}
}

// GCM in parts gives the same code as the standard library.
func TestGCM(t *testing.T) {
	for _, size := range []int{0, 1, 15, 16, 17, 64, 1000} {
		for _, aad := range [][]byte{nil, {1}, make([]byte, 16), textOf(33)} {
			key, nonce, text := textOf(32), textOf(gcmNonce), textOf(size)
			b, err := aes.NewCipher(key)
			if err != nil {
				t.Fatal(err)
			}
			standard, err := cipher.NewGCM(b)
			if err != nil {
				t.Fatal(err)
			}
			want := standard.Seal(nil, nonce, text, aad)
			for _, step := range []int{16, 32, 1024} {
				e, err := gcm{nonce, gcmCode}.encrypter(key, aad, true)
				if err != nil {
					t.Fatal(err)
				}
				var got []byte
				for rest := text; ; {
					n := min(step, len(rest))
					got = append(got, e.encrypt(bytes.Clone(rest[:n]), n == len(rest))...)
					if rest = rest[n:]; len(rest) == 0 {
						break
					}
				}
				if got = append(got, e.code()...); !bytes.Equal(got, want) {
					t.Fatalf("%d bytes with %d of data in parts of %d: %x, want %x", size, len(aad), step, got, want)
				}
			}
			for _, code := range []int{12, 16} {
				sealed, tag := want[:size], bytes.Clone(want[size:][:code])
				d, err := gcm{nonce, code}.decrypter(key, aad, tag, true)
				if err != nil {
					t.Fatal(err)
				}
				if got := d.decrypt(bytes.Clone(sealed), true); !bytes.Equal(got, text) || !d.right() {
					t.Errorf("%d bytes with a code of %d do not decrypt", size, code)
				}
			}
		}
	}
}

// A wrong padding of PKCS #1 v1.5 gives a key that depends on the ciphertext and the private key, not
// an error. OAEP gives ErrDecrypt.
func TestImplicitRejection(t *testing.T) {
	ctx := context.Background()
	p, other := newParty(t, suite.RSASHA256, nil, 1), newParty(t, suite.RSASHA256, nil, 2)
	public := p.certificate.PublicKey.(*rsa.PublicKey)
	reject := func(key RecipientKey, ciphertext []byte, size int) []byte {
		t.Helper()
		out, err := key.Decrypt(ctx, KeyTransport{Ciphertext: ciphertext, Size: size})
		if err != nil || len(out) != size {
			t.Fatalf("%x, %v", out, err)
		}
		return out
	}
	//lint:ignore SA1019 it is the form that is tested
	right, err := rsa.EncryptPKCS1v15(nil, public, make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	if got := reject(p.key, right, 32); !bytes.Equal(got, make([]byte, 32)) {
		t.Errorf("the right key: %x", got)
	}
	wrong := bytes.Clone(right)
	wrong[100] ^= 1
	greater := bytes.Repeat([]byte{0xff}, public.Size()) // than the modulus
	seen := map[string]string{}
	for name, got := range map[string][]byte{
		"another ciphertext": reject(p.key, wrong, 32), "another private key": reject(other.key, wrong, 32),
		"a greater number": reject(p.key, greater, 32), "another length": reject(p.key, right, 24),
	} {
		if seen[string(got)] != "" || bytes.Equal(got, make([]byte, len(got))) {
			t.Errorf("%s gives the same key as %q", name, seen[string(got)])
		}
		seen[string(got)] = name
	}
	if !bytes.Equal(reject(p.key, wrong, 32), reject(p.key, wrong, 32)) {
		t.Error("the same ciphertext gives another key")
	}
	oaep := KeyTransport{Ciphertext: wrong, Size: 32, OAEP: &rsa.OAEPOptions{Hash: crypto.SHA256}}
	if _, err := p.key.Decrypt(ctx, oaep); !errors.Is(err, ErrDecrypt) {
		t.Errorf("OAEP with a wrong padding: %v", err)
	}
}

// Parameters of RSAES-OAEP: the defaults, each field, and what is refused.
func TestReadOAEP(t *testing.T) {
	algorithm := func(oid []int, params []byte) []byte { return wrap(tagSequence, marshalOID(oid), params) }
	null := []byte{tagNull, 0}
	hash := func(h *suite.Hash) []byte { return wrap(tagContext0, algorithm(h.OID, null)) }
	mgf := func(h *suite.Hash) []byte { return wrap(tagContext1, algorithm(oidMGF1, algorithm(h.OID, null))) }
	label := wrap(tagContext2, algorithm(oidPSpecified, wrap(tagOctetString, []byte("label"))))
	for name, c := range map[string]struct {
		params []byte
		want   rsa.OAEPOptions
	}{
		"absent":  {nil, rsa.OAEPOptions{Hash: crypto.SHA1, MGFHash: crypto.SHA1}},
		"empty":   {wrap(tagSequence), rsa.OAEPOptions{Hash: crypto.SHA1, MGFHash: crypto.SHA1}},
		"hash":    {wrap(tagSequence, hash(suite.SHA256)), rsa.OAEPOptions{Hash: crypto.SHA256, MGFHash: crypto.SHA1}},
		"all":     {wrap(tagSequence, hash(suite.SHA512), mgf(suite.SHA384), label), rsa.OAEPOptions{Hash: crypto.SHA512, MGFHash: crypto.SHA384, Label: []byte("label")}},
		"only it": {wrap(tagSequence, label), rsa.OAEPOptions{Hash: crypto.SHA1, MGFHash: crypto.SHA1, Label: []byte("label")}},
	} {
		got, err := readOAEP(c.params)
		if err != nil || got.Hash != c.want.Hash || got.MGFHash != c.want.MGFHash || !bytes.Equal(got.Label, c.want.Label) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, bad := range map[string][]byte{
		"not a sequence":   null,
		"another order":    wrap(tagSequence, mgf(suite.SHA1), hash(suite.SHA1)),
		"an unknown hash":  wrap(tagSequence, hash(suite.Streebog256)),
		"an unknown mask":  wrap(tagSequence, wrap(tagContext1, algorithm(oidRSA, algorithm(suite.SHA1.OID, null)))),
		"an unknown label": wrap(tagSequence, wrap(tagContext2, algorithm(oidMGF1, wrap(tagOctetString, nil)))),
		"bytes after":      append(wrap(tagSequence), 0),
	} {
		if got, err := readOAEP(bad); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The derivation of X9.63 takes as many blocks as it needs (SEC 1, section 3.6.1).
func TestDeriveX963(t *testing.T) {
	secret, info := []byte("secret"), []byte("info")
	for _, h := range []func() hash.Hash{sha1.New, sha256.New} {
		block := func(i byte) []byte {
			x := h()
			x.Write(bytes.Join([][]byte{secret, {0, 0, 0, i}, info}, nil))
			return x.Sum(nil)
		}
		want := append(block(1), block(2)...)
		for _, n := range []int{16, 24, 32} {
			if got := deriveX963(h, secret, info, n); !bytes.Equal(got, want[:n]) {
				t.Errorf("%d bytes: %x, want %x", n, got, want[:n])
			}
		}
	}
}
