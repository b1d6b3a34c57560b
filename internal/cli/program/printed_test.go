// SPDX-License-Identifier: Apache-2.0

package program

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// printed are the texts that commands print, with the places of their literals.
type printed map[string]string

// texted are the functions whose literal is put into the language of the process, by the position of the literal;
// -1 is all from the second one on.
var texted = map[string]int{"Text": 0, "Say": 0, "Print": 0, "say": 0, "Answer": 2, "line": 1, "NewTable": -1, "ok": 1, "warn": 2, "fault": 2, "note": 0}

// others are functions whose literals are not for people in their language: errors, the names of operations in the
// audit log, what programs read.
var others = map[string]bool{
	"Errorf": true, "New": true, "Contains": true, "HasPrefix": true, "HasSuffix": true, "TrimPrefix": true, "TrimSuffix": true,
	"Warn": true, "Set": true, "NewFile": true, "OwnSecret": true, "unreachable": true, "readRefusal": true, "Cut": true, "Replace": true,
}

// sentenceLike are texts with a word of five letters or two words.
var sentenceLike = regexp.MustCompile(`\b[A-Za-z]{2,} +[A-Za-z]{2,}\b`)

// untranslated are literals with words that no person reads as a text of a command, by a part of them.
var untranslated = []string{
	"command line", "audit", "PRIVATE KEY", "CERTIFICATE REQUEST", "# outside roots", "# Configuration of Tamga", "# Issued certificates", "# Keep copies", "# How long", "# Push services of browsers", "# What one operator", "# Programs that confirm",
	"# %s, %s, valid until", "# %s, a cross certificate", "PROXY UNKNOWN", "exit code", "go run ", "of this release", "the service refused (%d %s)",
	"GOST and ECDSA", "standard input", "of another kind (", "json: unknown field ", "files with shares",
}

// printedBy returns the printed texts of the Go files below a directory, and the literals that look like a text and
// are not.
func printedBy(t *testing.T, dir string) (texts printed, strays []string) {
	t.Helper()
	texts = printed{}
	set := token.NewFileSet()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		strays = append(strays, texts.read(set, file)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts, strays
}

// read adds the texts of a file. It returns the strays.
func (p printed) read(set *token.FileSet, file *ast.File) (strays []string) {
	add := func(e ast.Expr) bool {
		l, ok := e.(*ast.BasicLit)
		if !ok || l.Kind != token.STRING {
			return false
		}
		text, err := strconv.Unquote(l.Value)
		if err == nil && strings.ContainsFunc(verbs.ReplaceAllString(text, ""), isLetter) {
			p[text] = set.Position(l.Pos()).String()
		}
		return err == nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			return n.Tag == nil
		case *ast.FuncDecl:
			return n.Name.Name != "Help" && n.Name.Name != "Error"
		case *ast.ValueSpec: // a constant of words, or a table with words
			if name := typeName(n.Type); name == "Word" {
				for _, v := range n.Values {
					add(v)
				}
			}
		case *ast.CompositeLit:
			if hasWord(n.Type) {
				wordsIn(n, add)
			}
			// A part of an error with its remedy: the part is compared.
			if call, ok := at(n.Elts, 1).(*ast.CallExpr); ok && typeName(call.Fun) == "Say" && len(n.Elts) == 2 && n.Type == nil {
				add(call.Args[0])
				return false
			}
		case *ast.CallExpr:
			name := typeName(n.Fun)
			if others[name] {
				return false
			}
			if name == "Word" && len(n.Args) == 1 {
				add(n.Args[0])
			}
			number, known := texted[name]
			for i, a := range n.Args {
				if known && (i == number || number < 0 && i > 0) {
					add(a)
				}
			}
			if name == "field" && len(n.Args) > 2 {
				add(n.Args[1])
				add(n.Args[2])
			}
			if name == "signature" && len(n.Args) > 2 {
				add(n.Args[2])
			}
		case *ast.BasicLit:
			if n.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(n.Value)
			if err == nil && sentenceLike.MatchString(text) && !slices.ContainsFunc(untranslated, func(part string) bool { return strings.Contains(text, part) }) {
				strays = append(strays, set.Position(n.Pos()).String()+": "+n.Value)
			}
		}
		return true
	})
	return strays
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// typeName returns the last name of a type or a function.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// hasWord reports whether the values of a composite literal have words.
func hasWord(e ast.Expr) (found bool) {
	if e == nil {
		return false
	}
	ast.Inspect(e, func(n ast.Node) bool {
		if x, ok := n.(ast.Expr); ok && typeName(x) == "Word" {
			found = true
		}
		return !found
	})
	return found
}

// wordsIn calls add with the words of a composite literal: its strings, or the strings of its elements that are first
// in them. Keys are not words.
func wordsIn(l *ast.CompositeLit, add func(ast.Expr) bool) {
	for _, e := range l.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			e = pair.Value
		}
		if inner, ok := e.(*ast.CompositeLit); ok {
			for _, x := range inner.Elts {
				if add(x) {
					break
				}
			}
			continue
		}
		add(e)
	}
}

func at(list []ast.Expr, i int) ast.Expr {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// counted are the names of the numbers that store.DB.Counts returns.
func counted(t *testing.T) printed {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "../../adapter/store/restore.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	texts := printed{}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && v.Names[0].Name == "counted" {
			wordsIn(v.Values[0].(*ast.CompositeLit), func(e ast.Expr) bool {
				text, err := strconv.Unquote(e.(*ast.BasicLit).Value)
				texts[text] = "store"
				return err == nil
			})
		}
		return true
	})
	if len(texts) < 10 {
		t.Fatalf("only %d numbers are counted", len(texts))
	}
	return texts
}

var verbs = regexp.MustCompile(`%[-+# 0-9.]*(?:\[(\d+)\])?[a-zA-Z]`)

// verbsOf returns the values that a format takes: the verb by the number of the value.
func verbsOf(format string) map[int]string {
	found, next := map[int]string{}, 1
	for _, m := range verbs.FindAllStringSubmatch(strings.ReplaceAll(format, "%%", ""), -1) {
		if n, err := strconv.Atoi(m[1]); err == nil {
			next = n
		}
		found[next] = m[0][len(m[0])-1:]
		next++
	}
	return found
}

// allPrinted returns the texts that all commands print, and the literals that look like one and are not.
func allPrinted(t *testing.T) (texts printed, strays []string) {
	t.Helper()
	texts, strays = printedBy(t, "..")
	if len(texts) < 400 {
		t.Fatalf("only %d texts are found", len(texts))
	}
	more, _ := printedBy(t, "../../app/dev")
	maps.Copy(texts, more)
	maps.Copy(texts, counted(t))
	return texts, strays
}

// TestPrinted checks that each text that a command prints has one in Russian with the same values, and that no text
// is printed past the catalogue.
func TestPrinted(t *testing.T) {
	t.Parallel()
	texts, strays := allPrinted(t)
	for _, text := range slices.Sorted(maps.Keys(texts)) {
		other, ok := russian()[text]
		if !ok {
			t.Errorf("%s: words/ru.txt has no text for %q", texts[text], text)
			continue
		}
		if a, b := verbsOf(text), verbsOf(other); !maps.Equal(a, b) {
			t.Errorf("%s: the values of %q are %v, in Russian %v", texts[text], text, a, b)
		}
		for _, part := range []string{"--", "tamga ", "\n"} { // what people type, and lines
			if a, b := strings.Count(text, part), strings.Count(other, part); a != b {
				t.Errorf("%s: %q is %d times in %q and %d times in %q", texts[text], part, a, text, b, other)
			}
		}
	}
	for _, s := range strays {
		_, literal, _ := strings.Cut(s, ": ")
		text, _ := strconv.Unquote(literal)
		if texts[text] == "" && !strings.Contains(s, "/program/") && !strings.Contains(s, "client/client.go") {
			t.Errorf("%s is printed past the catalogue: use Console.Text, Console.Say or Console.Word", s)
		}
	}
}
