package lite

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math"
	"reflect"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// bind gives a statement its arguments: numbers, booleans, texts, octets (nil ones are
// NULL) and what database/sql turns into one of them. Texts and octets are copied to
// memory of C, which they share.
func (c *Conn) bind(s *statement, args []any) error {
	var buffer [24]any
	values := append(buffer[:0], args...)
	size := 0
	for i, v := range values {
		switch v := v.(type) {
		case string:
			size += len(v)
		case []byte:
			size += len(v)
		case int64, bool, nil:
		case int:
			values[i] = int64(v)
		default:
			plain, err := driver.DefaultParameterConverter.ConvertValue(v)
			if err != nil {
				return fmt.Errorf("sqlite: argument %d: %w", i+1, err)
			}
			values[i] = plain
			switch plain := plain.(type) {
			case string:
				size += len(plain)
			case []byte:
				size += len(plain)
			}
		}
	}
	if err := c.makeRoom(size); err != nil {
		return err
	}
	at := c.args
	for i, number := range s.numbers {
		if number > len(values) {
			return fmt.Errorf("sqlite: a statement with $%d has %d arguments", number, len(values))
		}
		place := int32(i + 1)
		rc := int32(sqlite3.SQLITE_OK)
		switch v := values[number-1].(type) {
		case nil:
			rc = sqlite3.Xsqlite3_bind_null(c.tls, s.handle, place)
		case int64:
			rc = sqlite3.Xsqlite3_bind_int64(c.tls, s.handle, place, v)
		case bool:
			n := int32(0)
			if v {
				n = 1
			}
			rc = sqlite3.Xsqlite3_bind_int(c.tls, s.handle, place, n)
		case float64:
			rc = sqlite3.Xsqlite3_bind_double(c.tls, s.handle, place, v)
		case string:
			if len(v) > math.MaxInt32 {
				return fmt.Errorf("sqlite: argument %d is too long", number)
			}
			copy(libc.GoBytes(at, len(v)), v)
			rc = sqlite3.Xsqlite3_bind_text(c.tls, s.handle, place, at, int32(len(v)), sqlite3.SQLITE_STATIC)
			at += uintptr(len(v))
		case []byte:
			switch {
			case v == nil:
				rc = sqlite3.Xsqlite3_bind_null(c.tls, s.handle, place)
			case len(v) > math.MaxInt32:
				return fmt.Errorf("sqlite: argument %d is too long", number)
			default:
				copy(libc.GoBytes(at, len(v)), v)
				rc = sqlite3.Xsqlite3_bind_blob(c.tls, s.handle, place, at, int32(len(v)), sqlite3.SQLITE_STATIC)
				at += uintptr(len(v))
			}
		default:
			return fmt.Errorf("sqlite: argument %d is a %T, which no column holds", number, v)
		}
		if rc != sqlite3.SQLITE_OK {
			return c.fail(rc)
		}
	}
	return nil
}

// makeRoom sees to it that args has n octets and one more, so that an empty text has
// an address, too: NULL has none.
func (c *Conn) makeRoom(n int) error {
	if n++; n <= c.room {
		return nil
	}
	n = max(2*c.room, n, 4096)
	p, err := c.memory(n)
	if err != nil {
		return err
	}
	libc.Xfree(c.tls, c.args)
	c.args, c.room = p, n
	return nil
}

// Row is a row of an answer.
type Row struct {
	c      *Conn
	handle uintptr
}

// Scan copies the columns to what dest points to, as database/sql does: NULL only to
// octets, pointers of any and what implements sql.Scanner.
func (r Row) Scan(dest ...any) error {
	if n := int(sqlite3.Xsqlite3_column_count(r.c.tls, r.handle)); n != len(dest) {
		return fmt.Errorf("sqlite: %d columns for %d destinations", n, len(dest))
	}
	for i, d := range dest {
		if err := r.column(int32(i), d); err != nil {
			return fmt.Errorf("sqlite: column %d: %w", i+1, err)
		}
	}
	return nil
}

func (r Row) column(i int32, dest any) error {
	kind := sqlite3.Xsqlite3_column_type(r.c.tls, r.handle, i)
	if scanner, ok := dest.(sql.Scanner); ok {
		return scanner.Scan(r.value(i, kind))
	}
	if kind == sqlite3.SQLITE_NULL {
		switch d := dest.(type) {
		case *[]byte:
			*d = nil
			return nil
		case *any:
			*d = nil
			return nil
		}
		return fmt.Errorf("NULL for a %T", dest)
	}
	switch d := dest.(type) {
	case *string:
		*d = r.text(i)
		return nil
	case *[]byte:
		*d = r.octets(i)
		return nil
	case *any:
		*d = r.value(i, kind)
		return nil
	}
	if kind == sqlite3.SQLITE_INTEGER {
		n := sqlite3.Xsqlite3_column_int64(r.c.tls, r.handle, i)
		switch d := dest.(type) {
		case *int64:
			*d = n
			return nil
		case *int:
			*d = int(n)
			return nil
		case *bool:
			*d = n != 0
			return nil
		}
	}
	return r.named(i, kind, dest)
}

// named scans to types of our own over text, integers and booleans.
func (r Row) named(i, kind int32, dest any) error {
	p := reflect.ValueOf(dest)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return fmt.Errorf("no place to put a value: %T", dest)
	}
	switch v := p.Elem(); {
	case v.Kind() == reflect.String:
		v.SetString(r.text(i))
		return nil
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		v.SetBytes(r.octets(i))
		return nil
	case kind != sqlite3.SQLITE_INTEGER:
	case v.Kind() == reflect.Bool:
		v.SetBool(sqlite3.Xsqlite3_column_int64(r.c.tls, r.handle, i) != 0)
		return nil
	case v.CanInt():
		n := sqlite3.Xsqlite3_column_int64(r.c.tls, r.handle, i)
		if v.OverflowInt(n) {
			return fmt.Errorf("%d is too much for a %T", n, dest)
		}
		v.SetInt(n)
		return nil
	case v.CanUint():
		n := sqlite3.Xsqlite3_column_int64(r.c.tls, r.handle, i)
		if n < 0 || v.OverflowUint(uint64(n)) {
			return fmt.Errorf("%d is nothing for a %T", n, dest)
		}
		v.SetUint(uint64(n))
		return nil
	}
	return fmt.Errorf("a value of kind %d for a %T", kind, dest)
}

// value is a column as drivers of database/sql hand it on.
func (r Row) value(i, kind int32) any {
	switch kind {
	case sqlite3.SQLITE_INTEGER:
		return sqlite3.Xsqlite3_column_int64(r.c.tls, r.handle, i)
	case sqlite3.SQLITE_FLOAT:
		return sqlite3.Xsqlite3_column_double(r.c.tls, r.handle, i)
	case sqlite3.SQLITE_TEXT:
		return r.text(i)
	case sqlite3.SQLITE_BLOB:
		return r.octets(i)
	}
	return nil
}

func (r Row) text(i int32) string {
	p := sqlite3.Xsqlite3_column_text(r.c.tls, r.handle, i)
	return string(libc.GoBytes(p, int(sqlite3.Xsqlite3_column_bytes(r.c.tls, r.handle, i))))
}

func (r Row) octets(i int32) []byte {
	p := sqlite3.Xsqlite3_column_blob(r.c.tls, r.handle, i)
	n := int(sqlite3.Xsqlite3_column_bytes(r.c.tls, r.handle, i))
	return append(make([]byte, 0, n), libc.GoBytes(p, n)...)
}
