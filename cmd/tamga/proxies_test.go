// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tamga/internal/judge"

	"tamga/internal/tamgatest"
)

// clientAt is an HTTP client of one connection a request, from an address of loopback.
func clientAt(address string) *http.Client {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	return &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
}

// TestBehindHAProxy runs HAProxy in front over TCP and passes the address of the client in each way that HAProxy knows.
// The audit log has the client, and clients have rate limits of their own.
func TestBehindHAProxy(t *testing.T) {
	t.Parallel()
	judge.HAProxyProgram(t)
	for _, c := range []struct{ name, mode, server string }{
		{"X-Forwarded-For", "mode http\n  option forwardfor", ""},
		{"Forwarded", "mode http\n  http-request set-header Forwarded for=%[src]", ""},
		{"PROXY protocol 1", "mode tcp", "send-proxy"},
		{"PROXY protocol 2", "mode tcp", "send-proxy-v2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := []string{
				"--set", "trusted_proxies=[127.0.0.1]",
				"--set", "verification.calls_per_second=0.001", "--set", "verification.calls_at_once=2",
			}
			if c.server != "" {
				set = append(set, "--set", "proxy_protocol=true")
			}
			server := tamgatest.Start(t, set...)
			free, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			front := free.Addr().String()
			free.Close()
			config := filepath.Join(t.TempDir(), "haproxy.cfg")
			if err := os.WriteFile(config, fmt.Appendf(nil, `defaults
  timeout connect 30s
  timeout client 60s
  timeout server 60s
listen tamga
  bind %s
  %s
  server tamga %s source 127.0.0.1 %s
`, front, c.mode, strings.TrimPrefix(server.URL, "http://"), c.server), 0o600); err != nil {
				t.Fatal(err)
			}
			judge.HAProxy(t, config, os.DevNull, front)

			ask := func(from, at, path string, headers ...string) (int, string) {
				t.Helper()
				request, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+at+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				for i := 0; i < len(headers); i += 2 {
					request.Header.Set(headers[i], headers[i+1])
				}
				response, err := clientAt(from).Do(request)
				if err != nil {
					t.Fatal(err)
				}
				status, body := tamgatest.ReadAll(t, response)
				return status, string(body)
			}
			forged := []string{"X-Forwarded-For", "203.0.113.9"}
			if c.name == "Forwarded" { // the header that this HAProxy overwrites
				forged[0] = "Forwarded"
			}
			for _, want := range []struct {
				from   string
				status []int
			}{{"127.0.0.5", []int{200, 200, 429}}, {"127.0.0.6", []int{200, 200, 429}}} {
				for i, status := range want.status {
					if got, body := ask(want.from, front, "/SVS/rest/api/policy", forged...); got != status {
						t.Errorf("call %d of %s: got %d %s, want %d", i+1, want.from, got, body, status)
					}
				}
			}
			// A client that does not come through the proxy keeps its own address, whatever headers it sends.
			direct := strings.TrimPrefix(server.URL, "http://")
			for i, status := range []int{200, 200, 429} {
				if got, body := ask("127.0.0.7", direct, "/SVS/rest/api/policy", "X-Forwarded-For", fmt.Sprint("203.0.113.", i), "Forwarded", fmt.Sprint("for=203.0.113.", i)); got != status {
					t.Errorf("call %d past the proxy: got %d %s, want %d", i+1, got, body, status)
				}
			}
			if c.server != "" {
				conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.7")}}).DialContext(t.Context(), "tcp", direct)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				io.WriteString(conn, "PROXY TCP4 203.0.113.9 127.0.0.1 1 2\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
				if answer, err := io.ReadAll(conn); err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 400 ")) {
					t.Errorf("an untrusted header of the PROXY protocol: %q %v", answer, err)
				}
			}

			operatorToken := func() string {
				response, err := clientAt("127.0.0.5").PostForm("http://"+front+"/STS/oauth/token", map[string][]string{
					"grant_type": {"password"}, "username": {server.Dev.Operator.Login}, "password": {server.Dev.Operator.Password},
					"client_id": {server.Dev.ClientID}, "resource": {server.Dev.Resource},
				})
				if err != nil {
					t.Fatal(err)
				}
				status, body := tamgatest.ReadAll(t, response)
				var answer struct {
					Token string `json:"access_token"`
				}
				if err := json.Unmarshal(body, &answer); err != nil || status != 200 {
					t.Fatalf("token: %d %s", status, body)
				}
				return answer.Token
			}
			if status, body := ask("127.0.0.6", front, "/STS/ums/policy", append(forged, "Authorization", "Bearer "+operatorToken())...); status != 200 {
				t.Fatalf("policy: %d %s", status, body)
			}
			var log bytes.Buffer
			if err := run(t.Context(), []string{"audit", "--data", server.Dir, "--operation", "GetPolicy", "--json", "--limit", "0"}, strings.NewReader(""), &log, &log); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(log.String(), `"remote":"127.0.0.6"`) || strings.Contains(log.String(), "203.0.113") {
				t.Errorf("the audit log does not have the client:\n%s", log.String())
			}
		})
	}
}

// A page of another site whose name leads to this machine reads nothing of a server for
// trying out, by whatever address and however it asks.
func TestDevAgainstRebinding(t *testing.T) {
	t.Parallel()
	server := tamgatest.Start(t)
	ask := func(host, path, accept string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		request.Header.Set("Accept", accept)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		status, body := tamgatest.ReadAll(t, response)
		return status, string(body)
	}
	for _, path := range []string{"/captured-messages", "/captured-messages/", "/metrics", "/healthz", "/openapi.json", "/STS/oauth/authorize", "/pki/gost.crl", "/nothing"} {
		for _, accept := range []string{"application/json", "text/html"} {
			if status, body := ask("evil.example", path, accept); status != 421 || !strings.Contains(body, "Host names another machine") {
				t.Errorf("%s as %s: got %d %.100s", path, accept, status, body)
			}
		}
	}
	for _, host := range []string{"", "localhost:8080", "127.0.0.1"} { // "": that of the address
		if status, _ := ask(host, "/captured-messages", "application/json"); status != 200 {
			t.Errorf("Host %q: got %d", host, status)
		}
	}
}
