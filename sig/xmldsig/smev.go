// SPDX-License-Identifier: Apache-2.0

package xmldsig

import (
	"bytes"
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tamga/sig/budget"
	"tamga/sig/xmltree"
)

// smevTransform is urn://smev-gov-ru/xmldsig/transform, from the public guidelines for
// working with SMEV 3 (version 3.5, appendix on signing fragments of XML):
//
//  1. the XML declaration, processing instructions and comments are removed;
//  2. text nodes that have only characters up to U+0020 are removed;
//  3. an empty-element tag becomes a start tag and an end tag;
//  4. declarations of prefixes are removed, and
//  5. each namespace is declared where it is first needed,
//  6. with a prefix ns1, ns2... by the order of appearance in the fragment;
//  7. attributes are sorted by namespace name, then local name; those without a
//     namespace come last;
//  8. declarations come before attributes: first the element's, then those of
//     attributes in their new order;
//  9. characters are escaped as the writer of the reference implementation does,
//     see smevText and smevAttributeEscapes.
//
// A node set is first turned into bytes by Canonical XML 1.0 without comments.
func smevTransform(d *digester, in material) (material, error) {
	if in.set != nil {
		set := in.set
		in = material{finish: func(w io.Writer) error { return set.Canonicalize(w, xmltree.Method{Form: xmltree.C14N10}) }}
	}
	set, err := d.nodes(in)
	if err != nil {
		return in, err
	}
	s := smev{tree: set.Tree(), prefixes: map[string]string{}, budget: d.budget()}
	if err := s.element(s.tree.Root()); err != nil {
		return in, d.explain(err)
	}
	return material{data: s.out.Bytes()}, nil
}

type smev struct {
	tree     *xmltree.Tree
	out      bytes.Buffer
	prefixes map[string]string // by namespace name, only those in scope
	count    int

	budget *budget.Budget
	paid   int // bytes of out that the budget was charged for
}

// pay charges the budget for the bytes written since the last call.
func (s *smev) pay() error {
	n := int64(s.out.Len() - s.paid)
	s.paid = s.out.Len()
	if err := s.budget.Hold(2 * n); err != nil {
		return err
	}
	return s.budget.Spend(20 + 2*n)
}

// prefix returns the prefix of a namespace. If the prefix is not in scope, the element
// that is being written declares it.
func (s *smev) prefix(space string, declared *[]string) string {
	p, ok := s.prefixes[space]
	if !ok {
		s.count++
		p = "ns" + strconv.Itoa(s.count)
		s.prefixes[space] = p
		*declared = append(*declared, space)
	}
	return p
}

// element writes an element and its content. The parser bounds the depth.
func (s *smev) element(n xmltree.Node) error {
	name := s.tree.Name(n)
	if name.Space == "" {
		// The guidelines have no rule for this case, and implementations differ.
		return flawAt(s.tree, n, codeFailed, "the transform of SMEV 3 has no rule for elements without a namespace, such as %s (the position is in the result of the previous transforms)", name)
	}
	var declared []string
	tag := s.prefix(name.Space, &declared) + ":" + name.Local

	attrs := slices.Collect(s.tree.Attributes(n))
	each := int64(4)
	for _, a := range attrs {
		each = max(each, int64(len(s.tree.AttrName(a).Space)+len(s.tree.AttrName(a).Local)))
	}
	if err := s.budget.Spend(budget.Sorting(len(attrs), each)); err != nil {
		return err
	}
	slices.SortFunc(attrs, func(a, b xmltree.Attr) int { return compareAttributes(s.tree.AttrName(a), s.tree.AttrName(b)) })
	names := make([]string, len(attrs))
	for i, a := range attrs {
		names[i] = s.tree.AttrName(a).Local
		if space := s.tree.AttrName(a).Space; space != "" {
			names[i] = s.prefix(space, &declared) + ":" + names[i]
		}
	}
	s.out.WriteString("<" + tag)
	for _, space := range declared {
		s.attribute("xmlns:"+s.prefixes[space], space)
	}
	for i, a := range attrs {
		s.attribute(names[i], s.tree.Value(a))
	}
	s.out.WriteByte('>')
	if err := s.pay(); err != nil {
		return err
	}
	for c := range s.tree.Children(n) {
		switch s.tree.Kind(c) {
		case xmltree.KindElement:
			if err := s.element(c); err != nil {
				return err
			}
		case xmltree.KindText:
			if text := s.tree.StringValue(c); strings.TrimLeftFunc(text, func(r rune) bool { return r <= ' ' }) != "" {
				smevText(&s.out, text)
			}
		}
	}
	s.out.WriteString("</" + tag + ">")
	for _, space := range declared {
		delete(s.prefixes, space)
	}
	return nil
}

// compareAttributes is the order of rule 7.
func compareAttributes(a, b xmltree.Name) int {
	if (a.Space == "") != (b.Space == "") {
		if a.Space == "" {
			return 1
		}
		return -1
	}
	return cmp.Or(compareUTF16(a.Space, b.Space), compareUTF16(a.Local, b.Local))
}

// compareUTF16 orders strings as the reference implementation does, by units of UTF-16.
// This is the order of code points with one exception: those above U+FFFF, written with
// units from D800 on, come before U+E000 to U+FFFF.
func compareUTF16(a, b string) int {
	for a != "" && b != "" {
		x, n := utf8.DecodeRuneInString(a)
		y, m := utf8.DecodeRuneInString(b)
		if x != y {
			if (x > 0xFFFF) != (y > 0xFFFF) && min(x, y) >= 0xE000 {
				return cmp.Compare(y, x)
			}
			return cmp.Compare(x, y)
		}
		a, b = a[n:], b[m:]
	}
	return cmp.Compare(len(a), len(b))
}

// attribute writes an attribute or declaration (rule 9, attributes). Characters that a
// parser would change are escaped; a greater-than sign is not.
func (s *smev) attribute(name, value string) {
	s.out.WriteString(" " + name + `="`)
	smevAttributeEscapes.WriteString(&s.out, value)
	s.out.WriteByte('"')
}

// References have lower-case digits here and upper-case ones in canonical XML, so the two
// share no table.
var smevAttributeEscapes = strings.NewReplacer("<", "&lt;", "&", "&amp;", `"`, "&quot;", "\t", "&#x9;", "\n", "&#xa;", "\r", "&#xd;")

// smevText writes a text node (rule 9, text). "<", "&" and carriage returns are always
// escaped. A greater-than sign is escaped after a closing bracket and at the beginning of
// a block. A text of up to 11 units of UTF-16 is one block. A longer text is cut into
// pieces of 512 units, and a new block begins with each piece and after each escaped
// character.
func smevText(out *bytes.Buffer, text string) {
	const (
		small = 11
		piece = 512
	)
	long := unitsOf(text) > small
	begins, previous, units := true, rune(0), 0
	for _, r := range text {
		if long && units >= piece {
			begins, units = true, units-piece
		}
		units += width16(r)
		escape := ""
		switch {
		case r == '<':
			escape = "&lt;"
		case r == '&':
			escape = "&amp;"
		case r == '\r':
			escape = "&#xd;"
		case r == '>' && (begins || previous == ']'):
			escape = "&gt;"
		}
		if escape != "" {
			out.WriteString(escape)
		} else {
			out.WriteRune(r)
		}
		begins, previous = long && escape != "", r
	}
}

func width16(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}

func unitsOf(text string) (n int) {
	for _, r := range text {
		n += width16(r)
	}
	return n
}
