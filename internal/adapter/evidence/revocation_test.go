// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tamga/pki/chain"
	"tamga/pki/ocsp"
	"tamga/pki/x509gost"
	"tamga/sig"
)

// revocationWorld is a responder and a list on an internet.
func revocationWorld(t *testing.T, change func(*Config)) (*Source, *responder, *publisher) {
	n := newInternet(t)
	o, p := newResponder(t), newPublisher(t)
	n.serve("ocsp.example", o.ServeHTTP)
	n.serve("crl.example", p.ServeHTTP)
	return n.source(change), o, p
}

func isEvidence(err error) bool {
	var e *sig.ErrEvidence
	return errors.As(err, &e) && e.What == "revocation"
}

func TestRevocation(t *testing.T) {
	p := everybody()
	revokedSingle := func(s *ocsp.Single) { s.Status, s.RevokedAt, s.Reason = ocsp.Revoked, epoch.Add(-time.Hour), 1 }
	listUser := func(l *x509gost.CRLTemplate) {
		l.Revoked = []x509gost.RevokedEntry{{SerialNumber: p.user.cert.SerialNumber, At: epoch.Add(-2 * time.Hour), Reason: 4}}
	}
	critical := []x509gost.Extension{{OID: x509gost.OID{1, 2, 3}, Critical: true, Value: []byte{5, 0}}}
	for _, c := range []struct {
		name     string
		ocsp     func(*responder)
		crl      func(*publisher)
		want     string // "ocsp" or "crl" for a proof of this kind, else the reason
		revoked  bool
		noAnswer bool // the reason is not a definite answer
	}{
		{name: "good", want: "ocsp"},
		{name: "issuer itself answers", ocsp: func(o *responder) { o.signer = p.ca }, want: "ocsp"},
		{name: "without nonce", ocsp: func(o *responder) { o.change = func(t *ocsp.Template) { t.Extensions = nil } }, want: "ocsp"},
		{name: "revoked", ocsp: func(o *responder) { o.single = revokedSingle }, want: "was revoked at 1999-12-31T23:00:00Z (reason 1)", revoked: true},
		{name: "revoked in the list", ocsp: func(o *responder) { o.before = status(500) }, crl: func(p *publisher) { p.change = listUser }, want: "was revoked at 1999-12-31T22:00:00Z (reason 4)", revoked: true},
		{name: "good wins over the list", crl: func(p *publisher) { p.change = listUser }, want: "ocsp"},

		{name: "responder down", ocsp: func(o *responder) { o.before = status(503) }, want: "crl"},
		{name: "responder silent", ocsp: func(o *responder) { o.before = hang }, want: "crl"},
		{name: "responder in trouble", ocsp: func(o *responder) { o.before = write(ocsp.CreateError(ocsp.TryLater)) }, want: "crl"},
		{name: "responder refuses", ocsp: func(o *responder) { o.before = write(ocsp.CreateError(ocsp.Unauthorized)) }, want: "crl"},
		{name: "garbage", ocsp: func(o *responder) { o.before = write([]byte("<html>")) }, want: "crl"},
		{name: "unknown", ocsp: func(o *responder) { o.single = func(s *ocsp.Single) { s.Status = ocsp.Unknown } }, want: "crl"},
		{name: "another nonce", ocsp: func(o *responder) {
			o.change = func(t *ocsp.Template) {
				e, _ := ocsp.NonceExtension(bytes.Repeat([]byte{1}, 32))
				t.Extensions = []x509gost.Extension{e}
			}
		}, want: "crl"},
		{name: "another certificate", ocsp: func(o *responder) {
			o.single = func(s *ocsp.Single) { s.CertID, _ = ocsp.NewCertID(p.other.cert, p.ca.cert, theSuite.Hash) }
		}, want: "crl"},
		{name: "answer of a user", ocsp: func(o *responder) { o.signer = p.user }, want: "crl"},
		{name: "out of date", ocsp: func(o *responder) {
			o.single = func(s *ocsp.Single) {
				s.ThisUpdate, s.NextUpdate = epoch.Add(-time.Hour), epoch
			}
		}, want: "crl"},
		{name: "in the future", ocsp: func(o *responder) {
			o.single = func(s *ocsp.Single) {
				s.ThisUpdate, s.NextUpdate = epoch.Add(time.Hour), epoch.Add(2*time.Hour)
			}
		}, want: "crl"},
		{name: "old and unbound", ocsp: func(o *responder) {
			o.change = func(t *ocsp.Template) { t.Extensions = nil }
			o.single = func(s *ocsp.Single) { s.ThisUpdate, s.NextUpdate = epoch.Add(-time.Hour), time.Time{} }
		}, want: "crl"},
		{name: "critical extension", ocsp: func(o *responder) {
			o.change = func(t *ocsp.Template) { t.Extensions = append(t.Extensions, critical...) }
		}, want: "crl"},

		{name: "no source", ocsp: func(o *responder) { o.before = status(404) }, crl: func(p *publisher) { p.before = status(410) },
			want: "no source could say whether certificate \"User\"", noAnswer: true},
		{name: "list of an impostor", ocsp: func(o *responder) { o.before = status(404) }, crl: func(l *publisher) { l.signer = p.impostor }, want: "signature", noAnswer: true},
		{name: "list of another", ocsp: func(o *responder) { o.before = status(404) }, crl: func(l *publisher) { l.signer = p.root }, want: "not of the issuer", noAnswer: true},
		{name: "list out of date", ocsp: func(o *responder) { o.before = status(404) }, crl: func(l *publisher) {
			l.change = func(t *x509gost.CRLTemplate) { t.ThisUpdate, t.NextUpdate = epoch.Add(-2*time.Hour), epoch }
		}, want: "the next one was due at 2000-01-01T00:00:00Z", noAnswer: true},
		{name: "list in the future", ocsp: func(o *responder) { o.before = status(404) }, crl: func(l *publisher) {
			l.change = func(t *x509gost.CRLTemplate) { t.ThisUpdate = epoch.Add(time.Hour) }
		}, want: "is in the future", noAnswer: true},
		{name: "list with a critical extension", ocsp: func(o *responder) { o.before = status(404) }, crl: func(l *publisher) {
			l.change = func(t *x509gost.CRLTemplate) { t.ExtraExtensions = critical }
		}, want: "critical extensions", noAnswer: true},
		{name: "list of authorities", ocsp: func(o *responder) { o.before = status(404) }, crl: func(l *publisher) {
			l.change = func(t *x509gost.CRLTemplate) {
				t.ExtraExtensions = []x509gost.Extension{{OID: x509gost.OIDIssuingPoint, Critical: true, Value: []byte{0x30, 3, 0x82, 1, 0xff}}}
			}
		}, want: "does not speak of this certificate", noAnswer: true},
		{name: "list redirects", ocsp: func(o *responder) { o.before = status(404) }, crl: func(l *publisher) {
			l.before = func(w http.ResponseWriter, r *http.Request) bool {
				http.Redirect(w, r, ocspURL, http.StatusFound)
				return true
			}
		}, want: "redirect (HTTP 302)", noAnswer: true},
		{name: "list too large", ocsp: func(o *responder) { o.before = status(404) }, crl: func(l *publisher) {
			l.before = func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Content-Length", "67108865")
				return true
			}
		}, want: "more than the 67108864 allowed", noAnswer: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, o, l := revocationWorld(t, nil)
				if c.ocsp != nil {
					c.ocsp(o)
				}
				if c.crl != nil {
					c.crl(l)
				}
				proof, err := s.Revocation(t.Context(), p.user.cert, p.ca.cert, time.Time{})
				kind := ""
				switch {
				case len(proof.OCSP) > 0:
					kind = "ocsp"
					if _, err := ocsp.ParseBasic(proof.OCSP); err != nil {
						t.Errorf("the proof: %v", err)
					}
				case len(proof.CRL) > 0:
					kind = "crl"
					if _, err := x509gost.ParseRevocationList(proof.CRL); err != nil {
						t.Errorf("the proof: %v", err)
					}
				}
				switch {
				case c.revoked:
					if !errors.Is(err, chain.ErrRevoked) || isEvidence(err) || kind == "" || !strings.Contains(err.Error(), c.want) {
						t.Errorf("%v with proof %q, want %q", err, kind, c.want)
					}
				case c.noAnswer:
					if !isEvidence(err) || errors.Is(err, chain.ErrRevoked) || kind != "" || !strings.Contains(err.Error(), c.want) {
						t.Errorf("%v with proof %q, want %q", err, kind, c.want)
					}
				default:
					if err != nil || kind != c.want {
						t.Errorf("%v with proof %q, want %q", err, kind, c.want)
					}
				}
			})
		})
	}
}

func TestRevocationRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := everybody()
		s, o, _ := revocationWorld(t, func(c *Config) { c.RequireOCSPNonce = true })
		if _, err := s.Revocation(t.Context(), p.user.cert, p.root.cert, time.Time{}); err == nil || isEvidence(err) {
			t.Errorf("another certificate's issuer: %v", err)
		}
		if _, err := s.Revocation(t.Context(), p.user.cert, nil, time.Time{}); err == nil || isEvidence(err) {
			t.Errorf("no issuer: %v", err)
		}
		if _, err := s.Revocation(t.Context(), p.ca.cert, p.root.cert, time.Time{}); !isEvidence(err) || !strings.Contains(err.Error(), "names neither") {
			t.Errorf("a certificate without addresses: %v", err)
		}
		o.change = func(t *ocsp.Template) { t.Extensions = nil }
		proof, err := s.Revocation(t.Context(), p.user.cert, p.ca.cert, time.Time{})
		if err != nil || proof.CRL == nil {
			t.Errorf("an answer without a nonce where one is required: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		synctest.Wait()
		if _, err := s.Revocation(ctx, p.other.cert, p.ca.cert, time.Time{}); !errors.Is(err, context.Canceled) || isEvidence(err) {
			t.Errorf("the caller gave up: %v", err)
		}
		// An attacker may choose the addresses in a certificate.
		inside := certify(t, &p.ca, "Inside", func(t *x509gost.Template) {
			t.OCSPServers = []string{"http://127.0.0.1/", "http://169.254.169.254/latest", "gopher://ocsp.example/", "http://ocsp.example:22/"}
			t.CRLDistributionPoints = []string{"ldap://crl.example/cn=CA", "file:///etc/passwd"}
		})
		_, err = s.Revocation(t.Context(), inside.cert, p.ca.cert, time.Time{})
		for _, want := range []string{"http://127.0.0.1/: it is not an address", "latest: it is not an address", `"gopher"`, "port 22", `"ldap"`} {
			if !isEvidence(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
		many := certify(t, &p.ca, "Many", func(t *x509gost.Template) {
			for range 20 {
				t.OCSPServers = append(t.OCSPServers, "http://ocsp.example/many")
			}
		})
		synctest.Wait() // for the request that no caller waits for any more
		o.before = status(404)
		o.calls.Store(0)
		if _, err := s.Revocation(t.Context(), many.cert, p.ca.cert, time.Time{}); !isEvidence(err) || o.calls.Load() != maxAddressesAsked {
			t.Errorf("%v after %d requests", err, o.calls.Load())
		}
	})
}

func TestKeptUntilNextUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := everybody()
		s, o, l := revocationWorld(t, nil)
		ask := func(cert *x509gost.Certificate, notBefore time.Time, requests int32) sig.Proof {
			t.Helper()
			before := o.calls.Load() + l.calls.Load()
			proof, err := s.Revocation(t.Context(), cert, p.ca.cert, notBefore)
			if err != nil {
				t.Fatal(err)
			}
			if got := o.calls.Load() + l.calls.Load() - before; got != requests {
				t.Errorf("%d requests, want %d", got, requests)
			}
			return proof
		}
		ask(p.user.cert, time.Time{}, 1)
		ask(p.user.cert, time.Time{}, 0)
		ask(p.other.cert, time.Time{}, 1)
		time.Sleep(time.Hour - time.Nanosecond)
		ask(p.user.cert, time.Time{}, 0)
		time.Sleep(time.Nanosecond)
		ask(p.user.cert, time.Time{}, 1)

		// A certificate that was good once may be revoked now.
		o.single = func(s *ocsp.Single) { s.Status, s.RevokedAt = ocsp.Revoked, s.ThisUpdate }
		ask(p.user.cert, time.Time{}, 0)
		time.Sleep(time.Hour)
		for range 2 { // and that is kept too
			if _, err := s.Revocation(t.Context(), p.user.cert, p.ca.cert, time.Time{}); !errors.Is(err, chain.ErrRevoked) {
				t.Errorf("revoked meanwhile: %v", err)
			}
		}
		if o.calls.Load() != 4 {
			t.Errorf("%d requests", o.calls.Load())
		}

		// An answer that does not say when it ends is for one occasion.
		o.single = func(s *ocsp.Single) { s.NextUpdate = time.Time{} }
		ask(p.other.cert, time.Time{}, 1)
		ask(p.other.cert, time.Time{}, 1)
		ask(p.other.cert, time.Now(), 0)

		// One list serves all certificates of its issuer.
		o.before = status(404)
		third := certify(t, &p.ca, "Third", addressed)
		ask(third.cert, time.Time{}, 2)
		ask(p.other.cert, time.Time{}, 1)
		ask(third.cert, time.Time{}, 1)
		time.Sleep(24 * time.Hour)
		ask(third.cert, time.Time{}, 2)
	})
}

// Unknown is no answer, so it is not kept.
func TestUnknownIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := everybody()
		s, o, l := revocationWorld(t, nil)
		l.before = status(404)
		o.single = func(s *ocsp.Single) { s.Status = ocsp.Unknown }
		if _, err := s.Revocation(t.Context(), p.user.cert, p.ca.cert, time.Time{}); !isEvidence(err) || !strings.Contains(err.Error(), "does not know the certificate") {
			t.Errorf("unknown: %v", err)
		}
		o.single = nil
		if _, err := s.Revocation(t.Context(), p.user.cert, p.ca.cert, time.Time{}); err != nil {
			t.Errorf("known by now: %v", err)
		}
	})
}

func TestFreshness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := everybody()
		s, o, l := revocationWorld(t, nil)
		at := func(proof sig.Proof) time.Time {
			t.Helper()
			b, err := ocsp.ParseBasic(proof.OCSP)
			if err != nil {
				t.Fatal(err)
			}
			return b.Singles[0].ThisUpdate
		}
		if _, err := s.Revocation(t.Context(), p.user.cert, p.ca.cert, time.Time{}); err != nil {
			t.Fatal(err)
		}
		// One answer serves everything stamped before it, a later stamp needs a new
		// one.
		proof, err := s.Revocation(t.Context(), p.user.cert, p.ca.cert, epoch)
		if err != nil || o.calls.Load() != 1 || !at(proof).Equal(epoch) {
			t.Errorf("%v after %d requests", err, o.calls.Load())
		}
		time.Sleep(time.Minute)
		proof, err = s.Revocation(t.Context(), p.user.cert, p.ca.cert, time.Now())
		if err != nil || o.calls.Load() != 2 || !at(proof).Equal(epoch.Add(time.Minute)) {
			t.Errorf("%v after %d requests", err, o.calls.Load())
		}
		// A stamp within a second: the answer's whole seconds seem older, so the
		// next second is awaited.
		time.Sleep(300 * time.Millisecond)
		stamp := time.Now()
		proof, err = s.Revocation(t.Context(), p.user.cert, p.ca.cert, stamp)
		if err != nil || at(proof).Before(stamp) || time.Since(stamp) > 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(stamp))
		}
		// Answers made ahead of time are not worth waiting for, nor is the list.
		o.single = func(s *ocsp.Single) { s.ThisUpdate = s.ThisUpdate.Add(-10 * time.Minute) }
		l.change = func(t *x509gost.CRLTemplate) { t.ThisUpdate = t.ThisUpdate.Add(-5 * time.Minute) }
		stamp = time.Now()
		_, err = s.Revocation(t.Context(), p.user.cert, p.ca.cert, stamp)
		if !isEvidence(err) || time.Since(stamp) != 0 || !strings.Contains(err.Error(), "its answer is of 1999-12-31T23:51:01Z, older than 2000-01-01T00:01:01.3Z") ||
			!strings.Contains(err.Error(), "the revocation list is of 1999-12-31T23:56:01Z, older than 2000-01-01T00:01:01.3Z as is needed; the next one is due at 2000-01-02T00:01:01Z") {
			t.Errorf("%v after %v", err, time.Since(stamp))
		}
		// Lists are large: one that is too old is not downloaded for every stamp.
		before := l.calls.Load()
		for range 5 {
			if _, err := s.Revocation(t.Context(), p.user.cert, p.ca.cert, stamp); !isEvidence(err) {
				t.Error(err)
			}
		}
		if got := l.calls.Load() - before; got != 0 {
			t.Errorf("%d downloads", got)
		}
		time.Sleep(relistPause)
		l.change = nil
		if proof, err := s.Revocation(t.Context(), p.user.cert, p.ca.cert, stamp); err != nil || proof.CRL == nil {
			t.Errorf("a new list: %v", err)
		}
	})
}

// A responder whose clock is slow is awaited, but not for long.
func TestFreshnessOfASlowClock(t *testing.T) {
	for _, c := range []struct {
		behind time.Duration
		ok     bool
	}{{2 * time.Second, true}, {6 * time.Second, false}} {
		synctest.Test(t, func(t *testing.T) {
			p := everybody()
			s, o, l := revocationWorld(t, nil)
			l.before = status(404)
			o.single = func(s *ocsp.Single) { s.ThisUpdate = s.ThisUpdate.Add(-c.behind) }
			_, err := s.Revocation(t.Context(), p.user.cert, p.ca.cert, epoch)
			if (err == nil) != c.ok || c.ok && time.Since(epoch) != c.behind {
				t.Errorf("%v behind: %v after %v", c.behind, err, time.Since(epoch))
			}
		})
	}
}

func TestSingleFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := everybody()
		s, o, _ := revocationWorld(t, nil)
		release := make(chan struct{})
		o.before = func(http.ResponseWriter, *http.Request) bool { <-release; return false }
		impatient, giveUp := context.WithCancel(t.Context())
		var done sync.WaitGroup
		var gaveUp error
		done.Go(func() { _, gaveUp = s.Revocation(impatient, p.user.cert, p.ca.cert, time.Time{}) })
		synctest.Wait() // the one who leads the flight
		errs := make([]error, 100)
		for i := range errs {
			done.Go(func() {
				cert := p.user.cert
				if i%2 == 1 {
					cert = p.other.cert
				}
				proof, err := s.Revocation(t.Context(), cert, p.ca.cert, epoch)
				if err == nil {
					b, parseErr := ocsp.ParseBasic(proof.OCSP)
					if parseErr != nil {
						err = parseErr
					} else if _, ok := b.Find(cert, p.ca.cert); !ok {
						err = errors.New("an answer about another certificate")
					}
				}
				errs[i] = err
			})
		}
		synctest.Wait()
		if got := o.calls.Load(); got != 2 {
			t.Errorf("%d requests for two certificates", got)
		}
		giveUp()
		synctest.Wait()
		if !errors.Is(gaveUp, context.Canceled) {
			t.Errorf("who gave up got %v", gaveUp)
		}
		close(release)
		done.Wait()
		for _, err := range errs {
			if err != nil {
				t.Error(err)
			}
		}
		if got := o.calls.Load(); got != 2 {
			t.Errorf("%d requests in the end", got)
		}
	})
}

// A responder that is down costs its time-out a few times, not each time.
func TestDownResponderRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := everybody()
		s, o, _ := revocationWorld(t, nil)
		o.before = hang
		for range 2 { // two requests each
			if proof, err := s.Revocation(t.Context(), p.user.cert, p.ca.cert, time.Time{}); err != nil || proof.CRL == nil {
				t.Fatal(err)
			}
		}
		start, before := time.Now(), o.calls.Load()
		if proof, err := s.Revocation(t.Context(), p.user.cert, p.ca.cert, time.Time{}); err != nil || proof.CRL == nil {
			t.Fatal(err)
		}
		if time.Since(start) != 0 || o.calls.Load() != before {
			t.Errorf("it took %v and %d requests", time.Since(start), o.calls.Load()-before)
		}
		time.Sleep(longestRest)
		synctest.Wait() // for handlers whose clients went away
		o.before = nil
		if proof, err := s.Revocation(t.Context(), p.user.cert, p.ca.cert, time.Time{}); err != nil || proof.OCSP == nil {
			t.Errorf("back again: %v", err)
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := everybody()
		s, o, l := revocationWorld(t, nil)
		o.before, l.before = hang, hang
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, err = s.Revocation(t.Context(), p.user.cert, p.ca.cert, time.Time{})
		}()
		synctest.Wait()
		s.Close()
		<-done
		if err == nil || time.Since(epoch) > time.Second {
			t.Errorf("%v after %v", err, time.Since(epoch))
		}
	})
}
