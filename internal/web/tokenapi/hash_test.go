// SPDX-License-Identifier: Apache-2.0

package tokenapi_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tamga/gost/streebog"
	"tamga/internal/judge"
	"tamga/internal/tamgatest"
)

// TestConfirmedHash has a user confirm the signature of a hash. The user reads that the
// document is unknown, with the hash. An installation may refuse it where a confirmation is
// required, and only there.
func TestConfirmedHash(t *testing.T) {
	t.Parallel()
	for _, refuses := range []bool{false, true} {
		t.Run(fmt.Sprint("refuse_hash=", refuses), func(t *testing.T) {
			t.Parallel()
			c := &confirming{t: t, UMS: tamgatest.StartUMS(t, "--set", fmt.Sprint("confirmation.refuse_hash=", refuses))}
			c.id, c.phone = c.Dev.User.ID, "79250000077"
			phones := "/ums/user/" + c.id + "/phones"
			c.OK(tamgatest.Ours, "POST", phones, fmt.Sprintf("%q", c.phone))
			c.OK(tamgatest.Ours, "POST", phones+"/"+c.phone+"/confirm", "")
			c.OK(tamgatest.Ours, "POST", phones+"/"+c.phone+"/secondaryauth", "")
			c.assign("otpviasms?level=1")
			token := c.Token()
			sum := streebog.Sum256([]byte("pay 1000 roubles\n"))
			hash := sum[:]
			order := func(confirmed bool) map[string]any {
				return map[string]any{
					"BinaryData": []any{map[string]any{"Content": hash, "ContentInfo": "pay.txt"}},
					"Signature": map[string]any{
						"Type": "CMS", "Parameters": tamgatest.Parameters{"IsDetached": "True", "Hash": "True"}, "CertificateId": 0,
					},
					"ForceConfirmation": confirmed,
				}
			}
			type result struct {
				Operation struct {
					ID, Status string
					Result     struct {
						ProcessedDocuments []struct{ Content []byte }
					}
				}
			}
			if status, body := c.Call("POST", "/api/v2/signature", token, order(false)); status != 200 {
				t.Fatalf("without a confirmation: %d %.300s", status, body)
			}
			before := len(c.Captured()) // notices of the new method
			status, body := c.Call("POST", "/api/v2/signature", token, order(true))
			if refuses {
				if status != 403 || !bytes.Contains(body, []byte("access_denied")) {
					t.Errorf("with a confirmation: %d %.300s", status, body)
				}
				if n := len(c.Captured()); n != before {
					t.Errorf("%d messages to the user, want the %d before", n, before)
				}
				return
			}
			var created result
			if err := json.Unmarshal(body, &created); err != nil || status != 200 || created.Operation.Status != "Created" {
				t.Fatalf("with a confirmation: %d %.300s, %v", status, body, err)
			}
			ref := c.ask("/v2.0/confirmation", "Bearer "+token, c.begin(fmt.Sprintf(`,"OperationId":%q`, created.Operation.ID))).Challenge.ContextData.RefID
			code := c.Code(c.phone)
			var proof struct {
				Shown map[string]string
			}
			c.Tokens["demo"] = token
			c.OK("demo", "GET", "/operations/"+created.Operation.ID+"/proof", "").Into(t, &proof)
			for language, unknown := range map[string]string{"en": "unknown document, hash", "ru": "неизвестный документ, хэш"} {
				if text := proof.Shown[language]; !strings.Contains(text, unknown) || !strings.Contains(text, hex.EncodeToString(hash)) || strings.Contains(text, "pay.txt") {
					t.Errorf("the user reads in %s: %s", language, text)
				}
			}
			done := c.ask("/v2.0/confirmation", "Bearer "+token, c.answerTo(ref, code))
			status, body = c.Call("POST", "/api/v2/signature", done.AccessToken, map[string]any{})
			var signed result
			if err := json.Unmarshal(body, &signed); err != nil || status != 200 || len(signed.Operation.Result.ProcessedDocuments) != 1 {
				t.Fatalf("carried out: %d %.300s, %v", status, body, err)
			}
			openssl := judge.OpenSSL(t)
			if _, err := openssl.Run("cms", "-verify", "-binary", "-inform", "DER", "-in", openssl.Write("message", signed.Operation.Result.ProcessedDocuments[0].Content),
				"-content", openssl.Write("content", []byte("pay 1000 roubles\n")), "-CAfile", c.Path(c.Dev.CAPEM)); err != nil {
				t.Error(err)
			}
		})
	}
}
