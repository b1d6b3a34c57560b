// SPDX-License-Identifier: Apache-2.0

package cms_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"

	"tamga/pki/cms"
	"tamga/pki/pfx"
)

// The example writes, reads and checks a detached message with one signature. Package
// sig/cades does this for the levels of CAdES and also checks certificates.
func ExampleParse() {
	file, err := os.ReadFile("../../sig/testdata/signer.p12")
	if err != nil {
		fmt.Println(err)
		return
	}
	signer, err := pfx.Parse(file, "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	digest := signer.Suite.Hash.Digest([]byte("a document"))
	attributes := cms.BuildSignedAttributes(cms.ContentType(cms.OIDData), cms.MessageDigest(digest))
	value, err := signer.Suite.Sign(rand.Reader, signer.Key, signer.Suite.Hash.Digest(attributes))
	if err != nil {
		fmt.Println(err)
		return
	}
	head, tail, err := cms.Encode(cms.OIDData, -1, [][]byte{signer.Certificate.Raw}, nil, []cms.Signer{{
		Certificate: signer.Certificate, Suite: signer.Suite, SignedAttrs: attributes, Signature: value,
	}})
	if err != nil {
		fmt.Println(err)
		return
	}

	message := append(head, tail...)
	m, err := cms.Parse(bytes.NewReader(message), int64(len(message)))
	if err != nil {
		fmt.Println(err)
		return
	}
	certificates, err := m.X509()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range m.Signers {
		c := s.FindCertificate(certificates)
		fmt.Println(c.Subject, s.Check(c, m.ContentType, digest).Err())
	}
	// Output: CN=Example Signer <nil>
}
