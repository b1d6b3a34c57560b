// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"tamga/internal/web/rest/limit"
)

const (
	// resetsAtOnce and resetsPerSecond are how many requests the client of a connection may reset
	// before their answers: a browser that leaves a page resets some dozens.
	resetsAtOnce    = 100
	resetsPerSecond = 10
	// resetPause is how long the handshake of a new connection waits, if it comes from an address
	// with a connection that was ended in the last resetMemory.
	resetPause  = time.Second
	resetMemory = 10 * time.Second
	// resetAddresses is how many such addresses are remembered.
	resetAddresses = 10_000
	// resetLog is the time between two lines of the log.
	resetLog = time.Minute
)

// Resets ends connections of HTTP/2 whose clients reset requests again and again before they are
// answered (CVE-2023-44487). The server of net/http bounds how many requests of a connection run
// at once, and not how many a client begins and gives up. It is safe for concurrent use.
type Resets struct {
	log   *slog.Logger
	ended prometheus.Counter
	known *limit.Known // addresses whose connections were ended

	mu     sync.Mutex
	logged time.Time
	since  int // connections that were ended after that line
}

// NewResets registers the metric with reg. It panics if it is registered already.
func NewResets(log *slog.Logger, reg prometheus.Registerer) *Resets {
	r := &Resets{log: log, known: limit.NewKnown(resetAddresses, resetMemory, time.Now), ended: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "tamga_http_reset_connections_total", Help: "Connections of HTTP/2 that were ended because their clients reset too many requests.",
	})}
	reg.MustRegister(r.ended)
	return r
}

// Guard has r watch the connections of a server. The server must have its Handler, ConnContext and
// TLSConfig already.
func (r *Resets) Guard(s *http.Server) {
	s.Handler = r.handler(s.Handler)
	inner := s.ConnContext
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if inner != nil {
			ctx = inner(ctx, c)
		}
		ctx = context.WithValue(ctx, crowdedKey{}, crowdedOf(c))
		if over, is := c.(*tls.Conn); is { // others have no HTTP/2
			ctx = context.WithValue(ctx, resettableKey{}, &resettable{conn: over.NetConn(), left: rate.NewLimiter(resetsPerSecond, resetsAtOnce)})
		}
		return ctx
	}
	if s.TLSConfig != nil {
		s.TLSConfig = s.TLSConfig.Clone()
		s.TLSConfig.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			return nil, r.pause(hello.Context(), hello.Conn.RemoteAddr())
		}
	}
}

// pause keeps an address from beginning anew as fast as its connections are ended.
func (r *Resets) pause(ctx context.Context, from net.Addr) error {
	address, is := peerAddress(from.String())
	if !is || !r.known.Has(address.String()) {
		return nil
	}
	timer := time.NewTimer(resetPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type resettableKey struct{}

// resettable is a connection whose resets are counted.
type resettable struct {
	conn net.Conn
	left *rate.Limiter
	once sync.Once
}

// handler counts requests that are reset before next has answered, and does nothing for those that
// are reset already.
func (r *Resets) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.ProtoMajor != 2 {
			next.ServeHTTP(w, q)
			return
		}
		if q.Context().Err() != nil {
			r.count(q)
			return
		}
		if q.Method == http.MethodHead { // its answer may end before next does, and its context with it
			out := &recorder{ResponseWriter: w}
			defer func() {
				if out.code == 0 {
					r.count(q)
				}
			}()
			next.ServeHTTP(out, q)
			return
		}
		defer r.count(q)
		next.ServeHTTP(w, q)
	})
}

// count counts the request if its client has reset it, and ends the connection if there are too
// many. Connections of trusted proxies are left alone: they have requests of many clients, and a
// proxy bounds the resets of each itself.
func (r *Resets) count(q *http.Request) {
	ctx := q.Context()
	c, is := ctx.Value(resettableKey{}).(*resettable)
	if !is || ctx.Err() == nil || c.left.Allow() {
		return
	}
	peer, is := peerAddress(q.RemoteAddr)
	if p, _ := ctx.Value(proxiesKey{}).(Proxies); is && p.Trusts(peer) {
		return
	}
	c.once.Do(func() {
		c.conn.Close() // without the words of TLS, for which a client could make us wait
		r.ended.Inc()
		r.known.Add(peer.String())
		r.warn(peer.String())
	})
}

// warn writes a line, at most one in a while.
func (r *Resets) warn(remote string) {
	r.mu.Lock()
	r.since++
	n := r.since
	due := time.Since(r.logged) >= resetLog
	if due {
		r.logged, r.since = time.Now(), 0
	}
	r.mu.Unlock()
	if due {
		r.log.Warn("connections of HTTP/2 were ended: their clients reset too many requests", "connections", n, "remote", remote)
	}
}
