// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// from is a connection of an address.
type from struct {
	net.Conn
	address string
}

func (c from) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.address))
}

// TestCrowdGivesWay fills a listener. Which connection gives way to a further one depends on what
// the others do and on their addresses.
func TestCrowdGivesWay(t *testing.T) {
	const thief, other = "192.0.2.1:1", "192.0.2.2:1"
	for _, c := range []struct {
		name  string
		conns []string // address, and "idle", "new", "begun" or "works" of each, the oldest first
		gone  int      // the one that gives way; -1: the further one waits
	}{
		{"the oldest", []string{thief + " idle", thief + " idle", thief + " idle"}, 0},
		{"of the address with most", []string{other + " idle", thief + " idle", thief + " idle"}, 1},
		{"never sent anything", []string{other + " idle", thief + " new", thief + " new"}, 1},
		{"not one that works", []string{thief + " works", thief + " idle", other + " idle"}, 1},
		{"not one that has begun", []string{thief + " begun", thief + " idle", other + " idle"}, 1},
		{"of another address if those with most work", []string{thief + " works", thief + " works", other + " idle"}, 2},
		{"none of them", []string{thief + " works", thief + " begun", other + " works"}, -1},
		{"a whole /64 counts as one", []string{other + " idle", "[2001:db8::1]:1 idle", "[2001:db8::2]:1 idle"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := newPipes()
				l := Crowded(inner, len(c.conns))
				var clients, servers []net.Conn
				var mu sync.Mutex // guards gone
				var gone []int
				accept := func(address string) {
					ours, theirs := net.Pipe()
					clients = append(clients, ours)
					go func() { inner.conns <- from{theirs, address} }()
					in, err := l.Accept()
					if err != nil {
						t.Error(err)
						return
					}
					servers = append(servers, in)
				}
				for i, text := range c.conns {
					address, state, _ := strings.Cut(text, " ")
					accept(address)
					in := servers[i]
					if state != "new" {
						go clients[i].Write([]byte("G"))
						if _, err := in.Read(make([]byte, 1)); err != nil {
							t.Fatal(err)
						}
					}
					switch state {
					case "works":
						ConnState(in, http.StateActive)
					case "idle":
						ConnState(in, http.StateActive)
						ConnState(in, http.StateIdle)
					}
					client := clients[i]
					go func() { // until this side or the other closes
						client.Read(make([]byte, 1))
						mu.Lock()
						defer mu.Unlock()
						gone = append(gone, i)
					}()
				}
				entered := make(chan struct{})
				go func() {
					accept("192.0.2.3:1")
					close(entered)
				}()
				synctest.Wait()
				want := []int{c.gone}
				if c.gone < 0 {
					want = nil
					select {
					case <-entered:
						t.Error("the further one did not wait")
					default:
					}
				}
				if !slices.Equal(gone, want) {
					t.Errorf("%v gave way, want %v", gone, want)
				}
				if c.gone < 0 { // until one becomes idle
					ConnState(servers[1], http.StateActive)
					ConnState(servers[1], http.StateIdle)
					synctest.Wait()
					if !slices.Equal(gone, []int{1}) {
						t.Errorf("then %v gave way, want 1", gone)
					}
				}
				<-entered
				for _, s := range append(servers, clients...) {
					s.Close()
				}
				if l.open != 0 || len(l.groups) != 0 || len(l.conns) != 0 {
					t.Errorf("%d connections of %d addresses are left", l.open, len(l.groups))
				}
				synctest.Wait()
			})
		})
	}
}

// TestCrowdOfServer fills a server with connections that are kept open, and wants that
// another client is answered at once.
func TestCrowdOfServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newPipes()
		server := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}), slog.New(slog.DiscardHandler))
		go server.Serve(Bulk(Crowded(inner, 3)))
		defer server.Close()
		ask := func() net.Conn {
			conn := inner.dial()
			fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			answer := make([]byte, len("HTTP/1.1 200"))
			if _, err := conn.Read(answer); err != nil || string(answer) != "HTTP/1.1 200" {
				t.Errorf("%q, %v", answer, err)
			}
			go conn.Read(make([]byte, 1000))
			synctest.Wait()
			return conn
		}
		for range 10 {
			defer ask().Close()
		}
	})
}

// TestCrowdFinishes stops a server at each moment of a connection. A request that its client may still send is answered,
// and the answer ends the connection. Shutdown comes after that, and has nothing to wait for.
func TestCrowdFinishes(t *testing.T) {
	const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
	answer := func(t *testing.T, conn net.Conn, want string) {
		t.Helper()
		got, err := io.ReadAll(conn)
		if text := string(got); err != nil || want == "" && text != "" || !strings.Contains(text, want) || want != "" && !strings.Contains(text, "Connection: close\r\n") {
			t.Errorf("read %q, %v; want %q at the end of the connection", text, err, want)
		}
	}
	ask := func(t *testing.T, conn net.Conn) {
		t.Helper()
		fmt.Fprint(conn, request)
		if r, err := http.ReadResponse(bufio.NewReaderSize(conn, 1), nil); err != nil || r.Close {
			t.Fatalf("a request before the stop: %v, %v", r, err)
		}
	}
	for _, c := range []struct {
		name   string
		most   int                             // connections
		before func(t *testing.T, s *stopping) // the stop
		after  func(t *testing.T, s *stopping) // when Finish waits
		took   time.Duration
	}{
		{"none", 1, func(*testing.T, *stopping) {}, nil, 0},
		{"a request comes after the stop", 1, func(t *testing.T, s *stopping) { s.dial() }, func(t *testing.T, s *stopping) {
			time.Sleep(firstTime / 2)
			fmt.Fprint(s.clients[0], request)
			answer(t, s.clients[0], "200 OK")
		}, firstTime / 2},
		{"no request comes", 1, func(t *testing.T, s *stopping) { s.dial(); time.Sleep(time.Second) }, func(t *testing.T, s *stopping) {
			answer(t, s.clients[0], "")
		}, firstTime - time.Second},
		{"half of a request has come", 1, func(t *testing.T, s *stopping) { fmt.Fprint(s.dial(), request[:20]) }, func(t *testing.T, s *stopping) {
			time.Sleep(time.Second)
			fmt.Fprint(s.clients[0], request[20:])
			answer(t, s.clients[0], "200 OK")
		}, time.Second},
		{"a request is under way", 1, func(t *testing.T, s *stopping) { fmt.Fprint(s.dial(), strings.Replace(request, "/", "/slow", 1)) }, func(t *testing.T, s *stopping) {
			answer(t, s.clients[0], "200 OK")
		}, slowAnswer},
		{"a kept connection is idle", 1, func(t *testing.T, s *stopping) { ask(t, s.dial()); synctest.Wait() }, func(t *testing.T, s *stopping) {
			answer(t, s.clients[0], "")
		}, 0},
		{"accepted when there was no place", 1, func(t *testing.T, s *stopping) {
			fmt.Fprint(s.dial(), strings.Replace(request, "/", "/slow", 1))
			go fmt.Fprint(s.dial(), request)
		}, func(t *testing.T, s *stopping) {
			answer(t, s.clients[0], "200 OK")
			answer(t, s.clients[1], "200 OK")
		}, slowAnswer},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStopping(t, c.most, nil)
				c.before(t, s)
				s.stop(t, c.took, func() {
					if c.after != nil {
						c.after(t, s)
					}
				})
			})
		})
	}
}

// slowAnswer is how long a request of /slow takes.
const slowAnswer = time.Minute

// stopping is a server that a test stops.
type stopping struct {
	*http.Server
	pipes   *pipes
	crowd   *Crowd
	clients []net.Conn
}

func newStopping(t *testing.T, most int, config *tls.Config) *stopping {
	s := &stopping{pipes: newPipes()}
	s.Server = NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			time.Sleep(slowAnswer)
		}
	}), slog.New(slog.DiscardHandler))
	s.TLSConfig = config
	s.crowd = Crowded(s.pipes, most)
	go func() {
		if config == nil {
			s.Serve(Bulk(s.crowd))
		} else {
			s.ServeTLS(Bulk(s.crowd), "", "")
		}
	}()
	t.Cleanup(func() { s.Close() })
	return s
}

func (s *stopping) dial() net.Conn {
	conn := s.pipes.dial()
	s.clients = append(s.clients, conn)
	return conn
}

// stop stops the server as the service does, and does what clients do meanwhile.
func (s *stopping) stop(t *testing.T, want time.Duration, meanwhile func()) {
	t.Helper()
	synctest.Wait()
	ended, down := make(chan time.Duration, 1), make(chan error, 1)
	go func() {
		begun := time.Now()
		s.SetKeepAlivesEnabled(false)
		s.crowd.Finish(context.Background())
		ended <- time.Since(begun)
		down <- s.Shutdown(context.Background())
	}()
	synctest.Wait()
	meanwhile()
	if got := <-ended; got != want {
		t.Errorf("the stop took %v, want %v", got, want)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
}

// cut is a connection over TLS that ends without the alert: if both sides of a pipe write theirs, both wait for five seconds.
type cut struct {
	net.Conn
	plain net.Conn
}

func (c cut) Close() error { return c.plain.Close() }

// TestCrowdFinishesTLS stops a server while a client makes its connection. Its first request is answered, over HTTP/1.1 and
// HTTP/2, whether the stop comes before the handshake or between the handshake and the request.
func TestCrowdFinishesTLS(t *testing.T) {
	certificate := selfSigned(t)
	for _, protocol := range []string{"http/1.1", "h2"} {
		for _, shaken := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, handshake before the stop: %v", protocol, shaken), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newStopping(t, 1, &tls.Config{Certificates: []tls.Certificate{certificate}})
					plain := s.dial()
					conn := tls.Client(plain, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
					prepare := func() http.RoundTripper {
						if err := conn.Handshake(); err != nil {
							t.Fatal(err)
						}
						if protocol != "h2" {
							return &http.Transport{DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return cut{conn, plain}, nil }}
						}
						transport := &http.Transport{DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }, Protocols: new(http.Protocols)}
						transport.Protocols.SetHTTP2(true)
						over, err := transport.NewClientConn(t.Context(), "https", "server:443") // sends the preface
						if err != nil {
							t.Fatal(err)
						}
						return over
					}
					var client http.RoundTripper
					if shaken {
						client = prepare()
					}
					s.stop(t, firstTime-time.Millisecond, func() {
						time.Sleep(firstTime - time.Millisecond)
						if !shaken {
							client = prepare()
						}
						r, err := client.RoundTrip(httptest.NewRequest("GET", "https://server/", nil))
						if err != nil || r.StatusCode != 200 {
							t.Fatalf("the request: %v, %v", r, err)
						}
						r.Body.Close()
					})
				})
			})
		}
	}
}
