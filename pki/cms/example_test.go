// SPDX-License-Identifier: Apache-2.0

package cms_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"

	"tamga/pki/cms"
	"tamga/pki/pfx"
	"tamga/pki/x509gost"
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

// The example encrypts a document for one recipient and decrypts it with the private key.
func ExampleEncrypt() {
	file, err := os.ReadFile("../../sig/testdata/signer.p12")
	if err != nil {
		fmt.Println(err)
		return
	}
	recipient, err := pfx.Parse(file, "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, document := context.Background(), "a document"
	var message bytes.Buffer
	err = cms.Encrypt(ctx, &message, strings.NewReader(document), int64(len(document)),
		[]*x509gost.Certificate{recipient.Certificate}, cms.Encryption{Cipher: cms.Kuznyechik})
	if err != nil {
		fmt.Println(err)
		return
	}

	key, err := cms.NewRecipientKey(recipient.Key)
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := cms.ParseEnveloped(bytes.NewReader(message.Bytes()), int64(message.Len()))
	if err != nil {
		fmt.Println(err)
		return
	}
	plain := &cms.Buffer{Limit: 1 << 20}
	integrity, err := m.Decrypt(ctx, cms.Opening{Certificate: recipient.Certificate, Key: key}, plain)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s, %v\n", plain.Bytes(), integrity)
	// Output: a document, Verified
}
