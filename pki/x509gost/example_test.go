// SPDX-License-Identifier: Apache-2.0

package x509gost_test

import (
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"time"

	"tamga/pki/chain"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// The example makes a self-signed authority and reads it. It passes the suite, because a
// GOST key of 256 bits alone does not determine its standard.
func ExampleCreateCertificate() {
	s := suite.GOST2012x256
	key, err := s.Generate(rand.Reader)
	if err != nil {
		fmt.Println(err)
		return
	}
	name, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: "Example Authority"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	der, err := x509gost.CreateCertificate(&x509gost.Template{
		Subject: name, SerialNumber: []byte{1},
		NotBefore: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, MaxPathLen: -1, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}, nil, key.Public(), s, s, x509gost.SignWith(rand.Reader, key, s))
	if err != nil {
		fmt.Println(err)
		return
	}
	certificate, err := x509gost.ParseCertificate(der)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(certificate.Subject, certificate.Suite.Name)

	// Parsing does not establish trust. Package chain does.
	_, err = chain.Build(certificate, chain.Options{
		Roots: []*x509gost.Certificate{certificate}, At: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC),
	})
	fmt.Println(err)
	// Output:
	// CN=Example Authority gost2012-256
	// <nil>
}
