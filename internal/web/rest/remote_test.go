// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func proxies(t testing.TB, list ...string) Proxies {
	t.Helper()
	p, err := ParseProxies(list)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParseProxies(t *testing.T) {
	for _, bad := range []string{"", "proxy.example", "10.0.0.0/33", "10.0.0.1:80", "fe80::1%eth0", "0.0.0.0/0", "::/0", "::ffff:0:0/96"} {
		if _, err := ParseProxies([]string{"192.0.2.1", bad}); err == nil || !strings.Contains(err.Error(), `"`+bad+`"`) {
			t.Errorf("%q: got %v, want an error that names it", bad, err)
		}
	}
}

func TestClientAddress(t *testing.T) {
	p := proxies(t, "10.0.0.0/8", "2001:db8:1::7", "::ffff:172.16.0.0/108")
	for _, c := range []struct {
		name, peer string
		headers    []string
		want       string
	}{
		{"no proxy", "192.0.2.1:1", nil, "192.0.2.1"},
		{"IPv6", "[2001:db8::5]:1", nil, "2001:db8::5"},
		{"zone", "[fe80::1%eth0]:1", nil, "fe80::1"},
		{"socket", "@", nil, "@"},
		{"headers of an untrusted peer", "192.0.2.1:1", []string{"X-Forwarded-For: 198.51.100.1", "Forwarded: for=198.51.100.1"}, "192.0.2.1"},
		{"a proxy that says nothing", "10.1.1.1:1", nil, "10.1.1.1"},

		{"X-Forwarded-For", "10.1.1.1:1", []string{"X-Forwarded-For: 198.51.100.1"}, "198.51.100.1"},
		{"proxy by IPv6", "[2001:db8:1::7]:1", []string{"X-Forwarded-For: 198.51.100.1"}, "198.51.100.1"},
		{"its neighbour", "[2001:db8:1::8]:1", []string{"X-Forwarded-For: 198.51.100.1"}, "2001:db8:1::8"},
		{"proxy by mapped network", "[::ffff:172.16.3.4]:1", []string{"X-Forwarded-For: 198.51.100.1"}, "198.51.100.1"},
		{"what the client wrote", "10.1.1.1:1", []string{"X-Forwarded-For: 203.0.113.9, 198.51.100.1"}, "198.51.100.1"},
		{"over two proxies", "10.1.1.1:1", []string{"X-Forwarded-For: 203.0.113.9, 198.51.100.1, 10.2.2.2"}, "198.51.100.1"},
		{"several headers", "10.1.1.1:1", []string{"X-Forwarded-For: 203.0.113.9", "X-Forwarded-For: 198.51.100.1", "X-Forwarded-For: 10.2.2.2,\t10.3.3.3"}, "198.51.100.1"},
		{"proxies all the way", "10.1.1.1:1", []string{"X-Forwarded-For: 10.3.3.3, 10.2.2.2"}, "10.3.3.3"},
		{"with ports", "10.1.1.1:1", []string{"X-Forwarded-For: [2001:db8::5]:4711, 10.2.2.2:80"}, "2001:db8::5"},
		{"bare IPv6", "10.1.1.1:1", []string{"X-Forwarded-For: 2001:db8::5"}, "2001:db8::5"},
		{"mapped", "10.1.1.1:1", []string{"X-Forwarded-For: ::ffff:198.51.100.1"}, "198.51.100.1"},
		{"empty elements", "10.1.1.1:1", []string{"X-Forwarded-For: 198.51.100.1, ,", "X-Forwarded-For:"}, "198.51.100.1"},
		{"malformed at the end", "10.1.1.1:1", []string{"X-Forwarded-For: 198.51.100.1, evil"}, "10.1.1.1"},
		{"malformed behind a proxy", "10.1.1.1:1", []string{"X-Forwarded-For: 198.51.100.1, 1.2.3, 10.2.2.2"}, "10.2.2.2"},
		{"malformed behind the client", "10.1.1.1:1", []string{"X-Forwarded-For: \x01<script>, 198.51.100.1"}, "198.51.100.1"},
		{"zone in a header", "10.1.1.1:1", []string{"X-Forwarded-For: fe80::1%evil"}, "10.1.1.1"},
		{"bad port", "10.1.1.1:1", []string{"X-Forwarded-For: 198.51.100.1:123456"}, "10.1.1.1"},
		{"bracket", "10.1.1.1:1", []string{"X-Forwarded-For: [198.51.100.1]"}, "10.1.1.1"},
		{"other spelling", "10.1.1.1:1", []string{"X_Forwarded_For: 198.51.100.1"}, "10.1.1.1"},

		{"Forwarded", "10.1.1.1:1", []string{"Forwarded: for=198.51.100.1"}, "198.51.100.1"},
		{"its parameters", "10.1.1.1:1", []string{`Forwarded: By="_proxy";FOR=198.51.100.1;proto=https;host="a,b;c=\"d"`}, "198.51.100.1"},
		{"quoted IPv6 with port", "10.1.1.1:1", []string{`Forwarded: for="[2001:db8:cafe::17]:4711"`}, "2001:db8:cafe::17"},
		{"hidden port", "10.1.1.1:1", []string{`Forwarded: for="198.51.100.1:_http-1.x"`}, "198.51.100.1"},
		{"quoted pairs", "10.1.1.1:1", []string{`Forwarded: for="198\.51\.100\.1"`}, "198.51.100.1"},
		{"over two proxies, several headers", "10.1.1.1:1", []string{"Forwarded: for=203.0.113.9, for=198.51.100.1", `Forwarded: for="10.2.2.2:80"`}, "198.51.100.1"},
		{"hidden client", "10.1.1.1:1", []string{"Forwarded: for=203.0.113.9, for=_SEVKISEK, for=10.2.2.2"}, "10.2.2.2"},
		{"unknown client", "10.1.1.1:1", []string{"Forwarded: for=203.0.113.9, for=unknown"}, "10.1.1.1"},
		{"no for", "10.1.1.1:1", []string{"Forwarded: for=203.0.113.9, proto=http"}, "10.1.1.1"},
		{"for twice", "10.1.1.1:1", []string{"Forwarded: for=203.0.113.9;for=198.51.100.1"}, "10.1.1.1"},
		{"IPv6 without quotes", "10.1.1.1:1", []string{"Forwarded: for=[2001:db8::5]"}, "10.1.1.1"},
		{"a quotation mark the client left open", "10.1.1.1:1", []string{`Forwarded: for="203.0.113.9, for=198.51.100.1`}, "198.51.100.1"},
		{"the same before quoted proxies", "10.1.1.1:1", []string{`Forwarded: for="203.0.113.9, for=198.51.100.1, for="10.2.2.2:1"`}, "198.51.100.1"},
		{"a host with a quoted comma", "10.1.1.1:1", []string{`Forwarded: for=198.51.100.1;host="\", for=203.0.113.9, x=\""`}, "198.51.100.1"},
		{"open at the end", "10.1.1.1:1", []string{`Forwarded: for=198.51.100.1, for="10.2.2.2`}, "10.1.1.1"},
		{"garbage", "10.1.1.1:1", []string{`Forwarded: for=198.51.100.1, ;;=",\`}, "10.1.1.1"},

		{"both", "10.1.1.1:1", []string{"Forwarded: for=203.0.113.9", "X-Forwarded-For: 198.51.100.1"}, "198.51.100.1"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.peer
		for _, h := range c.headers {
			name, value, _ := strings.Cut(h, ":")
			r.Header.Add(name, strings.TrimPrefix(value, " "))
		}
		r = r.WithContext(p.ConnContext(context.Background(), nil))
		if got := clientAddress(r); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func FuzzClientAddress(f *testing.F) {
	f.Add("198.51.100.1, 10.1.1.1", "")
	f.Add("", `for="[2001:db8::1]:1";by=_x, for=10.1.1.1`)
	p := proxies(f, "10.0.0.0/8")
	f.Fuzz(func(t *testing.T, plain, standard string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "10.1.1.1:1"
		// What the trusted proxy appends counts, whatever its client wrote before.
		r.Header = http.Header{"X-Forwarded-For": {plain + ", 198.51.100.7"}}
		r = r.WithContext(p.ConnContext(context.Background(), nil))
		if got := clientAddress(r); got != "198.51.100.7" {
			t.Errorf("X-Forwarded-For: got %q", got)
		}
		r.Header = http.Header{"Forwarded": {standard + `, for="198.51.100.7:1";host="a"`}}
		if got := clientAddress(r); got != "198.51.100.7" {
			t.Errorf("Forwarded: got %q", got)
		}
		r.Header = http.Header{"Forwarded": {standard}}
		clientAddress(r)
	})
}

// The remote address of a call is one for the guard, the operation and the audit
// log, and trusting a proxy about addresses says nothing about certificates.
func TestTrustedProxyIsNoFrontEnd(t *testing.T) {
	public, _, written := servers(t)
	behind := httptest.NewUnstartedServer(public.Config.Handler)
	behind.Config.ConnContext = proxies(t, "127.0.0.1").ConnContext
	behind.Start()
	defer behind.Close()
	status, body := raw(t, behind, "/who", "Authorization: Bearer T", "X-Forwarded-For: 203.0.113.9, 198.51.100.1")
	if status != 200 || body != `"by token T from 198.51.100.1"` {
		t.Errorf("got %d %s", status, body)
	}
	for _, e := range written.entries {
		if e.Remote != "198.51.100.1" {
			t.Errorf("the audit log has the address %q", e.Remote)
		}
	}
	certificate := "Client-Cert: :" + base64.StdEncoding.EncodeToString([]byte("anna")) + ":"
	if status, body := raw(t, behind, "/who", "X-Forwarded-For: 198.51.100.1", certificate); status != 400 || !strings.Contains(body, "front end") {
		t.Errorf("a certificate from a trusted proxy: got %d %s", status, body)
	}
}
