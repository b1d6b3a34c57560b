// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"tamga/internal/config"
	"tamga/internal/web/rest"
)

// askTime is how long the answer of a server may take. The server itself checks for 2 s at most.
const askTime = 4 * time.Second

// Readiness is the answer of a server to /readyz.
type Readiness struct {
	Ready  bool
	Text   []byte // JSON
	People string
}

// AskReady asks the server that listens as the configuration says.
func AskReady(ctx context.Context, conf *config.Config) (*Readiness, error) {
	host, port, err := net.SplitHostPort(conf.Listen)
	if err != nil || port == "0" {
		return nil, fmt.Errorf("listen: %q has no fixed port to ask", conf.Listen)
	}
	if a, err := netip.ParseAddr(host); host == "" || err == nil && a.Unmap().IsUnspecified() {
		host = "localhost"
	}
	transport := &http.Transport{DisableKeepAlives: true}
	scheme := "http"
	if conf.TLS.CertificateFile != "" {
		scheme = "https"
		if transport.TLSClientConfig, err = sameCertificate(conf.Path(conf.TLS.CertificateFile)); err != nil {
			return nil, err
		}
	}
	if conf.ProxyProtocol {
		trusted, err := rest.ParseProxies(conf.TrustedProxies)
		if err != nil {
			return nil, fmt.Errorf("trusted_proxies: %w", err)
		}
		transport.DialContext = dialAsProxy(trusted)
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var body struct {
		Status string            `json:"status"`
		Parts  map[string]string `json:"parts"`
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err == nil {
		err = json.Unmarshal(text, &body)
	}
	if err != nil || body.Status == "" {
		return nil, fmt.Errorf("%s is not an answer of tamga: status %d", request.URL, response.StatusCode)
	}
	answer := &Readiness{Ready: response.StatusCode == http.StatusOK, Text: bytes.TrimSpace(text), People: body.Status}
	var away []string
	for _, part := range slices.Sorted(maps.Keys(body.Parts)) {
		if body.Parts[part] != "ready" {
			away = append(away, part+": "+body.Parts[part])
		}
	}
	if len(away) > 0 {
		answer.People += " (" + strings.Join(away, ", ") + ")"
	}
	return answer, nil
}

// sameCertificate returns settings that accept the server with the certificate in a file and no other. Its
// name does not matter: the server is on this machine, and its certificate has its public name.
func sameCertificate(file string) (*tls.Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("tls.certificate_file: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("tls.certificate_file: %s has no certificate in PEM form", file)
	}
	return &tls.Config{
		InsecureSkipVerify: true, // VerifyConnection is stricter
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || !bytes.Equal(s.PeerCertificates[0].Raw, block.Bytes) {
				return errors.New("the server has another certificate than tls.certificate_file; restart it if the file was replaced")
			}
			return nil
		},
	}, nil
}

// dialAsProxy returns a dialer for a server that wants the PROXY protocol from trusted addresses. This
// machine may have such an address. The header says that the client is unknown.
func dialAsProxy(trusted rest.Proxies) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		local, err := netip.ParseAddrPort(conn.LocalAddr().String())
		if err == nil && trusted.Trusts(local.Addr().Unmap()) {
			_, err = io.WriteString(conn, "PROXY UNKNOWN\r\n")
		}
		if err != nil {
			conn.Close()
			return nil, err
		}
		return conn, nil
	}
}
