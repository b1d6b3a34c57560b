// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"bytes"
	"math"
	"slices"
	"strconv"
)

// Limits of a search for a place. They are for one document, so that a search ends early on pages that are made to
// take long; a page that was not read to its end has no free place.
const (
	maxPainted   = 2_000_000 // operators of content
	maxGlyphs    = 2 << 20   // characters of text
	maxSearched  = 64        // pages
	maxForms     = 24        // nesting of forms, patterns and glyphs
	maxSaved     = 512       // nesting of q
	maxOperands  = 64        // of one operator; further ones are not kept
	maxSegments  = 1 << 18   // of one path
	maxPixels    = 24 << 20  // of images that are decoded
	priceGlyph   = 6         // steps
	priceSegment = 4
	// segmentSize is the memory of a segment of a path, while the path grows by doubling.
	segmentSize = 96
)

// searcher reads what pages paint, for the place of a stamp.
type searcher struct {
	file      *file
	word      []rune // without spaces
	operators int    // left
	glyphs    int    // left
	pixels    int    // left
	pages     int    // left
	fonts     map[int]*inkFont
	open      int  // how many q of the last page have no Q
	excess    int  // how many Q of the last page have no q
	over      bool // the part of the budget is used up
}

func newSearcher(f *file) *searcher {
	return &searcher{file: f, operators: maxPainted, glyphs: maxGlyphs, pixels: maxPixels, pages: maxSearched, fonts: map[int]*inkFont{}}
}

// ground takes what a page paints, in default user space; see [stamp.Ground].
type ground interface {
	Ink(r [4]float64)
	Word(r [4]float64)
	Fill()
}

// ink says what a page paints: its content and its annotations. more reports whether another page may be asked for. The
// search has half of what the budget of the document has left: a page that needs more is taken, and so are all others, but the document
// goes on.
func (s *searcher) ink(p *page, word string, g ground) (more bool, err error) {
	f := s.file
	if s.over {
		g.Fill()
		return false, f.failed()
	}
	whole, held, damaged := f.spending, f.spending.Held()-f.cached-f.held, f.damaged
	f.spending = whole.Part(1, 2)
	all := s.read(p, word, g)
	s.over = f.failed() != nil
	f.spending = whole
	if err := f.failed(); err != nil {
		return false, err
	}
	if s.over { // what was read last may be incomplete
		f.forget()
		f.forgetStreams()
		clear(s.fonts)
		whole.Release(whole.Held() - held)
		f.damaged = damaged
	}
	if all || s.over {
		g.Fill()
	}
	s.pages--
	return !s.over && s.pages > 0 && s.operators > 0 && s.glyphs > 0, nil
}

// read reads what a page paints. all reports that it may be anywhere.
func (s *searcher) read(p *page, word string, g ground) (all bool) {
	f := s.file
	s.word = withoutSpaces(word)
	in := &painter{searcher: s, ground: g, astray: true, state: graphics{ctm: unmoved, clip: everywhere, width: 1, miter: 10, scale: 1}}
	in.use(f.resolveDict(f.inheritedEntry(p, "Resources")))
	s.excess = 0
	in.contents(f.resolve(p.dict.get("Contents")))
	s.open = len(in.saved)
	for _, o := range f.resolveArray(p.dict.get("Annots")) {
		if s.operators--; s.operators < 0 {
			in.all = true
			break
		}
		in.annotation(f.resolveDict(o))
	}
	f.spending.Release(in.path.held)
	return in.all
}

// inheritedEntry returns an entry of a page, or of the nearest node above that has it.
func (f *file) inheritedEntry(p *page, key name) object {
	d := p.dict
	for range maxTreeDepth {
		if o := d.get(key); f.resolve(o) != nil {
			return o
		}
		if d = f.resolveDict(d.get("Parent")); d == nil {
			return nil
		}
	}
	return nil
}

// matrix is a transformation (8.3.3).
type matrix [6]float64

var unmoved = matrix{1, 0, 0, 1, 0, 0}

// times returns the transformation m followed by n.
func (m matrix) times(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

func (m matrix) point(x, y float64) (float64, float64) {
	return m[0]*x + m[2]*y + m[4], m[1]*x + m[3]*y + m[5]
}

// scale returns how much lengths grow, at most.
func (m matrix) scale() float64 {
	return max(math.Hypot(m[0], m[1]), math.Hypot(m[2], m[3]))
}

// bounds is a box by its lower left and upper right corners.
type bounds [4]float64

var (
	everywhere = bounds{math.Inf(-1), math.Inf(-1), math.Inf(1), math.Inf(1)}
	nowhere    = bounds{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
)

func (b *bounds) add(x, y float64) {
	b[0], b[1], b[2], b[3] = min(b[0], x), min(b[1], y), max(b[2], x), max(b[3], y)
}

func (b bounds) cut(c bounds) bounds {
	return bounds{max(b[0], c[0]), max(b[1], c[1]), min(b[2], c[2]), min(b[3], c[3])}
}

func (b bounds) grown(d float64) bounds { return bounds{b[0] - d, b[1] - d, b[2] + d, b[3] + d} }

func (b bounds) empty() bool { return b[0] > b[2] || b[1] > b[3] }

// of returns the box around a transformed box.
func (m matrix) of(b bounds) bounds {
	out := nowhere
	for _, c := range [][2]float64{{b[0], b[1]}, {b[2], b[1]}, {b[0], b[3]}, {b[2], b[3]}} {
		out.add(m.point(c[0], c[1]))
	}
	return out
}

// colourSpace is as much of a colour space as whiteness needs: the number of components, and whether white has ones
// or zeros. Other spaces have no components.
type colourSpace struct {
	components int
	ink        bool // CMYK: zeros are white
}

// paint is the colour of filling or stroking.
type paint struct {
	space colourSpace
	white bool
}

// graphics is the graphics state (8.4).
type graphics struct {
	ctm          matrix
	clip         bounds // of the page
	fill, stroke paint
	odd          bool // a blend mode or a transfer function with which white may be visible
	width, miter float64
	join, cap    int
	text         textState
	scale        float64 // horizontal scaling of text
}

// painter reads one content stream and those that it calls.
type painter struct {
	*searcher
	ground    ground
	resources dict
	defaults  [5]bool // by the number of components: a device colour space is replaced, so its white may be ink
	state     graphics
	saved     []graphics
	depth     int
	all       bool // something may be painted anywhere
	astray    bool // programs show text in different places

	path     outline
	operands []operand
	seen     []glyph // the last ones, for the search for the word
	box      *bounds // collects what a glyph of a Type 3 font paints; nil: the ground does
}

// operand is a number or another object.
type operand struct {
	n      float64
	object object // nil: a number
}

// ink says that a box of the page may have ink.
func (p *painter) ink(b bounds) {
	b = b.cut(p.state.clip)
	if b.empty() {
		return
	}
	if p.box != nil {
		p.box.add(b[0], b[1])
		p.box.add(b[2], b[3])
		return
	}
	p.ground.Ink(b)
}

// filled is like ink, unless the colour cannot be seen.
func (p *painter) filled(b bounds, c paint) {
	if !c.white || p.state.odd {
		p.ink(b)
	}
}

// contents reads the content of a page: a stream, or an array of streams that are read as one.
func (p *painter) contents(o object) {
	switch o := o.(type) {
	case *stream:
		p.stream(o)
	case array:
		for _, part := range o {
			if s, ok := p.file.resolve(part).(*stream); ok {
				p.stream(s)
			}
			if p.all {
				return
			}
		}
	}
}

// stream reads a content stream.
func (p *painter) stream(s *stream) {
	if !p.file.charge(4 * priceObject) {
		p.all = true
		return
	}
	data, err := p.file.data(s)
	if err != nil {
		p.all = true
		return
	}
	p.content(data)
	p.file.spending.Release(int64(len(data)))
}

func (p *painter) content(data []byte) {
	l := lexBytes(data)
	l.left = math.MaxInt
	l.spending = p.file.spending
	defer l.release()
	for !p.all {
		t := l.token()
		if p.file.charge(priceToken/2 + int64(len(t.bytes))/16); l.err != nil || p.file.failed() != nil {
			p.all = true
			return
		}
		switch t.kind {
		case tokenEnd:
			return
		case tokenNumber:
			p.push(operand{n: numeric(t.bytes)})
		case tokenKeyword:
			switch string(t.bytes) {
			case "true", "false", "null":
				p.push(operand{object: false})
				continue
			case "BI":
				p.inline(l)
			default:
				if p.operators--; p.operators < 0 {
					p.all = true
					return
				}
				p.operator(string(t.bytes))
			}
			p.operands = p.operands[:0]
		case tokenArrayEnd, tokenDictEnd:
		default:
			o, err := l.value(t)
			if err != nil && err != errNoObject {
				p.all = true
				return
			}
			p.push(operand{object: o})
			l.release()
		}
	}
}

func (p *painter) push(o operand) {
	if len(p.operands) == maxOperands {
		p.operands = append(p.operands[:0], p.operands[1:]...)
	}
	p.operands = append(p.operands, o)
}

// numeric reads a number as viewers do.
func numeric(b []byte) float64 {
	v, scale, negative := 0.0, 0.0, false
	for i, c := range b {
		switch {
		case c >= '0' && c <= '9' && scale == 0:
			v = v*10 + float64(c-'0')
		case c >= '0' && c <= '9':
			v += float64(c-'0') * scale
			scale /= 10
		case c == '.' && scale == 0:
			scale = 0.1
		case c == '-' && i == 0:
			negative = true
		case (c == '-' || c == '+') && i < 2:
		default:
			return signed(v, negative)
		}
	}
	return signed(v, negative)
}

func signed(v float64, negative bool) float64 {
	if negative {
		return -v
	}
	return v
}

// numbers returns the last n operands, which must be numbers.
func (p *painter) numbers(n int) ([6]float64, bool) {
	var out [6]float64
	from := len(p.operands) - n
	if from < 0 {
		return out, false
	}
	for i, o := range p.operands[from:] {
		if o.object != nil {
			return out, false
		}
		out[i] = o.n
	}
	return out, true
}

// last returns the last operand that is not a number, nil if that is not the last one.
func (p *painter) last() object {
	if len(p.operands) == 0 {
		return nil
	}
	return p.operands[len(p.operands)-1].object
}

func (p *painter) number() (float64, bool) {
	v, ok := p.numbers(1)
	return v[0], ok
}

// operator carries out an operator (annex A).
func (p *painter) operator(op string) {
	s := &p.state
	switch op {
	case "q":
		if len(p.saved) >= maxSaved {
			p.all = true
			return
		}
		p.saved = append(p.saved, *s)
	case "Q":
		p.astray = true // inside of a text object, some programs restore its position and others do not
		if n := len(p.saved); n > 0 {
			*s, p.saved = p.saved[n-1], p.saved[:n-1]
		} else if p.depth == 0 {
			p.excess++
		}
	case "cm":
		if v, ok := p.numbers(6); ok {
			s.ctm = matrix(v).times(s.ctm)
		}
	case "w":
		if v, ok := p.number(); ok {
			s.width = math.Abs(v)
		}
	case "M":
		if v, ok := p.number(); ok {
			s.miter = v
		}
	case "j":
		if v, ok := p.number(); ok {
			s.join = int(v)
		}
	case "J":
		if v, ok := p.number(); ok {
			s.cap = int(v)
		}
	case "gs":
		if n, ok := p.last().(name); ok {
			p.external(p.resource("ExtGState", n))
		}
	case "m", "l", "c", "v", "y", "h", "re":
		p.construct(op)
	case "S", "s", "f", "F", "f*", "B", "B*", "b", "b*", "n":
		p.paintPath(op)
	case "W", "W*":
		p.path.clips = true
	case "g", "rg", "k", "G", "RG", "K":
		p.device(op)
	case "cs", "CS":
		n, _ := p.last().(name)
		c := paint{space: p.space(n, 0)}
		if op == "cs" {
			s.fill = c
		} else {
			s.stroke = c
		}
	case "sc", "scn":
		s.fill.white = p.white(s.fill.space)
	case "SC", "SCN":
		s.stroke.white = p.white(s.stroke.space)
	case "sh":
		p.shading()
	case "Do":
		if n, ok := p.last().(name); ok {
			p.external1(n)
		}
	case "d1":
		// A glyph whose colour is that of the text. What it paints is read all the same: its box may be wrong.
	default:
		p.textOperator(op)
	}
}

// defaultSpaces are the resources that replace the colour spaces of devices (8.6.5.6), by their number of components.
var defaultSpaces = [5]name{1: "DefaultGray", 3: "DefaultRGB", 4: "DefaultCMYK"}

// use makes a dictionary the present resources. Programs disagree on whether a form takes over replaced colour spaces.
func (p *painter) use(resources dict) {
	p.resources = resources
	for n, key := range defaultSpaces {
		if key != "" && p.resource("ColorSpace", key) != nil {
			p.defaults[n] = true
		}
	}
}

// resource returns a named resource.
func (p *painter) resource(kind, n name) object {
	d := p.file.resolveDict(p.resources.get(kind))
	if !p.file.charge(int64(len(d)+len(p.resources)) / 8) {
		return nil
	}
	return d.get(n)
}

// external applies a dictionary of graphics state parameters.
func (p *painter) external(o object) {
	f, s := p.file, &p.state
	d := f.resolveDict(o)
	if v, ok := real(f.resolve(d.get("LW"))); ok {
		s.width = math.Abs(v)
	}
	if v, ok := real(f.resolve(d.get("ML"))); ok {
		s.miter = v
	}
	if v, ok := integer(f.resolve(d.get("LJ"))); ok {
		s.join = int(v)
	}
	if v, ok := integer(f.resolve(d.get("LC"))); ok {
		s.cap = int(v)
	}
	if a := f.resolveArray(d.get("Font")); len(a) == 2 {
		s.text.font = p.font(a[0])
		s.text.size, _ = real(f.resolve(a[1]))
	}
	if bm := f.resolve(d.get("BM")); bm != nil {
		if a, ok := bm.(array); ok && len(a) > 0 {
			bm = f.resolve(a[0])
		}
		s.odd = bm != name("Normal") && bm != name("Compatible")
	}
	for _, key := range []name{"TR", "TR2"} {
		if tr := f.resolve(d.get(key)); tr != nil && tr != name("Identity") && tr != name("Default") {
			s.odd = true
		}
	}
}

// deviceSpaces are the colour spaces of devices, by the operators that set a colour in them.
var deviceSpaces = map[string]colourSpace{"g": {1, false}, "rg": {3, false}, "k": {4, true}, "G": {1, false}, "RG": {3, false}, "K": {4, true}}

// device sets a colour in one of the spaces of devices.
func (p *painter) device(op string) {
	space := p.replaced(deviceSpaces[op])
	c := paint{space, p.white(space)}
	if op[0] >= 'a' {
		p.state.fill = c
	} else {
		p.state.stroke = c
	}
}

// replaced returns a colour space of devices, or an unknown one if the resources replace it.
func (p *painter) replaced(device colourSpace) colourSpace {
	if p.defaults[device.components] {
		return colourSpace{}
	}
	return device
}

// white reports whether the operands are white in a colour space.
func (p *painter) white(space colourSpace) bool {
	if space.components == 0 || len(p.operands) < space.components {
		return false
	}
	for _, o := range p.operands[len(p.operands)-space.components:] {
		if o.object != nil || space.ink && o.n > 0 || !space.ink && o.n < 1 {
			return false
		}
	}
	return true
}

// space reads a colour space.
func (p *painter) space(o object, depth int) colourSpace {
	f := p.file
	switch o := f.resolve(o).(type) {
	case name:
		switch o {
		case "DeviceGray", "G", "CalGray":
			return p.replaced(colourSpace{components: 1})
		case "DeviceRGB", "RGB", "CalRGB":
			return p.replaced(colourSpace{components: 3})
		case "DeviceCMYK", "CMYK":
			return p.replaced(colourSpace{4, true})
		}
		if named := f.resolve(p.resource("ColorSpace", o)); named != nil && depth == 0 {
			return p.space(named, 1)
		}
	case array:
		if len(o) == 0 {
			break
		}
		switch f.resolve(o[0]) {
		case name("CalGray"), name("DeviceGray"):
			return p.replaced(colourSpace{components: 1})
		case name("CalRGB"), name("DeviceRGB"):
			return p.replaced(colourSpace{components: 3})
		case name("DeviceCMYK"):
			return p.replaced(colourSpace{4, true})
		case name("ICCBased"):
			if len(o) < 2 {
				break
			}
			switch n := f.intOf(f.resolveDict(o[1]).get("N")); n {
			case 1, 3, 4:
				return colourSpace{int(n), n == 4}
			}
		}
	}
	return colourSpace{}
}

// shading paints the whole clip, or the box of the shading.
func (p *painter) shading() {
	n, _ := p.last().(name)
	b := everywhere
	if box, ok := p.file.rectangle(p.file.resolveDict(p.resource("Shading", n)).get("BBox")); ok {
		b = p.state.ctm.of(ordered(box))
	}
	p.ink(b)
}

// ordered returns the box of two opposite corners.
func ordered(r [4]float64) bounds {
	return bounds{min(r[0], r[2]), min(r[1], r[3]), max(r[0], r[2]), max(r[1], r[3])}
}

// external1 paints an external object.
func (p *painter) external1(n name) {
	s, ok := p.file.resolve(p.resource("XObject", n)).(*stream)
	if !ok {
		return
	}
	switch p.file.resolve(s.dict.get("Subtype")) {
	case name("Form"):
		p.form(s, nil)
	case name("Image"):
		p.image(s)
	}
}

// form paints a form XObject, or a glyph of a Type 3 font with the resources of the font.
func (p *painter) form(s *stream, glyph dict) {
	f := p.file
	if p.depth++; p.depth > maxForms {
		p.all = true
		return
	}
	before, saved, resources, drawn, defaults, astray := p.state, p.saved, p.resources, p.path, p.defaults, p.astray
	p.saved, p.path, p.astray = nil, outline{}, true
	operands := slices.Clone(p.operands)
	if glyph == nil {
		if a := f.resolveArray(s.dict.get("Matrix")); len(a) == 6 {
			var m matrix
			for i := range m {
				m[i], _ = real(f.resolve(a[i]))
			}
			p.state.ctm = m.times(p.state.ctm)
		}
		if box, ok := f.rectangle(s.dict.get("BBox")); ok {
			p.state.clip = p.state.clip.cut(p.state.ctm.of(ordered(box)))
		}
	}
	if r := f.resolveDict(s.dict.get("Resources")); r != nil {
		p.use(r)
	} else if glyph != nil {
		p.use(glyph)
	}
	p.stream(s)
	f.spending.Release(p.path.held) // of a path that was not painted
	p.state, p.saved, p.resources, p.path, p.defaults, p.astray = before, saved, resources, drawn, defaults, astray
	p.operands = append(p.operands[:0], operands...)
	p.depth--
}

// Measures of annotations that programs draw by themselves, in units of default user space.
const (
	iconSize    = 32 // icons of notes and attachments
	lineEndings = 10 // widths of a line that its endings reach
	widestLine  = 30 // a wider line of an annotation makes the page taken
)

// annotation paints an annotation. What programs show of an appearance is inside of its rectangle. Without an appearance they
// draw the annotation by themselves: along its points, with its border, or as an icon.
func (p *painter) annotation(d dict) {
	f := p.file
	const hidden, noZoom, noRotate = 2, 8, 16
	kind := f.resolve(d.get("Subtype"))
	flags := f.intOf(d.get("F"))
	if d == nil || kind == name("Popup") || flags&hidden != 0 {
		return
	}
	r, ok := f.rectangle(d.get("Rect"))
	if !ok {
		return
	}
	b, around := ordered(r), 1.0
	if flags&(noZoom|noRotate) != 0 { // it turns around its corner
		b = b.grown(max(b[2]-b[0], b[3]-b[1]))
	}
	if f.resolve(f.resolveDict(d.get("AP")).get("N")) == nil {
		width := p.borderOf(d)
		if around += width; width > widestLine {
			p.all = true
			return
		}
		switch kind {
		case name("Text"), name("FileAttachment"), name("Sound"), name("Movie"), name("Caret"):
			around = max(around, iconSize)
		case name("Line"), name("PolyLine"), name("Polygon"), name("Ink"), name("FreeText"):
			around = max(around, lineEndings*max(width, 1))
			for _, key := range []name{"L", "Vertices", "CL", "InkList", "Path"} {
				p.points(&b, d.get(key), 2)
			}
		case name("Highlight"), name("Underline"), name("Squiggly"), name("StrikeOut"), name("Redact"):
			p.points(&b, d.get("QuadPoints"), 0)
			around = max(around, (b[3]-b[1])/4)
		}
		if b[0] == b[2] && b[1] == b[3] && around == 1 {
			return // fields and links without a place do not show
		}
	} else if b[0] == b[2] || b[1] == b[3] {
		return // there is nothing to scale the appearance to
	}
	p.ground.Ink(b.grown(around))
}

// borderOf returns the width of the border of an annotation (12.5.4).
func (p *painter) borderOf(d dict) float64 {
	f := p.file
	if w, ok := real(f.resolve(f.resolveDict(d.get("BS")).get("W"))); ok {
		return math.Abs(w)
	}
	if a := f.resolveArray(d.get("Border")); len(a) > 2 {
		w, _ := real(f.resolve(a[2]))
		return math.Abs(w)
	}
	return 1
}

// points adds the points of an array, and of arrays in it, to a box.
func (p *painter) points(b *bounds, o object, depth int) {
	list := p.file.resolveArray(o)
	if !p.file.charge(int64(len(list))) {
		p.all = true
		return
	}
	for i, o := range list {
		if depth > 0 {
			p.points(b, o, depth-1)
		}
		if x, ok := real(p.file.resolve(o)); ok && i%2 == 0 && i+1 < len(list) {
			if y, ok := real(p.file.resolve(list[i+1])); ok {
				b.add(x, y)
			}
		}
	}
}

// inline reads an inline image (8.9.7) up to its end.
func (p *painter) inline(l *lexer) {
	var d dict
	for {
		t := l.token()
		if t.kind == tokenEnd || t.kind == tokenKeyword && string(t.bytes) == "ID" || l.err != nil {
			break
		}
		key, ok := "", t.kind == tokenName
		if ok {
			key = string(t.bytes)
		}
		v, err := l.value(l.token())
		if err != nil || len(d) > maxOperands {
			p.all = true
			return
		}
		d = append(d, entry{name(key), v})
	}
	l.next() // one white-space character
	mask := false
	for _, key := range []name{"IM", "ImageMask"} {
		if v, _ := d.get(key).(bool); v {
			mask = true
		}
	}
	if unit := p.state.ctm.of(bounds{0, 0, 1, 1}); mask {
		p.filled(unit, p.state.fill)
	} else {
		p.ink(unit)
	}
	if n := p.inlineLength(d); n > 0 && n <= len(l.buf)-l.pos {
		l.pos += n
	}
	for {
		i := bytes.Index(l.buf[l.pos:], []byte("EI"))
		if i < 0 {
			l.pos = len(l.buf)
			return
		}
		at := l.pos + i
		l.pos = at + 2
		if (i == 0 || isSpace(int(l.buf[at-1]))) && (l.pos == len(l.buf) || isSpace(int(l.buf[l.pos]))) && looksLikeContent(l.buf[l.pos:]) {
			return
		}
	}
}

// looksLikeContent reports whether the next bytes are text, as operators are.
func looksLikeContent(b []byte) bool {
	for _, c := range b[:min(len(b), 16)] {
		if c == '(' {
			return true // the bytes of a string may be any
		}
		if c > 126 || c < 32 && !isSpace(int(c)) || c == 0 {
			return false
		}
	}
	return true
}

// inlineLength returns the length of the data of an inline image without a filter, 0 if it is not known.
func (p *painter) inlineLength(d dict) int {
	get := func(short, long name) object {
		if o := d.get(short); o != nil {
			return o
		}
		return d.get(long)
	}
	if get("F", "Filter") != nil {
		return 0
	}
	w, _ := integer(get("W", "Width"))
	h, _ := integer(get("H", "Height"))
	bits, ok := integer(get("BPC", "BitsPerComponent"))
	if !ok {
		bits = 1
	}
	components := int64(1)
	if cs := get("CS", "ColorSpace"); cs != nil {
		c := p.space(cs, 0)
		if c.components == 0 {
			return 0
		}
		components = int64(c.components)
	}
	if w <= 0 || h <= 0 || w > 1<<20 || h > 1<<20 || bits <= 0 || bits > 16 {
		return 0
	}
	n := (w*components*bits + 7) / 8 * h
	if n > maxDecoded {
		return 0
	}
	return int(n)
}

// withoutSpaces returns the characters of a text but its white space.
func withoutSpaces(s string) []rune {
	var out []rune
	for _, r := range s {
		if r != ' ' && r != '\u00a0' && r != '\t' && r != '\n' && r != '\r' {
			out = append(out, r)
		}
	}
	return out
}

// intText returns the number of a name such as g12, for names of glyphs.
func intText(s string, base int) (rune, bool) {
	n, err := strconv.ParseUint(s, base, 21)
	return rune(n), err == nil && n > 0
}
