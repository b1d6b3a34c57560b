// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"encoding/binary"
	"sync"

	"github.com/go-fonts/liberation/liberationsansbold"
	"github.com/go-fonts/liberation/liberationsansbolditalic"
	"github.com/go-fonts/liberation/liberationsansitalic"
	"github.com/go-fonts/liberation/liberationsansregular"
	"github.com/go-fonts/liberation/liberationserifbold"
	"github.com/go-fonts/liberation/liberationserifbolditalic"
	"github.com/go-fonts/liberation/liberationserifitalic"
	"github.com/go-fonts/liberation/liberationserifregular"
	"golang.org/x/text/unicode/norm"
)

// family is a family of faces.
type family int

// The Liberation faces have the widths of Arial and of Times New Roman, so a stamp laid
// out for those looks as intended.
const (
	sans family = iota
	serif
)

// faceSource is a face as it is embedded in the program.
type faceSource struct {
	name string // PostScript name
	data []byte
	bold bool
	once sync.Once
	face *face
}

// sources are the faces by family, then bold, then italic.
var sources = [2][2][2]*faceSource{
	sans: {
		{{name: "LiberationSans", data: liberationsansregular.TTF}, {name: "LiberationSans-Italic", data: liberationsansitalic.TTF}},
		{{name: "LiberationSans-Bold", data: liberationsansbold.TTF, bold: true}, {name: "LiberationSans-BoldItalic", data: liberationsansbolditalic.TTF, bold: true}},
	},
	serif: {
		{{name: "LiberationSerif", data: liberationserifregular.TTF}, {name: "LiberationSerif-Italic", data: liberationserifitalic.TTF}},
		{{name: "LiberationSerif-Bold", data: liberationserifbold.TTF, bold: true}, {name: "LiberationSerif-BoldItalic", data: liberationserifbolditalic.TTF, bold: true}},
	},
}

// faceOf returns a face. It is parsed on first use and then kept.
func faceOf(f family, bold, italic bool) *face {
	index := map[bool]int{true: 1}
	s := sources[f][index[bold]][index[italic]]
	s.once.Do(func() { s.face = parseFace(s) })
	return s.face
}

// face is a parsed TrueType face. All lengths are in thousandths of the font size, the
// glyph space unit of PDF.
type face struct {
	name           string
	glyphs         map[rune]uint16
	advance        []float64 // by glyph
	metrics        []byte    // hmtx expanded for every glyph: advance and left side bearing in font units
	outlines       [][]byte  // by glyph, from glyf
	head           []byte
	hhea           []byte
	maxp           []byte
	box            [4]int
	ascent         float64
	descent        float64 // below the base line, positive
	capHeight      float64
	italicAngle    int
	flags          int // of a font descriptor
	stemV          int
	underlineAt    float64 // middle of the line, below the base line, positive
	underlineWidth float64
	strikeAt       float64
	strikeWidth    float64
}

// Flags of a font descriptor (ISO 32000-1, table 123).
const (
	flagSerif       = 1 << 1
	flagNonsymbolic = 1 << 5
	flagItalic      = 1 << 6
)

var be = binary.BigEndian

// Characters returns the characters of a TrueType face of the program with their glyphs.
func Characters(face []byte) map[rune]uint16 { return readCmap(tablesOf(face)["cmap"]) }

// tablesOf returns the tables of a TrueType file by tag.
func tablesOf(file []byte) map[string][]byte {
	tables := map[string][]byte{}
	for i := range int(be.Uint16(file[4:])) {
		entry := file[12+16*i:]
		from, size := be.Uint32(entry[8:]), be.Uint32(entry[12:])
		tables[string(entry[:4])] = file[from : from+size]
	}
	return tables
}

// parseFace parses a face of the program. It trusts the file: it is part of the program,
// and a test parses every face.
func parseFace(s *faceSource) *face {
	tables := tablesOf(s.data)
	f := &face{name: s.name, head: tables["head"], hhea: tables["hhea"], maxp: tables["maxp"], flags: flagNonsymbolic}
	em := float64(be.Uint16(f.head[18:]))
	units := func(b []byte) float64 { return float64(int16(be.Uint16(b))) * 1000 / em }
	for i := range f.box {
		f.box[i] = int(units(f.head[36+2*i:]))
	}

	count := int(be.Uint16(f.maxp[4:]))
	long := int(be.Uint16(f.hhea[34:])) // glyphs with their own advance; the others share the last one
	hmtx := tables["hmtx"]
	f.advance = make([]float64, count)
	f.metrics = make([]byte, 4*count)
	for g := range count {
		own := hmtx[4*min(g, long-1):]
		f.advance[g] = float64(be.Uint16(own)) * 1000 / em
		copy(f.metrics[4*g:], own[:2])
		bearing := own[2:]
		if g >= long {
			bearing = hmtx[4*long+2*(g-long):]
		}
		copy(f.metrics[4*g+2:4*g+4], bearing)
	}

	loca, glyf := tables["loca"], tables["glyf"]
	offset := func(g int) uint32 {
		if be.Uint16(f.head[50:]) == 0 {
			return 2 * uint32(be.Uint16(loca[2*g:]))
		}
		return be.Uint32(loca[4*g:])
	}
	f.outlines = make([][]byte, count)
	for g := range count {
		f.outlines[g] = glyf[offset(g):offset(g+1)]
	}

	os2, post := tables["OS/2"], tables["post"]
	f.ascent, f.descent = units(f.hhea[4:]), -units(f.hhea[6:])
	f.capHeight = 729 // of both families; an OS/2 table of version 1 does not have it
	if be.Uint16(os2) >= 2 {
		f.capHeight = units(os2[88:])
	}
	f.strikeWidth, f.strikeAt = units(os2[26:]), units(os2[28:])
	f.strikeAt -= f.strikeWidth / 2
	// In the bold faces the line touches the letters at its default position.
	f.underlineWidth = units(post[10:])
	f.underlineAt = 60 + f.underlineWidth/2
	if f.italicAngle = int(int16(be.Uint16(post[4:]))); f.italicAngle != 0 {
		f.flags |= flagItalic
	}
	if os2[32+1] >= 2 && os2[32+1] <= 10 && os2[32] == 2 { // PANOSE: a Latin text face with serifs
		f.flags |= flagSerif
	}
	f.stemV = 80
	if s.bold {
		f.stemV = 140
	}
	f.glyphs = readCmap(tables["cmap"])
	return f
}

// readCmap reads the Unicode subtable of format 4, which every face here has.
func readCmap(cmap []byte) map[rune]uint16 {
	glyphs := map[rune]uint16{}
	for i := range int(be.Uint16(cmap[2:])) {
		entry := cmap[4+8*i:]
		sub := cmap[be.Uint32(entry[4:]):]
		if be.Uint16(entry) != 3 || be.Uint16(entry[2:]) != 1 || be.Uint16(sub) != 4 {
			continue
		}
		n := int(be.Uint16(sub[6:])) // twice the number of segments
		ends, starts, deltas, ranges := sub[14:], sub[16+n:], sub[16+2*n:], sub[16+3*n:]
		for s := 0; s < n; s += 2 {
			first, last := int(be.Uint16(starts[s:])), int(be.Uint16(ends[s:]))
			delta, at := be.Uint16(deltas[s:]), int(be.Uint16(ranges[s:]))
			for r := first; r <= last && r < 0xFFFF; r++ {
				g := uint16(r)
				if at != 0 {
					if g = be.Uint16(ranges[s+at+2*(r-first):]); g == 0 {
						continue
					}
				}
				if g += delta; g != 0 {
					glyphs[rune(r)] = g
				}
			}
		}
	}
	return glyphs
}

// missing is drawn for a character that the face lacks: a box, so that a reader sees that
// something is not shown.
const missing = '\u25A1'

// spelled are characters that the faces lack but Russian documents need.
var spelled = map[rune]string{'\u20BD': "руб."} // the sign of the ruble

// shows returns what a face draws for a character: the character, the plain characters it
// is equivalent to (for a Roman numeral or a full-width letter), or the box.
func (f *face) shows(r rune) []rune {
	if f.glyphs[r] != 0 {
		return []rune{r}
	}
	plain, ok := spelled[r]
	if !ok {
		plain = norm.NFKC.String(string(r))
	}
	for _, c := range plain {
		if f.glyphs[c] == 0 {
			return []rune{missing}
		}
	}
	return []rune(plain)
}

// width returns the advance of a character that the face has.
func (f *face) width(r rune) float64 { return f.advance[f.glyphs[r]] }
