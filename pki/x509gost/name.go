// SPDX-License-Identifier: Apache-2.0

package x509gost

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Name is a distinguished name. Raw keeps the bytes as received. Fields that repeat a name
// (an issuer, a signer identifier) copy Raw and never encode the name again.
type Name struct {
	Raw        []byte
	Attributes []Attribute // in encoded order

	key string // normalised form, for Equal
}

// Attribute is one attribute of a name. A value that is not a string reads as "#" and the
// hex of its DER.
type Attribute struct {
	OID   OID
	Value string

	rdn    int    // which RDN it belongs to
	der    []byte // of the value
	binary bool   // the value is not a string
}

// ParseName reads the DER of a Name. Nothing may follow it.
func ParseName(der []byte) (Name, error) {
	in := cryptobyte.String(der)
	var faults deviations
	n, err := readName(&in, &faults)
	if err == nil && !in.Empty() {
		err = fmt.Errorf("%d bytes follow the end", len(in))
	}
	if err != nil {
		return Name{}, fmt.Errorf("x509gost: name: %w", err)
	}
	return n, nil
}

func readName(in *cryptobyte.String, faults *deviations) (Name, error) {
	var raw, rdns cryptobyte.String
	if !in.ReadASN1Element(&raw, cbasn1.SEQUENCE) {
		return Name{}, errors.New("a name is not a SEQUENCE")
	}
	n := Name{Raw: raw}
	raw.ReadASN1(&rdns, cbasn1.SEQUENCE)
	var key strings.Builder
	for rdn := 0; !rdns.Empty(); rdn++ {
		var set cryptobyte.String
		if !rdns.ReadASN1(&set, cbasn1.SET) || set.Empty() {
			return Name{}, errors.New("an RDN of a name is not a SET with content")
		}
		parts, err := n.readRDN(set, rdn, faults)
		if err != nil {
			return Name{}, err
		}
		slices.Sort(parts)
		key.WriteString(strconv.Itoa(len(parts)))
		for _, p := range parts {
			key.WriteByte(':')
			key.WriteString(strconv.Itoa(len(p)))
			key.WriteByte(':')
			key.WriteString(p)
		}
	}
	n.key = key.String()
	return n, nil
}

// readRDN adds the attributes of one RDN to n and returns their normalised forms.
func (n *Name) readRDN(set cryptobyte.String, rdn int, faults *deviations) (parts []string, err error) {
	for !set.Empty() {
		var seq, value cryptobyte.String
		var tag cbasn1.Tag
		if !set.ReadASN1(&seq, cbasn1.SEQUENCE) {
			return nil, errors.New("an attribute of a name is not a SEQUENCE")
		}
		oid, err := readOID(&seq)
		if err != nil {
			return nil, fmt.Errorf("type of an attribute of a name: %w", err)
		}
		if !seq.ReadAnyASN1Element(&value, &tag) || !seq.Empty() {
			return nil, fmt.Errorf("attribute %s of a name must have exactly one value", oid)
		}
		if len(n.Attributes) == maxAttributes {
			return nil, fmt.Errorf("more than %d attributes in a name", maxAttributes)
		}
		text, isText := decodeString(value, tag, faults)
		n.Attributes = append(n.Attributes, Attribute{OID: oid, Value: text, rdn: rdn, der: value, binary: !isText})
		if isText { // "=" separates text from values that are no text but look alike
			text = "=" + foldText(text)
		}
		parts = append(parts, oid.String()+text)
	}
	return parts, nil
}

const (
	tagNumericString   = cbasn1.Tag(18)
	tagVideotexString  = cbasn1.Tag(21)
	tagVisibleString   = cbasn1.Tag(26)
	tagUniversalString = cbasn1.Tag(28)
	tagBMPString       = cbasn1.Tag(30)
)

// decodeString converts any string type to UTF-8.
func decodeString(element cryptobyte.String, tag cbasn1.Tag, faults *deviations) (text string, isText bool) {
	whole := element
	var content cryptobyte.String
	element.ReadAnyASN1(&content, new(cbasn1.Tag))
	switch tag {
	case cbasn1.UTF8String:
		if !utf8.Valid(content) {
			faults.add("a UTF8String of a name is not UTF-8")
			return latin1(content), true
		}
		return string(content), true
	case tagBMPString:
		if text, ok := decodeWide(content, 2); ok {
			return text, true
		}
	case tagUniversalString:
		if text, ok := decodeWide(content, 4); ok {
			return text, true
		}
	case cbasn1.T61String, tagVideotexString:
		return latin1(content), true // as all common readers do
	default:
		allowed, ok := narrow[tag]
		if !ok {
			break
		}
		for _, c := range content {
			if !allowed.has(c) {
				faults.add("a %s of a name has characters outside its alphabet", allowed.name)
				if utf8.Valid(content) {
					return string(content), true
				}
				return latin1(content), true
			}
		}
		return string(content), true
	}
	return "#" + hex.EncodeToString(whole), false
}

// alphabet is a string type with a limited set of single-byte characters.
type alphabet struct {
	name string
	has  func(c byte) bool
}

var (
	numericAlphabet   = alphabet{"NumericString", func(c byte) bool { return c == ' ' || isDigit(c) }}
	printableAlphabet = alphabet{"PrintableString", func(c byte) bool {
		return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' && c < 0x80 || strings.IndexByte(" '()+,-./:=?", c) >= 0
	}}
	ia5Alphabet     = alphabet{"IA5String", func(c byte) bool { return c < 0x80 }}
	visibleAlphabet = alphabet{"VisibleString", func(c byte) bool { return ' ' <= c && c <= '~' }}
)

var narrow = map[cbasn1.Tag]alphabet{
	tagNumericString:       numericAlphabet,
	cbasn1.PrintableString: printableAlphabet,
	cbasn1.IA5String:       ia5Alphabet,
	tagVisibleString:       visibleAlphabet,
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func latin1(content []byte) string {
	r := make([]rune, len(content))
	for i, c := range content {
		r[i] = rune(c)
	}
	return string(r)
}

// decodeWide reads big-endian code units of 2 or 4 bytes. Surrogates are not allowed in
// BMPString and become the replacement character.
func decodeWide(content []byte, width int) (string, bool) {
	if len(content)%width != 0 {
		return "", false
	}
	var b strings.Builder
	for ; len(content) > 0; content = content[width:] {
		var r uint32
		for _, c := range content[:width] {
			r = r<<8 | uint32(c)
		}
		if r > unicode.MaxRune {
			return "", false
		}
		b.WriteRune(rune(r))
	}
	return b.String(), true
}

// foldText prepares strings for the comparison of names (RFC 5280, 7.1; RFC 4518): it
// removes characters without a meaning of their own, decomposes the rest for compatibility,
// folds case and puts one space between words. Characters that RFC 4518, 2.4 prohibits are
// kept, so a name with them equals only itself.
func foldText(text string) string {
	text = strings.Map(mapRune, text)
	if isASCII(text) {
		text = strings.ToLower(text)
	} else { // case folding may leave letters that compose again
		text = norm.NFKC.String(cases.Fold().String(norm.NFKC.String(text)))
	}
	return strings.Join(strings.Fields(text), " ")
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// mapRune is the mapping of RFC 4518, 2.2: it drops controls, soft hyphens, joiners and
// variation selectors. The caller handles white space.
func mapRune(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return r
	case unicode.IsControl(r), r == 0x00ad, r == 0x034f, r == 0x1806, 0x180b <= r && r <= 0x180e, 0x200b <= r && r <= 0x200f,
		0x202a <= r && r <= 0x202e, 0x2060 <= r && r <= 0x2063, 0x206a <= r && r <= 0x206f, 0xfe00 <= r && r <= 0xfe0f,
		r == 0xfeff, 0xfff9 <= r && r <= 0xfffc, 0x1d173 <= r && r <= 0x1d17a, r == 0xe0001, 0xe0020 <= r && r <= 0xe007f:
		return -1
	}
	return r
}

// Equal compares names as RFC 5280, 7.1 requires: by decoded values of any string type,
// without regard to case and the amount of space. The order of RDNs counts, the order of
// attributes in one RDN does not.
func (n Name) Equal(o Name) bool { return n.key == o.key }

// Key returns the same text for equal names. Use it as a key of maps, not for display.
func (n Name) Key() string { return n.key }

// SameName reports whether two encodings are of the same name, by the rules of Equal. Equal
// bytes always are. A malformed encoding equals only itself.
func SameName(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, err := ParseName(a)
	if err != nil {
		return false
	}
	y, err := ParseName(b)
	return err == nil && x.Equal(y)
}

// SameInteger reports whether the contents of two INTEGERs are the same number.
func SameInteger(a, b []byte) bool { return bytes.Equal(trimInteger(a), trimInteger(b)) }

// IsEmpty reports whether the name has no attributes.
func (n Name) IsEmpty() bool { return len(n.Attributes) == 0 }

// Get returns the first value of an attribute.
func (n Name) Get(oid OID) (string, bool) {
	for _, a := range n.Attributes {
		if a.OID.Equal(oid) {
			return a.Value, true
		}
	}
	return "", false
}

// String returns the name for people, as RFC 4514 says: the last RDN first, attributes
// of one RDN joined with a plus sign, special characters escaped. Attributes in the table of
// attributes have their name, others their object identifier. Use RFC4514 where programs read the
// name.
func (n Name) String() string {
	return n.text(func(b *strings.Builder, a *Attribute) {
		b.WriteString(AttributeName(a.OID))
		b.WriteByte('=')
		a.escape(b)
	})
}

// RFC4514 returns the name exactly as RFC 4514 has it, for programs that read it. Only the types
// in the table of its section 3 have names. All others are object identifiers with the DER of the
// value in hex, as section 2.4 requires. Characters that XML does not have are escaped.
func (n Name) RFC4514() string {
	return n.text(func(b *strings.Builder, a *Attribute) {
		name, ok := namesOfRFC4514[a.OID.String()]
		if !ok {
			fmt.Fprintf(b, "%s=#%x", a.OID, a.der)
			return
		}
		b.WriteString(name)
		b.WriteByte('=')
		a.escape(b)
	})
}

// namesOfRFC4514 is the table of RFC 4514, section 3.
var namesOfRFC4514 = map[string]string{
	OIDCommonName.String():         "CN",
	OIDLocality.String():           "L",
	OIDProvince.String():           "ST",
	OIDOrganization.String():       "O",
	OIDOrganizationalUnit.String(): "OU",
	OIDCountry.String():            "C",
	OIDStreet.String():             "STREET",
	OIDDomainComponent.String():    "DC",
	"0.9.2342.19200300.100.1.1":    "UID",
}

func (n Name) text(write func(b *strings.Builder, a *Attribute)) string {
	var b strings.Builder
	for end := len(n.Attributes); end > 0; {
		start := end - 1
		for start > 0 && n.Attributes[start-1].rdn == n.Attributes[end-1].rdn {
			start--
		}
		for i := start; i < end; i++ {
			switch {
			case i > start:
				b.WriteByte('+')
			case b.Len() > 0:
				b.WriteByte(',')
			}
			write(&b, &n.Attributes[i])
		}
		end = start
	}
	return b.String()
}

// escape writes the value with the escapes of RFC 4514, 2.4. A number sign at the beginning of a
// string is escaped: without that it begins a value in hex.
func (a *Attribute) escape(b *strings.Builder) {
	if a.binary {
		b.WriteString(a.Value)
		return
	}
	for i, r := range a.Value {
		switch {
		case r < ' ' || r == 0x7f || r == 0xfffe || r == 0xffff:
			for _, c := range []byte(string(r)) {
				fmt.Fprintf(b, `\%02X`, c)
			}
			continue
		case strings.ContainsRune(`,+"\<>;`, r), r == ' ' && (i == 0 || i == len(a.Value)-1), r == '#' && i == 0:
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
}
