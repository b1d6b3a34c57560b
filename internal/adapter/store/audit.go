package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"tamga/internal/domain/audit"
)

// Audit satisfies audit.Log.
type Audit struct{ *DB }

var _ audit.Log = Audit{}

const auditColumns = `at, request_id, operation, phase, outcome, object, remote, detail,
	user_id, login, group_name, operator, token_id, client_id, method, duration_us`

// Record implements audit.Log: many entries share one flush to disk. An entry
// without a time gets the time of now.
func (s Audit) Record(ctx context.Context, e audit.Entry) error {
	if e.At.IsZero() {
		e.At = s.now()
	}
	p := e.Principal
	_, err := s.exec(ctx, `INSERT INTO audit (`+auditColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
		millis(e.At), brief(e.RequestID), brief(e.Operation), brief(e.Phase), brief(e.Outcome), brief(e.Object), brief(e.Remote), brief(e.Detail),
		brief(p.UserID), brief(p.Login), brief(p.Group), p.Operator, brief(p.TokenID), brief(p.ClientID), brief(p.Method), e.Duration.Microseconds())
	return err
}

// Last returns the newest entries, oldest of them first. The groups of an
// operator are not kept.
func (s Audit) Last(ctx context.Context, limit int) ([]audit.Entry, error) {
	list, err := all(ctx, s.DB, func(r row) (e audit.Entry, err error) {
		var us int64
		p := &e.Principal
		err = r.Scan((*timeField)(&e.At), &e.RequestID, &e.Operation, &e.Phase, &e.Outcome, &e.Object, &e.Remote, &e.Detail,
			&p.UserID, &p.Login, &p.Group, &p.Operator, &p.TokenID, &p.ClientID, &p.Method, &us)
		e.Duration = time.Duration(us) * time.Microsecond
		return e, err
	}, "SELECT "+auditColumns+" FROM audit ORDER BY id DESC LIMIT $1", limit)
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
