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
	over  func()        // called once, after the last connection was closed
	slots chan struct{} // one for each connection in use

	mu     sync.Mutex
	free   []*lite.Conn
	used   int // connections in use, and being opened
	closed bool
}

func newConnections(most int, over func(), open func() (*lite.Conn, error)) *connections {
	return &connections{open: open, over: over, slots: make(chan struct{}, most)}
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

// left notes that a connection is no longer in use.
func (p *connections) left() {
	p.mu.Lock()
	p.used--
	last := p.closed && p.used == 0
	p.mu.Unlock()
	if last {
		p.over()
	}
}

func (p *connections) next() (*lite.Conn, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	p.used++
	if n := len(p.free); n > 0 {
		c := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	c, err := p.open()
	if err != nil {
		p.left()
	}
	return c, err
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
	p.left()
	<-p.slots
}

// close closes the free connections now and the others when they come back.
func (p *connections) close() error {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	var errs []error
	for _, c := range p.free {
		errs = append(errs, c.Close())
	}
	p.free = nil
	last := first && p.used == 0
	p.mu.Unlock()
	if last {
		p.over()
	}
	return errors.Join(errs...)
}
