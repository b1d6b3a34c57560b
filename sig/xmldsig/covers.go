// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"fmt"
	"strconv"
	"strings"

	"tamga/sig"
	"tamga/sig/xmltree"
)

// extent is the set of elements that a reference covers.
type extent struct {
	tops []top
	// more reports that there are more tops than the list has.
	more bool
}

// top is an element that a reference covers, none of whose ancestors it covers.
type top struct {
	node xmltree.Node
	// full reports whether everything in the element is covered. Comments and Signature
	// elements do not count: every signature is checked on its own.
	full bool
	// what is put in front of the path, such as "a part of ", if the element is not
	// covered in full.
	what string
}

// Limits of the description of a signature.
const (
	maxTops     = 64 // elements that XPath selects, each checked
	maxPaths    = 4  // paths in a headline
	maxSteps    = 24 // of a path
	maxStepName = 40 // characters of a name in a path
)

// extentOf returns the extent of a reference to an element. selected is the last node set
// that its transforms returned, nil if there was none.
func (v *verification) extentOf(r *reference, to target, selected *xmltree.NodeSet) extent {
	var what string
	filtered := false
	for _, tr := range r.transforms {
		switch tr.algorithm {
		case algXPath, algFilter2:
			filtered = true
		case algBase64:
			what = "the text of "
		}
	}
	switch {
	case !filtered:
		return extent{tops: []top{{to.node, what == "", what}}}
	case what != "" || selected == nil || selected.Tree() != v.tree:
		// The selected nodes are of another tree, or only their text is covered.
		return extent{tops: []top{{to.node, false, "a part of "}}}
	}
	e := picked(v.tree, to.node, selected)
	if len(e.tops) == 0 { // attributes alone
		e.tops = []top{{to.node, false, "a part of "}}
	}
	return e
}

// picked returns the extent of a node set within a subtree.
func picked(t *xmltree.Tree, within xmltree.Node, set *xmltree.NodeSet) (e extent) {
	if t.Budget().Spend(8*int64(t.After(within)-within)) != nil {
		return extent{more: true} // the caller sees the error of the budget
	}
	var open []int // indexes in e.tops of the tops that contain the node
	missing := func() {
		for i := len(open) - 1; i >= 0 && e.tops[open[i]].full; i-- {
			e.tops[open[i]].full = false
			e.tops[open[i]].what = "a part of "
		}
	}
	signed := xmltree.Node(0) // the end of the Signature around the node
	for n, end := within, t.After(within); n < end; n++ {
		for len(open) > 0 && t.After(e.tops[open[len(open)-1]].node) <= n {
			open = open[:len(open)-1]
		}
		if n > within && n >= signed && t.Is(n, nsDS, "Signature") {
			signed = t.After(n)
		}
		kind := t.Kind(n)
		if !set.Has(n) {
			if n >= signed && kind != xmltree.KindComment {
				missing()
			}
			continue
		}
		if n == within || !set.Has(t.Parent(n)) {
			if len(e.tops) == maxTops {
				e.more = true
				missing() // the rest of the open tops is not examined
				break
			}
			one := top{node: n, full: true}
			if kind != xmltree.KindElement && kind != xmltree.KindDocument {
				one = top{t.Parent(n), false, "a part of "}
			}
			if last := len(e.tops) - 1; last < 0 || one.full || e.tops[last] != one {
				e.tops = append(e.tops, one)
				if one.full {
					open = append(open, len(e.tops)-1)
				}
			}
		}
		if n >= signed && kind == xmltree.KindElement {
			for a := range t.Attributes(n) {
				if !set.HasAttr(a) {
					missing()
				}
			}
		}
	}
	return e
}

// coverage gathers what the references of a signature cover.
type coverage struct {
	words []string       // for Signature.Covers
	paths []string       // for a headline
	own   []string       // paths of the signature's own parts
	full  []xmltree.Node // elements that are covered with all that is in them
	whole bool           // the whole document is covered
	// beside is how many references name files beside the document.
	beside int
}

// cover adds the extent of a reference to c.
func (v *verification) cover(c *coverage, r *reference, to target, e extent) {
	t, s := v.tree, v.sig
	for _, p := range e.tops {
		path := p.what + v.resolve.path(p.node)
		if t.Contains(s.node, p.node) && !v.isData(p.node) {
			c.own = append(c.own, path)
		} else {
			c.paths = append(c.paths, path)
		}
		if p.full {
			c.full = append(c.full, p.node)
			c.whole = c.whole || v.isWhole(p.node)
		}
	}
	if e.more {
		c.paths = append(c.paths, "more that XPath picks in "+v.resolve.path(to.node))
	}
	c.words = append(c.words, v.describe(r, to))
}

// isData reports whether an element inside the signature is signed data and not the
// signature's own key, properties or manifest.
func (v *verification) isData(n xmltree.Node) bool {
	o := v.objectAround(n)
	return o != xmltree.None && !isOwn(v.tree.Name(n).Space) && v.tree.Child(o, nsXAdES, "QualifyingProperties") == xmltree.None ||
		o == n && v.tree.Child(o, nsXAdES, "QualifyingProperties") == xmltree.None
}

// objectAround returns the Object of the signature that is n or contains n, or None.
func (v *verification) objectAround(n xmltree.Node) xmltree.Node {
	for _, o := range v.sig.objects {
		if v.tree.Contains(o, n) {
			return o
		}
	}
	return xmltree.None
}

// isOwn reports whether a namespace is one of the parts of signatures.
func isOwn(space string) bool {
	return space == nsDS || space == nsWSSE || strings.HasPrefix(space, "http://uri.etsi.org/01903/")
}

// part returns the finding that the signature covers only a part of the document. If the
// caller expects an element, a covered element that contains it is enough.
func (v *verification) part(c *coverage) sig.Finding {
	paths := c.paths
	if len(paths) == 0 {
		paths = c.own
	}
	if len(paths) == 0 {
		paths = []string{"no element that was found"}
	}
	if len(paths) > maxPaths {
		paths = append(paths[:maxPaths:maxPaths], fmt.Sprintf("%d more parts", len(paths)-maxPaths))
	}
	check := *v.check
	if check.Expect != "" {
		expected := v.expected()
		for _, n := range c.full {
			if expected != xmltree.None && v.tree.Contains(n, expected) {
				check.Expect = paths[0]
			}
		}
	}
	return check.CoversPart(paths...)
}

// expected returns the element that the caller expects to be covered. It returns None if
// the document has no such element, or several with that path.
func (v *verifier) expected() xmltree.Node {
	if !v.located {
		v.located, v.expect = true, locate(v.tree, v.check.Expect)
	}
	return v.expect
}

// locate returns the one element with a path as [resolver.path] writes it, or None.
func locate(t *xmltree.Tree, path string) xmltree.Node {
	rest, ok := strings.CutPrefix(path, "/")
	if !ok {
		return xmltree.None
	}
	n := xmltree.Document
	for step := range strings.SplitSeq(rest, "/") {
		name, position := step, 0
		if open := strings.IndexByte(step, '['); open >= 0 {
			number, closed := strings.CutSuffix(step[open+1:], "]")
			i, err := strconv.Atoi(number)
			if !closed || err != nil || i < 1 {
				return xmltree.None
			}
			name, position = step[:open], i
		}
		found, count := xmltree.None, 0
		for c := range t.Elements(n) {
			if t.Budget().Spend(int64(8+len(name)/8)) != nil {
				return xmltree.None // the caller sees the error of the budget
			}
			if t.Name(c).Local != name {
				continue
			}
			count++
			if position == 0 || count == position {
				found = c
			}
		}
		if found == xmltree.None || position == 0 && count > 1 {
			return xmltree.None
		}
		n = found
	}
	return n
}

// describe describes in words what a reference covers.
func (v *verification) describe(r *reference, to target) string {
	t, s := v.tree, v.sig
	var what string
	if to.node == xmltree.Document {
		what = "the whole document, root element " + sig.Printable(t.Name(t.Root()).String(), maxStepName, '?')
	} else {
		id, _, _ := uriID(r.uri)
		what = fmt.Sprintf("element %s with id %s at %s", sig.Printable(t.Name(to.node).String(), maxStepName, '?'), quote(id), v.resolve.path(to.node))
		if v.places > 0 {
			v.places--
			line, _ := t.Position(t.Start(to.node))
			what += fmt.Sprintf(", line %d", line)
		}
		what += content(t, s, to.node)
	}
	var without []string
	for _, tr := range r.transforms {
		switch tr.algorithm {
		case algEnveloped:
			if t.Contains(to.node, s.node) {
				without = append(without, "without this signature")
			}
		case algXPath, algFilter2:
			without = append(without, "only the nodes that XPath selects")
		case algBase64:
			without = append(without, "its text decoded from Base64")
		case algSMEV:
			without = append(without, "in the form of SMEV 3")
		}
	}
	if len(without) > 0 {
		what += " (" + strings.Join(without, ", ") + ")"
	}
	return what
}

// content describes what an Object of the signature contains, "" for other elements.
func content(t *xmltree.Tree, s *signature, n xmltree.Node) string {
	if t.Parent(n) != s.node || !t.Is(n, nsDS, "Object") {
		return ""
	}
	if encoding, _ := t.Get(n, "Encoding"); encoding == encodingBase64 {
		return ", an object in this signature with a document as Base64"
	}
	for c := range t.Elements(n) {
		return ", an object in this signature with the element " + sig.Printable(t.Name(c).String(), maxStepName, '?')
	}
	return ", an object in this signature"
}

// isWhole reports whether an element that is covered in full is the whole document except
// the signature itself.
func (v *verification) isWhole(n xmltree.Node) bool {
	t := v.tree
	switch {
	case n == xmltree.Document, n == t.Root():
		return true
	case v.sig.node == t.Root() && t.Parent(n) == v.sig.node && t.Is(n, nsDS, "Object"):
		// Enveloping: the other children of the root belong to the signature, unless
		// there is another Object, which is not signed.
		return len(v.sig.objects) == 1 || v.othersAreProperties(n)
	}
	return false
}

// othersAreProperties reports whether the other Objects of the signature contain only
// XAdES properties.
func (v *verification) othersAreProperties(n xmltree.Node) bool {
	for _, o := range v.sig.objects {
		if o == n {
			continue
		}
		for c := range v.tree.Elements(o) {
			if !v.tree.Is(c, nsXAdES, "QualifyingProperties") {
				return false
			}
		}
		if v.tree.Child(o, nsXAdES, "QualifyingProperties") == xmltree.None {
			return false
		}
	}
	return true
}

// path returns the path from the root to an element by local names, such as
// /Envelope/Body. If siblings have the same local name, in any namespace, the step has
// the position among them: /list/item[2]. A path without positions therefore names one
// element even for programs that ignore namespaces, and an added sibling with the same
// name becomes visible. A path longer than maxSteps is cut at its beginning.
func (v *resolver) path(n xmltree.Node) string {
	t := v.tree
	if n == xmltree.Document {
		n = t.Root()
	}
	var steps []string
	for ; n > xmltree.Document; n = t.Parent(n) {
		if len(steps) == maxSteps {
			steps = append(steps, "...")
			break
		}
		steps = append(steps, sig.Printable(t.Name(n).Local, maxStepName, '?')+v.place(n))
	}
	var b strings.Builder
	for i := len(steps) - 1; i >= 0; i-- {
		b.WriteString("/" + steps[i])
	}
	return b.String()
}

// place returns the position among the siblings with the same local name. It returns ""
// if there are no others, and "[?]" if the budget of the document is used up.
func (v *resolver) place(n xmltree.Node) string {
	t := v.tree
	name, i, of := t.Name(n).Local, 0, 0
	for c := range t.Elements(t.Parent(n)) {
		if t.Budget().Spend(int64(8+len(name)/8)) != nil {
			return "[?]" // the caller sees the error of the budget
		}
		if c == n || t.Name(c).Local == name {
			of++
		}
		if c == n {
			i = of
		}
		if i > 0 && of > 1 {
			return fmt.Sprintf("[%d]", i)
		}
	}
	return ""
}
