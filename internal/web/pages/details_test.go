// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// faultsOf returns the messages of the faults that packages make with constant messages, and the names of
// values in place of what they are.
func faultsOf(t *testing.T, dirs ...string) (messages []string) {
	t.Helper()
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) < 2 {
					return true
				}
				called, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || called.Sel.Name != "New" && called.Sel.Name != "Newf" {
					return true
				}
				if from, ok := called.X.(*ast.Ident); !ok || from.Name != "fault" {
					return true
				}
				if message := types.ExprString(call.Args[1]); strings.HasPrefix(message, `"`) {
					if text, ok := quotedText(call.Args[1]); ok && text != "" {
						messages = append(messages, text)
					}
				}
				return true
			})
		}
	}
	slices.Sort(messages)
	return slices.Compact(messages)
}

func quotedText(e ast.Expr) (string, bool) {
	switch x := e.(type) {
	case *ast.BasicLit:
		return constant.StringVal(constant.MakeFromLiteral(x.Value, x.Kind, 0)), true
	case *ast.BinaryExpr: // a text and what is added to it
		text, ok := quotedText(x.X)
		return text + "%s", ok
	}
	return "", false
}

// TestDetails checks that every message of these packages has a text in Russian, and that each
// text has as many values as its message.
func TestDetails(t *testing.T) {
	domain := func(name string) string { return filepath.Join("../../domain", name) }
	messages := faultsOf(t, ".", domain("contact"), domain("held"), domain("oath"), domain("confirm"), domain("keys"), domain("document"), domain("user"), domain("password"),
		domain("signing"), domain("signin"), domain("device"), domain("policy"), domain("notify"))
	if len(messages) < 400 {
		t.Fatalf("only %d messages", len(messages))
	}
	ru := languages[1]
	for _, m := range messages {
		if text := ru.own(values.ReplaceAllString(m, "7")); text == "" || strings.Contains(text, "%!") {
			t.Errorf("no text for %q: %q", m, text)
		}
	}
	seen := map[string]bool{}
	for line := range strings.Lines(detailsRU) {
		message, text, _ := strings.Cut(strings.TrimSpace(line), " = ")
		if n, most := strings.Count(text, "%"), len(values.FindAllString(message, -1)); n != strings.Count(text, "%s") || n > most {
			t.Errorf("%q has other values than %q", text, message)
		}
		if seen[message] {
			t.Errorf("%q is there twice", message)
		}
		seen[message] = true
	}
}

func TestOwn(t *testing.T) {
	en, ru := languages[0], languages[1]
	for message, want := range map[string]string{
		"the code is wrong":                                                   "Код неверен.",
		"the code is wrong: 2 of 3 attempts are left":                         "Код неверен. Осталось попыток: 2 из 3.",
		"nothing was done: type %s<b>\n to confirm, exactly as it is written": "Ничего не сделано: для подтверждения введите %s<b>\n в точности как написано.",
		"a message of nobody":                                                 "",
		strings.Repeat("a", 1<<20):                                            "",
		"certificate 7 has this name":                                         "",
		"the whole document, 512 bytes":                                       "весь документ, размер 512 Б",
		"the whole document, root element a (without this signature)":         "весь документ без этой подписи, корневой элемент a",
		"the first 5 of 9 bytes, a revision of the document; later revisions: metadata, form filling": "первые 5 из 9 байт: версия документа; в более поздних версиях: метаданные, заполненные поля",
		"3 parts: /a, /b, /c; relationships in 1 parts: /d; not covered: /e":                          "частей: 3 (/a, /b, /c); связи в частях: 1 (/d); не подписано: /e",
	} {
		if got := ru.own(message); got != want {
			t.Errorf("%.80q: %.80q, want %.80q", message, got, want)
		}
		if en.own(message) != message {
			t.Errorf("%.80q is another text in English", message)
		}
	}
}
