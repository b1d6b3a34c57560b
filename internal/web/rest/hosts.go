// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// codeMisdirected is the code for a request to another host (RFC 9110, section 15.5.20).
const codeMisdirected = "misdirected_request"

// Hosted passes requests whose Host names this machine or the host public, and answers
// others with 421 before anything happens. It protects pages without a sign-in that only
// people at this machine reach. A page of another site could reach them through a host name
// that leads to 127.0.0.1 (DNS rebinding), but then Host has that name. A request without
// Host passes: browsers always send one, and health checks of balancers may speak HTTP/1.0.
// covers reports whether a path is protected.
func Hosted(next http.Handler, public string, covers func(path string) bool, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "" || !covers(r.URL.Path) || isOwnHost(r.Host, public) {
			next.ServeHTTP(w, r)
			return
		}
		log.WarnContext(r.Context(), "a request for another host was refused", "host", printableHost(r.Host), "remote", clientAddress(r))
		Heard(Secured(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close") // the rest of the body is dropped, see Heard
			writeJSON(w, http.StatusMisdirectedRequest, Failure{
				Message: codeMisdirected, Error: codeMisdirected,
				Description: "Host names another machine: use localhost, 127.0.0.1 or the host of public_url in the address",
			})
		}))).ServeHTTP(w, r)
	})
}

// isOwnHost reports whether the value of Host, with or without a port, is a loopback name
// or address, or the public host.
func isOwnHost(host, public string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), ".")
	if a, err := netip.ParseAddr(host); err == nil && a.Unmap().IsLoopback() {
		return true
	}
	host = strings.ToLower(host)
	return host != "" && (host == strings.ToLower(public) || host == "localhost" || strings.HasSuffix(host, ".localhost"))
}

// printableHost is a Host for the log.
func printableHost(host string) string { return host[:min(len(host), 253)] }
