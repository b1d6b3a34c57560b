// SPDX-License-Identifier: Apache-2.0

package magma

import (
	"bytes"
	"embed"
	"math/rand/v2"
	"testing"

	"tamga/internal/gosttest"
)

//go:embed testdata/*.txt
var testdata embed.FS

func TestKnownAnswers(t *testing.T) {
	for _, v := range gosttest.Vectors(t, testdata, "testdata/rfc8891.txt") {
		c, err := NewCipher(v.Bytes(t, "Key"))
		if err != nil {
			t.Fatal(err)
		}
		plain, want := v.Bytes(t, "Plain"), v.Bytes(t, "Sealed")
		got := make([]byte, len(plain))
		for i := 0; i < len(plain); i += BlockSize {
			c.Encrypt(got[i:], plain[i:])
		}
		if !bytes.Equal(got, want) {
			t.Errorf("line %d: encrypted %x, want %x", v.Line, got, want)
		}
		for i := 0; i < len(plain); i += BlockSize {
			c.Decrypt(got[i:], got[i:])
		}
		if !bytes.Equal(got, plain) {
			t.Errorf("line %d: decrypted %x, want %x", v.Line, got, plain)
		}
	}
}

func TestConformance(t *testing.T) { gosttest.Block(t, NewCipher, KeySize) }

func TestEncryptBlocks(t *testing.T) {
	r := rand.NewChaCha8([32]byte{1})
	key := make([]byte, KeySize)
	r.Read(key)
	b, err := NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	c := b.(*block)
	for n := range 300 {
		src := make([]byte, n*BlockSize)
		r.Read(src)
		want := make([]byte, len(src))
		for i := 0; i < len(src); i += BlockSize {
			c.Encrypt(want[i:], src[i:])
		}
		got := append(make([]byte, len(src)), 0xa5)
		if c.EncryptBlocks(got, src); !bytes.Equal(got, append(want, 0xa5)) {
			t.Fatalf("EncryptBlocks of %d blocks differs from Encrypt", n)
		}
		if c.EncryptBlocks(src, src); !bytes.Equal(src, want) {
			t.Fatalf("EncryptBlocks of %d blocks in place differs from Encrypt", n)
		}
	}
	for name, f := range map[string]func(){
		"a part of a block": func() { c.EncryptBlocks(make([]byte, 16), make([]byte, 9)) },
		"a short output":    func() { c.EncryptBlocks(make([]byte, 15), make([]byte, 16)) },
	} {
		if message := recovered(f); message == nil {
			t.Errorf("EncryptBlocks accepts %s", name)
		}
	}
}

func recovered(f func()) (message any) {
	defer func() { message = recover() }()
	f()
	return nil
}
