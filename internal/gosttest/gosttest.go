// SPDX-License-Identifier: Apache-2.0

// Package gosttest is the shared test code of the packages below gost. Vectors reads
// files of known answers, Hash and Block check what every hash and every block cipher
// must do, and Assembly checks that assembly runs in constant time. Only tests import
// it.
package gosttest

import (
	"bufio"
	"encoding/hex"
	"io/fs"
	"strconv"
	"strings"
	"testing"
)

// Vector is one known answer: a block of named fields in a vector file.
type Vector struct {
	// Line is the number of the block's first line in its file.
	Line   int
	file   string
	fields map[string][]byte
}

// Vectors reads a file of known answers. The first line must be a comment that names
// the source. The rest consists of blocks, separated by empty lines. The lines of a
// block have the form
//
//	Name = hex digits, or nothing, or "text in Go's double quotes"
//
// A line that starts with # is a comment. Vectors fails the test if the file does not
// parse, names no source or has no vector.
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
		t.Fatalf("%s: the file has no vectors", name)
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

// Has reports whether the vector has the field.
func (v Vector) Has(name string) bool {
	_, ok := v.fields[name]
	return ok
}

// Bytes returns a copy of a field. It fails the test if the vector does not have it.
func (v Vector) Bytes(t testing.TB, name string) []byte {
	t.Helper()
	b, ok := v.fields[name]
	if !ok {
		t.Fatalf("%s:%d: no field %s", v.file, v.Line, name)
	}
	return append([]byte{}, b...)
}

// Text returns a field as a string. It fails the test if the vector does not have it.
func (v Vector) Text(t testing.TB, name string) string {
	t.Helper()
	return string(v.Bytes(t, name))
}
