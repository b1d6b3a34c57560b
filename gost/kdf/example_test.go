// SPDX-License-Identifier: Apache-2.0

package kdf_test

import (
	"fmt"

	"tamga/gost/kdf"
)

// Derive a key for a cipher and a key for its authentication code, as CMS does.
func ExampleTree() {
	key, seed := make([]byte, 32), []byte("8 bytes.")
	both, err := kdf.Tree(key, []byte("kdf tree"), seed, 1, 2*kdf.BlockSize)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer clear(both)
	cipherKey, macKey := both[:32], both[32:]
	fmt.Println(len(cipherKey), len(macKey))
	// Output: 32 32
}
