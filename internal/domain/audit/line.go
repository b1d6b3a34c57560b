// SPDX-License-Identifier: Apache-2.0

package audit

import "time"

// Line is an audit entry in JSON, as commands print it and pages export it.
type Line struct {
	At        time.Time `json:"at"`
	RequestID string    `json:"request_id"`
	Operation string    `json:"operation"`
	Phase     string    `json:"phase"`
	Outcome   string    `json:"outcome"`
	Object    string    `json:"object"`
	Detail    string    `json:"detail"`
	UserID    string    `json:"user_id"`
	Login     string    `json:"login"`
	Group     string    `json:"group"`
	Operator  bool      `json:"operator"`
	ClientID  string    `json:"client_id"`
	TokenID   string    `json:"token_id"`
	Method    string    `json:"method"`
	Actor     string    `json:"actor"`
	Remote    string    `json:"remote"`
	Micros    int64     `json:"duration_us"` // microseconds

	Correlation string `json:"client_request_id,omitempty"` // given by a known caller
}

// LineOf returns an entry as a Line.
func LineOf(e *Entry) Line {
	p := &e.Principal
	return Line{
		e.At, e.RequestID, e.Operation, e.Phase, e.Outcome, e.Object, e.Detail,
		p.UserID, p.Login, p.Group, p.Operator, p.ClientID, p.TokenID, p.Method, p.Actor, e.Remote, e.Duration.Microseconds(), e.Correlation,
	}
}
