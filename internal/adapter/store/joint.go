// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tamga/internal/adapter/store/lite"
	"tamga/pki/suite/gather"
)

// joint lets callers who read rows of SQLite at the same moment read them together. Each
// commit makes a connection forget the pages it had, so under load most of a small read is
// loading pages again. Callers who come together load them once, and callers of the same key
// share a statement. A caller alone does not wait.
type joint[A any] struct {
	file   *sqliteFile
	query  string // of the key $1 and maybe the time $2
	timed  bool
	scan   func(r row, before ...any) (A, error)
	lasts  func(A) bool // whether a row stays the same unless it is changed; nil: no row does
	recent recent
	reads  *gather.Calls[read[A]]
}

// read is a key and its row.
type read[A any] struct {
	ctx    context.Context // of the caller, for its values
	key    string
	at     int64
	answer found[A]
}

func newJoint[A any](file *sqliteFile, query string, timed bool, scan func(r row, before ...any) (A, error)) *joint[A] {
	j := &joint[A]{file: file, query: query, timed: timed, scan: scan}
	j.reads = gather.New(math.MaxInt, j.readAll)
	return j
}

// read returns the row of a key. The statement that reads it begins after the call of read, or
// there was no commit between that statement and the call.
func (j *joint[A]) read(ctx context.Context, key string, at time.Time) (value A, ok bool, err error) {
	key = legibleText(key)
	if state, known := j.state(); known {
		if r, has := j.recent.at(state, key); has {
			if value, err = j.scan(r); err != nil {
				return value, false, fmt.Errorf("store: %w", err)
			}
			return value, true, nil
		}
	}
	q := &read[A]{ctx: ctx, key: key, at: millis(at)}
	j.reads.Do(q)
	return q.answer.value, q.answer.found, q.answer.err
}

// state returns the state of the file if rows are remembered.
func (j *joint[A]) state() (s lite.State, known bool) {
	if j.lasts == nil {
		return s, false
	}
	return j.file.state()
}

// readAll answers callers. If they ask for more than one key, one transaction reads all.
func (j *joint[A]) readAll(asked []*read[A]) {
	slices.SortStableFunc(asked, func(a, b *read[A]) int { return strings.Compare(a.key, b.key) })
	// A row is read in microseconds, and watching the contexts meanwhile costs more.
	ctx := context.WithoutCancel(asked[0].ctx)
	// The state comes first: what is read is of this state or a later one. If it is later, the
	// state has passed, and no caller gets the remembered row.
	keep := func(string, row, A) {}
	if state, known := j.state(); known {
		keep = func(key string, r row, value A) {
			if j.lasts(value) {
				j.recent.keep(state, key, r.(lite.Row))
			}
		}
	}
	from, end, err := reader(j.file), func() {}, error(nil)
	if asked[0].key != asked[len(asked)-1].key {
		from, end, err = j.file.reading(ctx)
	}
	for len(asked) > 0 {
		n := 1
		for n < len(asked) && asked[n].key == asked[0].key {
			n++
		}
		j.readOne(ctx, from, err, asked[:n], keep)
		asked = asked[n:]
	}
	end()
}

// readOne answers callers who ask for the same key. Each gets values of their own. The time
// is that of the last caller.
func (j *joint[A]) readOne(ctx context.Context, from reader, err error, asked []*read[A], keep func(string, row, A)) {
	if err == nil {
		args := []any{asked[0].key, asked[len(asked)-1].at}
		if !j.timed {
			args = args[:1]
		}
		err = unpanicked(func() error {
			return from.query(ctx, lite.Keep, j.query, args, func(r row) error {
				for _, q := range asked {
					q.answer.value, q.answer.err = j.scan(r)
					q.answer.found = true
				}
				if asked[0].answer.err == nil {
					keep(asked[0].key, r, asked[0].answer.value)
				}
				return nil
			})
		})
	}
	for _, q := range asked {
		if err != nil {
			q.answer.err = err
		}
		if q.answer.err != nil {
			q.answer = found[A]{err: fmt.Errorf("store: %w", q.answer.err)}
		}
	}
}

// always is for rows that depend on nothing but the database.
func always[A any](A) bool { return true }
