package guard

import (
	"errors"
	"net"
	"net/netip"
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

// The kernel's address is looked at again, should anything between have changed
// it.
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
