// SPDX-License-Identifier: Apache-2.0

package tokenapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/tamgatest"
)

// TestConfirmedSignature has an operator ask for the confirmation of signatures. A client
// then makes an operation of v2 and a transaction of v1, the user confirms each by a code,
// and OpenSSL verifies what the confirmed token gives.
func TestConfirmedSignature(t *testing.T) { onBothEngines(t, testConfirmedSignature) }

func testConfirmedSignature(t *testing.T, database string) {
	openssl := judge.OpenSSL(t)
	c := confirmingAt(t, database, "other")
	c.id, c.phone = c.Dev.User.ID, "79250000077"
	phones := "/ums/user/" + c.id + "/phones"
	c.OK(tamgatest.Ours, "POST", phones, fmt.Sprintf("%q", c.phone))
	c.OK(tamgatest.Ours, "POST", phones+"/"+c.phone+"/confirm", "")
	c.OK(tamgatest.Ours, "POST", phones+"/"+c.phone+"/secondaryauth", "")
	c.assign("otpviasms?level=1")
	c.OK(tamgatest.Ours, "POST", "/ums/user/"+c.id+"/operationpolicy", "[2]")
	token := c.Token()
	content := []byte("pay 1000 roubles\n")
	signature := map[string]any{"Type": "CMS", "Parameters": tamgatest.Parameters{"IsDetached": "False"}, "CertificateId": 0}
	refused := func(t *testing.T, token string, want int, method, path string, body any) {
		t.Helper()
		if status, answer := c.Call(method, path, token, body); status != want {
			t.Errorf("%s %s: %d %.300s, want %d", method, path, status, answer, want)
		}
	}
	v2 := map[string]any{"BinaryData": []any{map[string]any{"Content": content, "ContentInfo": "pay.txt"}}, "Signature": signature}
	refused(t, token, 400, "POST", "/api/documents", map[string]any{"Content": content, "Signature": signature})

	for _, way := range []struct {
		name, create, confirmation, key, execute string
		order, more                              any // what is created, and what the confirmed token may not add
	}{
		{"v2", "/api/v2/signature", "/v2.0/confirmation", "OperationId", "/api/v2/signature",
			v2, map[string]any{"Signature": signature}},
		{"v2 once more", "/api/v2/signature", "/v2.0/confirmation", "OperationId", "/api/v2/signature",
			v2, map[string]any{"Signature": signature}},
		{"v1", "/rest/api/transactions", "/confirmation", "TransactionTokenId", "/rest/api/documents",
			map[string]any{"OperationCode": 2, "Document": content, "Parameters": []any{
				map[string]any{"Name": "SignatureType", "Value": "CMS"}, map[string]any{"Name": "CertificateID", "Value": "0"},
				map[string]any{"Name": "IsDetached", "Value": "False"}, map[string]any{"Name": "DocumentInfo", "Value": "pay.txt"},
			}},
			map[string]any{"Content": content, "Signature": signature}},
	} {
		t.Run(way.name, func(t *testing.T) {
			c.T, c.t = t, t
			status, body := c.Call("POST", way.create, token, way.order)
			var created struct{ Operation struct{ ID, Status string } }
			var id string
			switch {
			case status != 200:
			case json.Unmarshal(body, &id) == nil:
			case json.Unmarshal(body, &created) == nil && created.Operation.Status == "Created":
				id = created.Operation.ID
			}
			if id == "" {
				t.Fatalf("%d %s", status, body)
			}
			refused(t, token, 400, "POST", way.execute, map[string]any{}) // the token of the sign-in is no confirmation

			first := c.ask(way.confirmation, "Bearer "+token, c.begin(fmt.Sprintf(",%q:%q", way.key, id)))
			ref, code := first.Challenge.TextChallenge[0].RefID, c.Code(c.phone)
			if bad := c.ask(way.confirmation, "Bearer "+token, c.answerTo(ref, wrong(code))); *bad.IsFinal || bad.AccessToken != "" {
				t.Fatalf("a wrong code: %+v", bad)
			}
			done := c.ask(way.confirmation, "Bearer "+token, c.answerTo(ref, code))
			if !*done.IsFinal || *done.IsError || done.AccessToken == "" {
				t.Fatalf("%+v", done)
			}
			refused(t, done.AccessToken, 401, "GET", "/api/certificates", nil) // it opens nothing else
			refused(t, done.AccessToken, 400, "POST", way.execute, way.more)   // what is signed was said before

			// A key that was used for another confirmation does not give its answer, although the
			// requests are equal but for their tokens.
			want := 200
			if way.name == "v2 once more" {
				want = 422
			}
			if status, body := c.keyed(way.execute, done.AccessToken, "execute "+way.execute); status != want {
				t.Errorf("with a key: %d %.300s, want %d", status, body, want)
			}
			var answers [][]byte
			for range 2 { // the repetition has the same bytes
				status, body := c.Call("POST", way.execute, done.AccessToken, map[string]any{})
				if status != 200 {
					t.Fatalf("%d %s", status, body)
				}
				var operation struct {
					Operation struct {
						Result struct {
							ProcessedDocuments []struct{ Content []byte }
						}
					}
				}
				var message []byte
				if json.Unmarshal(body, &message) != nil {
					if err := json.Unmarshal(body, &operation); err != nil || len(operation.Operation.Result.ProcessedDocuments) != 1 {
						t.Fatalf("%s", body)
					}
					message = operation.Operation.Result.ProcessedDocuments[0].Content
				}
				answers = append(answers, message)
			}
			if !bytes.Equal(answers[0], answers[1]) {
				t.Error("the repetition has other bytes")
			}
			out, err := openssl.Run("cms", "-verify", "-binary", "-cades", "-inform", "DER", "-in", openssl.Write("message", answers[0]),
				"-CAfile", c.Path(c.Dev.CAPEM))
			if err != nil || strings.TrimSpace(out) != strings.TrimSpace(string(content)) {
				t.Errorf("OpenSSL: %q, %v", out, err)
			}
		})
	}
}

// keyed carries out what a token confirms with an Idempotency-Key.
func (c *confirming) keyed(path, token, key string) (int, []byte) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), "POST", c.URL+"/SignServer"+path, strings.NewReader("{}"))
	if err != nil {
		c.t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Authorization": "Bearer " + token, "Idempotency-Key": key} {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	return tamgatest.ReadAll(c.t, response)
}
