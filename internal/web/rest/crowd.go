// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// firstTime is how long a stopping server waits for the first request of a connection, from its
// beginning. The server of net/http has the same number, but drops a request that comes meanwhile.
const firstTime = 5 * time.Second

// Crowd is a listener that has at most a number of connections open. If a further one
// comes, the connection that has been idle for the longest time gives way, of the address that has the most
// connections. Connections with a request under way never do: if there are no others, the
// further one waits until one of them ends. The server must have [ConnState].
type Crowd struct {
	net.Listener
	most    int
	changed chan struct{} // a connection ended or became idle
	once    sync.Once
	closed  chan struct{} // also closed by a server that ends serving

	mu     sync.Mutex
	open   int
	conns  map[*crowdedConn]struct{}
	groups map[netip.Prefix]*group
	idled  uint64 // number of the last connection that became idle
}

// Crowded returns a listener that has at most a number of connections of l open.
func Crowded(l net.Listener, most int) *Crowd {
	return &Crowd{
		Listener: l, most: most, conns: map[*crowdedConn]struct{}{}, groups: map[netip.Prefix]*group{},
		changed: make(chan struct{}, 1), closed: make(chan struct{}),
	}
}

// group are the connections of an address: of a /64 of IPv6, since a client has all of it.
type group struct {
	open int
	idle list.List // of *crowdedConn, the one that is idle for the longest time first
}

// Accept waits for a connection and makes room for it.
func (l *Crowd) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	for {
		l.mu.Lock()
		if l.open < l.most {
			in := l.enter(c)
			l.mu.Unlock()
			return in, nil
		}
		victim := l.victim()
		l.mu.Unlock()
		if victim != nil {
			victim.Close()
			continue
		}
		select {
		case <-l.changed:
		case <-l.closed:
			c.Close()
			return nil, net.ErrClosed
		}
	}
}

// enter counts a connection. The caller holds l.mu.
func (l *Crowd) enter(c net.Conn) *crowdedConn {
	in := &crowdedConn{passing: passing{c}, of: l}
	// A proxy's connection learns the address of its client when it is read.
	if p, is := c.(*proxyConn); is {
		c, in.proxied = p.Conn, true
	}
	in.until = time.Now().Add(firstTime)
	l.open++
	l.conns[in] = struct{}{}
	l.join(in, groupOf(c.RemoteAddr()))
	l.rest(in)
	return in
}

// join puts a connection into the group of an address.
func (l *Crowd) join(c *crowdedConn, at netip.Prefix) {
	g := l.groups[at]
	if g == nil {
		g = &group{}
		l.groups[at] = g
	}
	g.open++
	c.at = at
}

// part takes a connection out of its group.
func (l *Crowd) part(c *crowdedConn) {
	l.work(c)
	g := l.groups[c.at]
	if g.open--; g.open == 0 {
		delete(l.groups, c.at)
	}
}

// rest marks a connection as idle.
func (l *Crowd) rest(c *crowdedConn) {
	if c.idle == nil && !c.left {
		l.idled++
		c.since, c.idle = l.idled, l.groups[c.at].idle.PushBack(c)
		c.resting.Store(true)
	}
}

// work marks a connection as working.
func (l *Crowd) work(c *crowdedConn) {
	if c.idle != nil {
		l.groups[c.at].idle.Remove(c.idle)
		c.idle = nil
		c.resting.Store(false)
	}
}

// victim is the connection that gives way, or nil. Of addresses with equally many connections it is the
// one with the oldest.
func (l *Crowd) victim() *crowdedConn {
	var found *crowdedConn
	most := 0
	for _, g := range l.groups {
		first := g.idle.Front()
		if first == nil || g.open < most {
			continue
		}
		if c := first.Value.(*crowdedConn); g.open > most || c.since < found.since {
			found, most = c, g.open
		}
	}
	return found
}

func (l *Crowd) poke() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// Close also ends the wait of Accept.
func (l *Crowd) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// Finish ends the listener and waits until the requests of its connections are answered, or until ctx
// ends. A connection without a request so far has [firstTime] for it. [http.Server.Shutdown] would
// read that request and close the connection without an answer, so it must come after Finish. The
// server must be serving, and each answer must end its connection by then. Connections that wait at a
// socket of the service manager stay there for the next process.
func (l *Crowd) Finish(ctx context.Context) {
	l.Listener.Close() // not l.Close: a connection that Accept has taken already is served
	select {
	case <-l.closed: // the server has the last connection
	case <-ctx.Done():
		return
	}
	for {
		wait, answered := l.answered(time.Now())
		if answered {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-l.changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// answered reports whether no request is under way or to be expected. Otherwise it returns when to ask
// again, if no connection changes before.
func (l *Crowd) answered(now time.Time) (wait time.Duration, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait, is = time.Hour, true
	for c := range l.conns {
		if c.busy {
			is = false
		} else if left := c.until.Sub(now); left > 0 {
			wait, is = min(wait, left), false
		}
	}
	return wait, is
}

type crowdedConn struct {
	passing
	of      *Crowd
	proxied bool        // the address of its client is not known yet; of the goroutine that reads
	resting atomic.Bool // as idle, to be read without of.mu

	// Guarded by of.mu.
	at     netip.Prefix
	idle   *list.Element // nil: it works
	since  uint64        // order of becoming idle
	left   bool
	until  time.Time // when its first request is no longer expected; zero: it has come
	busy   bool      // a request is under way
	frames bool      // HTTP/2: what comes may be no request
	apart  int       // streams of events; the connection is not counted while there are any
}

// Read implements net.Conn. The first bytes of a request end the idle time, before net/http says so.
func (c *crowdedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && (c.resting.Load() || c.proxied) {
		l := c.of
		l.mu.Lock()
		if !c.frames {
			l.work(c)
		}
		if c.proxied && !c.left {
			c.proxied = false
			l.part(c)
			l.join(c, groupOf(c.Conn.RemoteAddr())) // what came first has begun a request
		}
		l.mu.Unlock()
	}
	return n, err
}

// Close frees the place.
func (c *crowdedConn) Close() error {
	err := c.Conn.Close()
	l := c.of
	l.mu.Lock()
	if !c.left {
		l.part(c)
		delete(l.conns, c)
		c.left = true
		if c.apart == 0 {
			l.open--
		}
	}
	l.mu.Unlock()
	l.poke()
	return err
}

// ConnState is the hook of an [http.Server] with a [Crowded] listener: it tells which connections
// are idle.
func ConnState(conn net.Conn, state http.ConnState) {
	c := crowdedOf(conn)
	if c == nil {
		return
	}
	c.of.mu.Lock()
	switch state {
	case http.StateIdle:
		greeted := false // HTTP/2 becomes idle before its first request, too
		if over, is := conn.(*tls.Conn); is && !c.frames {
			c.frames = over.ConnectionState().NegotiatedProtocol == "h2"
			greeted = c.frames
		}
		if !greeted {
			c.until = time.Time{}
		}
		c.busy = false
		c.of.rest(c)
	case http.StateActive, http.StateHijacked:
		c.busy = true
		c.of.work(c)
	}
	c.of.mu.Unlock()
	if state == http.StateIdle {
		c.of.poke()
	}
}

// crowdedOf finds the connection of a [Crowded] listener in those around it, or returns nil.
func crowdedOf(conn net.Conn) *crowdedConn {
	for {
		switch c := conn.(type) {
		case *crowdedConn:
			return c
		case *bulkConn:
			conn = c.Conn
		case *tls.Conn:
			conn = c.NetConn()
		default:
			return nil
		}
	}
}

// groupOf returns the address of a client, the /64 of IPv6. Addresses of another kind are one group.
func groupOf(a net.Addr) netip.Prefix {
	tcp, is := a.(*net.TCPAddr)
	if !is {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap()
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	p, _ := ip.WithZone("").Prefix(bits) // the number of bits is right
	return p
}
