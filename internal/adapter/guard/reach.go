// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
)

// Reach reports why a service that the administrator has named does not accept a connection, with TLS for https, or nil.
// It sends no request: what a service does with one is not known. roots may be nil: those of the system. proxy may be
// nil; otherwise its result is what is connected to.
func Reach(ctx context.Context, address string, roots *x509.CertPool, proxy func(*http.Request) (*url.URL, error)) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return errors.New("not the address of a service")
	}
	if proxy != nil {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		over, err := proxy(request)
		if err != nil {
			return err
		}
		if over != nil {
			u = over
		}
	}
	return reach(ctx, u, roots, (&net.Dialer{}).DialContext)
}

// Reach is the function of this name for an address that others chose: it must be one that the guard lets requests go to, and
// the connection is one of the guard. With a proxy of the guard, the proxy is what is connected to. registered is true for an
// address that an operator registered.
func (g *Guard) Reach(ctx context.Context, address string, registered bool) error {
	u, err := g.parse(address, registered)
	if err != nil {
		return err
	}
	if g.over != nil {
		u = g.over
	}
	return reach(ctx, u, nil, g.Dial)
}

// reach connects to the host of an address, with TLS for https.
func reach(ctx context.Context, u *url.URL, roots *x509.CertPool, dial func(ctx context.Context, network, address string) (net.Conn, error)) error {
	conn, err := dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), Port(u)))
	if err != nil {
		return err
	}
	if u.Scheme == "https" {
		secured := tls.Client(conn, &tls.Config{ServerName: u.Hostname(), RootCAs: roots, MinVersion: tls.VersionTLS12})
		if err := secured.HandshakeContext(ctx); err != nil {
			conn.Close()
			return err
		}
		conn = secured
	}
	return conn.Close()
}
