// SPDX-License-Identifier: Apache-2.0

package program

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// faultTexts returns the texts of faults in the Go files of a directory: literals of errors and of tables of checks, and what tags say
// that a setting should be.
func faultTexts(t *testing.T, dir string) (texts []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(files), err)
	}
	wantTag := regexp.MustCompile(`\bwant:"([^"]+)"`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			add := func(e ast.Expr) {
				if text := joined(e); text != "" {
					texts = append(texts, text)
				}
			}
			switch n := n.(type) {
			case *ast.Field:
				if n.Tag != nil {
					if m := wantTag.FindStringSubmatch(n.Tag.Value); m != nil {
						texts = append(texts, "a.setting: want "+m[1])
					}
				}
			case *ast.CallExpr:
				switch name := typeName(n.Fun); {
				case name == "Errorf" && len(n.Args) > 0, name == "New" && len(n.Args) == 1:
					add(n.Args[0])
				case name == "must" && len(n.Args) == 2:
					add(n.Args[1])
				case name == "fault" && len(n.Args) > 1:
					add(n.Args[1])
				}
			case *ast.CompositeLit: // a row of a table of checks: whether it is right, and the text
				if n.Type == nil && len(n.Elts) == 2 {
					if text := joined(n.Elts[1]); strings.Contains(text, ": ") {
						texts = append(texts, text)
					}
				}
			}
			return true
		})
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// joined returns the text of a literal, of literals that are added, and of fmt.Sprintf with one. Other parts are values.
func joined(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(x.Value); err == nil && x.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		if a, b := joined(x.X), joined(x.Y); a != "" || b != "" {
			value := func(s string) string {
				if s == "" {
					return "%s"
				}
				return s
			}
			return value(a) + value(b)
		}
	case *ast.CallExpr:
		if typeName(x.Fun) == "Sprintf" {
			return joined(x.Args[0])
		}
	}
	return ""
}

// places are names of settings before a text.
var places = regexp.MustCompile(`^(?:(?:--set %s|[A-Za-z_.%\[\]-]+): ?)+`)

// isCyrillic reports whether a letter is a Russian one.
func isCyrillic(r rune) bool { return unicode.Is(unicode.Cyrillic, r) }

// TestFaultsInRussian checks that each fault of a configuration has a Russian text, and that each line of the catalogue can be read.
func TestFaultsInRussian(t *testing.T) {
	t.Parallel()
	texts := slices.Concat(faultTexts(t, "../../config"), faultTexts(t, "../../setting"), faultTexts(t, "../../files"))
	for _, settings := range []string{"mail", "sms", "push"} {
		for _, text := range faultTexts(t, "../../adapter/"+settings) {
			if strings.Contains(text, ": want ") {
				texts = append(texts, text)
			}
		}
	}
	checked := 0
	for _, text := range texts {
		if rest := places.ReplaceAllString(text, ""); !strings.ContainsFunc(verbs.ReplaceAllString(rest, ""), isLetter) || !strings.Contains(rest, " ") {
			continue // the name of a setting and what another text says
		}
		if !strings.ContainsFunc(verbs.ReplaceAllString(text, ""), isLetter) || unread(text) {
			continue
		}
		sample := verbs.ReplaceAllStringFunc(text, func(verb string) string {
			return map[string]string{"%d": "7", "%q": `"x"`, "%[2]s": "x"}[verb] + strings.Repeat("x", b2i(verb != "%d" && verb != "%q"))
		})
		if !strings.Contains(sample, ":") && !strings.Contains(text, "%") {
			sample = "a.setting: " + sample
		}
		checked++
		if got := faultIn(sample); !strings.ContainsFunc(got, isCyrillic) || strings.Contains(got, "%!") {
			t.Errorf("words/faults.ru.txt has no text for %q: %s", text, got)
		}
	}
	if checked < 100 {
		t.Errorf("only %d texts", checked)
	}
	for line := range strings.Lines(russianFaults) {
		message, text, _ := strings.Cut(strings.TrimSpace(line), " = ")
		if a, b := len(verbs.FindAllString(message, -1)), len(verbs.FindAllString(text, -1)); a != b {
			t.Errorf("%q has %d values, its text %d", message, a, b)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// unread reports whether a text of an error is not for people who write a configuration.
func unread(text string) bool {
	return slices.ContainsFunc([]string{"switching core dumps off", "making the process not dumpable", "setting: %s", "not YAML", "unknown setting%s"}, func(part string) bool { return strings.Contains(text, part) })
}

// TestFaultIn checks whole faults, with places, nested ones and ones without a text.
func TestFaultIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/etc/tamga/tamga.yaml: line 3: lisen: unknown setting; did you mean listen?":                                              "/etc/tamga/tamga.yaml: строка 3: lisen: такой настройки нет; возможно, listen?",
		"tamga.yaml: line 9: users.factor_delay: want a time, such as 300s, 15m or 1h":                                             "tamga.yaml: строка 9: users.factor_delay: нужно время, например 300s, 15m или 1h",
		`limits.connections: want a whole number, not "many"`:                                                                      `limits.connections: нужно целое число, а не "many"`,
		"--set pin.min=x: pin.min: want at least 4":                                                                                "--set pin.min=x: pin.min: нужно не меньше 4",
		"master key 1: open /etc/tamga/secrets/master.key: no such file or directory":                                              "мастер-ключ 1: файл /etc/tamga/secrets/master.key не открывается: нет такого файла или каталога",
		"clients[1].id: want a unique name other than pages":                                                                       "clients[1].id: нужно своё имя, не pages",
		"certificates.authorities: number 3: want a name and a certificates_file":                                                  "certificates.authorities: номер 3: нужны имя и certificates_file",
		"yaml: line 4: did not find expected key; indent with spaces, put a space after each colon, and close quotes and brackets": "YAML: строка 4: ожидалось имя настройки; отступы – пробелами, после двоеточия пробел, кавычки и скобки закрыты",
		"listen: want HOST:PORT, such as 127.0.0.1:8080, with a port up to 65535\nsomething else":                                  "listen: нужно HOST:PORT, например 127.0.0.1:8080, с портом до 65535\nsomething else",
		strings.Repeat("a.b: ", 2000):                                                                                              strings.Repeat("a.b: ", 2000),
	} {
		if got := faultIn(text); got != want {
			t.Errorf("%.80q is\n%.200s\nwant\n%.200s", text, got, want)
		}
	}
}

// TestFaultsSpoken runs config check and doctor in Russian over faults of each kind. JSON stays in English.
func TestFaultsSpoken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "tamga.yaml")
	if err := os.WriteFile(file, []byte("lisen: 127.0.0.1:8080\npublic_url: sign.example.org\nusers: {factor_delay: [1]}\nlimits: {connections: many}\nmaster_keys: {active: \"1\", files: {\"1\": gone.key}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, text := speaks(t, "config", "check", "--config", file)
	for line := range strings.Lines(text) {
		if !strings.ContainsFunc(line, isCyrillic) {
			t.Errorf("config check says %s", line)
		}
	}
	if strings.Count(text, "строка ") < 3 {
		t.Errorf("config check says\n%s", text)
	}
	out, _ := speaks(t, "doctor", "--config", file)
	if !strings.Contains(out, "такой настройки нет; возможно, listen?") || strings.Contains(out, "unknown setting") || !strings.Contains(out, "строка 1: ") {
		t.Errorf("doctor says\n%s", out)
	}
	if out, _ := speaks(t, "doctor", "--json", "--config", file); !strings.Contains(out, "unknown setting; did you mean listen?") || strings.ContainsFunc(out, isCyrillic) {
		t.Errorf("doctor --json says\n%s", out)
	}
}
