package store

import (
	"context"
	"database/sql"
	"sync"
)

// statements keeps the queries of a pool prepared: parsing one takes SQLite longer
// than running it. Queries are constants of this program, so there are few; should
// one be put together at run time, those beyond the bound are parsed each time.
type statements struct {
	pool   *sql.DB
	mu     sync.RWMutex
	byText map[string]*sql.Stmt
}

const maxStatements = 256

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
