// SPDX-License-Identifier: Apache-2.0

package tokenapi_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
)

// from is a client that connects from one of the addresses 127.x.y.z.
func from(address string) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	return &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
}

// attempted is the answer to a password attempt.
type attempted struct {
	status int
	after  string // Retry-After
	took   time.Duration
	err    error
}

func (s *signIn) attempt(ctx context.Context, c *http.Client, form url.Values) attempted {
	r, err := http.NewRequestWithContext(ctx, "POST", s.Dev.IDPURL+"/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		return attempted{err: err}
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	begun := time.Now()
	resp, err := c.Do(r)
	if err != nil {
		return attempted{err: err}
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return attempted{resp.StatusCode, resp.Header.Get("Retry-After"), time.Since(begun), err}
}

// While untrusted callers try 200 passwords at once, from one address or from as many, a user
// signs in through a client with a secret or from an address that a user signed in
// from, and a PIN opens its key. Untrusted callers are judged or told when to come back.
func TestSignInDuringFlood(t *testing.T) {
	if c := from("127.20.0.1"); true {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		conn, err := c.Transport.(*http.Transport).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Skip("this system has no address on loopback but 127.0.0.1:", err)
		}
		conn.Close()
	}
	s := &signIn{tamgatest.StartSignInProcess(t, t.TempDir(), tamgatest.DefaultCost()...)}
	form := func(client, login, password string) url.Values {
		return url.Values{"grant_type": {"password"}, "client_id": {client}, "username": {login}, "password": {password}, "resource": {s.Dev.Resource}}
	}
	proved := form("portal", s.Dev.User.Login, s.Dev.User.Password)
	proved.Set("client_secret", tamgatest.AppSecret)
	known := form("tamga-dev", s.Dev.User.Login, s.Dev.User.Password)
	pin := s.Cert("gost2012-256", true)
	signing := s.Token()
	idle := s.attempt(t.Context(), from("127.20.0.1"), proved)
	for name, address := range map[string]func(round, i int) string{
		"one address":   func(round, i int) string { return fmt.Sprintf("127.30.0.%d", round+1) },
		"200 addresses": func(round, i int) string { return fmt.Sprintf("127.40.%d.%d", round, i+1) },
	} {
		t.Run(name, func(t *testing.T) {
			const many = 200
			rounds := 3
			if testsize.Of() < testsize.Whole {
				rounds = 1
			}
			var good, withPIN, untrusted []time.Duration
			judged, refused := 0, 0
			for round := range rounds {
				var wg sync.WaitGroup
				answers := make([]attempted, many)
				var begun atomic.Int64
				waiting := make(chan struct{}) // closed when half of them are on their way
				for i := range many {
					wg.Go(func() {
						if begun.Add(1) == many/2 {
							close(waiting)
						}
						answers[i] = s.attempt(t.Context(), from(address(round, i)), form("tamga-dev", fmt.Sprintf("unknown-%s-%d-%d", name, round, i), "wrong password"))
					})
				}
				<-waiting
				var users [2]attempted
				var pinTook time.Duration
				wg.Go(func() { users[0] = s.attempt(t.Context(), from("127.20.0.1"), proved) })
				wg.Go(func() { users[1] = s.attempt(t.Context(), http.DefaultClient, known) })
				wg.Go(func() {
					begun := time.Now()
					status, text := s.Call("POST", "/api/documents", signing, map[string]any{"Content": "AAAA",
						"Signature": map[string]any{"Type": "CMS", "Parameters": map[string]any{}, "CertificateId": pin.ID, "PinCode": pin.PIN}})
					if status != 200 {
						t.Errorf("a signature with a PIN: %d %s", status, text)
					}
					pinTook = time.Since(begun)
				})
				wg.Wait()
				for i, u := range users {
					if u.err != nil || u.status != 200 {
						t.Errorf("user %d: %+v", i, u)
					}
					good = append(good, u.took)
				}
				withPIN = append(withPIN, pinTook)
				for i, a := range answers {
					switch {
					case a.err != nil:
						t.Errorf("untrusted caller %d: %v", i, a.err)
					case a.status == 400:
						judged++
					case a.status == 429 && a.after != "":
						refused++
					default:
						t.Errorf("untrusted caller %d: %+v", i, a)
					}
					untrusted = append(untrusted, a.took)
				}
			}
			slices.Sort(good)
			slices.Sort(untrusted)
			t.Logf("idle %v; users %v; PIN %v; untrusted callers: %d judged, %d refused, median %v, slowest %v", idle.took.Round(time.Millisecond),
				good, withPIN, judged, refused, untrusted[len(untrusted)/2], untrusted[len(untrusted)-1])
			if judged == 0 || refused < many*rounds/4 {
				t.Errorf("%d untrusted callers were judged and %d refused, want some and at least a quarter", judged, refused)
			}
			// Machines differ: the bound is what one derivation takes with nothing else to
			// do, for each of those that may run at once, and room for a slow machine.
			if most := 20*idle.took + 5*time.Second; good[len(good)-1] > most {
				t.Errorf("a user waited %v, want at most %v", good[len(good)-1], most)
			}
		})
	}
}
