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

// declassified are the functions that branch on results computed from secrets which
// are public in themselves. All of them run after the arithmetic; their callees are
// not among them.
var declassified = []struct{ function, why string }{
	{"gost3410.GenerateKey", "a random number was in range, or is drawn again and forgotten"},
	{"gost3410.(*PrivateKey).Sign", "the same of a nonce; that neither r nor s is 0; that the key is not wiped"},
	{"gost3410.signGroup", "as in Sign"},
	{"gost3410.(*PrivateKey).signWith", "the nonce's point is on the curve: false only where the machine is at fault"},
	{"gost3410.(*PrivateKey).signAt", "neither r nor s is 0: both are in the signature"},
	{"gost3410.(*PrivateKey).ready", "the key is not wiped"},
	{"gost3410.(*PrivateKey).PublicKey.func1", "the key is not wiped; the public key is on the curve"},
	{"gost3410.(*PrivateKey).VKO", "the key is not wiped; the shared point is on the curve"},
	{".write", "a result is not a point of order 2: false only where the machine is at fault"},
	{").Parse", "a public key, which was computed from a private one, is on the curve"},
	{").read", "the same"},
	{").enter", "the same"},
}

// runMemcheck runs the program in the folder memcheck under valgrind.
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
	// First that it finds what there is to find.
	for _, flag := range []string{"-branch", "-index"} {
		found, err := memcheckOf(program, flag)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, "main.main") }) {
			return fmt.Errorf("memcheck %s: the leak made on purpose is not found: this valgrind and this Go do not work together", flag)
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
	fmt.Println("memcheck: no branch and no address depends on a secret, but for what is public:")
	for _, d := range declassified {
		fmt.Printf("  %s: %s\n", d.function, d.why)
	}
	return nil
}

// memcheckOf runs the program under valgrind and returns what it found: a line for
// each place.
func memcheckOf(program string, arguments ...string) ([]string, error) {
	report := program + ".xml"
	run := exec.Command("valgrind", append([]string{"--error-limit=no", "--leak-check=no", "--xml=yes", "--xml-file=" + report, program}, arguments...)...)
	run.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1")
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
		// Only what depends on undefined bits, and not what valgrind thinks of the
		// stacks and the memory of Go's runtime itself.
		if !strings.HasPrefix(e.Kind, "Uninit") || len(e.Stacks) == 0 || len(e.Stacks[0].Frames) == 0 {
			continue
		}
		at := e.Stacks[0].Frames[0]
		// The one that saves a goroutine's registers carries no name of a package.
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
