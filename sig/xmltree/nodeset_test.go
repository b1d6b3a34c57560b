// SPDX-License-Identifier: Apache-2.0

package xmltree

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"tamga/sig/budget"
)

func TestSetOperations(t *testing.T) {
	tree := mustParse(t, []byte(`<a><b i="1"><c/>t<!-- c --></b><d xmlns:p="urn:p" j="2">u<e/></d></a>`))
	find := func(local string) Node {
		for n := range tree.Find(Document, "", local) {
			return n
		}
		t.Fatal(local)
		return None
	}
	show := func(s *NodeSet) string { return canonical(t, s, Method{Comments: true}) }
	a, b, d := find("a"), find("b"), find("d")

	s := tree.Subtree(a)
	s.Remove(b)
	if got := show(s); got != `<a><d xmlns:p="urn:p" j="2">u<e></e></d></a>` {
		t.Error(got)
	}
	s.Union(tree.Subtree(find("c")))
	if got := show(s); got != `<a><c></c><d xmlns:p="urn:p" j="2">u<e></e></d></a>` {
		t.Error(got)
	}
	s.Intersect(tree.Subtree(d))
	if got := show(s); got != `<d xmlns:p="urn:p" j="2">u<e></e></d>` {
		t.Error(got)
	}
	s.Union(tree.Subtree(b))
	s.RemoveComments()
	if got := show(s); got != `<b i="1"><c></c>t</b><d xmlns:p="urn:p" j="2">u<e></e></d>` {
		t.Error(got)
	}
	c := s.Clone()
	c.Subtract(tree.Subtree(d))
	if got := show(c); got != `<b i="1"><c></c>t</b>` {
		t.Error(got)
	}
	var out bytes.Buffer
	if err := s.WriteText(&out); err != nil || out.String() != "tu" {
		t.Errorf("%v %q", err, &out)
	}
	if got := show(tree.Empty()); got != "" {
		t.Error(got)
	}
	c.Intersect(tree.Subtree(d))
	if got := show(c); got != "" {
		t.Error(got)
	}
}

// TestSetsByItem compares the operations with their definition item by item, for random sets with
// only some namespace nodes of elements.
func TestSetsByItem(t *testing.T) {
	for seed := range uint64(60) {
		tree := mustParse(t, generate(seed))
		r := rand.New(rand.NewPCG(seed, 1))
		random := func() *NodeSet {
			s := tree.Empty()
			for range 1 + r.IntN(3) {
				s.Add(Node(r.IntN(tree.Len())))
			}
			if err := s.Filter(func(Item) (bool, error) { return r.IntN(3) > 0, nil }); err != nil {
				t.Fatal(err)
			}
			return s
		}
		a, b := random(), random()
		union, both, minus := a.Clone(), a.Clone(), a.Clone()
		union.Union(b)
		both.Intersect(b)
		minus.Subtract(b)
		count := 0
		err := tree.All().Filter(func(i Item) (bool, error) {
			count++
			x, y := a.HasItem(i), b.HasItem(i)
			if union.HasItem(i) != (x || y) || both.HasItem(i) != (x && y) || minus.HasItem(i) != (x && !y) {
				t.Errorf("seed %d: item %+v in a %v, in b %v: union %v, intersection %v, difference %v", seed, i, x, y, union.HasItem(i), both.HasItem(i), minus.HasItem(i))
			}
			return true, nil
		})
		if err != nil || count < tree.Len()-1 {
			t.Fatalf("%v after %d items", err, count)
		}
	}
}

func TestXPath(t *testing.T) {
	document := `<r xmlns="urn:d" xmlns:p="urn:p" xmlns:ds="urn:ds"><p:a Id="1">one<ds:Signature><ds:X/></ds:Signature></p:a><b xmlns="">two<!--c--><?pi data?><c n="5">5</c></b><ds:Signature Id="s"/></r>`
	tree := mustParse(t, []byte(document))
	here := tree.Root()
	for expression, want := range map[string]string{
		"not(ancestor-or-self::ds:Signature)":                                        `<r xmlns="urn:d" xmlns:ds="urn:ds" xmlns:p="urn:p"><p:a Id="1">one</p:a><b xmlns="">two<!--c--><?pi data?><c n="5">5</c></b></r>`,
		"ancestor-or-self::b":                                                        `<b xmlns:ds="urn:ds" xmlns:p="urn:p">two<!--c--><?pi data?><c n="5">5</c></b>`,
		"ancestor-or-self::c and not(self::text())":                                  `<c xmlns:ds="urn:ds" xmlns:p="urn:p" n="5"></c>`,
		"self::text() or self::comment()":                                            `onetwo<!--c-->5`,
		"self::p:* | self::ds:X":                                                     `<p:a><ds:X></ds:X></p:a>`,
		"self::*[name()='p:a']":                                                      `<p:a></p:a>`,
		"self::*[local-name()='a' and namespace-uri()='urn:p']":                      `<p:a></p:a>`,
		"self::*[@n=5] or self::text()[. = '5']":                                     `<c>5</c>`,
		"self::*[@Id != '1']":                                                        `<ds:Signature></ds:Signature>`,
		"count(ancestor::*) >= 2 and self::*":                                        `<ds:Signature><ds:X></ds:X></ds:Signature><c></c>`,
		"count(ancestor::node()[1]/self::*[local-name()='r']) = 1 and not(. = /*/b)": ` xmlns="urn:d" xmlns:ds="urn:ds" xmlns:p="urn:p"<p:a></p:a><ds:Signature></ds:Signature>`,
		"self::processing-instruction('pi')":                                         `<?pi data?>`,
		"self::node()[count(. | here()) = count(here())]":                            `<r></r>`,
		"true() and not(false()) and self::c":                                        `<c></c>`,
		"boolean(self::c) and string(self::c) = '5'":                                 `<c></c>`,
		`(1 < 2) = (2 > 1) and self::c and "a" != 'b' and 1.5 <= 2`:                  `<c></c>`,
	} {
		x, err := tree.CompileXPath(expression, here)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		set := tree.All()
		if err := set.FilterXPath(x); err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		if got := canonical(t, set, Method{Comments: true}); got != want {
			t.Errorf("%s:\n got %s\nwant %s", expression, got, want)
		}
	}
}

func TestXPathSelect(t *testing.T) {
	tree := mustParse(t, []byte(`<r xmlns:ds="urn:ds"><ds:S Id="1"><x><ds:S Id="2"/></x></ds:S><ds:S Id="3"/></r>`))
	x := None
	for n := range tree.Find(Document, "", "x") {
		x = n
	}
	for expression, want := range map[string]string{
		"/descendant::ds:S":                    "123",
		"//ds:S":                               "123",
		"//ds:S[1]":                            "12",
		"(//ds:S)[3]":                          "3",
		"here()/ancestor::ds:S[1]":             "1",
		"here()/ds:S | /r/ds:S[2]":             "23",
		"//*[@Id='2']/ancestor::ds:S":          "1",
		"//ds:S[@Id=3]/..//ds:S[not(.//ds:S)]": "23",
	} {
		p, err := tree.CompileXPath(expression, x)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		items, err := p.Select(tree)
		got := ""
		for _, i := range items {
			id, _ := tree.Get(i.Node, "Id")
			got += id
		}
		if err != nil || got != want {
			t.Errorf("%s: %q %v, want %q", expression, got, err, want)
		}
	}
	p, err := tree.CompileXPath("here()/ancestor::*", x)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Select(mustParse(t, []byte("<a/>"))); err == nil {
		t.Error("here() was evaluated over another document")
	}
}

func TestXPathRefused(t *testing.T) {
	tree := mustParse(t, []byte(`<r/>`))
	for expression, word := range map[string]string{
		"": "end of the expression", "document('x')": "document()", "id('x')": "id()", "position() = 1": "position()",
		"following::a": "following::", "preceding-sibling::a": "preceding-sibling::", "namespace::*": "namespace::",
		"a + 1": `'+'`, "$x": `'$'`, "p:a": `"p"`, "self::a)": `")"`, "'x": "literal", "count('a')": "node set", "count()": "count()",
		"'a' | self::a": "node sets", "not(1, 2)": "not()", "a[": "end of the expression", "1.2.3": "number", "'a'/b": `"/"`,
		"a mod 2": `"mod"`, "text('x')": `"x"`, "processing-instruction(x)": `"x"`, "self::": "end of the expression",
		strings.Repeat("(", 1000) + "a": "inside each other", strings.Repeat("not(", 1000): "inside each other", strings.Repeat(" ", 9000): "longer",
		strings.Repeat("a[", 1000): "inside each other",
	} {
		_, err := tree.CompileXPath(expression, tree.Root())
		var e *ErrXPath
		if !errors.As(err, &e) || !strings.Contains(e.Error(), word) || e.Offset < 1 {
			t.Errorf("%.40q: %v, want an error with %s", expression, err, word)
		}
	}
}

func TestXPathCost(t *testing.T) {
	tree := mustParse(t, []byte("<r>"+strings.Repeat("<a/>", 20000)+"</r>"))
	x, err := tree.CompileXPath("count(//a[count(//a) > 1]) > 1", tree.Root())
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.All().FilterXPath(x); !errors.Is(err, budget.ErrSteps) {
		t.Errorf("%v, want budget.ErrSteps", err)
	}
}
