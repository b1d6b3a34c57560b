// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
)

type markKey struct{}

// Services of this program are asked without a connection, and with the checks of any other.
func TestLocal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet(t)
		remote, own := newStamper(t), newStamper(t)
		n.serve("tsp.example", remote.ServeHTTP)
		var handler http.HandlerFunc
		base, err := url.Parse("http://tsp.example/base/")
		if err != nil {
			t.Fatal(err)
		}
		s := n.source(func(c *Config) {
			c.AllowThirdPartyTSP = true
			c.Local = &Local{URL: base, Path: "/pki/", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler(w, r) })}
		})
		ctx := context.WithValue(t.Context(), markKey{}, "of the caller")
		handler = func(w http.ResponseWriter, r *http.Request) {
			if r.Method != "POST" || r.URL.Path != "/pki/tsp" || r.RequestURI != "/pki/tsp" || r.Host != "TSP.example" || r.RemoteAddr == "" {
				t.Errorf("the handler got %s %s (%s) of %s from %s", r.Method, r.URL.Path, r.RequestURI, r.Host, r.RemoteAddr)
			}
			if r.Context().Value(markKey{}) != nil {
				t.Error("the handler sees values of the caller's context")
			}
			own.ServeHTTP(w, r)
		}
		token, err := s.TimeStamp(ctx, "http://TSP.example/base/pki/tsp", digest())
		if err != nil {
			t.Fatal(err)
		}
		checkToken(t, token)
		if own.calls.Load() != 1 || len(n.dials) != 0 {
			t.Errorf("%d requests in the process and the connections %q", own.calls.Load(), n.dials)
		}
		for _, address := range []string{"http://tsp.example/pki/tsp", "http://tsp.example/base/other"} {
			if _, err := s.TimeStamp(ctx, address, digest()); err != nil {
				t.Fatal(err)
			}
		}
		if own.calls.Load() != 1 || remote.calls.Load() != 2 {
			t.Errorf("%d requests in the process and %d over the network", own.calls.Load(), remote.calls.Load())
		}

		handler = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
		if _, err := s.TimeStamp(ctx, "http://tsp.example/base/pki/tsp", digest()); err == nil || !strings.Contains(err.Error(), "HTTP 503") {
			t.Errorf("a failure: %v", err)
		}
		handler = func(w http.ResponseWriter, r *http.Request) { own.ServeHTTP(w, r); <-r.Context().Done() }
		limited, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := s.TimeStamp(limited, "http://tsp.example/base/pki/tsp", digest()); !errors.Is(err, context.Canceled) {
			t.Errorf("the caller has gone: %v", err)
		}
	})
}
