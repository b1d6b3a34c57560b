// SPDX-License-Identifier: Apache-2.0

package tamga

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// This is the plan of docs/architecture.md as a test. It knows three facts: the order of
// the layers, the order of the domain packages, and the standard packages that mean
// "outside". A change to one of them is a design decision.

// layers are listed from the lowest up. internal/adapter and internal/web have the same level and
// never import each other.
var layers = []struct {
	prefix string
	level  int
}{
	{"gost", 0},
	{"pki", 1},
	{"sig", 2},
	{"internal/domain", 3},
	// Tags of settings: for the configuration and for adapters with their own settings.
	{"internal/setting", 3},
	{"internal/adapter", 4},
	{"internal/web", 4},
	{"internal/files", 4},
	{"internal/config", 5},
	{"internal/app", 6},
	{"internal/cli", 7},
	{"cmd", 8},
	// Judges, and what starts a server for a test, are beside the layers: tests use them,
	// nothing of the product does.
	{"internal/judge", -1},
	{"internal/tamgatest", -1},
	{"internal/cluster", -1},
	{"internal/extension", -1},
	{"internal/gosttest", -1},
	{"internal/sigtest", -1},
	{"internal/corpus", -1},
	{"internal/testcost", -1},
	{"internal/testsize", -1},
}

// packages lists the packages of a layer in order: each may import the ones before it. A package in
// another one ("gost3410/internal/field") has the position of the outer one.
var packages = map[string][]string{
	"gost":            {"streebog", "kdf", "gost28147", "gost341194", "magma", "kuznyechik", "mode", "gost3410"},
	"pki":             {"suite", "x509gost", "ocsp", "chain", "cms", "tsp", "pfx"},
	"sig":             {"budget", "zip", "", "evidence", "raw", "cades", "xmltree", "power", "xmldsig", "trustlist", "xmlenc", "ooxml", "pdf", "asic"},
	"internal/domain": {"fault", "effect", "lock", "lease", "vault", "audit", "notify", "policy", "reach", "session", "contact", "user", "device", "password", "oath", "passkey", "document", "report", "confirm", "operation", "waiting", "approval", "token", "signin", "directory", "authority", "keys", "accreditation", "signing", "encryption", "retention"},
	"internal/app":    {"", "dev"},
}

// shared names the only package of a layer that its other packages may import.
var shared = map[string]string{"internal/adapter": "guard", "internal/web": "rest", "internal/cli": ""}

// areas is the package of internal/web whose inner packages are areas of pages. An area imports of them only those of
// ofAreas; the outer package assembles all.
const areas = "internal/web/pages"

var ofAreas = []string{"view", "pdfjs"}

// table is the package of internal/cli that has the table of sub-commands: it imports them all.
const table = "program"

// lower lists the packages of lower layers that a domain package may import in addition to the
// packages before it. A name without a slash is a whole layer.
var lower = map[string][]string{
	"vault":         {"pki", "gost"},
	"authority":     {"pki", "gost"},
	"keys":          {"pki", "gost"},
	"accreditation": {"sig", "pki/x509gost"},
	"signing":       {"sig", "pki/x509gost", "pki/chain", "pki/suite", "pki/tsp"},
	"encryption":    {"sig", "pki"},
	"operation":     {"sig", "pki/suite"},
	"retention":     {"sig"},
	"signin":        {"pki/x509gost"},
	"oath":          {"gost/streebog"},
	"confirm":       {"gost/streebog"},
	"device":        {"gost/gost3410", "gost/streebog", "pki/suite", "pki/x509gost"},
}

// outside lists the standard packages that have effects outside of the process. No layer
// below internal/adapter and internal/web imports them.
var outside = []string{"net", "net/http", "os", "os/exec", "os/signal", "database/sql", "log", "log/slog", "syscall", "io/ioutil", "path/filepath"}

// configured lists the packages of internal/adapter and internal/web whose types the configuration
// needs for its checks.
var configured = []string{"internal/adapter/guard", "internal/web/rest"}

// configuring lists the layers that may import the configuration.
var configuring = []string{"internal/app", "internal/cli"}

// position is where a folder is in the plan.
type position struct {
	layer, pkg string
	inner      string // path below pkg; "": pkg itself
	level      int
}

func positionOf(dir string) (position, bool) {
	for _, l := range layers {
		if dir == l.prefix || strings.HasPrefix(dir, l.prefix+"/") {
			pkg, inner, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(dir, l.prefix), "/"), "/")
			return position{l.prefix, pkg, inner, l.level}, true
		}
	}
	return position{}, false
}

func TestLayers(t *testing.T) {
	checked := 0
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (name == "bench" || name == "browser" || name == "packaging" || name == "testdata" || name != "." && strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		dir := path.Dir(filepath.ToSlash(name))
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		if dir == "." {
			return nil
		}
		from, ok := positionOf(dir)
		if !ok {
			t.Errorf("%s is outside of the layers: no layer of the plan has the folder %s", name, dir)
			return nil
		}
		checked++
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if why := refuse(from, imported); why != "" {
				t.Errorf("%s imports %s: %s", name, imported, why)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 20 {
		t.Fatalf("only %d files were checked: the walk does not find the packages", checked)
	}
}

// isForTests reports whether a package is only for tests. Its name ends in "test", and no
// part of the product may import it.
func isForTests(pkg string) bool { return strings.HasSuffix(pkg, "test") }

// refuse returns why a file in from may not import a package, or "".
func refuse(from position, imported string) string {
	local, ours := strings.CutPrefix(imported, "tamga/")
	if !ours {
		if from.level >= 0 && from.level < 4 && slices.Contains(outside, imported) && !isForTests(from.pkg) {
			return "layers below internal/adapter and internal/web must not reach outside of the process"
		}
		return ""
	}
	to, ok := positionOf(local)
	switch {
	case !ok:
		return "it is in no layer of the plan"
	case from.level < 0:
		return ""
	case from.layer+"/"+from.pkg == areas && from.inner != "" && to.pkg == from.pkg && !slices.Contains(ofAreas, to.inner):
		return "an area of pages may import no other area"
	case strings.HasPrefix(local, from.layer+"/"+from.pkg+"/"):
		return "" // a package inside this one
	case to.level < 0 || isForTests(to.pkg) && !isForTests(from.pkg):
		return "it is for tests only"
	case to.level > from.level:
		return "a layer must not import a higher one"
	case isForTests(from.pkg):
		return ""
	case to.layer == from.layer && to.pkg == from.pkg:
		return ""
	case to.layer == from.layer:
		if only, set := shared[from.layer]; set {
			if to.pkg != only && from.pkg != table {
				return "adapters may share only guard, web interfaces only web/rest, sub-commands only internal/cli"
			}
			return ""
		}
		line := packages[from.layer]
		i, j := slices.Index(line, from.pkg), slices.Index(line, to.pkg)
		if i < 0 && from.layer == "sig" {
			i = len(line) // a new format needs no line in the plan
		}
		if i < 0 || j < 0 {
			return "a package of this layer is missing from the plan"
		}
		if j > i {
			return "a package may import only the ones before it"
		}
		return ""
	case from.layer == "internal/web" && to.layer == "internal/adapter", from.layer == "internal/adapter" && to.layer == "internal/web":
		return "adapters and web interfaces must not import each other"
	case to.layer == "internal/config" && !slices.Contains(configuring, from.layer):
		return "only the packages that put the program together may import its configuration"
	case from.layer == "internal/web" && to.layer != "internal/domain":
		return "a web interface may import only the domain"
	case from.layer == "internal/web" && from.pkg == "rest" && to.pkg != "fault" && to.pkg != "audit" && to.pkg != "effect":
		return "web/rest may import only fault, audit and effect"
	case from.layer == "internal/config" && (to.layer == "internal/adapter" || to.layer == "internal/web") && !slices.Contains(configured, to.layer+"/"+to.pkg):
		return "the configuration may import only the packages of the list configured"
	case from.layer == "internal/setting":
		return "the reader of tags may import no other package of ours"
	case from.layer == "internal/domain":
		for _, allowed := range lower[from.pkg] {
			if to.layer == allowed || to.layer+"/"+to.pkg == allowed {
				return ""
			}
		}
		return "this package may not import that layer"
	}
	return ""
}
