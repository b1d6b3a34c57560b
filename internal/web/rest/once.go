// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/web/rest/limit"
)

// keyHeader marks a request that may be repeated
// (draft-ietf-httpapi-idempotency-key-header).
const keyHeader = "Idempotency-Key"

const maxKey = 255 // bytes of a key

// patience is how long a repetition waits for the first request to end. Tests use less.
var patience = 10 * time.Second

// Once makes a route that carries out a request with an Idempotency-Key once. A repetition
// has the same bytes, caller and key. It gets the answer of the first request, any number
// of times, from any process and after a crash. If the key comes with a different request,
// the fault is idempotency_key_reused. While the first request is under way, a repetition
// waits, and then gets 409 with Retry-After. Failures that are no fault of the client are
// not kept: a repetition tries again. Requests without the header, and gates without Once,
// are not affected.
func (r Route) Once() Route {
	r.once = true
	return r
}

// KeyedRequest is a request with a key, leased. There is a kept answer, or the request must be
// carried out.
type KeyedRequest interface {
	// Kept returns the kept answer, and false if there is none yet. The body is nil if it
	// was nil in Keep.
	Kept() (head []byte, body interface {
		Size() int64
		io.WriterTo
	}, ok bool)
	// Keep makes an answer durable. The answer counts once record returned nil. record
	// takes part in the transaction in which it is called. It also writes the audit entry
	// of the outcome, if it is not nil: both are durable or none.
	Keep(ctx context.Context, head []byte, body interface {
		Size() int64
		io.WriterTo
	}) (record func(ctx context.Context, outcome *audit.Entry) error, err error)
	// Release ends the lease without an answer.
	Release(ctx context.Context) error
	// Close ends the reading of a kept body.
	Close() error
}

// Begin leases a request. request is a digest of the whole request. wait reports
// that a request with this key is under way. Begin is the Once of a [Gate].
type Begin func(ctx context.Context, caller, key string, request []byte) (k KeyedRequest, wait bool, err error)

// repetition is the state of a request with a key.
type repetition struct {
	begin  Begin
	caller string // user id; "": the request has no token
	key    string
	digest hash.Hash    // of the request; the body comes last
	keyed  KeyedRequest // nil until the body was read
}

// repeatable reads the key of a request and digests what comes before its body.
func (h *handler) repeatable(r *http.Request, call *call) (*repetition, error) {
	values := r.Header.Values(keyHeader)
	if !h.once || h.gate.Once == nil || len(values) == 0 {
		return nil, nil
	}
	key := strings.TrimSpace(values[0])
	if n := len(key); n > 1 && key[0] == '"' && key[n-1] == '"' {
		key = key[1 : n-1] // the draft defines a string of a structured field
	}
	if len(values) > 1 || key == "" || len(key) > maxKey || strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }) {
		return nil, fault.Newf(fault.InvalidParameters, "%s: want one value of 1 to %d visible ASCII characters, such as a GUID", keyHeader, maxKey)
	}
	if call.who.UserID == "" {
		// Callers without a token share their keys with those of their network only: keys such as 1 are usual, and
		// an object that the answer names can be completed once. No known client repeats a call from another address.
		key = limit.Network(call.remote) + " " + key
	}
	p := &repetition{begin: h.gate.Once, caller: call.who.UserID, key: key, digest: sha256.New()}
	for _, part := range []string{h.Method, h.Name, strings.TrimSuffix(r.URL.Path, "/"), r.URL.RawQuery} {
		p.add(part)
	}
	if c := call.who.Confirmation; c != "" { // two confirmations are two requests, although their bodies are equal
		p.add("confirmation " + c)
	}
	for _, name := range h.headers {
		for _, value := range r.Header.Values(name) {
			p.add(name)
			p.add(value)
		}
	}
	return p, nil
}

// add digests a text so that it cannot run into the next one.
func (p *repetition) add(text string) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(text)))
	p.digest.Write(n[:])
	io.WriteString(p.digest, text)
}

// errKept ends a call that has a kept answer.
var errKept = errors.New("rest: the request was answered before")

// bound is called when the whole request was read and before anything is done.
func (p *repetition) bound(ctx context.Context, body io.Reader) error {
	if _, err := io.Copy(io.Discard, body); err != nil {
		return err
	}
	request := p.digest.Sum(nil)
	deadline := time.Now().Add(patience)
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		keyed, wait, err := p.begin(ctx, p.caller, p.key, request)
		if err != nil {
			return err
		}
		if !wait {
			p.keyed = keyed
			if _, _, ok := keyed.Kept(); ok {
				return errKept
			}
			return nil
		}
		if time.Now().Add(pause).After(deadline) {
			return underWay{}
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// underWay returns the fault for a repetition while the first request is under way.
type underWay struct{}

// codeUnderWay is a code that clients of the family know.
const codeUnderWay = "transaction_pending"

func (underWay) Error() string   { return codeUnderWay + ": a request with this key is under way" }
func (underWay) Outcome() string { return codeUnderWay }

func (underWay) Answer() (int, http.Header, any) {
	return http.StatusConflict, http.Header{"Retry-After": {strconv.Itoa(5)}},
		Failure{codeUnderWay, codeUnderWay, "a request with this " + keyHeader + " is under way: repeat it a little later to get its answer"}
}

// head describes a kept answer. Its body is stored beside it.
type head struct {
	Form    string `json:"form"` // one of the forms below
	Name    string `json:"name,omitempty"`
	Type    string `json:"type,omitempty"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`

	Header map[string]string `json:"header,omitempty"` // of a stream

	// The request that was carried out, and its object. With them, a reader of the audit
	// log finds what a repetition delivered.
	Request string `json:"request,omitempty"`
	Object  string `json:"object,omitempty"`
}

const (
	formNone   = "none"
	formStream = "stream"
	formJSON   = "json"
	formFile   = "file"
	formFault  = "fault"
)

// keptForm splits the result of a handler into head and body.
func keptForm(value any) (head, Content, error) {
	switch v := value.(type) {
	case None:
		return head{Form: formNone}, nil, nil
	case Stream:
		return head{Form: formStream, Header: v.Header}, v.Content, nil
	case JSON:
		return head{Form: formJSON}, v.Content, nil
	case File:
		return head{Form: formFile, Name: v.Name, Type: v.Type}, v.Content, nil
	case Redirect, Page:
		return head{}, nil, fmt.Errorf("rest: a %T cannot be kept for repetitions", value)
	}
	text, err := encodeJSON(value)
	if err != nil {
		return head{}, nil, err
	}
	return head{Form: formJSON}, bytes.NewReader(text), nil
}

// replay is the inverse of keptForm: it returns the value or the fault of the kept answer.
func (p *repetition) replay(call *call) (any, error) {
	call.object = "answer to an earlier request"
	text, body, _ := p.keyed.Kept()
	var h head
	if err := json.Unmarshal(text, &h); err != nil {
		return nil, fmt.Errorf("rest: an answer that was kept: %w", err)
	}
	if h.Request != "" {
		call.object = strings.TrimSuffix("answer to request "+h.Request+", "+h.Object, ", ")
	}
	if body == nil {
		body = bytes.NewReader(nil)
	}
	switch h.Form {
	case formNone:
		return None{}, nil
	case formStream:
		return Stream{body, h.Header}, nil
	case formJSON:
		return JSON{body}, nil
	case formFile:
		return File{Content: body, Name: h.Name, Type: h.Type}, nil
	case formFault:
		return nil, fault.New(h.Code, h.Message)
	}
	return nil, fmt.Errorf("rest: an answer was kept in the form %q, which this release does not know", h.Form)
}

// keep makes an answer durable, except for record.
func (p *repetition) keep(ctx context.Context, call *call, value any) (record recordFunc, err error) {
	h, body, err := keptForm(value)
	if err != nil {
		return nil, err
	}
	return p.keepAs(ctx, call, h, body)
}

// recordFunc is the record of [KeyedRequest.Keep].
type recordFunc = func(ctx context.Context, outcome *audit.Entry) error

func (p *repetition) keepAs(ctx context.Context, call *call, h head, body Content) (record recordFunc, err error) {
	h.Request, h.Object = call.id, call.object
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	return p.keyed.Keep(ctx, text, body)
}

// Keep is for an operation that changes something besides its answer. Call record in the
// transaction that makes the change. record writes the audit entry of the outcome and, for
// a request with an Idempotency-Key, the answer. So either all of them are durable or none.
// value is what the operation then returns. Set the object of the request before (see
// [Concerning]).
func Keep(ctx context.Context, value any) (record func(ctx context.Context) error, err error) {
	_, call := callOf(ctx)
	var kept recordFunc
	if p := call.repetition; p != nil && p.keyed != nil {
		if kept, err = p.keep(ctx, call, value); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) (err error) {
		switch {
		case kept != nil:
			err = kept(ctx, call.handler.done(call, audit.OK))
		case call.handler != nil:
			err = call.handler.record(ctx, call, audit.Done, audit.OK)
		}
		if err != nil {
			return err
		}
		call.promised = true // if the transaction is rolled back, the operation fails
		return nil
	}, nil
}

// KeepEntry is Keep for an operation that can add an audit entry in the statement that makes
// its change. It returns either the entries, for a request without an Idempotency-Key, or the
// record.
func KeepEntry(ctx context.Context, value any) (kept audit.Beside, err error) {
	_, call := callOf(ctx)
	if p := call.repetition; call.handler != nil && !call.handler.unaudited && (p == nil || p.keyed == nil) {
		call.promised = true // an operation that does not make its change fails
		return audit.Beside{Entry: call.handler.done(call, audit.OK), Attempt: call.deferred}, nil
	}
	kept.Record, err = Keep(ctx, value)
	return kept, err
}

// transient are the codes of faults that a repetition may not meet again. The others pass if
// they say when (see [fault.Error.After]).
var transient = map[string]bool{
	fault.Failed: true, fault.Lost: true, fault.Unavailable: true, fault.TooManyRequests: true, fault.Unauthorized: true, fault.TooLarge: true,
}

// settle ends the lease of a request: it returns the kept answer, or keeps the new one.
func (h *handler) settle(ctx context.Context, call *call, p *repetition, value any, err error) (any, error) {
	switch {
	case errors.Is(err, errKept):
		return p.replay(call)
	case p.keyed == nil || err == nil && call.promised:
		return value, err
	}
	ctx = context.WithoutCancel(ctx) // the result counts even if the client has left
	var own Refusal
	f, refused := fault.As(err)
	switch {
	case err == nil:
		var record recordFunc
		if record, err = p.keep(ctx, call, value); err == nil {
			var outcome *audit.Entry
			if name := cmp.Or(call.refusal, audit.OK); h.Right != Anyone || h.worth(call, name) {
				outcome = h.done(call, name)
			}
			if err = record(ctx, outcome); err == nil {
				call.promised = outcome != nil
				return value, nil
			}
		}
		value = nil
	case refused && !call.waits && !transient[f.Code] && f.After == 0 && !canceled(ctx, err) && !errors.As(err, &own):
		record, e := p.keepAs(ctx, call, head{Form: formFault, Code: f.Code, Message: f.Message}, nil)
		if e == nil {
			e = record(ctx, nil)
		}
		if e == nil {
			return nil, err
		}
		h.gate.Log.ErrorContext(ctx, "keeping a refusal", "request_id", call.id, "error", e)
	}
	if err != nil {
		if e := p.keyed.Release(ctx); e != nil {
			h.gate.Log.ErrorContext(ctx, "releasing an "+keyHeader, "request_id", call.id, "error", e)
		}
	}
	return value, err
}
