// SPDX-License-Identifier: Apache-2.0

package x509gost

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strings"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// maxNameText is the length from which a text is not compared with names, in bytes.
const maxNameText = 64 << 10

// IsText reports whether a text is the name. It is tolerant, because programs write names
// in many ways: RDNs may be in either order, values in quotes, in hex, or without the escapes of
// RFC 4514; values are compared as by Equal. The name of a type that is not in the table of
// attributes is taken for any type, because each program has names of its own. So use it only where
// something else decides.
func (n Name) IsText(text string) bool {
	rdns, ok := readNameText(text)
	if !ok {
		return false
	}
	var own [][]foldedAttribute
	for i := range n.Attributes {
		a := &n.Attributes[i]
		if i == 0 || n.Attributes[i-1].rdn != a.rdn {
			own = append(own, nil)
		}
		own[len(own)-1] = append(own[len(own)-1], foldedAttribute{a, foldText(a.Value)})
	}
	if len(own) != len(rdns) {
		return false
	}
	if slices.EqualFunc(own, rdns, sameRDN) {
		return true
	}
	slices.Reverse(rdns)
	return slices.EqualFunc(own, rdns, sameRDN)
}

// foldedAttribute is an attribute with its value prepared for comparison, once for any number of
// comparisons.
type foldedAttribute struct {
	*Attribute
	folded string
}

func sameRDN(own []foldedAttribute, text []textAttribute) bool {
	if len(own) != len(text) {
		return false
	}
	rest := slices.Clone(text)
	for i := range own {
		at := slices.IndexFunc(rest, func(t textAttribute) bool { return t.is(&own[i]) })
		if at < 0 {
			return false
		}
		rest = slices.Delete(rest, at, at+1)
	}
	return true
}

// textAttribute is one attribute of a name in text.
type textAttribute struct {
	oid    OID    // nil if the name of the type is not known
	dotted string // the name of the type if it is an object identifier
	folded string // the value without quotes and escapes, prepared for comparison
	der    []byte // of a value in hex, else nil
	inHex  string // the string in der, prepared for comparison, if isText
	isText bool
}

func newTextAttribute(kind, value string, der []byte) textAttribute {
	t := textAttribute{folded: foldText(value), der: der}
	t.oid, _ = AttributeByName(kind)
	if strings.Trim(kind, "0123456789.") == "" {
		t.dotted = kind
	}
	var tag cbasn1.Tag
	in, element := cryptobyte.String(der), cryptobyte.String(nil)
	if in.ReadAnyASN1Element(&element, &tag) && in.Empty() {
		if t.inHex, t.isText = decodeString(element, tag, &deviations{}); t.isText {
			t.inHex = foldText(t.inHex)
		}
	}
	return t
}

func (t *textAttribute) is(a *foldedAttribute) bool {
	if t.oid != nil && !t.oid.Equal(a.OID) || t.dotted != "" && t.dotted != a.OID.String() {
		return false
	}
	return t.der != nil && bytes.Equal(t.der, a.der) || t.folded == a.folded || t.isText && !a.binary && t.inHex == a.folded
}

// readNameText reads a name in the order of the text.
func readNameText(text string) (rdns [][]textAttribute, ok bool) {
	if len(text) > maxNameText {
		return nil, false
	}
	same := false // the next attribute is of the last RDN
	for count := 0; strings.TrimSpace(text) != ""; count++ {
		kind, rest, found := strings.Cut(text, "=")
		kind = strings.TrimSpace(kind)
		if len(kind) > 4 && strings.EqualFold(kind[:4], "OID.") {
			kind = kind[4:]
		}
		if !found || kind == "" || count == maxAttributes {
			return nil, false
		}
		rest = strings.TrimLeft(rest, " \t\r\n")
		value, left, quoted := quotedValue(rest)
		var der []byte
		if !quoted {
			value, left = plainValue(rest)
			if strings.HasPrefix(rest, "#") {
				if in, err := hex.DecodeString(value[1:]); err == nil { // otherwise it is text
					der = in
				}
			}
		}
		text = left
		a := newTextAttribute(kind, value, der)
		if same {
			rdns[len(rdns)-1] = append(rdns[len(rdns)-1], a)
		} else {
			rdns = append(rdns, []textAttribute{a})
		}
		if text != "" {
			same = text[0] == '+'
			text = text[1:]
		}
	}
	return rdns, true
}

// quotedValue reads a value in quotation marks (RFC 1779). In it a backslash, or a second quotation
// mark, protects one. left is empty or begins with the separator.
func quotedValue(text string) (value, left string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		return "", text, false
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text), text[i] == '"' && strings.HasPrefix(text[i+1:], `"`):
			i++
		case text[i] == '"':
			left = strings.TrimLeft(text[i+1:], " \t\r\n")
			return b.String(), left, left == "" || separates(left)
		}
		b.WriteByte(text[i])
	}
	return "", text, false
}

// plainValue reads a value without quotation marks. left is empty or begins with the separator.
func plainValue(text string) (value, left string) {
	var b []byte
	end := 0 // white space from here on does not belong to the value
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text):
			i++
			if code, err := hex.DecodeString(text[i:min(i+2, len(text))]); err == nil && len(code) == 1 {
				b, i = append(b, code[0]), i+1
			} else {
				b = append(b, text[i])
			}
			end = len(b)
			continue
		case separates(text[i:]):
			return string(b[:end]), text[i:]
		}
		if b = append(b, c); strings.IndexByte(" \t\r\n", c) < 0 {
			end = len(b)
		}
	}
	return string(b[:end]), ""
}

// separates reports whether a text begins with a separator of attributes. Another attribute must
// follow: there are programs that do not escape the commas of a value.
func separates(text string) bool {
	if text == "" || strings.IndexByte(",;+", text[0]) < 0 {
		return false
	}
	end := strings.IndexAny(text[1:], `,;+="\`)
	return end >= 0 && text[1+end] == '=' && strings.TrimSpace(text[1:1+end]) != ""
}
