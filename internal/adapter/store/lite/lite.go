// SPDX-License-Identifier: Apache-2.0

// Package lite is SQLite as the store uses it: connections to a file, prepared statements
// that are kept, and rows that are scanned without a copy.
//
// Begin with Open, Conn.Exec and Conn.Query. The package has no pool and no transactions:
// package store does.
//
// It uses zombiezen.com/go/sqlite, which calls SQLite without database/sql. A driver of
// database/sql must name and describe every column of every answer and box every value,
// which took four times as long as SQLite itself. Package lite follows the rules of
// database/sql for values, so that one scanning function serves both engines.
package lite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
)

// Conflict reports whether an error of this package means that another connection holds a
// lock. A retry may succeed.
func Conflict(err error) bool {
	code := sqlite.ErrCode(err).ToPrimary()
	return code == sqlite.ResultBusy || code == sqlite.ResultLocked
}

// keptStatements bounds the statements that a connection keeps prepared. The statements
// of a program are constants, so there are few. Statements beyond the bound are prepared
// each time.
const keptStatements = 512

// Conn is a connection. Only one goroutine may use it at a time.
type Conn struct {
	c     *sqlite.Conn
	kept  map[string]*statement
	end   chan struct{} // closed to interrupt a statement; replaced after that
	inUse bool          // a statement is running
}

// statement is a prepared statement.
type statement struct {
	*sqlite.Stmt
	numbers []int // numbers of its parameters: $3 is 3
	kept    bool
}

// Open opens an existing database file and executes the pragmas. A statement waits up to
// wait for locks of other processes.
func Open(path string, wait time.Duration, pragmas ...string) (*Conn, error) {
	if strings.ContainsRune(path, 0) {
		return nil, errors.New("the path of a database has no NUL in it")
	}
	opened, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	opened.SetBusyTimeout(wait)
	c := &Conn{c: opened, kept: map[string]*statement{}}
	c.rearm()
	for _, pragma := range pragmas {
		if err := c.Query(context.Background(), Once, "PRAGMA "+pragma, nil, func(Row) error { return nil }); err != nil {
			c.Close()
			return nil, fmt.Errorf("PRAGMA %s: %w", pragma, err)
		}
	}
	return c, nil
}

// rearm gives the connection a new c.end that interrupts it.
func (c *Conn) rearm() {
	c.end = make(chan struct{})
	c.c.SetInterrupt(c.end)
}

// Close frees everything. The last connection to a file moves its write-ahead log into
// it.
func (c *Conn) Close() error { return c.c.Close() }

// Clean reports whether the connection is outside of transactions.
func (c *Conn) Clean() bool { return c.c.AutocommitEnabled() }

// Keeping says whether a statement stays prepared after it has run.
type Keeping bool

// Keep keeps a statement prepared for the next time. Once does not: it is for statements
// that are built at run time and will hardly come again.
const (
	Keep Keeping = true
	Once Keeping = false
)

// Exec executes one statement that changes something and returns the number of rows it
// changed.
func (c *Conn) Exec(ctx context.Context, query string, args []any) (int64, error) {
	if err := c.Query(ctx, Keep, query, args, func(Row) error { return nil }); err != nil {
		return 0, err
	}
	return int64(c.c.Changes()), nil
}

// Query executes one statement and calls each for every row of the answer. If each
// returns an error, Query stops and returns it. The row is valid only during the call,
// and each must not use the connection. When ctx ends, the statement is interrupted.
func (c *Conn) Query(ctx context.Context, k Keeping, query string, args []any, each func(Row) error) (err error) {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if c.inUse {
		return errors.New("sqlite: a statement inside of another on the same connection")
	}
	c.inUse = true
	defer func() { c.inUse = false }()
	s, err := c.prepare(k, query)
	if err != nil {
		return err
	}
	defer s.leave()
	if err := s.bind(args); err != nil {
		return err
	}
	if ctx.Done() != nil {
		defer c.interruptible(ctx)()
	}
	for {
		more, err := s.Step()
		switch {
		case err != nil && ctx.Err() != nil && sqlite.ErrCode(err).ToPrimary() == sqlite.ResultInterrupt:
			return context.Cause(ctx)
		case err != nil:
			return err
		case !more:
			return nil
		}
		if err := each(Row{current{s.Stmt}}); err != nil {
			return err
		}
	}
}

// interruptible makes the end of ctx interrupt the statements of c until stop is called.
func (c *Conn) interruptible(ctx context.Context) (stop func()) {
	end := c.end
	undo := context.AfterFunc(ctx, func() { close(end) })
	return func() {
		if !undo() {
			<-end // it is closed or about to be, and must not interrupt the next statement
			c.rearm()
		}
	}
}

// prepare returns a kept statement or prepares a new one.
func (c *Conn) prepare(k Keeping, query string) (*statement, error) {
	if s := c.kept[query]; s != nil {
		return s, nil
	}
	s := &statement{kept: k == Keep && len(c.kept) < keptStatements}
	var err error
	if s.kept {
		s.Stmt, err = c.c.Prepare(query)
	} else {
		s.Stmt, err = c.transient(query)
	}
	if err != nil {
		return nil, err
	}
	for i := range s.BindParamCount() {
		var number int
		name := s.BindParamName(i + 1)
		if _, err := fmt.Sscanf(name, "$%d", &number); err != nil || number < 1 {
			s.Finalize() // it was never run
			return nil, fmt.Errorf("sqlite: parameter %q of a statement: want $1, $2 and so on", name)
		}
		s.numbers = append(s.numbers, number)
	}
	if s.kept {
		c.kept[query] = s
	}
	return s, nil
}

func (c *Conn) transient(query string) (*sqlite.Stmt, error) {
	s, trailing, err := c.c.PrepareTransient(query)
	if err == nil && trailing != 0 {
		s.Finalize()
		return nil, errors.New("sqlite: one statement at a time")
	}
	return s, err
}

// leave ends the use of a statement. Bound values stay, because the statement is never
// run without binding all of them again. The errors of the two calls repeat the error of
// the last step.
func (s *statement) leave() {
	if s.kept {
		s.Reset()
		return
	}
	s.Finalize()
}
