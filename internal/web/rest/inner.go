// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net"
	"net/http"
	"strings"
)

// InnerReply is the answer to a request of [Inner].
type InnerReply struct {
	Status int
	Header http.Header
	Body   []byte // as much of it as was wanted
	Length int64  // of the whole body
}

// Inner returns a function that sends a request through front, all steps included, for the
// client of the request of ctx. The request has the address of that client, and nothing else of
// it: no cookie, no certificate, no header. It keeps at most so many bytes of the answer.
func Inner(front http.Handler) func(ctx context.Context, method, target string, header http.Header, body string, most int) (InnerReply, error) {
	return func(ctx context.Context, method, target string, header http.Header, body string, most int) (InnerReply, error) {
		// The address is known already, and the headers are no proxy's and no front end's.
		ctx = context.WithValue(context.WithValue(ctx, frontEndKey{}, false), proxiesKey{}, Proxies{})
		r, err := http.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
		if err != nil {
			return InnerReply{}, err
		}
		r.Header, r.RequestURI = header.Clone(), r.URL.RequestURI()
		if r.RemoteAddr = Remote(ctx); net.ParseIP(r.RemoteAddr) != nil {
			r.RemoteAddr = net.JoinHostPort(r.RemoteAddr, "0")
		}
		w := &kept{header: http.Header{}, most: most}
		front.ServeHTTP(w, r)
		w.WriteHeader(http.StatusOK)
		return InnerReply{Status: w.status, Header: w.sent, Body: w.body, Length: w.length}, nil
	}
}

// kept keeps the begin of an answer.
type kept struct {
	header, sent http.Header
	status, most int
	body         []byte
	length       int64
}

func (w *kept) Header() http.Header { return w.header }

func (w *kept) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status, w.sent = status, w.header.Clone()
	}
}

func (w *kept) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.length += int64(len(p))
	w.body = append(w.body, p[:min(len(p), w.most-len(w.body))]...)
	return len(p), nil
}
