// SPDX-License-Identifier: Apache-2.0

package stamp

import "strings"

// Standard is one of the fonts that every program has (ISO 32000-1, 9.6.2.2), whose widths a document need not have.
type Standard struct {
	face  *face
	fixed bool
}

// StandardFont returns the font with a name, nil for one of signs. It returns the sans-serif one for other names, as most
// programs do.
func StandardFont(name string) *Standard {
	lower := strings.ToLower(name)
	bold, italic := strings.Contains(lower, "bold"), strings.Contains(lower, "italic") || strings.Contains(lower, "oblique")
	if strings.Contains(lower, "courier") {
		return &Standard{fixed: true}
	}
	if strings.Contains(lower, "symbol") || strings.Contains(lower, "dingbats") {
		return nil
	}
	fam := sans
	if strings.Contains(lower, "times") {
		fam = serif
	}
	return &Standard{face: faceOf(fam, bold, italic)}
}

// Width returns the width of a character for a font of size 1. ok is false if the font does not have it.
func (s *Standard) Width(r rune) (width float64, ok bool) {
	if s.fixed {
		return 0.6, true
	}
	if r == 0 || s.face.glyphs[r] == 0 {
		return 0, false
	}
	return s.face.width(r) / 1000, true
}
