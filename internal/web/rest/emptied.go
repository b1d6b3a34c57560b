// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"io"
	"net/http"
	"time"
)

// maxLeft is how many bytes of a body an operation may leave for us to read and drop, so
// that the connection can serve another request. net/http uses the same number.
const maxLeft = 256 << 10

// emptied reads what a successful operation leaves of a body, before the answer and within
// a time limit. The server of net/http would read it without a time limit. [Heard] does the
// same for refused requests.
func emptied(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == http.NoBody || r.ProtoMajor != 1 {
			next.ServeHTTP(w, r)
			return
		}
		body := &watched{ReadCloser: r.Body}
		out := &emptying{ResponseWriter: w, body: body, asks: r.Header.Get("Expect") != ""}
		ours := *r // the request of the server keeps its own body
		ours.Body = body
		next.ServeHTTP(out, &ours)
		if !out.answered {
			out.WriteHeader(http.StatusOK)
		}
	})
}

// watched notes how far a body was read.
type watched struct {
	io.ReadCloser
	begun, ended bool
}

func (b *watched) Read(p []byte) (int, error) {
	b.begun = true
	n, err := b.ReadCloser.Read(p)
	b.ended = b.ended || err == io.EOF
	return n, err
}

type emptying struct {
	http.ResponseWriter
	body     *watched
	asks     bool // the client waits for 100 Continue
	answered bool
}

// WriteHeader reads what is left of the body. A client that does not send it in time gets
// the answer, and then the connection is closed.
func (w *emptying) WriteHeader(code int) {
	if code >= http.StatusOK && !w.answered {
		w.answered = true
		if code < http.StatusBadRequest && !w.body.ended {
			w.drop()
		}
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *emptying) drop() {
	conn := http.NewResponseController(w.ResponseWriter)
	conn.SetReadDeadline(time.Now().Add(lingering))
	if !w.asks || w.body.begun {
		io.CopyN(io.Discard, w.body, maxLeft+1)
	}
	if w.body.ended {
		conn.SetReadDeadline(time.Time{}) // no deadline while the answer is made
		return
	}
	w.Header().Set("Connection", "close")
}

func (w *emptying) Write(p []byte) (int, error) {
	if !w.answered {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *emptying) Unwrap() http.ResponseWriter { return w.ResponseWriter }
