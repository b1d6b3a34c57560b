// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"tamga/internal/tamgatest"
)

// TestTraces signs in and signs with traces switched on. The collector gets spans of the routes and of
// the key, and nothing of the users.
func TestTraces(t *testing.T) {
	t.Parallel()
	bodies := make(chan []byte, 100)
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		bodies <- body
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer sink.Close()
	p := tamgatest.Start(t, "--set", "tracing.endpoint="+sink.URL)
	token := p.Token()
	if answer, err := http.Get(p.URL + "/readyz"); err != nil || answer.Body.Close() != nil {
		t.Fatal(err)
	}
	content := []byte("a document that no trace may show")
	p.Signed("POST", "/rest/api/documents?secret=in-a-query", token, tamgatest.Request(content, "CAdES", p.Cert("gost2012-256", false).ID, tamgatest.Parameters{"CADESType": "BES"}))
	if err := p.Stop(); err != nil { // sends what waits
		t.Fatal(err)
	}
	close(bodies)
	parents, spans := map[string]string{}, map[string]string{} // by name, by id
	for body := range bodies {
		for _, secret := range []string{token, p.Dev.User.Login, p.Dev.User.Password, "in-a-query", string(content), "127.0.0.1"} {
			if bytes.Contains(body, []byte(secret)) {
				t.Errorf("a trace has %q", secret)
			}
		}
		var request collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &request); err != nil {
			t.Fatal(err)
		}
		for _, resource := range request.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					spans[string(span.SpanId)] = span.Name
					parents[span.Name] = string(span.ParentSpanId)
				}
			}
		}
	}
	if _, ok := parents["Token"]; !ok {
		t.Errorf("no span of the sign-in: %v", spans)
	}
	if _, ok := parents["readyz"]; ok {
		t.Errorf("the question of monitoring has a span: %v", spans)
	}
	if key, ok := parents["key"]; !ok || spans[key] != "SignDocument" {
		t.Errorf("the span of the key is below %q, want SignDocument", spans[key])
	}
}
