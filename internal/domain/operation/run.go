// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"context"
	"encoding/json"
	"fmt"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/policy"
)

// Run is one attempt at an operation.
type Run struct {
	Operation
	// PIN was given with the request that carries the operation out; "": none.
	PIN string

	service *Service
	kind    *Kind
	order   *Order
	who     audit.Principal // who carries it out
	record  *confirm.Record // nil: at once, without a row
	token   string          // of the lease
	secret  []byte          // sealed

	result any
	spent  bool
}

// Confirmed reports whether the user has confirmed exactly this.
func (r *Run) Confirmed() bool { return r.record != nil }

// Asked returns the action that the policies were asked about.
func (r *Run) Asked() policy.Action { return r.order.Action }

// Plan reads Order.Plan into a value of the same type.
func (r *Run) Plan(into any) error { return r.order.ReadPlan(into) }

// Secret reads Order.Secret into a value of the same type. Without a secret it changes nothing.
func (r *Run) Secret(into any) error {
	if r.record == nil {
		if r.order.Secret == nil {
			return nil
		}
		text, err := json.Marshal(r.order.Secret)
		if err != nil {
			return err
		}
		defer clear(text)
		return json.Unmarshal(text, into)
	}
	if len(r.secret) == 0 {
		return nil
	}
	text, err := r.service.deps.Vault.Open(secretPlace(r.ID), r.secret)
	if err != nil {
		return err
	}
	defer clear(text)
	if json.Unmarshal(text, into) != nil { // its error may quote the secret
		return fmt.Errorf("operation: the secret of operation %s cannot be read", r.ID)
	}
	return nil
}

// Spend ends the operation. change makes the changes of the kind in the transaction that ends it, maybe
// several times, and returns the result. The error of a lost lease is the fault of what has become of the
// operation meanwhile.
//
// Spend commits, so it must not be called inside of a transaction.
func (r *Run) Spend(ctx context.Context, change func(ctx context.Context) (result any, err error)) error {
	s := r.service
	if err := s.deps.Store.Outside(ctx); err != nil {
		return err
	}
	if r.record == nil {
		err := s.deps.Store.Atomic(ctx, lock.User(r.Owner.UserID), func(ctx context.Context) (err error) {
			r.result, err = change(ctx)
			return err
		})
		r.spent = err == nil
		return err
	}
	ctx = context.WithoutCancel(ctx) // the result exists, so it is stored even if the client is gone
	err := s.deps.Store.Atomic(ctx, lock.User(r.Owner.UserID), func(ctx context.Context) error {
		return s.deps.Confirmations.Complete(ctx, r.who, r.record, func(ctx context.Context) error { return r.spend(ctx, change) })
	})
	r.spent = err == nil
	return err
}

// spend is the part of Spend between the move of the confirmation and its events. It locks in the order of
// locks: the operation first, which also finds out early that the lease is lost.
func (r *Run) spend(ctx context.Context, change func(ctx context.Context) (any, error)) error {
	s := r.service
	op := r.Operation
	now := s.now()
	op.State, op.UpdatedAt, op.CompletedAt, op.KeepUntil = Completed, now, now, now.Add(s.settings.Keep)
	if last := r.record.CompleteBefore; op.KeepUntil.Before(last) { // a repeated call finds the answer until then
		op.KeepUntil = last
	}
	held, err := s.deps.Store.SpendOperation(ctx, op.ID, r.token, now, op.KeepUntil)
	if err == nil && !held {
		err = lease.ErrLost
	}
	if err != nil {
		return fault.Rollback(err)
	}
	if r.result, err = change(ctx); err != nil {
		return fault.Rollback(err)
	}
	if render := s.renderers[op.Form][op.Kind]; render != nil && !r.kind.Handed {
		if op.Answer, err = render(&op, r.result); err != nil {
			return fault.Rollback(err)
		}
	}
	if len(op.Answer) > 0 {
		sealed, err := s.deps.Vault.Seal(AnswerPlace(op.ID), op.Answer)
		if err == nil {
			err = s.deps.Store.SetAnswer(ctx, op.ID, sealed)
		}
		if err != nil {
			return fault.Rollback(err)
		}
	}
	r.Operation = op
	return nil
}

// check reports a kind that did not end with Spend.
func (r *Run) check() error {
	if r.spent {
		return nil
	}
	return fmt.Errorf("operation: %q was carried out and is not spent", r.Kind)
}
