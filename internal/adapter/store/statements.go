package store

import (
	"context"
	"database/sql"
	"sync"
)

// statements keeps the statements of a pool prepared: parsing one takes SQLite longer
// than running it. They are constants of this program, so there are few; should one be
// put together at run time, those beyond the bound are parsed each time.
type statements struct {
	pool   *sql.DB
	mu     sync.RWMutex
	byText map[string]*sql.Stmt
	wanted []string // seen in a transaction and not prepared yet
}

const maxStatements = 512

func newStatements(pool *sql.DB) *statements {
	return &statements{pool: pool, byText: map[string]*sql.Stmt{}}
}

// QueryContext runs a query as sql.DB does.
func (s *statements) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s.mu.RLock()
	prepared, full := s.byText[query], len(s.byText) >= maxStatements
	s.mu.RUnlock()
	if prepared == nil {
		if full {
			return s.pool.QueryContext(ctx, query, args...)
		}
		var err error
		if prepared, err = s.prepare(ctx, query); err != nil {
			return nil, err
		}
	}
	return prepared.QueryContext(ctx, args...)
}

func (s *statements) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	made, err := s.pool.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.byText[query]; first != nil { // somebody was faster
		made.Close()
		return first, nil
	}
	s.byText[query] = made
	return made, nil
}

// in finds a statement for use in a transaction, or returns nil and has it prepared
// before the next one: the transaction holds the one connection there is.
func (s *statements) in(ctx context.Context, tx *sql.Tx, query string) *sql.Stmt {
	s.mu.RLock()
	prepared, known := s.byText[query]
	full := len(s.byText) >= maxStatements
	s.mu.RUnlock()
	switch {
	case prepared != nil:
		return tx.StmtContext(ctx, prepared)
	case known || full:
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.byText[query]; !known {
		s.byText[query] = nil
		s.wanted = append(s.wanted, query)
	}
	return nil
}

// prepareWanted prepares what earlier transactions looked for. A statement that
// cannot be prepared goes on being parsed each time.
func (s *statements) prepareWanted(ctx context.Context) {
	s.mu.RLock()
	none := len(s.wanted) == 0
	s.mu.RUnlock()
	if none {
		return
	}
	s.mu.Lock()
	wanted := s.wanted
	s.wanted = nil
	s.mu.Unlock()
	for _, query := range wanted {
		if _, err := s.prepare(ctx, query); err != nil {
			return
		}
	}
}
