// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"strconv"
	"time"

	"tamga/internal/domain/fault"
)

// statuses lists the codes whose status is not 400.
var statuses = map[string]int{
	fault.Unauthorized:        http.StatusUnauthorized,
	fault.UserNotFound:        http.StatusNotFound,
	fault.AccessDenied:        http.StatusForbidden,
	fault.NotFound:            http.StatusNotFound,
	fault.CertificateNotFound: http.StatusNotFound,
	fault.RequestNotFound:     http.StatusNotFound,
	fault.KeyReused:           http.StatusUnprocessableEntity,
	fault.TooLarge:            http.StatusRequestEntityTooLarge,
	fault.Encoding:            http.StatusUnsupportedMediaType,
	fault.TooManyRequests:     http.StatusTooManyRequests,
	fault.Unavailable:         http.StatusServiceUnavailable,
	fault.Closed:              http.StatusServiceUnavailable,
	fault.Lost:                http.StatusInternalServerError,
	fault.Failed:              http.StatusInternalServerError,
}

// pauseUnavailable is the Retry-After of a 503 whose fault sets none.
const pauseUnavailable = 5 * time.Second

// available returns the fault that a client gets for an outage of the database or of the
// document storage. It returns any other error as it is. A Refusal stays as it is, too.
func available(err error) error {
	var own Refusal
	if o, is := fault.AsOutage(err); is && !errors.As(err, &own) {
		return o.Fault()
	}
	return err
}

// clientGone is the status in the log and the metrics if the client has left.
const clientGone = 499

// Refusal is an error with an answer of its own, for an interface whose error bodies differ
// from [Failure].
type Refusal interface {
	error
	// Answer returns the status, additional headers and the value of the body. The value is
	// a Page if people read it.
	Answer() (status int, header http.Header, body any)
	// Outcome is the code for the audit log and the log.
	Outcome() string
}

// Failure is the body of an answer that is not a success. Its three names serve three kinds
// of clients.
type Failure struct {
	Message     string `json:"Message"` // the code, or the sentence of an internal error
	Error       string `json:"error"`   // the code
	Description string `json:"error_description"`
}

// sentences are the Messages that existing clients expect instead of the code.
var sentences = map[string]string{fault.UserNotFound: "User not found", fault.Lost: internal.Message}

// internal is the answer to an error that is no fault. The sentence is the one of the
// specification.
var internal = Failure{Message: "An error has occurred", Error: outcomeInternal, Description: "An error has occurred"}

// refuse answers err and notes the outcome.
func (h *handler) refuse(ctx context.Context, w http.ResponseWriter, call *call, err error) {
	call.outcome = outcomeOf(ctx, err)
	if !canceled(ctx, err) {
		err = available(err)
	}
	var lost *errLost
	var own Refusal
	switch {
	case errors.As(err, &lost):
		// A client that closed only its sending direction still gets the reason.
		w.Header().Set("Connection", "close")
		fail(w, fault.New(fault.InvalidParameters, "the request body broke off before its end"))
		return
	case canceled(ctx, err):
		w.WriteHeader(clientGone)
		return
	case errors.As(err, &own):
		Answer(w, own)
		return
	}
	if f, ok := fault.As(err); !ok {
		h.gate.Log.ErrorContext(ctx, "internal error", "request_id", call.id, "route", h.Name, "error", err)
	} else if f.Err != nil {
		level := slog.LevelInfo
		if statuses[f.Code] >= http.StatusInternalServerError {
			level = slog.LevelWarn
		}
		if f.Code == fault.Lost { // only a person can bring it back
			level = slog.LevelError
		}
		h.gate.Log.Log(ctx, level, "refused", "request_id", call.id, "route", h.Name, "code", f.Code, "cause", f.Err)
	}
	if h.gate.Present != nil {
		Answer(w, h.gate.Present(ctx, err))
		return
	}
	fail(w, err)
}

// Answer sends a refusal. Errors of the connection are ignored: the request was refused.
func Answer(w http.ResponseWriter, r Refusal) {
	status, header, body := r.Answer()
	maps.Copy(w.Header(), header)
	page, isPage := body.(Page)
	if !isPage {
		writeJSON(w, status, body)
		return
	}
	page.Status = status
	if a, err := prepare(page); err == nil {
		a.send(w)
	}
}

// HeadOf returns the status and the headers that a fault is answered with.
func HeadOf(f *fault.Error) (int, http.Header) {
	status, listed := statuses[f.Code]
	if !listed {
		status = http.StatusBadRequest
	}
	header := http.Header{}
	if status == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", "Bearer")
	}
	after := f.After
	if after == 0 && status == http.StatusServiceUnavailable {
		after = pauseUnavailable
	}
	if after > 0 {
		header.Set("Retry-After", RetryAfter(after))
	}
	return status, header
}

// fail answers err in the form of Failure.
func fail(w http.ResponseWriter, err error) {
	f, ok := fault.As(err)
	if !ok {
		writeJSON(w, http.StatusInternalServerError, internal)
		return
	}
	status, header := HeadOf(f)
	maps.Copy(w.Header(), header)
	writeJSON(w, status, Failure{Message: cmp.Or(sentences[f.Code], f.Code), Error: f.Code, Description: f.Message})
}

// RetryAfter returns the value of the header of this name: whole seconds, rounded up.
func RetryAfter(after time.Duration) string {
	return strconv.FormatInt(int64((after+time.Second-1)/time.Second), 10)
}

// writeJSON answers a small value. Errors of the connection are ignored.
func writeJSON(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte("{}")
	}
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	w.Write(text)
}
