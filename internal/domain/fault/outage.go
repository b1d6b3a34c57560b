// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"
	"time"
)

// outagePause is the Retry-After of an [Outage]. A database that restarts or fails over
// is back after some seconds.
const outagePause = 5 * time.Second

// Outage is an error of the database or the document storage that may be over soon:
// unreachable, timed out, or connection lost. It is not an *Error, so a transaction that
// returns it rolls back, and background work tries again later. Clients get the code
// temporarily_unavailable (see [Outage.Fault]).
type Outage struct {
	Message string // for the client: what is known about the request, and what to do
	Err     error  // the cause, for the log only
	Part    string // of the installation that is away, for the log and metrics; "" is the database
}

// Error returns the text for the log.
func (o *Outage) Error() string { return o.Message + ": " + o.Err.Error() }

// Unwrap returns the cause.
func (o *Outage) Unwrap() error { return o.Err }

// Fault returns the fault for the client.
func (o *Outage) Fault() *Error {
	return New(Unavailable, o.Message).With(o.Err).Until(outagePause)
}

// AsOutage finds the outermost Outage in the chain of err. It reports false when err
// contains a fault, because then that fault is the answer.
func AsOutage(err error) (*Outage, bool) {
	if _, refused := As(err); refused {
		return nil, false
	}
	var o *Outage
	ok := errors.As(err, &o)
	return o, ok
}
