// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"tamga/internal/domain/fault"
)

// stalled is how long a client may read nothing of an answer before the connection is
// closed. The whole answer has no limit, because a large document takes long on a slow line.
const stalled = 60 * time.Second

// The pace of a request body. A client may keep the server waiting for patienceOfBody in
// total. Each received byte adds time, so slowestBody bytes per second are always enough. A
// client that sends a byte now and then is dropped.
const (
	patienceOfBody = 20 * time.Second
	slowestBody    = 256 // bytes a second
)

// errLost marks a body that broke off: the client closed the connection or stalled, or the
// transfer coding is invalid.
type errLost struct{ err error }

func (e *errLost) Error() string { return "rest: the request body broke off: " + e.err.Error() }
func (e *errLost) Unwrap() error { return e.err }

func tooLarge(limit int64) error {
	return fault.Newf(fault.TooLarge, "the request is larger than %d bytes", limit)
}

// body reads a request body and counts its bytes against the limit. The read deadline of
// the connection is the end of the patience. Only time spent in Read counts.
type body struct {
	src      io.Reader
	limit    int64
	n        int64 // bytes read
	err      error // sticky
	conn     *http.ResponseController
	deadline time.Time
	patience time.Duration // left
}

func newBody(w http.ResponseWriter, r *http.Request, limit int64) *body {
	return &body{src: r.Body, limit: limit, conn: http.NewResponseController(w), patience: patienceOfBody}
}

func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	// One byte more than the limit may be read. It proves that the body is too large.
	if room := b.limit - b.n + 1; int64(len(p)) > room {
		p = p[:room]
	}
	begin := time.Now()
	if end := begin.Add(b.patience); end.Before(b.deadline) || end.Sub(b.deadline) > patienceOfBody/8 {
		b.deadline = end
		b.conn.SetReadDeadline(end) // the error is ignored: some connections have no deadlines
	}
	n, err := b.src.Read(p)
	b.patience -= time.Since(begin)
	b.patience = min(b.patience+time.Duration(min(n, slowestBody*int(patienceOfBody/time.Second)))*time.Second/slowestBody, patienceOfBody)
	if b.n += int64(n); b.n > b.limit {
		b.err = tooLarge(b.limit)
		return n - 1, b.err
	}
	if err != nil {
		if !errors.Is(err, io.EOF) {
			err = &errLost{err}
		}
		b.err = err
		b.conn.SetReadDeadline(time.Time{}) // no deadline while the client waits for the answer
	}
	return n, err
}

// steady writes an answer, counts its bytes, and moves the write deadline of the connection ahead
// of it.
type steady struct {
	w        io.Writer
	conn     *http.ResponseController
	deadline time.Time
	n        int64
}

func (s *steady) Write(p []byte) (int, error) {
	if now := time.Now(); now.Add(stalled / 2).After(s.deadline) {
		s.deadline = now.Add(stalled)
		s.conn.SetWriteDeadline(s.deadline)
	}
	n, err := s.w.Write(p)
	s.n += int64(n)
	if err != nil {
		err = fmt.Errorf("rest: the answer was not taken: %w", err)
	}
	return n, err
}
