// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tamga/pki/x509gost"
	"tamga/sig"
)

func TestIssuer(t *testing.T) {
	p := everybody()
	bare := certify(t, &p.ca, "Bare", nil)
	for _, c := range []struct {
		name   string
		known  bool
		cert   *x509gost.Certificate
		answer func(http.ResponseWriter, *http.Request) bool
		want   string // reason of a refusal
	}{
		{name: "registered", known: true, cert: p.user.cert},
		{name: "root", known: true, cert: p.ca.cert},
		{name: "root of itself", known: true, cert: p.root.cert},
		{name: "fetched", cert: p.user.cert, answer: write(p.ca.cert.Raw)},
		{name: "fetched as PEM, behind an impostor", cert: p.user.cert, answer: write(append(
			pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.impostor.cert.Raw}),
			pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.ca.cert.Raw})...))},
		{name: "impostor", cert: p.user.cert, answer: write(p.impostor.cert.Raw), want: "none of the certificates there signed this one"},
		{name: "garbage", cert: p.user.cert, answer: write([]byte("<html>")), want: "certificates"},
		{name: "down", cert: p.user.cert, answer: status(500), want: "HTTP 500"},
		{name: "no address", cert: bare.cert, want: "names no address"},
		{name: "another issuer of itself", cert: p.impostor.cert, want: "issued itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet(t)
				n.serve("ca.example", func(w http.ResponseWriter, r *http.Request) { c.answer(w, r) })
				s := n.source(func(x *Config) {
					if !c.known {
						x.Anchors = func(context.Context) (a, b []*x509gost.Certificate, err error) { return nil, nil, nil }
					}
				})
				got, err := s.Issuer(t.Context(), c.cert)
				if c.want == "" {
					if err != nil {
						t.Fatal(err)
					}
					if err := c.cert.CheckSignatureFrom(got); err != nil || len(n.dials) > 0 == c.known {
						t.Errorf("%v after connections %v", err, n.dials)
					}
					return
				}
				var refusal *sig.ErrEvidence
				if !errors.As(err, &refusal) || refusal.What != "issuer" || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
			})
		})
	}
}

func TestIssuerIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := everybody()
		n := newInternet(t)
		calls := 0
		n.serve("ca.example", func(w http.ResponseWriter, r *http.Request) { calls++; write(p.ca.cert.Raw)(w, r) })
		s := n.source(func(x *Config) {
			x.Anchors = func(context.Context) (a, b []*x509gost.Certificate, err error) { return nil, nil, nil }
		})
		ask := func(cert *x509gost.Certificate, want int) {
			t.Helper()
			if c, err := s.Issuer(t.Context(), cert); err != nil || !c.Equal(p.ca.cert) || calls != want {
				t.Errorf("%v after %d requests, want %d", err, calls, want)
			}
		}
		ask(p.user.cert, 1)
		ask(p.other.cert, 1)
		time.Sleep(issuerLife)
		ask(p.other.cert, 2)
		// Another authority of the same name and address is not taken for it.
		lookalike := certify(t, &p.impostor, "Twin", addressed)
		var refusal *sig.ErrEvidence
		if _, err := s.Issuer(t.Context(), lookalike.cert); !errors.As(err, &refusal) {
			t.Errorf("the namesake: %v", err)
		}
	})
}
