// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tamga/internal/adapter/store/lite"
	"tamga/internal/domain/lock"
	"tamga/internal/domain/user"
)

var _ user.BatchStore = Users{}

// rowPortions are the numbers of rows that one statement adds, the largest first.
var rowPortions = [...]int{64, 16, 4, 2, 1}

// insertion adds rows to a table.
type insertion struct {
	rank       int // rows of a higher rank may refer to rows of a lower one
	columns    int
	statements [len(rowPortions)]string // the one at index i adds rowPortions[i] rows
	skips      bool                     // rows that exist are left out
}

// ifFree ends an insertion that leaves out rows that exist.
const ifFree = " ON CONFLICT DO NOTHING"

func newInsertion(rank int, table, columns, end string) *insertion {
	in := &insertion{rank: rank, columns: strings.Count(columns, ",") + 1, skips: end == ifFree}
	for i, n := range rowPortions {
		rows, number := make([]string, n), 0
		for r := range rows {
			marks := make([]string, in.columns)
			for m := range marks {
				number++
				marks[m] = "$" + strconv.Itoa(number)
			}
			rows[r] = "(" + strings.Join(marks, ", ") + ")"
		}
		in.statements[i] = "INSERT INTO " + table + " (" + columns + ") VALUES " + strings.Join(rows, ", ") + end
	}
	return in
}

// addTo adds rows, several with one statement, because on PostgreSQL each statement is a
// round trip to the server. It returns the number of rows that were added.
func (in *insertion) addTo(ctx context.Context, t *transaction, rows [][]any) (added int64, err error) {
	var args []any
	for i, n := range rowPortions {
		for ; len(rows) >= n; rows = rows[n:] {
			args = args[:0]
			for _, r := range rows[:n] {
				args = append(args, r...)
			}
			one, err := t.exec(ctx, in.statements[i], args)
			if err != nil {
				return 0, fmt.Errorf("store: %w", err)
			}
			added += one
		}
	}
	return added, nil
}

// insert adds one row and returns 1 if it was added. In a transaction of Together the row
// waits for others, and the answer is always 1; see later.
func (db *DB) insert(ctx context.Context, in *insertion, args ...any) (int64, error) {
	if t := db.transaction(ctx); t != nil && t.later != nil && !t.later.alone {
		t.later.add(in, legible(args))
		return 1, nil
	}
	return db.exec(ctx, in.statements[len(rowPortions)-1], args...)
}

// Together implements user.BatchStore.
//
// New rows wait in memory, and many of them become one statement. A change that is undone
// before a statement was needed leaves nothing to undo. If a row turns out to be taken, the
// transaction is rolled back, and all changes run again with statements of their own.
func (s Users) Together(ctx context.Context, set lock.Set, keep bool, changes []func(ctx context.Context) (bool, error)) error {
	if s.transaction(ctx) != nil {
		return errors.New("store: Together is inside another transaction")
	}
	err := s.together(ctx, set, keep, false, changes)
	if errors.Is(err, errRowTaken) {
		err = s.together(ctx, set, keep, true, changes)
	}
	return err
}

var (
	errRowTaken = errors.New("store: a row that was to be added exists")
	errNotKept  = errors.New("store: nothing of this transaction is kept")
)

func (s Users) together(ctx context.Context, set lock.Set, keep, alone bool, changes []func(ctx context.Context) (bool, error)) error {
	err := s.locked(ctx, set, func(ctx context.Context) error {
		t := s.transaction(ctx)
		l := &later{alone: alone, rows: map[*insertion][][]any{}, marks: map[*insertion]int{}, read: map[string]any{}}
		t.later = l
		defer func() { t.later = nil }()
		for _, change := range changes {
			if err := l.begin(ctx, t); err != nil {
				return err
			}
			kept, err := change(ctx)
			if err != nil || kept && t.spoiled != nil {
				return cmp.Or(err, t.spoiled)
			}
			t.spoiled = nil // what a nested unit wanted to undo is undone now
			if err := l.end(ctx, t, kept); err != nil {
				return err
			}
		}
		if err := l.flush(ctx, t); err != nil {
			return err
		}
		if !keep {
			return errNotKept
		}
		return nil
	})
	if errors.Is(err, errNotKept) {
		return nil
	}
	return err
}

// later is what a transaction of Together has beside its statements.
type later struct {
	alone bool                   // no row waits
	order []*insertion           // by rank
	rows  map[*insertion][][]any // that wait
	marks map[*insertion]int     // how many of them are of earlier changes
	saved bool                   // the change that runs has a savepoint
	read  map[string]any         // what remembered has read
}

func (l *later) add(in *insertion, row []any) {
	if _, known := l.rows[in]; !known {
		l.order = append(l.order, in)
		slices.SortStableFunc(l.order, func(a, b *insertion) int { return a.rank - b.rank })
	}
	l.rows[in] = append(l.rows[in], row)
}

// begin begins a change.
func (l *later) begin(ctx context.Context, t *transaction) error {
	for _, in := range l.order {
		l.marks[in] = len(l.rows[in])
	}
	if l.alone {
		return l.separate(ctx, t)
	}
	return nil
}

// separate makes sure that the change that runs has a savepoint.
func (l *later) separate(ctx context.Context, t *transaction) error {
	if l.saved {
		return nil
	}
	l.saved = true
	if _, err := t.work.exec(ctx, "SAVEPOINT change", nil); err != nil {
		return fmt.Errorf("store: opening a savepoint: %w", err)
	}
	return nil
}

// end keeps or undoes the change that runs.
func (l *later) end(ctx context.Context, t *transaction, keep bool) error {
	if !keep {
		for _, in := range l.order {
			l.rows[in] = l.rows[in][:min(l.marks[in], len(l.rows[in]))]
		}
		if l.saved {
			if _, err := t.work.exec(ctx, "ROLLBACK TO SAVEPOINT change", nil); err != nil {
				return fmt.Errorf("store: undoing a change: %w", err)
			}
		}
	}
	if !l.saved {
		return nil
	}
	l.saved = false
	if _, err := t.work.exec(ctx, "RELEASE SAVEPOINT change", nil); err != nil {
		return fmt.Errorf("store: closing a savepoint: %w", err)
	}
	return nil
}

// before adds the rows that wait, since a statement follows that may need them.
func (l *later) before(ctx context.Context, t *transaction, query string) error {
	if l.alone {
		return nil
	}
	waiting := 0
	for _, in := range l.order {
		waiting += len(l.rows[in]) - l.marks[in]
	}
	earlier := map[*insertion][][]any{}
	for _, in := range l.order {
		earlier[in] = l.rows[in][:l.marks[in]]
		l.rows[in], l.marks[in] = l.rows[in][l.marks[in]:], 0
	}
	if err := l.write(ctx, t, earlier); err != nil {
		return err
	}
	if waiting > 0 || !strings.HasPrefix(query, "SELECT ") {
		if err := l.separate(ctx, t); err != nil {
			return err
		}
	}
	return l.flush(ctx, t)
}

// flush adds all rows that wait.
func (l *later) flush(ctx context.Context, t *transaction) error {
	rows := l.rows
	l.rows = map[*insertion][][]any{}
	err := l.write(ctx, t, rows)
	l.order = nil
	clear(l.marks)
	return err
}

// write adds rows.
func (l *later) write(ctx context.Context, t *transaction, rows map[*insertion][][]any) error {
	own := t.later
	t.later = nil // these statements need no rows that wait
	defer func() { t.later = own }()
	for _, in := range l.order {
		added, err := in.addTo(ctx, t, rows[in])
		if err != nil {
			return err
		}
		if in.skips && added != int64(len(rows[in])) {
			return errRowTaken
		}
	}
	return nil
}

// exec implements work. Rows that wait are added first.
func (t *transaction) exec(ctx context.Context, query string, args []any) (int64, error) {
	if t.later != nil {
		if err := t.later.before(ctx, t, query); err != nil {
			return 0, err
		}
	}
	return t.work.exec(ctx, query, args)
}

// query implements work. Rows that wait are added first.
func (t *transaction) query(ctx context.Context, keep lite.Keeping, query string, args []any, each func(row) error) error {
	if t.later != nil {
		if err := t.later.before(ctx, t, query); err != nil {
			return err
		}
	}
	return t.work.query(ctx, keep, query, args, each)
}

// remembered reads once in a transaction of Together what its changes do not change.
// Elsewhere it always reads. name must belong to one call only.
func remembered[T any](ctx context.Context, db *DB, name string, read func() (T, error)) (T, error) {
	t := db.transaction(ctx)
	if t == nil || t.later == nil {
		return read()
	}
	if v, has := t.later.read[name]; has {
		return v.(T), nil
	}
	v, err := read()
	if err == nil {
		t.later.read[name] = v
	}
	return v, err
}
