// SPDX-License-Identifier: Apache-2.0

package xmltree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"tamga/internal/judge"
	"tamga/sig/budget"
)

// malformed has documents that every conforming parser refuses.
var malformed = map[string]string{
	"empty":                      ``,
	"space only":                 " \n",
	"text only":                  `hello`,
	"no root":                    `<?xml version="1.0"?><!-- c -->`,
	"two roots":                  `<a/><b/>`,
	"text before root":           `x<a/>`,
	"text after root":            `<a/>x`,
	"CDATA outside":              `<a/><![CDATA[x]]>`,
	"reference outside":          `<a/>&#32;`,
	"unclosed":                   `<a><b></b>`,
	"crossed":                    `<a><b></a></b>`,
	"end without start":          `</a>`,
	"longer end tag":             `<a></ab>`,
	"end tag with attribute":     `<a></a x="1">`,
	"end of input in tag":        `<a x="1"`,
	"end of input in value":      `<a x="1`,
	"end of input in end tag":    `<a></a`,
	"double attribute":           `<a x="1" x="2"/>`,
	"same expanded name":         `<a xmlns:p="urn:a" xmlns:q="urn:a" p:x="1" q:x="2"/>`,
	"double declaration":         `<a xmlns:p="urn:a" xmlns:p="urn:b"/>`,
	"double default":             `<a xmlns="urn:a" xmlns="urn:b"/>`,
	"undeclared element prefix":  `<p:a/>`,
	"undeclared attr prefix":     `<a p:x="1"/>`,
	"prefix out of scope":        `<a><b xmlns:p="urn:p"/><p:c/></a>`,
	"empty prefix declaration":   `<a xmlns:p=""/>`,
	"rebound xml":                `<a xmlns:xml="urn:x"/>`,
	"xml namespace elsewhere":    `<a xmlns:p="http://www.w3.org/XML/1998/namespace"/>`,
	"xml namespace as default":   `<a xmlns="http://www.w3.org/XML/1998/namespace"/>`,
	"declared xmlns":             `<a xmlns:xmlns="urn:x"/>`,
	"xmlns namespace":            `<a xmlns:p="http://www.w3.org/2000/xmlns/"/>`,
	"element xmlns":              `<xmlns:a/>`,
	"two colons":                 `<a:b:c xmlns:a="urn:a"/>`,
	"colon first":                `<:a/>`,
	"colon last":                 `<a: xmlns:a="urn:a"/>`,
	"colon in target":            `<a/><?a:b c?>`,
	"digit after colon":          `<a:1 xmlns:a="urn:a"/>`,
	"digit first":                `<1a/>`,
	"dash first":                 `<-a/>`,
	"space before name":          `< a/>`,
	"times sign in name":         "<a\u00D7/>",
	"combining first":            "<\u0301a/>",
	"no equals":                  `<a x/>`,
	"no quotes":                  `<a x=1/>`,
	"no space between":           `<a x="1"y="2"/>`,
	"less in value":              `<a x="<"/>`,
	"bare ampersand":             `<a>a & b</a>`,
	"bare ampersand in value":    `<a x="&"/>`,
	"unknown entity":             `<a>&nbsp;</a>`,
	"unended reference":          `<a>&amp</a>`,
	"empty reference":            `<a>&#;</a>`,
	"empty hex reference":        `<a>&#x;</a>`,
	"capital X reference":        `<a>&#X20;</a>`,
	"surrogate reference":        `<a>&#xD800;</a>`,
	"zero reference":             `<a>&#0;</a>`,
	"control reference":          `<a>&#8;</a>`,
	"FFFE reference":             `<a>&#xFFFE;</a>`,
	"beyond Unicode":             `<a>&#x110000;</a>`,
	"overflowing reference":      `<a>&#x100000041;</a>`,
	"control character":          "<a>\x01</a>",
	"control in value":           "<a x='\x0B'/>",
	"control in comment":         "<a><!--\x02--></a>",
	"control in instruction":     "<a><?p \x02?></a>",
	"control in CDATA":           "<a><![CDATA[\x02]]></a>",
	"U+FFFF":                     "<a>\uFFFF</a>",
	"U+FFFE in value":            "<a x='\uFFFE'/>",
	"NUL":                        "<a>\x00</a>",
	"]]> in text":                `<a>x]]></a>`,
	"]]> after CDATA":            `<a><![CDATA[x]]>]]></a>`,
	"unended CDATA":              `<a><![CDATA[x]]</a>`,
	"lower case cdata":           `<a><![cdata[x]]></a>`,
	"dashes in comment":          `<a><!-- a -- b --></a>`,
	"comment ends in three":      `<a><!-- a ---></a>`,
	"unended comment":            `<a/><!-- a`,
	"short comment":              `<a/><!-->`,
	"unended instruction":        `<a/><?p`,
	"instruction xml":            `<a/><?xml version="1.0"?>`,
	"instruction XmL":            `<a/><?XmL x?>`,
	"space before declaration":   ` <?xml version="1.0"?><a/>`,
	"declaration without space":  `<?xml version="1.0"encoding="utf-8"?><a/>`,
	"declaration without end":    `<?xml version="1.0"><a/>`,
	"declaration out of order":   `<?xml encoding="utf-8" version="1.0"?><a/>`,
	"no version":                 `<?xml encoding="utf-8"?><a/>`,
	"standalone maybe":           `<?xml version="1.0" standalone="maybe"?><a/>`,
	"standalone before encoding": `<?xml version="1.0" standalone="yes" encoding="utf-8"?><a/>`,
	"second doctype":             `<!DOCTYPE a><!DOCTYPE a><a/>`,
	"doctype after root":         `<a/><!DOCTYPE a>`,
	"invalid UTF-8":              "<a>\xC3</a>",
	"overlong UTF-8":             "<a>\xC0\xAF</a>",
	"surrogate in UTF-8":         "<a>\xED\xA0\x80</a>",
	"slash alone":                `<a /x>`,
	"double slash":               `<a//>`,
	"lone less":                  `<a><</a>`,
	"lone less at end":           `<a/><`,
	"bang":                       `<a><!x></a>`,
	"bad declared encoding":      `<?xml version="1.0" encoding="no-such"?><a/>`,
	"UTF-16 declared, not used":  `<?xml version="1.0" encoding="UTF-16"?><a/>`,
}

func TestMalformed(t *testing.T) {
	var names []string
	var documents [][]byte
	for name, document := range malformed {
		for _, o := range []Options{{}, {AllowDoctype: true}} {
			tree, err := Parse([]byte(document), o)
			var e *SyntaxError
			if tree != nil || !errors.As(err, &e) || e.Line < 1 || e.Column < 1 || e.Text == "" {
				t.Errorf("%s: %q gives %v, want a *SyntaxError", name, document, err)
			}
		}
		names, documents = append(names, name), append(documents, []byte(document))
	}
	for i, ok := range judge.XMLLint(t).Accepts(documents...) {
		if ok {
			t.Errorf("%s: xmllint accepts it", names[i])
		}
	}
}

func TestWellFormed(t *testing.T) {
	documents := []string{
		`<a/>`, "\n<a/>", `<a></a >`, `<a x='"' y="'"/>`, `<_:a xmlns:_="urn:x"/>`,
		`<a xmlns:xml="http://www.w3.org/XML/1998/namespace" xml:lang="ru"/>`,
		`<a xmlns:p="urn:p"><p:a xmlns:p="urn:q" p:x="1" x="1"/></a>`,
		"<a\u00B7\u0301/>", "<\u0410\u0431\u0432/>", "<\U00010000/>", "<a>\uFFFD\U0010FFFF</a>", "<a>\x7F\u0080</a>",
		`<a>]]</a>`, `<a>]>]</a>`, `<a>&#x10FFFF;&#9;</a>`, `<a>&#0000000000000000000065;</a>`, `<a><!----><?p?><![CDATA[]]]]></a>`,
		`<a xmlns="urn:a"><b xmlns=""/></a>`, `<a x="&#60;&gt;"/>`, `<a x = "1"` + "\n" + `y='2' />`,
		`<?xml version='1.0' encoding='utf-8' standalone='no' ?><a/>`, `<?xml-stylesheet a?><a/>`,
		"\xEF\xBB\xBF<a/>", `<a><b xmlns:p="urn:p" p:c=""/><b xmlns:p="urn:q" p:c=""/></a>`,
	}
	var all [][]byte
	for _, d := range documents {
		all = append(all, []byte(d))
		if _, err := Parse([]byte(d), Options{}); err != nil {
			t.Errorf("%q: %v", d, err)
		}
	}
	for i, ok := range judge.XMLLint(t).Accepts(all...) {
		if !ok {
			t.Errorf("xmllint refuses %q", documents[i])
		}
	}
}

// TestMutations changes generated documents at random and compares with libxml2 whether they are
// still well-formed.
func TestMutations(t *testing.T) {
	lint := judge.XMLLint(t)
	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"<", ">", "/", "&", ";", "\"", "'", "=", ":", "!", "?", "-", "]", "]]>", "--", "<a>", "</a>", "x=''", "xmlns:a=''", "xmlns='urn:a'", " ", "\x01", "\xC3", "&#0;", "&#65;", "<!--", "-->", "1", "xml", "a:", "я"}
	refused := 0
	for range max(1, *generated/300) {
		var documents [][]byte
		for range 400 {
			d := generate(r.Uint64N(5000))
			// The XML declaration stays the same: libxml2 accepts version="1." and every
			// encoding name that iconv accepts.
			body := 0
			if bytes.HasPrefix(d, []byte("<?xml ")) {
				body = bytes.Index(d, []byte("?>")) + 2
			}
			for range 1 + r.IntN(2) {
				at := min(body+r.IntN(len(d)-body), len(d)-1)
				switch r.IntN(3) {
				case 0:
					d = append(d[:at:at], d[min(len(d), at+1+r.IntN(3)):]...)
				case 1:
					p := pieces[r.IntN(len(pieces))]
					d = bytes.Join([][]byte{d[:at], d[at:]}, []byte(p))
				default:
					p := pieces[r.IntN(len(pieces))]
					d = bytes.Join([][]byte{d[:at], d[min(len(d), at+len(p)):]}, []byte(p))
				}
			}
			if len(d) > 0 {
				documents = append(documents, d)
			}
		}
		for i, theirs := range lint.Accepts(documents...) {
			_, err := Parse(documents[i], Options{})
			if err != nil {
				refused++
			}
			if (err == nil) != theirs {
				t.Errorf("xmllint accepts: %v, we: %v\n%q", theirs, err, documents[i])
			}
		}
	}
	if refused == 0 {
		t.Error("no mutation was refused: the test proves nothing")
	}
}

func TestPositions(t *testing.T) {
	for document, want := range map[string]string{
		"<a>\n  <b></c>\n</a>":      "xml: line 2, column 6: </c> closes <b>: the names must be the same",
		"<a>\r\nя<\u0410 x='1'x=''": "xml: line 2, column 10: white space is missing between attributes, or this character is not allowed in a tag",
		"<a x='1'\n   x='2'/>":      "xml: line 2, column 4: the attribute x is there twice, by its name and namespace",
	} {
		_, err := Parse([]byte(document), Options{})
		if err == nil || err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", document, err, want)
		}
	}
}

func TestLimits(t *testing.T) {
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	cases := []struct {
		name     string
		document string
		o        Options
	}{
		{"depth", many(257, "<a%d>"), Options{}},
		{"attributes", "<a" + many(1025, " x%d=''") + "/>", Options{}},
		{"nodes", "<a>" + many(100, "<b%d/>") + "</a>", Options{Nodes: 100}},
		{"attributes as nodes", "<a" + many(100, " x%d=''") + "></a>", Options{Nodes: 100}},
		{"names", "<a>" + many(100, "<b%d/>") + "</a>", Options{Names: 100}},
		{"names by namespace", "<a>" + many(100, "<b xmlns='urn:%d'/>") + "</a>", Options{Names: 100}},
		{"prefixes", "<a" + many(100, " xmlns:p%d='urn:a'") + "/>", Options{Namespaces: 50}},
		{"namespace names", "<a>" + many(100, "<b xmlns='urn:%d'/>") + "</a>", Options{Namespaces: 50}},
		{"size", "<a>" + strings.Repeat("x", 100) + "</a>", Options{Size: 100}},
		{"size in UTF-8", "<?xml version='1.0' encoding='koi8-r'?><a>" + strings.Repeat("\xC0", 100) + "</a>", Options{Size: 200}},
	}
	for _, c := range cases {
		if _, err := Parse([]byte(c.document), c.o); !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v, want ErrLimit", c.name, err)
		}
	}
	deep := strings.Repeat("<a>", 100000) + strings.Repeat("</a>", 100000)
	tree, err := Parse([]byte(deep), Options{Depth: 100000})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := tree.All().Canonicalize(&b, Method{}); err != nil || b.String() != deep {
		t.Errorf("deep document: %v, %d bytes", err, b.Len())
	}
}

func TestDoctype(t *testing.T) {
	for document, allowed := range map[string]bool{
		`<!DOCTYPE a><a/>`:                                    true,
		`<!DOCTYPE a SYSTEM "a.dtd" ><a/>`:                    true,
		`<!DOCTYPE a PUBLIC '-//W3C//DTD' "a.dtd"><a/>`:       true,
		`<!DOCTYPE a [<!ENTITY x "y">]><a/>`:                  false,
		`<!DOCTYPE a SYSTEM "a.dtd" []><a/>`:                  false,
		`<!DOCTYPE a PUBLIC "x"><a/>`:                         false,
		`<!DOCTYPE a PUBLIC "{" "x"><a/>`:                     false,
		`<!DOCTYPE aSYSTEM"x"><a/>`:                           false,
		`<!DOCTYPE><a/>`:                                      false,
		`<!DOCTYPE a><a>&nbsp;</a>`:                           false,
		`<!DOCTYPE a [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>`: false,
	} {
		if _, err := Parse([]byte(document), Options{}); !errors.Is(err, ErrDoctype) {
			t.Errorf("%s: %v, want ErrDoctype", document, err)
		}
		tree, err := Parse([]byte(document), Options{AllowDoctype: true})
		if (err == nil) != allowed {
			t.Errorf("%s admitted: %v", document, err)
		}
		if err == nil {
			if got := canonical(t, tree.All(), Method{Comments: true}); got != "<a></a>" {
				t.Errorf("%s: canonical form %q", document, got)
			}
		}
	}
}

// TestNothingStays: names, prefixes and namespaces of one document mean nothing in the next one.
func TestNothingStays(t *testing.T) {
	const one, two = `<p:a xmlns:p="urn:p" b="1"/>`, `<q:b xmlns:q="urn:q" a="1"/>`
	canonical := func(text string) string {
		t.Helper()
		tree, err := Parse([]byte(text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := tree.All().Canonicalize(&out, Method{Form: Exclusive}); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	want := [2]string{canonical(one), canonical(two)}
	many := "<a"
	for i := range 300 {
		many += fmt.Sprintf(` xmlns:p%d="urn:%d" a%d=""`, i, i, i)
	}
	for range 3 {
		if got := [2]string{canonical(one), canonical(two)}; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		canonical(many + "/>")
		for _, text := range []string{`<p:a/>`, `<a q:b=""/>`, `<p0:a/>`} {
			if _, err := Parse([]byte(text), Options{}); err == nil {
				t.Errorf("%s is read", text)
			}
		}
	}
}

// The bytes of a document are paid for before they are decoded, which takes memory and time.
func TestParseSpendsBeforeItDecodes(t *testing.T) {
	document := []byte(`<?xml version="1.0" encoding="koi8-r"?><a>` + strings.Repeat("\xC1", 1000) + `</a>`)
	b := budget.New(context.Background(), budget.Limits{Steps: 900, Memory: 1 << 20})
	if _, err := Parse(document, Options{Budget: b}); !errors.Is(err, budget.ErrSteps) {
		t.Errorf("%v, want %v", err, budget.ErrSteps)
	}
	if b.Held() > 0 {
		t.Errorf("%d bytes are held for text that was not paid for", b.Held())
	}
}

// Nodes and attributes are paid for while they are read, so other work may come in between.
func TestParseSpendsAsItReads(t *testing.T) {
	// parse has steps for the bytes, and for a thousand nodes and attributes.
	parse := func(text string) error {
		l := budget.Limits{Steps: int64(len(text)) + 8_000, Memory: 64 << 20}
		_, err := Parse([]byte(text), Options{Budget: budget.New(context.Background(), l)})
		return err
	}
	for _, part := range []string{"<a/>", `<a b=""/>`, "<a " + strings.Repeat(" ", 10) + "/>t"} {
		begin, rest := "<d>"+strings.Repeat(part, 100), strings.Repeat(part, 10_000)+"</d>"
		if err := parse(begin + "<a b/>" + rest); !errors.As(err, new(*SyntaxError)) {
			t.Errorf("%s: %v, want a syntax error near the beginning", part, err)
		}
		if err := parse(begin + rest); !errors.Is(err, budget.ErrSteps) {
			t.Errorf("%s: %v, want %v", part, err, budget.ErrSteps)
		}
	}
	many := "<d"
	for i := range 5000 {
		many += fmt.Sprintf(` a%d=""`, i)
	}
	if err := parse(many + " b/>"); !errors.Is(err, budget.ErrSteps) {
		t.Errorf("one element: %v, want %v", err, budget.ErrSteps)
	}
}
