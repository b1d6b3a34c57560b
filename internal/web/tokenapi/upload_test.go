// SPDX-License-Identifier: Apache-2.0

package tokenapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"tamga/internal/files"
	"tamga/internal/judge"
	"tamga/internal/tamgatest"
	"tamga/pki/suite"
	"tamga/pki/x509gost"
)

// TestConfirmedUpload signs PDFs, an XML document and a text in one operation, which its user confirms once. One
// PDF has a password, which is a secret parameter of its way.
// pdfsig, xmlsec and OpenSSL accept the results.
func TestConfirmedUpload(t *testing.T) {
	openssl, pdf, xmlsec := judge.OpenSSL(t), judge.PDF(t), judge.XMLSec(t)
	c := confirmingAt(t, "", "other")
	c.id, c.phone = c.Dev.User.ID, "79250000077"
	phones := "/ums/user/" + c.id + "/phones"
	c.OK(tamgatest.Ours, "POST", phones, fmt.Sprintf("%q", c.phone))
	c.OK(tamgatest.Ours, "POST", phones+"/"+c.phone+"/confirm", "")
	c.OK(tamgatest.Ours, "POST", phones+"/"+c.phone+"/secondaryauth", "")
	c.assign("otpviasms?level=1")
	token := c.Token()
	const path, password = "/api/tamga/operations", "сезам"
	encrypted, err := pdf.QPDF(tamgatest.PDFOf(2), "--encrypt", password, "owner", "256", "--")
	if err != nil {
		t.Fatal(err)
	}
	text := []byte("pay 1000 roubles\n")
	order := map[string]any{
		"Documents": []any{
			map[string]any{"Name": "act.pdf", "Content": tamgatest.PDFOf(3), "Signature": map[string]any{"Type": "PDF", "Parameters": tamgatest.Parameters{"PDFFormat": "CMS"}}},
			map[string]any{"Name": "pay.txt", "Content": text},
			map[string]any{"Name": "act.xml", "Content": []byte("<act><sum>100</sum></act>"), "Signature": map[string]any{"Type": "XMLDSig", "Parameters": tamgatest.Parameters{"XMLDsigType": "XMLEnveloped", "IncludeCertChain": true}}},
			map[string]any{"Name": "secret.pdf", "Content": encrypted, "Signature": map[string]any{"Type": "PDF", "Parameters": tamgatest.Parameters{"PDFFormat": "CMS", "PDFPassword": password}}},
		},
		"Signature":         map[string]any{"Type": "CMS", "Parameters": tamgatest.Parameters{"IsDetached": "False"}, "CertificateId": c.Cert("rsa-2048", false).ID},
		"ForceConfirmation": true,
	}
	status, body := c.Call("POST", path, token, order)
	var created struct{ Operation struct{ ID, Status string } }
	if err := json.Unmarshal(body, &created); status != 200 || err != nil || created.Operation.Status != "Created" {
		t.Fatalf("%d %s", status, body)
	}
	first := c.ask("/v2.0/confirmation", "Bearer "+token, c.begin(fmt.Sprintf(`,"OperationId":%q`, created.Operation.ID)))
	done := c.ask("/v2.0/confirmation", "Bearer "+token, c.answerTo(first.Challenge.TextChallenge[0].RefID, c.Code(c.phone)))
	if done.AccessToken == "" {
		t.Fatalf("%+v", done)
	}
	if status, body := c.Call("POST", path, done.AccessToken, order); status != 400 || !strings.Contains(string(body), "invalid_operation") {
		t.Errorf("documents with the confirmed token: %d %s", status, body)
	}
	status, body = c.Call("POST", path, done.AccessToken, map[string]any{})
	var result struct {
		Operation struct {
			Status string
			Result struct {
				ProcessedDocuments []struct {
					Status  string
					Content []byte
				}
			}
		}
	}
	if err := json.Unmarshal(body, &result); status != 200 || err != nil || result.Operation.Status != "Completed" || len(result.Operation.Result.ProcessedDocuments) != 4 {
		t.Fatalf("%d %s", status, body)
	}
	if status, again := c.Call("POST", path, done.AccessToken, map[string]any{}); status != 200 || !bytes.Equal(again, body) {
		t.Errorf("repeated: %d %.300s", status, again)
	}
	if status, other := c.Call("POST", "/api/v2/signature", done.AccessToken, map[string]any{}); status != 400 || !bytes.Contains(other, []byte("invalid_operation")) {
		t.Errorf("carried out by v2: %d %.300s", status, other)
	}

	authorities, err := x509gost.ParseCertificates(tamgatest.ReadFile(t, c.Path(c.Dev.CAPEM)))
	if err != nil {
		t.Fatal(err)
	}
	var root []byte // of the certificates that the judges of PDF and XML know
	for _, a := range authorities {
		if a.Suite == suite.ECDSAP256 && a.Issuer.Equal(a.Subject) {
			root = files.PEM(a)
			pdf.Trust(root)
		}
	}
	signed := result.Operation.Result.ProcessedDocuments
	for at, password := range map[int]string{0: "", 3: password} {
		if list, err := pdf.Signatures(signed[at].Content, password); err != nil || len(list) != 1 || !list[0].Valid {
			t.Errorf("document %d: pdfsig: %+v, %v", at, list, err)
		}
	}
	out, err := openssl.Run("cms", "-verify", "-binary", "-cades", "-inform", "DER", "-in", openssl.Write("message", signed[1].Content), "-CAfile", c.Path(c.Dev.CAPEM))
	if err != nil || strings.TrimSpace(out) != strings.TrimSpace(string(text)) {
		t.Errorf("OpenSSL: %q, %v", out, err)
	}
	if err := xmlsec.Verify(signed[2].Content, root, time.Now(), "act"); err != nil {
		t.Errorf("xmlsec: %v", err)
	}
	if xmlsec.Verify(bytes.Replace(signed[2].Content, []byte("100"), []byte("900"), 1), root, time.Now(), "act") == nil {
		t.Error("xmlsec accepts a changed sum")
	}
}
