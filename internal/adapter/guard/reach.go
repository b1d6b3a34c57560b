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
	host := net.JoinHostPort(u.Hostname(), Port(u))
	var conn net.Conn
	if u.Scheme == "https" {
		conn, err = (&tls.Dialer{Config: &tls.Config{ServerName: u.Hostname(), RootCAs: roots, MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", host)
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", host)
	}
	if err != nil {
		return err
	}
	return conn.Close()
}
