// SPDX-License-Identifier: Apache-2.0

package cms

import (
	"bytes"
	"fmt"
)

// notDER returns what is not in DER in the signed attributes of the message, except for the order
// of the attributes, or "". Attributes in BER are signed in DER (RFC 5652, 5.4), but programs that
// verify the bytes of the message refuse that, and the others refuse a value over those bytes.
func (s *SignerInfo) notDER() string {
	if s.definite {
		// These are the bytes of the message, but for the tag.
		_, n, _, err := parseHeader(s.RawSignedAttrs)
		if err != nil {
			return "" // there are no signed attributes
		}
		return notDERInside(s.RawSignedAttrs[n:], 1)
	}
	fields, err := split(s.Raw)
	if err != nil {
		return "malformed" // parseSignerInfo has read it before
	}
	for _, f := range fields {
		if f[0] != tagContext0 {
			continue
		}
		// The implicit tag replaces that of a SET, whose order overAttributes judges.
		_, n, length, err := parseHeader(f)
		if reason := notMinimal(f, n, length); err != nil || reason != "" {
			return reason
		}
		return notDERInside(f[n:], 1)
	}
	return ""
}

// notMinimal returns what is not in DER in the header of the element b.
func notMinimal(b []byte, n int, length int64) string {
	switch {
	case length < 0:
		return "an indefinite length"
	case n-identifierLen(b) != lengthLen(length):
		return "a length with leading zeros"
	case b[0]&0x1f == 0x1f && (b[1] == 0x80 || b[1] < 0x1f):
		return "a long tag number"
	}
	return ""
}

// notDERInside returns what is not in DER in a row of elements.
func notDERInside(b []byte, depth int) string {
	if depth > maxDepth {
		return fmt.Sprintf("elements nested deeper than %d", maxDepth)
	}
	for len(b) > 0 {
		tag, n, length, err := parseHeader(b)
		if err != nil {
			return "malformed"
		}
		if reason := notMinimal(b, n, length); reason != "" {
			return reason
		}
		if length > int64(len(b)-n) {
			return "malformed"
		}
		body := b[n : n+int(length)]
		switch {
		case universalString(tag):
			return "a string in pieces"
		case tag&bitConstructed != 0:
			if reason := notDERInside(body, depth+1); reason != "" {
				return reason
			}
			if tag == tagSet && !sortedElements(body) {
				return "a SET that is not in order"
			}
		default:
			if reason := notDERValue(tag, body); reason != "" {
				return reason
			}
		}
		b = b[n+int(length):]
	}
	return ""
}

// notDERValue returns what is not in DER in the contents of a primitive element (X.690, 8 and 11).
// It does not know the types of implicit tags.
func notDERValue(tag byte, body []byte) string {
	switch tag {
	case tagBoolean:
		if len(body) != 1 || body[0] != 0 && body[0] != 0xff {
			return "a BOOLEAN that is neither 00 nor FF"
		}
	case tagInteger, tagEnumerated:
		if len(body) == 0 || len(body) > 1 && (body[0] == 0 && body[1] < 0x80 || body[0] == 0xff && body[1] >= 0x80) {
			return "a number with bytes that it does not need"
		}
	case tagBitString:
		if len(body) == 0 || body[0] > 7 || len(body) == 1 && body[0] != 0 || body[len(body)-1]&(1<<body[0]-1) != 0 && len(body) > 1 {
			return "a BIT STRING with bits after its end"
		}
	case tagNull:
		if len(body) != 0 {
			return "a NULL with contents"
		}
	case tagOID:
		start := true // of an arc
		for _, c := range body {
			if start && c == 0x80 {
				return "an OBJECT IDENTIFIER with bytes that it does not need"
			}
			start = c < 0x80
		}
		if !start || len(body) == 0 {
			return "an OBJECT IDENTIFIER that is cut short"
		}
	}
	return ""
}

// sortedElements reports whether well-formed elements are in the order of their encodings, as
// those of a SET OF must be (X.690, 11.6).
func sortedElements(b []byte) bool {
	var last []byte
	for len(b) > 0 {
		size, err := elementSize(b, 0)
		if err != nil || bytes.Compare(b[:size], last) < 0 {
			return false
		}
		last, b = b[:size], b[size:]
	}
	return true
}
