// SPDX-License-Identifier: Apache-2.0

package xmltree

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"tamga/sig/budget"
)

var errHere = errors.New("xpath: here() is a node in the document of the signature, but the expression is applied to another document")

type valueKind uint8

const (
	isBool valueKind = iota
	isString
	isNumber
	isNodes
)

type value struct {
	kind valueKind
	b    bool
	s    string
	f    float64
	set  []Item // in document order, each once
}

// evaluation is the evaluation of one expression over one tree. It keeps the first error. After
// that all values are empty.
type evaluation struct {
	x   *XPath
	t   *Tree
	due int64 // steps not yet charged to the budget of the tree
	err error
	// spare has short lists for reuse. An expression needs several for each node.
	spare [][]Item
}

// list returns an empty list.
func (e *evaluation) list() []Item {
	if n := len(e.spare); n > 0 {
		l := e.spare[n-1]
		e.spare = e.spare[:n-1]
		return l
	}
	return make([]Item, 0, 8)
}

// reuse takes back a list that is no longer used.
func (e *evaluation) reuse(l []Item) {
	if cap(l) > 0 && cap(l) <= shortList && len(e.spare) < 64 {
		e.spare = append(e.spare, l[:0])
	}
}

func (x *XPath) over(t *Tree) *evaluation { return &evaluation{x: x, t: t} }

// spend counts n+1 steps.
func (e *evaluation) spend(n int) bool {
	if e.due += int64(n) + 1; e.due >= lookEvery {
		e.settle()
	}
	return e.err == nil
}

// settle charges the counted steps to the budget of the tree.
func (e *evaluation) settle() error {
	if err := e.t.budget.Spend(e.due); e.err == nil {
		e.err = err
	}
	e.due = 0
	return e.err
}

// itemSize is the size of an Item in a list, in bytes. Lists up to shortList are not charged,
// because there are never more of them than the expression has parts.
const itemSize, shortList = 12, 1 << 10

func (e *evaluation) hold(set []Item) bool {
	if cap(set) > shortList {
		if err := e.t.budget.Hold(itemSize * int64(cap(set))); e.err == nil {
			e.err = err
		}
	}
	return e.err == nil
}

func (e *evaluation) release(set []Item) {
	if cap(set) > shortList {
		e.t.budget.Release(itemSize * int64(cap(set)))
	}
}

// FilterXPath is the XPath filtering transform of XMLDSig (6.6.3). It evaluates x with each item of
// the set as context node, and keeps the items for which x is true.
func (s *NodeSet) FilterXPath(x *XPath) error {
	e := x.over(s.t)
	var last Item
	var verdict bool
	err := s.Filter(func(i Item) (bool, error) {
		if i.Namespace && last.Namespace && last.Node == i.Node && !x.perSpace {
			e.spend(0)
			return verdict, e.err
		}
		last, verdict = i, e.truth(x.root, i)
		return verdict, e.err
	})
	return cmp.Or(err, e.settle())
}

// Select evaluates the expression, which must be a node set, with the Document of t as context node.
// It returns the nodes in document order. XPath Filter 2.0 expands them to subtrees.
func (x *XPath) Select(t *Tree) ([]Item, error) {
	if !isSet(x.root) {
		return nil, &ErrXPath{Offset: 1, Text: "the expression must be a node set"}
	}
	e := x.over(t)
	v := x.root.eval(e, Item{Node: Document, Attr: NoAttr})
	return v.set, e.settle()
}

// truth is boolean(x).
func (e *evaluation) truth(x expr, at Item) bool {
	// Nearly every filter is made of paths of one step without predicates. They need
	// no list of nodes.
	if p, ok := x.(*path); ok && p.from == nil && !p.absolute && len(p.steps) == 1 && len(p.steps[0].filters) == 0 {
		found := false
		e.walk(p.steps[0].axis, at, func(i Item) bool {
			found = e.matches(&p.steps[0], i)
			return !found
		})
		return found
	}
	v := x.eval(e, at)
	ok := v.truth()
	e.reuse(v.set)
	return ok
}

func (v value) truth() bool {
	switch v.kind {
	case isString:
		return v.s != ""
	case isNumber:
		return v.f != 0 && !math.IsNaN(v.f)
	case isNodes:
		return len(v.set) > 0
	}
	return v.b
}

func (b *binary) eval(e *evaluation, at Item) value {
	if !e.spend(4) {
		return value{}
	}
	switch b.op {
	case "or":
		return value{b: e.truth(b.left, at) || e.truth(b.right, at)}
	case "and":
		return value{b: e.truth(b.left, at) && e.truth(b.right, at)}
	}
	left := b.left.eval(e, at)
	e.hold(left.set)
	right := b.right.eval(e, at)
	e.release(left.set)
	if b.op == "|" {
		set := slices.Concat(left.set, right.set)
		e.reuse(left.set)
		e.reuse(right.set)
		if !e.hold(set) {
			return value{kind: isNodes}
		}
		set = e.inOrder(set)
		e.release(set)
		return value{kind: isNodes, set: set}
	}
	return value{b: e.compare(b.op, left, right)}
}

func (c *constant) eval(*evaluation, Item) value { return c.v }

func (f *call) eval(e *evaluation, at Item) value {
	if !e.spend(2) {
		return value{}
	}
	switch f.name {
	case "true", "false":
		return value{b: f.name == "true"}
	case "not":
		return value{b: !e.truth(f.args[0], at)}
	case "boolean":
		return value{b: e.truth(f.args[0], at)}
	case "count":
		set := f.args[0].eval(e, at).set
		n := len(set)
		e.reuse(set)
		return value{kind: isNumber, f: float64(n)}
	case "here":
		if e.x.t != e.t || e.x.here < Document {
			e.err = cmp.Or(e.err, errHere)
			return value{kind: isNodes}
		}
		return value{kind: isNodes, set: []Item{{Node: e.x.here, Attr: NoAttr}}}
	case "string":
		if len(f.args) == 1 {
			return value{kind: isString, s: e.text(f.args[0].eval(e, at))}
		}
		return value{kind: isString, s: e.itemText(at)}
	}
	if len(f.args) == 1 {
		set := f.args[0].eval(e, at).set
		if len(set) == 0 {
			return value{kind: isString}
		}
		at = set[0]
	}
	if !e.spend(e.t.nameCost(at)) {
		return value{kind: isString}
	}
	return value{kind: isString, s: e.t.namePart(f.name, at)}
}

// nameCost returns the price of making a string of the name of an item.
func (t *Tree) nameCost(i Item) int {
	number := uint32(0)
	switch {
	case i.Attr != NoAttr:
		number = t.attrs[i.Attr].name
	case t.Kind(i.Node) == KindElement:
		number = t.nodes[i.Node].label & nameMask
	case t.Kind(i.Node) == KindPI:
		return 8 + t.Span(i.Node).Len()/32
	default:
		return 1
	}
	m := &t.names[number]
	return 8 + (int(m.length)+len(t.uris[m.uri]))/32
}

// namePart returns name(), local-name() or namespace-uri() of an item.
func (t *Tree) namePart(function string, i Item) string {
	var n Name
	switch {
	case i.Namespace:
		n.Local = t.declared(uint32(i.Attr))
	case i.Attr != NoAttr:
		n = t.AttrName(i.Attr)
	default:
		n = t.Name(i.Node)
	}
	switch function {
	case "name":
		return n.String()
	case "local-name":
		return n.Local
	}
	return n.Space
}

func (p *path) eval(e *evaluation, at Item) value {
	var set []Item
	switch {
	case p.from != nil:
		set = p.from.eval(e, at).set
		e.hold(set)
		set = e.filter(set, p.filters)
	case p.absolute:
		set = append(e.list(), Item{Node: Document, Attr: NoAttr})
	default:
		set = append(e.list(), at)
	}
	for i := range p.steps {
		s := &p.steps[i]
		next := e.list()
		for _, from := range set {
			if len(s.filters) == 0 {
				next = e.step(s, from, next)
			} else {
				found := e.step(s, from, e.list())
				next = e.grow(next, e.filter(found, s.filters))
				e.release(found)
				e.reuse(found)
			}
			if e.err != nil {
				return value{kind: isNodes}
			}
		}
		e.release(set)
		e.reuse(set)
		set = e.inOrder(next)
		if !e.spend(len(set)) {
			return value{kind: isNodes}
		}
	}
	e.release(set)
	return value{kind: isNodes, set: set}
}

// step appends the nodes of one step to a list whose memory is charged.
func (e *evaluation) step(s *step, from Item, list []Item) []Item {
	e.walk(s.axis, from, func(i Item) bool {
		if e.matches(s, i) {
			if len(list) == cap(list) {
				list = e.room(list, 1)
			}
			list = append(list, i)
			e.due++
		}
		return e.err == nil
	})
	return list
}

// grow appends items to a list whose memory is charged.
func (e *evaluation) grow(list, items []Item) []Item {
	if len(list)+len(items) > cap(list) {
		list = e.room(list, len(items))
	}
	e.due += int64(len(items))
	return append(list, items...)
}

// room makes space for n more items.
func (e *evaluation) room(list []Item, n int) []Item {
	grown := slices.Grow(list, n)
	e.release(list)
	e.hold(grown)
	return grown
}

// filter applies predicates. The order of set is that of the axis. The result uses the memory of
// set.
func (e *evaluation) filter(set []Item, filters []expr) []Item {
	for _, f := range filters {
		keep := set[:0]
		for k, i := range set {
			e.due++
			ok := false
			if _, isPath := f.(*path); isPath {
				ok = e.truth(f, i)
			} else if v := f.eval(e, i); v.kind == isNumber {
				ok = v.f == float64(k+1)
			} else {
				ok = v.truth()
			}
			if e.err != nil {
				return nil
			}
			if ok {
				keep = append(keep, i)
			}
		}
		set = keep
	}
	return set
}

// inOrder sorts by document order and removes duplicates. A node comes before its namespace nodes,
// and these before its attributes.
func (e *evaluation) inOrder(set []Item) []Item {
	if len(set) < 2 {
		return set
	}
	rank := func(i Item) int {
		switch {
		case i.Namespace:
			return 1
		case i.Attr != NoAttr:
			return 2
		}
		return 0
	}
	compare := func(a, b Item) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Attr, b.Attr))
	}
	e.due += int64(len(set))
	if !slices.IsSortedFunc(set, compare) {
		e.due += budget.Sorting(len(set), 2)
		slices.SortFunc(set, compare)
	}
	return slices.Compact(set)
}

// walk calls visit for the nodes of an axis, in its direction, until visit returns false.
func (e *evaluation) walk(axis string, from Item, visit func(Item) bool) {
	t := e.t
	aside := from.Attr != NoAttr // an attribute or namespace node
	go1 := func(n Node) bool { return e.spend(0) && visit(Item{Node: n, Attr: NoAttr}) }
	up := t.Parent(from.Node)
	if aside {
		up = from.Node
	}
	if strings.HasSuffix(axis, "self") && (!e.spend(0) || !visit(from)) {
		return
	}
	switch axis {
	case "parent":
		if up != None {
			go1(up)
		}
	case "ancestor", "ancestor-or-self":
		for n := up; n != None && go1(n); n = t.Parent(n) {
		}
	case "child":
		if !aside {
			for n := range t.Children(from.Node) {
				if t.Kind(n) != KindDoctype && !go1(n) {
					return
				}
			}
		}
	case "descendant", "descendant-or-self":
		for n := from.Node + 1; !aside && n < t.After(from.Node); n++ {
			if t.Kind(n) != KindDoctype && !go1(n) {
				return
			}
		}
	case "attribute":
		if !aside && t.Kind(from.Node) == KindElement {
			for a := range t.Attributes(from.Node) {
				if !e.spend(0) || !visit(Item{Node: from.Node, Attr: a}) {
					return
				}
			}
		}
	}
}

// matches reports whether an item passes the node test of a step. A name test matches only the
// principal kind of the axis: attributes on the attribute axis, elements elsewhere.
func (e *evaluation) matches(s *step, i Item) bool {
	t, n := e.t, &s.test
	if n.name {
		var number uint32
		switch {
		case i.Namespace:
			return false
		case i.Attr != NoAttr:
			if s.axis != "attribute" {
				return false
			}
			number = t.attrs[i.Attr].name
		case t.Kind(i.Node) != KindElement:
			return false
		default:
			number = t.nodes[i.Node].label & nameMask
		}
		e.due += int64(len(n.local) >> 6)
		switch {
		case n.anySpace:
			return true
		case n.local == "*":
			return t.uris[t.names[number].uri] == n.space
		}
		return t.nameIs(number, n.space, n.local)
	}
	if n.kind == KindDocument {
		return true // node()
	}
	if i.Attr != NoAttr || t.Kind(i.Node) != n.kind {
		return false
	}
	if n.target == "" {
		return true
	}
	e.due += int64(t.Span(i.Node).Len() >> 6)
	return string(t.piTarget(i.Node)) == n.target
}

// itemText returns the string value of an item.
func (e *evaluation) itemText(i Item) string {
	if i.Attr != NoAttr {
		a := &e.t.attrs[i.Attr]
		if !e.spend(int(a.end-a.start) / 2) {
			return ""
		}
		return e.t.Value(i.Attr)
	}
	// The start of the next node is a bound. Finding the end of an element costs more.
	nodes := e.t.nodes
	after := nodes[i.Node].next
	if !e.spend(int(nodes[after].start-nodes[i.Node].start)/2 + int(after) - int(i.Node)) {
		return ""
	}
	return e.t.StringValue(i.Node)
}

// text is string(v).
func (e *evaluation) text(v value) string {
	switch v.kind {
	case isString:
		return v.s
	case isNumber:
		return strconv.FormatFloat(v.f, 'f', -1, 64)
	case isNodes:
		if len(v.set) == 0 {
			return ""
		}
		return e.itemText(v.set[0])
	}
	return strconv.FormatBool(v.b)
}

// number is number(v).
func (e *evaluation) number(v value) float64 {
	switch v.kind {
	case isNumber:
		return v.f
	case isBool:
		if v.b {
			return 1
		}
		return 0
	}
	s := e.text(v)
	if !e.spend(len(s) / 2) {
		return math.NaN()
	}
	s = strings.Trim(s, " \t\r\n")
	if strings.Trim(s, "-.0123456789") != "" {
		return math.NaN() // Go accepts these but XPath does not: exponents, Inf, hex
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return math.NaN()
	}
	return f
}

// compare implements section 3.4 of XPath 1.0.
func (e *evaluation) compare(op string, a, b value) bool {
	if a.kind == isNodes && b.kind != isBool {
		for _, i := range a.set {
			if e.err != nil {
				return false
			}
			if e.compare(op, value{kind: isString, s: e.itemText(i)}, b) {
				return true
			}
		}
		return false
	}
	if b.kind == isNodes && a.kind != isBool {
		for _, i := range b.set {
			if e.err != nil {
				return false
			}
			if e.compare(op, a, value{kind: isString, s: e.itemText(i)}) {
				return true
			}
		}
		return false
	}
	if op == "=" || op == "!=" {
		var equal bool
		switch {
		case a.kind == isBool || b.kind == isBool:
			equal = a.truth() == b.truth()
		case a.kind == isNumber || b.kind == isNumber:
			x, y := e.number(a), e.number(b)
			equal = x == y
		default:
			equal = a.s == b.s
		}
		return equal == (op == "=")
	}
	if a.kind == isNodes {
		a = value{b: a.truth()}
	}
	if b.kind == isNodes {
		b = value{b: b.truth()}
	}
	x, y := e.number(a), e.number(b)
	switch op {
	case "<":
		return x < y
	case "<=":
		return x <= y
	case ">":
		return x > y
	}
	return x >= y
}
