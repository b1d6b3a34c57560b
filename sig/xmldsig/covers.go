package xmldsig

import (
	"fmt"
	"strings"

	"tamga/sig/xmltree"
)

// describe says in words what a reference stands for.
func (j *judgement) describe(r *reference, to target) string {
	t, s := j.tree, j.sig
	var what string
	if to.node == xmltree.Document {
		what = "the whole document, root element " + t.Name(t.Root()).String()
	} else {
		id, _, _ := uriID(r.uri)
		what = fmt.Sprintf("element %s with id %s at %s", t.Name(to.node), quote(id), path(t, to.node))
		if j.places > 0 {
			j.places--
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

// content says what is in an Object of the signature itself.
func content(t *xmltree.Tree, s *signature, n xmltree.Node) string {
	if t.Parent(n) != s.node || !t.Is(n, nsDS, "Object") {
		return ""
	}
	if encoding, _ := t.Get(n, "Encoding"); encoding == encodingBase64 {
		return ", an object in this signature with a document as Base64"
	}
	for c := range t.Elements(n) {
		return ", an object in this signature with the element " + t.Name(c).String()
	}
	return ", an object in this signature"
}

// isWhole tells whether a reference speaks for everything in the document beside
// the signature itself.
func (j *judgement) isWhole(r *reference, to target) bool {
	for _, tr := range r.transforms {
		switch tr.algorithm {
		case algXPath, algFilter2, algBase64:
			return false
		}
	}
	t := j.tree
	switch {
	case to.node == xmltree.Document, to.node == t.Root():
		return true
	case j.sig.node == t.Root() && t.Parent(to.node) == j.sig.node && t.Is(to.node, nsDS, "Object"):
		// Enveloping: the other parts of the root belong to the signature, unless
		// there is another Object that nobody signed.
		return len(j.sig.objects) == 1 || j.othersAreProperties(to.node)
	}
	return false
}

// othersAreProperties tells whether the other objects of the signature hold the
// properties of XAdES alone.
func (j *judgement) othersAreProperties(n xmltree.Node) bool {
	for _, o := range j.sig.objects {
		if o != n && j.tree.Child(o, nsXAdES, "QualifyingProperties") == xmltree.None {
			return false
		}
	}
	return true
}

// path is the way from the root to an element, with the position among brothers whose
// name is written alike, in whatever namespace: /soap:Envelope/soap:Body[2].
func path(t *xmltree.Tree, n xmltree.Node) string {
	const most = 24 // steps shown
	var steps []string
	for ; n > xmltree.Document; n = t.Parent(n) {
		if len(steps) == most {
			steps = append(steps, "...")
			break
		}
		step := t.Name(n).String()
		if i, of := place(t, n); of > 1 {
			step += fmt.Sprintf("[%d]", i)
		}
		steps = append(steps, step)
	}
	var b strings.Builder
	for i := len(steps) - 1; i >= 0; i-- {
		b.WriteString("/" + steps[i])
	}
	return b.String()
}

// place counts the brothers whose name is written alike. It looks at the first
// thousand: a path is for people.
func place(t *xmltree.Tree, n xmltree.Node) (i, of int) {
	name, looked := t.Name(n), 0
	defer func() { t.Budget().Spend(int64(looked) * int64(8+len(name.Local)/8)) }()
	for c := range t.Elements(t.Parent(n)) {
		if other := t.Name(c); other.Local == name.Local && other.Prefix == name.Prefix {
			of++
			if c == n {
				i = of
			}
		}
		if looked++; looked > 1000 && i > 0 {
			break
		}
	}
	return i, of
}
