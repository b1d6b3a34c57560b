// SPDX-License-Identifier: Apache-2.0

package xmltree

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/judge"
)

// -documents sets how many generated documents xmllint checks.
var generated = flag.Int("documents", 300, "generated documents to compare with xmllint")

var judged = []struct {
	option string
	form   Form
}{{"--c14n", C14N10}, {"--c14n11", C14N11}, {"--exc-c14n", Exclusive}}

func canonical(t testing.TB, s *NodeSet, m Method) string {
	t.Helper()
	var b bytes.Buffer
	if err := s.Canonicalize(&b, m); err != nil {
		t.Fatalf("%+v: %v", m, err)
	}
	return b.String()
}

func mustParse(t testing.TB, document []byte) *Tree {
	t.Helper()
	tree, err := Parse(document, Options{})
	if err != nil {
		t.Fatalf("%v in %q", err, document)
	}
	return tree
}

// TestCanonicalJudge compares the canonical forms of a corpus and of generated
// documents with libxml2.
func TestCanonicalJudge(t *testing.T) {
	lint := judge.XMLLint(t)
	var documents [][]byte
	files, err := filepath.Glob("testdata/corpus/*.xml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, b)
	}
	for seed := range *generated {
		documents = append(documents, generate(uint64(seed)))
	}
	for _, j := range judged {
		for start := 0; start < len(documents); start += 500 {
			part := documents[start:min(start+500, len(documents))]
			for i, want := range lint.Canonical(j.option, part...) {
				got := canonical(t, mustParse(t, part[i]).All(), Method{Form: j.form, Comments: true})
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Fatalf("%s of document %d, -xmllint +ours:\n%s\n%q", j.option, start+i, diff, part[i])
				}
			}
		}
	}
}
