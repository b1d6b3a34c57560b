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
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tamga/internal/domain/notify"
)

// listening is a register of one system with the identifier "one".
type listening struct {
	address string
	secret  []byte
	err     error
}

func (l *listening) Open(_ context.Context, id string) (string, []byte, error) {
	if id != "one" {
		return "", nil, notify.Permanent(errors.New("no such receiver"))
	}
	return l.address, bytes.Clone(l.secret), l.err
}

func TestCallbacks(t *testing.T) {
	var got string
	var header http.Header
	status := 200
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got, header = string(data), r.Header
		w.WriteHeader(status)
	}))
	defer receiver.Close()
	key := bytes.Repeat([]byte{9}, 32)
	s, err := New(Config{Secret: prefix + base64.StdEncoding.EncodeToString(key), Guard: loopback(), Plain: true, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	n := s.Callbacks()
	if n.Channel() != notify.Callback {
		t.Errorf("the channel is %s", n.Channel())
	}
	const text = `{"Result":"success"}`
	message := notify.Message{ID: "id-1", To: receiver.URL, Text: text}
	if err := n.Send(t.Context(), message); err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	io.WriteString(mac, "id-1.1700000000."+text)
	if got != text || header.Get("Webhook-Signature") != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) {
		t.Errorf("%s came with %v", got, header)
	}
	// A body that is opened now is sent in place of the text.
	long := strings.Repeat("0123456789abcdef", 1<<16)
	message.Body = closable{body{strings.NewReader(long)}}
	if err := n.Send(t.Context(), message); err != nil {
		t.Fatal(err)
	}
	mac = hmac.New(sha256.New, key)
	io.WriteString(mac, "id-1.1700000000."+long)
	if got != long || header.Get("Webhook-Id") != "id-1" || header.Get("Webhook-Signature") != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) {
		t.Errorf("%d bytes came with %v", len(got), header)
	}
	message.Body = nil
	for code, permanent := range map[int]bool{500: false, 302: false, 410: true} {
		status = code
		if err := n.Send(t.Context(), message); err == nil || notify.IsPermanent(err) != permanent {
			t.Errorf("%d: %v", code, err)
		}
	}
	message.To = "http://169.254.169.254/"
	if err := n.Send(t.Context(), message); err == nil {
		t.Error("an address that may not be called was called")
	}
}

// closable is a body of an operation.
type closable struct{ body }

func (closable) Close() error { return nil }

func TestNotifier(t *testing.T) {
	var got string
	var header http.Header
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got, header = string(text), r.Header
	}))
	defer receiver.Close()
	// The secret of one system differs from that of another, and from that of callbacks.
	l := &listening{address: receiver.URL, secret: bytes.Repeat([]byte{9}, 32)}
	n := NewNotifier(Config{Guard: loopback(), Plain: true, Now: func() time.Time { return now }}, l)
	if n.Channel() != notify.Webhook {
		t.Errorf("the channel is %s", n.Channel())
	}
	created := time.Date(2026, 11, 21, 15, 0, 0, 123e6, time.FixedZone("MSK", 3*3600))
	for _, c := range []struct {
		notice notify.Notice
		want   string
	}{
		{notify.Notice{Type: notify.UserAccountChanged, Category: "UserAccount", UserID: "u", Actor: "o", Detail: `"quoted"`},
			`{"type":"UserAccountChanged","timestamp":"2026-11-21T12:00:00.123Z","data":{"category":"UserAccount","user_id":"u","actor_id":"o","detail":"\"quoted\""}}`},
		{notify.Notice{Type: notify.UserCreateFail, Category: "UserAccount"},
			`{"type":"UserCreateFail","timestamp":"2026-11-21T12:00:00.123Z","data":{"category":"UserAccount"}}`},
	} {
		if err := n.Send(t.Context(), notify.Message{ID: "id-1", To: "one", Notice: &c.notice, Created: created}); err != nil {
			t.Fatal(err)
		}
		mac := hmac.New(sha256.New, l.secret)
		io.WriteString(mac, "id-1.1700000000."+c.want)
		if got != c.want || header.Get("Webhook-Id") != "id-1" || header.Get("Webhook-Signature") != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) {
			t.Errorf("%s came with %v, want %s", got, header, c.want)
		}
	}
	event := &notify.Notice{Type: notify.UserCreated}
	for name, m := range map[string]notify.Message{"no event": {To: "one"}, "no receiver": {To: "two", Notice: event}} {
		if err := n.Send(t.Context(), m); !notify.IsPermanent(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	l.err = errors.New("the database is gone")
	if err := n.Send(t.Context(), notify.Message{To: "one", Notice: event}); err == nil || notify.IsPermanent(err) {
		t.Errorf("a passing failure: %v", err)
	}
}
