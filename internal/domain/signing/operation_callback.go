// SPDX-License-Identifier: Apache-2.0

package signing

import (
	"context"
	"fmt"
	"time"

	"tamga/internal/domain/lease"
	"tamga/internal/domain/notify"
)

// Callbacks sends requests to addresses that clients choose.
type Callbacks interface {
	// Check refuses an address that can be refused without resolving it. The fault is
	// invalid_parameters.
	Check(address string) error
	// Post sends body and may write it more than once. id is the same for every attempt,
	// so that a receiver can detect a repetition. An error made by [notify.Permanent]
	// means that no retry will help. No error quotes the address or the body.
	Post(ctx context.Context, address, id string, body Result) error
}

// CallNext makes one attempt at the callback that has been due for the longest time. It
// reports false if no callback is due.
func (s *Operations) CallNext(ctx context.Context) (worked bool, err error) {
	l, err := s.leases().New()
	if err != nil {
		return false, err
	}
	now := s.Signer.Now()
	c, found, err := s.CallbackStore.ClaimCallback(ctx, l.Token, now, l.Until)
	if err != nil || !found {
		return false, err
	}
	err = s.leases().Hold(ctx, l, func(ctx context.Context, l lease.Lease) (bool, error) {
		return s.CallbackStore.ExtendCallback(ctx, c.OperationID, l.Token, l.Until)
	}, func(ctx context.Context) error { return s.call(ctx, c) })
	end := CallbackEnd{Taken: err == nil}
	if err != nil {
		end.Error = oneLine(err.Error())
		end.Again = s.Signer.Now().Add(s.pause(c.Attempts))
		stopped := ctx.Err() != nil
		if stopped {
			end.Again = now
		}
		if !stopped && (notify.IsPermanent(err) || c.Attempts >= s.Settings.Attempts) || !end.Again.Before(c.ExpiresAt) {
			end.Again = time.Time{}
			err = fmt.Errorf("signing: the callback of operation %s is given up: %w", c.OperationID, err)
		} else {
			err = nil
		}
	}
	// A sent callback must not be sent again because the process is stopping.
	if e := s.CallbackStore.FinishCallback(context.WithoutCancel(ctx), c.OperationID, l.Token, end); e != nil {
		return true, e
	}
	return true, err
}

// call sends the current state of an operation.
func (s *Operations) call(ctx context.Context, c *CallbackRecord) error {
	r, found, err := s.Store.FindOperation(ctx, c.OperationID)
	if err != nil {
		return err
	}
	if !found {
		return notify.Permanent(fmt.Errorf("the operation is not stored any more"))
	}
	op, err := s.withResults(ctx, r)
	if err != nil {
		return err
	}
	defer op.Close()
	body, err := s.Render(op)
	if err != nil {
		return err
	}
	return s.Callbacks.Post(ctx, c.URL, op.ID, body)
}
