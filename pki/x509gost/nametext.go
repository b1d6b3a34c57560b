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
	var own [][]Attribute
	for i, a := range n.Attributes {
		if i == 0 || n.Attributes[i-1].rdn != a.rdn {
			own = append(own, nil)
		}
		own[len(own)-1] = append(own[len(own)-1], a)
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

func sameRDN(own []Attribute, text []textAttribute) bool {
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
	kind, value string // value is without quotes and escapes
	der         []byte // of a value in hex, else nil
}

func (t textAttribute) is(a *Attribute) bool {
	if oid, known := AttributeByName(t.kind); known {
		if !oid.Equal(a.OID) {
			return false
		}
	} else if strings.Trim(t.kind, "0123456789.") == "" && t.kind != a.OID.String() {
		return false
	}
	if bytes.Equal(t.der, a.der) {
		return true
	}
	value := foldText(a.Value)
	if value == foldText(t.value) {
		return true
	}
	var tag cbasn1.Tag
	in, element := cryptobyte.String(t.der), cryptobyte.String(nil)
	if a.binary || !in.ReadAnyASN1Element(&element, &tag) || !in.Empty() {
		return false
	}
	text, isText := decodeString(element, tag, &deviations{})
	return isText && value == foldText(text)
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
		a := textAttribute{kind: kind}
		rest = strings.TrimLeft(rest, " \t\r\n")
		var quoted bool
		if a.value, text, quoted = quotedValue(rest); !quoted {
			a.value, text = plainValue(rest)
			if digits, isHex := strings.CutPrefix(a.value, "#"); isHex && strings.HasPrefix(rest, "#") {
				if der, err := hex.DecodeString(digits); err == nil {
					a.der = der
				}
			}
		}
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
