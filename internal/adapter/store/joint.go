// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"tamga/internal/adapter/store/lite"
)

// joint lets callers who read rows of SQLite at the same moment read them together. Each
// commit makes a connection forget the pages it had, so under load most of a small read is
// loading pages again. Callers who come together load them once, and callers of the same key
// share a statement. A caller alone waits for nobody.
type joint[A any] struct {
	file   *sqliteFile
	query  string // of the key $1 and maybe the time $2
	timed  bool
	scan   func(r row, before ...any) (A, error)
	recent *recent[A] // nil if every call reads the row
	mu     sync.Mutex
	asking []*lookup[A] // the first of them reads for all
}

// read returns the row of a key. The statement that reads it begins after the call of read.
func (j *joint[A]) read(ctx context.Context, key string, at time.Time) (value A, ok bool, err error) {
	q := &lookup[A]{ctx: ctx, key: legibleText(key), at: millis(at), answer: make(chan found[A], 1)}
	j.mu.Lock()
	j.asking = append(j.asking, q)
	first := len(j.asking) == 1
	j.mu.Unlock()
	if first {
		runtime.Gosched() // callers who are ready to ask do so now
		j.mu.Lock()
		asked := j.asking
		j.asking = nil
		j.mu.Unlock()
		j.readAll(asked)
	}
	// A row is read in microseconds, and watching ctx meanwhile costs more.
	a := <-q.answer
	return a.value, a.found, a.err
}

// readAll answers callers. If they ask for more than one key, one transaction reads all.
func (j *joint[A]) readAll(asked []*lookup[A]) {
	slices.SortStableFunc(asked, func(a, b *lookup[A]) int { return strings.Compare(a.key, b.key) })
	ctx := context.WithoutCancel(asked[0].ctx)
	if j.recent != nil {
		j.readRecent(ctx, asked)
		return
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
		j.readOne(ctx, from, err, asked[:n])
		asked = asked[n:]
	}
	end()
}

// readOne answers callers who ask for the same key. Each gets values of their own. The time
// is that of the last caller.
func (j *joint[A]) readOne(ctx context.Context, from reader, err error, asked []*lookup[A]) {
	answers := make([]found[A], len(asked))
	j.fill(ctx, from, err, asked, answers)
	for i, q := range asked {
		q.answer <- answers[i]
	}
}

// fill reads the row of the key for which all callers ask.
func (j *joint[A]) fill(ctx context.Context, from reader, err error, asked []*lookup[A], answers []found[A]) {
	if err == nil {
		args := []any{asked[0].key, asked[len(asked)-1].at}
		if !j.timed {
			args = args[:1]
		}
		err = unpanicked(func() error {
			return from.query(ctx, lite.Keep, j.query, args, func(r row) error {
				for i := range answers {
					answers[i].value, answers[i].err = j.scan(r)
					answers[i].found = true
				}
				return nil
			})
		})
	}
	for i := range answers {
		if err != nil {
			answers[i].err = err
		}
		if answers[i].err != nil {
			answers[i] = found[A]{err: fmt.Errorf("store: %w", answers[i].err)}
		}
	}
}
