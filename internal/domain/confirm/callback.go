// SPDX-License-Identifier: Apache-2.0

package confirm

import (
	"context"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
)

// CallbackStore keeps the addresses that clients name for callbacks. It uses the same
// database as Store.
type CallbackStore interface {
	// SetCallback stores the address of an open record that is not confirmed yet.
	SetCallback(ctx context.Context, id, address string) error
}

// Callbacks are how clients learn that a user has answered. nil: the installation makes no
// callbacks.
type Callbacks struct {
	Store CallbackStore
	// Check refuses an address that can be refused by its text. The fault is
	// invalid_parameters.
	Check func(address string) error
}

// Render returns the body of the callback of a record, in the form of the interface that
// clients call.
type Render func(r *Record) (body string, err error)

// maxCallback is the longest address of a callback, in bytes.
const maxCallback = 2048

// setCallback stores the address that a call names. Later calls of a client name none.
func (s *Service) setCallback(ctx context.Context, r *Record, address string) error {
	if address == "" || address == r.Callback {
		return nil
	}
	switch {
	case s.deps.Callbacks == nil:
		return fault.New(fault.InvalidParameters, "CallbackUri: this installation makes no callbacks: leave it out and poll")
	case len(address) > maxCallback:
		return fault.Newf(fault.InvalidParameters, "CallbackUri has more than %d bytes", maxCallback)
	}
	if err := s.deps.Callbacks.Check(address); err != nil {
		return err
	}
	if err := s.deps.Callbacks.Store.SetCallback(ctx, r.ID, address); err != nil {
		return err
	}
	r.Callback = address
	return nil
}

// answered reports whether the present state is the answer that a client waits for. What
// follows a confirmation is done by the client itself.
func (r *Record) answered() bool {
	return r.State == Confirmed || r.State.Final() && r.ConfirmedAt.IsZero()
}

// call orders the callback of a record that has a new state, in the transaction of ctx.
func (c *Canceller) call(ctx context.Context, who audit.Principal, r *Record) error {
	if r.Callback == "" || !r.answered() {
		return nil
	}
	body, err := c.needs.Render(r)
	if err != nil {
		return err
	}
	return c.needs.Events.Call(ctx, notify.Call{
		To: r.Callback, About: AuditOperation + string(r.State), UserID: r.UserID, Actor: who.UserID, Body: body,
	})
}
