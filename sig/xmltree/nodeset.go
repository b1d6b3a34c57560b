// SPDX-License-Identifier: Apache-2.0

package xmltree

import (
	"io"
	"maps"
	"slices"
)

// Item is a node of the XPath data model: a Node, an attribute or a namespace
// node.
type Item struct {
	// Node is the node itself, or the element of an attribute or namespace node.
	Node Node
	// Attr is the attribute, or the declaration that gives the element this namespace
	// node. The declaration may be on an ancestor. Attr is NoAttr for a Node.
	Attr Attr
	// Namespace reports whether the item is a namespace node.
	Namespace bool
}

// NodeSet is a set of nodes of one tree. It has a bit for every node and attribute, and for every
// element one bit for all its namespace nodes. A separate list has the elements with only some
// namespace nodes in the set. The implied namespace node of the prefix xml is ignored, because no
// canonical form writes it. Document type declarations are never in a set.
type NodeSet struct {
	t     *Tree
	nodes bits
	attrs bits
	// spaces has the bit of an element if all its namespace nodes are in the set.
	spaces bits
	// some has the elements with only some namespace nodes in the set: at least one,
	// sorted. Such an element has no bit in spaces.
	some map[Node][]Attr
	// someSize is the number of bytes of some that were charged.
	someSize int64
	// [low, high) includes all nodes of the set, and the elements of all its attributes
	// and namespace nodes.
	low, high Node
}

// Empty returns the empty set.
func (t *Tree) Empty() *NodeSet {
	t.chargeSet()
	return &NodeSet{t: t, nodes: newBits(t.Len()), attrs: newBits(len(t.attrs)), spaces: newBits(t.Len())}
}

// chargeSet charges a new set to the budget. An error shows up when the set is used.
func (t *Tree) chargeSet() {
	size := t.setSize()
	t.budget.Spend(size / 64)
	t.budget.Hold(size)
}

// setSize is the number of bytes of the bits of a set.
func (t *Tree) setSize() int64 { return int64(2*t.Len()+len(t.attrs))/8 + 64 }

// Free gives the memory of the set back to the budget. The set must not be used afterwards.
func (s *NodeSet) Free() { s.t.budget.Release(s.t.setSize() + s.someSize); s.someSize = 0 }

// All returns the set of all nodes of the tree, comments included.
func (t *Tree) All() *NodeSet { return t.Subtree(Document) }

// Subtree returns the set of n and everything below it, with attributes, namespace nodes and
// comments.
func (t *Tree) Subtree(n Node) *NodeSet {
	s := t.Empty()
	s.Add(n)
	return s
}

// Tree returns the tree of the set.
func (s *NodeSet) Tree() *Tree { return s.t }

// Clone returns a copy of the set.
func (s *NodeSet) Clone() *NodeSet {
	s.t.chargeSet()
	c := *s
	c.someSize = 0
	c.nodes, c.attrs, c.spaces = slices.Clone(s.nodes), slices.Clone(s.attrs), slices.Clone(s.spaces)
	c.some = maps.Clone(s.some)
	return &c
}

// Has reports whether n is in the set.
func (s *NodeSet) Has(n Node) bool { return s.nodes.has(uint32(n)) }

// HasAttr reports whether the attribute a is in the set. It is false for a declaration, because
// namespace nodes belong to elements. See HasItem.
func (s *NodeSet) HasAttr(a Attr) bool {
	return s.attrs.has(uint32(a)) && !s.t.isDeclaration(uint32(a))
}

// HasItem reports whether any node of the XPath data model is in the set.
func (s *NodeSet) HasItem(i Item) bool {
	switch {
	case i.Namespace:
		return s.hasSpace(i.Node, i.Attr)
	case i.Attr != NoAttr:
		return s.HasAttr(i.Attr)
	}
	return s.Has(i.Node)
}

// hasSpace reports whether the namespace node of n from the declaration a is in the set.
func (s *NodeSet) hasSpace(n Node, a Attr) bool {
	if s.spaces.has(uint32(n)) {
		return true
	}
	if len(s.some) == 0 {
		return false
	}
	return slices.Contains(s.some[n], a)
}

// anySpace reports whether a namespace node of n may be in the set.
func (s *NodeSet) anySpace(n Node) bool {
	return s.spaces.has(uint32(n)) || len(s.some) > 0 && len(s.some[n]) > 0
}

// Add adds n and everything below it, with attributes and namespace nodes.
func (s *NodeSet) Add(n Node) {
	s.fill(n, true)
	if s.low == s.high {
		s.low, s.high = n, s.t.After(n)
	}
	s.low, s.high = min(s.low, n), max(s.high, s.t.After(n))
}

// Remove removes n and everything below it, with attributes and namespace nodes. The
// enveloped-signature transform does this to its Signature.
func (s *NodeSet) Remove(n Node) { s.fill(n, false) }

func (s *NodeSet) fill(n Node, on bool) {
	t := s.t
	from, to := uint32(n), uint32(t.After(n))
	t.budget.Spend(1 + int64(to-from)/64 + int64(len(s.some)))
	s.nodes.fill(from, to, on)
	s.spaces.fill(from, to, on)
	s.attrs.fill(t.firstAttr(n), t.firstAttr(t.After(n)), on)
	if on && n == Document {
		for c := range t.Children(Document) {
			if t.Kind(c) == KindDoctype {
				s.nodes.clear(uint32(c))
			}
		}
	}
	for m := range s.some {
		if t.Contains(n, m) {
			delete(s.some, m)
		}
	}
}

// RemoveComments removes all comments. The references URI="" and URI="#id" exclude them.
func (s *NodeSet) RemoveComments() {
	s.t.budget.Spend(int64(s.high-s.low) / 4)
	for n := s.low; n < s.high; n++ {
		if s.t.Kind(n) == KindComment {
			s.nodes.clear(uint32(n))
		}
	}
}

// Union adds the items of o, a set of the same tree.
func (s *NodeSet) Union(o *NodeSet) {
	s.combine(o, func(a, b uint64) uint64 { return a | b }, func(in, also bool) bool { return in || also })
	switch {
	case s.low == s.high:
		s.low, s.high = o.low, o.high
	case o.low != o.high:
		s.low, s.high = min(s.low, o.low), max(s.high, o.high)
	}
}

// Intersect removes the items that are not in o, a set of the same tree.
func (s *NodeSet) Intersect(o *NodeSet) {
	s.combine(o, func(a, b uint64) uint64 { return a & b }, func(in, also bool) bool { return in && also })
	s.low, s.high = max(s.low, o.low), min(s.high, o.high)
	if s.low >= s.high {
		s.low, s.high = 0, 0
	}
}

// Subtract removes the items of o, a set of the same tree.
func (s *NodeSet) Subtract(o *NodeSet) {
	s.combine(o, func(a, b uint64) uint64 { return a &^ b }, func(in, also bool) bool { return in && !also })
}

// combine joins two sets bit by bit. Elements with only some namespace nodes in either set are
// handled one by one.
func (s *NodeSet) combine(o *NodeSet, word func(a, b uint64) uint64, item func(in, also bool) bool) {
	if s.t != o.t {
		panic("xmltree: node sets of different trees")
	}
	s.t.budget.Spend(s.t.setSize() / 32)
	mixed := map[Node][]Attr{}
	for _, some := range []map[Node][]Attr{s.some, o.some} {
		for n := range some {
			var keep []Attr
			for _, a := range s.t.namespaces(n) {
				if item(s.hasSpace(n, a), o.hasSpace(n, a)) {
					keep = append(keep, a)
				}
			}
			mixed[n] = keep
			if s.t.budget.Hold(spaceSize+4*int64(len(keep))) != nil {
				return
			}
			s.someSize += spaceSize + 4*int64(len(keep))
		}
	}
	for i := range s.nodes {
		s.nodes[i] = word(s.nodes[i], o.nodes[i])
		s.spaces[i] = word(s.spaces[i], o.spaces[i])
	}
	for i := range s.attrs {
		s.attrs[i] = word(s.attrs[i], o.attrs[i])
	}
	for n, keep := range mixed {
		s.setSpaces(n, keep, len(s.t.namespaces(n)))
	}
}

// spaceSize is the size of an entry of NodeSet.some besides its list, in bytes.
const spaceSize = 64

// setSpaces sets the namespace nodes of n in the set to keep. n has count of them in total.
func (s *NodeSet) setSpaces(n Node, keep []Attr, count int) {
	delete(s.some, n)
	s.spaces.clear(uint32(n))
	switch {
	case len(keep) == count:
		s.spaces.set(uint32(n))
	case len(keep) > 0:
		if s.some == nil {
			s.some = map[Node][]Attr{}
		}
		s.some[n] = keep
		size := spaceSize + 4*int64(cap(keep))
		s.someSize += size
		s.t.budget.Hold(size)
	}
}

// namespaces returns the declarations that give n its namespace nodes, sorted: the nearest of
// each prefix, without undeclared ones and without xml.
func (t *Tree) namespaces(n Node) []Attr {
	if t.Kind(n) != KindElement {
		return nil
	}
	var all []Attr
	var seen map[uint32]bool
	cost := int64(0)
	defer func() { t.budget.Spend(cost) }()
	for ; n > Document; n = t.Parent(n) {
		cost++
		if t.nodes[n].label&flagScoped == 0 {
			continue
		}
		for a := range t.Declarations(n) {
			cost += 12
			p := t.declaredPrefix(uint32(a))
			if p == prefixXML || seen[p] {
				continue
			}
			if seen == nil {
				seen = map[uint32]bool{}
			}
			seen[p] = true
			if t.attrs[a].extra != uriNone {
				all = append(all, a)
			}
		}
	}
	slices.Sort(all)
	return all
}

// lookEvery is how many nodes a walk charges at once.
const lookEvery = 256

// Filter keeps the items of the set for which keep returns true. It stops at the first error of
// keep. It calls keep in document order: an element, its namespace nodes, its attributes, its
// children.
func (s *NodeSet) Filter(keep func(Item) (bool, error)) error {
	t := s.t
	var all []Attr // the declarations in scope at the element scoped
	scoped := None
	for n := s.low; n < s.high; n++ {
		if n%lookEvery == 0 || n == s.low {
			if err := t.budget.Spend(lookEvery); err != nil {
				return err
			}
		}
		i := uint32(n)
		element := t.Kind(n) == KindElement
		if s.nodes.has(i) {
			ok, err := keep(Item{Node: n, Attr: NoAttr})
			if err != nil {
				return err
			}
			if !ok {
				s.nodes.clear(i)
			}
		}
		if !element {
			continue
		}
		if s.anySpace(n) {
			near := n
			for near > Document && t.nodes[near].label&flagScoped == 0 {
				near = t.Parent(near)
			}
			if near != scoped {
				all, scoped = t.namespaces(near), near
				if err := t.budget.Err(); err != nil {
					return err
				}
			}
			var in []Attr
			for _, a := range all {
				if !s.hasSpace(n, a) {
					continue
				}
				ok, err := keep(Item{Node: n, Attr: a, Namespace: true})
				if err != nil {
					return err
				}
				if ok {
					in = append(in, a)
				}
			}
			s.setSpaces(n, in, len(all))
		}
		from, to := t.attrsOf(n)
		for a := from; a < to; a++ {
			if !s.attrs.has(a) || t.isDeclaration(a) {
				continue
			}
			ok, err := keep(Item{Node: n, Attr: Attr(a)})
			if err != nil {
				return err
			}
			if !ok {
				s.attrs.clear(a)
			}
		}
	}
	return nil
}

// WriteText writes the string values of the text nodes of the set in document order. The Base64
// transform decodes this text.
func (s *NodeSet) WriteText(w io.Writer) error {
	if err := s.t.budget.Spend(int64(s.high-s.low) + int64(len(s.t.text))/4); err != nil {
		return err
	}
	out := output{w: w}
	for n := s.low; n < s.high; n++ {
		if s.Has(n) && s.t.Kind(n) == KindText {
			s.t.textTo(&out, n)
		}
		if out.err != nil {
			return out.err
		}
	}
	return out.flush()
}
