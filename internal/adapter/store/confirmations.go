// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"tamga/internal/domain/confirm"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/signin"
)

// Confirmations implements confirm.Store, confirm.AttemptStore, confirm.CallbackStore and
// confirm.Assigned.
type Confirmations struct{ *DB }

var (
	_ confirm.Store         = Confirmations{}
	_ confirm.AttemptStore  = Confirmations{}
	_ confirm.Assigned      = Confirmations{}
	_ confirm.CallbackStore = Confirmations{}
)

// Atomic implements confirm.Store; see DB.locked.
func (s Confirmations) Atomic(ctx context.Context, set lock.Set, fn func(ctx context.Context) error) error {
	return s.locked(ctx, set, fn)
}

const confirmationColumns = `id, ref_id, user_id, client_id, operator, sign_in, purpose, action, documents, what, bytes,
	state, method, address, label, number, round, sent_at, answer_before, attempts, resends, declined, code, message,
	created_at, updated_at, confirm_before, confirmed_at, complete_before, ended_at, callback, origin`

func scanConfirmation(r row) (c confirm.Record, err error) {
	var what []byte
	var declined string
	err = r.Scan(&c.ID, &c.RefID, &c.UserID, &c.ClientID, &c.Operator, &c.SignIn, &c.Purpose, &c.Action, &c.Documents, &what, &c.Bytes,
		&c.State, &c.Method, &c.Address, &c.Label, &c.Number, &c.Round, (*timeField)(&c.SentAt), (*timeField)(&c.AnswerBefore), &c.Attempts, &c.Resends,
		&declined, &c.Code, &c.Message,
		(*timeField)(&c.CreatedAt), (*timeField)(&c.UpdatedAt), (*timeField)(&c.ConfirmBefore), (*timeField)(&c.ConfirmedAt),
		(*timeField)(&c.CompleteBefore), (*timeField)(&c.EndedAt), &c.Callback, &c.Origin)
	if err == nil && len(what) != len(c.What) {
		err = fmt.Errorf("store: the digest of a confirmation has %d bytes, want %d", len(what), len(c.What))
	}
	copy(c.What[:], what)
	if err == nil {
		c.Declined, err = readIndexes(declined)
	}
	return c, err
}

// writeIndexes returns numbers as text, separated by commas. readIndexes is the inverse.
func writeIndexes(list []int) string {
	var b strings.Builder
	for i, n := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

func readIndexes(text string) (list []int, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, fmt.Errorf("store: the declined documents of a confirmation: %w", err)
		}
		list = append(list, n)
	}
	return list, nil
}

// insertConfirmation returns the statements that add a record with its content if there is
// room: one on PostgreSQL, two on SQLite. The first 20 parameters are those of the record.
func (s Confirmations) insertConfirmation(operation bool) []string {
	record := `INSERT INTO confirmations (id, ref_id, user_id, client_id, operator, sign_in, purpose, action, documents, what, bytes,
			state, method, address, label, number, round, sent_at, answer_before, attempts, resends, declined, code, message,
			created_at, updated_at, confirm_before, confirmed_at, complete_before, due_at, ended_at, origin)
		SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, '', '', '', '', 0, 0, 0, 0, 0, '', '', '', $13, $14, $15, 0, 0, $15, 0, CAST($20 AS TEXT)
		WHERE NOT EXISTS (SELECT 1 FROM confirmation_usage u WHERE u.user_id = $3 AND u.purpose = $7 AND (u.records >= $16 OR u.bytes + $11 > $17))`
	if operation {
		held := s.documents.held.of("$3")
		record += " AND " + held.objects + " + 1 <= CAST($18 AS BIGINT) AND " + held.size + " + $11 <= CAST($19 AS BIGINT)"
	} else {
		record += " AND CAST($18 AS BIGINT) + CAST($19 AS BIGINT) > 0"
	}
	const content = "INSERT INTO confirmation_contents (id, fields, shown, offline, result, approval, outline) "
	if s.engine == postgresEngine {
		return []string{"WITH r AS (" + record + " RETURNING id) " + content + "SELECT r.id, $21, $22, $23, $23, $23, $24 FROM r"}
	}
	return []string{record, content + "VALUES ($1, $2, $3, $4, $4, $4, $5)"}
}

// AddConfirmation implements confirm.Store.
func (s Confirmations) AddConfirmation(ctx context.Context, r *confirm.Record, c *confirm.StoredContent, q confirm.Quota, documents confirm.DocumentQuotas) (room confirm.Room, err error) {
	if q.Records < 1 || r.Bytes > q.Bytes {
		return confirm.NoRoom, nil
	}
	add := func() error {
		return s.Unit(ctx, func(ctx context.Context) (err error) {
			room, err = s.addConfirmation(ctx, r, c, q, documents.User)
			return err
		})
	}
	if r.Purpose != confirm.ForOperation {
		err = add()
	} else {
		var fits bool
		all := holding{documents.All.Records, documents.All.Bytes}
		more := holding{1, r.Bytes}
		fits, err = s.documents.adding(ctx, s.DB, r.UserID, more, all, add)
		switch {
		case err == nil && !fits:
			return confirm.NoDocuments, nil
		case err == nil && room != confirm.Added:
			s.documents.gone(totalsOf(r.UserID, more))
		}
	}
	if errors.Is(err, errNoPlace) && s.transaction(ctx) == nil {
		err = nil
	}
	return room, err
}

// errNoPlace rolls back a record when another unit, which did not lock the user, took the
// last place.
var errNoPlace = errors.New("store: the user has too many open confirmations")

// addConfirmation does the work of AddConfirmation in one unit.
func (s Confirmations) addConfirmation(ctx context.Context, r *confirm.Record, c *confirm.StoredContent, q, documents confirm.Quota) (confirm.Room, error) {
	none := []byte{}
	record := []any{
		r.ID, r.RefID, r.UserID, r.ClientID, r.Operator, r.SignIn, string(r.Purpose), r.Action, r.Documents, r.What[:], r.Bytes,
		string(r.State), millis(r.CreatedAt), millis(r.UpdatedAt), millis(r.ConfirmBefore), q.Records, q.Bytes, documents.Records, documents.Bytes, r.Origin,
	}
	content := []any{notNull(c.Fields), notNull(c.Shown), none, notNull(c.Outline)}
	statements := s.insertConfirmation(r.Purpose == confirm.ForOperation)
	args := [][]any{record, append([]any{r.ID}, content...)}
	if len(statements) == 1 {
		args = [][]any{append(record, content...)}
	}
	for i, statement := range statements {
		n, err := s.exec(ctx, statement, args[i]...)
		if err != nil {
			return confirm.NoRoom, err
		}
		if n == 0 {
			return s.lacking(ctx, r, q)
		}
	}
	// The count was checked above and is locked last, in the order of locks.
	n, err := s.exec(ctx, `INSERT INTO confirmation_usage AS u (user_id, purpose, records, bytes) VALUES ($1, $2, 1, $3)
		ON CONFLICT (user_id, purpose) DO UPDATE SET records = u.records + 1, bytes = u.bytes + excluded.bytes
		WHERE u.records < $4 AND u.bytes + excluded.bytes <= $5`,
		r.UserID, string(r.Purpose), r.Bytes, q.Records, q.Bytes)
	if err == nil && n == 0 {
		return confirm.NoRoom, errNoPlace
	}
	return confirm.Added, err
}

// lacking returns which quota has no room for a record.
func (s Confirmations) lacking(ctx context.Context, r *confirm.Record, q confirm.Quota) (confirm.Room, error) {
	_, full, err := one(ctx, s.DB, scalar[int64], "SELECT records FROM confirmation_usage WHERE user_id = $1 AND purpose = $2 AND (records >= $3 OR bytes + $4 > $5)",
		r.UserID, string(r.Purpose), q.Records, r.Bytes, q.Bytes)
	if full || r.Purpose != confirm.ForOperation {
		return confirm.NoRoom, err
	}
	return confirm.NoDocuments, err
}

// Confirmation implements confirm.Store.
func (s Confirmations) Confirmation(ctx context.Context, id string) (confirm.Record, bool, error) {
	return one(ctx, s.DB, scanConfirmation, "SELECT "+confirmationColumns+" FROM confirmations WHERE id = $1", id)
}

// ConfirmationByRef implements confirm.Store.
func (s Confirmations) ConfirmationByRef(ctx context.Context, refID string) (confirm.Record, bool, error) {
	return one(ctx, s.DB, scanConfirmation, "SELECT "+confirmationColumns+" FROM confirmations WHERE ref_id = $1", refID)
}

// ConfirmationContent implements confirm.Store.
func (s Confirmations) ConfirmationContent(ctx context.Context, id string) (confirm.StoredContent, bool, error) {
	return one(ctx, s.DB, func(r row) (c confirm.StoredContent, err error) {
		err = r.Scan(&c.Fields, &c.Shown, &c.Offline, &c.Result, &c.Approval, &c.Outline)
		return c, err
	}, "SELECT fields, shown, offline, result, approval, outline FROM confirmation_contents WHERE id = $1", id)
}

// SetOffline implements confirm.Store.
func (s Confirmations) SetOffline(ctx context.Context, id string, sealed []byte) error {
	_, err := s.exec(ctx, "UPDATE confirmation_contents SET offline = $2 WHERE id = $1", id, notNull(sealed))
	return err
}

// OpenConfirmations implements confirm.Store.
func (s Confirmations) OpenConfirmations(ctx context.Context, userID, after string, now time.Time, limit int) ([]confirm.Record, error) {
	return all(ctx, s.DB, scanConfirmation, "SELECT "+confirmationColumns+` FROM confirmations
		WHERE user_id = $1 AND ended_at = 0 AND due_at > $2
			AND (CAST($3 AS TEXT) = '' OR (created_at, id) > (SELECT a.created_at, a.id FROM confirmations a WHERE a.id = $3 AND a.user_id = $1))
		ORDER BY created_at, id LIMIT $4`, userID, millis(now), after, limit)
}

// BeginChallenge implements confirm.Store.
func (s Confirmations) BeginChallenge(ctx context.Context, id string, c confirm.Challenge) (fields []byte, begun bool, err error) {
	step := 1
	sentBefore := c.At
	if c.Repeat {
		step, sentBefore = 0, c.SentBefore
	}
	return returning(ctx, s.DB, scalar[[]byte], `UPDATE confirmations SET state = 'Challenged', method = $2, address = $3, label = $4, number = $5,
			round = round + $6, sent_at = $7, answer_before = $8, updated_at = $7,
			attempts = CASE WHEN CAST($6 AS BIGINT) = 0 THEN attempts ELSE 0 END,
			resends = CASE WHEN CAST($6 AS BIGINT) = 0 THEN resends + 1 ELSE 0 END
		WHERE id = $1 AND state IN ('Created', 'Challenged') AND round = $9 AND due_at > $7 AND sent_at <= $10
			AND NOT EXISTS (SELECT 1 FROM confirmation_failures f WHERE f.user_id = confirmations.user_id AND f.method = $2 AND f.locked_until > $7)
		RETURNING (SELECT o.fields FROM confirmation_contents o WHERE o.id = confirmations.id)`,
		id, c.Method, c.Address, c.Label, c.Number, step, millis(c.At), millis(c.AnswerBefore), c.Before, millis(sentBefore))
}

// CountAttempt implements confirm.Store.
func (s Confirmations) CountAttempt(ctx context.Context, refID, userID, clientID string, now time.Time, limit int) (confirm.Record, bool, error) {
	return returning(ctx, s.DB, scanConfirmation, `UPDATE confirmations SET attempts = attempts + 1
		WHERE ref_id = $1 AND user_id = $2 AND (CAST($3 AS TEXT) = '' OR client_id = $3)
			AND state = 'Challenged' AND attempts < $5 AND answer_before > $4 AND due_at > $4
			AND NOT EXISTS (SELECT 1 FROM confirmation_failures f WHERE f.user_id = confirmations.user_id AND f.method = confirmations.method AND f.locked_until > $4)
		RETURNING `+confirmationColumns, refID, userID, clientID, millis(now), limit)
}

// moveSet is the part of a move that sets columns. Its parameters are those of moved.
const moveSet = ` SET state = $2, updated_at = $3,
		confirmed_at = CASE WHEN CAST($4 AS BIGINT) <> 0 THEN CAST($3 AS BIGINT) ELSE confirmed_at END,
		complete_before = CASE WHEN CAST($4 AS BIGINT) <> 0 THEN CAST($4 AS BIGINT) ELSE complete_before END,
		due_at = CASE WHEN CAST($4 AS BIGINT) <> 0 THEN CAST($4 AS BIGINT) ELSE due_at END,
		ended_at = $5, declined = CASE WHEN CAST($6 AS TEXT) <> '' THEN CAST($6 AS TEXT) ELSE declined END,
		code = $7, message = $8 `

// moved returns the parameters of a move: $1 is free, $2 to $8 are those of moveSet, $9 to
// $11 are the states it leads from.
func moved(first any, m confirm.Move) ([]any, error) {
	if len(m.From) < 1 || len(m.From) > 3 {
		return nil, fmt.Errorf("store: a move from %d states, want 1 to 3", len(m.From))
	}
	endedAt := int64(0)
	if m.To.Final() {
		endedAt = millis(m.At)
	}
	args := []any{first, string(m.To), millis(m.At), millis(m.CompleteBefore), endedAt, writeIndexes(m.Declined), m.Code, m.Message}
	for i := range 3 {
		args = append(args, string(m.From[min(i, len(m.From)-1)]))
	}
	return args, nil
}

// MoveConfirmation implements confirm.Store.
func (s Confirmations) MoveConfirmation(ctx context.Context, id string, m confirm.Move) (confirm.Record, bool, error) {
	args, err := moved(id, m)
	if err != nil {
		return confirm.Record{}, false, err
	}
	liveAfter := int64(-1)
	if m.Live {
		liveAfter = millis(m.At)
	}
	var r confirm.Record
	var found bool
	err = s.Unit(ctx, func(ctx context.Context) (err error) {
		r, found, err = returning(ctx, s.DB, scanConfirmation, "UPDATE confirmations"+moveSet+`
			WHERE id = $1 AND state IN ($9, $10, $11) AND ended_at = 0 AND (CAST($12 AS BIGINT) = 0 OR round = $12) AND due_at > $13
			RETURNING `+confirmationColumns, append(args, m.Round, liveAfter)...)
		if err != nil || !found {
			return err
		}
		if len(m.Approval) > 0 {
			if _, err := s.exec(ctx, "UPDATE confirmation_contents SET approval = $2 WHERE id = $1", id, m.Approval); err != nil {
				return err
			}
		}
		return s.closed(ctx, m, []confirm.Record{r})
	})
	return r, found && err == nil, err
}

// MoveConfirmations implements confirm.Store.
func (s Confirmations) MoveConfirmations(ctx context.Context, userID string, dueBefore time.Time, m confirm.Move, limit int) ([]confirm.Record, error) {
	args, err := moved(userID, m)
	if err != nil {
		return nil, err
	}
	// Two texts, so that each uses its index.
	which, order := "user_id = $1", " ORDER BY id LIMIT $12"+s.forUpdate()
	if userID == "" {
		which, order = "CAST($1 AS TEXT) = ''", " ORDER BY due_at LIMIT $12"+s.skipLocked()
	}
	if !dueBefore.IsZero() {
		which += " AND due_at <= $13 AND NOT EXISTS (SELECT 1 FROM operations o WHERE o.id = confirmations.id AND o.leased_until > $13)"
	} else {
		which += " AND CAST($13 AS BIGINT) = 0"
		if userID == "" {
			return nil, errors.New("store: a move of the confirmations of all users, want those that are due")
		}
	}
	var list []confirm.Record
	err = s.Unit(ctx, func(ctx context.Context) (err error) {
		// Materialized: a plan that reads a subquery again would lock other rows.
		list, err = all(ctx, s.DB, scanConfirmation, `WITH chosen AS MATERIALIZED (SELECT id FROM confirmations WHERE ended_at = 0 AND `+which+order+`)
			UPDATE confirmations`+moveSet+`WHERE id IN (SELECT id FROM chosen) AND state IN ($9, $10, $11) AND ended_at = 0 AND `+which+`
			RETURNING `+confirmationColumns, append(args, limit, millis(dueBefore))...)
		if err != nil {
			return err
		}
		return s.closed(ctx, m, list)
	})
	return list, err
}

// closed does what belongs to the end of records, in the transaction that ends them.
func (s Confirmations) closed(ctx context.Context, m confirm.Move, list []confirm.Record) error {
	if !m.To.Final() {
		return nil
	}
	type key struct{ user, purpose string }
	type sum struct{ records, bytes int64 }
	sums := map[key]sum{}
	for _, r := range list {
		k := key{r.UserID, string(r.Purpose)}
		sums[k] = sum{sums[k].records + 1, sums[k].bytes + r.Bytes}
		if _, err := s.exec(ctx, "UPDATE confirmation_contents SET offline = $2, result = $3 WHERE id = $1", r.ID, []byte{}, notNull(m.Proof)); err != nil {
			return err
		}
	}
	// In one order, so that transactions lock rows in the same order.
	keys := slices.SortedFunc(maps.Keys(sums), func(a, b key) int {
		return cmp.Or(strings.Compare(a.user, b.user), strings.Compare(a.purpose, b.purpose))
	})
	for _, k := range keys {
		if k.purpose == string(confirm.ForOperation) {
			s.documents.gone(totals{all: holding{sums[k].records, sums[k].bytes}})
		}
		// Most often it was the last one.
		n, err := s.exec(ctx, "DELETE FROM confirmation_usage WHERE user_id = $1 AND purpose = $2 AND records <= $3", k.user, k.purpose, sums[k].records)
		if err == nil && n == 0 {
			_, err = s.exec(ctx, "UPDATE confirmation_usage SET records = records - $3, bytes = bytes - $4 WHERE user_id = $1 AND purpose = $2",
				k.user, k.purpose, sums[k].records, sums[k].bytes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// WaitingSignIns implements confirm.AttemptStore.
func (s Confirmations) WaitingSignIns(ctx context.Context, userID string, p confirm.Purpose, until time.Time) ([]confirm.WaitingSignIn, error) {
	scan := func(r row) (w confirm.WaitingSignIn, err error) { return w, r.Scan(&w.ID, &w.Origin) }
	return all(ctx, s.DB, scan, `SELECT id, origin FROM confirmations WHERE user_id = $1 AND ended_at = 0 AND purpose = $2
		AND created_at <= $3 AND state IN ('Created', 'Challenged') ORDER BY created_at, id`, userID, string(p), millis(until))
}

// SweepConfirmations implements confirm.Store.
func (s Confirmations) SweepConfirmations(ctx context.Context, endedBefore time.Time) error {
	for n := sweepPortion; n == sweepPortion; {
		err := s.Unit(ctx, func(ctx context.Context) error {
			gone, err := all(ctx, s.DB, scalar[string], `DELETE FROM confirmations WHERE id IN
				(SELECT id FROM confirmations WHERE ended_at <> 0 AND ended_at < $1 ORDER BY ended_at LIMIT $2`+s.skipLocked()+`)
				RETURNING id`, millis(endedBefore), sweepPortion)
			if err != nil {
				return err
			}
			for _, id := range gone {
				if _, err := s.exec(ctx, "DELETE FROM confirmation_contents WHERE id = $1", id); err != nil {
					return err
				}
			}
			n = len(gone)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// SetCallback implements confirm.CallbackStore.
func (s Confirmations) SetCallback(ctx context.Context, id, address string) error {
	_, err := s.exec(ctx, "UPDATE confirmations SET callback = $2 WHERE id = $1 AND ended_at = 0 AND confirmed_at = 0", id, address)
	return err
}

// AssignedMethods implements confirm.Assigned.
func (s Confirmations) AssignedMethods(ctx context.Context, userID string) ([]string, error) {
	return all(ctx, s.DB, scalar[string], "SELECT method FROM user_methods WHERE user_id = $1", userID)
}

// CountWrong implements confirm.AttemptStore.
func (s Confirmations) CountWrong(ctx context.Context, userID, method string, now time.Time, rule confirm.Limit) (bool, error) {
	return beginAttempt(ctx, s.DB, "confirmation_failures", []string{"user_id", "method"}, []any{userID, method}, now,
		signin.LockOut{Failures: rule.Wrong, Window: rule.Window, LockOut: rule.Closed})
}

// ClosedUntil implements confirm.AttemptStore.
func (s Confirmations) ClosedUntil(ctx context.Context, userID, method string) (time.Time, error) {
	at, _, err := one(ctx, s.DB, scalar[int64], "SELECT locked_until FROM confirmation_failures WHERE user_id = $1 AND method = $2", userID, method)
	return fromMillis(at), err
}

// KeepAnswer implements confirm.AttemptStore.
func (s Confirmations) KeepAnswer(ctx context.Context, id string, sealed []byte, expires time.Time) error {
	_, err := s.exec(ctx, `INSERT INTO confirmation_answers (id, sealed, expires_at) VALUES ($1, $2, $3)
		ON CONFLICT (id) DO UPDATE SET sealed = excluded.sealed, expires_at = excluded.expires_at`, id, sealed, millis(expires))
	return err
}

// KeptAnswer implements confirm.AttemptStore.
func (s Confirmations) KeptAnswer(ctx context.Context, id string, now time.Time) ([]byte, bool, error) {
	return one(ctx, s.DB, scalar[[]byte], "SELECT sealed FROM confirmation_answers WHERE id = $1 AND expires_at > $2", id, millis(now))
}

// DropAnswer implements confirm.AttemptStore.
func (s Confirmations) DropAnswer(ctx context.Context, id string) error {
	_, err := s.exec(ctx, "DELETE FROM confirmation_answers WHERE id = $1", id)
	return err
}

// CloseMethod implements confirm.AttemptStore.
func (s Confirmations) CloseMethod(ctx context.Context, userID, method string, now, until time.Time) error {
	_, err := s.exec(ctx, `INSERT INTO confirmation_failures (user_id, method, failures, window_from, locked_until) VALUES ($1, $2, 0, $3, $4)
		ON CONFLICT (user_id, method) DO UPDATE SET failures = 0, window_from = excluded.window_from, locked_until = excluded.locked_until`,
		userID, method, millis(now), millis(until))
	return err
}

// OpenMethod implements confirm.AttemptStore.
func (s Confirmations) OpenMethod(ctx context.Context, userID, method string) error {
	_, err := s.exec(ctx, "DELETE FROM confirmation_failures WHERE user_id = $1 AND method = $2", userID, method)
	return err
}

// ForgiveAnswers implements confirm.AttemptStore.
func (s Confirmations) ForgiveAnswers(ctx context.Context, userID string) error {
	return s.Unit(ctx, func(ctx context.Context) error {
		for _, table := range []string{"confirmation_failures", "confirmation_pushes"} {
			if _, err := s.exec(ctx, "DELETE FROM "+table+" WHERE user_id = $1", userID); err != nil {
				return err
			}
		}
		return nil
	})
}

// CountPush implements confirm.AttemptStore.
func (s Confirmations) CountPush(ctx context.Context, userID, challenge string, now, until time.Time, most int) (free time.Time, err error) {
	err = s.Unit(ctx, func(ctx context.Context) error {
		ends, err := all(ctx, s.DB, scalar[int64], "SELECT expires_at FROM confirmation_pushes WHERE user_id = $1 AND expires_at > $2 ORDER BY expires_at DESC LIMIT $3",
			userID, millis(now), most)
		if err != nil {
			return err
		}
		if free = (time.Time{}); len(ends) >= most {
			free = fromMillis(ends[most-1])
			return nil
		}
		_, err = s.exec(ctx, "INSERT INTO confirmation_pushes (user_id, challenge, expires_at) VALUES ($1, $2, $3)", userID, challenge, millis(until))
		return err
	})
	return free, err
}

// SweepAnswers implements confirm.AttemptStore.
func (s Confirmations) SweepAnswers(ctx context.Context, windowFromBefore, now time.Time) error {
	for _, sweep := range []struct {
		statement string
		args      []any
	}{
		{`DELETE FROM confirmation_failures WHERE (user_id, method) IN
			(SELECT user_id, method FROM confirmation_failures WHERE window_from <= $1 AND locked_until <= $2 LIMIT $3` + s.skipLocked() + `)`,
			[]any{millis(windowFromBefore), millis(now), sweepPortion}},
		{`DELETE FROM confirmation_answers WHERE id IN
			(SELECT id FROM confirmation_answers WHERE expires_at <= $1 LIMIT $2` + s.skipLocked() + `)`,
			[]any{millis(now), sweepPortion}},
		{`DELETE FROM confirmation_pushes WHERE (user_id, challenge) IN
			(SELECT user_id, challenge FROM confirmation_pushes WHERE expires_at <= $1 LIMIT $2` + s.skipLocked() + `)`,
			[]any{millis(now), sweepPortion}},
	} {
		for n := int64(sweepPortion); n == sweepPortion; {
			var err error
			if n, err = s.exec(ctx, sweep.statement, sweep.args...); err != nil {
				return err
			}
		}
	}
	return nil
}
