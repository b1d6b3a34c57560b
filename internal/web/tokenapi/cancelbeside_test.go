// SPDX-License-Identifier: Apache-2.0

package tokenapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"tamga/internal/judge"
	"tamga/internal/tamgatest"
)

// TestCancelBesideCarryOut cancels a confirmed operation at the moment in which the call that
// carries it out reads the documents of the operation: after the plan was read, before what it
// signs is described. Nothing is lost in the storage then.
func TestCancelBesideCarryOut(t *testing.T) {
	t.Parallel()
	s3 := judge.S3(t)
	target, err := url.Parse(s3.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // it is signed
	}}
	var meanwhile atomic.Pointer[func()] // called once, by the next request that reads an object
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "GET" || r.Method == "HEAD" {
			if do := meanwhile.Swap(nil); do != nil {
				(*do)()
			}
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	secrets := t.TempDir()
	settings := []string{"--set", "confirmation.codes.resend=1s", "--set", "documents.in_database=0"}
	for name, value := range map[string]string{
		"endpoint": front.URL, "name": s3.Bucket, "region": "us-east-1", "prefix": "tamga/", "path_style": "true",
		"access_key_file": tamgatest.WriteFile(t, filepath.Join(secrets, "access"), s3.AccessKey+"\n"),
		"secret_key_file": tamgatest.WriteFile(t, filepath.Join(secrets, "secret"), s3.SecretKey+"\n"),
	} {
		settings = append(settings, "--set", "bucket."+name+"="+value)
	}
	c := &confirming{UMS: tamgatest.StartUMS(t, settings...), t: t}
	c.add("canceller", "otpviasms?level=1")
	token := c.TokenOf("canceller", tamgatest.Password)
	c.Command("cert", "issue", "canceller", "--default")

	status, body := c.Call("POST", "/api/v2/signature", token, map[string]any{
		"BinaryData":        []any{map[string]any{"Content": []byte("inline"), "ContentInfo": "a.txt"}},
		"Signature":         map[string]any{"Type": "CMS", "Parameters": tamgatest.Parameters{"IsDetached": "False"}, "CertificateId": 0},
		"ForceConfirmation": true,
	})
	var created struct{ Operation struct{ ID string } }
	if err := json.Unmarshal(body, &created); err != nil || status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	id := created.Operation.ID
	ref := c.ask("/v2.0/confirmation", "Bearer "+token, c.begin(fmt.Sprintf(`,"OperationId":%q`, id))).Challenge.ContextData.RefID
	done := c.ask("/v2.0/confirmation", "Bearer "+token, c.answerTo(ref, c.Code(c.phone)))
	if done.AccessToken == "" {
		t.Fatalf("%+v", done)
	}
	cancelled := 0
	do := func() {
		cancelled, body = c.Do(t.Context(), "DELETE", c.Dev.IDPURL+"/operations/"+id, token, nil)
	}
	meanwhile.Store(&do)
	status, answer := c.Call("POST", "/api/v2/signature", done.AccessToken, map[string]any{})
	if cancelled != 200 {
		t.Fatalf("the cancellation: %d %s", cancelled, body)
	}
	if status != 400 || !strings.Contains(string(answer), `"error":"invalid_transaction"`) || !strings.Contains(string(answer), "was cancelled") {
		t.Errorf("%d %s, want 400 invalid_transaction", status, answer)
	}
	if strings.Contains(c.Logged(), "document_lost") || strings.Contains(c.Logged(), "level=ERROR") {
		t.Errorf("the log:\n%s", c.Logged())
	}
}
