// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/policy"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
)

// An examination goes on where TimeStamp stops.
func TestExamine(t *testing.T) {
	p := everybody()
	foreign := certify(t, nil, "Foreign", isStamper)
	for _, c := range []struct {
		name  string
		spoil func(*stamper)
		good  []string
		bad   map[string]string
	}{
		{"good", func(*stamper) {}, []string{"connection", "answer", "signature", "clock", "trust", "revocation"}, nil},
		{"three faults", func(s *stamper) {
			s.info = func(i *tsp.Info) { i.Nonce, i.Time = nil, i.Time.Add(time.Hour) }
			s.signer = foreign
		}, []string{"connection", "signature"}, map[string]string{"answer": "nonce", "clock": "1h0m0s off our clock", "trust": "not trusted"}},
		{"no stamper", func(s *stamper) { s.signer = p.user }, []string{"connection", "answer", "clock"}, map[string]string{"signature": "not for time stamping"}},
		{"down", func(s *stamper) { s.before = status(502) }, nil, map[string]string{"connection": "HTTP 502"}},
		{"rejection", func(s *stamper) {
			s.before = func(w http.ResponseWriter, r *http.Request) bool {
				return write(tsp.CreateRejection(tsp.Rejection, tsp.UnacceptedPolicy, ""))(w, r)
			}
		}, nil, map[string]string{"connection": "unacceptedPolicy"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet(t)
				service := newStamper(t)
				c.spoil(service)
				n.serve("tsp.example", service.ServeHTTP)
				s := n.source(func(x *Config) {
					services()(x)
					x.Anchors = func(context.Context) (roots, known []*x509gost.Certificate, err error) {
						return []*x509gost.Certificate{p.ca.cert}, nil, nil
					}
				})
				// The authority of these tests names no source of its status.
				e, err := s.Examine(t.Context(), policy.TSPService{Name: "a", URL: stampURL}, digest())
				if err != nil {
					t.Fatal(err)
				}
				var good []string
				for _, check := range e.Checks {
					switch want, isBad := c.bad[check.Name]; {
					case check.Err == nil:
						good = append(good, check.Name)
					case check.Name == "revocation" && strings.Contains(check.Err.Error(), "names neither"):
						good = append(good, check.Name)
					case !isBad || !strings.Contains(check.Err.Error(), want):
						t.Errorf("%s: %v, want %q", check.Name, check.Err, want)
					}
				}
				if !slices.Equal(good, c.good) || len(e.Checks) != len(c.good)+len(c.bad) || e.Good() {
					t.Errorf("right: %v, want %v; %d checks, good %v", good, c.good, len(e.Checks), e.Good())
				}
			})
		})
	}
}

func TestExamineRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet(t)
		s := n.source(nil)
		if _, err := s.Examine(t.Context(), policy.TSPService{Name: "a", URL: "ftp://x/"}, digest()); !fault.Is(err, fault.InvalidParameters) {
			t.Errorf("no address: %v", err)
		}
		e, err := s.Examine(t.Context(), policy.TSPService{Name: "a", URL: "http://unknown.example/"}, digest())
		if err != nil || len(e.Checks) != 1 || !strings.Contains(e.Checks[0].Err.Error(), "its name is not known: lookup unknown.example") {
			t.Errorf("%+v, %v", e, err)
		}
	})
}

// A service that is right in everything is good.
func TestExamineGood(t *testing.T) {
	p := everybody()
	authority := certify(t, &p.ca, "TSA with addresses", func(t *x509gost.Template) { isStamper(t); t.OCSPServers = []string{ocspURL} })
	synctest.Test(t, func(t *testing.T) {
		n := newInternet(t)
		service := newStamper(t)
		service.signer = authority
		n.serve("tsp.example", service.ServeHTTP)
		n.serve("ocsp.example", newResponder(t).ServeHTTP)
		s := n.source(func(x *Config) {
			x.Anchors = func(context.Context) (roots, known []*x509gost.Certificate, err error) {
				return []*x509gost.Certificate{p.ca.cert}, nil, nil
			}
		})
		e, err := s.Examine(t.Context(), policy.TSPService{Name: "a", URL: stampURL, Policy: "1.2.3"}, digest())
		if err != nil || !e.Good() || len(e.Path) != 2 || e.Info == nil || e.Info.Policy.String() != "1.2.3" || e.Size == 0 {
			t.Errorf("%+v, %v", e, err)
		}
	})
}
