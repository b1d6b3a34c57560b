// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tamga/internal/domain/audit"
)

func TestRaw(t *testing.T) {
	j := &auditLog{grown: make(chan struct{}, 100)}
	var sinks []*memory
	gate := &Gate{Audit: j, Log: slog.New(slog.DiscardHandler)}
	open := func(context.Context, audit.Principal) (*memory, error) {
		m := &memory{}
		sinks = append(sinks, m)
		return m, nil
	}
	type request struct {
		Raw  Raw `header:"X-Params"`
		Body struct {
			Name    Text
			Content Blob
		}
	}
	mux := http.NewServeMux()
	Mount(mux, "", gate, []Route{HandleDocuments("POST /sign", "Sign", Anyone, open, func(_ context.Context, docs *Documents[*memory], r request) (string, error) {
		if !r.Raw.Present() {
			text, err := r.Body.Content.Text()
			return "body " + string(r.Body.Name) + " " + text, err
		}
		s, err := docs.Open(r.Raw)
		if err != nil {
			return "", err
		}
		return "raw " + string(r.Body.Name) + " " + s.written.String(), nil
	}).AtMost(1 << 20)})
	params := `{"name":"??>>"}`
	long := strings.Repeat("0123456789", 50_000)
	for _, c := range []struct {
		name, header, body string
		status             int
		want               string
	}{
		{"JSON in the body", "", `{"Name":"n","Content":"x"}`, 200, `"body n x"`},
		{"Base64URL", base64.URLEncoding.EncodeToString([]byte(params)), "bytes", 200, `"raw ??>> bytes"`},
		{"no padding", base64.RawURLEncoding.EncodeToString([]byte(params)), "bytes", 200, `"raw ??>> bytes"`},
		{"the other alphabet", base64.StdEncoding.EncodeToString([]byte(params)), "bytes", 200, `"raw ??>> bytes"`},
		{"long", base64.StdEncoding.EncodeToString([]byte(`{}`)), long, 200, long},
		{"too long", base64.StdEncoding.EncodeToString([]byte(`{}`)), long + long + long, 413, "max_request_length_exceeded"},
		{"no Base64", "{}", "bytes", 400, "X-Params is not Base64URL"},
		{"no JSON", base64.StdEncoding.EncodeToString([]byte(`{"`)), "bytes", 400, "X-Params"},
		{"empty", "=", "bytes", 400, "X-Params is empty"},
		{"no object", base64.StdEncoding.EncodeToString([]byte(`[1]`)), "bytes", 400, "the header X-Params: its value must be an object"},
		{"forgotten", "", "bytes", 400, "the request comes in the header X-Params"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			r := httptest.NewRequest("POST", "/sign", strings.NewReader(c.body))
			if c.header != "" {
				r.Header.Set("X-Params", c.header)
			}
			mux.ServeHTTP(w, r)
			if w.Code != c.status || !strings.Contains(w.Body.String(), strings.Trim(c.want, `"`)) {
				t.Errorf("%d %.300s, want %d %.100s", w.Code, w.Body.String(), c.status, c.want)
			}
		})
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/sign", strings.NewReader("bytes"))
	r.Header["X-Params"] = []string{"e30", "e30"}
	if mux.ServeHTTP(w, r); w.Code != 400 {
		t.Errorf("a header twice: %d", w.Code)
	}
	for _, m := range sinks {
		if m.closed == 0 {
			t.Error("a document stays open")
		}
	}
}
