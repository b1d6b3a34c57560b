// SPDX-License-Identifier: Apache-2.0

package kuznyechik_test

import (
	"encoding/hex"
	"fmt"

	"tamga/gost/kuznyechik"
	"tamga/gost/mode"
)

// One block, as in GOST R 34.12-2015, A.1.
func ExampleNewCipher() {
	key, _ := hex.DecodeString("8899aabbccddeeff0011223344556677fedcba98765432100123456789abcdef")
	block, err := kuznyechik.NewCipher(key)
	if err != nil {
		fmt.Println(err)
		return
	}
	data, _ := hex.DecodeString("1122334455667700ffeeddccbbaa9988")
	block.Encrypt(data, data)
	fmt.Printf("%x\n", data)
	// Output: 7f679d90bebc24305a468d42b9d4edcd
}

// Messages are sealed with a mode, here MGM (RFC 9058). A nonce must never be used
// twice under one key.
func ExampleNewCipher_aead() {
	block, err := kuznyechik.NewCipher(make([]byte, kuznyechik.KeySize))
	if err != nil {
		fmt.Println(err)
		return
	}
	aead, err := mode.NewMGM(block)
	if err != nil {
		fmt.Println(err)
		return
	}
	nonce := make([]byte, aead.NonceSize()) // random in a real program, with the first bit 0
	sealed := aead.Seal(nil, nonce, []byte("secret"), nil)
	opened, err := aead.Open(nil, nonce, sealed, nil)
	fmt.Printf("%s %v\n", opened, err)
	// Output: secret <nil>
}
