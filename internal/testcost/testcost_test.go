// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// events is the output of go test -json for a package that passes, one without tests, one with a test
// that fails beside one that passes, one that ends in the middle of a test, and one that does not compile.
const events = `{"Action":"start","Package":"tamga/a"}
{"Action":"run","Package":"tamga/a","Test":"TestA"}
{"Action":"output","Package":"tamga/a","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"tamga/a","Test":"TestA/part","Output":"    a_test.go:1: a log\n"}
{"Action":"pass","Package":"tamga/a","Test":"TestA","Elapsed":1.5}
{"Action":"pass","Package":"tamga/a","Test":"TestA/part","Elapsed":1}
{"Action":"pass","Package":"tamga/a","Test":"TestA/a/b","Elapsed":2}
{"Action":"output","Package":"tamga/a","Output":"PASS\n"}
{"Action":"output","Package":"tamga/a","Output":"ok  \ttamga/a\t1.600s\n"}
{"Action":"pass","Package":"tamga/a","Elapsed":1.6}
{"Action":"output","Package":"tamga/none","Output":"?   \ttamga/none\t[no test files]\n"}
{"Action":"skip","Package":"tamga/none","Elapsed":0}
{"Action":"output","Package":"tamga/b","Test":"TestFails","Output":"=== RUN   TestFails\n"}
{"Action":"output","Package":"tamga/c","Test":"TestEnds","Output":"panic: the end\n"}
{"Action":"output","Package":"tamga/b","Test":"TestPasses","Output":"    b_test.go:1: a log\n"}
{"Action":"pass","Package":"tamga/b","Test":"TestPasses","Elapsed":0.25}
{"Action":"output","Package":"tamga/b","Test":"TestFails","Output":"    b_test.go:2: it is wrong\n"}
{"Action":"output","Package":"tamga/b","Test":"TestFails","Output":"--- FAIL: TestFails (0.50s)\n"}
{"Action":"fail","Package":"tamga/b","Test":"TestFails","Elapsed":0.5}
{"Action":"output","Package":"tamga/b","Output":"FAIL\ttamga/b\t0.900s\n"}
{"Action":"fail","Package":"tamga/b","Elapsed":0.9}
{"Action":"output","Package":"tamga/c","Output":"FAIL\ttamga/c\t0.100s\n"}
{"Action":"fail","Package":"tamga/c","Elapsed":0.1}
{"ImportPath":"tamga/d","Action":"build-output","Output":"# tamga/d\n"}
{"ImportPath":"tamga/d","Action":"build-output","Output":"d.go:1:1: a fault\n"}
{"ImportPath":"tamga/d","Action":"build-fail"}
{"Action":"output","Package":"tamga/d","Output":"FAIL\ttamga/d [build failed]\n"}
{"Action":"fail","Package":"tamga/d","Elapsed":0,"FailedBuild":"tamga/d"}
pattern ./x: no such directory
`

func TestShow(t *testing.T) {
	var out strings.Builder
	times, err := show(&out, strings.NewReader(events))
	if err != nil {
		t.Fatal(err)
	}
	want := "ok  \ttamga/a\t1.600s\n" +
		"    b_test.go:2: it is wrong\n--- FAIL: TestFails (0.50s)\nFAIL\ttamga/b\t0.900s\n" +
		"panic: the end\nFAIL\ttamga/c\t0.100s\n" +
		"# tamga/d\nd.go:1:1: a fault\nFAIL\ttamga/d [build failed]\npattern ./x: no such directory\n"
	if out.String() != want {
		t.Errorf("it shows\n%s\nwant\n%s", &out, want)
	}
	if want := []cost{{"a TestA", 3 * time.Second}, {"b TestPasses", 250 * time.Millisecond}, {"b TestFails", 500 * time.Millisecond}}; !slices.Equal(times, want) {
		t.Errorf("times %v, want %v", times, want)
	}
}

func TestReport(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for n := range 12 {
		if err := note(dir, "tests", cost{"a Test" + string(rune('A'+n)), time.Duration(n) * time.Second}); err != nil {
			t.Fatal(err)
		}
	}
	if err := note(dir, "packages", cost{dir + "/a", 2 * time.Second}, cost{dir + "/b", time.Second}, cost{dir + "/a", 2 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "run"), []byte("0m0.500s 0m0.500s\n1m10.000s 0m2.000s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := report(&out, dir); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{"    11.0s  a TestL\n", "     2.0s  a TestC\n", "     4.0s  a\n", "     1.0s  1 packages of less than 2s\n", "     5.0s  all tests\n",
		"    68.0s  compilers, checks and installation\n", "    73.0s  the whole run\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report has no line %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "TestB\n") {
		t.Errorf("the report has more than ten tests:\n%s", text)
	}
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("GOGC", "400")
	t.Setenv("TAMGA_TEST_GOGC", "50")
	code, err := run(dir, []string{"sh", "-c", `echo "$GOGC" >gogc; exit 3`})
	if code != 3 || err != nil {
		t.Errorf("exit code %d, %v, want 3", code, err)
	}
	if text, err := os.ReadFile("gogc"); string(text) != "50\n" {
		t.Errorf("GOGC is %q, %v, want 50", text, err)
	}
	costs, err := noted(dir, "packages")
	if err != nil || len(costs) != 1 || costs[0].name != dir {
		t.Fatalf("noted %v, %v, want one line for %s", costs, err, dir)
	}
}
