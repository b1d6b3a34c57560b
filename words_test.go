// SPDX-License-Identifier: Apache-2.0

package tamga

import (
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The word table as a test: the comments, texts and names of Go and SQL files and the Markdown outside
// of code use one plain word for each thing.

// words is the table. A pattern is a regular expression, matched against whole words in
// any letter case. quoted, another one, is what may have the word: terms of standards and
// names. Names of Go files are compared with patterns of one word.
var words = []struct{ pattern, use, quoted string }{
	{pattern: `octets?`, use: "byte", quoted: `OCTET[\s_]+STRINGS?|[Oo]ctet[ _]String|application/octet-str[a-z]+`},
	{pattern: `journal(s|l?ed)?`, use: "audit log, audit entry"},
	{pattern: `twins?`, use: "implementation"},
	{pattern: `journeys?`, use: "round trip"},
	{pattern: `glances?`, use: "snapshot"},
	{pattern: `judgements?`, use: "verification, certificate status"},
	{pattern: `whoever|somebody|anybody`, use: "request, caller, client, user"},
	{pattern: `nobodys?`, use: "no user, no caller, anonymous"},
	{pattern: `strangers?`, use: "anonymous caller, attacker, another party"},
	{pattern: `deeds?`, use: "operation, command"},
	{pattern: `manners?`, use: "rule, way"},
	{pattern: `at hand`, use: "in the same transaction, fetched before"},
	{pattern: `houses?`, use: "architecture, program"},
	{pattern: `tells? (whether|if)`, use: "reports whether"},
	{pattern: `stands?|standing`, use: "is, has, means"},
	{pattern: `lies?`, use: "is, is stored in"},
	{pattern: `lives`, use: "is, belongs to, is valid for"},
	{pattern: `(has|have) to`, use: "must"},
}

func TestWords(t *testing.T) {
	table := compileWords(t)
	files := 0
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (strings.HasPrefix(name, ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		prose := proseOf(name)
		if d.IsDir() || prose == nil || name == "words_test.go" { // this file has all the words
			return nil
		}
		files++
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, p := range table.problems(prose(text)) {
			t.Errorf("%s:%s", name, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 500 {
		t.Errorf("only %d files were checked", files)
	}
}

// TestWordsFound tries the table on texts with known problems.
func TestWordsFound(t *testing.T) {
	table := compileWords(t)
	for _, c := range []struct{ name, text, want string }{
		{"a.md", "one\nan octet here", `2: "octet": write byte`},
		{"a.md", "Octets of an OCTET STRING", `1: "Octets": write byte`},
		{"a.md", "an OCTET STRING", ""},
		{"a.go", "package a\n\n// an OCTET\n// STRING\n", ""},
		{"a.md", "the report tells\nwhether", `1: "tells whether": write reports whether`},
		{"a.md", "the field `octet`\n```\nan octet\n```\n", ""},
		{"a.md", "```\nan octet\n```\nan octet", `4: "octet": write byte`},
		{"a.md", "doctetical outstanding", ""},
		{"a.go", "package a // an octet\nvar b = \"an octet\"\n", `1: "octet": write byte; 2: "octet": write byte`},
		{"a.go", "package a\n\nvar sql = \"SELECT octets\" + \"octets\"\n", `3: "octets": write byte`},
		{"a.sql", "-- A twin.\nCREATE TABLE a (octets BIGINT);\n", `1: "twin": write implementation; 2: "octets": write byte`},
		{"a.go", "package a\n\ntype a struct {\n\tB int `yaml:\"octets\" help:\"An octet.\"`\n}\n", `4: "octets": write byte; 4: "octet": write byte`},
		{"a.go", "package a\n\nvar maxOctets, eachTwin, OctetString, octetString, OCTET_STRING int\n", `3: "Octets": write byte; 3: "Twin": write implementation`},
		{"a.go", "package a\n\nvar eachDeed, nobodysMail, NoBody, Stranger int\n", `3: "Deed": write operation, command; 3: "nobodys": write no user, no caller, anonymous; 3: "Stranger": write anonymous caller, attacker, another party`},
		{"a.go", "package a\n\n// It reports\n// twins.\n", `4: "twins": write implementation`},
		{"a.go", "package a\n\n// It tells\n// whether.\n", `3: "tells whether": write reports whether`},
		{"a.go", "package a\n\nconst a = \"шшш\" // twins\n", `3: "twins": write implementation`},
		{"a.go", "package a\n\n// lies returns octets.\nfunc lies() {}\n", `3: "octets": write byte`},
		{"a.go", "package a\n\n// It returns\n// octets to the caller.\nfunc lies() {}\n", `4: "octets": write byte`},
		{"a.go", "package a\n\n/*\nan octet */\n", `4: "octet": write byte`},
	} {
		if got := strings.Join(table.problems(proseOf(c.name)([]byte(c.text))), "; "); got != c.want {
			t.Errorf("%s %q: got %q, want %q", c.name, c.text, got, c.want)
		}
	}
}

// wordTable is the table ready to search: group i of found is word i of words.
type wordTable struct{ found, quoted *regexp.Regexp }

func compileWords(t *testing.T) wordTable {
	t.Helper()
	var found, quoted []string
	for _, w := range words {
		// Groups inside of a pattern must not count.
		found = append(found, "("+strings.ReplaceAll(strings.ReplaceAll(w.pattern, "(", "(?:"), " ", `\s+`)+")")
		if w.quoted != "" {
			quoted = append(quoted, w.quoted)
		}
	}
	all, err := regexp.Compile(`(?i)\b(?:` + strings.Join(found, "|") + `)\b`)
	if err != nil {
		t.Fatalf("the table of words: %v", err)
	}
	return wordTable{all, regexp.MustCompile(strings.Join(quoted, "|"))}
}

// problems returns a line for each wrong word of a text: its line, the word, and the
// word to use.
func (w wordTable) problems(prose []byte) (list []string) {
	prose = w.quoted.ReplaceAllFunc(prose, blank)
	for _, at := range w.found.FindAllSubmatchIndex(prose, -1) {
		for i := range words {
			if at[2+2*i] >= 0 {
				line := 1 + bytes.Count(prose[:at[0]], []byte("\n"))
				word := strings.Join(strings.Fields(string(prose[at[0]:at[1]])), " ")
				list = append(list, fmt.Sprintf("%d: %q: write %s", line, word, words[i].use))
			}
		}
	}
	return list
}

// proseOf returns what blanks all but the prose of a file of this name, lines kept; nil
// if such a file has none.
func proseOf(name string) func([]byte) []byte {
	switch filepath.Ext(name) {
	case ".md":
		return markdownProse
	case ".go":
		return goProse
	case ".sql":
		return func(text []byte) []byte { return text }
	}
	return nil
}

// code is a fenced block, a code span or the target of a link.
var code = regexp.MustCompile("(?s)(?m:^) *```.*?\n *```|`(?:[^`\n]|\n[^`\n])*`|\\]\\([^)\n]*\\)")

func markdownProse(text []byte) []byte { return code.ReplaceAllFunc(text, blank) }

var (
	// nameWords are the words of the table that names must not have. A verb such as lives
	// may be a good name.
	nameWords = regexp.MustCompile(`(?i)^(octets?|journal(s|l?ed)?|twins?|journeys?|glances?|judgements?|whoever|somebody|anybody|nobodys?|strangers?|deeds?)$`)
	// nameParts are the words of a name: maxOctets, OCTET_STRING.
	nameParts = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)
	// octetString is a type of ASN.1.
	octetString = regexp.MustCompile(`(?i)octet_?string`)
)

// goProse leaves the comments of a Go file, its string literals of more than one word, and
// the words of its names that no name should have. A first word of a comment that is an
// identifier of the file goes: it is the name of what the comment describes.
func goProse(text []byte) []byte {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, text, nil, scanner.ScanComments)
	prose := blank(text)
	identifiers := map[string]bool{}
	firsts := map[int]string{} // by offset
	for before := token.ILLEGAL; ; {
		pos, kind, literal := s.Scan()
		switch kind {
		case token.EOF:
			for at, word := range firsts {
				if identifiers[word] {
					copy(prose[at:], blank([]byte(word)))
				}
			}
			return prose
		case token.IDENT:
			identifiers[literal] = true
			at := file.Offset(pos)
			name := octetString.ReplaceAllStringFunc(literal, func(s string) string { return strings.Repeat("_", len(s)) })
			for _, part := range nameParts.FindAllStringIndex(name, -1) {
				if nameWords.MatchString(name[part[0]:part[1]]) {
					copy(prose[at+part[0]:], name[part[0]:part[1]])
				}
			}
		case token.STRING:
			if strings.Contains(literal, " ") {
				copy(prose[file.Offset(pos):], strings.ReplaceAll(literal, `\n`, "  "))
			}
		case token.COMMENT:
			// Without the slashes, a phrase continues on the next line.
			at := file.Offset(pos)
			copy(prose[at:], strings.ReplaceAll(literal, "//", "  "))
			if first, _, found := strings.Cut(strings.TrimPrefix(literal, "// "), " "); found && before != token.COMMENT {
				firsts[at+len("// ")] = first
			}
		}
		before = kind
	}
}

// blank returns a text with spaces in the place of all bytes but line feeds.
func blank(text []byte) []byte {
	out := bytes.Repeat([]byte{' '}, len(text))
	for i, b := range text {
		if b == '\n' {
			out[i] = b
		}
	}
	return out
}
