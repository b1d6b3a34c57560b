// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"tamga/internal/domain/confirm"
	"tamga/internal/domain/fault"
	"tamga/internal/domain/lease"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/operation"
)

// Operations implements operation.Store, operation.ListStore and operation.MoveStore.
type Operations struct{ *DB }

var (
	_ operation.Store     = Operations{}
	_ operation.ListStore = Operations{}
	_ operation.MoveStore = Operations{}
)

// Atomic implements operation.Store; see DB.locked. The changes at the end of an operation share a flush to
// disk with other requests.
func (s Operations) Atomic(ctx context.Context, set lock.Set, fn func(ctx context.Context) error) error {
	return s.locked(ctx, set, fn)
}

// Outside implements operation.Store.
func (s Operations) Outside(ctx context.Context) error {
	if s.transaction(ctx) != nil {
		return errors.New("store: an operation is spent inside a transaction that may still roll back")
	}
	return nil
}

const operationColumns = `id, kind, form, purpose, owner, action, state, is_async, parameters, description, documents, plan, secret,
	contents, bytes, results, answer, callback, code, message, attempts,
	created_at, updated_at, confirm_before, confirmed_at, complete_before, completed_at, keep_until, leased_until`

// foundColumns are operationColumns of the table o.
var foundColumns = "o." + strings.Join(strings.FieldsFunc(operationColumns, func(r rune) bool { return unicode.IsSpace(r) || r == ',' }), ", o.")

// openColumns are foundColumns without the contents, which may have a document: there may be a thousand rows.
var openColumns = strings.Replace(foundColumns, "o.contents", "''", 1)

func operationFields(o *operation.Stored) []any {
	return []any{
		&o.ID, &o.Kind, &o.Form, &o.Purpose, &o.Principal, &o.Action, &o.State, &o.Async, &o.Parameters, &o.Description, &o.List, &o.Plan, &o.Secret,
		&o.Contents, &o.Bytes, &o.Results, &o.Answer, &o.Callback, &o.Code, &o.Message, &o.Attempts,
		(*timeField)(&o.CreatedAt), (*timeField)(&o.UpdatedAt), (*timeField)(&o.ConfirmBefore), (*timeField)(&o.ConfirmedAt),
		(*timeField)(&o.CompleteBefore), (*timeField)(&o.CompletedAt), (*timeField)(&o.KeepUntil), (*timeField)(&o.LeasedUntil),
	}
}

func scanOperation(r row) (*operation.Stored, error) {
	o := &operation.Stored{}
	return o, r.Scan(operationFields(o)...)
}

// ofConfirmation are columns of the confirmation c of an operation.
const ofConfirmation = ", COALESCE(c.state, ''), COALESCE(c.declined, '')"

// scanAsked reads an operation with what its confirmation says of it, and more columns.
func scanAsked(more func(o *operation.Stored) []any) func(r row) (*operation.Stored, error) {
	return func(r row) (*operation.Stored, error) {
		o := &operation.Stored{}
		var asked, declined string
		err := r.Scan(append(append(operationFields(o), &asked, &declined), more(o)...)...)
		if err != nil {
			return nil, err
		}
		if asked == string(operation.Challenged) {
			o.Asked = operation.Challenged
		}
		o.Refused, err = readIndexes(declined)
		return o, err
	}
}

// AddOperation implements operation.Store. A user has few waiting operations, so they are counted each time.
func (s Operations) AddOperation(ctx context.Context, o *operation.Stored, waiting operation.Quota) (bool, error) {
	free := !o.State.Active() || !o.ConfirmBefore.IsZero() // does not count
	n, err := s.exec(ctx, `INSERT INTO operations (id, kind, form, purpose, user_id, client_id, owner, action, state, is_async, parameters, description, documents, plan, secret,
			contents, bytes, results, answer, callback, code, message, attempts, start_after, due_at, lease, leased_until,
			created_at, updated_at, confirm_before, confirmed_at, complete_before, completed_at, keep_until)
		SELECT $1, $2, $3, $4, CAST($5 AS TEXT), $6, $7, $8, $9, $10, $11, $12, $13, $14, $15,
			$16, CAST($17 AS BIGINT), $18, $19, $20, $21, $22, 0, CAST($23 AS BIGINT), CAST($24 AS BIGINT), '', 0,
			CAST($25 AS BIGINT), CAST($26 AS BIGINT), CAST($27 AS BIGINT), CAST($28 AS BIGINT), CAST($29 AS BIGINT), CAST($30 AS BIGINT), CAST($31 AS BIGINT)
		WHERE CAST($32 AS BOOLEAN) AND CAST($17 AS BIGINT) = 0 OR
			(CAST($32 AS BOOLEAN) OR (SELECT COUNT(*) FROM operations WHERE user_id = $5 AND keep_until = 0 AND confirm_before = 0 AND purpose = 'operation') < $33) AND
			(SELECT COALESCE(SUM(bytes), 0) FROM operations WHERE user_id = $5 AND bytes > 0) + CAST($17 AS BIGINT) <= $34`,
		o.ID, o.Kind, string(o.Form), string(o.Purpose), o.Owner.UserID, o.Owner.ClientID, o.Principal, o.Action, string(o.State), o.Async, o.Parameters, o.Description, notNull(o.List), notNull(o.Plan), notNull(o.Secret),
		o.Contents, o.Bytes, o.Results, notNull(o.Answer), o.Callback, o.Code, o.Message, startAfter(o), millis(o.DueAt),
		millis(o.CreatedAt), millis(o.UpdatedAt), millis(o.ConfirmBefore), millis(o.ConfirmedAt), millis(o.CompleteBefore), millis(o.CompletedAt), millis(o.KeepUntil),
		free, waiting.Objects, waiting.Bytes)
	return n == 1, err
}

func startAfter(o *operation.Stored) int64 {
	if o.StartAfter < 0 {
		return -1
	}
	return o.StartAfter.Milliseconds()
}

// FindOperation implements operation.Store.
func (s Operations) FindOperation(ctx context.Context, id string) (*operation.Stored, bool, error) {
	return one(ctx, s.DB, scanAsked(func(o *operation.Stored) []any { return []any{&o.Called} }), "SELECT "+foundColumns+ofConfirmation+`,
		o.callback <> '' AND EXISTS (SELECT 1 FROM outbox WHERE message_id = $1 AND state = 'sent')
		FROM operations o LEFT JOIN confirmations c ON c.id = o.id WHERE o.id = $1`, id)
}

// OpenOperations implements operation.ListStore.
func (s Operations) OpenOperations(ctx context.Context, userID, clientID string, now time.Time, limit int) ([]*operation.Stored, error) {
	return all(ctx, s.DB, scanAsked(func(*operation.Stored) []any { return nil }), "SELECT "+openColumns+ofConfirmation+`
		FROM operations o LEFT JOIN confirmations c ON c.id = o.id
		WHERE o.user_id = $1 AND o.keep_until = 0 AND o.purpose = 'operation' AND (o.complete_before > $2 OR o.leased_until > $2)
			AND (o.confirm_before = 0 OR CAST($3 AS TEXT) = '' OR o.client_id = $3)
		ORDER BY o.created_at, o.id LIMIT $4`, userID, millis(now), clientID, limit)
}

// UnderWay implements operation.ListStore.
func (s Operations) UnderWay(ctx context.Context, operatorID string, after operation.UnderWay, limit int, now time.Time) ([]operation.UnderWay, error) {
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
		begin+part("begun", "operations", "x.keep_until = 0 AND x.confirm_before = 0 AND x.purpose = 'operation' AND (x.complete_before > $2 OR x.leased_until > $2)")+" UNION ALL "+
			part("waiting", "confirmations", "x.ended_at = 0 AND x.due_at > $2 AND x.purpose = '"+string(confirm.ForOperation)+"'")+
			" ORDER BY created_at, id LIMIT $5", operatorID, millis(now), millis(after.CreatedAt), after.ID, limit)
}

// UnderWayOf implements operation.ListStore.
func (s Operations) UnderWayOf(ctx context.Context, operatorID string, users []string, id string, limit int, now time.Time) ([]operation.UnderWay, error) {
	args, isOne := among([]any{operatorID, millis(now), id, limit}, append([]string{""}, users...))
	var parts []string
	for i, from := range []string{
		"operations x JOIN users u ON u.id = x.user_id WHERE x.keep_until = 0 AND x.confirm_before = 0 AND x.purpose = 'operation' AND (x.complete_before > $2 OR x.leased_until > $2)",
		"confirmations x JOIN users u ON u.id = x.user_id WHERE x.ended_at = 0 AND x.due_at > $2 AND x.purpose = '" + string(confirm.ForOperation) + "'",
	} {
		for j, which := range []string{"x.id = $3", "x.id <> $3 AND x.user_id " + isOne} {
			parts = append(parts, "SELECT * FROM (SELECT x.id AS id, x.user_id AS user_id, u.login AS login, u.display_name AS display_name, x.action AS action, x.state AS state, x.created_at AS created_at FROM "+
				from+" AND "+which+" AND "+reaches+fmt.Sprintf(") AS part%d%d", i, j))
		}
	}
	return allUnprepared(ctx, s.DB, scanUnderWay, strings.Join(parts, " UNION ALL ")+" ORDER BY created_at, id LIMIT $4", args...)
}

// UnderWayDocuments implements operation.ListStore.
func (s Operations) UnderWayDocuments(ctx context.Context, operatorID string, limit int, now time.Time) ([]operation.UnderWay, error) {
	return allUnprepared(ctx, s.DB, func(r row) (u operation.UnderWay, err error) {
		err = r.Scan(&u.ID, &u.UserID, &u.Login, &u.DisplayName, &u.Action, &u.State, (*timeField)(&u.CreatedAt), &u.Documents)
		return u, err
	}, `SELECT x.id, x.user_id, u.login, u.display_name, x.action, COALESCE(c.state, x.state), x.created_at, x.documents
		FROM operations x CROSS JOIN users u LEFT JOIN confirmations c ON c.id = x.id AND c.ended_at = 0
		WHERE x.keep_until = 0 AND x.purpose = 'operation' AND (x.complete_before > $2 OR x.leased_until > $2) AND u.id = x.user_id AND `+reaches+`
		ORDER BY x.created_at DESC, x.id DESC LIMIT $3`, operatorID, millis(now), limit)
}

func scanUnderWay(r row) (u operation.UnderWay, err error) {
	err = r.Scan(&u.ID, &u.UserID, &u.Login, &u.DisplayName, &u.Action, &u.State, (*timeField)(&u.CreatedAt))
	return u, err
}

// ClaimOperation implements operation.Store.
func (s Operations) ClaimOperation(ctx context.Context, id string, l lease.Lease, now time.Time) (*operation.Stored, bool, error) {
	return returning(ctx, s.DB, scanOperation, leasedOperations.claimOne(anAttempt, "complete_before > $4", operationColumns),
		id, l.Token, millis(l.Until), millis(now))
}

// ClaimNext implements operation.Store.
func (s Operations) ClaimNext(ctx context.Context, asked bool, l lease.Lease, now time.Time) (*operation.Stored, bool, error) {
	due := "due_at <> 0 AND complete_before > $3"
	if asked {
		due += " AND confirm_before <> 0"
	}
	return returning(ctx, s.DB, scanOperation, leasedOperations.claimNext(s.DB, "", due, operationColumns), l.Token, millis(l.Until), millis(now))
}

// ExtendOperation implements operation.Store.
func (s Operations) ExtendOperation(ctx context.Context, id string, l lease.Lease) (bool, error) {
	return leasedOperations.extend(ctx, s.DB, l.Token, l.Until, id)
}

// ReleaseOperation implements operation.Store.
func (s Operations) ReleaseOperation(ctx context.Context, id, token string) error {
	return leasedOperations.release(ctx, s.DB, id, token)
}

// PostponeOperation implements operation.Store.
func (s Operations) PostponeOperation(ctx context.Context, id, token string, due time.Time, given bool, why *fault.Error) error {
	back := 0
	if given {
		back = 1
	}
	if why == nil {
		why = &fault.Error{}
	}
	_, err := s.exec(ctx, leasedOperations.finish("due_at = CASE WHEN due_at = 0 THEN 0 ELSE CAST($3 AS BIGINT) END, attempts = attempts - $4, code = $5, message = $6"), id, token, millis(due), back, why.Code, why.Message)
	return err
}

// ended is what every end of an operation sets. Its parameter is an empty value.
func ended(empty string) string {
	return "plan = " + empty + ", secret = " + empty + ", contents = '', due_at = 0"
}

// SpendOperation implements operation.Store.
func (s Operations) SpendOperation(ctx context.Context, o *operation.Stored, token string) (bool, error) {
	n, err := s.exec(ctx, leasedOperations.finish(`state = $3, documents = $4, results = $5, answer = $6, bytes = $7, code = $8, message = $9,
			updated_at = $10, completed_at = $10, keep_until = $11, `+ended("$12")),
		o.ID, token, string(o.State), notNull(o.List), o.Results, notNull(o.Answer), o.Bytes, o.Code, o.Message,
		millis(o.CompletedAt), millis(o.KeepUntil), []byte{})
	return n == 1, err
}

// SetAnswer implements operation.Store.
func (s Operations) SetAnswer(ctx context.Context, id string, sealed []byte) error {
	_, err := s.exec(ctx, "UPDATE operations SET answer = $2 WHERE id = $1", id, notNull(sealed))
	return err
}

// MoveOperation implements operation.MoveStore.
func (s Operations) MoveOperation(ctx context.Context, id string, m operation.Move) error {
	if m.To == operation.Confirmed {
		_, err := s.exec(ctx, `UPDATE operations SET state = 'Confirmed', updated_at = $2, confirmed_at = $2, complete_before = $3,
				due_at = CASE WHEN start_after < 0 THEN 0 ELSE CAST($2 AS BIGINT) + start_after END
			WHERE id = $1 AND state = 'Created' AND keep_until = 0`, id, millis(m.At), millis(m.CompleteBefore))
		return err
	}
	_, err := s.exec(ctx, `UPDATE operations SET state = $2, updated_at = $3, completed_at = $3, keep_until = $4, code = $5, message = $6, bytes = 0,
			`+ended("$7")+", "+freed+` WHERE id = $1 AND keep_until = 0`,
		id, string(m.To), millis(m.At), millis(m.KeepUntil), m.Code, m.Message, []byte{})
	return err
}

// CancelOperation implements operation.ListStore.
func (s Operations) CancelOperation(ctx context.Context, id, userID string, now, keepUntil time.Time) (bool, error) {
	n, err := s.exec(ctx, `UPDATE operations SET state = 'Cancelled', updated_at = $3, completed_at = $3, keep_until = $4, bytes = 0, `+ended("$5")+", "+freed+`
		WHERE id = $1 AND user_id = $2 AND keep_until = 0 AND confirm_before = 0 AND (complete_before > $3 OR leased_until > $3)`,
		id, userID, millis(now), millis(keepUntil), []byte{})
	return n == 1, err
}

// ExpireOperations implements operation.ListStore. A query in IN could run, and skip what it has locked,
// more than once.
func (s Operations) ExpireOperations(ctx context.Context, now, keepUntil time.Time, limit int) (list []*operation.Stored, err error) {
	const due = "keep_until = 0 AND confirm_before = 0 AND complete_before <= $1 AND leased_until <= $1"
	err = s.Unit(ctx, func(ctx context.Context) error {
		list, err = all(ctx, s.DB, func(r row) (*operation.Stored, error) {
			o := &operation.Stored{}
			return o, r.Scan(&o.ID, &o.Owner.UserID, &o.Callback, &o.State, (*timeField)(&o.KeepUntil))
		}, "WITH due AS MATERIALIZED (SELECT id FROM operations WHERE "+due+" LIMIT $4"+s.skipLocked()+`)
			UPDATE operations SET state = 'Expired', updated_at = $1, completed_at = complete_before, keep_until = $2, bytes = 0, `+ended("$3")+", "+freed+`
			WHERE `+due+` AND id IN (SELECT id FROM due)
			RETURNING id, user_id, callback, state, keep_until`, millis(now), millis(keepUntil), []byte{}, limit)
		return err
	})
	return list, err
}

// SweepOperations implements operation.ListStore.
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
