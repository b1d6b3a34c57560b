// SPDX-License-Identifier: Apache-2.0

package tamgatest

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/files"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// ClientOfTwoSteps makes a key that the server never sees, with a certificate
// signed by itself.
func ClientOfTwoSteps(t testing.TB, su *suite.Suite) (*x509gost.Certificate, x509gost.SignFunc) {
	t.Helper()
	key, err := su.Generate(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(d suite.Digest) ([]byte, error) { return su.Sign(rand.Reader, key, d) }
	name, err := x509gost.BuildName([]x509gost.Attribute{{OID: x509gost.OIDCommonName, Value: "A client"}})
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509gost.CreateCertificate(&x509gost.Template{
		Subject: name, SerialNumber: []byte{1}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}, nil, key.Public(), su, su, sign)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509gost.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, sign
}

// TwoSteps signs with a key of the client's own: presign on one process, the key,
// postsign on another or the same.
func TwoSteps(t testing.TB, first, server *Server, suiteName string, document []byte, judge func(message []byte, root string)) {
	t.Helper()
	su, _ := suite.ByName(suiteName)
	cert, sign := ClientOfTwoSteps(t, su)
	params := Parameters{"IsDetached": "true", "CADESType": "BES"}
	status, answer := first.Call("POST", "/rest/api/signatures/presign", "", map[string]any{
		"Document": document, "RawCertificate": cert.Raw, "SignatureType": "CAdES", "SignatureParams": params,
	})
	var prepared struct {
		HashValue []byte
		Latin     string `json:"CacheObjectId"`
		Cyrillic  string `json:"\u0421acheObjectId"`
	}
	if err := json.Unmarshal(answer, &prepared); err != nil || status != 200 || prepared.Latin == "" || prepared.Latin != prepared.Cyrillic {
		t.Fatalf("presign: %d %s", status, answer)
	}
	value, err := sign(suite.Digest{Hash: su.Hash, Sum: prepared.HashValue})
	if err != nil {
		t.Fatal(err)
	}
	post := func(value []byte) map[string]any {
		return map[string]any{"CacheObjectId": prepared.Latin, "SignatureType": "CAdES", "SignatureValue": value, "SignedHashValue": prepared.HashValue, "SignatureParams": params}
	}
	wrong := bytes.Clone(value)
	wrong[len(wrong)/2] ^= 1
	if status, answer := server.Call("POST", "/api/signatures/postsign", "", post(wrong)); status != 400 || !strings.Contains(string(answer), "invalid_signature_params") {
		t.Errorf("a wrong value is answered %d %s", status, answer)
	}
	if strings.HasPrefix(suiteName, "gost") { // as a cryptographic service provider returns it
		value = bytes.Clone(value)
		slices.Reverse(value)
	}
	message := server.Signed("POST", "/api/signatures/postsign", "", post(value))
	if status, answer := server.Call("POST", "/api/signatures/postsign", "", post(value)); status != 400 || !strings.Contains(string(answer), "invalid_object_state") {
		t.Errorf("an object that is spent is answered %d %s", status, answer)
	}
	judge(message, string(files.PEM(cert)))
}
