// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"tamga/internal/domain/audit"
)

// call is the state of one request that its steps share. Middleware makes it, the route
// fills it in, and the log line and the metrics read it.
type call struct {
	id         string
	given      string // id from the client, checked; "" for none
	route      string // name of the route; "" until one was found
	remote     string
	peer       [][]byte // certificates (DER) whose key the client proved in the handshake, its own first
	who        audit.Principal
	claimed    audit.Principal // claimed without proof, until who is known
	note       *audit.Note     // on a route for Anyone
	holders    audit.Holders   // of the keys that the call uses
	written    bool            // the outcome is in the audit log
	object     string
	outcome    string
	refusal    string // outcome of an answer that carries a refusal; "" for none
	started    time.Time
	bodyBytes  int64
	detail     string
	quiet      bool       // logged at debug level
	adding     sync.Mutex // guards after
	after      []io.Closer
	repetition *repetition // nil: the request has no Idempotency-Key
	// attempt waits until the audit entry of the attempt is durable, if it is written while
	// the call runs. nil: it was written before.
	attempt func(context.Context) error
	// deferred: the entry of the attempt is written together with the one of the outcome; see Route.Noted.
	deferred bool

	handler  *handler // carries the request out; nil before
	promised bool     // the audit entry of the outcome was written with the result, see Keep

	waits    bool                                       // Gate.Approvals have refused it for now
	admitted func(ctx context.Context, err error) error // ends its admission; nil: none
}

type callKey struct{}

// inContext returns r with ctx. It copies r only if it has another context.
func inContext(r *http.Request, ctx context.Context) *http.Request {
	if r.Context() == ctx {
		return r
	}
	return r.WithContext(ctx)
}

// callOf returns the call of a request, or a new one.
func callOf(ctx context.Context) (context.Context, *call) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return ctx, c
	}
	c := &call{id: rand.Text()}
	return context.WithValue(ctx, callKey{}, c), c
}

// RequestID returns the id of the request in ctx, as it is in the log and the audit log.
func RequestID(ctx context.Context) string {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c.id
	}
	return ""
}

// Caller returns the caller of the request in ctx. It is the zero value on a route for
// Anyone, unless the route is Identifying and the request has a token.
func Caller(ctx context.Context) audit.Principal {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c.who
	}
	return audit.Principal{}
}

// Remote returns the address of the client that sends the request in ctx, without
// port. Behind a trusted proxy it is the client of the proxy (see [Proxies]).
func Remote(ctx context.Context) string {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c.remote
	}
	return ""
}

// Afterwards closes c once the answer of the request in ctx was sent or has failed. Goroutines of
// one request may call it at the same time.
func Afterwards(ctx context.Context, c io.Closer) {
	if call, ok := ctx.Value(callKey{}).(*call); ok {
		call.adding.Lock()
		defer call.adding.Unlock()
		call.after = append(call.after, c)
	}
}

// finish closes everything that Afterwards was given.
func (c *call) finish() error {
	var errs []error
	for _, closer := range c.after {
		errs = append(errs, closer.Close())
	}
	c.after = nil
	return errors.Join(errs...)
}

// Identified sets the caller of a request that carries no token but its own proof, for the
// audit log and the log. Without it, a call on a route for Anyone has no audit entry unless
// it changes something (see [audit.Note]).
func Identified(ctx context.Context, who audit.Principal) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.who = who
	}
}

// Claimed sets the caller that a request claims without proof, such as a public client. The
// name is in the audit entries of the request. It is no reason to write one.
func Claimed(ctx context.Context, who audit.Principal) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.claimed = who
	}
}

// Refused sets the outcome of a request whose answer looks like a success but is a refusal,
// such as a redirect with an error in it.
func Refused(ctx context.Context, code string) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.refusal = code
	}
}

// Detail adds a few words about the request to the audit entry of the outcome, beyond the
// name of the operation. It must hold no secrets.
func Detail(ctx context.Context, text string) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.detail = text
	}
}

// Concerning sets the object of the request in the audit entry of the outcome.
func Concerning(ctx context.Context, object string) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.object = object
	}
}
