// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tamga/internal/app"
	"tamga/internal/app/dev"
	"tamga/internal/domain/approval"
	"tamga/internal/domain/confirm"
	"tamga/internal/domain/confirm/what"
	"tamga/internal/domain/policy"
	"tamga/internal/domain/retention"
	"tamga/internal/domain/signing"
	"tamga/internal/web/pages"
)

// TestAuditedNames checks that each operation that can be in the audit log has a name in every
// language, and that no other has one.
func TestAuditedNames(t *testing.T) {
	recorded := recordedOperations(t)
	served := map[string]bool{}
	for _, name := range servedOperations(t) {
		served[name] = true
	}
	if len(served) < 250 || len(recorded) < 60 {
		t.Fatalf("only %d operations of routes and %d others", len(served), len(recorded))
	}
	for _, language := range []string{"en", "ru"} {
		text, err := os.ReadFile("view/words/" + language + "/audited.txt")
		if err != nil {
			t.Fatal(err)
		}
		named := map[string]bool{}
		for line := range strings.Lines(string(text)) {
			key, _, _ := strings.Cut(line, " = ")
			name, ok := strings.CutPrefix(key, "audited.")
			if !ok {
				t.Fatalf("%s: %q is not the name of an operation", language, line)
			}
			named[name] = true
			if !served[name] && !recorded[name] {
				t.Errorf("%s: %s has a name and is never in the audit log", language, name)
			}
		}
		for _, operations := range []map[string]bool{served, recorded} {
			for name := range operations {
				if !named[name] {
					t.Errorf("%s: %s has no name: add it to view/words/%s/audited.txt", language, name, language)
				}
			}
		}
	}
}

// servedOperations returns the operations of the audited routes of a server with all surfaces.
func servedOperations(t *testing.T) []string {
	conf, err := dev.Config(t.TempDir(), []string{
		"listen=localhost:0", "confirmation.methods=[mydss, mobile, otpviasms, otpviaemail, oath, passkey]", // passkeys have routes of their own
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	base, err := app.Open(t.Context(), conf, app.ForServer, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { base.Close() })
	if err := base.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	services, err := base.Services(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server, err := app.NewServer(t.Context(), services, "test", &pages.Trial{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server.AuditedOperations()
}

// computed are the operations of audit entries that are no text in the source, by the expression
// that has them. Those of a function that takes an operation are found at its calls.
var computed = map[string][]string{
	"h.Name":         nil, // the route
	"operation":      nil, // a parameter; see takers
	"AuditOperation": {confirm.AuditOperation, approval.AuditOperation},
	"AuditReport":    {confirm.AuditReport},
	"AuditRenewal":   {retention.AuditRenewal},
	"AuditSignature": {signing.AuditSignature},
	`"Execute" + op.Action`: {
		"Execute" + policy.SignDocument.String(), "Execute" + policy.SignDocuments.String(), // see signing.actionOf
		"Execute" + policy.DecryptDocument.String(), // see encryption.Service.permitted
		// See keys.kinds, without the export of a key, which no process carries out alone.
		"Execute" + policy.CreateRequest.String(), "Execute" + policy.ChangePin.String(), "Execute" + policy.RenewCertificate.String(), "Execute" + policy.RevokeCertificate.String(),
		"Execute" + policy.HoldCertificate.String(), "Execute" + policy.UnholdCertificate.String(), "Execute" + policy.DeleteCertificate.String(),
		"Execute" + what.ChangeAccount,
	},
}

// takers are the functions of commands that take the operation of an audit entry, with the position
// of the operation.
var takers = map[string]int{"Administer": 2, "register": 2, "decide": 2, "change": 1, "changeAccess": 3, "do": 1}

// recordedOperations returns the operations that the program records besides routes. It reads them
// from the source.
func recordedOperations(t *testing.T) map[string]bool {
	found := map[string]bool{}
	seen := map[string]bool{} // keys of computed
	add := func(e ast.Expr, at token.Position) {
		if text, ok := e.(*ast.BasicLit); ok {
			name, err := strconv.Unquote(text.Value)
			if err != nil {
				t.Fatal(err)
			}
			found[name] = true
			return
		}
		expression := types.ExprString(e)
		names, ok := computed[expression]
		if !ok {
			t.Errorf("%s: the operation %s of an audit entry is not known to this test", at, expression)
		}
		seen[expression] = true
		for _, name := range names {
			found[name] = true
		}
	}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(filepath.ToSlash(path), "/storetest/") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		command := strings.Contains(filepath.ToSlash(path), "/cli/")
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if n.Type == nil || types.ExprString(n.Type) != "audit.Entry" {
					break
				}
				for _, field := range n.Elts {
					if pair, ok := field.(*ast.KeyValueExpr); ok && types.ExprString(pair.Key) == "Operation" {
						add(pair.Value, files.Position(pair.Pos()))
					}
				}
			case *ast.CallExpr:
				name := types.ExprString(n.Fun)
				position, ok := takers[name[strings.LastIndex(name, ".")+1:]]
				// The first argument of these functions is the console, which commands call c.
				if ok && command && len(n.Args) > position && types.ExprString(n.Args[0]) == "c" {
					add(n.Args[position], files.Position(n.Pos()))
				}
			case *ast.AssignStmt: // of a command that chooses among operations
				if types.ExprString(n.Lhs[0]) == "operation" && command {
					add(n.Rhs[0], files.Position(n.Pos()))
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for expression := range computed {
		if !seen[expression] {
			t.Errorf("no audit entry has the operation %s", expression)
		}
	}
	return found
}
