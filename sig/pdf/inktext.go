// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"math"
	"strings"
	"unicode/utf16"

	"tamga/sig/pdf/stamp"
)

// textState is the state of text (9.3).
type textState struct {
	font            *inkFont
	size            float64
	character, word float64 // spacing
	leading, rise   float64
	mode            int
	line, matrix    matrix
	// slack is how far to the left the position may be, in text space: the widths of characters that are not known.
	slack float64
}

// glyph is a character of text at its place, for the search for a word.
type glyph struct {
	r   rune
	box bounds
}

// inkFont is as much of a font as boxes need.
type inkFont struct {
	kind      name
	wide      bool // codes of two bytes
	unknown   bool // the codes are not known: each byte counts as the widest character
	vertical  bool
	widths    map[int]float64
	width     float64 // of characters without a width of their own
	widest    float64
	box       bounds // of all characters, in glyph space
	matrix    matrix // of a Type 3 font
	standard  *stamp.Standard
	encoding  *[256]rune
	unicode   map[int]rune
	drawn     map[int]bounds // of a Type 3 font, by code
	glyphs    map[int]*stream
	resources dict
	drawing   bool
}

// textOperator carries out an operator of text.
func (p *painter) textOperator(op string) {
	t := &p.state.text
	v, ok := p.number()
	switch op {
	case "BT":
		t.line, t.matrix, t.slack = unmoved, unmoved, 0
		p.astray = false
	case "ET":
		p.astray = true // text that is shown here is in no text object
	case "Tc":
		if ok {
			t.character = v
		}
	case "Tw":
		if ok {
			t.word = v
		}
	case "Tz":
		if ok {
			p.state.scale = v / 100
		}
	case "TL":
		if ok {
			t.leading = v
		}
	case "Ts":
		if ok {
			t.rise = v
		}
	case "Tr":
		if ok {
			t.mode = int(v)
		}
	case "Tf":
		if len(p.operands) >= 2 && ok {
			t.size = v
			n, _ := p.operands[len(p.operands)-2].object.(name)
			t.font = p.font(p.resource("Font", n))
		}
	case "Td", "TD":
		if v, ok := p.numbers(2); ok {
			if op == "TD" {
				t.leading = -v[1]
			}
			p.newLine(v[0], v[1])
		}
	case "Tm":
		if v, ok := p.numbers(6); ok {
			t.line, t.matrix, t.slack = matrix(v), matrix(v), 0
			p.astray = false
		}
	case "T*":
		p.newLine(0, -t.leading)
	case "Tj", "'":
		if op == "'" {
			p.newLine(0, -t.leading)
		}
		if s, ok := p.last().(text); ok {
			p.show(s)
		}
	case `"`:
		if n := len(p.operands); n >= 3 {
			t.word, t.character = p.operands[n-3].n, p.operands[n-2].n
			p.newLine(0, -t.leading)
			if s, ok := p.last().(text); ok {
				p.show(s)
			}
		}
	case "TJ":
		list, _ := p.last().(array)
		for _, o := range list {
			switch o := o.(type) {
			case text:
				p.show(o)
			case number:
				v, _ := real(o)
				p.move(-v/1000*t.size, -v/1000*t.size)
			}
			if p.all {
				return
			}
		}
	}
}

func (p *painter) newLine(x, y float64) {
	t := &p.state.text
	t.line = matrix{1, 0, 0, 1, x, y}.times(t.line)
	t.matrix, t.slack = t.line, 0
}

// move moves the text position, by x if the font is written horizontally and else by y.
func (p *painter) move(x, y float64) {
	t := &p.state.text
	if t.font != nil && t.font.vertical {
		t.matrix = matrix{1, 0, 0, 1, 0, y}.times(t.matrix)
		return
	}
	t.matrix = matrix{1, 0, 0, 1, x * p.state.scale, 0}.times(t.matrix)
}

// show shows a string.
func (p *painter) show(s text) {
	t, f := &p.state.text, p.state.text.font
	if f == nil {
		if len(s) > 0 && t.size != 0 { // programs choose a font of their own
			f = unknownFont
		} else {
			return
		}
	}
	step := 1
	if f.wide {
		step = 2
	}
	const invisible, most = 3, 7
	hidden := t.mode == invisible || t.mode == most
	for i := 0; i < len(s); i += step {
		if p.glyphs--; p.glyphs < 0 || !p.file.charge(priceGlyph) {
			p.all = true
			return
		}
		code := int(s[i])
		if f.wide && i+1 < len(s) {
			code = code<<8 | int(s[i+1])
		}
		width := f.widthOf(code)
		place := matrix{t.size * p.state.scale, 0, 0, t.size, 0, t.rise}.times(t.matrix).times(p.state.ctm)
		blank := !f.wide && code == ' ' && f.kind != "Type3" && f.rune(code) == ' '
		if !hidden && !blank {
			if p.astray {
				p.all = true
				return
			}
			p.showGlyph(f, code, width, place)
		}
		if len(p.word) > 0 && p.box == nil && p.file.charge(int64(len(p.word))/4) {
			p.search(f, code, width, place)
		}
		advance := width*t.size + t.character
		if !f.wide && code == ' ' {
			advance += t.word
		}
		if f.guessed(code) {
			t.slack += math.Abs(width*t.size) + math.Abs(t.character)
		}
		down := -t.size + t.character
		p.move(advance, down)
	}
}

// showGlyph paints a character. place is the transformation of a font of size 1.
func (p *painter) showGlyph(f *inkFont, code int, width float64, place matrix) {
	t := &p.state.text
	if f.kind == "Type3" {
		p.ink(f.matrix.times(place).of(p.drawnGlyph(f, code)))
		return
	}
	c := p.state.fill
	const strokes = 1
	if m := t.mode & 3; m == strokes || m == 2 {
		c = paint{white: c.white && p.state.stroke.white || m == strokes && p.state.stroke.white}
	}
	// The letters of the font program may be wider than the document says.
	const em = 1
	b := bounds{min(f.box[0], -0.1), f.box[1], max(em, width+max(0.1, min(f.box[2]-f.widest, 0.5))), f.box[3]}
	if f.vertical {
		b = bounds{-1, -1.2, 1, 0.3}
	}
	if f.unknown {
		b[2] = max(b[2], f.box[2])
	}
	if t.slack > 0 && t.size != 0 && !f.vertical {
		b[0] -= t.slack / math.Abs(t.size)
	}
	box := place.of(b)
	if m := t.mode & 3; m == 1 || m == 2 {
		box = box.grown(p.state.width * p.state.ctm.scale())
	}
	p.filled(box, c)
}

// search looks for the word at the end of the characters shown so far.
func (p *painter) search(f *inkFont, code int, width float64, place matrix) {
	r := f.rune(code)
	if r == ' ' || r == '\u00a0' {
		return
	}
	if len(p.seen) == len(p.word) {
		p.seen = append(p.seen[:0], p.seen[1:]...)
	}
	p.seen = append(p.seen, glyph{r, place.of(bounds{0, -0.2, width, 0.75})})
	if len(p.seen) < len(p.word) || r != p.word[len(p.word)-1] {
		return
	}
	box, height := nowhere, 0.0
	for i, g := range p.seen {
		if g.r != p.word[i] {
			return
		}
		box.add(g.box[0], g.box[1])
		box.add(g.box[2], g.box[3])
		height = max(height, min(g.box[3]-g.box[1], g.box[2]-g.box[0]))
	}
	// Letters of one word are near each other.
	first, last := p.seen[0].box, p.seen[len(p.seen)-1].box
	if min(box[3]-box[1], box[2]-box[0]) < 4*max(height, first[3]-first[1], last[3]-last[1], 1) {
		p.ground.Word(box)
	}
}

// widthOf returns the width of a character for a font of size 1.
func (f *inkFont) widthOf(code int) float64 {
	if f.unknown {
		return f.widest
	}
	if w, ok := f.widths[code]; ok {
		return w
	}
	if f.standard != nil && f.encoding != nil && code < 256 && !f.guessed(code) {
		if w, ok := f.standard.Width(f.encoding[code]); ok {
			return w
		}
	}
	return f.width
}

// guessed reports whether the width of a character is one of several possible ones, of which widthOf returns the largest.
func (f *inkFont) guessed(code int) bool {
	if f.unknown {
		return true
	}
	_, ok := f.widths[code]
	return !ok && f.kind != "Type0" && f.kind != "Type3" && len(f.widths) == 0 && (code < 0x20 || code > 0x7e || f.standard == nil)
}

// rune returns the character that a code means, 0 if it is not known.
func (f *inkFont) rune(code int) rune {
	if r, ok := f.unicode[code]; ok {
		return r
	}
	if f.encoding != nil && code < 256 {
		return f.encoding[code]
	}
	return 0
}

var unknownFont = &inkFont{width: 1.1, widest: 1.1, box: defaultBox, encoding: &winAnsi}

// defaultBox has the characters of every font that people read.
var defaultBox = bounds{-0.35, -0.4, 1.6, 1.15}

// sized makes a box of a font usable: it has at least what ordinary letters need.
func sized(b bounds, ok bool) bounds {
	if !ok || b[2]-b[0] <= 0 || b[3]-b[1] <= 0 || math.IsNaN(b[0]+b[1]+b[2]+b[3]) {
		return defaultBox
	}
	return bounds{max(min(b[0], -0.05), -3), max(min(b[1], -0.25), -3), min(max(b[2], 1), 4), min(max(b[3], 0.95), 4)}
}

// maxFonts is how many fonts are kept, and maxWidths how many widths one of them may have.
const (
	maxFonts   = 256
	maxWidths  = 1 << 16
	fontSize   = 512 // bytes, besides its widths
	priceFont  = 4000
	priceWidth = 16 // of one width, in steps; fonts that are no objects of their own are read again each time
	widthSize  = 64
	maxMapping = 1 << 16
)

// font reads a font.
func (p *painter) font(o object) *inkFont {
	id, _ := o.(ref)
	if f, ok := p.fonts[id.num]; ok && id.num != 0 {
		return f
	}
	d := p.file.resolveDict(o)
	if d == nil {
		return nil
	}
	if len(p.fonts) >= maxFonts || !p.file.charge(priceFont) {
		p.all = true
		return nil
	}
	if id.num == 0 { // it is read again each time, and not kept
		before := p.file.spending.Held()
		f := p.readFont(d)
		p.file.spending.Release(p.file.spending.Held() - before)
		return f
	}
	if !p.file.keep(fontSize) {
		p.all = true
		return nil
	}
	f := p.readFont(d)
	p.fonts[id.num] = f
	return f
}

func (p *painter) readFont(d dict) *inkFont {
	file := p.file
	kind, _ := file.resolve(d.get("Subtype")).(name)
	f := &inkFont{kind: kind, widths: map[int]float64{}, width: 1, widest: 1}
	if len(p.word) > 0 {
		f.unicode = p.toUnicode(d.get("ToUnicode"))
	}
	switch kind {
	case "Type0":
		p.compositeFont(f, d)
	case "Type3":
		p.glyphFont(f, d)
	default:
		p.simpleFont(f, d)
	}
	return f
}

// descriptor reads the box of a font.
func (p *painter) descriptor(f *inkFont, d dict) {
	box, ok := p.file.rectangle(d.get("FontBBox"))
	b := ordered(box)
	for i := range b {
		b[i] /= 1000
	}
	f.box = sized(b, ok)
}

func (p *painter) simpleFont(f *inkFont, d dict) {
	file := p.file
	f.encoding = p.encoding(d.get("Encoding"))
	descriptor := file.resolveDict(d.get("FontDescriptor"))
	p.descriptor(f, descriptor)
	base, _ := file.resolve(d.get("BaseFont")).(name)
	list := file.resolveArray(d.get("Widths"))
	if len(list) == 0 {
		f.standard = stamp.StandardFont(string(base))
		f.width, f.widest = 1.1, 1.1
		return
	}
	f.width = 0
	if w, ok := real(file.resolve(descriptor.get("MissingWidth"))); ok {
		f.width = w / 1000
	}
	first := int(file.intOf(d.get("FirstChar")))
	for i, o := range list[:min(len(list), 256)] {
		if w, ok := real(file.resolve(o)); ok {
			f.widths[first+i] = w / 1000
			f.widest = max(f.widest, w/1000)
		}
	}
}

func (p *painter) compositeFont(f *inkFont, d dict) {
	file := p.file
	list := file.resolveArray(d.get("DescendantFonts"))
	if len(list) == 0 {
		f.unknown, f.box = true, defaultBox
		return
	}
	below := file.resolveDict(list[0])
	p.descriptor(f, file.resolveDict(below.get("FontDescriptor")))
	if w, ok := real(file.resolve(below.get("DW"))); ok {
		f.width = w / 1000
	}
	f.widest = max(1, f.width)
	p.cidWidths(f, file.resolveArray(below.get("W")))
	switch encoding := file.resolve(d.get("Encoding")).(type) {
	case name:
		f.vertical = strings.HasSuffix(string(encoding), "-V") || encoding == "V"
		f.wide = encoding == "Identity-H" || encoding == "Identity-V"
		f.unknown = !f.wide
	default:
		// Another mapping of codes to characters: most have two bytes for each.
		f.unknown = true
		if s, ok := encoding.(*stream); ok {
			f.vertical = file.intOf(s.dict.get("WMode")) == 1
		}
	}
}

// cidWidths reads the widths of a CIDFont (9.7.4.3).
func (p *painter) cidWidths(f *inkFont, list array) {
	set := func(cid int, w float64) bool {
		if len(f.widths) >= maxWidths || !p.file.keep(widthSize) {
			return false
		}
		if !p.file.charge(priceWidth) {
			p.all = true
			return false
		}
		f.widths[cid] = w / 1000
		f.widest = max(f.widest, w/1000)
		return true
	}
	for i := 0; i+1 < len(list); {
		first := int(p.file.intOf(list[i]))
		if widths, ok := p.file.resolve(list[i+1]).(array); ok {
			for j, o := range widths {
				if w, ok := real(p.file.resolve(o)); ok && !set(first+j, w) {
					return
				}
			}
			i += 2
			continue
		}
		if i+2 >= len(list) {
			return
		}
		last := int(p.file.intOf(list[i+1]))
		w, _ := real(p.file.resolve(list[i+2]))
		for cid := first; cid <= min(last, first+maxWidths); cid++ {
			if !set(cid, w) {
				return
			}
		}
		i += 3
	}
}

// glyphFont reads a Type 3 font, whose characters are content.
func (p *painter) glyphFont(f *inkFont, d dict) {
	file := p.file
	f.matrix = matrix{0.001, 0, 0, 0.001, 0, 0}
	if a := file.resolveArray(d.get("FontMatrix")); len(a) == 6 {
		for i := range f.matrix {
			f.matrix[i], _ = real(file.resolve(a[i]))
		}
	}
	f.width, f.drawn, f.glyphs = 0, map[int]bounds{}, map[int]*stream{}
	f.resources = file.resolveDict(d.get("Resources"))
	f.encoding = p.encoding(d.get("Encoding"))
	procs := file.resolveDict(d.get("CharProcs"))
	p.differences(d.get("Encoding"), func(code int, glyph name) {
		if s, ok := file.resolve(procs.get(glyph)).(*stream); ok {
			f.glyphs[code] = s
		}
	})
	first := int(file.intOf(d.get("FirstChar")))
	list := file.resolveArray(d.get("Widths"))
	for i, o := range list[:min(len(list), 256)] {
		if w, ok := real(file.resolve(o)); ok {
			f.widths[first+i] = w * f.matrix[0]
		}
	}
}

// drawnGlyph returns the box of what a glyph of a Type 3 font paints, in glyph space.
func (p *painter) drawnGlyph(f *inkFont, code int) bounds {
	if b, ok := f.drawn[code]; ok {
		return b
	}
	s := f.glyphs[code]
	if s == nil || f.drawing {
		return nowhere
	}
	f.drawing = true
	box := nowhere
	before, collected := p.state, p.box
	p.state.ctm, p.state.clip, p.box = unmoved, everywhere, &box
	p.state.fill, p.state.stroke = paint{}, paint{}
	resources := f.resources
	if resources == nil {
		resources = p.resources
	}
	p.form(s, resources)
	p.state, p.box = before, collected
	f.drawing = false
	for i, v := range box {
		if math.IsInf(v, 0) && !box.empty() {
			box[i] = math.Copysign(1e6, v)
		}
	}
	f.drawn[code] = box
	return box
}

// differences calls visit for the names of glyphs of an encoding.
func (p *painter) differences(o object, visit func(code int, glyph name)) {
	code := 0
	list := p.file.resolveArray(p.file.resolveDict(o).get("Differences"))
	for _, o := range list[:min(len(list), 1024)] {
		switch o := p.file.resolve(o).(type) {
		case number:
			n, _ := integer(o)
			code = int(min(max(n, 0), 256))
		case name:
			if code < 256 {
				visit(code, o)
			}
			code++
		}
	}
}

// encoding reads the encoding of a simple font.
func (p *painter) encoding(o object) *[256]rune {
	e := winAnsi
	p.differences(o, func(code int, glyph name) { e[code] = glyphRune(string(glyph)) })
	return &e
}

// winAnsi is WinAnsiEncoding (D.2). The other encodings of Latin text are the same in ASCII.
var winAnsi = func() (e [256]rune) {
	for c := range e {
		if c >= 0x20 {
			e[c] = rune(c)
		}
	}
	for i, r := range []rune("€\x00‚ƒ„…†‡ˆ‰Š‹Œ\x00Ž\x00\x00‘’“”•–—˜™š›œ\x00žŸ") {
		e[0x80+i] = r
	}
	return e
}()

// glyphRune returns the character of a name of a glyph, 0 if it is not known.
func glyphRune(s string) rune {
	if len(s) == 1 {
		return rune(s[0])
	}
	if hex, ok := strings.CutPrefix(s, "uni"); ok && len(hex) >= 4 {
		r, _ := intText(hex[:4], 16)
		return r
	}
	if n, ok := strings.CutPrefix(s, "afii"); ok {
		v, _ := intText(n, 10)
		switch {
		case v == 10023:
			return 'Ё'
		case v == 10071:
			return 'ё'
		case v >= 10017 && v <= 10022:
			return 'А' + v - 10017
		case v >= 10024 && v <= 10049:
			return 'А' + v - 10018
		case v >= 10065 && v <= 10070:
			return 'а' + v - 10065
		case v >= 10072 && v <= 10097:
			return 'а' + v - 10066
		}
		return 0
	}
	if r, ok := glyphNames[s]; ok {
		return r
	}
	if hex, ok := strings.CutPrefix(s, "u"); ok && len(hex) >= 4 {
		r, _ := intText(hex, 16)
		return r
	}
	return 0
}

var glyphNames = map[string]rune{
	"space": ' ', "exclam": '!', "quotedbl": '"', "numbersign": '#', "dollar": '$', "percent": '%', "ampersand": '&', "quotesingle": '\'',
	"parenleft": '(', "parenright": ')', "asterisk": '*', "plus": '+', "comma": ',', "hyphen": '-', "period": '.', "slash": '/',
	"zero": '0', "one": '1', "two": '2', "three": '3', "four": '4', "five": '5', "six": '6', "seven": '7', "eight": '8', "nine": '9',
	"colon": ':', "semicolon": ';', "less": '<', "equal": '=', "greater": '>', "question": '?', "at": '@',
	"bracketleft": '[', "backslash": '\\', "bracketright": ']', "underscore": '_', "braceleft": '{', "bar": '|', "braceright": '}',
	"guillemotleft": '«', "guillemotright": '»', "endash": '–', "emdash": '—',
}

// toUnicode reads a ToUnicode mapping (9.10.3), as far as codes mean one character.
func (p *painter) toUnicode(o object) map[int]rune {
	s, ok := p.file.resolve(o).(*stream)
	if !ok {
		return nil
	}
	data, err := p.file.data(s)
	if err != nil {
		return nil
	}
	defer func() { p.file.spending.Release(int64(len(data))) }()
	out := map[int]rune{}
	l := lexBytes(data)
	l.left = maxTokens
	l.spending = p.file.spending
	defer l.release()
	set := func(code int, r rune) bool {
		if len(out) >= maxMapping || !p.file.keep(widthSize) {
			return false
		}
		out[code] = r
		return true
	}
	var values []object
	for {
		t := l.token()
		if p.file.charge(priceToken); t.kind == tokenEnd || l.err != nil {
			return out
		}
		if t.kind != tokenKeyword {
			v, err := l.value(t)
			if err != nil {
				return out
			}
			if len(values) < 1024 {
				values = append(values, v)
			}
			l.release()
			continue
		}
		switch string(t.bytes) {
		case "endbfchar":
			for i := 0; i+1 < len(values); i += 2 {
				if !set(codeOf(values[i]), unicodeOf(values[i+1])) {
					return out
				}
			}
		case "endbfrange":
			for i := 0; i+2 < len(values); i += 3 {
				from, to := codeOf(values[i]), codeOf(values[i+1])
				list, each := values[i+2].(array)
				for c := from; c <= min(to, from+maxMapping); c++ {
					r := unicodeOf(values[i+2]) + rune(c-from)
					if each {
						if c-from >= len(list) {
							break
						}
						r = unicodeOf(list[c-from])
					}
					if !set(c, r) {
						return out
					}
				}
			}
		}
		values = values[:0]
	}
}

// codeOf returns the code that a string means.
func codeOf(o object) int {
	s, _ := o.(text)
	n := 0
	for _, c := range s[:min(len(s), 4)] {
		n = n<<8 | int(c)
	}
	return n
}

// unicodeOf returns the first character of a string of UTF-16.
func unicodeOf(o object) rune {
	s, _ := o.(text)
	switch {
	case len(s) >= 4:
		if r := utf16.DecodeRune(rune(s[0])<<8|rune(s[1]), rune(s[2])<<8|rune(s[3])); r != 0xFFFD {
			return r
		}
		fallthrough
	case len(s) >= 2:
		return rune(s[0])<<8 | rune(s[1])
	case len(s) == 1:
		return rune(s[0])
	}
	return 0
}
