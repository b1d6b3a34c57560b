// SPDX-License-Identifier: Apache-2.0

package account_test

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tamga/internal/judge"
	"tamga/internal/tamgatest"
	"tamga/internal/tamgatest/pagetest"
)

// pushed is a request to the push service of a test.
type pushed struct {
	*http.Request
	body []byte
	at   time.Time
}

// pushService is the push service of a browser, and the flags of a server that reaches it. It answers with the statuses that
// wait in answer, and then with 201.
func pushService(t *testing.T) (s *httptest.Server, got chan pushed, answer chan int, flags []string) {
	t.Helper()
	got, answer = make(chan pushed, 16), make(chan int, 16)
	s = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- pushed{r, body, time.Now()}
		select {
		case status := <-answer:
			w.WriteHeader(status)
		default:
			w.WriteHeader(http.StatusCreated)
		}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return s, got, answer, []string{"--set", "messages.push.web.allow_networks=['127.0.0.1']", "--set", "messages.push.authorities_file=" + roots}
}

var browserKey = regexp.MustCompile(`data-subscribe="([^"]+)"`)
var browserID = regexp.MustCompile(`data-browser="([^"]+)"`)

// TestBrowsers switches notifications of a browser on, and has an operation wait: the push service gets the message within a
// second, http_ece reads it, and the page that it names is the one of the operation.
func TestBrowsers(t *testing.T) {
	service, got, answer, flags := pushService(t)
	p := pagetest.NewPersonWith(t, flags, "otpviasms")
	b := p.Browser
	b.Header.Set("User-Agent", "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36")
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret := []byte("0123456789abcdef")
	text := base64.RawURLEncoding.EncodeToString
	form := func() url.Values {
		return url.Values{"endpoint": {service.URL + "/send/1"}, "p256dh": {text(key.PublicKey().Bytes())}, "auth": {text(secret)}}
	}
	page := b.Shows(b.Get("/devices"), "Notifications in browsers", "No browser shows notifications.")
	ours := b.Find(page, browserKey)[1]

	// What no browser says is refused.
	for _, c := range []struct{ name, field, value, said string }{
		{"an inner address", "endpoint", "https://10.1.2.3/x", "endpoint: it is not an address of the public internet, and no exception is configured for it; a push service has an https address"},
		{"a link-local address", "endpoint", "https://169.254.169.254/x", "messages.push.web.allow_networks"},
		{"plain HTTP", "endpoint", "http://push.example/x", "endpoint: want https"},
		{"no address", "endpoint", "", "endpoint: missing, want endpoint of the PushSubscription"},
		{"a long address", "endpoint", "https://push.example/" + strings.Repeat("a", 3000), "endpoint: has 3021 bytes, want at most 2048"},
		{"no point", "p256dh", text(make([]byte, 65)), "p256dh: is no uncompressed point of the curve P-256, want getKey"},
		{"a short point", "p256dh", text([]byte{4}), "p256dh: has 1 bytes, want 65"},
		{"no Base64", "p256dh", "!", "p256dh: is no Base64url, want getKey"},
		{"a long secret", "auth", text(make([]byte, 17)), "auth: has 17 bytes, want 16"},
	} {
		f := form()
		f.Set(c.field, c.value)
		if page := b.Post("/devices/do/browser-add", f); page.Status != 400 || !strings.Contains(html.UnescapeString(page.Text), c.said) {
			t.Errorf("%s: %d, want %q\n%s", c.name, page.Status, c.said, page.Text)
		}
	}
	page = b.Shows(b.Post("/devices/do/browser-add", form()), "Notifications of this browser are on.", "Chrome, Android")
	id := b.Find(page, browserID)[1]
	if strings.Contains(page.Text, "/send/1") || strings.Contains(page.Text, text(secret)) {
		t.Error("the page shows the address or the secret")
	}

	// next waits for a message.
	next := func() pushed {
		t.Helper()
		select {
		case m := <-got:
			return m
		case <-time.After(time.Minute): // only if the test fails
			t.Fatalf("no message came:\n%s", p.Command("message", "list", "--json"))
			return pushed{}
		}
	}
	// read decrypts a message and checks who sent it.
	read := func(m pushed) (content struct{ ID, Title, Text, Path string }) {
		t.Helper()
		message, err := judge.Pushed(t, key, secret, m.body, m.Header.Get("Authorization"))
		if err != nil {
			t.Fatal(err)
		}
		if message.Key != ours || message.Claims["aud"] != service.URL || message.Claims["sub"] != p.URL {
			t.Errorf("the sender is %s, %v", message.Key, message.Claims)
		}
		if err := json.Unmarshal([]byte(message.Text), &content); err != nil {
			t.Fatal(err)
		}
		return content
	}
	b.Shows(b.Post("/devices/do/browser-try", url.Values{"browser": {id}}), "The trial message is on its way.")
	if m := read(next()); m.Text != "Уведомления в этом браузере работают." || m.Path != "" || m.ID == "" {
		t.Errorf("the trial is %+v", m)
	}

	// An operation that waits.
	p.Confirms(pagetest.BitSignDocument)
	began := time.Now()
	page = b.Shows(b.Upload("/sign", map[string]string{"certificate": "1", "type": "CAdES"}, pagetest.File{Field: "file", Name: "secret contract.txt", Content: "text"}))
	at := b.Find(page, pagetest.ConfirmLink)[1]
	m := next()
	took := m.at.Sub(began)
	t.Logf("from the request to the push service: %v", took)
	if took > time.Second {
		t.Errorf("the message took %v", took)
	}
	content := read(m)
	if content.Path != at || content.Text != "Операция ждёт вашего подтверждения." || strings.Contains(content.Title+content.Text, "contract") {
		t.Errorf("the message is %+v, the operation is at %s", content, at)
	}
	b.Shows(b.Get(content.Path), "secret contract.txt")

	// Operators see the address, and can remove it.
	const addresses = "/pushaddress?DataSource=All"
	of := "/ums/user/" + p.Id
	listed := p.OK(tamgatest.Ours, "GET", of+addresses, "")
	if !strings.Contains(listed.Body, `"OsType":4`) || !strings.Contains(listed.Body, "/send/1") || !strings.Contains(listed.Body, `"DeviceName":"Chrome, Android"`) {
		t.Errorf("the addresses are %s", listed.Body)
	}
	bell := `{"OsType":4,"Address":"` + service.URL + `/send/1","SystemId":""}`
	p.OK(tamgatest.Ours, "DELETE", of+"/pushaddress", bell)
	b.Shows(b.Get("/devices"), "An operator has switched it off.")
	b.Shows(b.Post("/devices/do/browser-add", form()), "Notifications of this browser are on.")

	// A subscription that has ended is removed.
	answer <- http.StatusGone
	b.Shows(b.Post("/devices/do/browser-try", url.Values{"browser": {id}}))
	next()
	// It is removed after the answer.
	for end := time.Now().Add(tamgatest.Patience); !strings.Contains(b.Get("/devices").Text, "No browser shows notifications."); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the browser stays")
		}
	}
	b.Is(b.Post("/devices/do/browser-try", url.Values{"browser": {id}}), 400)
	b.Is(b.Post("/devices/do/browser-delete", url.Values{"browser": {id}}), 400)

	page = b.Shows(b.Post("/devices/do/browser-add", form()))
	b.Shows(b.Post("/devices/do/browser-delete", url.Values{"browser": {b.Find(page, browserID)[1]}}), "Notifications of the browser are off.", "No browser shows notifications.")
}

// TestNoBrowsers: an installation without a key does not speak of notifications.
func TestNoBrowsers(t *testing.T) {
	t.Parallel()
	p := pagetest.NewPersonWith(t, []string{"--set", "messages.push.web.key_file=''"})
	if page := p.Browser.Shows(p.Browser.Get("/devices")); strings.Contains(page.Text, "browsers") {
		t.Error("the page has notifications")
	}
	p.Browser.Is(p.Browser.Post("/devices/do/browser-add", url.Values{}), 404)
}
