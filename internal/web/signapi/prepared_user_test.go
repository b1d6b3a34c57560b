// SPDX-License-Identifier: Apache-2.0

package signapi_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"tamga/internal/tamgatest"
	"tamga/pki/suite"
)

// TestPreparedOfUser completes what a user prepared as others: another user, a caller without a
// token, an operator who acts as the user. Any caller completes what was prepared without a token.
func TestPreparedOfUser(t *testing.T) {
	t.Parallel()
	w := tamgatest.StartSignIn(t)
	w.Command("user", "add", "other", "--group", "Default", "--password-file", tamgatest.PasswordFile(t))
	demo, other := w.Token(), w.TokenOf("other", tamgatest.Password)
	acting := w.Read(w.Exchange(w.TokenOf(w.Dev.Operator.Login, w.Dev.Operator.Password), tamgatest.Naming("unique_name", w.Dev.User.Login, time.Hour))).AccessToken
	if acting == "" {
		t.Fatal("the operator has no token of the user")
	}
	cert, sign := tamgatest.ClientOfTwoSteps(t, suite.GOST2012x256)
	for _, row := range []struct {
		name, first, second string
		refused             bool
	}{
		{"another user", demo, other, true},
		{"no token", demo, "", true},
		{"an operator for another user", other, acting, true},
		{"the same user", demo, demo, false},
		{"an operator for the user", demo, acting, false},
		{"the user after the operator", acting, demo, false},
		{"prepared without a token", "", other, false},
		{"without any token", "", "", false},
	} {
		status, text := w.Call("POST", "/api/signatures/presign", row.first, map[string]any{
			"Document": []byte("document"), "RawCertificate": cert.Raw, "SignatureType": "CAdES", "SignatureParams": tamgatest.Parameters{"IsDetached": "false"},
		})
		var answer struct {
			HashValue     []byte
			CacheObjectID string `json:"CacheObjectId"`
		}
		if err := json.Unmarshal(text, &answer); err != nil || status != 200 {
			t.Fatalf("%s: %d %s", row.name, status, text)
		}
		complete := func(token string, value []byte) (int, []byte) {
			return w.Call("POST", "/api/signatures/postsign", token, map[string]any{"CacheObjectId": answer.CacheObjectID, "SignatureValue": value})
		}
		good, err := sign(suite.Digest{Hash: suite.GOST2012x256.Hash, Sum: answer.HashValue})
		if err != nil {
			t.Fatal(err)
		}
		if row.refused {
			// Wrong values of others do not count.
			for _, v := range [][]byte{good, make([]byte, 64), make([]byte, 64), make([]byte, 64), make([]byte, 64), make([]byte, 64)} {
				if status, text := complete(row.second, v); status != 404 || !strings.Contains(string(text), `"error":"object_not_found"`) {
					t.Fatalf("%s: %d %s, want 404 object_not_found", row.name, status, text)
				}
			}
			row.second = row.first
		}
		if status, text := complete(row.second, good); status != 200 {
			t.Errorf("%s: %d %s", row.name, status, text)
		}
	}
}
