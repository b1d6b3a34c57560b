// SPDX-License-Identifier: Apache-2.0

package umsapi

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/domain/effect"
	"tamga/internal/web/rest"
)

// operation is a row of testdata/operations.txt.
type operation struct{ name, method, path string }

func (o operation) String() string { return o.name + " " + o.method + " " + o.path }

// specified reads the operations.
func specified(t *testing.T) (list []operation) {
	t.Helper()
	f, err := os.Open("testdata/operations.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		words := strings.Fields(strings.TrimPrefix(lines.Text(), "+"))
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) != 3 {
			t.Fatalf("testdata/operations.txt: %q", lines.Text())
		}
		for method := range strings.SplitSeq(words[1], ",") {
			list = append(list, operation{words[0], method, words[2]})
		}
	}
	return list
}

var parameter = regexp.MustCompile(`\{[a-z]+\}`)

// plain is a path that names of parameters and a trailing slash do not count in.
func plain(path string) string {
	return strings.TrimSuffix(parameter.ReplaceAllString(path, "{}"), "/")
}

// TestRoutesAreTheSpecification: every operation of the tables has its route, and
// every route is an operation of the tables.
func TestRoutesAreTheSpecification(t *testing.T) {
	routes := New(nil, nil, nil, nil, Rules{Local: "realsts"}).Routes()
	var want, have []string
	for _, o := range specified(t) {
		want = append(want, o.method+" "+plain(o.path))
	}
	for _, r := range routes {
		have = append(have, r.Method+" "+plain(r.Path))
		if r.Right != Operator {
			t.Errorf("%s has the right %q", r.Name, r.Right)
		}
	}
	slices.Sort(want)
	slices.Sort(have)
	if d := cmp.Diff(slices.Compact(want), slices.Compact(have)); d != "" {
		t.Error(d)
	}
	if len(want) != 95 {
		t.Errorf("testdata/operations.txt has %d operations with their methods", len(want))
	}
	for _, o := range specified(t) {
		i := slices.IndexFunc(routes, func(r rest.Route) bool {
			return r.Method == o.method && plain(r.Path) == plain(o.path)
		})
		// The uniqueness of an e-mail is checked by the operation for phones.
		shared := o.name == "CheckEmailUnique" && i >= 0 && routes[i].Name == "CheckPhoneUnique"
		if i < 0 || routes[i].Name != o.name && !shared {
			t.Errorf("%s has no route of this name", o)
		}
	}
}

// TestRoutesAreFound: each documented path, as it is written, arrives at its route,
// with and without a trailing slash.
func TestRoutesAreFound(t *testing.T) {
	mux := http.NewServeMux()
	// The patterns of rest.Mount; it makes sure that none hides another.
	for _, r := range New(nil, nil, nil, nil, Rules{Local: "realsts"}).Routes() {
		for _, pattern := range []string{r.Path, r.Path + "/{$}"} {
			mux.HandleFunc(r.Method+" "+pattern, func(http.ResponseWriter, *http.Request) {})
		}
	}
	values := strings.NewReplacer("{id}", "e3d5b0c2-7d0f-4a57-9b85-0f1f9c3f8a11", "{phone}", "79161234567", "{email}", "petrov%40example.ru")
	for _, o := range specified(t) {
		for _, path := range []string{strings.TrimSuffix(o.path, "/"), strings.TrimSuffix(o.path, "/") + "/"} {
			request, err := http.NewRequest(o.method, "http://host"+values.Replace(path), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, pattern := mux.Handler(request)
			if got := plain(strings.TrimSuffix(pattern, "{$}")); got != o.method+" "+plain(o.path) {
				t.Errorf("%s %s arrives at %q", o.method, path, pattern)
			}
		}
	}
}

func TestFlags(t *testing.T) {
	yes, no := flag{true, true}, flag{true, false}
	for _, c := range []struct {
		body  any
		query flag
		want  string
	}{
		{"True", flag{}, "true"}, {"false", flag{}, "false"}, {"TRUE", flag{}, "true"}, {"1", flag{}, "true"}, {"0", flag{}, "false"},
		{true, flag{}, "true"}, {false, yes, "false"}, {json.Number("1"), flag{}, "true"}, {json.Number("0"), yes, "false"},
		{"yes", flag{}, "refused"}, {json.Number("2"), yes, "refused"}, {[]any{true}, yes, "refused"}, {[]any{}, flag{}, "refused"},
		{"", flag{}, "missing"}, {nil, flag{}, "missing"}, {map[string]any{}, flag{}, "missing"}, {map[string]any{"primary": nil}, flag{}, "missing"},
		{nil, no, "false"}, {"", yes, "true"}, {map[string]any{}, yes, "true"}, {map[string]any{"other": false}, yes, "true"},
		{map[string]any{"Primary": false}, yes, "false"}, {map[string]any{"Primary": map[string]any{}}, yes, "refused"},
	} {
		got, err := flagOf("primary", c.body, c.query)
		result := fmt.Sprint(got)
		switch {
		case err != nil && strings.Contains(err.Error(), "missing"):
			result = "missing"
		case err != nil:
			result = "refused"
		}
		if result != c.want {
			t.Errorf("%#v in the body and %v in the query are %s, want %s", c.body, c.query, result, c.want)
		}
	}
}

// TestEffects: every route that changes something declares effects, and the names of operations
// that settings had before lead to the same ones.
func TestEffects(t *testing.T) {
	routes := slices.Concat(New(nil, nil, nil, nil, Rules{Local: "realsts"}).Routes(), DeviceRoutes(nil), PolicyRoutes(nil, "ru"), PasskeyRoutes(nil), ApprovalRoutes(nil))
	some := 0
	for _, r := range routes {
		effects, declared := r.PossibleEffects()
		if r.Method != http.MethodGet && !declared {
			t.Errorf("%s declares no effects", r.Name)
		}
		if named, _ := effect.OfOperation(r.Name); r.Method != http.MethodGet && named != effects {
			t.Errorf("%s has the effects %s, and its name leads to %s", r.Name, effects, named)
		}
		if effects != effect.None {
			some++
		}
	}
	if some < 50 {
		t.Errorf("only %d routes have effects", some)
	}
	for _, name := range effect.Names() {
		if e, known := effect.Named(name); !known || e.String() != name {
			t.Errorf("%s is %s", name, e)
		}
	}
}
