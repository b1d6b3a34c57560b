// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"tamga/internal/adapter/guard"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
)

var key = bytes.Repeat([]byte{7}, 32)

var now = time.Unix(1_700_000_000, 0)

func sender(t *testing.T, g *guard.Guard) *Sender {
	t.Helper()
	s, err := New(Config{
		Secret: "whsec_" + base64.StdEncoding.EncodeToString(key), Guard: g, Plain: true,
		Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// loopback returns a guard that allows the servers of tests.
func loopback() *guard.Guard {
	return guard.New(guard.Config{Exceptions: []guard.Exception{{Network: netip.MustParsePrefix("127.0.0.0/8")}}})
}

type body struct{ *strings.Reader }

// WriteTo writes all, any number of times.
func (b body) WriteTo(w io.Writer) (int64, error) {
	b.Seek(0, io.SeekStart)
	return b.Reader.WriteTo(w)
}

func (b body) Size() int64 { return b.Reader.Size() }

func TestPostIsSigned(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 1<<16)
	var got []byte
	var header http.Header
	var length int64
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header, length = r.Header, r.ContentLength
		got, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer receiver.Close()
	if err := sender(t, loopback()).Post(t.Context(), receiver.URL+"/x?y=z", "id-1", body{strings.NewReader(large)}); err != nil {
		t.Fatal(err)
	}
	if string(got) != large || length != int64(len(large)) {
		t.Errorf("%d bytes came, announced were %d", len(got), length)
	}
	mac := hmac.New(sha256.New, key)
	io.WriteString(mac, "id-1.1700000000."+large)
	for name, want := range map[string]string{
		"Webhook-Id": "id-1", "Webhook-Timestamp": "1700000000", "Content-Type": "application/json; charset=utf-8",
		"Webhook-Signature": "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)),
	} {
		if header.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, header.Get(name), want)
		}
	}
}

func TestAnswers(t *testing.T) {
	var inside bool
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside = true }))
	defer target.Close()
	for _, c := range []struct {
		status          int
		fine, permanent bool
	}{{200, true, false}, {202, true, false}, {302, false, false}, {307, false, false}, {401, false, false}, {410, false, true}, {500, false, false}} {
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", target.URL)
			w.WriteHeader(c.status)
		}))
		err := sender(t, loopback()).Post(t.Context(), receiver.URL, "id", body{strings.NewReader("{}")})
		if (err == nil) != c.fine || notify.IsPermanent(err) != c.permanent {
			t.Errorf("%d: %v", c.status, err)
		}
		if err != nil && strings.Contains(err.Error(), receiver.URL) {
			t.Errorf("%d: the error quotes the address: %v", c.status, err)
		}
		receiver.Close()
	}
	if inside {
		t.Error("a redirect was followed")
	}
}

// TestEndlessAnswer checks that a receiver whose answer does not end has accepted the request by its status,
// and holds no other request up: only the limit of the answer ends this test.
func TestEndlessAnswer(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer receiver.Close()
	s := sender(t, loopback())
	s.drain = time.Millisecond
	if err := s.Post(t.Context(), receiver.URL, "id", body{strings.NewReader("{}")}); err != nil {
		t.Error(err)
	}
}

// turning is a name that resolves to a public address first and to an internal one
// afterwards.
type turning struct {
	mu    sync.Mutex
	asked int
}

func (r *turning) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked++; r.asked == 1 {
		return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
	}
	return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.0.0.1")}, nil
}

// Checklist 24: no request to an internal address, whether it is written as an address,
// as a name, or as a name that resolves differently the next time.
func TestSSRF(t *testing.T) {
	var reached []string
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("an address inside was reached") }))
	defer inside.Close()
	names := &turning{}
	g := guard.New(guard.Config{Resolver: names})
	g.Connect = func(_ context.Context, _, address string) (net.Conn, error) {
		reached = append(reached, address)
		return nil, errors.New("no network in tests")
	}
	s := sender(t, g)
	for _, address := range []string{
		inside.URL, "http://127.0.0.1/", "http://[::1]/", "http://[::ffff:10.0.0.1]/", "https://169.254.169.254/latest", "http://192.168.1.1:8080/",
		"file:///etc/passwd", "ftp://example.org/", "https://user@example.org/", "https://example.org:22/", "//example.org/", "https://", "gopher://x", "",
	} {
		if err := s.Check(address); !fault.Is(err, fault.InvalidParameters) {
			t.Errorf("%q: %v", address, err)
		}
		if err := s.Post(t.Context(), address, "id", body{strings.NewReader("{}")}); !notify.IsPermanent(err) {
			t.Errorf("%q was not refused for good: %v", address, err)
		}
	}
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(inside.URL, "http://"))
	for range 3 {
		if err := s.Post(t.Context(), "http://name.example:"+port+"/", "id", body{strings.NewReader("{}")}); err == nil {
			t.Error("a callback without a network succeeded")
		}
	}
	for _, address := range reached {
		if !strings.HasPrefix(address, "93.184.216.34:") {
			t.Errorf("%s was connected to", address)
		}
	}
	if names.asked < 2 || len(reached) != 1 {
		t.Errorf("the name was asked %d times, %d connections were tried", names.asked, len(reached))
	}
}

func TestOnlyHTTPS(t *testing.T) {
	s, err := New(Config{Secret: "whsec_" + base64.StdEncoding.EncodeToString(key), Guard: loopback(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check("http://example.org/"); !fault.Is(err, fault.InvalidParameters) || !strings.Contains(err.Error(), "https") {
		t.Error(err)
	}
	if err := s.Check("https://example.org/"); err != nil {
		t.Error(err)
	}
}

func TestSecrets(t *testing.T) {
	for _, secret := range []string{"", "whsec_", "whsec_AAAA", base64.StdEncoding.EncodeToString(key), "whsec_*", "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 65))} {
		if _, err := New(Config{Secret: secret, Guard: loopback(), Now: time.Now}); err == nil || len(secret) > 8 && strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v", secret, err)
		}
	}
}

// A body that is shorter than announced is not sent at all.
func TestWrongSize(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("sent") }))
	defer receiver.Close()
	if err := sender(t, loopback()).Post(t.Context(), receiver.URL, "id", short{}); err == nil {
		t.Error("no error")
	}
}

type short struct{}

func (short) Size() int64 { return 3 }
func (short) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write([]byte("{}"))
	return int64(n), err
}
