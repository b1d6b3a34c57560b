// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"strconv"
	"time"

	"tamga/internal/domain/lease"
	"tamga/internal/domain/retention"
)

// Retentions implements retention.Store.
type Retentions struct{ *DB }

var _ retention.Store = Retentions{}

// Atomic implements retention.Store.
func (s Retentions) Atomic(ctx context.Context, fn func(ctx context.Context) error) error {
	return s.Unit(ctx, fn)
}

// retainedColumns are those of scanRetained, of the table retained. Few rows are read at a time, by the keys of the other
// tables.
const retainedColumns = `document, user_id, (SELECT login FROM users u WHERE u.id = retained.user_id), (SELECT d.name FROM documents d WHERE d.id = document), origin,
	COALESCE((SELECT d.keep_until FROM documents d WHERE d.id = document), 0), good_until, renewed_at, renew_at, due_at, attempts, refused, failure`

func scanRetained(r row) (v retention.Retained, err error) {
	err = r.Scan(&v.Document, &v.UserID, &v.Login, &v.Name, (*string)(&v.Origin), (*timeField)(&v.KeepUntil),
		(*timeField)(&v.GoodUntil), (*timeField)(&v.RenewedAt), (*timeField)(&v.RenewAt), (*timeField)(&v.DueAt), &v.Attempts, &v.Refused, &v.Failure)
	return v, err
}

// PutRetention implements retention.Store.
func (s Retentions) PutRetention(ctx context.Context, r *retention.Retained) error {
	_, err := s.exec(ctx, `INSERT INTO retained (document, user_id, origin, good_until, renewed_at, renew_at, due_at, attempts, refused, failure, lease, leased_until)
		VALUES ($1, $2, $3, 0, 0, $4, $5, 0, FALSE, '', '', 0)
		ON CONFLICT (document) DO UPDATE SET origin = excluded.origin, renew_at = excluded.renew_at, due_at = excluded.due_at`,
		r.Document, r.UserID, string(r.Origin), millis(r.RenewAt), millis(r.DueAt))
	return err
}

// Retention implements retention.Store.
func (s Retentions) Retention(ctx context.Context, document string) (retention.Retained, bool, error) {
	return one(ctx, s.DB, scanRetained, "SELECT "+retainedColumns+" FROM retained WHERE document = $1", document)
}

// EndRetention implements retention.Store.
func (s Retentions) EndRetention(ctx context.Context, document string) error {
	_, err := s.exec(ctx, "DELETE FROM retained WHERE document = $1", document)
	return err
}

// Retentions implements retention.Store.
func (s Retentions) Retentions(ctx context.Context, f retention.Filter) ([]retention.Retained, error) {
	query, args := "", []any{f.Limit, millis(f.After.RenewAt), f.After.Document}
	if f.UserID != "" {
		args = append(args, f.UserID)
		query += " AND user_id = $4"
	}
	if !f.Until.IsZero() {
		args = append(args, millis(f.Until))
		query += " AND renew_at <= $" + strconv.Itoa(len(args))
	}
	return all(ctx, s.DB, scanRetained, "SELECT "+retainedColumns+" FROM retained WHERE (renew_at, document) > ($2, $3)"+query+" ORDER BY renew_at, document LIMIT $1", args...)
}

// RetentionFigures implements retention.Store.
func (s Retentions) RetentionFigures(ctx context.Context, now, overdue time.Time) (retention.Figures, error) {
	count := func(where string) string {
		return "(SELECT COUNT(*) FROM (SELECT 1 FROM retained WHERE " + where + " LIMIT $1) AS counted)"
	}
	f, _, err := one(ctx, s.DB, func(r row) (f retention.Figures, err error) {
		err = r.Scan(&f.Retained, &f.Due, &f.Overdue, &f.Refused, (*timeField)(&f.Oldest))
		return f, err
	}, "SELECT "+count("TRUE")+", "+count("renew_at <= $2")+", "+count("renew_at <= $3")+", "+count("renew_at <= $2 AND refused")+
		", COALESCE((SELECT renew_at FROM retained WHERE renew_at <= $2 ORDER BY renew_at LIMIT 1), 0)", int64(MostWaiting), millis(now), millis(overdue))
	return f, err
}

// ClaimRenewal implements retention.Store.
func (s Retentions) ClaimRenewal(ctx context.Context, l lease.Lease, now time.Time, pause, longest time.Duration) (retention.Retained, bool, error) {
	// attempts is the number before this one.
	set := ", due_at = $2 + CASE WHEN attempts * $4 < $5 THEN attempts * $4 ELSE $5 END"
	return returning(ctx, s.DB, scanRetained, leasedRetained.claimNext(s.DB, set, "TRUE", retainedColumns), l.Token, millis(l.Until), millis(now),
		pause.Milliseconds(), longest.Milliseconds())
}

// ExtendRenewal implements retention.Store.
func (s Retentions) ExtendRenewal(ctx context.Context, document string, l lease.Lease) (bool, error) {
	return leasedRetained.extend(ctx, s.DB, l.Token, l.Until, document)
}

// FinishRenewal implements retention.Store.
func (s Retentions) FinishRenewal(ctx context.Context, r *retention.Retained, token string) (bool, error) {
	n, err := s.exec(ctx, leasedRetained.finish("good_until = $3, renewed_at = $4, renew_at = $5, due_at = $6, attempts = $7, refused = $8, failure = $9"),
		r.Document, token, millis(r.GoodUntil), millis(r.RenewedAt), millis(r.RenewAt), millis(r.DueAt), r.Attempts, r.Refused, r.Failure)
	return n == 1, err
}
