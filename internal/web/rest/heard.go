package rest

import (
	"io"
	"net/http"
	"time"
)

// lingering is how long a client may go on sending after its request was refused.
const lingering = 5 * time.Second

// Heard makes sure that a refusal is heard by clients that send the whole of a request
// before they read: what still comes is read and dropped for a while after the answer
// (RFC 9112, section 9.6). A connection that is closed while octets wait in it is
// reset, and the reset takes the answer with it.
func Heard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == http.NoBody || r.ProtoMajor != 1 {
			next.ServeHTTP(w, r)
			return
		}
		out := &refusing{ResponseWriter: w}
		next.ServeHTTP(out, r)
		if !out.refused || http.NewResponseController(w).Flush() != nil {
			return
		}
		io.Copy(io.Discard, r.Body) // however it ends, the answer is out
	})
}

// refusing notes that a request is refused.
type refusing struct {
	http.ResponseWriter
	refused bool
}

// WriteHeader bounds the wait for the rest of a refused request. The server of
// net/http itself waits for some of it before it lets the answer go.
func (w *refusing) WriteHeader(code int) {
	if code >= http.StatusBadRequest {
		w.refused = true
		http.NewResponseController(w.ResponseWriter).SetReadDeadline(time.Now().Add(lingering))
	}
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *refusing) Unwrap() http.ResponseWriter { return w.ResponseWriter }
