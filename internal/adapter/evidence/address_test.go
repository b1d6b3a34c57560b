// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"tamga/internal/adapter/guard"
	"tamga/internal/domain/policy"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// resolverFunc is a guard.Resolver.
type resolverFunc func(host string) []netip.Addr

func (f resolverFunc) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return f(host), nil
}

// Over real sockets: what is inside is refused whichever way it is named, and
// let through when it is excepted.
func TestRealConnections(t *testing.T) {
	service := newStamper(t)
	reached := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { reached++; service.ServeHTTP(w, r) }))
	defer server.Close()
	at := netip.MustParseAddrPort(server.Listener.Addr().String())
	port := netip.AddrPortFrom(at.Addr(), at.Port()).String()[len("127.0.0.1"):]
	dead := httptest.NewServer(nil)
	deadAddress := dead.Listener.Addr().String()
	dead.Close()

	const untrusted = "not trusted" // there are no anchors here: the service was reached
	loopback := []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	mapped := []netip.Addr{netip.MustParseAddr("::ffff:127.0.0.1")}
	exception := func(text string) []guard.Exception {
		e, err := guard.ParseException(text)
		if err != nil {
			t.Fatal(err)
		}
		return []guard.Exception{e}
	}
	for _, c := range []struct {
		name       string
		address    string
		resolves   []netip.Addr
		exceptions []guard.Exception
		want       string
	}{
		{"number", "http://127.0.0.1" + port, nil, nil, "not an address of the public internet"},
		{"name", "http://tsp.example" + port, loopback, nil, "not an address of the public internet"},
		{"mapped", "http://tsp.example" + port, mapped, nil, "not an address of the public internet"},
		{"old spelling", "http://2130706433" + port, loopback, nil, "not an address of the public internet"},
		{"localhost", "http://localhost" + port, loopback, nil, "not an address of the public internet"},
		{"no address", "http://tsp.example" + port, nil, nil, "no address"},
		{"another port", "http://127.0.0.1" + port, nil, exception("127.0.0.1:1"), "not an address of the public internet"},
		{"excepted", "http://tsp.example" + port, loopback, exception("127.0.0.1" + port), untrusted},
		{"excepted number", "http://127.0.0.1" + port, nil, exception("127.0.0.0/8"), untrusted},
		{"private one skipped", "http://tsp.example" + port, append([]netip.Addr{netip.MustParseAddr("10.0.0.1")}, loopback...), exception("127.0.0.1"), untrusted},
		{"excepted name", "http://tsp.example" + port, loopback, exception("TSP.example" + port), untrusted},
		{"another name", "http://other.example" + port, loopback, exception("tsp.example"), "not an address of the public internet"},
		{"another port of the name", "http://tsp.example" + port, loopback, exception("tsp.example:1"), "not an address of the public internet"},
		{"refused connection", "http://" + deadAddress, nil, exception("127.0.0.1"), "it refuses the connection"},
	} {
		t.Run(c.name, func(t *testing.T) {
			reached = 0
			s, err := New(Config{
				Services: func(context.Context) ([]policy.TSPService, error) {
					return []policy.TSPService{{Name: "a", URL: c.address}}, nil
				},
				Anchors:    func(context.Context) (a, b []*x509gost.Certificate, err error) { return nil, nil, nil },
				Exceptions: c.exceptions,
				Resolver:   resolverFunc(func(string) []netip.Addr { return c.resolves }),
				Pause:      1, Tries: 2,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			_, err = s.TimeStamp(t.Context(), c.address, digest())
			var refusal *sig.ErrEvidence
			if !errors.As(err, &refusal) {
				t.Fatal(err)
			}
			if (reached == 1) != (c.want == untrusted) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v after %d requests, want %q", err, reached, c.want)
			}
		})
	}
}

// A name that answers with a public address when it is checked and a private one
// when it is used gains nothing: it is resolved once, and the connection goes to
// what was checked.
func TestRebinding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet(t)
		service := newStamper(t)
		service.before = func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Connection", "close")
			return false
		}
		n.serve("tsp.example", service.ServeHTTP)
		public := n.names["tsp.example"]
		lookups := 0
		s := n.source(func(c *Config) {
			c.Resolver = resolverFunc(func(string) []netip.Addr {
				if lookups++; lookups == 1 {
					return public
				}
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}
			})
		})
		if _, err := s.TimeStamp(t.Context(), stampURL, digest()); err != nil || lookups != 1 {
			t.Fatalf("%v after %d lookups", err, lookups)
		}
		if _, err := s.TimeStamp(t.Context(), stampURL, digest()); err == nil || !strings.Contains(err.Error(), "it is not an address of the public internet, and no exception is configured for it: 127.0.0.1:80") {
			t.Errorf("the second time: %v", err)
		}
		if len(n.dials) != 1 || n.dials[0] != public[0].String()+":80" {
			t.Errorf("connections to %v", n.dials)
		}
	})
}

func TestProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // not used
	synctest.Test(t, func(t *testing.T) {
		n := newInternet(t)
		service := newStamper(t)
		var seen string
		n.serve("proxy.inside:3128", func(w http.ResponseWriter, r *http.Request) { seen = r.URL.String(); service.ServeHTTP(w, r) })
		s := n.source(func(c *Config) { c.Proxy = &url.URL{Scheme: "http", Host: "PROXY.inside:3128"} })
		s.guard.Trusted = func(ctx context.Context, network, address string) (net.Conn, error) {
			// The proxy's own name is the system's to resolve.
			if address == "proxy.inside:3128" {
				address = netip.AddrPortFrom(n.names["proxy.inside"][0], 3128).String()
			}
			return n.connect(ctx, network, address)
		}
		if _, err := s.TimeStamp(t.Context(), stampURL, digest()); err != nil || seen != stampURL {
			t.Errorf("%v through the proxy for %q", err, seen)
		}
	})
	for _, bad := range []string{"socks5://proxy:1", "http://"} {
		u, err := url.Parse(bad)
		if err != nil {
			t.Fatal(err)
		}
		c := Config{Proxy: u,
			Services: func(context.Context) ([]policy.TSPService, error) { return nil, nil },
			Anchors:  func(context.Context) (a, b []*x509gost.Certificate, err error) { return nil, nil, nil }}
		if _, err := New(c); err == nil {
			t.Errorf("proxy %s is taken", bad)
		}
	}
}
