// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"testing"

	"tamga/internal/judge"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// GnuPG reads what we encrypt, and we read what it encrypts. Its version 2.2 knows neither OAEP nor
// AuthEnvelopedData, and imports RSA keys only.
func TestGPGSM(t *testing.T) {
	gpgsm, tool := judge.NewGPGSM(t), judge.OpenSSL(t)
	p := newParty(t, suite.RSASHA256, nil, 1)
	pkcs8, err := x509gost.MarshalPrivateKey(p.private, suite.RSASHA256)
	if err != nil {
		t.Fatal(err)
	}
	gpgsm.Import(tool, p.certificate.Raw, pkcs8)
	for _, size := range []int{0, 1, 8, 1023, 1024, 1025, 100_000} {
		text := textOf(size)
		for _, announced := range []int64{int64(size), -1} {
			got, err := gpgsm.Decrypt(encrypt(t, text, announced, Encryption{}, p))
			if err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d bytes, announced %d: GnuPG does not read ours: %d bytes, %v", size, announced, len(got), err)
			}
		}
		theirs, err := gpgsm.Encrypt(p.certificate.Raw, text)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := decrypt(t, theirs, p.opening()); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%d bytes: we do not read theirs: %d bytes, %v", size, len(got), err)
		}
	}
}
