// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"tamga/internal/domain/audit"
	"tamga/internal/web/rest"
)

type noAuditLog struct{}

func (noAuditLog) Record(context.Context, audit.Entry) error {
	return errors.New("readers of the page have no audit entry")
}

func (noAuditLog) Begin(context.Context, audit.Entry) func(context.Context) error {
	return func(context.Context) error { return nil }
}

func ask(t *testing.T, list []Message, accept string) (*http.Response, string) {
	t.Helper()
	mux := http.NewServeMux()
	log := slog.New(slog.DiscardHandler)
	rest.Mount(mux, "", &rest.Gate{Audit: noAuditLog{}, Log: log}, New(func(context.Context) ([]Message, error) { return list, nil }).Routes())
	s := httptest.NewServer(rest.Front(mux, log, rest.NewMetrics(prometheus.NewRegistry()), nil))
	defer s.Close()
	r, err := http.NewRequest("GET", s.URL+MessagesPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("got %d %s, %v", resp.StatusCode, body, err)
	}
	return resp, string(body)
}

var hostile = []Message{
	{"1", time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), "Email", `"><script>alert(1)</script>@example.ru`, "<b>Тема</b>", "Код: 123456\n<img src=x onerror=alert(1)>"},
	{"2", time.Date(2026, 11, 21, 12, 0, 1, 0, time.UTC), "SMS", "79161234567", "", "</pre><style>*{display:none}</style>"},
}

func TestMessagesForPrograms(t *testing.T) {
	resp, body := ask(t, hostile, "application/json")
	var got []Message
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(hostile, got); d != "" {
		t.Error(d)
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		t.Errorf("Content-Type %q", resp.Header.Get("Content-Type"))
	}
	if _, body := ask(t, nil, "application/json"); body != "[]" {
		t.Errorf("no messages are %s", body)
	}
}

func TestMessagesForPeople(t *testing.T) {
	resp, body := ask(t, hostile, "text/html,application/xhtml+xml,*/*;q=0.8")
	for _, want := range []string{"Код: 123456", "&lt;script&gt;", "&lt;b&gt;Тема", "&lt;img src=x", "&lt;/pre&gt;"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(body, "<script") || strings.Contains(body, "<img") || strings.Count(body, "<style>") != 1 || !strings.Contains(body, "<style>"+style+"</style>") {
		t.Errorf("a message became a part of the page:\n%s", body)
	}
	policy := resp.Header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html; charset=utf-8") {
		t.Errorf("headers %v", resp.Header)
	}
	if _, body := ask(t, nil, ""); !strings.Contains(body, "Nothing was sent yet") {
		t.Errorf("an empty page is\n%s", body)
	}
}
