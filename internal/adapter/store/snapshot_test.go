// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"tamga/internal/adapter/store/lite"
	"tamga/internal/domain/authority"
)

func TestReadStates(t *testing.T) {
	var list states
	if err := list.Scan("root 2 1000\ngost 1 0"); err != nil || len(list) != 2 || list[0].Name != "gost" || !list[0].CRLAt.IsZero() || list[1].CRLNumber != 2 || list[1].CRLAt.UnixMilli() != 1000 {
		t.Errorf("%v, %v", list, err)
	}
	if err := list.Scan(nil); err != nil || len(list) != 0 {
		t.Errorf("no authority: %v, %v", list, err)
	}
	for _, text := range []string{"gost", "gost 1", "gost x 1", "gost 1 x", "gost 1 1 1"} {
		if err := list.Scan(text); err == nil {
			t.Errorf("%q: %v, want an error", text, list)
		}
	}
}

// TestStatesAreOwn checks that the memory of the text that was parsed last does not join its readers:
// each has values of its own, and another text has other values.
func TestStatesAreOwn(t *testing.T) {
	var first, second, other states
	for _, list := range []*states{&first, &second} {
		if err := list.Scan("gost 1 1000\nroot 2 2000"); err != nil {
			t.Fatal(err)
		}
	}
	first[0].CRLNumber = 9
	if second[0].CRLNumber != 1 {
		t.Error("two readers share their states")
	}
	if err := other.Scan("gost 2 1000\nroot 2 2000"); err != nil || other[0].CRLNumber != 2 {
		t.Errorf("after a renewal: %+v, %v", other, err)
	}
	if err := second.Scan("gost 1 1000\nroot 2 2000"); err != nil || second[0].CRLNumber != 1 {
		t.Errorf("the first text again: %+v, %v", second, err)
	}
}

// TestStatesWithoutLists checks that SQLite reads the states from an index. In the rows they come after
// the revocation list, and reading past a large one takes longer than a signature.
func TestStatesWithoutLists(t *testing.T) {
	db := openTest(t)
	record := authority.Record{State: authority.State{Name: "gost", CRLNumber: 3, CRLAt: time.UnixMilli(7)}, Suite: "s", Sealed: []byte{1}, Certificate: []byte{1}, CRL: bytes.Repeat([]byte{1}, 1<<20)}
	if added, err := (Authority{db}).AddAuthority(t.Context(), record); err != nil || !added {
		t.Fatal(added, err)
	}
	list, err := (Authority{db}).States(t.Context())
	if want := (authority.State{Name: "gost", CRLNumber: 3, CRLAt: time.UnixMilli(7)}); err != nil || len(list) != 1 || list[0].Name != want.Name || list[0].CRLNumber != want.CRLNumber || !list[0].CRLAt.Equal(want.CRLAt) {
		t.Errorf("%+v, %v", list, err)
	}
	plan, err := allOf(t.Context(), db.database, lite.Once, func(r row) (text string, err error) {
		var id, parent, unused int64
		err = r.Scan(&id, &parent, &unused, &text)
		return text, err
	}, "EXPLAIN QUERY PLAN "+statesQuery, []any{""})
	if err != nil || !slices.ContainsFunc(plan, func(line string) bool { return strings.Contains(line, "COVERING INDEX authority_states") }) {
		t.Errorf("%q, %v", plan, err)
	}
}

func TestNullable(t *testing.T) {
	n, text, ok := 7, "before", true
	for _, err := range []error{orZero(&n).Scan(nil), orZero(&text).Scan(nil), orZero(&ok).Scan(nil)} {
		if err != nil {
			t.Error(err)
		}
	}
	if n != 0 || text != "" || ok {
		t.Errorf("NULL is %d, %q, %v; want zero values", n, text, ok)
	}
	for _, err := range []error{orZero(&n).Scan(int64(3)), orZero(&text).Scan([]byte("text")), orZero(&ok).Scan(int64(1))} {
		if err != nil {
			t.Error(err)
		}
	}
	if n != 3 || text != "text" || !ok {
		t.Errorf("%d, %q, %v", n, text, ok)
	}
	if orZero(&n).Scan("three") == nil {
		t.Error("a text is scanned as a number")
	}
}

// TestOrZero checks what a nullable column stores for the values of both engines.
func TestOrZero(t *testing.T) {
	var (
		n    = -1
		flag = true
	)
	for _, c := range []struct {
		value any
		n     int
		flag  bool
		fails bool // as a boolean
	}{
		{nil, 0, false, false}, {int64(0), 0, false, false}, {int64(1), 1, true, false}, {int64(2), 2, false, true}, {int64(-7), -7, false, true},
	} {
		if err := orZero(&n).Scan(c.value); err != nil || n != c.n {
			t.Errorf("%v as an integer: %d, %v", c.value, n, err)
		}
		if err := orZero(&flag).Scan(c.value); (err != nil) != c.fails || flag != c.flag {
			t.Errorf("%v as a boolean: %t, %v", c.value, flag, err)
		}
	}
	if err := orZero(&flag).Scan(true); err != nil || !flag {
		t.Error(flag, err)
	}
	if err := orZero(&n).Scan("x"); err == nil {
		t.Error("a text is an integer")
	}
}
