// SPDX-License-Identifier: Apache-2.0

package xmltree

import (
	"bytes"
	"context"
	"slices"

	"tamga/sig/budget"
)

// unbound is the binding of a prefix without a declaration in scope.
const unbound = ^uint32(0)

// Sizes in bytes of a node (with its part of Tree.first), of an attribute and of a name (with its
// entries in the tables).
const (
	nodeSize = 17
	attrSize = 16
	nameSize = 192
)

// parser reads a document in one pass, without recursion. cur is the open element, its parents are
// the open elements around it.
type parser struct {
	t     *Tree
	s     []byte // the text
	i     int
	o     Options
	cur   Node
	depth int
	names *names
	bound []uint32  // indexed by prefix: the namespace name in scope, or unbound
	undo  []binding // bindings hidden by declarations of open elements
	keys  []uint64  // buffer for finding duplicate attributes
	paid  int       // nodes and attributes that are charged to the budget
}

// binding is a binding that a declaration on the element of hides.
type binding struct {
	prefix, uri uint32
	of          Node
}

// Parse reads a document. The document must be well-formed by XML 1.0 (fifth edition) and
// Namespaces in XML 1.0, of version 1.0, and without document type declaration unless o allows
// it. Encodings are UTF-8, UTF-16 with byte order mark or declaration, and, if declared,
// windows-1251, koi8-r, iso-8859-5, iso-8859-1 and us-ascii. The tree keeps document, which must
// not be changed afterwards. Errors are *SyntaxError and those of the budget, which is charged for
// the tree. Time is linear in the size.
func Parse(document []byte, o Options) (*Tree, error) {
	p := &parser{t: &Tree{}, o: o.withDefaults(), names: tables.Get().(*names)}
	defer p.names.putBack()
	t := p.t
	if t.budget = p.o.Budget; t.budget == nil {
		t.budget = budget.New(context.Background(), budget.Ordinary(int64(len(document))))
	}
	body, err := t.decode(document, p.o)
	if err != nil {
		return nil, err
	}
	p.s, p.i = t.text, body
	if more := len(p.s) - len(document); more > 0 { // another encoding
		if err := t.budget.Spend(int64(more)); err != nil {
			return nil, err
		}
	}
	t.uris = []string{"", NamespaceXML, NamespaceXMLNS}
	t.relative = make([]bool, 3)
	t.prefixes = []string{"", "xml", "xmlns"}
	p.bound = []uint32{uriNone, uriXML, uriXMLNS}
	t.root = None
	nodes, attrs := count(p.s)
	nodes, attrs = min(nodes, p.o.Nodes), min(attrs, p.o.Nodes)
	if err := t.budget.Hold(nodeSize*int64(nodes) + attrSize*int64(attrs)); err != nil {
		return nil, err
	}
	t.nodes = make([]node, 0, nodes+2)
	t.attrs = make([]attr, 0, attrs)
	t.nodes = append(t.nodes, node{parent: int32(None), label: uint32(KindDocument) << kindShift})
	t.first = make([]uint32, 1, cap(t.nodes)/attrBlock+2)
	if err := p.document(); err != nil {
		return nil, err
	}
	if err := p.pay(1); err != nil {
		return nil, err
	}
	t.nodes[Document].next = int32(len(t.nodes))
	p.block()
	t.nodes = append(t.nodes, node{start: uint32(len(p.s)), parent: int32(None)}) // the sentinel
	// The estimate was too high if text or comments look like markup.
	if cap(t.nodes) > 2*len(t.nodes) {
		t.nodes, t.first = slices.Clone(t.nodes), slices.Clone(t.first)
	}
	if cap(t.attrs) > 2*len(t.attrs) {
		t.attrs = slices.Clone(t.attrs)
	}
	return t, nil
}

// count estimates the nodes and attributes of a well-formed document, so that the arrays need not
// grow. Growing would copy them and hold old and new memory for a while.
func count(s []byte) (nodes, attrs int) {
	for i := 0; ; {
		next := bytes.IndexByte(s[i:], '<')
		if next < 0 {
			break
		}
		if next > 0 {
			nodes++ // text
		}
		i += next + 1
		rest := s[i:]
		var end string
		switch {
		case len(rest) == 0:
		case rest[0] == '/':
			end = ">"
		case rest[0] == '?':
			nodes, end = nodes+1, "?>"
		case bytes.HasPrefix(rest, []byte("!--")):
			nodes, end = nodes+1, "-->"
		case bytes.HasPrefix(rest, []byte("![CDATA[")):
			nodes, end = nodes+1, "]]>"
		default:
			nodes++
			tag := bytes.IndexByte(rest, '>')
			if tag < 0 {
				tag = len(rest)
			}
			// An attribute has at least five bytes, so a value full of equal signs allocates
			// no more than other text.
			attrs += min(bytes.Count(rest[:tag], []byte{'='}), tag/5)
			i += tag
			if i < len(s) {
				i++
			}
		}
		if end != "" {
			n := bytes.Index(s[i:], []byte(end))
			if n < 0 {
				break
			}
			i += n + len(end)
		}
	}
	return nodes, attrs
}

func (p *parser) fail(at int, format string, args ...any) error {
	return failAt(p.s, at, nil, format, args...)
}

func (p *parser) limit(at int, what string, most int) error {
	return failAt(p.s, at, ErrLimit, "more than %d %s", most, what)
}

// begins reports whether the text continues with s.
func (p *parser) begins(s string) bool {
	return len(p.s)-p.i >= len(s) && string(p.s[p.i:p.i+len(s)]) == s
}

func (p *parser) document() error {
	for p.i < len(p.s) {
		var err error
		switch {
		case p.s[p.i] != '<' || p.begins("<![CDATA["):
			err = p.characters()
		case p.begins("</"):
			err = p.endTag()
		case p.begins("<?"):
			err = p.instruction()
		case p.begins("<!--"):
			err = p.comment()
		case p.begins("<!DOCTYPE"):
			err = p.doctype()
		case p.begins("<!"):
			err = p.fail(p.i, "<! must begin a comment <!-- or a section <![CDATA[")
		default:
			err = p.startTag()
		}
		if err != nil {
			return err
		}
	}
	if p.cur != Document {
		name := p.t.Name(p.cur)
		return p.fail(len(p.s), "the document ends inside the element %.40q", name.String())
	}
	if p.t.root == None {
		return p.fail(len(p.s), "the document has no root element")
	}
	return nil
}

// add appends a node of the current element.
func (p *parser) add(start int, label uint32) (Node, error) {
	t := p.t
	if len(t.nodes)+len(t.attrs) >= p.o.Nodes {
		return None, p.limit(start, "nodes and attributes", p.o.Nodes)
	}
	if err := p.pay(portion); err != nil {
		return None, err
	}
	p.block()
	n := Node(len(t.nodes))
	t.nodes = append(t.nodes, node{start: uint32(start), parent: int32(p.cur), next: int32(n) + 1, label: label})
	return n, nil
}

// portion is how many nodes and attributes are charged at once.
const portion = 512

// pay charges the nodes and attributes that are not charged yet, if there are at least so many. It
// is called while the document is read, since a budget may have work wait for that of others.
func (p *parser) pay(least int) error {
	due := len(p.t.nodes) + len(p.t.attrs) - p.paid
	if due < least {
		return nil
	}
	p.paid += due
	return p.t.budget.Spend(8 * int64(due))
}

// block records where the attributes of the next node begin, if this node begins a block.
func (p *parser) block() {
	if len(p.t.nodes)%attrBlock == 0 {
		p.t.first = append(p.t.first, uint32(len(p.t.attrs)))
	}
}

// characters reads a text node: all character data, references and CDATA sections up to the next
// other markup.
func (p *parser) characters() error {
	s, start, i := p.s, p.i, p.i
	if p.cur == Document {
		i = skipSpace(s, i)
		if i < len(s) && (s[i] != '<' || i == start) {
			where := "before"
			if p.t.root != None {
				where = "after"
			}
			return p.fail(i, "text %s the root element; only white space, comments and processing instructions are allowed there", where)
		}
		p.i = i
		return nil
	}
	label := uint32(KindText)<<kindShift | flagPlain
	run := i // "]]>" is wrong from here on
loop:
	for i < len(s) {
		c := s[i]
		switch textClass[c] {
		case plain:
			i++
			for i < len(s) && textClass[s[i]] == plain {
				i++
			}
			continue
		case escape:
			label &^= flagPlain
		case high:
			if isBMPNonChar(s[i:]) {
				return p.badChar(i)
			}
		case bad:
			return p.badChar(i)
		case stop:
			switch c {
			case '>':
				label &^= flagPlain
				if i-run >= 2 && s[i-1] == ']' && s[i-2] == ']' {
					return p.fail(i-2, "]]> is not allowed in text")
				}
			case '&':
				label &^= flagPlain
				end, err := p.reference(i)
				if err != nil {
					return err
				}
				i = end
				continue
			case '<':
				if !bytes.HasPrefix(s[i:], []byte("<![CDATA[")) {
					break loop
				}
				label &^= flagPlain
				const open = len("<![CDATA[")
				n := bytes.Index(s[i+open:], []byte("]]>"))
				if n < 0 {
					return p.fail(i, "the CDATA section does not end")
				}
				if err := p.checkChars(i+open, i+open+n); err != nil {
					return err
				}
				i += open + n + len("]]>")
				run = i
				continue
			}
		}
		i++
	}
	p.i = i
	_, err := p.add(start, label)
	return err
}

// checkChars returns an error unless s[from:to] has only characters of XML.
func (p *parser) checkChars(from, to int) error {
	for i := from; i < to; i++ {
		if c := charClass[p.s[i]]; c == bad || c == high && isBMPNonChar(p.s[i:to]) {
			return p.badChar(i)
		}
	}
	return nil
}

func (p *parser) badChar(i int) error {
	if p.s[i] == 0xEF {
		return p.fail(i, "U+FFFE and U+FFFF are not characters of XML")
	}
	return p.fail(i, "U+%04X is not a character of XML", p.s[i])
}

// reference checks the reference at i and returns the offset after it.
func (p *parser) reference(i int) (end int, err error) {
	_, length := readReference(p.s[i:])
	if length > 0 {
		return i + length, nil
	}
	semicolon := bytes.IndexByte(p.s[i:min(i+16, len(p.s))], ';')
	switch {
	case semicolon < 0:
		return 0, p.fail(i, "& must begin a reference such as &amp; or &#38;")
	case p.s[i+1] == '#':
		return 0, p.fail(i, "%s does not refer to a character of XML", p.s[i:i+semicolon+1])
	}
	return 0, p.fail(i, "unknown entity %q; only amp, lt, gt, apos and quot are allowed", p.s[i:i+semicolon+1])
}

// readReference reads the reference at the beginning of s. length is 0 if it is neither one of the
// five entities nor a reference to a character of XML.
func readReference(s []byte) (r rune, length int) {
	for _, e := range entities {
		if len(s) >= len(e.text) && string(s[:len(e.text)]) == e.text {
			return e.r, len(e.text)
		}
	}
	if len(s) < 4 || s[1] != '#' {
		return 0, 0
	}
	i, base := 2, rune(10)
	if s[2] == 'x' {
		i, base = 3, 16
	}
	digits := i
	for ; i < len(s) && s[i] != ';'; i++ {
		c, d := s[i], rune(0)
		switch {
		case c >= '0' && c <= '9':
			d = rune(c - '0')
		case base == 16 && c|0x20 >= 'a' && c|0x20 <= 'f':
			d = rune(c|0x20-'a') + 10
		default:
			return 0, 0
		}
		if r = r*base + d; r > 0x10FFFF {
			return 0, 0
		}
	}
	if i == len(s) || i == digits || !isChar(r) {
		return 0, 0
	}
	return r, i + 1
}

var entities = []struct {
	text string
	r    rune
}{{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}}

func (p *parser) comment() error {
	start := p.i
	n := bytes.Index(p.s[start+4:], []byte("--"))
	if n < 0 {
		return p.fail(start, "the comment does not end")
	}
	end := start + 4 + n
	if end+2 >= len(p.s) || p.s[end+2] != '>' {
		return p.fail(end, "-- is not allowed inside a comment")
	}
	if err := p.checkChars(start+4, end); err != nil {
		return err
	}
	p.i = end + 3
	_, err := p.add(start, uint32(KindComment)<<kindShift)
	return err
}

func (p *parser) instruction() error {
	start := p.i
	n := bytes.Index(p.s[start+2:], []byte("?>"))
	if n < 0 {
		return p.fail(start, "the processing instruction does not end")
	}
	end := start + 2 + n
	target := p.s[start+2 : end]
	for i, c := range target {
		if isSpace(c) {
			target = target[:i]
			break
		}
	}
	switch {
	case bytes.EqualFold(target, []byte("xml")) && len(target) == 3:
		return p.fail(start, "an XML declaration is allowed only at the very beginning of the document, and a processing instruction must not be named xml")
	case !isNCName(target):
		return p.fail(start+2, "%.40q is not a name of a processing instruction; it must be a name without colon", target)
	}
	if err := p.checkChars(start+2+len(target), end); err != nil {
		return err
	}
	p.i = end + 2
	_, err := p.add(start, uint32(KindPI)<<kindShift)
	return err
}

func (p *parser) badDoctype(at int, format string, args ...any) error {
	return failAt(p.s, at, ErrDoctype, format, args...)
}

// doctype reads <!DOCTYPE name ExternalID?> if it is allowed.
func (p *parser) doctype() error {
	start := p.i
	switch {
	case !p.o.AllowDoctype:
		return p.badDoctype(start, "document type declarations are refused")
	case p.t.root != None, p.cur != Document:
		return p.fail(start, "a document type declaration is allowed only before the root element")
	}
	for n := Document + 1; int(n) < len(p.t.nodes); n++ {
		if p.t.Kind(n) == KindDoctype {
			return p.fail(start, "a second document type declaration")
		}
	}
	i := start + len("<!DOCTYPE")
	at := skipSpace(p.s, i)
	end := p.nameEnd(at)
	if at == i || at == end || !isQName(p.s[at:end]) {
		return p.fail(i, "a document type declaration must begin with <!DOCTYPE, white space and the name of the root element")
	}
	i = skipSpace(p.s, end)
	for _, id := range []struct {
		word     string
		literals int
	}{{"SYSTEM", 1}, {"PUBLIC", 2}} {
		if !bytes.HasPrefix(p.s[i:], []byte(id.word)) || i == end {
			continue
		}
		i += len(id.word)
		for k := range id.literals {
			at := skipSpace(p.s, i)
			if at == i || at >= len(p.s) || p.s[at] != '"' && p.s[at] != '\'' {
				return p.fail(i, "%s in a document type declaration must be followed by %d literals in quotes", id.word, id.literals)
			}
			n := bytes.IndexByte(p.s[at+1:], p.s[at])
			if n < 0 {
				return p.fail(at, "the literal does not end")
			}
			if err := p.checkChars(at+1, at+1+n); err != nil {
				return err
			}
			if bad := slices.IndexFunc(p.s[at+1:at+1+n], func(c byte) bool { return !isPubid(c) }); id.literals == 2 && k == 0 && bad >= 0 {
				return p.fail(at+1+bad, "this character is not allowed in a public identifier")
			}
			i = at + n + 2
		}
		i = skipSpace(p.s, i)
		break
	}
	switch {
	case i < len(p.s) && p.s[i] == '[':
		return p.badDoctype(i, "a document type declaration with an internal subset is refused")
	case i >= len(p.s) || p.s[i] != '>':
		return p.fail(i, "the document type declaration must end with >")
	}
	p.i = i + 1
	p.t.doctypeEnd = uint32(p.i)
	_, err := p.add(start, uint32(KindDoctype)<<kindShift)
	return err
}

// isPubid reports whether c matches production PubidChar.
func isPubid(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || bytes.IndexByte([]byte(" \r\n-'()+,./:=?;!*#@$_%"), c) >= 0
}

func isQName(s []byte) bool {
	prefix, local, found := bytes.Cut(s, []byte{':'})
	return isNCName(prefix) && (!found || isNCName(local))
}

// nameEnd returns the offset after the name at i.
func (p *parser) nameEnd(i int) int {
	for i < len(p.s) && !nameEnd[p.s[i]] {
		i++
	}
	return i
}

func (p *parser) endTag() error {
	t, s, start := p.t, p.s, p.i
	if p.cur == Document {
		return p.fail(start, "an end tag without an open element")
	}
	n := &t.nodes[p.cur]
	m := &t.names[n.label&nameMask]
	i := start + 2 + int(m.length)
	if i >= len(s) || !bytes.Equal(s[start+2:i], s[m.start:m.start+m.length]) || !nameEnd[s[i]] {
		return p.fail(start, "</%.40s> closes <%.40s>: the names must be the same", s[start+2:p.nameEnd(start+2)], s[m.start:m.start+m.length])
	}
	if i = skipSpace(s, i); i >= len(s) || s[i] != '>' {
		return p.fail(i, "the end tag must end with >")
	}
	p.i = i + 1
	p.close()
	return nil
}

// close ends the current element at p.i.
func (p *parser) close() {
	n := &p.t.nodes[p.cur]
	n.next = int32(len(p.t.nodes))
	if p.cur == p.t.root {
		p.t.rootEnd = uint32(p.i)
	}
	for len(p.undo) > 0 && p.undo[len(p.undo)-1].of == p.cur {
		b := p.undo[len(p.undo)-1]
		p.undo = p.undo[:len(p.undo)-1]
		p.bound[b.prefix] = b.uri
	}
	p.cur = Node(n.parent)
	p.depth--
}
