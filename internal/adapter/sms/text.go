// SPDX-License-Identifier: Apache-2.0

package sms

import (
	"errors"
	"unicode/utf16"

	"tamga/internal/domain/notify"
)

// gsmBasic is the default alphabet (3GPP TS 23.038, 6.2.1): the character at index i has
// the septet i. Index 0x1B leads to the extension table.
var gsmBasic = [128]rune{
	'@', '£', '$', '¥', 'è', 'é', 'ù', 'ì', 'ò', 'Ç', '\n', 'Ø', 'ø', '\r', 'Å', 'å',
	'Δ', '_', 'Φ', 'Γ', 'Λ', 'Ω', 'Π', 'Ψ', 'Σ', 'Θ', 'Ξ', 0x1b, 'Æ', 'æ', 'ß', 'É',
	' ', '!', '"', '#', '¤', '%', '&', '\'', '(', ')', '*', '+', ',', '-', '.', '/',
	'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', ':', ';', '<', '=', '>', '?',
	'¡', 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J', 'K', 'L', 'M', 'N', 'O',
	'P', 'Q', 'R', 'S', 'T', 'U', 'V', 'W', 'X', 'Y', 'Z', 'Ä', 'Ö', 'Ñ', 'Ü', '§',
	'¿', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o',
	'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z', 'ä', 'ö', 'ñ', 'ü', 'à',
}

// gsmExtension holds the characters that follow an escape (6.2.1.1).
var gsmExtension = map[rune]byte{
	'\f': 0x0a, '^': 0x14, '{': 0x28, '}': 0x29, '\\': 0x2f, '[': 0x3c, '~': 0x3d, ']': 0x3e, '|': 0x40, '€': 0x65,
}

const gsmEscape = 0x1b

var gsmSeptets = func() map[rune][]byte {
	septets := map[rune][]byte{}
	for i, r := range gsmBasic {
		if i != gsmEscape {
			septets[r] = []byte{byte(i)}
		}
	}
	for r, b := range gsmExtension {
		septets[r] = []byte{gsmEscape, b}
	}
	return septets
}()

// Values of data_coding (SMPP 3.4, 5.2.19).
const (
	codingDefault = 0 // the default alphabet, one septet in a byte
	codingUCS2    = 8
)

// Size of a short message (3GPP TS 23.040): 140 bytes, of which a message in several
// parts uses 6 for its header (9.2.3.24.1).
const (
	gsmWhole, gsmPart   = 160, 153 // septets
	ucs2Whole, ucs2Part = 140, 134 // bytes
	headerLength        = 6
)

// maxParts bounds what one message may cost.
const maxParts = 10

// encode returns the parts of a text. reference distinguishes the parts of one message
// from those of another message to the same telephone.
func encode(text string, unicodeOnly bool, reference byte) (coding byte, parts [][]byte, err error) {
	units, ok := gsmUnits(text)
	coding, whole, part := byte(codingDefault), gsmWhole, gsmPart
	if !ok || unicodeOnly {
		units = ucs2Units(text)
		coding, whole, part = codingUCS2, ucs2Whole, ucs2Part
	}
	total := 0
	for _, u := range units {
		total += len(u)
	}
	if total <= whole {
		return coding, [][]byte{join(units)}, nil
	}
	// A unit is never split: half of an escape or of a surrogate pair is another
	// character.
	var current []byte
	for _, u := range units {
		if len(current)+len(u) > part {
			parts = append(parts, current)
			current = nil
		}
		current = append(current, u...)
	}
	parts = append(parts, current)
	if len(parts) > maxParts {
		return 0, nil, notify.Permanent(errors.New("sms: the text takes more than 10 parts"))
	}
	for i, p := range parts {
		header := []byte{headerLength - 1, 0, 3, reference, byte(len(parts)), byte(i + 1)}
		parts[i] = append(header, p...)
	}
	return coding, parts, nil
}

// gsmUnits returns the characters of a text in the default alphabet. It returns false if
// the alphabet lacks one of them.
func gsmUnits(text string) ([][]byte, bool) {
	var units [][]byte
	for _, r := range text {
		septets, ok := gsmSeptets[r]
		if !ok {
			return nil, false
		}
		units = append(units, septets)
	}
	return units, true
}

// ucs2Units returns the characters of a text in UTF-16, big-endian.
func ucs2Units(text string) [][]byte {
	var units [][]byte
	for _, r := range text {
		var unit []byte
		for _, u := range utf16.Encode([]rune{r}) {
			unit = append(unit, byte(u>>8), byte(u))
		}
		units = append(units, unit)
	}
	return units
}

func join(units [][]byte) []byte {
	var all []byte
	for _, u := range units {
		all = append(all, u...)
	}
	return all
}
