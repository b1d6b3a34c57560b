// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"sync"

	"tamga/internal/adapter/store/lite"
)

// connections are the connections to a file that do one kind of work. They are opened
// when needed, and callers get them in the order of arrival. The connection given back
// last is used first, because its cache is the fullest.
type connections struct {
	open  func() (*lite.Conn, error)
	slots chan struct{} // one for each connection in use

	mu     sync.Mutex
	free   []*lite.Conn
	closed bool
}

func newConnections(most int, open func() (*lite.Conn, error)) *connections {
	return &connections{open: open, slots: make(chan struct{}, most)}
}

// take waits for a connection. Return it with give.
func (p *connections) take(ctx context.Context) (*lite.Conn, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	c, err := p.next()
	if err != nil {
		<-p.slots
	}
	return c, err
}

func (p *connections) next() (*lite.Conn, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	if n := len(p.free); n > 0 {
		c := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	return p.open()
}

// give takes a connection back. A connection that is stuck in a transaction is closed.
func (p *connections) give(c *lite.Conn) {
	p.mu.Lock()
	keep := !p.closed && c.Clean()
	if keep {
		p.free = append(p.free, c)
	}
	p.mu.Unlock()
	if !keep {
		c.Close() // its user already knows the error
	}
	<-p.slots
}

// close closes the free connections now and the others when they come back.
func (p *connections) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var errs []error
	for _, c := range p.free {
		errs = append(errs, c.Close())
	}
	p.free = nil
	return errors.Join(errs...)
}
