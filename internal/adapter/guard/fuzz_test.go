// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/netip"
	"testing"
)

// An accepted address has the scheme http or https. If its host is a number, it is on the public
// internet.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{"http://tsp.example/stamp", "https://[2a00::1]:8443/x?y#z", "http://127.0.0.1/", "http://[::ffff:7f00:1]/", "http://0x7f.1/", "http://a:1@b/", "http://%31%30.0.0.1/", "HTTP://EXAMPLE:65535"} {
		f.Add(s)
	}
	g := New(Config{})
	f.Fuzz(func(t *testing.T, text string) {
		u, err := g.Parse(text)
		if err != nil {
			return
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
			t.Errorf("%q became %q", text, u)
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && !isPublic(a.Unmap()) {
			t.Errorf("%q leads to %v", text, a)
		}
	})
}

// An accepted exception is a network or a host, and covers itself.
func FuzzException(f *testing.F) {
	for _, s := range []string{"10.0.0.0/8", "10.1.2.3:80", "[fd00::1]:318", "::1", "tsp.example:80", "TSP.example", "fe80::1%eth0", "1.2.3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseException(text)
		if err != nil {
			return
		}
		if (e.Host == "") != e.Network.IsValid() {
			t.Fatalf("%q became %+v", text, e)
		}
		port := e.Port
		if port == 0 {
			port = 80
		}
		if e.Host != "" && !e.names(e.Host, port) || e.Host == "" && !e.allows(netip.AddrPortFrom(e.Network.Addr(), port)) {
			t.Errorf("%q does not cover itself: %+v", text, e)
		}
	})
}
