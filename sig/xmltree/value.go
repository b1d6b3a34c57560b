// SPDX-License-Identifier: Apache-2.0

package xmltree

import (
	"bytes"
	"encoding/base64"
	"io"
	"strings"
	"unicode/utf8"
)

// valueStart returns the offset after the first opening quote after i.
func valueStart(s []byte, i uint32) uint32 {
	for s[i] != '"' && s[i] != '\'' {
		i++
	}
	return i + 1
}

// normalize returns the normalised value of an attribute of type CDATA (XML 1.0, 3.3.3): literal
// white space becomes spaces, a line end one space, and references are replaced.
func normalize(raw []byte) string {
	if !bytes.ContainsAny(raw, "&\t\n\r") {
		return string(raw)
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; c {
		case '&':
			r, length := readReference(raw[i:])
			out = utf8.AppendRune(out, r)
			i += length - 1
		case '\r':
			if i+1 < len(raw) && raw[i+1] == '\n' {
				i++
			}
			out = append(out, ' ')
		case '\t', '\n':
			out = append(out, ' ')
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

// Value returns the normalised value of an attribute (XML 1.0, 3.3.3, all of type CDATA), or the
// namespace name of a declaration.
func (t *Tree) Value(a Attr) string {
	if t.isDeclaration(uint32(a)) {
		return t.uris[t.attrs[a].extra]
	}
	return normalize(t.rawValue(uint32(a)))
}

func (t *Tree) rawValue(a uint32) []byte { return t.text[t.valueStart(a):t.attrs[a].end] }

// StringValue returns the string value of n as XPath defines it: for Document and an element all
// text below it, for a comment the text between its marks, for a processing instruction the text
// after its target.
func (t *Tree) StringValue(n Node) string {
	var b strings.Builder
	switch t.Kind(n) {
	case KindComment:
		foldTo(&b, t.text[int(t.nodes[n].start)+4:t.end(n)-3])
	case KindPI:
		foldTo(&b, t.piData(n))
	case KindText, KindElement, KindDocument:
		for m := n; m < t.After(n); m++ {
			if t.Kind(m) == KindText {
				t.textTo(&b, m)
			}
		}
	}
	return b.String()
}

// Base64 decodes the text of n, Base64 of at most most characters with white space anywhere. flaw makes the error of a
// document that has something else there.
func (t *Tree) Base64(n Node, most int, flaw func(format string, args ...any) error) ([]byte, error) {
	text := t.StringValue(n)
	if len(text) > most {
		return nil, flaw("%s has %d characters, at most %d expected", t.Name(n), len(text), most)
	}
	value, err := DecodeBase64(text)
	if err != nil {
		return nil, flaw("%s is not Base64", t.Name(n))
	}
	return value, nil
}

// DecodeBase64 decodes Base64 with white space anywhere.
func DecodeBase64(text string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
}

// piData returns the content of a processing instruction as written.
func (t *Tree) piData(n Node) []byte {
	s := t.text[int(t.nodes[n].start)+2 : t.end(n)-2]
	s = s[len(t.piTarget(n)):]
	return s[skipSpace(s, 0):]
}

// foldTo writes s with its line ends as single line feeds (XML 1.0, 2.11).
func foldTo(w io.Writer, s []byte) {
	for {
		i := bytes.IndexByte(s, '\r')
		if i < 0 {
			w.Write(s)
			return
		}
		w.Write(s[:i])
		w.Write([]byte{'\n'})
		if s = s[i+1:]; len(s) > 0 && s[0] == '\n' {
			s = s[1:]
		}
	}
}

// textTo writes the string value of the text node n.
func (t *Tree) textTo(w io.Writer, n Node) {
	t.eachPiece(n, func(s []byte, reference bool) {
		if reference {
			r, _ := readReference(s)
			w.Write(utf8.AppendRune(nil, r))
			return
		}
		foldTo(w, s)
	})
}

// eachPiece splits the text node n into references and everything else. piece gets character data
// and the insides of CDATA sections as written.
func (t *Tree) eachPiece(n Node, piece func(s []byte, reference bool)) {
	s := t.Slice(t.Span(n))
	if t.nodes[n].label&flagPlain != 0 {
		piece(s, false)
		return
	}
	const open = len("<![CDATA[")
	for len(s) > 0 {
		i := bytes.IndexAny(s, "&<")
		if i < 0 {
			piece(s, false)
			return
		}
		if i > 0 {
			piece(s[:i], false)
		}
		s = s[i:]
		if s[0] == '&' {
			_, length := readReference(s)
			piece(s[:length], true)
			s = s[length:]
			continue
		}
		end := bytes.Index(s, []byte("]]>"))
		piece(s[open:end], false)
		s = s[end+3:]
	}
}

// securityUtility is the namespace of wsu:Id (WS-Security 1.0).
const securityUtility = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd"

// idAttributes has the attributes that give an element an id.
var idAttributes = []struct{ space, local string }{
	{"", "Id"}, {"", "ID"}, {"", "id"}, {NamespaceXML, "id"}, {securityUtility, "Id"},
}

// isID reports whether a name is that of an id attribute.
func (t *Tree) isID(number uint32) bool {
	for _, a := range idAttributes {
		if t.nameIs(number, a.space, a.local) {
			return true
		}
	}
	return false
}

// isRival reports whether any known program takes attributes of a name for ids: id in any letter
// case and namespace, and the ids of SAML 1.1.
func (t *Tree) isRival(number uint32) bool {
	m := &t.names[number]
	local := t.text[m.start : m.start+m.length]
	if m.prefixLength > 0 {
		local = local[m.prefixLength+1:]
	}
	if len(local) == len("id") && strings.EqualFold(string(local), "id") {
		return true
	}
	return t.nameIs(number, "", "AssertionID") || t.nameIs(number, "", "RequestID") || t.nameIs(number, "", "ResponseID")
}

// ByID returns the elements with that value in one of the id attributes (Id, ID, id without
// namespace, xml:id, wsu:Id), in document order and each once. A caller may resolve a Reference
// only if there is exactly one.
func (t *Tree) ByID(id string) []Node { return t.ByIDs(id)[id] }

// ByIDs is ByID for many ids in one pass over the tree.
func (t *Tree) ByIDs(ids ...string) map[string][]Node {
	return t.owners(ids, t.isID)
}

// Rivals is ByIDs for all attributes that any known program takes for an id: id in any letter case
// and namespace, and the ids of SAML 1.1. Programs that search for an id agree only if it has one
// rival.
func (t *Tree) Rivals(ids ...string) map[string][]Node { return t.owners(ids, t.isRival) }

func (t *Tree) owners(ids []string, counts func(number uint32) bool) map[string][]Node {
	owners := make(map[string][]Node, len(ids))
	for _, id := range ids {
		owners[id] = nil
	}
	t.budget.Spend(int64(8*len(t.names) + len(t.attrs)))
	isID := make([]bool, len(t.names))
	found := false
	for n := range t.names {
		if counts(uint32(n)) {
			isID[n], found = true, true
		}
	}
	if !found || len(ids) == 0 {
		return owners
	}
	owner := Document
	for a := range t.attrs {
		if !isID[t.attrs[a].name] || t.isDeclaration(uint32(a)) {
			continue
		}
		for t.nodes[owner+1].start <= t.attrs[a].start {
			owner++
		}
		if t.budget.Spend(8+int64(t.attrs[a].end-t.attrs[a].start)/4) != nil {
			return map[string][]Node{} // the caller will see the error of the budget
		}
		value := t.Value(Attr(a))
		nodes, wanted := owners[value]
		if wanted && (len(nodes) == 0 || nodes[len(nodes)-1] != owner) {
			owners[value] = append(nodes, owner)
		}
	}
	return owners
}

// OwnerOf returns the element of the attribute or declaration a.
func (t *Tree) OwnerOf(a Attr) Node {
	// The owner is the last node that begins before it.
	low, high := 0, t.Len()
	for high-low > 1 {
		mid := int(uint(low+high) / 2)
		if t.nodes[mid].start < t.attrs[a].start {
			low = mid
		} else {
			high = mid
		}
	}
	return Node(low)
}
