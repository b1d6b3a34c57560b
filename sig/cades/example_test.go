// SPDX-License-Identifier: Apache-2.0

package cades_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"time"

	"tamga/pki/pfx"
	"tamga/pki/x509gost"
	"tamga/sig"
	"tamga/sig/cades"
)

// A document is signed into a CAdES-BES message that contains it, and the message is
// checked.
func Example() {
	file, err := os.ReadFile("../testdata/signer.p12")
	if err != nil {
		fmt.Println(err)
		return
	}
	signer, err := pfx.Parse(file, "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, format := context.Background(), cades.New()
	result, err := sig.Sign(ctx, format, &sig.Job{
		Document:    bytes.NewReader([]byte("a document")),
		Certificate: signer.Certificate,
		Params:      sig.Params{"CADESType": "BES", "IsDetached": "False"},
		Time:        time.Now(),
	}, rand.Reader, signer.Key)
	if err != nil {
		fmt.Println(err)
		return
	}
	var signed bytes.Buffer
	if _, err := result.WriteTo(&signed); err != nil {
		fmt.Println(err)
		return
	}

	report, err := format.Verify(ctx, &sig.Check{
		Document: bytes.NewReader(signed.Bytes()),
		Roots:    []*x509gost.Certificate{signer.Certificate}, // whom the caller trusts
		At:       time.Now(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range report.Signatures {
		fmt.Println(s.Signer.Subject, s.Level)
	}
	fmt.Println(report.Verdict())
	// Output:
	// CN=Example Signer BES
	// passed
}
