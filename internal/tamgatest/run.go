// SPDX-License-Identifier: Apache-2.0

// Package tamgatest starts a Tamga server for a test and speaks to it.
//
// Begin with [Start]: it runs serve --dev in the process of the test, over a directory of its
// own and at a free port, and stops it at the end of the test. [StartProcess] starts a process
// of its own, for tests that kill or freeze the server. [StartUMS] starts a server with operators
// of two groups, for tests of user management. [Run] runs any other sub-command.
//
// The package knows the command line, dev.json and HTTP, and few wire types: a test declares
// the part of an answer that it looks at.
package tamgatest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"tamga/internal/cli"
	"tamga/internal/cli/program"
)

// Version is the version of the program under test.
const Version = "test"

// asProgram is the environment variable that makes a test binary run as the program.
const asProgram = "TAMGA_TEST_RUN_PROGRAM"

// AsProgram is the setting of the environment that makes a test binary run as the program.
const AsProgram = asProgram + "=1"

// standsIn reports whether the test binary can run as the program.
var standsIn bool

// Main is the TestMain of a package whose tests run scripts or start processes. It makes the
// test binary run as the program: as the command "tamga" of scripts, and as a server in its own
// process. So the race detector also checks these processes.
func Main(m testscript.TestingM) {
	// Parallel tests wait most of the time, so their number does not depend on the processors.
	// The command line counts before.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	standsIn = true
	tamga := func() { os.Exit(program.Main(Version)) }
	testscript.Main(programOr{m, tamga}, map[string]func(){"tamga": tamga})
}

type programOr struct {
	tests testscript.TestingM
	tamga func()
}

func (p programOr) Run() int {
	if os.Getenv(asProgram) != "" {
		p.tamga()
	}
	return p.tests.Run()
}

// Result is how a run of a sub-command ended.
type Result struct {
	Out, Err string // what it wrote to standard output and standard error
	Code     int    // exit code: 0 for success, 1 for an error without a code of its own
	Failure  error
}

// Run runs a command line of the program in this process.
func Run(ctx context.Context, stdin string, args ...string) Result {
	var out, said bytes.Buffer
	err := program.Run(ctx, Version, args, strings.NewReader(stdin), &out, &said)
	r := Result{Out: out.String(), Err: said.String(), Failure: err}
	var code cli.ExitCode
	switch {
	case errors.As(err, &code):
		r.Code = int(code)
	case err != nil:
		r.Code = 1
	}
	return r
}

// WriteFile writes a file and makes the directories of its path. It returns the path.
func WriteFile(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Listing returns the names of the files in a directory.
func Listing(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Password is the password of the users that tests register.
const Password = "correct horse battery staple"

// PasswordFile returns a file with Password, for the flag --password-file.
func PasswordFile(t testing.TB) string {
	t.Helper()
	return WriteFile(t, filepath.Join(t.TempDir(), "password"), Password)
}

// ReadFile reads a file.
func ReadFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
