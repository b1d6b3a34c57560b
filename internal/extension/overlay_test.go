// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tamga/internal/cluster"
)

// root is the directory of the module, from that of the tests.
const root = "../.."

// overlay is source files that take the place of those on disk while a program is built, by
// their paths from the root.
type overlay map[string][]byte

// read returns a file as the overlay has it.
func (o overlay) read(name string) ([]byte, error) {
	if text, ok := o[name]; ok {
		return text, nil
	}
	return os.ReadFile(filepath.Join(root, name))
}

// apply applies patches in the form of git diff, one after the other. A patch that does not
// apply fails the test: the lines around its place have changed.
func (o overlay) apply(t *testing.T, patches ...string) {
	t.Helper()
	for _, name := range patches {
		patch, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		files := targets(t, patch)
		for _, file := range files {
			text, err := o.read(file)
			if os.IsNotExist(err) {
				continue // the patch makes it
			}
			if err != nil {
				t.Fatal(err)
			}
			o.write(t, dir, file, text)
		}
		git := exec.Command("git", "apply", "--whitespace=nowarn", patch)
		git.Dir = dir
		// The directory is no part of a repository, whatever is above it.
		git.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			o[file] = text
		}
	}
}

// targets lists the files that a patch makes or changes.
func targets(t *testing.T, patch string) (files []string) {
	t.Helper()
	text, err := os.ReadFile(patch)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "+++ b/"); ok {
			files = append(files, strings.TrimSpace(name))
		}
	}
	if len(files) == 0 {
		t.Fatalf("%s names no file", patch)
	}
	return files
}

func (o overlay) write(t *testing.T, dir, name string, text []byte) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// build builds cmd/tamga with the overlay and returns the program.
func (o overlay) build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	base, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for name, text := range o {
		replace[filepath.Join(base, name)] = o.write(t, dir, name, text)
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "tamga")
	build := exec.Command("go", slices.Concat([]string{"build", "-ldflags=-s -w"}, cluster.CompileFlags, []string{"-overlay", o.write(t, dir, "overlay.json", list), "-o", program, "./cmd/tamga"})...)
	build.Dir = base
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	return program
}

// traced are the folders whose functions report that they are called.
var traced = []string{"internal/domain", "internal/web", "internal/adapter", "sig", "pki"}

// trace makes each function of the traced folders report its package and name to a file; see
// testdata/trace.go.txt.
func (o overlay) trace(t *testing.T) {
	t.Helper()
	reporter, err := os.ReadFile("testdata/trace.go.txt")
	if err != nil {
		t.Fatal(err)
	}
	o["internal/trace/trace.go"] = reporter
	var files []string
	for _, folder := range traced {
		err := filepath.WalkDir(filepath.Join(root, folder), func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				name, err = filepath.Rel(root, name)
				files = append(files, filepath.ToSlash(name))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// Of the files that patches make, those in packages of the tree. What is only in a patch takes
	// no part in the walk.
	for name := range o {
		if _, err := os.Stat(filepath.Join(root, filepath.Dir(name))); err == nil {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	packages := map[string]bool{}
	for _, name := range slices.Compact(files) {
		dir := filepath.ToSlash(filepath.Dir(name))
		inside := slices.ContainsFunc(traced, func(folder string) bool { return strings.HasPrefix(dir+"/", folder+"/") })
		if !inside || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.Contains(dir, "testdata") || strings.HasSuffix(dir, "test") {
			continue
		}
		text, err := o.read(name)
		if err != nil {
			t.Fatal(err)
		}
		reporting, pkg, err := withReports(name, packageOf(dir), text)
		if err != nil {
			t.Fatal(err)
		}
		o[name] = reporting
		if !packages[dir] {
			packages[dir] = true
			o[dir+"/reports_of_calls.go"] = fmt.Appendf(nil, "package %s\n\nimport \"tamga/internal/trace\"\n\nvar reportCall = trace.Call\n", pkg)
		}
	}
}

// packageOf returns a folder as the page calls it: "domain/keys", "sig/cades".
func packageOf(dir string) string { return strings.TrimPrefix(dir, "internal/") }

// withReports puts a call of reportCall at the beginning of each function. Lines stay where
// they are.
func withReports(name, folder string, text []byte) (out []byte, pkg string, err error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, "", err
	}
	var b bytes.Buffer
	done := 0
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil || f.Name.Name == "init" {
			continue
		}
		at := fset.Position(f.Body.Lbrace).Offset + 1
		b.Write(text[done:at])
		fmt.Fprintf(&b, "reportCall(%s);", strconv.Quote(folder+" "+nameOf(f)))
		done = at
	}
	b.Write(text[done:])
	return b.Bytes(), file.Name.Name, nil
}

// nameOf returns "Func" or "Type.Method".
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	for {
		switch r := receiver.(type) {
		case *ast.StarExpr:
			receiver = r.X
		case *ast.IndexExpr:
			receiver = r.X
		case *ast.IndexListExpr:
			receiver = r.X
		case *ast.Ident:
			return r.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}
