// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"tamga/internal/domain/fault"
)

// Text is a JSON scalar as text: a string, a number as it was written, or "true" and
// "false". Clients send identifiers and enumerations in several of these forms. null and a
// missing value are "".
type Text string

// Unread is a value whose syntax is checked. The value itself is dropped.
type Unread struct {
	Present bool // the key is there and its value is not null
	Empty   bool // the value was "", [] or {}
}

// FromValue is a type whose values clients write in several forms of JSON. It is set from nil,
// bool, string, json.Number, []any or map[string]any; null and a missing value leave it zero.
type FromValue interface{ FromValue(value any) error }

// binder reads one value into v, which is settable and may hold any earlier value. The
// reader is before the first byte of the value, which is not null.
type binder func(r *reader, v reflect.Value) error

const (
	maxNumber = 64 // bytes of a number; the interface has no longer ones
	entrySize = 48 // approximate bytes of a map entry or list element beside its value
)

var (
	binders   sync.Map // reflect.Type -> binder
	textType  = reflect.TypeFor[Text]()
	blobType  = reflect.TypeFor[Blob]()
	docType   = reflect.TypeFor[Document]()
	unread    = reflect.TypeFor[Unread]()
	bytesType = reflect.TypeFor[[]byte]()
	numType   = reflect.TypeFor[json.Number]()
	anyType   = reflect.TypeFor[any]()
	textual   = reflect.TypeFor[encoding.TextUnmarshaler]()
	fromValue = reflect.TypeFor[FromValue]()
)

// binderOf returns the binder for t and compiles it at first use. It panics on a type that
// JSON cannot be bound to. Routes are compiled when the program starts, so that is an error
// in the program.
func binderOf(t reflect.Type) binder {
	if b, ok := binders.Load(t); ok {
		return b.(binder)
	}
	c := compiler{}
	b := c.binder(t)
	for t, b := range c {
		binders.Store(t, *b)
	}
	return b
}

// compiler holds the binders under construction, so that a type may contain itself.
type compiler map[reflect.Type]*binder

func (c compiler) binder(t reflect.Type) binder {
	if b, ok := c[t]; ok {
		return func(r *reader, v reflect.Value) error { return (*b)(r, v) }
	}
	b := new(binder)
	c[t] = b
	*b = c.compile(t)
	return *b
}

func (c compiler) compile(t reflect.Type) binder {
	switch t {
	case textType:
		return bindText
	case blobType:
		return bindBlob
	case docType:
		return bindDocument
	case unread:
		return bindUnread
	case bytesType:
		return bindBytes
	case numType:
		return bindNumber
	case anyType:
		return func(r *reader, v reflect.Value) error {
			value, err := r.value()
			if value != nil {
				v.Set(reflect.ValueOf(value))
			}
			return err
		}
	}
	switch {
	case reflect.PointerTo(t).Implements(fromValue):
		return bindValue
	case reflect.PointerTo(t).Implements(textual):
		return bindTextual
	}
	switch t.Kind() {
	case reflect.Pointer:
		return c.pointer(t)
	case reflect.Struct:
		return c.structure(t)
	case reflect.Slice:
		return c.list(t)
	case reflect.Map:
		return c.mapping(t)
	case reflect.String:
		return bindString
	case reflect.Bool:
		return bindBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return bindInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return bindUint
	case reflect.Float32, reflect.Float64:
		return bindFloat
	}
	panic(fmt.Sprintf("rest: a request cannot hold a %s", t))
}

// nullable reads null as the zero value, for every type.
func nullable(b binder) binder {
	return func(r *reader, v reflect.Value) error { return b.orNull(r, v) }
}

func (b binder) orNull(r *reader, v reflect.Value) error {
	c, err := r.token()
	if err != nil {
		return err
	}
	if c == 'n' {
		v.SetZero()
		return r.literal("null")
	}
	return b(r, v)
}

// field is one key of an object.
type field struct {
	name  string // as messages write it
	index int
	bind  binder
	full  string // code of the fault of a list that has more documents than a request may hold; "": the usual one
}

func (c compiler) structure(t reflect.Type) binder {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Name
		if tag, ok := f.Tag.Lookup("json"); ok {
			name, _, _ = strings.Cut(tag, ",")
			if name == "-" {
				continue
			}
			if name == "" {
				name = f.Name
			}
		}
		if !f.IsExported() || f.Anonymous {
			panic(fmt.Sprintf("rest: %s.%s cannot be read from a request: use an exported, named field", t, f.Name))
		}
		fields = append(fields, field{name, i, nullable(c.binder(f.Type)), f.Tag.Get("full")})
	}
	if len(fields) > 64 {
		panic(fmt.Sprintf("rest: %s has more than 64 fields", t))
	}
	find := func(name []byte) int {
		for i := range fields {
			if len(name) == len(fields[i].name) && strings.EqualFold(string(name), fields[i].name) {
				return i
			}
		}
		return -1
	}
	return func(r *reader, v reflect.Value) error {
		if err := r.expect('{', "an object"); err != nil {
			return err
		}
		var seen uint64 // a bit for each field
		return r.object(func(name []byte, long bool) error {
			i := find(name)
			if i < 0 || long {
				return r.skip()
			}
			f := &fields[i]
			r.path = append(r.path, step{f.name, -1})
			if seen&(1<<i) != 0 {
				return r.twice()
			}
			seen |= 1 << i
			err := f.bind(r, v.Field(f.index))
			if f.full != "" && errors.Is(err, errFull) {
				err = fault.Newf(f.full, "%s is one too many: a request holds so many documents and elements of this list at most", r.where())
			}
			if err == nil {
				r.path = r.path[:len(r.path)-1]
			}
			return err
		})
	}
}

// twice returns the fault of a key that an object has already. Readers differ in which of the
// two counts, so none does.
func (r *reader) twice() error {
	return fault.Newf(fault.InvalidParameters, "%s is given twice", r.where())
}

// keys are the keys of one object, folded.
type keys map[string]struct{}

// add notes a key, or returns the fault of one that the object has already, in any letter case.
// The path of the reader ends with the key.
func (k keys) add(r *reader, name string) error {
	folded := foldKey(name)
	if _, has := k[folded]; has {
		return r.twice()
	}
	k[folded] = struct{}{}
	return nil
}

// foldKey returns the same text for all keys that strings.EqualFold takes for the same.
func foldKey(name string) string {
	return strings.Map(func(c rune) rune {
		least := c
		for other := unicode.SimpleFold(c); other != c; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return least
	}, name)
}

// expect refuses a value that does not begin with c.
func (r *reader) expect(c byte, kind string) error {
	switch got, err := r.token(); {
	case err != nil:
		return err
	case got == c:
		return nil
	}
	return r.mismatch(kind)
}

// mismatch returns the fault of a value that must be of another kind, or that is not JSON.
func (r *reader) mismatch(kind string) error {
	must := r.wrong(kind)
	switch c, err := r.token(); {
	case err != nil:
		return err
	case strings.IndexByte(`"{[tfn-0123456789`, c) < 0:
		return r.unexpected()
	}
	return must
}

func (c compiler) mapping(t reflect.Type) binder {
	if t.Key().Kind() != reflect.String {
		panic(fmt.Sprintf("rest: a request cannot hold a %s: keys are strings", t))
	}
	elem := nullable(c.binder(t.Elem()))
	cost := int(t.Elem().Size()) + 2*entrySize // twice: the folded key is kept meanwhile
	return func(r *reader, v reflect.Value) error {
		if err := r.expect('{', "an object"); err != nil {
			return err
		}
		m, seen := reflect.MakeMap(t), keys{}
		k, e := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem() // the map gets copies
		err := r.object(func(name []byte, long bool) error {
			if long {
				return fault.Newf(fault.InvalidParameters, "%s has a key longer than %d bytes", r.where(), maxName)
			}
			if err := r.keep(cost + 2*len(name)); err != nil {
				return err
			}
			key := string(name)
			r.path = append(r.path, step{key, -1})
			if err := seen.add(r, key); err != nil {
				return err
			}
			k.SetString(key)
			e.SetZero()
			if err := elem(r, e); err != nil {
				return err
			}
			m.SetMapIndex(k, e)
			r.path = r.path[:len(r.path)-1]
			return nil
		})
		v.Set(m)
		return err
	}
}

func (c compiler) list(t reflect.Type) binder {
	elem := nullable(c.binder(t.Elem()))
	cost := 2*int(t.Elem().Size()) + entrySize // twice: the list grows by copying
	return func(r *reader, v reflect.Value) error {
		if err := r.expect('[', "an array"); err != nil {
			return err
		}
		s := reflect.MakeSlice(t, 0, 0)
		err := r.array(func(i int) error {
			if err := r.keep(cost); err != nil {
				return err
			}
			r.path = append(r.path, step{"", i})
			e := reflect.New(t.Elem()).Elem()
			if err := elem(r, e); err != nil {
				return err
			}
			s = reflect.Append(s, e)
			r.path = r.path[:len(r.path)-1]
			return nil
		})
		v.Set(s)
		return err
	}
}

func (c compiler) pointer(t reflect.Type) binder {
	elem := c.binder(t.Elem())
	return func(r *reader, v reflect.Value) error {
		if err := r.keep(int(t.Elem().Size())); err != nil {
			return err
		}
		p := reflect.New(t.Elem())
		v.Set(p)
		return elem(r, p.Elem())
	}
}

// quoted reads a string into r.text and charges its bytes to the budget.
func (r *reader) quoted() error {
	if err := r.expect('"', "a string"); err != nil {
		return err
	}
	r.r++
	long, err := r.str(r.held)
	if err != nil {
		return err
	}
	n := len(r.text)
	if long {
		n = r.held + 1
	}
	return r.keep(n)
}

func bindString(r *reader, v reflect.Value) error {
	err := r.quoted()
	if err == nil {
		v.SetString(string(r.text))
	}
	return err
}

func bindBytes(r *reader, v reflect.Value) error {
	if err := r.quoted(); err != nil {
		return err
	}
	b, err := base64.StdEncoding.AppendDecode(nil, r.text)
	if err != nil {
		return r.wrong("Base64")
	}
	v.SetBytes(b)
	return nil
}

func bindTextual(r *reader, v reflect.Value) error {
	if err := r.quoted(); err != nil {
		return err
	}
	if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText(bytes.Clone(r.text)); err != nil {
		// The fault of the type itself says more than we can.
		if f, ok := fault.As(err); ok {
			return f
		}
		return r.wrong("a valid value").(*fault.Error).With(err)
	}
	return nil
}

func bindValue(r *reader, v reflect.Value) error {
	value, err := r.value()
	if err != nil {
		return err
	}
	err = v.Addr().Interface().(FromValue).FromValue(value)
	if f, ok := fault.As(err); ok && len(r.path) > 0 {
		return fault.New(f.Code, r.where()+": "+f.Message).With(err)
	}
	return err
}

// bindBool reads a boolean as clients write one: true, "True", 1, "1".
func bindBool(r *reader, v reflect.Value) error {
	const kind = "true or false"
	c, err := r.token()
	switch {
	case err != nil:
		return err
	case c == '"':
		err = r.quoted()
	default:
		err = r.scalar(kind)
	}
	if err != nil {
		return err
	}
	value, ok := Truth(string(r.text))
	if !ok {
		return r.wrong(kind)
	}
	v.SetBool(value)
	return nil
}

// whole reads an integer, or a string with one, into r.text.
func (r *reader) whole() error {
	c, err := r.token()
	if err != nil {
		return err
	}
	if c != '"' {
		return r.numeric("a whole number")
	}
	if err = r.quoted(); err == nil {
		r.text = bytes.TrimSpace(r.text)
	}
	return err
}

// numeric reads a number into r.text.
func (r *reader) numeric(kind string) error {
	c, err := r.token()
	if err != nil {
		return err
	}
	if c != '-' && (c < '0' || c > '9') {
		return r.mismatch(kind)
	}
	return r.number(maxNumber)
}

func bindNumber(r *reader, v reflect.Value) error {
	err := r.numeric("a number")
	if err == nil {
		v.SetString(string(r.text))
	}
	return err
}

func bindInt(r *reader, v reflect.Value) error {
	if err := r.whole(); err != nil {
		return err
	}
	n, err := strconv.ParseInt(string(wholeOf(r.text)), 10, v.Type().Bits())
	if err != nil {
		return r.wrong("a whole number in range")
	}
	v.SetInt(n)
	return nil
}

func bindUint(r *reader, v reflect.Value) error {
	if err := r.whole(); err != nil {
		return err
	}
	n, err := strconv.ParseUint(string(wholeOf(r.text)), 10, v.Type().Bits())
	if err != nil {
		return r.wrong("a whole number in range")
	}
	v.SetUint(n)
	return nil
}

func bindFloat(r *reader, v reflect.Value) error {
	if err := r.numeric("a number"); err != nil {
		return err
	}
	n, err := strconv.ParseFloat(string(r.text), v.Type().Bits())
	if err != nil {
		return r.wrong("a number in range")
	}
	v.SetFloat(n)
	return nil
}

// scalar reads a number, true or false, as written, into r.text.
func (r *reader) scalar(kind string) error {
	c, err := r.token()
	switch {
	case err != nil:
		return err
	case c == 't' || c == 'f':
		word := map[byte]string{'t': "true", 'f': "false"}[c]
		r.text = append(r.text[:0], word...)
		return r.literal(word)
	}
	return r.numeric(kind)
}

func bindText(r *reader, v reflect.Value) error {
	c, err := r.token()
	if err != nil {
		return err
	}
	if c == '"' {
		return bindString(r, v)
	}
	if err := r.scalar("a string, a number, true or false"); err != nil {
		return err
	}
	v.SetString(string(wholeOf(r.text)))
	return nil
}

// wholeOf returns a number without a fraction of zeros: programs that know no whole numbers
// write 5 as 5.0.
func wholeOf(text []byte) []byte {
	whole, zeros, _ := bytes.Cut(text, []byte("."))
	if len(whole) == 0 || len(zeros) == 0 || len(bytes.TrimLeft(zeros, "0")) > 0 {
		return text
	}
	return whole
}

func bindUnread(r *reader, v reflect.Value) error {
	c, err := r.token()
	if err != nil {
		return err
	}
	u := Unread{Present: true, Empty: true}
	switch c {
	case '[':
		err = r.array(func(int) error { u.Empty = false; return r.skip() })
	case '{':
		err = r.object(func([]byte, bool) error { u.Empty = false; return r.skip() })
	case '"':
		r.r++
		var long bool
		long, err = r.str(1)
		u.Empty = !long && len(r.text) == 0
	default:
		u.Empty = false
		err = r.skip()
	}
	v.Set(reflect.ValueOf(u))
	return err
}

// value reads any value: nil, bool, string, json.Number, []any or map[string]any.
func (r *reader) value() (any, error) {
	if err := r.keep(entrySize); err != nil {
		return nil, err
	}
	c, err := r.token()
	if err != nil {
		return nil, err
	}
	switch c {
	case 'n':
		return nil, r.literal("null")
	case 't':
		return true, r.literal("true")
	case 'f':
		return false, r.literal("false")
	case '"':
		err := r.quoted()
		return string(r.text), err
	case '[':
		l := []any{}
		err := r.array(func(int) error {
			e, err := r.value()
			l = append(l, e)
			return err
		})
		return l, err
	case '{':
		m, seen := map[string]any{}, keys{}
		err := r.object(func(name []byte, long bool) error {
			if long {
				return fault.Newf(fault.InvalidParameters, "%s has a key longer than %d bytes", r.where(), maxName)
			}
			if err := r.keep(2 * (entrySize + len(name))); err != nil {
				return err
			}
			key := string(name)
			r.path = append(r.path, step{key, -1})
			if err := seen.add(r, key); err != nil {
				return err
			}
			e, err := r.value()
			if err != nil {
				return err
			}
			m[key] = e
			r.path = r.path[:len(r.path)-1]
			return nil
		})
		return m, err
	}
	err = r.number(maxNumber)
	return json.Number(r.text), err
}
