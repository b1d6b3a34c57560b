// SPDX-License-Identifier: Apache-2.0

package signapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
	"tamga/sig"
	"tamga/sig/cades"
	"tamga/sig/pdf"
	"tamga/sig/xmldsig"
)

// uploadOf returns the body of an upload.
func uploadOf(common any, documents ...fields) fields {
	return fields{"Documents": documents, "Signature": common}
}

// begin sends an upload.
func (c *v2) begin(body any, header ...string) (int, []byte) {
	c.t.Helper()
	return c.send("POST", c.Dev.BaseURL+"/api/tamga/operations", body, header...)
}

// TestUpload signs documents in ways of their own in one operation. The common signature is that of the others.
func TestUpload(t *testing.T) {
	t.Parallel()
	c := openV2(t, t.TempDir(), "--set", "operations.async=true")
	text, xml, document := []byte("a text"), []byte(xmlDocument), tamgatest.PDFOf(2)
	detached := fields{"Type": "CAdES", "Parameters": fields{"CADESType": "BES", "IsDetached": "True"}}
	ref := c.upload("act.xml", xml)
	body := uploadOf(detached,
		fields{"Name": "a.txt", "Content": text},
		fields{"Name": "b.pdf", "Content": document, "Signature": fields{"Type": "pdf", "Parameters": fields{"PDFFormat": "CMS", "PDFReason": "x"}}},
		fields{"RefId": ref, "Signature": fields{"Type": "XMLDSig", "Parameters": fields{"XMLDsigType": "XMLEnveloped"}}},
		fields{"Name": "c.txt", "Content": text, "Signature": fields{"Type": "cades", "Parameters": fields{"IsDetached": "True", "CADESType": "BES"}}},
	)
	status, answer := c.begin(body, "Idempotency-Key", "upload")
	if status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	op := typed[operationBody](t, answer).Operation
	if op.Status != "Completed" || len(op.Result.ProcessedDocuments) != 4 {
		t.Fatalf("%s", answer)
	}
	for i, want := range []struct {
		name     string
		format   sig.Format
		document []byte
	}{{"a.txt.sig", cades.New(), text}, {"b.pdf", &pdf.Format{CMS: cades.New()}, nil}, {"act.xml", xmldsig.New(), nil}, {"c.txt.sig", cades.New(), text}} {
		d := op.Result.ProcessedDocuments[i]
		content := d.Content
		if d.RefID != nil {
			content = c.content(d.RefID.String())
		}
		if d.Status != "Completed" || d.ContentInfo == nil || *d.ContentInfo != want.name {
			t.Errorf("document %d: %+v", i, d)
		}
		good(t, want.format, c, content, want.document)
	}
	info := c.info(op.ID)
	var parameters struct {
		Ways []struct {
			Type       string
			Parameters map[string]string
		}
	}
	if err := json.Unmarshal([]byte(info.Parameters), &parameters); err != nil || len(parameters.Ways) != 3 || parameters.Ways[0].Type != "CAdES" || parameters.Ways[1].Parameters["PDFReason"] != "x" || info.Type != "SignDocuments" {
		t.Errorf("the list says %s of %s, %v", info.Parameters, info.Type, err)
	}
	if again, repeated := c.begin(body, "Idempotency-Key", "upload"); again != 200 || !bytes.Equal(repeated, answer) {
		t.Errorf("repeated: %d %.300s", again, repeated)
	}

	// Without a request, by what is stored.
	body["IsAsync"] = true
	if status, answer = c.begin(body); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	for op = typed[operationBody](t, answer).Operation; op.Status == "Processing"; op = typed[operationBody](t, answer).Operation {
		_, answer = c.send("GET", c.Dev.BaseURL+"/api/v2/signature/"+op.ID.String(), nil)
	}
	if documents := op.Result.ProcessedDocuments; op.Status != "Completed" || len(documents) != 4 || *documents[1].ContentInfo != "b.pdf" {
		t.Fatalf("%s", answer)
	} else {
		good(t, &pdf.Format{CMS: cades.New()}, c, documents[1].Content, nil)
		good(t, cades.New(), c, documents[3].Content, text)
	}
	body["Documents"] = append(body["Documents"].([]fields), fields{"Name": "d", "Content": text, "Signature": fields{"Type": "CAdES", "Parameters": fields{"CADESType": "Z"}}})
	if status, answer = c.begin(body); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	for op = typed[operationBody](t, answer).Operation; op.Status == "Processing"; op = typed[operationBody](t, answer).Operation {
		_, answer = c.send("GET", c.Dev.BaseURL+"/api/v2/signature/"+op.ID.String(), nil)
	}
	if op.Status != "Error" || op.Error == nil || *op.Error != "invalid_signature_params" || strings.Contains(string(answer), "Completed") {
		t.Errorf("with a way that cannot be used: %s", answer)
	}

	// One way alone is what v2 makes.
	status, answer = c.begin(uploadOf(detached, fields{"Name": "a.txt", "Content": text}, fields{"Name": "b.txt", "Content": text}))
	if status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	one := c.info(typed[operationBody](t, answer).Operation.ID)
	two := c.info(c.operation(fields{"BinaryData": []fields{inline("a.txt", text), inline("b.txt", text)}, "Signature": detached}).ID)
	if one.Parameters != two.Parameters || one.Type != two.Type || one.Description != two.Description {
		t.Errorf("one way: %+v, v2: %+v", one, two)
	}

	// The fault of a document is that of the document, as in v2.
	status, answer = c.begin(uploadOf(detached, fields{"Name": "a.txt", "Content": text},
		fields{"Name": "b.pdf", "Content": []byte("no PDF"), "Signature": fields{"Type": "PDF", "Parameters": fields{"PDFFormat": "CMS"}}}))
	if status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	partly := typed[operationBody](t, answer).Operation.Result.ProcessedDocuments
	if partly[0].Status != "Completed" || partly[1].Status != "Error" || partly[1].Error == nil {
		t.Errorf("%s", answer)
	}
}

// TestUploadRefused sends what goes wrong. Each has one clear error, and nothing is signed.
func TestUploadRefused(t *testing.T) {
	t.Parallel()
	c := openV2(t, t.TempDir())
	c.MustRun("user", "add", "other", "--group", "Default", "--password-file", tamgatest.PasswordFile(t), "--data", c.Dir)
	other := &v2{c.Server, t, c.TokenOf("other", tamgatest.Password)}
	foreign := other.upload("foreign", []byte("foreign"))
	own := c.upload("own", []byte("own"))
	stored := c.stored()
	text := fields{"RefId": own}
	cms := fields{"Type": "CMS", "Parameters": fields{"IsDetached": "True"}}
	with := func(d, signature fields) fields {
		out := fields{"Signature": signature}
		for k, v := range d {
			out[k] = v
		}
		return out
	}
	many, ways := make([]fields, 10_001), make([]fields, 33)
	for i := range many {
		many[i] = fields{"Name": "a", "Content": "YQ=="}
	}
	for i := range ways {
		ways[i] = with(text, fields{"Type": "CMS", "Parameters": fields{"IsDetached": "True", "Extra": fmt.Sprint(i)}})
	}
	forced := func(body fields) fields { body["ForceConfirmation"] = true; return body }
	for _, row := range []struct {
		name string
		body fields
		code string
		says string
	}{
		{"nothing", fields{}, "content_required", "Documents is missing"},
		{"too many", uploadOf(cms, many...), "invalid_parameters", "10000"},
		{"no type", uploadOf(nil, text), "invalid_signature_params", "Signature.Type is missing"},
		{"no type of one", uploadOf(cms, text, with(text, fields{"Parameters": fields{}})), "invalid_signature_params", "Documents[1].Signature.Type is missing"},
		{"no common type", uploadOf(fields{"CertificateId": 0}, with(text, cms), text), "invalid_signature_params", "Signature.Type is missing"},
		{"an unknown type", uploadOf(cms, text, text, with(text, fields{"Type": "Wax"})), "invalid_signature_params", `Documents[2]: Signature.Type "Wax"`},
		{"a certificate of one", uploadOf(cms, text, with(text, fields{"Type": "CMS", "CertificateId": 1})), "invalid_parameters", "Documents[1].Signature has a CertificateId"},
		{"a PIN of one", uploadOf(cms, with(text, fields{"Type": "CMS", "PinCode": "1"}), text), "invalid_parameters", "Documents[0].Signature has a CertificateId"},
		{"an original of one", uploadOf(cms, text, with(text, fields{"Type": "CAdES", "Parameters": fields{"OriginalDocument": "YQ=="}})), "invalid_signature_params", "RelatedRefId"},
		{"no document", uploadOf(cms, text, fields{"Name": "x"}), "content_required", "Documents[1] has neither"},
		{"two in one", uploadOf(cms, fields{"RefId": own, "Content": "YQ=="}, text), "invalid_parameters", "Documents[0] has both"},
		{"a long name", uploadOf(cms, text, fields{"RefId": own, "Name": strings.Repeat("x", 1025)}), "invalid_parameters", "Documents[1]: Name,"},
		{"too many ways", uploadOf(cms, ways...), "invalid_signature_params", "more than 32 ways"},
		{"a format that is refused", uploadOf(cms, text, with(text, fields{"Type": "CAdES", "Parameters": fields{"CADESType": "Z"}})), "invalid_signature_params", "Documents[1]: "},
		{"a format that is refused, confirmed", forced(uploadOf(cms, text, with(text, fields{"Type": "CAdES", "Parameters": fields{"CADESType": "Z"}}))), "authn_method_not_confirmed", ""},
		{"a flag", fields{"Documents": []fields{text}, "Signature": cms, "IsAsync": "perhaps"}, "invalid_parameters", "IsAsync"},
		{"another certificate", uploadOf(fields{"Type": "CMS", "CertificateId": 999_999}, text, with(text, fields{"Type": "CAdES"})), "invalid_certificate", ""},
		{"a document of another user alone", uploadOf(cms, fields{"RefId": foreign}), "object_not_found", ""},
	} {
		status, answer := c.begin(row.body)
		var f struct {
			Error       string `json:"error"`
			Description string `json:"error_description"`
		}
		if err := json.Unmarshal(answer, &f); err != nil || status < 400 || status >= 500 || f.Error != row.code || !strings.Contains(f.Description, row.says) {
			t.Errorf("%s: %d %.400s, want %s with %q", row.name, status, answer, row.code, row.says)
		}
		if n := c.stored(); n != stored {
			t.Errorf("%s: %d documents are stored, want %d", row.name, n, stored)
		}
	}
	// Among documents of the caller it is as missing as in v2, and looks like one that does not exist.
	var faults []string
	for _, ref := range []string{foreign, "5a0f1d7e-9a50-4b7e-8f0e-0d4f2c6b7a02"} {
		status, answer := c.begin(uploadOf(cms, fields{"Name": "a.txt", "Content": "YQ=="}, with(fields{"RefId": ref}, fields{"Type": "CAdES"})))
		if status != 200 {
			t.Fatalf("%d %s", status, answer)
		}
		d := typed[operationBody](t, answer).Operation.Result.ProcessedDocuments[1]
		if d.Status != "Error" || d.Error == nil || *d.Error != "object_not_found" {
			t.Fatalf("%s", answer)
		}
		faults = append(faults, *d.ErrorDescription)
	}
	if faults[0] != faults[1] {
		t.Errorf("a document of another user is %q, one that does not exist %q", faults[0], faults[1])
	}
}
