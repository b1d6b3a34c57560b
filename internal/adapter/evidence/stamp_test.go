// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tamga/internal/domain/policy"
	"tamga/pki/ocsp"
	"tamga/pki/suite"
	"tamga/pki/tsp"
	"tamga/pki/x509gost"
	"tamga/sig"
)

func TestTimeStamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet(t)
		service := newStamper(t)
		n.serve("tsp.example", service.ServeHTTP)
		var events []Event
		s := n.source(func(c *Config) { c.Observe = func(e Event) { events = append(events, e) } })
		for _, address := range []string{stampURL, "", "HTTP://TSP.example:80/tsp/"} {
			token, err := s.TimeStamp(t.Context(), address, digest())
			if err != nil {
				t.Fatal(err)
			}
			if token := checkToken(t, token); !token.Info.Time.Equal(epoch) {
				t.Errorf("stamped at %v", token.Info.Time)
			}
		}
		if service.calls.Load() != 3 || len(n.dials) != 1 {
			t.Errorf("%d requests over %d connections", service.calls.Load(), len(n.dials))
		}
		if len(events) != 3 || events[0] != (Event{Kind: "tsp", Host: "tsp.example", Outcome: "ok"}) {
			t.Errorf("events %+v", events)
		}
	})
}

// TestStatusOfSuccess checks that services may answer with any status of success: time-stamp
// services, OCSP responders, and those of lists and certificates. An empty body is no answer.
func TestStatusOfSuccess(t *testing.T) {
	p := everybody()
	written := func(code int, h http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(code); h(w, r) }
	}
	for _, code := range []int{201, 202, 203, 299} {
		synctest.Test(t, func(t *testing.T) {
			n := newInternet(t)
			n.serve("tsp.example", written(code, newStamper(t).ServeHTTP))
			n.serve("ca.example", written(code, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(p.ca.cert.Raw) }))
			s := n.source(nil)
			token, err := s.TimeStamp(t.Context(), stampURL, digest())
			if err != nil {
				t.Fatalf("%d: %v", code, err)
			}
			checkToken(t, token)
			bare := n.source(func(x *Config) {
				x.Anchors = func(context.Context) (a, b []*x509gost.Certificate, err error) { return nil, nil, nil }
			})
			if _, err := bare.Issuer(t.Context(), p.user.cert); err != nil {
				t.Errorf("%d: %v", code, err)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			s, o, l := revocationWorld(t, nil)
			answers := func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(code); return false }
			o.before = answers
			if proof, err := s.Revocation(t.Context(), p.user.cert, p.ca.cert, time.Time{}); err != nil || len(proof.OCSP) == 0 {
				t.Errorf("%d: an answer: %v", code, err)
			}
			o.before, l.before = status(404), answers
			if proof, err := s.Revocation(t.Context(), p.other.cert, p.ca.cert, time.Time{}); err != nil || len(proof.CRL) == 0 {
				t.Errorf("%d: a list: %v", code, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		n := newInternet(t)
		n.serve("tsp.example", status204)
		if _, err := n.source(nil).TimeStamp(t.Context(), stampURL, digest()); err == nil || !strings.Contains(err.Error(), "tsp:") {
			t.Errorf("204: %v", err)
		}
	})
}

func status204(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }

// Each fault of one service is refused with its reason, and says whether it is an
// outage that is worth another request.
func TestStampFaults(t *testing.T) {
	p := everybody()
	foreign := certify(t, nil, "Foreign", isStamper)
	notCritical := certify(t, &p.ca, "NotCritical", func(t *x509gost.Template) { t.ExtKeyUsage = []x509gost.OID{x509gost.UsageTimeStamping} })
	expired := certify(t, &p.ca, "Expired", func(t *x509gost.Template) { isStamper(t); t.NotAfter = epoch.Add(-time.Hour) })
	big := make([]byte, 65<<10)
	for _, c := range []struct {
		name  string
		spoil func(*stamper)
		want  string
		calls int32
	}{
		{"garbage", func(s *stamper) { s.answer = func([]byte) []byte { return []byte("<html>") } }, "tsp:", 1},
		{"empty", func(s *stamper) { s.answer = func([]byte) []byte { return nil } }, "tsp:", 1},
		{"cut answer", func(s *stamper) { s.answer = func(b []byte) []byte { return b[:len(b)/2] } }, "tsp:", 1},
		{"changed signature", func(s *stamper) {
			s.answer = func(b []byte) []byte { b[len(b)-1] ^= 1; return b }
		}, "signature", 1},
		{"rejection", func(s *stamper) {
			s.answer = func([]byte) []byte { return tsp.CreateRejection(tsp.Rejection, tsp.BadAlg, "no GOST here") }
		}, `refused (status 2, badAlg): "no GOST here"`, 1},
		{"waiting", func(s *stamper) {
			s.answer = func([]byte) []byte { return tsp.CreateRejection(tsp.Waiting, tsp.NoFailInfo, "") }
		}, "status 3", 1},
		{"service in trouble", func(s *stamper) {
			s.answer = func([]byte) []byte { return tsp.CreateRejection(tsp.Rejection, tsp.TimeNotAvailable, "") }
		}, "timeNotAvailable", 4},
		{"another nonce", func(s *stamper) { s.info = func(i *tsp.Info) { i.Nonce = []byte{1} } }, "nonce", 1},
		{"no nonce", func(s *stamper) { s.info = func(i *tsp.Info) { i.Nonce = nil } }, "nonce", 1},
		{"another imprint", func(s *stamper) { s.info = func(i *tsp.Info) { i.Digest = theSuite.Hash.Digest(nil) } }, "another digest", 1},
		{"another algorithm", func(s *stamper) { s.info = func(i *tsp.Info) { i.Digest = suite.SHA256.Digest(nil) } }, "another digest", 1},
		{"another policy", func(s *stamper) { s.info = func(i *tsp.Info) { i.Policy = x509gost.OID{1, 2, 4} } }, "policy", 1},
		{"clock ahead", func(s *stamper) { s.info = func(i *tsp.Info) { i.Time = i.Time.Add(6 * time.Minute) } }, "off our clock", 1},
		{"clock behind", func(s *stamper) { s.info = func(i *tsp.Info) { i.Time = i.Time.Add(-6 * time.Minute) } }, "off our clock", 1},
		{"untrusted", func(s *stamper) { s.signer = foreign }, "not trusted", 1},
		{"not critical", func(s *stamper) { s.signer = notCritical }, "critical", 1},
		{"not a stamper", func(s *stamper) { s.signer = p.user }, "not for time stamping", 1},
		{"expired", func(s *stamper) { s.signer = expired }, "valid from", 1},
		{"redirect", func(s *stamper) {
			s.before = func(w http.ResponseWriter, r *http.Request) bool {
				http.Redirect(w, r, secondURL, http.StatusTemporaryRedirect)
				return true
			}
		}, "redirect (HTTP 307)", 1},
		{"not found", func(s *stamper) { s.before = status(404) }, "HTTP 404", 1},
		{"server error", func(s *stamper) { s.before = status(503) }, "HTTP 503", 4},
		{"too many requests", func(s *stamper) { s.before = status(429) }, "HTTP 429", 4},
		{"announced too large", func(s *stamper) {
			s.before = func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Content-Length", "66560")
				return write(big)(w, r)
			}
		}, "has 66560 bytes, more than the 65536 allowed", 1},
		{"too large", func(s *stamper) {
			s.before = func(w http.ResponseWriter, r *http.Request) bool {
				_ = http.NewResponseController(w).Flush()
				return write(big)(w, r)
			}
		}, "more than the 65536 bytes allowed", 1},
		{"compressed", func(s *stamper) {
			s.before = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Header.Get("Accept-Encoding") != "" {
					t.Error("the request asks for a compressed answer")
				}
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write([]byte("\x1f\x8b"))
				return true
			}
		}, "tsp:", 1},
		{"breaks off", func(s *stamper) {
			s.before = func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Content-Length", "100")
				_, _ = w.Write([]byte("0"))
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
		}, "breaks off after 1 bytes", 4},
		{"late", func(s *stamper) { s.before = hang }, "no whole answer within 5s", 4},
		{"trickle", func(s *stamper) {
			s.before = func(w http.ResponseWriter, r *http.Request) bool {
				_, _ = io.Copy(io.Discard, r.Body)
				for {
					_, _ = w.Write([]byte("0"))
					_ = http.NewResponseController(w).Flush()
					select {
					case <-time.After(time.Second): // of the bubble
					case <-r.Context().Done():
						return true
					}
				}
			}
		}, "no whole answer within 5s", 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet(t)
				service := newStamper(t)
				c.spoil(service)
				n.serve("tsp.example", service.ServeHTTP)
				n.serve("second.example:8080", func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") })
				s := n.source(func(c *Config) {
					services(policy.TSPService{Name: "first", URL: stampURL, Policy: "1.2.3"})(c)
					c.TotalTimeout = time.Minute
				})
				token, err := s.TimeStamp(t.Context(), stampURL, digest())
				var refusal *sig.ErrEvidence
				if token != nil || !errors.As(err, &refusal) || refusal.What != "time stamp" || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), stampURL) {
					t.Errorf("%v, want %q", err, c.want)
				}
				if got := service.calls.Load(); got != c.calls {
					t.Errorf("%d requests, want %d", got, c.calls)
				}
			})
		})
	}
}

func TestStampRefusedBeforeConnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet(t)
		n.serve("third.example", newStamper(t).ServeHTTP)
		n.names["inside.example"] = []netip.Addr{netip.MustParseAddr("10.0.0.1")}
		closed := n.source(nil)
		open := n.source(func(c *Config) { c.AllowThirdPartyTSP = true })
		none := n.source(services())
		for _, c := range []struct {
			s             *Source
			address, want string
		}{
			{closed, "http://third.example/", "not the address of a registered"},
			{closed, "http://tsp.example/other", "not the address of a registered"},
			{none, "", "no time-stamp service is registered"},
			{open, "ftp://third.example/", "not one of http or https"},
			{open, "http://user:word@third.example/", "not one of http or https"},
			{open, "http://third.example:25/", "port 25"},
			{open, "http://127.0.0.1/", "not an address of the public internet"},
			{open, "http://[::ffff:10.0.0.1]/", "not an address of the public internet"},
			{open, "http://inside.example/", "it is not an address of the public internet, and no exception is configured for it: 10.0.0.1:80"},
			{open, "http://unknown.example/", "its name is not known: lookup unknown.example"},
		} {
			_, err := c.s.TimeStamp(t.Context(), c.address, digest())
			var refusal *sig.ErrEvidence
			if !errors.As(err, &refusal) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.address, err, c.want)
			}
		}
		if len(n.dials) != 0 {
			t.Errorf("connections to %v", n.dials)
		}
		if token, err := open.TimeStamp(t.Context(), "http://third.example/", digest()); err != nil {
			t.Errorf("a third party that is allowed: %v", err)
		} else {
			checkToken(t, token)
		}
	})
}

// An operator chose a registered service, and its port too.
func TestStampRegisteredPort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet(t)
		n.serve("tsp.example:318", newStamper(t).ServeHTTP)
		s := n.source(services(policy.TSPService{Name: "a", URL: "http://tsp.example:318/"}))
		if _, err := s.TimeStamp(t.Context(), "", digest()); err != nil {
			t.Error(err)
		}
	})
}

func TestStampErrorsOfOurOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet(t)
		n.serve("tsp.example", newStamper(t).ServeHTTP)
		noServices := n.source(func(c *Config) {
			c.Services = func(context.Context) ([]policy.TSPService, error) { return nil, errStore }
		})
		noAnchors := n.source(func(c *Config) {
			c.Anchors = func(context.Context) (a, b []*x509gost.Certificate, err error) { return nil, nil, errStore }
		})
		for _, s := range []*Source{noServices, noAnchors} {
			_, err := s.TimeStamp(t.Context(), stampURL, digest())
			var refusal *sig.ErrEvidence
			if !errors.Is(err, errStore) || errors.As(err, &refusal) {
				t.Errorf("our own trouble is reported as the service's: %v", err)
			}
		}
		if _, err := noServices.TimeStamp(t.Context(), stampURL, suite.Digest{}); err == nil {
			t.Error("a digest of nothing")
		}
	})
}

// What is asked for is within the bounds of one class.
func TestFailover(t *testing.T) {
	first := policy.TSPService{Name: "first", URL: stampURL, Class: "a"}
	second := policy.TSPService{Name: "second", URL: secondURL, Class: "a"}
	for _, c := range []struct {
		name  string
		spoil func(*stamper)
		other policy.TSPService
		ok    bool
		took  time.Duration
	}{
		{"rejection", func(s *stamper) {
			s.answer = func([]byte) []byte { return tsp.CreateRejection(tsp.Rejection, tsp.BadAlg, "") }
		}, second, true, 0},
		{"outage", func(s *stamper) { s.before = status(500) }, second, true, 0},
		{"hedged", func(s *stamper) { s.before = hang }, second, true, 1500 * time.Millisecond},
		{"another class", func(s *stamper) { s.before = status(404) }, policy.TSPService{Name: "second", URL: secondURL, Class: "b"}, false, 0},
		{"no class", func(s *stamper) { s.before = status(404) }, policy.TSPService{Name: "second", URL: secondURL}, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet(t)
				bad, good := newStamper(t), newStamper(t)
				c.spoil(bad)
				n.serve("tsp.example", bad.ServeHTTP)
				n.serve("second.example:8080", good.ServeHTTP)
				s := n.source(services(first, c.other))
				token, err := s.TimeStamp(t.Context(), stampURL, digest())
				if (err == nil) != c.ok || c.ok && good.calls.Load() != 1 || !c.ok && good.calls.Load() != 0 {
					t.Fatalf("%v after %d requests to the second", err, good.calls.Load())
				}
				if bad.calls.Load() != 1 {
					t.Errorf("%d requests to the first", bad.calls.Load())
				}
				if took := time.Since(epoch); took != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
				if c.ok {
					checkToken(t, token)
				}
			})
		})
	}
}

func TestHedgeIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet(t)
		slow := newStamper(t)
		slow.before = func(http.ResponseWriter, *http.Request) bool { time.Sleep(2 * time.Second); return false }
		stuck := newStamper(t)
		stuck.before = hang
		n.serve("tsp.example", slow.ServeHTTP)
		n.serve("second.example:8080", stuck.ServeHTTP)
		var events []Event
		s := n.source(func(c *Config) {
			services(policy.TSPService{Name: "a", URL: stampURL, Class: "a"}, policy.TSPService{Name: "b", URL: secondURL, Class: "a"})(c)
			c.Observe = func(e Event) { events = append(events, e) }
		})
		// The first one is slow and wins all the same: the loser's request ends.
		if _, err := s.TimeStamp(t.Context(), stampURL, digest()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(events) != 2 || events[0].Hedged || events[0].Outcome != "ok" || !events[1].Hedged || events[1].Outcome != "canceled" {
			t.Errorf("events %+v", events)
		}
		if got := time.Since(epoch); got != 2*time.Second {
			t.Errorf("it took %v", got)
		}
		if s.services.endpoint(secondURL).failures+s.services.endpoint(strings.TrimSuffix(secondURL, "/")).failures != 0 {
			t.Error("the loser's health suffered from our giving up")
		}
	})
}

// A service that fails again and again is left in peace, then asked again.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet(t)
		bad, good := newStamper(t), newStamper(t)
		bad.before = status(500)
		n.serve("tsp.example", bad.ServeHTTP)
		n.serve("second.example:8080", good.ServeHTTP)
		s := n.source(services(policy.TSPService{Name: "a", URL: stampURL, Class: "a"}, policy.TSPService{Name: "b", URL: secondURL, Class: "a"}))
		stamps := func(count int, want int32) {
			t.Helper()
			before := bad.calls.Load()
			for range count {
				if _, err := s.TimeStamp(t.Context(), stampURL, digest()); err != nil {
					t.Fatal(err)
				}
			}
			if got := bad.calls.Load() - before; got != want {
				t.Errorf("%d requests to the service that fails, want %d", got, want)
			}
		}
		stamps(5, 3)
		time.Sleep(firstRest)
		stamps(3, 1) // one probe, then a longer rest
		time.Sleep(firstRest / 2)
		stamps(1, 0)
		time.Sleep(2 * firstRest)
		bad.before = nil
		stamps(3, 3)
		// When all rest, each is asked once and no caller waits.
		bad.before, good.before = status(500), status(500)
		for range 3 {
			if _, err := s.TimeStamp(t.Context(), stampURL, digest()); err == nil {
				t.Error("a stamp of no service")
			}
		}
		start, before := time.Now(), bad.calls.Load()+good.calls.Load()
		if _, err := s.TimeStamp(t.Context(), stampURL, digest()); err == nil || time.Since(start) != 0 || bad.calls.Load()+good.calls.Load() != before+2 {
			t.Errorf("all rest: %v after %v and %d requests", err, time.Since(start), bad.calls.Load()+good.calls.Load()-before)
		}
		good.before = nil
		if _, err := s.TimeStamp(t.Context(), stampURL, digest()); err != nil {
			t.Errorf("the one that came back: %v", err)
		}
	})
}

// One that rests is the last resort of callers who have no other one.
func TestRestingIsTheLastResort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet(t)
		first, second := newStamper(t), newStamper(t)
		n.serve("tsp.example", first.ServeHTTP)
		n.serve("second.example:8080", second.ServeHTTP)
		s := n.source(services(policy.TSPService{Name: "a", URL: stampURL, Class: "a"}, policy.TSPService{Name: "b", URL: secondURL, Class: "a"}))
		first.before = status(500)
		for range 3 {
			if _, err := s.TimeStamp(t.Context(), stampURL, digest()); err != nil {
				t.Fatal(err)
			}
		}
		first.before, second.before = nil, status(404)
		if token, err := s.TimeStamp(t.Context(), stampURL, digest()); err != nil {
			t.Error(err)
		} else {
			checkToken(t, token)
		}
		if first.calls.Load() != 4 || second.calls.Load() != 4 {
			t.Errorf("%d and %d requests", first.calls.Load(), second.calls.Load())
		}
	})
}

// A service that is always overtaken rests too.
func TestSlowServiceRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet(t)
		slow, good := newStamper(t), newStamper(t)
		slow.before = hang
		n.serve("tsp.example", slow.ServeHTTP)
		n.serve("second.example:8080", good.ServeHTTP)
		s := n.source(services(policy.TSPService{Name: "a", URL: stampURL, Class: "a"}, policy.TSPService{Name: "b", URL: secondURL, Class: "a"}))
		for i := range 5 {
			start := time.Now()
			if _, err := s.TimeStamp(t.Context(), stampURL, digest()); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(start) != 0; waited != (i < failuresToRest) {
				t.Errorf("stamp %d waited: %v", i+1, waited)
			}
		}
	})
}

func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet(t)
		service := newStamper(t)
		var at []time.Duration
		service.before = func(w http.ResponseWriter, r *http.Request) bool {
			at = append(at, time.Since(epoch))
			return len(at) < 4 && status(503)(w, r)
		}
		n.serve("tsp.example", service.ServeHTTP)
		s := n.source(func(c *Config) { c.Rand = zeros{} }) // no jitter
		if _, err := s.TimeStamp(t.Context(), stampURL, digest()); err != nil {
			t.Fatal(err)
		}
		want := []time.Duration{0, 200 * time.Millisecond, 600 * time.Millisecond, 1400 * time.Millisecond}
		for i := range want {
			if at[i] != want[i] {
				t.Errorf("requests at %v, want %v", at, want)
				break
			}
		}
		s.Rand = ones{}
		if got := s.jitter(time.Second); got <= time.Second/2 || got >= time.Second {
			t.Errorf("a second with jitter is %v", got)
		}
	})
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

type ones struct{}

func (ones) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 0xff
	}
	return len(b), nil
}

func TestQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet(t)
		first, second := newStamper(t), newStamper(t)
		n.serve("tsp.example", first.ServeHTTP)
		n.serve("second.example:8080", second.ServeHTTP)
		s := n.source(services(
			policy.TSPService{Name: "a", URL: stampURL, Class: "a", PerMinute: 2},
			policy.TSPService{Name: "b", URL: secondURL, Class: "a", PerMinute: 60}))
		stamp := func() error {
			_, err := s.TimeStamp(t.Context(), stampURL, digest())
			return err
		}
		for range 2 + 60 {
			if err := stamp(); err != nil {
				t.Fatal(err)
			}
		}
		if first.calls.Load() != 2 || second.calls.Load() != 60 || time.Since(epoch) != 0 {
			t.Errorf("%d and %d requests after %v", first.calls.Load(), second.calls.Load(), time.Since(epoch))
		}
		// The next one waits for the second service's next second.
		if err := stamp(); err != nil || time.Since(epoch).Round(time.Millisecond) != time.Second {
			t.Errorf("%v after %v", err, time.Since(epoch))
		}
		alone := n.source(services(policy.TSPService{Name: "a", URL: stampURL, PerMinute: 1}))
		if _, err := alone.TimeStamp(t.Context(), "", digest()); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err := alone.TimeStamp(t.Context(), "", digest())
		var refusal *sig.ErrEvidence
		if !errors.As(err, &refusal) || !strings.Contains(err.Error(), "the quota of 1 requests a minute is used up, the next one is in 1m0s") || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		time.Sleep(time.Minute)
		if _, err := alone.TimeStamp(t.Context(), "", digest()); err != nil {
			t.Error(err)
		}
	})
}

func TestStampTotalTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newInternet(t)
		service := newStamper(t)
		service.before = hang
		n.serve("tsp.example", service.ServeHTTP)
		s := n.source(func(c *Config) { c.TotalTimeout = 7 * time.Second })
		_, err := s.TimeStamp(t.Context(), stampURL, digest())
		var refusal *sig.ErrEvidence
		if !errors.As(err, &refusal) || errors.Is(err, context.DeadlineExceeded) || time.Since(epoch) != 7*time.Second {
			t.Errorf("%v after %v", err, time.Since(epoch))
		}
		before := s.services.endpoint(stampURL).failures
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := s.TimeStamp(ctx, stampURL, digest()); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &refusal) {
				t.Errorf("the caller gave up: %v", err)
			}
			cancel()
		}
		if got := s.services.endpoint(stampURL).failures; got != before {
			t.Errorf("callers who gave up count as %d failures of the service", got-before)
		}
	})
}

// The revocation of the authority counts, an outage of those who know about it
// does not, unless it must.
func TestStampRevocation(t *testing.T) {
	p := everybody()
	authority := certify(t, &p.ca, "TSA with addresses", func(t *x509gost.Template) { isStamper(t); t.OCSPServers = []string{ocspURL} })
	for _, c := range []struct {
		name     string
		spoil    func(*responder)
		required bool
		want     string
	}{
		{"good", func(*responder) {}, false, ""},
		{"revoked", func(o *responder) {
			o.single = func(s *ocsp.Single) { s.Status, s.RevokedAt, s.Reason = ocsp.Revoked, epoch.Add(-time.Hour), 1 }
		}, false, "was revoked at 1999-12-31T23:00:00Z (reason 1)"},
		{"down", func(o *responder) { o.before = status(500) }, false, ""},
		{"silent", func(o *responder) { o.before = hang }, false, ""},
		{"down and required", func(o *responder) { o.before = status(404) }, true, "HTTP 404"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newInternet(t)
				service, answers := newStamper(t), newResponder(t)
				service.signer = authority
				c.spoil(answers)
				n.serve("tsp.example", service.ServeHTTP)
				n.serve("ocsp.example", answers.ServeHTTP)
				s := n.source(func(x *Config) {
					x.RequireStampRevocation = c.required
					// The CA itself names no source of its status.
					x.Anchors = func(context.Context) (roots, known []*x509gost.Certificate, err error) {
						return []*x509gost.Certificate{p.ca.cert}, nil, nil
					}
				})
				_, err := s.TimeStamp(t.Context(), stampURL, digest())
				if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
				if c.name == "good" {
					for range 10 {
						if _, err := s.TimeStamp(t.Context(), stampURL, digest()); err != nil {
							t.Fatal(err)
						}
					}
					if answers.calls.Load() != 1 {
						t.Errorf("%d requests about one authority", answers.calls.Load())
					}
				}
			})
		})
	}
}

var _ io.Reader = zeros{}
