// SPDX-License-Identifier: Apache-2.0

// Package rest carries requests through the server: typed routes, the steps that every
// operation shares, the streaming reader of JSON bodies, answers and error bodies. It also
// has what surrounds all routes: request ids, the log line, metrics, health and the limits
// of a connection.
//
// Begin with [Handle] or [HandleDocuments] for routes, [Mount] to serve them behind a
// [Gate], and [Front] around everything. The package knows no operation and no type of the
// domain besides faults and audit entries. What it tolerates in clients is here only.
package rest

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"tamga/internal/domain/fault"
)

// Front returns the handler that every request meets first. Outermost first: the wait that
// lets clients read refusals, the request id, the span of a trace, the log line and metrics, the recovery from
// panics, security headers, the certificate of the client, and error bodies for paths
// without a route. Browsers get a page of missing there, if it is given.
func Front(mux *http.ServeMux, log *slog.Logger, metrics *Metrics, tracer trace.Tracer, missing ...http.Handler) http.Handler {
	return Heard(Identifiable(Traced(Observed(Recovered(Secured(Peered(Routed(mux, missing...))), log), log, metrics), tracer)))
}

// Identifiable gives each request an id and sends it back as X-Request-Id. A valid id from
// the client is kept beside it. Identifiable also finds the address of the client, once.
func Identifiable(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{id: rand.Text(), started: time.Now(), remote: clientAddress(r)}
		if given := r.Header.Get("X-Request-Id"); sane(given) {
			c.given = given
		}
		w.Header()["X-Request-Id"] = []string{c.id}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callKey{}, c)))
	})
}

// sane reports whether an id from a client may go into the log as it is, and for a known
// caller into the audit log.
func sane(id string) bool {
	if len(id) == 0 || len(id) > 64 {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if !('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || strings.IndexByte("-_.:", c) >= 0) {
			return false
		}
	}
	return true
}

// Observed writes one log line for each request and counts the request. The line has no
// query, body or header of the client, because they hold secrets.
func Observed(next http.Handler, log *slog.Logger, metrics *Metrics) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, call := callOf(r.Context())
		begin := time.Now()
		out := &recorder{ResponseWriter: w}
		metrics.inFlight.Inc()
		defer func() {
			took := time.Since(begin)
			route := call.route
			if route == "" {
				route = "none"
			}
			metrics.inFlight.Dec()
			metrics.done(route, out.status(), took, call.bodyBytes, out.n)
			metrics.outcome(route, out.status(), call.outcome)
			level := slog.LevelInfo
			if call.quiet {
				level = slog.LevelDebug
			}
			if call.remote == "" {
				call.remote = clientAddress(r)
			}
			logged(ctx, log, level, "request",
				slog.String("request_id", call.id), slog.String("client_request_id", call.given), slog.String("method", method(r)), slog.String("route", route),
				slog.Int("status", out.status()), slog.String("outcome", call.outcome), slog.Float64("duration_ms", float64(took.Microseconds())/1000),
				slog.Int64("bytes_in", call.bodyBytes), slog.Int64("bytes_out", out.n),
				slog.String("login", cmp.Or(call.who.Login, call.claimed.Login)), slog.String("remote", call.remote))
		}()
		next.ServeHTTP(out, inContext(r, ctx))
	})
}

// logged writes a record without the place in the program that it comes from. No handler of this
// program shows the place, and finding it takes longer than the rest.
func logged(ctx context.Context, log *slog.Logger, level slog.Level, message string, attrs ...slog.Attr) {
	h := log.Handler()
	if !h.Enabled(ctx, level) {
		return
	}
	record := slog.NewRecord(time.Now(), level, message, 0)
	record.AddAttrs(attrs...)
	h.Handle(ctx, record) // the error is ignored, as by slog.Logger
}

// method returns the method for the log. Clients may send any word, so it is cut to 16
// bytes.
func method(r *http.Request) string {
	if len(r.Method) > 16 {
		return r.Method[:16] + "..."
	}
	return r.Method
}

// recorder notes the status and the length of the answer.
type recorder struct {
	http.ResponseWriter
	code int
	n    int64
}

func (w *recorder) WriteHeader(code int) {
	if w.code == 0 && code >= 200 {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *recorder) Write(p []byte) (int, error) {
	if w.code == 0 {
		w.code = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p)
	w.n += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recorder) status() int {
	if w.code == 0 {
		return http.StatusOK
	}
	return w.code
}

// Recovered turns a panic into an internal error. Operations recover from their own panics.
func Recovered(next http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			switch p {
			case nil:
				return
			case http.ErrAbortHandler:
				panic(p) // the connection must be cut
			}
			log.ErrorContext(r.Context(), "panic", "request_id", RequestID(r.Context()), "panic", p, "stack", string(debug.Stack()))
			if out, ok := w.(*recorder); ok && out.code != 0 {
				panic(http.ErrAbortHandler) // part of an answer was sent already
			}
			fail(w, errPanic)
		}()
		next.ServeHTTP(w, r)
	})
}

// Secured sets the headers that keep browsers and caches from using an answer. Pages of a
// console replace the content policy with their own.
func Secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		maps.Copy(w.Header(), secured)
		if r.TLS != nil {
			w.Header()["Strict-Transport-Security"] = oneYear
		}
		next.ServeHTTP(w, r)
	})
}

// secured are the headers of Secured. Its values must not be changed in place.
var secured = http.Header{
	"Cache-Control":           {"no-store"},
	"Content-Security-Policy": {"default-src 'none'; frame-ancestors 'none'"},
	"Referrer-Policy":         {"no-referrer"},
	"X-Frame-Options":         {"DENY"},
	"X-Content-Type-Options":  {"nosniff"},
}

// oneYear keeps browsers from coming without TLS (RFC 6797): what they send first would be readable.
var oneYear = []string{"max-age=31536000"}

// Routed serves mux. It answers requests without a route with our error bodies: 404, and
// 405 with the methods that are allowed. A browser that asks for a page at such an address is
// served by missing, if it is given.
func Routed(mux *http.ServeMux, missing ...http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hasDots(r.URL.Path) {
			_, call := callOf(r.Context())
			call.outcome = fault.NotFound
			fail(w, fault.New(fault.NotFound, "there is nothing at this address: it has a segment . or .."))
			return
		}
		h, pattern := mux.Handler(r)
		if pattern != "" {
			if strings.Contains(pattern, "{") || r.RequestURI == "*" {
				mux.ServeHTTP(w, r) // it sets the values of the path, and refuses *
				return
			}
			r.Pattern = pattern // as the mux does, but without another search
			h.ServeHTTP(w, r)
			return
		}
		if len(missing) > 0 && r.Method == http.MethodGet && r.Header.Get("Authorization") == "" && strings.Contains(r.Header.Get("Accept"), "text/html") {
			missing[0].ServeHTTP(w, r)
			return
		}
		probe := &probe{header: http.Header{}}
		h.ServeHTTP(probe, r)
		_, call := callOf(r.Context())
		switch probe.code {
		case http.StatusMethodNotAllowed:
			call.outcome = "method_not_allowed"
			w.Header().Set("Allow", probe.header.Get("Allow"))
			writeJSON(w, probe.code, Failure{
				Message: call.outcome, Error: call.outcome,
				Description: "this address takes " + probe.header.Get("Allow"),
			})
		default:
			call.outcome = fault.NotFound
			fail(w, fault.New(fault.NotFound, "there is nothing at this address: letter case counts in paths"))
		}
	})
}

// hasDots reports whether a decoded path has a segment . or .. in it. Clients send no such
// paths. An attacker sends them to make a proxy in front of us and this server read two
// different addresses.
func hasDots(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// probe records the answer of the mux.
type probe struct {
	header http.Header
	code   int
}

func (p *probe) Header() http.Header         { return p.header }
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
func (p *probe) WriteHeader(code int)        { p.code = code }

// NewServer returns a server for h with the limits of a connection: headers must come soon
// and be small, and idle connections are dropped. Bodies and answers have no limit on their
// whole time, since documents are large, but they must keep moving. The routes enforce
// that. For bodies that no route reads, emptied does.
func NewServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		ConnState:         ConnState,
		Handler:           emptied(h),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// healthPaths are those of [Health].
var healthPaths = []string{"/healthz", "/readyz", "/metrics"}

// Health puts /healthz, /readyz and /metrics on mux. /healthz: the process answers.
// /readyz: the process can do its work (see [Readiness]). /metrics: the counters.
func Health(mux *http.ServeMux, ready *Readiness, metrics http.Handler) {
	quiet := func(name string, f http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			ctx, call := callOf(r.Context())
			call.route, call.quiet = name, true
			f(w, r.WithContext(ctx))
		}
	}
	mux.HandleFunc("GET /healthz", quiet("healthz", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusOK, readiness{Status: "ok"})
	}))
	mux.HandleFunc("GET /readyz", quiet("readyz", ready.ServeHTTP))
	if metrics != nil { // otherwise it has an address of its own
		mux.HandleFunc("GET /metrics", quiet("metrics", metrics.ServeHTTP))
	}
}
