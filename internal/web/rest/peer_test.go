// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// servers is one handler behind two servers: the public one, and the one of the front end.
func servers(t *testing.T) (public, front *httptest.Server, written *auditLog) {
	t.Helper()
	written = &auditLog{grown: make(chan struct{}, 1000)}
	gate := &Gate{
		Identify: func(_ context.Context, token string) (audit.Principal, error) {
			return audit.Principal{Login: "by token " + token}, nil
		},
		IdentifyPeer: func(_ context.Context, certificates [][]byte) (audit.Principal, error) {
			if bytes.Equal(certificates[0], []byte("unknown")) {
				return audit.Principal{}, fault.New(fault.Unauthorized, "not you")
			}
			return audit.Principal{Login: "by certificate"}, nil
		},
		Audit: written, Log: slog.New(slog.DiscardHandler),
	}
	mux := http.NewServeMux()
	Mount(mux, "", gate, []Route{
		Handle("GET /who", "Who", SignedIn, func(ctx context.Context, _ struct{}) (string, error) {
			return Caller(ctx).Login + " from " + Remote(ctx), nil
		}),
		Handle("GET /seen", "Seen", Anyone, func(ctx context.Context, _ struct{}) (int, error) { return len(PeerCertificates(ctx)), nil }),
	})
	h := Front(mux, slog.New(slog.DiscardHandler), NewMetrics(prometheus.NewRegistry()), nil)
	public = httptest.NewServer(h)
	t.Cleanup(public.Close)
	front = httptest.NewUnstartedServer(h)
	front.Config.ConnContext = FrontEnd
	front.Start()
	t.Cleanup(front.Close)
	return public, front, written
}

// raw sends a request as it is written, names of headers included.
func raw(t *testing.T, s *httptest.Server, path string, headers ...string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n", path)
	for _, h := range headers {
		fmt.Fprintf(conn, "%s\r\n", h)
	}
	io.WriteString(conn, "\r\n")
	text, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	var status int
	fmt.Sscanf(string(text), "HTTP/1.1 %d", &status)
	_, body, _ := strings.Cut(string(text), "\r\n\r\n")
	return status, body
}

// Class 11: trust in certificate headers.
func TestForgedCertificateHeaders(t *testing.T) {
	public, front, _ := servers(t)
	value := ":" + base64.StdEncoding.EncodeToString([]byte("a certificate")) + ":"
	for _, name := range []string{"Client-Cert", "client-cert", "CLIENT-CERT", "cLiEnT-cErT", "Client_Cert", "client_cert", "Client-Cert-Chain", "client_cert-chain", "X-Tamga-Tls-Verify", "x_tamga_tls_suite"} {
		for _, path := range []string{"/who", "/seen", "/nowhere"} {
			if status, body := raw(t, public, path, name+": "+value); status != 400 || !strings.Contains(body, "front end") {
				t.Errorf("%s at %s of the public server: got %d %s", name, path, status, body)
			}
			if status, body := raw(t, public, path, "Authorization: Bearer x", name+":"); status != 400 {
				t.Errorf("an empty %s at %s of the public server: got %d %s", name, path, status, body)
			}
		}
	}
	for says, headers := range map[string][]string{
		"forwarded 0":      {},
		"forwarded 2":      {"Client-Cert: " + value, "client-cert: " + value},
		"a forged":         {"Client-Cert: " + value, "Client_Cert: " + value},
		"forged cert":      {"client_cert: " + value},
		"let a forged":     {"Client-Cert: " + value, "Client-Cert-Chain: " + value},
		"byte sequence":    {"Client-Cert: " + strings.Trim(value, ":")},
		"(RFC 9440)":       {"Client-Cert: ::"},
		"a byte sequence":  {"Client-Cert: :" + strings.Repeat("AAAA", maxCertificateHeader/4+1) + ":"},
		"is not a byte":    {"Client-Cert: :" + base64.StdEncoding.EncodeToString([]byte("x")) + ",:"},
		"not a byte seque": {"Client-Cert: :%41%41:"},
	} {
		if status, body := raw(t, front, "/seen", headers...); status != 400 || !strings.Contains(body, says) {
			t.Errorf("front end with %.60q: got %d %s, want %q", headers, status, body, says)
		}
	}
}

func TestPeerIdentifies(t *testing.T) {
	public, front, written := servers(t)
	sequence := func(s string) string {
		return "Client-Cert: :" + base64.StdEncoding.EncodeToString([]byte(s)) + ":"
	}
	for _, c := range []struct {
		name    string
		server  *httptest.Server
		headers []string
		status  int
		body    string
	}{
		{"anonymous", public, nil, 401, "access token"},
		{"a certificate", front, []string{sequence("anna"), "X-Forwarded-For: 192.0.2.7"}, 200, `"by certificate from 192.0.2.7"`},
		{"lower case", front, []string{strings.ToLower("Client-Cert") + sequence("anna")[len("Client-Cert"):]}, 200, `"by certificate from front end"`},
		{"no address", front, []string{sequence("anna"), "X-Forwarded-For: evil.example"}, 200, `"by certificate from front end"`},
		{"two addresses", front, []string{sequence("anna"), "X-Forwarded-For: 192.0.2.7", "X-Forwarded-For: 192.0.2.8"}, 200, `"by certificate from front end"`},
		{"a token as well", front, []string{sequence("anna"), "Authorization: Bearer T"}, 200, `"by token T from front end"`},
		{"other credentials as well", front, []string{sequence("anna"), "Authorization: Basic eDp5"}, 401, "access token"},
		{"another party", front, []string{sequence("unknown")}, 401, "not you"},
		{"address of the public server", public, []string{"Authorization: Bearer T", "X-Forwarded-For: 192.0.2.7"}, 200, `"by token T from 127.0.0.1"`},
	} {
		status, body := raw(t, c.server, "/who", c.headers...)
		if status != c.status || !strings.Contains(body, c.body) {
			t.Errorf("%s: got %d %s", c.name, status, body)
		}
	}
	for _, e := range written.entries {
		if e.Remote == "" || e.Principal.Login == "" {
			t.Errorf("the audit log does not name the caller: %+v", e)
		}
	}
}

// The certificate of Go's own handshake arrives with what came along.
func TestPeerOfTLS(t *testing.T) {
	public, _, _ := servers(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0),
	}, &x509.Certificate{}, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(public.Config.Handler)
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	s.StartTLS()
	defer s.Close()
	client := s.Client()
	ask := func(path string) string {
		t.Helper()
		resp, err := client.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(resp.StatusCode, " ", string(body))
	}
	if d := cmp.Diff("200 0", ask("/seen")); d != "" {
		t.Error(d)
	}
	client.CloseIdleConnections()
	client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	if d := cmp.Diff("200 1", ask("/seen")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(`200 "by certificate from 127.0.0.1"`, ask("/who")); d != "" {
		t.Error(d)
	}
}

// Class 12: a path is one address for everybody on its way.
func TestDotSegments(t *testing.T) {
	public, _, _ := servers(t)
	for _, path := range []string{"/./seen", "/x/../seen", "/%2e%2e/seen", "/x/%2E%2E/seen", "/seen/..", "/seen/.%2e/seen", "/x%2f..%2fseen"} {
		if status, body := raw(t, public, path); status != 404 {
			t.Errorf("%s: got %d %s", path, status, body)
		}
	}
	for _, path := range []string{"/seen", "/seen/", "/se%65n"} {
		if status, body := raw(t, public, path); status != 200 {
			t.Errorf("%s: got %d %s", path, status, body)
		}
	}
}
