// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// javaProgram compiles a Java program and returns what runs it: java and its arguments up
// to the name of the class. options are for both the compiler and java.
//
// The classes stay in the user's cache, under a name made of the source, the compiler and
// the libraries, because a compilation takes several times longer than the usual run.
func javaProgram(t testing.TB, class string, source []byte, libraries []string, options ...string) (java string, args []string) {
	t.Helper()
	java, err := exec.LookPath("java")
	if err != nil {
		missing(t, "the java program is not installed")
	}
	compiler, err := exec.LookPath("javac")
	if err != nil {
		missing(t, "the Java compiler is not installed (a JDK, not only a runtime)")
	}
	for _, jar := range libraries {
		if _, err := os.Stat(jar); err != nil {
			missing(t, "a Java library is not installed ("+jar+")")
		}
	}
	h := sha256.New()
	for _, path := range append([]string{compiler}, libraries...) {
		// The target of the link names the version.
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			t.Fatalf("judge: %v", err)
		}
		fmt.Fprintln(h, target)
	}
	fmt.Fprintln(h, options)
	h.Write(source)
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatalf("judge: %v", err)
	}
	classes := filepath.Join(cache, "tamga-judges", fmt.Sprintf("java-%s-%x", class, h.Sum(nil)[:8]))
	path := func(first string) []string {
		list := strings.Join(append([]string{first}, libraries...), string(os.PathListSeparator))
		return append(options[:len(options):len(options)], "-cp", list)
	}
	if _, err := os.Stat(classes); err != nil {
		compileJava(t, compiler, class, source, classes, path("."))
	}
	// The programs end before the optimizing compiler of Java is worth its time.
	return java, append(append([]string{"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}, path(classes)...), class)
}

// compileJava compiles one source. The directory of classes appears complete: another test
// may look for it at the same time.
func compileJava(t testing.TB, compiler, class string, source []byte, classes string, args []string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(classes), 0o755); err != nil {
		t.Fatalf("judge: %v", err)
	}
	temporary, err := os.MkdirTemp(filepath.Dir(classes), "compile-")
	if err != nil {
		t.Fatalf("judge: %v", err)
	}
	defer os.RemoveAll(temporary)
	file := filepath.Join(temporary, class+".java")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		t.Fatalf("judge: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), compiler, append(args, "-nowarn", "-encoding", "UTF-8", "-d", temporary, file)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("judge: javac: %v: %s", err, out)
	}
	if err := os.Rename(temporary, classes); err != nil {
		// Another test was faster.
		if _, found := os.Stat(classes); found != nil {
			t.Fatalf("judge: %v", err)
		}
	}
}
