// SPDX-License-Identifier: Apache-2.0

package xmltree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// Form is a canonical form.
type Form uint8

const (
	// C14N10 is Canonical XML 1.0 (W3C REC-xml-c14n-20010315).
	C14N10 Form = iota
	// C14N11 is Canonical XML 1.1 (W3C REC-xml-c14n11-20080502).
	C14N11
	// Exclusive is Exclusive XML Canonicalization 1.0 (REC-xml-exc-c14n-20020718).
	Exclusive
)

// Method is a canonical form with its parameters.
type Method struct {
	Form Form
	// Comments keeps the comments of the set.
	Comments bool
	// Prefixes is the InclusiveNamespaces PrefixList of the exclusive form. "#default" is
	// the default namespace. The other forms ignore it.
	Prefixes []string
}

// ErrRelativeNamespace reports that the document declares a namespace name that is a relative
// reference. Canonical XML must then fail (1.0, section 1.3).
var ErrRelativeNamespace = errors.New("xml: a relative namespace name has no canonical form")

// Canonicalize writes the canonical form of the set to w, in UTF-8, in chunks. It never writes
// a namespace node that is not in the set, and no such attribute except those of collectAttrs.
// libxml2 differs there in the exclusive form, and in line feeds next to a root element that is
// not in the set. The error is that of the writer, ErrRelativeNamespace or that of the tree's
// budget, which is charged for the output. After an error the output is incomplete.
func (s *NodeSet) Canonicalize(w io.Writer, m Method) error {
	t := s.t
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	c := &canon{
		s: s, t: t, m: m, out: output{w: w, budget: t.budget, buf: (*buf)[:0]},
		scope:  make([]uint32, len(t.prefixes)),
		origin: make([]Attr, len(t.prefixes)),
		shown:  make([]uint32, len(t.prefixes)),
	}
	if err := t.budget.Spend(int64(len(t.prefixes) * (1 + len(m.Prefixes)/4))); err != nil {
		return err
	}
	for i := range c.origin {
		c.origin[i] = NoAttr
	}
	if m.Form == Exclusive {
		c.listed = make([]bool, len(t.prefixes))
		for i, p := range t.prefixes {
			c.listed[i] = slices.Contains(m.Prefixes, p) && p != "" || p == "" && slices.Contains(m.Prefixes, "#default")
		}
	}
	return c.run()
}

// buffers are the buffers of canonical forms. A signature needs several, and they were a third of
// what it took from the heap.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, chunk+1024); return &b }}

// canon walks a node set in document order. It has its own stack of open elements and does not
// recurse.
type canon struct {
	s   *NodeSet
	t   *Tree
	m   Method
	out output

	// Indexed by prefix: the namespace name in scope, the declaration it comes from, and
	// the name that the nearest output ancestor has (in the exclusive form, the nearest
	// that visibly utilizes it).
	scope  []uint32
	origin []Attr
	shown  []uint32
	listed []bool // exclusive: in the PrefixList
	// active has the prefixes that are declared in scope.
	active []uint32
	undo   []change
	open   []frame
	// xml has the xml: attributes of the open elements, outermost first.
	xml []xmlAttr

	due    int64       // steps not yet charged to the budget of the tree
	spaces []declared  // to write on this element
	attrs  []rendition // and attributes
}

// change is what must be restored when an element is left.
type change struct {
	prefix uint32
	value  uint32 // of scope or shown
	origin Attr
	scope  bool // of scope and origin, otherwise of shown
}

// frame is an open element.
type frame struct {
	n      Node
	in     bool
	clean  bool // the element is in the set with all its namespace nodes
	undo   int
	xml    int
	active int
}

type xmlAttr struct {
	a     Attr
	depth int // index of its element in open
}

// declared is a namespace declaration to write.
type declared struct{ prefix, uri uint32 }

// rendition is an attribute to write, of the element or inherited. If its value was computed,
// made is true.
type rendition struct {
	a     Attr
	value string
	made  bool
}

func (c *canon) run() error {
	t, s := c.t, c.s
	if s.low == s.high {
		return nil
	}
	// Elements above the set are not written, but their declarations are in scope.
	var above []Node
	for n := t.Parent(s.low); n > Document; n = t.Parent(n) {
		above = append(above, n)
	}
	for _, n := range slices.Backward(above) {
		if err := c.enter(n, false); err != nil {
			return err
		}
	}
	for n := s.low; n < s.high; n++ {
		for len(c.open) > 0 && t.nodes[c.open[len(c.open)-1].n].next <= int32(n) {
			c.leave()
		}
		if err := c.spend(1); err != nil {
			return err
		}
		in := s.Has(n)
		switch t.Kind(n) {
		case KindElement:
			if err := c.enter(n, in); err != nil {
				return err
			}
			if err := c.startTag(n, in); err != nil {
				return err
			}
		case KindText:
			if in {
				c.out.text(t, n)
			}
		case KindComment, KindPI:
			if in && (t.Kind(n) == KindPI || c.m.Comments) {
				c.aside(n)
			}
		}
		if c.out.err != nil {
			return c.out.err
		}
	}
	for len(c.open) > 0 {
		c.leave()
	}
	if err := c.out.flush(); err != nil {
		return err
	}
	return c.settle()
}

// aside writes a comment or processing instruction. Outside the root element each has a line of
// its own.
func (c *canon) aside(n Node) {
	t := c.t
	outside := t.Parent(n) == Document
	if outside && n > t.root {
		c.out.string("\n")
	}
	if t.Kind(n) == KindComment {
		c.out.string("<!--")
		foldTo(&c.out, t.text[int(t.nodes[n].start)+4:t.end(n)-3])
		c.out.string("-->")
	} else {
		c.out.string("<?")
		c.out.bytes(t.piTarget(n))
		if data := t.piData(n); len(data) > 0 {
			c.out.string(" ")
			foldTo(&c.out, data)
		}
		c.out.string("?>")
	}
	if outside && n < t.root {
		c.out.string("\n")
	}
}

// spend counts steps besides those for nodes and bytes.
func (c *canon) spend(n int) error {
	if c.due += int64(n); c.due < lookEvery {
		return nil
	}
	return c.settle()
}

// settle charges the counted steps to the budget of the tree.
func (c *canon) settle() error {
	n := c.due
	c.due = 0
	return c.t.budget.Spend(n)
}

// enter opens an element and adds its declarations and xml: attributes to the scope.
func (c *canon) enter(n Node, in bool) error {
	t := c.t
	c.open = append(c.open, frame{
		n: n, in: in, clean: in && c.s.spaces.has(uint32(n)),
		undo: len(c.undo), xml: len(c.xml), active: len(c.active),
	})
	from, to := t.attrsOf(n)
	for a := from; a < to; a++ {
		switch t.names[t.attrs[a].name].uri {
		case uriXML:
			c.xml = append(c.xml, xmlAttr{Attr(a), len(c.open) - 1})
		case uriXMLNS:
			p, uri := t.declaredPrefix(a), t.attrs[a].extra
			if p == prefixXML {
				continue
			}
			if t.relative[uri] {
				line, column := t.Position(int(t.attrs[a].start))
				return fmt.Errorf("%w: %.100q in line %d, column %d", ErrRelativeNamespace, t.uris[uri], line, column)
			}
			c.undo = append(c.undo, change{p, c.scope[p], c.origin[p], true})
			if c.origin[p] == NoAttr {
				c.active = append(c.active, p)
			}
			c.scope[p], c.origin[p] = uri, Attr(a)
		}
	}
	return nil
}

// leave closes the innermost element.
func (c *canon) leave() {
	f := c.open[len(c.open)-1]
	c.open = c.open[:len(c.open)-1]
	if f.in {
		c.out.string("</")
		c.name(c.t.nodes[f.n].label & nameMask)
		c.out.string(">")
	}
	for _, u := range slices.Backward(c.undo[f.undo:]) {
		if u.scope {
			c.scope[u.prefix], c.origin[u.prefix] = u.value, u.origin
		} else {
			c.shown[u.prefix] = u.value
		}
	}
	c.undo, c.xml, c.active = c.undo[:f.undo], c.xml[:f.xml], c.active[:f.active]
}

func (c *canon) name(number uint32) {
	m := &c.t.names[number]
	c.out.bytes(c.t.text[m.start : m.start+m.length])
}

// startTag writes the start tag of n, which has been entered. If the element is not in the set,
// it writes only the nodes of its namespace and attribute axes that are.
func (c *canon) startTag(n Node, in bool) error {
	t := c.t
	c.collectAttrs(n, in)
	if err := c.collectSpaces(n, in); err != nil {
		return err
	}
	orphan := len(c.open) > 1 && !c.open[len(c.open)-2].in
	if in && orphan && c.m.Form != Exclusive {
		if err := c.inherit(n); err != nil {
			return err
		}
	}
	if in {
		c.out.string("<")
		c.name(t.nodes[n].label & nameMask)
	}
	if len(c.spaces) > 1 {
		slices.SortFunc(c.spaces, func(a, b declared) int { return strings.Compare(t.prefixes[a.prefix], t.prefixes[b.prefix]) })
	}
	for _, d := range c.spaces {
		if d.prefix == prefixNone {
			c.out.string(` xmlns="`)
		} else {
			c.out.string(" xmlns:")
			c.out.string(t.prefixes[d.prefix])
			c.out.string(`="`)
		}
		WriteValue(&c.out, t.uris[d.uri])
		c.out.string(`"`)
		if err := c.spend(16 + len(t.prefixes[d.prefix]) + len(t.uris[d.uri])); err != nil {
			return err
		}
	}
	if len(c.attrs) > 1 {
		slices.SortFunc(c.attrs, c.compare)
	}
	for _, r := range c.attrs {
		c.out.string(" ")
		c.name(t.attrs[r.a].name)
		c.out.string(`="`)
		switch {
		case r.made:
			WriteValue(&c.out, r.value)
		case t.attrs[r.a].extra != 0:
			c.out.bytes(t.rawValue(uint32(r.a)))
		default:
			WriteValue(&c.out, t.Value(r.a))
		}
		c.out.string(`"`)
	}
	if in {
		c.out.string(">")
	}
	return nil
}

// compare orders attributes by namespace name, then by local name.
func (c *canon) compare(x, y rendition) int {
	a, b := &c.t.names[c.t.attrs[x.a].name], &c.t.names[c.t.attrs[y.a].name]
	c.due += 2
	if a.uri != b.uri {
		c.due += int64(min(len(c.t.uris[a.uri]), len(c.t.uris[b.uri])) / 32)
		return strings.Compare(c.t.uris[a.uri], c.t.uris[b.uri])
	}
	c.due += int64(min(a.length, b.length) / 32)
	return bytes.Compare(c.localPart(a), c.localPart(b))
}

func (c *canon) localPart(m *name) []byte {
	s := c.t.text[m.start : m.start+m.length]
	if m.prefixLength > 0 {
		s = s[m.prefixLength+1:]
	}
	return s
}

// collectAttrs collects the attributes of n that are in the set. In Canonical XML 1.1 it adds
// attributes of an element in the set that descendants inherit, even if they are not in the set,
// as every program of the W3C's interoperability round of 2007 does.
func (c *canon) collectAttrs(n Node, in bool) {
	c.attrs = c.attrs[:0]
	from, to := c.t.attrsOf(n)
	for a := from; a < to; a++ {
		if !c.t.isDeclaration(a) && (c.s.attrs.has(a) || in && c.m.Form == C14N11 && c.passedOn(a)) {
			c.attrs = append(c.attrs, rendition{a: Attr(a)})
		}
	}
}

// passedOn reports whether an attribute is xml:lang, xml:space or xml:base.
func (c *canon) passedOn(a uint32) bool {
	m := &c.t.names[c.t.attrs[a].name]
	if m.uri != uriXML {
		return false
	}
	local := string(c.localPart(m))
	return local == "lang" || local == "space" || local == "base"
}

// collectSpaces collects the namespace declarations to write on n.
func (c *canon) collectSpaces(n Node, in bool) error {
	c.spaces = c.spaces[:0]
	if !in && !c.s.anySpace(n) {
		return nil
	}
	// If n and its parent are in the set with all their namespace nodes, only the
	// declarations on n itself can differ from those of the parent.
	near := len(c.open) > 1 && c.open[len(c.open)-1].clean && c.open[len(c.open)-2].clean
	switch {
	case !near:
		each := 1
		if len(c.s.some) > 0 {
			each += len(c.s.some[n]) / 16
		}
		if err := c.spend(each * len(c.active)); err != nil {
			return err
		}
		for _, p := range c.active {
			if c.listed == nil || c.listed[p] {
				c.space(n, p, in)
			}
		}
	case c.t.nodes[n].label&flagScoped != 0:
		from, to := c.t.attrsOf(n)
		for a := from; a < to; a++ {
			if !c.t.isDeclaration(a) {
				continue
			}
			if p := c.t.declaredPrefix(a); p != prefixXML && (c.listed == nil || c.listed[p]) {
				c.space(n, p, in)
			}
		}
	}
	if c.listed == nil || !in {
		return nil
	}
	// Exclusive: what the element and its attributes in the set visibly utilize.
	c.utilized(n, c.t.names[c.t.nodes[n].label&nameMask].prefix)
	for _, r := range c.attrs {
		if p := c.t.names[c.t.attrs[r.a].name].prefix; p != prefixNone {
			c.utilized(n, p)
		}
	}
	return nil
}

func (c *canon) utilized(n Node, p uint32) {
	if p != prefixXML && !c.listed[p] {
		c.space(n, p, true)
	}
}

// space handles one prefix at n. It writes the namespace node if it is in the set and differs
// from that of the nearest output ancestor. It undeclares the default namespace if that
// ancestor has one and n has none.
func (c *canon) space(n Node, p uint32, in bool) {
	have := uint32(uriNone)
	if c.scope[p] != uriNone && c.s.hasSpace(n, c.origin[p]) {
		have = c.scope[p]
	}
	if have == c.shown[p] {
		return
	}
	if have != uriNone || in && p == prefixNone {
		c.spaces = append(c.spaces, declared{p, have})
	}
	if in {
		c.undo = append(c.undo, change{prefix: p, value: c.shown[p]})
		c.shown[p] = have
	}
}
