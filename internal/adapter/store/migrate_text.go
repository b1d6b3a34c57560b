// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// migration is a file of migrations/ with the words of one engine filled in.
type migration struct {
	version    int64
	name       string // of the file
	alone      bool   // no transaction holds the statements together
	statements []statement
}

// statement is one SQL statement without comments and without its semicolon.
type statement struct {
	text     string
	portions bool // runs again until it changes no row
}

// The annotations of a file of migrations: lines of comments that begin with a plus.
const (
	alonePhrase    = "+no transaction"
	portionsPhrase = "+portions"
)

// readMigrations returns the migrations of a folder in the order of their numbers.
func readMigrations(files fs.FS, e engine) ([]migration, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	var list []migration
	for _, name := range names {
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil || version <= 0 {
			return nil, fmt.Errorf("migration %s: want a name like 0001_name.sql", name)
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		m := migration{version: version, name: name}
		if err := m.read(migrationWords[e].Replace(string(text))); err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b migration) int { return int(a.version - b.version) })
	for i := 1; i < len(list); i++ {
		if list[i].version == list[i-1].version {
			return nil, fmt.Errorf("migrations %s and %s have the same number", list[i-1].name, list[i].name)
		}
	}
	return list, nil
}

// read splits text into statements. It knows comments, quoted texts and names, and texts in
// dollars, because all of them may contain semicolons.
func (m *migration) read(text string) error {
	var current strings.Builder
	var next statement // as annotated
	add := func() {
		if next.text = strings.TrimSpace(current.String()); next.text != "" {
			m.statements = append(m.statements, next)
			next = statement{}
		}
		current.Reset()
	}
	for text != "" {
		n := 1
		switch {
		case strings.HasPrefix(text, "--"):
			line, _, _ := strings.Cut(text, "\n")
			switch phrase := strings.TrimSpace(line[2:]); {
			case phrase == alonePhrase:
				m.alone = true
			case phrase == portionsPhrase:
				next.portions = true
			case strings.HasPrefix(phrase, "+"):
				return fmt.Errorf("unknown annotation %q, want %q or %q", phrase, alonePhrase, portionsPhrase)
			}
			text = text[len(line):]
			continue
		case strings.HasPrefix(text, "/*"):
			_, rest, closed := strings.Cut(text, "*/")
			if !closed {
				return fmt.Errorf("a comment has no end")
			}
			current.WriteByte(' ')
			text = rest
			continue
		case text[0] == ';':
			add()
			text = text[1:]
			continue
		default:
			if quote := quoteOf(text); quote != "" {
				end := strings.Index(text[len(quote):], quote)
				if end < 0 {
					return fmt.Errorf("a text in %s has no end", quote)
				}
				n = end + 2*len(quote)
			}
		}
		current.WriteString(text[:n])
		text = text[n:]
	}
	add()
	if next.portions {
		return fmt.Errorf("no statement follows the last annotation")
	}
	for _, s := range m.statements {
		if s.portions && !m.alone {
			return fmt.Errorf("a statement in portions needs %q", alonePhrase)
		}
	}
	return nil
}

// quoteOf returns what ends the quoted text at the beginning of text, "" if none begins there. A
// doubled quote inside a text begins the next one, which joins both again.
func quoteOf(text string) string {
	switch text[0] {
	case '\'', '"':
		return text[:1]
	case '$':
		name, _, found := strings.Cut(text[1:], "$")
		if found && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz_") == "" {
			return text[:len(name)+2]
		}
	}
	return ""
}
