// Package rest owns the way of a request through the server: typed routes, the
// steps every operation shares, the streaming reader of JSON bodies, answers,
// error bodies, and what surrounds all routes: request ids, the log line,
// metrics, health and the limits of a connection.
//
// It knows no operation. Leniency towards clients lives here, once.
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

	"tamga/internal/domain/fault"
)

// Front is what every request meets first, outermost first: the patience that lets
// refusals be heard, its id, its log line and metrics, the net for panics, security
// headers, the certificate of its client, and error bodies for what no route serves.
func Front(mux *http.ServeMux, log *slog.Logger, metrics *Metrics) http.Handler {
	return Heard(Identifiable(Observed(Recovered(Secured(Peered(Routed(mux))), log), log, metrics)))
}

// Identifiable gives each request an id and answers it as X-Request-Id. An id that the
// client sent is kept beside it if it is sane. It also finds out the address of the
// client, once.
func Identifiable(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{id: rand.Text(), started: time.Now(), remote: clientAddress(r)}
		if given := r.Header.Get("X-Request-Id"); sane(given) {
			c.given = given
		}
		w.Header().Set("X-Request-Id", c.id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callKey{}, c)))
	})
}

// sane reports whether a client's id can go into the log as it is, and for a known
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

// Observed writes one line for each request and counts it. The line has no
// query, no body and no header of the client's, since those hold secrets.
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
			metrics.done(route, out.status(), took, call.bodyOctets, out.n)
			level := slog.LevelInfo
			if call.quiet {
				level = slog.LevelDebug
			}
			log.LogAttrs(ctx, level, "request",
				slog.String("request_id", call.id), slog.String("client_request_id", call.given), slog.String("method", method(r)), slog.String("route", route),
				slog.Int("status", out.status()), slog.String("outcome", call.outcome), slog.Duration("duration", took),
				slog.Int64("bytes_in", call.bodyOctets), slog.Int64("bytes_out", out.n),
				slog.String("login", cmp.Or(call.who.Login, call.claimed.Login)), slog.String("remote", cmp.Or(call.remote, clientAddress(r))))
		}()
		next.ServeHTTP(out, r.WithContext(ctx))
	})
}

// method is the method for the log: clients may send any word.
func method(r *http.Request) string {
	if len(r.Method) > 16 {
		return r.Method[:16] + "..."
	}
	return r.Method
}

// recorder remembers what was answered.
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

// Recovered turns a panic outside of the operations, which catch their own, into
// an internal error.
func Recovered(next http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			switch p {
			case nil:
				return
			case http.ErrAbortHandler:
				panic(p) // the connection is to be cut
			}
			log.ErrorContext(r.Context(), "panic", "request_id", RequestID(r.Context()), "panic", p, "stack", string(debug.Stack()))
			if out, ok := w.(*recorder); ok && out.code != 0 {
				panic(http.ErrAbortHandler) // half an answer is out already
			}
			fail(w, errPanic)
		}()
		next.ServeHTTP(w, r)
	})
}

// Secured sets the headers that keep browsers and caches from doing anything
// with an answer. Pages of a console replace the policy with their own.
func Secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		maps.Copy(w.Header(), secured)
		next.ServeHTTP(w, r)
	})
}

// secured are the headers of Secured. Nobody changes a value in place.
var secured = http.Header{
	"Cache-Control":           {"no-store"},
	"Content-Security-Policy": {"default-src 'none'; frame-ancestors 'none'"},
	"Referrer-Policy":         {"no-referrer"},
	"X-Frame-Options":         {"DENY"},
	"X-Content-Type-Options":  {"nosniff"},
}

// Routed serves mux and answers what it does not serve in our own shape: 404, and
// 405 with the methods that are allowed.
func Routed(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hasDots(r.URL.Path) {
			_, call := callOf(r.Context())
			call.outcome = fault.NotFound
			fail(w, fault.New(fault.NotFound, "there is nothing at this address: it has a segment . or .."))
			return
		}
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
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

// hasDots reports whether a decoded path has a segment . or .. in it. Clients of ours
// send none; who does tries to make a proxy in front and us read two addresses.
func hasDots(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// probe learns what the mux would say.
type probe struct {
	header http.Header
	code   int
}

func (p *probe) Header() http.Header         { return p.header }
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
func (p *probe) WriteHeader(code int)        { p.code = code }

// NewServer returns a server for h with the limits of a connection: headers come
// soon and are small, idle connections are dropped. Bodies and answers have no
// limit on the whole, since documents are large, but must keep moving; the
// routes see to that, and emptied to bodies that no route reads.
func NewServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           emptied(h),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// Health puts /healthz, /readyz and /metrics on mux: the process answers; the process can
// do its work (see [Readiness]); what was counted.
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
	mux.HandleFunc("GET /metrics", quiet("metrics", metrics.ServeHTTP))
}
