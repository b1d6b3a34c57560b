// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/effect"
	"tamga/internal/domain/fault"
	"tamga/internal/web/rest/limit"
)

// Outcomes besides those of package audit and the codes of faults.
const (
	outcomeInternal     = "internal_error" // an error that is no fault: a bug, or the machine
	outcomeNotDelivered = "not_delivered"  // carried out, but the client did not take the answer
)

const (
	// recording bounds the time that writing an outcome to the audit log may take, also
	// after the client has left.
	recording = 15 * time.Second
	// recordingOutage is the same after an operation failed because the database or the
	// document storage is down. The caller has already waited for that.
	recordingOutage = 2 * time.Second
)

// Limits of request bodies, in bytes unless stated otherwise.
type Limits struct {
	Ordinary int64 // 0 is DefaultOrdinary
	Large    int64 // of routes that carry documents; 0 is DefaultLarge
	// Documents is the number of documents that one request may hold. 0 is
	// DefaultDocuments.
	Documents int
}

// Defaults of Limits.
const (
	DefaultOrdinary int64 = 1 << 20
	DefaultLarge    int64 = 2 << 30
	// DefaultDocuments is two for each item of a batch of 10 000.
	DefaultDocuments = 20_000
)

func (l Limits) of(r Route) int64 {
	switch {
	case r.size == ownLimit:
		return r.limit
	case r.size == large && l.Large > 0:
		return l.Large
	case r.size == large:
		return DefaultLarge
	case l.Ordinary > 0:
		return l.Ordinary
	}
	return DefaultOrdinary
}

// Gate holds the checks and services in which surfaces of the server differ. Audit and Log
// are always required. The other fields are required if a route needs them.
type Gate struct {
	// Identify returns the owner of a bearer token. The fault is invalid_token.
	Identify func(ctx context.Context, token string) (audit.Principal, error)
	// IdentifyWith is Identify for a surface that reads more in the same step: the context
	// that it returns carries this and is that of the request from then on. nil, or for a route
	// that is CallerOnly: Identify is called.
	IdentifyWith func(ctx context.Context, token string) (context.Context, audit.Principal, error)
	// IdentifyConfirmed is IdentifyWith for routes that are Confirmed. It accepts confirmed
	// tokens too. nil: no route of the surface is Confirmed.
	IdentifyConfirmed func(ctx context.Context, token string) (context.Context, audit.Principal, error)
	// IdentifyPeer returns the owner of client certificates (see PeerCertificates), for
	// requests without a token. nil: certificates identify no caller here. The fault is
	// invalid_token.
	IdentifyPeer func(ctx context.Context, certificates [][]byte) (audit.Principal, error)
	// Permit checks rights other than Anyone and SignedIn. value returns parts of the path,
	// such as the user that an operator acts on.
	Permit func(ctx context.Context, who audit.Principal, right Right, value func(name string) string) error
	// Once leases requests with an Idempotency-Key. nil: the header is ignored.
	Once Begin
	// Approvals make requests wait before they are carried out. nil: none waits.
	Approvals Approvals
	// Failed is called for operations that were begun and refused, with their object (see
	// Concerning). nil: not called.
	Failed func(ctx context.Context, operation, object string, err error)
	// Present returns the answer to an error in the form of the surface, such as a page for
	// people. An error that is no fault is an internal one, whose text must not be shown. nil:
	// errors have the form of Failure.
	Present func(ctx context.Context, err error) Refusal
	Audit   audit.Log
	// Gather counts refusals that anonymous callers can cause at will. nil: each refusal has its
	// own audit entry.
	Gather *Gatherer
	Limits Limits
	Log    *slog.Logger
}

// Mount puts routes on mux under prefix, each with and without a trailing slash unless it
// is exact. It panics when a route declares no right, or one that the gate cannot check, when a
// route by which operators change something declares no effects, and when requests that may wait
// cannot be stored. Such a program does not start.
func Mount(mux *http.ServeMux, prefix string, gate *Gate, routes []Route) {
	if gate.Audit == nil || gate.Log == nil {
		panic(fmt.Sprintf("rest: the gate of %s has no audit log or no log", prefix))
	}
	names := map[string]bool{}
	for _, r := range routes {
		switch {
		case r.call == nil || r.Name == "":
			panic(fmt.Sprintf("rest: a route %s %s%s without a name or a function", r.Method, prefix, r.Path))
		case r.Right == "":
			panic(fmt.Sprintf("rest: route %s declares no right: say who may call it", r.Name))
		case (r.Right != Anyone || r.identifies) && gate.Identify == nil:
			panic(fmt.Sprintf("rest: route %s needs a caller, and its gate identifies none", r.Name))
		case r.Right != Anyone && r.Right != SignedIn && gate.Permit == nil:
			panic(fmt.Sprintf("rest: route %s has the right %q, which its gate cannot check", r.Name, r.Right))
		case r.confirmed && (r.Right == Anyone || gate.IdentifyConfirmed == nil):
			panic(fmt.Sprintf("rest: route %s accepts confirmed tokens, and its gate identifies none", r.Name))
		case r.confirmed && r.callerOnly:
			panic(fmt.Sprintf("rest: route %s accepts confirmed tokens, which read more than the caller", r.Name))
		case r.unaudited && r.Right != Anyone:
			panic(fmt.Sprintf("rest: route %s has a known caller, so it must have audit entries", r.Name))
		case r.mustDeclare() && !r.declared:
			panic(fmt.Sprintf("rest: route %s declares no effects: say what it does to people, keys and policies, or that it does none of it", r.Name))
		case r.possible != effect.None && r.storable() != "":
			panic(fmt.Sprintf("rest: requests of route %s may wait, and they cannot be stored: %s", r.Name, r.storable()))
		case names[r.Name+r.Method+r.Path]:
			panic(fmt.Sprintf("rest: route %s is there twice", r.Name))
		}
		names[r.Name+r.Method+r.Path] = true
		h := &handler{Route: r, gate: gate, limit: gate.Limits.of(r)}
		path := r.Method + " " + prefix + strings.TrimSuffix(r.Path, "/")
		mux.Handle(path, h)
		if !r.exact && !strings.HasSuffix(path, "...}") { // such a path matches the slash itself
			mux.Handle(path+"/{$}", h)
		}
	}
}

// MountAPI mounts routes under both addresses that versions of the interface
// family use: base/api and base/rest/api.
func MountAPI(mux *http.ServeMux, base string, gate *Gate, routes []Route) {
	Mount(mux, base+"/api", gate, routes)
	Mount(mux, base+"/rest/api", gate, routes)
}

type handler struct {
	Route
	gate  *Gate
	limit int64
}

// ServeHTTP runs the steps that all operations share: limit the body, identify the caller,
// check the right, write the audit entry of the attempt, bind, call, write the audit entry
// of the outcome, answer.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, call := callOf(r.Context())
	if h.Right == Anyone && !h.unaudited {
		call.note = &audit.Note{Attempt: func(ctx context.Context, who audit.Principal) error {
			e := h.entry(call, audit.Attempt, "")
			e.Principal = who
			if err := h.gate.Audit.Record(ctx, e); err != nil {
				return unrecorded(err)
			}
			return nil
		}}
		ctx = audit.WithNote(ctx, call.note)
	}
	if !h.unaudited {
		ctx = audit.WithHolders(ctx, &call.holders)
	}
	r = inContext(r, ctx)
	call.route = h.Name
	if call.remote == "" { // Identifiable sets it; tests may mount without
		call.remote = clientAddress(r)
	}
	if call.note != nil {
		call.note.Network = limit.Network(call.remote)
	}
	call.started = time.Now()

	most := h.limit
	if h.limitWithout > 0 && !sendsToken(r) {
		most = min(most, h.limitWithout)
	}
	if r.ContentLength > most {
		w.Header().Set("Connection", "close") // the rest of the body is dropped, see Heard
		h.refuse(ctx, w, call, tooLarge(most))
		return
	}
	if coding := codingOf(r); coding != "" {
		w.Header().Set("Accept-Encoding", "identity") // RFC 9110, 12.5.3
		w.Header().Set("Connection", "close")
		h.refuse(ctx, w, call, fault.Newf(fault.Encoding, "Content-Encoding %.32q is not served: send the body as it is", coding))
		return
	}
	if len(r.Header.Values("Authorization")) > 1 { // RFC 6750, 3.1: such a request is malformed
		h.refuse(ctx, w, call, fault.New(fault.InvalidParameters, "the header Authorization is given twice"))
		return
	}
	ctx, err := h.admit(r, call)
	if err != nil {
		h.refuse(ctx, w, call, err)
		return
	}

	body := newBody(w, r, most)
	in := &input{http: r, body: body, documents: cmp.Or(h.gate.Limits.Documents, DefaultDocuments)}
	defer func() {
		call.bodyBytes = body.n
		if p := call.repetition; p != nil && p.keyed != nil {
			if err := p.keyed.Close(); err != nil {
				h.gate.Log.ErrorContext(ctx, "closing an answer", "request_id", call.id, "error", err)
			}
		}
		if err := errors.Join(in.close(), call.finish()); err != nil {
			h.gate.Log.ErrorContext(ctx, "closing a document", "request_id", call.id, "error", err)
		}
	}()

	call.handler = h
	if p := call.repetition; p != nil {
		in.body = io.TeeReader(body, p.digest)
	}
	in.remains = func() error { return h.remains(ctx, r, call, body.n) }
	in.bound = func(any) error {
		if err := in.remains(); err != nil {
			return err
		}
		if p := call.repetition; p != nil {
			return p.bound(ctx, in.body)
		}
		return nil
	}
	h.hold(ctx, call, r, in)
	value, err := h.perform(ctx, call, in)
	h.release(ctx, call, err)
	if call.repetition != nil {
		value, err = h.settle(ctx, call, call.repetition, value, err)
	}
	var answer answer
	if err == nil {
		answer, err = prepare(value)
	}
	outcome, err := h.recordOutcome(ctx, call, err)
	if err != nil {
		if h.gate.Failed != nil && outcome != audit.Canceled {
			h.gate.Failed(context.WithoutCancel(ctx), h.Name, call.object, err)
		}
		if body.err != nil && fault.Is(body.err, fault.TooLarge) {
			w.Header().Set("Connection", "close")
		}
		h.refuse(ctx, w, call, err)
		return
	}
	call.outcome = outcome
	send := answer.send
	if answer.events != nil {
		send = func(w http.ResponseWriter) error { return answer.sendEvents(r.Context(), w) }
	}
	if err := send(w); err != nil {
		call.outcome = outcomeNotDelivered
		if call.written {
			if e := h.record(ctx, call, audit.Done, outcomeNotDelivered); e != nil {
				err = errors.Join(err, e)
			}
		}
		h.gate.Log.WarnContext(ctx, "answer not delivered", "request_id", call.id, "route", h.Name, "error", err)
		panic(http.ErrAbortHandler) // so that the client cannot mistake half an answer for a whole one
	}
}

// codingOf returns the content coding of a request with a body, "" for none. A compressed body
// has no size before it is inflated.
func codingOf(r *http.Request) string {
	if r.ContentLength == 0 {
		return ""
	}
	for _, line := range r.Header.Values("Content-Encoding") {
		for coding := range strings.SplitSeq(line, ",") {
			if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
				return coding
			}
		}
	}
	return ""
}

// recordOutcome makes the audit entries of a call durable before the answer. A success
// whose entry could not be written becomes an error.
func (h *handler) recordOutcome(ctx context.Context, call *call, err error) (string, error) {
	outcome := outcomeOf(ctx, err)
	if err == nil {
		outcome = cmp.Or(call.refusal, outcome)
	}
	if h.unaudited {
		return outcome, err
	}
	if err == nil && call.promised { // the entry was written with the result
		call.written = true
		return outcome, nil
	}
	if h.Right == Anyone && !h.worth(call, outcome) {
		return outcome, err
	}
	call.written = true
	most := recording
	if err != nil {
		if _, is := fault.AsOutage(err); is {
			most = recordingOutage
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	entry := h.entry(call, audit.Done, outcome)
	if call.deferred {
		call.attempt = h.gate.Audit.Begin(ctx, entry.Begun())
	}
	done := h.gate.Audit.Begin(ctx, entry)
	var lost error
	if call.attempt != nil { // both entries usually wait for the same flush
		lost = call.attempt(ctx)
	}
	e := done(ctx)
	switch {
	case e != nil && err != nil:
		h.gate.Log.ErrorContext(ctx, "the outcome could not be recorded", "request_id", call.id, "outcome", outcome, "error", e)
	case e != nil:
		err = h.unrecordedOutcome(e)
	case lost != nil && err == nil:
		err = h.unrecordedOutcome(lost)
		outcome = outcomeOf(ctx, err)
		if e := h.write(ctx, h.entry(call, audit.Done, outcome)); e != nil {
			h.gate.Log.ErrorContext(ctx, "the outcome could not be recorded", "request_id", call.id, "outcome", outcome, "error", e)
		}
	}
	return outcome, err
}

// worth reports whether the outcome of a call for Anyone is written to the audit log: the
// caller is known, or the call changed something. Refusals of existing users, and of
// clients that ask for unknown users, are counted instead, and so are the successes of a
// [Route.Counted].
func (h *handler) worth(call *call, outcome string) bool {
	if known := call.note.Known(); call.who.UserID == "" && known.UserID != "" {
		call.who = known
	}
	what, changed := call.note.Changed()
	call.detail = cmp.Or(call.detail, what)
	tried := call.note.Tried()
	switch {
	case call.who.UserID != "" || changed && (!h.counted || outcome != audit.OK || h.gate.Gather == nil):
		return true
	case changed:
		h.gate.Gather.add(h.entry(call, audit.Done, outcome))
		return false
	case outcome == audit.OK:
		return call.who.ClientID != ""
	case call.who.ClientID == "" && tried.UserID == "":
		return false
	}
	if tried.UserID != "" {
		call.object, call.claimed.Login = tried.UserID, tried.Login
	}
	if h.gate.Gather == nil {
		return true
	}
	h.gate.Gather.add(h.entry(call, audit.Done, outcome))
	return false
}

// admit runs the steps that come before the body is read. The context it returns is that of
// the request from then on.
func (h *handler) admit(r *http.Request, call *call) (context.Context, error) {
	ctx := r.Context()
	guard := h.guard
	if h.guardWithout != nil && !sendsToken(r) {
		guard = h.guardWithout
	}
	if guard != nil {
		if err := guard(call.remote); err != nil {
			awaitRefusal(ctx)
			return ctx, err
		}
	}
	if h.Right == Anyone {
		// The caller is not known yet, so no attempt is written. See worth.
		var err error
		if h.identifies && sendsToken(r) {
			if ctx, call.who, err = h.identify(ctx, r, call); err != nil {
				return ctx, err
			}
		}
		call.repetition, err = h.repeatable(r, call)
		return ctx, err
	}
	with, who, err := h.identify(ctx, r, call)
	if err != nil {
		return ctx, err
	}
	ctx, call.who = with, who
	return ctx, h.admitCaller(ctx, r, call)
}

// admitCaller is admit for a caller that is known.
func (h *handler) admitCaller(ctx context.Context, r *http.Request, call *call) error {
	if h.Right != SignedIn {
		if err := h.gate.Permit(ctx, call.who, h.Right, r.PathValue); err != nil {
			// The caller is known, so the refusal has an audit entry. Callers without a
			// valid token are in the log only, because they could fill the audit log.
			if e := h.record(ctx, call, audit.Done, outcomeOf(ctx, err)); e != nil {
				return unrecorded(e)
			}
			return err
		}
	}
	var err error
	if call.repetition, err = h.repeatable(r, call); err != nil {
		return err
	}
	switch {
	case h.unaudited || call.repetition != nil: // a kept answer outlives the call
	case h.noted:
		call.deferred = true
		return nil
	case h.answerOnly:
		call.attempt = h.gate.Audit.Begin(context.WithoutCancel(ctx), h.entry(call, audit.Attempt, ""))
		return nil
	}
	if err := h.record(ctx, call, audit.Attempt, ""); err != nil {
		return unrecorded(err)
	}
	return nil
}

// identify returns the caller: by the token, or without one by the certificate.
func (h *handler) identify(ctx context.Context, r *http.Request, call *call) (context.Context, audit.Principal, error) {
	header := r.Header.Get("Authorization")
	if token, ok := bearer(header); ok {
		if h.confirmed {
			return h.gate.IdentifyConfirmed(ctx, token)
		}
		if h.gate.IdentifyWith != nil && !h.callerOnly {
			return h.gate.IdentifyWith(ctx, token)
		}
		who, err := h.gate.Identify(ctx, token)
		return ctx, who, err
	}
	if header == "" && h.gate.IdentifyPeer != nil && len(call.peer) > 0 {
		who, err := h.gate.IdentifyPeer(ctx, call.peer)
		return ctx, who, err
	}
	return ctx, audit.Principal{}, fault.New(fault.Unauthorized, "the request needs an access token: send Authorization: Bearer TOKEN")
}

// A request whose body is larger or takes longer than this identifies its caller again once the
// body was read: the sign-in may have ended since, for instance by a lock.
const (
	longBody = 1 << 20 // bytes
	longRead = time.Second
)

// remains refuses a caller whose sign-in ended while a long body of n bytes was read.
func (h *handler) remains(ctx context.Context, r *http.Request, call *call, n int64) error {
	if h.Right == Anyone && (!h.identifies || call.who.UserID == "") || n <= longBody && time.Since(call.started) <= longRead {
		return nil
	}
	_, _, err := h.identify(ctx, r, call)
	return err
}

// unrecorded returns the fault for an operation that was not begun because its audit entry
// could not be written.
func unrecorded(err error) error {
	return fault.New(fault.Unavailable, "the operation cannot be recorded now and was not begun: try again later").With(err)
}

// unrecordedOutcome returns the fault for an operation that was carried out, but whose
// outcome could not be written.
func (h *handler) unrecordedOutcome(err error) error {
	if h.answerOnly {
		return fault.New(fault.Unavailable, "the outcome cannot be recorded now, so the result was discarded: try again later").With(err)
	}
	return fault.New(fault.Unavailable, "the operation was carried out but its outcome could not be recorded: look before you repeat it; "+
		"a request with an "+keyHeader+" may be repeated with the same key").With(err)
}

// perform binds and calls. It turns a panic into an error.
func (h *handler) perform(ctx context.Context, call *call, in *input) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			h.gate.Log.ErrorContext(ctx, "panic", "request_id", call.id, "route", h.Name, "panic", p, "stack", string(debug.Stack()))
			value, err = nil, errPanic
		}
	}()
	return h.call(ctx, in)
}

var errPanic = errors.New("rest: the operation panicked")

// record writes one audit entry. The entry of an outcome is also written when the client
// has left.
func (h *handler) record(ctx context.Context, call *call, phase, outcome string) error {
	if phase == audit.Done {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, recording)
	defer cancel()
	return h.write(ctx, h.entry(call, phase, outcome))
}

// done returns the audit entry of an outcome, or nil if the route has no audit entries.
func (h *handler) done(call *call, outcome string) *audit.Entry {
	if h.unaudited {
		return nil
	}
	e := h.entry(call, audit.Done, outcome)
	return &e
}

func (h *handler) entry(call *call, phase, outcome string) audit.Entry {
	who := call.who
	if who.UserID == "" {
		who.Login = cmp.Or(who.Login, call.claimed.Login)
		who.ClientID = cmp.Or(who.ClientID, call.claimed.ClientID)
	}
	e := audit.Entry{
		RequestID: call.id, Operation: h.Name, Phase: phase, Outcome: outcome,
		Object: call.object, Remote: call.remote, Principal: who, Detail: call.detail,
	}
	if phase == audit.Done {
		e.Detail, e.Duration = call.holders.Detail(call.detail), time.Since(call.started)
	}
	if call.who.UserID != "" || call.who.ClientID != "" {
		e.Correlation = call.given
	}
	return e
}

func (h *handler) write(ctx context.Context, e audit.Entry) error {
	if h.unaudited {
		return nil
	}
	return h.gate.Audit.Record(ctx, e)
}

// outcomeOf returns the name of the outcome of an operation.
func outcomeOf(ctx context.Context, err error) string {
	if err == nil {
		return audit.OK
	}
	var r Refusal
	switch {
	case canceled(ctx, err):
		return audit.Canceled
	case errors.As(err, &r):
		return r.Outcome()
	}
	if f, ok := fault.As(err); ok {
		return f.Code
	}
	if _, is := fault.AsOutage(err); is {
		return fault.Unavailable
	}
	return outcomeInternal
}

// canceled reports whether err is caused by a client that has left.
func canceled(ctx context.Context, err error) bool {
	var lost *errLost
	return errors.As(err, &lost) || ctx.Err() != nil && errors.Is(err, context.Canceled)
}

// sendsToken reports whether a request has a token, valid or not.
func sendsToken(r *http.Request) bool {
	_, sent := bearer(r.Header.Get("Authorization"))
	return sent
}

// bearer returns the token in an Authorization header.
func bearer(header string) (string, bool) {
	scheme, token, _ := strings.Cut(header, " ")
	token = strings.TrimSpace(token)
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}
