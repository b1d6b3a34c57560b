// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// Program is the running program, for texts that people read.
type Program struct {
	// Name is the command that starts the program: "go run ./cmd/tamga", a path, or "tamga" if
	// the shell finds the program under this name.
	Name    string
	Version string

	mentioned *regexp.Regexp // "tamga COMMAND" in a text
	config    string         // flag that the command by this name gives itself, "" for none
}

// NewProgram returns the running program. commands are the names of its sub-commands.
func NewProgram(version string, commands []string) *Program {
	executable, err := os.Executable()
	if err != nil {
		executable = os.Args[0]
	}
	p := newProgram(startedAs(executable, os.Args[0], os.Getenv("GOCACHE")), version, commands)
	if wrapper := os.Getenv("TAMGA_PROGRAM"); wrapper != "" && strings.Trim(wrapper, safeInShell) == "" {
		p.wrappedBy(wrapper, os.Getenv("TAMGA_CONFIG"))
	}
	return p
}

// wrappedBy makes texts name the command that started the program, such as tamga-admin of the packages, which
// names the configuration itself.
func (p *Program) wrappedBy(name, config string) {
	p.Name = name
	if config != "" {
		p.config = " --config " + config
	}
}

func newProgram(name, version string, commands []string) *Program {
	names := []string{"--help"}
	for _, c := range commands {
		names = append(names, regexp.QuoteMeta(c))
	}
	return &Program{Name: name, Version: version, mentioned: regexp.MustCompile(`\btamga (` + strings.Join(names, "|") + `)\b`)}
}

// AsStarted replaces "tamga COMMAND" in a text with a command that can be pasted.
func (p *Program) AsStarted(text string) string {
	if p == nil || p.Name == "tamga" {
		return text
	}
	changed := p.mentioned.ReplaceAllStringFunc(text, func(found string) string {
		return p.Name + strings.TrimPrefix(found, "tamga")
	})
	if p.config != "" && changed != text {
		changed = strings.ReplaceAll(changed, p.config, "")
	}
	return changed
}

// startedAs returns the command that starts an executable. argument is its os.Args[0], cache is
// GOCACHE. go run builds in a temporary directory (go-build1234/b001/exe) or runs a file of the build
// cache.
func startedAs(executable, argument, cache string) string {
	built := cache != "" && strings.HasPrefix(executable, strings.TrimSuffix(cache, "/")+"/")
	for element := range strings.SplitSeq(filepath.ToSlash(executable), "/") {
		built = built || strings.HasPrefix(element, "go-build")
	}
	switch {
	case strings.HasSuffix(executable, ".test"):
		return "tamga"
	case built:
		for _, dir := range []string{"./cmd/tamga", "."} {
			if _, err := os.Stat(filepath.Join(dir, "testdata", "tutorial.txtar")); err == nil {
				return "go run " + dir
			}
		}
		return "go run tamga/cmd/tamga" // by its import path, anywhere in the module
	}
	name := filepath.Base(argument)
	if found, err := exec.LookPath(name); err == nil && sameFile(found, executable) {
		return name
	}
	return pasted(argument, runtime.GOOS)
}

// pasted returns a path as a command for the shell of a system: PowerShell on Windows.
func pasted(path, goos string) string {
	safe, quoted := safeInShell, "'"+strings.ReplaceAll(path, "'", `'\''`)+"'"
	if goos == "windows" {
		safe, quoted = safeInShell+`\:`, "& '"+strings.ReplaceAll(path, "'", "''")+"'"
	}
	if strings.Trim(path, safe) == "" {
		return path
	}
	return quoted
}

// safeInShell are the characters that need no quotes in a shell.
const safeInShell = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+"

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
