package pfx_test

import (
	"fmt"
	"os"

	"tamga/pki/pfx"
)

// A key and its certificate are read from a file that another program wrote.
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
