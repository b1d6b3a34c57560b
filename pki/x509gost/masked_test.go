// SPDX-License-Identifier: Apache-2.0

package x509gost_test

import (
	"bytes"
	"testing"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"

	"tamga/internal/judge"
	"tamga/pki/x509gost"
)

// TestOpenSSLUnmasks checks that gost-engine and this package read the same key from a
// number with any masks (RFC 9548, section 5.1).
func TestOpenSSLUnmasks(t *testing.T) {
	tool := judge.OpenSSL(t)
	for _, k := range judgedCases(t) {
		if !k.suite.IsGOST() {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			plain, err := x509gost.MarshalPrivateKey(k.key, k.suite)
			if err != nil {
				t.Fatal(err)
			}
			var seq, algorithm, scalar cryptobyte.String
			in := cryptobyte.String(plain)
			if !in.ReadASN1(&seq, cbasn1.SEQUENCE) || !seq.SkipASN1(cbasn1.INTEGER) ||
				!seq.ReadASN1Element(&algorithm, cbasn1.SEQUENCE) || !seq.ReadASN1(&scalar, cbasn1.OCTET_STRING) {
				t.Fatal("the key was written in another form")
			}
			mask := bytes.Repeat([]byte{0x17}, len(scalar))
			for masks := 1; masks <= 3; masks++ {
				sequence := append(bytes.Clone(scalar), bytes.Repeat(mask, masks)...)
				masked := []byte(tlv(0x30, tlv(2, "\x00"), string(algorithm), tlv(4, string(sequence))))
				key, su, err := x509gost.ParsePrivateKey(masked)
				if err != nil || su != k.suite {
					t.Fatalf("%d masks: %v", masks, err)
				}
				tool.Write("masked.pem", pemOf("PRIVATE KEY", masked))
				public, err := tool.Run("pkey", "-in", "masked.pem", "-pubout")
				if err != nil {
					t.Fatal(err)
				}
				theirs, _, err := x509gost.ParsePublicKey(derOf(t, []byte(public)))
				if err != nil || !theirs.(equaler).Equal(key.Public()) {
					t.Errorf("%d masks: OpenSSL finds another key (%v)", masks, err)
				}
				if k.key.Public().(equaler).Equal(key.Public()) {
					t.Errorf("%d masks change nothing", masks)
				}
			}
		})
	}
}
