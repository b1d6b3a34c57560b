// SPDX-License-Identifier: Apache-2.0

package svsapi_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"tamga/pki/suite"

	"tamga/internal/tamgatest"
)

// TestVerificationService asks as existing clients do, about signatures of every
// suite and about changed copies.
func TestVerificationService(t *testing.T) {
	server := tamgatest.Start(t)
	token := server.Token()
	document := []byte("a document to be judged")
	sign := func(cert int64, params tamgatest.Parameters) []byte {
		return server.Signed("POST", "/api/documents", token, tamgatest.Request(document, "CAdES", cert, params))
	}
	for _, c := range server.Dev.Certificates {
		if c.PIN != "" {
			continue
		}
		t.Run(c.Suite, func(t *testing.T) {
			attached := sign(c.ID, tamgatest.Parameters{"IsDetached": "False"})
			v := server.Verdicts(map[string]any{"SignatureType": "CAdES", "Content": attached})
			if len(v) != 1 || !*v[0].Result {
				t.Fatalf("a good signature: %s", *v[0].Message)
			}
			der, err := base64.StdEncoding.DecodeString(*v[0].SignerCertificate)
			if err != nil || len(der) == 0 || v[0].SignerCertificateInfo == nil || v[0].SignerCertificateInfo.SerialNumber == "" || v[0].SignatureInfo.CAdESType != "BES" || v[0].SignatureInfo.LocalSigningTime == nil {
				t.Errorf("the signer is not told in full: %+v", v[0])
			}
			changed := bytes.Replace(attached, document, bytes.ToUpper(document), 1)
			if v := server.Verdicts(map[string]any{"SignatureType": 2, "Content": changed}); *v[0].Result || *v[0].Message == "" {
				t.Error("a changed copy is called good")
			}

			detached := sign(c.ID, tamgatest.Parameters{"IsDetached": "True"})
			if v := server.Verdicts(map[string]any{"SignatureType": "CMS", "Content": detached, "Source": document, "VerifyParams": map[string]any{"VerifyAll": 1}}); !*v[0].Result {
				t.Errorf("a good detached signature: %s", *v[0].Message)
			}
			if v := server.Verdicts(map[string]any{"SignatureType": "CMS", "Content": detached, "Source": []byte("another document")}); *v[0].Result {
				t.Error("a signature of another document is called good")
			}
		})
	}

	cert := server.Cert("gost2012-256", false).ID
	t.Run("several signers", func(t *testing.T) {
		first := sign(cert, tamgatest.Parameters{"IsDetached": "False"})
		two := server.Signed("POST", "/api/documents", token, tamgatest.Request(first, "CAdES", cert, tamgatest.Parameters{"CmsSignatureType": "Cosign", "IsDetached": "False"}))
		three := server.Signed("POST", "/api/documents", token, tamgatest.Request(two, "CAdES", cert, tamgatest.Parameters{"CmsSignatureType": "Countersign", "SignatureIndex": "1"}))
		all := server.Verdicts(map[string]any{"SignatureType": "CAdES", "Content": three})
		if len(all) != 3 {
			t.Fatalf("%d verdicts, want those of two signers and a countersigner", len(all))
		}
		if one := server.Verdicts(map[string]any{"SignatureType": "CAdES", "Content": three, "VerifyParams": map[string]any{"SignatureIndex": "1"}}); len(one) != 1 || !*one[0].Result {
			t.Errorf("the second signature alone: %+v", one)
		}
		// The status of the standard, and the report of ETSI with the first verdict.
		_, answer := server.AskSVS("POST", "/rest/api/signatures", map[string]any{"SignatureType": "CAdES", "Content": three, "VerifyParams": map[string]any{"ETSIReport": true, "VerifyAll": true}})
		var told []struct {
			SignatureInfo struct {
				Indication, SubIndication string
				GoodUntil                 *string
				ETSIReport                []byte
			}
		}
		if err := json.Unmarshal(answer, &told); err != nil || len(told) != 3 {
			t.Fatalf("%v in %s", err, answer)
		}
		if of := told[0].SignatureInfo; of.Indication != "TOTAL-PASSED" || of.SubIndication != "" || of.GoodUntil == nil || bytes.Count(of.ETSIReport, []byte("<SignatureValidationReport>")) != 3 || told[1].SignatureInfo.ETSIReport != nil {
			t.Errorf("%s", answer)
		}
		status, body := server.AskSVS("POST", "/api/signatures/signersinfo", map[string]any{"SignatureType": "CAdES", "Content": three})
		var signers struct {
			SignerInfoList []struct {
				ID       string `json:"Id"`
				Index    int
				ParentID *string `json:"ParentId"`
			}
		}
		if err := json.Unmarshal(body, &signers); status != 200 || err != nil || len(signers.SignerInfoList) != 3 {
			t.Fatalf("signersInfo: %d %s", status, body)
		}
		parents := 0
		for _, s := range signers.SignerInfoList {
			if s.ParentID != nil {
				parents++
			}
		}
		if parents != 1 {
			t.Errorf("signersInfo names %d countersigners, want 1: %s", parents, body)
		}
	})

	t.Run("hash instead of document", func(t *testing.T) {
		detached := sign(cert, tamgatest.Parameters{"IsDetached": "True"})
		sum := suite.Streebog256.Digest(document).Sum
		params := map[string]any{"Hash": true, "HashAlgorithm": "GR 34.11-2012 256"}
		if v := server.Verdicts(map[string]any{"SignatureType": "CAdES", "Content": detached, "Source": sum, "VerifyParams": params}); !*v[0].Result {
			t.Errorf("by its hash: %s", *v[0].Message)
		}
		if v := server.Verdicts(map[string]any{"SignatureType": "CAdES", "Content": detached, "Source": sum, "VerifyParams": map[string]any{"3": "True"}}); !*v[0].Result {
			t.Errorf("by a hash whose algorithm is not told: %s", *v[0].Message)
		}
		sum[0] ^= 1
		if v := server.Verdicts(map[string]any{"SignatureType": "CAdES", "Content": detached, "Source": sum, "VerifyParams": params}); *v[0].Result {
			t.Error("another hash is called good")
		}
	})

	t.Run("bare value", func(t *testing.T) {
		value := server.Signed("POST", "/api/documents", token, tamgatest.Request(document, "GOST3410", cert, tamgatest.Parameters{"Hash": "False"}))
		pem := tamgatest.ReadFile(t, server.Path(server.Cert("gost2012-256", false).PEM))
		q := map[string]any{"SignatureType": "GOST3410", "Content": value, "Source": document, "Certificate": string(pem)}
		if v := server.Verdicts(q); len(v) != 1 || !*v[0].Result {
			t.Errorf("a bare value: %+v", v)
		}
		delete(q, "Certificate")
		if status, body := server.AskSVS("POST", "/api/signatures", q); status != 400 || !strings.Contains(string(body), "invalid_parameters") {
			t.Errorf("a bare value without its certificate: %d %s", status, body)
		}
	})

	t.Run("certificate and policy", func(t *testing.T) {
		pem := tamgatest.ReadFile(t, server.Path(server.Cert("gost2012-512", false).PEM))
		status, body := server.AskSVS("POST", "/api/certificates", map[string]any{"Content": pem})
		var v tamgatest.Verdict
		if err := json.Unmarshal(body, &v); status != 200 || err != nil || v.Result == nil || !*v.Result {
			t.Errorf("a good certificate: %d %s", status, body)
		}
		if status, body := server.AskSVS("GET", "/rest/api/policy", nil); status != 200 || !strings.Contains(string(body), `"XMLDSig"`) {
			t.Errorf("policy: %d %s", status, body)
		}
	})

	for name, c := range map[string]struct {
		question map[string]any
		code     string
	}{
		"nothing":                {map[string]any{"SignatureType": "CAdES"}, "content_required"},
		"no signature":           {map[string]any{"SignatureType": "CAdES", "Content": []byte("plain text")}, "invalid_content"},
		"no type":                {map[string]any{"Content": []byte("x")}, "invalid_parameters"},
		"number of no type":      {map[string]any{"SignatureType": 17, "Content": []byte("x")}, "invalid_parameters"},
		"index beyond the last":  {map[string]any{"SignatureType": "CAdES", "Content": sign(cert, tamgatest.Parameters{"IsDetached": "False"}), "VerifyParams": map[string]any{"SignatureIndex": 5}}, "invalid_parameters"},
		"hash longer than any":   {map[string]any{"SignatureType": "CAdES", "Content": sign(cert, tamgatest.Parameters{"IsDetached": "True"}), "Source": make([]byte, 65), "VerifyParams": map[string]any{"Hash": 1}}, "invalid_parameters"},
		"content to be returned": {map[string]any{"SignatureType": "CAdES", "Content": []byte("x"), "VerifyParams": map[string]any{"ExtractContent": true}}, "invalid_parameters"},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := server.AskSVS("POST", "/api/signatures", c.question)
			if status != 400 || !strings.Contains(string(body), c.code) {
				t.Errorf("%d %s, want 400 with %s", status, body, c.code)
			}
		})
	}
}
