// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"time"

	"tamga/internal/domain/accreditation"
)

// TrustLists implements accreditation.Store.
type TrustLists struct{ *DB }

var _ accreditation.Store = TrustLists{}

// trustListName is the row of the only list.
const trustListName = "accredited"

// TrustListInfo implements accreditation.Store.
func (s TrustLists) TrustListInfo(ctx context.Context) (accreditation.Stored, bool, error) {
	return one(ctx, s.DB, func(r row) (l accreditation.Stored, err error) {
		err = r.Scan(&l.Version, (*timeField)(&l.Date), (*timeField)(&l.ImportedAt), (*timeField)(&l.CheckedAt))
		return l, err
	}, "SELECT version, dated, imported_at, checked_at FROM trust_lists WHERE name = $1", trustListName)
}

// TrustList implements accreditation.Store.
func (s TrustLists) TrustList(ctx context.Context) (accreditation.Stored, bool, error) {
	return one(ctx, s.DB, func(r row) (l accreditation.Stored, err error) {
		err = r.Scan(&l.Version, (*timeField)(&l.Date), (*timeField)(&l.ImportedAt), (*timeField)(&l.CheckedAt), &l.Content)
		return l, err
	}, "SELECT version, dated, imported_at, checked_at, content FROM trust_lists WHERE name = $1", trustListName)
}

// PutTrustList implements accreditation.Store.
func (s TrustLists) PutTrustList(ctx context.Context, l accreditation.Stored, older bool) (bool, error) {
	n, err := s.exec(ctx, `INSERT INTO trust_lists (name, version, dated, imported_at, checked_at, content) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (name) DO UPDATE SET version = excluded.version, dated = excluded.dated, imported_at = excluded.imported_at, checked_at = excluded.checked_at, content = excluded.content
		WHERE $7 OR trust_lists.version <= excluded.version AND trust_lists.dated <= excluded.dated`,
		trustListName, l.Version, millis(l.Date), millis(l.ImportedAt), millis(l.CheckedAt), l.Content, older)
	return n == 1, err
}

// TrustListChecked implements accreditation.Store.
func (s TrustLists) TrustListChecked(ctx context.Context, version int64, at time.Time) error {
	_, err := s.exec(ctx, "UPDATE trust_lists SET checked_at = $3 WHERE name = $1 AND version = $2 AND checked_at < $3", trustListName, version, millis(at))
	return err
}
