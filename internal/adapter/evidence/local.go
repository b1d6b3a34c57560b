// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Local has the services that this program itself offers over HTTP. Requests to them are
// answered in the process, without a connection to itself. Its handler is the one of the
// server, so the same checks are made and the same audit entries written as over HTTP.
type Local struct {
	// URL is the public address of this program, and Path the path below it that Handler
	// serves. Every other address is asked over the network.
	URL     *url.URL
	Path    string
	Handler http.Handler
}

// serves reports whether Handler answers requests to u. An address that is written in another
// way is asked over the network, with the same answer.
func (l *Local) serves(u *url.URL) bool {
	return u.Scheme == l.URL.Scheme && strings.EqualFold(u.Host, l.URL.Host) &&
		strings.HasPrefix(u.Path, strings.TrimSuffix(l.URL.Path, "/")+l.Path) && u.RawQuery == "" && u.User == nil
}

// localFirst sends requests to local services to their handler and all others to next.
type localFirst struct {
	local Local
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper. It returns an error if ctx has ended, as a
// connection would.
func (t *localFirst) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.local.serves(r.URL) {
		return t.next.RoundTrip(r)
	}
	ctx := r.Context()
	in := r.Clone(detached{ctx})
	in.URL.Path = strings.TrimPrefix(in.URL.Path, strings.TrimSuffix(t.local.URL.Path, "/"))
	in.URL.RawPath = ""
	in.Host, in.RequestURI, in.RemoteAddr = r.URL.Host, in.URL.RequestURI(), "127.0.0.1:0"
	if in.Body == nil {
		in.Body = http.NoBody
	}
	defer in.Body.Close()
	w := &answerWriter{header: http.Header{}}
	t.local.Handler.ServeHTTP(w, in)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w.WriteHeader(http.StatusOK)
	return &http.Response{
		StatusCode: w.status, Status: http.StatusText(w.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

// CloseIdleConnections closes those of next; see http.Client.
func (t *localFirst) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// detached is a context that ends with another one and has none of its values: the request for
// evidence must not become a part of the request or of the transaction that needs it.
type detached struct{ context.Context }

// Value implements context.Context.
func (detached) Value(any) any { return nil }

// answerWriter keeps an answer.
type answerWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *answerWriter) Header() http.Header { return w.header }

func (w *answerWriter) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
}

func (w *answerWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// SetReadDeadline, SetWriteDeadline and FlushError are for http.ResponseController. Nothing is sent, so a
// request ends with its context alone. Without these methods, every call would make an error.

// SetReadDeadline does nothing.
func (*answerWriter) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (*answerWriter) SetWriteDeadline(time.Time) error { return nil }

// FlushError does nothing.
func (*answerWriter) FlushError() error { return nil }
