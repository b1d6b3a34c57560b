// SPDX-License-Identifier: Apache-2.0

package x509gost

import (
	"errors"
	"fmt"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// maxBERDepth limits the nesting of BER elements.
const maxBERDepth = 32

// FromBER converts one BER element (X.690, 8) to DER, as far as lengths and divided strings
// are concerned: indefinite and padded lengths become definite and short, and an OCTET
// STRING in pieces becomes one piece. It does not sort or normalise anything else, so
// signed bytes stay as their signer encoded them. Input in DER is returned unchanged.
// Nothing may follow the element. limit is the largest length in bytes.
func FromBER(data []byte, limit int) ([]byte, error) {
	if len(data) > limit {
		return nil, fmt.Errorf("x509gost: BER: %d bytes are more than the %d allowed", len(data), limit)
	}
	in := cryptobyte.String(data)
	var element cryptobyte.String
	var tag cbasn1.Tag
	if in.ReadAnyASN1Element(&element, &tag) && in.Empty() && isDER(element, 0) {
		return data, nil
	}
	out, rest, err := berElement(data, 0)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes follow the end", len(rest))
	}
	if err != nil {
		return nil, fmt.Errorf("x509gost: BER: %w", err)
	}
	return out, nil
}

// isDER reports whether an element and everything in it has definite, short lengths, and
// no string is in pieces.
func isDER(element cryptobyte.String, depth int) bool {
	var content, inner cryptobyte.String
	var tag cbasn1.Tag
	if depth > maxBERDepth || !element.ReadAnyASN1(&content, &tag) {
		return false
	}
	if tag&0x20 == 0 {
		return true
	}
	if tag == cbasn1.OCTET_STRING|0x20 {
		return false
	}
	for !content.Empty() {
		if !content.ReadAnyASN1Element(&inner, &tag) || !isDER(inner, depth+1) {
			return false
		}
	}
	return true
}

var errBER = errors.New("not a well-formed element")

// berElement reads one element and encodes it again. It copies the bytes of a level once
// for each level above, so at most maxBERDepth times.
func berElement(in []byte, depth int) (out, rest []byte, err error) {
	if depth > maxBERDepth {
		return nil, nil, fmt.Errorf("elements nest deeper than %d", maxBERDepth)
	}
	if len(in) < 2 || in[0]&0x1f == 0x1f {
		return nil, nil, errBER // no supported structure has tags above 30
	}
	tag, constructed := in[0], in[0]&0x20 != 0
	length, indefinite, body, err := berLength(in[1:])
	if err != nil {
		return nil, nil, err
	}
	if indefinite && !constructed || !indefinite && length > len(body) {
		return nil, nil, errBER
	}
	if !indefinite {
		body, rest = body[:length], body[length:]
	}
	if !constructed {
		return derElement(tag, body), rest, nil
	}
	whole := tag == 0x24 // an OCTET STRING in pieces
	var content []byte
	for {
		if indefinite && len(body) >= 2 && body[0] == 0 && body[1] == 0 {
			rest = body[2:]
			break
		}
		if len(body) == 0 {
			if indefinite {
				return nil, nil, errBER
			}
			break
		}
		var inner []byte
		if inner, body, err = berElement(body, depth+1); err != nil {
			return nil, nil, err
		}
		if whole {
			piece := cryptobyte.String(inner)
			var contents cryptobyte.String
			if !piece.ReadASN1(&contents, cbasn1.OCTET_STRING) {
				return nil, nil, errors.New("a piece of an OCTET STRING has another type")
			}
			inner = contents
		}
		content = append(content, inner...)
	}
	if whole {
		tag = 0x04
	}
	return derElement(tag, content), rest, nil
}

func berLength(in []byte) (length int, indefinite bool, rest []byte, err error) {
	first := in[0]
	if first < 0x80 {
		return int(first), false, in[1:], nil
	}
	if first == 0x80 {
		return 0, true, in[1:], nil
	}
	count := int(first & 0x7f)
	if count > 8 || count > len(in)-1 {
		return 0, false, nil, errBER
	}
	for _, c := range in[1 : 1+count] {
		if length > 1<<23 { // larger than every limit in use
			return 0, false, nil, errBER
		}
		length = length<<8 | int(c)
	}
	return length, false, in[1+count:], nil
}

func derElement(tag byte, content []byte) []byte {
	out := make([]byte, 1, len(content)+6)
	out[0] = tag
	switch n := len(content); {
	case n < 0x80:
		out = append(out, byte(n))
	case n < 1<<8:
		out = append(out, 0x81, byte(n))
	case n < 1<<16:
		out = append(out, 0x82, byte(n>>8), byte(n))
	case n < 1<<24:
		out = append(out, 0x83, byte(n>>16), byte(n>>8), byte(n))
	default:
		out = append(out, 0x84, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	return append(out, content...)
}
