// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// monthsAhead is the number of months after the current one for which the audit log has a
// partition. A process that is stopped for a shorter time finds its partition there.
const monthsAhead = 3

// MakePartitions makes the missing monthly partitions of the audit log, on PostgreSQL.
// Processes may call it at the same time. Writers do not wait for it. An entry of a month
// without a partition goes to the partition audit_other. A month with entries there gets no
// partition of its own later.
func (s Audit) MakePartitions(ctx context.Context) error {
	if s.engine != postgresEngine {
		return nil
	}
	made, now, err := s.partitioned(ctx)
	if err != nil {
		return err
	}
	until := time.Date(now.Year(), now.Month()+1+monthsAhead, 1, 0, 0, 0, 0, time.UTC)
	var failed []error
	for made.Before(until) {
		next := time.Date(made.Year(), made.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		err := s.makePartition(ctx, made, next)
		if errors.Is(err, errMaking) {
			break
		}
		if err != nil && postgresCode(err) != pgCheckViolation {
			failed = append(failed, fmt.Errorf("store: the partition of the audit log for %s: %w", made.Format("2006-01"), err))
		}
		made = next
	}
	return errors.Join(failed...)
}

// partitioned returns the time up to which the audit log has partitions, and the time of
// the database. It does not read the bounds of the default partition: that would wait for a
// process that makes a partition.
func (s Audit) partitioned(ctx context.Context) (until, now time.Time, err error) {
	type bounds struct {
		text string
		now  time.Time
	}
	list, err := all(ctx, s.DB, func(r row) (b bounds, err error) {
		err = r.Scan(&b.text, (*timeField)(&b.now))
		return b, err
	}, `SELECT pg_get_expr(c.relpartbound, c.oid), CAST(EXTRACT(EPOCH FROM now()) * 1000 AS BIGINT)
		FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_partitioned_table p ON p.partrelid = i.inhparent
		WHERE i.inhparent = to_regclass('audit') AND c.oid <> p.partdefid`)
	if err != nil {
		return until, now, err
	}
	for _, b := range list {
		now = b.now
		end := partitionEnd.FindStringSubmatch(b.text)
		if end == nil {
			return until, now, fmt.Errorf("store: a partition of the audit log has the bounds %q", b.text)
		}
		ms, err := strconv.ParseInt(end[1], 10, 64)
		if err != nil {
			return until, now, fmt.Errorf("store: a partition of the audit log: %w", err)
		}
		if t := fromMillis(ms); t.After(until) {
			until = t
		}
	}
	if until.IsZero() {
		return until, now, errors.New("store: the audit log has no partitions")
	}
	return until, now, nil
}

var partitionEnd = regexp.MustCompile(`TO \('(\d+)'\)`)

// errMaking means that another process makes partitions, and goes on with the next months.
// If it was something else that locked the table, the next call makes them.
var errMaking = errors.New("store: another process makes partitions of the audit log")

// makePartition makes the partition from one time to another, unless it is there. The new
// table is attached and not made in place: that would lock out writers.
func (s Audit) makePartition(ctx context.Context, from, to time.Time) error {
	name := "audit_" + from.Format("2006_01")
	return s.Atomic(ctx, func(ctx context.Context) error {
		_, err := s.exec(ctx, "LOCK TABLE audit IN SHARE UPDATE EXCLUSIVE MODE NOWAIT")
		if postgresCode(err) == pgLockNotAvailable {
			return errMaking
		}
		if err != nil {
			return err
		}
		there, _, err := one(ctx, s.DB, scalar[bool], "SELECT to_regclass($1) IS NOT NULL", name)
		if err != nil || there {
			return err
		}
		for _, statement := range []string{
			"CREATE TABLE " + name + " (LIKE audit INCLUDING DEFAULTS)",
			"ALTER TABLE " + name + " ADD PRIMARY KEY (id)",
			// So that the entries of a user are read in order; see 0001_tamga.sql.
			"ALTER TABLE " + name + " ALTER COLUMN user_id SET (n_distinct = 200), ALTER COLUMN object SET (n_distinct = 200)",
			fmt.Sprintf("ALTER TABLE audit ATTACH PARTITION %s FOR VALUES FROM (%d) TO (%d)", name, millis(from), millis(to)),
		} {
			if _, err := s.exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}
