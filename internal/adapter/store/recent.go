// SPDX-License-Identifier: Apache-2.0

package store

import (
	"sync"

	"tamga/internal/adapter/store/lite"
)

// recent remembers rows of one query until the next commit. As long as the state of the file is
// the one from before a row was read, the row is what the query would read now.
type recent struct {
	mu    sync.Mutex
	state lite.State
	rows  map[string]lite.Row // of this state, by key
	used  bool                // a row of this state was asked for again
	// misses and skip are for a single caller whose every call ends with a commit. Its rows are
	// never used again.
	misses int // states in a row of which no row was used
	skip   int // rows to leave out
}

const (
	recentMost = 256 // rows
	skipMost   = 8   // rows
)

// at returns the row of a key if it was read in this state.
func (m *recent) at(s lite.State, key string) (lite.Row, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state != s {
		return lite.Row{}, false
	}
	r, has := m.rows[key]
	m.used = m.used || has
	return r, has
}

// keep remembers a row that was read in this state or later. Each further state of which no row
// was used doubles the number of rows that are left out.
func (m *recent) keep(s lite.State, key string, r lite.Row) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state != s {
		if m.skip > 0 {
			m.skip--
			return
		}
		if m.used {
			m.misses = 0
		} else {
			m.skip = min(1<<m.misses-1, skipMost)
			m.misses = min(m.misses+1, skipMost)
		}
		m.state, m.used = s, false
		clear(m.rows)
	}
	if m.rows == nil {
		m.rows = map[string]lite.Row{}
	}
	if len(m.rows) < recentMost {
		m.rows[key] = r.Keep()
	}
}
