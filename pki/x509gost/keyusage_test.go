// SPDX-License-Identifier: Apache-2.0

package x509gost_test

import (
	"bytes"
	"crypto/x509"
	"testing"

	"tamga/pki/x509gost"
)

func TestKeyUsageExtension(t *testing.T) {
	for usage, want := range map[x509.KeyUsage][]byte{
		x509.KeyUsageDigitalSignature | x509.KeyUsageContentCommitment: {3, 2, 6, 0xc0},
		x509.KeyUsageKeyAgreement:                                      {3, 2, 3, 0x08},
		x509.KeyUsageDecipherOnly:                                      {3, 3, 7, 0, 0x80},
	} {
		e, err := x509gost.KeyUsageExtension(usage)
		if err != nil || !e.Critical || !e.OID.Equal(x509gost.OIDKeyUsage) || !bytes.Equal(e.Value, want) {
			t.Errorf("%b: %+v, %v", usage, e, err)
		}
		if back, err := x509gost.ParseKeyUsage(e.Value); err != nil || back != usage {
			t.Errorf("%b is read as %b, %v", usage, back, err)
		}
	}
	for _, usage := range []x509.KeyUsage{0, -1, x509.KeyUsageDecipherOnly << 1} {
		if e, err := x509gost.KeyUsageExtension(usage); err == nil {
			t.Errorf("%b: %+v", usage, e)
		}
	}
	for _, value := range [][]byte{nil, {3, 0}, {4, 2, 6, 0xc0}, {3, 2, 8, 0xc0}, {3, 2, 6, 0xc0, 0}, {3, 4, 0, 1, 1, 1}} {
		if u, err := x509gost.ParseKeyUsage(value); err == nil {
			t.Errorf("%x is read as %b", value, u)
		}
	}
}

// Each of the nine bits that is read is written and read back.
func FuzzParseKeyUsage(f *testing.F) {
	f.Add([]byte{3, 2, 6, 0xc0})
	f.Add([]byte{3, 3, 7, 0, 0x80})
	f.Fuzz(func(t *testing.T, value []byte) {
		u, err := x509gost.ParseKeyUsage(value)
		if err != nil {
			return
		}
		e, err := x509gost.KeyUsageExtension(u)
		if (err == nil) != (u > 0 && u < 1<<9) {
			t.Fatalf("%x is %b, %v", value, u, err)
		}
		if err != nil {
			return
		}
		if back, err := x509gost.ParseKeyUsage(e.Value); err != nil || back != u {
			t.Errorf("%b is read back as %b, %v", u, back, err)
		}
	})
}
