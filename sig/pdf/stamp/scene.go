// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// scene is a stamp as it is drawn: a description that both the PDF and the SVG are written from. Lengths are in points
// from the lower left corner.
type scene struct {
	width, height float64
	shape         *shape // the frame; nil: none
	picture       *placed
	rules         []rule
	clip          rect // of the text; empty: none
	text          []piece
}

// shape is a rectangle with round corners. Its border is on the middle of the outline.
type shape struct {
	rect
	radius, weight float64
	border         rgb
	background     *rgb
}

// placed is an image at its place.
type placed struct {
	*graphic
	at, clip rect
}

// rule is a horizontal line.
type rule struct {
	x0, x1, y, weight float64
	colour            rgb
}

// frame adds background and border. The border is inside the rectangle.
func (s *scene) frame(r rect, b box) {
	weight := min(b.weight, r.width()/2, r.height()/2)
	r = r.inset(weight / 2)
	if r.empty() || weight <= 0 && b.background == nil {
		return
	}
	s.shape = &shape{r, min(b.radius, r.width()/2, r.height()/2), weight, b.border, b.background}
}

// image adds the image in a rectangle, clipped to clip.
func (s *scene) image(m *graphic, at, clip rect) { s.picture = &placed{m, at, clip} }

// layout adds a layout in a box, from the top or centred vertically.
func (s *scene) layout(l layout, in rect, middle bool) {
	top := in.y1
	if middle {
		top -= max(0, (in.height()-l.height)/2)
	}
	s.clip = in
	for _, ln := range l.lines {
		for _, p := range ln.pieces {
			p.x, p.y = in.x0+p.x, top-ln.base
			s.text = append(s.text, p)
		}
	}
}

// lines returns the lines under and through a piece of text: middle above the base line, and weight.
func (p piece) lines() (list [][2]float64) {
	em, f := p.style.size/1000, p.style.face
	if p.style.underline {
		list = append(list, [2]float64{-f.underlineAt * em, f.underlineWidth * em})
	}
	if p.style.strike {
		list = append(list, [2]float64{f.strikeAt * em, f.strikeWidth * em})
	}
	return list
}

// write writes the scene as a content stream. It returns the fonts that it uses, in the order of their names.
func (s *scene) write(c *canvas) []*subset {
	if f := s.shape; f != nil {
		c.shape(f)
	}
	for _, r := range s.rules {
		c.op("q")
		c.colour("RG", r.colour)
		c.op("w", r.weight)
		c.op("m", r.x0, r.y)
		c.op("l", r.x1, r.y)
		c.op("S")
		c.op("Q")
	}
	if p := s.picture; p != nil {
		c.image(p.graphic, p.at, p.clip)
	}
	return c.text(s.text, s.clip)
}

// svg writes the scene as an SVG document. Text is text there, with the widths of the PDF, whatever font the reader has.
func (s *scene) svg() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%[1]s" height="%[2]s" text-rendering="geometricPrecision">`, num(s.width), num(s.height))
	if title := s.title(); title != "" {
		b.WriteString("<title>" + escape([]rune(title)) + "</title>")
	}
	if f := s.shape; f != nil {
		fill := "none"
		if f.background != nil {
			fill = f.background.hex()
		}
		fmt.Fprintf(&b, `<rect x="%s" y="%s" width="%s" height="%s" rx="%s" fill="%s"`, num(f.x0), num(s.height-f.y1), num(f.width()), num(f.height()), num(f.radius), fill)
		if f.weight > 0 {
			fmt.Fprintf(&b, ` stroke="%s" stroke-width="%s"`, f.border.hex(), num(f.weight))
		}
		b.WriteString("/>")
	}
	for _, r := range s.rules {
		fmt.Fprintf(&b, `<path d="M%s %sH%s" stroke="%s" stroke-width="%s"/>`, num(r.x0), num(s.height-r.y), num(r.x1), r.colour.hex(), num(r.weight))
	}
	if p := s.picture; p != nil {
		s.svgImage(&b, p)
	}
	for _, p := range s.text {
		s.svgText(&b, p)
	}
	b.WriteString("</svg>")
	return []byte(b.String())
}

// title returns the text of the scene, for programs that read pages aloud.
func (s *scene) title() string {
	var parts []string
	for _, p := range s.text {
		parts = append(parts, string(p.text))
	}
	return strings.Join(parts, " ")
}

// svgImage writes an image that the browser turns as its orientation says.
func (s *scene) svgImage(b *strings.Builder, p *placed) {
	if p.source == nil {
		return
	}
	c := p.clip
	fmt.Fprintf(b, `<svg x="%s" y="%s" width="%s" height="%s"><image x="%s" y="%s" width="%s" height="%s" preserveAspectRatio="none" href="data:%s;base64,%s"/></svg>`,
		num(c.x0), num(s.height-c.y1), num(c.width()), num(c.height()),
		num(p.at.x0-c.x0), num(c.y1-p.at.y1), num(p.at.width()), num(p.at.height()),
		p.kind, base64.StdEncoding.EncodeToString(p.source))
}

func (s *scene) svgText(b *strings.Builder, p piece) {
	if len(p.text) == 0 {
		return
	}
	f := p.style.face
	generic := "Arial,'Liberation Sans',Arimo,sans-serif"
	if f.flags&flagSerif != 0 {
		generic = "'Times New Roman','Liberation Serif',Tinos,serif"
	}
	fmt.Fprintf(b, `<text x="%s" y="%s" font-family="%s" font-size="%s" fill="%s" textLength="%s" lengthAdjust="spacingAndGlyphs" xml:space="preserve"`,
		num(p.x), num(s.height-p.y), generic, num(p.style.size), p.style.colour.hex(), num(measure(p.text, p.style)))
	if strings.Contains(f.name, "Bold") {
		b.WriteString(` font-weight="700"`)
	}
	if f.italicAngle != 0 {
		b.WriteString(` font-style="italic"`)
	}
	if slices.ContainsFunc(p.text, fromRight) { // its characters are already in the order in which they are drawn
		b.WriteString(` direction="ltr" unicode-bidi="bidi-override"`)
	}
	shown := make([]rune, len(p.text))
	for i, r := range p.text {
		if shown[i] = r; f.glyphs[r] == 0 {
			shown[i] = missing
		}
	}
	b.WriteString(">" + escape(shown) + "</text>")
	for _, l := range p.lines() {
		y := s.height - p.y - l[0]
		fmt.Fprintf(b, `<path d="M%s %sh%s" stroke="%s" stroke-width="%s"/>`, num(p.x), num(y), num(measure(p.text, p.style)), p.style.colour.hex(), num(l[1]))
	}
}

func (c rgb) hex() string { return fmt.Sprintf("#%02x%02x%02x", int(c[0]), int(c[1]), int(c[2])) }

// escape writes characters as text of XML, which has no control characters.
func escape(text []rune) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r < 0x20 || r == 0xFFFE || r == 0xFFFF:
			b.WriteRune(missing)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
