// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tamga/internal/tamgatest"
)

// interfaceOperations reads the lists of operations: "METHOD address", with the base
// of the address in braces.
func interfaceOperations(t *testing.T) map[string]bool {
	t.Helper()
	lists, err := filepath.Glob("../../internal/web/umsapi/testdata/*.txt")
	if err != nil || len(lists) != 3 {
		t.Fatalf("the lists of user management are %v, %v", lists, err)
	}
	all := map[string]bool{}
	for _, name := range append(lists, "testdata/interface.list") {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			line, _, _ := strings.Cut(lines.Text(), "#")
			words := strings.Fields(strings.TrimPrefix(line, "+"))
			if len(words) == 0 {
				continue
			}
			if len(words) != 3 {
				t.Fatalf("%s: %q", name, lines.Text())
			}
			address := words[2]
			if strings.HasPrefix(address, "/") {
				address = "{idp_url}" + address
			}
			for method := range strings.SplitSeq(words[1], ",") {
				all[method+" "+strings.TrimSuffix(address, "/")] = true
			}
		}
		f.Close()
	}
	return all
}

// notServed reads the first table of "Not served" in docs/compatibility.md.
func notServed(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile("../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## Not served\n")
	if !ok {
		t.Fatal("docs/compatibility.md has no section Not served")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Z]+ \\{[^`]*)`").FindAllStringSubmatch(section, -1) {
		if rows[m[1]] {
			t.Errorf("%s is listed twice", m[1])
		}
		rows[m[1]] = true
	}
	return rows
}

// TestNotServed: each operation of the interface is either a route or in the table of
// what is not served, and each row of that table is an operation that answers 404.
func TestNotServed(t *testing.T) {
	t.Parallel()
	server := tamgatest.Start(t)
	token := server.Token()
	bases := strings.NewReplacer("{base_url}", server.Dev.BaseURL, "{idp_url}", server.Dev.IDPURL, "{document_store_url}", server.Dev.DocumentsURL,
		"{svs_url}", server.Dev.SVSURL, "{audit_url}", server.URL+"/Audit", "{host}", server.URL)
	value := regexp.MustCompile(`\{[A-Za-z]+\}`)

	var description struct {
		Paths map[string]map[string]any
	}
	response, err := http.Get(server.URL + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, text := tamgatest.ReadAll(t, response); json.Unmarshal(text, &description) != nil {
		t.Fatalf("%.300s", text)
	}
	served := map[string]bool{}
	for path, methods := range description.Paths {
		for method := range methods {
			served[strings.ToUpper(method)+" "+server.URL+value.ReplaceAllString(path, "{}")] = true
		}
	}

	all, listed := interfaceOperations(t), notServed(t)
	if len(all) < 170 || len(listed) == 0 {
		t.Fatalf("%d operations, %d of them listed as not served: something was not read", len(all), len(listed))
	}
	for _, o := range slices.Sorted(maps.Keys(all)) {
		if is := served[value.ReplaceAllString(bases.Replace(o), "{}")]; is == listed[o] {
			t.Errorf("%s: served %t, listed as not served %t", o, is, listed[o])
		}
	}
	for _, o := range slices.Sorted(maps.Keys(listed)) {
		if !all[o] {
			t.Errorf("%s is listed as not served and in no list of operations", o)
		}
		method, address, _ := strings.Cut(value.ReplaceAllString(bases.Replace(o), "e3d5b0c2-7d0f-4a57-9b85-0f1f9c3f8a11"), " ")
		if status, text := server.Do(t.Context(), method, address, token, strings.NewReader("{}")); status != 404 {
			t.Errorf("%s answers %d %.200s, want 404", o, status, text)
		}
	}
}
