// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

// headerTime is how long a client may take for the headers of a request, and a proxy for
// the header of the PROXY protocol.
const headerTime = 10 * time.Second

// ProxyProtocol returns a listener that reads the header of the PROXY protocol (versions 1
// and 2 of the HAProxy specification) at the beginning of each connection of a trusted
// proxy. RemoteAddr of such a connection is the address in the header. A trusted proxy must
// send the header. A connection without it is closed, because its client could have written
// one. Other connections are not changed: a header there is an invalid request.
//
// The header is read when RemoteAddr or Read is first called, not by Accept. It takes at
// most headerTime and a few hundred bytes of memory.
func ProxyProtocol(l net.Listener, trusted Proxies, log *slog.Logger) net.Listener {
	return proxyListener{l, trusted, log}
}

type proxyListener struct {
	net.Listener
	trusted Proxies
	log     *slog.Logger
}

func (l proxyListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if peer, ok := peerAddress(c.RemoteAddr().String()); !ok || !l.trusted.Trusts(peer) {
		return c, nil
	}
	return &proxyConn{passing: passing{c}, log: l.log}, nil
}

// passing is a wrapped connection. It has the methods that net/http looks for beyond
// net.Conn.
type passing struct{ net.Conn }

// ReadFrom implements io.ReaderFrom, so that files are sent in the fastest way the
// connection has.
func (c passing) ReadFrom(r io.Reader) (int64, error) {
	if f, ok := c.Conn.(io.ReaderFrom); ok {
		return f.ReadFrom(r)
	}
	return io.Copy(struct{ io.Writer }{c.Conn}, r)
}

// CloseWrite ends the sending direction. The client then reads an end, not a reset, when
// the server of net/http leaves part of a request unread.
func (c passing) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// proxyConn is a connection of a trusted proxy.
type proxyConn struct {
	passing
	log    *slog.Logger
	once   sync.Once
	remote net.Addr // from the header
	rest   []byte   // bytes read together with the header
	err    error
}

// RemoteAddr returns the address of the client. It blocks until the header was read.
func (c *proxyConn) RemoteAddr() net.Addr {
	c.once.Do(c.begin)
	return c.remote
}

// Read implements net.Conn for the bytes after the header.
func (c *proxyConn) Read(p []byte) (int, error) {
	c.once.Do(c.begin)
	if c.err != nil {
		return 0, c.err
	}
	if len(c.rest) > 0 {
		n := copy(p, c.rest)
		c.rest = c.rest[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// begin reads the header. The server of net/http sets its own deadlines afterwards.
func (c *proxyConn) begin() {
	c.remote = c.Conn.RemoteAddr()
	c.Conn.SetReadDeadline(time.Now().Add(headerTime))
	r := bufio.NewReaderSize(c.Conn, 256)
	client, err := readProxyHeader(r)
	if err != nil {
		c.err = fmt.Errorf("rest: PROXY protocol: %w", err)
		if !errors.Is(err, io.EOF) { // an end before the first byte is a health check of the proxy
			c.log.Warn("closing a connection of a trusted proxy", "proxy", c.remote.String(), "error", c.err)
		}
		return
	}
	c.Conn.SetReadDeadline(time.Time{})
	if client.IsValid() {
		c.remote = net.TCPAddrFromAddrPort(client)
	}
	c.rest, _ = r.Peek(r.Buffered())
}

var proxySignature = []byte("\r\n\r\n\x00\r\nQUIT\n") // of version 2

// readProxyHeader reads exactly one header. The address is not valid if the header names
// none: the proxy speaks for itself, or it knows no address. The error is io.EOF if nothing
// came.
func readProxyHeader(r *bufio.Reader) (netip.AddrPort, error) {
	start, err := r.Peek(len(proxySignature)) // no header is shorter
	switch {
	case bytes.Equal(start, proxySignature):
		return readProxyBinary(r)
	case bytes.HasPrefix(start, []byte("PROXY ")):
		return readProxyLine(r)
	case err == io.EOF && len(start) > 0:
		return netip.AddrPort{}, io.ErrUnexpectedEOF
	case err != nil:
		return netip.AddrPort{}, err
	}
	return netip.AddrPort{}, errors.New("the connection does not begin with a header; let the proxy send it (send-proxy-v2 of HAProxy, proxy_protocol of nginx)")
}

// maxProxyLine is the length of a header of version 1 with its end of line, in bytes.
const maxProxyLine = 107

func readProxyLine(r *bufio.Reader) (netip.AddrPort, error) {
	text, err := r.ReadSlice('\n')
	if err == nil && len(text) > maxProxyLine || errors.Is(err, bufio.ErrBufferFull) {
		return netip.AddrPort{}, fmt.Errorf("the line is longer than %d bytes", maxProxyLine)
	}
	if err != nil {
		return netip.AddrPort{}, noEOF(err)
	}
	line, ended := strings.CutSuffix(string(text), "\r\n")
	fields := strings.Split(line, " ")
	if ended && len(fields) >= 2 && fields[1] == "UNKNOWN" {
		return netip.AddrPort{}, nil
	}
	if !ended || len(fields) != 6 {
		return netip.AddrPort{}, fmt.Errorf("invalid line %q", line)
	}
	source, err := proxyAddress(fields[1], fields[2], fields[4])
	if err != nil {
		return netip.AddrPort{}, err
	}
	if _, err := proxyAddress(fields[1], fields[3], fields[5]); err != nil {
		return netip.AddrPort{}, err
	}
	return source, nil
}

func proxyAddress(family, host, port string) (netip.AddrPort, error) {
	addr, err := netip.ParseAddr(host)
	number, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || portErr != nil || addr.Zone() != "" || family != map[bool]string{true: "TCP4", false: "TCP6"}[addr.Is4()] {
		return netip.AddrPort{}, fmt.Errorf("%s address %q port %q is invalid", family, host, port)
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(number)), nil
}

func readProxyBinary(r *bufio.Reader) (netip.AddrPort, error) {
	var head [16]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return netip.AddrPort{}, noEOF(err)
	}
	length := int(binary.BigEndian.Uint16(head[14:]))
	client := netip.AddrPort{}
	switch version, command := head[12]>>4, head[12]&15; {
	case version != 2 || command > 1:
		return client, fmt.Errorf("version and command 0x%02x are unknown", head[12])
	case command == 0: // LOCAL: the proxy speaks for itself
	case head[13] == 0x11 || head[13] == 0x21: // TCP over IPv4 and IPv6
		size := 4
		if head[13] == 0x21 {
			size = 16
		}
		if length < 2*size+4 {
			return client, fmt.Errorf("%d bytes are too few for the addresses", length)
		}
		var addresses [36]byte
		if _, err := io.ReadFull(r, addresses[:2*size+4]); err != nil {
			return client, noEOF(err)
		}
		length -= 2*size + 4
		addr, _ := netip.AddrFromSlice(addresses[:size])
		client = netip.AddrPortFrom(addr.Unmap(), binary.BigEndian.Uint16(addresses[2*size:]))
	case head[13] == 0 || head[13] == 0x31: // not specified, Unix socket
	default:
		return client, fmt.Errorf("address family and protocol 0x%02x are not a TCP connection", head[13])
	}
	if _, err := r.Discard(length); err != nil { // other data of the proxy is not used
		return netip.AddrPort{}, noEOF(err)
	}
	return client, nil
}

// noEOF tells an end inside of a header from an end before it.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
