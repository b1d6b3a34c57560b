// SPDX-License-Identifier: Apache-2.0

package xmltree

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tamga/sig/budget"
)

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestW3C checks the examples of the specification.
func TestW3C(t *testing.T) {
	for name, comments := range map[string]bool{
		"3.1": false, "3.2": false, "3.3-expanded": false, "3.4-expanded": false, "3.5-expanded": false, "3.6": false,
		"3.1.comments": true,
	} {
		source, golden := name+".xml", name+".c14n"
		if comments {
			source, golden = strings.TrimSuffix(name, ".comments")+".xml", name
		}
		tree, err := Parse(read(t, "w3c/"+source), Options{AllowDoctype: true})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, form := range []Form{C14N10, C14N11} {
			got := canonical(t, tree.All(), Method{Form: form, Comments: comments})
			if diff := cmp.Diff(string(read(t, "w3c/"+golden)), got); diff != "" {
				t.Errorf("%s -want +got:\n%s", name, diff)
			}
		}
	}
	for _, name := range []string{"3.3", "3.4", "3.5", "3.7"} {
		if _, err := Parse(read(t, "w3c/"+name+".xml"), Options{AllowDoctype: true}); !errors.Is(err, ErrDoctype) {
			t.Errorf("%s with its internal subset: %v, want ErrDoctype", name, err)
		}
	}
}

// TestW3CSubset checks the example of section 3.7, whose node set is
//
//	(//. | //@* | //namespace::*)[self::ietf:e1 or (parent::ietf:e1 and
//	not(self::text() or self::e2)) or
//	count(id("E3")|ancestor-or-self::node())=count(ancestor-or-self::node())]
func TestW3CSubset(t *testing.T) {
	// The specification has e1 in the default namespace. An expression needs a
	// prefix for that.
	tree := mustParse(t, bytes.Replace(read(t, "w3c/3.7-expanded.xml"), []byte("<doc "), []byte(`<doc xmlns:ietf="http://www.ietf.org" `), 1))
	x, err := tree.CompileXPath(`self::ietf:e1 or (parent::ietf:e1 and not(self::text() or self::e2)) or
		count((//e3[@id="E3"])|ancestor-or-self::node())=count(ancestor-or-self::node())`, tree.Root())
	if err != nil {
		t.Fatal(err)
	}
	for form, want := range map[Form]string{
		C14N10: `<e1 xmlns="http://www.ietf.org" xmlns:ietf="http://www.ietf.org" xmlns:w3c="http://www.w3.org"><e3 xmlns="" id="E3" xml:space="preserve"></e3></e1>`,
		C14N11: `<e1 xmlns="http://www.ietf.org" xmlns:ietf="http://www.ietf.org" xmlns:w3c="http://www.w3.org"><e3 xmlns="" id="E3" xml:space="preserve"></e3></e1>`,
	} {
		set := tree.All()
		if err := set.FilterXPath(x); err != nil {
			t.Fatal(err)
		}
		if got := canonical(t, set, Method{Form: form}); got != want {
			t.Errorf("form %d:\n got %s\nwant %s", form, got, want)
		}
	}
}

// TestW3CBase checks example 3.8 of Canonical XML 1.1, and the cases on xml:base of the W3C's
// interoperability round of 2007 (xmlbase-prop-1 to 7 and xmlbase-c14n11spec3-103), with their
// node sets and expected forms.
func TestW3CBase(t *testing.T) {
	// The default attribute of the DTD of 3.8 is in the document, and id("E3") is a path.
	const example = `<doc xmlns="http://www.ietf.org" xmlns:w3c="http://www.w3.org" xml:base="something/else">
   <e1>
      <e2 xmlns="" xml:id="abc" xml:base="bar/" xml:space="preserve">
         <e3 id="E3" xml:base="foo"/>
      </e2>
   </e1>
</doc>`
	const bases = `<ietf:c14n11XmlBaseDoc1 xmlns:ietf="http://www.ietf.org" xmlns:w3c="http://www.w3.org" xml:base="http://xmlbase.example.org/xmlbase0/">
  <ietf:e1 xml:base="/xmlbase1/">
    <ietf:e11 xml:base="/xmlbase11/">
      <ietf:e111 xml:base="/xmlbase111/"/>
    </ietf:e11>
    <ietf:e12 at="2">
      <ietf:e121 xml:base="/xmlbase121/"/>
    </ietf:e12>
  </ietf:e1>
  <ietf:e2>
    <ietf:e21 xml:base="/xmlbase21/"/>
  </ietf:e2>
  <ietf:e3>
    <ietf:e31 at="3"/>
  </ietf:e3>
</ietf:c14n11XmlBaseDoc1>`
	const root = `<ietf:c14n11XmlBaseDoc1 xmlns:ietf="http://www.ietf.org" xmlns:w3c="http://www.w3.org" xml:base="http://xmlbase.example.org/xmlbase0/">` + "\n"
	const e1 = `>
    <ietf:e11 xml:base="/xmlbase11/">
      <ietf:e111 xml:base="/xmlbase111/"></ietf:e111>
    </ietf:e11>
    <ietf:e12 at="2">
      <ietf:e121 xml:base="/xmlbase121/"></ietf:e121>
    </ietf:e12>
  </ietf:e1>`
	const e3 = `>
    <ietf:e31 at="3"></ietf:e31>
  </ietf:e3>`
	at := func(path string) string {
		return ` xmlns:ietf="http://www.ietf.org" xmlns:w3c="http://www.w3.org" xml:base="http://xmlbase.example.org/` + path + `/"`
	}
	for _, c := range []struct{ document, xpath, want string }{
		{example, `self::ietf:e1 or (parent::ietf:e1 and not(self::text() or self::e2)) or count((//e3[@id="E3"])|ancestor-or-self::node()) = count(ancestor-or-self::node())`,
			`<e1 xmlns="http://www.ietf.org" xmlns:w3c="http://www.w3.org" xml:base="something/else"><e3 xmlns="" id="E3" xml:base="bar/foo" xml:space="preserve"></e3></e1>`},
		{bases, `ancestor-or-self::ietf:c14n11XmlBaseDoc1 and not(ancestor-or-self::ietf:e2)`,
			root + `  <ietf:e1 xml:base="/xmlbase1/"` + e1 + "\n  \n  <ietf:e3" + e3 + "\n</ietf:c14n11XmlBaseDoc1>"},
		{bases, `ancestor-or-self::ietf:e1`, `<ietf:e1` + at("xmlbase1") + e1},
		{bases, `ancestor-or-self::ietf:e11`, `<ietf:e11` + at("xmlbase11") + ">\n      <ietf:e111 xml:base=\"/xmlbase111/\"></ietf:e111>\n    </ietf:e11>"},
		{bases, `ancestor-or-self::ietf:e111`, `<ietf:e111` + at("xmlbase111") + `></ietf:e111>`},
		{bases, `ancestor-or-self::ietf:e21`, `<ietf:e21` + at("xmlbase21") + `></ietf:e21>`},
		{bases, `ancestor-or-self::ietf:e3`, `<ietf:e3` + at("xmlbase0") + e3},
		{bases, `ancestor-or-self::ietf:c14n11XmlBaseDoc1 and not(ancestor-or-self::ietf:e1 or ancestor-or-self::ietf:e2)`,
			root + "  \n  \n  <ietf:e3" + e3 + "\n</ietf:c14n11XmlBaseDoc1>"},
		// The attribute of a is not in the set, but every program wrote it.
		{"<a xml:base=\"foo/bar\">\n <b xml:base=\"..\">\n  <c xml:base=\"..\">\n   <d xml:base=\"x\">\n   </d>\n  </c>\n </b>\n</a>", `self::a or ancestor-or-self::d`,
			"<a xml:base=\"foo/bar\"><d xml:base=\"../../x\">\n   </d></a>"},
	} {
		tree := mustParse(t, []byte(c.document))
		// The expressions are in another document, where the prefix is declared.
		x, err := mustParse(t, []byte(`<x xmlns:ietf="http://www.ietf.org"/>`)).CompileXPath(c.xpath, 1)
		if err != nil {
			t.Fatal(err)
		}
		set := tree.All()
		if err := set.FilterXPath(x); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, canonical(t, set, Method{Form: C14N11})); diff != "" {
			t.Errorf("%s -want +got:\n%s", c.xpath, diff)
		}
	}
}

// TestExclusive checks the examples of Exclusive XML Canonicalization 1.0, section 2.2, and the
// other rules of its section 3.
func TestExclusive(t *testing.T) {
	const (
		one = `<n0:local xmlns:n0="foo:bar" xmlns:n3="ftp://example.org"><n1:elem2 xmlns:n1="http://example.net" xml:lang="en"><n3:stuff xmlns:n3="ftp://example.org"/></n1:elem2></n0:local>`
		two = `<n2:pdu xmlns:n1="http://example.com" xmlns:n2="http://foo.example" xml:lang="fr" xml:space="retain"><n1:elem2 xmlns:n1="http://example.net" xml:lang="en"><n3:stuff xmlns:n3="ftp://example.org"/></n1:elem2></n2:pdu>`
		def = `<a xmlns="urn:a" xmlns:p="urn:p" xmlns:q="urn:q"><b p:x="1"><c xmlns=""><q:d/></c></b></a>`
	)
	cases := []struct {
		document, element string
		m                 Method
		want              string
	}{
		{one, "elem2", Method{Form: C14N10}, `<n1:elem2 xmlns:n0="foo:bar" xmlns:n1="http://example.net" xmlns:n3="ftp://example.org" xml:lang="en"><n3:stuff></n3:stuff></n1:elem2>`},
		{two, "elem2", Method{Form: C14N10}, `<n1:elem2 xmlns:n1="http://example.net" xmlns:n2="http://foo.example" xml:lang="en" xml:space="retain"><n3:stuff xmlns:n3="ftp://example.org"></n3:stuff></n1:elem2>`},
		{one, "elem2", Method{Form: Exclusive}, `<n1:elem2 xmlns:n1="http://example.net" xml:lang="en"><n3:stuff xmlns:n3="ftp://example.org"></n3:stuff></n1:elem2>`},
		{two, "elem2", Method{Form: Exclusive}, `<n1:elem2 xmlns:n1="http://example.net" xml:lang="en"><n3:stuff xmlns:n3="ftp://example.org"></n3:stuff></n1:elem2>`},
		{one, "elem2", Method{Form: Exclusive, Prefixes: []string{"n0", "n3", "unknown"}}, `<n1:elem2 xmlns:n0="foo:bar" xmlns:n1="http://example.net" xmlns:n3="ftp://example.org" xml:lang="en"><n3:stuff></n3:stuff></n1:elem2>`},
		{def, "b", Method{Form: Exclusive}, `<b xmlns="urn:a" xmlns:p="urn:p" p:x="1"><c xmlns=""><q:d xmlns:q="urn:q"></q:d></c></b>`},
		{def, "d", Method{Form: Exclusive}, `<q:d xmlns:q="urn:q"></q:d>`},
		{def, "d", Method{Form: Exclusive, Prefixes: []string{"#default", "p"}}, `<q:d xmlns:p="urn:p" xmlns:q="urn:q"></q:d>`},
		{def, "b", Method{Form: Exclusive, Prefixes: []string{"#default"}}, `<b xmlns="urn:a" xmlns:p="urn:p" p:x="1"><c xmlns=""><q:d xmlns:q="urn:q"></q:d></c></b>`},
		{`<p:a xmlns="urn:a" xmlns:p="urn:p"><p:b/></p:a>`, "b", Method{Form: Exclusive, Prefixes: []string{"#default"}}, `<p:b xmlns="urn:a" xmlns:p="urn:p"></p:b>`},
	}
	for _, c := range cases {
		tree := mustParse(t, []byte(c.document))
		for n := Document; int(n) < tree.Len(); n++ {
			if tree.Name(n).Local != c.element || tree.Kind(n) != KindElement {
				continue
			}
			if got := canonical(t, tree.Subtree(n), c.m); got != c.want {
				t.Errorf("%+v of %s in %s:\n got %s\nwant %s", c.m, c.element, c.document, got, c.want)
			}
		}
	}
}

// TestInherited checks what a subtree inherits from its ancestors, which differs between 1.0 and
// 1.1.
func TestInherited(t *testing.T) {
	tree := mustParse(t, []byte(`<a xml:id="i" xml:base="http://example.org/x/" xml:lang="ru" xml:space="preserve" xml:other="o"><b xml:base="y/z" xml:lang="en"><c xml:base="../w"/><d/></b></a>`))
	want := map[string]map[Form]string{
		"c": {
			C14N10:    `<c xml:base="../w" xml:id="i" xml:lang="en" xml:other="o" xml:space="preserve"></c>`,
			C14N11:    `<c xml:base="http://example.org/x/w" xml:lang="en" xml:space="preserve"></c>`,
			Exclusive: `<c xml:base="../w"></c>`,
		},
		"d": {
			C14N10:    `<d xml:base="y/z" xml:id="i" xml:lang="en" xml:other="o" xml:space="preserve"></d>`,
			C14N11:    `<d xml:base="http://example.org/x/y/z" xml:lang="en" xml:space="preserve"></d>`,
			Exclusive: `<d></d>`,
		},
	}
	for local, forms := range want {
		for n := range tree.Find(Document, "", local) {
			for form, text := range forms {
				if got := canonical(t, tree.Subtree(n), Method{Form: form}); got != text {
					t.Errorf("form %d:\n got %s\nwant %s", form, got, text)
				}
			}
		}
	}
}

func TestJoinReferences(t *testing.T) {
	for _, c := range []struct{ base, ref, want string }{
		{"abc/", "../", ""},
		{"../", "..", "../../"},
		{"..", "..", "../../"},
		{"../..", "../", "../../../"},
		{"http://example.org/a/b", "c", "http://example.org/a/c"},
		{"http://example.org", "c", "http://example.org/c"},
		{"http://example.org/a/", "../../c", "http://example.org/c"},
		{"http://example.org/a/b?q", "", "http://example.org/a/b?q"},
		{"http://example.org/a/b?q#f", "?r", "http://example.org/a/b?r"},
		{"http://example.org/a", "//other/x//y", "http://other/x/y"},
		{"http://example.org/a", "urn:x", "urn:x"},
		{"a/b/", "./c/.", "a/b/c/"},
		{"/a/b", "/c", "/c"},
		{"a", "b", "b"},
	} {
		if got := joinReferences(c.base, c.ref); got != c.want {
			t.Errorf("%q + %q = %q, want %q", c.base, c.ref, got, c.want)
		}
	}
}

func TestCanonicalDetails(t *testing.T) {
	for document, want := range map[string]string{
		// An ampersand in a namespace name. libxml2 writes it unescaped.
		`<a xmlns="urn:a&amp;b&quot;&#9;"/>`:      `<a xmlns="urn:a&amp;b&quot;&#x9;"></a>`,
		"<a x='\r\n\t&#13;&#10;&#9;'/>":           `<a x="  &#xD;&#xA;&#x9;"></a>`,
		"<a>\r\n\r&#13;<![CDATA[\r\n<]]></a>":     "<a>\n\n&#xD;\n&lt;</a>",
		"<?p\r\n  d\r\n e?><a/><?p?>":             "<?p d\n e?>\n<a></a>\n<?p?>",
		"\xEF\xBB\xBF<a/>":                        "<a></a>",
		`<a xmlns:xml="` + NamespaceXML + `"/>`:   `<a></a>`,
		`<a xmlns="urn:a"><b xmlns="urn:a"/></a>`: `<a xmlns="urn:a"><b></b></a>`,
	} {
		if got := canonical(t, mustParse(t, []byte(document)).All(), Method{}); got != want {
			t.Errorf("%q:\n got %q\nwant %q", document, got, want)
		}
	}
	for _, form := range []Form{C14N10, C14N11, Exclusive} {
		for _, space := range []string{"foo", "../x", "#x", "1a:b", "foo/a:b"} {
			err := mustParse(t, []byte(`<a xmlns:p="`+space+`"/>`)).All().Canonicalize(&bytes.Buffer{}, Method{Form: form})
			if !errors.Is(err, ErrRelativeNamespace) {
				t.Errorf("namespace %q: %v, want ErrRelativeNamespace", space, err)
			}
		}
	}
}

// TestExpansion checks a set in which every element repeats hundreds of declarations.
func TestExpansion(t *testing.T) {
	var b strings.Builder
	b.WriteString("<a")
	for i := range 1000 {
		fmt.Fprintf(&b, ` xmlns:prefix%d="urn:a-rather-long-name-of-a-namespace:%d"`, i, i)
	}
	b.WriteString(">" + strings.Repeat("<b><c/></b>", 2000) + "</a>")
	tree := mustParse(t, []byte(b.String()))
	set := tree.All()
	if err := set.Filter(func(i Item) (bool, error) { return i.Namespace || tree.Is(i.Node, "", "c"), nil }); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := set.Canonicalize(&out, Method{}); !errors.Is(err, budget.ErrSteps) {
		t.Errorf("%v after %d bytes, want budget.ErrSteps", err, out.Len())
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }

func TestWriterError(t *testing.T) {
	tree := mustParse(t, ledger(200000))
	if err := tree.All().Canonicalize(brokenWriter{}, Method{}); err == nil || err.Error() != "broken" {
		t.Errorf("got %v", err)
	}
	if err := tree.All().WriteText(brokenWriter{}); err == nil || err.Error() != "broken" {
		t.Errorf("got %v", err)
	}
}
