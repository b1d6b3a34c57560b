// SPDX-License-Identifier: Apache-2.0

package signapi_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"tamga/internal/sigtest"
	"tamga/internal/tamgatest"
	"tamga/pki/suite"
)

// contained returns the files of a container beside META-INF.
func contained(t *testing.T, container []byte) map[string]string {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(container), int64(len(container)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range r.File {
		if f.Name == "mimetype" || strings.HasPrefix(f.Name, "META-INF/") {
			continue
		}
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(content)
	}
	return files
}

// TestContainers makes containers on a running server by every interface: one document and several, in one step and
// in two, with a further signature, and of all documents of an operation. tamga verify checks them.
func TestContainers(t *testing.T) {
	t.Parallel()
	server := tamgatest.Start(t)
	token := server.Token()
	c := &v2{Server: server, t: t, bearer: token}
	ca := server.Path(server.Dev.CAPEM)
	cert := server.Cert("gost2012-256", false).ID
	judged := func(name string, container []byte, signatures int, want map[string]string) {
		t.Helper()
		file := t.TempDir() + "/" + name
		if err := os.WriteFile(file, container, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := verified(t, file, "--ca", ca, "--strict")
		if err != nil || len(r.Signatures) != signatures {
			t.Fatalf("%s: %v, %+v", name, err, r)
		}
		got := contained(t, container)
		for file, content := range want {
			if got[file] != content {
				t.Errorf("%s: %s has %q", name, file, got[file])
			}
		}
		if len(got) != len(want) || len(r.Files) != len(want) {
			t.Errorf("%s: %d files, %+v", name, len(got), r.Files)
		}
		for _, f := range r.Files {
			if len(f.Signatures) != signatures {
				t.Errorf("%s: %s is covered by %v", name, f.Name, f.Signatures)
			}
		}
	}
	type object = map[string]any
	signature := func(more ...string) object {
		p := object{}
		for i := 0; i < len(more); i += 2 {
			p[more[i]] = more[i+1]
		}
		return object{"Type": "ASiC", "Parameters": p, "CertificateId": cert, "PinCode": ""}
	}
	three := []object{{"Name": "b.txt", "Content": []byte("second")}, {"Name": "sub/c.txt", "Content": []byte("third")}}
	all := map[string]string{"a.txt": "first", "b.txt": "second", "sub/c.txt": "third"}
	stamps := []string{"TSPAddress", ""}

	one := server.Signed("POST", "/api/documents", token, object{"Content": []byte("first"), "Name": "a.txt", "Signature": signature("ASiCType", "S")})
	judged("one.asics", one, 1, map[string]string{"a.txt": "first"})
	several := server.Signed("POST", "/api/documents", token, object{"Content": []byte("first"), "Name": "a.txt", "Files": three, "Signature": signature()})
	judged("several.asice", several, 1, all)
	xades := server.Signed("POST", "/api/documents", token, object{
		"Files": append([]object{{"Name": "a.txt", "Content": []byte("first")}}, three...), "Signature": signature(append(stamps, "ASiCFormat", "XAdES", "XAdESType", "T")...),
	})
	judged("xades.asice", xades, 1, all)
	twice := server.Signed("POST", "/api/documents", token, object{"Content": several, "Signature": signature(append(stamps, "CmsSignatureType", "Cosign", "CADESType", "T")...)})
	judged("twice.asice", twice, 2, all)

	for what, body := range map[string]object{
		"Files of CAdES":       {"Content": []byte("x"), "Files": three, "Signature": object{"Type": "CAdES", "Parameters": object{}, "CertificateId": cert}},
		"Files with Documents": {"Documents": three, "Files": three, "Signature": signature()},
		"a file without text":  {"Content": []byte("x"), "Files": []object{{"Name": "a"}}, "Signature": signature()},
		"two files of a name":  {"Content": []byte("x"), "Name": "b.txt", "Files": three, "Signature": signature()},
		"Container in a batch": {"Documents": three, "Signature": signature("Container", "one")},
	} {
		if status, text := server.Call("POST", "/api/documents", token, body); status != 400 {
			t.Errorf("%s: %d %s", what, status, text)
		}
	}

	// Two steps with a key of the client's own.
	p := sigtest.Root(t, suite.GOST2012x512).Signer(t, suite.GOST2012x512, "client")
	for _, format := range []string{"CAdES", "XAdES"} {
		status, answer := server.Call("POST", "/api/signatures/presign", "", object{
			"Document": []byte("first"), "Name": "a.txt", "Files": three, "RawCertificate": p.Certificate.Raw, "signatureType": "ASiC", "signatureParams": object{"ASiCFormat": format},
		})
		var prepared struct {
			HashValue     []byte
			CacheObjectID string `json:"CacheObjectId"`
		}
		if err := json.Unmarshal(answer, &prepared); status != 200 || err != nil {
			t.Fatalf("presign: %d %s", status, answer)
		}
		made := server.Signed("POST", "/api/signatures/postsign", "", object{
			"CacheObjectId": prepared.CacheObjectID, "SignatureType": "ASiC",
			"SignatureValue": p.Sign(t, suite.Digest{Hash: suite.GOST2012x512.Hash, Sum: prepared.HashValue}),
		})
		if got := contained(t, made); len(got) != 3 || got["sub/c.txt"] != "third" {
			t.Errorf("two steps: %v", got)
		}
		file := t.TempDir() + "/two.asice"
		if err := os.WriteFile(file, made, 0o600); err != nil {
			t.Fatal(err)
		}
		if r, _ := verified(t, file, "--ca", ca); len(r.Signatures) != 1 || !r.Signatures[0].SignatureHolds {
			t.Errorf("two steps: %+v", r)
		}
	}

	// An operation makes one container of all documents, sent with the request or stored before.
	inline := []object{
		{"Content": []byte("first"), "ContentInfo": "a.txt"}, {"Content": []byte("second"), "ContentInfo": "b.txt"}, {"Content": []byte("third"), "ContentInfo": "sub/c.txt"},
	}
	done := c.operation(object{"BinaryData": inline, "Signature": signature("Container", "one")})
	if len(done.Result.ProcessedDocuments) != 3 || done.Result.ProcessedDocuments[1].Content != nil {
		t.Fatalf("%+v", done.Result)
	}
	judged("operation.asice", done.Result.ProcessedDocuments[0].Content, 1, all)
	// The container of stored documents is stored, and each document names it, even beside one that was sent.
	mixed := []object{inline[0], {"RefId": c.upload("b.txt", []byte("second"))}, {"RefId": c.upload("sub/c.txt", []byte("third")), "ContentInfo": "sub/c.txt"}}
	before := c.stored()
	held := c.operation(object{"BinaryData": mixed, "Signature": signature("Container", "one")})
	if n := c.stored(); n != before+1 {
		t.Errorf("one container stored %d documents", n-before)
	}
	for i, d := range held.Result.ProcessedDocuments {
		if d.RefID == nil || *d.RefID != *held.Result.ProcessedDocuments[0].RefID || d.Content != nil || d.ContentInfo == nil {
			t.Fatalf("document %d: %+v", i, d)
		}
	}
	judged("stored.asice", c.content(held.Result.ProcessedDocuments[0].RefID.String()), 1, all)
	c.refusal("object_not_found", object{"BinaryData": []object{inline[0], {"RefId": "5a0f1d7e-9a50-4b7e-8f0e-0d4f2c6b7a02"}}, "Signature": signature("Container", "one")})
	related := []object{inline[0], {"RefId": c.upload("b.txt", []byte("second")), "RelatedRefId": c.upload("c.txt", []byte("third"))}}
	c.refusal("invalid_signature_params", object{"BinaryData": related, "Signature": signature("Container", "one")})
	many := make([]object, 129)
	for i := range many {
		many[i] = object{"Content": []byte("x"), "ContentInfo": fmt.Sprint(i)}
	}
	c.refusal("invalid_parameters", object{"BinaryData": many, "Signature": signature("Container", "one")})
	each := c.operation(object{"BinaryData": inline, "Signature": signature("ASiCType", "S")})
	judged("each.asics", each.Result.ProcessedDocuments[2].Content, 1, map[string]string{"sub/c.txt": "third"})
	c.refusal("invalid_signature_params", object{"BinaryData": inline, "Signature": signature("Container", "one", "ASiCType", "S")})
	c.refusal("invalid_signature_params", object{"BinaryData": inline, "Signature": signature("Container", "two")})
}
