// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"encoding/base64"
	"net"
	"net/http"
	"strings"

	"tamga/internal/domain/fault"
)

// The headers of a TLS front end. Only the front end may set them.
const (
	certificateHeader = "Client-Cert"  // RFC 9440, 2.2
	ownHeaders        = "x-tamga-tls-" // prefix of the other headers of our front end
)

// maxCertificateHeader bounds the certificate that a front end forwards, in bytes of
// Base64.
const maxCertificateHeader = 32 << 10

type frontEndKey struct{}

// FrontEnd marks a connection as one of the TLS front end, whose headers are trusted. It is
// the ConnContext of a server that only the front end can reach. A connection without the
// mark can prove a certificate by TLS alone.
func FrontEnd(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, frontEndKey{}, true)
}

// Peered finds the certificate whose key the client proved to have: in the TLS handshake
// with us, or in the one with our front end, which forwards it in exactly one header (RFC
// 9440). A request on any other connection with such a header, in any spelling, is refused:
// the client pretends to be another one, or a front end is misconfigured.
func Peered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, call := callOf(r.Context())
		if trusted, _ := ctx.Value(frontEndKey{}).(bool); trusted {
			der, err := forwardedCertificate(r.Header)
			if err != nil {
				call.outcome = fault.InvalidParameters
				fail(w, err)
				return
			}
			call.peer = [][]byte{der}
		} else {
			for name := range r.Header {
				if isCertificate(name) || folds(name, ownHeaders) {
					call.outcome = fault.InvalidParameters
					fail(w, fault.New(fault.InvalidParameters, "the request has a header that only the TLS front end of the service may set: leave it out"))
					return
				}
			}
			if r.TLS != nil {
				for _, c := range r.TLS.PeerCertificates {
					call.peer = append(call.peer, c.Raw)
				}
			}
		}
		next.ServeHTTP(w, inContext(r, ctx))
	})
}

// folds reports whether the name of a header begins with prefix, which is in lower case. It undoes
// what programs between the client and us may do to the name: letter case, and underscores for
// hyphens. The server of net/http accepts ASCII names only.
func folds(name, prefix string) bool {
	if len(name) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		c := name[i]
		switch {
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case c == '_':
			c = '-'
		}
		if c != prefix[i] {
			return false
		}
	}
	return true
}

func isCertificate(name string) bool {
	for _, own := range [...]string{"client-cert", "client-cert-chain"} {
		if len(name) == len(own) && folds(name, own) {
			return true
		}
	}
	return false
}

// forwardedCertificate returns the certificate in the one header that may hold it.
func forwardedCertificate(h http.Header) ([]byte, error) {
	for name := range h {
		if name != certificateHeader && isCertificate(name) {
			return nil, fault.New(fault.InvalidParameters, "the front end let a forged certificate header through: have it remove what clients send (tamga gost-tls check)")
		}
	}
	values := h.Values(certificateHeader)
	if len(values) != 1 {
		return nil, fault.Newf(fault.InvalidParameters, "the front end forwarded %d client certificates, want one", len(values))
	}
	text, opened := strings.CutPrefix(values[0], ":")
	text, closed := strings.CutSuffix(text, ":")
	if !opened || !closed || len(text) > maxCertificateHeader {
		return nil, fault.New(fault.InvalidParameters, "the front end's Client-Cert header is not a byte sequence (RFC 9440)")
	}
	der, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(der) == 0 {
		return nil, fault.New(fault.InvalidParameters, "the front end's Client-Cert header is not a byte sequence (RFC 9440)").With(err)
	}
	return der, nil
}

// PeerCertificates returns the certificates (DER) of the client of the request in ctx: the
// one whose key the client proved to have, then those it sent to build a path. nil: the
// client has shown none. Their issuers, validity and key usage were not checked.
func PeerCertificates(ctx context.Context) [][]byte {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c.peer
	}
	return nil
}
