// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/signing"
)

// Answers implements signing.AnswerStore.
type Answers struct{ *DB }

var _ signing.AnswerStore = Answers{}

// ClaimAnswer implements signing.AnswerStore.
func (s Answers) ClaimAnswer(ctx context.Context, id signing.AnswerID, request []byte, lease string, now, until, expires time.Time) (bool, error) {
	n, err := s.exec(ctx, `INSERT INTO answers AS a (caller, name, request, lease, leased_until, head, body, blob, bytes, done_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $6, '', 0, 0, $7)
		ON CONFLICT (caller, name) DO UPDATE SET request = excluded.request, lease = excluded.lease, leased_until = excluded.leased_until,
			head = excluded.head, body = excluded.body, blob = '', bytes = 0, done_at = 0, expires_at = excluded.expires_at
		WHERE a.expires_at <= $8 AND a.leased_until <= $8 OR a.done_at = 0 AND a.leased_until <= $8 AND a.request = excluded.request`,
		id.Caller, id.Name, request, lease, millis(until), []byte{}, millis(expires), millis(now))
	return n == 1, err
}

// FindAnswer implements signing.AnswerStore.
func (s Answers) FindAnswer(ctx context.Context, id signing.AnswerID) (*signing.AnswerRecord, bool, error) {
	return one(ctx, s.DB, func(r row) (*signing.AnswerRecord, error) {
		a := &signing.AnswerRecord{}
		err := r.Scan(&a.Request, (*timeField)(&a.LeasedUntil), &a.Head, &a.Body, &a.Blob, (*timeField)(&a.DoneAt), (*timeField)(&a.ExpiresAt))
		return a, err
	}, "SELECT request, leased_until, head, body, blob, done_at, expires_at FROM answers WHERE caller = $1 AND name = $2", id.Caller, id.Name)
}

// ExtendAnswer implements signing.AnswerStore.
func (s Answers) ExtendAnswer(ctx context.Context, id signing.AnswerID, lease string, until time.Time) (bool, error) {
	return leasedAnswers.extend(ctx, s.DB, lease, until, id.Caller, id.Name)
}

// RecordAnswer implements signing.AnswerStore.
func (s Answers) RecordAnswer(ctx context.Context, id signing.AnswerID, lease string, a *signing.AnswerRecord, size int64, outcome *audit.Entry) (held bool, err error) {
	values := []any{id.Caller, id.Name, lease, notNull(a.Head), notNull(a.Body), a.Blob, size, millis(a.DoneAt), millis(a.ExpiresAt)}
	log := Audit(s)
	if outcome != nil && s.engine == postgresEngine {
		n, err := s.exec(ctx, recordBoth, append(values, log.unit(ctx, *outcome).entry...)...)
		return n == 1, err
	}
	record := func(ctx context.Context) error {
		n, err := s.exec(ctx, recordAnswer, values...)
		held = n == 1
		if err != nil || !held || outcome == nil {
			return err
		}
		return log.Record(ctx, *outcome)
	}
	if outcome == nil {
		err = record(ctx)
	} else {
		err = s.Unit(ctx, record)
	}
	return held && err == nil, err
}

var recordAnswer = leasedAnswers.finish("head = $4, body = $5, blob = $6, bytes = $7, done_at = $8, expires_at = $9")

// recordBoth also adds an audit entry, in one round trip. SQLite has no such statement.
var recordBoth = "WITH recorded AS (" + recordAnswer + " RETURNING 1) INSERT INTO audit (" + auditColumns + ") SELECT " +
	entryMarks(10, "CAST($%d AS %s)") + " FROM recorded"

// ReleaseAnswer implements signing.AnswerStore.
func (s Answers) ReleaseAnswer(ctx context.Context, id signing.AnswerID, lease string) error {
	_, err := s.exec(ctx, "DELETE FROM answers"+leasedAnswers.holder(), id.Caller, id.Name, lease)
	return err
}

// AnswerBytes implements signing.AnswerStore.
func (s Answers) AnswerBytes(ctx context.Context, caller string) (int64, error) {
	n, _, err := one(ctx, s.DB, scalar[int64], "SELECT COALESCE(SUM(bytes), 0) FROM answers WHERE caller = $1 AND blob <> ''", caller)
	return n, err
}

// SweepAnswers implements signing.AnswerStore.
func (s Answers) SweepAnswers(ctx context.Context, now time.Time) error {
	for n := int64(sweepPortion); n == sweepPortion; {
		var err error
		n, err = s.exec(ctx, `DELETE FROM answers WHERE expires_at <= $1 AND leased_until <= $1 AND (caller, name) IN
			(SELECT caller, name FROM answers WHERE expires_at <= $1 AND leased_until <= $1 LIMIT $2`+s.skipLocked()+`)`, millis(now), sweepPortion)
		if err != nil {
			return err
		}
	}
	return nil
}
