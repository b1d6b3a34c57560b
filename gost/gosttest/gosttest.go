// Package gosttest owns what the tests of the algorithms share: a reader of known
// answers and the behaviour every hash and every block cipher must show. Only
// tests import it.
package gosttest

import (
	"bufio"
	"encoding/hex"
	"io/fs"
	"strconv"
	"strings"
	"testing"
)

// Vector is one known answer: a block of named fields of a vector file.
type Vector struct {
	// Line is the number of the block's first line in its file.
	Line   int
	file   string
	fields map[string][]byte
}

// Vectors reads a file of known answers. Its first line is a comment that names
// the source; the rest is blocks separated by empty lines, of lines
//
//	Name = hex digits, or nothing, or "text in Go's double quotes"
//
// and comments starting with #. It fails the test when the file does not parse,
// names no source or has no vector.
func Vectors(t testing.TB, files fs.FS, name string) []Vector {
	t.Helper()
	f, err := files.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	var vectors []Vector
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	inBlock := false
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		switch {
		case n == 1 && !strings.HasPrefix(line, "# "):
			t.Fatalf("%s: the first line must name the source in a comment", name)
		case line == "":
			inBlock = false
			continue
		case strings.HasPrefix(line, "#"):
			continue
		}
		key, text, ok := strings.Cut(line, "=")
		if !ok {
			t.Fatalf("%s:%d: want Name = value", name, n)
		}
		value, err := parseValue(strings.TrimSpace(text))
		if err != nil {
			t.Fatalf("%s:%d: %v", name, n, err)
		}
		if !inBlock {
			vectors = append(vectors, Vector{Line: n, file: name, fields: map[string][]byte{}})
			inBlock = true
		}
		fields := vectors[len(vectors)-1].fields
		key = strings.TrimSpace(key)
		if _, twice := fields[key]; twice {
			t.Fatalf("%s:%d: %s is given twice", name, n, key)
		}
		fields[key] = value
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(vectors) == 0 {
		t.Fatalf("%s: no vectors", name)
	}
	return vectors
}

func parseValue(text string) ([]byte, error) {
	if strings.HasPrefix(text, `"`) {
		s, err := strconv.Unquote(text)
		return []byte(s), err
	}
	return hex.DecodeString(text)
}

// Has tells whether the vector has the field.
func (v Vector) Has(name string) bool {
	_, ok := v.fields[name]
	return ok
}

// Bytes returns a fresh copy of a field. It fails the test when there is none.
func (v Vector) Bytes(t testing.TB, name string) []byte {
	t.Helper()
	b, ok := v.fields[name]
	if !ok {
		t.Fatalf("%s:%d: no field %s", v.file, v.Line, name)
	}
	return append([]byte{}, b...)
}

// Text returns a field as a string. It fails the test when there is none.
func (v Vector) Text(t testing.TB, name string) string {
	t.Helper()
	return string(v.Bytes(t, name))
}
