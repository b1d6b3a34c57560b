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

	"tamga/internal/domain/policy"
	"tamga/pki/x509gost"
	"tamga/sig"
)

func TestIsPublic(t *testing.T) {
	for _, c := range []struct {
		public bool
		addrs  []string
	}{
		{true, []string{"1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.0.1.1", "198.20.0.1", "223.255.255.255",
			"2a00:1450:4010::1", "2001:4860:4860::8888", "2606:4700::1111"}},
		{false, []string{"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255",
			"192.0.0.1", "192.0.2.1", "192.168.0.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
			"::", "::1", "fe80::1", "fec0::1", "fc00::1", "fd12::1", "ff02::1", "2001:db8::1", "2002:7f00:1::1", "2001:0:7f00:1::1", "64:ff9b::7f00:1", "100::1", "::127.0.0.1", "4000::1",
			"::ffff:127.0.0.1", "::ffff:8.8.8.8"}}, // the last form is undone before anybody asks
	} {
		for _, a := range c.addrs {
			if got := isPublic(netip.MustParseAddr(a)); got != c.public {
				t.Errorf("%s: public %v", a, got)
			}
		}
	}
}

func TestExceptions(t *testing.T) {
	for _, text := range []string{"", ".", "10.0.0.0/33", "10.0.0.1:0", "10.0.0.1:99999", "host:0", "host:", "a b", "1.2.3", "http://host", "fe80::1%eth0", "[fe80::1%eth0]:80", "10.0.0.0/8:80"} {
		if e, err := ParseException(text); err == nil {
			t.Errorf("%q is taken as %v", text, e)
		}
	}
	for _, c := range []struct {
		exception string
		allowed   []string
		refused   []string
	}{
		{"10.1.0.0/16", []string{"10.1.2.3:80", "[::ffff:10.1.2.3]:8080"}, []string{"10.2.0.1:80", "127.0.0.1:80"}},
		{"10.1.2.3", []string{"10.1.2.3:80"}, []string{"10.1.2.4:80"}},
		{"127.0.0.1:8080", []string{"127.0.0.1:8080", "[::ffff:127.0.0.1]:8080"}, []string{"127.0.0.1:8081", "[::1]:8080"}},
		{"::ffff:127.0.0.1", []string{"127.0.0.1:8080"}, []string{"[::1]:8080"}},
		{"[fd00::1]:318", []string{"[fd00::1]:318"}, []string{"[fd00::1]:80", "[fd00::2]:318", "[fd00::1%eth0]:318"}},
		{"fd00::/8", []string{"[fd12::1]:80"}, []string{"[fe80::1]:80"}},
	} {
		e, err := ParseException(c.exception)
		if err != nil {
			t.Fatal(err)
		}
		g := newGuard(Config{Exceptions: []Exception{e}})
		for _, a := range c.allowed {
			if err := g.check(netip.MustParseAddrPort(a)); err != nil {
				t.Errorf("%s, %s: %v", c.exception, a, err)
			}
		}
		for _, a := range c.refused {
			if err := g.check(netip.MustParseAddrPort(a)); err == nil {
				t.Errorf("%s lets %s through", c.exception, a)
			}
		}
	}
}

func TestParse(t *testing.T) {
	e, err := ParseException("10.0.0.1:318")
	if err != nil {
		t.Fatal(err)
	}
	named, err := ParseException("named.example:318")
	if err != nil {
		t.Fatal(err)
	}
	g := newGuard(Config{Exceptions: []Exception{e, named}})
	for _, c := range []struct {
		address    string
		registered bool
		want       string
	}{
		{"http://tsp.example", false, ""},
		{"HTTPS://tsp.example:443/x?y=z#f", false, ""},
		{"http://tsp.example:8080/", false, ""},
		{"http://10.0.0.1:318/", false, ""},
		{"http://tsp.example:318/", true, ""},
		{"http://tsp.example:318/", false, "port 318"},
		{"http://named.example:318/", false, ""},
		{"http://tsp.example:0/", true, "port"},
		{"http://tsp.example:65536/", true, "port"},
		{"http://10.0.0.1/", true, "not an address of the public internet"},
		{"http://[::1]/", true, "not an address of the public internet"},
		{"http://0.0.0.0/", true, "not an address of the public internet"},
		{"http://user@tsp.example/", false, "user name"},
		{"ftp://tsp.example/", false, "want http or https"},
		{"http:tsp.example", false, "malformed"},
		{"http:///x", false, "malformed"},
		{"//tsp.example/", false, "want http or https"},
		{"http://tsp.example/\x7f", false, "malformed"},
		{"http://tsp.example/" + strings.Repeat("a", 2048), false, "malformed"},
	} {
		u, err := g.parse(c.address, c.registered)
		var refused *refusedAddress
		switch {
		case c.want == "" && (err != nil || u.Fragment != ""):
			t.Errorf("%.60s: %v", c.address, err)
		case c.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%.60s: %v, want %q", c.address, err, c.want)
		}
	}
}

// resolverFunc is a Resolver.
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
	exception := func(text string) []Exception {
		e, err := ParseException(text)
		if err != nil {
			t.Fatal(err)
		}
		return []Exception{e}
	}
	for _, c := range []struct {
		name       string
		address    string
		resolves   []netip.Addr
		exceptions []Exception
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

// The kernel's address is looked at again, should anything between have changed
// it.
func TestControl(t *testing.T) {
	g := newGuard(Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := g.connect(t.Context(), "tcp", l.Addr().String())
	var refused *refusedAddress
	if !errors.As(err, &refused) {
		t.Errorf("connected to %v: %v", conn, err)
	}
}

func TestProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // nobody asks
	synctest.Test(t, func(t *testing.T) {
		n := newInternet(t)
		service := newStamper(t)
		var seen string
		n.serve("proxy.inside:3128", func(w http.ResponseWriter, r *http.Request) { seen = r.URL.String(); service.ServeHTTP(w, r) })
		s := n.source(func(c *Config) { c.Proxy = &url.URL{Scheme: "http", Host: "PROXY.inside:3128"} })
		s.guard.trusted = func(ctx context.Context, network, address string) (net.Conn, error) {
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
