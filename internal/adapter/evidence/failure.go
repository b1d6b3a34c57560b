// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"tamga/internal/adapter/guard"
	"tamga/sig"
)

// The reason for missing evidence has two readers. The client of the service reads the
// text: which service failed and why, without details of our network. The log has the
// details too: resolved addresses and errors of the system.

// outage is a failure that may be temporary: no connection, no answer in time, or a
// service that reports an internal problem.
type outage struct{ err error }

func (e *outage) Error() string { return e.err.Error() }
func (e *outage) Unwrap() error { return e.err }

func isOutage(err error) bool {
	var o *outage
	return errors.As(err, &o)
}

func outagef(format string, args ...any) error { return &outage{fmt.Errorf(format, args...)} }

// detailed is a text for clients with a detail for the log.
type detailed struct {
	text   string
	detail error
}

func (e *detailed) Error() string { return e.text }
func (e *detailed) Unwrap() error { return e.detail }

// transportError returns the reason for a missing answer.
func transportError(err error) error {
	var refused *guard.Refused
	if errors.As(err, &refused) {
		return refused
	}
	err = guard.WithoutURL(err)
	text := "it cannot be reached"
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		text = "its name is not known"
	case errors.As(err, &name):
		text = "its name could not be resolved"
	case errors.As(err, &certificate):
		text = "its TLS certificate is not trusted"
	case errors.Is(err, syscall.ECONNREFUSED):
		text = "it refuses the connection"
	case errors.Is(err, syscall.ECONNRESET):
		text = "it closed the connection"
	}
	return &outage{&detailed{text, err}}
}

// unavailable returns the error for missing evidence: the text with the reason of each
// failure, and the details in Err.
func unavailable(what, text string, failed []error) error {
	e := &sig.ErrEvidence{What: what, Text: text}
	var texts, details []string
	for _, err := range failed {
		// Equal failures of repeated requests are listed once.
		if t := err.Error(); len(texts) == 0 || texts[len(texts)-1] != t {
			texts = append(texts, t)
		}
		if d := detailOf(err); d != "" && (len(details) == 0 || details[len(details)-1] != d) {
			details = append(details, d)
		}
	}
	if len(texts) > 0 {
		e.Text += ": " + strings.Join(texts, "; ")
	}
	if len(details) > 0 {
		e.Err = errors.New(strings.Join(details, "; "))
	}
	return e
}

func detailOf(err error) string {
	var refused *guard.Refused
	var d *detailed
	switch {
	case errors.As(err, &refused):
		return refused.Detail
	case errors.As(err, &d) && d.detail != nil:
		return d.detail.Error()
	}
	return ""
}

// ended returns the error of the context if it has ended and err is not nil, otherwise
// err.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
