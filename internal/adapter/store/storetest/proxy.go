// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Proxy forwards between a program and a PostgreSQL server and can stop forwarding, as a
// failing network does: connections stay open and silent.
type Proxy struct {
	// URL is the address of the database behind the proxy.
	URL string

	mu       sync.Mutex
	moving   *sync.Cond
	paused   bool
	muted    []byte // the server's answers to what contains it are held back; nil: none are
	silenced chan struct{}
	before   int           // pieces of data of clients until it pauses; 0: it does not
	stopped  chan struct{} // closed then
}

// NewProxy starts a proxy to the database at an address that [Cluster.Database] returned.
func NewProxy(t testing.TB, address string) *Proxy {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	const socket = ".s.PGSQL.5432"
	query := u.Query()
	target := filepath.Join(query.Get("host"), socket)
	// Not t.TempDir: the path of a socket has at most 107 bytes.
	dir, err := os.MkdirTemp("", "tamga-proxy-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	query.Set("host", dir)
	u.RawQuery = query.Encode()
	p := &Proxy{URL: u.String(), silenced: make(chan struct{})}
	p.moving = sync.NewCond(&p.mu)
	listener, err := net.Listen("unix", filepath.Join(dir, socket))
	must(t, err)
	t.Cleanup(func() {
		listener.Close()
		p.Resume()
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", target)
			if err != nil {
				client.Close()
				continue
			}
			silent := new(bool)
			go p.forward(server, client, func(b []byte) { p.watch(b, silent) }, nil)
			go p.forward(client, server, nil, silent)
		}
	}()
	return p
}

// Pause stops forwarding in both directions.
func (p *Proxy) Pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = true
}

// StopAt pauses in place of the nth piece of data that clients send from now on. The channel
// is closed when that has happened.
func (p *Proxy) StopAt(n int) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before, p.stopped = n, make(chan struct{})
	return p.stopped
}

// count counts a piece of data of a client.
func (p *Proxy) count() {
	if p.before == 0 {
		return
	}
	if p.before--; p.before == 0 {
		p.paused = true
		close(p.stopped)
	}
}

// MuteCommit is Mute for the next COMMIT.
func (p *Proxy) MuteCommit() <-chan struct{} { return p.Mute("commit\x00") }

// Mute forwards the next bytes that contain a text, in any letter case, and holds back the
// answers of the server on their connection from then on. The channel is closed when that
// has happened.
func (p *Proxy) Mute(text string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.muted = bytes.ToLower([]byte(text))
	return p.silenced
}

// Resume continues forwarding. Connections that Mute silenced stay silent.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused, p.before = false, 0
	p.moving.Broadcast()
}

func (p *Proxy) watch(b []byte, silent *bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.muted != nil && bytes.Contains(bytes.ToLower(b), p.muted) {
		p.muted, *silent = nil, true
		close(p.silenced)
	}
}

// forward copies until one side ends. It calls seen with the bytes that it is about to
// send.
func (p *Proxy) forward(to, from net.Conn, seen func([]byte), silent *bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		if seen != nil && n > 0 {
			p.count()
		}
		for p.paused {
			p.moving.Wait()
		}
		drop := silent != nil && *silent
		p.mu.Unlock()
		if seen != nil && n > 0 {
			seen(buf[:n])
		}
		if !drop && n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
