// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"tamga/internal/app"
	"tamga/internal/config"
	"tamga/internal/setting"
)

var update = flag.Bool("update", false, "write docs/config.md and docs/ru/config.md from the configuration struct")

// The tables of the manual are between these lines.
const (
	manualBegin = "<!-- printed: config -->\n\n"
	manualEnd   = "\n<!-- end -->\n"
)

// TestManual compares docs/config.md with the table printed from the comments, tags and defaults of
// the configuration struct, and docs/ru/config.md with the same table in Russian. After a change run it with
// -update.
func TestManual(t *testing.T) {
	c, dev := config.Default(app.Parts()), config.Dev(".", false, app.Parts())
	m := manual{t: t, types: map[string]*ast.StructType{}}
	for i, s := range c.Sections() {
		m.sections = append(m.sections, section{s.Path, reflect.ValueOf(s.Settings).Elem(), reflect.ValueOf(dev.Sections()[i].Settings).Elem()})
	}
	m.rows("", nil, reflect.ValueOf(c).Elem(), reflect.ValueOf(dev).Elem())
	compareManual(t, "../../docs/config.md", "| Key | Default | Meaning |\n|---|---|---|\n"+m.text.String())
	r := russianManual(t)
	var text strings.Builder
	for _, row := range m.list {
		fmt.Fprintf(&text, "| `%s` | %s | %s |\n", row.key, r.preset(row.preset), r.text(row.key, row.text))
	}
	for english := range r.unused {
		t.Errorf("%s: no setting has the text %q", russianFile, english)
	}
	compareManual(t, "../../docs/ru/config.md", "| Ключ | По умолчанию | Значение |\n|---|---|---|\n"+text.String())
}

// compareManual compares the table in a file with the printed one.
func compareManual(t *testing.T, manualFile, table string) {
	t.Helper()
	have, err := os.ReadFile(manualFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := bytes.Cut(have, []byte(manualBegin))
	_, after, ends := bytes.Cut(rest, []byte(strings.TrimPrefix(manualEnd, "\n")))
	if !begins || !ends {
		t.Fatalf("%s: want the table between %q and %q", manualFile, manualBegin, manualEnd)
	}
	want := slices.Concat(before, []byte(manualBegin+table+manualEnd), after)
	if *update {
		if err := os.WriteFile(manualFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(have, want) {
		old := strings.Split(string(have), "\n")
		for line := range strings.Lines(table) {
			if line = strings.TrimSuffix(line, "\n"); !slices.Contains(old, line) {
				t.Errorf("%s has no line\n%s", manualFile, line)
			}
		}
		t.Errorf("%s is not what the configuration struct prints: run go test ./internal/config -run TestManual -update", manualFile)
	}
}

// manual prints the table of settings.
type manual struct {
	t        *testing.T
	types    map[string]*ast.StructType // by package and name; those of packages that were read
	sections []section
	text     strings.Builder
	list     []manualRow
}

// manualRow is one setting.
type manualRow struct{ key, preset, text string }

// russianFile has the texts of the manual in Russian: a line with the English one, and below it a line with a tab
// and the Russian one. A setting whose comment changes needs another Russian text.
const russianFile = "testdata/manual.ru.txt"

// manualTexts are the texts in Russian.
type manualTexts struct {
	t      *testing.T
	other  map[string]string
	unused map[string]bool
}

func russianManual(t *testing.T) *manualTexts {
	t.Helper()
	data, err := os.ReadFile(russianFile)
	if err != nil {
		t.Fatal(err)
	}
	r, english := &manualTexts{t, map[string]string{}, map[string]bool{}}, ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if text, ok := strings.CutPrefix(line, "\t"); ok {
			r.other[english], r.unused[english] = text, true
		} else {
			english = line
		}
	}
	return r
}

// text returns a text in Russian.
func (r *manualTexts) text(key, english string) string {
	text, ok := r.other[english]
	if !ok {
		r.t.Errorf("%s: %s has no text for %q", russianFile, key, english)
	}
	delete(r.unused, english)
	return text
}

// preset returns a default in Russian. What is written in the file as it is, and what --dev has, are the same.
func (r *manualTexts) preset(english string) string {
	before, dev, found := strings.Cut(english, " (`--dev`")
	if words := regexp.MustCompile("`[^`]*`").ReplaceAllString(before, ""); strings.ContainsFunc(words, unicode.IsLetter) {
		before = r.text("a default", before)
	}
	if found {
		before += " (`--dev`" + dev
	}
	return before
}

// section is the settings of a part of the program.
type section struct {
	path       string
	value, dev reflect.Value
}

// rows prints the settings of a struct and the sections below it. Their keys begin with prefix.
// source is the struct as written; nil: find it by its name. value holds the defaults and dev those
// of serve --dev.
func (m *manual) rows(prefix string, source *ast.StructType, value, dev reflect.Value) {
	if value.Type().Name() != "" {
		source = m.structOf(value.Type())
	}
	i := 0
	for _, field := range source.Fields.List {
		for _, name := range field.Names {
			f := value.Type().Field(i)
			if f.Name != name.Name {
				m.t.Fatalf("%s: the source has the field %s", f.Name, name.Name)
			}
			key := prefix + f.Tag.Get("yaml")
			m.tags(key, f.Tag)
			v, d := value.Field(i), dev.Field(i)
			i++
			inner, _ := field.Type.(*ast.StructType)
			switch {
			case !f.IsExported():
			case f.Type.Kind() == reflect.Struct:
				m.rows(key+".", inner, v, d)
			case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
				m.row(key, field.Doc, v, v)
				one := reflect.Zero(f.Type.Elem())
				m.rows(key+"[].", nil, one, one)
			default:
				if len(field.Names) > 1 || field.Comment != nil {
					m.t.Errorf("%s: want a line of its own with a comment above it", key)
				}
				m.row(key, field.Doc, v, d)
			}
		}
	}
	for _, s := range m.sections {
		if top, _, _ := strings.Cut(s.path, "."); top+"." == prefix {
			m.rows(s.path+".", nil, s.value, s.dev)
		}
	}
}

// tags reports tags that no code reads, and defaults that have no effect.
func (m *manual) tags(key string, tag reflect.StructTag) {
	for _, found := range regexp.MustCompile(`(\w+):"`).FindAllStringSubmatch(string(tag), -1) {
		if !slices.Contains([]string{"yaml", "default", "min", "max", "above", "oneof", "rule", "want"}, found[1]) {
			m.t.Errorf("%s: package setting has no tag %s", key, found[1])
		}
	}
	if _, ok := tag.Lookup("default"); ok && strings.Contains(key, "[]") {
		m.t.Errorf("%s: elements of a list have no defaults", key)
	}
}

// structOf returns the source of a struct, with its comments.
func (m *manual) structOf(t reflect.Type) *ast.StructType {
	name := func(s string) string { return t.PkgPath() + "." + s }
	if s := m.types[name(t.Name())]; s != nil {
		return s
	}
	files, err := filepath.Glob(filepath.Join("../..", strings.TrimPrefix(t.PkgPath(), "tamga/"), "*.go"))
	if err != nil {
		m.t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			m.t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					m.types[name(spec.Name.Name)] = s
				}
			}
			return true
		})
	}
	if m.types[name(t.Name())] == nil {
		m.t.Fatalf("%s has no source in %d files", name(t.Name()), len(files))
	}
	return m.types[name(t.Name())]
}

// row prints one setting. A comment that ends with "Default: TEXT." says what an empty value means.
func (m *manual) row(key string, doc *ast.CommentGroup, value, dev reflect.Value) {
	text := strings.Join(strings.Fields(doc.Text()), " ")
	if !strings.HasSuffix(text, ".") || strings.Contains(text, "|") {
		m.t.Errorf("%s: want a comment of whole sentences without |, but have %q", key, text)
	}
	preset := m.preset(value)
	if before, said, ok := strings.Cut(text, " Default: "); ok {
		if !value.IsZero() {
			m.t.Errorf("%s: the comment says a default, and the program has %s", key, preset)
		}
		text, preset = before, strings.TrimSuffix(said, ".")
	}
	if value.Kind() != reflect.Map && value.Kind() != reflect.Slice && !value.Equal(dev) {
		preset += fmt.Sprintf(" (`--dev`: %s)", m.preset(dev))
	}
	m.list = append(m.list, manualRow{key, preset, text})
	fmt.Fprintf(&m.text, "| `%s` | %s | %s |\n", key, preset, text)
}

// preset prints a default as it is written in the file.
func (m *manual) preset(v reflect.Value) string {
	var text string
	switch x := v.Interface().(type) {
	case time.Duration:
		text = x.String()
		if strings.HasSuffix(text, "m0s") {
			text = strings.TrimSuffix(text, "0s")
		}
		if strings.HasSuffix(text, "h0m") {
			text = strings.TrimSuffix(text, "0m")
		}
	case setting.Size:
		b, err := x.MarshalText()
		if err != nil {
			m.t.Fatal(err)
		}
		text = string(b)
	default:
		switch v.Kind() {
		case reflect.Slice, reflect.Map, reflect.String:
			if v.Len() == 0 {
				return "none"
			}
		}
		if text = fmt.Sprint(x); v.Kind() == reflect.Slice {
			text = strings.ReplaceAll(text, " ", ", ")
		}
	}
	return "`" + text + "`"
}
