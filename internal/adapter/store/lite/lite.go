// Package lite is SQLite as the store uses it: connections to a file, statements
// that stay prepared, rows scanned where they lie. A driver of database/sql has to
// name and describe every column of every answer and box every value, which took
// four times as long as SQLite did.
//
// What C needs (statements, arguments) lives in memory of modernc.org/libc, which the
// garbage collector does not know; every pointer into it stays inside this package.
package lite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	sqlite3 "modernc.org/sqlite/lib"
)

// Primary result codes (https://www.sqlite.org/rescode.html).
const (
	Busy        = sqlite3.SQLITE_BUSY
	Locked      = sqlite3.SQLITE_LOCKED
	Interrupted = sqlite3.SQLITE_INTERRUPT
)

// Error is what SQLite answered.
type Error struct {
	Code int // extended result code
	Text string
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Text, e.Code) }

// Primary is the primary result code: the low octet of Code; the rest tells the
// variant.
func (e *Error) Primary() int { return e.Code & 0xff }

// keptStatements bounds the statements a connection keeps prepared. Those of a program
// are constants, so there are few; what goes beyond is prepared each time.
const keptStatements = 512

// Conn is a connection. One goroutine uses it at a time.
type Conn struct {
	tls   *libc.TLS
	db    uintptr
	kept  map[string]*statement
	out   uintptr // room for one pointer that SQLite gives back
	args  uintptr // room for the arguments of the statement under way
	room  int     // octets of it
	inUse bool    // a statement is under way
}

// statement is a prepared statement.
type statement struct {
	handle  uintptr
	numbers []int // of its parameters: $3 is 3
	kept    bool
}

// Open opens a database file, which exists, and carries out the pragmas.
func Open(path string, pragmas ...string) (c *Conn, err error) {
	if strings.ContainsRune(path, 0) {
		return nil, errors.New("the path of a database has no NUL in it")
	}
	c = &Conn{tls: libc.NewTLS(), kept: map[string]*statement{}}
	defer func() {
		if err != nil {
			c.Close()
			c = nil
		}
	}()
	if c.out, err = c.memory(8); err != nil {
		return c, err
	}
	name, err := libc.CString(path)
	if err != nil {
		return c, err
	}
	defer libc.Xfree(c.tls, name)
	// A connection is never used by two at once, so SQLite need not lock it.
	const flags = sqlite3.SQLITE_OPEN_READWRITE | sqlite3.SQLITE_OPEN_NOMUTEX
	rc := sqlite3.Xsqlite3_open_v2(c.tls, name, c.out, flags, 0)
	c.db = c.given()
	if rc != sqlite3.SQLITE_OK {
		return c, c.fail(rc)
	}
	if rc := sqlite3.Xsqlite3_extended_result_codes(c.tls, c.db, 1); rc != sqlite3.SQLITE_OK {
		return c, c.fail(rc)
	}
	for _, pragma := range pragmas {
		if err := c.Query(context.Background(), Once, "PRAGMA "+pragma, nil, func(Row) error { return nil }); err != nil {
			return c, fmt.Errorf("PRAGMA %s: %w", pragma, err)
		}
	}
	return c, nil
}

// Close frees everything. The last connection to a file folds its log into it.
func (c *Conn) Close() error {
	for _, s := range c.kept {
		sqlite3.Xsqlite3_finalize(c.tls, s.handle)
	}
	var err error
	if c.db != 0 {
		if rc := sqlite3.Xsqlite3_close_v2(c.tls, c.db); rc != sqlite3.SQLITE_OK {
			err = c.fail(rc)
		}
	}
	libc.Xfree(c.tls, c.args)
	libc.Xfree(c.tls, c.out)
	c.tls.Close()
	*c = Conn{}
	return err
}

// Clean reports whether the connection is outside of transactions.
func (c *Conn) Clean() bool { return sqlite3.Xsqlite3_get_autocommit(c.tls, c.db) != 0 }

// Keeping says what becomes of a statement when it is done.
type Keeping bool

// Keep keeps a statement prepared for the next time, Once does not: it was put
// together at run time and will hardly come again.
const (
	Keep Keeping = true
	Once Keeping = false
)

// Exec carries out one statement that changes something and counts the rows it
// changed.
func (c *Conn) Exec(ctx context.Context, query string, args []any) (int64, error) {
	if err := c.Query(ctx, Keep, query, args, func(Row) error { return nil }); err != nil {
		return 0, err
	}
	return sqlite3.Xsqlite3_changes64(c.tls, c.db), nil
}

// Query carries out one statement and calls each for every row of the answer. An error
// of each ends it. The row is valid during the call, in which the connection may not
// be used. When ctx ends, the statement is interrupted.
func (c *Conn) Query(ctx context.Context, k Keeping, query string, args []any, each func(Row) error) (err error) {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if c.inUse {
		return errors.New("sqlite: a statement inside of another on one connection")
	}
	c.inUse = true
	defer func() { c.inUse = false }()
	s, err := c.prepare(k, query)
	if err != nil {
		return err
	}
	defer c.leave(s)
	if err := c.bind(s, args); err != nil {
		return err
	}
	if ctx.Done() != nil {
		defer c.interruptible(ctx)()
	}
	for row := (Row{c, s.handle}); ; {
		switch rc := sqlite3.Xsqlite3_step(c.tls, s.handle); rc {
		case sqlite3.SQLITE_ROW:
			if err := each(row); err != nil {
				return err
			}
		case sqlite3.SQLITE_DONE:
			return nil
		default:
			if err := c.fail(rc); ctx.Err() == nil || rc&0xff != Interrupted {
				return err
			}
			return context.Cause(ctx)
		}
	}
}

// interruptible has the end of ctx interrupt what c does until stop is called.
func (c *Conn) interruptible(ctx context.Context) (stop func()) {
	done := make(chan struct{})
	undo := context.AfterFunc(ctx, func() {
		defer close(done)
		sqlite3.Xsqlite3_interrupt(c.tls, c.db)
	})
	return func() {
		if !undo() {
			<-done // so that it cannot hit the next statement
		}
	}
}

// prepare finds or makes a statement.
func (c *Conn) prepare(k Keeping, query string) (*statement, error) {
	if s := c.kept[query]; s != nil {
		return s, nil
	}
	text, err := libc.CString(query)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, text)
	flags := uint32(0)
	if k == Keep {
		flags = sqlite3.SQLITE_PREPARE_PERSISTENT
	}
	if rc := sqlite3.Xsqlite3_prepare_v3(c.tls, c.db, text, -1, flags, c.out, 0); rc != sqlite3.SQLITE_OK {
		return nil, c.fail(rc)
	}
	s := &statement{handle: c.given()}
	if s.handle == 0 {
		return nil, errors.New("sqlite: an empty statement")
	}
	for i := range sqlite3.Xsqlite3_bind_parameter_count(c.tls, s.handle) {
		var number int
		name := libc.GoString(sqlite3.Xsqlite3_bind_parameter_name(c.tls, s.handle, i+1))
		if _, err := fmt.Sscanf(name, "$%d", &number); err != nil || number < 1 {
			sqlite3.Xsqlite3_finalize(c.tls, s.handle)
			return nil, fmt.Errorf("sqlite: parameter %q of a statement: want $1, $2 and so on", name)
		}
		s.numbers = append(s.numbers, number)
	}
	if k == Keep && len(c.kept) < keptStatements {
		c.kept[query], s.kept = s, true
	}
	return s, nil
}

// leave ends the use of a statement. Its arguments stay bound to memory that is
// written over; it is never run without binding all of them anew.
func (c *Conn) leave(s *statement) {
	if s.kept {
		sqlite3.Xsqlite3_reset(c.tls, s.handle) // what it answers, the last step did
		return
	}
	sqlite3.Xsqlite3_finalize(c.tls, s.handle)
}

// memory takes n octets that the garbage collector does not know.
func (c *Conn) memory(n int) (uintptr, error) {
	p := libc.Xmalloc(c.tls, types.Size_t(n))
	if p == 0 {
		return 0, fmt.Errorf("sqlite: no memory for %d octets", n)
	}
	return p, nil
}

// given is the pointer that SQLite wrote to out.
func (c *Conn) given() uintptr { return libc.AtomicLoadPUintptr(c.out) }

func (c *Conn) fail(rc int32) error {
	text := "sqlite: " + libc.GoString(sqlite3.Xsqlite3_errstr(c.tls, rc))
	if c.db != 0 {
		text += ": " + libc.GoString(sqlite3.Xsqlite3_errmsg(c.tls, c.db))
	}
	return &Error{int(rc), text}
}
