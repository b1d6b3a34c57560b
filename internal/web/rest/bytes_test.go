// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"tamga/internal/domain/audit"
)

// TestBytes sends bodies that are not JSON, to routes with audit entries and to some
// without.
func TestBytes(t *testing.T) {
	j := &auditLog{grown: make(chan struct{}, 100)}
	gate := &Gate{Audit: j, Log: slog.New(slog.DiscardHandler)}
	type body struct{ Body Bytes }
	answer := func(ctx context.Context, r body) (File, error) {
		audit.Changed(ctx, "")
		return File{Content: strings.NewReader(string(r.Body)), Type: "application/timestamp-reply"}, nil
	}
	mux := http.NewServeMux()
	Mount(mux, "", gate, []Route{
		Handle("POST /stamp", "Stamp", Anyone, answer).AtMost(10),
		Handle("POST /status", "Status", Anyone, answer).AtMost(10).Unaudited(),
		Handle("GET /status/{rest...}", "StatusGet", Anyone, func(_ context.Context, r struct {
			Rest string `path:"rest"`
		}) (File, error) {
			return File{Content: strings.NewReader(r.Rest)}, nil
		}).Unaudited(),
		Handle("GET /{file}", "File", Anyone, func(context.Context, struct{}) (None, error) { return None{}, nil }).Exact(),
	})
	ask := func(method, path, text string) (int, string, string) {
		t.Helper()
		w := httptest.NewRecorder()
		r := httptest.NewRequest(method, path, strings.NewReader(text))
		r.Header.Set("Content-Type", "application/whatever")
		mux.ServeHTTP(w, r)
		b, err := io.ReadAll(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		return w.Code, w.Header().Get("Content-Type"), string(b)
	}
	for _, path := range []string{"/stamp", "/stamp/", "/status"} {
		if code, kind, text := ask("POST", path, "0\x80{\"\xff"); code != 200 || text != "0\x80{\"\xff" || kind != "application/timestamp-reply" {
			t.Errorf("%s: %d %s %q", path, code, kind, text)
		}
	}
	if code, _, text := ask("POST", "/status", ""); code != 200 || text != "" {
		t.Errorf("an empty body: %d %q", code, text)
	}
	if code, _, _ := ask("POST", "/status", "0123456789"); code != 200 {
		t.Errorf("the largest body: %d", code)
	}
	if code, _, _ := ask("POST", "/status", "0123456789a"); code != 413 {
		t.Errorf("a body that is too large: %d", code)
	}
	for path, want := range map[string]string{"/status/a": "a", "/status/a%2Fb%2B%3D": "a/b+=", "/status/a/b+=": "a/b+=", "/status/": ""} {
		if code, _, text := ask("GET", path, ""); code != 200 || text != want {
			t.Errorf("%s: %d %q, want %q", path, code, text, want)
		}
	}
	if code, _, _ := ask("GET", "/file/", ""); code != 404 {
		t.Errorf("a file with a slash: %d", code)
	}
	if got, want := j.lines(), []string{"Stamp done ok", "Stamp done ok"}; !slices.Equal(got, want) {
		t.Errorf("the audit log holds %q, want %q", got, want)
	}
}

// TestUnauditedIsForAnyone: what a known caller does is written down.
func TestUnauditedIsForAnyone(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a route with a caller is kept out of the audit log")
		}
	}()
	gate := &Gate{
		Audit: &auditLog{}, Log: slog.New(slog.DiscardHandler),
		Identify: func(context.Context, string) (audit.Principal, error) { return audit.Principal{}, nil },
	}
	Mount(http.NewServeMux(), "", gate, []Route{
		Handle("GET /mine", "Mine", SignedIn, func(context.Context, struct{}) (None, error) { return None{}, nil }).Unaudited(),
	})
}
