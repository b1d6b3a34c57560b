// SPDX-License-Identifier: Apache-2.0

package pfx_test

import (
	"fmt"
	"os"

	"tamga/pki/pfx"
)

// The example reads a key and its certificate from a file of another program.
func ExampleParse() {
	file, err := os.ReadFile("../../sig/testdata/signer.p12")
	if err != nil {
		fmt.Println(err)
		return
	}
	bundle, err := pfx.Parse(file, "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(bundle.Suite.Name, bundle.Certificate.Subject)
	// Output: gost2012-256 CN=Example Signer
}
