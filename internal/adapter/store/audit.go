// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/user"
)

// Audit implements audit.Log.
type Audit struct{ *DB }

var _ audit.Log = Audit{}

const auditColumns = `at, request_id, operation, phase, outcome, object, remote, detail,
	user_id, login, group_name, operator, token_id, client_id, method, duration_us, actor, correlation_id`

// addEntries adds entries.
var addEntries = newInsertion(1, "audit", auditColumns, "")

// gatherEntries is a statement that adds any number of entries.
var gatherEntries = func() string {
	rows, _ := gathered(entryTypes())
	return "INSERT INTO audit (" + auditColumns + ") SELECT " + auditColumns + " FROM (" + rows + ") g"
}()

// entryMarks lists the parameters of an entry with their types, from the number first on.
func entryMarks(first int, format string) string {
	var marks []string
	for i, column := range strings.Split(entryTypes(), ", ") {
		_, kind, _ := strings.Cut(column, " ")
		marks = append(marks, fmt.Sprintf(format, first+i, kind))
	}
	return strings.Join(marks, ", ")
}

// entryTypes lists the columns of an entry with their types.
func entryTypes() string {
	types := map[string]string{"at": "BIGINT", "operator": "BOOLEAN", "duration_us": "BIGINT"}
	var columns []string
	for name := range strings.SplitSeq(auditColumns, ",") {
		name = strings.TrimSpace(name)
		columns = append(columns, name+" "+cmp.Or(types[name], "TEXT"))
	}
	return strings.Join(columns, ", ")
}

// mostEntries is the number of entries of one statement. A text of an entry has at most briefLength
// bytes, so a statement has less than 4 MiB.
const mostEntries = 256

// Record implements audit.Log. Many entries share one flush to disk. An entry without a
// time gets the current time.
func (s Audit) Record(ctx context.Context, e audit.Entry) error {
	if t := s.transaction(ctx); t != nil {
		_, err := s.insert(ctx, addEntries, s.unit(ctx, e).entry...)
		return err
	}
	return s.Begin(ctx, e)(ctx)
}

// RecordAll implements operation.Log.
func (s Audit) RecordAll(ctx context.Context, list []audit.Entry) error {
	rows := make([][]any, len(list))
	for i, e := range list {
		rows[i] = s.unit(ctx, e).entry
	}
	return s.insertAll(ctx, addEntries, rows)
}

// Begin implements audit.Log. On PostgreSQL an error is a *fault.Outage if the entry may
// have been kept. It is not added again then.
func (s Audit) Begin(ctx context.Context, e audit.Entry) (wait func(context.Context) error) {
	u := s.unit(ctx, e)
	failed := func(err error) func(context.Context) error {
		return func(context.Context) error { return err }
	}
	if s.entries == nil {
		if err := s.committer.begin(u); err != nil {
			return failed(err)
		}
		return func(ctx context.Context) error { return s.committer.wait(ctx, u) }
	}
	added, err := s.entries.begin(ctx, u.entry)
	if err != nil {
		return failed(err)
	}
	return func(ctx context.Context) error {
		_, err := added(ctx)
		return err
	}
}

// addGathered adds entries with one statement.
func (s Audit) addGathered(ctx context.Context, rows [][]any) ([]bool, error) {
	_, err := s.exec(ctx, gatherEntries, columnsOf(rows)...)
	return slices.Repeat([]bool{true}, len(rows)), err
}

// unit returns the unit that adds an entry.
func (s Audit) unit(ctx context.Context, e audit.Entry) *unit {
	if e.At.IsZero() {
		e.At = s.now()
		if e.Phase == audit.Attempt {
			e.At, e.Duration = e.At.Add(-e.Duration), 0
		}
	}
	p := &e.Principal
	return &unit{ctx: ctx, entry: legible([]any{
		millis(e.At), brief(e.RequestID), brief(e.Operation), brief(e.Phase), brief(e.Outcome), brief(e.Object), brief(e.Remote), brief(e.Detail),
		brief(p.UserID), brief(p.Login), brief(p.Group), p.Operator, brief(p.TokenID), brief(p.ClientID), brief(p.Method), e.Duration.Microseconds(), brief(p.Actor), brief(e.Correlation),
	})}
}

// addAll adds the entries of units.
func addAll(ctx context.Context, t *transaction, units []*unit) error {
	rows := make([][]any, len(units))
	for i, u := range units {
		rows[i] = u.entry
	}
	_, err := addEntries.addTo(ctx, t, rows)
	return err
}

// Last returns the newest entries, the oldest of them first. The groups of an operator
// are not stored.
func (s Audit) Last(ctx context.Context, limit int) ([]audit.Entry, error) {
	list, err := all(ctx, s.DB, func(r row) (audit.Entry, error) { return scanEntry(r) },
		"SELECT "+auditColumns+" FROM audit ORDER BY id DESC LIMIT $1", limit)
	slices.Reverse(list)
	return list, err
}

// briefLength bounds a text of the audit log, in bytes. Some texts come from unknown
// clients, such as a path or a login.
const briefLength = 1024

func brief(s string) string {
	if len(s) <= briefLength {
		return s
	}
	return strings.ToValidUTF8(s[:briefLength], "") // drops an incomplete character at the end
}

// AuditFilter selects audit entries. An empty field selects all.
type AuditFilter struct {
	UserID       string // as the caller or as the object of the action
	Login        string // of the caller, in any letter case
	Operation    string
	Operations   []string // any of these
	Outcome      string
	Since        time.Time
	Until        time.Time // only entries before this time
	OutcomesOnly bool      // without attempts
	Before       int64     // only entries older than this position; 0: begin with the newest
	Far          bool      // the call looks at farAuditWalk entries, for who goes on searching
	Walk         int       // entries that the call looks at, at most; 0: as Far says
}

// auditDisorder is how far the times of entries may be out of the order of their positions. An
// entry has the time of its act, and gets its position when it is written, seconds later at most.
const auditDisorder = time.Minute

// How many entries one call of Read looks at, at most. Few entries may match, and the log may have
// millions.
const (
	auditWalk    = 20_000  // for a page in less than 100 ms
	farAuditWalk = 500_000 // about a second
)

// Read returns the newest entries that match, the oldest of them first, and the position
// before which the next call continues, 0 if no older entry can match. A call looks at a
// bounded number of entries. So it may return fewer than limit, or none, with a position to
// go on from.
func (s Audit) Read(ctx context.Context, f AuditFilter, limit int) (list []audit.Entry, before int64, err error) {
	if !f.Until.IsZero() {
		if f.Before, err = s.walkBegin(ctx, f); err != nil || f.Before == 0 {
			return nil, 0, err
		}
	}
	var where []string
	var args []any
	add := func(wanted bool, condition string, arg any) {
		if wanted {
			args = append(args, arg)
			where = append(where, strings.ReplaceAll(condition, "?", "$"+strconv.Itoa(len(args))))
		}
	}
	if f.Login != "" {
		// LOWER knows Latin letters alone in some databases. A user who exists is found by any spelling.
		args = append(args, strings.ToLower(f.Login), user.FoldLogin(f.Login))
		where = append(where, fmt.Sprintf("(LOWER(login) = $%d OR login = (SELECT u.login FROM users u WHERE u.login_folded = $%d))", len(args)-1, len(args)))
	}
	add(f.Operation != "", "operation = ?", f.Operation)
	if len(f.Operations) > 0 {
		var isOne string
		args, isOne = among(args, f.Operations)
		where = append(where, "operation "+isOne)
	}
	add(f.Outcome != "", "outcome = ?", f.Outcome)
	since := "at >= ?"
	if s.DB.engine == sqliteEngine {
		since = "+at >= ?" // not by the index of times: that would read and sort all entries since then
	}
	add(!f.Since.IsZero(), since, millis(f.Since))
	add(!f.Until.IsZero(), strings.Replace(since, ">=", "<", 1), millis(f.Until))
	add(f.OutcomesOnly, "phase = ?", audit.Done)
	add(f.Before > 0, "id < ?", f.Before)
	end, last, err := s.walkEnd(ctx, f)
	if err != nil {
		return nil, 0, err
	}
	add(end > 0, "id >= ?", end)
	args = append(args, limit)
	newest := " ORDER BY id DESC LIMIT $" + strconv.Itoa(len(args))
	entries := func(more ...string) string {
		condition := ""
		if all := append(more, where...); len(all) > 0 {
			condition = " WHERE " + strings.Join(all, " AND ")
		}
		return "SELECT id, " + auditColumns + " FROM audit" + condition + newest
	}
	query := entries()
	if f.UserID != "" {
		// Two walks, each along its own index from its end. One with OR would read the
		// whole log. The index of objects has only those of the length of a GUID.
		args = append(args, f.UserID)
		user := "$" + strconv.Itoa(len(args))
		query = "SELECT * FROM (SELECT * FROM (" + entries("user_id = "+user) + ") caller UNION ALL SELECT * FROM (" +
			entries("object = "+user, "length(object) = 36", "user_id <> "+user) + ") object) entries" + newest
	}
	type numbered struct {
		id int64
		audit.Entry
	}
	rows, err := allUnprepared(ctx, s.DB, func(r row) (n numbered, err error) {
		n.Entry, err = scanEntry(r, &n.id)
		return n, err
	}, query, args...)
	if err != nil {
		return nil, 0, err
	}
	for _, n := range slices.Backward(rows) {
		list = append(list, n.Entry)
	}
	switch {
	case len(rows) == limit:
		before = rows[limit-1].id
	case !last:
		before = end
	}
	return list, before, nil
}

// position is where an entry is in the log.
type position struct {
	id int64
	at time.Time
}

func scanPosition(r row) (p position, err error) {
	err = r.Scan(&p.id, (*timeField)(&p.at))
	return p, err
}

// walkBegin returns the position from which a call with the filter looks at older entries, 0
// if no entry can be before Until. Positions are nearly in the order of times, so a binary
// search along them finds it. PostgreSQL has no index with each time.
func (s Audit) walkBegin(ctx context.Context, f AuditFilter) (before int64, err error) {
	before = cmp.Or(f.Before, math.MaxInt64)
	late := f.Until.Add(auditDisorder) // an entry after one of this time is not before Until
	newest, found, err := one(ctx, s.DB, scanPosition, "SELECT id, at FROM audit WHERE id < $1 ORDER BY id DESC LIMIT 1", before)
	if err != nil || !found {
		return 0, err
	}
	if newest.at.Before(late) {
		return before, nil
	}
	from, before := int64(1), newest.id
	for from < before {
		middle := from + (before-from)/2
		p, found, err := one(ctx, s.DB, scanPosition, "SELECT id, at FROM audit WHERE id >= $1 ORDER BY id LIMIT 1", middle)
		switch {
		case err != nil:
			return 0, err
		case found && p.at.Before(late):
			from = p.id + 1
		default:
			before = middle
		}
	}
	if before == 1 {
		return 0, nil
	}
	return before, nil
}

// walkEnd returns the position of the last entry that a call with the filter looks at, 0 for
// the whole log, and whether no older entry can match. The entries of a user are counted along
// their indexes.
func (s Audit) walkEnd(ctx context.Context, f AuditFilter) (end int64, last bool, err error) {
	old := f.Since.Add(-auditDisorder)
	first := func(query string, args ...any) (position, error) {
		list, err := allUnprepared(ctx, s.DB, scanPosition, query, args...)
		if len(list) == 0 {
			return position{}, err
		}
		return list[0], err
	}
	// SQLite walks back from the newest entry. Its walk ends shortly before Since: otherwise a
	// page that is not full would read the whole log.
	if !f.Since.IsZero() && s.DB.engine == sqliteEngine {
		p, err := first("SELECT id, at FROM audit WHERE at < $1 ORDER BY at DESC LIMIT 1", millis(old))
		if err != nil {
			return 0, false, err
		}
		end = p.id
	}
	if f.Login == "" && f.Operation == "" && len(f.Operations) == 0 && f.Outcome == "" {
		return end, true, nil // nearly every entry matches
	}
	most := auditWalk
	if f.Far {
		most = farAuditWalk
	}
	args := []any{cmp.Or(f.Walk, most) - 1}
	older := ""
	if f.Before > 0 {
		args = append(args, f.Before)
		older = " AND id < $2"
	}
	walk := func(where string) string {
		return "SELECT * FROM (SELECT id, at FROM audit WHERE " + where + older + " ORDER BY id DESC LIMIT 1 OFFSET $1) AS "
	}
	query := walk("id > 0") + "log"
	if f.UserID != "" {
		args = append(args, f.UserID)
		user := "$" + strconv.Itoa(len(args))
		query = walk("user_id = "+user) + "caller UNION ALL " + walk("object = "+user+" AND length(object) = 36") + "object"
	}
	// The newest of the ends: every entry up to there is looked at.
	p, err := first(query+" ORDER BY id DESC LIMIT 1", args...)
	if err != nil || p.id <= end {
		return end, true, err
	}
	return p.id, p.at.Before(old), nil
}

// Of implements signing.Entries. Objects that are no GUID are not in the index, so it finds
// none.
func (s Audit) Of(ctx context.Context, operation, object string, since time.Time) ([]audit.Entry, error) {
	return all(ctx, s.DB, func(r row) (audit.Entry, error) { return scanEntry(r) }, "SELECT "+auditColumns+` FROM audit
		WHERE object = $1 AND length(object) = 36 AND operation = $2 AND at >= $3 ORDER BY id LIMIT 1000`, object, operation, millis(since))
}

// scanEntry scans the columns of an entry after the columns for first.
func scanEntry(r row, first ...any) (e audit.Entry, err error) {
	var us int64
	p := &e.Principal
	err = r.Scan(append(first, (*timeField)(&e.At), &e.RequestID, &e.Operation, &e.Phase, &e.Outcome, &e.Object, &e.Remote, &e.Detail,
		&p.UserID, &p.Login, &p.Group, &p.Operator, &p.TokenID, &p.ClientID, &p.Method, &us, &p.Actor, &e.Correlation)...)
	e.Duration = time.Duration(us) * time.Microsecond
	return e, err
}

// AuditMark is an entry of the audit log, by which a database is recognized.
type AuditMark struct {
	ID int64 `json:"id"`
	At int64 `json:"at"` // Unix time in milliseconds
}

// Newest returns the entry with the greatest number, or zero.
func (a Audit) Newest(ctx context.Context) (AuditMark, error) {
	m, _, err := one(ctx, a.DB, func(r row) (m AuditMark, err error) {
		err = r.Scan(&m.ID, &m.At)
		return m, err
	}, "SELECT id, at FROM audit ORDER BY id DESC LIMIT 1")
	return m, err
}

// Follows reports whether the database has an entry that it had before, or lacks it for a good reason: entries of that
// time were removed, or the database was restored since.
func (a Audit) Follows(ctx context.Context, m AuditMark) (bool, error) {
	n, _, err := one(ctx, a.DB, scalar[int64], `SELECT
		(SELECT COUNT(*) FROM audit WHERE id = $1 AND at = $2) +
		(SELECT COUNT(*) FROM restores WHERE restored_at >= $2) +
		(SELECT COUNT(*) FROM (SELECT id FROM audit ORDER BY id LIMIT 1) AS first WHERE first.id > $1)`, m.ID, m.At)
	return n > 0, err
}
