// SPDX-License-Identifier: Apache-2.0

package tamga

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// maxStoreMethods is the largest number of methods of a store interface of a domain
// package, including embedded ones. A store should have only the methods of one use.
const maxStoreMethods = 12

func TestStoreInterfaces(t *testing.T) {
	found := map[string]*ast.InterfaceType{} // by package and name
	err := filepath.WalkDir("internal/domain", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := strings.TrimPrefix(path.Dir(filepath.ToSlash(name)), "internal/domain/")
		addInterfaces(found, pkg, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	stores := 0
	for name, i := range found {
		if !strings.HasSuffix(name, "Store") {
			continue
		}
		stores++
		n, err := countMethods(found, name, i)
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case n > maxStoreMethods:
			t.Errorf("%s has %d methods, want at most %d: split it by use", name, n, maxStoreMethods)
		}
	}
	if stores < 15 {
		t.Errorf("only %d store interfaces were found", stores)
	}
}

// addInterfaces adds the interfaces that a file of a package declares.
func addInterfaces(found map[string]*ast.InterfaceType, pkg string, file *ast.File) {
	for _, decl := range file.Decls {
		decl, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range decl.Specs {
			spec, ok := spec.(*ast.TypeSpec)
			if !ok {
				continue
			}
			if i, ok := spec.Type.(*ast.InterfaceType); ok {
				found[path.Base(pkg)+"."+spec.Name.Name] = i
			}
		}
	}
}

// countMethods returns the number of methods of an interface, including those of embedded
// interfaces. An embedded interface of another module is an error.
func countMethods(found map[string]*ast.InterfaceType, name string, i *ast.InterfaceType) (int, error) {
	n := 0
	for _, m := range i.Methods.List {
		if len(m.Names) > 0 {
			n += len(m.Names)
			continue
		}
		embedded := ""
		switch e := m.Type.(type) {
		case *ast.Ident:
			pkg, _, _ := strings.Cut(name, ".")
			embedded = pkg + "." + e.Name
		case *ast.SelectorExpr:
			embedded = fmt.Sprint(e.X) + "." + e.Sel.Name
		}
		inner := found[embedded]
		if inner == nil {
			return 0, fmt.Errorf("embeds %q, which is not an interface of internal/domain", embedded)
		}
		more, err := countMethods(found, embedded, inner)
		if err != nil {
			return 0, err
		}
		n += more
	}
	return n, nil
}

// TestStoreInterfacesCounted counts the methods of known interfaces.
func TestStoreInterfacesCounted(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       int // -1 for an error
	}{
		{"methods", "A(); B(); C()", 3},
		{"none", "", 0},
		{"embedded", "A(); Inner", 3},
		{"embedded of another package", "a.Inner", 2},
		{"unknown", "A(); Missing", -1},
		{"outside", "io.Reader", -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := "package a\ntype Inner interface { X(); Y() }\ntype Outer interface { " + c.body + " }"
			file, err := parser.ParseFile(token.NewFileSet(), "a.go", source, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]*ast.InterfaceType{}
			addInterfaces(found, "a", file)
			got, err := countMethods(found, "a.Outer", found["a.Outer"])
			if err != nil {
				got = -1
			}
			if got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
