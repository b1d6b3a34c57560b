// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// textString encodes a text: in PDFDocEncoding if that has all of its characters, else in
// UTF-16 (ISO 32000-1, 7.9.2.2).
func textString(s string) text {
	if b, ok := toPDFDoc(s); ok && !strings.HasPrefix(string(b), "\xfe\xff") && !strings.HasPrefix(string(b), "\xef\xbb\xbf") {
		return b
	}
	out := text{0xfe, 0xff}
	for _, u := range utf16.Encode([]rune(s)) {
		out = append(out, byte(u>>8), byte(u))
	}
	return out
}

// readTextString is the inverse of textString. It also reads UTF-8 of PDF 2.0.
func readTextString(b []byte) string {
	switch {
	case len(b) >= 2 && b[0] == 0xfe && b[1] == 0xff:
		return fromUTF16(b[2:], false)
	case len(b) >= 2 && b[0] == 0xff && b[1] == 0xfe: // not in the standard, but such files exist
		return fromUTF16(b[2:], true)
	case len(b) >= 3 && b[0] == 0xef && b[1] == 0xbb && b[2] == 0xbf:
		return strings.ToValidUTF8(string(b[3:]), "\ufffd")
	}
	var s strings.Builder
	for _, c := range b {
		s.WriteRune(fromPDFDoc(c))
	}
	return s.String()
}

func fromUTF16(b []byte, little bool) string {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = uint16(b[2*i])<<8 | uint16(b[2*i+1])
		if little {
			units[i] = units[i]<<8 | units[i]>>8
		}
	}
	return string(utf16.Decode(units))
}

// pdfDocLow and pdfDocHigh are the characters of PDFDocEncoding from 0x18 to 0x1f and
// from 0x80 to 0xa0 (ISO 32000-1, D.2), zero if there is none.
var (
	pdfDocLow  = []rune("˘ˇˆ˙˝˛˚˜")
	pdfDocHigh = []rune("•†‡…—–ƒ⁄‹›−‰„“”‘’‚™ﬁﬂŁŒŠŸŽıłœšž\x00€")
)

func fromPDFDoc(c byte) rune {
	switch {
	case c >= 0x18 && c <= 0x1f:
		return pdfDocLow[c-0x18]
	case c >= 0x80 && c <= 0xa0:
		if r := pdfDocHigh[c-0x80]; r != 0 {
			return r
		}
		return utf8.RuneError
	case c == 0x7f || c == 0xad:
		return utf8.RuneError
	}
	return rune(c)
}

func toPDFDoc(s string) ([]byte, bool) {
	out := make([]byte, 0, len(s))
next:
	for _, r := range s {
		switch {
		case r >= 0x20 && r < 0x7f, r > 0xa0 && r <= 0xff && r != 0xad, r == '\n', r == '\r', r == '\t':
			out = append(out, byte(r))
			continue
		}
		for i, high := range pdfDocHigh {
			if high == r && r != 0 {
				out = append(out, byte(0x80+i))
				continue next
			}
		}
		return nil, false
	}
	return out, true
}

// dateString returns a date (7.9.4) in UTC.
func dateString(t time.Time) text {
	return text(t.UTC().Format("D:20060102150405+00'00'"))
}

// readDate reads a date as far as it is valid.
func readDate(b []byte) (time.Time, bool) {
	s := strings.TrimPrefix(readTextString(b), "D:")
	fields := []int{0, 1, 1, 0, 0, 0}
	for i, width := range []int{4, 2, 2, 2, 2, 2} {
		if len(s) < width || !isDigit(int(s[0])) {
			if i == 0 {
				return time.Time{}, false
			}
			break
		}
		n, ok := digits([]byte(s[:width]))
		if !ok {
			return time.Time{}, false
		}
		fields[i], s = int(n), s[width:]
	}
	zone := time.UTC
	if len(s) >= 3 && (s[0] == '+' || s[0] == '-') {
		clean := strings.ReplaceAll(s[1:], "'", "")
		hours, ok1 := digits([]byte(clean[:min(2, len(clean))]))
		var minutes int64
		ok2 := true
		if len(clean) >= 4 {
			minutes, ok2 = digits([]byte(clean[2:4]))
		}
		if !ok1 || !ok2 {
			return time.Time{}, false
		}
		offset := int(hours*3600 + minutes*60)
		if s[0] == '-' {
			offset = -offset
		}
		zone = time.FixedZone("", offset)
	}
	return time.Date(fields[0], time.Month(fields[1]), fields[2], fields[3], fields[4], fields[5], 0, zone), true
}

// printable quotes a value from outside for an error, truncated and without control
// characters.
func printable(o object) string {
	s := ""
	switch o := o.(type) {
	case nil:
		return "none"
	case name:
		s = "/" + string(o)
	case text:
		s = readTextString(o)
	default:
		s = fmt.Sprint(o)
	}
	if r := []rune(s); len(r) > 60 {
		s = string(r[:60]) + "..."
	}
	return fmt.Sprintf("%q", s)
}
