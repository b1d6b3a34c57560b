// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/lease"
)

// AuditExport implements audit.ExportStore. Make it with NewAuditExport.
type AuditExport struct {
	audit Audit
	onNew bool // begins after the entries that are there

	mu      sync.Mutex
	settled int64 // no entry with this number or a smaller one can appear any more, except those that are there
	gap     *gap  // nil: no gap is waited for
}

var _ audit.ExportStore = (*AuditExport)(nil)

// gap is a place where numbers are missing. They may belong to transactions that have not committed yet.
type gap struct {
	upTo    int64    // an entry with this number was there
	writers []string // transactions that could write to the log then
}

// NewAuditExport returns the store of the export. The first export of a database begins with its first
// entry, or with the next one if onlyNew is true.
func NewAuditExport(db *DB, onlyNew bool) *AuditExport {
	return &AuditExport{audit: Audit{db}, onNew: onlyNew}
}

// exportName is the row of the only export.
const exportName = "collector"

// ClaimExport implements audit.ExportStore.
func (s *AuditExport) ClaimExport(ctx context.Context, l lease.Lease, now time.Time) (position int64, claimed bool, err error) {
	db := s.audit.DB
	claim := func() (int64, bool, error) {
		return returning(ctx, db, scalar[int64], leasedExports.claimOne("", "name <> ''", "position"), exportName, l.Token, millis(l.Until), millis(now))
	}
	if position, claimed, err = claim(); err != nil || claimed {
		return position, claimed, err
	}
	_, found, err := one(ctx, db, scalar[int64], "SELECT position FROM exports WHERE name = $1", exportName)
	if err != nil || found {
		return 0, false, err
	}
	if s.onNew {
		newest, err := s.audit.Newest(ctx)
		if err != nil {
			return 0, false, err
		}
		position = newest.ID
	}
	if _, err := db.exec(ctx, "INSERT INTO exports (name, position, lease, leased_until) VALUES ($1, $2, '', 0) ON CONFLICT (name) DO NOTHING", exportName, position); err != nil {
		return 0, false, err
	}
	return claim()
}

// ExtendExport implements audit.ExportStore.
func (s *AuditExport) ExtendExport(ctx context.Context, l lease.Lease) (bool, error) {
	return leasedExports.extend(ctx, s.audit.DB, l.Token, l.Until, exportName)
}

// MoveExport implements audit.ExportStore.
func (s *AuditExport) MoveExport(ctx context.Context, token string, position int64) (bool, error) {
	n, err := s.audit.exec(ctx, "UPDATE exports SET position = $3"+leasedExports.holder(), exportName, token, position)
	return n == 1, err
}

// ReleaseExport implements audit.ExportStore.
func (s *AuditExport) ReleaseExport(ctx context.Context, token string) error {
	return leasedExports.release(ctx, s.audit.DB, exportName, token)
}

// Following implements audit.ExportStore. SQLite has one writer, so entries appear in the order of their numbers.
//
// On PostgreSQL an entry has its number before its transaction commits, so an entry with a smaller number may
// appear later, or never if its transaction was rolled back. At a gap Following waits for the transactions that
// may fill it: each of them held the lock of an INSERT on the table before it took the number, and holds
// it until its end. Numbers that are missing after that stay missing.
func (s *AuditExport) Following(ctx context.Context, position int64, limit int) ([]audit.Numbered, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list, err := s.read(ctx, position, limit)
	if err != nil || s.audit.engine != postgresEngine {
		return list, err
	}
	for {
		n := s.sound(position, list)
		if n > 0 || len(list) == 0 {
			return list[:n], nil
		}
		// The first entry is behind a gap.
		writers, err := s.writers(ctx)
		if err != nil {
			return nil, err
		}
		if s.gap == nil || s.gap.upTo < list[0].Number {
			s.gap = &gap{list[len(list)-1].Number, writers}
		}
		if slices.ContainsFunc(s.gap.writers, func(w string) bool { return slices.Contains(writers, w) }) {
			return nil, nil
		}
		s.settled, s.gap = s.gap.upTo, nil
		if list, err = s.read(ctx, position, limit); err != nil { // what has appeared meanwhile is there now
			return nil, err
		}
	}
}

// sound returns how many entries of a list after a position have no gap before them that may be filled.
func (s *AuditExport) sound(position int64, list []audit.Numbered) int {
	for i, e := range list {
		if e.Number != position+1 && e.Number > s.settled {
			return i
		}
		position = e.Number
	}
	return len(list)
}

func (s *AuditExport) read(ctx context.Context, position int64, limit int) ([]audit.Numbered, error) {
	return all(ctx, s.audit.DB, func(r row) (n audit.Numbered, err error) {
		n.Entry, err = scanEntry(r, &n.Number)
		return n, err
	}, "SELECT id, "+auditColumns+" FROM audit WHERE id > $1 ORDER BY id LIMIT $2", position, limit)
}

// writers returns the transactions that have the lock of an INSERT on the audit log.
func (s *AuditExport) writers(ctx context.Context) ([]string, error) {
	text, _, err := one(ctx, s.audit.DB, scalar[string], `SELECT COALESCE(string_agg(DISTINCT virtualtransaction, ' '), '') FROM pg_locks
		WHERE locktype = 'relation' AND relation = to_regclass('audit') AND mode = 'RowExclusiveLock'
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	return strings.Fields(text), err
}
