// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"tamga/internal/files"
	"tamga/pki/x509gost"
)

// verification compares what was acknowledged with what is there, after all processes run
// again.
type verification struct {
	*session
	// outcomes counts outcomes "ok" in the audit log by operation and id, without those that
	// handed out the answer of an earlier request.
	outcomes map[string]int
	roots    []*x509gost.Certificate
}

// verify checks everything that the clients of a session remember.
func (s *session) verify(ctx context.Context) error {
	v := &verification{session: s, outcomes: map[string]int{}}
	var err error
	if v.roots, err = files.Certificates(filepath.Join(s.cluster.data, s.cluster.dev.CAPEM)); err != nil {
		return err
	}
	rows, err := s.cluster.db.QueryContext(ctx, `SELECT operation || ' ' || correlation_id, count(*)
		FROM audit WHERE phase = 'done' AND outcome = 'ok' AND correlation_id <> '' AND object NOT LIKE 'answer to %' GROUP BY 1`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var made int
		if err := rows.Scan(&name, &made); err != nil {
			return err
		}
		v.outcomes[name] = made
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, d := range s.drivers {
		d.check(ctx, v)
	}
	return v.counters(ctx)
}

// once wants an outcome in the audit log, and no second one.
func (v *verification) once(id, operation string) {
	if v.atMostOnce(id, operation); v.outcomes[operation+" "+id] == 0 {
		v.wrong("%s was acknowledged, the audit log has no outcome of %s:%s", id, operation, v.entries(id))
	}
}

// atMostOnce wants no second outcome.
func (v *verification) atMostOnce(id, operation string) {
	if n := v.outcomes[operation+" "+id]; n > 1 {
		v.wrong("%s was carried out %d times, the audit log says of %s:%s", id, n, operation, v.entries(id))
	}
}

// entries lists the audit entries of an operation.
func (v *verification) entries(id string) (list string) {
	rows, err := v.cluster.db.Query(`SELECT concat_ws(' ', operation, phase, outcome, object, detail, request_id) FROM audit WHERE correlation_id = $1 ORDER BY id`, id)
	if err != nil {
		return err.Error()
	}
	defer rows.Close()
	for rows.Next() {
		var entry string
		if err := rows.Scan(&entry); err != nil {
			return err.Error()
		}
		list += "\n    " + entry
	}
	return list
}

// column reads two columns of texts.
func (v *verification) column(ctx context.Context, query string) (map[string]string, error) {
	rows, err := v.cluster.db.QueryContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", query, err)
	}
	defer rows.Close()
	list := map[string]string{}
	for rows.Next() {
		var key, value string
		if err := rows.Scan(&key, &value); err != nil {
			return nil, err
		}
		list[key] = value
	}
	return list, rows.Err()
}

// counted are the counters of quotas with the rows that they count. A document counts until
// its row is gone, an object until it is spent. A quota is compared with the sum of all rows
// of its owner.
var counted = []struct{ what, owner, counter, rows string }{
	{"prepared objects", "caller", "prepared_shares", "prepared WHERE spent_at = 0"},
	{"documents", "user_id", "document_shares", "documents"},
}

// differing is a query for the owners whose sum in the table counter differs from their rows.
func differing(owner, rows, counter string) string {
	return fmt.Sprintf(`SELECT coalesce(a.owner, b.owner), coalesce(a.n, '0 of 0') || ' bytes counted, ' || coalesce(b.n, '0 of 0') || ' there'
		FROM (SELECT %[1]s AS owner, sum(objects) || ' of ' || sum(bytes) AS n FROM %[3]s GROUP BY 1) a
		FULL JOIN (SELECT %[1]s AS owner, count(*) || ' of ' || sum(bytes) AS n FROM %[2]s GROUP BY 1) b ON a.owner = b.owner
		WHERE coalesce(a.n, '0 of 0') <> coalesce(b.n, '0 of 0')`, owner, rows, counter)
}

// counters compares counters with rows. Background tasks may remove rows at the same time,
// but each of them changes both in one transaction, and a query sees one moment.
func (v *verification) counters(ctx context.Context) error {
	for _, c := range counted {
		wrong, err := v.column(ctx, differing(c.owner, c.rows, c.counter))
		if err != nil {
			return err
		}
		for owner, how := range wrong {
			v.wrong("the counter of %s of %s is wrong at %v: %s", c.what, owner, time.Now().Format(time.TimeOnly), how)
		}
	}
	return nil
}
