// SPDX-License-Identifier: Apache-2.0

package lite

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"zombiezen.com/go/sqlite"
)

// bind binds the arguments of a statement: integers, booleans, texts, bytes (nil is NULL)
// and types that database/sql converts to one of them.
func (s *statement) bind(args []any) error {
	for i, number := range s.numbers {
		if number > len(args) {
			return fmt.Errorf("sqlite: a statement with $%d has %d arguments", number, len(args))
		}
		if err := s.bindOne(i+1, args[number-1]); err != nil {
			return fmt.Errorf("sqlite: argument %d: %w", number, err)
		}
	}
	return nil
}

// bindOne binds a value to a parameter, counted from 1. The first step reports errors of
// SQLite.
func (s *statement) bindOne(place int, value any) error {
	switch v := value.(type) {
	case nil:
		s.BindNull(place)
	case int64:
		s.BindInt64(place, v)
	case int:
		s.BindInt64(place, int64(v))
	case float64:
		s.BindFloat(place, v)
	case bool:
		s.BindBool(place, v)
	case string:
		if len(v) > math.MaxInt32 {
			return errTooLong
		}
		s.BindText(place, v)
	case []byte:
		switch {
		case v == nil:
			s.BindNull(place)
		case len(v) > math.MaxInt32:
			return errTooLong
		default:
			s.BindBytes(place, v)
		}
	default:
		plain, err := driver.DefaultParameterConverter.ConvertValue(v)
		if err != nil {
			return err
		}
		switch plain.(type) {
		case nil, int64, float64, bool, string, []byte:
			return s.bindOne(place, plain)
		}
		return fmt.Errorf("a %T, which cannot be stored in a column", plain)
	}
	return nil
}

var errTooLong = errors.New("a value of more than 2 GiB")

// Row is a row of an answer.
type Row struct{ of columns }

// columns has the values of a row. Texts are copies.
type columns interface {
	ColumnCount() int
	ColumnType(i int) sqlite.ColumnType
	ColumnInt64(i int) int64
	ColumnFloat(i int) float64
	ColumnText(i int) string
	blob(i int) []byte // a copy
}

// current has the columns of the row that a statement is at.
type current struct{ *sqlite.Stmt }

func (c current) blob(i int) []byte {
	b := make([]byte, c.ColumnLen(i))
	c.ColumnBytes(i, b)
	return b
}

// kept has the columns of a row that stays.
type kept []keptValue

type keptValue struct {
	kind   sqlite.ColumnType
	number int64
	float  float64
	bytes  string // of a text or blob, and of a float as a text
}

func (k kept) ColumnCount() int                   { return len(k) }
func (k kept) ColumnType(i int) sqlite.ColumnType { return k[i].kind }
func (k kept) ColumnInt64(i int) int64            { return k[i].number }
func (k kept) ColumnFloat(i int) float64          { return k[i].float }
func (k kept) blob(i int) []byte                  { return []byte(k.ColumnText(i)) }

func (k kept) ColumnText(i int) string {
	if k[i].kind == sqlite.TypeInteger {
		return strconv.FormatInt(k[i].number, 10)
	}
	return k[i].bytes
}

// Keep returns a copy of the row that stays valid. Its Scan gives the same values, of which the
// caller owns all bytes.
func (r Row) Keep() Row {
	k := make(kept, r.of.ColumnCount())
	for i := range k {
		v := &k[i]
		switch v.kind = r.of.ColumnType(i); v.kind {
		case sqlite.TypeInteger:
			v.number = r.of.ColumnInt64(i)
		case sqlite.TypeFloat:
			v.float = r.of.ColumnFloat(i)
			v.bytes = r.of.ColumnText(i)
		case sqlite.TypeText:
			v.bytes = r.of.ColumnText(i)
		case sqlite.TypeBlob:
			v.bytes = string(r.of.blob(i))
		}
	}
	return Row{k}
}

// Scan copies the columns to the values that dest points to, as database/sql does. NULL
// is allowed only for byte slices, *any and types that implement sql.Scanner.
func (r Row) Scan(dest ...any) error {
	if n := r.of.ColumnCount(); n != len(dest) {
		return fmt.Errorf("sqlite: %d columns for %d destinations", n, len(dest))
	}
	for i, d := range dest {
		if err := r.column(i, d); err != nil {
			return fmt.Errorf("sqlite: column %d: %w", i+1, err)
		}
	}
	return nil
}

func (r Row) column(i int, dest any) error {
	kind := r.of.ColumnType(i)
	if scanner, ok := dest.(sql.Scanner); ok {
		return scanner.Scan(r.value(i, kind))
	}
	if kind == sqlite.TypeNull {
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
		*d = r.of.ColumnText(i)
		return nil
	case *[]byte:
		*d = r.of.blob(i)
		return nil
	case *any:
		*d = r.value(i, kind)
		return nil
	}
	if kind == sqlite.TypeInteger {
		n := r.of.ColumnInt64(i)
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

// named scans into named types whose kind is string, integer or boolean.
func (r Row) named(i int, kind sqlite.ColumnType, dest any) error {
	p := reflect.ValueOf(dest)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return fmt.Errorf("cannot scan into a %T", dest)
	}
	switch v := p.Elem(); {
	case v.Kind() == reflect.String:
		v.SetString(r.of.ColumnText(i))
		return nil
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		v.SetBytes(r.of.blob(i))
		return nil
	case kind != sqlite.TypeInteger:
	case v.Kind() == reflect.Bool:
		v.SetBool(r.of.ColumnInt64(i) != 0)
		return nil
	case v.CanInt():
		n := r.of.ColumnInt64(i)
		if v.OverflowInt(n) {
			return fmt.Errorf("%d overflows a %T", n, dest)
		}
		v.SetInt(n)
		return nil
	case v.CanUint():
		n := r.of.ColumnInt64(i)
		if n < 0 || v.OverflowUint(uint64(n)) {
			return fmt.Errorf("%d cannot be stored in a %T", n, dest)
		}
		v.SetUint(uint64(n))
		return nil
	}
	return fmt.Errorf("cannot scan %v into a %T", kind, dest)
}

// value returns a column as drivers of database/sql return it.
func (r Row) value(i int, kind sqlite.ColumnType) any {
	switch kind {
	case sqlite.TypeInteger:
		return r.of.ColumnInt64(i)
	case sqlite.TypeFloat:
		return r.of.ColumnFloat(i)
	case sqlite.TypeText:
		return r.of.ColumnText(i)
	case sqlite.TypeBlob:
		return r.of.blob(i)
	}
	return nil
}
