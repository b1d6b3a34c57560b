// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"io"
	"net/http"
	"time"
)

// lingering is how long a client may continue to send after its request was refused.
const lingering = 5 * time.Second

// Heard makes sure that a refusal reaches clients that send the whole request before they
// read. For a while after the answer, it reads and drops what still comes (RFC 9112,
// section 9.6). If a connection is closed while unread bytes wait in it, the system resets
// it, and the client loses the answer.
func Heard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == http.NoBody || r.ProtoMajor != 1 {
			next.ServeHTTP(w, r)
			return
		}
		body, is := r.Body.(*watched)
		if !is {
			body = &watched{ReadCloser: r.Body}
			ours := *r // the request of the server keeps its own body
			ours.Body = body
			r = &ours
		}
		out := &refusing{ResponseWriter: w, body: body}
		next.ServeHTTP(out, r)
		if !out.refused || http.NewResponseController(w).Flush() != nil {
			return
		}
		io.Copy(io.Discard, r.Body) // any error is ignored: the answer was sent
	})
}

// refusing notes that a request was refused.
type refusing struct {
	http.ResponseWriter
	body    *watched
	refused bool
}

// WriteHeader bounds the wait for the rest of a refused request. The server of net/http
// itself waits for some of it before it sends the answer. After the end of the body that server
// reads on to notice a client that leaves, so there is no deadline then: it would look like one, for
// the next requests of the connection, too.
func (w *refusing) WriteHeader(code int) {
	if code >= http.StatusBadRequest {
		w.refused = true
		if !w.body.ended {
			http.NewResponseController(w.ResponseWriter).SetReadDeadline(time.Now().Add(lingering))
		}
	}
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *refusing) Unwrap() http.ResponseWriter { return w.ResponseWriter }
