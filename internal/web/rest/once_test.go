// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// answers keeps answers in memory. In the program, a package of the domain keeps them
// durably.
type answers struct {
	mu   sync.Mutex
	kept map[string]*keptAnswer
	lose bool // the lease goes to another process while the request is carried out
}

type keptAnswer struct {
	request    string
	head, body []byte
	done       bool
}

func (a *answers) begin(_ context.Context, caller, key string, request []byte) (KeyedRequest, bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := caller + " " + key
	k := a.kept[name]
	switch {
	case k == nil:
		k = &keptAnswer{request: string(request)}
		a.kept[name] = k
		return &keyed{a, name, k, false}, false, nil
	case k.request != string(request):
		return nil, false, fault.New(fault.KeyReused, "another request")
	case !k.done:
		return nil, true, nil
	}
	return &keyed{a, name, k, true}, false, nil
}

type keyed struct {
	answers *answers
	name    string
	kept    *keptAnswer
	replay  bool
}

func (t *keyed) Kept() ([]byte, interface {
	Size() int64
	io.WriterTo
}, bool) {
	if !t.replay {
		return nil, nil, false
	}
	return t.kept.head, bytes.NewReader(t.kept.body), true
}

func (t *keyed) Keep(_ context.Context, head []byte, body interface {
	Size() int64
	io.WriterTo
}) (func(context.Context, *audit.Entry) error, error) {
	var text bytes.Buffer
	if body != nil {
		if _, err := body.WriteTo(&text); err != nil {
			return nil, err
		}
	}
	return func(context.Context, *audit.Entry) error {
		t.answers.mu.Lock()
		defer t.answers.mu.Unlock()
		if t.answers.lose {
			return errors.New("the lease is lost")
		}
		t.kept.head, t.kept.body, t.kept.done = head, text.Bytes(), true
		return nil
	}, nil
}

func (t *keyed) Release(context.Context) error {
	t.answers.mu.Lock()
	defer t.answers.mu.Unlock()
	if !t.kept.done {
		delete(t.answers.kept, t.name)
	}
	return nil
}

func (t *keyed) Close() error { return nil }

// blob is content that can be written out again.
type blob string

func (b blob) Size() int64 { return int64(len(b)) }
func (b blob) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, string(b))
	return int64(n), err
}

type noAudit struct{}

func (noAudit) Record(context.Context, audit.Entry) error { return nil }

func (noAudit) Begin(context.Context, audit.Entry) func(context.Context) error {
	return func(context.Context) error { return nil }
}

// onceServer serves one route that answers as do says and counts its calls.
func onceServer(t *testing.T, a *answers, do func(n int, body string) (any, error)) (*httptest.Server, *int) {
	t.Helper()
	var mu sync.Mutex
	calls := 0
	mux := http.NewServeMux()
	Mount(mux, "", &Gate{
		Identify: func(_ context.Context, token string) (audit.Principal, error) {
			return audit.Principal{UserID: token}, nil
		},
		Audit: noAudit{}, Log: slog.New(slog.DiscardHandler), Once: a.begin,
	}, []Route{
		Handle("POST /do", "Do", SignedIn, func(ctx context.Context, r struct {
			Extra string `header:"X-Extra"`
			Body  Bytes
		}) (any, error) {
			mu.Lock()
			calls++
			n := calls
			mu.Unlock()
			return do(n, string(r.Body))
		}).Once(),
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server, &calls
}

// send posts and gives status and body.
func onceSend(t *testing.T, url, who, key, extra, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+who)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	if extra != "" {
		r.Header.Set("X-Extra", extra)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode == http.StatusConflict && response.Header.Get("Retry-After") == "" {
		t.Error("409 without Retry-After")
	}
	return response.StatusCode, response.Header.Get("X-Note") + string(text)
}

func TestOnceAnswersTheSame(t *testing.T) {
	for name, give := range map[string]func(n int) (any, error){
		"value": func(n int) (any, error) { return map[string]int{"n": n}, nil },
		"stream": func(n int) (any, error) {
			return Stream{blob(strings.Repeat("x", n*1000)), map[string]string{"X-Note": "kept"}}, nil
		},
		"json": func(n int) (any, error) { return JSON{blob(`{"n":` + strings.Repeat("1", n) + `}`)}, nil },
		"file": func(n int) (any, error) { return File{Content: blob(strings.Repeat("x", n)), Name: "a.bin"}, nil },
		"none": func(int) (any, error) { return None{}, nil },
		"fault": func(n int) (any, error) {
			return nil, fault.Newf(fault.InvalidPIN, "%d", n).With(errors.New("cause"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, calls := onceServer(t, &answers{kept: map[string]*keptAnswer{}}, func(n int, _ string) (any, error) { return give(n) })
			status, first := onceSend(t, server.URL+"/do", "1", "key", "", "body")
			if noted := strings.HasPrefix(first, "kept"); noted != (name == "stream") {
				t.Errorf("the answer has its header: %t", noted)
			}
			for _, path := range []string{"/do", "/do/"} {
				for _, key := range []string{"key", `"key"`} {
					if s, again := onceSend(t, server.URL+path, "1", key, "", "body"); s != status || again != first {
						t.Errorf("%d %.200s, want %d %.200s", s, again, status, first)
					}
				}
			}
			if *calls != 1 {
				t.Errorf("%d calls", *calls)
			}
			for _, other := range []struct{ who, key, extra, body string }{
				{"1", "key", "", "other"}, {"1", "key", "extra", "body"}, {"1", "key", "", ""},
			} {
				if s, text := onceSend(t, server.URL+"/do", other.who, other.key, other.extra, other.body); s != http.StatusUnprocessableEntity || !strings.Contains(text, fault.KeyReused) {
					t.Errorf("%v: %d %s", other, s, text)
				}
			}
			if *calls != 1 {
				t.Errorf("another request was carried out under the key")
			}
			onceSend(t, server.URL+"/do", "2", "key", "", "body")
			onceSend(t, server.URL+"/do", "1", "key2", "", "body")
			onceSend(t, server.URL+"/do", "1", "", "", "body")
			onceSend(t, server.URL+"/do", "1", "", "", "body")
			if *calls != 5 {
				t.Errorf("%d calls after other callers, keys and no key, want 5", *calls)
			}
		})
	}
}

// What is no fault of the client is tried anew, and so is what could not be recorded.
func TestOnceTriesAnew(t *testing.T) {
	for name, err := range map[string]error{
		"internal": errors.New("broken"), "failed": fault.New(fault.Failed, "outage"), "busy": fault.New(fault.Unavailable, "busy"),
		"leased": fault.New(fault.InvalidObjectState, "leased by another request").Until(time.Second),
	} {
		server, calls := onceServer(t, &answers{kept: map[string]*keptAnswer{}}, func(n int, _ string) (any, error) {
			if n == 1 {
				return nil, err
			}
			return n, nil
		})
		onceSend(t, server.URL+"/do", "1", "key", "", "body")
		if s, text := onceSend(t, server.URL+"/do", "1", "key", "", "body"); s != 200 || text != "2" || *calls != 2 {
			t.Errorf("%s: %d %s after %d calls", name, s, text, *calls)
		}
	}
	a := &answers{kept: map[string]*keptAnswer{}, lose: true}
	server, _ := onceServer(t, a, func(n int, _ string) (any, error) { return n, nil })
	if s, text := onceSend(t, server.URL+"/do", "1", "key", "", "body"); s != 500 || strings.Contains(text, "1") {
		t.Errorf("an answer that was not recorded left: %d %s", s, text)
	}
}

func TestOnceInParallel(t *testing.T) {
	release := make(chan struct{})
	entered := make(chan struct{}, 1)
	server, calls := onceServer(t, &answers{kept: map[string]*keptAnswer{}}, func(n int, _ string) (any, error) {
		entered <- struct{}{}
		<-release
		return n, nil
	})
	var all sync.WaitGroup
	texts := make([]string, 8)
	for i := range texts {
		all.Go(func() { _, texts[i] = onceSend(t, server.URL+"/do", "1", "key", "", "body") })
	}
	<-entered
	close(release)
	all.Wait()
	for _, text := range texts {
		if text != "1" {
			t.Errorf("answered %s", text)
		}
	}
	if *calls != 1 {
		t.Errorf("%d calls", *calls)
	}
}

// A repetition that comes too early is told so.
func TestOnceUnderWay(t *testing.T) {
	defer func(d time.Duration) { patience = d }(patience)
	patience = 0
	release, entered := make(chan struct{}), make(chan struct{})
	server, _ := onceServer(t, &answers{kept: map[string]*keptAnswer{}}, func(n int, _ string) (any, error) {
		close(entered)
		<-release
		return n, nil
	})
	var first sync.WaitGroup
	first.Go(func() { onceSend(t, server.URL+"/do", "1", "key", "", "body") })
	<-entered
	if s, text := onceSend(t, server.URL+"/do", "1", "key", "", "body"); s != http.StatusConflict || !strings.Contains(text, codeUnderWay) {
		t.Errorf("%d %s", s, text)
	}
	close(release)
	first.Wait()
	if s, text := onceSend(t, server.URL+"/do", "1", "key", "", "body"); s != 200 || text != "1" {
		t.Errorf("%d %s", s, text)
	}
}

func TestOnceRefusesKeys(t *testing.T) {
	server, calls := onceServer(t, &answers{kept: map[string]*keptAnswer{}}, func(n int, _ string) (any, error) { return n, nil })
	for _, key := range []string{strings.Repeat("x", 256), "\xd1\x8f"} {
		if s, text := onceSend(t, server.URL+"/do", "1", key, "", "body"); s != 400 {
			t.Errorf("%q: %d %s", key, s, text)
		}
	}
	if *calls != 0 {
		t.Error("a request with a broken key was carried out")
	}
}

// An operation that changes something records its answer where the change is.
func TestKeepInsideTheChange(t *testing.T) {
	a := &answers{kept: map[string]*keptAnswer{}}
	mux := http.NewServeMux()
	calls := 0
	Mount(mux, "", &Gate{Audit: noAudit{}, Log: slog.New(slog.DiscardHandler), Once: a.begin}, []Route{
		Handle("POST /do", "Do", Anyone, func(ctx context.Context, _ struct{}) (any, error) {
			calls++
			value := Stream{Content: blob("result")}
			record, err := Keep(ctx, value)
			if err != nil {
				return nil, err
			}
			return value, record(ctx) // inside of a transaction
		}).Once(),
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, key := range []string{"key", "key", ""} {
		if s, text := onceSend(t, server.URL+"/do", "", key, "", ""); s != 200 || text != `"cmVzdWx0"` {
			t.Errorf("%d %s", s, text)
		}
	}
	if calls != 2 {
		t.Errorf("%d calls", calls)
	}
	var h head
	if err := json.Unmarshal(a.kept[" 127.0.0.1 key"].head, &h); err != nil || h.Form != formStream {
		t.Error(h, err)
	}
}

// TestKeysOfCallersWithoutToken checks that two networks can use the same key, and one address cannot use it for
// two requests.
func TestKeysOfCallersWithoutToken(t *testing.T) {
	a := &answers{kept: map[string]*keptAnswer{}}
	mux := http.NewServeMux()
	calls := 0
	Mount(mux, "", &Gate{Audit: noAudit{}, Log: slog.New(slog.DiscardHandler), Once: a.begin}, []Route{
		Handle("POST /do", "Do", Anyone, func(context.Context, struct{}) (int, error) { calls++; return calls, nil }).Once(),
	})
	for _, c := range []struct{ from, want string }{
		{"192.0.2.1:1000", "1"}, {"192.0.2.2:1000", "2"}, {"192.0.2.1:2000", "1"},
		{"[2001:db8::1]:1", "3"}, {"[2001:db8::2]:1", "3"}, {"[2001:db8:0:1::1]:1", "4"},
	} {
		r := httptest.NewRequest("POST", "/do", strings.NewReader("{}"))
		r.RemoteAddr = c.from
		r.Header.Set(keyHeader, "1")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if w.Code != 200 || w.Body.String() != c.want {
			t.Errorf("%s: %d %s, want %s", c.from, w.Code, w.Body, c.want)
		}
	}
}
