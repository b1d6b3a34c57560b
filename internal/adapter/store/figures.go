// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Figures are what a running process shows of its database in metrics.
type Figures struct {
	// Waiting counts records that wait: pending messages, messages that were given up, the
	// callbacks among the pending ones, operations under way, open confirmations. Each is counted up to MostWaiting.
	Messages, Dead, Callbacks, Operations, Confirmations int64
	// Oldest is when the message that waits longest was due; zero without one.
	Oldest time.Time
	Closed bool // see Restores
	// Ending counts the users' certificates of the built-in authority that are valid and end within
	// each of EndingWithin, up to MostWaiting.
	Ending [len(EndingWithin)]int64
	// Backup is the time of the newest backup's snapshot; zero without one.
	Backup time.Time
	// TokenKey is when the newest key was made that signs tokens; zero without one.
	TokenKey time.Time
	// Exported reports whether an export of the audit log has begun. ExportLag is how far its position is behind the newest
	// entry, and ExportOldest the time of the first entry after it.
	Exported     bool
	ExportLag    int64
	ExportOldest time.Time
}

// EndingWithin are the times of Figures.Ending.
var EndingWithin = [...]time.Duration{24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour}

// MostWaiting bounds each count of Figures, so that a scrape costs little.
const MostWaiting = 10_000

// Figures reads the figures in one statement, by indexes.
func (db *DB) Figures(ctx context.Context) (Figures, error) {
	count := func(from string) string {
		return "(SELECT COUNT(*) FROM (SELECT 1 FROM " + from + " LIMIT $1) AS counted)"
	}
	args := []any{int64(MostWaiting), millis(db.Now())}
	ending := ""
	for _, within := range EndingWithin {
		args = append(args, millis(db.Now().Add(within)))
		ending += ", " + count(fmt.Sprintf(`issued_certificates i JOIN certificates c ON c.serial = i.serial AND NOT c.outside
			WHERE i.not_after > $2 AND i.not_after <= $%d AND i.revoked_at = 0`, len(args)))
	}
	f, _, err := one(ctx, db, func(r row) (f Figures, err error) {
		err = r.Scan(&f.Messages, &f.Dead, &f.Callbacks, &f.Operations, &f.Confirmations, (*timeField)(&f.Oldest), &f.Closed, (*timeField)(&f.TokenKey), (*timeField)(&f.Backup), &f.Exported, &f.ExportLag, (*timeField)(&f.ExportOldest), &f.Ending[0], &f.Ending[1], &f.Ending[2])
		return f, err
	}, "SELECT "+count("outbox WHERE state = 'pending'")+", "+count("outbox WHERE state = 'dead'")+", "+count("outbox WHERE state = 'pending' AND channel = 'Callback'")+", "+
		count("operations WHERE keep_until = 0")+", "+count("confirmations WHERE ended_at = 0")+
		", (SELECT COALESCE(MIN(due_at), 0) FROM (SELECT due_at FROM outbox WHERE state = 'pending' ORDER BY id LIMIT 100) AS first), EXISTS (SELECT 1 FROM restores WHERE released_at = 0), (SELECT COALESCE(MAX(created_at), 0) FROM signing_keys), (SELECT COALESCE(MAX(taken_at), 0) FROM backups)"+
		", EXISTS (SELECT 1 FROM exports), COALESCE((SELECT MAX(id) FROM audit), 0) - COALESCE((SELECT MAX(position) FROM exports), 0)"+
		", COALESCE((SELECT at FROM audit WHERE id > (SELECT MAX(position) FROM exports) ORDER BY id LIMIT 1), 0)"+ending, args...)
	return f, err
}

// Queues counts what waits for operators, and the groups of users.
type Queues struct{ Pending, Dead, Requests, Approvals, Groups int64 }

// Queues counts each queue up to most, in one statement, by indexes.
func (db *DB) Queues(ctx context.Context, most int) (Queues, error) {
	var counts []string
	for _, from := range []string{"outbox WHERE state = 'pending'", "outbox WHERE state = 'dead'", "certificate_requests WHERE status = 2", "approval_requests WHERE ended_at = 0", "user_groups"} {
		counts = append(counts, "(SELECT COUNT(*) FROM (SELECT 1 FROM "+from+" LIMIT $1) AS counted)")
	}
	q, _, err := one(ctx, db, func(r row) (q Queues, err error) {
		err = r.Scan(&q.Pending, &q.Dead, &q.Requests, &q.Approvals, &q.Groups)
		return q, err
	}, "SELECT "+strings.Join(counts, ", "), most)
	return q, err
}

// Pool describes the connections of this process.
type Pool struct {
	Open, InUse, Most int64
	// Waits is how often, and WaitTime how long in all, callers waited for a connection; 0 on
	// SQLite, where callers of the committer wait instead.
	Waits    int64
	WaitTime time.Duration
	// Queue is the number of units that wait for the committer of SQLite, Batches and Units what it
	// has done; 0 on PostgreSQL.
	Queue, Batches, Units int64
}

// Pool returns the present state of the connections.
func (db *DB) Pool() (p Pool) {
	switch d := db.database.(type) {
	case postgres:
		s := d.pool.Stats()
		p = Pool{Open: int64(s.OpenConnections), InUse: int64(s.InUse), Most: int64(s.MaxOpenConnections), Waits: s.WaitCount, WaitTime: s.WaitDuration}
	case *sqliteFile:
		for _, c := range []*connections{d.writer, d.readers} {
			c.mu.Lock()
			p.Open += int64(len(c.free) + len(c.slots))
			c.mu.Unlock()
			p.InUse += int64(len(c.slots))
			p.Most += int64(cap(c.slots))
		}
	}
	if c := db.committer; c != nil {
		p.Queue, p.Batches, p.Units = int64(len(c.queue)), c.batches.Load(), c.units.Load()
	}
	return p
}
