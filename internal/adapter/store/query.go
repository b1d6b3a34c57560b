// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"tamga/internal/adapter/store/lite"
)

// row is a result row to scan.
type row interface{ Scan(dest ...any) error }

// reader returns the transaction of ctx, or the pool of readers.
func (db *DB) reader(ctx context.Context) reader {
	if t := db.transaction(ctx); t != nil {
		return t
	}
	return db.database
}

// exec runs one changing statement and returns the number of rows it changed: in the
// transaction of ctx, otherwise durably as a unit of its own. For a one-time object, one
// changed row means that this call has spent it.
func (db *DB) exec(ctx context.Context, query string, args ...any) (int64, error) {
	var n int64
	err := db.single(ctx, func(ctx context.Context) (err error) {
		n, err = db.transaction(ctx).exec(ctx, query, legible(args))
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	return n, nil
}

// one reads the first row of a query. found is false if there is none.
func one[T any](ctx context.Context, db *DB, scan func(row) (T, error), query string, args ...any) (value T, found bool, err error) {
	if db.engine == sqliteEngine {
		// A row is read in microseconds, and watching ctx meanwhile costs more.
		ctx = context.WithoutCancel(ctx)
	}
	list, err := all(ctx, db, scan, query, args...)
	if err != nil || len(list) == 0 {
		return value, false, err
	}
	return list[0], true, nil
}

// all reads every row of a query. Queries over growing tables must have a LIMIT.
func all[T any](ctx context.Context, db *DB, scan func(row) (T, error), query string, args ...any) ([]T, error) {
	return allOf(ctx, db.reader(ctx), lite.Keep, scan, query, args)
}

// allUnprepared is all for a query that was built at run time: it must not take the place
// of another query among the prepared ones.
func allUnprepared[T any](ctx context.Context, db *DB, scan func(row) (T, error), query string, args ...any) ([]T, error) {
	return allOf(ctx, db.reader(ctx), lite.Once, scan, query, args)
}

func allOf[T any](ctx context.Context, from reader, keep lite.Keeping, scan func(row) (T, error), query string, args []any) ([]T, error) {
	var list []T
	err := from.query(ctx, keep, query, legible(args), func(r row) error {
		v, err := scan(r)
		if err == nil {
			list = append(list, v)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return list, nil
}

// returning runs one changing statement with a RETURNING clause and reads its first row:
// in the transaction of ctx, otherwise as a unit of its own.
func returning[T any](ctx context.Context, db *DB, scan func(row) (T, error), query string, args ...any) (value T, found bool, err error) {
	err = db.single(ctx, func(ctx context.Context) error {
		value, found, err = one(ctx, db, scan, query, args...)
		return err
	})
	return value, found, err
}

// allReturning is returning for every row.
func allReturning[T any](ctx context.Context, db *DB, scan func(row) (T, error), query string, args ...any) (list []T, err error) {
	err = db.single(ctx, func(ctx context.Context) error {
		list, err = all(ctx, db, scan, query, args...)
		return err
	})
	return list, err
}

// legible replaces invalid UTF-8 and NUL in text arguments by U+FFFD. PostgreSQL refuses
// both. A hostile identifier must be "not found" there, not an internal error, and a
// hostile name must still get into the audit log.
func legible(args []any) []any {
	for i, a := range args {
		if s, ok := a.(string); ok && !isLegible(s) {
			args[i] = legibleText(s)
		}
	}
	return args
}

func isLegible(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// legibleText is legible for one text.
func legibleText(s string) string {
	if isLegible(s) {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// scalar scans the single column of a row.
func scalar[T any](r row) (v T, err error) {
	err = r.Scan(&v)
	return v, err
}

// millis returns the stored form of a time. The zero time is 0.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// timeField scans a time stored by millis, in UTC.
type timeField time.Time

// Scan implements sql.Scanner.
func (f *timeField) Scan(v any) error {
	ms, ok := v.(int64)
	if !ok {
		return fmt.Errorf("store: a time column holds %T, want milliseconds", v)
	}
	*f = timeField(fromMillis(ms))
	return nil
}

// fromMillis is the inverse of millis, in UTC.
func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// nullable scans a column of a LEFT JOIN. NULL becomes the zero value.
type nullable[T int | int64 | bool | string] struct{ to *T }

// Scan implements sql.Scanner.
func (n nullable[T]) Scan(v any) error {
	if same, ok := v.(T); ok {
		*n.to = same
		return nil
	}
	if i, ok := v.(int64); ok && assigned(any(n.to), i) {
		return nil
	}
	var have sql.Null[T]
	err := have.Scan(v)
	*n.to = have.V
	return err
}

// assigned stores an integer of SQLite without the reflection of database/sql, if it fits.
func assigned(to any, i int64) bool {
	switch to := to.(type) {
	case *int:
		*to = int(i)
		return int64(*to) == i
	case *bool:
		*to = i == 1
		return i == 0 || i == 1
	}
	return false
}

// orZero returns a nullable for a destination.
func orZero[T int | int64 | bool | string](to *T) nullable[T] { return nullable[T]{to} }

// nullTime scans a time stored by millis. NULL becomes the zero time.
type nullTime time.Time

// Scan implements sql.Scanner.
func (f *nullTime) Scan(v any) error {
	if v == nil {
		*f = nullTime{}
		return nil
	}
	return (*timeField)(f).Scan(v)
}
