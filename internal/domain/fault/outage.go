package fault

import (
	"errors"
	"time"
)

// outagePause is the Retry-After of an [Outage]. A database that restarts or fails over
// is back after some seconds.
const outagePause = 5 * time.Second

// Outage is an error of the database or of the document storage that may be over soon:
// it is not reachable, does not answer in time, or ended the connection. It is not an
// *Error, so a transaction that ends with it rolls back, and background work tries again
// later. A client is answered temporarily_unavailable (see [Outage.Fault]).
type Outage struct {
	Message string // for the client: what is known about the request, and what to do
	Err     error  // the cause, for the log only
}

// Error is the text for the log.
func (o *Outage) Error() string { return o.Message + ": " + o.Err.Error() }

// Unwrap returns the cause.
func (o *Outage) Unwrap() error { return o.Err }

// Fault returns what a client is told.
func (o *Outage) Fault() *Error {
	return New(Unavailable, o.Message).With(o.Err).Until(outagePause)
}

// AsOutage finds the outermost Outage in the chain of err. It reports false when err is a
// fault: a room that made one has decided what the client is told.
func AsOutage(err error) (*Outage, bool) {
	if _, refused := As(err); refused {
		return nil, false
	}
	var o *Outage
	ok := errors.As(err, &o)
	return o, ok
}
