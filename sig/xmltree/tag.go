// SPDX-License-Identifier: Apache-2.0

package xmltree

import (
	"slices"
)

// startTag reads a start tag or an empty-element tag. It adds attributes as they come and resolves
// their namespaces at the end of the tag, when all its declarations are known.
func (p *parser) startTag() error {
	t, s, start := p.t, p.s, p.i
	if p.cur == Document && t.root != None {
		return p.fail(start, "a second root element: a document has exactly one")
	}
	if p.depth++; p.depth > p.o.Depth {
		return p.limit(start, "levels of elements inside each other", p.o.Depth)
	}
	i := p.nameEnd(start + 1)
	q, err := p.qname(start+1, i)
	if err != nil {
		return err
	}
	n, err := p.add(start, uint32(KindElement)<<kindShift)
	if err != nil {
		return err
	}
	first := len(t.attrs)
	for {
		at := i
		if i = skipSpace(s, i); i >= len(s) {
			return p.fail(start, "the start tag does not end")
		}
		if s[i] == '>' || s[i] == '/' {
			break
		}
		if i == at {
			return p.fail(i, "white space is missing between attributes, or this character is not allowed in a tag")
		}
		if len(t.attrs)-first >= p.o.Attributes {
			return p.limit(i, "attributes on one element", p.o.Attributes)
		}
		if len(t.nodes)+len(t.attrs) >= p.o.Nodes {
			return p.limit(i, "nodes and attributes", p.o.Nodes)
		}
		if err := p.pay(portion); err != nil {
			return err
		}
		if i, err = p.attribute(i); err != nil {
			return err
		}
	}
	empty := s[i] == '/'
	if empty {
		if i++; i >= len(s) || s[i] != '>' {
			return p.fail(i, "/ in a tag must be followed by >")
		}
	}
	p.i = i + 1
	if err := p.bind(n, q, first); err != nil {
		return err
	}
	if t.root == None {
		t.root = n
	}
	p.cur = n
	if empty {
		p.close()
	}
	return nil
}

// attribute reads name="value" at i and returns the offset after it. Until bind resolves the
// attribute, attr.name is the number of the name as written.
func (p *parser) attribute(start int) (end int, err error) {
	s := p.s
	i := p.nameEnd(start)
	q, err := p.qname(start, i)
	if err != nil {
		return 0, err
	}
	if i = skipSpace(s, i); i >= len(s) || s[i] != '=' {
		return 0, p.fail(i, "= is missing after the attribute %.40s", s[start:p.nameEnd(start)])
	}
	if i = skipSpace(s, i+1); i >= len(s) || s[i] != '"' && s[i] != '\'' {
		return 0, p.fail(i, "the value of the attribute %.40s must be in quotes", s[start:p.nameEnd(start)])
	}
	quote := s[i]
	canonical := uint32(1)
	for i++; ; {
		for i < len(s) && valueClass[s[i]] == plain {
			i++
		}
		if i >= len(s) {
			return 0, p.fail(start, "the value of the attribute does not end")
		}
		switch c := s[i]; valueClass[c] {
		case escape:
			canonical = 0
		case high:
			if isBMPNonChar(s[i:]) {
				return 0, p.badChar(i)
			}
		case bad:
			return 0, p.badChar(i)
		default:
			switch c {
			case quote:
				p.t.attrs = append(p.t.attrs, attr{uint32(start), uint32(i), q, canonical})
				return i + 1, nil
			case '"':
				canonical = 0
			case '<':
				return 0, p.fail(i, "< is not allowed in the value of an attribute; write &lt;")
			case '&':
				canonical = 0
				if i, err = p.reference(i); err != nil {
					return 0, err
				}
				continue
			}
		}
		i++
	}
}

// bind resolves the names of the element n, written as q, and its attributes.
func (p *parser) bind(n Node, q uint32, first int) error {
	t := p.t
	attrs := t.attrs[first:]
	if len(attrs) > 0 {
		t.nodes[n].label |= flagAttrs
	}
	for i := range attrs {
		e := &p.names.entries[attrs[i].name]
		if e.prefix == prefixXMLNS || string(p.s[e.start:e.start+e.length]) == "xmlns" {
			if err := p.declare(n, &attrs[i], e); err != nil {
				return err
			}
			t.nodes[n].label |= flagScoped
		}
	}
	e := p.names.entries[q]
	if e.prefix == prefixXMLNS {
		return p.fail(int(t.nodes[n].start)+1, "the prefix xmlns must not be used on an element")
	}
	number, err := p.inScope(q, e.prefix, int(t.nodes[n].start)+1)
	if err != nil {
		return err
	}
	t.nodes[n].label |= number
	for i := range attrs {
		a := &attrs[i]
		e := &p.names.entries[a.name]
		switch {
		case e.prefix == prefixXMLNS || e.prefix == prefixNone && string(p.s[e.start:e.start+e.length]) == "xmlns":
			a.name, err = p.resolve(a.name, uriXMLNS, int(a.start))
		case e.prefix == prefixNone:
			a.name, err = p.resolve(a.name, uriNone, int(a.start))
		default:
			a.name, err = p.inScope(a.name, e.prefix, int(a.start))
		}
		if err != nil {
			return err
		}
	}
	return p.unique(attrs)
}

// inScope resolves a name with the binding of its prefix at this place.
func (p *parser) inScope(q, prefix uint32, at int) (uint32, error) {
	uri := p.bound[prefix]
	if uri == unbound {
		return 0, p.fail(at, "the prefix %.40q is not declared", p.t.prefixes[prefix])
	}
	return p.resolve(q, uri, at)
}

// declare enters a namespace declaration (Namespaces in XML 1.0, 3 and 4).
func (p *parser) declare(n Node, a *attr, e *qname) error {
	at := int(a.start)
	value := p.s[valueStart(p.s, a.start+e.length):a.end]
	uri, err := p.uri(normalize(value), at)
	if err != nil {
		return err
	}
	prefix := e.local
	switch {
	case prefix == prefixXMLNS:
		return p.fail(at, "the prefix xmlns must not be declared")
	case (prefix == prefixXML) != (uri == uriXML):
		return p.fail(at, "the prefix xml must be bound to the namespace %s, and no other prefix may be", NamespaceXML)
	case uri == uriXMLNS:
		return p.fail(at, "the namespace %s must not be declared", NamespaceXMLNS)
	case uri == uriNone && prefix != prefixNone:
		return p.fail(at, "a prefix cannot be undeclared in Namespaces 1.0: the value must not be empty")
	}
	a.extra = uri
	p.undo = append(p.undo, binding{prefix, p.bound[prefix], n})
	p.bound[prefix] = uri
	return nil
}

// unique returns an error if two attributes have the same expanded name. Two declarations of the
// same prefix are such a pair too.
func (p *parser) unique(attrs []attr) error {
	if len(attrs) < 2 {
		return nil
	}
	p.keys = p.keys[:0]
	for i := range attrs {
		m := &p.t.names[attrs[i].name]
		p.keys = append(p.keys, uint64(m.uri)<<32|uint64(m.local))
	}
	twice := func(key uint64) error {
		second := false
		for i := range attrs {
			m := &p.t.names[attrs[i].name]
			if uint64(m.uri)<<32|uint64(m.local) == key {
				if second {
					return p.fail(int(attrs[i].start), "the attribute %.40s is there twice, by its name and namespace", p.s[attrs[i].start:attrs[i].start+m.length])
				}
				second = true
			}
		}
		return nil
	}
	if len(attrs) <= 12 {
		for i, k := range p.keys {
			if slices.Contains(p.keys[:i], k) {
				return twice(k)
			}
		}
		return nil
	}
	slices.Sort(p.keys)
	for i := 1; i < len(p.keys); i++ {
		if p.keys[i] == p.keys[i-1] {
			return twice(p.keys[i])
		}
	}
	return nil
}
