// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// subset collects the characters of a face that a stamp draws. Each character gets its
// own glyph in the embedded file, numbered in order of first use, even if the face has
// one glyph for several characters (Latin A and Cyrillic А). Otherwise a viewer could not
// distinguish them when text is copied or searched.
type subset struct {
	face  *face
	code  map[rune]uint16
	runes []rune // by code; code 0 is .notdef, which nothing uses
}

func newSubset(f *face) *subset {
	return &subset{face: f, code: map[rune]uint16{}, runes: []rune{0}}
}

// encode returns the character code of a character that the face has.
func (s *subset) encode(r rune) uint16 {
	c, ok := s.code[r]
	if !ok {
		c = uint16(len(s.runes))
		s.code[r] = c
		s.runes = append(s.runes, r)
	}
	return c
}

// Flags of a component of a composite glyph (OpenType, glyf).
const (
	compWords        = 0x0001
	compScale        = 0x0008
	compMore         = 0x0020
	compXYScale      = 0x0040
	compTwoByTwo     = 0x0080
	compInstructions = 0x0100
)

// file writes the TrueType file of the subset: the tables that ISO 32000-1, 9.9 requires
// of an embedded CIDFontType2, without hinting instructions, which would be half of the
// bytes.
func (s *subset) file() (file []byte, glyphs int) {
	source := make([]uint16, len(s.runes)) // glyph in the face, by glyph in the file
	for c, r := range s.runes[1:] {
		source[c+1] = s.face.glyphs[r]
	}
	parts := map[uint16]uint16{} // components of composites, from the face to the file
	part := func(g uint16) uint16 {
		n, ok := parts[g]
		if !ok {
			n = uint16(len(source))
			parts[g] = n
			source = append(source, g)
		}
		return n
	}
	var glyf, loca, hmtx []byte
	for i := 0; i < len(source); i++ { // grows as components are found
		loca = be.AppendUint32(loca, uint32(len(glyf)))
		glyf = append(glyf, plain(s.face.outlines[source[i]], part)...)
		glyf = append(glyf, make([]byte, -len(glyf)&3)...)
		hmtx = append(hmtx, s.face.metrics[4*source[i]:][:4]...)
	}
	loca = be.AppendUint32(loca, uint32(len(glyf)))

	head := slices.Clone(s.face.head)
	be.PutUint32(head[8:], 0)  // checkSumAdjustment, set when the file is complete
	be.PutUint16(head[50:], 1) // loca has offsets of 32 bits
	hhea := slices.Clone(s.face.hhea)
	be.PutUint16(hhea[34:], uint16(len(source)))
	maxp := slices.Clone(s.face.maxp)
	be.PutUint16(maxp[4:], uint16(len(source)))
	clear(maxp[16:28]) // storage, functions, stack, instructions: not needed without instructions
	return sfnt([]table{{"glyf", glyf}, {"head", head}, {"hhea", hhea}, {"hmtx", hmtx}, {"loca", loca}, {"maxp", maxp}}), len(source)
}

// plain returns an outline without its instructions and with its components renumbered by
// part.
func plain(outline []byte, part func(uint16) uint16) []byte {
	if len(outline) == 0 {
		return nil // a space
	}
	if contours := int(int16(be.Uint16(outline))); contours >= 0 {
		at := 10 + 2*contours // the length of the instructions, after the ends of the contours
		size := int(be.Uint16(outline[at:]))
		return slices.Concat(outline[:at], []byte{0, 0}, outline[at+2+size:])
	}
	out := slices.Clone(outline)
	for at := 10; ; {
		flags := be.Uint16(out[at:])
		be.PutUint16(out[at:], flags&^compInstructions)
		be.PutUint16(out[at+2:], part(be.Uint16(out[at+2:])))
		at += 6
		if flags&compWords != 0 {
			at += 2
		}
		switch {
		case flags&compScale != 0:
			at += 2
		case flags&compXYScale != 0:
			at += 4
		case flags&compTwoByTwo != 0:
			at += 8
		}
		if flags&compMore == 0 {
			return out[:at]
		}
	}
}

// table is a table of a TrueType file.
type table struct {
	tag  string
	data []byte
}

// sfnt puts tables, ordered by tag, into a file.
func sfnt(tables []table) []byte {
	n := len(tables)
	selector := 0
	for 2<<selector <= n {
		selector++
	}
	file := be.AppendUint32(nil, 0x00010000)
	for _, v := range []int{n, 16 << selector, selector, 16*n - 16<<selector} {
		file = be.AppendUint16(file, uint16(v))
	}
	at, head := uint32(12+16*n), uint32(0)
	for _, t := range tables {
		if t.tag == "head" {
			head = at
		}
		file = append(file, t.tag...)
		file = be.AppendUint32(file, checksum(t.data))
		file = be.AppendUint32(file, at)
		file = be.AppendUint32(file, uint32(len(t.data)))
		at += uint32(len(t.data)+3) &^ 3
	}
	for _, t := range tables {
		file = append(file, t.data...)
		file = append(file, make([]byte, -len(file)&3)...)
	}
	be.PutUint32(file[head+8:], 0xB1B0AFBA-checksum(file))
	return file
}

// checksum returns the sum of a table as 32-bit words.
func checksum(data []byte) (sum uint32) {
	for ; len(data) >= 4; data = data[4:] {
		sum += be.Uint32(data)
	}
	var last [4]byte
	copy(last[:], data)
	return sum + be.Uint32(last[:])
}

// objects writes the font as PDF objects, the font dictionary first. first is the index
// that it will have.
func (s *subset) objects(first int) []Object {
	const (
		font = iota
		descendant
		descriptor
		program
		unicode
		set
	)
	ref := func(i int) string { return fmt.Sprintf("{%d}", first+i) }
	name := "/" + s.tag() + "+" + s.face.name
	file, glyphs := s.file()

	var widths strings.Builder
	for c, r := range s.runes {
		w := s.face.advance[0]
		if c > 0 {
			w = s.face.width(r)
		}
		fmt.Fprintf(&widths, " %s", num(w))
	}
	f := s.face
	out := make([]Object, set+1)
	out[font].Dict = "<< /Type /Font /Subtype /Type0 /BaseFont " + name + " /Encoding /Identity-H /DescendantFonts [ " + ref(descendant) + " ] /ToUnicode " + ref(unicode) + " >>"
	out[descendant].Dict = "<< /Type /Font /Subtype /CIDFontType2 /BaseFont " + name +
		" /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /FontDescriptor " + ref(descriptor) +
		" /CIDToGIDMap /Identity /W [ 0 [" + widths.String() + " ] ] >>"
	out[descriptor].Dict = fmt.Sprintf("<< /Type /FontDescriptor /FontName %s /Flags %d /FontBBox [ %d %d %d %d ] /ItalicAngle %d /Ascent %s /Descent %s /CapHeight %s /StemV %d /FontFile2 %s /CIDSet %s >>",
		name, f.flags, f.box[0], f.box[1], f.box[2], f.box[3], f.italicAngle, num(f.ascent), num(-f.descent), num(f.capHeight), f.stemV, ref(program), ref(set))
	out[program] = deflated(fmt.Sprintf("/Length1 %d", len(file)), file)
	out[unicode] = deflated("", s.toUnicode())
	// CIDSet names every glyph of the file, components included: PDF/A-1 requires it.
	bits := make([]byte, (glyphs+7)/8)
	for g := range glyphs {
		bits[g/8] |= 0x80 >> (g % 8)
	}
	out[set] = deflated("", bits)
	return out
}

// tag returns the prefix of the name of a subset: six letters derived from the face and
// its characters, so that two subsets of a face have different names.
func (s *subset) tag() string {
	sum := sha256.Sum256([]byte(s.face.name + string(s.runes)))
	letters := make([]byte, 6)
	for i := range letters {
		letters[i] = 'A' + sum[i]%26
	}
	return string(letters)
}

// toUnicode maps the codes back to characters (ISO 32000-1, 9.10.3).
func (s *subset) toUnicode() []byte {
	var b bytes.Buffer
	b.WriteString("/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n" +
		"/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def\n" +
		"/CMapName /Adobe-Identity-UCS def\n/CMapType 2 def\n" +
		"1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n")
	const most = 100 // entries of a block
	for c := 1; c < len(s.runes); c += most {
		block := s.runes[c:min(c+most, len(s.runes))]
		fmt.Fprintf(&b, "%d beginbfchar\n", len(block))
		for i, r := range block {
			fmt.Fprintf(&b, "<%04X> <", c+i)
			for _, u := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, "%04X", u)
			}
			b.WriteString(">\n")
		}
		b.WriteString("endbfchar\n")
	}
	b.WriteString("endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n")
	return b.Bytes()
}
