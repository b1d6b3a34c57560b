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

	"tamga/internal/cli/verify"
	"tamga/internal/files"
	"tamga/internal/judge"
	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// TestOffice signs documents that LibreOffice made on a running server, with every
// suite, in one step and in two, and once more over the first signature. LibreOffice
// judges the RSA and ECDSA ones; GOST is judged in sig/ooxml by the Java platform and
// OpenSSL, and here by tamga verify.
func TestOffice(t *testing.T) {
	t.Parallel()
	server := tamgatest.Start(t)
	token := server.Token()
	ca := server.Path(server.Dev.CAPEM)
	kinds, documents := []string{"docx"}, [][]byte{tamgatest.DOCXOf(t, 1000)}
	var office *judge.Office // in the quick form LibreOffice judges in sig/ooxml alone
	if testsize.Of() > testsize.Quick {
		office = judge.LibreOffice(t, ordinaryRoots(t, tamgatest.ReadFile(t, ca))...)
		kinds = []string{"docx", "xlsx", "pptx"}
		documents = office.Make("Договор № 7", kinds...)
	}
	dir := t.TempDir()
	judged := func(t *testing.T, name string, document []byte) (verify.Report, error) {
		t.Helper()
		file := dir + "/" + name
		if err := os.WriteFile(file, document, 0o600); err != nil {
			t.Fatal(err)
		}
		return verified(t, file, "--ca", ca)
	}
	var names []string
	var forLibreOffice [][]byte
	var want []bool
	for _, su := range suites {
		t.Run(su.name, func(t *testing.T) {
			cert := server.Cert(su.name, false).ID
			for i, kind := range kinds {
				if kind != "docx" && strings.HasPrefix(su.name, "gost") && su.name != "gost2012-256" {
					continue // the structure is that of the others
				}
				once := server.Signed("POST", "/api/documents", token, tamgatest.Request(documents[i], "MSOffice", cert, tamgatest.Parameters{}))
				twice := server.Signed("POST", "/api/documents", token, tamgatest.Request(once, "MSOffice", server.Cert("rsa-2048", false).ID, tamgatest.Parameters{}))
				for n, signed := range map[int][]byte{1: once, 2: twice} {
					r, err := judged(t, fmt.Sprintf("%s-%d.%s", su.name, n, kind), signed)
					if err != nil || r.Verdict != "passed" || r.Format != "office" || len(r.Signatures) != n {
						t.Errorf("%s with %d signatures: tamga verify says %v %+v", kind, n, err, r)
					}
				}
				changed := changedEntry(t, twice)
				if r, err := judged(t, "changed."+kind, changed); err == nil || r.Verdict == "passed" {
					t.Errorf("%s: tamga verify accepts a changed document", kind)
				}
				if strings.HasPrefix(su.name, "gost") {
					continue
				}
				for _, d := range [][]byte{once, twice, changed} {
					names = append(names, su.name+"."+kind)
					forLibreOffice = append(forLibreOffice, d)
				}
				want = append(want, true, true, false)
			}
			officeTwoSteps(t, server, su.name, documents[0], dir)
		})
	}
	if office != nil {
		for i, signatures := range office.Verify(names, forLibreOffice...) {
			valid := len(signatures) > 0
			for _, s := range signatures {
				valid = valid && s.Valid && s.Certificate == 0
			}
			if valid != want[i] {
				t.Errorf("%s (document %d): LibreOffice says %+v", names[i], i, signatures)
			}
		}
	}

	t.Run("bad input", func(t *testing.T) {
		cert := server.Cert("gost2012-256", false).ID
		for _, c := range []struct {
			name     string
			document []byte
			status   int
			says     string
		}{
			{"text", []byte("just text"), 500, `"Message":"An error has occurred"`},
			{"PDF", []byte("%PDF-1.7\n"), 500, `"Message":"An error has occurred"`},
			{"Word 97", append([]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), make([]byte, 2000)...), 400, "invalid_content"},
			{"half of a package", documents[0][:len(documents[0])/2], 400, "invalid_content"},
			{"nothing", nil, 400, "content_required"},
		} {
			status, answer := server.Call("POST", "/api/documents", token, tamgatest.Request(c.document, "MSOffice", cert, tamgatest.Parameters{}))
			if status != c.status || !strings.Contains(string(answer), c.says) {
				t.Errorf("%s: %d %s; want %d with %q", c.name, status, answer, c.status, c.says)
			}
		}
	})
}

// ordinaryRoots are the roots of a PEM file that programs without GOST can read.
func ordinaryRoots(t *testing.T, data []byte) (list [][]byte) {
	t.Helper()
	certificates, err := x509gost.ParseCertificates(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range certificates {
		if c.IsSelfIssued() && (c.Suite == suite.ECDSAP256 || c.Suite == suite.RSASHA256) {
			list = append(list, files.PEM(c))
		}
	}
	return list
}

// changedEntry returns the package with a letter more in one of its parts.
func changedEntry(t *testing.T, document []byte) []byte {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(document), int64(len(document)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	changed := false
	for _, f := range r.File {
		from, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		switch f.Name {
		case "word/document.xml", "xl/workbook.xml", "ppt/presentation.xml":
			data, changed = append(data, ' '), true
		}
		to, err := w.CreateHeader(&zip.FileHeader{Name: f.Name, Method: f.Method})
		if err != nil {
			t.Fatal(err)
		}
		to.Write(data)
	}
	if err := w.Close(); err != nil || !changed {
		t.Fatalf("changing the package: %v, %v", err, changed)
	}
	return out.Bytes()
}

// officeTwoSteps signs a document with a key of the client's own.
func officeTwoSteps(t *testing.T, server *tamgatest.Server, suiteName string, document []byte, dir string) {
	t.Helper()
	su, _ := suite.ByName(suiteName)
	cert, sign := tamgatest.ClientOfTwoSteps(t, su)
	status, answer := server.Call("POST", "/api/signatures/presign", "", map[string]any{
		"Document": document, "RawCertificate": cert.Raw, "SignatureType": "MSOffice", "SignatureParams": map[string]any{},
	})
	var prepared struct {
		HashValue     []byte
		CacheObjectID string `json:"CacheObjectId"`
	}
	if err := json.Unmarshal(answer, &prepared); err != nil || status != 200 {
		t.Fatalf("presign: %d %s", status, answer)
	}
	value, err := sign(suite.Digest{Hash: su.Hash, Sum: prepared.HashValue})
	if err != nil {
		t.Fatal(err)
	}
	signed := server.Signed("POST", "/api/signatures/postsign", "", map[string]any{
		"CacheObjectId": prepared.CacheObjectID, "SignatureType": "MSOffice", "SignatureValue": value,
	})
	file, roots := dir+"/two.docx", dir+"/two.pem"
	for name, data := range map[string][]byte{file: signed, roots: files.PEM(cert)} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := verified(t, file, "--ca", roots); err != nil || r.Verdict != "passed" {
		t.Errorf("two steps: %v %+v", err, r)
	}
}
