// SPDX-License-Identifier: Apache-2.0

package push_test

import (
	"context"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/guard"
	"tamga/internal/adapter/push"
	"tamga/internal/domain/device"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
	"tamga/internal/judge"
)

// subscription is a browser of a test.
type subscription struct {
	key     *ecdh.PrivateKey
	secret  []byte
	address string
}

func subscribe(t testing.TB, address string) subscription {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	must(t, err)
	secret := make([]byte, 16)
	rand.Read(secret)
	return subscription{key, secret, address}
}

// webPush returns a sender to one browser, which may reach this machine.
func webPush(t testing.TB, s *server, b *subscription, exceptions ...guard.Exception) *push.WebPush {
	t.Helper()
	key, err := push.NewWebPushKey(rand.Reader)
	must(t, err)
	w, err := push.NewWebPush(push.WebPushConfig{
		Key: key, Contact: "mailto:operator@example.com", Guard: guard.New(guard.Config{Exceptions: exceptions}), Roots: s.roots(), Now: func() time.Time { return at },
		Browser: func(_ context.Context, to string) (notify.Browser, bool, error) {
			target, _ := device.ParsePushTarget(to)
			return notify.Browser{Address: b.address, Public: b.key.PublicKey().Bytes(), Secret: b.secret}, target.Browser == browser.Browser, nil
		},
	})
	must(t, err)
	return w
}

var (
	browser = device.PushTarget{Address: "https://push.example", OSType: device.OSTypeBrowser, Browser: "browser-1"}
	machine = guard.Exception{Network: netip.MustParsePrefix("127.0.0.0/8")}
)

// routed is notifier for a sender to browsers.
func routed(t testing.TB, s push.Sender) (*push.Notifier, *[]device.PushTarget) {
	t.Helper()
	var lost []device.PushTarget
	n, err := push.New(push.Config{Title: "Tamga", Routes: []push.Route{{Browsers: true, Sender: s}}, Gone: func(_ context.Context, to string) error {
		target, _ := device.ParsePushTarget(to)
		lost = append(lost, target)
		return nil
	}})
	must(t, err)
	return n, &lost
}

// TestWebPush has http_ece and node read what the push service got.
func TestWebPush(t *testing.T) {
	s := serve(t)
	b := subscribe(t, s.URL+"/send/secret-part")
	w := webPush(t, s, &b, machine)
	n, lost := routed(t, w)
	m := message(t, browser)
	m.Link, m.Expires = "/confirm/1", at.Add(20*time.Minute)
	texts := []string{secretText, "", strings.Repeat("ю", 100), strings.Repeat("x", 5000)}
	sizes := map[int]bool{}
	for _, text := range texts {
		m.Text = text
		must(t, n.Send(t.Context(), m))
		r := s.request
		if r.Method != "POST" || r.URL.Path != "/send/secret-part" || r.ProtoMajor != 2 {
			t.Errorf("the request is %s %s %s", r.Proto, r.Method, r.URL.Path)
		}
		for name, want := range map[string]string{
			"Content-Encoding": "aes128gcm", "Ttl": "1200", "Urgency": "high", "Topic": "AAAAAAAAQACAAAAAAAAAAQ", "Content-Type": "application/octet-stream",
		} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		if len(s.body) > 4096 {
			t.Errorf("the body has %d bytes, and services take 4096", len(s.body))
		}
		sizes[len(s.body)] = true
		read, err := judge.Pushed(t, b.key, b.secret, s.body, r.Header.Get("Authorization"))
		must(t, err)
		want := map[string]any{"id": m.ID, "title": "Tamga", "text": text, "path": "/confirm/1"}
		if len(text) == 5000 {
			want["text"] = ""
		}
		var got map[string]any
		must(t, json.Unmarshal([]byte(read.Text), &got))
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(map[string]any{"aud": s.URL, "exp": float64(at.Add(12 * time.Hour).Unix()), "sub": "mailto:operator@example.com"}, read.Claims); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff(map[string]any{"alg": "ES256", "typ": "JWT"}, read.Head); d != "" {
			t.Error(d)
		}
		if read.Key != base64.RawURLEncoding.EncodeToString(n.BrowserKey()) {
			t.Errorf("the token is signed with %s", read.Key)
		}
		// What was changed, and what is for another browser, is not read.
		other := subscribe(t, b.address)
		changed := slices.Clone(s.body)
		changed[len(changed)-1] ^= 1
		for _, wrong := range []struct {
			key    *ecdh.PrivateKey
			secret []byte
			body   []byte
		}{{other.key, b.secret, s.body}, {b.key, other.secret, s.body}, {b.key, b.secret, changed}} {
			if text == secretText {
				if _, err := judge.Pushed(t, wrong.key, wrong.secret, wrong.body, r.Header.Get("Authorization")); err == nil {
					t.Error("http_ece reads a message that is not for it")
				}
			}
		}
	}
	if len(sizes) != 2 { // the short ones have one size
		t.Errorf("bodies have the sizes %v", sizes)
	}
	if len(*lost) > 0 {
		t.Errorf("lost: %v", *lost)
	}

	m = message(t, browser)
	m.Expires = at.Add(-time.Minute)
	must(t, n.Send(t.Context(), m))
	if got := s.request.Header.Get("Ttl"); got != "0" {
		t.Errorf("the TTL of an old message is %s", got)
	}
	gone := browser
	gone.Browser = "browser-2"
	if err := n.Send(t.Context(), message(t, gone)); outcome(err) != "permanent" {
		t.Errorf("a browser that was removed: %v", err)
	}
	if err := n.Send(t.Context(), message(t, target)); outcome(err) != "permanent" {
		t.Errorf("a device: %v", err)
	}
	for _, c := range []attempt{
		{200, ``, "sent"}, {201, ``, "sent"}, {202, ``, "sent"}, {404, ``, "gone"}, {410, `secret-part`, "gone"}, {400, ``, "permanent"}, {413, ``, "permanent"},
		{401, ``, "again"}, {403, ``, "again"}, {408, ``, "again"}, {429, ``, "again"}, {500, ``, "again"}, {503, ``, "again"}, {301, ``, "permanent"}, {307, ``, "permanent"},
	} {
		*lost = nil
		s.next = reply{c.status, c.body}
		err := n.Send(t.Context(), message(t, browser))
		if got := outcome(err); got != c.want || (len(*lost) == 1) != (c.want == "gone") {
			t.Errorf("%d: %s (%v), lost %v; want %s", c.status, got, err, *lost, c.want)
		}
		if err != nil && (strings.Contains(err.Error(), secretText) || strings.Contains(err.Error(), "secret-part")) {
			t.Errorf("the error contains data of the message: %v", err)
		}
	}
	s.Close()
	if err := n.Send(t.Context(), message(t, browser)); outcome(err) != "again" || strings.Contains(err.Error(), "secret-part") {
		t.Errorf("a service that is down: %v", err)
	}
}

// TestWebPushAddresses tries addresses that no request may reach.
func TestWebPushAddresses(t *testing.T) {
	s := serve(t)
	b := subscribe(t, s.URL)
	n, _ := routed(t, webPush(t, s, &b))
	if err := n.Send(t.Context(), message(t, browser)); outcome(err) != "permanent" || s.request != nil {
		t.Errorf("a service on this machine: %v, %v", err, s.request)
	}
	for _, address := range []string{
		"", "x", "http://push.example/1", "https://127.0.0.1/", "https://127.1/", "https://0x7f000001/", "https://[::1]/", "https://10.1.2.3/x", "https://169.254.169.254/latest",
		"https://localhost/", "https://user@push.example/", "https://push.example:25/", "ftp://push.example/", "https://[64:ff9b::a00:1]/", "https://push.example/\n", "https://" + strings.Repeat("a", 3000),
	} {
		if err := n.CheckBrowser(address); !fault.Is(err, fault.InvalidParameters) {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, address := range []string{"https://fcm.googleapis.com/fcm/send/abc", "https://updates.push.services.mozilla.com/wpush/v2/x", "https://web.push.apple.com/Q", "https://push.example:8443/x?y"} {
		must(t, n.CheckBrowser(address))
	}
}

// TestWebPushKeys tries keys of the service.
func TestWebPushKeys(t *testing.T) {
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	must(t, err)
	for name, key := range map[string]string{"nothing": "", "no PEM": "x", "another curve": pkcs8(t, p384)} {
		if _, err := push.NewWebPush(push.WebPushConfig{Key: []byte(key), Guard: guard.New(guard.Config{})}); err == nil || !strings.Contains(err.Error(), "P-256") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWebPushSlow: a service that does not answer keeps one sender, and none of those that answer.
func TestWebPushSlow(t *testing.T) {
	good := serve(t)
	fine := subscribe(t, good.URL+"/1")
	slow, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	must(t, err)
	defer slow.Close()
	at := fine
	w := webPush(t, good, &at, machine)
	n, _ := routed(t, w)
	must(t, n.Send(t.Context(), message(t, browser)))

	connected := make(chan net.Conn)
	go func() {
		if c, err := slow.Accept(); err == nil {
			connected <- c
		}
	}()
	ctx, stop := context.WithCancel(t.Context())
	at.address = "https://" + slow.Addr().String() + "/1"
	ended := make(chan error)
	go func() { ended <- n.Send(ctx, message(t, browser)) }()
	c := <-connected
	defer c.Close()
	if err := n.Send(t.Context(), message(t, browser)); outcome(err) != "again" || !strings.Contains(err.Error(), "slow") {
		t.Errorf("another message to a slow service: %v", err)
	}
	at.address = fine.address
	must(t, n.Send(t.Context(), message(t, browser))) // this one answers
	stop()
	if err := <-ended; outcome(err) != "again" {
		t.Errorf("the slow one: %v", err)
	}
}

// TestRetryAfter: services say when they want the next attempt.
func TestRetryAfter(t *testing.T) {
	s := serve(t)
	b := subscribe(t, s.URL+"/1")
	n, _ := routed(t, webPush(t, s, &b, machine))
	for text, want := range map[string]time.Duration{
		"120": 2 * time.Minute, at.Add(time.Hour).Format(http.TimeFormat): time.Hour, "": 0, "-1": 0, "soon": 0, "99999999999": 0, at.Add(-time.Hour).Format(http.TimeFormat): 0,
	} {
		s.header, s.next = http.Header{"Retry-After": {text}}, reply{429, ""}
		err := n.Send(t.Context(), message(t, browser))
		if got := notify.WaitOf(err); outcome(err) != "again" || got != want {
			t.Errorf("%q: wait %v, want %v (%v)", text, got, want, err)
		}
	}
}
