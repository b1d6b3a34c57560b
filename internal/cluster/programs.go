// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Programs are the executables that clusters run. A path is empty if it was not built.
type Programs struct {
	Current string
	Older   string // of the commit olderCommit
	Skewed  string // Current with a clock that clockOffset moves
	dir     string
	source  string
}

// olderCommit is the commit whose program a rolling upgrade begins with: the one that completed
// 0001_tamga.sql. No older program knows the tables.
const olderCommit = "8681462dd865afe8ee1dfe3fb8075703cfe8d716"

// clockOffset is the environment variable with the number of seconds that Skewed adds to
// the wall clock.
const clockOffset = "TAMGA_TEST_CLOCK_OFFSET"

// Build builds the program of a source tree, or of this module if source is empty. Close
// removes it.
func Build(ctx context.Context, source string) (*Programs, error) {
	if source == "" {
		var err error
		if source, err = moduleRoot(ctx); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp("", "tamga-programs-")
	if err != nil {
		return nil, err
	}
	p := &Programs{Current: filepath.Join(dir, "tamga"), dir: dir, source: source}
	return p, build(ctx, source, p.Current)
}

// Close removes the programs.
func (p *Programs) Close() { os.RemoveAll(p.dir) }

// BuildOlder builds the program of olderCommit, from the repository. The user's cache keeps it.
func (p *Programs) BuildOlder(ctx context.Context) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	judges := filepath.Join(cache, "tamga-judges")
	// Another compiler or other flags make another program.
	flags := sha256.Sum256([]byte(strings.Join(append([]string{os.Getenv("GOFLAGS")}, CompileFlags...), "\x00")))
	kept := filepath.Join(judges, fmt.Sprintf("tamga-%s-%s-%x", olderCommit, runtime.Version(), flags[:6]))
	if _, err := os.Stat(kept); err == nil {
		p.Older = kept
		return nil
	}
	if err := os.MkdirAll(judges, 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(judges, "older-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	older, err := BuildCommit(ctx, p.source, olderCommit, dir, CompileFlags...)
	if err != nil {
		return err
	}
	p.Older = kept
	return os.Rename(older, kept) // it appears complete: another process may look for it at the same time
}

// BuildCommit builds the program of a commit of the repository of this module in a directory,
// and returns its path. If root is empty, it is found. Flags are further flags of go build.
func BuildCommit(ctx context.Context, root, commit, dir string, flags ...string) (string, error) {
	if root == "" {
		var err error
		if root, err = moduleRoot(ctx); err != nil {
			return "", err
		}
	}
	source := filepath.Join(dir, "older-source")
	if err := os.Mkdir(source, 0o755); err != nil {
		return "", err
	}
	archive := osexec.CommandContext(ctx, "git", "-C", root, "archive", "--format=tar", commit, "--", "go.mod", "go.sum", "cmd", "gost", "pki", "sig", "internal")
	unpack := osexec.CommandContext(ctx, "tar", "-x", "-C", source)
	var err error
	if unpack.Stdin, err = archive.StdoutPipe(); err != nil {
		return "", err
	}
	// Both run at the same time, so each has a buffer of its own.
	var archived, unpacked bytes.Buffer
	archive.Stderr, unpack.Stderr = &archived, &unpacked
	if err := unpack.Start(); err != nil {
		return "", err
	}
	if err := errors.Join(archive.Run(), unpack.Wait()); err != nil {
		return "", fmt.Errorf("commit %s is not in this repository: %w\n%s%s", commit, err, archived.Bytes(), unpacked.Bytes())
	}
	older := filepath.Join(dir, "tamga-older")
	return older, build(ctx, source, older, flags...)
}

// BuildSkewed builds the program over a package time whose Now adds clockOffset. So the
// whole process has a wrong wall clock, and the product needs no hook for it.
func (p *Programs) BuildSkewed(ctx context.Context) error {
	goroot, err := goCommand(ctx, p.source, "env", "GOROOT")
	if err != nil {
		return err
	}
	original := filepath.Join(goroot, "src", "time", "time.go")
	text, err := os.ReadFile(original)
	if err != nil {
		return err
	}
	const before = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	changed := bytes.Replace(text, []byte(before), []byte(before+"\tsec += skew\n"), 1)
	if bytes.Equal(changed, text) {
		return fmt.Errorf("%s: time.Now of this Go release is not the one that is known here", original)
	}
	skew := `package time

import "syscall"

var skew = readSkew()

func readSkew() (n int64) {
	text, _ := syscall.Getenv("` + clockOffset + `")
	negative := text != "" && text[0] == '-'
	if negative {
		text = text[1:]
	}
	for _, digit := range []byte(text) {
		n = n*10 + int64(digit-'0')
	}
	if negative {
		n = -n
	}
	return n
}
`
	replace := map[string]string{}
	for name, text := range map[string][]byte{"time.go": changed, "skew.go": []byte(skew)} {
		file := filepath.Join(p.dir, name)
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
		replace[filepath.Join(filepath.Dir(original), name)] = file
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	file := filepath.Join(p.dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o644); err != nil {
		return err
	}
	skewed := filepath.Join(p.dir, "tamga-skewed")
	if err := build(ctx, p.source, skewed, "-overlay", file); err != nil {
		return err
	}
	p.Skewed = skewed
	return nil
}

// build builds cmd/tamga of a source tree.
func build(ctx context.Context, root, to string, flags ...string) error {
	_, err := goCommand(ctx, root, append(append([]string{"build", "-ldflags=-s -w"}, flags...), "-o", to, "./cmd/tamga")...)
	return err
}

// moduleRoot is the directory of the module's source.
func moduleRoot(ctx context.Context) (string, error) {
	return goCommand(ctx, "", "list", "-m", "-f", "{{.Dir}}", "tamga")
}

func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := osexec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, errs.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}

// programCommand is a command with the environment of this process.
func programCommand(program string, args ...string) *osexec.Cmd {
	cmd := osexec.Command(program, args...)
	cmd.Env = os.Environ()
	return cmd
}
