// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// proxied is a connection that brings text.
type proxied struct {
	net.Conn
	io.Reader
	peer     string
	deadline time.Time
}

func (c *proxied) Read(p []byte) (int, error) { return c.Reader.Read(p) }
func (c *proxied) RemoteAddr() net.Addr       { return address(c.peer) }
func (c *proxied) SetReadDeadline(t time.Time) error {
	c.deadline = t
	return nil
}

type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }

// one is a listener with one connection.
type one struct {
	net.Listener
	conn net.Conn
}

func (l one) Accept() (net.Conn, error) { return l.conn, nil }

const v2 = "\r\n\r\n\x00\r\nQUIT\n"

func TestProxyProtocol(t *testing.T) {
	trusted := proxies(t, "10.0.0.0/8")
	six := strings.Repeat("\x20", 15)
	for _, c := range []struct {
		name, text string
		from, rest string // what the connection is then; rest begins with "!" for an error
	}{
		{"version 1", "PROXY TCP4 198.51.100.1 10.1.1.1 4711 443\r\nGET /", "198.51.100.1:4711", "GET /"},
		{"version 1, IPv6", "PROXY TCP6 2001:db8::5 2001:db8::6 4711 443\r\n", "[2001:db8::5]:4711", ""},
		{"version 1, unknown", "PROXY UNKNOWN\r\nGET /", "10.1.1.1:1", "GET /"},
		{"version 1, unknown with more", "PROXY UNKNOWN ffff:f::1 ffff:: 1 2\r\nx", "10.1.1.1:1", "x"},
		{"version 1, wrong family", "PROXY TCP6 198.51.100.1 10.1.1.1 4711 443\r\nx", "10.1.1.1:1", "!is invalid"},
		{"version 1, bad address", "PROXY TCP4 evil 10.1.1.1 4711 443\r\nx", "10.1.1.1:1", "!is invalid"},
		{"version 1, bad target", "PROXY TCP4 198.51.100.1 10.1.1.1 4711 65536\r\nx", "10.1.1.1:1", "!is invalid"},
		{"version 1, zone", "PROXY TCP6 fe80::1%a 2001:db8::6 4711 443\r\n", "10.1.1.1:1", "!is invalid"},
		{"version 1, UDP", "PROXY UDP4 198.51.100.1 10.1.1.1 4711 443\r\n", "10.1.1.1:1", "!is invalid"},
		{"version 1, other end of line", "PROXY TCP4 198.51.100.1 10.1.1.1 4711 443\nx", "10.1.1.1:1", "!invalid line"},
		{"version 1, fields missing", "PROXY TCP4 198.51.100.1\r\n", "10.1.1.1:1", "!invalid line"},
		{"version 1, too long", "PROXY UNKNOWN " + strings.Repeat("a", 100) + "\r\n", "10.1.1.1:1", "!longer than 107"},
		{"version 1, without end", "PROXY UNKNOWN " + strings.Repeat("a", 1<<20), "10.1.1.1:1", "!longer than 107"},
		{"version 1, cut off", "PROXY TCP4 198.51", "10.1.1.1:1", "!unexpected EOF"},
		{"version 2", v2 + "\x21\x11\x00\x0c\xc6\x33\x64\x01\x0a\x01\x01\x01\x12\x67\x01\xbbGET /", "198.51.100.1:4711", "GET /"},
		{"version 2, IPv6", v2 + "\x21\x21\x00\x24" + six + "\x05" + six + "\x06\x12\x67\x01\xbbGET /", "[2020:2020:2020:2020:2020:2020:2020:2005]:4711", "GET /"},
		{"version 2 with more", v2 + "\x21\x11\x00\x11\xc6\x33\x64\x01\x0a\x01\x01\x01\x12\x67\x01\xbb\x04\x00\x02abGET /", "198.51.100.1:4711", "GET /"},
		{"version 2, most more", v2 + "\x21\x11\xff\xff\xc6\x33\x64\x01\x0a\x01\x01\x01\x12\x67\x01\xbb" + strings.Repeat("x", 65523) + "GET /", "198.51.100.1:4711", "GET /"},
		{"version 2, local", v2 + "\x20\x00\x00\x00GET /", "10.1.1.1:1", "GET /"},
		{"version 2, local with addresses", v2 + "\x20\x11\x00\x0c\xc6\x33\x64\x01\x0a\x01\x01\x01\x12\x67\x01\xbbGET /", "10.1.1.1:1", "GET /"},
		{"version 2, not specified", v2 + "\x21\x00\x00\x03abcGET /", "10.1.1.1:1", "GET /"},
		{"version 2, socket", v2 + "\x21\x31\x00\xd8" + strings.Repeat("a", 216) + "GET /", "10.1.1.1:1", "GET /"},
		{"version 2, datagrams", v2 + "\x21\x12\x00\x0c\xc6\x33\x64\x01\x0a\x01\x01\x01\x12\x67\x01\xbb", "10.1.1.1:1", "!not a TCP connection"},
		{"version 2, short", v2 + "\x21\x11\x00\x0b\xc6\x33\x64\x01\x0a\x01\x01\x01\x12\x67\x01", "10.1.1.1:1", "!too few"},
		{"version 2, cut off", v2 + "\x21\x11\x00\x0c\xc6\x33", "10.1.1.1:1", "!unexpected EOF"},
		{"version 3", v2 + "\x31\x11\x00\x0c\xc6\x33\x64\x01\x0a\x01\x01\x01\x12\x67\x01\xbb", "10.1.1.1:1", "!unknown"},
		{"another command", v2 + "\x22\x11\x00\x0c\xc6\x33\x64\x01\x0a\x01\x01\x01\x12\x67\x01\xbb", "10.1.1.1:1", "!unknown"},
		{"no header", "GET / HTTP/1.1\r\n\r\n", "10.1.1.1:1", "!does not begin with a header"},
		{"little of another protocol", "GET /", "10.1.1.1:1", "!unexpected EOF"},
		{"nothing", "", "10.1.1.1:1", "!EOF"},
	} {
		for _, pieces := range []func(io.Reader) io.Reader{
			func(r io.Reader) io.Reader { return r },
			func(r io.Reader) io.Reader { return &slow{r} },
		} {
			var log bytes.Buffer
			conn := &proxied{Reader: pieces(strings.NewReader(c.text)), peer: "10.1.1.1:1"}
			got, err := ProxyProtocol(one{conn: conn}, trusted, slog.New(slog.NewTextHandler(&log, nil))).Accept()
			if err != nil {
				t.Fatal(err)
			}
			if from := got.RemoteAddr().String(); from != c.from {
				t.Errorf("%s: from %s, want %s", c.name, from, c.from)
			}
			rest, err := io.ReadAll(got)
			says, refused := strings.CutPrefix(c.rest, "!")
			switch {
			case refused && (err == nil && says != "EOF" || len(rest) > 0 || err != nil && !strings.Contains(err.Error(), says)):
				t.Errorf("%s: got %q %v, want an error with %q", c.name, rest, err, says)
			case !refused && (err != nil || string(rest) != c.rest || !conn.deadline.IsZero()):
				t.Errorf("%s: got %q %v, deadline %v", c.name, rest, err, conn.deadline)
			case refused == (log.Len() == 0) && c.name != "nothing":
				t.Errorf("%s: logged %q", c.name, log.String())
			}
		}
	}
}

// slow brings one byte at a time.
type slow struct{ io.Reader }

func (s *slow) Read(p []byte) (int, error) { return s.Reader.Read(p[:min(len(p), 1)]) }

// The server does not wait for a header without end, and headers of untrusted peers are what they send.
func TestProxyProtocolBounds(t *testing.T) {
	trusted := proxies(t, "10.0.0.0/8")
	conn := &proxied{Reader: &stuck{}, peer: "10.1.1.1:1"}
	got, err := ProxyProtocol(one{conn: conn}, trusted, slog.New(slog.DiscardHandler)).Accept()
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	if _, err := got.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if wait := conn.deadline.Sub(before); wait <= 0 || wait > time.Minute {
		t.Errorf("the deadline is %v away", wait)
	}

	text := "PROXY TCP4 198.51.100.1 10.1.1.1 4711 443\r\n"
	untrusted := &proxied{Reader: strings.NewReader(text), peer: "192.0.2.1:1"}
	if got, err = ProxyProtocol(one{conn: untrusted}, trusted, slog.New(slog.DiscardHandler)).Accept(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(got)
	if err != nil || string(rest) != text || got.RemoteAddr().String() != "192.0.2.1:1" {
		t.Errorf("an untrusted peer's header: %q %v from %v", rest, err, got.RemoteAddr())
	}
}

// stuck brings the beginning of a header and then nothing until the deadline.
type stuck struct{ sent bool }

func (s *stuck) Read(p []byte) (int, error) {
	if s.sent {
		return 0, os.ErrDeadlineExceeded
	}
	s.sent = true
	return copy(p, "PROXY TCP4 1.2."), nil
}

func FuzzProxyHeader(f *testing.F) {
	f.Add([]byte("PROXY TCP4 198.51.100.1 10.1.1.1 4711 443\r\n"))
	f.Add([]byte(v2 + "\x21\x11\x00\x0c\xc6\x33\x64\x01\x0a\x01\x01\x01\x12\x67\x01\xbb"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if from, err := readProxyHeader(bufio.NewReaderSize(bytes.NewReader(data), 256)); err != nil && from.IsValid() {
			t.Errorf("an address with an error: %v %v", from, err)
		}
	})
}
