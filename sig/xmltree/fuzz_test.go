// SPDX-License-Identifier: Apache-2.0

package xmltree

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func seeds(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.xml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no corpus: %v", err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for i := range uint64(10) {
		f.Add(generate(i))
	}
}

// FuzzParse checks that Parse does not panic and that the tree describes the document: nodes are
// inside each other, spans are right, and splicing nothing gives back the document.
func FuzzParse(f *testing.F) {
	seeds(f)
	for _, d := range malformed {
		f.Add([]byte(d))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		tree, err := Parse(document, Options{AllowDoctype: true, Size: 1 << 20})
		if err != nil {
			var e *SyntaxError
			if !errors.As(err, &e) || e.Line < 1 || e.Column < 1 {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		var edits []Edit
		for n := Document + 1; int(n) < tree.Len(); n++ {
			s, p := tree.Span(n), tree.Span(tree.Parent(n))
			if s.Start >= s.End || s.Start < p.Start || s.End > p.End || !tree.Contains(tree.Parent(n), n) {
				t.Fatalf("node %d at %v is not inside its parent at %v", n, s, p)
			}
			if next := tree.NextSibling(n); next != None && tree.Span(next).Start < s.End {
				t.Fatalf("node %d ends at %d, after its sibling's start %d", n, s.End, tree.Span(next).Start)
			}
			tree.StringValue(n)
			if tree.Kind(n) != KindElement {
				continue
			}
			for _, part := range []Span{tree.StartTag(n), tree.EndTag(n), tree.Content(n)} {
				if part.Start > part.End || part.Start < s.Start || part.End > s.End {
					t.Fatalf("part %v outside of its element %v", part, s)
				}
			}
			for a := range tree.Attributes(n) {
				tree.Value(a)
				if tree.OwnerOf(a) != n {
					t.Fatalf("attribute %d belongs to %d, not to %d", a, n, tree.OwnerOf(a))
				}
				v := tree.ValueSpan(a)
				edits = append(edits, Edit{v, string(tree.Slice(v))})
			}
		}
		// Replace every attribute value by itself.
		s, err := tree.Splice(edits...)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(s.Bytes(), document) {
			t.Fatalf("round trip:\n got %q\nwant %q", s.Bytes(), document)
		}
	})
}

// FuzzCanonical checks that a canonical form can be parsed and is its own canonical form.
func FuzzCanonical(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, document []byte) {
		tree, err := Parse(document, Options{AllowDoctype: true, Size: 1 << 16})
		if err != nil {
			return
		}
		for _, m := range []Method{{C14N10, true, nil}, {C14N11, false, nil}, {Exclusive, true, nil}, {Exclusive, true, []string{"a", "#default"}}} {
			var once, twice bytes.Buffer
			if err := tree.All().Canonicalize(&once, m); err != nil {
				if !errors.Is(err, ErrRelativeNamespace) {
					t.Fatal(err)
				}
				return
			}
			again, err := Parse(once.Bytes(), Options{})
			if err != nil {
				t.Fatalf("%v in the canonical form %q of %q", err, &once, document)
			}
			if err := again.All().Canonicalize(&twice, m); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(once.Bytes(), twice.Bytes()) {
				t.Fatalf("%+v of %q:\n once %q\ntwice %q", m, document, &once, &twice)
			}
		}
	})
}

// FuzzXPath checks that every expression ends without a panic.
func FuzzXPath(f *testing.F) {
	for _, s := range []string{"not(ancestor-or-self::a:b)", "count(//a|here()) = 1", "@x='1' or .//text()[2]", "/", "self::node()[. < 5]/..", "name(//*) != string()"} {
		f.Add(s)
	}
	document := generate(11)
	f.Fuzz(func(t *testing.T, expression string) {
		tree := mustParse(t, document)
		x, err := tree.CompileXPath(expression, tree.Root())
		if err != nil {
			return
		}
		if err := tree.All().FilterXPath(x); err != nil && !errors.Is(err, ErrLimit) {
			t.Fatal(err)
		}
	})
}
