// SPDX-License-Identifier: Apache-2.0

package xmltree

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// generator makes well-formed documents with many features that canonical forms depend on:
// prefixes declared again, undeclared defaults, attributes of several namespaces, references,
// CDATA, all line ends, and comments and instructions everywhere.
type generator struct {
	r     *rand.Rand
	b     strings.Builder
	depth int
}

func generate(seed uint64) []byte {
	g := &generator{r: rand.New(rand.NewPCG(seed, 7))}
	if g.r.IntN(2) == 0 {
		g.b.WriteString(g.pick(`<?xml version="1.0"?>`, `<?xml version='1.0' encoding='UTF-8'?>`, "<?xml version=\"1.0\" encoding=\"utf-8\" standalone='yes' ?>"))
	}
	g.aside()
	g.element(map[string]string{"": ""})
	g.aside()
	return []byte(g.b.String())
}

func (g *generator) pick(of ...string) string { return of[g.r.IntN(len(of))] }

func (g *generator) aside() {
	for range g.r.IntN(3) {
		g.b.WriteString(g.pick("<!-- note\r\n & < -->", "<?pi  some data\r ?>", "<?pi?>", "\n", " \r\n", "<!---->", "<?x-y ?>"))
	}
}

// testURIs are absolute and need no escaping: libxml2 does not escape an ampersand in a namespace
// name, so its output is not even well-formed.
var testURIs = []string{"urn:a", "urn:b", "urn:a:b", "http://www.w3.org/2000/09/xmldsig#", "http://example.org/?a=1;b=&apos;2&#39;", "URN:A"}

func (g *generator) element(scope map[string]string) {
	g.depth++
	defer func() { g.depth-- }()
	inner := map[string]string{}
	for p, u := range scope {
		inner[p] = u
	}
	var parts []string
	for _, p := range []string{"", "a", "b", "c", "ds", "я"} {
		if g.r.IntN(6) != 0 {
			continue
		}
		u := g.pick(testURIs...)
		if p == "" && g.r.IntN(3) == 0 {
			u = ""
		}
		inner[p] = u
		attr := "xmlns:" + p
		if p == "" {
			attr = "xmlns"
		}
		parts = append(parts, attr+g.quoted(u))
	}
	var bound []string
	for _, p := range []string{"", "a", "b", "c", "ds", "я"} {
		if _, ok := inner[p]; ok {
			bound = append(bound, p)
		}
	}
	used := map[string]bool{}
	for range g.r.IntN(5) {
		p, local := g.pick(bound...), g.pick("x", "y", "Id", "A", "a-b", "ж", "z.1")
		space := inner[p]
		if p == "" {
			space = ""
		}
		if used[space+" "+local] {
			continue
		}
		used[space+" "+local] = true
		if p != "" {
			local = p + ":" + local
		}
		if v := g.value(); g.r.IntN(4) == 0 {
			parts = append(parts, local+"='"+v+`"'`)
		} else {
			parts = append(parts, local+g.quoted(v))
		}
	}
	for _, x := range []string{"xml:lang", "xml:space", "xml:id", "xml:base"} {
		if g.r.IntN(12) == 0 {
			v := g.pick("ru", "en", "preserve", "../b/", "c", "http://example.org/d/e")
			if x == "xml:id" {
				v = fmt.Sprintf("id%d", g.b.Len())
			}
			if x == "xml:space" {
				v = "preserve"
			}
			parts = append(parts, x+g.quoted(v))
		}
	}
	g.r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	name := g.pick("r", "e", "Signature", "элемент")
	if p := g.pick(bound...); p != "" {
		name = p + ":" + name
	}
	g.b.WriteString("<" + name)
	for _, p := range parts {
		g.b.WriteString(g.pick(" ", "\n ", "  ", "\r\n", "\t") + p)
	}
	g.b.WriteString(g.pick("", "", " ", "\n"))
	if g.r.IntN(5) == 0 {
		g.b.WriteString("/>")
		return
	}
	g.b.WriteString(">")
	for range g.r.IntN(5) {
		switch {
		case g.r.IntN(2) == 0 && g.depth < 8:
			g.element(inner)
		default:
			g.b.WriteString(g.pick("text", "\r\n", "\r", "\n\t", "a&amp;b", "&lt;", "&gt;", ">", "&#13;", "&#x9;", "]]b", "\"'", "&quot;&apos;",
				"<![CDATA[<&>]]>", "<![CDATA[]]]]><![CDATA[>\r\n]]>", "<![CDATA[]]>", "<!-- c\r -->", "<?t d?>", "<?t?>", "Привет", "\U0001F600", "&#x1F600;", "&#1071;", "\u0085", "\u2028", "\uFFFD"))
		}
	}
	g.b.WriteString("</" + name + g.pick("", " ", "\n") + ">")
}

func (g *generator) value() string {
	var b strings.Builder
	for range g.r.IntN(4) {
		b.WriteString(g.pick("v", " ", "\t", "\n", "\r\n", "\r", "&#9;", "&#xA;", "&#xD;", "&amp;", "&lt;", ">", "&gt;", "&quot;", "&apos;", "Ж", "]]>", "a  b"))
	}
	return b.String()
}

// quoted returns ="value" with single or double quotes.
func (g *generator) quoted(v string) string {
	eq := g.pick("=", "=", " = ", "=\n")
	if g.r.IntN(2) == 0 {
		return eq + `"` + v + `"`
	}
	return eq + "'" + v + "'"
}
