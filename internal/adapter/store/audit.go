package store

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/audit"
)

// Audit satisfies audit.Log.
type Audit struct{ *DB }

var _ audit.Log = Audit{}

const auditColumns = `at, request_id, operation, phase, outcome, object, remote, detail,
	user_id, login, group_name, operator, token_id, client_id, method, duration_us, actor`

// Record implements audit.Log: many entries share one flush to disk. An entry
// without a time gets the time of now.
func (s Audit) Record(ctx context.Context, e audit.Entry) error {
	if e.At.IsZero() {
		e.At = s.now()
	}
	p := e.Principal
	_, err := s.execIn(&unit{ctx: ctx, single: true, journal: true}, `INSERT INTO audit (`+auditColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
		millis(e.At), brief(e.RequestID), brief(e.Operation), brief(e.Phase), brief(e.Outcome), brief(e.Object), brief(e.Remote), brief(e.Detail),
		brief(p.UserID), brief(p.Login), brief(p.Group), p.Operator, brief(p.TokenID), brief(p.ClientID), brief(p.Method), e.Duration.Microseconds(), brief(p.Actor))
	return err
}

// Last returns the newest entries, oldest of them first. The groups of an
// operator are not kept.
func (s Audit) Last(ctx context.Context, limit int) ([]audit.Entry, error) {
	list, err := all(ctx, s.DB, func(r row) (audit.Entry, error) { return scanEntry(r) },
		"SELECT "+auditColumns+" FROM audit ORDER BY id DESC LIMIT $1", limit)
	slices.Reverse(list)
	return list, err
}

// briefLength bounds a text of the journal, in octets. Parts of an entry come
// from strangers, such as a path or a login.
const briefLength = 1024

func brief(s string) string {
	if len(s) <= briefLength {
		return s
	}
	return strings.ToValidUTF8(s[:briefLength], "") // without the half of a character at the end
}

// AuditFilter selects entries of the journal; an empty field does not.
type AuditFilter struct {
	UserID       string // as the caller or as what was acted on
	Login        string // of the caller
	Operation    string
	Outcome      string
	Since        time.Time
	OutcomesOnly bool  // without attempts
	Before       int64 // only entries older than this position; 0 begins with the newest
}

// Read returns the newest entries that match, oldest of them first, and the
// position to go on reading before.
func (s Audit) Read(ctx context.Context, f AuditFilter, limit int) (list []audit.Entry, before int64, err error) {
	var where []string
	var args []any
	add := func(wanted bool, condition string, arg any) {
		if wanted {
			args = append(args, arg)
			where = append(where, strings.ReplaceAll(condition, "?", "$"+strconv.Itoa(len(args))))
		}
	}
	add(f.UserID != "", "(user_id = ? OR object = ?)", f.UserID)
	add(f.Login != "", "login = ?", f.Login)
	add(f.Operation != "", "operation = ?", f.Operation)
	add(f.Outcome != "", "outcome = ?", f.Outcome)
	add(!f.Since.IsZero(), "at >= ?", millis(f.Since))
	add(f.OutcomesOnly, "phase = ?", audit.Done)
	add(f.Before > 0, "id < ?", f.Before)
	condition := ""
	if len(where) > 0 {
		condition = " WHERE " + strings.Join(where, " AND ")
	}
	args = append(args, limit)
	type numbered struct {
		id int64
		audit.Entry
	}
	rows, err := all(ctx, s.DB, func(r row) (n numbered, err error) {
		n.Entry, err = scanEntry(r, &n.id)
		return n, err
	}, "SELECT id, "+auditColumns+" FROM audit"+condition+" ORDER BY id DESC LIMIT $"+strconv.Itoa(len(args)), args...)
	if err != nil {
		return nil, 0, err
	}
	for _, n := range slices.Backward(rows) {
		list = append(list, n.Entry)
	}
	if len(rows) > 0 {
		before = rows[len(rows)-1].id
	}
	return list, before, nil
}

// scanEntry scans the columns of an entry behind those of first.
func scanEntry(r row, first ...any) (e audit.Entry, err error) {
	var us int64
	p := &e.Principal
	err = r.Scan(append(first, (*timeField)(&e.At), &e.RequestID, &e.Operation, &e.Phase, &e.Outcome, &e.Object, &e.Remote, &e.Detail,
		&p.UserID, &p.Login, &p.Group, &p.Operator, &p.TokenID, &p.ClientID, &p.Method, &us, &p.Actor)...)
	e.Duration = time.Duration(us) * time.Microsecond
	return e, err
}
