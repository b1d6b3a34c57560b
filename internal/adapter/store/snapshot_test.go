// SPDX-License-Identifier: Apache-2.0

package store

import "testing"

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
