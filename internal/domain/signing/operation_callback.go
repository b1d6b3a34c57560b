// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"errors"

	"tamga/internal/domain/fault"
	"tamga/internal/domain/notify"
)

// Callbacks tell of the end of operations at addresses that clients choose. Any process stores them, with
// the end. Those that can send them do.
type Callbacks struct {
	// Messages store a request in the transaction of ctx. [notify.Service] implements it.
	Messages interface {
		Call(ctx context.Context, c notify.Call) error
	}
	// Check refuses an address that can be refused without resolving it. The fault is
	// invalid_parameters. nil: Callback is refused.
	Check func(address string) error
	// Render makes the body of the request. It may be written more than once, until the operation is
	// closed.
	Render func(o *Operation) (Result, error)
}

// CallbackForm is the form of the bodies that [Operations.OpenBody] opens.
const CallbackForm = "operation"

// call stores the callback of an operation that actor has ended, in the transaction of ctx. Its
// identifier is that of the operation. Errors roll back.
func (s *Operations) call(ctx context.Context, actor string, r *OperationRecord) error {
	if r.Callback == "" {
		return nil
	}
	return fault.Rollback(s.Callbacks.Messages.Call(ctx, notify.Call{
		ID: r.ID, To: r.Callback, About: "Operation" + string(r.State), UserID: r.UserID, Actor: actor, Form: CallbackForm, Expires: r.KeepUntil,
	}))
}

// OpenBody implements [notify.Bodies]: the body is the present state of the operation.
func (s *Operations) OpenBody(ctx context.Context, id string) (notify.Body, error) {
	r, found, err := s.Store.FindOperation(ctx, id)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, notify.Permanent(errors.New("the operation is not stored any more"))
	}
	op, err := s.withResults(ctx, r)
	if err != nil {
		return nil, err
	}
	body, err := s.Callbacks.Render(op)
	if err != nil {
		return nil, errors.Join(err, op.Close())
	}
	return &callbackBody{body, op}, nil
}

// callbackBody reads the results of its operation.
type callbackBody struct {
	Result
	op *Operation
}

func (b *callbackBody) Close() error { return b.op.Close() }
