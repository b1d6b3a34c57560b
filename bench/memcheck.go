// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// declassified are the functions that may branch on values computed from secrets,
// because these values are public. All of them run after the arithmetic. Functions that
// they call are not included.
var declassified = []struct{ function, why string }{
	{"gost3410.GenerateKey", "whether a random number is in range; if not, it is discarded"},
	{"gost3410.(*PrivateKey).Sign", "whether a nonce is in range; whether r or s is 0; whether the key is wiped"},
	{"gost3410.signGroup", "the same as Sign"},
	{"gost3410.(*PrivateKey).signWith", "whether the nonce point is on the curve: false only after a hardware fault"},
	{"gost3410.(*PrivateKey).signAt", "whether r or s is 0: both are in the signature"},
	{"gost3410.(*PrivateKey).ready", "whether the key is wiped"},
	{"gost3410.(*PrivateKey).PublicKey.func1", "whether the key is wiped; whether the public key is on the curve"},
	{"gost3410.(*PrivateKey).VKO", "whether the key is wiped; whether the shared point is on the curve"},
	{".write", "whether a result is a point of order 2: true only after a hardware fault"},
	{").Parse", "whether a public key, computed from a private key, is on the curve"},
	{").read", "the same as Parse"},
	{").enter", "the same as Parse"},
}

// runMemcheck runs the program in the folder memcheck under valgrind. It returns an
// error if valgrind reports a branch or an address that depends on a secret.
func runMemcheck() error {
	dir, err := os.MkdirTemp("", "tamgabench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "memcheck")
	build := exec.Command("go", "build", "-tags", "purego,valgrind", "-o", program, "./memcheck")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building memcheck (run this in the folder bench): %w\n%s", err, out)
	}
	// First check that valgrind finds deliberate leaks.
	for _, flag := range []string{"-branch", "-index"} {
		found, err := memcheckOf(program, flag)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, "main.main") }) {
			return fmt.Errorf("memcheck %s: the deliberate leak was not found; this version of valgrind does not work with this version of Go", flag)
		}
	}
	found, err := memcheckOf(program)
	if err != nil {
		return err
	}
	for _, f := range found {
		fmt.Println(f)
	}
	if len(found) > 0 {
		return errors.New("memcheck: branches or addresses depend on secrets")
	}
	fmt.Println("memcheck: no branch and no address depends on a secret, except for these public values:")
	for _, d := range declassified {
		fmt.Printf("  %s: %s\n", d.function, d.why)
	}
	return nil
}

// memcheckOf runs the program under valgrind and returns its findings, one line for
// each place in the code.
func memcheckOf(program string, arguments ...string) ([]string, error) {
	report := program + ".xml"
	run := exec.Command("valgrind", append([]string{"--error-limit=no", "--leak-check=no", "--xml=yes", "--xml-file=" + report, program}, arguments...)...)
	run.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1", "GOGC=off")
	out, err := run.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("valgrind: %w\n%s", err, out)
	}
	if !strings.Contains(string(out), "finished") {
		return nil, fmt.Errorf("valgrind: the program did not finish\n%s", out)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		return nil, err
	}
	var parsed struct {
		Errors []struct {
			Kind   string `xml:"kind"`
			Stacks []struct {
				Frames []struct {
					Function string `xml:"fn"`
					File     string `xml:"file"`
					Line     int    `xml:"line"`
				} `xml:"frame"`
			} `xml:"stack"`
		} `xml:"error"`
	}
	if err := xml.Unmarshal(text, &parsed); err != nil {
		return nil, fmt.Errorf("valgrind's report: %w", err)
	}
	var found []string
	for _, e := range parsed.Errors {
		// Keep only what depends on undefined bits. Skip reports about the stacks and
		// the memory of Go's runtime.
		if !strings.HasPrefix(e.Kind, "Uninit") || len(e.Stacks) == 0 || len(e.Stacks[0].Frames) == 0 {
			continue
		}
		at := e.Stacks[0].Frames[0]
		// The function that saves the registers of a goroutine has no package name.
		if at.Function == "gosave_systemstack_switch" || strings.HasPrefix(at.Function, "runtime.") && !strings.HasPrefix(at.Function, "runtime.mem") {
			continue
		}
		public := false
		for _, d := range declassified {
			public = public || strings.HasSuffix(at.Function, d.function)
		}
		line := fmt.Sprintf("%s in %s (%s:%d)", e.Kind, at.Function, at.File, at.Line)
		if !public && !slices.Contains(found, line) {
			found = append(found, line)
		}
	}
	return found, nil
}
