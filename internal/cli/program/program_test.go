// SPDX-License-Identifier: Apache-2.0

package program

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"tamga/internal/cli"
	"tamga/internal/judge"
)

// runs returns what a command line prints, and its error.
func runs(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var stdout strings.Builder
	err := Run(t.Context(), "1.2.3", args, strings.NewReader(""), &stdout, t.Output())
	return stdout.String(), err
}

func TestVersion(t *testing.T) {
	t.Parallel()
	line, err := runs(t, "version")
	if err != nil || !strings.HasPrefix(line, "tamga 1.2.3 ") || strings.Count(line, "\n") != 1 {
		t.Errorf("version prints %q, %v", line, err)
	}
	for _, args := range [][]string{{"--version"}, {"sign", "--version"}} {
		if got, err := runs(t, args...); got != line || ExitCode(err) != 0 {
			t.Errorf("%v prints %q, %v", args, got, err)
		}
	}
	var build struct{ Version, Go, Platform string }
	if text, err := runs(t, "version", "--json"); err != nil || json.Unmarshal([]byte(text), &build) != nil || build.Version != "1.2.3" || build.Go == "" || build.Platform == "" {
		t.Errorf("version --json prints %s, %v", text, err)
	}
}

func TestHelpCommand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ help, flag []string }{
		{[]string{"help"}, []string{"--help"}},
		{[]string{"help", "sign"}, []string{"sign", "--help"}},
		{[]string{"help", "user", "add"}, []string{"user", "add", "--help"}},
	} {
		want, err := runs(t, c.flag...)
		if got, err2 := runs(t, c.help...); got != want || len(want) < 100 || ExitCode(err) != 0 || ExitCode(err2) != 0 {
			t.Errorf("%v prints %d bytes, %v; %v prints %d bytes, %v", c.help, len(got), err2, c.flag, len(want), err)
		}
	}
	if _, err := runs(t, "help", "nothing"); ExitCode(err) != 2 {
		t.Errorf("help of an unknown command: %v", err)
	}
}

// TestExamples checks that each command has examples, and that they parse.
func TestExamples(t *testing.T) {
	t.Parallel()
	unused := maps.Clone(examples)
	parser := newParser(t)
	eachCommand(parser.Model.Node, func(n *kong.Node) {
		if n.Hidden || len(n.Children) > 0 {
			return
		}
		name := commandName(n)
		if len(examples[name]) == 0 {
			t.Errorf("%s has no example", name)
		}
		delete(unused, name)
		for i, e := range examples[name] {
			if i > 0 {
				parser = newParser(t) // a parser remembers flags
			}
			line, _, _ := strings.Cut(e, " >")
			args, err := words(line)
			if err != nil || args[0] != "tamga" {
				t.Errorf("%s: %q, %v", name, e, err)
				continue
			}
			parsed, err := parser.Parse(args[1:])
			if err != nil {
				t.Errorf("%s: %v", e, err)
				continue
			}
			if got := commandName(parsed.Selected()); got != name {
				t.Errorf("%s: %q is of the command %q", name, e, got)
			}
		}
	})
	for name := range unused {
		t.Errorf("examples of %q, which is no command", name)
	}
	help, err := runs(t, "cert", "revoke", "--help")
	if want := "    tamga cert revoke 2 --reason 1 --config tamga.yaml\n"; ExitCode(err) != 0 || !strings.Contains(help, want) {
		t.Errorf("the help has no example: %v\n%s", err, help)
	}
}

// newParser returns the parser of the program.
func newParser(t *testing.T) *kong.Kong {
	t.Helper()
	parser, err := kong.New(new(commands), kong.Vars{"notifiers": "", "version": ""}, kong.Name("tamga"))
	if err != nil {
		t.Fatal(err)
	}
	return parser
}

// TestTableFor checks that the table for a command line has the sub-command that it names as the whole table
// has it, and that other command lines get the whole table.
func TestTableFor(t *testing.T) {
	t.Parallel()
	model := func(args ...string) *kong.Application {
		parser, err := kong.New(tableFor(args), kong.Vars{"notifiers": "", "version": ""}, kong.Name("tamga"))
		if err != nil {
			t.Fatal(err)
		}
		return parser.Model
	}
	list := func(n *kong.Node) (lines []string) {
		eachCommand(n, func(n *kong.Node) {
			for _, f := range n.AllFlags(true) {
				for _, flag := range f {
					lines = append(lines, commandName(n)+" --"+flag.Name)
				}
			}
		})
		return lines
	}
	all := newParser(t).Model
	for _, args := range [][]string{nil, {"--help"}, {"nothing"}, {"manual"}, {"complete"}} {
		if got := model(args...); !slices.Equal(list(got.Node), list(all.Node)) {
			t.Errorf("%v: the table has %d of %d sub-commands", args, len(got.Children), len(all.Children))
		}
	}
	for _, n := range all.Children {
		if n.Name == "manual" || n.Name == "complete" {
			continue
		}
		got := model(n.Name, "--help")
		if len(got.Children) != 1 || got.Children[0].Name != n.Name || !slices.Equal(list(got.Node), list(&kong.Node{Children: []*kong.Node{n}})) {
			t.Errorf("%s: the table has %d sub-commands and %q", n.Name, len(got.Children), list(got.Node))
		}
	}
}

// BenchmarkVersion measures a command that does next to nothing.
func BenchmarkVersion(b *testing.B) {
	for b.Loop() {
		if err := Run(b.Context(), "1.2.3", []string{"version"}, strings.NewReader(""), io.Discard, io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}

// words splits a line of a shell, which may have single quotes.
func words(line string) (list []string, err error) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			list = append(list, part)
			continue
		}
		if strings.ContainsAny(part, "\"$`\\|&;<") {
			return nil, fmt.Errorf("%q needs a shell", line)
		}
		list = append(list, strings.Fields(part)...)
	}
	return list, nil
}

func TestComplete(t *testing.T) {
	t.Parallel()
	model := newParser(t).Model
	for _, c := range []struct{ line, want string }{
		{"ver", "verify version"},
		{"user me", "method"},
		{"user method ", "list add remove"},
		{"key export --cipher ", "auto kuznyechik magma gost28147 aes"},
		{"key export --cipher=aes --fo", "--force"},
		{"key export -o file --fo", "--force"},
		{"sign --type PDF --pdf", "--pdf-format"},
		{"policy set ", "access operation notification"},
		{"completion f", "fish"},
		{"sign ", ""},
		{"compl", "completion"}, // complete is hidden
	} {
		typed := strings.Split(c.line, " ")
		var got []string
		for _, line := range candidates(model, typed[:len(typed)-1], typed[len(typed)-1]) {
			word, help, ok := strings.Cut(line, "\t")
			if !ok || len(help) < 3 {
				t.Errorf("%q: no help in %q", c.line, line)
			}
			got = append(got, word)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q: got %q, want %q", c.line, got, c.want)
		}
	}
	if out, err := runs(t, "complete", "--", "user", "metho"); err != nil || !strings.HasPrefix(out, "method\tList") {
		t.Errorf("the command prints %q, %v", out, err)
	}
}

// TestCompletion runs the scripts in their shells.
func TestCompletion(t *testing.T) {
	t.Parallel()
	// The program for the scripts: it answers for one command line.
	dir := t.TempDir()
	fake := "#!/bin/sh\nshift 2\n[ \"$*\" = 'user me' ] && printf 'method\\tList, add and remove: methods\\nmessage\\tAnother\\n'\n"
	if err := os.WriteFile(filepath.Join(dir, "tamga"), []byte(fake), 0o700); err != nil {
		t.Fatal(err)
	}
	for shell, test := range map[string]string{
		"bash": `. ./script; COMP_WORDS=(tamga user me); COMP_CWORD=2; _tamga; echo "${COMPREPLY[@]}"`,
		"fish": `source ./script; complete -C "tamga user me" | cut -f1 | string join " "`,
		"zsh":  `compdef() { :; }; _describe() { echo ${${(P)2}%%:*}; }; . ./script; words=(tamga user me); CURRENT=3; _tamga`,
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			script, err := runs(t, "completion", shell)
			if err != nil {
				t.Fatal(err)
			}
			path := judge.Program(t, shell)
			work := t.TempDir()
			if err := os.WriteFile(filepath.Join(work, "script"), []byte(script), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(path, "-c", test)
			cmd.Dir, cmd.Env = work, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+work)
			out, err := cmd.CombinedOutput()
			if got := strings.TrimSpace(string(out)); err != nil || got != "method message" && got != "message method" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// TestManual has groff read every manual page.
func TestManual(t *testing.T) {
	t.Parallel()
	groff := judge.Program(t, "groff")
	pages := []string{""}
	model := newParser(t).Model
	for _, n := range model.Children {
		if !n.Hidden {
			pages = append(pages, n.Name)
		}
	}
	var all strings.Builder
	for _, name := range pages {
		var out strings.Builder
		err := (&manual{Command: name}).Run(&cli.Console{Stdout: &out, Program: &cli.Program{Version: "1.2.3"}}, model)
		page := out.String()
		if err != nil || !strings.HasPrefix(page, ".TH ") || !strings.Contains(page, ".SH \"DESCRIPTION\"") {
			t.Errorf("%q: %v\n%.200s", name, err, page)
		}
		all.WriteString(page)
	}
	for _, want := range []string{`\-\-cades\-type=TYPE`, "tamga cert revoke 2 \\-\\-reason 1", `.B "tamga gost\-tls"`} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("no %q in the pages", want)
		}
	}
	cmd := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z")
	cmd.Stdin = strings.NewReader(all.String())
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("groff: %v\n%s", err, out)
	}
	if _, err := runs(t, "manual", "nothing"); err == nil {
		t.Error("a page of an unknown command")
	}
}

// TestJSONEverywhere checks that each command that prints an answer has --json.
func TestJSONEverywhere(t *testing.T) {
	t.Parallel()
	without := map[string]string{
		"serve": "logs", "completion": "prints a script", "manual": "prints a manual page", "help": "prints a help",
	}
	eachCommand(newParser(t).Model.Node, func(n *kong.Node) {
		if n.Hidden || len(n.Children) > 0 {
			return
		}
		name, has := commandName(n), false
		for _, group := range n.AllFlags(true) {
			for _, f := range group {
				has = has || f.Name == "json"
			}
		}
		if has != (without[name] == "") {
			t.Errorf("%s has --json: %t", name, has)
		}
	})
}
