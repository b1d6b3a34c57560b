// SPDX-License-Identifier: Apache-2.0

package signapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
)

// The same key and the same body are one signature, for every call that signs, at
// another process and after a power cut.
func TestIdempotency(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, settings := asynchronous(t, dir)
	c := openV2Process(t, dir, settings...)
	large := bytes.Repeat([]byte("large "), 50_000)
	ref := c.upload("kept", []byte("kept"))
	message, err := json.Marshal(cmsOf(t, c))
	if err != nil {
		t.Fatal(err)
	}
	signature := fields{"Type": "CMS"}
	calls := []struct {
		name, path string
		body       fields
		header     []string
	}{
		{"v1", "/api/documents", fields{"Content": []byte("document"), "Signature": signature}, nil},
		{"v1 large", "/api/documents", fields{"Content": large, "Signature": signature}, nil},
		{"package", "/api/documents/packagesignature", fields{"Documents": []fields{{"Content": []byte("a"), "Name": "a"}, {"Content": []byte("b"), "Name": "b"}}, "Signature": signature}, nil},
		{"v2 inline", "/api/v2/signature", fields{"BinaryData": []fields{inline("a", []byte("x"))}, "Signature": signature}, nil},
		{"v2 stored", "/api/v2/signature", fields{"BinaryData": []fields{{"RefId": ref}}, "Signature": signature}, nil},
		{"v2 asynchronous", "/api/v2/signature", fields{"BinaryData": []fields{{"RefId": ref}}, "Signature": signature, "IsAsync": true}, nil},
		{"enhance", "/api/signatures/enhance", fields{"Signature": json.RawMessage(message), "SignatureType": "CAdES", "SignatureParams": fields{"CADESType": "T", "TSPAddress": c.Dev.TSPURL}}, nil},
		{"refusal", "/api/documents", fields{"Content": []byte("document"), "Signature": fields{"Type": "CMS", "CertificateId": 999}}, nil},
	}
	first := map[string]string{}
	send := func(c *v2, i int) string {
		status, text := c.send("POST", c.Dev.BaseURL+calls[i].path, calls[i].body, "Idempotency-Key", "key of "+calls[i].name)
		return fmt.Sprint(status, " ", string(text))
	}
	check := func(c *v2) {
		t.Helper()
		for i, call := range calls {
			if got := send(c, i); got != first[call.name] {
				t.Errorf("%s: answered %.300s, the first time it was %.300s", call.name, got, first[call.name])
			}
		}
	}
	for i, call := range calls {
		if first[call.name] = send(c, i); !strings.HasPrefix(first[call.name], "200 ") != (call.name == "refusal") {
			t.Fatalf("%s: %.400s", call.name, first[call.name])
		}
	}
	stored := c.stored()
	check(c)
	c = c.again(settings...)
	check(c)
	if n := c.stored(); n < stored || n > stored+1 { // the asynchronous one may have ended since
		t.Errorf("%d documents are stored, %d were before the repetitions", n, stored)
	}
	for i, call := range calls {
		changed := fields{"changed": i}
		for k, v := range call.body {
			changed[k] = v
		}
		if status, text := c.send("POST", c.Dev.BaseURL+call.path, changed, "Idempotency-Key", "key of "+call.name); status != 422 || !strings.Contains(string(text), "idempotency_key_reused") {
			t.Errorf("%s: another body under the key: %d %.200s", call.name, status, text)
		}
	}
	// Many at once: one answer.
	answers := make([]string, 12)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			_, text := c.send("POST", c.Dev.BaseURL+"/api/documents", calls[0].body, "Idempotency-Key", "together")
			answers[i] = string(text)
		})
	}
	all.Wait()
	for _, a := range answers {
		if a != answers[0] {
			t.Error("one request had two answers")
		}
	}
}

// postsign spends its object together with its answer: who lost the answer repeats. If the
// server is killed while postsign waits for a time stamp, the repetition gets the one
// signature as soon as the leases of the dead process are over.
func TestIdempotencyOfTwoSteps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	asked, dead := make(chan struct{}), make(chan struct{})
	var service *httputil.ReverseProxy
	var first sync.Once
	stamps := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first.Do(func() {
			close(asked)
			<-dead
		})
		service.ServeHTTP(w, r)
	}))
	defer stamps.Close()
	settings := []string{
		"--set", "repetitions.lease=2s", "--set", "two_step.lease=1s", "--set", "evidence.allow_networks=[127.0.0.1]", "--set", "evidence.hedge_after=-1s",
		"--set", "evidence.tsp_services=[{name: slow, url: '" + stamps.URL + "'}]", "--set", "evidence.stamp_timeout=30s", "--set", "evidence.total_timeout=30s",
	}
	c := openV2Process(t, dir, settings...)
	address, err := url.Parse(c.Dev.TSPURL)
	if err != nil {
		t.Fatal(err)
	}
	service = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL, r.Out.Host = address, "" }}
	done := c.presigned(fields{"IsDetached": "false"})
	cut := c.presigned(fields{"CADESType": "T", "IsDetached": "false", "TSPAddress": stamps.URL})
	complete := func(body string, key ...string) (int, string) {
		status, text := c.send("POST", c.Dev.BaseURL+"/api/signatures/postsign", body, key...)
		return status, string(text)
	}
	answers := map[string]string{}
	again := func(body, key string) {
		t.Helper()
		status, text := complete(body, "Idempotency-Key", key)
		if answers[key] == "" {
			answers[key] = text
		}
		if status != 200 || text != answers[key] {
			t.Errorf("%s: %d %.200s", key, status, text)
		}
	}
	again(done, "done")
	again(done, "done")
	var lost sync.WaitGroup
	lost.Go(func() {
		request, err := http.NewRequest("POST", c.Dev.BaseURL+"/api/signatures/postsign", strings.NewReader(cut))
		if err != nil {
			t.Error(err)
			return
		}
		request.Header.Set("Authorization", "Bearer "+c.bearer)
		request.Header.Set("Idempotency-Key", "cut off")
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
			t.Errorf("a server that was killed answered %d", response.StatusCode)
		}
	})
	<-asked
	c.Kill()
	close(dead)
	lost.Wait()
	c = c.again(settings...)
	again(done, "done")
	again(cut, "cut off")
	again(cut, "cut off")
	for _, body := range []string{done, cut} {
		if status, text := complete(body); status != 400 || !strings.Contains(text, "invalid_object_state") || !strings.Contains(text, "used already") {
			t.Errorf("without the key: %d %s", status, text)
		}
	}
	entries := c.MustRun("audit", "--operation", "PostSignDocument", "--outcome", "ok", "--limit", "0", "--json", "--data", c.Dir)
	if n := strings.Count(entries, `"object":"prepared object `); n != 2 {
		t.Errorf("want two completions in the audit log:\n%s", entries)
	}
}

// presigned prepares a document with a key of the server and returns the request of the
// second step.
func (c *v2) presigned(params fields) string {
	c.t.Helper()
	p := c.Cert("gost2012-256", false)
	cert, err := os.ReadFile(c.Path(p.PEM))
	if err != nil {
		c.t.Fatal(err)
	}
	status, text := c.send("POST", c.Dev.BaseURL+"/api/signatures/presign", fields{
		"Document": []byte("document"), "RawCertificate": cert, "SignatureType": "CAdES", "SignatureParams": params,
	})
	var prepared struct {
		HashValue     []byte
		CacheObjectID string `json:"CacheObjectId"`
	}
	if err := json.Unmarshal(text, &prepared); status != 200 || err != nil {
		c.t.Fatalf("%d %s", status, text)
	}
	status, text = c.Post(c.bearer, bytes.NewReader(mustJSON(c.t, fields{
		"Content": prepared.HashValue, "Signature": fields{"Type": "GOST3410", "Parameters": fields{"Hash": "True"}, "CertificateId": p.ID},
	})))
	if status != 200 {
		c.t.Fatalf("%d %s", status, text)
	}
	return string(mustJSON(c.t, fields{"CacheObjectId": prepared.CacheObjectID, "SignatureType": "CAdES", "SignatureValue": json.RawMessage(text)}))
}

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The server is killed at any moment. A repeated request gets the first answer, if there was one, and
// one signature in any case.
func TestIdempotencyKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, settings := asynchronous(t, dir)
	c := openV2Process(t, dir, settings...)
	ref := c.upload("kept", []byte("kept"))
	body, err := json.Marshal(fields{"BinaryData": []fields{{"RefId": ref}}, "Signature": fields{"Type": "CMS"}})
	if err != nil {
		t.Fatal(err)
	}
	const senders = 6
	answered := make([]map[string]string, senders)
	var all sync.WaitGroup
	begun := make(chan struct{}, 1000)
	for i := range senders {
		answered[i] = map[string]string{}
		all.Go(func() {
			for n := 0; ; n++ {
				key := fmt.Sprintf("%d-%d", i, n)
				answered[i][key] = ""
				request, err := http.NewRequest("POST", c.Dev.BaseURL+"/api/v2/signature", bytes.NewReader(body))
				if err != nil {
					return
				}
				request.Header.Set("Authorization", "Bearer "+c.bearer)
				request.Header.Set("Idempotency-Key", key)
				response, err := http.DefaultClient.Do(request)
				if err != nil {
					return // the server is gone
				}
				text, err := io.ReadAll(response.Body)
				response.Body.Close()
				if err != nil || response.StatusCode != 200 {
					return
				}
				answered[i][key] = string(text)
				select {
				case begun <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 20 {
		<-begun
	}
	c.Kill()
	all.Wait()
	c = c.again(settings...)
	results, operations := map[string]bool{}, map[string]bool{}
	for _, list := range answered {
		for key, before := range list {
			status, text := c.send("POST", c.Dev.BaseURL+"/api/v2/signature", string(body), "Idempotency-Key", key)
			if status != 200 || before != "" && before != string(text) {
				t.Errorf("%s: %d %s, before the power cut it was %s", key, status, text, before)
				continue
			}
			o := typed[operationBody](t, text).Operation
			results[o.Result.ProcessedDocuments[0].RefID.String()] = true
			operations[o.ID.String()] = true
		}
	}
	// Each has its line, written together with the result.
	entries := c.MustRun("audit", "--operation", "SignatureOperation", "--outcome", "ok", "--limit", "0", "--json", "--data", c.Dir)
	for id := range operations {
		if !strings.Contains(entries, `"operation `+id+`, `) {
			t.Errorf("the audit log does not say that operation %s was done", id)
		}
	}
	if n := c.stored(); n != 1+len(results) {
		t.Errorf("%d documents are stored for one input and %d requests", n, len(results))
	}
}

// cmsOf is a CAdES-BES message as Base64.
func cmsOf(t testing.TB, c *v2) []byte {
	t.Helper()
	o := c.operation(fields{"BinaryData": []fields{inline("a", []byte("x"))}, "Signature": fields{"Type": "CMS"}})
	return o.Result.ProcessedDocuments[0].Content
}
