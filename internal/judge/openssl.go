// SPDX-License-Identifier: Apache-2.0

// Package judge is for tests only. It runs programs of other projects that check the
// output of this one, and that make its input.
//
// Begin with the constructor of a program, such as OpenSSL, PDF or XMLSec. If the program
// is not installed, the constructor skips the test and says so. With CI=true in the
// environment it fails the test instead, so that a pipeline cannot lose its judges
// unnoticed. test.sh installs the programs; this package installs nothing.
package judge

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Tool is OpenSSL with gost-engine and its own directory.
type Tool struct {
	// Dir is the working directory of the program. Relative paths in its arguments start
	// there. It is deleted with the test.
	Dir string

	t       testing.TB
	program string
	conf    string
	env     []string // more variables
}

// patience bounds one run: a program that asks a question on a terminal would otherwise
// wait forever. It is longer than any run takes on a busy machine.
const patience = 5 * time.Minute

// enginePlaces are glob patterns of the paths where distributions install gost-engine.
var enginePlaces = []string{
	"/usr/lib/*/engines-3/gost.so",
	"/usr/lib64/engines-3/gost.so",
	"/usr/lib/engines-3/gost.so",
	"/usr/local/lib*/engines-3/gost.so",
	"/opt/homebrew/lib/engines-3/gost.dylib",
}

// OpenSSL finds the openssl program and gost-engine, and prepares a directory and a
// configuration for them.
func OpenSSL(t testing.TB) *Tool {
	t.Helper()
	program, err := exec.LookPath("openssl")
	if err != nil {
		missing(t, "the openssl program is not installed")
	}
	engine := findEngine()
	if engine == "" {
		missing(t, "gost-engine is not installed (gost.so in "+strings.Join(enginePlaces, ", ")+")")
	}
	tool := &Tool{Dir: t.TempDir(), t: t, program: program}
	tool.conf = tool.Write("openssl.cnf", fmt.Appendf(nil, config, engine))
	if out, err := tool.Run("engine", "gost"); err != nil || !strings.Contains(out, "gost") {
		missing(t, fmt.Sprintf("openssl does not load gost-engine from %s: %q %v", engine, out, err))
	}
	return tool
}

// config names the engine by path and the default provider by name: OpenSSL drops the
// default provider if the configuration names only others. The sections at the end are
// for "req".
const config = `openssl_conf = openssl_init
[openssl_init]
engines = engine_sect
providers = provider_sect
[engine_sect]
gost = gost_sect
[gost_sect]
engine_id = gost
dynamic_path = %s
default_algorithms = ALL
[provider_sect]
default = default_sect
[default_sect]
activate = 1
[req]
distinguished_name = req_dn
[req_dn]
`

func findEngine() string {
	for _, pattern := range enginePlaces {
		found, err := filepath.Glob(pattern)
		if err == nil && len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

// missing ends the test: it skips on a developer's machine and fails in CI.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("judge: %s, and CI=true requires it", what)
	}
	t.Skipf("judge: SKIPPED: %s", what)
}

// Program returns the path of a program of others.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, name+" is not installed")
	}
	return path
}

// Run runs openssl with args in Dir and returns its standard output. The error of a
// failed run contains the output on both streams.
func (tool *Tool) Run(args ...string) (stdout string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool.program, args...)
	cmd.Dir = tool.Dir
	cmd.Env = append(append(os.Environ(), "OPENSSL_CONF="+tool.conf), tool.env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("judge: openssl %s: %w: %s%s", strings.Join(args, " "), err, errs.String(), out.String())
	}
	return out.String(), nil
}

// Write writes a file into Dir and returns its path.
func (tool *Tool) Write(name string, data []byte) string {
	tool.t.Helper()
	path := filepath.Join(tool.Dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		tool.t.Fatalf("judge: writing %s: %v", name, err)
	}
	return path
}

// Read returns the contents of a file in Dir.
func (tool *Tool) Read(name string) []byte {
	tool.t.Helper()
	data, err := os.ReadFile(filepath.Join(tool.Dir, name))
	if err != nil {
		tool.t.Fatalf("judge: reading %s: %v", name, err)
	}
	return data
}

// RunOther runs another program in Dir, which may call openssl: it has the same configuration.
func (tool *Tool) RunOther(program string, args ...string) (stdout string, err error) {
	tool.t.Helper()
	other := *tool
	other.program = Program(tool.t, program)
	return other.Run(args...)
}
