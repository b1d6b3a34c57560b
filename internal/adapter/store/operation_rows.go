// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"time"

	"tamga/internal/domain/lease"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/operation"
)

// OperationRows implements operation.Store. It has the rows of the table operations with a kind.
type OperationRows struct{ *DB }

var _ operation.Store = OperationRows{}

// Atomic implements operation.Store; see DB.locked.
func (s OperationRows) Atomic(ctx context.Context, set lock.Set, fn func(ctx context.Context) error) error {
	return s.locked(ctx, set, fn)
}

// Outside implements operation.Store.
func (s OperationRows) Outside(ctx context.Context) error {
	if s.transaction(ctx) != nil {
		return errors.New("store: an operation is spent inside a transaction that may still roll back")
	}
	return nil
}

const operationRowColumns = `id, kind, form, owner, action, state, parameters, plan, secret, answer,
	created_at, updated_at, confirm_before, confirmed_at, complete_before, completed_at, keep_until`

func scanOperationRow(r row) (*operation.Stored, error) {
	o := &operation.Stored{}
	err := r.Scan(&o.ID, &o.Kind, &o.Form, &o.Principal, &o.Action, &o.State, &o.Parameters, &o.Plan, &o.Secret, &o.Answer,
		(*timeField)(&o.CreatedAt), (*timeField)(&o.UpdatedAt), (*timeField)(&o.ConfirmBefore), (*timeField)(&o.ConfirmedAt),
		(*timeField)(&o.CompleteBefore), (*timeField)(&o.CompletedAt), (*timeField)(&o.KeepUntil))
	return o, err
}

// AddOperation implements operation.Store. The confirmation of the operation counts in the quota.
func (s OperationRows) AddOperation(ctx context.Context, o *operation.Stored) error {
	_, err := s.exec(ctx, `INSERT INTO operations (id, kind, form, user_id, owner, action, state, is_async, parameters, description, documents, plan, secret, pin,
			contents, octets, results, answer, callback, code, message, attempts, due_at, lease, leased_until,
			created_at, updated_at, confirm_before, confirmed_at, completed_at, complete_before, keep_until)
		VALUES ($1, $2, $3, $4, $5, $6, $7, FALSE, $8, '', $9, $10, $11, $9, '', 0, '', $9, '', '', '', 0, 0, '', 0, $12, $13, $14, 0, 0, 0, 0)`,
		o.ID, o.Kind, string(o.Form), o.Owner.UserID, o.Principal, o.Action, string(o.State), o.Parameters, []byte{}, notNull(o.Plan), notNull(o.Secret),
		millis(o.CreatedAt), millis(o.UpdatedAt), millis(o.ConfirmBefore))
	return err
}

// FindOperation implements operation.Store.
func (s OperationRows) FindOperation(ctx context.Context, id string) (*operation.Stored, bool, error) {
	return one(ctx, s.DB, scanOperationRow, "SELECT "+operationRowColumns+" FROM operations WHERE id = $1 AND kind <> ''", id)
}

// ClaimOperation implements operation.Store.
func (s OperationRows) ClaimOperation(ctx context.Context, id string, l lease.Lease, now time.Time) (*operation.Stored, bool, error) {
	return returning(ctx, s.DB, scanOperationRow, leasedOperations.claimOne("kind <> '' AND complete_before > $4", operationRowColumns),
		id, l.Token, millis(l.Until), millis(now))
}

// ExtendOperation implements operation.Store.
func (s OperationRows) ExtendOperation(ctx context.Context, id string, l lease.Lease) (bool, error) {
	return leasedOperations.extend(ctx, s.DB, l.Token, l.Until, id)
}

// ReleaseOperation implements operation.Store.
func (s OperationRows) ReleaseOperation(ctx context.Context, id, token string) error {
	return leasedOperations.release(ctx, s.DB, id, token)
}

// SpendOperation implements operation.Store.
func (s OperationRows) SpendOperation(ctx context.Context, id, token string, at, keepUntil time.Time) (bool, error) {
	n, err := s.exec(ctx, leasedOperations.finish("state = 'Completed', updated_at = $3, completed_at = $3, keep_until = $4, plan = $5, secret = $5"),
		id, token, millis(at), millis(keepUntil), []byte{})
	return n == 1, err
}

// SetAnswer implements operation.Store.
func (s OperationRows) SetAnswer(ctx context.Context, id string, sealed []byte) error {
	_, err := s.exec(ctx, "UPDATE operations SET answer = $2 WHERE id = $1", id, notNull(sealed))
	return err
}

// MoveOperation implements operation.MoveStore.
func (s OperationRows) MoveOperation(ctx context.Context, id string, m operation.Move) error {
	if m.To == operation.Confirmed {
		_, err := s.exec(ctx, `UPDATE operations SET state = 'Confirmed', updated_at = $2, confirmed_at = $2, complete_before = $3
			WHERE id = $1 AND kind <> '' AND keep_until = 0`, id, millis(m.At), millis(m.CompleteBefore))
		return err
	}
	_, err := s.exec(ctx, `UPDATE operations SET state = $2, updated_at = $3, completed_at = $3, keep_until = $4, code = $5, message = $6,
			plan = $7, secret = $7, `+freed+` WHERE id = $1 AND kind <> '' AND keep_until = 0`,
		id, string(m.To), millis(m.At), millis(m.KeepUntil), m.Code, m.Message, []byte{})
	return err
}
