// SPDX-License-Identifier: Apache-2.0

package signapi_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf16"

	"tamga/internal/domain/fault"
	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
)

// TestDocumentsOfAnotherKind sends every kind of document to every type of signature
// through every entry. One rule holds everywhere (docs/compatibility.md, "Documents of
// another kind"): a document of another kind than the type needs is the 500 of the
// specification, a document of the right kind that cannot be signed is invalid_content.
func TestDocumentsOfAnotherKind(t *testing.T) {
	t.Parallel()
	server := tamgatest.Start(t)
	c := &v2{Server: server, t: t, bearer: server.Token()}

	const word97 = "WordDocument"
	compound := make([]byte, 3*512)
	copy(compound, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
	binary.LittleEndian.PutUint16(compound[30:], 9) // sectors of 512 bytes, the first one is the directory
	for i, u := range utf16.Encode([]rune(word97)) {
		binary.LittleEndian.PutUint16(compound[512+2*i:], u)
	}
	status, answer := c.send("POST", server.Dev.BaseURL+"/api/documents", tamgatest.Request([]byte("message"), "CAdES", 0, tamgatest.Parameters{"IsDetached": "False"}))
	var message []byte
	if err := json.Unmarshal(answer, &message); status != 200 || err != nil {
		t.Fatalf("%d %s", status, answer)
	}
	docx := tamgatest.DOCXOf(t, 100)
	documents := []struct {
		name, kind string
		content    []byte
		broken     bool
	}{
		{"text", "text", []byte("just a text"), false},
		{"picture", "picture", []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), false},
		{"XML", "XML", []byte("<a><b/></a>"), false},
		{"broken XML", "XML", []byte("<a><b></a>"), true},
		{"PDF", "PDF", tamgatest.PDFOf(10), false},
		{"broken PDF", "PDF", []byte("%PDF-1.7\nand nothing else\n"), true},
		{"Office document", "Office", docx, false},
		{"cut Office document", "Office", docx[:len(docx)/2], true},
		{"document of Word 97", "Office", compound, true},
		{"archive without a document", "archive", emptyArchive, false},
		{"RTF", "RTF", []byte(`{\rtf1 text}`), false},
		{"signed message", "message", message, false},
		{"cut signed message", "message", message[:len(message)-1], true},
		{"signed message as Base64", "message", []byte(base64.StdEncoding.EncodeToString(message)), true},
		{"signed message as PEM", "message", []byte("-----BEGIN CMS-----\n" + base64.StdEncoding.EncodeToString(message) + "\n-----END CMS-----\n"), true},
	}
	formats := []struct {
		signatureType string
		params        tamgatest.Parameters
		kind          string // of document that it signs; "" is any
	}{
		{"GOST3410", tamgatest.Parameters{"Hash": "False"}, ""},
		{"CAdES", tamgatest.Parameters{"CADESType": "BES"}, ""},
		{"CAdES", tamgatest.Parameters{"CmsSignatureType": "Cosign"}, "message"},
		{"CAdES", tamgatest.Parameters{"CmsSignatureType": "Countersign"}, "message"},
		{"CMS", tamgatest.Parameters{"CmsSignatureType": "Cosign"}, "message"},
		{"XMLDSig", tamgatest.Parameters{"XMLDsigType": "XMLEnveloped"}, "XML"},
		{"XMLDSig", tamgatest.Parameters{"XMLDsigType": "XMLTemplate"}, "XML"},
		{"PDF", tamgatest.Parameters{"PDFFormat": "CMS"}, "PDF"},
		{"PDF", tamgatest.Parameters{"PDFFormat": "CAdEST", "TSPAddress": ""}, "PDF"},
		{"MSOffice", tamgatest.Parameters{}, "Office"},
	}
	for i, f := range formats {
		for j, d := range documents {
			want := ""
			switch {
			case f.kind == "" || f.kind == d.kind && !d.broken:
			case f.kind == d.kind:
				want = fault.InvalidContent
			default:
				want = fault.Failed
			}
			if f.params["XMLDsigType"] == "XMLTemplate" && d.name == "XML" {
				want = fault.InvalidContent // XML, but no template
			}
			entries := kindEntries
			if testsize.Of() < testsize.Whole { // each pair by one way, the ways in turn
				entries = entries[(i+j)%len(entries):][:1]
			}
			for _, e := range entries {
				if got := e.code(c, f.signatureType, f.params, d.content); got != want {
					t.Errorf("%s %v, %s, by %s: %q, want %q", f.signatureType, f.params, d.name, e.name, got, want)
				}
			}
		}
	}

	// Raising a signature needs a signed document.
	for _, f := range []struct {
		signatureType string
		params        tamgatest.Parameters
		kind          string
	}{
		{"CAdES", tamgatest.Parameters{"CADESType": "T", "TSPAddress": ""}, "message"},
		{"XMLDSig", tamgatest.Parameters{"XAdESType": "T", "TSPAddress": ""}, "XML"},
	} {
		for _, d := range documents {
			want := fault.Failed
			switch {
			case d.kind == f.kind && (d.broken || d.kind == "XML"):
				want = fault.InvalidContent
			case d.kind == f.kind:
				want = ""
			}
			for path, body := range map[string]any{
				"/api/signatures/enhance":         map[string]any{"Signature": d.content, "SignatureType": f.signatureType, "SignatureParams": f.params},
				"/api/documents/enhancesignature": tamgatest.Request(d.content, f.signatureType, 0, f.params),
			} {
				status, text := c.send("POST", server.Dev.BaseURL+path, body)
				if got := refusedBy(t, status, text); got != want {
					t.Errorf("%s %v, %s, by %s: %q, want %q", f.signatureType, f.params, d.name, path, got, want)
				}
			}
		}
	}
}

// emptyArchive is a ZIP archive without entries.
var emptyArchive = append([]byte("PK\x05\x06"), make([]byte, 18)...)

// kindEntries are the ways a document comes in to be signed. code is the code of the
// refusal, "" for a signed document.
var kindEntries = []struct {
	name string
	code func(c *v2, signatureType string, params tamgatest.Parameters, document []byte) string
}{
	{"v1", func(c *v2, signatureType string, params tamgatest.Parameters, document []byte) string {
		status, text := c.send("POST", c.Dev.BaseURL+"/api/documents", tamgatest.Request(document, signatureType, 0, params))
		return refusedBy(c.t, status, text)
	}},
	{"v1 raw body", func(c *v2, signatureType string, params tamgatest.Parameters, document []byte) string {
		order := tamgatest.Request(nil, signatureType, 0, params)
		delete(order, "Content")
		status, text := c.Server.Stream("/api/documents", c.bearer, order, document)
		return refusedBy(c.t, status, text)
	}},
	{"v1 batch of one", func(c *v2, signatureType string, params tamgatest.Parameters, document []byte) string {
		status, text := c.send("POST", c.Dev.BaseURL+"/api/documents", batchOf(signatureType, params, document))
		return refusedBy(c.t, status, text)
	}},
	{"v1 batch of two", func(c *v2, signatureType string, params tamgatest.Parameters, document []byte) string {
		status, text := c.send("POST", c.Dev.BaseURL+"/api/documents/packagesignature", batchOf(signatureType, params, document, document))
		var b struct{ Errors []*struct{ Message string } }
		if err := json.Unmarshal(text, &b); status != 200 || err != nil || len(b.Errors) != 2 {
			c.t.Fatalf("%d %.300s", status, text)
		}
		if b.Errors[0] == nil {
			return ""
		}
		code, _, _ := strings.Cut(b.Errors[0].Message, ": ")
		return code
	}},
	{"presign", func(c *v2, signatureType string, params tamgatest.Parameters, document []byte) string {
		status, text := c.send("POST", c.Dev.BaseURL+"/api/signatures/presign", map[string]any{
			"Document": document, "RawCertificate": certificatePEM(c), "SignatureType": signatureType, "SignatureParams": params,
		})
		return refusedBy(c.t, status, text)
	}},
	{"v2", func(c *v2, signatureType string, params tamgatest.Parameters, document []byte) string {
		status, text := c.sign(operationOf(signatureType, params, document))
		return refusedBy(c.t, status, text)
	}},
	{"v2 with a stored document", func(c *v2, signatureType string, params tamgatest.Parameters, document []byte) string {
		order := operationOf(signatureType, params)
		order["BinaryData"] = []any{map[string]any{"RefId": c.upload("document", document)}}
		status, text := c.sign(order)
		return refusedBy(c.t, status, text)
	}},
	{"v2 with two documents", func(c *v2, signatureType string, params tamgatest.Parameters, document []byte) string {
		d := c.operation(operationOf(signatureType, params, document, document)).Result.ProcessedDocuments[1]
		if d.Error == nil {
			return ""
		}
		return *d.Error
	}},
}

// certificatePEM is the default certificate as PEM.
func certificatePEM(c *v2) string {
	c.t.Helper()
	text, err := os.ReadFile(c.Path(c.Cert("gost2012-256", false).PEM))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

func batchOf(signatureType string, params tamgatest.Parameters, documents ...[]byte) map[string]any {
	order := tamgatest.Request(nil, signatureType, 0, params)
	delete(order, "Content")
	var list []any
	for i, d := range documents {
		list = append(list, map[string]any{"Name": fmt.Sprint(i), "Content": d})
	}
	order["Documents"] = list
	return order
}

func operationOf(signatureType string, params tamgatest.Parameters, documents ...[]byte) map[string]any {
	var list []any
	for i, d := range documents {
		list = append(list, map[string]any{"ContentInfo": fmt.Sprint(i), "Content": d})
	}
	return map[string]any{"BinaryData": list, "Signature": map[string]any{"Type": signatureType, "Parameters": params, "CertificateId": "0"}}
}

// refusedBy is the code of a refusal, "" for an answer. The status is the code's.
func refusedBy(t testing.TB, status int, text []byte) string {
	t.Helper()
	if status == 200 {
		return ""
	}
	var f struct {
		Message     string
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	want := 400
	if err := json.Unmarshal(text, &f); err != nil || f.Error == "" || f.Description == "" {
		t.Fatalf("not an error: %d %.300s", status, text)
	}
	if f.Error == fault.Failed {
		want = 500
	}
	if status != want || f.Message != f.Error {
		t.Errorf("%d %.300s", status, text)
	}
	return f.Error
}
