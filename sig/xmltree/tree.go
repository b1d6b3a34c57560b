// SPDX-License-Identifier: Apache-2.0

// Package xmltree has what signatures need of XML: a namespace-aware parser that keeps every byte of
// the document and the position of each node, node sets with a bit per node, the canonical forms
// (Canonical XML 1.0, 1.1, exclusive 1.0), a closed subset of XPath 1.0, and the splicing of new
// bytes into the document without a change of any other.
//
// Begin with Parse, then use Tree.Subtree and NodeSet.Canonicalize. The package does not know
// signatures: package xmldsig does.
//
// A Tree is read only after Parse and may be used by several goroutines at once. All offsets are
// of the document's text in UTF-8 without its byte order mark (Tree.Text). For a UTF-8 document
// without a byte order mark these are offsets of the document itself.
//
// Document type declarations are refused by default, and always if they have an internal subset. So
// there are no entities except the five of XML itself, no default attributes and no declared ids. Nodes are
// those of the XPath 1.0 data model: adjacent text and CDATA sections are one text node, and
// attributes and namespace nodes are not children.
package xmltree

import (
	"bytes"
	"iter"
	"slices"

	"tamga/sig/budget"
)

// Node is a node of a Tree, except attributes and namespace nodes. Nodes are numbered in document
// order. Document, 0, is the root of all. A subtree is the range [n, Tree.After(n)).
type Node int32

const (
	// None means that there is no node.
	None Node = -1
	// Document is the node above the root element (the root node of XPath).
	Document Node = 0
)

// Attr is an attribute or a namespace declaration of a Tree, numbered in document order.
type Attr int32

// NoAttr means that there is no attribute.
const NoAttr Attr = -1

// Kind is the kind of a Node.
type Kind uint8

// The kinds of nodes. Doctype is outside the XPath data model: it is never in a node set or a
// canonical form.
const (
	KindDocument Kind = iota
	KindElement
	KindText
	KindComment
	KindPI
	KindDoctype
)

// String returns the kind in words, for instance "element" or "text".
func (k Kind) String() string {
	return [...]string{"document", "element", "text", "comment", "processing instruction", "document type declaration"}[k]
}

// The namespaces that XML itself binds.
const (
	NamespaceXML   = "http://www.w3.org/XML/1998/namespace"
	NamespaceXMLNS = "http://www.w3.org/2000/xmlns/"
)

// Name is the name of an element or attribute. Nodes without a name have the zero Name.
type Name struct {
	// Prefix is the prefix as written, "" if there is none.
	Prefix string
	// Local is the local part.
	Local string
	// Space is the namespace name, "" if there is none. For a namespace declaration it is
	// NamespaceXMLNS. The default one has the prefix "" and Local "xmlns".
	Space string
}

// Is reports whether the expanded name is that one, with any prefix.
func (n Name) Is(space, local string) bool { return n.Local == local && n.Space == space }

// String returns the name as written in a document, for instance "ds:Signature".
func (n Name) String() string {
	if n.Prefix == "" {
		return n.Local
	}
	return n.Prefix + ":" + n.Local
}

// Span is a range of Tree.Text, [Start, End).
type Span struct{ Start, End int }

// Len returns the number of bytes.
func (s Span) Len() int { return s.End - s.Start }

// Tree is a parsed document.
type Tree struct {
	original []byte // the document as given to Parse
	text     []byte // in UTF-8, without byte order mark
	charset  *charset
	bom      int // bytes of the byte order mark in original

	nodes []node // in document order, and one sentinel at the end
	attrs []attr // in document order
	// first has the number of attributes before every attrBlock-th node. The search for
	// the first attribute of a node begins there.
	first []uint32
	names []name
	uris  []string // namespace names; 0 "", 1 xml, 2 xmlns
	// prefixes are substrings of the text, except 0 "", 1 "xml" and 2 "xmlns".
	prefixes []string
	relative []bool // indexed by uri: whether the namespace name is a relative reference
	root     Node
	rootEnd  uint32 // offset after the root element
	// doctypeEnd is the offset after the document type declaration.
	doctypeEnd uint32

	budget *budget.Budget // never nil
}

// node is one node. Nodes take most of the memory of a document, so a node has nothing that can be
// derived: it ends where the next node begins, and its attributes are those in its tag. All numbers
// have 32 bits, because a document is below 2 GiB.
type node struct {
	start  uint32 // offset of its first byte
	parent int32
	next   int32  // the first node after its subtree
	label  uint32 // kind, flags, and the number of its name
}

// attrBlock is how many nodes share an entry of Tree.first.
const attrBlock = 64

// attr is an attribute or namespace declaration.
type attr struct {
	start uint32 // offset of its name
	end   uint32 // offset of the closing quote
	name  uint32
	// extra is the number of the namespace name for a declaration. For an attribute it is 1
	// if the raw bytes of the value are its canonical form.
	extra uint32
}

// name is a name as written with the namespace of its prefix.
type name struct {
	start, length uint32 // of the whole name in text
	prefix        uint32 // number in prefixes
	local         uint32 // number of the local part, equal for equal strings
	uri           uint32 // number in uris
	prefixLength  uint32
}

// The parts of node.label: the number of the name in the low bits, then kind and flags.
const (
	nameMask   = 1<<24 - 1
	kindShift  = 24
	kindMask   = 7
	flagPlain  = 1 << 27 // a text node whose raw bytes are its canonical form
	flagScoped = 1 << 28 // an element with namespace declarations
	flagAttrs  = 1 << 29 // an element with attributes or declarations
)

// Numbers of the namespace names that every tree has.
const (
	uriNone  = 0
	uriXML   = 1
	uriXMLNS = 2
)

// Text returns the document in UTF-8 without its byte order mark. The caller must not change it.
func (t *Tree) Text() []byte { return t.text }

// Original returns the document that was given to Parse. The caller must not change it.
func (t *Tree) Original() []byte { return t.original }

// Budget returns the budget of the document. See Options.
func (t *Tree) Budget() *budget.Budget { return t.budget }

// Encoding returns the name of the document's encoding in lower case, for instance "utf-8",
// "utf-16le" or "windows-1251".
func (t *Tree) Encoding() string { return t.charset.name }

// Encode returns text, which is XML, in the encoding of the document. A character that the encoding
// does not have becomes a character reference.
func (t *Tree) Encode(text string) []byte { return t.charset.encode(text) }

// Slice returns the text of a span.
func (t *Tree) Slice(s Span) []byte { return t.text[s.Start:s.End:s.End] }

// Len returns the number of nodes, Document included. The last one is Node(Len()-1).
func (t *Tree) Len() int { return len(t.nodes) - 1 }

// Root returns the root element.
func (t *Tree) Root() Node { return t.root }

// Kind returns the kind of n.
func (t *Tree) Kind(n Node) Kind { return Kind(t.nodes[n].label >> kindShift & kindMask) }

// Parent returns the parent of n, or None for Document.
func (t *Tree) Parent(n Node) Node { return Node(t.nodes[n].parent) }

// After returns the first node in document order after n and everything below it, or Len if there
// is none.
func (t *Tree) After(n Node) Node { return Node(t.nodes[n].next) }

// FirstChild returns the first child of n, or None.
func (t *Tree) FirstChild(n Node) Node {
	if t.nodes[n].next == int32(n)+1 {
		return None
	}
	return n + 1
}

// NextSibling returns the next node with the same parent, or None.
func (t *Tree) NextSibling(n Node) Node {
	next := t.nodes[n].next
	parent := t.nodes[n].parent
	if parent < 0 || next >= t.nodes[parent].next {
		return None
	}
	return Node(next)
}

// Children yields the children of n in document order.
func (t *Tree) Children(n Node) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for c := t.FirstChild(n); c != None; c = t.NextSibling(c) {
			if !yield(c) {
				return
			}
		}
	}
}

// Elements yields the child elements of n in document order.
func (t *Tree) Elements(n Node) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for c := range t.Children(n) {
			if t.Kind(c) == KindElement && !yield(c) {
				return
			}
		}
	}
}

// Contains reports whether n is ancestor or below it.
func (t *Tree) Contains(ancestor, n Node) bool { return n >= ancestor && n < t.After(ancestor) }

// Name returns the name of an element. For a processing instruction, Local is the target.
func (t *Tree) Name(n Node) Name {
	switch t.Kind(n) {
	case KindElement:
		return t.nameOf(t.nodes[n].label & nameMask)
	case KindPI:
		return Name{Local: string(t.piTarget(n))}
	}
	return Name{}
}

func (t *Tree) nameOf(number uint32) Name {
	m := &t.names[number]
	qualified := t.text[m.start : m.start+m.length]
	if m.prefixLength == 0 {
		return Name{Local: string(qualified), Space: t.uris[m.uri]}
	}
	return Name{
		Prefix: string(qualified[:m.prefixLength]),
		Local:  string(qualified[m.prefixLength+1:]),
		Space:  t.uris[m.uri],
	}
}

// Is reports whether n is an element with that expanded name.
func (t *Tree) Is(n Node, space, local string) bool {
	if n < 0 || t.Kind(n) != KindElement {
		return false
	}
	return t.nameIs(t.nodes[n].label&nameMask, space, local)
}

func (t *Tree) nameIs(number uint32, space, local string) bool {
	m := &t.names[number]
	start := m.start
	if m.prefixLength > 0 {
		start += m.prefixLength + 1
	}
	return string(t.text[start:m.start+m.length]) == local && t.uris[m.uri] == space
}

// Find yields the elements with that expanded name at or below n, in document
// order.
func (t *Tree) Find(n Node, space, local string) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		t.budget.Spend(int64(t.After(n)-n) / 2)
		for m, end := n, t.After(n); m < end; m++ {
			if t.Is(m, space, local) && !yield(m) {
				return
			}
		}
	}
}

// Child returns the first child element of n with that expanded name, or None.
func (t *Tree) Child(n Node, space, local string) Node {
	for c := range t.Children(n) {
		if t.Is(c, space, local) {
			return c
		}
	}
	return None
}

// attrsOf returns the range of n's attributes and declarations.
func (t *Tree) attrsOf(n Node) (from, to uint32) {
	if t.nodes[n].label&flagAttrs == 0 {
		return 0, 0
	}
	from = t.firstAttr(n)
	// The next node begins after the tag.
	for to = from + 1; int(to) < len(t.attrs) && t.attrs[to].start < t.nodes[n+1].start; to++ {
	}
	return from, to
}

// firstAttr returns the first attribute after the beginning of n, which may be the sentinel.
func (t *Tree) firstAttr(n Node) uint32 {
	block := int(n) / attrBlock
	low, high := t.first[block], uint32(len(t.attrs))
	if block+1 < len(t.first) {
		high = t.first[block+1]
	}
	for start := t.nodes[n].start; low < high; {
		mid := (low + high) / 2
		if t.attrs[mid].start < start {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

func (t *Tree) isDeclaration(a uint32) bool { return t.names[t.attrs[a].name].uri == uriXMLNS }

// Attributes yields the attributes of n in document order, without namespace
// declarations.
func (t *Tree) Attributes(n Node) iter.Seq[Attr] { return t.attributes(n, false) }

// Declarations yields the namespace declarations on n in document order.
func (t *Tree) Declarations(n Node) iter.Seq[Attr] { return t.attributes(n, true) }

func (t *Tree) attributes(n Node, declarations bool) iter.Seq[Attr] {
	return func(yield func(Attr) bool) {
		from, to := t.attrsOf(n)
		for a := from; a < to; a++ {
			if t.isDeclaration(a) == declarations && !yield(Attr(a)) {
				return
			}
		}
	}
}

// Attribute returns the attribute of n with that expanded name, or NoAttr.
func (t *Tree) Attribute(n Node, space, local string) Attr {
	from, to := t.attrsOf(n)
	for a := from; a < to; a++ {
		if t.nameIs(t.attrs[a].name, space, local) {
			return Attr(a)
		}
	}
	return NoAttr
}

// Get returns the normalised value of the attribute of n without a namespace, and whether the
// attribute exists.
func (t *Tree) Get(n Node, local string) (string, bool) {
	a := t.Attribute(n, "", local)
	if a == NoAttr {
		return "", false
	}
	return t.Value(a), true
}

// AttrName returns the name of an attribute or declaration.
func (t *Tree) AttrName(a Attr) Name { return t.nameOf(t.attrs[a].name) }

// Space returns the namespace name of prefix ("" for the default) at n, and whether the prefix is
// bound there. Without a declaration, the default namespace is bound to "".
func (t *Tree) Space(n Node, prefix string) (string, bool) {
	switch prefix {
	case "xml":
		return NamespaceXML, true
	case "xmlns":
		return NamespaceXMLNS, true
	}
	for ; n > Document; n = t.Parent(n) {
		if t.nodes[n].label&flagScoped == 0 {
			continue
		}
		for a := range t.Declarations(n) {
			if t.declared(uint32(a)) == prefix {
				return t.uris[t.attrs[a].extra], true
			}
		}
	}
	return "", prefix == ""
}

// declared returns the prefix that a declaration declares, "" for the default.
func (t *Tree) declared(a uint32) string { return t.prefixes[t.declaredPrefix(a)] }

// declaredPrefix returns the number of that prefix. The local part of the name "xmlns:p" is the
// number of p among the prefixes, because the parser stores declarations this way.
func (t *Tree) declaredPrefix(a uint32) uint32 { return t.names[t.attrs[a].name].local }

// Start returns the offset of the first byte of n.
func (t *Tree) Start(n Node) int { return int(t.nodes[n].start) }

// Span returns the whole of n, for an element with its tags and content.
func (t *Tree) Span(n Node) Span { return Span{int(t.nodes[n].start), t.end(n)} }

// end returns the offset after n.
func (t *Tree) end(n Node) int {
	start := int(t.nodes[n].start)
	switch t.Kind(n) {
	case KindDocument:
		return len(t.text)
	case KindDoctype:
		return int(t.doctypeEnd)
	case KindComment:
		return start + 4 + bytes.Index(t.text[start+4:], []byte("-->")) + 3
	case KindPI:
		return start + 2 + bytes.Index(t.text[start+2:], []byte("?>")) + 2
	case KindText:
		return t.textEnd(n)
	}
	return t.elementEnd(n)
}

// follower returns the next sibling of a node inside the root element. The sibling begins where the
// node ends.
func (t *Tree) follower(n Node) (Node, bool) {
	next := t.nodes[n].next
	return Node(next), int(next) < t.Len() && t.nodes[next].parent == t.nodes[n].parent
}

// textEnd returns the offset after a text node: the start of its next sibling, or else of the end
// tag.
func (t *Tree) textEnd(n Node) int {
	if f, ok := t.follower(n); ok {
		return int(t.nodes[f].start)
	}
	for i := int(t.nodes[n].start); ; {
		i += bytes.IndexByte(t.text[i:], '<')
		if !bytes.HasPrefix(t.text[i:], []byte("<![CDATA[")) {
			return i
		}
		i += bytes.Index(t.text[i:], []byte("]]>"))
	}
}

// elementEnd returns the offset after an element. A last child ends before the end tag of its
// parent, so the search goes up to a parent with a next sibling.
func (t *Tree) elementEnd(n Node) int {
	if t.FirstChild(n) == None {
		tag := t.StartTag(n)
		if t.text[tag.End-2] == '/' {
			return tag.End
		}
		return tag.End + bytes.IndexByte(t.text[tag.End:], '>') + 1
	}
	var chain []Node // the parents up to there, nearest first
	m, end := n, 0
	for {
		if m == t.root {
			end = int(t.rootEnd)
			break
		}
		if f, ok := t.follower(m); ok {
			end = int(t.nodes[f].start)
			break
		}
		m = t.Parent(m)
		chain = append(chain, m)
	}
	for _, parent := range slices.Backward(chain) {
		end = t.endTagStart(parent, end)
	}
	return end
}

// endTagStart returns the start of the end tag of n, which ends at end.
func (t *Tree) endTagStart(n Node, end int) int {
	start := end - 1
	for isSpace(t.text[start-1]) {
		start--
	}
	return start - int(t.names[t.nodes[n].label&nameMask].length) - 2
}

// IsEmptyTag reports whether the element n is written as an empty-element tag, <n/>.
func (t *Tree) IsEmptyTag(n Node) bool { return t.text[t.StartTag(n).End-2] == '/' }

// StartTag returns the start tag of the element n. For an empty-element tag it is the whole
// element.
func (t *Tree) StartTag(n Node) Span {
	start := t.nodes[n].start
	from, to := t.attrsOf(n)
	end := start + 1 + t.names[t.nodes[n].label&nameMask].length
	if to > from {
		end = t.attrs[to-1].end + 1
	}
	for t.text[end] != '>' {
		end++
	}
	return Span{int(start), int(end) + 1}
}

// EndTag returns the end tag of the element n. For an empty-element tag it is empty, after the tag.
func (t *Tree) EndTag(n Node) Span {
	end := t.end(n)
	if t.IsEmptyTag(n) {
		return Span{end, end}
	}
	return Span{t.endTagStart(n, end), end}
}

// Content returns the span between the tags of the element n. For an empty-element tag it is empty,
// after the tag.
func (t *Tree) Content(n Node) Span { return Span{t.StartTag(n).End, t.EndTag(n).Start} }

// AttrSpan returns the whole attribute, name="value".
func (t *Tree) AttrSpan(a Attr) Span { return Span{int(t.attrs[a].start), int(t.attrs[a].end) + 1} }

// ValueSpan returns the attribute's value between its quotes.
func (t *Tree) ValueSpan(a Attr) Span {
	return Span{int(t.valueStart(uint32(a))), int(t.attrs[a].end)}
}

func (t *Tree) valueStart(a uint32) uint32 {
	at := &t.attrs[a]
	return valueStart(t.text, at.start+t.names[at.name].length)
}

// Position returns the line and column of an offset of the text, both from 1. The column counts
// characters.
func (t *Tree) Position(offset int) (line, column int) {
	t.budget.Spend(int64(offset) / 4)
	return position(t.text, offset)
}

// piTarget returns the target of a processing instruction.
func (t *Tree) piTarget(n Node) []byte {
	s := t.text[int(t.nodes[n].start)+2 : t.end(n)-2]
	for i, c := range s {
		if isSpace(c) {
			return s[:i]
		}
	}
	return s
}
