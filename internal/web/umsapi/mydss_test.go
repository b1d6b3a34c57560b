// SPDX-License-Identifier: Apache-2.0

package umsapi

import (
	"bufio"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDeviceRoutesAreTheSpecification: every operation of the tables has its route,
// every route is an operation of the tables, and none is hidden by a route of the
// rest of the surface.
func TestDeviceRoutesAreTheSpecification(t *testing.T) {
	f, err := os.Open("testdata/devices.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var want, have []string
	paths := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) != 3 || words[0] == "#" {
			continue
		}
		for method := range strings.SplitSeq(words[1], ",") {
			path := strings.TrimSuffix(words[2], "/")
			want = append(want, words[0]+" "+method+" "+path)
			paths[method+" "+path] = strings.NewReplacer("{id}", "e3d5b0c2-7d0f-4a57-9b85-0f1f9c3f8a11", "{activeOnly}", "true", "{notification}", "True").Replace(path)
		}
	}
	if len(want) != 20 {
		t.Errorf("testdata/devices.txt has %d operations with their methods", len(want))
	}
	mux := http.NewServeMux()
	for _, r := range slices.Concat(DeviceRoutes(nil), New(nil, nil, nil, nil, Rules{Local: "realsts"}).Routes()) {
		mux.HandleFunc(r.Method+" "+r.Path, func(http.ResponseWriter, *http.Request) {})
		mux.HandleFunc(r.Method+" "+r.Path+"/{$}", func(http.ResponseWriter, *http.Request) {})
	}
	for _, r := range DeviceRoutes(nil) {
		have = append(have, r.Name+" "+r.Method+" "+r.Path)
		if r.Right != Operator {
			t.Errorf("%s has the right %q", r.Name, r.Right)
		}
	}
	slices.Sort(want)
	slices.Sort(have)
	if d := cmp.Diff(want, have); d != "" {
		t.Error(d)
	}
	for pattern, path := range paths {
		method, _, _ := strings.Cut(pattern, " ")
		for _, slash := range []string{"", "/"} {
			request, err := http.NewRequest(method, "http://host"+path+slash, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, got := mux.Handler(request); strings.TrimSuffix(got, "/{$}") != pattern {
				t.Errorf("%s %s%s arrives at %q", method, path, slash, got)
			}
		}
	}
}
