// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"time"

	"tamga/internal/domain/confirm"
	"tamga/internal/domain/signing"
)

// Operations implements signing.OperationStore.
type Operations struct{ *DB }

var _ signing.OperationStore = Operations{}

// Atomic implements signing.OperationStore. The changes at the end of an operation share
// a flush to disk with other requests.
func (s Operations) Atomic(ctx context.Context, fn func(ctx context.Context) error) error {
	return s.Unit(ctx, fn)
}

const operationFields = `id, user_id, owner, action, state, is_async, parameters, description, documents, plan, pin,
	contents, octets, results, answer, callback, code, message, attempts,
	created_at, updated_at, confirmed_at, completed_at, complete_before, keep_until, leased_until`

// operationColumns are without the callback: only of one operation is it asked whether it was accepted.
const operationColumns = operationFields + ", FALSE"

func scanOperation(r row) (*signing.OperationRecord, error) {
	o := &signing.OperationRecord{}
	err := r.Scan(&o.ID, &o.UserID, &o.Owner, &o.Action, &o.State, &o.Async, &o.Parameters, &o.Description, &o.Documents, &o.Plan, &o.PIN,
		&o.Contents, &o.Bytes, &o.Results, &o.Answer, &o.Callback, &o.Code, &o.Message, &o.Attempts,
		(*timeField)(&o.CreatedAt), (*timeField)(&o.UpdatedAt), (*timeField)(&o.ConfirmedAt), (*timeField)(&o.CompletedAt),
		(*timeField)(&o.CompleteBefore), (*timeField)(&o.KeepUntil), (*timeField)(&o.LeasedUntil), &o.Called)
	return o, err
}

// AddOperation implements signing.OperationStore. A user has few waiting operations, so
// they are counted each time.
func (s Operations) AddOperation(ctx context.Context, o *signing.OperationRecord, waiting signing.Quota) (bool, error) {
	over := !o.State.Active()
	n, err := s.exec(ctx, `INSERT INTO operations (id, user_id, owner, action, state, is_async, parameters, description, documents, plan, pin,
			contents, octets, results, answer, callback, code, message, attempts, due_at, lease, leased_until,
			created_at, updated_at, confirmed_at, completed_at, complete_before, keep_until)
		SELECT $1, CAST($2 AS TEXT), $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, CAST($13 AS BIGINT), $14, $27, $15, $16, $17, 0, CAST($18 AS BIGINT), '', 0,
			CAST($18 AS BIGINT), CAST($19 AS BIGINT), CAST($20 AS BIGINT), CAST($21 AS BIGINT), CAST($22 AS BIGINT), CAST($23 AS BIGINT)
		WHERE CAST($24 AS BOOLEAN) AND CAST($13 AS BIGINT) = 0 OR
			(CAST($24 AS BOOLEAN) OR (SELECT COUNT(*) FROM operations WHERE user_id = $2 AND keep_until = 0 AND kind = '') < $25) AND
			(SELECT COALESCE(SUM(octets), 0) FROM operations WHERE user_id = $2 AND octets > 0) + CAST($13 AS BIGINT) <= $26`,
		o.ID, o.UserID, notNull(o.Owner), o.Action, string(o.State), o.Async, o.Parameters, o.Description, notNull(o.Documents), notNull(o.Plan), notNull(o.PIN),
		o.Contents, o.Bytes, o.Results, o.Callback, o.Code, o.Message,
		millis(o.CreatedAt), millis(o.UpdatedAt), millis(o.ConfirmedAt), millis(o.CompletedAt), millis(o.CompleteBefore), millis(o.KeepUntil),
		over, waiting.Objects, waiting.Bytes, notNull(o.Answer))
	return n == 1, err
}

// FindOperation implements signing.OperationStore.
func (s Operations) FindOperation(ctx context.Context, id string) (*signing.OperationRecord, bool, error) {
	return one(ctx, s.DB, scanOperation, "SELECT "+operationFields+`, callback <> '' AND EXISTS (SELECT 1 FROM outbox WHERE message_id = $1 AND state = 'sent')
		FROM operations WHERE id = $1 AND kind = ''`, id)
}

// ActiveOperations implements signing.OperationStore.
func (s Operations) ActiveOperations(ctx context.Context, userID string, now time.Time, limit int) ([]*signing.OperationRecord, error) {
	return all(ctx, s.DB, scanOperation, "SELECT "+operationColumns+` FROM operations
		WHERE user_id = $1 AND keep_until = 0 AND kind = '' AND (complete_before > $2 OR leased_until > $2)
		ORDER BY created_at, id LIMIT $3`, userID, millis(now), limit)
}

// UnderWay implements signing.UnderWayStore.
func (s Operations) UnderWay(ctx context.Context, operatorID string, after signing.UnderWay, limit int, now time.Time) ([]signing.UnderWay, error) {
	few, err := s.reachesFew(ctx, operatorID)
	if err != nil {
		return nil, err
	}
	begin, from, end := "", "%s x CROSS JOIN users u", " AND "+reaches
	if few {
		begin, from, end = people, "people p CROSS JOIN %s x CROSS JOIN users u", " AND x.user_id = p.id"
	}
	part := func(name, table, where string) string {
		return "SELECT * FROM (SELECT x.id AS id, x.user_id AS user_id, u.login AS login, u.display_name AS display_name, x.action AS action, x.state AS state, x.created_at AS created_at" +
			" FROM " + fmt.Sprintf(from, table) + " WHERE x.user_id = u.id AND " + where + " AND (x.created_at, x.id) > ($3, $4)" + end +
			" ORDER BY x.created_at, x.id LIMIT $5) AS " + name
	}
	return all(ctx, s.DB, scanUnderWay,
		begin+part("begun", "operations", "x.keep_until = 0 AND x.kind = '' AND (x.complete_before > $2 OR x.leased_until > $2)")+" UNION ALL "+
			part("waiting", "confirmations", "x.ended_at = 0 AND x.due_at > $2 AND x.purpose = '"+string(confirm.ForOperation)+"'")+
			" ORDER BY created_at, id LIMIT $5", operatorID, millis(now), millis(after.CreatedAt), after.ID, limit)
}

func scanUnderWay(r row) (u signing.UnderWay, err error) {
	err = r.Scan(&u.ID, &u.UserID, &u.Login, &u.DisplayName, &u.Action, &u.State, (*timeField)(&u.CreatedAt))
	return u, err
}

// ClaimOperation implements signing.OperationStore.
func (s Operations) ClaimOperation(ctx context.Context, lease string, now, until time.Time) (*signing.OperationRecord, bool, error) {
	return returning(ctx, s.DB, scanOperation, leasedOperations.claimNext(s.DB, "is_async AND keep_until = 0 AND kind = '' AND complete_before > $3", operationColumns),
		lease, millis(until), millis(now))
}

// ExtendOperation implements signing.OperationStore.
func (s Operations) ExtendOperation(ctx context.Context, id, lease string, until time.Time) (bool, error) {
	return leasedOperations.extend(ctx, s.DB, lease, until, id)
}

// ReleaseOperation implements signing.OperationStore.
func (s Operations) ReleaseOperation(ctx context.Context, id, lease string, due time.Time, given bool) error {
	back := 0
	if given {
		back = 1
	}
	_, err := s.exec(ctx, leasedOperations.finish("due_at = $3, attempts = attempts - $4"), id, lease, millis(due), back)
	return err
}

// FinishOperation implements signing.OperationStore.
func (s Operations) FinishOperation(ctx context.Context, o *signing.OperationRecord, lease string) (bool, error) {
	n, err := s.exec(ctx, leasedOperations.finish(`state = $3, documents = $4, results = $5, code = $6, message = $7,
			updated_at = $8, completed_at = $9, keep_until = $10, plan = $11, pin = $11, octets = $12, contents = ''`),
		o.ID, lease, string(o.State), notNull(o.Documents), o.Results, o.Code, o.Message,
		millis(o.UpdatedAt), millis(o.CompletedAt), millis(o.KeepUntil), []byte{}, o.Bytes)
	return n == 1, err
}

// CancelOperation implements signing.OperationStore.
func (s Operations) CancelOperation(ctx context.Context, id, userID string, now, keepUntil time.Time) (bool, error) {
	n, err := s.exec(ctx, `UPDATE operations SET state = 'Cancelled',
			updated_at = $3, completed_at = $3, keep_until = $4, plan = $5, pin = $5, octets = 0, contents = '', `+freed+`
		WHERE id = $1 AND user_id = $2 AND keep_until = 0 AND kind = '' AND (complete_before > $3 OR leased_until > $3)`,
		id, userID, millis(now), millis(keepUntil), []byte{})
	return n == 1, err
}

// ExpireOperations implements signing.OperationStore. A query in IN could run, and skip what it has locked,
// more than once.
func (s Operations) ExpireOperations(ctx context.Context, now, keepUntil time.Time, limit int) (list []*signing.OperationRecord, err error) {
	err = s.Unit(ctx, func(ctx context.Context) error {
		list, err = all(ctx, s.DB, func(r row) (*signing.OperationRecord, error) {
			o := &signing.OperationRecord{}
			return o, r.Scan(&o.ID, &o.UserID, &o.Callback, &o.State, (*timeField)(&o.KeepUntil))
		}, `WITH due AS MATERIALIZED
				(SELECT id FROM operations WHERE keep_until = 0 AND kind = '' AND complete_before <= $1 AND leased_until <= $1 LIMIT $4`+s.skipLocked()+`)
			UPDATE operations SET state = 'Expired', updated_at = $1, completed_at = complete_before, keep_until = $2,
				plan = $3, pin = $3, octets = 0, contents = '', `+freed+`
			WHERE keep_until = 0 AND kind = '' AND complete_before <= $1 AND leased_until <= $1 AND id IN (SELECT id FROM due)
			RETURNING id, user_id, callback, state, keep_until`, millis(now), millis(keepUntil), []byte{}, limit)
		return err
	})
	return list, err
}

// SweepOperations implements signing.OperationStore.
func (s Operations) SweepOperations(ctx context.Context, now time.Time) error {
	return s.sweep(ctx, "DELETE FROM operations WHERE id IN (SELECT id FROM operations WHERE keep_until <> 0 AND keep_until <= $1 LIMIT $2"+s.skipLocked()+")", now)
}

// sweep runs a deletion of rows that expired by now, portion by portion.
func (db *DB) sweep(ctx context.Context, query string, now time.Time) error {
	for n := int64(sweepPortion); n == sweepPortion; {
		var err error
		if n, err = db.exec(ctx, query, millis(now), sweepPortion); err != nil {
			return err
		}
	}
	return nil
}

// notNull replaces nil by an empty slice, which is not NULL.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
