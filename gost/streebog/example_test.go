// SPDX-License-Identifier: Apache-2.0

package streebog_test

import (
	"fmt"
	"io"
	"strings"

	"tamga/gost/streebog"
)

// The hash of a message in memory. The example M1 of GOST R 34.11-2012, A.1.
func ExampleSum256() {
	sum := streebog.Sum256([]byte("012345678901234567890123456789012345678901234567890123456789012"))
	fmt.Printf("%x\n", sum)
	// Output: 9d151eefd8590b89daa6ba6cb74af9275dd051026bb149a452fd84e5e57b5500
}

// The hash of a stream, in constant memory.
func ExampleNew512() {
	h := streebog.New512()
	if _, err := io.Copy(h, strings.NewReader("012345678901234567890123456789012345678901234567890123456789012")); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%x\n", h.Sum(nil)[:8])
	// Output: 1b54d01a4af5b9d5
}
