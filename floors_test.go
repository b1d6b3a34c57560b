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
// the floors, the order of the domain rooms, and the standard packages that mean
// "outside". A change to one of them is a design decision.

// floors are listed from the ground up. The two outer walls have the same level and never
// import each other.
var floors = []struct {
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
}

// rooms lists the rooms of a floor in order: each may import those before it. A room of
// two levels ("gost3410/internal/field") has the position of its first.
var rooms = map[string][]string{
	"gost":            {"streebog", "gost28147", "gost341194", "magma", "kuznyechik", "mode", "gost3410"},
	"pki":             {"suite", "x509gost", "ocsp", "chain", "cms", "tsp", "pfx"},
	"sig":             {"budget", "", "evidence", "raw", "cades", "xmltree", "xmldsig", "ooxml", "pdf"},
	"internal/domain": {"fault", "effect", "lock", "lease", "vault", "audit", "notify", "policy", "reach", "session", "contact", "user", "device", "password", "oath", "passkey", "document", "confirm", "operation", "approval", "token", "signin", "authority", "keys", "signing"},
	"internal/app":    {"", "dev"},
}

// shared names the only room of a floor that its other rooms may import.
var shared = map[string]string{"internal/adapter": "guard", "internal/web": "rest", "internal/cli": ""}

// table is the room of internal/cli that has the table of sub-commands: it imports them all.
const table = "program"

// downstairs lists the rooms of lower floors that a domain room may import in addition to
// the rooms before it. A name without a slash is a whole floor.
var downstairs = map[string][]string{
	"vault":     {"pki", "gost"},
	"authority": {"pki", "gost"},
	"keys":      {"pki", "gost"},
	"signing":   {"sig", "pki/x509gost", "pki/chain", "pki/suite", "pki/tsp"},
	"operation": {"sig", "pki/suite"},
	"signin":    {"pki/x509gost"},
	"oath":      {"gost/streebog"},
	"confirm":   {"gost/streebog"},
	"device":    {"gost/gost3410", "gost/streebog", "pki/suite", "pki/x509gost"},
}

// outside lists the standard packages that have effects outside of the process. No floor
// below the walls imports them.
var outside = []string{"net", "net/http", "os", "os/exec", "os/signal", "database/sql", "log", "log/slog", "syscall", "io/ioutil", "path/filepath"}

// configured lists the rooms of the walls whose types the configuration needs for its
// checks.
var configured = []string{"internal/adapter/guard", "internal/web/rest"}

// configuring lists the floors that may import the configuration.
var configuring = []string{"internal/app", "internal/cli"}

type place struct {
	prefix, room string
	level        int
}

func placeOf(dir string) (place, bool) {
	for _, f := range floors {
		if dir == f.prefix || strings.HasPrefix(dir, f.prefix+"/") {
			room, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(dir, f.prefix), "/"), "/")
			return place{f.prefix, room, f.level}, true
		}
	}
	return place{}, false
}

func TestFloors(t *testing.T) {
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
		from, ok := placeOf(dir)
		if !ok {
			t.Errorf("%s is outside of the layers: no floor of the plan has the folder %s", name, dir)
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

// isForTests reports whether a room is only for tests. Its name ends in "test", and no
// part of the product may import it.
func isForTests(room string) bool { return strings.HasSuffix(room, "test") }

// refuse returns why a file in from may not import a package, or "".
func refuse(from place, imported string) string {
	local, ours := strings.CutPrefix(imported, "tamga/")
	if !ours {
		if from.level >= 0 && from.level < 4 && slices.Contains(outside, imported) && !isForTests(from.room) {
			return "floors below the walls must not reach outside of the process"
		}
		return ""
	}
	to, ok := placeOf(local)
	switch {
	case !ok:
		return "it is on no floor of the plan"
	case from.level < 0:
		return ""
	case strings.HasPrefix(local, from.prefix+"/"+from.room+"/"):
		return "" // a room inside this one
	case to.level < 0 || isForTests(to.room) && !isForTests(from.room):
		return "it is for tests only"
	case to.level > from.level:
		return "a floor must not import a higher one"
	case isForTests(from.room):
		return ""
	case to.prefix == from.prefix && to.room == from.room:
		return ""
	case to.prefix == from.prefix:
		if only, set := shared[from.prefix]; set {
			if to.room != only && from.room != table {
				return "adapters may share only guard, doors only the kit, sub-commands only internal/cli"
			}
			return ""
		}
		line := rooms[from.prefix]
		i, j := slices.Index(line, from.room), slices.Index(line, to.room)
		if i < 0 && from.prefix == "sig" {
			i = len(line) // a new format needs no line in the plan
		}
		if i < 0 || j < 0 {
			return "a room of this floor is missing from the plan"
		}
		if j > i {
			return "a room may import only those before it"
		}
		return ""
	case from.prefix == "internal/web" && to.prefix == "internal/adapter", from.prefix == "internal/adapter" && to.prefix == "internal/web":
		return "the outer walls must not import each other"
	case to.prefix == "internal/config" && !slices.Contains(configuring, from.prefix):
		return "only the packages that put the program together may import its configuration"
	case from.prefix == "internal/web" && to.prefix != "internal/domain":
		return "a door may import only the domain"
	case from.prefix == "internal/web" && from.room == "rest" && to.room != "fault" && to.room != "audit" && to.room != "effect":
		return "the kit may import only fault, audit and effect"
	case from.prefix == "internal/config" && (to.prefix == "internal/adapter" || to.prefix == "internal/web") && !slices.Contains(configured, to.prefix+"/"+to.room):
		return "the configuration may import only the rooms of the list configured"
	case from.prefix == "internal/setting":
		return "the reader of tags may import no other package of ours"
	case from.prefix == "internal/domain":
		for _, allowed := range downstairs[from.room] {
			if to.prefix == allowed || to.prefix+"/"+to.room == allowed {
				return ""
			}
		}
		return "this room may not import that floor"
	}
	return ""
}
