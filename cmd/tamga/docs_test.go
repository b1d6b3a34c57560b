// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tamga/internal/adapter/store/storetest"
	"tamga/internal/app"
	"tamga/internal/config"
	"tamga/internal/judge"

	"tamga/internal/tamgatest"
	"tamga/internal/testsize"
)

// The pages say what to type, and this test types it. A fenced block is one of:
//
//	sh       commands, run one block after the other in one bash a page
//	console  a transcript: lines behind "$ " are run, and each line shown below a
//	         command occurs in its output, numbers aside ("..." leaves some out)
//	yaml     configuration, read as strictly as the program reads it
//	other    read by people; must not begin a line with a command
//
// A comment in the line before a block says more:
//
//	<!-- file: NAME -->      the block is written to NAME, where later commands find it
//	<!-- not run: REASON --> nothing is done with it; the test lists these blocks
//
// "tamga serve" is started and waited for by the test, on a free port.
// 127.0.0.1:8080 is replaced by that port everywhere.

// docPages are the pages with commands and what each needs before its first block.
var docPages = map[string]struct {
	files    map[string]string // by name
	setup    string            // commands of bash
	postgres bool              // db.example.org is a server of the test, with the role tamga
	openssl  bool              // OpenSSL with gost-engine must be there
	zbar     bool              // zbarimg must be there
	oath     bool              // oathtool must be there
	copies   map[string]string // further files by name: where they are in the repository
}{
	"README.md":               {openssl: true},
	"docs/signing.md":         {openssl: true},
	"docs/encryption.md":      {openssl: true},
	"docs/users.md":           {},
	"docs/device-protocol.md": {zbar: true},
	"docs/confirmation.md":    {openssl: true, zbar: true, oath: true, copies: map[string]string{"letter.pdf": "../../sig/testdata/one-page.pdf"}},
	"docs/events.md":          {files: docInstallation, setup: docMigrate},
	"docs/operations.md":      {postgres: true},
	"docs/config.md":          {postgres: true, setup: "createdb tamga"},
	"docs/tokens.md": {
		files: with(docInstallation, "tokens.xml", tamgatest.EncryptedContainer("PSKC-1", []byte("20 bytes of a secret"), "a password of it"), "pskc.password", "a password of it\n"),
		setup: docMigrate,
	},
	"docs/certificates.md": {
		files: with(docInstallation, "pin", "271828\n", "p12.password", "a password of the file\n", "password", "a password of a person\n"),
		setup: docMigrate + `
tamga user add anna --group Default --password-file password --config tamga.yaml
tamga user add boris --group Default --password-file password --config tamga.yaml
tamga cert issue anna --pin-file pin --config tamga.yaml
# A copy of the installation makes a key that this one does not have.
cp tamga.db other.db
sed 's/^public_url/database: sqlite:other.db\npublic_url/' tamga.yaml > other.yaml
tamga cert issue boris --config other.yaml
tamga key export 2 -o boris.p12 --password-file p12.password --config other.yaml`,
	},
}

// docInstallation is an installation over SQLite.
var docInstallation = map[string]string{
	"master.key": strings.Repeat("0123456789abcdef", 4) + "\n",
	"tamga.yaml": `
public_url: https://sign.example.org
master_keys: {active: "1", files: {"1": master.key}}
certificates: {exportable: true}
`,
}

const docMigrate = `
tamga migrate --config tamga.yaml
tamga group add Default --config tamga.yaml`

// with returns a copy of files with more of them: names and texts in turns.
func with(files map[string]string, more ...string) map[string]string {
	files = maps.Clone(files)
	for i := 0; i < len(more); i += 2 {
		files[more[i]] = more[i+1]
	}
	return files
}

// docBlock is one fenced block.
type docBlock struct {
	line         int // of the fence
	language     string
	file, notRun string
	text         string
}

var (
	docMarker  = regexp.MustCompile(`^<!-- (file|not run): (.+) -->$`)
	docCommand = regexp.MustCompile(`^(\$ |(tamga|curl|openssl|go|git|createdb|psql|apt-get|cd|\./test\.sh) )`)
	docServer  = regexp.MustCompile(`^tamga serve [^|;]*$`)
	docNumber  = regexp.MustCompile(`[0-9]+`)
)

// docBlocks reads the fenced blocks of a page.
func docBlocks(t *testing.T, page string) (blocks []docBlock) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var open *docBlock
	before := ""
	for i, line := range strings.Split(string(text), "\n") {
		switch language, fence := strings.CutPrefix(line, "```"); {
		case fence && open == nil:
			open = &docBlock{line: i + 1, language: language}
			if m := docMarker.FindStringSubmatch(before); m != nil && m[1] == "file" {
				open.file = m[2]
			} else if m != nil {
				open.notRun = m[2]
			}
		case fence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		}
		before = line
	}
	if open != nil {
		t.Fatalf("%s:%d: the block has no end", page, open.line)
	}
	return blocks
}

// TestDocs runs the commands of all pages.
func TestDocs(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	run := 0
	for _, page := range append(pages, "../../README.md", "../../bench/README.md") {
		name, err := filepath.Rel("../..", page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := docBlocks(t, page)
		commands := slices.ContainsFunc(blocks, func(b docBlock) bool {
			return b.notRun == "" && (b.language == "sh" || b.language == "console")
		})
		if _, known := docPages[name]; commands && !known {
			t.Errorf("%s has commands; say in docPages what they need", name)
		}
		run += len(blocks)
		t.Run(strings.ReplaceAll(name, "/", " "), func(t *testing.T) {
			t.Parallel()
			if testsize.Of() == testsize.Quick && docPages[name].postgres {
				t.Skip("needs PostgreSQL")
			}
			runPage(t, name, blocks)
		})
	}
	if run < 40 {
		t.Errorf("only %d blocks were found", run)
	}
}

func runPage(t *testing.T, name string, blocks []docBlock) {
	var s *docSession
	for _, b := range blocks {
		at := fmt.Sprintf("%s:%d", name, b.line)
		if b.notRun != "" {
			t.Logf("%s is not run: %s", at, b.notRun)
			continue
		}
		if s == nil && (b.language == "sh" || b.language == "console") {
			s = newDocSession(t, name)
			// Files of earlier blocks are there before the first command.
			for _, earlier := range blocks {
				if earlier.file != "" && earlier.line < b.line {
					s.write(earlier.file, earlier.text)
				}
			}
		}
		if b.file != "" && s != nil {
			s.write(b.file, b.text)
		}
		switch b.language {
		case "sh":
			for _, part := range docParts(b.text) {
				if out, ok := s.run(part); !ok {
					t.Fatalf("%s: %s\nfails with\n%s", at, part, out)
				}
			}
		case "console":
			s.transcript(at, b.text)
		case "yaml":
			file := filepath.Join(t.TempDir(), "tamga.yaml")
			if err := os.WriteFile(file, []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := config.Load(file, nil, app.Parts()); err != nil {
				t.Errorf("%s: %v", at, err)
			}
		default:
			for line := range strings.Lines(b.text) {
				if docCommand.MatchString(line) {
					t.Errorf("%s: a block in %q begins a line with a command: make it sh or console\n%s", at, b.language, line)
				}
			}
		}
	}
}

// docParts divides a block so that each server has a part of its own.
func docParts(text string) (parts []string) {
	rest := ""
	for line := range strings.Lines(text) {
		if command, _, _ := strings.Cut(strings.TrimSpace(line), " #"); docServer.MatchString(command) {
			parts = append(parts, rest, command)
			rest = ""
			continue
		}
		rest += line
	}
	return slices.DeleteFunc(append(parts, rest), func(s string) bool { return strings.TrimSpace(s) == "" })
}

// docSession is one bash in a directory of its own.
type docSession struct {
	t       *testing.T
	dir     string
	program string
	replace []string // texts of a page and their replacements here, in pairs
	bash    *exec.Cmd
	parts   io.Writer     // names of files with commands
	status  *bufio.Reader // one line for each
	count   int
}

func newDocSession(t *testing.T, name string) *docSession {
	t.Helper()
	needs := docPages[name]
	program := tamgatest.Program(t)
	s := &docSession{t: t, dir: t.TempDir(), program: program}
	environment := append(os.Environ(), "PATH="+filepath.Join(s.dir, "bin")+":"+os.Getenv("PATH"), "LC_ALL=C.UTF-8")
	if needs.openssl {
		judge.OpenSSL(t)
	}
	if needs.zbar {
		judge.ZBar(t)
	}
	if needs.oath {
		judge.OATHToolkit(t)
	}
	for name, from := range needs.copies {
		s.write(name, string(tamgatest.ReadFile(t, from)))
	}
	for name, text := range needs.files {
		s.write(name, text)
	}
	if needs.postgres {
		cluster := storetest.OwnPostgreSQL(t) // pages make databases of the same name
		_, sockets, _ := strings.Cut(cluster.Database(t), "host=")
		environment = append(environment, "PGHOST="+sockets, "PGUSER=tamga")
		s.replace = append(s.replace, "postgres://tamga@db.example.org/tamga?sslmode=verify-full", "postgres:///tamga?user=tamga&host="+sockets)
	}
	s.write("bin/tamga", fmt.Sprintf("#!/bin/sh\n%s exec '%s' \"$@\"\n", tamgatest.AsProgram, program))
	if err := os.Chmod(filepath.Join(s.dir, "bin/tamga"), 0o700); err != nil {
		t.Fatal(err)
	}
	partsOut, parts, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	status, statusIn, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// A refusal over HTTP ends a block like any failure.
	s.bash = exec.Command("bash", "--norc", "-c", `curl() { command curl --fail-with-body "$@"; }
set -eo pipefail
while read -r part <&3; do . "$part" </dev/null >"$part.out" 2>&1; echo ok >&4; done`)
	s.bash.Dir, s.bash.Env = s.dir, environment
	s.bash.ExtraFiles = []*os.File{partsOut, statusIn}
	if err := s.bash.Start(); err != nil {
		t.Fatal(err)
	}
	partsOut.Close()
	statusIn.Close()
	s.parts, s.status = parts, bufio.NewReader(status)
	t.Cleanup(func() {
		parts.Close()
		s.bash.Wait()
		status.Close()
	})
	if out, ok := s.run(needs.setup); !ok {
		t.Fatalf("the setup of %s fails with\n%s", name, out)
	}
	return s
}

// write makes a file of the page, for its owner alone as secrets must be.
func (s *docSession) write(name, text string) {
	s.t.Helper()
	file := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(s.here(text)), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// here is a text in which the addresses of the page are those of this test.
func (s *docSession) here(text string) string { return strings.NewReplacer(s.replace...).Replace(text) }

// there is the other way.
func (s *docSession) there(text string) string {
	back := slices.Clone(s.replace)
	for i := 0; i < len(back); i += 2 {
		back[i], back[i+1] = back[i+1], back[i]
	}
	return strings.NewReplacer(back...).Replace(text)
}

// run gives a part to bash and returns what it printed, and whether every command of
// it succeeded.
func (s *docSession) run(part string) (string, bool) {
	s.t.Helper()
	if command := strings.TrimSpace(part); docServer.MatchString(command) {
		return s.serve(command), true
	}
	s.count++
	name := fmt.Sprintf("part%d", s.count)
	s.write(name, part)
	fmt.Fprintln(s.parts, "./"+name)
	_, err := s.status.ReadString('\n')
	out, _ := os.ReadFile(filepath.Join(s.dir, name+".out"))
	return s.there(string(out)), err == nil
}

// serve starts a server as the page does, but for its port, and waits until it listens.
func (s *docSession) serve(command string) string {
	s.t.Helper()
	args := strings.Fields(strings.TrimSuffix(command, "&"))[1:]
	cmd := exec.Command(s.program, append(args, "--listen", "127.0.0.1:0", "--set", "log.format=text")...)
	cmd.Dir = s.dir
	out, err := os.Create(filepath.Join(s.dir, "serve.out"))
	if err != nil {
		s.t.Fatal(err)
	}
	cmd.Stdout = out
	p := tamgatest.StartCommand(s.t, cmd)
	out.Close()
	s.replace = append(s.replace, "127.0.0.1:8080", strings.TrimPrefix(p.URL, "http://"))
	said, err := os.ReadFile(filepath.Join(s.dir, "serve.out"))
	if err != nil {
		s.t.Fatal(err)
	}
	return s.there(string(said))
}

// transcript runs the commands of a transcript and looks for what it shows.
func (s *docSession) transcript(at, text string) {
	s.t.Helper()
	type step struct{ command, shown string }
	var steps []step
	open := false // the command goes on in the next line
	for line := range strings.Lines(text) {
		command, begins := strings.CutPrefix(line, "$ ")
		switch last := len(steps) - 1; {
		case begins:
			steps = append(steps, step{command: command})
		case last < 0:
			s.t.Fatalf("%s: a transcript begins with a command behind \"$ \"", at)
		case open:
			steps[last].command += line
		default:
			steps[last].shown += line
			continue
		}
		open = strings.HasSuffix(line, "\\\n")
	}
	for _, step := range steps {
		out, ok := s.run(step.command)
		if !ok {
			s.t.Fatalf("%s: %s\nfails with\n%s", at, step.command, out)
		}
		lines := strings.Split(out, "\n")
		for shown := range strings.Lines(step.shown) {
			want := comparable(shown)
			if want == "" || want == "..." {
				continue
			}
			i := slices.IndexFunc(lines, func(l string) bool { return comparable(l) == want })
			if i < 0 {
				s.t.Errorf("%s: %s\nprints\n%s\nwithout the line\n%s", at, step.command, out, shown)
				break
			}
			lines = slices.Delete(lines, i, i+1)
		}
	}
}

// comparable is a line of output without what differs from run to run: sizes, times
// and spaces at its ends.
func comparable(line string) string {
	return docNumber.ReplaceAllString(strings.TrimSpace(line), "#")
}
