// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"encoding/base64"
	"testing"

	"tamga/internal/sigtest"
	"tamga/pki/suite"
)

// TestReadAnyCertificate reads the signer's certificate in every form that clients send.
func TestReadAnyCertificate(t *testing.T) {
	p := sigtest.Root(t, suite.GOST2012x256)
	der, text := p.Certificate.Raw, p.PEM()
	for name, data := range map[string][]byte{
		"DER": der, "PEM": text,
		"Base64 of DER":      []byte(base64.StdEncoding.EncodeToString(der)),
		"Base64 of PEM":      []byte(base64.StdEncoding.EncodeToString(text)),
		"Base64 with breaks": []byte(" " + base64.StdEncoding.EncodeToString(text)[:64] + "\r\n" + base64.StdEncoding.EncodeToString(text)[64:] + "\n"),
	} {
		if c, err := readAnyCertificate(data); err != nil || !c.Equal(p.Certificate) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, data := range map[string]string{
		"nothing": "", "text": "a certificate", "Base64 of text": base64.StdEncoding.EncodeToString([]byte("a certificate")),
		"twice in Base64": base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString(der))),
	} {
		if _, err := readAnyCertificate([]byte(data)); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
