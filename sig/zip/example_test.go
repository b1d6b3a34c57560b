// SPDX-License-Identifier: Apache-2.0

package zip_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"tamga/internal/sigtest"
	"tamga/sig/budget"
	"tamga/sig/zip"
)

// A format reads a container of signatures: its first entry, and the digest of each document, without
// holding a document in memory.
func Example() {
	file := sigtest.Zip([]sigtest.ZipEntry{
		{Name: "mimetype", Content: "application/vnd.etsi.asic-e+zip", Store: true},
		{Name: "contract.txt", Content: "The parties agree."},
		{Name: "META-INF/signatures.p7s", Content: "..."},
	}, "")
	ctx, b := budget.Of(context.Background(), int64(len(file)))
	archive, err := zip.Open(b, bytes.NewReader(file))
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range archive.Entries {
		e := &archive.Entries[i]
		if i == 0 && e.Name == "mimetype" && e.Offset == 0 && e.Method == zip.Store {
			kind, err := archive.Content(ctx, e, 100)
			fmt.Printf("%s at %d, %v\n", kind, e.Data, err)
			continue
		}
		sum := sha256.New()
		if err := archive.Copy(ctx, e, sum); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s, %d bytes, %x\n", e.Name, e.Size, sum.Sum(nil)[:4])
	}
	// Output:
	// application/vnd.etsi.asic-e+zip at 38, <nil>
	// contract.txt, 18 bytes, 39d066d8
	// META-INF/signatures.p7s, 3 bytes, ab5df625
}
