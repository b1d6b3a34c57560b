// SPDX-License-Identifier: Apache-2.0

package lite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
)

func open(t *testing.T, pragmas ...string) (*Conn, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a b?c=d#e%41.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return again(t, path, 0, pragmas...), path
}

func again(t *testing.T, path string, wait time.Duration, pragmas ...string) *Conn {
	t.Helper()
	c, err := Open(path, wait, pragmas...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func run(t *testing.T, c *Conn, query string, args ...any) int64 {
	t.Helper()
	n, err := c.Exec(t.Context(), query, args)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func scan(c *Conn, query string, args []any, dest ...any) error {
	return c.Query(context.Background(), Keep, query, args, func(r Row) error { return r.Scan(dest...) })
}

type (
	name  string
	level int8
	count uint16
	flag  bool
	mark  []byte
)

// TestValues checks that every value survives the round trip, and that no value of an
// earlier call remains.
func TestValues(t *testing.T) {
	c, _ := open(t)
	run(t, c, "CREATE TABLE t (v)")
	long := strings.Repeat("д", 100_000)
	for range 2 { // with a kept statement and with a fresh one
		for _, v := range []any{
			"", "текст", "a\x00b", long, []byte{}, []byte{0, 1, 0xff}, bytes.Repeat([]byte{7}, 70_000),
			int64(0), int64(-1), int64(1) << 62, 7, true, false, nil, []byte(nil), name("named"), level(-5), count(9), flag(true), 1.5,
			sql.NullString{}, sql.NullInt64{Int64: 3, Valid: true},
		} {
			run(t, c, "DELETE FROM t")
			if n := run(t, c, "INSERT INTO t (v) VALUES ($1)", v); n != 1 {
				t.Errorf("%T: %d rows", v, n)
			}
			var got any
			if err := scan(c, "SELECT v FROM t", nil, &got); err != nil {
				t.Fatal(err)
			}
			want := v
			switch x := v.(type) {
			case int:
				want = int64(x)
			case bool:
				want = map[bool]int64{true: 1}[x]
			case flag:
				want = int64(1)
			case name:
				want = string(x)
			case level:
				want = int64(x)
			case count:
				want = int64(x)
			case sql.NullInt64:
				want = x.Int64
			case sql.NullString:
				want = nil
			case []byte:
				if x == nil {
					want = nil
				}
			}
			if fmt.Sprintf("%T %v", got, got) != fmt.Sprintf("%T %v", want, want) {
				t.Errorf("%T became %T or has another value", v, got)
			}
		}
	}
}

func TestScan(t *testing.T) {
	c, _ := open(t)
	var text, number string
	var blob, none []byte
	var n int
	var big int64
	var yes bool
	var null sql.NullInt64
	var named name
	var l level
	var k count
	var f flag
	var m mark
	if err := scan(c, "SELECT 'text', 5, x'01ff', NULL, 7, 8, 1, NULL, 'name', -3, 4, 1, x'05'", nil,
		&text, &number, &blob, &none, &n, &big, &yes, &null, &named, &l, &k, &f, &m); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(text, number, blob, none == nil, n, big, yes, null.Valid, named, l, k, f, m)
	if want := fmt.Sprint("text", "5", []byte{1, 255}, true, 7, 8, true, false, "name", -3, 4, true, []byte{5}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for query, dest := range map[string][]any{
		"SELECT NULL":   {&text},
		"SELECT 'a', 1": {&text},
		"SELECT 300":    {&l},
		"SELECT -1":     {&k},
		"SELECT 'x'":    {&n},
		"SELECT 1.5":    {&yes},
		"SELECT 1":      {struct{}{}},
		"SELECT 2":      {(*level)(nil)},
	} {
		if err := scan(c, query, nil, dest...); err == nil {
			t.Errorf("%s into %T: no error", query, dest[0])
		}
	}
}

// TestParameters checks that parameters are numbered in whatever order they appear, and
// may appear twice.
func TestParameters(t *testing.T) {
	c, _ := open(t)
	var got string
	if err := scan(c, "SELECT $2 || $1 || $2", []any{"a", "b"}, &got); err != nil || got != "bab" {
		t.Errorf("%q, %v", got, err)
	}
	for query, args := range map[string][]any{
		"SELECT $1, $2": {"a"}, "SELECT ?": {"a"}, "SELECT :name": {"a"}, "SELECT $0": {"a"}, "SELECT $1": {struct{}{}}, "": nil, "nonsense": nil,
	} {
		if err := scan(c, query, args, &got); err == nil {
			t.Errorf("%q with %v: no error", query, args)
		}
	}
}

func TestErrors(t *testing.T) {
	c, path := open(t, "journal_mode(WAL)")
	run(t, c, "CREATE TABLE t (v TEXT UNIQUE)")
	run(t, c, "INSERT INTO t VALUES ('a')")
	_, err := c.Exec(t.Context(), "INSERT INTO t VALUES ('a')", nil)
	if sqlite.ErrCode(err) != sqlite.ResultConstraintUnique || Conflict(err) || !strings.Contains(err.Error(), "t.v") {
		t.Errorf("a duplicate: %v", err)
	}
	other := again(t, path, 0)
	run(t, c, "BEGIN IMMEDIATE")
	if c.Clean() {
		t.Error("Clean is true in a transaction")
	}
	if _, err := other.Exec(t.Context(), "BEGIN IMMEDIATE", nil); !Conflict(err) {
		t.Errorf("two writers: %v", err)
	}
	run(t, c, "ROLLBACK")
	if !c.Clean() {
		t.Error("Clean is false outside of a transaction")
	}
	reader := again(t, path, 0, "query_only(1)")
	if _, err := reader.Exec(t.Context(), "DELETE FROM t", nil); err == nil {
		t.Error("a reader wrote")
	}
	for _, path := range []string{filepath.Join(t.TempDir(), "none"), "a\x00b"} {
		if c, err := Open(path, 0); err == nil {
			c.Close()
			t.Errorf("%q was opened", path)
		}
	}
	if _, err := Open(path, 0, "nonsense("); err == nil {
		t.Error("an invalid pragma was accepted")
	}
}

func TestOneStatementAtATime(t *testing.T) {
	c, _ := open(t)
	err := c.Query(t.Context(), Keep, "SELECT 1", nil, func(Row) error { return scan(c, "SELECT 2", nil) })
	if err == nil || !strings.Contains(err.Error(), "inside of another") {
		t.Errorf("a statement in a statement: %v", err)
	}
	stop := errors.New("enough")
	rows := 0
	if err := c.Query(t.Context(), Once, "SELECT 1 UNION SELECT 2", nil, func(Row) error { rows++; return stop }); !errors.Is(err, stop) || rows != 1 {
		t.Errorf("%v after %d rows", err, rows)
	}
}

// endless is a query that does not end by itself.
const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0 OR i = $1"

// TestInterrupted checks that the end of a context ends its statement and no later one.
func TestInterrupted(t *testing.T) {
	c, _ := open(t)
	cause := errors.New("the client is gone")
	for range 5 {
		ctx, cancel := context.WithCancelCause(t.Context())
		rows := 0
		err := c.Query(ctx, Keep, endless, []any{1000}, func(Row) error { rows++; cancel(cause); return nil })
		if !errors.Is(err, cause) || rows != 1 {
			t.Fatalf("%v after %d rows", err, rows)
		}
		if err := c.Query(ctx, Keep, "SELECT 1", nil, func(Row) error { return nil }); !errors.Is(err, cause) {
			t.Errorf("begun after the end of its context: %v", err)
		}
		var n int
		if err := scan(c, "SELECT 1", nil, &n); err != nil || n != 1 {
			t.Fatalf("the next statement: %d, %v", n, err)
		}
	}
}

// TestStatementsAreBounded checks that statements built at run time do not fill a
// connection for ever.
func TestStatementsAreBounded(t *testing.T) {
	c, _ := open(t)
	for i := range keptStatements + 50 {
		var n int
		query := fmt.Sprintf("SELECT %d", i)
		for range 2 {
			if err := scan(c, query, nil, &n); err != nil || n != i {
				t.Fatal(n, err)
			}
		}
	}
	if len(c.kept) != keptStatements {
		t.Errorf("%d statements are kept", len(c.kept))
	}
}

// TestSchemaChanges checks that a statement prepared before a change of the schema still
// works.
func TestSchemaChanges(t *testing.T) {
	c, path := open(t, "journal_mode(WAL)")
	run(t, c, "CREATE TABLE t (a)")
	run(t, c, "INSERT INTO t VALUES (1)")
	var a int
	if err := scan(c, "SELECT a FROM t", nil, &a); err != nil {
		t.Fatal(err)
	}
	other := again(t, path, 0)
	run(t, other, "ALTER TABLE t ADD COLUMN b DEFAULT 2")
	run(t, other, "UPDATE t SET a = 3")
	if err := scan(c, "SELECT a FROM t", nil, &a); err != nil || a != 3 {
		t.Errorf("%d, %v", a, err)
	}
}

// TestLibraryIsThatOfSQLite checks that the program uses exactly the library version that
// the go.mod of SQLite names.
func TestLibraryIsThatOfSQLite(t *testing.T) {
	list := func(format, module string) string {
		out, err := exec.Command("go", "list", "-m", "-f", format, module).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	text, err := os.ReadFile(list("{{.GoMod}}", "modernc.org/sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "modernc.org/libc " + list("{{.Version}}", "modernc.org/libc") + "\n"; !strings.Contains(string(text), want) {
		t.Errorf("go.mod of SQLite does not name %s", want)
	}
}

// TestKeep checks that a copy of a row has the same values, also after the row has gone, and that
// it cannot be changed.
func TestKeep(t *testing.T) {
	c, _ := open(t)
	var kept Row
	err := c.Query(t.Context(), Once, "SELECT 1, 2.5, 'text', x'0102', NULL, '', x''", nil, func(r Row) error {
		kept = r.Keep()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Query(t.Context(), Once, "SELECT 'other'", nil, func(Row) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var (
			i     int
			f     any
			s, s2 string
			b, b2 []byte
			null  any = 1
		)
		if err := kept.Scan(&i, &f, &s, &b, &null, &s2, &b2); err != nil {
			t.Fatal(err)
		}
		if i != 1 || f != 2.5 || s != "text" || !bytes.Equal(b, []byte{1, 2}) || null != nil || s2 != "" || b2 == nil || len(b2) != 0 {
			t.Errorf("%v %v %q %x %v %q %v", i, f, s, b, null, s2, b2)
		}
		b[0] = 9
	}
	if err := kept.Scan(new(int)); err == nil || !strings.Contains(err.Error(), "7 columns for 1 destinations") {
		t.Errorf("too few destinations: %v", err)
	}
	// SQLite converts a number for a caller who wants a text.
	texts := func(r Row) (list [7]string) {
		t.Helper()
		var null any
		if err := r.Scan(&list[0], &list[1], &list[2], &list[3], &null, &list[5], &list[6]); err != nil {
			t.Error(err)
		}
		return list
	}
	err = c.Query(t.Context(), Once, "SELECT -1, 0.1, 'text', x'4142', NULL, '', x''", nil, func(r Row) error {
		if kept, now := texts(r.Keep()), texts(r); kept != now || now[0] != "-1" {
			t.Errorf("texts %q, want %q", kept, now)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
