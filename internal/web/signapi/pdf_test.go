// SPDX-License-Identifier: Apache-2.0

package signapi_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"tamga/internal/cli/verify"
	"tamga/internal/files"
	"tamga/internal/judge"
	"tamga/internal/tamgatest"
	"tamga/pki/suite"
)

// TestPDF signs PDF on a running server in each format and with every suite, in one
// step and in two, five times over each other, encrypted and with a visible stamp.
// qpdf and MuPDF judge the structure, Poppler the RSA and ECDSA signatures, tamga
// verify all of them; the GOST messages are judged in sig/pdf by gost-engine.
func TestPDF(t *testing.T) {
	t.Parallel()
	tools := judge.PDF(t)
	server := tamgatest.StartIn(t, t.TempDir()) // asks for the status of its certificates
	token := server.Token()
	ca := server.Path(server.Dev.CAPEM)
	tools.Trust(ordinaryRoots(t, tamgatest.ReadFile(t, ca))...)
	document := tamgatest.PDFOf(5000)
	dir := t.TempDir()
	judged := func(t *testing.T, document []byte, args ...string) (verify.Report, error) {
		t.Helper()
		file := dir + "/signed.pdf"
		if err := os.WriteFile(file, document, 0o600); err != nil {
			t.Fatal(err)
		}
		return verified(t, file, append(args, "--ca", ca)...)
	}
	sign := func(content []byte, cert int64, params tamgatest.Parameters) []byte {
		return server.Signed("POST", "/api/documents", token, tamgatest.Request(content, "PDF", cert, params))
	}
	holds := func(t *testing.T, signed []byte, signatures int, password string) {
		t.Helper()
		if err := tools.CheckQPDF(signed, password); err != nil {
			t.Errorf("qpdf: %v", err)
		}
		if err := tools.CheckMuPDF(signed, password); err != nil {
			t.Errorf("MuPDF: %v", err)
		}
		var args []string
		if password != "" {
			file := dir + "/password"
			if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			args = []string{"--password-file", file}
		}
		if r, err := judged(t, signed, args...); err != nil || r.Verdict != "passed" || r.Format != "pdf" || len(r.Signatures) != signatures {
			t.Errorf("tamga verify: %v %+v", err, r)
		}
	}
	for _, su := range suites {
		for _, format := range []string{"CMS", "CAdEST", "CAdES"} {
			t.Run(su.name+"/"+format, func(t *testing.T) {
				cert := server.Cert(su.name, false).ID
				signed := sign(document, cert, tamgatest.Parameters{"PDFFormat": format, "TSPAddress": "", "PDFReason": "Согласовано", "PDFLocation": "Москва"})
				if !bytes.HasPrefix(signed, document) {
					t.Error("the original is no prefix of the result")
				}
				holds(t, signed, 1, "")
				changed := bytes.Replace(signed, []byte("/MediaBox[0 0 595 842]"), []byte("/MediaBox[0 0 595 843]"), 1)
				if r, err := judged(t, changed); err == nil || r.Verdict == "passed" {
					t.Error("tamga verify accepts a changed page")
				}
				if strings.HasPrefix(su.name, "gost") {
					return
				}
				for name, d := range map[string][]byte{"signed": signed, "changed": changed} {
					list, err := tools.Signatures(d, "")
					if err != nil || len(list) != 1 {
						t.Fatalf("pdfsig: %v %+v", err, list)
					}
					if s := list[0]; s.Valid != (name == "signed") || name == "signed" && !s.Trusted {
						t.Errorf("%s: pdfsig says %s", name, s.Text)
					}
				}
			})
		}
		t.Run(su.name+"/two steps", func(t *testing.T) {
			pdfTwoSteps(t, server, su.name, document, dir, tamgatest.Parameters{"PDFFormat": "CMS"}, nil)
		})
	}

	t.Run("five in a row", func(t *testing.T) {
		signed := document
		for range 5 {
			signed = sign(signed, server.Cert("rsa-2048", false).ID, tamgatest.Parameters{"PDFFormat": "CMS"})
		}
		holds(t, signed, 5, "")
		list, err := tools.Signatures(signed, "")
		if err != nil || len(list) != 5 {
			t.Fatalf("pdfsig: %v %+v", err, list)
		}
		for i, s := range list {
			// Poppler asks our OCSP responder once and does not take that answer for
			// later signatures by the same certificate. In sig/pdf, where certificates
			// name no responder, it trusts all five.
			if !s.Valid || i == 0 && !s.Trusted {
				t.Errorf("pdfsig says %s", s.Text)
			}
		}
	})

	cert := server.Cert("gost2012-256", false).ID
	t.Run("stamp", func(t *testing.T) {
		appearance := base64.StdEncoding.EncodeToString([]byte(`{"Content":[{"Text":"Подписано электронной подписью"}],"Page":1,"Rect":{"LowerLeftX":50,"LowerLeftY":50,"UpperRightX":350,"UpperRightY":150}}`))
		for _, params := range []tamgatest.Parameters{
			{"PDFFormat": "CMS", "PdfSignatureTemplateId": 1, "PdfSignatureAppearance": appearance},
			{"PDFFormat": "CMS", "PdfSignatureTemplateId ": "1", "PdfSignatureAppearance": appearance}, // as a client sends the key
		} {
			signed := sign(document, cert, params)
			holds(t, signed, 1, "")
			text, err := tools.Text(signed, "")
			if err != nil || !strings.Contains(strings.ReplaceAll(text, "\n", " "), "Подписано электронной подписью") {
				t.Errorf("the page reads %q, %v", text, err)
			}
		}
		long := base64.StdEncoding.EncodeToString([]byte(`{"Content":[{"Text":"Подписано"}],"Unknown":"` + strings.Repeat("x", 200_000) + `"}`))
		holds(t, sign(document, cert, tamgatest.Parameters{"PDFFormat": "CMS", "PdfSignatureTemplateId": 1, "PdfSignatureAppearance": long}), 1, "")
	})

	t.Run("encrypted", func(t *testing.T) {
		const password = "сезам"
		encrypted, err := tools.QPDF(document, "--encrypt", password, "owner", "256", "--")
		if err != nil {
			t.Fatal(err)
		}
		signed := sign(encrypted, cert, tamgatest.Parameters{"PDFFormat": "CMS", "PDFPassword": password})
		holds(t, signed, 1, password)
		encryptedVerdicts(t, server, signed, password, dir)
		status, answer := server.Call("POST", "/api/documents", token, tamgatest.Request(encrypted, "PDF", cert, tamgatest.Parameters{"PDFFormat": "CMS"}))
		if status != 400 || !strings.Contains(string(answer), "PDFPassword") {
			t.Errorf("without its password: %d %s", status, answer)
		}
		status, answer = server.Call("POST", "/api/documents", token, tamgatest.Request(encrypted, "PDF", cert, tamgatest.Parameters{"PDFFormat": "CMS", "PDFPassword": "wrong-secret"}))
		if status != 400 || strings.Contains(string(answer), "wrong-secret") {
			t.Errorf("with a wrong password: %d %s", status, answer)
		}
		// Between two steps the password is nowhere on the disk.
		pdfTwoSteps(t, server, "gost2012-256", encrypted, "", tamgatest.Parameters{"PDFFormat": "CMS", "PDFPassword": "сезам"}, func() {
			for _, file := range []string{"tamga.db", "tamga.db-wal"} {
				data, err := os.ReadFile(server.Path(file))
				if err == nil && bytes.Contains(data, []byte(password)) {
					t.Errorf("%s holds the password", file)
				}
			}
		})
	})

	t.Run("bad input", func(t *testing.T) {
		forbidden := sign(document, cert, tamgatest.Parameters{"PDFFormat": "CMS", "PDFCertificationLevel": "CERTIFIED_NO_CHANGES_ALLOWED"})
		for _, c := range []struct {
			name     string
			document []byte
			params   tamgatest.Parameters
			status   int
			says     string
		}{
			{"text", []byte("just text"), tamgatest.Parameters{"PDFFormat": "CMS"}, 500, `"Message":"An error has occurred"`},
			{"the beginning of a document", document[:100], tamgatest.Parameters{"PDFFormat": "CMS"}, 400, "invalid_content"},
			{"no PDFFormat", document, tamgatest.Parameters{}, 400, "PDFFormat"},
			{"certified against changes", forbidden, tamgatest.Parameters{"PDFFormat": "CMS"}, 400, "certif"},
			{"a service that is not registered", document, tamgatest.Parameters{"PDFFormat": "CAdEST", "TSPAddress": "http://tsp.example/"}, 400, "TSPAddress"},
			{"a page that is not there", document, tamgatest.Parameters{"PDFFormat": "CMS", "PdfSignatureTemplateId": 1, "PdfSignatureAppearance": base64.StdEncoding.EncodeToString([]byte(`{"Page":9}`))}, 400, "Page"},
		} {
			status, answer := server.Call("POST", "/api/documents", token, tamgatest.Request(c.document, "PDF", cert, c.params))
			if status != c.status || !strings.Contains(string(answer), c.says) {
				t.Errorf("%s: %d %.300s; want %d with %q", c.name, status, answer, c.status, c.says)
			}
		}
	})
}

// encryptedVerdicts has an encrypted document judged by the verification service and by
// tamga verify on a terminal, with its password and without.
func encryptedVerdicts(t *testing.T, server *tamgatest.Server, signed []byte, password, dir string) {
	t.Helper()
	ask := func(params map[string]any) (int, string) {
		status, answer := server.AskSVS("POST", "/api/signatures", map[string]any{"SignatureType": "PDF", "Content": signed, "VerifyParams": params})
		return status, string(answer)
	}
	if status, answer := ask(map[string]any{"pdfPassword": password}); status != 200 || !strings.Contains(answer, `"Result":true`) {
		t.Errorf("with its password: %d %s", status, answer)
	}
	for _, wrong := range []string{"", "wrong-secret", " " + password} {
		status, answer := ask(map[string]any{"PDFPassword": wrong})
		if status != 400 || !strings.Contains(answer, "PDFPassword") || strings.Contains(answer, "wrong-secret") {
			t.Errorf("with the password %q: %d %s", wrong, status, answer)
		}
	}
	file := dir + "/encrypted.pdf"
	if err := os.WriteFile(file, signed, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/wrong", []byte("wrong-secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for says, args := range map[string][]string{"--password-file": nil, "does not open the document": {"--password-file", dir + "/wrong"}} {
		r := tamgatest.Run(t.Context(), "", append([]string{"verify", file}, args...)...)
		if r.Code != int(verify.ExitUnreadable) || !strings.Contains(r.Err, says) || strings.Contains(r.Err, "wrong-secret") {
			t.Errorf("tamga verify %q: %v %s", args, r.Failure, r.Err)
		}
	}
}

// pdfTwoSteps signs a document with a key of the client's own; between is called
// between the steps. With a directory the result is judged.
func pdfTwoSteps(t *testing.T, server *tamgatest.Server, suiteName string, document []byte, dir string, params tamgatest.Parameters, between func()) {
	t.Helper()
	su, _ := suite.ByName(suiteName)
	cert, sign := tamgatest.ClientOfTwoSteps(t, su)
	status, answer := server.Call("POST", "/api/signatures/presign", "", map[string]any{
		"Document": document, "RawCertificate": cert.Raw, "SignatureType": "PDF", "SignatureParams": params,
	})
	var prepared struct {
		HashValue     []byte
		CacheObjectID string `json:"CacheObjectId"`
	}
	if err := json.Unmarshal(answer, &prepared); err != nil || status != 200 {
		t.Fatalf("presign: %d %s", status, answer)
	}
	if between != nil {
		between()
	}
	value, err := sign(suite.Digest{Hash: su.Hash, Sum: prepared.HashValue})
	if err != nil {
		t.Fatal(err)
	}
	signed := server.Signed("POST", "/api/signatures/postsign", "", map[string]any{
		"CacheObjectId": prepared.CacheObjectID, "SignatureType": "PDF", "SignatureValue": value, "SignatureParams": params,
	})
	if dir == "" {
		return
	}
	file, roots := dir+"/two.pdf", dir+"/two.pem"
	for name, data := range map[string][]byte{file: signed, roots: files.PEM(cert)} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := verified(t, file, "--ca", roots); err != nil || r.Verdict != "passed" {
		t.Errorf("two steps: %v %+v", err, r)
	}
}
