// SPDX-License-Identifier: Apache-2.0

package x509gost_test

import (
	"crypto/rand"
	"testing"

	"tamga/pki/x509gost"
)

func BenchmarkParseCertificate(b *testing.B) {
	for _, k := range keyCases(b) {
		der := create(b, leafTemplate(b), nil, k, k).Raw
		b.Run(k.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := x509gost.ParseCertificate(der); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCheckSignature(b *testing.B) {
	for _, k := range keyCases(b) {
		c := create(b, leafTemplate(b), nil, k, k)
		scheme, err := c.Scheme()
		if err != nil {
			b.Fatal(err)
		}
		b.Run(k.name, func(b *testing.B) {
			for b.Loop() { // CheckSignatureFrom computes a right signature once
				if err := c.VerifyBy(scheme, scheme.Input().Digest(c.RawTBS), c.Signature); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCheckSignatureFrom(b *testing.B) {
	for _, k := range keyCases(b) {
		c := create(b, leafTemplate(b), nil, k, k)
		b.Run(k.name, func(b *testing.B) {
			for b.Loop() {
				if err := c.CheckSignatureFrom(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFind(b *testing.B) {
	k := keyCases(b)[0]
	root := create(b, rootTemplate(b), nil, k, k)
	t := &x509gost.CRLTemplate{ThisUpdate: start, NextUpdate: end, Number: []byte{1}}
	for range 100_000 {
		serial := make([]byte, 16)
		if _, err := rand.Read(serial); err != nil {
			b.Fatal(err)
		}
		t.Revoked = append(t.Revoked, x509gost.RevokedEntry{SerialNumber: serial, At: start})
	}
	der, err := x509gost.CreateRevocationList(t, root, k.suite, k.sign())
	if err != nil {
		b.Fatal(err)
	}
	b.Run("parse-100000", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := x509gost.ParseRevocationList(der); err != nil {
				b.Fatal(err)
			}
		}
	})
	l, err := x509gost.ParseRevocationList(der)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("find", func(b *testing.B) {
		for b.Loop() {
			l.Find(t.Revoked[len(t.Revoked)/2].SerialNumber)
		}
	})
}
