// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"time"

	"tamga/internal/domain/report"
)

// Reports implements report.Store.
type Reports struct{ *DB }

var _ report.Store = Reports{}

const reportColumns = "number, user_id, name, verdict, created_at, expires_at"

// AddReport implements report.Store.
func (s Reports) AddReport(ctx context.Context, r report.Record) (bool, error) {
	n, err := s.exec(ctx, "INSERT INTO reports ("+reportColumns+", bytes, sealed) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
		r.Number, r.UserID, r.Name, r.Verdict, millis(r.CreatedAt), millis(r.ExpiresAt), r.Bytes, r.Sealed)
	return n == 1, err
}

// UsageOfReports implements report.Store.
func (s Reports) UsageOfReports(ctx context.Context, userID string) (n, bytes int64, err error) {
	type usage struct{ n, bytes int64 }
	of, _, err := one(ctx, s.DB, func(r row) (u usage, err error) {
		err = r.Scan(&u.n, &u.bytes)
		return u, err
	}, "SELECT COUNT(*), COALESCE(SUM(bytes), 0) FROM reports WHERE user_id = $1", userID)
	return of.n, of.bytes, err
}

// Report implements report.Store.
func (s Reports) Report(ctx context.Context, number string) (report.Record, bool, error) {
	return one(ctx, s.DB, func(r row) (found report.Record, err error) {
		err = r.Scan(&found.Number, &found.UserID, &found.Name, &found.Verdict, (*timeField)(&found.CreatedAt), (*timeField)(&found.ExpiresAt), &found.Bytes, &found.Sealed)
		return found, err
	}, "SELECT "+reportColumns+", bytes, sealed FROM reports WHERE number = $1", number)
}

// NewestReports implements report.Store.
func (s Reports) NewestReports(ctx context.Context, userID string, older report.Position, n int, now time.Time) ([]report.Info, error) {
	where, args := "", []any{userID, millis(now), n}
	if older.Number != "" {
		where, args = " AND (created_at, number) < ($4, $5)", append(args, millis(older.At), older.Number)
	}
	return all(ctx, s.DB, func(r row) (i report.Info, err error) {
		err = r.Scan(&i.Number, &i.UserID, &i.Name, &i.Verdict, (*timeField)(&i.CreatedAt), (*timeField)(&i.ExpiresAt))
		return i, err
	}, "SELECT "+reportColumns+" FROM reports WHERE user_id = $1 AND expires_at > $2"+where+" ORDER BY created_at DESC, number DESC LIMIT $3", args...)
}

// DeleteReport implements report.Store.
func (s Reports) DeleteReport(ctx context.Context, userID, number string) (bool, error) {
	n, err := s.exec(ctx, "DELETE FROM reports WHERE user_id = $1 AND number = $2", userID, number)
	return n == 1, err
}

// SweepReports implements report.Store.
func (s Reports) SweepReports(ctx context.Context, now time.Time) error {
	for n := int64(sweepPortion); n == sweepPortion; {
		var err error
		n, err = s.exec(ctx, "DELETE FROM reports WHERE number IN (SELECT number FROM reports WHERE expires_at <= $1 LIMIT $2"+s.skipLocked()+")", millis(now), sweepPortion)
		if err != nil {
			return err
		}
	}
	return nil
}
