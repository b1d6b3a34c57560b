// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"tamga/internal/web/rest"
)

// TestInner checks that a request of the server itself has the address of its client and
// nothing else of it.
func TestInner(t *testing.T) {
	proxies, err := rest.ParseProxies([]string{"192.0.2.0/24"})
	if err != nil {
		t.Fatal(err)
	}
	front := rest.Identifiable(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %q %v %s", r.Method, r.RequestURI, rest.Remote(r.Context()), r.Header, body)
	}))
	send := rest.Inner(front)
	for _, c := range []struct{ from, want string }{
		{"192.0.2.1:80", `POST /a%2Fb?c=d "198.51.100.7" map[Accept:[x]] text`},
		{"203.0.113.9:80", `POST /a%2Fb?c=d "203.0.113.9" map[Accept:[x]] text`},
		{"[2001:db8::1]:80", `POST /a%2Fb?c=d "2001:db8::1" map[Accept:[x]] text`},
	} {
		outer := rest.Identifiable(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			for _, most := range []int{1000, 7} {
				reply, err := send(r.Context(), "POST", "http://tamga.example/a%2Fb?c=d", http.Header{"Accept": {"x"}}, "text", most)
				if err != nil {
					t.Fatal(err)
				}
				want := c.want[:min(most, len(c.want))]
				if string(reply.Body) != want || reply.Status != http.StatusTeapot || reply.Length != int64(len(c.want)) {
					t.Errorf("%d %q of %d bytes, want %q of %d", reply.Status, reply.Body, reply.Length, want, len(c.want))
				}
			}
		}))
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.from
		r.Header.Set("X-Forwarded-For", "198.51.100.7")
		r.Header.Set("Cookie", "a=b")
		outer.ServeHTTP(httptest.NewRecorder(), r.WithContext(proxies.ConnContext(t.Context(), nil)))
	}
}
