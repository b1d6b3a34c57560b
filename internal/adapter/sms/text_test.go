// SPDX-License-Identifier: Apache-2.0

package sms

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"tamga/internal/domain/notify"
)

func TestEncode(t *testing.T) {
	for _, c := range []struct {
		name, text  string
		unicodeOnly bool
		coding      byte
		lengths     []int // of the parts with their headers
	}{
		{"Empty", "", false, codingDefault, []int{0}},
		{"Latin", "Code 123456 @ [x]", false, codingDefault, []int{19}}, // brackets take two septets
		{"Cyrillic", "Код 123456", false, codingUCS2, []int{20}},
		{"UnicodeOnly", "Code", true, codingUCS2, []int{8}},
		{"GSMWhole", strings.Repeat("a", 160), false, codingDefault, []int{160}},
		{"GSMTwo", strings.Repeat("a", 161), false, codingDefault, []int{159, 14}},
		{"EscapeIsNotTorn", strings.Repeat("a", 152) + "€" + strings.Repeat("b", 20), false, codingDefault, []int{158, 28}},
		{"UCS2Whole", strings.Repeat("ж", 70), false, codingUCS2, []int{140}},
		{"UCS2Two", strings.Repeat("ж", 71), false, codingUCS2, []int{140, 14}},
		{"PairIsNotTorn", strings.Repeat("ж", 66) + "😀" + strings.Repeat("ж", 4), false, codingUCS2, []int{138, 18}},
	} {
		t.Run(c.name, func(t *testing.T) {
			coding, parts, err := encode(c.text, c.unicodeOnly, 7)
			if err != nil {
				t.Fatal(err)
			}
			var lengths []int
			var joined []byte
			for i, p := range parts {
				lengths = append(lengths, len(p))
				if len(parts) > 1 {
					if want := []byte{5, 0, 3, 7, byte(len(parts)), byte(i + 1)}; !bytes.Equal(p[:6], want) {
						t.Errorf("header %x, want %x", p[:6], want)
					}
					p = p[6:]
				}
				joined = append(joined, p...)
			}
			if coding != c.coding {
				t.Errorf("coding %d, want %d", coding, c.coding)
			}
			if d := cmp.Diff(c.lengths, lengths); d != "" {
				t.Error(d)
			}
			if got := decode(coding, joined); got != c.text {
				t.Errorf("reads %q, want %q", got, c.text)
			}
		})
	}
	if _, _, err := encode(strings.Repeat("ж", 67*maxParts+1), false, 0); !notify.IsPermanent(err) {
		t.Errorf("a text of too many parts: %v, want a permanent error", err)
	}
	// Every character of both tables survives the round trip.
	for r := range gsmSeptets {
		if coding, parts, _ := encode(string(r), false, 0); coding != codingDefault || decode(coding, parts[0]) != string(r) {
			t.Errorf("%q does not survive the round trip", r)
		}
	}
}

// decode reads a text as a telephone does.
func decode(coding byte, text []byte) string {
	if coding == codingUCS2 {
		units := make([]uint16, len(text)/2)
		for i := range units {
			units[i] = binary.BigEndian.Uint16(text[2*i:])
		}
		return string(utf16.Decode(units))
	}
	var out []rune
	for i := 0; i < len(text); i++ {
		if text[i] != gsmEscape {
			out = append(out, gsmBasic[text[i]])
			continue
		}
		i++
		for r, b := range gsmExtension {
			if b == text[i] {
				out = append(out, r)
			}
		}
	}
	return string(out)
}
