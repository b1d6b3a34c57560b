// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"io"
	"strings"

	"tamga/sig/xmltree"
)

// canonicalForms are the canonical forms, by their identifiers.
var canonicalForms = map[string]xmltree.Method{
	"http://www.w3.org/TR/2001/REC-xml-c14n-20010315":              {Form: xmltree.C14N10},
	"http://www.w3.org/TR/2001/REC-xml-c14n-20010315#WithComments": {Form: xmltree.C14N10, Comments: true},
	"http://www.w3.org/2006/12/xml-c14n11":                         {Form: xmltree.C14N11},
	"http://www.w3.org/2006/12/xml-c14n11#WithComments":            {Form: xmltree.C14N11, Comments: true},
	algExcC14N: {Form: xmltree.Exclusive},
	"http://www.w3.org/2001/10/xml-exc-c14n#WithComments": {Form: xmltree.Exclusive, Comments: true},
}

// transform is one Transform of a Reference, ready to apply.
type transform struct {
	node      xmltree.Node
	algorithm string
	// comments reports whether comments in the input change the result.
	comments bool
	apply    func(*digester, material) (material, error)
}

// material is the data between two transforms: a node set or bytes.
type material struct {
	set  *xmltree.NodeSet // nil for bytes
	data []byte
	// finish writes the bytes instead of the field, if the last transform can do so without
	// collecting them in memory.
	finish func(io.Writer) error
}

// readTransforms parses a Transforms element.
func readTransforms(t *xmltree.Tree, n xmltree.Node) ([]transform, error) {
	children, err := elements(t, n)
	if err != nil {
		return nil, err
	}
	if len(children) == 0 {
		return nil, flawAt(t, n, codeMalformed, "Transforms is empty; leave it out or put a Transform in it")
	}
	if len(children) > maxTransforms {
		return nil, flawAt(t, n, codeWork, "there are %d transforms, at most %d expected", len(children), maxTransforms)
	}
	var out []transform
	for _, c := range children {
		if !t.Is(c, nsDS, "Transform") {
			return nil, flawAt(t, c, codeMalformed, "%s is out of place in Transforms; Transform expected", t.Name(c))
		}
		tr, err := readTransform(t, c)
		if err != nil {
			return nil, err
		}
		out = append(out, tr)
	}
	return out, nil
}

// readTransform parses a Transform. It is the list of allowed transforms.
func readTransform(t *xmltree.Tree, n xmltree.Node) (transform, error) {
	algorithm, _ := t.Get(n, "Algorithm")
	tr := transform{node: n, algorithm: algorithm}
	if form, ok := canonicalForms[algorithm]; ok {
		method, err := withPrefixes(t, n, form)
		tr.comments = method.Comments
		tr.apply = canonicalize(method)
		return tr, err
	}
	var err error
	switch algorithm {
	case algEnveloped:
		tr.apply, err = envelopedSignature, noParameters(t, n)
	case algBase64:
		tr.apply, err = base64Bytes, noParameters(t, n)
	case algSMEV:
		tr.apply, err = smevTransform, noParameters(t, n)
	case algXPath:
		tr.apply, err = readXPath(t, n)
	case algFilter2:
		tr.apply, err = readFilter2(t, n)
	case algXSLT:
		err = flawAt(t, n, codeTransform, "the transform XSLT is refused: a signature over the output of a program proves nothing about the document")
	case "":
		err = flawAt(t, n, codeParameters, "Transform has no Algorithm")
	default:
		err = flawAt(t, n, codeTransform, "the transform %s is not allowed; enveloped-signature, a canonical form, Base64, XPath, XPath Filter 2.0 or that of SMEV 3 expected", quote(algorithm))
	}
	return tr, err
}

func noParameters(t *xmltree.Tree, n xmltree.Node) error {
	if !isBlank(t, n) {
		return flawAt(t, n, codeParameters, "this transform has no parameters and must be empty")
	}
	return nil
}

// withPrefixes parses the InclusiveNamespaces of an exclusive canonical form.
func withPrefixes(t *xmltree.Tree, n xmltree.Node, m xmltree.Method) (xmltree.Method, error) {
	inside, err := elements(t, n)
	if err != nil || len(inside) == 0 {
		return m, err
	}
	if m.Form != xmltree.Exclusive || len(inside) > 1 || !t.Is(inside[0], nsEC, "InclusiveNamespaces") {
		return m, flawAt(t, inside[0], codeParameters, "%s is not a parameter of this canonical form", t.Name(inside[0]))
	}
	list, _ := t.Get(inside[0], "PrefixList")
	if len(list) > maxPrefixes {
		return m, flawAt(t, inside[0], codeWork, "PrefixList has %d characters, at most %d expected", len(list), maxPrefixes)
	}
	m.Prefixes = strings.Fields(list)
	return m, nil
}

// canonicalize returns the transform of a node set into bytes in a canonical form.
func canonicalize(m xmltree.Method) func(*digester, material) (material, error) {
	return func(d *digester, in material) (material, error) {
		set, err := d.nodes(in)
		if err != nil {
			return in, err
		}
		return material{finish: func(w io.Writer) error { return set.Canonicalize(w, m) }}, nil
	}
}

// envelopedSignature removes the Signature that contains this transform (XMLDSig, 6.6.4).
// If an earlier transform turned the document into bytes, that Signature is found by its
// index among all Signature elements; this makes the order of SMEV templates work
// (canonical form first). If there is no element with that index, nothing is removed.
func envelopedSignature(d *digester, in material) (material, error) {
	if in.set != nil && in.set.Tree() == d.sig.tree {
		in.set.Remove(d.sig.node)
		return in, nil
	}
	set, err := d.nodes(in)
	if err != nil {
		return in, err
	}
	if all := signatures(set.Tree()); d.sig.ordinal < len(all) {
		set.Remove(all[d.sig.ordinal])
	}
	return material{set: set}, nil
}

// base64Bytes decodes Base64 (XMLDSig, 6.6.2). Of a node set it decodes the text.
func base64Bytes(d *digester, in material) (material, error) {
	text := holder{budget: d.budget()}
	if in.set != nil {
		if err := in.set.WriteText(&text); err != nil {
			return in, err
		}
	} else {
		data, err := d.collect(in)
		if err != nil {
			return in, err
		}
		if _, err := text.Write(data); err != nil {
			return in, err
		}
	}
	// The text as a string, split at white space (a header for each word), and decoded.
	if err := d.budget().Hold(12 * int64(text.Len())); err != nil {
		return in, err
	}
	if err := d.budget().Spend(4 * int64(text.Len())); err != nil {
		return in, err
	}
	data, err := xmltree.DecodeBase64(text.String())
	if err != nil {
		return in, flawAt(d.sig.tree, d.ref.node, codeFailed, "the input of the Base64 transform is not Base64")
	}
	return material{data: data}, nil
}

// readXPath parses the parameter of XPath filtering (XMLDSig, 6.6.3).
func readXPath(t *xmltree.Tree, n xmltree.Node) (func(*digester, material) (material, error), error) {
	inside, err := elements(t, n)
	if err != nil {
		return nil, err
	}
	if len(inside) != 1 || !t.Is(inside[0], nsDS, "XPath") {
		return nil, flawAt(t, n, codeParameters, "the transform XPath must contain one element XPath")
	}
	x, err := compile(t, inside[0])
	if err != nil {
		return nil, err
	}
	return func(d *digester, in material) (material, error) {
		set, err := d.nodes(in)
		if err != nil {
			return in, err
		}
		return material{set: set}, set.FilterXPath(x)
	}, nil
}

// compile compiles the XPath expression in an element.
func compile(t *xmltree.Tree, n xmltree.Node) (*xmltree.XPath, error) {
	// Comments do not belong to an expression. Adding or removing one does not change it.
	for c := range t.Children(n) {
		if kind := t.Kind(c); kind != xmltree.KindText && kind != xmltree.KindComment {
			return nil, flawAt(t, c, codeMalformed, "%s must contain only an expression, but has a %s", t.Name(n), kind)
		}
	}
	x, err := t.CompileXPath(t.StringValue(n), n)
	if err != nil {
		return nil, flawAt(t, n, codeTransform, "%s", err)
	}
	return x, nil
}

// filter is one XPath element of an XPath Filter 2.0.
type filter struct {
	change func(set, other *xmltree.NodeSet)
	x      *xmltree.XPath
}

// setOperations are the values of Filter (XPath Filter 2.0, 3.3).
var setOperations = map[string]func(set, other *xmltree.NodeSet){
	"intersect": (*xmltree.NodeSet).Intersect,
	"subtract":  (*xmltree.NodeSet).Subtract,
	"union":     (*xmltree.NodeSet).Union,
}

func readFilter2(t *xmltree.Tree, n xmltree.Node) (func(*digester, material) (material, error), error) {
	inside, err := elements(t, n)
	if err != nil {
		return nil, err
	}
	if len(inside) == 0 || len(inside) > maxTransforms {
		return nil, flawAt(t, n, codeParameters, "the transform XPath Filter 2.0 must contain 1 to %d elements XPath", maxTransforms)
	}
	var filters []filter
	for _, c := range inside {
		name, _ := t.Get(c, "Filter")
		change, ok := setOperations[name]
		if !ok || !t.Is(c, nsFilter, "XPath") {
			return nil, flawAt(t, c, codeParameters, `%s is not an XPath of XPath Filter 2.0 with Filter="intersect", "subtract" or "union"`, t.Name(c))
		}
		x, err := compile(t, c)
		if err != nil {
			return nil, err
		}
		filters = append(filters, filter{change, x})
	}
	return func(d *digester, in material) (material, error) {
		set, err := d.nodes(in)
		if err != nil {
			return in, err
		}
		t := set.Tree()
		sum := t.All()
		for _, f := range filters {
			items, err := f.x.Select(t)
			if err != nil {
				return in, err
			}
			chosen, err := subtrees(t, items)
			if err != nil {
				return in, err
			}
			f.change(sum, chosen)
			chosen.Free()
		}
		set.Intersect(sum)
		sum.Free()
		if err := d.budget().Err(); err != nil {
			return in, err
		}
		return material{set: set}, nil
	}, nil
}

// subtrees returns the set of the items and everything below them. The items are in
// document order, so an item inside a subtree that was added before adds nothing.
func subtrees(t *xmltree.Tree, items []xmltree.Item) (*xmltree.NodeSet, error) {
	out := t.Empty()
	end := xmltree.Node(0)
	for _, item := range items {
		if item.Node < end {
			continue
		}
		part := t.Subtree(item.Node)
		if err := t.Budget().Err(); err != nil {
			return nil, err
		}
		if item.Attr != xmltree.NoAttr {
			if err := part.Filter(func(i xmltree.Item) (bool, error) { return i == item, nil }); err != nil {
				return nil, err
			}
		} else {
			end = t.After(item.Node)
		}
		out.Union(part)
		part.Free()
	}
	return out, nil
}
