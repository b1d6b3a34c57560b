package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
)

// program is how the program was started, for commands that people paste:
// "go run ./cmd/tamga", a path, or "tamga" when that is what the shell finds.
var program = sync.OnceValue(func() string {
	executable, err := os.Executable()
	if err != nil {
		executable = os.Args[0]
	}
	return startedAs(executable, os.Args[0], os.Getenv("GOCACHE"))
})

// startedAs finds out how an executable was started as argument. go run builds into a
// directory of its own (go-build1234/b001/exe) or runs what lies in the build cache.
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
			if _, err := os.Stat(filepath.Join(dir, "gosttls.go")); err == nil {
				return "go run " + dir
			}
		}
		return "go run tamga/cmd/tamga" // by its import path, anywhere in the module
	}
	name := filepath.Base(argument)
	if found, err := exec.LookPath(name); err == nil && sameFile(found, executable) {
		return name
	}
	if strings.Trim(argument, safeInShell) != "" {
		return "'" + strings.ReplaceAll(argument, "'", `'\''`) + "'"
	}
	return argument
}

const safeInShell = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+"

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// mentioned finds "tamga COMMAND" in texts.
var mentioned = sync.OnceValue(func() *regexp.Regexp {
	names := []string{"--help"}
	for field := range reflect.TypeFor[commands]().Fields() {
		name := field.Tag.Get("name")
		if name == "" {
			name = strings.ToLower(field.Name)
		}
		names = append(names, regexp.QuoteMeta(name))
	}
	return regexp.MustCompile(`\btamga (` + strings.Join(names, "|") + `)\b`)
})

// asStarted rewrites the commands in a text so that they can be pasted.
func asStarted(text string) string { return asStartedBy(program(), text) }

func asStartedBy(program, text string) string {
	if program == "tamga" {
		return text
	}
	return mentioned().ReplaceAllStringFunc(text, func(found string) string {
		return program + strings.TrimPrefix(found, "tamga")
	})
}
