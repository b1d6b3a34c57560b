// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"sync"

	"tamga/internal/adapter/store/lite"
)

// recent remembers, for each connection that reads, the last answer to a query whose key is
// always the same. SQLite says whether any connection of any process has committed since: a
// connection has a data version that changes with such a commit. As long as the version is the
// one from before the answer was read, the answer is what the query would read now. Asking for
// the version costs less than half of a small query.
type recent[A any] struct {
	own func(A) A // returns a copy that its caller may change

	mu     sync.Mutex
	of     map[*lite.Conn]*recentAnswer[A] // up to recentMost
	plain  int                             // reads that do not ask for the version
	misses int                             // in a row
}

// recentAnswer is an answer and the data version that the connection had before it was read.
type recentAnswer[A any] struct {
	version int64
	answer  found[A]
}

const (
	// recentMost is more than there are readers. Connections are closed only after a fault, and
	// what is remembered for them is dropped with the rest.
	recentMost = 64
	// plainMost bounds the reads without a question for the version. When others commit all
	// the time, nearly every answer is outdated and the question is for nothing.
	plainMost = 8
)

// readRecent answers callers by what is remembered, or reads the row.
func (j *joint[A]) readRecent(ctx context.Context, asked []*lookup[A]) {
	answers := make([]found[A], len(asked))
	c, err := j.file.readers.take(ctx)
	if err != nil {
		j.fill(ctx, nil, err, asked, answers)
	} else {
		j.answerRecent(ctx, c, asked, answers)
		j.file.readers.give(c)
	}
	for i, q := range asked {
		q.answer <- answers[i]
	}
}

func (j *joint[A]) answerRecent(ctx context.Context, c *lite.Conn, asked []*lookup[A], answers []found[A]) {
	from := &sqliteWork{ctx: ctx, conn: c, from: j.file.readers} // without BEGIN: each statement is alone
	if j.recent.passes() {
		j.fill(ctx, from, nil, asked, answers)
		return
	}
	// The version comes first. A commit between the two statements changes the next version.
	version, err := dataVersion(ctx, from)
	if err == nil {
		if last, ok := j.recent.at(c, version); ok {
			for i := range answers {
				answers[i] = found[A]{value: j.recent.own(last.value), found: last.found}
			}
			return
		}
	}
	j.fill(ctx, from, err, asked, answers)
	if answers[0].err == nil {
		j.recent.keep(c, version, found[A]{value: j.recent.own(answers[0].value), found: answers[0].found})
	}
}

// dataVersion returns the data version of a connection. Two equal ones of the same connection
// mean that no other connection has committed in between.
func dataVersion(ctx context.Context, from reader) (version int64, err error) {
	err = unpanicked(func() error {
		return from.query(ctx, lite.Keep, "PRAGMA data_version", nil, func(r row) error { return r.Scan(&version) })
	})
	if err != nil {
		return 0, fmt.Errorf("reading the data version: %w", err)
	}
	return version, nil
}

// passes reports whether this read does without the version.
func (m *recent[A]) passes() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.plain == 0 {
		return false
	}
	m.plain--
	return true
}

// at returns what is remembered for a connection if it still has this version.
func (m *recent[A]) at(c *lite.Conn, version int64) (found[A], bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.of[c]
	if last == nil || last.version != version {
		return found[A]{}, false
	}
	m.misses = 0
	return last.answer, true
}

// keep remembers an answer. Every further miss in a row doubles the reads that pass.
func (m *recent[A]) keep(c *lite.Conn, version int64, answer found[A]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := m.of[c]; last != nil {
		last.version, last.answer = version, answer
		m.plain = min(1<<m.misses-1, plainMost)
		m.misses = min(m.misses+1, 8)
		return
	}
	if m.of == nil || len(m.of) >= recentMost {
		m.of = map[*lite.Conn]*recentAnswer[A]{}
	}
	m.of[c] = &recentAnswer[A]{version, answer}
}
