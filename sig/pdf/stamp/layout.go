// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// style is how characters are drawn.
type style struct {
	face              *face
	size              float64 // points
	colour            rgb
	underline, strike bool
	small             bool // it may shrink below leastSize
}

// paragraph is text that is wrapped together. If it has a label, the text is to the right
// of the label and its lines begin at the tab.
type paragraph struct {
	label, text []rune
	labelStyle  style
	style       style
	indent      float64 // of all lines, from the left
	tab         float64 // start of the text, from the left; 0: no label
	centred     bool    // and its lines balanced
	above       float64 // space over it, points
	aside       []rune  // at the right of the first line
	asideStyle  style
}

// clean returns the drawable lines of a text: composed characters, one space for a tab,
// nothing for characters without a glyph of their own or that change the direction of
// writing, and the box for those that the face lacks.
func clean(text string, f *face) [][]rune {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(text)
	var lines [][]rune
	for line := range strings.SplitSeq(norm.NFC.String(strings.ToValidUTF8(text, "\uFFFD")), "\n") {
		var out []rune
		for _, r := range line {
			switch {
			case r == '\t':
				out = append(out, ' ')
			case unicode.In(r, unicode.Cc, unicode.Cf):
			default:
				out = append(out, f.shows(r)...)
			}
		}
		lines = append(lines, out)
	}
	return lines
}

// piece is a run of characters of one style on a line. line is a line of a layout.
type piece struct {
	x, y  float64 // y only in a scene
	text  []rune  // in the order in which it is drawn, from the left
	style style   // size as drawn
}

type line struct {
	top    float64 // from the top of the layout, down
	height float64
	base   float64 // base line, from the top of the layout, down
	pieces []piece
}

// Bounds for fitting text into a box.
const (
	leastSize    = 4    // points; text is never made smaller to fit
	leastLeading = 1.15 // of the size: the lines almost touch
	leastGentle  = 0.6  // how far text shrinks before words are broken
	longWord     = 24   // characters; longer ones (numbers of certificates) may be broken at once
)

// layout is paragraphs as lines of a given width.
type layout struct {
	lines  []line
	height float64
	broken bool // a word was broken
}

// arrange wraps paragraphs to a width. Sizes and indents are multiplied by scale, but
// sizes are never below the minimum. leading is the distance between lines as a multiple
// of the size.
func arrange(text []paragraph, width, scale, leading float64) layout {
	var l layout
	for i := range text {
		l.add(&text[i], width, scale, leading)
	}
	return l
}

func scaled(st style, scale float64) style {
	if least := min(st.size, leastSize); st.small {
		st.size *= scale
	} else {
		st.size = max(st.size*scale, least)
	}
	return st
}

func (l *layout) add(p *paragraph, width, scale, leading float64) {
	st, labelStyle := scaled(p.style, scale), scaled(p.labelStyle, scale)
	left := min(p.indent*st.size/p.style.size, 0.8*width)
	text, label := p.text, p.label
	var tab float64
	if len(label) > 0 {
		tab = p.tab * labelStyle.size / p.labelStyle.size
		if labelWidth := measure(label, labelStyle); tab < labelWidth || tab > 0.55*width {
			// No space for two columns: the text begins with the label.
			text, label, tab = append(append(append([]rune{}, label...), ' '), text...), nil, 0
		}
	}
	l.height += p.above * scale
	room := width - left - tab
	var aside piece
	if len(p.aside) > 0 {
		aside = piece{text: visual(p.aside), style: scaled(p.asideStyle, scale)}
		aside.x = width - measure(aside.text, aside.style)
		room = max(aside.x-left-tab-st.size, room/4)
	}
	if p.centred {
		room = balanced(text, st, room)
	}
	for n, part := range l.wrap(text, st, room) {
		ln := line{top: l.height, height: st.size * leading}
		ascent, descent := st.size*st.face.ascent/1000, st.size*st.face.descent/1000
		ln.base = ln.top + (ln.height-ascent-descent)/2 + ascent
		if n == 0 && label != nil {
			ln.pieces = append(ln.pieces, piece{x: left, text: label, style: labelStyle})
		}
		if len(part) > 0 {
			x := left + tab
			if p.centred {
				x += max(0, (width-left-tab-measure(part, st))/2)
			}
			ln.pieces = append(ln.pieces, piece{x: x, text: visual(part), style: st})
		}
		if n == 0 && len(aside.text) > 0 {
			ln.pieces = append(ln.pieces, aside)
		}
		l.lines = append(l.lines, ln)
		l.height += ln.height
	}
}

// measure returns the width of characters in a style.
func measure(text []rune, st style) float64 {
	var w float64
	for _, r := range text {
		w += st.face.width(r)
	}
	return w * st.size / 1000
}

// wrap splits a text into lines no wider than room: after spaces and hyphens if possible,
// otherwise inside a word. There is at least one line, and at least one character on
// each.
func (l *layout) wrap(text []rune, st style, room float64) [][]rune {
	lines, broken := wrap(text, st, room)
	l.broken = l.broken || broken
	return lines
}

func wrap(text []rune, st style, room float64) (lines [][]rune, broken bool) {
	room = room*1000/st.size + 0.01 // in glyph space; a text exactly as wide as room fits
	start, open := 0, -1            // start of the line; where it may be split, after the character
	wordStart := 0
	var w, upto float64 // widths from start, to here and to open
	for i, r := range text {
		adv := st.face.width(r)
		for w+adv > room && i > start && r != ' ' && !unicode.Is(unicode.Mn, r) {
			cut := i
			if open > start {
				cut = open
				w -= upto
			} else {
				w = 0
				broken = broken || wordLength(text, wordStart) <= longWord
				if i-1 > start && (r == ';' || r == ',' || r == '.') {
					cut, w = i-1, st.face.width(text[i-1]) // no line begins with one of these
				}
			}
			lines = append(lines, trim(text[start:cut]))
			start, open = cut, -1
		}
		w += adv
		switch r {
		case ' ', '-', '\u2010', '\u2013', '\u2014', '/':
			open, upto = i+1, w
		}
		if r == ' ' {
			wordStart = i + 1
		}
	}
	return append(lines, trim(text[start:])), broken
}

// wordLength counts the characters of the word that starts at from, up to a limit.
func wordLength(text []rune, from int) int {
	n := 0
	for from+n < len(text) && text[from+n] != ' ' && n <= longWord {
		n++
	}
	return n
}

// trim drops the invisible spaces at the end of a line.
func trim(text []rune) []rune {
	for len(text) > 0 && text[len(text)-1] == ' ' {
		text = text[:len(text)-1]
	}
	return text
}

// balanced returns the smallest width in which a text has as many lines as in room: the
// lines of a title should be about equally long.
func balanced(text []rune, st style, room float64) float64 {
	lines, broken := wrap(text, st, room)
	if len(lines) == 1 || broken {
		return room
	}
	low, high := 0.0, room
	for high-low > 0.5 {
		middle := (low + high) / 2
		if got, broken := wrap(text, st, middle); len(got) > len(lines) || broken {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// content is the text of a stamp.
type content struct {
	// variants are alternative texts, the fullest first: a small stamp uses the first one
	// that fits.
	variants [][]paragraph
	leading  float64 // wanted distance between lines as a multiple of the size
	growth   float64 // maximum factor of growth in a large stamp; 1: none
	middle   bool    // centred vertically instead of at the top
}

// fit lays a text out in a box. In a large box it grows up to its limit. In a small one
// these steps follow each other until it fits: lines move together, the text shrinks a
// little, a shorter variant is used, the text shrinks to the minimum and words are
// broken, and finally the text is truncated with an ellipsis.
func fit(c content, width, height float64) layout {
	b := fitting{width, height + 0.01, c.leading} // tolerance for sums of floating point numbers
	full := c.variants[0]
	if l, ok := b.try(full, 1, c.leading, true); ok {
		return b.search(l, 1, c.growth, func(scale float64) (layout, bool) { return b.try(full, scale, c.leading, true) })
	}
	for _, v := range c.variants {
		if l, ok := b.shrink(v, leastGentle, true); ok {
			return l
		}
	}
	var l layout
	for _, v := range c.variants {
		largest := 0.0
		for _, p := range v {
			largest = max(largest, p.style.size)
		}
		var ok bool
		if l, ok = b.shrink(v, min(1, leastSize/largest), false); ok {
			return l
		}
	}
	l.truncate(b.width, b.height)
	return l
}

// fitting is a box to fit text into.
type fitting struct{ width, height, leading float64 }

// try lays text out and reports whether it fits. whole requires unbroken words.
func (b fitting) try(text []paragraph, scale, leading float64, whole bool) (layout, bool) {
	l := arrange(text, b.width, scale, leading)
	return l, l.height <= b.height && !(whole && l.broken)
}

// search returns about the largest value up to high for which a layout fits. l is the
// layout for low, which fits.
func (b fitting) search(l layout, low, high float64, try func(float64) (layout, bool)) layout {
	for range 7 {
		if high-low < 0.01 {
			break
		}
		middle := (low + high) / 2
		if better, ok := try(middle); ok {
			l, low = better, middle
		} else {
			high = middle
		}
	}
	return l
}

// shrink makes text as small as necessary, down to the scale least. Remaining space then
// goes between the lines.
func (b fitting) shrink(text []paragraph, least float64, whole bool) (layout, bool) {
	return b.shrinkTo(text, least, leastLeading, whole)
}

// shrinkTo is like shrink with another smallest distance between lines.
func (b fitting) shrinkTo(text []paragraph, least, leastLeading float64, whole bool) (layout, bool) {
	l, ok := b.try(text, least, leastLeading, whole)
	if !ok {
		return l, false
	}
	scale := least
	l = b.search(l, least, 1, func(v float64) (layout, bool) {
		better, ok := b.try(text, v, leastLeading, whole)
		if ok {
			scale = v
		}
		return better, ok
	})
	if top, ok := b.try(text, 1, leastLeading, whole); ok {
		l, scale = top, 1
	}
	return b.search(l, leastLeading, b.leading, func(v float64) (layout, bool) { return b.try(text, scale, v, whole) }), true
}

// truncate drops the lines below height and ends the last remaining one with an ellipsis.
func (l *layout) truncate(width, height float64) {
	keep := len(l.lines)
	for keep > 0 && l.lines[keep-1].top+l.lines[keep-1].height > height {
		keep--
	}
	cut := keep < len(l.lines)
	for cut && keep > 0 && len(l.lines[keep-1].pieces) == 0 {
		keep-- // the ellipsis follows text
	}
	l.lines = l.lines[:keep]
	if keep == 0 {
		l.height = 0
		return
	}
	last := &l.lines[keep-1]
	l.height = last.top + last.height
	if !cut {
		return
	}
	const ellipsis = '\u2026'
	p := &last.pieces[len(last.pieces)-1]
	text := append([]rune{}, p.text...)
	for len(text) > 0 && p.x+measure(append(text[:len(text):len(text)], ellipsis), p.style) > width {
		text = text[:len(text)-1]
	}
	p.text = append(trim(text), ellipsis)
}
