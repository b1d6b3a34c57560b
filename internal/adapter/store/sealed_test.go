// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tamga/internal/adapter/store"
	"tamga/internal/adapter/store/storetest"
)

// endsByItself are the places of records that nothing reseals, by purpose, table and column, with the
// reason.
var endsByItself = map[string]string{
	"page cookie value":                        "cookie of a session, within pages.session",
	"authorization request browser ":           "cookie of a sign-in under way",
	"first step of a sign-in client mfa_token": "token of a sign-in under way",
	"canary master_keys canary":                "belongs to its master key",
	"check of a master key backup key_check":   "in the manifest of a backup, which is restored with the master keys of its time",
}

// TestSwapOfDocuments finds the key of an object by the index, which has few of the documents.
func TestSwapOfDocuments(t *testing.T) {
	for _, c := range (store.Sealed{}).Columns() {
		if c.Table != "documents" {
			continue
		}
		plan, err := store.SwapPlan(t.Context(), storetest.SQLite(t), c)
		if err != nil || !strings.Contains(plan, "documents_by_object") {
			t.Errorf("%s: %q, %v", c.Name(), plan, err)
		}
	}
}

// TestSealedColumns compares the columns that are resealed with the places that the program seals
// for.
func TestSealedColumns(t *testing.T) {
	resealed := map[string]bool{}
	for _, c := range (store.Sealed{}).Columns() {
		p := c.Place("purpose|row")
		resealed[strings.TrimSuffix(p.Purpose, "purpose")+" "+p.Table+" "+p.Column] = true
	}
	places := map[string]string{} // to the file
	err := filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") ||
			strings.Contains(name, "/storetest/") || strings.Contains(name, "adapter/store/") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.CompositeLit); ok && len(lit.Elts) > 0 && isPlace(lit.Type) {
				fields := map[string]string{}
				for _, e := range lit.Elts {
					kv := e.(*ast.KeyValueExpr)
					fields[kv.Key.(*ast.Ident).Name] = leading(kv.Value)
				}
				places[fields["Purpose"]+" "+fields["Table"]+" "+fields["Column"]] = name
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// The holder of keys seals for the table of its caller.
	if places["purposeKey  column"] == "" {
		t.Error("the place of private keys was not found")
	}
	delete(places, "purposeKey  column")
	for place := range endsByItself {
		if places[place] == "" {
			t.Errorf("nothing seals for %q", place)
		}
	}
	for _, place := range slices.Sorted(maps.Keys(places)) {
		known := endsByItself[place] != ""
		if resealed[place] == known {
			t.Errorf("%s seals for %q: name it in sealedColumns, or in endsByItself with the reason", places[place], place)
		}
		delete(resealed, place)
	}
	for place := range resealed {
		if !strings.HasPrefix(place, "private key ") {
			t.Errorf("sealedColumns has %q, for which nothing seals", place)
		}
	}
}

func isPlace(t ast.Expr) bool {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name == "Place"
	case *ast.SelectorExpr:
		x, ok := t.X.(*ast.Ident)
		return ok && x.Name == "vault" && t.Sel.Name == "Place"
	}
	return false
}

// leading returns the text that a value begins with, or the name of a constant.
func leading(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return leading(e.X)
	case *ast.Ident:
		if e.Name == "table" {
			return ""
		}
		return e.Name
	}
	return ""
}
