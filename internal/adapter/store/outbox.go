// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/notify"
)

// Outbox implements notify.Store.
type Outbox struct{ *DB }

// Atomic implements notify.Store. Each change of a budget or a message is one conditional
// statement.
func (s Outbox) Atomic(ctx context.Context, fn func(ctx context.Context) error) error {
	return s.Unit(ctx, fn)
}

var _ notify.Store = Outbox{}

const messageColumns = "message_id, channel, recipient, subject, user_id, actor, sealed, state, attempts, error, created_at, due_at, expires_at, done_at"

func scanMessage(r row) (m notify.Record, err error) {
	err = r.Scan(&m.ID, &m.Channel, &m.To, &m.Subject, &m.UserID, &m.Actor, &m.Sealed, &m.State, &m.Attempts, &m.Error,
		(*timeField)(&m.CreatedAt), (*timeField)(&m.DueAt), (*timeField)(&m.ExpiresAt), (*timeField)(&m.DoneAt))
	return m, err
}

// lane names the recipient regardless of the letter case of an address, or the message if it waits for no
// other.
func lane(m notify.Record) string {
	if m.Separate {
		return string(m.Channel) + " " + m.ID
	}
	return string(m.Channel) + " " + strings.ToLower(m.To)
}

// AddMessage implements notify.Store.
func (s Outbox) AddMessage(ctx context.Context, m notify.Record) error {
	_, err := s.exec(ctx, `INSERT INTO outbox (message_id, channel, lane, recipient, subject, user_id, actor, sealed,
			state, attempts, error, lease, leased_until, created_at, due_at, expires_at, done_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, '', '', 0, $10, $11, $12, 0)`,
		m.ID, string(m.Channel), lane(m), m.To, m.Subject, m.UserID, m.Actor, m.Sealed,
		string(m.State), millis(m.CreatedAt), millis(m.DueAt), millis(m.ExpiresAt))
	return err
}

// claimable is the condition that a message may be tried: $1 is the channel, $2 now. An
// expired lease belongs to a process that died. The smallest number of a lane is one
// index lookup whatever the planner assumes about the table, which may be empty one
// minute and full the next.
const claimable = `o.channel = $1 AND o.state = 'pending' AND o.due_at <= $2 AND o.leased_until <= $2
	AND o.id = (SELECT MIN(e.id) FROM outbox e WHERE e.lane = o.lane AND e.state = 'pending')`

// ClaimMessages implements notify.Store. Usually there is nothing to claim, so it reads
// before it writes. The conditions of the UPDATE decide: if two processes read the same
// messages, only one gets each message.
func (s Outbox) ClaimMessages(ctx context.Context, channel notify.Channel, lease string, now, until time.Time, limit int) (claimed []notify.Record, err error) {
	ids, err := all(ctx, s.DB, scalar[int64], "SELECT o.id FROM outbox o WHERE "+claimable+" ORDER BY o.id LIMIT $3", string(channel), millis(now), limit)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	args, isOne := among([]any{lease, millis(until), millis(now)}, ids)
	err = s.Unit(ctx, func(ctx context.Context) error {
		claimed, err = all(ctx, s.DB, scanMessage, `UPDATE outbox SET lease = $1, leased_until = $2, attempts = attempts + 1
			WHERE id IN (SELECT id FROM outbox WHERE id `+isOne+`
				AND state = 'pending' AND due_at <= $3 AND leased_until <= $3`+s.skipLocked()+`)
			RETURNING `+messageColumns, args...)
		return err
	})
	return claimed, err
}

// ExtendMessage implements notify.Store.
func (s Outbox) ExtendMessage(ctx context.Context, id, lease string, until time.Time) (bool, error) {
	return leasedMessages.extend(ctx, s.DB, lease, until, id)
}

// FinishMessage implements notify.Store.
func (s Outbox) FinishMessage(ctx context.Context, id, lease string, e notify.Ending) (bool, error) {
	doneAt := e.At
	if e.State == notify.Pending {
		doneAt = time.Time{}
	}
	n, err := s.exec(ctx, leasedMessages.finish(`state = $3, error = $4, done_at = $5,
			due_at = CASE WHEN CAST($6 AS BIGINT) = 0 THEN due_at ELSE CAST($6 AS BIGINT) END,
			sealed = CASE WHEN CAST($7 AS BOOLEAN) THEN $8 ELSE sealed END`),
		id, lease, string(e.State), e.Error, millis(doneAt), millis(e.DueAt), e.Wipe, []byte{})
	return n == 1, err
}

// Undelivered implements notify.Store.
func (s Outbox) Undelivered(ctx context.Context, channel notify.Channel, now time.Time) (bool, error) {
	_, found, err := one(ctx, s.DB, scalar[int64], "SELECT o.id FROM outbox o WHERE o.channel = $1 AND o.state = 'pending' AND (o.leased_until > $2 OR "+claimable+") LIMIT 1",
		string(channel), millis(now))
	return found, err
}

// Message implements notify.Store.
func (s Outbox) Message(ctx context.Context, id string) (notify.Record, error) {
	m, found, err := one(ctx, s.DB, scanMessage, "SELECT "+messageColumns+" FROM outbox WHERE message_id = $1", id)
	if err == nil && !found {
		err = notify.ErrNotFound
	}
	return m, err
}

// Messages implements notify.Store.
func (s Outbox) Messages(ctx context.Context, q notify.MessageQuery) ([]notify.Record, error) {
	query, args := "SELECT "+messageColumns+" FROM outbox", []any{q.Limit}
	word := " WHERE "
	lane := ""
	if q.Webhook != "" {
		lane = string(notify.Webhook) + " " + strings.ToLower(q.Webhook)
	}
	for _, c := range []struct{ condition, value string }{
		{"channel = 'Webhook' AND lane = $%d", lane}, // by the index outbox_webhooks
		{"state = $%d", string(q.State)}, {"user_id = $%d", q.UserID}, {"id < (SELECT o.id FROM outbox o WHERE o.message_id = $%d)", q.Before},
	} {
		if c.value != "" {
			args = append(args, c.value)
			query += word + fmt.Sprintf(c.condition, len(args))
			word = " AND "
		}
	}
	order := " ORDER BY id DESC"
	if q.Oldest {
		order = " ORDER BY id"
	}
	return all(ctx, s.DB, scanMessage, query+order+" LIMIT $1", args...)
}

// ReviveMessage implements notify.Store.
func (s Outbox) ReviveMessage(ctx context.Context, id string, now time.Time) (bool, error) {
	n, err := s.exec(ctx, `UPDATE outbox SET state = 'pending', attempts = 0, error = '', due_at = $2, done_at = 0, `+freed+`
		WHERE message_id = $1 AND state = 'dead' AND expires_at > $2 AND length(sealed) > 0`, id, millis(now))
	return n == 1, err
}

// SweepMessages implements notify.Store.
func (s Outbox) SweepMessages(ctx context.Context, now, doneBefore time.Time) error {
	for _, sweep := range []struct {
		query string
		args  []any
	}{
		// These belong to a channel that is no longer configured: no notifier would give
		// them up.
		{`UPDATE outbox SET state = 'dead', error = 'not delivered in its time', done_at = $1, sealed = $3 WHERE id IN
			(SELECT id FROM outbox WHERE state = 'pending' AND expires_at <= $1 AND leased_until <= $1 LIMIT $2` + s.skipLocked() + `)`,
			[]any{millis(now), sweepPortion, []byte{}}},
		{`UPDATE outbox SET sealed = $3 WHERE id IN
			(SELECT id FROM outbox WHERE state = 'dead' AND expires_at <= $1 AND length(sealed) > 0 LIMIT $2` + s.skipLocked() + `)`,
			[]any{millis(now), sweepPortion, []byte{}}},
		{`DELETE FROM outbox WHERE id IN
			(SELECT id FROM outbox WHERE done_at <> 0 AND done_at <= $1 LIMIT $2` + s.skipLocked() + `)`,
			[]any{millis(doneBefore), sweepPortion}},
	} {
		for n := int64(sweepPortion); n == sweepPortion; {
			var err error
			if n, err = s.exec(ctx, sweep.query, sweep.args...); err != nil {
				return err
			}
		}
	}
	return nil
}

// SpendBudgets implements notify.Store. A loose key has some rows, whose names begin with
// it. A unit counts in any of them that no other unit has locked, or adds a row. A sweep
// deletes rows whose window has ended.
//
// The rows of other keys are locked in the order of the budgets.
func (s Outbox) SpendBudgets(ctx context.Context, budgets []notify.BudgetLimit, now time.Time, window time.Duration) (bool, error) {
	args := []any{millis(now), millis(now.Add(-window))}
	var rows, limits strings.Builder
	for i, b := range budgets {
		if i > 0 {
			rows.WriteString(" UNION ALL ")
		}
		first, last, added := b.Key, b.Key, b.Key
		if b.Loose {
			first, last = b.Key+" #", b.Key+" #:" // a colon comes after all digits
			added = first + strconv.FormatInt(newRow(), 10)
		}
		n := len(args)
		args = append(args, first, last, added, b.Limit)
		fmt.Fprintf(&rows, "SELECT CAST($%d AS TEXT) AS first, CAST($%d AS TEXT) AS last, CAST($%d AS TEXT) AS added, CAST($%d AS BIGINT) AS most", n+1, n+2, n+3, n+4)
		fmt.Fprintf(&limits, " WHEN $%d THEN CAST($%d AS BIGINT)", n+3, n+4)
	}
	n, err := s.exec(ctx, `INSERT INTO message_budgets AS b (name, messages, window_from)
		SELECT COALESCE((SELECT x.name FROM message_budgets x
				WHERE n.first <> n.last AND x.name BETWEEN n.first AND n.last ORDER BY x.name LIMIT 1`+s.skipLocked()+`), n.added), 1, CAST($1 AS BIGINT)
		FROM (`+rows.String()+`) n
		WHERE NOT EXISTS (SELECT 1 FROM (`+rows.String()+`) o WHERE o.most <=
			(SELECT COALESCE(SUM(x.messages), 0) FROM message_budgets x WHERE x.name BETWEEN o.first AND o.last AND x.window_from > $2))
		ON CONFLICT (name) DO UPDATE SET
			messages = CASE WHEN b.window_from <= $2 THEN 1 ELSE b.messages + 1 END,
			window_from = CASE WHEN b.window_from <= $2 THEN excluded.window_from ELSE b.window_from END
		WHERE b.window_from <= $2 OR b.messages < CASE b.name`+limits.String()+` ELSE b.messages + 1 END`, args...)
	return n == int64(len(budgets)), err
}

// SweepBudgets implements notify.Store.
func (s Outbox) SweepBudgets(ctx context.Context, windowFromBefore time.Time) error {
	for n := int64(sweepPortion); n == sweepPortion; {
		var err error
		if n, err = s.exec(ctx, "DELETE FROM message_budgets WHERE name IN (SELECT name FROM message_budgets WHERE window_from <= $1 LIMIT $2"+s.skipLocked()+")",
			millis(windowFromBefore), sweepPortion); err != nil {
			return err
		}
	}
	return nil
}

// Backlog returns how many messages wait that were due before a time, and how many were not delivered
// and are given up.
func (s Outbox) Backlog(ctx context.Context, due time.Time) (late, dead int64, err error) {
	late, _, err = one(ctx, s.DB, scalar[int64], "SELECT COUNT(*) FROM outbox WHERE state = 'pending' AND due_at <= $1", millis(due))
	if err != nil {
		return 0, 0, err
	}
	dead, _, err = one(ctx, s.DB, scalar[int64], "SELECT COUNT(*) FROM outbox WHERE state = 'dead'")
	return late, dead, err
}
