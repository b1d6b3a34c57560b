// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/waiting"
)

// Waiting reads what people wait for.
type Waiting struct{ DB *DB }

// waitingQueries have the columns kind, identifier, user and state. The identifiers follow.
var waitingQueries = map[waiting.Kind]string{
	waiting.Confirmation: `SELECT 'confirmation', c.id, c.user_id, CASE WHEN c.ended_at = 0 AND c.due_at <= $1 THEN 'Expired' ELSE c.state END || ' ' || CAST(c.round AS TEXT) || ' ' || COALESCE(o.state || ' ' || o.code, '')
		FROM confirmations c LEFT JOIN operations o ON o.id = c.id WHERE c.id IN `,
	waiting.Operation: `SELECT 'operation', o.id, o.user_id, o.state || ' ' || o.code FROM operations o WHERE CAST($1 AS BIGINT) > 0 AND o.id IN `,
	waiting.Devices: `SELECT 'devices', u.id, u.id, (SELECT CAST(COUNT(*) AS TEXT) || ' ' || CAST(COALESCE(MAX(d.created_at), 0) AS TEXT) FROM devices d WHERE d.user_id = u.id) || ' ' ||
			(SELECT CAST(COUNT(*) AS TEXT) FROM device_kinits k WHERE k.user_id = u.id AND k.expires_at > $1)
		FROM users u WHERE u.id IN `,
	waiting.Requests: `SELECT 'requests', u.id, u.id, (SELECT CAST(COUNT(*) AS TEXT) || ' ' || CAST(COALESCE(MAX(r.decided_at), 0) AS TEXT) || ' ' || CAST(COALESCE(SUM(r.status), 0) AS TEXT) FROM certificate_requests r WHERE r.user_id = u.id)
		FROM users u WHERE CAST($1 AS BIGINT) > 0 AND u.id IN `,
	// The first thousand of each kind, in the groups of the operator. The lists have fewer where an operator does not reach
	// another one; then a change is told for nothing.
	waiting.Office: `SELECT 'office', u.id, u.id, (SELECT CAST(COUNT(*) AS TEXT) || ' ' || CAST(COALESCE(SUM(r.id), 0) AS TEXT)
			FROM (SELECT q.id, q.user_id FROM certificate_requests q WHERE q.status = 2 ORDER BY q.id LIMIT 1000) r JOIN users p ON p.id = r.user_id
			JOIN operator_groups g ON g.group_name = p.group_name AND g.user_id = u.id) || ' ' ||
			(SELECT CAST(COUNT(*) AS TEXT) || ' ' || CAST(COALESCE(MAX(a.created_at), 0) AS TEXT) || ' ' || CAST(COUNT(CASE WHEN a.decided_by <> '' THEN 1 END) AS TEXT)
			FROM (SELECT o.object, o.created_at, o.decided_by FROM approval_requests o WHERE o.ended_at = 0 ORDER BY o.created_at, o.id LIMIT 1000) a LEFT JOIN users p ON p.id = a.object
			WHERE p.id IS NULL OR EXISTS (SELECT 1 FROM operator_groups g WHERE g.group_name = p.group_name AND g.user_id = u.id))
		FROM users u WHERE CAST($1 AS BIGINT) > 0 AND u.operator AND u.id IN `,
}

// topicsAtOnce is how many topics one statement reads: both databases limit the values of a statement.
const topicsAtOnce = 10_000

// States implements waiting.Store, with one statement for up to topicsAtOnce.
func (s Waiting) States(ctx context.Context, now time.Time, topics []waiting.Topic) (map[waiting.Topic]string, error) {
	states := make(map[waiting.Topic]string, len(topics))
	for some := range slices.Chunk(topics, topicsAtOnce) {
		if err := s.addStates(ctx, now, some, states); err != nil {
			return nil, err
		}
	}
	return states, nil
}

func (s Waiting) addStates(ctx context.Context, now time.Time, topics []waiting.Topic, states map[waiting.Topic]string) error {
	args := []any{millis(now)}
	ids := map[waiting.Kind][]string{}
	for _, t := range topics {
		args = append(args, t.ID)
		ids[t.Kind] = append(ids[t.Kind], "$"+strconv.Itoa(len(args)))
	}
	var parts []string
	for kind, query := range waitingQueries {
		if len(ids[kind]) > 0 {
			parts = append(parts, query+"("+strings.Join(ids[kind], ", ")+")")
		}
	}
	if len(parts) == 0 {
		return nil
	}
	type found struct {
		topic waiting.Topic
		state string
	}
	list, err := allUnprepared(ctx, s.DB, func(r row) (f found, err error) {
		var kind string
		err = r.Scan(&kind, &f.topic.ID, &f.topic.UserID, &f.state)
		f.topic.Kind = waiting.Kind(kind)
		return f, err
	}, strings.Join(parts, " UNION ALL "), args...)
	for _, f := range list {
		states[f.topic] = f.state
	}
	return err
}
