// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unportable is what databases that speak the protocol of PostgreSQL may lack.
// docs/cluster.md says that nothing of it is used.
var unportable = regexp.MustCompile(`(?i)pg_(?:try_)?advisory|\bLISTEN\s+[a-z_]+\s*;?$|\bNOTIFY\s+[a-z_]+|pg_notify|` +
	`\bCREATE\s+(?:OR\s+REPLACE\s+)?(?:CONSTRAINT\s+)?(?:TEMP|TEMPORARY|UNLOGGED|TRIGGER|FUNCTION|PROCEDURE|EXTENSION|RULE|DOMAIN)\b|\bctid\b|\bxmin\b|\bLOCK\s+TABLE\b`)

// tableLocks are the files that lock a table: to make partitions, and to migrate.
var tableLocks = []string{"partitions.go", "migrate.go"}

func TestPortableStatements(t *testing.T) {
	code, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := filepath.Glob("migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, name := range slices.Concat(code, schema) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		statements := strings.Split(string(text), "\n")
		if strings.HasSuffix(name, ".go") {
			statements = literals(name, text)
		}
		for _, s := range statements {
			s, _, _ = strings.Cut(s, "-- ")
			for _, word := range unportable.FindAllString(s, -1) {
				base := filepath.Base(name)
				if strings.EqualFold(word, "LOCK TABLE") && slices.Contains(tableLocks, base) {
					used[base] = true
					continue
				}
				t.Errorf("%s: %q, which not every server has: %.100s", name, word, strings.TrimSpace(s))
			}
		}
	}
	for _, name := range tableLocks {
		if !used[name] {
			t.Errorf("%s locks no table: take it off the list", name)
		}
	}
}

// literals returns the strings of a Go file.
func literals(name string, text []byte) (list []string) {
	var s scanner.Scanner
	files := token.NewFileSet()
	s.Init(files.AddFile(name, files.Base(), len(text)), text, nil, 0)
	for {
		_, kind, literal := s.Scan()
		switch kind {
		case token.EOF:
			return list
		case token.STRING:
			list = append(list, strings.Trim(literal, "\"`"))
		}
	}
}
