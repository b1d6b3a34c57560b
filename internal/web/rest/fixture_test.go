// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
)

// auditLog is an audit log in memory.
type auditLog struct {
	mu      sync.Mutex
	entries []audit.Entry
	fail    map[string]error // by phase
	grown   chan struct{}    // one for each entry
}

func (a *auditLog) Record(_ context.Context, e audit.Entry) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.fail[e.Phase]; err != nil {
		return err
	}
	a.entries = append(a.entries, e)
	a.grown <- struct{}{}
	return nil
}

func (a *auditLog) Begin(ctx context.Context, e audit.Entry) func(context.Context) error {
	err := a.Record(ctx, e)
	return func(context.Context) error { return err }
}

// lines are the entries as "operation phase outcome login".
func (a *auditLog) lines() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var l []string
	for _, e := range a.entries {
		l = append(l, strings.TrimRight(fmt.Sprintf("%s %s %s %s", e.Operation, e.Phase, e.Outcome, e.Principal.Login), " "))
	}
	return l
}

func (a *auditLog) wait(n int) {
	for range n {
		<-a.grown
	}
}

// fixture is a test server with a handful of routes.
type fixture struct {
	*httptest.Server
	auditLog *auditLog
	log      *bytes.Buffer
	logMu    sync.Mutex
	reg      *prometheus.Registry
	mu       sync.Mutex
	sinks    []*memory
	entered  chan struct{} // a handler has begun
}

func (h *fixture) Write(p []byte) (int, error) {
	h.logMu.Lock()
	defer h.logMu.Unlock()
	return h.log.Write(p)
}

func (h *fixture) logged() string {
	h.logMu.Lock()
	defer h.logMu.Unlock()
	return h.log.String()
}

// openSinks counts the documents that are still open once every handler is done.
func (h *fixture) openSinks() int {
	h.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, s := range h.sinks {
		if s.closed == 0 {
			n++
		}
	}
	return n
}

type echo struct {
	Path   string `path:"id"`
	Query  int    `query:"n"`
	Header string `header:"X-Thing"`
	Body   struct {
		Text  Text
		Doc   Blob
		Panic bool
	}
}

type echoed struct {
	Path, Header, Text, Login string
	Query                     int
	Document                  int
	ID                        bool
}

var errSecret = errors.New("a text for the log alone")

func open(t *testing.T, limits Limits) *fixture {
	t.Helper()
	h := &fixture{
		auditLog: &auditLog{fail: map[string]error{}, grown: make(chan struct{}, 1000)},
		log:      &bytes.Buffer{}, reg: prometheus.NewRegistry(), entered: make(chan struct{}, 10),
	}
	log := slog.New(slog.NewTextHandler(h, &slog.HandlerOptions{Level: slog.LevelDebug}))
	gate := &Gate{
		Identify: func(_ context.Context, token string) (audit.Principal, error) {
			switch token {
			case "bad":
				return audit.Principal{}, fault.New(fault.Unauthorized, "expired")
			case "down":
				return audit.Principal{}, errSecret
			}
			return audit.Principal{UserID: "1", Login: token}, nil
		},
		Permit: func(_ context.Context, who audit.Principal, right Right, value func(string) string) error {
			if right == "operator" && who.Login == value("id") {
				return nil
			}
			return fault.New(fault.AccessDenied, "no")
		},
		Audit: h.auditLog, Log: log, Limits: limits,
	}
	openSink := func(context.Context, audit.Principal) (*memory, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		m := &memory{}
		h.sinks = append(h.sinks, m)
		return m, nil
	}
	handleEcho := func(ctx context.Context, docs *Documents[*memory], r echo) (echoed, error) {
		if r.Body.Panic {
			panic("on purpose")
		}
		Concerning(ctx, r.Path)
		e := echoed{Path: r.Path, Header: r.Header, Text: string(r.Body.Text), Query: r.Query, Login: Caller(ctx).Login, ID: RequestID(ctx) != ""}
		if !r.Body.Doc.Empty() {
			s, err := docs.Open(r.Body.Doc)
			if err != nil {
				return e, err
			}
			e.Document = s.written.Len()
		}
		return e, nil
	}
	type body[T any] struct{ Body T }
	routes := []Route{
		HandleDocuments("POST /echo/{id}", "Echo", SignedIn, openSink, handleEcho).Large(),
		Handle("GET /open", "Open", Anyone, func(ctx context.Context, _ struct{}) (string, error) { return "<" + Caller(ctx).Login + ">", nil }),
		Handle("POST /void", "Void", Anyone, func(context.Context, struct{}) (None, error) { return None{}, nil }),
		Handle("DELETE /void", "VoidDelete", Anyone, func(context.Context, struct{}) (None, error) { return None{}, nil }),
		Handle("POST /string", "String", Anyone, func(_ context.Context, r body[string]) (string, error) { return r.Body, nil }),
		Handle("POST /list", "List", Anyone, func(_ context.Context, r body[[]int]) ([]int, error) { return r.Body, nil }),
		Handle("POST /map", "Map", Anyone, func(_ context.Context, r body[map[string]bool]) (map[string]bool, error) { return r.Body, nil }),
		Handle("POST /form", "Form", Anyone, func(_ context.Context, r body[Form]) (Form, error) { return r.Body, nil }).AtMost(100),
		Handle("GET /form", "FormQuery", Anyone, func(_ context.Context, r body[Form]) (Form, error) { return r.Body, nil }),
		Handle("POST /operate/{id}", "Operate", Right("operator"), func(context.Context, struct{}) (None, error) { return None{}, nil }).Effects(effect.None),
		Handle("GET /file", "File", Anyone, func(context.Context, struct{}) (File, error) {
			return File{Content: strings.NewReader("content"), Name: "a b.sig"}, nil
		}),
		Handle("GET /stream/{n}", "Stream", Anyone, func(ctx context.Context, r struct {
			N int64 `path:"n"`
		}) (Stream, error) {
			audit.Changed(ctx, "")
			return Stream{Content: zeros(r.N)}, nil
		}),
		Handle("GET /short", "Short", Anyone, func(ctx context.Context, _ struct{}) (Stream, error) {
			audit.Changed(ctx, "something was made")
			return Stream{Content: liar{}}, nil
		}),
		Handle("GET /unencodable", "Unencodable", Anyone, func(context.Context, struct{}) (any, error) { return func() {}, nil }),
		Handle("GET /wait", "Wait", Anyone, func(ctx context.Context, _ struct{}) (None, error) {
			audit.Changed(ctx, "")
			h.entered <- struct{}{}
			<-ctx.Done()
			return None{}, ctx.Err()
		}),
		Handle("GET /fault/{code}", "Fault", Anyone, func(_ context.Context, r struct {
			Code string `path:"code"`
		}) (None, error) {
			if r.Code == "internal" {
				return None{}, errSecret
			}
			return None{}, fault.New(r.Code, "a sentence").With(errSecret)
		}),
	}
	mux := http.NewServeMux()
	MountAPI(mux, "/Sign", gate, routes)
	Health(mux, NewReadiness(func(context.Context, string, error) {}, Need{"database", func(context.Context) error { return nil }}), MetricsPage(h.reg))
	h.Server = httptest.NewUnstartedServer(nil)
	h.Config = NewServer(Front(mux, log, NewMetrics(h.reg), nil), log)
	h.Start()
	t.Cleanup(h.Close)
	return h
}

// zeros is content of a given length.
type zeros int64

func (z zeros) Size() int64 { return int64(z) }
func (z zeros) WriteTo(w io.Writer) (int64, error) {
	return io.CopyN(w, endless{}, int64(z))
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// liar announces more than it writes.
type liar struct{}

func (liar) Size() int64 { return 1000 }
func (liar) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(make([]byte, 10))
	return int64(n), err
}

// ask sends a request and returns status, header and body.
func (h *fixture) ask(t *testing.T, method, path, token string, body io.Reader, header ...string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequest(method, h.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := h.Client().Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, resp.Header, string(text)
}
