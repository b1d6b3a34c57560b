package rest

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"time"

	"tamga/internal/domain/audit"
)

// call is what the steps of one request know of it. Middleware makes it, the
// route fills it in, the log line and the metrics read it.
type call struct {
	id         string
	given      string // id the client gave the request, checked; "" for none
	route      string // name of the route; "" until one was found
	remote     string
	peer       [][]byte // certificates the client proved in a handshake, DER, its own first
	who        audit.Principal
	claimed    audit.Principal // who the caller says to be, until who is known
	note       *audit.Note     // of a call for Anyone
	written    bool            // its outcome is in the audit log
	object     string
	outcome    string
	refusal    string // outcome of an answer that carries a refusal; "" for none
	started    time.Time
	bodyOctets int64
	detail     string
	quiet      bool // not worth a line in the log
	after      []io.Closer
	repetition *repetition // nil: it carries no Idempotency-Key
	// attempt waits for the journal's line of the attempt, which is written beside the
	// call; nil: it was written before.
	attempt func(context.Context) error

	promise  func(ctx context.Context) error // writes that the call was done into the journal
	promised bool                            // it did, inside a transaction of the operation
}

type callKey struct{}

// callOf finds the call of a request, or begins one.
func callOf(ctx context.Context) (context.Context, *call) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return ctx, c
	}
	c := &call{id: rand.Text()}
	return context.WithValue(ctx, callKey{}, c), c
}

// RequestID is the id of the request in ctx, as the log and the journal have it.
func RequestID(ctx context.Context) string {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c.id
	}
	return ""
}

// Caller is who sends the request in ctx; the zero value on a route for Anyone.
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

// Afterwards closes c once the answer of the request in ctx is out or has failed.
func Afterwards(ctx context.Context, c io.Closer) {
	if call, ok := ctx.Value(callKey{}).(*call); ok {
		call.after = append(call.after, c)
	}
}

// finish closes what Afterwards was given.
func (c *call) finish() error {
	var errs []error
	for _, closer := range c.after {
		errs = append(errs, closer.Close())
	}
	c.after = nil
	return errors.Join(errs...)
}

// Identified names the caller of a request that brings no token but its own
// proof, for the audit log and the log. Calls of others are not in the audit log
// unless they change something (see [audit.Note]).
func Identified(ctx context.Context, who audit.Principal) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.who = who
	}
}

// Claimed names whom the caller of a request says to be without proof, such as a public
// client. It is in the entries of the request but does not make it worth one.
func Claimed(ctx context.Context, who audit.Principal) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.claimed = who
	}
}

// Refused names the outcome of a request whose answer is a refusal in the form of a
// success, such as an address that a browser is sent to.
func Refused(ctx context.Context, code string) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.refusal = code
	}
}

// Detail says in a few words what a request asks for beyond its name, for the outcome
// in the journal: no secrets, and nothing that could be one.
func Detail(ctx context.Context, text string) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.detail = text
	}
}

// Concerning names what a request acts on, for the outcome in the journal.
func Concerning(ctx context.Context, object string) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.object = object
	}
}
