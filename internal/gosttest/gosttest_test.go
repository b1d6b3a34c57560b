// SPDX-License-Identifier: Apache-2.0

package gosttest

import (
	"testing"
	"testing/fstest"
)

func TestVectors(t *testing.T) {
	files := fstest.MapFS{"v.txt": {Data: []byte("# a source\n# of two lines\n\n# first\nKey = 00ff\nText = \"a = b\\xff\"\n\n\nEmpty =\n# inside\nKey=01\n")}}
	v := Vectors(t, files, "v.txt")
	if len(v) != 2 || v[0].Line != 5 || v[1].Line != 9 {
		t.Fatalf("%+v, want vectors at lines 5 and 9", v)
	}
	if got := v[0].Bytes(t, "Key"); string(got) != "\x00\xff" {
		t.Errorf("Key is %x", got)
	}
	if got := v[0].Text(t, "Text"); got != "a = b\xff" {
		t.Errorf("Text is %q", got)
	}
	if !v[1].Has("Empty") || len(v[1].Bytes(t, "Empty")) != 0 || v[0].Has("Empty") {
		t.Error("Has and Bytes do not distinguish an empty field from a missing one")
	}
	v[0].Bytes(t, "Key")[0] = 7
	if got := v[0].Bytes(t, "Key"); got[0] != 0 {
		t.Error("Bytes does not return a copy")
	}
}

func TestParseValue(t *testing.T) {
	for _, text := range []string{"0", "0g", `"open`, "00 11"} {
		if b, err := parseValue(text); err == nil {
			t.Errorf("%s is accepted as %x", text, b)
		}
	}
}
