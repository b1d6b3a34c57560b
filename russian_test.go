// SPDX-License-Identifier: Apache-2.0

package tamga

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// outline is what a page must have in common with its translation.
type outline struct {
	headings []string // levels: "##"
	blocks   []string // fenced blocks with their language and the comment before them, word for word
	tables   []string // rows: columns, and the code in them
}

var (
	heading    = regexp.MustCompile(`^#+ `)
	inlineCode = regexp.MustCompile("`[^`]+`")
	pageLink   = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
)

func outlineOf(text string) (o outline) {
	block, inside, before := "", false, ""
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			if inside {
				o.blocks = append(o.blocks, block)
			} else if block = line + "\n"; strings.HasPrefix(before, "<!--") {
				block = before + "\n" + block
			}
			inside = !inside
		case inside:
			block += line + "\n"
		case heading.MatchString(line):
			o.headings = append(o.headings, heading.FindString(line))
		case strings.HasPrefix(line, "|"):
			code := inlineCode.FindAllString(line, -1)
			slices.Sort(code)
			o.tables = append(o.tables, fmt.Sprint(strings.Count(line, "|"), " columns with ", code))
		}
		before = line
	}
	return o
}

// TestRussianPages compares each page in Russian with its English source: headings, commands and tables
// are in step, the links lead to files, and each paragraph is in Russian.
func TestRussianPages(t *testing.T) {
	pages, err := filepath.Glob("docs/ru/*.md")
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{"README.ru.md": "README.md"}
	for _, page := range pages {
		sources[page] = filepath.Join("docs", filepath.Base(page))
	}
	for _, page := range []string{"README.ru.md", "docs/ru/install.md", "docs/ru/operations.md", "docs/ru/signing.md", "docs/ru/encryption.md", "docs/ru/users.md", "docs/ru/pages.md", "docs/ru/from-cryptopro-dss.md", "docs/ru/certificates.md", "docs/ru/tokens.md", "docs/ru/events.md", "docs/ru/cluster.md", "docs/ru/config.md"} {
		if sources[page] == "" {
			t.Errorf("%s is missing", page)
		}
	}
	for page, source := range sources {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Error(err)
			continue
		}
		english, err := os.ReadFile(source)
		if err != nil {
			t.Error(err)
			continue
		}
		got, want := outlineOf(string(text)), outlineOf(string(english))
		for _, c := range []struct {
			what      string
			got, want []string
		}{{"heading", got.headings, want.headings}, {"block", got.blocks, want.blocks}, {"row of a table", got.tables, want.tables}} {
			for i := range max(len(c.got), len(c.want)) {
				a, b := at(c.got, i), at(c.want, i)
				if a != b {
					t.Errorf("%s: %s %d is\n%s\nand in %s\n%s", page, c.what, i+1, a, source, b)
					break
				}
			}
		}
		for _, link := range pageLink.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), link[1])); err != nil {
				t.Errorf("%s: a link leads nowhere: %v", page, err)
			}
			if name, above := strings.CutPrefix(link[1], "../"); above && filepath.Dir(page) == "docs/ru" && sources[filepath.Join("docs/ru", name)] != "" {
				t.Errorf("%s: a link leads to %s in English, which is there in Russian too", page, name)
			}
		}
		prose := fencedBlock.ReplaceAllString(string(text), "")
		for paragraph := range strings.SplitSeq(prose, "\n\n") {
			words := pageLink.ReplaceAllString(inlineCode.ReplaceAllString(paragraph, ""), "]")
			if len(words) > 80 && !strings.HasPrefix(words, "<!--") && !strings.ContainsFunc(words, func(r rune) bool { return unicode.Is(unicode.Cyrillic, r) }) {
				t.Errorf("%s: not in Russian: %s", page, paragraph)
			}
		}
	}
}

var fencedBlock = regexp.MustCompile("(?ms)^```.*?^```")

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "(missing)"
}

// TestOutline checks that TestRussianPages notices what is out of step.
func TestOutline(t *testing.T) {
	page := "# A\n\n| `x` | y |\n|---|---|\n\n<!-- not run: z -->\n```sh\ntamga serve\n```\n"
	for _, change := range [][2]string{{"# A", "## A"}, {"`x`", "`z`"}, {"| y |", "| y | z |"}, {"tamga serve", "tamga server"}, {"not run: z", "not run: y"}, {"```sh", "```"}} {
		if a, b := fmt.Sprint(outlineOf(page)), fmt.Sprint(outlineOf(strings.Replace(page, change[0], change[1], 1))); a == b {
			t.Errorf("%q for %q is not noticed", change[1], change[0])
		}
	}
	if fmt.Sprint(outlineOf(page)) != fmt.Sprint(outlineOf(strings.Replace(page, "y |", "другое |", 1))) {
		t.Error("a translated cell is out of step")
	}
}

// retired are words that the Russian texts do not use, with the right ones.
var retired = []struct{ word, right string }{
	{"корзин", "бакет"}, {"запечат", "зашифровать"}, {"распечатыва", "расшифровать"},
}

// TestRussianTerms looks for retired words in all Russian texts: pages of the manual, commands, settings, pages of the program.
func TestRussianTerms(t *testing.T) {
	files := []string{"README.ru.md"}
	for _, pattern := range []string{
		"docs/ru/*.md", "internal/cli/program/words/*.txt", "internal/config/testdata/*.ru.txt", "internal/web/pages/view/details/ru.txt",
		"internal/web/pages/view/words/ru/*.txt", "internal/web/pages/*/words/ru/*.txt", "internal/domain/notify/templates/*.ru.*", "packaging/debian/templates",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Errorf("%s: %d files, %v", pattern, len(found), err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(text), "\n") {
			for _, r := range retired {
				if strings.Contains(strings.ToLower(line), r.word) {
					t.Errorf("%s:%d: %q, want %q", file, n+1, r.word, r.right)
				}
			}
		}
	}
}
