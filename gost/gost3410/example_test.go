// SPDX-License-Identifier: Apache-2.0

package gost3410_test

import (
	"bytes"
	"crypto/rand"
	"fmt"

	"tamga/gost/gost3410"
	"tamga/gost/streebog"
)

// Generate a key, sign a digest and verify the signature with the public key.
func ExampleGenerateKey() {
	key, err := gost3410.GenerateKey(gost3410.CryptoProA, rand.Reader)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer key.Wipe()
	digest := streebog.Sum256([]byte("a document"))
	signature, err := key.Sign(rand.Reader, digest[:], nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	public := key.PublicKey()
	fmt.Println(len(signature), public.Verify(digest[:], signature))
	// Output: 64 true
}

// Sign several digests at once. Each item has its own key and digest.
func ExampleSignMany() {
	key, err := gost3410.GenerateKey(gost3410.TC26256A, rand.Reader)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer key.Wipe()
	items := make([]gost3410.SignItem, 8)
	for i := range items {
		digest := streebog.Sum256(fmt.Appendf(nil, "document %d", i))
		items[i] = gost3410.SignItem{Key: key, Digest: digest[:]}
	}
	signatures, err := gost3410.SignMany(rand.Reader, items)
	fmt.Println(len(signatures), err)
	// Output: 8 <nil>
}

// Agree on the two keys of KExp15 with a key made for one message.
func ExamplePrivateKey_KEG() {
	recipient, err := gost3410.GenerateKey(gost3410.TC26256A, rand.Reader)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer recipient.Wipe()
	ephemeral, err := gost3410.GenerateKey(gost3410.TC26256A, rand.Reader)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ephemeral.Wipe()
	ukm := make([]byte, gost3410.KEGUKMSize)
	rand.Read(ukm)
	sent, err := ephemeral.KEG(recipient.PublicKey(), ukm)
	if err != nil {
		fmt.Println(err)
		return
	}
	received, err := recipient.KEG(ephemeral.PublicKey(), ukm)
	fmt.Println(len(sent), bytes.Equal(sent, received), err)
	// Output: 64 true <nil>
}
