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

// CheckAddress keeps passwords off the open network.
func CheckAddress(address string, plain bool) error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return err
	case u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%q is not of the form https://host/path", address)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("it must not hold a login, a query or a fragment: https://host/path")
	case u.Scheme == "http" && !plain && !config.IsLoopback(u.Hostname()):
		return fmt.Errorf("%s would be asked over http, where everybody on the way reads passwords: use https, or say --plain-http", u.Host)
	}
	return nil
}

func NewHTTPClient(caFile string) (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	// A server that refuses a large request says so before the document is sent.
	transport.ExpectContinueTimeout = 5 * time.Second
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		text, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--ca-file: %s holds no PEM certificate that TLS can use", caFile)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	return &http.Client{
		Transport: transport,
		// A redirect would carry the document and the token to somewhere nobody named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}
