// SPDX-License-Identifier: Apache-2.0

// Testcost runs tests and prints what they cost. It is for test.sh.
//
//	testcost test ARGUMENTS...   runs "go test" with the arguments
//	testcost run PROGRAM...      runs a program, which its working directory names in the report
//	testcost report              prints the dearest tests, and the processor time by package
//
// The environment variable TAMGA_TEST_COST is the directory where "test" and "run" note the costs that
// "report" reads. If TAMGA_TEST_GOGC is set, it is the variable GOGC of the programs, and GOGC itself is
// for the compiler. The output of "test" is that of go test without -v: a line for each package, and
// what failed tests printed.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	code, err := command(os.Getenv("TAMGA_TEST_COST"), os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "testcost:", err)
		os.Exit(2)
	}
	os.Exit(code)
}

func command(dir string, args []string) (code int, err error) {
	switch {
	case dir == "":
		return 0, errors.New("TAMGA_TEST_COST is empty; it must be a directory")
	case len(args) == 1 && args[0] == "report":
		return 0, report(os.Stdout, dir)
	case len(args) > 1 && args[0] == "test":
		return test(dir, args[1:])
	case len(args) > 1 && args[0] == "run":
		return run(dir, args[1:])
	}
	return 0, fmt.Errorf("unknown arguments %q; use test ARGUMENTS, run PROGRAM or report", args)
}

// test runs go test, whose programs run by this one.
func test(dir string, args []string) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command("go", append([]string{"test", "-json", "-exec", self + " run"}, args...)...)
	cmd.Env = append(os.Environ(), "TAMGA_TEST_QUIET=1") // -json includes -v, and the logs of servers are long
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	times, err := show(os.Stdout, events)
	return exitCode(errors.Join(err, note(dir, "tests", times...), cmd.Wait()))
}

// run runs a program and notes its processor time, with the time of the processes that it started.
func run(dir string, args []string) (int, error) {
	where, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	adopt()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if setting, set := os.LookupEnv("TAMGA_TEST_GOGC"); set {
		cmd.Env = append(os.Environ(), "GOGC="+setting)
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	go func() {
		for s := range signals {
			cmd.Process.Signal(s) // it may have ended
		}
	}()
	code, err := exitCode(cmd.Wait())
	if err != nil {
		return 0, err
	}
	spent := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() + orphans()
	return code, note(dir, "packages", cost{where, spent})
}

// exitCode returns the exit code of a program that ended with err.
func exitCode(err error) (int, error) {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0, err
	}
	if code := exit.ExitCode(); code > 0 {
		return code, nil
	}
	return 1, nil // a signal ended it
}

// cost is the time of a test or the processor time of a package.
type cost struct {
	name string
	time time.Duration
}

// note adds lines to a file of dir. Several processes do so at the same time.
func note(dir, file string, costs ...cost) error {
	var lines strings.Builder
	for _, c := range costs {
		fmt.Fprintf(&lines, "%d %s\n", c.time, c.name)
	}
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(lines.String())
	return errors.Join(err, f.Close())
}
