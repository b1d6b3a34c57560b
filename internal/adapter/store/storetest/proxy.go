// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
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
	cut      *Cut          // that waits for its text
}

// Cut breaks a connection in the middle of a message.
type Cut struct {
	// Text is in what the client sends, in any letter case.
	Text string
	// Answer: the connection breaks after At bytes of the server's answer. Otherwise it breaks
	// after At bytes of what the client sends.
	Answer bool
	At     int

	mu   sync.Mutex
	met  bool // the text came
	over bool // the connection is broken
}

// Met reports whether the text came by.
func (c *Cut) Met() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.met }

// Over reports whether the connection was broken. It is not if the message was shorter.
func (c *Cut) Over() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.over }

// Cut breaks the next connection on which a text is sent, once.
func (p *Proxy) Cut(c *Cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = c
}

// take returns the cut if its text is among what a client sends.
func (p *Proxy) take(b []byte) *Cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.cut
	if c == nil || !bytes.Contains(bytes.ToLower(b), bytes.ToLower([]byte(c.Text))) {
		return nil
	}
	p.cut = nil
	c.mu.Lock()
	defer c.mu.Unlock()
	c.met = true
	return c
}

// pass returns how much of a piece of a message may pass before the connection breaks, and
// whether it breaks then.
func (c *Cut) pass(n int) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n < c.At {
		c.At -= n
		return n, false
	}
	c.over = true
	return c.At, true
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
			silent, answer := new(bool), new(atomic.Pointer[Cut])
			go p.forward(server, client, func(b []byte) *Cut {
				p.watch(b, silent)
				c := p.take(b)
				if c != nil && c.Answer {
					answer.Store(c)
					return nil
				}
				return c
			}, nil)
			go p.forward(client, server, func([]byte) *Cut { return answer.Load() }, silent)
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
// send. silent is nil for what a client sends.
func (p *Proxy) forward(to, from net.Conn, seen func([]byte) *Cut, silent *bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		if silent == nil && n > 0 {
			p.count()
		}
		for p.paused {
			p.moving.Wait()
		}
		drop := silent != nil && *silent
		p.mu.Unlock()
		ends := err != nil
		if n > 0 {
			if c := seen(buf[:n]); c != nil {
				n, ends = c.pass(n)
				ends = ends || err != nil
			}
		}
		if !drop && n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if ends {
			return
		}
	}
}
