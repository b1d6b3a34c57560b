// SPDX-License-Identifier: Apache-2.0

// Package syslog delivers audit entries to a collector by syslog: messages of RFC 5424 over TLS (RFC 5425) or
// over plain TCP (RFC 6587), with structured data or in the Common Event Format. It implements audit.Collector.
//
// Begin with New and Collector.Deliver. The package keeps no queue and no position: audit.Exporter does.
package syslog

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"tamga/internal/domain/audit"
)

// Syslog has no answers. A write that succeeds means only that the system has the bytes: they are lost when the
// receiver ends, and the first write to a connection that a firewall has forgotten succeeds, too. So each
// delivery has a connection of its own. After the last entry our side ends it and waits until the receiver
// ends its side: a receiver that reads to the end has everything. The delivery has failed if the receiver
// ends the connection with a reset, as systems do when unread bytes are left, or before it has
// acknowledged all bytes. With Config.RequireEnd it has also failed without the end of TLS, which no attacker on the way can
// make.

// Config says where and how messages are sent.
type Config struct {
	Address    string      // HOST:PORT
	TLS        *tls.Config // nil: plain TCP; ServerName is set here
	Format     Format
	Facility   int    // 0 to 23
	Enterprise int    // private enterprise number of the SD-ID
	Host       string // HOSTNAME
	Version    string // of this program, for CEF
	Timeout    time.Duration
	RequireEnd bool // the receiver must end TLS before it ends the connection; GnuTLS of rsyslog does not
}

// Collector is a receiver of syslog.
type Collector struct {
	config Config
	form   form
}

// New returns a collector. It opens no connection.
func New(c Config) (*Collector, error) {
	host, _, err := net.SplitHostPort(c.Address)
	if err != nil || host == "" {
		return nil, errors.New("syslog: address: want HOST:PORT of the collector")
	}
	if c.TLS != nil {
		c.TLS = c.TLS.Clone()
		c.TLS.ServerName, c.TLS.MinVersion = host, tls.VersionTLS12
	}
	return &Collector{c, form{
		format: c.Format, facility: c.Facility, host: hostname(c.Host), version: c.Version,
		element: "audit@" + strconv.Itoa(c.Enterprise),
	}}, nil
}

var _ audit.Collector = (*Collector)(nil)

// Probe delivers nothing: it reports whether the collector accepts connections and ends them as it should.
func (c *Collector) Probe(ctx context.Context) error { return c.Deliver(ctx, nil) }

// chunk is the number of bytes that are written at a time.
const chunk = 64 << 10

// Deliver implements audit.Collector.
func (c *Collector) Deliver(ctx context.Context, list []audit.Numbered) error {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	err := c.deliver(ctx, list)
	if ctx.Err() != nil && err != nil {
		return fmt.Errorf("syslog: %s did not take %d entries in time: %w", c.config.Address, len(list), err)
	}
	if err != nil {
		return fmt.Errorf("syslog: %w", err)
	}
	return nil
}

// stream is a connection whose two directions end separately.
type stream interface {
	net.Conn
	CloseWrite() error
}

func (c *Collector) deliver(ctx context.Context, list []audit.Numbered) error {
	plain, err := new(net.Dialer).DialContext(ctx, "tcp", c.config.Address)
	if err != nil {
		return err
	}
	defer plain.Close()
	tcp := plain.(*net.TCPConn)
	stop := context.AfterFunc(ctx, func() { tcp.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	conn, below := stream(tcp), &noticed{TCPConn: tcp}
	if c.config.TLS != nil {
		secure := tls.Client(below, c.config.TLS)
		if err := secure.HandshakeContext(ctx); err != nil {
			return err
		}
		conn = secure
	}
	if err := c.write(conn, list); err != nil {
		return because(conn, err)
	}
	if err := conn.CloseWrite(); err != nil {
		return because(conn, err)
	}
	if conn != stream(tcp) {
		if err := tcp.CloseWrite(); err != nil {
			return because(conn, err)
		}
	}
	// Receivers say nothing. Bytes of TLS itself are not returned.
	var one [1]byte
	n, err := conn.Read(one[:])
	switch {
	case n > 0:
		return fmt.Errorf("%s has sent bytes: it does not receive syslog", c.config.Address)
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case below.ended && c.config.RequireEnd:
		return fmt.Errorf("%s has ended the connection without the end of TLS", c.config.Address)
	}
	if unacknowledged(tcp) > fin {
		return fmt.Errorf("%s has ended the connection before it had everything", c.config.Address)
	}
	return nil
}

// noticed is a connection below TLS that notices its end: crypto/tls takes it for the end of TLS.
type noticed struct {
	*net.TCPConn
	ended bool
}

func (n *noticed) Read(p []byte) (int, error) {
	got, err := n.TCPConn.Read(p)
	n.ended = n.ended || errors.Is(err, io.EOF)
	return got, err
}

// fin is what the end of our side counts among the bytes that are not acknowledged. A receiver of TLS may end the
// connection when it has read the end of TLS.
const fin = 1

// write writes the entries in a few large pieces.
func (c *Collector) write(conn net.Conn, list []audit.Numbered) error {
	var pending []byte
	for i := range list {
		pending = c.form.frame(pending, &list[i])
		if len(pending) < chunk && i < len(list)-1 {
			continue
		}
		if _, err := conn.Write(pending); err != nil {
			return err
		}
		pending = pending[:0]
	}
	return nil
}

// because returns why a write has failed: a receiver that refuses our certificate says so in an alert of TLS.
func because(conn net.Conn, err error) error {
	if _, secure := conn.(*tls.Conn); !secure {
		return err
	}
	var one [1]byte
	_, reading := conn.Read(one[:])
	var alert *net.OpError
	if errors.As(reading, &alert) && alert.Op == "remote error" {
		return reading
	}
	return err
}
