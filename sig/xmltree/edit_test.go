// SPDX-License-Identifier: Apache-2.0

package xmltree

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf16"

	"golang.org/x/text/encoding/charmap"
)

// written returns a document in an encoding, with a declaration of the encoding.
func written(t testing.TB, encoding, content string) []byte {
	t.Helper()
	table := map[string]*charmap.Charmap{
		"windows-1251": charmap.Windows1251, "KOI8-R": charmap.KOI8R, "ISO-8859-5": charmap.ISO8859_5, "iso-8859-1": charmap.ISO8859_1,
	}[encoding]
	declared := `<?xml version="1.0" encoding="` + strings.TrimSuffix(encoding, " BOM") + `"?>` + content
	if table != nil {
		b, err := table.NewEncoder().Bytes([]byte(declared))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if !strings.HasPrefix(encoding, "UTF-16") {
		return []byte(declared)
	}
	var b []byte
	for _, u := range utf16.Encode([]rune(declared)) {
		if strings.Contains(encoding, "BE") {
			b = append(b, byte(u>>8), byte(u))
		} else {
			b = append(b, byte(u), byte(u>>8))
		}
	}
	if encoding == "UTF-16 BOM" {
		b = append([]byte{0xFF, 0xFE}, b...)
	}
	return b
}

// TestEncodings splices into a document of every encoding. The result must equal the document
// written with the new text, and all bytes outside must stay the same.
func TestEncodings(t *testing.T) {
	for encoding, letters := range map[string]string{
		"UTF-8": "Привет №😀", "windows-1251": "Привет №", "KOI8-R": "Привет", "ISO-8859-5": "Привет №", "iso-8859-1": "é\u0080", "us-ascii": "x",
		"UTF-16LE": "Привет 😀", "UTF-16BE": "Привет 😀", "UTF-16 BOM": "Привет 😀",
	} {
		before := `<a x="` + letters + `">` + letters + `<b/>` + letters + `<c x='1' >old</c >` + letters + `</a>`
		after := `<a x="` + letters + `">` + letters + `<b>` + letters + `</b>` + letters + `<c x='22' >` + letters + `<n/></c >` + letters + `<d/></a>`
		tree, err := Parse(written(t, encoding, before), Options{})
		if err != nil {
			t.Errorf("%s: %v", encoding, err)
			continue
		}
		a := tree.Root()
		b, c := tree.Child(a, "", "b"), tree.Child(a, "", "c")
		if x, _ := tree.Get(a, "x"); x != letters {
			t.Errorf("%s: value %q", encoding, x)
		}
		s, err := tree.Splice(
			tree.Append(a, "<d/>"), tree.SetContent(b, letters), tree.SetContent(c, letters), tree.Append(c, "<n/>"),
			Edit{Span: tree.ValueSpan(tree.Attribute(c, "", "x")), Text: "22"},
		)
		if err != nil {
			t.Errorf("%s: %v", encoding, err)
			continue
		}
		var out bytes.Buffer
		if n, err := s.WriteTo(&out); err != nil || n != s.Size() || n != int64(out.Len()) {
			t.Errorf("%s: wrote %d of %d: %v", encoding, n, s.Size(), err)
		}
		if want := written(t, encoding, after); !bytes.Equal(out.Bytes(), want) || !bytes.Equal(s.Bytes(), want) {
			t.Errorf("%s:\n got %q\nwant %q", encoding, out.Bytes(), want)
		}
		if s, err := tree.Splice(); err != nil || !bytes.Equal(s.Bytes(), tree.Original()) {
			t.Errorf("%s: without edits the document changed: %v", encoding, err)
		}
		// A character that the encoding does not have becomes a reference with the same meaning.
		s, err = tree.Splice(tree.SetContent(b, "\u4E2D"))
		if err != nil {
			t.Fatal(err)
		}
		again := mustParse(t, s.Bytes())
		if got := again.StringValue(again.Child(again.Root(), "", "b")); got != "\u4E2D" {
			t.Errorf("%s: inserted character reads %q", encoding, got)
		}
	}
}

func TestWrongEncodings(t *testing.T) {
	le := func(s string) string {
		var b strings.Builder
		for _, c := range s {
			b.WriteString(string([]byte{byte(c), byte(c >> 8)}))
		}
		return b.String()
	}
	for name, document := range map[string]string{
		"UTF-8 mark, other declared":   "\xEF\xBB\xBF<?xml version='1.0' encoding='windows-1251'?><a/>",
		"UTF-16 mark, UTF-8 declared":  "\xFF\xFE" + le("<?xml version='1.0' encoding='UTF-8'?><a/>"),
		"little-endian, big declared":  "\xFF\xFE" + le("<?xml version='1.0' encoding='UTF-16BE'?><a/>"),
		"UTF-16 without mark and name": le("<?xml version='1.0'?><a/>"),
		"odd number of bytes":          "\xFF\xFE" + le("<a/>") + " ",
		"half a pair":                  "\xFF\xFE" + le("<a>") + "\x00\xD8" + le("</a>"),
		"second half first":            "\xFF\xFE" + le("<a>") + "\x00\xDC\x00\xD8" + le("</a>"),
		"half a pair at the end":       "\xFF\xFE" + le("<a/>") + "\x00\xD8",
		"UTF-16 declared in ASCII":     "<?xml version='1.0' encoding='UTF-16'?><a/>",
		"ASCII with a high byte":       "<?xml version='1.0' encoding='us-ascii'?><a>\xC0</a>",
		"windows-1251 has no 98":       "<?xml version='1.0' encoding='windows-1251'?><a>\x98</a>",
		"windows-1251 without a word":  "<a>\xCF\xF0</a>",
		"UTF-32":                       "\xFF\xFE\x00\x00<\x00\x00\x00",
		"unknown":                      "<?xml version='1.0' encoding='shift_jis'?><a/>",
		"EBCDIC":                       "\x4C\x6F\xA7\x94",
	} {
		if _, err := Parse([]byte(document), Options{}); !errors.Is(err, ErrEncoding) {
			t.Errorf("%s: %v, want ErrEncoding", name, err)
		}
	}
}

func TestSpliceErrors(t *testing.T) {
	tree := mustParse(t, []byte(`<a>text</a>`))
	for _, edits := range [][]Edit{
		{{Span{3, 6}, ""}, {Span{5, 7}, ""}}, {{Span{-1, 2}, ""}}, {{Span{4, 3}, ""}}, {{Span{4, 100}, ""}},
	} {
		if s, err := tree.Splice(edits...); err == nil {
			t.Errorf("%v was accepted: %q", edits, s.Bytes())
		}
	}
	s, err := tree.Splice(Edit{Span{7, 7}, "1"}, Edit{Span{3, 3}, "x"}, Edit{Span{7, 7}, "2"}, Edit{Span{3, 7}, "y"})
	if err != nil || string(s.Bytes()) != "<a>xy12</a>" {
		t.Errorf("%v %q", err, s.Bytes())
	}
}

func TestSpans(t *testing.T) {
	tree := mustParse(t, []byte("<r><a:b  xmlns:a = 'urn:a' a:c = \"d>\" \n>x<!-- y --><e/><e  ></e\t></a:b\n ></r>"))
	text := func(s Span) string { return string(tree.Slice(s)) }
	b := tree.Child(tree.Root(), "urn:a", "b")
	e := tree.Child(b, "", "e")
	second := tree.NextSibling(e)
	c := tree.Attribute(b, "urn:a", "c")
	for got, want := range map[string]string{
		text(tree.StartTag(b)):    "<a:b  xmlns:a = 'urn:a' a:c = \"d>\" \n>",
		text(tree.EndTag(b)):      "</a:b\n >",
		text(tree.Content(b)):     "x<!-- y --><e/><e  ></e\t>",
		text(tree.AttrSpan(c)):    `a:c = "d>"`,
		text(tree.ValueSpan(c)):   "d>",
		text(tree.Span(e)):        "<e/>",
		text(tree.StartTag(e)):    "<e/>",
		text(tree.EndTag(second)): "</e\t>",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if tree.OwnerOf(c) != b || tree.EndTag(e).Len() != 0 || tree.Content(second).Len() != 0 || tree.IsEmptyTag(second) || !tree.IsEmptyTag(e) {
		t.Error("owner, empty tags or empty content are wrong")
	}
	if space, ok := tree.Space(e, "a"); !ok || space != "urn:a" {
		t.Errorf("prefix a at e: %q %v", space, ok)
	}
	if _, ok := tree.Space(tree.Root(), "a"); ok {
		t.Error("prefix a is bound at the root")
	}
}

// TestGraft checks that an element in a graft has the canonical form that it has in the whole
// document.
func TestGraft(t *testing.T) {
	const fragment = `<ds:S Id="s"><x a:y="1"/><b:z xmlns:b="urn:new"/></ds:S>`
	tree := mustParse(t, []byte(`<a:r xmlns:a="urn:a" xmlns:ds="urn:ds" xml:lang="ru"><b xmlns="urn:b" xml:base="x/"/><c/></a:r>`))
	for n := range tree.Find(Document, "urn:b", "b") {
		s, err := tree.Splice(tree.Append(n, fragment))
		if err != nil {
			t.Fatal(err)
		}
		whole := mustParse(t, s.Bytes())
		small, top, err := tree.Graft(n, []byte(fragment), Options{})
		if err != nil {
			t.Fatal(err)
		}
		found := None
		for m := range whole.Find(Document, "urn:ds", "S") {
			found = m
		}
		for _, form := range []Form{C14N10, C14N11, Exclusive} {
			got, want := canonical(t, small.Subtree(top), Method{Form: form}), canonical(t, whole.Subtree(found), Method{Form: form})
			if got != want {
				t.Errorf("form %d:\n got %s\nwant %s", form, got, want)
			}
		}
		for _, bad := range []string{"", "x", "<a/><b/>", "<a/> ", "</b><b>", "<u:a/>", "<a/></b></a:r><x/>"} {
			if _, _, err := tree.Graft(n, []byte(bad), Options{}); err == nil {
				t.Errorf("fragment %q was accepted", bad)
			}
		}
	}
}

func TestIDs(t *testing.T) {
	tree := mustParse(t, []byte(`<r xmlns:wsu="`+securityUtility+`" xmlns:p="urn:p" Id="r"><a ID="x"/><b id="x" Id="x"/><c xml:id="x"/><d wsu:Id="x"/><e p:Id="x" iD="x"/><f Id="y&#65;"/></r>`))
	var names []string
	for _, n := range tree.ByID("x") {
		names = append(names, tree.Name(n).Local)
	}
	if got := strings.Join(names, ""); got != "abcd" {
		t.Errorf("x is on %q, want abcd", got)
	}
	many := tree.ByIDs("r", "yA", "none")
	if len(many["r"]) != 1 || len(many["yA"]) != 1 || len(many["none"]) != 0 {
		t.Errorf("got %v", many)
	}
}

// TestSpansTile checks that the spans of the children fill the content of an element without gaps,
// and that each span begins and ends as its kind does.
func TestSpansTile(t *testing.T) {
	for seed := range uint64(400) {
		document := generate(seed)
		tree := mustParse(t, document)
		text := func(s Span) string { return string(tree.Slice(s)) }
		for n := tree.Root(); int(n) < tree.Len(); n++ {
			span := text(tree.Span(n))
			switch tree.Kind(n) {
			case KindComment:
				if !strings.HasPrefix(span, "<!--") || strings.Index(span, "-->") != len(span)-3 {
					t.Fatalf("comment %q in %q", span, document)
				}
			case KindPI:
				if !strings.HasPrefix(span, "<?") || strings.Index(span, "?>") != len(span)-2 {
					t.Fatalf("instruction %q in %q", span, document)
				}
			case KindElement:
				name := tree.Name(n).String()
				open, closing, content := text(tree.StartTag(n)), text(tree.EndTag(n)), tree.Content(n)
				if !strings.HasPrefix(open, "<"+name) || !strings.HasSuffix(open, ">") || !strings.HasPrefix(span, open) || !strings.HasSuffix(span, closing) ||
					tree.IsEmptyTag(n) != (closing == "") || closing != "" && strings.TrimRight(strings.TrimSuffix(closing, ">"), " \t\r\n") != "</"+name {
					t.Fatalf("element %q with tags %q and %q in %q", span, open, closing, document)
				}
				at := content.Start
				for c := range tree.Children(n) {
					if tree.Span(c).Start != at {
						t.Fatalf("%v begins at %d, not %d in %q", tree.Kind(c), tree.Span(c).Start, at, document)
					}
					at = tree.Span(c).End
				}
				if at != content.End {
					t.Fatalf("the children of %q end at %d, not %d in %q", span, at, content.End, document)
				}
				for a := range tree.Attributes(n) {
					if tree.OwnerOf(a) != n {
						t.Fatalf("%s is of node %d, not %d in %q", text(tree.AttrSpan(a)), tree.OwnerOf(a), n, document)
					}
				}
			}
		}
	}
}
