package rest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"tamga/internal/domain/fault"
)

// stalled is how long a peer may take nothing of an answer before the connection is
// given up. There is no limit on the whole: a large document over a thin line takes its
// time.
const stalled = 60 * time.Second

// The pace of a body. A client may keep us waiting for patienceOfBody in all, and earns
// it again with what it sends: slowestBody bytes a second are enough for ever. So a
// document of gigabytes may come over any line that people use, and a client that sends
// a byte now and then is dropped.
const (
	patienceOfBody = 20 * time.Second
	slowestBody    = 256 // bytes a second
)

// errLost marks a body that broke off: the client hung up or stalled, or its
// transfer coding is broken.
type errLost struct{ err error }

func (e *errLost) Error() string { return "rest: the request body broke off: " + e.err.Error() }
func (e *errLost) Unwrap() error { return e.err }

func tooLarge(limit int64) error {
	return fault.Newf(fault.TooLarge, "the request is larger than %d octets", limit)
}

// body reads a request body, counts it against its limit while it comes and keeps the
// connection's deadline at the end of its patience. Only the time in Read counts: what
// we do with the body is not the client's fault.
type body struct {
	src      io.Reader
	limit    int64
	n        int64 // octets read
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
	// One more than allowed tells a body that is too large from one that just fits.
	if room := b.limit - b.n + 1; int64(len(p)) > room {
		p = p[:room]
	}
	begin := time.Now()
	if end := begin.Add(b.patience); end.Before(b.deadline) || end.Sub(b.deadline) > patienceOfBody/8 {
		b.deadline = end
		b.conn.SetReadDeadline(end) // a connection without deadlines does without
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
		b.conn.SetReadDeadline(time.Time{}) // the wait for our answer is ours
	}
	return n, err
}

// steady writes an answer and keeps the connection's deadline ahead of it.
type steady struct {
	w        io.Writer
	conn     *http.ResponseController
	deadline time.Time
}

func (s *steady) Write(p []byte) (int, error) {
	if now := time.Now(); now.Add(stalled / 2).After(s.deadline) {
		s.deadline = now.Add(stalled)
		s.conn.SetWriteDeadline(s.deadline)
	}
	n, err := s.w.Write(p)
	if err != nil {
		err = fmt.Errorf("rest: the answer was not taken: %w", err)
	}
	return n, err
}
