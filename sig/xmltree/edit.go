// SPDX-License-Identifier: Apache-2.0

package xmltree

import (
	"fmt"
	"io"
	"slices"
)

// Edit replaces a span of the text. An empty span inserts.
type Edit struct {
	Span Span
	// Text is the replacement, XML in UTF-8.
	Text string
}

// SetContent returns the edit that replaces the whole content of the element n by content, which
// is XML. An empty-element tag becomes a start and an end tag.
func (t *Tree) SetContent(n Node, content string) Edit {
	if t.IsEmptyTag(n) {
		return t.openTag(n, content)
	}
	return Edit{Span: t.Content(n), Text: content}
}

// Append returns the edit that inserts fragment, which is XML, after the last child of the
// element n.
func (t *Tree) Append(n Node, fragment string) Edit {
	if t.IsEmptyTag(n) {
		return t.openTag(n, fragment)
	}
	end := t.EndTag(n).Start
	return Edit{Span: Span{end, end}, Text: fragment}
}

// openTag returns the edit from <n/> to <n>content</n>.
func (t *Tree) openTag(n Node, content string) Edit {
	m := &t.names[t.nodes[n].label&nameMask]
	end := t.end(n)
	return Edit{
		Span: Span{end - 2, end},
		Text: ">" + content + "</" + string(t.text[m.start:m.start+m.length]) + ">",
	}
}

// Spliced is a document with edits, in the encoding of the document. It refers to the document's
// bytes and does not copy them.
type Spliced struct {
	parts [][]byte
	size  int64
}

// Size returns the number of bytes.
func (s *Spliced) Size() int64 { return s.size }

// WriteTo writes the document.
func (s *Spliced) WriteTo(w io.Writer) (int64, error) {
	var done int64
	for _, p := range s.parts {
		n, err := w.Write(p)
		done += int64(n)
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// Bytes returns a copy of the document in one piece.
func (s *Spliced) Bytes() []byte { return slices.Concat(s.parts...) }

// Splice applies edits to the document. Every byte outside their spans stays the same, the byte
// order mark included. New text is written in the document's encoding. A character that the
// encoding does not have becomes a character reference, which is valid in content and attribute
// values. Edits may be in any order. Inserts at the same place keep their order. Spans that
// overlap or are outside the text are an error. Splice does not parse the result.
func (t *Tree) Splice(edits ...Edit) (*Spliced, error) {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b Edit) int {
		if a.Span.Start != b.Span.Start {
			return a.Span.Start - b.Span.Start
		}
		return a.Span.End - b.Span.End
	})
	s := &Spliced{}
	at := 0                   // offset of the text after the last edit
	from := t.bom             // the same place in the original
	s.add(t.original[:t.bom]) // the byte order mark
	for _, e := range edits {
		if e.Span.Start < at || e.Span.End < e.Span.Start || e.Span.End > len(t.text) {
			return nil, fmt.Errorf("xml: edit of [%d, %d): spans must not overlap and must be inside the text of %d bytes", e.Span.Start, e.Span.End, len(t.text))
		}
		start := from + t.charset.width(t.text[at:e.Span.Start])
		s.add(t.original[from:start])
		s.add(t.charset.encode(e.Text))
		from = start + t.charset.width(t.text[e.Span.Start:e.Span.End])
		at = e.Span.End
	}
	s.add(t.original[from:])
	return s, nil
}

func (s *Spliced) add(p []byte) {
	if len(p) > 0 {
		s.parts = append(s.parts, p)
		s.size += int64(len(p))
	}
}

// Graft parses fragment, one element in UTF-8, as a child of the element parent. It makes a small
// tree from the start tags of parent and its ancestors with the fragment inside. This tree has
// everything that canonical forms take from ancestors. A SignedInfo can thus be canonicalized in
// its place without parsing the whole document again. Graft returns the small tree and the
// element in it.
func (t *Tree) Graft(parent Node, fragment []byte, o Options) (*Tree, Node, error) {
	var open, closing []byte
	var chain []Node
	for n := parent; n > Document; n = t.Parent(n) {
		chain = append(chain, n)
	}
	depth := len(chain)
	for _, n := range slices.Backward(chain) {
		tag := t.Slice(t.StartTag(n))
		if t.IsEmptyTag(n) {
			tag = append(slices.Clone(tag[:len(tag)-2]), '>')
		}
		open = append(open, tag...)
	}
	for _, n := range chain {
		m := &t.names[t.nodes[n].label&nameMask]
		closing = append(closing, "</"...)
		closing = append(closing, t.text[m.start:m.start+m.length]...)
		closing = append(closing, '>')
	}
	o = o.withDefaults()
	small, err := Parse(slices.Concat(open, fragment, closing), o)
	if err != nil {
		if e, ok := err.(*SyntaxError); ok {
			e.Text = "fragment to insert: " + e.Text
		}
		return nil, None, err
	}
	// The ancestors are the first nodes. The fragment must be one element directly
	// below them. An extra end tag in the fragment could break this.
	top := Node(depth + 1)
	if int(top) >= small.Len() || small.Kind(top) != KindElement || small.Parent(top) != top-1 ||
		small.Span(top) != (Span{len(open), len(open) + len(fragment)}) {
		return nil, None, &SyntaxError{Line: 1, Column: 1, Text: "fragment to insert: it must be exactly one element"}
	}
	return small, top, nil
}
