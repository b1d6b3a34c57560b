// SPDX-License-Identifier: Apache-2.0

package xmldsig_test

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
	"tamga/sig/xmldsig"
)

// An XML document gets an enveloped signature, and the signature is checked.
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
	ctx, format := context.Background(), xmldsig.New()
	result, err := sig.Sign(ctx, format, &sig.Job{
		Document:    bytes.NewReader([]byte("<order><sum>100</sum></order>")),
		Certificate: signer.Certificate,
		Params:      sig.Params{"XMLDsigType": "XMLEnveloped"},
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
	// CN=Example Signer XMLDSig
	// passed
}
