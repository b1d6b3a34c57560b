// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"tamga/internal/config"
)

// CheckAddress checks the address of a server. It returns an error for http to another machine, which
// would send passwords readable over the network, unless plain is true.
func CheckAddress(address string, plain bool) error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return err
	case u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%q is not of the form https://host/path", address)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("the address must not have a login, a query or a fragment; want https://host/path")
	case u.Scheme == "http" && !plain && !config.IsLoopback(u.Hostname()):
		return fmt.Errorf("http:// to %s would send passwords readable over the network; use https://, or allow it with --plain-http", u.Host)
	}
	return nil
}

// NewHTTPClient returns a client that follows no redirects. caFile has the PEM certificates that a
// server must lead to; "" means those of the system.
func NewHTTPClient(caFile string) (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	// The server can refuse a large request before the document is sent.
	transport.ExpectContinueTimeout = 5 * time.Second
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		text, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--ca-file: %s has no PEM certificate that TLS can use", caFile)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	return &http.Client{
		Transport: transport,
		// A redirect would send the document and the token to an address that the user did not give.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}
