// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A step of the walk is a package, and the function of it that the step is about if one is named.
type step struct {
	line     int // number in the page's list
	pkg      string
	function string // "" for any
}

// call is a function that began.
type call struct{ pkg, function string }

var (
	numbered = regexp.MustCompile(`^([0-9]+)\. (.*)$`)
	quoted   = regexp.MustCompile("`([^`]+)`")
)

// walkOf reads the steps of the first request of section 3. Up to the dash, a step names packages
// ("sig/cades") and functions of the package before them ("Format.Prepare").
func walkOf(t *testing.T) (steps []step, packages map[string]bool) {
	t.Helper()
	page, err := os.ReadFile(root + "/docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## 3. ")
	section, _, ended := strings.Cut(section, "\n**`POST /ums/")
	if !found || !ended {
		t.Fatal("docs/architecture.md: section 3 is not as this test reads it")
	}
	packages = map[string]bool{}
	for line := range strings.Lines(section) {
		for _, q := range quoted.FindAllStringSubmatch(line, -1) {
			if isPackage(q[1]) {
				packages[q[1]] = true
			}
		}
		m := numbered.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		var number int
		fmt.Sscan(m[1], &number)
		head, _, dash := strings.Cut(m[2], " – ")
		if !dash {
			t.Fatalf("step %d has no dash", number)
		}
		var pkg string
		for _, q := range quoted.FindAllStringSubmatch(head, -1) {
			switch {
			case isPackage(q[1]):
				pkg = q[1]
				steps = append(steps, step{line: number, pkg: pkg})
			case pkg == "":
				t.Fatalf("step %d names no package before %s", number, q[1])
			case steps[len(steps)-1].function == "":
				steps[len(steps)-1].function = q[1]
			default:
				steps = append(steps, step{number, pkg, q[1]})
			}
		}
	}
	if len(steps) < 10 {
		t.Fatalf("only %d steps were found", len(steps))
	}
	return steps, packages
}

func isPackage(name string) bool {
	if name == "sig" {
		return true
	}
	return slices.ContainsFunc([]string{"domain/", "web/", "adapter/", "sig/", "pki/"}, func(layer string) bool { return strings.HasPrefix(name, layer) })
}

// walk signs a document and compares the functions that were called with the walk of
// docs/architecture.md: each step happens, in the order of the page, and no package takes part
// that the page does not name.
func walk(t *testing.T, program string) {
	steps, packages := walkOf(t)
	p := start(t, program)
	token := p.token(t, p.dev.User.Login, p.dev.User.Password)
	parameters := map[string]string{"CADESType": "T", "TSPAddress": p.dev.TSPURL, "IsDetached": "False"}
	p.sign(t, token, "CAdES", parameters, []byte("first")) // the token and the certificate are known from here on
	calls := p.calls(t, func() { p.sign(t, token, "CAdES", parameters, []byte("second")) })

	at := 0
	for _, s := range steps {
		next := slices.IndexFunc(calls[at:], func(c call) bool {
			return c.pkg == s.pkg && (s.function == "" || c.function == s.function)
		})
		if next < 0 {
			t.Fatalf("step %d: %s %s was not called after the steps before it; the calls:\n%s", s.line, s.pkg, s.function, summary(calls))
		}
		at += next
	}
	for _, c := range calls {
		if !packages[c.pkg] {
			t.Errorf("%s %s was called, and the walk does not name the package", c.pkg, c.function)
			packages[c.pkg] = true
		}
	}
	if t.Failed() {
		t.Log(summary(calls))
	}
}

// summary lists calls, the packages in a row.
func summary(calls []call) string {
	var b strings.Builder
	var pkg string
	for _, c := range calls {
		if c.pkg != pkg {
			fmt.Fprintf(&b, "\n%s:", c.pkg)
			pkg = c.pkg
		}
		fmt.Fprint(&b, " ", c.function)
	}
	return b.String()
}
