// SPDX-License-Identifier: Apache-2.0

package push_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"

	"tamga/internal/adapter/push"
	"tamga/internal/domain/device"
	"tamga/internal/domain/notify"
)

const secretText = "the text of the notification"

var (
	at     = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	target = device.PushTarget{Kid: "123456789012345", Address: "abcdef0123456789", OSType: 2, SystemID: "6e1f3f64-8f0b-4a3e-9b57-0d6a0f3f7a01"}
)

func message(t testing.TB, to device.PushTarget) notify.Message {
	t.Helper()
	text, err := json.Marshal(to)
	must(t, err)
	return notify.Message{ID: "00000000-0000-4000-8000-000000000001", Channel: notify.Push, To: string(text), Text: secretText, Created: at}
}

// reply is the next answer of a server.
type reply struct {
	status int
	body   string
}

// server gives scripted answers and remembers the last request.
type server struct {
	*httptest.Server
	mu      sync.Mutex
	next    reply
	request *http.Request
	body    []byte
	header  http.Header // of every answer
	tokens  int         // number of issued tokens
	form    map[string][]string
}

// serve starts a server with TLS and HTTP/2, as the services have.
func serve(t testing.TB) *server {
	t.Helper()
	s := &server{next: reply{200, `{}`}}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/token" {
			s.tokens++
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			r.ParseForm()
			s.form = r.PostForm
			fmt.Fprintf(w, `{"access_token":"access-%d","expires_in":3600,"token_type":"Bearer"}`, s.tokens)
			return
		}
		s.request, s.body = r, body
		maps.Copy(w.Header(), s.header)
		w.WriteHeader(s.next.status)
		io.WriteString(w, s.next.body)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *server) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return pool
}

// notifier sends through one service and remembers the addresses that no longer exist.
func notifier(t testing.TB, s push.Sender) (*push.Notifier, *[]device.PushTarget) {
	t.Helper()
	var lost []device.PushTarget
	n, err := push.New(push.Config{Title: "Tamga", Routes: []push.Route{{Sender: s}}, Gone: func(_ context.Context, to string) error {
		target, ok := device.ParsePushTarget(to)
		if !ok {
			t.Errorf("%q is not the address of a device", to)
		}
		lost = append(lost, target)
		return nil
	}})
	must(t, err)
	return n, &lost
}

// outcome classifies the error of a message.
func outcome(err error) string {
	switch {
	case err == nil:
		return "sent"
	case errors.Is(err, push.ErrGone):
		return "gone"
	case notify.IsPermanent(err):
		return "permanent"
	}
	return "again"
}

// attempt is an answer of a service and its outcome.
type attempt struct {
	status int
	body   string
	want   string
}

func judged(t *testing.T, s *server, sender push.Sender, to device.PushTarget, list []attempt) {
	t.Helper()
	for _, c := range list {
		n, lost := notifier(t, sender)
		s.next = reply{c.status, c.body}
		err := n.Send(t.Context(), message(t, to))
		if got := outcome(err); got != c.want || (len(*lost) == 1) != (c.want == "gone") {
			t.Errorf("%d %s: %s (%v), lost %v; want %s", c.status, c.body, got, err, *lost, c.want)
		}
		if err != nil && (strings.Contains(err.Error(), secretText) || strings.Contains(err.Error(), to.Address)) {
			t.Errorf("the error contains data of the message: %v", err)
		}
	}
	n, _ := notifier(t, sender)
	s.Close()
	err := n.Send(t.Context(), message(t, to))
	if outcome(err) != "again" || strings.Contains(err.Error(), to.Address) {
		t.Errorf("a server that is down: %v", err)
	}
}

func TestFCM(t *testing.T) {
	s := serve(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	account, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "tamga-test", "private_key_id": "key-1", "private_key": pkcs8(t, key),
		"client_email": "sender@tamga-test.iam.gserviceaccount.com", "token_uri": s.URL + "/token",
	})
	must(t, err)
	clock := at
	fcm, err := push.NewFCM(push.FCMConfig{ServiceAccount: account, Endpoint: s.URL, Roots: s.roots(), Now: func() time.Time { return clock }})
	must(t, err)
	n, _ := notifier(t, fcm)
	ctx, heard := notify.Hear(t.Context())
	must(t, n.Send(ctx, message(t, target)))
	// What the services said has neither the token nor the address.
	host := strings.TrimPrefix(s.URL, "https://")
	if d := cmp.Diff([]string{"FCM: " + host + " HTTP 200 OK", "FCM: " + host + " HTTP 200 OK"}, heard()); d != "" {
		t.Error(d)
	}

	// The assertion must be as RFC 7523 and Google's documentation define it.
	if s.form["grant_type"][0] != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		t.Errorf("the token request is %v", s.form)
	}
	parsed, err := jwt.ParseSigned(s.form["assertion"][0], []jose.SignatureAlgorithm{jose.RS256})
	must(t, err)
	var claims map[string]any
	must(t, parsed.Claims(key.Public(), &claims))
	if d := cmp.Diff(map[string]any{
		"iss": "sender@tamga-test.iam.gserviceaccount.com", "scope": "https://www.googleapis.com/auth/firebase.messaging",
		"aud": s.URL + "/token", "iat": float64(at.Unix()), "exp": float64(at.Unix() + 3600),
	}, claims); d != "" {
		t.Error(d)
	}
	if parsed.Headers[0].KeyID != "key-1" {
		t.Errorf("the header is %+v", parsed.Headers[0])
	}
	if r := s.request; r.Method != "POST" || r.URL.Path != "/v1/projects/tamga-test/messages:send" || r.Header.Get("Authorization") != "Bearer access-1" {
		t.Errorf("the request is %s %s %v", r.Method, r.URL.Path, r.Header)
	}
	var got map[string]any
	must(t, json.Unmarshal(s.body, &got))
	if d := cmp.Diff(map[string]any{"message": map[string]any{
		"token":        target.Address,
		"notification": map[string]any{"title": "Tamga", "body": secretText},
		"data":         map[string]any{"id": "00000000-0000-4000-8000-000000000001", "kid": target.Kid},
		"android":      map[string]any{"priority": "high", "ttl": "86400s"},
	}}, got); d != "" {
		t.Error(d)
	}

	must(t, n.Send(t.Context(), message(t, target)))
	if s.tokens != 1 {
		t.Errorf("%d tokens were asked for", s.tokens)
	}
	clock = at.Add(59 * time.Minute)
	must(t, n.Send(t.Context(), message(t, target)))
	if s.tokens != 2 {
		t.Errorf("%d tokens were asked for after the life of one", s.tokens)
	}
	s.next = reply{401, `{"error":{"code":401,"status":"UNAUTHENTICATED"}}`}
	if got := outcome(n.Send(t.Context(), message(t, target))); got != "again" {
		t.Errorf("a refused token: %s", got)
	}
	s.next = reply{200, `{}`}
	must(t, n.Send(t.Context(), message(t, target)))
	if s.tokens != 3 || s.request.Header.Get("Authorization") != "Bearer access-3" {
		t.Errorf("after a refused token the request has %s", s.request.Header.Get("Authorization"))
	}
	fcmBody := func(status, code string) string {
		return `{"error":{"status":"` + status + `","message":"about abcdef0123456789","details":[{"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"` + code + `"}]}}`
	}
	judged(t, s, fcm, target, []attempt{
		{200, `{"name":"projects/tamga-test/messages/1"}`, "sent"},
		{202, ``, "sent"}, // of a gateway in front of the service
		{404, fcmBody("NOT_FOUND", "UNREGISTERED"), "gone"},
		{404, `no such project`, "permanent"},
		{400, fcmBody("INVALID_ARGUMENT", "INVALID_ARGUMENT"), "permanent"},
		{403, fcmBody("PERMISSION_DENIED", "SENDER_ID_MISMATCH"), "permanent"},
		{403, `{"error":{"status":"PERMISSION_DENIED"}}`, "again"},
		{429, fcmBody("RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED"), "again"},
		{500, fcmBody("INTERNAL", "INTERNAL"), "again"},
		{503, fcmBody("UNAVAILABLE", "UNAVAILABLE"), "again"},
		{302, ``, "permanent"},
	})
	for name, account := range map[string]string{
		"no JSON": "x", "another kind": `{"type":"authorized_user"}`, "no key": `{"type":"service_account","project_id":"p","client_email":"e","token_uri":"https://host/token"}`,
		"open token service": `{"type":"service_account","project_id":"p","client_email":"e","token_uri":"http://host/token"}`,
	} {
		if _, err := push.NewFCM(push.FCMConfig{ServiceAccount: []byte(account)}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestAPNs(t *testing.T) {
	s := serve(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	clock := at
	apns, err := push.NewAPNs(push.APNsConfig{
		Key: []byte(pkcs8(t, key)), KeyID: "ABC123DEFG", TeamID: "DEF123GHIJ", Topic: "ru.example.tamga",
		Endpoint: s.URL, Roots: s.roots(), Now: func() time.Time { return clock },
	})
	must(t, err)
	n, lost := notifier(t, apns)
	must(t, n.Send(t.Context(), message(t, target)))
	r := s.request
	if r.ProtoMajor != 2 {
		t.Errorf("the service was spoken to by %s", r.Proto)
	}
	if r.Method != "POST" || r.URL.Path != "/3/device/"+target.Address {
		t.Errorf("the request is %s %s", r.Method, r.URL.Path)
	}
	for name, want := range map[string]string{
		"apns-topic": "ru.example.tamga", "apns-push-type": "alert", "apns-priority": "10",
		"apns-id": "00000000-0000-4000-8000-000000000001", "apns-expiration": fmt.Sprint(at.Add(24 * time.Hour).Unix()),
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	token := func() string {
		t.Helper()
		text, ok := strings.CutPrefix(s.request.Header.Get("Authorization"), "bearer ")
		parsed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.ES256})
		if err != nil || !ok {
			t.Fatal(err)
		}
		var claims map[string]any
		must(t, parsed.Claims(key.Public(), &claims))
		if d := cmp.Diff(map[string]any{"iss": "DEF123GHIJ", "iat": float64(clock.Unix())}, claims); d != "" && clock == at {
			t.Error(d)
		}
		if parsed.Headers[0].KeyID != "ABC123DEFG" {
			t.Errorf("the header is %+v", parsed.Headers[0])
		}
		return text
	}
	first := token()
	var got map[string]any
	must(t, json.Unmarshal(s.body, &got))
	if d := cmp.Diff(map[string]any{
		"aps": map[string]any{"alert": map[string]any{"title": "Tamga", "body": secretText}, "sound": "default"},
		"id":  "00000000-0000-4000-8000-000000000001", "kid": target.Kid,
	}, got); d != "" {
		t.Error(d)
	}
	clock = at.Add(39 * time.Minute) // if tokens are renewed too often, the service refuses them
	must(t, n.Send(t.Context(), message(t, target)))
	if token() != first {
		t.Error("the token was renewed within its life")
	}
	clock = at.Add(40 * time.Minute)
	must(t, n.Send(t.Context(), message(t, target)))
	second := token()
	if second == first {
		t.Error("the token was not renewed")
	}
	clock = at // the clock was set back
	must(t, n.Send(t.Context(), message(t, target)))
	if token() == second {
		t.Error("a token of the future is used")
	}

	odd := target
	odd.Address = "../../evil"
	if got := outcome(n.Send(t.Context(), message(t, odd))); got != "gone" || len(*lost) != 1 {
		t.Errorf("an address that is a path: %s", got)
	}
	judged(t, s, apns, target, []attempt{
		{200, ``, "sent"},
		{202, ``, "sent"}, // of a gateway in front of the service
		{410, `{"reason":"Unregistered","timestamp":1}`, "gone"},
		{400, `{"reason":"BadDeviceToken"}`, "gone"},
		{400, `{"reason":"DeviceTokenNotForTopic"}`, "gone"},
		{400, `{"reason":"BadTopic"}`, "permanent"},
		{403, `{"reason":"ExpiredProviderToken"}`, "again"},
		{413, `{"reason":"PayloadTooLarge"}`, "permanent"},
		{429, `{"reason":"TooManyRequests"}`, "again"},
		{500, `{"reason":"InternalServerError"}`, "again"},
		{503, `not JSON abcdef0123456789`, "again"},
	})
	for name, c := range map[string]push.APNsConfig{
		"no key": {KeyID: "ABC123DEFG", TeamID: "DEF123GHIJ", Topic: "x"}, "no ids": {Key: []byte(pkcs8(t, key)), Topic: "x"},
		"open": {Key: []byte(pkcs8(t, key)), KeyID: "ABC123DEFG", TeamID: "DEF123GHIJ", Topic: "x", Endpoint: "http://example.com"},
	} {
		if _, err := push.NewAPNs(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestWebhook(t *testing.T) {
	s := serve(t)
	key := []byte(strings.Repeat("k", 32))
	hook, err := push.NewWebhook(push.WebhookConfig{
		URL: s.URL + "/hook", Secret: "whsec_" + base64.StdEncoding.EncodeToString(key), Roots: s.roots(), Now: func() time.Time { return at },
	})
	must(t, err)
	n, _ := notifier(t, hook)
	must(t, n.Send(t.Context(), message(t, target)))
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.%s", "00000000-0000-4000-8000-000000000001", at.Unix(), s.body)
	if got := s.request.Header.Get("webhook-signature"); got != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) {
		t.Errorf("the signature is %s", got)
	}
	if s.request.Header.Get("webhook-id") != "00000000-0000-4000-8000-000000000001" || s.request.Header.Get("webhook-timestamp") != fmt.Sprint(at.Unix()) {
		t.Errorf("the headers are %v", s.request.Header)
	}
	var got map[string]any
	must(t, json.Unmarshal(s.body, &got))
	if d := cmp.Diff(map[string]any{"type": "device.push", "timestamp": "2026-11-21T12:00:00Z", "data": map[string]any{
		"kid": target.Kid, "address": target.Address, "os_type": 2.0, "system_id": target.SystemID, "title": "Tamga", "text": secretText,
	}}, got); d != "" {
		t.Error(d)
	}
	judged(t, s, hook, target, []attempt{
		{200, ``, "sent"}, {204, ``, "sent"}, {410, ``, "gone"}, {404, ``, "permanent"}, {401, ``, "again"}, {429, ``, "again"}, {502, ``, "again"}, {301, ``, "permanent"},
	})
	for _, c := range []push.WebhookConfig{
		{URL: "http://example.com", Secret: "whsec_" + base64.StdEncoding.EncodeToString(key)},
		{URL: "https://example.com", Secret: "short"}, {URL: "https://example.com", Secret: "whsec_AAAA"},
	} {
		if _, err := push.NewWebhook(c); err == nil {
			t.Errorf("%v: accepted", c)
		}
	}
}

// named is a sender that records its name when it is used.
type named struct {
	name string
	to   *string
}

func (n named) Send(context.Context, device.PushTarget, string, notify.Message) error {
	*n.to = n.name
	return nil
}

func TestRoutes(t *testing.T) {
	var taken string
	n, err := push.New(push.Config{
		Routes: []push.Route{
			{OSTypes: []int{1}, SystemID: "other", Sender: named{"other", &taken}},
			{OSTypes: []int{1}, Sender: named{"apple", &taken}},
			{OSTypes: []int{2, 4}, Sender: named{"google", &taken}},
		},
		Gone: func(context.Context, string) error { return nil },
	})
	must(t, err)
	if n.Channel() != notify.Push {
		t.Errorf("the channel is %s", n.Channel())
	}
	for _, c := range []struct {
		to   device.PushTarget
		want string
	}{
		{device.PushTarget{Address: "a", OSType: 1, SystemID: "other"}, "other"},
		{device.PushTarget{Address: "a", OSType: 1, SystemID: "ours"}, "apple"},
		{device.PushTarget{Address: "a", OSType: 4, SystemID: "other"}, "google"},
		{device.PushTarget{Address: "a", OSType: 3}, ""},
		{device.PushTarget{OSType: 1}, ""},
	} {
		taken = ""
		err := n.Send(t.Context(), message(t, c.to))
		if taken != c.want || (err == nil) != (c.want != "") || err != nil && !notify.IsPermanent(err) {
			t.Errorf("%+v goes to %q, %v; want %q", c.to, taken, err, c.want)
		}
	}
	m := message(t, target)
	m.To = "79261234567"
	if err := n.Send(t.Context(), m); !notify.IsPermanent(err) {
		t.Errorf("a phone number: %v", err)
	}
	if _, err := push.New(push.Config{}); err == nil {
		t.Error("a notifier without services was made")
	}
}

func pkcs8(t testing.TB, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
