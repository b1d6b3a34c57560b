// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// resetServer serves HTTP/2 over pipes. Requests of /slow end when they are reset.
type resetServer struct {
	t       *testing.T
	pipes   *pipes
	resets  *Resets
	log     bytes.Buffer
	begun   atomic.Int64 // requests that reached their handler
	handler http.HandlerFunc
}

func newResetServer(t *testing.T, proxies Proxies) *resetServer {
	s := &resetServer{t: t, pipes: newPipes()}
	log := slog.New(slog.NewTextHandler(&s.log, nil))
	s.handler = func(w http.ResponseWriter, r *http.Request) {
		s.begun.Add(1)
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
		}
		w.WriteHeader(http.StatusNoContent)
		if r.Method == http.MethodHead {
			http.NewResponseController(w).Flush()
			<-r.Context().Done() // the answer has ended, and the handler has not
		}
	}
	server := NewServer(s.handler, log)
	server.ConnContext = proxies.ConnContext
	server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}}
	s.resets = NewResets(log, prometheus.NewRegistry())
	s.resets.Guard(server)
	go server.ServeTLS(s.pipes, "", "")
	t.Cleanup(func() { server.Close() })
	return s
}

// selfSigned makes a certificate of a server.
func selfSigned(t *testing.T) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	x := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"server"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, x, x, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// resetClient is a client of HTTP/2 that writes frames as a test says.
type resetClient struct {
	t        *testing.T
	conn     net.Conn
	framer   *http2.Framer
	next     uint32
	answered atomic.Int64
	ended    chan struct{} // closed when the server has ended the connection
}

// dial opens a connection from an address.
func (s *resetServer) dial(address string) *resetClient {
	ours, theirs := net.Pipe()
	s.pipes.conns <- from{theirs, address}
	conn := tls.Client(ours, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err := conn.Handshake(); err != nil {
		s.t.Fatal(err)
	}
	c := &resetClient{t: s.t, conn: conn, framer: http2.NewFramer(conn, conn), next: 1, ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		for {
			f, err := c.framer.ReadFrame()
			if err != nil {
				return
			}
			if h, is := f.(*http2.HeadersFrame); is && h.StreamEnded() {
				c.answered.Add(1)
			}
		}
	}()
	io.WriteString(conn, http2.ClientPreface)
	c.framer.WriteSettings()
	s.t.Cleanup(func() { conn.Close() })
	return c
}

// ask begins a request and returns its stream.
func (c *resetClient) ask(method, path string) uint32 {
	var head bytes.Buffer
	e := hpack.NewEncoder(&head)
	e.SetMaxDynamicTableSize(0)
	for _, f := range [][2]string{{":method", method}, {":scheme", "https"}, {":authority", "server"}, {":path", path}} {
		e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	stream := c.next
	c.next += 2
	c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: head.Bytes(), EndHeaders: true, EndStream: true})
	synctest.Wait()
	return stream
}

// reset begins requests and resets each when its handler runs.
func (c *resetClient) reset(n int) {
	for range n {
		c.framer.WriteRSTStream(c.ask("GET", "/slow"), http2.ErrCodeCancel)
		synctest.Wait()
	}
}

func (c *resetClient) open() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// TestResetsEndConnection: a connection whose client resets its requests as fast as it can is
// ended at the first one above the bound. One that resets requests now and then, and one that is
// answered, are not, however long they last.
func TestResetsEndConnection(t *testing.T) {
	const client, proxy = "192.0.2.1:1000", "198.51.100.1:1000"
	proxies, err := ParseProxies([]string{"198.51.100.1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, address string
		run           func(*resetClient)
		open          bool
	}{
		{"as many as a page has", client, func(c *resetClient) { c.reset(resetsAtOnce) }, true},
		{"one more", client, func(c *resetClient) { c.reset(resetsAtOnce + 1) }, false},
		{"some in each second of an hour", client, func(c *resetClient) {
			for range 600 {
				c.reset(resetsPerSecond)
				time.Sleep(6 * time.Second)
			}
		}, true},
		{"again after a rest", client, func(c *resetClient) {
			for range 3 {
				c.reset(resetsAtOnce)
				time.Sleep(resetsAtOnce / resetsPerSecond * time.Second)
			}
		}, true},
		{"answered", client, func(c *resetClient) {
			for range 10 * resetsAtOnce {
				c.ask("GET", "/")
			}
		}, true},
		{"answered without a body", client, func(c *resetClient) {
			for range 10 * resetsAtOnce {
				c.ask("HEAD", "/")
			}
		}, true},
		{"of many clients behind a trusted proxy", proxy, func(c *resetClient) { c.reset(10 * resetsAtOnce) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newResetServer(t, proxies)
				conn := s.dial(c.address)
				c.run(conn)
				if conn.open() != c.open {
					t.Fatalf("the connection is open: %v, want %v", conn.open(), c.open)
				}
				ended := 0.0
				if c.open {
					before := conn.answered.Load()
					if conn.ask("GET", "/"); conn.answered.Load() != before+1 {
						t.Error("a request after that was not answered")
					}
				} else {
					ended = 1
				}
				if got := testutil.ToFloat64(s.resets.ended); got != ended {
					t.Errorf("%v connections are counted, want %v", got, ended)
				}
			})
		})
	}
}

// TestResetsAgain: after connections were ended, their address begins anew once in a while and not at
// once, others are not kept, and the log has a line a minute.
func TestResetsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newResetServer(t, Proxies{})
		dial := func(address string) (*resetClient, time.Duration) {
			start := time.Now()
			return s.dial(address), time.Since(start)
		}
		for i := range 5 {
			c, took := dial("192.0.2.1:1000")
			if want := min(time.Duration(i), 1) * resetPause; took != want {
				t.Errorf("connection %d came after %v, want %v", i, took, want)
			}
			if c.reset(resetsAtOnce + 1); c.open() {
				t.Errorf("connection %d is open", i)
			}
		}
		if _, took := dial("192.0.2.2:1000"); took != 0 {
			t.Errorf("another address waited %v", took)
		}
		if n := strings.Count(s.log.String(), "reset too many requests"); n != 1 {
			t.Errorf("%d lines in the log, want 1:\n%s", n, &s.log)
		}
		time.Sleep(resetLog)
		c, took := dial("192.0.2.1:1000")
		if took != 0 {
			t.Errorf("after a while the address waited %v", took)
		}
		c.reset(resetsAtOnce + 1)
		if !strings.Contains(s.log.String(), "connections=5 remote=192.0.2.1") {
			t.Errorf("the log does not say how many:\n%s", &s.log)
		}
	})
}

// TestResetBeforeWork: nothing is done for a request that is reset already.
func TestResetBeforeWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newResetServer(t, Proxies{})
		r := httptest.NewRequest("GET", "/", nil)
		r.ProtoMajor = 2
		ctx, cancel := context.WithCancel(r.Context())
		s.resets.handler(s.handler).ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
		if n := s.begun.Load(); n != 1 {
			t.Errorf("%d requests were begun, want 1", n)
		}
		cancel()
		s.resets.handler(s.handler).ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
		if n := s.begun.Load(); n != 1 {
			t.Errorf("%d requests were begun, want 1", n)
		}
	})
}
