// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

func TestRoutes(t *testing.T) {
	h := open(t, Limits{})
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/Sign/api/open", "", 200, `"<>"`},
		{"GET", "/Sign/api/open/", "", 200, `"<>"`},
		{"GET", "/Sign/rest/api/open", "", 200, `"<>"`},
		{"GET", "/Sign/rest/api/open/", "", 200, `"<>"`},
		{"HEAD", "/Sign/api/open", "", 200, ""},
		{"GET", "/sign/api/open", "", 404, `{"Message":"object_not_found","error":"object_not_found","error_description":"there is nothing at this address: letter case counts in paths"}`},
		{"GET", "/Sign/api/Open", "", 404, `{"Message":"object_not_found","error":"object_not_found","error_description":"there is nothing at this address: letter case counts in paths"}`},
		{"GET", "/", "", 404, `{"Message":"object_not_found","error":"object_not_found","error_description":"there is nothing at this address: letter case counts in paths"}`},
		{"PUT", "/Sign/api/open", "", 405, `{"Message":"method_not_allowed","error":"method_not_allowed","error_description":"this address takes GET, HEAD"}`},
		{"GET", "/Sign/api/void/", "", 405, `{"Message":"method_not_allowed","error":"method_not_allowed","error_description":"this address takes DELETE, POST"}`},
		{"POST", "/Sign/api/void", "ignored, whatever it is", 200, ""},
		{"DELETE", "/Sign/api/void", "", 200, ""},
		{"POST", "/Sign/api/string", `"a\u0416"`, 200, `"aЖ"`},
		{"POST", "/Sign/api/string", ``, 400, `{"Message":"invalid_parameters","error":"invalid_parameters","error_description":"the request body is missing: send a JSON value"}`},
		{"POST", "/Sign/api/list", `[1,2]`, 200, `[1,2]`},
		{"POST", "/Sign/api/map", `{"a":true}`, 200, `{"a":true}`},
		{"POST", "/Sign/api/map", ` `, 200, `null`},
		{"POST", "/Sign/api/form", `a=urn:x:%41&b=1+2&c=%zz&d=%`, 200, `{"a":["urn:x:A"],"b":["1 2"],"c":["%zz"],"d":["%"]}`},
		{"GET", "/Sign/api/form?a=b%20c&d", "", 200, `{"a":["b c"],"d":[""]}`},
		{"GET", "/Sign/api/file", "", 200, `content`},
		{"GET", "/Sign/api/stream/0", "", 200, `""`},
		{"GET", "/Sign/api/stream/1", "", 200, `"AA=="`},
		{"GET", "/Sign/api/stream/100000", "", 200, `"` + strings.Repeat("A", 133334) + `=="`},
		{"GET", "/Sign/api/stream/x", "", 400, `{"Message":"invalid_parameters","error":"invalid_parameters","error_description":"n in the path is not valid"}`},
		{"GET", "/Sign/api/unencodable", "", 500, `{"Message":"An error has occurred","error":"internal_error","error_description":"An error has occurred"}`},
		{"GET", "/healthz", "", 200, `{"status":"ok"}`},
		{"GET", "/readyz", "", 200, `{"status":"ready","parts":{"database":"ready"}}`},
	} {
		status, header, body := h.ask(t, c.method, c.path, "", strings.NewReader(c.body))
		if status != c.status || body != c.want {
			t.Errorf("%s %s: got %d %.300s, want %d %.300s", c.method, c.path, status, body, c.status, c.want)
		}
		if header.Get("X-Request-Id") == "" || header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s: headers %v", c.method, c.path, header)
		}
		if kind := header.Get("Content-Type"); body != "" && body[0] != 'c' && kind != jsonType {
			t.Errorf("%s %s: content type %q", c.method, c.path, kind)
		}
		if length := header.Get("Content-Length"); c.method != "HEAD" && length != fmt.Sprint(len(body)) {
			t.Errorf("%s %s: content length %q of %d", c.method, c.path, length, len(body))
		}
	}
	status, header, _ := h.ask(t, "PATCH", "/Sign/api/void", "", nil)
	if status != 405 || header.Get("Allow") != "DELETE, POST" {
		t.Errorf("got %d, Allow %q", status, header.Get("Allow"))
	}
	_, header, _ = h.ask(t, "GET", "/Sign/api/file", "", nil)
	if header.Get("Content-Type") != "application/octet-stream" || header.Get("Content-Disposition") != `attachment; filename="a b.sig"` {
		t.Errorf("file: %v", header)
	}
}

func TestBindingAndAuditLog(t *testing.T) {
	h := open(t, Limits{})
	status, header, body := h.ask(t, "POST", "/Sign/api/echo/a%2Fb?n=7", "anna", strings.NewReader(`{"text":5,"DOC":"QUJD"}`), "X-Thing", "thing", "X-Request-Id", "given-1")
	var got echoed
	if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	want := echoed{Path: "a/b", Header: "thing", Text: "5", Login: "anna", Query: 7, Document: 3, ID: true}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	id := header.Get("X-Request-Id")
	if len(id) != 26 {
		t.Errorf("id %q", id)
	}
	if d := cmp.Diff([]string{"Echo attempt  anna", "Echo done ok anna"}, h.auditLog.lines()); d != "" {
		t.Error(d)
	}
	e := h.auditLog.entries[1]
	if e.Object != "a/b" || e.RequestID != id || e.Correlation != "given-1" || e.Remote != "127.0.0.1" || e.Duration <= 0 || !e.At.IsZero() { // the log sets the time
		t.Errorf("entry %+v", e)
	}
	for _, strange := range []string{"bad id\u00a0", strings.Repeat("a", 65), "a\"b"} {
		h.auditLog.entries = nil
		h.ask(t, "POST", "/Sign/api/echo/1", "anna", strings.NewReader(`{}`), "X-Request-Id", strange)
		for _, e := range h.auditLog.entries {
			if e.Correlation != "" {
				t.Errorf("the audit log has the id %q", e.Correlation)
			}
		}
	}
	// An anonymous caller's id goes no further than the log, whatever the call does.
	h.auditLog.entries = nil
	h.ask(t, "GET", "/Sign/api/stream/1", "", nil, "X-Request-Id", "anonymous-1")
	if e := h.auditLog.entries; len(e) != 1 || e[0].Correlation != "" || len(e[0].RequestID) != 26 {
		t.Errorf("an anonymous call left %+v", e)
	}
	h.Close() // the lines of the log come behind the answers
	if !strings.Contains(h.logged(), "request_id="+id+" client_request_id=given-1") || !strings.Contains(h.logged(), "client_request_id=anonymous-1") {
		t.Error("the log does not have both ids")
	}
	if n := h.openSinks(); n != 0 || len(h.sinks) != 1 {
		t.Errorf("%d of %d documents are open", n, len(h.sinks))
	}
}

func TestGate(t *testing.T) {
	h := open(t, Limits{})
	for _, c := range []struct {
		path, token string
		status      int
		code        string
		auditLog    []string
	}{
		{"/Sign/api/echo/1", "", 401, "invalid_token", nil},
		{"/Sign/api/echo/1", "bad", 401, "invalid_token", nil},
		{"/Sign/api/echo/1", "down", 500, "internal_error", nil},
		{"/Sign/api/operate/boris", "anna", 403, "access_denied", []string{"Operate done access_denied anna"}},
		{"/Sign/api/operate/anna", "anna", 200, "", []string{"Operate attempt  anna", "Operate done ok anna"}},
	} {
		h.auditLog.entries = nil
		// The body is never looked at: it would be refused.
		status, header, body := h.ask(t, "POST", c.path, c.token, strings.NewReader("{"))
		var f Failure
		json.Unmarshal([]byte(body), &f)
		if status != c.status || f.Error != c.code {
			t.Errorf("%s as %s: got %d %s", c.path, c.token, status, body)
		}
		if status == 401 != (header.Get("WWW-Authenticate") == "Bearer") {
			t.Errorf("%s: WWW-Authenticate %q", c.path, header.Get("WWW-Authenticate"))
		}
		if d := cmp.Diff(c.auditLog, h.auditLog.lines()); d != "" {
			t.Errorf("%s as %s: %s", c.path, c.token, d)
		}
	}
}

func TestFaults(t *testing.T) {
	h := open(t, Limits{})
	for code, want := range map[string]int{
		fault.InvalidContent: 400, fault.InvalidPIN: 400, "anything_else": 400, fault.Unauthorized: 401, fault.AccessDenied: 403,
		fault.NotFound: 404, fault.TooLarge: 413, fault.TooManyRequests: 429, fault.Unavailable: 503,
	} {
		status, _, body := h.ask(t, "GET", "/Sign/api/fault/"+code, "", nil)
		if status != want || body != fmt.Sprintf(`{"Message":%q,"error":%q,"error_description":"a sentence"}`, code, code) {
			t.Errorf("%s: got %d %s", code, status, body)
		}
	}
	out := httptest.NewRecorder()
	if fail(out, fault.New(fault.TooManyRequests, "").Until(1200*time.Millisecond)); out.Header().Get("Retry-After") != "2" {
		t.Errorf("how long to wait is told as %q", out.Header().Get("Retry-After"))
	}
	status, header, body := h.ask(t, "GET", "/Sign/api/fault/internal", "", nil)
	if status != 500 || body != `{"Message":"An error has occurred","error":"internal_error","error_description":"An error has occurred"}` {
		t.Errorf("got %d %s", status, body)
	}
	if want := "internal error\" request_id=" + header.Get("X-Request-Id") + " route=Fault error=\"" + errSecret.Error(); !strings.Contains(h.logged(), want) {
		t.Errorf("the log has no %q:\n%s", want, h.logged())
	}
}

func TestPanicClosesAndIsAudited(t *testing.T) {
	h := open(t, Limits{})
	long := strings.Repeat("QUJD", 40_000)
	status, _, body := h.ask(t, "POST", "/Sign/api/echo/1", "anna", strings.NewReader(`{"Doc":"`+long+`","Panic":true}`))
	if status != 500 || strings.Contains(body, "purpose") {
		t.Errorf("got %d %s", status, body)
	}
	if d := cmp.Diff([]string{"Echo attempt  anna", "Echo done internal_error anna"}, h.auditLog.lines()); d != "" {
		t.Error(d)
	}
	if n := h.openSinks(); n != 0 || len(h.sinks) != 1 {
		t.Errorf("%d of %d documents are open", n, len(h.sinks))
	}
	if !strings.Contains(h.logged(), "on purpose") {
		t.Error("the log says nothing")
	}
}

func TestWithoutAuditNothingIsDone(t *testing.T) {
	h := open(t, Limits{})
	h.auditLog.fail[audit.Attempt] = errSecret
	status, _, body := h.ask(t, "POST", "/Sign/api/echo/1", "anna", strings.NewReader(`{"Panic":true}`))
	if status != 503 || !strings.Contains(body, "temporarily_unavailable") || strings.Contains(h.logged(), "on purpose") {
		t.Errorf("attempt: got %d %s", status, body)
	}
	h.auditLog.fail = map[string]error{audit.Done: errSecret}
	status, _, body = h.ask(t, "POST", "/Sign/api/echo/1", "anna", strings.NewReader(`{"text":"x"}`))
	if status != 503 || strings.Contains(body, "Text") {
		t.Errorf("outcome: got %d %s", status, body)
	}
	// A refusal is the answer whether or not its audit entry can be written.
	if status, _, _ = h.ask(t, "POST", "/Sign/api/echo/1", "anna", strings.NewReader(`{`)); status != 400 {
		t.Errorf("refusal: got %d", status)
	}
}

func TestLimits(t *testing.T) {
	h := open(t, Limits{Ordinary: 50, Large: 200_000})
	text := func(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
	chunked := func(s string) io.Reader { return io.MultiReader(strings.NewReader(s)) } // no length
	for name, c := range map[string]struct {
		path   string
		body   io.Reader
		status int
	}{
		"fits":                    {"string", strings.NewReader(text(50)), 200},
		"one more":                {"string", strings.NewReader(text(51)), 413},
		"fits in chunks":          {"string", chunked(text(50)), 200},
		"one more in chunks":      {"string", chunked(text(51)), 413},
		"much more in chunks":     {"string", chunked(text(5 << 20)), 413},
		"form of its own limit":   {"form", strings.NewReader("a=" + strings.Repeat("b", 98)), 200},
		"form over its own limit": {"form", chunked("a=" + strings.Repeat("b", 99)), 413},
		"large route":             {"echo/1", strings.NewReader(`{"x":` + text(100_000) + `}`), 200},
		"over a large route":      {"echo/1", chunked(`{"Doc":"` + strings.Repeat("QUJD", 60_000) + `"}`), 413},
	} {
		status, _, body := h.ask(t, "POST", "/Sign/api/"+c.path, "anna", c.body)
		if status != c.status || status == 413 && !strings.Contains(body, "max_request_length_exceeded") {
			t.Errorf("%s: got %d %.200s, want %d", name, status, body, c.status)
		}
	}
	if h.openSinks() != 0 {
		t.Error("documents are open")
	}
	var l Limits
	if l.of(Route{}) != 1<<20 || l.of(Route{}.Large()) != 2<<30 {
		t.Error("defaults")
	}
}

func TestExpectContinue(t *testing.T) {
	h := open(t, Limits{Large: 1000})
	for _, c := range []struct {
		token         string
		length        int
		first, answer string
	}{
		{"anna", 13, "HTTP/1.1 100 Continue", "HTTP/1.1 200 OK"},
		{"bad", 13, "HTTP/1.1 401 Unauthorized", ""},
		{"anna", 5000, "HTTP/1.1 413 Request Entity Too Large", ""},
	} {
		conn, err := net.Dial("tcp", h.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /Sign/api/echo/1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", c.token, c.length)
		in := bufio.NewReader(conn)
		line, err := in.ReadString('\n')
		if strings.TrimSpace(line) != c.first {
			t.Fatalf("got %q, %v; want %q", line, err, c.first)
		}
		if c.answer == "" {
			continue
		}
		io.WriteString(conn, `{"text":"ab"}`)
		in.ReadString('\n')
		if line, err = in.ReadString('\n'); strings.TrimSpace(line) != c.answer {
			t.Fatalf("got %q, %v; want %q", line, err, c.answer)
		}
	}
}

func TestClientHangsUp(t *testing.T) {
	h := open(t, Limits{})
	dial := func(text string) net.Conn {
		conn, err := net.Dial("tcp", h.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, text)
		return conn
	}
	const head = "POST /Sign/api/echo/1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer anna\r\n"
	long := strings.Repeat("QUJD", 100_000)

	for name, text := range map[string]string{
		"with a length": head + "Content-Length: 900000\r\n\r\n" + `{"Doc":"` + long,
		"in chunks":     head + "Transfer-Encoding: chunked\r\n\r\n61a88\r\n" + `{"Doc":"` + long,
	} {
		h.auditLog.entries = nil
		dial(text).Close()
		h.auditLog.wait(2)
		if d := cmp.Diff([]string{"Echo attempt  anna", "Echo done canceled anna"}, h.auditLog.lines()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}

	// A client that closed only its sending direction still gets the answer.
	h.auditLog.entries = nil
	conn := dial(head + "Content-Length: 900000\r\n\r\n" + `{"Doc":"` + long)
	conn.(*net.TCPConn).CloseWrite()
	h.auditLog.wait(2)
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400") || !strings.Contains(string(answer), "broke off") {
		t.Errorf("half closed: %s, %v", answer, err)
	}
	conn.Close()

	// While the operation is under way.
	h.auditLog.entries = nil
	conn = dial("GET /Sign/api/wait HTTP/1.1\r\nHost: x\r\n\r\n")
	<-h.entered
	conn.Close()
	h.auditLog.wait(1)
	if d := cmp.Diff([]string{"Wait done canceled"}, h.auditLog.lines()); d != "" {
		t.Error(d)
	}

	// While the answer is written.
	h.auditLog.entries = nil
	conn = dial("GET /Sign/api/stream/1000000000 HTTP/1.1\r\nHost: x\r\n\r\n")
	conn.Read(make([]byte, 100))
	if d := cmp.Diff([]string{"Stream done ok"}, h.auditLog.lines()); d != "" {
		t.Errorf("the outcome is not written down before the first byte: %s", d)
	}
	conn.Close()
	h.auditLog.wait(2)
	if d := cmp.Diff([]string{"Stream done ok", "Stream done not_delivered"}, h.auditLog.lines()); d != "" {
		t.Error(d)
	}

	if h.openSinks() != 0 {
		t.Error("documents are open")
	}
}

func TestShortAnswerIsCut(t *testing.T) {
	h := open(t, Limits{})
	resp, err := h.Client().Get(h.URL + "/Sign/api/short")
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	if err == nil {
		t.Error("a short answer looks whole")
	}
	h.auditLog.wait(2)
	if d := cmp.Diff([]string{"Short done ok", "Short done not_delivered"}, h.auditLog.lines()); d != "" {
		t.Error(d)
	}
}

func TestLogAndMetrics(t *testing.T) {
	h := open(t, Limits{})
	h.ask(t, "POST", "/Sign/api/echo/1?secret=hidden1", "anna", strings.NewReader(`{"text":"hidden2"}`), "Cookie", "hidden3")
	h.ask(t, "GET", "/Sign/api/form?password=hidden4", "", nil)
	h.ask(t, "GET", "/hidden5", "", nil)
	_, _, page := h.ask(t, "GET", "/metrics", "", nil)
	h.Close() // waits for the log lines
	if strings.Contains(h.logged(), "hidden") {
		t.Errorf("the log tells secrets:\n%s", h.logged())
	}
	for _, want := range []string{
		"method=POST route=Echo status=200 outcome=ok", "bytes_in=18", "login=anna remote=127.0.0.1",
		"method=GET route=none status=404 outcome=object_not_found", "level=DEBUG msg=request",
	} {
		if !strings.Contains(h.logged(), want) {
			t.Errorf("the log has no %q:\n%s", want, h.logged())
		}
	}
	if !strings.Contains(page, `tamga_http_requests_total{route="Echo",status="200"} 1`) {
		t.Errorf("metrics:\n%s", page)
	}
	want := "# HELP tamga_http_requests_total Requests answered, by route and status.\n# TYPE tamga_http_requests_total counter\n" +
		"tamga_http_requests_total{route=\"Echo\",status=\"200\"} 1\ntamga_http_requests_total{route=\"FormQuery\",status=\"200\"} 1\n" +
		"tamga_http_requests_total{route=\"none\",status=\"404\"} 1\ntamga_http_requests_total{route=\"metrics\",status=\"200\"} 1\n"
	if err := testutil.GatherAndCompare(h.reg, strings.NewReader(want), "tamga_http_requests_total"); err != nil {
		t.Error(err)
	}
}

func TestRecoveredOutsideOfRoutes(t *testing.T) {
	var log bytes.Buffer
	mux := http.NewServeMux()
	mux.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic("outside") })
	logger := slog.New(slog.NewTextHandler(&log, nil))
	w := httptest.NewRecorder()
	Front(mux, logger, NewMetrics(prometheus.NewRegistry()), nil).ServeHTTP(w, httptest.NewRequest("GET", "/panic", nil))
	if w.Code != 500 || !strings.Contains(w.Body.String(), "An error has occurred") || !strings.Contains(log.String(), "outside") {
		t.Errorf("got %d %s\n%s", w.Code, w.Body, &log)
	}
}

func TestProgramFaultsStopTheStart(t *testing.T) {
	nothing := func(context.Context, struct{}) (None, error) { return None{}, nil }
	gate := func() *Gate { return &Gate{Audit: &auditLog{}, Log: slog.Default()} }
	identifying := func() *Gate {
		g := gate()
		g.Identify = func(context.Context, string) (audit.Principal, error) { return audit.Principal{}, nil }
		return g
	}
	mount := func(g *Gate, r ...Route) { Mount(http.NewServeMux(), "/x", g, r) }
	for says, f := range map[string]func(){
		"declares no right":   func() { mount(gate(), Handle("GET /a", "A", "", nothing)) },
		"identifies none":     func() { mount(gate(), Handle("GET /a", "A", SignedIn, nothing)) },
		"gate cannot check":   func() { mount(identifying(), Handle("GET /a", "A", "operator", nothing)) },
		"is there twice":      func() { mount(gate(), Handle("GET /a", "A", Anyone, nothing), Handle("GET /a", "A", Anyone, nothing)) },
		"no audit log":        func() { mount(&Gate{Log: slog.Default()}, Handle("GET /a", "A", Anyone, nothing)) },
		"without a name":      func() { mount(gate(), Handle("GET /a", "", Anyone, nothing)) },
		"is not METHOD /path": func() { Handle("/a", "A", Anyone, nothing) },
		"without a trailing":  func() { Handle("GET /a/", "A", Anyone, nothing) },
		"has no source": func() {
			Handle("GET /a", "A", Anyone, func(context.Context, struct{ X int }) (None, error) { return None{}, nil })
		},
		"its path has no {x}": func() {
			Handle("GET /a", "A", Anyone, func(context.Context, struct {
				X string `path:"x"`
			}) (None, error) {
				return None{}, nil
			})
		},
		"use HandleDocuments": func() {
			type tree struct {
				Children []*tree
				Values   map[string]Blob
			}
			Handle("POST /a", "A", Anyone, func(context.Context, struct{ Body tree }) (None, error) { return None{}, nil })
		},
		"cannot hold a chan": func() {
			Handle("GET /a", "A", Anyone, func(context.Context, struct{ Body chan int }) (None, error) { return None{}, nil })
		},
	} {
		func() {
			defer func() {
				if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), says) {
					t.Errorf("%s: got %v", says, p)
				}
			}()
			f()
		}()
	}
}

func TestNotReady(t *testing.T) {
	noted := map[string]error{}
	now, looks, broken := time.Unix(1_000_000, 0), 0, errSecret
	r := NewReadiness(func(_ context.Context, part string, err error) { noted[part] = err },
		Need{"database", func(context.Context) error { return nil }},
		Need{"documents", func(context.Context) error { looks++; return broken }})
	r.now = func() time.Time { return now }
	mux := http.NewServeMux()
	Health(mux, r, http.NotFoundHandler())
	probe := func(status int, body string) {
		t.Helper()
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
		if w.Code != status || w.Body.String() != body || (w.Header().Get("Retry-After") != "") != (status == 503) {
			t.Errorf("got %d %s %v, want %d %s", w.Code, w.Body, w.Header(), status, body)
		}
	}
	const away = `{"status":"unavailable","parts":{"database":"ready","documents":"unavailable"}}`
	probe(503, away)
	if err, has := noted["database"]; noted["documents"] != errSecret || !has || err != nil {
		t.Errorf("noted %v", noted)
	}
	broken = nil
	probe(503, away) // a moment later: the same result
	if looks != 1 {
		t.Errorf("%d looks, want 1", looks)
	}
	now = now.Add(readyLife)
	probe(200, `{"status":"ready","parts":{"database":"ready","documents":"ready"}}`)
	if noted["documents"] != nil {
		t.Errorf("noted %v", noted)
	}
	r.Drain()
	probe(503, `{"status":"stopping","parts":{"database":"ready","documents":"ready"}}`)
}

// A part that hangs, whatever its context says, costs a probe its time and no more than
// one goroutine.
func TestReadyHangs(t *testing.T) {
	release, looks := make(chan struct{}), atomic.Int64{}
	p := &need{Need: Need{"documents", func(context.Context) error { looks.Add(1); <-release; return nil }}}
	var probes sync.WaitGroup
	for range 2 {
		probes.Go(func() {
			if err := p.ready(t.Context(), time.Now); !errors.Is(err, errSlow) {
				t.Errorf("got %v", err)
			}
		})
	}
	probes.Wait()
	if n := looks.Load(); n != 1 {
		t.Errorf("%d looks, want 1", n)
	}
	close(release)
}

// A process that drains ends each connection with the answer to its request.
func TestDrained(t *testing.T) {
	r := NewReadiness(func(context.Context, string, error) {})
	s := httptest.NewServer(r.Drained(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) })))
	defer s.Close()
	for _, draining := range []bool{false, true} {
		if draining {
			r.Drain()
		}
		response, err := s.Client().Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.Close != draining {
			t.Errorf("draining %v: connection ends %v", draining, response.Close)
		}
	}
}

// An outage of the database is no fault of ours: 503, when to come again, and what is
// known of the outcome.
func TestOutage(t *testing.T) {
	for _, c := range []struct {
		name, want string
		err        error
	}{
		{"outage", "the database is not available now", fmt.Errorf("store: %w", &fault.Outage{Message: "the database is not available now", Err: errSecret})},
		{"a fault decides", "a sentence", fault.New(fault.Unavailable, "a sentence").With(&fault.Outage{Message: "other", Err: errSecret})},
	} {
		var log bytes.Buffer
		mux := http.NewServeMux()
		Mount(mux, "", &Gate{Audit: noAudit{}, Log: slog.New(slog.NewTextHandler(&log, nil))}, []Route{
			Handle("GET /x", "X", Anyone, func(context.Context, struct{}) (None, error) { return None{}, c.err }),
		})
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
		var f Failure
		if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil || w.Code != 503 || f.Error != fault.Unavailable || !strings.Contains(f.Description, c.want) {
			t.Errorf("%s: %d %s", c.name, w.Code, w.Body)
		}
		if w.Header().Get("Retry-After") != "5" || strings.Contains(w.Body.String(), errSecret.Error()) || !strings.Contains(log.String(), errSecret.Error()) {
			t.Errorf("%s: %v, %s", c.name, w.Header(), log.String())
		}
	}
}

// TestStrictTransport checks that answers over TLS, and only those, tell browsers to use TLS for a year.
func TestStrictTransport(t *testing.T) {
	h := Secured(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for address, want := range map[string]string{"https://sign.example.org/": "max-age=31536000", "http://sign.example.org/": ""} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", address, nil))
		if got := w.Header().Get("Strict-Transport-Security"); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}
