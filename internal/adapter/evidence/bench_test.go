// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"tamga/internal/adapter/guard"
	"tamga/internal/domain/policy"
	"tamga/pki/x509gost"
)

// What a stamp costs on this side and on the service's together, over loopback.
func BenchmarkTimeStamp(b *testing.B) {
	p := everybody()
	server := httptest.NewServer(newStamper(b))
	defer server.Close()
	s, err := New(Config{
		Services: func(context.Context) ([]policy.TSPService, error) {
			return []policy.TSPService{{Name: "a", URL: server.URL}}, nil
		},
		Anchors: func(context.Context) (roots, known []*x509gost.Certificate, err error) {
			return []*x509gost.Certificate{p.root.cert}, []*x509gost.Certificate{p.ca.cert}, nil
		},
		Exceptions: []guard.Exception{mustException(b, "127.0.0.1")},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := s.TimeStamp(b.Context(), server.URL, digest()); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "stamps/s")
}

// What an answer that was fetched before costs.
func BenchmarkKeptAnswer(b *testing.B) {
	p := everybody()
	server := httptest.NewServer(newResponder(b))
	defer server.Close()
	user := certify(b, &p.ca, "User", func(t *x509gost.Template) { t.OCSPServers = []string{server.URL} })
	s, err := New(Config{
		Services:   func(context.Context) ([]policy.TSPService, error) { return nil, nil },
		Anchors:    func(context.Context) (roots, known []*x509gost.Certificate, err error) { return nil, nil, nil },
		Exceptions: []guard.Exception{mustException(b, "127.0.0.1")},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for b.Loop() {
		if _, err := s.Revocation(b.Context(), user.cert, p.ca.cert, time.Time{}); err != nil {
			b.Fatal(err)
		}
	}
}

func mustException(t testing.TB, text string) guard.Exception {
	t.Helper()
	e, err := guard.ParseException(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
