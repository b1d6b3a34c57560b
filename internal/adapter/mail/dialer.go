// SPDX-License-Identifier: Apache-2.0

package mail

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
)

// dialer opens the single connection of a message and can close it at any time.
type dialer struct {
	config   *tls.Config
	implicit bool // TLS from the first byte on

	mu     sync.Mutex
	conn   net.Conn
	closed bool
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var conn net.Conn
	var err error
	if d.implicit {
		conn, err = (&tls.Dialer{Config: d.config}).DialContext(ctx, network, address)
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
	}
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		conn.Close()
		return nil, net.ErrClosed
	}
	d.conn = conn
	return conn, nil
}

func (d *dialer) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.conn != nil {
		d.conn.Close()
	}
}
