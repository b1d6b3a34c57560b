// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"tamga/internal/app/dev"
	"tamga/internal/sigtest"
	"tamga/internal/tamgatest"
	"tamga/pki/suite"
)

// benchBucket returns the flags for the bucket of an address with keys.
func benchBucket(b *testing.B, address string) []string {
	b.Helper()
	u, err := url.Parse(address)
	if err != nil || u.User == nil || len(u.Path) < 2 {
		b.Fatal("TAMGA_BENCH_BUCKET: want http://key:secret@host:port/bucket")
	}
	dir := b.TempDir()
	secret, _ := u.User.Password()
	set := func(name, value string) []string { return []string{"--set", "bucket." + name + "=" + value} }
	var flags []string
	for _, f := range [][]string{
		set("endpoint", u.Scheme+"://"+u.Host), set("name", u.Path[1:]), set("region", "us-east-1"), set("path_style", "true"),
		set("prefix", rand.Text()+"/"),
		set("access_key_file", tamgatest.WriteFile(b, filepath.Join(dir, "access"), u.User.Username()+"\n")),
		set("secret_key_file", tamgatest.WriteFile(b, filepath.Join(dir, "secret"), secret+"\n")),
	} {
		flags = append(flags, f...)
	}
	return flags
}

// postJSON sends JSON and reads the answer, if into is not nil.
func postJSON(client *http.Client, address, token string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequest("POST", address, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != 200 {
		return fmt.Errorf("%s: %s %.300s", address, response.Status, answer)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}

// twoSteps is a detached signature by a key of the client.
func (s *benchServer) twoSteps(b *testing.B, document []byte) benchRow {
	b.Helper()
	su := suite.GOST2012x256
	party := sigtest.Root(b, su).Signer(b, su, "A client")
	base := s.server.Dev.BaseURL + "/api/signatures/"
	return benchRow{name: "two-steps-1KiB", clients: 18, signatures: 1, steps: func(client *http.Client, token string) error {
		var prepared struct {
			HashValue     []byte
			CacheObjectID string `json:"CacheObjectId"`
		}
		err := postJSON(client, base+"presign", token, map[string]any{
			"Document": document, "RawCertificate": party.Certificate.Raw, "SignatureType": "CAdES", "SignatureParams": tamgatest.Parameters{"CADESType": "BES", "IsDetached": "True"},
		}, &prepared)
		if err != nil {
			return err
		}
		value, err := su.Sign(rand.Reader, party.Key, suite.Digest{Hash: su.Hash, Sum: prepared.HashValue})
		if err != nil {
			return err
		}
		return postJSON(client, base+"postsign", token, map[string]any{"CacheObjectId": prepared.CacheObjectID, "SignatureValue": value}, nil)
	}}
}

// encryptionCertificate returns the certificate of the user for encryption, DER.
func (s *benchServer) encryptionCertificate(b *testing.B) []byte {
	b.Helper()
	block, _ := pem.Decode(tamgatest.ReadFile(b, s.server.Path("certs/7.pem")))
	return block.Bytes
}

// confirmed is an operation on one document that its user confirms by a code. One user confirms one operation after
// the other, since a code can be used once.
func (s *benchServer) confirmed(b *testing.B, document []byte) benchRow {
	b.Helper()
	person := confirmingAt(b, tamgatest.NewUMS(s.server), []any{map[string]any{"Content": document, "ContentInfo": "1.txt"}})
	return benchRow{name: "confirmed-by-code-1KiB", clients: 1, signatures: 1, steps: func(*http.Client, string) error {
		person.operation()
		return nil
	}}
}

// storedDocuments is an operation on 100 stored documents, whose results are stored documents.
func (s *benchServer) storedDocuments(b *testing.B, document []byte, c dev.Certificate) benchRow {
	b.Helper()
	const documents = 100
	store := tamgatest.Documents(s.server, s.token)
	list := make([]map[string]any, documents)
	for i := range list {
		list[i] = map[string]any{"RefId": store.Put(document, map[string]string{"FileName": fmt.Sprintf("%d.txt", i)})}
	}
	body := map[string]any{
		"BinaryData": list,
		"Signature":  map[string]any{"Type": "CAdES", "Parameters": tamgatest.Parameters{"CADESType": "BES", "IsDetached": "True"}, "CertificateId": c.ID, "PinCode": ""},
	}
	address := s.server.Dev.BaseURL + "/api/v2/signature"
	return benchRow{name: "v2-100-stored", clients: 4, signatures: documents, steps: func(client *http.Client, token string) error {
		var answer json.RawMessage
		if err := postJSON(client, address, token, body, &answer); err != nil {
			return err
		}
		if n := strings.Count(string(answer), `"RefId":`); n < documents {
			return fmt.Errorf("%d results: %.300s", n, answer)
		}
		return nil
	}}
}
