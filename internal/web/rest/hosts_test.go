// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHosted(t *testing.T) {
	var log bytes.Buffer
	reached := 0
	all := func(string) bool { return true }
	h := Hosted(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }), "Sign.example.org", all, slog.New(slog.NewTextHandler(&log, nil)))
	for host, want := range map[string]int{
		"":          200, // HTTP/1.0 of a balancer
		"localhost": 200, "localhost:8080": 200, "LOCALHOST.": 200, "a.localhost:1": 200, "127.0.0.1:8080": 200, "127.9.9.9": 200, "[::1]:8080": 200, "[::1]": 200,
		"[::ffff:127.0.0.1]:80": 200, "sign.example.org": 200, "SIGN.example.org.:443": 200,
		"evil.example": 421, "evil.example:8080": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421, "evil.example:127.0.0.1": 421, "notlocalhost": 421,
		"192.0.2.1": 421, "0.0.0.0:8080": 421, "[::]:8080": 421, "[fe80::1]": 421, "sign.example.org.evil.example": 421, ":8080": 421, "127.0.0.1@evil.example": 421,
	} {
		r := httptest.NewRequest("POST", "/x", strings.NewReader("body"))
		r.Host = host
		w := httptest.NewRecorder()
		before := reached
		h.ServeHTTP(w, r)
		if w.Code != want || (reached == before) != (want == 421) {
			t.Errorf("Host %q: got %d, want %d", host, w.Code, want)
		}
		if want == 421 && (!strings.Contains(w.Body.String(), "Host names another machine") || w.Header().Get("Cache-Control") != "no-store") {
			t.Errorf("Host %q: %v %s", host, w.Header(), w.Body)
		}
	}
	if !strings.Contains(log.String(), "evil.example") {
		t.Error("the log says nothing")
	}
	some := Hosted(http.NotFoundHandler(), "", func(path string) bool { return path == "/captured" }, slog.New(slog.DiscardHandler))
	for path, want := range map[string]int{"/captured": 421, "/other": 404} {
		w := httptest.NewRecorder()
		some.ServeHTTP(w, httptest.NewRequest("GET", path, nil)) // Host: example.com
		if w.Code != want {
			t.Errorf("%s: got %d, want %d", path, w.Code, want)
		}
	}
}
