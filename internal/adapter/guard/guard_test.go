// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
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
			"::ffff:127.0.0.1", "::ffff:8.8.8.8"}}, // callers unmap the last two forms before they call isPublic
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
			t.Errorf("%q is accepted as %v", text, e)
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
		g := New(Config{Exceptions: []Exception{e}})
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
	g := New(Config{Exceptions: []Exception{e, named}})
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
		{"http://tsp.example/\u202e", false, "malformed"}, // people would read the address in another order
		{"http://tsp.example/" + strings.Repeat("a", 2048), false, "malformed"},
	} {
		u, err := g.parse(c.address, c.registered)
		var refused *Refused
		switch {
		case c.want == "" && (err != nil || u.Fragment != ""):
			t.Errorf("%.60s: %v", c.address, err)
		case c.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%.60s: %v, want %q", c.address, err, c.want)
		}
	}
}

// TestControl checks that the address is checked again when the connection is made.
func TestControl(t *testing.T) {
	g := New(Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := g.Connect(t.Context(), "tcp", l.Addr().String())
	var refused *Refused
	if !errors.As(err, &refused) {
		t.Errorf("connected to %v: %v", conn, err)
	}
}

// Every spelling that a resolver or a proxy reads as an inner address is refused, with a proxy and
// without. An exception allows an address in every spelling, and the result has the usual one.
func TestSpellingsOfAddresses(t *testing.T) {
	proxy := &url.URL{Scheme: "http", Host: "proxy.example:3128"}
	inside := []string{
		"2130706433", "0x7f000001", "0X7F000001", "017700000001", "127.1", "127.0.1", "0177.0.0.1", "0x7f.0.0.1", "0x7f.1", "127.0.0.0x1",
		"127.0.0.1.", "2130706433.", "0", "0.", "0x", "00", "0.0.0.0", "10.1", "0xa000001", "192.168.257", "3232235777", "169.254.43518", "2852039166",
		"%31%32%37.1", "%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1", "127%E3%80%820%E3%80%820%E3%80%821", "%E2%91%A0%E2%91%A1%E2%91%A6.1",
		"localhost", "LOCALHOST", "localhost.", "a.localhost", "x.y.LocalHost.", "localhost.localdomain", "ip6-localhost", "ip6-loopback", "localhost6.localdomain6",
		"[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:0a00:1]", "[::127.0.0.1]", "[fe80::1%25eth0]", "[fe80::1]", "[64:ff9b::7f00:1]", "[2a00::1%25eth0]",
	}
	malformed := []string{"256.1.1.1", "1.2.3.4.5", "127.0.0.08", "4294967296", "0x100000000", "1.256.1", "1.2.65536", "127.0.0.1..", "a..1", "example.1", "example.0x1f", "."}
	for _, g := range []*Guard{New(Config{}), New(Config{Proxy: proxy})} {
		for _, host := range slices.Concat(inside, malformed) {
			for _, port := range []string{"", ":8080"} {
				u, err := g.Parse("http://" + host + port + "/x")
				if err == nil {
					t.Errorf("%s%s is accepted as %s", host, port, u)
				} else if r := (*Refused)(nil); !errors.As(err, &r) {
					t.Errorf("%s%s: %v", host, port, err)
				}
				if _, err := g.ParseRegistered("http://" + host + port + "/x"); err == nil {
					t.Errorf("%s%s is accepted as a registered service", host, port)
				}
			}
		}
		for host, want := range map[string]string{
			"8.8.8.8": "http://8.8.8.8/x", "134744072": "http://8.8.8.8/x", "0x8.010.8": "http://8.8.0.8/x", "8.8.8.8.": "http://8.8.8.8/x",
			"tsp.example": "http://tsp.example/x", "tsp.example.": "http://tsp.example/x", "1.example": "http://1.example/x", "0x7f.example": "http://0x7f.example/x",
			"tsp_1.example": "http://tsp_1.example/x", "notlocalhost": "http://notlocalhost/x", "localhost.example": "http://localhost.example/x", "0xg": "http://0xg/x",
			"пример.рф": "http://xn--e1afmkfd.xn--p1ai/x", "[2a00:1450:4010::1]:8080": "http://[2a00:1450:4010::1]:8080/x", "[::ffff:8.8.8.8]": "http://8.8.8.8/x",
		} {
			u, err := g.Parse("http://" + host + "/x")
			if err != nil || u.String() != want {
				t.Errorf("%s: got %v %v, want %s", host, u, err, want)
			}
		}
	}
	var exceptions []Exception
	for _, text := range []string{"127.0.0.1:8080", "inside.localhost:9090"} {
		e, err := ParseException(text)
		if err != nil {
			t.Fatal(err)
		}
		exceptions = append(exceptions, e)
	}
	g := New(Config{Exceptions: exceptions, Proxy: proxy})
	for host, want := range map[string]string{
		"2130706433:8080": "http://127.0.0.1:8080/", "127.1:8080": "http://127.0.0.1:8080/", "localhost:8080": "http://localhost:8080/", "inside.localhost:9090": "http://inside.localhost:9090/",
		"127.1:8081": "", "localhost:8081": "", "inside.localhost:9091": "",
	} {
		u, err := g.Parse("http://" + host + "/")
		if got := fmt.Sprint(u); want == "" && err == nil || want != "" && (err != nil || got != want) {
			t.Errorf("%s: got %s %v, want %q", host, got, err, want)
		}
	}
}

// TestReach checks that a question whether a service answers goes only where requests go.
func TestReach(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address := "http://" + l.Addr().String() + "/tsp"
	for _, c := range []struct {
		name       string
		config     Config
		address    string
		registered bool
		refused    bool // by the guard
		fails      bool // for another reason
	}{
		{name: "private", address: address, registered: true, refused: true},
		{name: "private name", address: "http://localhost:" + Port(must(url.Parse(address))), registered: true, refused: true},
		{name: "exception", config: Config{Exceptions: []Exception{must(ParseException("127.0.0.0/8"))}}, address: address},
		{name: "nothing listens", config: Config{Exceptions: []Exception{must(ParseException("127.0.0.1:1"))}}, address: "http://127.0.0.1:1/", fails: true},
		{name: "low port of a certificate", config: Config{Proxy: must(url.Parse(address))}, address: "http://tsp.example.org:25/", refused: true},
		{name: "registered low port", config: Config{Proxy: must(url.Parse(address))}, address: "http://tsp.example.org:318/", registered: true},
		{name: "proxy", config: Config{Proxy: must(url.Parse(address))}, address: "https://tsp.example.org/"},
		{name: "no address", address: "tsp.example.org", refused: true},
	} {
		err := New(c.config).Reach(t.Context(), c.address, c.registered)
		var refused *Refused
		if errors.As(err, &refused) != c.refused || (err != nil) != (c.refused || c.fails) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
