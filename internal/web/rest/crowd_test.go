// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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
				if list := l.(*crowdedListener); list.open != 0 || len(list.groups) != 0 {
					t.Errorf("%d connections of %d addresses are left", list.open, len(list.groups))
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
