// SPDX-License-Identifier: Apache-2.0

package mode_test

import (
	"bytes"
	"fmt"

	"tamga/gost/kuznyechik"
	"tamga/gost/mode"
)

// Export a key under two keys that both sides have agreed on, and import it.
func ExampleKExp15() {
	macKey, cipherKey := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	iv := []byte("half blk")
	key := bytes.Repeat([]byte{3}, 32)
	exported, err := mode.KExp15(kuznyechik.NewCipher, macKey, cipherKey, iv, key)
	if err != nil {
		fmt.Println(err)
		return
	}
	imported, err := mode.KImp15(kuznyechik.NewCipher, macKey, cipherKey, iv, exported)
	fmt.Println(len(exported), bytes.Equal(imported, key), err)
	exported[0] ^= 1
	_, err = mode.KImp15(kuznyechik.NewCipher, macKey, cipherKey, iv, exported)
	fmt.Println(err == mode.ErrImport)
	// Output:
	// 48 true <nil>
	// true
}
