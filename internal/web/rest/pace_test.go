// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// pipes is a listener inside the process.
type pipes struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return address("pipe") }

func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours
}

// A client that sends a byte now and then is dropped soon, whether or not the operation
// reads its body. A client that sends slowly but steadily is never dropped.
func TestPaceOfBodies(t *testing.T) {
	for _, c := range []struct {
		name   string
		path   string
		length int
		size   int // bytes at a time
		pause  time.Duration
		first  time.Duration // pause before the first ones
		status int
		within time.Duration // of the end of the connection, if it is dropped
	}{
		{"a byte a minute", "/read", 1000, 1, time.Minute, 0, 400, 25 * time.Second},
		{"a byte a second", "/read", 10_000, 1, time.Second, 0, 400, 25 * time.Second},
		{"a little too slow", "/read", 1 << 20, 200, time.Second, 0, 400, 100 * time.Second},
		{"nothing", "/read", 1000, 1, time.Hour, time.Hour, 400, 25 * time.Second},
		{"a byte a minute that is not read", "/leave", 1000, 1, time.Minute, time.Minute, 200, 10 * time.Second},
		{"a byte a minute to no route", "/nothing", 1000, 1, time.Minute, time.Minute, 404, 10 * time.Second},
		{"slow and steady", "/read", 1 << 20, 300, time.Second, 0, 200, 0},
		{"slow and late", "/read", 100_000, 3000, 10 * time.Second, 15 * time.Second, 200, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mux := http.NewServeMux()
				Mount(mux, "", &Gate{Audit: noAudit{}, Log: slog.New(slog.DiscardHandler)}, []Route{
					Handle("POST /read", "Read", Anyone, func(_ context.Context, r struct{ Body Bytes }) (int, error) { return len(r.Body), nil }).AtMost(1 << 21),
					Handle("POST /leave", "Leave", Anyone, func(context.Context, struct{}) (int, error) { return 0, nil }),
				})
				log := slog.New(slog.DiscardHandler)
				server := NewServer(Front(mux, log, NewMetrics(prometheus.NewRegistry()), nil), log)
				listener := newPipes()
				go server.Serve(listener)
				defer server.Close()

				conn := listener.dial()
				defer conn.Close()
				begin := time.Now()
				status := make(chan int, 1)
				ended := make(chan time.Duration, 1)
				go func() {
					in := bufio.NewReader(conn)
					response, err := http.ReadResponse(in, nil)
					if err != nil {
						status <- 0
						ended <- time.Since(begin)
						return
					}
					io.Copy(io.Discard, response.Body)
					status <- response.StatusCode
					_, err = in.ReadByte() // blocks until the other side closes
					if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
						t.Errorf("the connection ended with %v", err)
					}
					ended <- time.Since(begin)
				}()
				fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", c.path, c.length)
				time.Sleep(c.first)
				body := make([]byte, c.size)
				for sent := 0; sent < c.length; {
					n, err := conn.Write(body[:min(c.size, c.length-sent)])
					if err != nil {
						break
					}
					if sent += n; sent < c.length {
						time.Sleep(c.pause)
					}
				}
				if c.within == 0 {
					if got := <-status; got != c.status {
						t.Errorf("answered %d after %v", got, time.Since(begin))
					}
					return
				}
				if got := <-status; got != c.status {
					t.Errorf("answered %d, want %d", got, c.status)
				}
				if got := <-ended; got > c.within {
					t.Errorf("the connection lived %v, want at most %v", got, c.within)
				}
			})
		})
	}
}

// Connections beyond the bound wait until others end if all of these work; nothing fails.
func TestCrowded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newPipes()
		l := Crowded(inner, 2)
		accepted := make(chan net.Conn, 10)
		over := make(chan error, 1)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					over <- err
					return
				}
				ConnState(c, http.StateActive)
				accepted <- c
			}
		}()
		for range 4 {
			go func() { inner.dial() }()
		}
		synctest.Wait()
		if len(accepted) != 2 {
			t.Fatalf("%d connections are open, want 2", len(accepted))
		}
		for range 2 {
			c := <-accepted
			c.Close()
			c.Close() // gives one place back
			synctest.Wait()
			if len(accepted) != 2 {
				t.Errorf("%d more connections are open, want 2", len(accepted))
			}
		}
		l.Close() // while Accept waits for a place
		synctest.Wait()
		if err := <-over; !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

// TestLongOperations checks that the deadline of a body neither ends an operation that takes
// longer, or takes long to end after its refusal, nor the next request of the connection.
func TestLongOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := http.NewServeMux()
		Mount(mux, "", &Gate{Audit: noAudit{}, Log: slog.New(slog.DiscardHandler)}, []Route{
			Handle("POST /work", "Work", Anyone, func(ctx context.Context, r struct {
				Body struct{ Seconds int }
			}) (int, error) {
				time.Sleep(time.Duration(r.Body.Seconds) * time.Second)
				return r.Body.Seconds, ctx.Err()
			}),
		})
		mux.HandleFunc("POST /refuse", func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.WriteHeader(503)
			time.Sleep(time.Minute)
		})
		log := slog.New(slog.DiscardHandler)
		server := NewServer(Front(mux, log, NewMetrics(prometheus.NewRegistry()), nil), log)
		listener := newPipes()
		go server.Serve(listener)
		defer server.Close()
		conn := listener.dial()
		defer conn.Close()
		in := bufio.NewReader(conn)
		for _, seconds := range []int{100, 0, -1, 30} {
			path, want := "/work", 200
			if seconds < 0 {
				path, want = "/refuse", 503
			}
			body := fmt.Sprintf(`{"Seconds":%d}`, seconds)
			fmt.Fprintf(conn, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			response, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(response.Body)
			if response.StatusCode != want {
				t.Errorf("after %d s: %d %s", seconds, response.StatusCode, text)
			}
		}
	})
}
